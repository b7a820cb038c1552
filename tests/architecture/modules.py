"""What the architecture tests know of the source: its files, their syntax trees, and who imports whom."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("planner", "catalogs", "solvers")


@cache
def source_files() -> tuple[Path, ...]:
    """Every Python file of the three packages."""
    return tuple(sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")))


@cache
def text_of(path: Path) -> str:
    """The text of a file, read once."""
    return path.read_text(encoding="utf-8")


@cache
def syntax_tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(text_of(path), filename=str(path))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file, those above others first: the walk takes longer than what tests ask of the nodes."""
    found: list[ast.AST] = [syntax_tree(path)]
    for node in found:
        for value in vars(node).values():
            if isinstance(value, list):
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return tuple(found)


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
