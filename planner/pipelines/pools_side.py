"""One of two pools before it is paired: its candidates at their own pace, and what pairs of them need."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import distinct
from planner.candidates.constraints.deadline import without_record
from planner.candidates.engine import Engine, candidates_of
from planner.candidates.finish import sure_hours
from planner.candidates.model import SINGLE
from planner.candidates.wanted import Scope, Wanted
from planner.market.obtainable import instances_at_once
from planner.market.quota import draws_on
from planner.performance.inference.pool import node_rates
from planner.pipelines.pool_pairs import Points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Floats, Ints, Table
    from planner.asked.model import Asked
    from planner.candidates.context import Context
    from planner.candidates.model import Candidates
    from planner.pipelines.pools_model import PoolName


_STEP_COLUMNS = ("step_time_s", "step_time_low_s", "step_time_high_s")
_USED_HOURS = (500.0, 1000.0)  # of work, between which costs are taken to be linear


def of_pool(asked: Asked, name: PoolName) -> Asked:
    """What one pool must do; the rollouts bring no data, save no model, and lose at most the answers in flight."""
    job = asked.job
    rollouts = job.training.tuning.rollouts
    assert rollouts is not None
    alone = replace(rollouts, pool=name, colocated=False)
    training = replace(job.training, tuning=replace(job.training.tuning, rollouts=alone))
    job = replace(job, training=training)
    if name == "rollouts":
        job = replace(job, data_gb=0.0, read_gb=0.0, export_gb=0.0, checkpoint_gib=0.0)
    return replace(asked, job=job, calibration=None)


class Side:
    """Candidates of one pool and what pairs of them need."""

    def __init__(
        self, engine: Engine, name: PoolName, limit: tuple[float, float] | None, places: dict[str, int],
        chips: dict[str, int],
    ) -> None:  # fmt: skip
        """Ask the engine.

        Args:
            engine: of the pool, without a deadline.
            name: of the pool.
            limit: deadline in hours and the probability to keep it, None where time does not matter.
            places: numbers of the regions; new ones are added.
            chips: the same of types of accelerators.
        """
        self._chips = chips
        self.engines: dict[Any, Engine] = {}  # of sizes and paces (`pools_ways`)
        self.name, self.found = name, engine.at(None, Wanted(Scope.BEST, one_offer=True))
        candidates, market = self.found.candidates, self.found.context.market
        offers = market.offer_set.offers
        limits = engine.context.asked.workload.constraints
        drawn = draws_on(limits.quota, market.offer_set, market.tariffs)
        self.quotas = np.asarray([most for most, _ in drawn])
        self.units = (
            np.stack([units for _, units in drawn], axis=1) if drawn else np.zeros((offers.n_rows, 0))
        )
        held = instances_at_once(market.offer_set, limits.obtainable)
        self.most_nodes = np.where(np.isnan(held), np.inf, held)
        timed = market.is_spot | offers.equals("purchase_option", "on_demand")
        at = np.flatnonzero((candidates.bits == 0) & (candidates.kind == SINGLE) & timed[candidates.offer])
        if limit is not None:  # spot that no record speaks for is no candidate by a deadline
            unrecorded = without_record(candidates.context.asked.workload, candidates)
            late = candidates.hours[at] > limit[0]
            at = at[~late if unrecorded is None else ~(late | unrecorded[at])]
        region = market.region_of_offer[candidates.offer[at]]
        _, first, own = distinct(region)
        rows = candidates.offer[at[first]]
        names = zip(offers["provider"][rows].tolist(), offers["region"][rows].tolist(), strict=True)
        place = np.asarray([places.setdefault(f"{p}/{r}", len(places)) for p, r in names], dtype=np.int64)[
            own
        ]
        self.points = self._points(candidates, at, place, None if limit is None else limit[1])

    def _points(self, candidates: Candidates, at: Ints, place: Ints, level: float | None) -> Points:
        context = self.found.context
        costs = context.market.costs
        rows, nodes, work = candidates.offer[at], candidates.nodes[at], candidates.work_hours[at]
        shape = candidates.shape[at]
        fixed, paid = candidates.fixed_hours[at], candidates.paid_hours[at]
        # a pair runs at least as long as its slower pool, so no pair pays less than this
        run = context.market.offer_set.book.cheapest_hours(rows, candidates.hours[at])
        # far from the least charge and the rounding of short use
        some, more = (
            costs.evaluate(
                rows,
                nodes,
                fixed + at_hours,
                candidates.waiting_hours[at] + fixed + at_hours,
                stored=candidates.stored(at),
                run_hours=run,
            ).cost_usd
            for at_hours in _USED_HOURS
        )
        hourly = (more - some) / (_USED_HOURS[1] - _USED_HOURS[0])
        sure = np.ones(len(at)) if level is None else sure_hours(candidates, at, level) / candidates.hours[at]
        points = Points(
            at=at,
            step_s=np.asarray(candidates.shapes["step_time_s"])[shape],
            stretch=(candidates.hours[at] - candidates.waiting_hours[at] - fixed) / work,
            held=(paid - fixed) / work,
            before_hours=candidates.waiting_hours[at] + fixed,
            fixed_usd=np.maximum(some - hourly * _USED_HOURS[0], 0.0),
            usd_per_hour=hourly,
            sure=sure,
            nodes=nodes,
            place=place,
            offer=rows,
            most_nodes=self.most_nodes[rows],
            **self.of_machines(at),
        )
        return points.take(_distinct(points, candidates.shapes["hardware_row"].astype(np.int64)[shape]))

    def of_machines(self, at: Ints) -> dict[str, Any]:
        """The columns of `Points` that follow from the machines of candidates alone."""
        candidates, context = self.found.candidates, self.found.context
        job, hardware = context.asked.job, context.market.offer_set.hardware
        shape = candidates.shape[at]
        own = candidates.shapes["hardware_row"].astype(np.int64)[shape]
        count = hardware["accelerator_count"].astype(np.float64)[own]
        chips = [self._chips.setdefault(name, len(self._chips)) for name in hardware["accelerator"].tolist()]
        return {
            "accelerators": candidates.nodes[at] * count,
            "rate": node_rates(job.model, job.training, hardware)[own],
            "copies": np.maximum(count / np.maximum(np.asarray(candidates.shapes["tp"])[shape], 1), 1.0),
            "chip": np.asarray(chips, dtype=np.int64)[own],
            "uses": self.units[candidates.offer[at]] * candidates.nodes[at][:, None],
        }

    def step_s(self, at: int) -> float:
        """Time of a step of a candidate at its own pace."""
        candidates = self.found.candidates
        return float(np.asarray(candidates.shapes["step_time_s"])[int(candidates.shape[at])])

    def sure_beside(self, row: int, level: float, beside: Floats) -> float:
        """The same as `sure` of point `row`, where the other pool asks for machines of each offer."""
        own, none = self.priced(row, 0.0, beside), np.zeros(1, dtype=np.int64)
        return float((sure_hours(own, none, level) / own.hours)[0])

    @cached_property
    def run(self) -> Context:
        """The pool's run; the size of a checkpoint is known by now."""
        return self.found.candidates.context

    @cached_property
    def _row_of_size(self) -> dict[tuple[int, int], int]:
        """Row of the shapes by row of the hardware and number of machines, of what a layout fits."""
        shapes = self.found.candidates.shapes
        fits = np.flatnonzero(np.asarray(shapes["fits"], dtype=np.bool_))
        sizes = zip(shapes["hardware_row"][fits].tolist(), shapes["nodes"][fits].tolist(), strict=True)
        return {(int(row), int(nodes)): at for (row, nodes), at in zip(sizes, fits.tolist(), strict=True)}

    def shapes_at(self, sizes: Sequence[tuple[int, int]], paced_s: Sequence[float]) -> Table:
        """Shapes of some sizes (row of the hardware, number of machines) with steps of at least `paced_s` each.

        A pool that waits keeps its fastest layout; both ends of its step's interval are as much longer.
        """
        shapes = self.found.candidates.shapes.take([self._row_of_size[size] for size in sizes])
        slower = np.maximum(np.asarray(paced_s) / shapes["step_time_s"], 1.0)
        return shapes.with_columns(**{name: shapes[name] * slower for name in _STEP_COLUMNS})

    def priced(self, row: int, paced_s: float, beside: Floats) -> Candidates:
        """The candidate of point `row` with steps of at least `paced_s`, priced by the engine.

        `beside`: machines of each offer that the other pool asks for.
        """
        candidates = self.found.candidates
        at, context = int(self.points.at[row]), replace(self.run, beside=beside)
        as_pool = replace(self.found, candidates=replace(candidates, context=context))
        size = int(candidates.shapes["hardware_row"][candidates.shape[at]]), int(candidates.nodes[at])
        return candidates_of(
            as_pool, candidates.offer[at : at + 1], [size[1]], self.shapes_at([size], [paced_s])
        )


def _distinct(points: Points, hardware: Ints) -> Ints:
    """The cheapest of pools that are alike in all but price: one of the zones of a region."""
    same = (
        hardware,
        points.place,
        points.nodes,
        points.stretch,
        points.held,
        points.before_hours,
        points.sure,
    )
    order = np.lexsort((points.usd_per_hour, *same))
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = np.any([column[order][1:] != column[order][:-1] for column in same], axis=0)
    return np.sort(order[new])
