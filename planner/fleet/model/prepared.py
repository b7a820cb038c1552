"""The fleet question made ready: exact prefilters, finite bounds, and the blocks the families share."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints, distinct
from planner.fleet.model.rows import Rows, before, in_rows
from planner.fleet.question import FleetInput
from solvers.problem.milp import Block, MilpBuilder
from solvers.problem.presolve import dominated
from solvers.search.tighten import BOUND_MARGIN

MOST_UNITS = 100_000.0  # workers of one offer; beyond it no plan is believable
MOST_OVERBUY = 64.0  # times the requirement (or the largest worker), where nothing else bounds the fleet
NEGLIGIBLE = 1e-8  # of the dearest cost
NO_WORK = 1e300  # USD per work of an offer that does none
SAFETY = 1e-9  # relative, towards keeping a unit


@dataclass(frozen=True)
class Switch:
    """Key of the column that opens a region."""

    region: int

    def __str__(self) -> str:
        return str(self.region)


@dataclass(frozen=True)
class Total:
    """Key of the column that holds the fleet's throughput, in units of the requirement."""

    def __str__(self) -> str:
        return "work"


@dataclass(frozen=True)
class Busy:
    """Key of the column that holds the work of an offer's workers, in workers used in full."""

    offer: Hashable

    def __str__(self) -> str:
        return str(self.offer)


@dataclass(frozen=True, eq=False)
class Prepared:
    """The offers that remain.

    Attributes:
        source: the question.
        keep: numbers of the offers kept, shape `(n_kept,)`.
        work: what a worker used in full delivers, over the requirement, shape `(n_kept,)`.
        upper: most workers that can be of use, whole numbers, shape `(n_kept,)`.
        most_work: no optimal fleet delivers more than this many times the requirement.
        region_work: the same for each region alone, shape `(n_regions,)`.
        dropped: offers removed per reason.
    """

    source: FleetInput
    keep: Ints
    work: Floats
    upper: Floats
    most_work: float
    region_work: Floats
    dropped: dict[str, int]

    def of(self, name: str) -> Ints:
        """Return the array `name` of the question for the offers kept."""
        values: Ints = getattr(self.source, name)[self.keep]
        return values

    def usd(self, name: str) -> Floats:
        """Return the costs `name` for the offers kept, what is `NEGLIGIBLE` beside the dearest as 0.

        Solvers cannot hold a whole term of a cluster and a cent in one row; counted as 0 the bound stays below.
        """
        return self.without_negligible(np.asarray(self.of(name), dtype=np.float64))

    def without_negligible(self, usd: Floats) -> Floats:
        """Return `usd` with what is negligible beside the dearest worker or region as 0."""
        dearest = float(np.max(self.of("cost_usd"), initial=0.0))
        dearest = max(dearest, float(np.max(self.source.region_cost_usd, initial=0.0)))
        return np.where(usd < NEGLIGIBLE * dearest, 0.0, usd)

    def with_most_work(self, most: float) -> Prepared:
        """Return this with the fleet's throughput known to stay at or below `most` times the requirement."""
        most = min(most, self.most_work)
        share = self.source.max_share_per_region
        per_region = np.minimum(self.region_work, most if share is None else share * most)
        upper = _tighten(self.source, self.work, self.upper, most)
        return replace(self, most_work=most, region_work=per_region, upper=upper)

    def capped(self, other: Prepared) -> Prepared:
        """Return `other` (the same question under a lower cost cap) with this one's tighter limits."""
        position = np.searchsorted(self.keep, other.keep)
        upper = np.minimum(other.upper, self.upper[position])
        per_region = np.minimum(other.region_work, self.region_work)
        return replace(other, upper=upper, region_work=per_region).with_most_work(self.most_work)

    @property
    def keys(self) -> list[Hashable]:
        """Keys of the offers kept."""
        return [self.source.keys[number] for number in self.keep]


