"""Fleets in two parts: some workers fall back, the others are on on-demand.

Workers of one spot offer that fall back do some of the runs, no more than any limit on shares allows; on-demand workers
of one offer do the rest. Divisions of the runs are compared, all of up to `MOST_DIVISIONS`: the last runs leave the
workers of the first part the least slack, so fewer of them may cost less.

The parts share nothing: no worker takes runs of the other part, each part keeps its own copy of
the data, and on-demand of the first counts in full against every limit. So costs and hours add up, and

    P(both are in time) >= P(the first is) + P(the second is) - 1

whatever ties the luck of both (the error of the speed, on-demand of one type). That is the probability stated and held
against the confidence asked; the second part has as many workers as that takes.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.plan_parts.frame import cash_of
from planner.fleet.alone import chance_alone, grown_sure, offers_alone
from planner.fleet.bill import lines_of
from planner.fleet.fallback import least_share, least_usd, some_may_fall_back, ways_of
from planner.fleet.fallback_mix import lines_of_fallback, mix_of_fallback, workers_of_fallback
from planner.fleet.fallback_search import MOST_JUDGED, chances_of_fleet, fleets_of, most_workers
from planner.fleet.question import violations
from planner.fleet.rounds import confidence_of
from planner.fleet.whole_runs import run_units, whole_share
from planner.fleet.workers import Workers
from planner.market.pricing import total_usd
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.engine import CandidateSearch
    from planner.fleet.alone import Alone
    from planner.fleet.fallback import Fleets, Ways
    from planner.fleet.fallback_mix import FallbackMix
    from planner.fleet.fallback_search import Chances
    from planner.fleet.mix import Mix
    from planner.fleet.rounds import Round
    from planner.plan.model import PlanLine


MOST_DIVISIONS = 32  # of the runs, compared
_PAIRS = 512  # of a spot offer and a number of runs, looked at together
_CENT = 0.01
_BY_BILL = ("hours", "budget_usd")  # limits that are not held by the model of a mix


@record(frozen=True, eq=False)
class Parts:
    """A fleet in two parts.

    Attributes:
        asked: the question about the runs of the workers that fall back.
        falling: these, one row; chances: of them.
        firm: on-demand workers of one offer that do the other runs, one row; firm_meet: P(they are in time).
    """

    asked: Round
    falling: Fleets
    chances: Chances
    firm: Alone
    firm_meet: float

    @property
    def meet(self) -> float:
        """Lower bound of the probability that both are in time."""
        return max(self.chances.meet + self.firm_meet - 1.0, 0.0)

    @property
    def mixes(self) -> tuple[FallbackMix, Mix]:
        """Both as mixes."""
        first, second = mix_of_fallback(self.asked, self.falling), self.firm.mix(self.asked.limit)
        whole = first.work + second.work
        return replace(first, part=first.work / whole), replace(second, part=second.work / whole)

    @property
    def last(self) -> Mix:
        """The part that ends last."""
        first, second = self.mixes
        return first if first.period >= second.period else second

    def lines(self) -> list[PlanLine]:
        """Spot, what it falls back on, and on-demand; the throughput of each is over the hours of the whole plan."""
        search, (first, second) = self.asked.found, self.mixes
        period = self.last.period
        pairs = ((first, lines_of_fallback(search, first)), (second, lines_of(search.candidates, second)))
        return [
            replace(line, throughput_per_s=line.throughput_per_s * (mix.period / period))
            for mix, lines in pairs
            for line in lines
        ]


@record(frozen=True)
class CheapestParts:
    """The cheapest, None without any; what those cost at least whose chance was not worked out, USD."""

    parts: Parts | None
    unjudged_usd: float = np.inf


def divisions(search: CandidateSearch) -> Ints:
    """How many runs workers with a fall-back do beside others on-demand, in each division compared, ascending.

    All that the limits allow, or `MOST_DIVISIONS` of them, evenly spread from the fewest to the most; none where no
    fleet is in two parts.
    """
    fleet = search.context.asked.workload.fleet
    if fleet is None or fleet.runs == 1 or not some_may_fall_back(search):
        return np.zeros(0, dtype=np.int64)
    share = whole_share(least_share(search), fleet.runs)
    beside = whole_share(min(fleet.max_share_per_region or 1.0, fleet.max_share_per_offer or 1.0), fleet.runs)
    assert share is not None and beside is not None
    most, most_beside = round(share * fleet.runs), round(beside * fleet.runs)
    first, last = max(fleet.runs - most_beside, 1), min(most, fleet.runs - 1)
    count = min(max(last - first + 1, 0), MOST_DIVISIONS)
    return np.rint(np.linspace(first, last, count)).astype(np.int64)


def cheapest_in_parts(asked: Round, below_usd: float, *, within_budget: bool = True) -> CheapestParts:
    """The cheapest fleet in two parts that meets every limit and the deadline with the confidence asked.

    Args:
        asked: the question, its workers without a reserve.
        below_usd: a cost that it must be below; infinite where no other fleet is known.
        within_budget: the budget is one of the limits.
    """
    search = asked.found
    runs = divisions(search)
    if not len(runs):
        return CheapestParts(None)
    ways, firm = ways_of(search, asked.limit), offers_alone(search, asked.limit)
    own = search.context.market.offer_set.offers.equals("purchase_option", "on_demand")[firm.workers.rows]
    firm = firm.take(np.flatnonzero(own))
    if not len(firm.count) or not len(ways.on_demand):
        return CheapestParts(None)
    budget = search.context.asked.workload.constraints.budget_usd if within_budget else None
    return _Search(asked, ways, firm, below_usd, budget).run(runs)


class _Search:
    """Pairs of a fleet that falls back and one on on-demand, the cheapest first, until no other can be cheaper."""

    def __init__(
        self, asked: Round, ways: Ways, firm: Alone, below_usd: float, budget: Decimal | None
    ) -> None:
        """Take the question, what may fall back, on-demand offers, the cost to be below, and the budget, USD."""
        # what falls due of spot and on-demand is what they cost
        least = below_usd if budget is None else min(below_usd, float(budget) + _CENT)
        self._asked, self._ways, self._firm, self._least, self._budget = asked, ways, firm, least, budget
        self._units = run_units(asked.found.context.asked)
        self._runs = round(asked.work / self._units)
        self._beside: dict[
            int, tuple[Alone, Floats]
        ] = {}  # on-demand fleets by the runs of the others, and their cost
        self._best: Parts | None = None
        self._left, self._unjudged = MOST_JUDGED, np.inf

    def run(self, runs: Ints) -> CheapestParts:
        """Look at all spot offers in each number of `runs`, those that may be cheapest first."""
        search, workers = self._asked.found, self._ways.workers
        beside = {one: least_usd(search, self._firm.workers, self._runs - one).min() for one in runs.tolist()}
        floor = np.concatenate([least_usd(search, workers, one) + usd for one, usd in beside.items()])
        way, each = (
            np.tile(np.arange(len(workers.at)), len(runs)),
            np.repeat(runs, len(workers.at)),
        )
        most = most_workers(self._asked, self._ways)[way]
        order = np.argsort(floor, kind="stable")
        order = order[(most >= 1)[order]]
        for begin in range(0, len(order), _PAIRS):
            block = order[begin : begin + _PAIRS]
            block = block[floor[block] < self._least]
            if not len(block):
                break
            if not self._left:
                self._unjudged = min(self._unjudged, float(floor[block[0]]))
                break
            ways, all_runs = self._ways.take(way[block]), each[block].astype(np.float64)
            self._among(fleets_of(self._asked, ways, most[block], all_runs, whole=True), beside)
        return CheapestParts(self._best, self._unjudged)

    def _among(self, fleets: Fleets, least_beside: Mapping[int, float]) -> None:
        """Look at fleets that fall back, each beside every on-demand fleet with which it may be cheaper.

        Args:
            fleets: of some of the runs.
            least_beside: what on-demand fleets beside them cost at least, USD, by the runs of `fleets`.
        """
        search, asked = self._asked.found, self._asked
        confidence = confidence_of(search.context.asked, search.context.dates)
        runs = fleets.runs
        kept = fleets.ways.kept.of_part(asked.work, runs / self._runs)
        fleets = replace(fleets, ways=replace(fleets.ways, kept=kept))
        usd = fleets.cost_usd(search)
        floor = usd + np.asarray([least_beside[one] for one in runs.tolist()])
        for at in np.lexsort((search.context.market.id_rank[fleets.ways.workers.rows], floor)).tolist():
            if not floor[at] < self._least:
                break
            firm, firm_usd = self._firm_beside(int(runs[at]))
            if not len(firm_usd) or not usd[at] + firm_usd[0] < self._least:
                continue
            one = fleets.take(np.asarray([at]))
            beside = np.flatnonzero(self._may_join(firm, one))
            if not len(beside) or not usd[at] + firm_usd[beside[0]] < self._least:
                continue
            if not self._left:
                self._unjudged = min(self._unjudged, float(floor[at]))
                break
            self._left -= 1
            first = replace(asked, work=int(runs[at]) * self._units)
            chances = chances_of_fleet(first, one)
            if chances.meet >= confidence:
                self._pairs(first, one, chances, float(usd[at]), beside)

    def _firm_beside(self, runs: int) -> tuple[Alone, Floats]:
        """On-demand fleets of one offer that do what `runs` leave, the cheapest first, and what they cost, USD."""
        known = self._beside.get(runs)
        if known is None:
            search, work = self._asked.found, self._asked.work - runs * self._units
            firm = self._firm.of_work(work)
            firm = replace(firm, kept=firm.kept.of_part(self._asked.work, work / self._asked.work))
            usd = firm.cost_usd(search)
            order = np.lexsort((search.context.market.id_rank[firm.workers.rows], usd))
            known = self._beside[runs] = firm.take(order), usd[order]
        return known

    def _may_join(self, firm: Alone, falling: Fleets) -> Bools:
        """On-demand fleets that may be beside one that falls back, as both together do all of the work."""
        context = self._asked.found.context
        market, workload = context.market, context.asked.workload
        rows, nodes, fleet = firm.workers.rows, firm.workers.nodes, workload.fleet
        later = int(falling.ways.on_demand[0])
        fits = (firm.count + falling.count[0]) * nodes <= workload.constraints.max_nodes
        apart = market.region_of_offer[rows] != market.region_of_offer[later]
        assert fleet is not None
        if fleet.max_regions == 1:
            fits &= ~apart
        for share, elsewhere in (
            (fleet.max_share_per_region, apart),
            (fleet.max_share_per_offer, rows != later),
        ):
            if share is not None and share < 1.0:
                fits &= elsewhere
        return np.asarray(fits, dtype=np.bool_)

    def _pairs(
        self, first: Round, falling: Fleets, chances: Chances, falling_usd: float, beside: Ints
    ) -> None:
        """Look at one fleet that falls back with the on-demand fleets `beside` it; `first`: its question."""
        search, (every, every_usd) = first.found, self._firm_beside(round(first.work / self._units))
        wanted = confidence_of(search.context.asked, search.context.dates) + 1.0 - chances.meet
        for at in beside.tolist():
            if not falling_usd + every_usd[at] < self._least:
                break
            if not self._left:
                self._unjudged = min(self._unjudged, falling_usd + float(every_usd[at]))
                break
            self._left -= 1
            firm = grown_sure(search, every.take(np.asarray([at])), wanted)
            if firm is None:
                continue
            usd = falling_usd + float(firm.cost_usd(search)[0])
            if not usd < self._least:
                continue
            parts = Parts(first, falling, chances, firm, chance_alone(search, firm))
            if _is_allowed(self._asked, parts) and self._is_within_budget(parts):
                self._best, self._least = parts, usd

    def _is_within_budget(self, parts: Parts) -> bool:
        return self._budget is None or bill_of_parts(parts)[1] <= self._budget


def _is_allowed(asked: Round, parts: Parts) -> bool:
    """Whether both together keep every limit but the budget, with the first on spot and with it on on-demand."""
    falling, firm = parts.falling, parts.firm
    usual = workers_of_fallback(parts.asked, falling)
    count = np.concatenate([falling.count.astype(np.float64), firm.count])
    busy = np.concatenate([falling.count, firm.count * firm.hours / firm.workers.hours_limit])
    for rows in (usual.rows, falling.ways.on_demand):
        question = asked.ask(Workers.joined([replace(usual, rows=rows), firm.workers]))
        if any(one.limit_name not in _BY_BILL for one in violations(question, count, busy)):
            return False
    return True


def bill_of_parts(parts: Parts) -> tuple[Decimal, Decimal]:
    """What a fleet in two parts costs, and what falls due of it, in USD."""
    context, lines = parts.asked.found.context, parts.lines()
    finish = context.dates.start + timedelta(hours=parts.last.period)
    due = sum(
        (month.amount_usd for month in cash_of(context.dates, context.market, lines, finish)), Decimal(0)
    )
    return total_usd([cost for line in lines for cost in line.costs]), due
