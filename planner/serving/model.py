"""A serving fleet: how many machines of each kind answer requests of several size classes.

    minimise  sum_g usd_per_hour_g n_g
    serve     sum_g a_bg = 1                                            for every bucket b
    load      sum_b rate_b / (speed_gb (1 - headroom)) a_bg <= n_g       for every kind g
    total     sum_g n_g <= max_nodes,   0 <= n_g <= limit_g, n_g whole, 0 <= a_bg <= 1

A kind serves a bucket alone at speed_gb requests per second (0: not within the latency wanted); what it serves
shares its time in proportion. Shares are continuous: only the counts, a dozen or so, are whole. Cutting each bucket
into slices with a kind of its own (Melange, arXiv 2404.14527) has a binary per slice and kind, costs at least as much
and takes far longer.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from planner.records import record
from planner.serving.greedy import FirstFleet, first_fleet, least_usd_per_hour
from planner.serving.question import ServingInput
from solvers.execution.solve import solve
from solvers.problem.errors import ModelError
from solvers.problem.milp import Milp, MilpBuilder
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status, relative_gap

HAIR = 1e-6  # a solver keeps a load to its own tolerance: so much of a machine is forgiven


@record(frozen=True)
class Share:
    """Key of the share of a bucket that a kind serves."""

    bucket: int
    kind: int

    def __str__(self) -> str:
        return f"{self.bucket}.{self.kind}"


@dataclass(frozen=True)
class ServingResult:
    """The best fleet known.

    Attributes:
        counts: machines per kind used.
        shares: share of each (bucket, kind) served; each bucket's sum to 1.
        usd_per_hour: cost; bound_usd_per_hour: no fleet costs less.
        status: what the answer is worth.
        unserved: buckets that no kind can serve.
    """

    counts: Mapping[Hashable, int]
    shares: Mapping[tuple[str, Hashable], float]
    usd_per_hour: float
    bound_usd_per_hour: float
    gap: float
    status: Status
    solver: str
    seconds: float
    unserved: tuple[str, ...] = ()


def build_serving(question: ServingInput) -> Milp:
    """Build the model; columns carry the kinds' keys and `Share`."""
    needed = question.machines
    builder = MilpBuilder("serving")
    # more machines than all buckets together need of a kind are never bought
    useful = np.ceil(np.where(np.isfinite(needed), needed, 0.0).sum(axis=1) - 1e-12)
    upper = np.minimum(question.limit, useful)
    n = builder.add_columns("n", question.keys, cost=question.usd_per_hour, upper=upper, integer=True)
    kind, bucket = np.nonzero(np.isfinite(needed))
    keys = [Share(b, g) for g, b in zip(kind.tolist(), bucket.tolist(), strict=True)]
    a = builder.add_columns("a", keys, upper=1.0)
    columns = np.arange(a.start, a.stop)
    serve = builder.add_rows("serve", len(question.buckets), lower=1.0, upper=1.0, tags=question.buckets)
    builder.add_entries(serve.start + bucket, columns, 1.0)
    load = builder.add_rows("load", len(question.keys), upper=0.0, tags=question.keys)
    builder.add_entries(load.start + kind, columns, needed[kind, bucket])
    builder.add_entries(np.arange(load.start, load.stop), np.arange(n.start, n.stop), -1.0)
    if math.isfinite(question.max_nodes):
        total = builder.add_rows("total", 1, upper=question.max_nodes)
        builder.add_entries(total.start, np.arange(n.start, n.stop), 1.0)
    return builder.build()


def solve_serving(question: ServingInput, options: SolveOptions | None = None) -> ServingResult:
    """Find the cheapest serving fleet; where time ends before that, the best known, a first one at least."""
    unserved = tuple(
        name
        for name, best in zip(question.buckets, question.machines.min(axis=0), strict=True)
        if math.isinf(best)
    )
    if unserved:
        return ServingResult({}, {}, math.nan, math.inf, math.nan, Status.INFEASIBLE, "", 0.0, unserved)
    solution = solve(build_serving(question), options)
    report = solution.report
    if solution.status is Status.OPTIMAL or solution.status is Status.INFEASIBLE:
        known, bound = None, solution.bound
    else:
        known, bound = first_fleet(question), max(solution.bound, least_usd_per_hour(question))
    if known is not None and (not solution.has_point or known.usd_per_hour < solution.objective):
        objective, status = known.usd_per_hour, Status.FEASIBLE
        point: Mapping[Hashable, float] = _point(question, known)
    elif solution.has_point:
        objective, status, point = solution.objective, solution.status, solution.x
    else:
        return ServingResult(
            {}, {}, math.nan, bound, math.nan, solution.status, report.backend, report.wall_s
        )
    machine_keys = set(question.keys)
    counts = {key: round(value) for key, value in point.items() if key in machine_keys and round(value) > 0}
    shares = _shares(question, point)
    _check(question, counts, shares)
    bound = min(bound, objective)
    gap = relative_gap(objective, bound)
    return ServingResult(counts, shares, objective, bound, gap, status, report.backend, report.wall_s)


def _point(question: ServingInput, fleet: FirstFleet) -> dict[Hashable, float]:
    """A fleet in the columns of the model."""
    kind, bucket = (at.tolist() for at in np.nonzero(fleet.shares))
    point: dict[Hashable, float] = dict(zip(question.keys, fleet.counts.tolist(), strict=True))
    return point | {Share(b, k): float(fleet.shares[k, b]) for k, b in zip(kind, bucket, strict=True)}


def _shares(question: ServingInput, x: Mapping[Hashable, float]) -> dict[tuple[str, Hashable], float]:
    """Shares by name, each bucket's raised or lowered by a hair to sum to 1."""
    total = np.zeros(len(question.buckets))
    shares = [(key, value) for key, value in x.items() if isinstance(key, Share) and value > 1e-9]
    for key, value in shares:
        total[key.bucket] += value
    return {
        (question.buckets[k.bucket], question.keys[k.kind]): v / float(total[k.bucket]) for k, v in shares
    }


def _check(
    question: ServingInput, counts: Mapping[Hashable, int], shares: Mapping[tuple[str, Hashable], float]
) -> None:
    """Work the loads out from their definition; a solver that overloads a machine is at fault."""
    needed = question.machines
    load = dict.fromkeys(question.keys, 0.0)
    for (bucket, key), share in shares.items():
        load[key] += share * float(needed[question.keys.index(key), question.buckets.index(bucket)])
    for key, value in load.items():
        if value > counts.get(key, 0) + HAIR * max(1.0, value):
            raise ModelError(
                f"serving: the solver put {value} machines' load on {counts.get(key, 0)} of {key}: its fault"
            )
