"""What the architecture tests know of the source: its files, their syntax trees, and who imports whom."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("planner", "catalogs", "solvers")


@cache
def source_files() -> tuple[Path, ...]:
    """Every Python file of the three packages."""
    return tuple(sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")))


@cache
def syntax_tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def relative(path: Path) -> str:
    """A file's place in the checkout, with forward slashes."""
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    """`planner/render/text.py` -> `planner.render.text`; a package's `__init__` -> the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def module_names() -> frozenset[str]:
    """Every importable module of the three packages."""
    return frozenset(module_name(path) for path in source_files())


def _statements_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported, those for type checkers left out."""
    for node in body:
        if isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.unparse(node.test):
                yield from _statements_at_import([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _statements_at_import([*node.body, *node.orelse, *node.finalbody])
        elif isinstance(node, ast.ClassDef | ast.With):
            yield from _statements_at_import(node.body)
        else:
            yield node


def imports_at_import(path: Path) -> set[str]:
    """Modules of the project that a file imports when it is itself imported."""
    found: set[str] = set()
    for node in _statements_at_import(syntax_tree(path).body):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            inner = submodules & module_names()
            found |= inner
            if len(inner) < len(node.names):
                found.add(node.module)
    return (found & module_names()) - {module_name(path)}
