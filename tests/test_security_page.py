"""docs/security.md names tests that exist, and every table of threats has one for each row."""

from __future__ import annotations

import ast
import re

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "security.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def _functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_is_named_exists() -> None:
    named = _TEST.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 50
    functions = {path: _functions(path) for path, _ in set(named)}
    assert [f"{path}::{name}" for path, name in named if name not in functions[path]] == []


def test_every_threat_has_a_test() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    threats = [row for row in rows if not row.startswith("| threat |")]
    assert len(threats) > 35
    assert [row for row in threats if not _TEST.search(row.rpartition(" | ")[2])] == []


def test_every_attacker_has_a_section() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for attacker in ("workload", "price source or snapshot", "plan", "CI machine", "training configuration"):
        assert re.search(rf"^## A .*{attacker}", text, re.MULTILINE), attacker
    assert "docs/security.md" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
