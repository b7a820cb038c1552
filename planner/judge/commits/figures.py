"""Figures of a set of commitments: expected cost, mean of the worst outcomes, coverage and what is used of it."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.judge.commits.demand import PLACES, Futures, OfBill, futures_of
from planner.judge.commits.prices import (
    HOURS_PER_YEAR,
    Plan,
    Rates,
    Term,
    owned_plan,
    plans_of,
    rates_of,
)
from planner.judge.commits.use import Hours, Market, Use, use_of
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog
    from planner.inputs.commit_load import LoadedCommit

_ROWS = 20_000  # hours at a time


@record(frozen=True)
class Purchase:
    """What is bought from hour `first` of the horizon on: units for one pool, or dollars per hour of a plan."""

    term: Term
    pool: int | None
    plan: int | None
    capacity: float
    units: float
    first: int
    begins: date
    expires: date

    @property
    def after(self) -> int:
        """The first hour that it no longer covers."""
        return self.first + self.term.years * HOURS_PER_YEAR

    def covers(self, hour: int) -> bool:
        """Whether it is active in an hour of the horizon."""
        return self.first <= hour < self.after

    def cost_usd(self, years: int, tail: float) -> float:
        """Cost of all units within the horizon; of what is owed after it, the share of no use."""
        hourly = self.term.usd_per_hour if self.plan is None else 1.0
        whole = hourly * HOURS_PER_YEAR * self.term.years + self.upfront_usd
        outside = max(0, self.after - years * HOURS_PER_YEAR) / HOURS_PER_YEAR
        return self.units * whole * (self.term.years - tail * outside) / self.term.years

    @property
    def upfront_usd(self) -> float:
        """Due at once per unit."""
        return self.term.upfront_usd if self.plan is None else 0.0

    @property
    def usd_per_hour(self) -> float:
        """Per unit, the upfront spread over the days of the term."""
        if self.plan is not None:
            return 1.0
        return self.term.usd_per_hour + self.upfront_usd / (((self.expires - self.begins).days + 1) * 24)


@record(frozen=True, eq=False)
class Figures:
    """Figures of purchases: `committed` is the cost of those of today, `planned` of those that begin later.

    `costs` are those of each future, commitments included; `used` and `paid` by purchase.
    """

    committed: float
    planned: float
    expected: float
    worst: float
    coverage: float
    utilisation: float | None
    costs: Floats
    used: Floats
    paid: Floats


@record(frozen=True, eq=False)
class _Block:
    """Hours of a future, of which those from `begin` on are, in which the same things are owned, bought or planned.

    Owned units, `(n, pools)`, and plan dollars, `(n, K)`.
    """

    begin: int
    future: int
    weight: Floats
    demand: Floats
    owned: Floats
    room: Floats


class CommitMemory:
    """A question with what was recomputed of it, so that many answers are judged at the cost of few."""

    def __init__(self, loaded: LoadedCommit, catalog: Catalog | None, of_bill: OfBill | None = None) -> None:
        """Take the question, the catalog (None where every pool gives its prices) and the bill that it was made of."""
        self.loaded, self.catalog, self.of_bill = loaded, catalog, of_bill
        self._known: dict[tuple[tuple[Purchase, ...], float], Figures] = {}
        self._blocks: dict[float, list[_Block]] = {}

    @cached_property
    def rates(self) -> list[Rates]:
        """Terms of each pool."""
        file = self.loaded.document.path.name
        return [rates_of(self.catalog, pool, file) for pool in self.loaded.question.pools]

    @cached_property
    def plans(self) -> list[Plan]:
        """Plans of several pools."""
        return plans_of(self.loaded.question, self.rates)

    @cached_property
    def years(self) -> int:
        """Years looked ahead: as asked, else the longest term that may be bought."""
        question = self.loaded.question
        terms = [t.years for rate in self.rates for t in rate.committed if t.option in question.options.allow]
        return question.horizon_years or max(terms, default=1)

    @cached_property
    def futures(self) -> Futures:
        """The futures of demand."""
        return futures_of(self.loaded, self.years) if self.of_bill is None else self.of_bill.futures

    @cached_property
    def market(self) -> Market:
        """Prices of pools, and rates of plans that are no multiple of another."""
        count = len(self.rates)
        rows = [
            [plan.rate.get(number, np.inf) for number in range(count)]
            for at, plan in enumerate(self.plans)
            if plan.base == at
        ]
        return Market(
            np.array([rate.on_demand for rate in self.rates]),
            np.array([np.inf if rate.spot is None else rate.spot for rate in self.rates]),
            np.array(rows).reshape(len(rows), count),
        )

    def row(self, plan: Plan) -> int:
        """The row of a plan in the market's rates."""
        return sum(other.base == at for at, other in enumerate(self.plans[: plan.base]))

    def is_plan(self, option: str, pool: int) -> bool:
        """Whether an option is bought by the dollar for a pool, not by the unit."""
        return any(plan.option == option and pool in plan.rate for plan in self.plans)

    def starts(self, term: Term, serves: Sequence[str], seller: str) -> dict[date, int]:
        """Days on which a term may begin, with their hours: years of the horizon, and after what it may replace.

        That is what is owned of a pool that it serves, and its seller's plans in dollars.
        """
        question, horizon = self.loaded.question, self.years * HOURS_PER_YEAR
        starts = {question.start: 0}
        if not question.options.renewals:
            return starts
        for year in range(1, self.years - term.years + 1):
            starts[later(question.start, year)] = year * HOURS_PER_YEAR
        for owned in question.commitments:
            if (owned.pool in serves) if owned.pool is not None else owned.provider == seller:
                day = owned.expires + timedelta(days=1)
                hour, turn = 24 * (day - question.start).days, 0
                while 0 < hour < horizon:
                    starts.setdefault(later(day, turn), hour)
                    hour, turn = hour + term.years * HOURS_PER_YEAR, turn + term.years
        return starts

    def blocks(self, factor: float) -> list[_Block]:
        """The stretches of all futures at a multiple of the demand."""
        if factor not in self._blocks:
            self._blocks[factor] = list(self._owned(factor))
        return self._blocks[factor]

    @cached_property
    def stretches(self) -> list[tuple[int, int]]:
        """First hour, and the hour after the last, of each part of the horizon in which nothing begins or ends."""
        question, horizon = self.loaded.question, self.years * HOURS_PER_YEAR
        cuts = {*range(0, horizon + 1, HOURS_PER_YEAR)}
        for owned in question.commitments:
            end = 24 * ((owned.expires - question.start).days + 1)
            cuts |= {*range(end, horizon, HOURS_PER_YEAR)} if end > 0 else set()
        return list(pairwise(sorted(cuts)))

    def _owned(self, factor: float) -> Iterator[_Block]:
        """Each stretch of a year weighs as long as it is, by the hours that tell of it."""
        for year in self.futures.years:
            demand = (year.demand * factor).round(PLACES)
            for begin, end in self.stretches:
                if begin // HOURS_PER_YEAR != year.year:
                    continue
                own = self._told(year.hour, begin, end)
                weight = year.weight[own] * ((end - begin) / year.weight[own].sum())
                units, dollars = self._owned_at(begin)
                shape = (len(weight), 1)
                yield _Block(
                    begin, year.future, weight, demand[own], np.tile(units, shape), np.tile(dollars, shape)
                )

    def _told(self, hours: Ints, begin: int, end: int) -> Bools:
        """Which hours of a year tell of a stretch: those in it, else those in the stretch of the nearest one."""
        away = np.maximum(begin - hours, hours - (end - 1))
        nearest = int(hours[away.argmin()])
        if not begin <= nearest < end:
            begin, end = next(part for part in self.stretches if part[0] <= nearest < part[1])
        return np.asarray((hours >= begin) & (hours < end))

    def _owned_at(self, hour: int) -> tuple[Floats, Floats]:
        """Units of each pool and dollars of each plan that are owned in an hour of the horizon."""
        question = self.loaded.question
        names = [pool.name for pool in question.pools]
        units, dollars = np.zeros(len(names)), np.zeros(len(self.market.rate))
        for commitment in question.commitments:
            if hour // 24 > (commitment.expires - question.start).days:
                continue
            if commitment.pool is not None and commitment.instances is not None:
                units[names.index(commitment.pool)] += commitment.instances
            elif commitment.usd_per_hour is not None:
                plan = owned_plan(self.plans, commitment.provider, commitment.purchase_option)
                dollars[self.row(plan)] += commitment.usd_per_hour * plan.capacity
        return units, dollars

    def figures(self, purchases: tuple[Purchase, ...], factor: float = 1.0) -> Figures:
        """Figures of purchases at a multiple of the demand; kept."""
        key = (purchases, factor)
        if key not in self._known:
            if len(self._known) > 200:
                self._known.clear()
            self._known[key] = self._figures(purchases, factor)
        return self._known[key]

    def _figures(self, purchases: tuple[Purchase, ...], factor: float) -> Figures:
        market, chance = self.market, self.futures.probability
        costs = np.zeros(len(chance))
        sums = np.zeros(2)  # of the value on demand: covered, all
        used, paid = np.zeros(len(purchases)), np.zeros(len(purchases))
        edges = {0, *(hour for one in purchases for hour in (one.first, one.after))}
        for begin, blocks in _together(self.blocks(factor), sorted(edges)):
            future = np.repeat([b.future for b in blocks], [len(b.weight) for b in blocks])
            weight, demand, owned, room = (
                np.concatenate([getattr(b, name) for b in blocks])
                for name in ("weight", "demand", "owned", "room")
            )
            active = [purchase for purchase in purchases if purchase.covers(begin)]
            reserved = np.array(
                [
                    sum(purchase.units for purchase in active if purchase.pool == p)
                    for p in range(demand.shape[1])
                ],
                dtype=float,
            )
            dollars = np.array(
                [
                    sum(purchase.capacity * purchase.units for purchase in active if purchase.plan == k)
                    for k in range(room.shape[1])
                ],
                dtype=float,
            )
            hours = Hours(
                np.maximum(demand - owned, 0.0).round(PLACES),
                (demand * self._spot_share).round(PLACES),
                room + dollars,
            )
            use = use_of(market, hours, reserved)
            np.add.at(costs, future, weight * use.cost)
            time = chance[future] * weight
            served = np.minimum(demand, owned) + use.reserved + use.planned
            sums += [time @ (served @ market.on_demand), time @ (demand @ market.on_demand)]
            self._share(purchases, begin, (time, use, room, reserved, dollars), (used, paid))
        owed = {True: 0.0, False: 0.0}  # of today, and of later days
        tail = self.loaded.question.tail_value
        for one in purchases:
            owed[one.first == 0] += one.cost_usd(self.years, 1.0 if tail is None else tail)
        committed = owed[True] + owed[False]
        worst = committed + _mean_of_worst(costs, chance, self.loaded.question.risk.level)
        return Figures(
            owed[True], owed[False], committed + float(chance @ costs), worst,
            float(sums[0] / sums[1]) if sums[1] else 0.0,
            float(used.sum() / paid.sum()) if paid.sum() > 0 else None, costs + committed, used, paid,
        )  # fmt: skip

    @cached_property
    def _spot_share(self) -> Floats:
        return np.array([pool.spot_share for pool in self.loaded.question.pools])

    def _share(
        self, purchases: Sequence[Purchase], hour: int, year_figures: tuple[Floats, Use, Floats, Floats, Floats],
        out: tuple[Floats, Floats],
    ) -> None:  # fmt: skip
        """Add what is paid for and used; purchases for the same pool or plan share in proportion to what they give."""
        time, use, room, reserved, dollars = year_figures
        by_pool, by_plan = time @ use.reserved, time @ np.maximum(use.spent - room, 0.0)  # owned plans first
        for at, purchase in enumerate(purchases):
            if not purchase.covers(hour) or not purchase.units:
                continue
            usd = purchase.usd_per_hour * purchase.units
            out[1][at] += usd * float(time.sum())
            if purchase.pool is not None:
                out[0][at] += usd * float(by_pool[purchase.pool] / reserved[purchase.pool])
            elif purchase.plan is not None:
                out[0][at] += usd * float(by_plan[purchase.plan] / dollars[purchase.plan])


