"""The plan of a fleet in two parts, leaf by leaf: workers that fall back, and on-demand workers beside them.

Each part is recomputed as a fleet of its own that shares nothing with the other: figures are sums, hours those of the
part that ends last, and the probability is what both have at least, whatever ties their luck.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor, isfinite
from typing import Any

from planner.judge import carbon, choices, fleet, fleet_fallback, fleet_lines, fleet_stored, frame, single
from planner.judge.bench import Bench, ImpossibleError
from planner.judge.document import Node
from planner.judge.findings import STATED, Exactly, Findings, IfStated, Near
from planner.judge.fleet_chance import course_of
from planner.judge.fleet_fallback import (
    CHANCE_RATIO,
    launch_of_fallback,
    lines_of_fallback,
    may_follow,
    near_usd,
)
from planner.judge.fleet_fallback_workers import (
    FallbackFleet,
    buyers_of,
    chances_of,
    charges_of,
    fleet_of,
    hours_of_fallback,
    ratios_of,
    spread_of_fallback,
)
from planner.judge.fleet_spread import hours_of
from planner.judge.fleet_workers import (
    Worker,
    limit_hours,
    runs_of,
    slowed,
    with_hours,
    worker_of,
)
from planner.judge.goods import Offer
from planner.judge.launch_figures import SPREAD_RATIO, UNKNOWN
from planner.judge.money import Charge, total
from planner.judge.prices import Z80
from planner.judge.purchases import Buy
from planner.records import record

_HAIR = 1e-9  # of the hours until the deadline
_RUNS = 1e-3  # what the runs that the first two lines do may be off whole ones, by their throughput
BASIS = (
    "some workers change to on-demand at the last moment at which their share of the work meets the deadline, the "
    "others are on on-demand; P: at least, whatever ties the luck of both"
)
METHOD = (
    "MILP over whole workers and their hours; fleets of one spot offer with its fall-back beside on-demand of one "
    "offer compared"
)
NOTE = (
    "hours are summed over workers; the finish is that of the last of them; no worker takes runs of the other part, "
    "and P10 and P90 of the cost are sums of both parts"
)


@record(frozen=True)
class OnDemandPart:
    """On-demand workers of one offer that do what the others leave: `work`, `part` of all; what they are charged."""

    worker: Worker
    work: float
    part: float
    bought: list[tuple[list[Charge], Fraction]]


def is_in_parts(plan: Node) -> bool:
    """Whether some workers of a fleet fall back and others do not."""
    launch = plan["launch"]
    return not launch.is_null and launch["strategy"].text() == "fallback_in_fleet"


def check_any(findings: Findings, bench: Bench, sha256: str) -> None:
    """Compare the plan of a fleet of any kind with what is recomputed: a mix, all fall back, or two parts."""
    kinds = ((is_in_parts, check), (fleet_fallback.falls_back, fleet_fallback.check))
    next((judge for is_such, judge in kinds if is_such(findings.answer)), fleet.check)(
        findings, bench, sha256
    )


def check(findings: Findings, bench: Bench, sha256: str) -> None:
    """Compare a plan in two parts with what is recomputed."""
    plan = findings.answer
    created, period = plan["created_at"].moment(), plan["hours"].number()
    findings.members(plan, frame.header(bench, sha256, created) | {"assumptions": frame.assumptions(bench)})
    single.money(findings, plan)
    fallback, beside = _parts(findings, bench, plan)
    worker, bought = charges_of(bench, fallback)
    firm, near = beside.worker, frame.closeness(fallback.most)
    last = worker if fallback.most.hours >= firm.end else firm
    usd, hours, meet = _ends(bench, plan, fallback, beside)
    chance = Near(meet, CHANCE_RATIO, 2e-5)
    every, lost = (Near(figure, CHANCE_RATIO, 1e-6) for figure in _interruptions(fallback, firm))
    lines = [*lines_of_fallback(bench, fallback, worker, bought, period)]
    lines.append(fleet_lines.line_of(bench, firm, *beside.bought[0], period))
    paid = [*bought, *beside.bought]
    stored = fleet_stored.storage(
        bench, [worker], bought[:1], fallback.work / fallback.part, [fallback.alone], fallback.part
    )
    of_firm = fleet_stored.storage(
        bench, [firm], beside.bought, fallback.work / fallback.part, None, beside.part
    )
    whole = fallback.work / fallback.part
    expected: dict[str, Any] = {
        **frame.header(bench, sha256, created), "status": "planned", "finish_expected": frame.finish(bench, period),
        "lines": lines, "total_usd": Near(sum((total(charges) for charges, _ in paid), Fraction(0)), near),
        "hours": Near(max(fallback.most.hours, firm.end), near), "timeline": fleet_lines.timeline_of(last, period),
        "performance": fleet_lines.performance_of(bench, [worker, firm], period),
        "risk": {
            "p_meet_deadline": chance, "expected_interruptions": every, "expected_lost_hours": lost,
            "expected_hours": Exactly(plan["hours"].money()), "worst_hours": Near(hours[1], SPREAD_RATIO),
            "expected_cost_usd": Exactly(plan["total_usd"].money()), "worst_cost_usd": usd[1], "basis": BASIS,
        },
        "cash": fleet_lines.cash_of(bench, [*buyers_of(worker, fallback), firm], paid, period, near),
        "launch": _launch(bench, plan, (fallback, beside), chance, (usd, hours)),
        "filters": STATED, "filter_pairs": STATED, "relaxations": [], "warnings": STATED, "n_feasible": STATED,
        "unknown_options": fleet_lines.unknown_of(bench, [worker, firm]), "n_results": 1,
        "run_id": single.run_id(plan), "starts_in_hours": single.starts_in(plan), "profile_cost_usd": IfStated(None),
        "profile_narrows_usd": IfStated(None), "confidence": "normal", "sensitivity": [], "on_known_prices": None,
        "assumptions": frame.assumptions(bench), "alternatives": [], "folded": [],
        "savings": STATED, "proof": fleet_lines.proof_of(bench, plan) | {"method": METHOD}, "choices": STATED,
        "checkpoint_interval_hours": IfStated(None),
        "carbon": carbon.of_fallback(
            bench, worker, (fallback.later, fallback.later_hours), ratios_of(fallback), [firm]
        ),
        "storage": IfStated([*stored, *(one | {"line": 2} for one in of_firm)]), "loading": IfStated(None),
    }  # fmt: skip
    findings.expect(plan, expected)
    on_demand = fleet.savings_of(findings, bench, plan, whole)
    others = {"one_offer": fleet.one_offer(findings, bench, plan, whole), "on_demand": on_demand}
    choices.check_fleet(findings, bench, plan, chance, others)
    single.filters(findings, plan)


def _parts(findings: Findings, bench: Bench, plan: Node) -> tuple[FallbackFleet, OnDemandPart]:
    """Read the three lines and recompute each part; how the runs are divided is what their throughput says."""
    lines, asked = list(plan["lines"]), bench.workload.fleet
    if len(lines) != 3 or asked is None or asked.runs < 2:
        raise ImpossibleError("a fleet in two parts has three lines and several runs")
    spot, later, other = (
        bench.goods.offer(f"{line.path}.offer_id", line["offer_id"].text()) for line in lines
    )
    counts = []
    for line in lines:
        nodes = line["nodes"].count()
        if nodes < 1 or nodes % asked.nodes_per_run or nodes > 10**6:
            line["nodes"].fail(f"whole workers of {asked.nodes_per_run} instances")
        counts.append(nodes // asked.nodes_per_run)
    findings.require(counts[0] == counts[1], "lines[1].nodes", "as many on on-demand as on spot")
    speed = [line["throughput_per_s"].number() for line in lines]
    stated = asked.runs * (speed[0] + speed[1]) / max(sum(speed), 1e-300)
    runs = round(stated)
    findings.require(abs(stated - runs) < _RUNS * asked.runs, "lines", f"{stated:g} runs with a fall-back")
    if not counts[0] <= runs < asked.runs or counts[2] > asked.runs - runs:
        raise ImpossibleError("no more workers than runs")
    may_follow(findings, bench, spot, later)
    findings.require(other.text("purchase_option") == "on_demand", "lines[2]", "the others are on on-demand")
    used = {spot.offer_id: counts[0]}
    used[later.offer_id] = counts[0]
    used[other.offer_id] = used.get(other.offer_id, 0) + counts[2]
    for offer in (spot, later, other):
        nodes = used[offer.offer_id] * asked.nodes_per_run
        findings.require(
            nodes <= offer.capacity, "lines", f"{offer.offer_id}: {offer.capacity:g} are available"
        )
    _shares(findings, bench, runs, later, other)
    fallback = fleet_of(bench, spot, later, asked.nodes_per_run, counts[0], runs)
    return fallback, beside_of(bench, Buy(other, asked.nodes_per_run), counts[2], asked.runs - runs, findings)


def _shares(findings: Findings, bench: Bench, runs: int, later: Offer, other: Offer) -> None:
    """Workers with a fall-back do no more than any share allows, whether they are on spot or on on-demand."""
    asked = bench.workload.fleet
    assert asked is not None
    for share in (asked.max_spot_share, asked.max_share_per_region, asked.max_share_per_offer):
        if share is not None:
            most = floor(share * asked.runs + 1e-6)
            findings.require(runs <= most, "lines", f"{runs} runs with a fall-back, shares allow {most}")
    one_region = all(later.text(name) == other.text(name) for name in ("provider", "region"))
    for name, together in (
        ("max_share_per_region", one_region),
        ("max_share_per_offer", later.offer_id == other.offer_id),
    ):
        share = getattr(asked, name)
        findings.require(
            not together or share is None or share >= 1.0, "lines", f"all runs may be in one place: {name}"
        )


def beside_of(
    bench: Bench, buy: Buy, count: int, runs: int, findings: Findings | None = None
) -> OnDemandPart:
    """Recompute `count` on-demand workers that do `runs`; `findings`: where it is said that they end too late."""
    asked = bench.workload.fleet
    assert asked is not None
    whole = bench.work.steps * bench.work.units_per_step * asked.runs
    work, part = whole * runs / asked.runs, runs / asked.runs
    worker = worker_of(bench, buy, count)
    worker = with_hours(worker, work / (worker.units_per_hour * count))
    if findings is not None:
        room, rule = limit_hours(bench, whole) * (1 + _HAIR) + _HAIR, buy.offer.rule
        findings.require(worker.slow_end <= room, "lines[2]", f"a slow run ends after {worker.slow_end:g} h")
        longest = rule.max_term_hours
        sold = longest is None or worker.bought_of(worker.longest) <= longest * (1 + _HAIR)
        findings.require(sold, "lines[2]", "longer than is sold")
    return OnDemandPart(worker, work, part, _bought(bench, worker, whole, part))


def _bought(
    bench: Bench, worker: Worker, whole: float, part: float, planned: Worker | None = None
) -> list[tuple[list[Charge], Fraction]]:
    return fleet_lines.lines_of(bench, [worker], whole, None if planned is None else [planned], part)


def chance_beside(bench: Bench, beside: OnDemandPart) -> float:
    """The probability that the on-demand workers are in time."""
    return course_of(bench, [beside.worker], beside.bought).done(bench.deadline_hours, beside.work)


def both_in_time(first: float, second: float) -> float:
    """The least probability that both are, whatever ties them (Bonferroni)."""
    return max(first + second - 1.0, 0.0)


def _ends(
    bench: Bench, plan: Node, fallback: FallbackFleet, beside: OnDemandPart
) -> tuple[tuple[Near, Near], tuple[float, float], float]:
    """P10 and P90 of the cost, sums of those of the parts, and of the end, the later; the probability."""
    worker, bought = charges_of(bench, fallback)
    meet, _, course = chances_of(bench, fallback)
    costs = [line["cost_usd"].money() for line in plan["lines"]]
    low, high = spread_of_fallback(bench, fallback, worker, bought, costs[0] + costs[1])
    firm, whole = beside.worker, fallback.work / fallback.part
    fast, slow = (
        sum(
            (total(charges) for charges, _ in _bought(bench, slowed(firm, z), whole, beside.part, firm)),
            Fraction(0),
        )
        for z in (-Z80, Z80)
    )
    low += max(costs[2] - max(costs[2] - fast, Fraction(0)), Fraction(0))
    high += costs[2] + max(slow - costs[2], Fraction(0))
    early, late = hours_of_fallback(bench, fallback, course, meet, plan["launch"])
    coming = course_of(bench, [firm], beside.bought).coming()
    of_firm = [hours_of(coming, level, beside.work, plan["launch"]) for level in (0.1, 0.9)]
    if not isfinite(of_firm[1]):
        of_firm[1] = slowed(firm, Z80).end
    hours = max(early, min(of_firm[0], firm.end)), max(late, of_firm[1], firm.end)
    return near_usd((low, high), 0.022), hours, both_in_time(meet, chance_beside(bench, beside))


def _interruptions(fallback: FallbackFleet, firm: Worker) -> tuple[float, float]:
    """Of all workers, and the hours lost."""
    runs = runs_of(firm)
    every = fallback.count * fallback.mean(lambda one: one.interruptions) + firm.run.interruptions * runs
    return every, fallback.count * fallback.mean(lambda one: one.lost) + firm.run.lost * runs


def _launch(
    bench: Bench, plan: Node, parts: tuple[FallbackFleet, OnDemandPart], chance: Near,
    ends: tuple[tuple[Near, Near], tuple[float, float]],
) -> dict[str, Any]:  # fmt: skip
    """That of the workers that fall back, with what the others add."""
    fallback, beside = parts
    firm = beside.worker
    paid = fallback.count * fallback.later_hours + firm.count * firm.paid
    return launch_of_fallback(bench, plan, fallback, (0.0, 0.0), ends) | {
        "strategy": "fallback_in_fleet", "p_meet_deadline": chance, "p_meet_spot_only_ratio": None,
        "on_demand_hours": Near(paid, CHANCE_RATIO, 1e-5), "first_wait_hours": 0.0, "notes": [UNKNOWN, NOTE],
    }  # fmt: skip


__all__ = ["OnDemandPart", "beside_of", "both_in_time", "chance_beside", "check_any", "is_in_parts"]
