"""The plan of a fleet whose workers fall back on on-demand, leaf by leaf.

A worker that does k runs is a single job of k times the work (`planner.judge.turns`); what workers share is that of
other fleets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import exp, hypot, sqrt
from typing import Any

from planner.judge import carbon, choices, fleet, fleet_lines, fleet_stored, frame, single
from planner.judge.bench import Bench, Buy, Candidate, ImpossibleError
from planner.judge.chance import steady_chance
from planner.judge.document import Node
from planner.judge.findings import STATED, Exactly, Findings, IfStated, Near
from planner.judge.fleet_chance import FleetCourse, course_of, luck_levels, share_up
from planner.judge.fleet_spread import hours_of
from planner.judge.fleet_workers import Worker, with_hours, worker_of
from planner.judge.goods import Offer
from planner.judge.launch_figures import SPREAD_RATIO, UNKNOWN, checkpoints, first_wait, place
from planner.judge.limits import has_fallback
from planner.judge.money import Charge, billed, rounded, total
from planner.judge.prices import Z80
from planner.judge.turns import CHANCE_SLACK, outcomes, quantile
from planner.records import record

_RATIO = 1e-6
_CHANCE_RATIO = 1e-4
_LIKELY = 0.9
_LUCK = 41
BASIS = (
    "each worker changes to on-demand at the last moment at which its share of the work meets the deadline"
)
METHOD = (
    "MILP over whole workers and their hours; numbers of workers of each offer with its fall-back compared"
)
NOTE = (
    "hours are summed over workers; the finish is that of the last of them; each worker needs on-demand with the "
    "probability stated"
)


@record(frozen=True)
class Fallen(Worker):
    """Workers with the hours of their course in the mean; the last of them ends after `last` hours from the start."""

    last: float = 0.0

    @property
    def longest(self) -> float:
        """Hours of work of the last of them."""
        return self.last - self.lead


@record(frozen=True)
class Fleet:
    """What is recomputed: workers with equal shares in two groups, of which the second has one run more.

    `groups`: workers of each and a worker's share as a job; `alone`: the same workers on spot alone, at mean rates;
    `work`: of all, tokens or samples.
    """

    spot: Offer
    later: Offer
    each: int
    count: int
    groups: tuple[tuple[int, Candidate], ...]
    alone: Worker
    work: float

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


def falls_back(plan: Node) -> bool:
    """Whether the workers of a fleet fall back on on-demand."""
    launch = plan["launch"]
    return not launch.is_null and launch["strategy"].text() == "spot_with_fallback"


def check(findings: Findings, bench: Bench, sha256: str) -> None:
    """Compare such a plan with what is recomputed."""
    plan = findings.answer
    created, period = plan["created_at"].moment(), plan["hours"].number()
    findings.members(plan, frame.header(bench, sha256, created) | {"assumptions": frame.assumptions(bench)})
    single.money(findings, plan)
    now = _fleet(findings, bench, plan)
    worker, bought = charges_of(bench, now)
    meet, alone, course = chances_of(bench, now)
    usd = _spread(bench, now, worker, bought, plan["total_usd"].money())
    hours = _hours(bench, now, course, meet, plan)
    chance, near = Near(meet, _CHANCE_RATIO, 1e-5), frame.closeness(now.most)
    expected: dict[str, Any] = {
        **frame.header(bench, sha256, created), "status": "planned", "finish_expected": frame.finish(bench, period),
        "lines": _lines(bench, now, worker, bought, period),
        "total_usd": Near(sum((total(charges) for charges, _ in bought), Fraction(0)), near),
        "hours": Near(now.most.hours, near), "timeline": fleet_lines.timeline_of(worker, period),
        "performance": fleet_lines.performance_of(bench, [worker], period),
        "risk": {
            "p_meet_deadline": chance, "expected_interruptions": _sum(now, lambda one: one.interruptions),
            "expected_lost_hours": _sum(now, lambda one: one.lost),
            "expected_hours": Exactly(plan["hours"].money()), "worst_hours": Near(hours[1], SPREAD_RATIO),
            "expected_cost_usd": Exactly(plan["total_usd"].money()), "worst_cost_usd": usd[1], "basis": BASIS,
        },
        "cash": fleet_lines.cash_of(bench, _buyers(worker, now), bought, period, near),
        "launch": _launch(bench, plan, now, (meet, alone), (usd, hours)),
        "filters": STATED, "filter_pairs": STATED, "relaxations": [], "warnings": STATED, "n_feasible": STATED,
        "unknown_options": fleet_lines.unknown_of(bench, [worker]), "n_results": 1, "run_id": single.run_id(plan),
        "starts_in_hours": single.starts_in(plan), "profile_cost_usd": IfStated(None),
        "profile_narrows_usd": IfStated(None),
        "assumptions": frame.assumptions(bench), "confidence": "normal", "sensitivity": [], "on_known_prices": None,
        "alternatives": [], "folded": [],
        "savings": STATED, "proof": fleet_lines.proof_of(bench, plan) | {"method": METHOD}, "choices": STATED,
        "checkpoint_interval_hours": IfStated(None),
        "carbon": carbon.of_fallback(bench, worker, (now.later, now.later_hours), _ratios(now)),
        "storage": IfStated(fleet_stored.storage(bench, [worker], bought[:1], now.work, [now.alone])),
        "loading": IfStated(None),
    }  # fmt: skip
    findings.expect(plan, expected)
    firm = fleet.savings_of(findings, bench, plan, now.work)
    others = {"one_offer": fleet.one_offer(findings, bench, plan, now.work), "on_demand": firm}
    choices.check_fleet(findings, bench, plan, chance, others)
    single.filters(findings, plan)


def _fleet(findings: Findings, bench: Bench, plan: Node) -> Fleet:
    """Read the two lines and recompute each share of the work as a job."""
    lines, asked = list(plan["lines"]), bench.workload.fleet
    if len(lines) != 2:
        raise ImpossibleError("a fleet with a fall-back has two lines")
    spot, later = (bench.goods.offer(f"{line.path}.offer_id", line["offer_id"].text()) for line in lines)
    each, runs = (1, 1) if asked is None else (asked.nodes_per_run, asked.runs)
    nodes = lines[0]["nodes"].count()
    if nodes < 1 or nodes % each or nodes > 10**6 or lines[1]["nodes"].count() != nodes:
        lines[0]["nodes"].fail(f"whole workers of {each} instances, as many on on-demand")
    count = nodes // each
    _allowed(findings, bench, spot, later, nodes)
    if 1 < runs < count:
        lines[0]["nodes"].fail("no more workers than runs")
    return fleet_of(bench, spot, later, each, count)


def fleet_of(bench: Bench, spot: Offer, later: Offer, each: int, count: int) -> Fleet:
    """Recompute `count` workers of `each` instances that share the runs evenly; kept on the bench."""
    key = (spot.offer_id, later.offer_id, each, count)
    if key not in bench.fleets:
        bench.fleets[key] = _recomputed(bench, spot, later, each, count)
    found: Fleet = bench.fleets[key]
    return found


def _recomputed(bench: Bench, spot: Offer, later: Offer, each: int, count: int) -> Fleet:
    runs = 1 if bench.workload.fleet is None else bench.workload.fleet.runs
    whole = bench.work.steps * bench.work.units_per_step * runs
    few, more = divmod(runs, count) if runs > 1 else (runs / count, 0)
    groups = [(count - more, few)] + ([(more, few + 1)] if more else [])
    jobs = tuple((number, _job(bench, spot, later, each, share)) for number, share in groups)
    alone = worker_of(bench, Buy(spot, each), count)
    alone = with_hours(alone, whole / (alone.units_per_hour * count))
    return Fleet(spot, later, each, count, jobs, alone, whole)


def _allowed(findings: Findings, bench: Bench, spot: Offer, later: Offer, nodes: int) -> None:
    """The fall-back is one: allowed, by a deadline, of the same type and region, dearer and large enough."""
    bought = [offer.text("purchase_option") for offer in (spot, later)]
    findings.require(
        bought == ["spot", "on_demand"], "lines", "spot and what it falls back on, in this order"
    )
    findings.require(bench.deadline is not None, "deadline", "a fall-back without a deadline")
    findings.require(has_fallback(bench.workload), "launch.strategy", "the workload allows no fall-back")
    findings.require(spot.place == later.place, "lines", "the fall-back is in another region")
    fleet_limits = bench.workload.fleet
    parts = [] if fleet_limits is None else [
        fleet_limits.max_share_per_region, fleet_limits.max_share_per_offer, fleet_limits.max_spot_share
    ]  # fmt: skip
    findings.require(all(part in (None, 1) for part in parts), "lines", "one offer exceeds a share")
    findings.require(
        bench.workload.constraints.min_throughput is None,
        "lines",
        "no throughput is sustained while spot is gone",
    )
    for offer in (spot, later):
        findings.require(
            nodes <= offer.capacity, "lines", f"{offer.offer_id}: {offer.capacity:g} are available"
        )


def _job(bench: Bench, spot: Offer, later: Offer, each: int, runs: float) -> Candidate:
    """A worker's share of the work as a single job, which comes to its pool once; kept on the bench."""
    key = (spot.offer_id, later.offer_id, each, runs)
    if key not in bench.shares:
        bench.shares[key] = _alone(bench, [Buy(spot, each), Buy(later, each)], runs)
    return bench.shares[key]


