"""What small steps inside a command cost: `python -m benchmarks.small_costs [--runs 5]`.

Each figure is the least CPU time of several runs in one process, after one that only warms caches. The whole commands
are measured by `benchmarks.startup`, the search for layouts by `benchmarks.layout_search`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from catalogs.tariffs import DATA_DIRECTORY, load_tariffs
from planner.inputs.yaml12 import YamlError, parse_yaml
from planner.spot.renewal import spot_outcome

N_CANDIDATES = 100_000


class Step(NamedTuple):
    """A step to measure; it should stay below `goal_ms` of CPU time on an idle core."""

    name: str
    goal_ms: float
    run: Callable[[], object]


def read_tariffs() -> None:
    """Ask each kind of tariff once."""
    tariffs = load_tariffs(DATA_DIRECTORY)  # not those that the process keeps
    tariffs.transfer_curve("aws", "us-east-1", "gcp", "us-central1")
    tariffs.storage_price("aws", "us-east-1")
    tariffs.option_rule("aws", "spot")
    tariffs.quota_rule("aws", "p5", "h100-80gb-sxm", "spot")
    tariffs.usd_per("CNY")
    tariffs.interruption_prior("aws", "p5", "h100-80gb-sxm", "")


def spot_means() -> None:
    """Expected hours of many spot candidates, without their distribution."""
    random = np.random.default_rng(1)
    spot_outcome(
        random.uniform(1, 500, N_CANDIDATES),
        rate_per_hour=random.uniform(0, 1, N_CANDIDATES),
        nodes=random.integers(1, 64, N_CANDIDATES),
        gang_exponent=1.0,
        checkpoint_interval_hours=1.0,
        checkpoint_write_hours=0.05,
        restart_hours=0.2,
        mean_wait_hours=1.3,
        notice_hours=0.008,
    )


def refused(text: str) -> Callable[[], None]:
    """A reader of hostile YAML, which must be refused before it costs anything."""

    def read() -> None:
        try:
            faults = parse_yaml(text, "hostile.yaml").faults
        except YamlError as error:
            faults = error.faults
        if not faults:
            raise AssertionError("a hostile file was accepted")

    return read


def billion_laughs() -> str:
    """Eleven levels of ten aliases each: 10^12 values where they are expanded."""
    lines = [f"l0: &l0 [{', '.join(['lol'] * 10)}]"]
    lines += [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 10)}]" for level in range(1, 12)]
    return "\n".join(lines)


STEPS = (
    Step("tariffs read, each kind asked once", 30.0, read_tariffs),
    Step(f"means of {N_CANDIDATES:,} spot candidates", 90.0, spot_means),
    Step("YAML of 100,000 levels refused", 2000.0, refused("[" * 100_000)),
    Step("YAML of 10^12 aliased values refused", 2000.0, refused(billion_laughs())),
)


def least_cpu_ms(run: Callable[[], object], runs: int) -> float:
    """Least CPU time of `runs` runs after a first one, ms."""
    run()
    spent = []
    for _ in range(runs):
        begun = time.process_time()
        run()
        spent.append(time.process_time() - begun)
    return min(spent) * 1e3


def main() -> int:
    """Print one line per step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print(f"{'step':40}{'CPU ms':>10}{'goal':>8}")
    for step in STEPS:
        print(f"{step.name:40}{least_cpu_ms(step.run, runs):10.1f}{step.goal_ms:8.0f}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
