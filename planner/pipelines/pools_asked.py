"""What many sizes of one pool come to, each at its own pace and by its own deadline: one question to the engine.

The engine works on columns, and a call costs milliseconds however few its candidates are. So sizes are asked about
together: each is a row of the shapes, with the step time of its pace, a deadline, and the most that is of use.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import distinct_values
from planner.candidates.context import OwnDeadlines
from planner.candidates.engine import Engine
from planner.candidates.model import IN_TURN
from planner.candidates.running import steady_hours
from planner.candidates.sizes import hardware_of_offer
from planner.candidates.starts import fallback_hours
from planner.candidates.wanted import Scope, Wanted
from planner.candidates.ways.course import until_progress
from planner.pipelines.pools_ways import ELSEWHERE, at_level, open_ways, rows_bought, stretch_of
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Floats, Ints
    from planner.candidates.engine import CandidateSearch
    from planner.pipelines.pools_side import Side
    from planner.pipelines.pools_ways import By, Offers, Size


_TIMED = ("on_demand", "spot")  # bought by the hour
_ROUNDING = 1.0 - 1e-6
_MOST_CODE = 2.0**62  # beyond, numbers of ways have no end


@record(frozen=True)
class Ask:
    """One size of a pool.

    Attributes:
        size: machines and how many.
        paced_s: the least time of a step, s.
        by: its deadline; all that are asked together have the same level.
        up_to: nothing dearer is needed, USD.
        beside: machines that the other pool asks for of each of the pool's offers that is not spot.
    """

    size: Size
    paced_s: float
    by: By
    up_to: float
    beside: int = 0

    @property
    def key(self) -> tuple[float, ...]:
        """All but the most."""
        return (*self.size, self.paced_s, self.by.hours, self.by.later_hours, self.beside)


@record(frozen=True, eq=False)
class Ways:
    """Ways to buy one size that keep every limit, shape `(n,)`; all that cost up to `up_to` USD are here.

    Attributes:
        rows: what each buys in the order of its turns, -1 beside it, all in its `region`, shape `(n, k)`.
        codes: a number of the same; firm: the row which is not spot, -1 without one.
        usd: expected cost; hours: expected elapsed; stretch: elapsed over work hours, for interruptions.
        wasted: the same without what changing to on-demand takes: it never falls with more room.
        p_change: probability that on-demand is needed.
        hourly_usd, spare_hours: the least of each further hour of work, and hours of these that may be free.
    """

    up_to: float
    rows: Ints
    codes: Ints
    region: Ints
    firm: Ints
    usd: Floats
    hours: Floats
    stretch: Floats
    wasted: Floats
    p_change: Floats
    hourly_usd: Floats
    spare_hours: Floats

    @cached_property
    def _by_code(self) -> Ints:
        return np.argsort(self.codes, kind="stable")

    def places(self, codes: Ints) -> Ints:
        """Places of ways with these codes, -1 where they are not here, shape as `codes`."""
        if not len(self.codes):
            return np.full(len(codes), -1, dtype=np.int64)
        order = self._by_code
        at = order[np.searchsorted(self.codes, codes, sorter=order).clip(max=len(order) - 1)]
        return np.where(self.codes[at] == codes, at, -1)

    def offers(self, at: int) -> Offers:
        """Rows of what way `at` buys, in the order of its turns."""
        return tuple(row for row in self.rows[at].tolist() if row >= 0)


class Asked:
    """One pool's answers, each worked out once."""

    def __init__(self, side: Side) -> None:
        """Take the pool, searched without a deadline."""
        self.side, self._bits = side, side.found.offer_bits
        self._known: dict[tuple[float, ...], Ways] = {}
        offer_set = side.found.context.market.offer_set
        self._hardware = hardware_of_offer(side.found.context.market)
        timed = np.isin(offer_set.offers["purchase_option"], _TIMED)
        self._hourly = np.where(timed, offer_set.least_usd_per_hour, 0.0) * _ROUNDING
        rules = [max(rule.billing_granularity_s or 1, rule.minimum_charge_s) for rule in offer_set.rules]
        self._spare = np.asarray(rules)[offer_set.rule_of_offer] / 3600.0
        self._n_offers = offer_set.offers.n_rows

    def among(self, offers: Ints) -> Asked:
        """The same of ways that buy some offers alone; what is known of others is not looked up."""
        out = copy(self)
        out._known = {}
        out._bits = np.full_like(self._bits, ELSEWHERE)
        out._bits[offers] = self._bits[offers]
        return out

    def codes(self, rows: Ints) -> Ints:
        """Numbers of what is bought in turn, one for each order of offers, shape `(n,)`; `rows` as of `Ways`."""
        base = self._n_offers + 1
        fits = float(base) ** rows.shape[1] < _MOST_CODE
        out = np.zeros(len(rows), dtype=np.int64 if fits else np.object_)
        for column in rows.T:
            out = np.where(column >= 0, out * base + column + 1, out)
        return np.asarray(out)

    def place(self, ways: Ways, offers: Offers) -> int | None:
        """The way that buys these, None without one."""
        at = int(ways.places(self.codes(np.asarray([offers])))[0])
        return None if at < 0 else at

    def all(self, asks: Sequence[Ask]) -> list[Ways]:
        """Every way of each."""
        missing: dict[int, dict[tuple[float, ...], Ask]] = {}
        for ask in asks:
            known = self._known.get(ask.key)
            if known is None or known.up_to < ask.up_to:
                own = missing.setdefault(ask.beside, {})
                more = own.get(ask.key)
                own[ask.key] = ask if more is None or more.up_to < ask.up_to else more
        for own in missing.values():
            self._known |= zip(own, self._ask(list(own.values())), strict=True)
        return [self._known[ask.key] for ask in asks]

    def _ask(self, asks: list[Ask]) -> list[Ways]:
        """The same of asks that others ask beside alike."""
        search = self._search(asks)
        candidates, market = search.candidates, search.context.market
        at = open_ways(search)
        at = at[np.argsort(candidates.shape[at], kind="stable")]
        lead, turn = candidates.offer[at], candidates.kind[at] == IN_TURN
        rows = rows_bought(search, at)
        stretch, hourly = stretch_of(search, at), self._hourly[lead]
        if turn.any() and candidates.turns is not None:
            padded = candidates.turns.offer[candidates.detail[at[turn]]]
            hourly[turn] = np.append(self._hourly, np.inf)[padded].min(axis=1)
        columns: tuple[Any, ...] = (
            rows, self.codes(rows), market.region_of_offer[lead], _firm(search, at), candidates.cost_usd[at],
            candidates.hours[at], stretch,
            *_changing(search, at), hourly * candidates.nodes[at],
            np.where(turn, 0.0, self._spare[lead]),  # hours in turn are means, and not rounded up
        )  # fmt: skip
        ends = np.searchsorted(candidates.shape[at], np.arange(len(asks) + 1)).tolist()
        return [
            Ways(ask.up_to, *(column[first:last] for column in columns))
            for ask, first, last in zip(asks, ends[:-1], ends[1:], strict=True)
        ]

    def _search(self, asks: list[Ask]) -> CandidateSearch:
        """Candidates of all; the row of their shapes is the number of the ask."""
        side = self.side
        context = at_level(side, asks[0].by.level)
        own = OwnDeadlines(
            np.asarray([ask.by.hours for ask in asks]), np.asarray([ask.by.later_hours for ask in asks])
        )
        market = context.market
        wanted_rows = distinct_values(np.asarray([ask.size[0] for ask in asks]))
        bits = np.where(np.isin(self._hardware, wanted_rows), self._bits, ELSEWHERE)
        beside = None
        if asks[0].beside:
            beside = np.where(market.is_spot, 0.0, float(asks[0].beside))
        context = replace(context, own=own, beside=beside)
        shapes = side.shapes_at([ask.size for ask in asks], [ask.paced_s for ask in asks])
        engine = Engine(
            context, sizes=[max(ask.size[1] for ask in asks)], shapes=shapes, offer_bits=bits,
            admitted_only=True,
        )  # fmt: skip
        most = np.asarray([ask.up_to for ask in asks])
        wanted = Wanted(Scope.PLACES, up_to=np.inf, one_region=True, in_parts=False, of_shapes=most)
        return engine.at_hours(float(own.hours.max()), wanted)