def _alone(bench: Bench, buys: list[Buy], runs: float) -> Candidate:
    workload = bench.workload.model_copy(update={"kind": "training"})
    work = replace(bench.work, steps=bench.work.steps * runs)
    job = Bench(workload, work, bench.goods, bench.start, bench.deadline)
    job.share(bench)
    return job.candidate(buys, in_turn=True)


def _worker(now: Fleet) -> Fallen:
    """All workers in the mean, on spot: a fleet of one line for what is worked out as there."""
    one, stay = now.alone, now.stay
    hours = stay - one.lead
    return Fallen(
        buy=Buy(now.spot.during(stay), now.each), count=now.count, run=one.run, hours=hours,
        units_per_hour=now.work / (now.count * hours), caution=1.0,
        paid_ratio=(now.spot_hours - one.run.steps.fixed) / hours, last=now.most.hours,
    )  # fmt: skip


def _buyers(worker: Fallen, now: Fleet) -> list[Worker]:
    """Who pays each line."""
    return [worker, replace(worker, buy=Buy(now.later.during(now.stay), now.each))]


def charges_of(bench: Bench, now: Fleet) -> tuple[Fallen, list[tuple[list[Charge], Fraction]]]:
    """The workers in the mean; charges and billed hours of both lines, all of what the place costs on the first."""
    worker, out = _worker(now), []
    for buyer, hours in zip(_buyers(worker, now), (now.spot_hours, now.later_hours), strict=True):
        paid = rounded(hours)
        charges = [_times(one, now.count) for one in bench.prices.worker(buyer.buy.offer, now.each, paid)]
        out.append((charges, paid))
    saved, shared = (bench.prices.place(worker.buy.offer, hours) for hours in (now.stay, worker.last))
    first = out[0][0]
    first += [charge for charge in shared if charge.id == "dataset_storage"]
    first += [_times(charge, now.count) for charge in saved if charge.id == "checkpoint_storage"]
    first += [charge for charge in shared if charge.kind == "data_transfer"]
    first += fleet_stored.charges(bench, [worker], now.work, [now.alone])[0]
    return worker, out


