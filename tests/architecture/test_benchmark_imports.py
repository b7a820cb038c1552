"""Benchmarks are not run by the suite: what they import from the project must be there all the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.modules import nodes_of

ROOT = Path(__file__).resolve().parents[2]
OWN = ("benchmarks", "catalogs", "planner", "solvers", "tests", "tools")
READERS = sorted((ROOT / "benchmarks").rglob("*.py"))


@cache
def defined(path: Path) -> frozenset[str]:
    """Names that a module defines or imports, at any depth: `if TYPE_CHECKING` and `__getattr__` among them."""
    names: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return frozenset(names)


def missing(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
        if not isinstance(node, ast.ImportFrom) or not node.module or node.level:
            continue
        if node.module.partition(".")[0] not in OWN:
            continue
        place = ROOT.joinpath(*node.module.split("."))
        module = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        there = defined(module) if module.exists() else frozenset()
        for alias in node.names:
            is_module = (place / alias.name).is_dir() or (place / f"{alias.name}.py").exists()
            if not is_module and alias.name not in there and "__getattr__" not in there:
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.module} has no {alias.name}"


def test_what_benchmarks_import_is_there() -> None:
    """`benchmarks.anomalies` imported a name that had changed, for five days."""
    assert READERS and [fault for path in READERS for fault in missing(path)] == []


def test_a_name_that_is_gone_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "one.py").write_text("there = 1\n")
    two = tmp_path / "benchmarks" / "two.py"
    two.write_text("from benchmarks.one import gone, there\nfrom benchmarks import one\n")
    monkeypatch.setattr("tests.architecture.test_benchmark_imports.ROOT", tmp_path)
    assert list(missing(two)) == ["benchmarks/two.py:1: benchmarks.one has no gone"]
