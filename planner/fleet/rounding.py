"""Whole runs among the workers of a mix: a small integer program, where rounding line by line breaks a limit.

    min  sum_i w_i f_i + r_i v_i          r_i: runs of line i; w_i: its workers, whole both
    sum_i r_i = runs
    r_i <= k_i w_i,  w_i <= n_i           k_i: runs that a worker has time for; n_i: workers of the mix
    sum_{i in g} r_i <= share_g runs      for each limit on a share
    sum_i a_i w_i + b_i r_i <= limit      for each limit on what workers use

Limits on machines hold with fewer of them, so these are all: where the program has no point, no whole numbers of runs
of these workers keep the limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.fleet.model.prepared import NEGLIGIBLE
from planner.fleet.workers import HAIR
from solvers.execution.solve import solve
from solvers.problem.milp import Milp, MilpBuilder
from solvers.problem.options import SolveOptions

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.fleet.mix import Mix
    from planner.fleet.question import FleetInput


MOST_NODES = 10_000  # of branch and bound; the cheapest runs found by then are taken


@dataclass(frozen=True)
class Runs:
    """Key of the column that holds the runs of a line."""

    line: int

    def __str__(self) -> str:
        return str(self.line)


def cheapest_runs(
    mix: Mix, question: FleetInput, units: float, time_limit_s: float = math.inf, *, keep_idle: bool
) -> Ints | None:
    """Runs of each line that cost least in the model and meet every limit but the budget; None: none, or none in time.

    Args:
        mix: workers, whose numbers may fall unless `keep_idle`.
        question: its limits.
        units: tokens or samples of one run.
        time_limit_s: seconds, at most; the cheapest runs found by then are taken.
        keep_idle: workers without a run are kept, for their memory.
    """
    problem = build_whole_runs(mix, question, units, keep_idle=keep_idle)
    found = solve(problem, SolveOptions(gap=0.0, time_limit_s=time_limit_s, most_nodes=MOST_NODES))
    if not found.has_point:
        return None
    return np.asarray([round(found.x.get(Runs(at), 0.0)) for at in range(len(mix.count))], dtype=np.int64)


def build_whole_runs(mix: Mix, question: FleetInput, units: float, *, keep_idle: bool) -> Milp:
    """Build the program; arguments as of `cheapest_runs`."""
    fleet, workers = question.only(mix.numbers), mix.workers
    lines, runs = np.arange(len(mix.count)), round(mix.work / units)
    one = units / (workers.units_per_hour * workers.hours_limit)  # of a worker used in full, for a run
    count = np.asarray(mix.count, dtype=np.float64)
    most = np.minimum(workers.runs_limit, runs)
    builder = MilpBuilder("whole runs")
    r = builder.add_columns(
        "runs", [Runs(at) for at in lines.tolist()], cost=_usd(fleet.busy_usd * one, fleet),
        upper=np.minimum(count * most, runs), integer=True,
    ).start + lines  # fmt: skip
    w = builder.add_columns(
        "workers", lines.tolist(), cost=_usd(fleet.worker_usd, fleet), lower=count if keep_idle else 0.0,
        upper=count, integer=True,
    ).start + lines  # fmt: skip
    builder.add_entries(builder.add_rows("all_runs", 1, lower=runs, upper=runs).start, r, 1.0)
    time = builder.add_rows("run_time", len(lines), upper=0.0, tags=lines.tolist()).start + lines
    builder.add_entries(time, r, 1.0)
    builder.add_entries(time, w, -most)
    shares = (
        ("spot", np.where(fleet.is_spot, 0, -1), fleet.max_spot_share),
        ("region", fleet.region, fleet.max_share_per_region),
        ("provider", fleet.provider, fleet.max_share_per_provider),
        ("offer", fleet.pool(), fleet.max_share_per_offer),
    )
    for name, codes, share in shares:
        for code in distinct_values(codes[codes >= 0]).tolist() if share is not None else ():
            assert share is not None
            upper = np.floor(share * runs + HAIR)
            row = builder.add_rows(f"{name}_share", 1, upper=upper, tags=(code,)).start
            builder.add_entries(row, r[codes == code], 1.0)
    for use in fleet.uses:
        row = builder.add_rows("run_use", 1, upper=use.limit, tags=(use.limit_name,)).start
        builder.add_entries(row, w, use.per_worker)
        builder.add_entries(row, r, 0.0 if use.per_busy is None else use.per_busy * one)
    return builder.build()


def _usd(usd: Floats, fleet: FleetInput) -> Floats:
    """Costs, what is negligible beside the dearest worker as 0."""
    return np.where(usd < NEGLIGIBLE * float(fleet.cost_usd.max(initial=0.0)), 0.0, usd)