def _times(charge: Charge, count: int) -> Charge:
    """The same charge of `count` workers."""
    return replace(charge, quantity=rounded(charge.quantity * count), slack=charge.slack * count)


def _lines(
    bench: Bench, now: Fleet, worker: Fallen, bought: Sequence[tuple[list[Charge], Fraction]], period: float
) -> list[dict[str, Any]]:
    share = sum(
        number * candidate.need * (0.0 if candidate.course is None else candidate.course.share)
        for number, candidate in now.groups
    ) / sum(number * candidate.need for number, candidate in now.groups)
    speed = now.work / period / 3600.0
    out = []
    shares, ratios = (1.0 - share, share), _ratios(now)
    for buyer, (charges, hours), part, ratio in zip(
        _buyers(worker, now), bought, shares, ratios, strict=True
    ):
        expected = fleet_lines.line_of(bench, buyer, charges, hours, period)
        near = {
            "throughput_per_s": Near(speed * part, ratio, CHANCE_SLACK * speed),
            "billed_hours": Near(hours, ratio, 2e-9), "costs": [charge.wanted(ratio) for charge in charges],
            "cost_usd": Near(total(charges), ratio, 1e-6),
        }  # fmt: skip
        out.append(expected | near)
    return out


def _ratios(now: Fleet) -> tuple[float, float]:
    """How near figures of spot and of on-demand must be."""
    spot, later = (frame.part_closeness(now.most, part) for part in now.most.parts)
    return spot, later


def chances_of(bench: Bench, now: Fleet) -> tuple[float, float, FleetCourse]:
    """To be in time; on spot alone, whose workers take each other's runs, and how these get on."""
    situation = now.most.situation
    assert situation is not None
    course = course_of(bench, [now.alone], [([], Fraction(0))])
    alone = course.done(bench.deadline_hours, now.work)
    left = situation.room - situation.course.restart - situation.acquire
    in_time = steady_chance(situation.steady, max(left, 0.0), situation.sigma)
    return max(alone, situation.with_fallback(in_time, alone)), alone, course


def _sum(now: Fleet, figure: Callable[[Candidate], float]) -> Near:
    return Near(now.count * now.mean(figure), _CHANCE_RATIO, 1e-6)


def _hours(bench: Bench, now: Fleet, course: FleetCourse, meet: float, plan: Node) -> tuple[float, float]:
    """P10 and P90 of the end: of spot alone, unless on-demand ends the work before."""
    period, late, situation = plan["hours"].number(), bench.deadline_hours, now.most.situation
    assert situation is not None
    if meet < _LIKELY:
        slow = situation.steady * exp(Z80 * situation.sigma)
        late = max(late, now.alone.lead + situation.course.restart + situation.acquire + slow)
    early, high = (hours_of(course, level, now.work, plan["launch"]) for level in (0.1, 0.9))
    return min(early, period), max(min(high, late), period)


