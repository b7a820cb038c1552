"""The cost/carbon frontier of one job: for every limit on emissions the cheapest plan that keeps it.

All candidates stand at the workload's own deadline and budget; only `max_kgco2e` is set aside. The points are those
that no candidate of known emissions beats in cost and kgCO2e: exact over the candidates, ways in turn included, as
those left out are no better than a point by lower bounds of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.store.load import load_catalog
from planner.candidates.choose import rank
from planner.candidates.engine import Engine
from planner.candidates.footprint import operational_kg
from planner.candidates.plan_parts.frame import moment_text
from planner.candidates.plan_parts.summary import summarize
from planner.candidates.prepare import check_ages, prepare
from planner.candidates.wanted import Scope, Wanted
from planner.candidates.ways.chances import stated_chance
from planner.errors import InputError
from planner.inputs.tasks import expand_task
from planner.job.frontier import searched
from planner.plan.brief import Summary
from planner.plan.model import CatalogSource, sources_of
from planner.records import record
from planner.render.presentable import Presentable

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from catalogs.tables.table import Ints
    from planner.asked.options import Options
    from planner.candidates.model import Candidates
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Workload


_SAME = 1.0 - 1e-9  # a point must cost less than the one before it by more than this


@record(frozen=True)
class CarbonPoint:
    """The cheapest plan that emits no more than this one.

    `within_limit`: whether the workload's own `max_kgco2e` allows it, None where it has none.
    """

    best: Summary
    p_meet_deadline: float | None
    within_limit: bool | None


@record(frozen=True)
class CarbonFrontier(Presentable):
    """All points, by rising emissions and falling cost.

    Attributes:
        points: of known emissions; the first emits least, the last costs least.
        candidates: that keep every other limit, and whose emissions are known; `unknown`: those of unknown ones.
        cheaper_unknown: the cheapest plan without a figure of its emissions, where it costs less than every point.
        limit_kgco2e: the workload's own limit, set aside.
        beside_steps_ratio: what hours have beside the steps by default, over these; 0 where the workload says it.
    """

    REPORT = "planner.job.frontier_carbon_report:carbon_report"
    __repr__ = Presentable.__repr__

    workload: str
    points: tuple[CarbonPoint, ...]
    candidates: int
    unknown: int
    cheaper_unknown: Summary | None
    limit_kgco2e: float | None
    note: str
    workload_sha256: str = ""
    created_at: str = ""
    start: str = ""
    sources: tuple[CatalogSource, ...] = ()
    beside_steps_ratio: float = 0.0


def carbon_frontier(
    loaded: LoadedWorkload, options: Options, *, catalog_dir: Path | None = None
) -> CarbonFrontier:
    """Find the cost/carbon frontier of a workload.

    Args:
        loaded: the workload file.
        options: flags, as of `planner optimize`.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: the workload is wrong in a way only the catalog can tell, or a fleet.
        CatalogError: the catalog cannot be used.
    """
    catalog = load_catalog(catalog_dir, as_of=options.as_of)
    own = next((v.workload for v in expand_task(loaded.workload) if v.chosen), loaded.workload)
    if own.kind == "fleet":
        raise InputError("the cost/carbon frontier is for one job: a fleet takes constraints.max_kgco2e")
    run = prepare(loaded, _unlimited(own), catalog, options)
    answer = find_carbon_frontier(Engine(run), own, run.dates.deadline)
    check_ages(((point.best.instance_type, point.best.price_as_of) for point in answer.points), options)
    return answer


def find_carbon_frontier(engine: Engine, workload: Workload, deadline: datetime | None) -> CarbonFrontier:
    """The same from a prepared run.

    Args:
        engine: of the workload without a limit on emissions, compared by cost.
        workload: the workload as it was given.
        deadline: its own.
    """
    found = engine.at(deadline, Wanted(Scope.CARBON_FRONT))
    candidates, limit = found.candidates, workload.constraints.max_kgco2e
    kg = operational_kg(candidates)
    feasible = candidates.bits == 0
    known = np.flatnonzero(feasible & ~np.isnan(kg))
    front = front_of(candidates, known)
    points = tuple(
        CarbonPoint(
            summarize(candidates, at, None),
            stated_chance(candidates, at),
            None if limit is None else bool(kg[at] <= limit),
        )
        for at in front.tolist()
    )
    unknown = np.flatnonzero(feasible & np.isnan(kg))
    least = float(candidates.cost_usd[front[-1]]) if len(front) else np.inf
    cheaper = unknown[candidates.cost_usd[unknown] < least * _SAME]
    context = found.context
    return CarbonFrontier(
        workload.name,
        points,
        len(known),
        len(unknown),
        summarize(candidates, int(rank(candidates, cheaper, "cost")[0]), None) if len(cheaper) else None,
        limit,
        searched(found),
        context.asked.sha256,
        moment_text(context.dates.now),
        moment_text(context.dates.start),
        sources_of(context.market.catalog),
        context.asked.assumptions.beside_by_default,
    )


def front_of(candidates: Candidates, at: Ints) -> Ints:
    """Positions on the front, by rising emissions: ranked as for least carbon, then each cheaper than all before."""
    if not len(at):
        return at
    ranked = rank(candidates, at, "carbon")
    cost = candidates.cost_usd[ranked]
    before = np.concatenate([[np.inf], np.minimum.accumulate(cost)[:-1]])
    return ranked[cost < before * _SAME]


def _unlimited(workload: Workload) -> Workload:
    """The workload without a limit on emissions, compared by cost."""
    limits = workload.constraints.model_copy(update={"max_kgco2e": None})
    wishes = workload.preferences.model_copy(update={"objective": "cost"})
    return workload.model_copy(update={"constraints": limits, "preferences": wishes})