def expiry(begins: date, years: int) -> date:
    """The last day of a term."""
    return later(begins, years) - timedelta(days=1)


def later(day: date, years: int) -> date:
    """The same day some years on; 29 February becomes 28."""
    year = day.year + years
    return date(year, day.month, min(day.day, monthrange(year, day.month)[1]))


def _together(blocks: Sequence[_Block], edges: Sequence[int]) -> list[tuple[int, list[_Block]]]:
    """Hours between two edges, some thousand at a time, with the first of the edges."""
    out: list[tuple[int, list[_Block]]] = []
    for begin, end in zip(edges, (*edges[1:], np.iinfo(np.int64).max), strict=True):
        size = _ROWS
        for block in blocks:
            if not begin <= block.begin < end:
                continue
            if size + len(block.weight) > _ROWS:
                out.append((begin, []))
                size = 0
            out[-1][1].append(block)
            size += len(block.weight)
    return out


def _mean_of_worst(costs: Floats, chance: Floats, level: float) -> float:
    """Mean of the worst outcomes that together have the chance `1 - level`."""
    left, total = 1.0 - level, 0.0
    for at in np.argsort(-costs, kind="stable"):
        part = min(left, float(chance[at]))
        total += part * float(costs[at])
        left -= part
    return total / (1.0 - level)