def _spread(
    bench: Bench, now: Fleet, worker: Fallen, bought: Sequence[tuple[list[Charge], Fraction]], whole: Fraction
) -> tuple[Near, Near]:
    """P10 and P90 of the cost."""
    if id(now) not in bench.spreads:
        bench.spreads[id(now)] = _outcomes(bench, now, worker)
    usd: list[float] = bench.spreads[id(now)]
    kinds = ("compute", "upfront", "system_disk")
    paid = sum(float(total([one for one in charges if one.kind in kinds])) for charges, _ in bought)
    rent, quote = float(bought[0][0][0].usd), worker.buy.offer.quote
    low = hypot(max(paid - quantile(usd, 0.1), 0.0), rent * (1.0 - quote.p10 / quote.expected))
    high = hypot(max(quantile(usd, 0.9) - paid, 0.0), rent * (quote.p90 / quote.expected - 1.0))
    ends = max(whole - Fraction(low), Fraction(0)), whole + Fraction(high)
    return Near(min(ends[0], whole), SPREAD_RATIO, 0.011), Near(max(ends[1], whole), SPREAD_RATIO, 0.011)


def _outcomes(bench: Bench, now: Fleet, worker: Fallen) -> list[float]:
    """Costs of equally likely outcomes, USD: those of each share, whose luck is partly the workers' own."""
    levels = luck_levels(bench, now.alone)
    _, shared, own = share_up(levels, bench.deadline_hours - now.alone.lead)
    common = shared / max(shared + own, 1e-300)
    shrunk = sqrt(common + (1.0 - common) / now.count)
    buyers, fixed = [buyer.buy for buyer in _buyers(worker, now)], now.alone.run.steps.fixed
    rents = [(buy.offer, bench.prices.rent(buy.offer, buy.nodes)) for buy in buyers]
    usd: list[float] = []
    for number, candidate in now.groups:
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


def _launch(
    bench: Bench, plan: Node, now: Fleet, chances: tuple[float, float],
    ends: tuple[tuple[Near, Near], tuple[float, float]],
) -> dict[str, Any]:  # fmt: skip
    """What the section must say: sums over the workers."""
    situation, (usd, hours), launch = now.most.situation, ends, plan["launch"]
    assert situation is not None
    pool = bench.capacity(now.spot, now.each)[0]
    waits = now.stay - now.mean(lambda one: one.waiting) - now.spot_hours - now.later_hours
    near = frame.closeness(now.most)
    spot = Near(now.count * now.spot_hours, near)
    needed = now.mean(lambda one: 0.0 if one.course is None else one.course.p_needed)
    return {
        "strategy": "spot_with_fallback", "p_meet_deadline": Near(chances[0], _CHANCE_RATIO, 1e-5),
        "p_meet_spot_only_ratio": Near(chances[1], _CHANCE_RATIO, 1e-5),
        "p_on_demand_needed_ratio": Near(needed, _CHANCE_RATIO, 1e-6),
        "expected_cost_usd": Exactly(plan["total_usd"].money()), "cost_p10_usd": usd[0], "cost_p90_usd": usd[1],
        "expected_hours": Exactly(plan["hours"].money()),
        "p10_hours": Near(hours[0], SPREAD_RATIO), "p90_hours": Near(hours[1], SPREAD_RATIO),
        "finish_p10": frame.finish(bench, launch["p10_hours"].number()),
        "finish_p90": frame.finish(bench, launch["p90_hours"].number()),
        "expected_interruptions": _sum(now, lambda one: one.interruptions), "spot_hours": spot,
        "on_demand_hours": Near(now.count * now.later_hours, _CHANCE_RATIO, 1e-5),
        "waiting_hours": Near(now.count * max(waits, 0.0), near, now.count * 2.0 * CHANCE_SLACK * now.stay),
        "lost_hours": _sum(now, lambda one: one.lost),
        "on_demand_acquire_s": Near(3600.0 * situation.acquire, 1e-9, 1e-6),
        "checkpoints": checkpoints(bench, now.most),
        "places": [place(bench, now.spot, now.each, spot) | {"records": None, "hazards": IfStated(None)}],
        "why": STATED, "notes": [UNKNOWN, NOTE], "replay": None,
        "first_wait_hours": first_wait(
            replace(pool, first_wait=situation.pool.first_wait), max(waits, 0.0), near, 2.0 * CHANCE_SLACK * now.stay
        ),
        "p_on_demand_had_ratio": Near(situation.had),
    }  # fmt: skip
