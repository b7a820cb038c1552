"""The suite's property tests with more draws: `python -m benchmarks.properties --times 10 --seed S [PATH ...]`.

The same tests under the same strategies; each draws `--times` as many examples as by the profile `thorough`, which are
more than in the suite (`tests/draws.py`), from another seed. A failure prints the example that it was shrunk to and how
to draw it again. `--cpu-limit` ends the run after the test at work then; the first test is drawn by the seed, so that
short runs with other seeds begin elsewhere. What is checked on seeds instead (enumeration, duality) is drawn by
`benchmarks.brute_force`. Exit code 1: a property does not hold.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
_SETTINGS = "_hypothesis_internal_use_settings"  # where hypothesis and its own plugin for pytest keep them


class MoreDraws:
    """Plugin of pytest: property tests only, with more examples each.

    Attributes:
        tests: property tests that passed.
        examples: that they were asked to draw.
    """

    def __init__(self, times: float, seed: int, cpu_limit_s: float) -> None:
        self._times, self._seed, self._limit_s = times, seed, cpu_limit_s
        self._asked: dict[str, int] = {}
        self.tests = self.examples = 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the other tests out, and let each of these draw more."""
        # not before pytest, whose plugin comes with it
        from hypothesis import is_hypothesis_test, settings

        chosen = [item for item in items if is_hypothesis_test(getattr(item, "obj", None))]
        done: dict[int, int] = {}  # tests with several parameters share one function
        for item in chosen:
            function = getattr(item.obj, "__func__", item.obj)  # type: ignore[attr-defined]
            if id(function) not in done:
                before: settings = getattr(function, _SETTINGS, None) or settings()
                done[id(function)] = max(1, round(before.max_examples * self._times))
                setattr(function, _SETTINGS, settings(before, max_examples=done[id(function)]))
            self._asked[item.nodeid] = done[id(function)]
        first = random.Random(self._seed).randrange(len(chosen)) if chosen else 0
        items[:] = [*chosen[first:], *chosen[:first]]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what passed."""
        if report.when == "call" and report.passed:
            self.tests, self.examples = self.tests + 1, self.examples + self._asked[report.nodeid]

    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """End the run where its time is over."""
        if time.process_time() > self._limit_s:
            item.session.shouldstop = "the CPU limit is reached"


def main() -> int:
    """Draw; return pytest's exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", default=[str(ROOT / "tests")], help="files or folders of tests")
    parser.add_argument(
        "--times", type=float, default=10, help="as many examples as by the profile `thorough`"
    )
    parser.add_argument("--seed", type=int, default=1, help="of all draws, and of the test to begin with")
    parser.add_argument("--cpu-limit", type=float, default=float("inf"), metavar="S", help="most CPU seconds")
    given = parser.parse_args()
    more = MoreDraws(given.times, given.seed, given.cpu_limit)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile=thorough"]
    options.append(f"--hypothesis-seed={given.seed}")
    code = pytest.main([*options, *given.paths], plugins=[more])
    print(
        f"{more.tests:,} property tests hold on {more.examples:,} examples, {time.process_time():.0f} CPU s"
    )
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
