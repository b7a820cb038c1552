"""`planner portfolio --rolling`: jobs arrive and are planned anew at every step; what came of it in figures."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.portfolios.gather import opened
from planner.portfolios.rolling.course import Course, Outcome, Stint, Task, owned_nodes
from planner.portfolios.rolling.demand import Demand
from planner.portfolios.rolling.replan import RollingPolicy
from planner.portfolios.shared_limits import MICRO
from planner.render.presentable import Presentable

if TYPE_CHECKING:
    from pathlib import Path

    from catalogs.tables.model import Catalog
    from planner.asked.options import Options
    from planner.inputs.portfolio_load import LoadedPortfolio

MOST_STEPS = 20_000  # plans made anew
MOST_JOBS = 5_000


@dataclass(frozen=True, eq=False)
class RollingAnswer(Presentable):
    """The answer, with everything behind it.

    Attributes:
        demand: the jobs and what they share.
        outcome: what came of them.
        catalog: prices used, None where every candidate was sized elsewhere.
        created_at: moment of the answer.
        seconds: wall-clock seconds in all.
    """

    REPORT = "planner.portfolios.rolling.report:rolling_report"
    __repr__ = Presentable.__repr__

    demand: Demand
    outcome: Outcome
    catalog: Catalog | None
    created_at: datetime
    seconds: float


@dataclass(frozen=True)
class Figures:
    """Sums over some jobs.

    Attributes:
        late, never: jobs that end after their deadline, and that nothing could run.
        bought_usd: runs, whatever they cost beside what is owned.
        owned_node_hours: instance-hours of what is owned.
        lost_node_hours: of those, work that a preemption lost, and restarts.
    """

    jobs: int
    late: int
    never: int
    late_hours: float
    bought_usd: float
    owned_node_hours: float
    preemptions: int
    lost_node_hours: float


def plan_rolling(
    loaded: LoadedPortfolio,
    planning: Options,
    every: timedelta | None = None,
    *,
    catalog: Callable[[], Catalog] | None = None,
    catalog_dir: Path | None = None,
) -> RollingAnswer:
    """Let the jobs of a portfolio arrive, and plan at each step with those that have; runs take as long as predicted.

    Args:
        loaded: the portfolio.
        planning: moment and flags of `optimize`.
        every: from one plan to the next; by default as the file's `rolling` says.
        catalog: gives the prices; by default the snapshot of `catalog_dir`.
        catalog_dir: snapshot directory, by default the newest refreshed or the bundled one.

    Raises:
        InputError: a job or a file is wrong, or asks for what a rolling plan does not know.
    """
    began = time.perf_counter()
    if every is None:
        if loaded.portfolio.rolling is None:
            raise InputError("a rolling plan needs the time from one plan to the next: rolling: {every: 1d}")
        every = loaded.portfolio.rolling.every
    used: list[Catalog] = []
    demand = Demand(loaded, opened(used, catalog, planning, catalog_dir), planning, every)
    steps = period_hours(demand) / demand.every_hours
    if len(demand.jobs) > MOST_JOBS or steps > MOST_STEPS:
        raise InputError(
            f"{len(demand.jobs):,} jobs over {steps:,.0f} steps: a rolling plan takes up to {MOST_JOBS:,} jobs and "
            f"{MOST_STEPS:,} steps; take longer steps, or plan in parts"
        )
    outcome = Course(demand, RollingPolicy()).play()
    demand.gatherer.check_limits()
    source = used[0] if used else None
    return RollingAnswer(demand, outcome, source, planning.now, time.perf_counter() - began)


def period_hours(demand: Demand) -> float:
    """Hours from the start to the last submission: what is owned is paid for all of it, later for what is used."""
    return max((job.submitted for job in demand.jobs), default=0.0)


def late_hours(task: Task) -> float:
    """Hours that a job ended after its deadline; infinite for one that nothing could run by it."""
    if task.end is None:
        return 0.0 if math.isinf(task.job.deadline) else math.inf
    return max(task.end - task.job.deadline, 0.0)


def is_late(task: Task) -> bool:
    """Whether a job missed its deadline by a minute or more."""
    return late_hours(task) > 1.0 / 60.0


def figures_of(demand: Demand, tasks: Sequence[Task]) -> Figures:
    """Sums over `tasks`."""
    stints = [(task, stint) for task in tasks for stint in task.stints]
    lost = 0.0
    for task, stint in stints:
        restart = task.job.restart_hours if stint is not task.stints[0] else 0.0
        lost += (stint.lost_hours + min(restart, stint.end - stint.begin)) * _nodes(demand, stint)
    ended = [late_hours(task) for task in tasks if task.end is not None]
    return Figures(
        len(tasks), sum(map(is_late, tasks)), sum(task.end is None for task in tasks), sum(ended),
        sum(stint.cost_micro_usd for _, stint in stints) / MICRO,
        sum(_nodes(demand, stint) * (stint.end - stint.begin) for _, stint in stints),
        sum(stint.preempted for _, stint in stints), lost,
    )  # fmt: skip


def owned_usd(demand: Demand, outcome: Outcome) -> float:
    """What is owned costs: all of it until the last submission, then the instances in use."""
    period, prices = period_hours(demand), demand.limits.usd_per_node_hour
    fixed = sum(price * _whole_hours(demand, number) for number, price in enumerate(prices))
    after = [
        prices[pool] * nodes * max(stint.end - max(stint.begin, period), 0.0)
        for task in outcome.tasks
        for stint in task.stints
        for pool, nodes in owned_nodes(demand, stint.option).items()
    ]
    return fixed + sum(after)


def utilisation(demand: Demand, outcome: Outcome) -> float | None:
    """Share of the owned instance-hours until the last submission that jobs held; None where nothing is owned."""
    period = period_hours(demand)
    there = sum(_whole_hours(demand, number) for number in range(len(demand.limits.pools)))
    if not there:
        return None
    held = [
        _nodes(demand, stint) * max(min(stint.end, period) - stint.begin, 0.0)
        for task in outcome.tasks
        for stint in task.stints
    ]
    return sum(held) / there


def _whole_hours(demand: Demand, pool: int) -> float:
    """Instance-hours of a pool until the last submission, or until it expires."""
    whole = next(limit.amount for limit in demand.limits.all if limit.number == pool and limit.team is None)
    return whole * max(min(period_hours(demand), demand.limits.end_hours[pool]), 0.0)


def _nodes(demand: Demand, stint: Stint) -> int:
    return sum(owned_nodes(demand, stint.option).values())