def prepare(fleet: FleetInput, *, cost_cap_usd: float = math.inf, drop_dominated: bool = True) -> Prepared:
    """Drop what can never be part of an optimal fleet and bound the rest.

    Args:
        fleet: the question.
        cost_cap_usd: cost of a known fleet; no optimal fleet costs more.
        drop_dominated: also drop offers that another one can replace without loss.

    Returns:
        The offers kept with their bounds, and the count removed per reason.
    """
    if fleet.budget_usd is not None and not math.isnan(fleet.budget_usd):
        cost_cap_usd = min(cost_cap_usd, fleet.budget_usd)
    upper = _unit_limits(fleet)
    dropped: dict[str, int] = {}
    alive = np.ones(fleet.n_options, dtype=np.bool_)

    def drop(reason: str, mask: Bools) -> None:
        gone = alive & mask
        alive[gone] = False
        if gone.any():
            dropped[reason] = int(gone.sum())

    memory_wanted = bool(fleet.min_total_memory_gib)
    drop("no_throughput", (fleet.throughput <= 0) & ~(memory_wanted & (fleet.memory_gib > 0)))
    drop("spot_not_allowed", fleet.is_spot & (fleet.max_spot_share == 0))
    drop("no_capacity", upper < 1)
    affordable = _affordable(fleet, cost_cap_usd, idle=memory_wanted)
    drop("too_dear", affordable < 1)
    upper = np.minimum(upper, np.floor(affordable + SAFETY))
    if drop_dominated:
        drop("dominated", _dominated(fleet, alive))
    keep = np.flatnonzero(alive)
    work = fleet.throughput[keep] / fleet.required_throughput
    most, per_region = _most_work(fleet, keep, work, upper[keep], cost_cap_usd)
    return Prepared(fleet, keep, work, _tighten(fleet, work, upper[keep], most), most, per_region, dropped)


def _affordable(fleet: FleetInput, cost_cap_usd: float, *, idle: bool) -> Floats:
    """Most workers of each offer for the money, shape `(n_options,)`; `idle`: workers without work may be of use.

    Without idle workers x - 1 < busy: a worker more is bought for its work only. With f fixed and v for the work,
    f x + v (x - 1) <= room. (Workers used in full have v = 0.)
    """
    room = cost_cap_usd * (1 + SAFETY) - fleet.region_cost_usd[fleet.region]
    saved = np.zeros(fleet.n_options) if idle else fleet.busy_usd
    each = fleet.worker_usd + saved
    affordable = np.full(fleet.n_options, math.inf)
    np.divide(room + saved, each, out=affordable, where=each > 0)
    affordable[(room < 0) | (fleet.worker_usd > room)] = 0.0
    return affordable


def _unit_limits(fleet: FleetInput) -> Floats:
    """Most workers of each offer by its own limits: capacity, shared capacity, quota, total."""
    limits = [np.where(np.isnan(fleet.max_units), math.inf, fleet.max_units)]
    for group, amount, table in (
        (fleet.capacity_group, np.ones(fleet.n_options), fleet.capacity_limit),
        (fleet.quota_group, fleet.quota_units, fleet.quota_limit),
    ):
        known = np.append(np.where(np.isnan(table), math.inf, table), math.inf)[group]
        limit = np.full(fleet.n_options, math.inf)
        np.divide(known, amount, out=limit, where=amount > 0)
        limits.append(limit)
    for use in fleet.uses:
        limit = np.full(fleet.n_options, math.inf)
        np.divide(use.limit, use.per_worker, out=limit, where=use.per_worker > 0)
        if not fleet.part_time:
            np.divide(use.limit, use.in_full, out=limit, where=use.in_full > 0)
        limits.append(limit)
    if fleet.max_total_units is not None:
        limits.append(np.full(fleet.n_options, float(fleet.max_total_units)))
    tightest: Floats = np.minimum(np.minimum.reduce(limits), MOST_UNITS)
    return np.asarray(np.floor(tightest * (1 + SAFETY)), dtype=np.float64)


