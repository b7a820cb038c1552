"""Habits that a reader relies on: docstrings, sizes, no provider's name in the logic, no machine's path."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.architecture.modules import ROOT, nodes_of, relative, source_files, syntax_tree, text_of

USUAL_FILE_LINES = 400
USUAL_FUNCTION_LINES = 40
USUAL_SHARE = 0.9
PROVIDERS = frozenset({"aws", "gcp", "azure", "alibaba", "lambda", "oci", "runpod", "coreweave", "vastai"})
# Rooms whose work is each provider's own raw form: the fetchers.
_PROVIDER_ROOMS = ("catalogs/providers/",)


def _functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            yield f"{relative(path)}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1


def test_every_module_has_a_docstring() -> None:
    assert [relative(path) for path in source_files() if not ast.get_docstring(syntax_tree(path))] == []


def test_most_files_and_functions_are_short() -> None:
    files = [len(text_of(path).splitlines()) for path in source_files()]
    functions = [lines for path in source_files() for _, lines in _functions(path)]
    assert sum(lines <= USUAL_FILE_LINES for lines in files) >= USUAL_SHARE * len(files)
    assert sum(lines <= USUAL_FUNCTION_LINES for lines in functions) >= USUAL_SHARE * len(functions)


def _provider_tests(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """Lines on which a value is compared with a provider's name."""
    for node in nodes:
        parts: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            for side in node.comparators:  # `x in ("aws", ...)`; a tuple on the left is a key, not a choice
                parts += side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else []
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        yield from (
            part.lineno for part in parts if isinstance(part, ast.Constant) and part.value in PROVIDERS
        )


def test_provider_names_steer_no_logic_outside_the_providers() -> None:
    found = [
        f"{relative(path)}:{line}"
        for path in source_files()
        if not relative(path).startswith(_PROVIDER_ROOMS)
        for line in _provider_tests(nodes_of(path))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "caught"),
    [
        ('x == "aws"', True),
        ('"gcp" != x', True),
        ('x in ("aws", "gcp")', True),
        ('match x:\n  case "azure":\n    pass', True),
        ('table["aws"]', False),
        ('("aws", name) in known', False),
        ('x == "spot"', False),
    ],
)
def test_the_scan_for_provider_names_sees_what_it_should(code: str, caught: bool) -> None:
    assert bool(list(_provider_tests(ast.walk(ast.parse(code))))) is caught


def _tracked_files() -> list[Path]:
    """The files of the project; in an unpacked archive all that are not hidden."""
    if (ROOT / ".git").exists():
        done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
        return [ROOT / name for name in done.stdout.splitlines()]
    return [
        path for path in ROOT.rglob("*") if not any(p.startswith(".") for p in path.relative_to(ROOT).parts)
    ]


def test_no_tracked_text_names_a_place_of_one_machine() -> None:
    # the folder of plugins on every node of GKE is no place of one machine
    places = re.compile(r"(?<![\w.])/(?:work|home|Users|opt)/(?!kubernetes/bin)[a-z]|(?<![\w.])/tmp/[a-z]")
    folders = ("/work/", "/home/", "/Users/", "/opt/", "/tmp/")  # found far sooner than the pattern
    texts = (
        path
        for path in _tracked_files()
        if path.suffix in {".py", ".md", ".toml", ".lock", ".yaml", ".json", ".csv"}
    )
    found = []
    for path in texts:
        if path.is_file() and path != Path(__file__).resolve():
            text = path.read_text(encoding="utf-8", errors="replace")
            if any(folder in text for folder in folders):
                found += [f"{relative(path)}: {match.group()}" for match in places.finditer(text)]
    assert found == []


def _formatted_dollars(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """Lines on which an f-string writes a dollar sign and formats the number after it itself."""
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            for text, value in itertools.pairwise(node.values):
                formatted = isinstance(value, ast.FormattedValue) and value.format_spec is not None
                if formatted and isinstance(text, ast.Constant) and str(text.value).endswith("$"):
                    yield value.lineno


def test_money_is_formatted_by_render() -> None:
    """`planner.render` knows cents, signs and unknown amounts; `f"${usd:,}"` printed $705.5."""
    found = [
        f"{relative(path)}:{line}"
        for path in source_files()
        if not relative(path).startswith("planner/render/")
        for line in _formatted_dollars(nodes_of(path))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "caught"),
    [('f"${x:,}"', True), ('f"costs ${x:,.2f} more"', True), ('f"${key}"', False), ('f"{usd(x)}"', False)],
)
def test_the_scan_for_formatted_money_sees_what_it_should(code: str, caught: bool) -> None:
    assert bool(list(_formatted_dollars(ast.walk(ast.parse(code))))) is caught


def test_parameters_are_named_after_what_they_are() -> None:
    """`made`, `found` and `told` say how a value came about and not what it is: candidates are `candidates`."""
    vague = [
        f"{relative(path)}:{node.lineno} {node.arg}"
        for path in source_files()
        for node in nodes_of(path)
        if isinstance(node, ast.arg) and node.arg in ("made", "found", "told")
    ]
    assert vague == []
