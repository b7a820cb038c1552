"""Which tests a run leaves out: three quarters of the slow ones, others for every version of the code.

A quarter of the test functions take three quarters of the CPU time. `tests/slow_tests.txt` lists them in four parts of
equal cost, whole files to a part, because the tests of a file share what is expensive to prepare. A run of the suite
takes the part that the seed of the property tests draws; `--slow-tests all` and `--hypothesis-profile=thorough` take
all, and so does a run of files or folders, of `-k`, of `-m` or of what failed (docs/adr/0019-slow-tests-in-parts.md).

Write the list anew: `pytest -n 2 --dist loadfile --slow-tests all -p tests.cpu_times --cpu-times=FILE`, then
`python -m tests.slow_tests FILE`.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).with_suffix(".txt")
PARTS = 4
SLOW_CPU_S = 0.2
"""A function is slow if one of its cases takes so long on a busy machine."""
EVERY_RUN = (
    "tests/architecture/",
    "tests/catalogs/test_kill.py",
    "tests/cli/test_broken_files.py",
    "tests/cli/test_broken_parts.py",
    "tests/cli/test_optimize.py",
    "tests/cli/test_options_documented.py",
    "tests/planner/job/test_one_engine.py",
    "tests/planner/job/test_real_catalog_laws.py",
    "tests/planner/judge/test_deep.py",
    "tests/planner/test_exhaustive_judge.py",
    "tests/test_claims.py",
    "tests/test_readme.py",
    "tests/test_security_page.py",
)
"""What runs whole each time: numbers that docs/reliability.md promises, what a newcomer tries first, the walls, and
what compares pages with the whole code: a change breaks it far from the tests of what was changed."""
SLOW_ELSEWHERE = (
    "tests/planner/finops/engine/test_clickhouse_equal.py",
    "tests/planner/finops/engine/test_postgres_equal.py",
    "tests/planner/finops/engine/test_spark_equal.py",
)
"""Files whose tests are slow where they run: they are skipped without an engine, and its process is not measured."""
_CHOOSE = ("keyword", "markexpr", "lf", "failedfirst", "stepwise")
"""Options that choose tests, those that failed before among them: none of these may be left out."""
_LINE = re.compile(r"\s*([\d.]+) (?:setup|call|teardown)\s+(\S+?)(?:\[.*)?$")


def read_parts(text: str) -> dict[str, int]:
    """Part, from 1, of each slow test function `FILE::NAME`; lines of `#` are passed over."""
    lines = (line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#"))
    return {name: int(part) for part, name in lines}


def write_parts(cpu_times: str) -> str:
    """The list from what `tests.cpu_times` wrote: dearest files first, each to the part that has least so far."""
    cases: dict[str, float] = defaultdict(float)
    functions: dict[str, set[str]] = defaultdict(set)
    for line in cpu_times.splitlines():
        if match := _LINE.match(line):
            case = line.split(maxsplit=2)[2]
            cases[case] += float(match[1])
            functions[match[2]].add(case)
    files: dict[str, dict[str, float]] = defaultdict(dict)
    for name, own in functions.items():
        file = name.partition("::")[0]
        is_slow = file in SLOW_ELSEWHERE or max(cases[case] for case in own) >= SLOW_CPU_S
        if is_slow and not file.startswith(EVERY_RUN):
            files[file][name] = sum(cases[case] for case in own)
    taken = [0.0] * PARTS
    part_of: dict[str, int] = {}
    for slow in sorted(files.values(), key=lambda slow: -sum(slow.values())):
        part = taken.index(min(taken))
        taken[part] += sum(slow.values())
        part_of |= dict.fromkeys(slow, part + 1)
    return "".join([*_HEAD, *(f"{part} {name}\n" for name, part in sorted(part_of.items()))])


_HEAD = (
    "# Slow test functions and their part, written by `python -m tests.slow_tests FILE` (tests/slow_tests.py).\n",
    "# Delete a line whose test is gone or no longer slow; a test that is not listed runs every time.\n",
)


def left_out(names: Iterable[str], parts: Mapping[str, int], part: int) -> list[bool]:
    """Whether each test, by its full name, is slow and of another part."""
    return [parts.get(name.partition("[")[0], part) != part for name in names]


def add_option(parser: pytest.Parser) -> None:
    """Add `--slow-tests`, what is run of those that are slow."""
    choices = ["all", "drawn", *map(str, range(1, PARTS + 1))]
    parser.addoption(
        "--slow-tests",
        choices=choices,
        default="drawn",
        help="run all slow tests, one of four parts, or a drawn part",
    )


def draw_part(config: pytest.Config) -> None:
    """Set the option to the part to run, which workers are told by the process that starts them."""
    config.option.slow_tests = getattr(config, "workerinput", {}).get("slow_tests", config.option.slow_tests)
    if config.option.slow_tests != "drawn":
        return
    chosen = config.args_source is not config.ArgsSource.TESTPATHS or any(
        map(vars(config.option).get, _CHOOSE)
    )
    # By the option: hypothesis loads its profile after this runs.
    if chosen or config.getoption("--hypothesis-profile") == "thorough":
        config.option.slow_tests = "all"
        return
    seed = str(config.getoption("--hypothesis-seed"))
    number = int(seed) if seed.isdecimal() else int.from_bytes(os.urandom(4))
    config.option.slow_tests = str(number % PARTS + 1)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of xdist the part: it reads the command line itself, on which no drawn part is."""
    node.workerinput["slow_tests"] = node.config.option.slow_tests


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests of other parts."""
    if config.option.slow_tests == "all":
        return
    parts = read_parts(LIST.read_text(encoding="utf-8"))
    out = left_out((item.nodeid for item in items), parts, int(config.option.slow_tests))
    config.hook.pytest_deselected(items=[item for item, gone in zip(items, out, strict=True) if gone])
    items[:] = [item for item, gone in zip(items, out, strict=True) if not gone]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was left out, and how to run it."""
    if config.option.slow_tests != "all":
        terminalreporter.write_line(
            f"slow tests: part {config.option.slow_tests} of {PARTS} (tests/slow_tests.py); --slow-tests all runs all"
        )


if __name__ == "__main__":
    LIST.write_text(write_parts(Path(sys.argv[1]).read_text(encoding="utf-8")), encoding="utf-8")
