"""One synchronous job: pick exactly one candidate (offer x node count).

    minimise   sum_k cost_k z_k
    subject to sum_k z_k = 1
               sum_{k in quota group g} quota_units_k z_k <= quota_limit_g     for every g
               z_k binary

Speed is not linear in the node count, so each (offer, node count) is its own binary. The planner answers this
question by exact enumeration; this model is `--solver milp` and the test oracle of that enumeration.
Deadline, budget and memory are filters that were applied (and counted) before. Clusters bought in parts: `single_mix`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.job.model_mix import MixInput, add_mix
from solvers.problem.errors import ModelError
from solvers.problem.milp import Milp, MilpBuilder
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Solution, Status

HOPELESS = 1e6  # a candidate this many times dearer than the cheapest that fits can never be chosen


@dataclass(frozen=True, eq=False)
class SingleInput:
    """The candidates of one job, all feasible on their own except for quotas.

    Attributes:
        keys: candidate keys, length `n_candidates`, unique.
        cost_usd: whole billed cost of the candidate, shape `(n_candidates,)`.
        hours: elapsed hours, shape `(n_candidates,)`; breaks ties between equal costs.
        quota_group: quota the candidate draws on (0 ..), -1 none, shape `(n_candidates,)`.
        quota_units: quota units of the whole cluster, shape `(n_candidates,)`.
        quota_limit: units per quota group, shape `(n_quota_groups,)`; NaN unknown: not enforced.
        mix: clusters bought in parts, beside the candidates.
    """

    keys: tuple[Hashable, ...]
    cost_usd: Floats
    hours: Floats
    quota_group: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    quota_units: Floats = field(default_factory=lambda: np.zeros(0))
    quota_limit: Floats = field(default_factory=lambda: np.zeros(0))
    mix: MixInput | None = None


@dataclass(frozen=True)
class SingleResult:
    """The chosen candidate with its proof; `key` is None without one, ("mix", choice) for a cluster bought in parts.

    Attributes:
        key: the chosen candidate's key.
        objective_usd: its cost.
        bound_usd: no candidate costs less.
        gap: (objective - bound) / objective.
        status: what the answer is worth.
        solver: backend that gave it.
        seconds: wall-clock seconds.
    """

    key: Hashable | None
    objective_usd: float
    bound_usd: float
    gap: float
    status: Status
    solver: str
    seconds: float


def build_single(job: SingleInput) -> Milp:
    """Build the model of `job`.

    Raises:
        ModelError: no candidate, or arrays of different lengths.
    """
    count = len(job.keys)
    if not (count or job.mix) or len(job.cost_usd) != count or len(job.hours) != count:
        raise ModelError("single: needs at least one candidate, with a cost and hours each")
    group = job.quota_group if len(job.quota_group) else np.full(count, -1)
    units = job.quota_units if len(job.quota_units) else np.zeros(count)
    limited = np.flatnonzero(np.isfinite(job.quota_limit))
    useful = _useful(job.cost_usd, group, units, job.quota_limit)
    builder = MilpBuilder("single")
    keys = [job.keys[number] for number in useful]
    block = builder.add_columns("z", keys, cost=job.cost_usd[useful], upper=1.0, integer=True)
    columns = np.arange(block.start, block.stop)
    choose = builder.add_rows("choose", 1, lower=1.0, upper=1.0)
    builder.add_entries(choose.start, columns, 1.0)
    quota = builder.add_rows(
        "quota", len(limited), upper=job.quota_limit[limited], tags=tuple(limited.tolist())
    )
    row_of = np.full(len(job.quota_limit) + 1, -1)
    row_of[limited] = np.arange(quota.start, quota.stop)
    row = row_of[group[useful]]
    inside = row >= 0
    builder.add_entries(row[inside], columns[inside], units[useful][inside])
    if job.mix is not None:
        add_mix(builder, choose.start, job.mix)
    return builder.build()


def _useful(cost: Floats, group: Ints, units: Floats, limits: Floats) -> Ints:
    """Candidates not hopelessly dearer than the cheapest that fits its quota: exact, keeps numbers safe."""
    limit = np.append(np.where(np.isnan(limits), math.inf, limits), math.inf)[group]
    fits = units <= limit
    cheapest = float(np.min(cost[fits], initial=math.inf))
    keep = cost <= HOPELESS * cheapest if cheapest > 0 else np.ones(len(cost), dtype=np.bool_)
    return np.flatnonzero(keep)


def solve_single(job: SingleInput, options: SolveOptions | None = None) -> SingleResult:
    """Solve `job` to proven optimality; equal costs are decided by hours, then by order."""
    from solvers.execution.solve import solve

    solution: Solution = solve(build_single(job), replace(options or SolveOptions(), gap=0.0))
    key: Hashable | None = None
    if solution.has_point:
        own = set(job.keys)
        chosen = next((name for name in solution.x if name in own), None)
        key = _mix_key(solution) if chosen is None else _tie_break(job, chosen)
    report = solution.report
    return SingleResult(
        key, solution.objective, solution.bound, solution.gap, solution.status, report.backend, report.wall_s
    )


def _mix_key(solution: Solution) -> Hashable:
    return next(name for name in solution.x if isinstance(name, tuple) and name[0] == "mix")


def _tie_break(job: SingleInput, key: Hashable) -> Hashable:
    """Among candidates of exactly the optimum's cost that fit their quota: fewest hours, then first."""
    at = job.keys.index(key)
    group = job.quota_group if len(job.quota_group) else np.full(len(job.keys), -1)
    units = job.quota_units if len(job.quota_units) else np.zeros(len(job.keys))
    limit = np.append(np.where(np.isnan(job.quota_limit), math.inf, job.quota_limit), math.inf)[group]
    equal = np.flatnonzero((job.cost_usd == job.cost_usd[at]) & (units <= limit))
    return job.keys[int(equal[np.argmin(job.hours[equal])])]
