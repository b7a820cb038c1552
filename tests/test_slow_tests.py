"""A run of the suite leaves out slow tests of other parts only, and the list names tests that are there."""

from __future__ import annotations

import ast
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.slow_tests import (
    EVERY_RUN,
    LIST,
    PARTS,
    SLOW_CPU_S,
    draw_part,
    left_out,
    pytest_configure_node,
    read_parts,
    write_parts,
)

PARTS_OF = read_parts(LIST.read_text(encoding="utf-8"))


def functions_of(file: str) -> set[str]:
    """Test functions and classes of a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_every_listed_test_is_there_and_in_one_part() -> None:
    names = {file: functions_of(file) for file in {name.partition("::")[0] for name in PARTS_OF}}
    gone = [name for name in PARTS_OF if name.split("::")[1] not in names[name.partition("::")[0]]]
    assert not gone, f"delete their lines from {LIST.name}: {gone}"
    assert set(PARTS_OF.values()) == set(range(1, PARTS + 1))
    assert not [name for name in PARTS_OF if name.startswith(EVERY_RUN)]


def test_each_slow_test_runs_in_exactly_one_part_and_every_other_in_all() -> None:
    names = [
        *(f"{name}[case]" for name in PARTS_OF),
        "tests/test_new.py::test_new",
        "tests/test_new.py::test_new[1]",
    ]
    runs = Counter(
        name
        for part in range(1, PARTS + 1)
        for name, out in zip(names, left_out(names, PARTS_OF, part), strict=True)
        if not out
    )
    assert runs == {name: PARTS if name.startswith("tests/test_new.py") else 1 for name in names}


def test_the_list_is_written_from_measured_times() -> None:
    rows = [
        f"    9.000 total\n{SLOW_CPU_S + 1:9.3f} call     tests/a.py::test_dear[with a space]",
        f"{SLOW_CPU_S / 2 + 0.01:9.3f} call     tests/b.py::test_both_phases[1]",
        f"{SLOW_CPU_S / 2:9.3f} setup    tests/b.py::test_both_phases[1]",
        f"{SLOW_CPU_S / 2:9.3f} call     tests/b.py::test_cheap[1]",
        f"{SLOW_CPU_S / 2 + 0.01:9.3f} call     tests/b.py::test_cheap[2]",
        f"{SLOW_CPU_S + 1:9.3f} call     {EVERY_RUN[1]}::test_promised",
    ]
    assert read_parts(write_parts("\n".join(rows))) == {
        "tests/a.py::test_dear": 1,
        "tests/b.py::test_both_phases": 2,
    }


def part_drawn(
    source: str = "TESTPATHS", seed: int | None = 6, profile: str | None = None, **given: object
) -> str:
    option = SimpleNamespace(slow_tests="drawn", **given)
    config = SimpleNamespace(
        option=option,
        ArgsSource=pytest.Config.ArgsSource,
        args_source=pytest.Config.ArgsSource[source],
        getoption={"--hypothesis-seed": seed, "--hypothesis-profile": profile}.__getitem__,
    )
    draw_part(config)  # type: ignore[arg-type]
    return str(option.slow_tests)


def test_the_suite_runs_the_part_of_its_seed() -> None:
    assert part_drawn() == "3"  # 6 modulo 4, counted from 1
    assert {part_drawn(seed=None) for _ in range(100)} == {"1", "2", "3", "4"}


@pytest.mark.parametrize(
    "given",
    [
        {"source": "ARGS"}, {"source": "INVOCATION_DIR"}, {"profile": "thorough"}, {"keyword": "optimize"},
        {"markexpr": "signals"}, {"lf": True}, {"failedfirst": True}, {"stepwise": True},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_asked_for_runs_whole(given: dict[str, Any]) -> None:
    assert part_drawn(**given) == "all"


def test_a_worker_runs_the_part_that_was_drawn_before_it_started() -> None:
    node = SimpleNamespace(workerinput={}, config=SimpleNamespace(option=SimpleNamespace(slow_tests="3")))
    pytest_configure_node(node)
    worker = SimpleNamespace(option=SimpleNamespace(slow_tests="drawn"), workerinput=node.workerinput)
    draw_part(worker)  # type: ignore[arg-type]
    assert worker.option.slow_tests == "3"
