"""Workers of a fleet that fall back on on-demand, recomputed: what they do, cost, and when they are done.

A worker that does k runs is a single job of k times the work (`planner.judge.spot_policies`); what workers share is
that of other fleets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import exp, hypot, sqrt

from planner.judge import fleet_stored, frame
from planner.judge.bench import Bench, Candidate
from planner.judge.chance import steady_chance
from planner.judge.document import Node
from planner.judge.fleet_chance import FleetCourse, course_of, luck_levels, share_up
from planner.judge.fleet_spread import hours_of
from planner.judge.fleet_workers import Worker, with_hours, worker_of
from planner.judge.goods import Offer
from planner.judge.money import Charge, billed, rounded, total
from planner.judge.prices import Z80
from planner.judge.purchases import Buy
from planner.judge.spot_policies import outcomes, quantile
from planner.records import record

_LIKELY = 0.9
_LUCK = 41


@record(frozen=True)
class FallbackWorkers(Worker):
    """Workers with the hours of their course in the mean; the last of them ends after `last` hours from the start."""

    last: float = 0.0

    @property
    def longest(self) -> float:
        """Hours of work of the last of them."""
        return self.last - self.lead


@record(frozen=True)
class FallbackFleet:
    """What is recomputed: workers with equal shares in two groups, of which the second has one run more.

    `groups`: workers of each and a worker's share as a job; `alone`: the same workers on spot alone, at mean rates;
    `work`: of all, tokens or samples; `part`: of the work of the whole fleet, where others do the rest of it.
    """

    spot: Offer
    later: Offer
    each: int
    count: int
    groups: tuple[tuple[int, Candidate], ...]
    alone: Worker
    work: float
    part: float = 1.0

    def mean(self, figure: Callable[[Candidate], float]) -> float:
        """A figure of a worker, in the mean of all."""
        return sum(number * figure(candidate) for number, candidate in self.groups) / self.count

    @property
    def most(self) -> Candidate:
        """The larger share."""
        return self.groups[-1][1]

    @property
    def spot_hours(self) -> float:
        """Paid, of a worker."""
        return self.mean(lambda candidate: candidate.parts[0].paid_hours)

    @property
    def later_hours(self) -> float:
        """Paid on on-demand, of a worker."""
        return self.mean(lambda candidate: candidate.parts[1].paid_hours)

    @property
    def stay(self) -> float:
        """Hours from the start to the end of a worker."""
        return self.mean(lambda candidate: candidate.hours)


def fleet_of(
    bench: Bench, spot: Offer, later: Offer, each: int, count: int, some: int | None = None
) -> FallbackFleet:
    """Recompute `count` workers of `each` instances that share all runs, or `some`, evenly; kept on the bench."""
    runs = 1 if bench.workload.fleet is None else bench.workload.fleet.runs
    key = (spot.offer_id, later.offer_id, each, count, some or runs)
    if key not in bench.fleets:
        bench.fleets[key] = _recomputed(bench, (spot, later), each, count, some or runs)
    found: FallbackFleet = bench.fleets[key]
    return found


def _recomputed(bench: Bench, offers: tuple[Offer, Offer], each: int, count: int, runs: int) -> FallbackFleet:
    spot, later = offers
    every = 1 if bench.workload.fleet is None else bench.workload.fleet.runs
    whole = bench.work.steps * bench.work.units_per_step * runs
    few, more = divmod(runs, count) if runs > 1 else (runs / count, 0)
    groups = [(count - more, few)] + ([(more, few + 1)] if more else [])
    jobs = tuple((number, _job(bench, spot, later, each, share)) for number, share in groups)
    alone = worker_of(bench, Buy(spot, each), count)
    alone = with_hours(alone, whole / (alone.units_per_hour * count))
    return FallbackFleet(spot, later, each, count, jobs, alone, whole, runs / every)


def _job(bench: Bench, spot: Offer, later: Offer, each: int, runs: float) -> Candidate:
    """A worker's share of the work as a single job, which comes to its pool once; kept on the bench."""
    key = (spot.offer_id, later.offer_id, each, runs)
    if key not in bench.shares:
        bench.shares[key] = _alone(bench, [Buy(spot, each), Buy(later, each)], runs)
    return bench.shares[key]


def _alone(bench: Bench, buys: list[Buy], runs: float) -> Candidate:
    workload = bench.workload.model_copy(update={"kind": "training"})
    work = replace(bench.work, steps=bench.work.steps * runs)
    job = Bench(workload, work, bench.goods, bench.start, bench.deadline, planned=bench.dates[1])
    job.share(bench)
    return job.candidate(buys, in_turn=True)


def _worker(fallback: FallbackFleet) -> FallbackWorkers:
    """All workers in the mean, on spot: a fleet of one line for what is worked out as there."""
    one, stay = fallback.alone, fallback.stay
    hours = stay - one.lead
    return FallbackWorkers(
        buy=Buy(fallback.spot.during(stay), fallback.each), count=fallback.count, run=one.run, hours=hours,
        units_per_hour=fallback.work / (fallback.count * hours), caution=1.0,
        paid_ratio=(fallback.spot_hours - one.run.steps.fixed) / hours, last=fallback.most.hours,
    )  # fmt: skip


def buyers_of(worker: FallbackWorkers, fallback: FallbackFleet) -> list[Worker]:
    """Who pays each line."""
    return [worker, replace(worker, buy=Buy(fallback.later.during(fallback.stay), fallback.each))]