def _dominated(fleet: FleetInput, alive: Bools) -> Bools:
    """Offers that another of the same region, provider, quota, risk and capacity replaces one for one.

    Exact only where the stand-in has room for every unit it takes over, so a group is one *shared* capacity
    whose limit each member may fill alone. Where workers are used in full, equal throughput is asked for whenever a
    share is limited (more work in one place can break a share); a faster stand-in is allowed where none is. Where
    they may stop early, a faster one does the same work, at no higher cost per work and per worker.
    """
    same = [
        fleet.region,
        fleet.provider,
        fleet.quota_group,
        fleet.is_spot.astype(np.int64),
        fleet.capacity_group,
    ]
    if fleet.limits_shares and not fleet.part_time:
        same.append(distinct(fleet.throughput)[2])
    alive = alive & (fleet.capacity_group >= 0)
    number = np.flatnonzero(alive)
    if not len(number):
        return np.zeros(fleet.n_options, dtype=np.bool_)
    group = np.zeros(len(number), dtype=np.int64)
    for code in same:
        own = distinct(code[number])[2]
        group = distinct(group * (int(own.max()) + 1) + own)[2]
    capacity = fleet.capacity_limit[fleet.capacity_group[number]]
    own = np.where(np.isnan(fleet.max_units), math.inf, fleet.max_units)[number]
    result = np.zeros(fleet.n_options, dtype=np.bool_)
    per_work = np.full(fleet.n_options, NO_WORK)
    np.divide(fleet.busy_usd, fleet.throughput, out=per_work, where=fleet.throughput > 0)
    quota = fleet.quota_units * (fleet.quota_group >= 0)
    result[number] = dominated(
        group,
        np.column_stack([fleet.worker_usd[number], per_work[number], quota[number], *_used(fleet, number)]),
        np.column_stack([fleet.throughput[number], fleet.memory_gib[number]]),
        can_replace=own >= np.where(np.isnan(capacity), math.inf, capacity),
    )
    return result


def _used(fleet: FleetInput, number: Ints) -> list[Floats]:
    """What offers use of each limit, per worker and (where workers may stop early) per work."""
    used = [use.per_worker[number] for use in fleet.uses]
    for use in fleet.uses:
        if use.per_busy is not None:
            per_work = np.full(fleet.n_options, NO_WORK)
            np.divide(use.per_busy, fleet.throughput, out=per_work, where=fleet.throughput > 0)
            used.append(per_work[number])
            if not fleet.part_time:
                used.append(use.in_full[number])
    return used


def _most_work(
    fleet: FleetInput, keep: Ints, work: Floats, upper: Floats, cost_cap_usd: float
) -> tuple[float, Floats]:
    """Most work (over the requirement) that money and capacity buy: fractional knapsacks, so bounds.

    Workers that may stop early never do more than what is required: doing less in proportion keeps every share.
    (`cost_usd` over `throughput` is the least cost per work there too: idle hours only add to it.)
    """
    cost = fleet.cost_usd[keep]
    region = fleet.region[keep]
    memory = fleet.memory_gib[keep]
    work_per_gib = float((work[memory > 0] / memory[memory > 0]).max(initial=0.0))
    ceiling = MOST_OVERBUY * max(1.0, float(work.max(initial=0.0)))
    ceiling = max(ceiling, 2 * work_per_gib * (fleet.min_total_memory_gib or 0.0))
    if fleet.part_time:
        ceiling = 1.0
    order = np.argsort(cost / np.maximum(work, 1e-300), kind="stable")
    whole = in_rows(np.zeros(len(keep), dtype=np.int64), order)
    most = min(float(_buy(whole, cost, work, upper, np.array([cost_cap_usd])).sum()), ceiling)
    rows = in_rows(region, order)
    money = cost_cap_usd - fleet.region_cost_usd[rows.group]
    per_region = np.zeros(fleet.n_regions)
    per_region[rows.group] = np.minimum(_buy(rows, cost, work, upper, money), ceiling)
    share = fleet.max_share_per_region
    return most, np.minimum(per_region, most if share is None else share * most)


def _buy(rows: Rows, cost: Floats, work: Floats, upper: Floats, money: Floats) -> Floats:
    """Most work for the `money` of each row, its offers in order, the last one in part; bounds fit for a column.

    Args:
        rows: offers in order of cost per work.
        cost: of a worker, USD; so are the work and the number of workers per offer.
        work: see `cost`.
        upper: see `cost`.
        money: USD, shape `(n_rows,)`.
    """
    spent, done = np.cumsum(rows.of(cost * upper), axis=1), np.cumsum(rows.of(work * upper), axis=1)
    whole = rows.below(spent, money)
    bought = before(done, whole)
    part = np.flatnonzero(whole < rows.size)
    last = rows.member[part, whole[part]]
    bought[part] += np.maximum(money - before(spent, whole), 0.0)[part] / cost[last] * work[last]
    return np.asarray(bought * (1 + BOUND_MARGIN), dtype=np.float64)