def _firm(search: CandidateSearch, at: Ints) -> Ints:
    """What candidates `at` buy that is not spot, -1 without it."""
    candidates, is_spot = search.candidates, search.context.market.is_spot
    firm = np.where(is_spot[candidates.offer[at]], -1, candidates.offer[at])
    turn = np.flatnonzero(candidates.kind[at] == IN_TURN)
    if len(turn) and candidates.turns is not None:
        offers = candidates.turns.offer[candidates.detail[at[turn]]]
        firm[turn] = np.where((offers >= 0) & ~is_spot[offers], offers, -1).max(axis=1)
    return np.asarray(firm, dtype=np.int64)


def _changing(search: CandidateSearch, at: Ints) -> tuple[Floats, Floats]:
    """`Ways.wasted` and `Ways.p_change` of candidates `at`."""
    candidates, stretch, p_change = search.candidates, stretch_of(search, at), np.zeros(len(at))
    turn = np.flatnonzero(candidates.kind[at] == IN_TURN)
    if not len(turn) or candidates.turns is None:
        return stretch, p_change
    base, turns = at[turn], candidates.turns
    own, context = candidates.detail[base], search.context
    has = turns.has_fallback[own]
    row, last = np.arange(len(own)), turns.offer.shape[1] - 1
    on_demand = np.where(has, turns.offer[own][row, last], -1)
    change = until_progress(
        candidates, base, fallback_hours(context.starts, on_demand, candidates.nodes[base])
    )
    work, write, interval = (
        candidates.work_hours[base], candidates.write_hours[base], candidates.interval_hours[base]
    )  # fmt: skip
    steady = steady_hours(context.asked, candidates.nodes[base], work, write, interval)
    failures = steady - work * (1.0 + write / interval)
    taken = turns.p_change[own] * change + turns.work_share[own] * np.maximum(failures, 0.0)
    stretch[turn] -= np.where(has, taken, 0.0) / work
    p_change[turn] = np.where(has, turns.p_change[own], 0.0)
    return stretch, p_change
