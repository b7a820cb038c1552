"""CPU seconds of every test, children included: `pytest -p tests.cpu_times --cpu-times=FILE`, a line per phase.

Wall seconds on a shared machine say little; these figures rank what is worth making cheaper. A child counts in the
phase that waited for its end. What remains of a process's total is imports, collection and the end of the session.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def cpu_s() -> float:
    """CPU seconds that this process and its ended children have used."""
    used = [resource.getrusage(who) for who in _WHO]
    return sum(one.ru_utime + one.ru_stime for one in used)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--cpu-times`, the file to write."""
    parser.addoption(
        "--cpu-times", type=Path, help="write CPU seconds per test and phase to this file, dearest first"
    )


class CpuTimes:
    """Measures in the process that runs the tests; collects in the one that reports."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[tuple[float, str, str]] = []
        self.before = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[Any]:
        self.before = cpu_s()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[Any]:
        report: Any = yield
        now = cpu_s()
        report.cpu_s, self.before = now - self.before, now
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.rows.append((getattr(report, "cpu_s", 0.0), report.when, report.nodeid))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput"):
            return
        total = sum(seconds for seconds, _, _ in self.rows)
        lines = [f"{seconds:9.3f} {when:8} {name}" for seconds, when, name in sorted(self.rows, reverse=True)]
        self.path.write_text("\n".join([f"{total:9.3f} total", *lines, ""]), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Measure where a file is named."""
    if path := config.getoption("--cpu-times"):
        config.pluginmanager.register(CpuTimes(path), "cpu-times")