def _tighten(fleet: FleetInput, work: Floats, upper: Floats, most_work: float) -> Floats:
    """No offer delivers more than its share of the most work there can be."""
    share = 1.0 if fleet.max_share_per_offer is None else fleet.max_share_per_offer
    limit = np.full(len(work), math.inf)
    np.divide(share * most_work, work, out=limit, where=work > 0)
    if not fleet.part_time:
        return np.minimum(upper, np.floor(limit * (1 + SAFETY) + SAFETY))
    # the last worker may be busy in part; for memory, workers may be idle altogether
    return upper if fleet.min_total_memory_gib else np.minimum(upper, np.ceil(limit * (1 - SAFETY) + SAFETY))


@dataclass(eq=False)
class FleetModel:
    """What the constraint families write into: the builder, the prepared offers and the shared columns.

    Attributes:
        builder: the growing model.
        offers: the prepared question.
        x: workers per offer (columns).
        busy: their work in workers used in full (columns); `x` itself where workers are used in full.
        links: numbers (among the offers kept) whose row x_o <= u_o y_r is wanted.
        total: throughput over the requirement (one column).
        y: opened regions (columns), None where opening costs nothing and is not limited.
        opened: region code of each column of `y`.
    """

    builder: MilpBuilder
    offers: Prepared
    x: Block
    busy: Block
    links: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    total: Block | None = None
    y: Block | None = None
    opened: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def columns(self) -> Ints:
        """Column number of each offer kept, shape `(n_kept,)`."""
        return np.arange(self.x.start, self.x.stop)

    @property
    def busy_columns(self) -> Ints:
        """Column number of each kept offer's work, shape `(n_kept,)`."""
        return np.arange(self.busy.start, self.busy.stop)

    def switch_of(self, regions: Ints) -> Ints:
        """Return the column of each region's switch, -1 where it has none."""
        column = np.full(self.offers.source.n_regions, -1)
        if self.y is not None:
            column[self.opened] = np.arange(self.y.start, self.y.stop)
        return column[regions]

    def group_rows(self, name: str, group: Ints, amount: Floats, limits: Floats) -> None:
        """Add `sum of amount x in group <= limit` (times its region's switch where there is one)."""
        inside = group >= 0
        size = len(limits)
        most = np.bincount(group[inside], weights=(amount * self.offers.upper)[inside], minlength=size)
        region = self.offers.of("region")
        first, last = np.full(size, self.offers.source.n_regions), np.full(size, -1)
        np.minimum.at(first, group[inside], region[inside])
        np.maximum.at(last, group[inside], region[inside])
        switch = np.where(first == last, self.switch_of(np.where(last >= 0, last, 0)), -1)
        members = np.bincount(group[inside], minlength=size)
        wanted = np.flatnonzero((most > limits) | ((switch >= 0) & (members > 1) & (most > 0)))
        bound, switch = np.minimum(most, limits)[wanted], switch[wanted]
        upper = np.where(switch >= 0, 0.0, bound)
        rows = self.builder.add_rows(name, len(wanted), upper=upper, tags=tuple(wanted.tolist()))
        row_of = np.full(size + 1, -1)
        row_of[wanted] = np.arange(rows.start, rows.stop)
        row = row_of[group]
        self.builder.add_entries(row[row >= 0], self.columns[row >= 0], amount[row >= 0])
        switched = np.flatnonzero(switch >= 0)
        self.builder.add_entries(rows.start + switched, switch[switched], -bound[switched])

    def share_rows(
        self, name: str, codes: Ints, share: float, *, tags: tuple[Hashable, ...], groups: Ints
    ) -> None:
        """Add `sum of work in group <= share x total` per group of `groups`; `codes`: group per offer."""
        assert self.total is not None
        rows = self.builder.add_rows(name, len(groups), upper=0.0, tags=tags)
        row_of = np.full(int(codes.max(initial=-1)) + 1, -1)
        row_of[groups] = np.arange(rows.start, rows.stop)
        row = row_of[codes]
        inside = row >= 0
        self.builder.add_entries(row[inside], self.busy_columns[inside], self.offers.work[inside])
        self.builder.add_entries(np.arange(rows.start, rows.stop), self.total.start, -share)
