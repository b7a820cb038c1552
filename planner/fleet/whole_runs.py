"""Whole runs: no worker can do part of one.

Where a workload states runs, a worker has time for whole runs only, and a line does a whole number of them: some of its
workers do one more than the others. Whole runs are fleets of divisible work too, so the bound of those holds; with the
hours of a worker cut to whole runs it is the closer. The model divides work freely among the lines that it uses; here
what each does is rounded towards the cheaper line or, where that breaks a limit, to the cheapest whole numbers that
keep all.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.fleet.question import violations
from planner.fleet.rounding import cheapest_runs
from planner.fleet.workers import HAIR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from catalogs.tables.table import Floats, Ints
    from planner.asked.model import Asked
    from planner.fleet.mix import Mix
    from planner.fleet.question import Excess, FleetInput


def run_units(asked: Asked) -> float:
    """Tokens or samples of one run; 0 where the work divides freely, as no runs are stated."""
    fleet = asked.workload.fleet
    return 0.0 if fleet is None or fleet.runs == 1 else asked.job.total_units


def whole_share(share: float | None, runs: int) -> float | None:
    """The largest share of the work, no larger than `share`, that is a whole number of runs."""
    if share is None or runs == 1:
        return share
    return float(np.floor(share * runs + HAIR)) / runs


def in_runs(mix: Mix, question: FleetInput, units: float, time_limit_s: float = math.inf) -> Mix | None:
    """The mix with a whole number of runs in each line; None where none is found that meets every limit.

    Args:
        mix: as the model divides the work.
        question: its limits.
        units: tokens or samples of one run, 0 where work divides freely.
        time_limit_s: seconds for the integer program, at most.
    """
    if not units:
        return mix
    keep_idle = bool(question.min_total_memory_gib)
    for rounded in _ways(mix, question, units, time_limit_s, keep_idle=keep_idle):
        if all(one.limit_name in ("hours", "budget_usd") for one in broken(rounded, question)):
            return rounded
    return None


def _ways(
    mix: Mix, question: FleetInput, units: float, time_limit_s: float, *, keep_idle: bool
) -> Iterator[Mix]:
    """Mixes of whole runs; with the fewest workers last, as hours in reserve may ask for more than a limit allows."""
    runs = _towards_cheaper(mix, units)
    if runs is not None:
        yield _of_runs(mix, runs, units, keep_idle=keep_idle)
    runs = cheapest_runs(mix, question, units, time_limit_s, keep_idle=keep_idle)
    if runs is not None:
        yield _of_runs(mix, runs, units, keep_idle=keep_idle)
        yield _of_runs(mix, runs, units, keep_idle=keep_idle, fewest=True)


def broken(mix: Mix, question: FleetInput) -> list[Excess]:
    """Limits of the question that a mix breaks; hours kept in reserve count as there, and the budget by the bill."""
    return violations(question, *_in_question(mix, question))


def model_cost(mix: Mix, question: FleetInput) -> float:
    """What a mix costs in the model."""
    return question.cost_of(*_in_question(mix, question))


def _in_question(mix: Mix, question: FleetInput) -> tuple[Floats, Floats]:
    """Workers and their work, in workers used in full, at their places in the question."""
    count, busy = np.zeros(question.n_options), np.zeros(question.n_options)
    count[mix.numbers] = mix.count
    busy[mix.numbers] = mix.count * mix.hours / mix.workers.hours_limit
    return count, busy


def _towards_cheaper(mix: Mix, units: float) -> Ints | None:
    """Whole numbers of runs that add up to all: each line's rounded down, the rest where a run is cheapest."""
    runs, most = mix.units / units, mix.count * mix.workers.runs_limit
    rounded, wanted = np.floor(runs + HAIR).astype(np.int64), round(mix.work / units)
    usd = mix.workers.usd_per_hour * units / mix.workers.units_per_hour
    while rounded.sum() > wanted:
        rounded[np.flatnonzero(rounded)[np.argmax(usd[rounded > 0])]] -= 1
    for at in np.argsort(usd, kind="stable").tolist():
        rounded[at] += min(wanted - int(rounded.sum()), int(most[at]) - int(rounded[at]))
    return rounded if rounded.sum() == wanted else None


def _of_runs(mix: Mix, runs: Ints, units: float, *, keep_idle: bool, fewest: bool = False) -> Mix:
    """The mix whose lines do `runs`, with no more workers than that takes; `fewest`: in all hours that there are.

    On a commitment that ends all stay: fewer work longer, and pay more after it.
    """
    at = np.flatnonzero((runs > 0) | keep_idle)
    workers, runs, count = mix.workers.take(at), runs[at], mix.count[at]
    each = units / workers.units_per_hour
    if not keep_idle:
        of_one = workers.runs_limit if fewest else workers.hours_limit / each
        needed = np.where(np.isinf(workers.left_hours), np.ceil(runs / of_one - HAIR), runs).astype(np.int64)
        count = np.minimum(np.minimum(count, needed), runs)
    hours = runs * each / count
    return replace(mix, numbers=mix.numbers[at], workers=workers, count=count, hours=hours, run_units=units)
