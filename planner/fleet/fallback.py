"""Workers on spot that fall back on on-demand: each does its share of the runs as one job that must meet the deadline.

A worker runs on spot, waits while there is none, and changes to on-demand of the same type and region for good at the
last moment at which on-demand still finishes its share in time. That is the policy of a single job, and k runs one
after another are a job of k times the work, so the course of a worker is that of a single job
(`planner.candidates.ways.course`). Its cost is no straight line of its hours: the more work it has, the less slack and
the more of it on on-demand. So each number of workers is worked out for itself, all of one spot offer; they share the
runs evenly, some doing one more than the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.ways.build import spot_candidates
from planner.candidates.ways.chances import at_least
from planner.candidates.ways.course import (
    Cells,
    Course,
    frame_of,
    run_in_turn,
    take_columns,
)
from planner.candidates.ways.judged import alike
from planner.candidates.ways.partners import on_demand_partners
from planner.fleet.kept import Kept, kept_usd
from planner.fleet.workers import Workers, build_with_storage
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.candidates.ways.course import Frame


FALLBACKS_COMPARED = "fall-backs are compared in fleets of one spot offer, not in mixes"
NOT_JUDGED = "of some fleets with a fall-back the probability was not worked out: they may be likely enough"
_SLIP_HOURS = 1e-9
_ALL = 0.999  # of the work on on-demand: spot is of no use then


@record(frozen=True, eq=False)
class Ways:
    """Spot offers with what they fall back on, shape `(n_ways,)`.

    Attributes:
        workers: ways to be a worker on spot alone, by which it is chosen where the data are read from.
        kept: what its data costs.
        on_demand: the offer of the same type and region to fall back on.
    """

    workers: Workers
    kept: Kept
    on_demand: Ints

    def take(self, numbers: Ints) -> Ways:
        """Those of `numbers`."""
        return Ways(self.workers.take(numbers), self.kept.take(numbers), self.on_demand[numbers])


@record(frozen=True, eq=False)
class Shares:
    """What workers do that have a share of the work each, arrays of shape `(n_shares,)`; hours as in `Course`.

    Attributes:
        runs: of the job, one after another; a part of one where the work divides freely.
        course: how they are expected to go.
        ends: hours from the start to the end of a worker.
        sure: chance to be in time by on-demand alone; on spot alone, where that does not come, it counts as late.
        possible: whether they may be used: in time, and not all on on-demand.
    """

    runs: Floats
    course: Course
    ends: Floats
    sure: Floats
    possible: Bools

    def take(self, numbers: Ints) -> Shares:
        """Those of `numbers`."""
        return Shares(
            self.runs[numbers], take_columns(self.course, numbers), self.ends[numbers], self.sure[numbers],
            self.possible[numbers],
        )  # fmt: skip


def may_fall_back(search: CandidateSearch) -> bool:
    """Whether all workers may fall back on on-demand: some may, and no share of the work is limited."""
    return some_may_fall_back(search) and least_share(search) >= 1.0


def some_may_fall_back(search: CandidateSearch) -> bool:
    """Whether any worker may fall back on on-demand: there is a last moment to do so."""
    workload, dates = search.context.asked.workload, search.context.dates
    timed = dates.deadline_hours is not None and workload.constraints.min_throughput is None
    return timed and workload.spot.fallback != "none"


def least_share(search: CandidateSearch) -> float:
    """The largest share of the work that one spot offer may do by every limit on shares, 1 without any."""
    fleet = search.context.asked.workload.fleet
    shares = () if fleet is None else (
        fleet.max_spot_share, fleet.max_share_per_region, fleet.max_share_per_offer
    )  # fmt: skip
    return min((share for share in shares if share is not None), default=1.0)


def ways_of(search: CandidateSearch, limit_hours: float) -> Ways:
    """Every spot offer that on-demand of its type and region may take over from at a higher price."""
    candidates, market = search.candidates, search.context.market
    partner = on_demand_partners(market, search.offer_bits)
    at = spot_candidates(candidates)
    own, place = partner[candidates.offer[at]], market.region_of_offer
    price = market.offer_set.usd_per_hour
    fits = (
        (own >= 0) & (place[own] == place[candidates.offer[at]]) & (price[candidates.offer[at]] < price[own])
    )
    admitted = np.ones(len(candidates.bits), dtype=np.int64)
    admitted[at[fits]] = 0
    workers, kept = build_with_storage(replace(candidates, bits=admitted), limit_hours)
    return Ways(workers, kept, partner[workers.rows])


def least_usd(search: CandidateSearch, workers: Workers, runs: float) -> Floats:
    """Lower bound of the cost of `runs` by workers of each kind, shape `(n_workers,)`.

    It is what their bare hours cost at the least price, and what the place costs.
    """
    hourly = search.context.market.offer_set.least_usd_per_hour[workers.rows]
    work = search.candidates.work_hours[workers.at] * runs + workers.fixed_hours
    return np.asarray((workers.nodes * hourly * work + workers.place_usd) * 0.999, dtype=np.float64)


def jobs_of(search: CandidateSearch, ways: Ways, runs: Floats) -> tuple[Candidates, Cells]:
    """Shares of the work as jobs of one worker each: candidates with the work of `runs` runs, and where they run.

    Args:
        search: candidates of one run each.
        ways: of each share, shape `(n,)`.
        runs: that the worker does, of the same shape.
    """
    context, at = search.context, ways.workers.at
    one = search.candidates.take(at)
    scaled = replace(one, work_hours=one.work_hours * runs)
    rows, nodes = ways.workers.rows, ways.workers.nodes
    cells = Cells(
        base=np.arange(len(at)), zones=rows[:, None], shares=np.ones((len(at), 1)), on_demand=ways.on_demand,
        pool=context.gang_risk(rows, nodes, once=True).pool, moves=np.zeros(len(at)),
    )  # fmt: skip
    return scaled, cells


def shares_of(search: CandidateSearch, ways: Ways, runs: Floats) -> Shares:
    """Expect the course of workers of `ways` that do `runs` runs each, both of shape `(n,)`."""
    scaled, cells = jobs_of(search, ways, runs)
    dates, frame = search.context.dates, frame_of(scaled, cells)
    assert dates.deadline_hours is not None
    confidence = search.context.asked.workload.constraints.deadline_confidence
    course = _courses(scaled, cells, frame)
    ends = course.waiting + ways.workers.fixed_hours + course.elapsed
    possible = frame.possible(confidence) & (ends <= dates.deadline_hours + _SLIP_HOURS)
    possible &= course.work_share < _ALL
    return Shares(runs, course, ends, at_least(scaled, cells, frame, 0.0), possible)


def _courses(scaled: Candidates, cells: Cells, frame: Frame) -> Course:
    """The course of each cell; those that go alike are worked out once."""
    one, own = alike(scaled, cells, frame)
    return take_columns(run_in_turn(scaled, cells.take(one), frame.take(one)), own)  # type: ignore[no-any-return]


@record(frozen=True, eq=False)
class Fleets:
    """Fleets of workers of one way each, arrays of shape `(n_fleets,)`; hours are means over the workers.

    Attributes:
        ways: of each; count: workers; more: how many of them have the larger share.
        few, most: the shares of the others and of these; the same where all have one.
    """

    ways: Ways
    count: Ints
    more: Ints
    few: Shares
    most: Shares

    def take(self, numbers: Ints) -> Fleets:
        """Those of `numbers`."""
        return Fleets(
            self.ways.take(numbers), self.count[numbers], self.more[numbers], self.few.take(numbers),
            self.most.take(numbers),
        )  # fmt: skip

    @property
    def runs(self) -> Ints:
        """Of all workers together, where nobody divides a run."""
        all_runs = self.more * self.most.runs + (self.count - self.more) * self.few.runs
        return np.rint(all_runs).astype(np.int64)

    def mean(self, name: str) -> Floats:
        """A figure of the course of a worker, in the mean of all."""
        part = self.more / self.count
        few, most = (getattr(share.course, name) for share in (self.few, self.most))
        return np.asarray(most * part + few * (1.0 - part), dtype=np.float64)

    @property
    def stay_hours(self) -> Floats:
        """From the start to the end of a worker."""
        part = self.more / self.count
        return np.asarray(self.most.ends * part + self.few.ends * (1.0 - part), dtype=np.float64)

    @property
    def on_demand_share(self) -> Floats:
        """Of the work of all, what on-demand does."""
        rest = (self.count - self.more) * self.few.runs
        more = self.more * self.most.runs
        done = more * self.most.course.work_share + rest * self.few.course.work_share
        return np.asarray(done / (more + rest), dtype=np.float64)

    def cost_usd(self, search: CandidateSearch) -> Floats:
        """Of all workers, as billed; what their place shares is paid until the last of them ends."""
        market, workers, stay = search.context.market, self.ways.workers, self.stay_hours
        last, count = self.most.ends, self.count.astype(np.float64)
        each = market.costs.evaluate(
            workers.rows, workers.nodes, self.mean("spot_hours"), stay, expected=True, run_hours=stay
        )
        later = market.costs.evaluate(
            self.ways.on_demand,
            workers.nodes,
            self.mean("on_demand_hours"),
            stay,
            expected=True,
            run_hours=stay,
        )
        copy = workers.copy_usd_per_hour
        own = each.cost_usd - workers.place_usd - copy * stay + later.worker_usd
        kept = kept_usd(self.ways.kept, count, stay, last, repeats=market.stores.repeats)
        return np.asarray(own * count + workers.place_usd + copy * last + kept, dtype=np.float64)