def charges_of(
    bench: Bench, fallback: FallbackFleet
) -> tuple[FallbackWorkers, list[tuple[list[Charge], Fraction]]]:
    """The workers in the mean; charges and billed hours of both lines, all of what the place costs on the first."""
    worker, out = _worker(fallback), []
    for buyer, hours in zip(
        buyers_of(worker, fallback), (fallback.spot_hours, fallback.later_hours), strict=True
    ):
        paid = rounded(hours)
        charges = [
            _times(one, fallback.count) for one in bench.prices.worker(buyer.buy.offer, fallback.each, paid)
        ]
        out.append((charges, paid))
    saved, shared = (bench.prices.place(worker.buy.offer, hours) for hours in (fallback.stay, worker.last))
    first = out[0][0]
    first += [charge for charge in shared if charge.id == "dataset_storage"]
    first += [_times(charge, fallback.count) for charge in saved if charge.id == "checkpoint_storage"]
    first += [charge for charge in shared if charge.kind == "data_transfer"]
    first += fleet_stored.charges(
        bench, [worker], fallback.work / fallback.part, [fallback.alone], fallback.part
    )[0]
    return worker, out


def _times(charge: Charge, count: int) -> Charge:
    """The same charge of `count` workers."""
    return replace(charge, quantity=rounded(charge.quantity * count), slack=charge.slack * count)


def chances_of(bench: Bench, fallback: FallbackFleet) -> tuple[float, float, FleetCourse]:
    """To be in time; on spot alone, whose workers take each other's runs, and how these get on."""
    situation = fallback.most.situation
    assert situation is not None
    course = course_of(bench, [fallback.alone], [([], Fraction(0))])
    alone = course.done(bench.deadline_hours, fallback.work)
    left = situation.room - situation.course.restart - situation.acquire
    in_time = steady_chance(situation.steady, max(left, 0.0), situation.sigma)
    return max(alone, situation.with_fallback(in_time, alone)), alone, course


def hours_of_fallback(
    bench: Bench, fallback: FallbackFleet, course: FleetCourse, meet: float, launch: Node
) -> tuple[float, float]:
    """P10 and P90 of the end: of spot alone, unless on-demand ends the work before."""
    period, late, situation = fallback.most.hours, bench.deadline_hours, fallback.most.situation
    assert situation is not None
    if meet < _LIKELY:
        slow = situation.steady * exp(Z80 * situation.sigma)
        late = max(late, fallback.alone.lead + situation.course.restart + situation.acquire + slow)
    early, high = (hours_of(course, level, fallback.work, launch) for level in (0.1, 0.9))
    return min(early, period), max(min(high, late), period)


def spread_of_fallback(
    bench: Bench,
    fallback: FallbackFleet,
    worker: FallbackWorkers,
    bought: Sequence[tuple[list[Charge], Fraction]],
    whole: Fraction,
) -> tuple[Fraction, Fraction]:
    """P10 and P90 of the cost, `whole` in the mean, USD."""
    if id(fallback) not in bench.spreads:
        bench.spreads[id(fallback)] = _outcomes(bench, fallback, worker)
    usd: list[float] = bench.spreads[id(fallback)]
    kinds = ("compute", "upfront", "system_disk")
    paid = sum(float(total([one for one in charges if one.kind in kinds])) for charges, _ in bought)
    rent, quote = float(bought[0][0][0].usd), worker.buy.offer.quote
    low = hypot(max(paid - quantile(usd, 0.1), 0.0), rent * (1.0 - quote.p10 / quote.expected))
    high = hypot(max(quantile(usd, 0.9) - paid, 0.0), rent * (quote.p90 / quote.expected - 1.0))
    return min(max(whole - Fraction(low), Fraction(0)), whole), max(whole + Fraction(high), whole)


def _outcomes(bench: Bench, fallback: FallbackFleet, worker: FallbackWorkers) -> list[float]:
    """Costs of equally likely outcomes, USD: those of each share, whose luck is partly the workers' own."""
    levels = luck_levels(bench, fallback.alone)
    _, shared, own = share_up(levels, bench.deadline_hours - fallback.alone.lead)
    common = shared / max(shared + own, 1e-300)
    shrunk = sqrt(common + (1.0 - common) / fallback.count)
    buyers, fixed = [buyer.buy for buyer in buyers_of(worker, fallback)], fallback.alone.run.steps.fixed
    rents = [(buy.offer, bench.prices.rent(buy.offer, buy.nodes)) for buy in buyers]
    usd: list[float] = []
    for number, candidate in fallback.groups:
        assert candidate.situation is not None
        found = [_machines(rents, (fixed + one.spot, one.on_demand)) for one in outcomes(candidate.situation)]
        means = [sum(found[at : at + _LUCK]) / _LUCK for at in range(0, len(found), _LUCK)]
        own_usd = [
            number * (means[at // _LUCK] + (value - means[at // _LUCK]) * shrunk)
            for at, value in enumerate(found)
        ]
        usd = [one + other for one, other in zip(usd, own_usd, strict=True)] if usd else own_usd
    return usd


def _machines(rents: Sequence[tuple[Offer, Callable[[Fraction], Fraction]]], hours: Sequence[float]) -> float:
    """What a worker pays for its machines, as billed."""
    usd = Fraction(0)
    for (offer, rent), used in zip(rents, hours, strict=True):
        if used > 0:
            usd += rent(billed(offer.rule, used, offer.term_hours) or Fraction(0))
    return float(usd)


def ratios_of(fallback: FallbackFleet) -> tuple[float, float]:
    """How near figures of spot and of on-demand must be."""
    spot, later = (frame.part_closeness(fallback.most, part) for part in fallback.most.parts)
    return spot, later
