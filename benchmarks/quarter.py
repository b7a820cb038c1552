"""A quarter's jobs under three policies: what each costs, how much is late, how much of what is owned is in use.

python -m benchmarks.quarter --jobs 300 --seed 1

Jobs arrive as `benchmarks.quarter_demand` draws them. All policies see the same stream, the same predictions and the
same limits, and every job really takes the same factor of its predicted hours. No public cluster trace is part of the
project's data, so none is replayed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.quarter_demand import (
    DECIDED,
    POOLS,
    TEAMS,
    Quarter,
    Way,
    make_quarter,
    ways_to_run,
    write_quarter,
)
from benchmarks.quarter_policies import CheapestFirst, FairShare
from planner.asked.options import Options
from planner.inputs.portfolio_load import load_portfolio
from planner.portfolios.rolling.answer import figures_of, owned_usd, utilisation
from planner.portfolios.rolling.course import Course, Policy
from planner.portfolios.rolling.demand import Demand
from planner.portfolios.rolling.replan import RollingPolicy
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog

POLICIES: dict[str, Callable[[], Policy]] = {
    "rolling planner": RollingPolicy,
    "fair share": lambda: FairShare({row[0]: row[1] for row in TEAMS}),
    "cheapest first": CheapestFirst,
}
HEADER = "seed  jobs  load  policy            bought $   owned $     all $  late %  h late  in use %  preempted  CPU s"


@record(frozen=True)
class Score:
    """What one policy made of one quarter."""

    policy: str
    bought_usd: float
    owned_usd: float
    late_ratio: float
    late_hours: float
    utilisation_ratio: float
    preemptions: int
    cpu_s: float


def scores_of(quarter: Quarter, path: Path, catalog: Catalog) -> Iterable[Score]:
    """Let every policy go through the quarter written at `path`."""
    for name, policy in POLICIES.items():
        loaded = load_portfolio(path)
        assert loaded.portfolio.rolling is not None
        demand = Demand(loaded, lambda: catalog, Options(DECIDED), loaded.portfolio.rolling.every)
        began = time.process_time()
        outcome = Course(demand, policy(), quarter.factor.tolist()).play()
        spent = time.process_time() - began
        figures = figures_of(demand, outcome.tasks)
        yield Score(
            name, figures.bought_usd, owned_usd(demand, outcome), figures.late / figures.jobs, figures.late_hours,
            utilisation(demand, outcome) or 0.0, figures.preemptions, spent,
        )  # fmt: skip


def _on_demand_usd(catalog: Catalog) -> dict[str, float]:
    """Price of an hour of each owned type, on demand in the same region."""
    offers = catalog.offers
    out = {}
    for kind, _ in POOLS:
        rows = np.flatnonzero(
            offers.equals("provider", "aws") & offers.equals("region", "us-east-1")
            & offers.equals("instance_type", kind) & offers.equals("purchase_option", "on_demand")
        )  # fmt: skip
        out[kind] = min(float(price) for price in offers["price_per_hour"][rows])
    return out


def _row(seed: str, jobs: str, load: str, score: Score) -> str:
    whole = score.bought_usd + score.owned_usd
    return (
        f"{seed:>4} {jobs:>5} {load:>5}  {score.policy:<16} {score.bought_usd:>9,.0f} {score.owned_usd:>9,.0f} "
        f"{whole:>9,.0f} {score.late_ratio:>7.1%} {score.late_hours:>7,.0f} {score.utilisation_ratio:>8.0%} "
        f"{score.preemptions:>10,} {score.cpu_s:>6.1f}"
    )


def _summary(by_policy: dict[str, list[Score]]) -> Iterable[str]:
    """Means over the seeds, and what the rolling planner saves seed by seed."""
    for policy, rows in by_policy.items():
        means = [
            fmean(getattr(row, name) for row in rows)
            for name in (
                "bought_usd",
                "owned_usd",
                "late_ratio",
                "late_hours",
                "utilisation_ratio",
                "preemptions",
                "cpu_s",
            )
        ]
        yield _row("mean", "", "", Score(policy, *means[:5], round(means[5]), means[6]))
    own = by_policy["rolling planner"]
    for policy, rows in by_policy.items():
        if policy == "rolling planner":
            continue
        saved = sorted(
            1 - (mine.bought_usd + mine.owned_usd) / (row.bought_usd + row.owned_usd)
            for mine, row in zip(own, rows, strict=True)
        )
        fewer = sum(mine.late_ratio <= row.late_ratio for mine, row in zip(own, rows, strict=True))
        yield (
            f"against {policy}: costs {fmean(saved):.1%} less on average ({saved[0]:.1%} to {saved[-1]:.1%}); "
            f"no more jobs late on {fewer} of {len(rows)} seeds"
        )


def main() -> None:
    """Print a row per seed and policy, then means and the spread of savings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=300, help="expected jobs")
    parser.add_argument("--days", type=int, default=90, help="over which they arrive; 365: a year")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds from the first on")
    given = parser.parse_args()

    from catalogs.store.load import load_catalog

    catalog = load_catalog(None)
    by_policy: dict[str, list[Score]] = {name: [] for name in POLICIES}
    print(HEADER)
    with tempfile.TemporaryDirectory() as folder:
        ways: dict[str, tuple[Way, ...]] = ways_to_run(Path(folder), catalog)
        for seed in range(given.seed, given.seed + given.seeds):
            quarter = make_quarter(seed, given.jobs, given.days)
            path = write_quarter(quarter, ways, _on_demand_usd(catalog), Path(folder))
            for score in scores_of(quarter, path, catalog):
                by_policy[score.policy].append(score)
                print(_row(str(seed), str(len(quarter.work)), f"{quarter.load:.2f}", score), flush=True)
    for line in _summary(by_policy):
        print(line)


if __name__ == "__main__":
    main()
