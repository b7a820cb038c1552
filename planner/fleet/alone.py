"""Fleets of one offer: what a mix is compared with, and the answer where mixing saves next to nothing.

One pool is one quota, one image and one place to look when something fails. Each offer is asked for the fewest workers
that do all of the work in time, each an equal part of it. More workers cost more (their fixed hours), so an offer that
must have more to be sure enough of the deadline is asked by bisection of their number.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.candidates.plan_parts.frame import moment_text
from planner.fleet.carbon import footprint_of_workers
from planner.fleet.chance import progress_of
from planner.fleet.kept import kept_usd
from planner.fleet.mix import Mix
from planner.fleet.question import TOLERANCE, violations
from planner.fleet.waits import in_time
from planner.fleet.whole_runs import run_units
from planner.fleet.workers import build_with_storage, in_whole_runs
from planner.market.obtainable import instances_at_once
from planner.plan.brief import Choice, Summary, SummaryPart
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.candidates.engine import CandidateSearch
    from planner.fleet.kept import Kept
    from planner.fleet.question import FleetInput
    from planner.fleet.search import FleetResult
    from planner.fleet.workers import Workers


_WHOLE = 1.0 - 1e-6  # shares below this are limits
MOST_ASKED = 200  # offers whose chance is worked out, those of least cost
NEAR = 0.02  # of the cost: as near to the bound as this no smaller reserve is tried, and one offer is as good as a mix


@record(frozen=True, eq=False)
class Alone:
    """A fleet of each offer alone, arrays of shape `(n_offers,)`.

    Attributes:
        workers: what each is; kept: what its data costs; count: workers; work: of all together, tokens or samples;
        most: workers that can be had; run_units: of a run that nobody divides, 0 where work divides freely.
    """

    workers: Workers
    kept: Kept
    count: Floats
    work: float
    most: Floats
    run_units: float

    @property
    def hours(self) -> Floats:
        """Of work, each worker in the mean."""
        return np.asarray(self.work / (self.workers.units_per_hour * self.count))

    def take(self, numbers: Ints) -> Alone:
        """Those of the offers `numbers`."""
        return Alone(
            self.workers.take(numbers), self.kept.take(numbers), self.count[numbers], self.work, self.most[numbers],
            self.run_units,
        )  # fmt: skip

    def of_work(self, work: float) -> Alone:
        """The same offers, with the fewest workers that do `work` in time, where so many can be had.

        What ends comes once more with all its workers: the more share the work, the less they pay after the end.
        """
        count = np.ceil(work / (self.workers.units_per_hour * self.workers.hours_limit) - 1e-9)
        most = self.most
        if self.run_units:  # more workers than runs would have nothing to do
            most = np.minimum(most, round(work / self.run_units))
        had = np.flatnonzero(count <= most)
        ending = had[np.isfinite(self.workers.left_hours[had])]
        some = replace(self, work=work, most=most).take(np.append(had, ending))
        return replace(some, count=np.append(count[had], np.floor(most[ending] + 1e-9)))

    def cost_usd(self, search: CandidateSearch) -> Floats:
        """Of all workers, as billed."""
        workers, kept, hours = self.workers, self.kept, self.hours
        mix, stay = self.mix(np.inf), workers.lead_hours + hours
        copy, last = workers.copy_usd_per_hour, mix.ends_hours  # once, by all workers, until the last ends
        each = (mix.price(search.context.market).cost_usd - workers.place_usd - copy * stay) * self.count
        kept_own = kept_usd(kept, self.count, stay, last, repeats=search.context.market.stores.repeats)
        return np.asarray(each + workers.place_usd + copy * last + kept_own)

    def mix(self, limit_hours: float, proof: FleetResult | None = None) -> Mix:
        """All rows, as if they were lines of one mix; `proof`: what is proven of all fleets."""
        numbers, count = np.zeros(len(self.count), dtype=np.int64), np.rint(self.count).astype(np.int64)
        return Mix(
            numbers, self.workers, count, self.hours, limit_hours, self.work, proof, run_units=self.run_units
        )


def fleets_of_one_offer(search: CandidateSearch, limit_hours: float, work: float) -> Alone:
    """The fewest workers of each offer that do `work` in time, where so many can be had."""
    return offers_alone(search, limit_hours).of_work(work)


def offers_alone(search: CandidateSearch, limit_hours: float) -> Alone:
    """Each offer whose workers have time for any work, without workers yet."""
    workers, kept = build_with_storage(search.candidates, limit_hours)
    units = run_units(search.context.asked)
    workers = in_whole_runs(in_time(search.candidates, workers), units)
    some = np.flatnonzero(workers.hours_limit > 0)
    workers, kept = workers.take(some), kept.take(some)
    limits = search.context.asked.workload.constraints
    held = instances_at_once(search.context.market.offer_set, limits.obtainable)[workers.rows]
    most = np.fmin(limits.max_nodes, held) / workers.nodes
    return Alone(workers, kept, np.zeros(len(most)), 0.0, most, units)


def cheapest_on_demand(search: CandidateSearch, alone: Alone) -> tuple[Alone, Decimal] | None:
    """The cheapest fleet of one on-demand offer, limits on shares ignored, and its cost; None where there is none."""
    market = search.context.market
    own = market.offer_set.offers.equals("purchase_option", "on_demand")[alone.workers.rows]
    alone = alone.take(np.flatnonzero(own))
    if not len(alone.count):
        return None
    cost = alone.cost_usd(search)
    best = int(np.lexsort((market.id_rank[alone.workers.rows], cost))[0])
    return alone.take(np.asarray([best])), Decimal(repr(round(float(cost[best]), 6)))


def cheapest_sure(
    search: CandidateSearch, alone: Alone, ask: Callable[[Workers], FleetInput], wanted: float
) -> Alone | None:
    """The cheapest fleet of one offer that meets every limit and meets the deadline with the confidence wanted.

    Args:
        search: the candidates.
        alone: fleets of each offer alone.
        ask: makes the question about workers, whose limits must be kept.
        wanted: the least probability.

    Returns:
        One row; None where there is none among the `MOST_ASKED` of least cost and the cheapest on-demand.
    """
    cost = alone.cost_usd(search)
    order = np.lexsort((search.context.market.id_rank[alone.workers.rows], cost))
    firm = search.context.market.offer_set.offers.equals("purchase_option", "on_demand")[alone.workers.rows]
    dearer = order[MOST_ASKED:]
    order = np.append(order[:MOST_ASKED], dearer[firm[dearer]][:1])  # the baseline of savings is asked too
    best: Alone | None = None
    least = np.inf
    if len(order):
        some = alone.take(order)
        question = ask(some.workers)
        order = order[~(_beyond_shares(question) | _beyond_budget(question, some))]
    for at in order.tolist():
        if not cost[at] < least:
            break
        sure = grown_sure(search, alone.take(np.asarray([at])), wanted)
        if sure is None or broken_by(ask(sure.workers), sure):
            continue
        usd = float(sure.cost_usd(search)[0])
        best, least = (sure, usd) if usd < least else (best, least)
    return best


def _beyond_shares(question: FleetInput) -> Bools:
    """Offers of which no fleet is allowed alone, however many workers it has: all of the work is more than a share."""
    shares = (question.max_share_per_region, question.max_share_per_provider, question.max_share_per_offer)
    nowhere = any(share is not None and share < _WHOLE for share in shares)
    spot = question.max_spot_share is not None and question.max_spot_share < _WHOLE
    return np.asarray(nowhere | (spot & question.is_spot), dtype=np.bool_)


def _beyond_budget(question: FleetInput, alone: Alone) -> Bools:
    """Offers of which the fewest workers are beyond the budget: more of them do the same work and cost no less."""
    if question.budget_usd is None:
        return np.zeros(len(alone.count), dtype=np.bool_)
    busy = alone.count * alone.hours / alone.workers.hours_limit
    workers = question.worker_usd * alone.count + question.busy_usd * busy
    most = question.budget_usd * (1.0 + 4.0 * TOLERANCE)  # nothing is left out by rounding
    return np.asarray(workers + question.region_cost_usd[question.region] > most, dtype=np.bool_)


def grown_sure(search: CandidateSearch, one: Alone, wanted: float) -> Alone | None:
    """The same offer with the fewest workers that are sure enough; None where none are."""
    low, high = float(one.count[0]), float(np.floor(one.most[0] + 1e-9))
    deadline = search.context.dates.deadline_hours
    if deadline is None:
        return one
    known = progress_of(search, one.mix(deadline))
    if known.reaches(wanted, deadline, one.work):
        return one

    def is_sure(count: float) -> bool:
        more = replace(one, count=np.asarray([count]))
        return progress_of(search, more.mix(deadline), known).reaches(wanted, deadline, one.work)

    if not np.isfinite(high) or not is_sure(high):
        return None
    while high - low > 1:
        middle = float(np.floor((low + high) / 2.0))
        low, high = (low, middle) if is_sure(middle) else (middle, high)
    return replace(one, count=np.asarray([high]))


def broken_by(question: FleetInput, one: Alone) -> list[str]:
    """The limits that a fleet of one offer breaks, in the order of reports."""
    busy = one.count * one.hours / one.workers.hours_limit
    return list(dict.fromkeys(excess.limit_name for excess in violations(question, one.count, busy)))


def chance_alone(search: CandidateSearch, one: Alone) -> float:
    """Probability that the workers of one offer are done by the deadline; 1 without one."""
    deadline = search.context.dates.deadline_hours
    if deadline is None:
        return 1.0
    return progress_of(search, one.mix(deadline)).chance(deadline, one.work)


def summary_of(
    search: CandidateSearch, one: Alone, cost: Decimal, total: Decimal, period_hours: float
) -> Summary:
    """A fleet of one offer in brief, beside a plan of `total` that takes `period_hours`."""
    offer_set, workers = search.context.market.offer_set, one.workers
    offers, types = offer_set.offers, offer_set.types
    row, hours, count = int(workers.rows[0]), float(one.hours[0]), float(one.count[0])
    ends = one.mix(np.inf).period
    kind = int(offer_set.type_of_offer[row])
    nodes = int(count * workers.nodes[0])
    names = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
    named: dict[str, Any] = {name: str(offers[name][row]) for name in names}
    return Summary(
        label="", **named, accelerator=str(types["accelerator"][kind]),
        accelerators=nodes * float(types["accelerator_count"][kind]), nodes=nodes, hours=ends, cost_usd=cost,
        delta_cost_usd=cost - total, delta_hours=ends - period_hours, price_as_of=str(offers["as_of"][row]),
        parts=(SummaryPart(nodes, *(named[name] for name in ("purchase_option", "option_variant", "region", "zone"))),),
        **footprint_of_workers(search.candidates, workers, hours, count)._asdict(),
    )  # fmt: skip


def choice_of(search: CandidateSearch, one: Alone, summary: Summary, *kinds: str) -> Choice:
    """A fleet of one offer as a choice, with its end and its chance of the deadline."""
    dates = search.context.dates
    ends = moment_text(dates.start + timedelta(hours=summary.hours))
    return Choice(kinds, summary, ends, None if dates.deadline_hours is None else chance_alone(search, one))
