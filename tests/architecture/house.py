"""Measures of the house: rooms, circles, floors, loose modules and sizes, from the source as text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.architecture.modules import PACKAGES, module_name, module_names, nodes_of, source_files, text_of

Graph = Mapping[str, frozenset[str]]


def _targets(path: Path) -> Iterator[str]:
    """Modules of the project that a file imports anywhere: at import, inside functions, for type checkers."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in module_names() else node.module


@cache
def imports_of_files() -> Graph:
    """Every import of every module, of whatever kind."""
    known = module_names()
    graph = {}
    for path in source_files():
        name = module_name(path)
        graph[name] = frozenset(set(_targets(path)) & known - {name})
    return graph


def room(name: str) -> str:
    """The room of a module: a folder of a package, or a module that lies loose in it."""
    return ".".join(name.split(".")[:2])


@cache
def imports_of_rooms() -> Graph:
    """Which rooms a room imports."""
    graph: dict[str, set[str]] = {}
    for name, targets in imports_of_files().items():
        graph.setdefault(room(name), set()).update(room(target) for target in targets)
    return {name: frozenset(targets - {name}) for name, targets in graph.items()}


def circles(graph: Graph) -> list[list[str]]:
    """Groups of more than one node that reach each other."""
    reach = {name: _reachable(graph, name) for name in graph}
    groups = {
        tuple(
            sorted(other for other in reach[name] | {name} if name in reach.get(other, ()) or other == name)
        )
        for name in graph
    }
    return sorted((list(group) for group in groups if len(group) > 1), key=len)


def _reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for target in graph.get(waiting.pop(), ()):
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return seen


def floors(graph: Graph) -> int:
    """Rooms on the longest chain of imports, circles counted as one."""
    part = {name: tuple(group) for group in circles(graph) for name in group}
    folded: dict[object, set[object]] = {}
    for name, targets in graph.items():
        here = part.get(name, name)
        folded.setdefault(here, set()).update(part.get(target, target) for target in targets)
    height: dict[object, int] = {}

    def of(node: object) -> int:
        if node not in height:
            height[node] = 1 + max(
                (of(target) for target in folded.get(node, ()) if target != node), default=0
            )
        return height[node]

    return max(of(node) for node in folded)


def loose_modules(package: str) -> list[str]:
    """Modules that lie directly in a package."""
    return sorted(
        name
        for path in source_files()
        if (name := module_name(path)).startswith(f"{package}.")
        and name.count(".") == 1
        and path.name != "__init__.py"
    )


def signatures_with(word: str) -> int:
    """Functions with a parameter whose annotation names `word`, one count per parameter."""
    count = 0
    for path in source_files():
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                count += sum(
                    word in re.findall(r"[\w.]+", ast.unparse(arg.annotation))  # not click.Context
                    for arg in (*node.args.args, *node.args.kwonlyargs)
                    if arg.annotation is not None
                )
    return count


# Folders of which a registry lists each module: what one adds is a file, however short.
REGISTRIES = {
    "planner.candidates.constraints": "planner.candidates.constraints.registry",
    "planner.commands": "planner.cli",
    "planner.export.frameworks": "planner.export.frameworks.registry",
    "planner.fleet.model": "planner.fleet.model.families",
    "planner.plan.certificates": "planner.plan.certificates",
    "planner.render": "planner.render.formats",
    "planner.trainer_files.formats": "planner.trainer_files.registry",
}
SHORT_LINES = 40


def short_files() -> dict[str, list[str]]:
    """Modules of 40 lines or less: faces of packages, entries of registries, and the others.

    An entry lies in a folder with a registry, and at most one module besides the registry imports it.
    """
    importers: dict[str, set[str]] = {}
    for name, targets in imports_of_files().items():
        for target in targets:
            importers.setdefault(target, set()).add(name)
    out: dict[str, list[str]] = {"faces": [], "entries": [], "others": []}
    for path in source_files():
        if len(text_of(path).splitlines()) > SHORT_LINES:
            continue
        name = module_name(path)
        registry = REGISTRIES.get(name.rpartition(".")[0])
        if path.name in ("__init__.py", "__main__.py"):
            kind = "faces"
        elif registry not in (None, name) and len(importers.get(name, set()) - {registry}) <= 1:
            kind = "entries"
        else:
            kind = "others"
        out[kind].append(name)
    return out


def measures() -> dict[str, int]:
    """What `docs/architecture.md` reports."""
    rooms, files = imports_of_rooms(), imports_of_files()
    lines = [len(text_of(path).splitlines()) for path in source_files()]
    return {
        "rooms": len(rooms),
        "arrows between rooms": sum(map(len, rooms.values())),
        "floors": floors(rooms),
        "circles of rooms": len(circles(rooms)),
        "circles of files": len(circles(files)),
        **{f"loose modules in {package}": len(loose_modules(package)) for package in PACKAGES},
        "signatures with the whole context": signatures_with("Context"),
        "files": len(lines),
        "files of 40 lines or less": sum(count <= SHORT_LINES for count in lines),
        **{f"of them {kind}": len(names) for kind, names in short_files().items()},
        "longest file, lines": max(lines),
        "source lines": sum(lines),
    }


if __name__ == "__main__":
    for name, value in measures().items():
        print(f"{name:36}{value:>8,}")
