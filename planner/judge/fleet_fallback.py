"""The plan of a fleet whose workers fall back on on-demand, leaf by leaf.

A worker that does k runs is a single job of k times the work (`planner.judge.spot_policies`); what workers share is
that of other fleets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from planner.judge import carbon, choices, fleet, fleet_lines, fleet_stored, frame, single
from planner.judge.bench import Bench, Candidate, ImpossibleError
from planner.judge.document import Node
from planner.judge.findings import STATED, Exactly, Findings, IfStated, Near
from planner.judge.fleet_fallback_workers import (
    FallbackFleet,
    FallbackWorkers,
    buyers_of,
    chances_of,
    charges_of,
    fleet_of,
    hours_of_fallback,
    ratios_of,
    spread_of_fallback,
)
from planner.judge.goods import Offer
from planner.judge.launch_figures import SPREAD_RATIO, UNKNOWN, checkpoints, first_wait, place
from planner.judge.limits import has_fallback
from planner.judge.money import Charge, total
from planner.judge.spot_policies import CHANCE_SLACK

_RATIO = 1e-6
CHANCE_RATIO = 1e-4
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
    fallback = _fleet(findings, bench, plan)
    worker, bought = charges_of(bench, fallback)
    meet, alone, course = chances_of(bench, fallback)
    usd = near_usd(spread_of_fallback(bench, fallback, worker, bought, plan["total_usd"].money()))
    hours = hours_of_fallback(bench, fallback, course, meet, plan["launch"])
    chance, near = Near(meet, CHANCE_RATIO, 1e-5), frame.closeness(fallback.most)
    expected: dict[str, Any] = {
        **frame.header(bench, sha256, created), "status": "planned", "finish_expected": frame.finish(bench, period),
        "lines": lines_of_fallback(bench, fallback, worker, bought, period),
        "total_usd": Near(sum((total(charges) for charges, _ in bought), Fraction(0)), near),
        "hours": Near(fallback.most.hours, near), "timeline": fleet_lines.timeline_of(worker, period),
        "performance": fleet_lines.performance_of(bench, [worker], period),
        "risk": {
            "p_meet_deadline": chance, "expected_interruptions": _sum(fallback, lambda one: one.interruptions),
            "expected_lost_hours": _sum(fallback, lambda one: one.lost),
            "expected_hours": Exactly(plan["hours"].money()), "worst_hours": Near(hours[1], SPREAD_RATIO),
            "expected_cost_usd": Exactly(plan["total_usd"].money()), "worst_cost_usd": usd[1], "basis": BASIS,
        },
        "cash": fleet_lines.cash_of(bench, buyers_of(worker, fallback), bought, period, near),
        "launch": launch_of_fallback(bench, plan, fallback, (meet, alone), (usd, hours)),
        "filters": STATED, "filter_pairs": STATED, "relaxations": [], "warnings": STATED, "n_feasible": STATED,
        "unknown_options": fleet_lines.unknown_of(bench, [worker]), "n_results": 1, "run_id": single.run_id(plan),
        "starts_in_hours": single.starts_in(plan), "profile_cost_usd": IfStated(None),
        "profile_narrows_usd": IfStated(None),
        "assumptions": frame.assumptions(bench), "confidence": "normal", "sensitivity": [], "on_known_prices": None,
        "alternatives": [], "folded": [],
        "savings": STATED, "proof": fleet_lines.proof_of(bench, plan) | {"method": METHOD}, "choices": STATED,
        "checkpoint_interval_hours": IfStated(None),
        "carbon": carbon.of_fallback(bench, worker, (fallback.later, fallback.later_hours), ratios_of(fallback)),
        "storage": IfStated(fleet_stored.storage(bench, [worker], bought[:1], fallback.work, [fallback.alone])),
        "loading": IfStated(None),
    }  # fmt: skip
    findings.expect(plan, expected)
    firm = fleet.savings_of(findings, bench, plan, fallback.work)
    others = {"one_offer": fleet.one_offer(findings, bench, plan, fallback.work), "on_demand": firm}
    choices.check_fleet(findings, bench, plan, chance, others)
    single.filters(findings, plan)


def _fleet(findings: Findings, bench: Bench, plan: Node) -> FallbackFleet:
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


def _allowed(findings: Findings, bench: Bench, spot: Offer, later: Offer, nodes: int) -> None:
    """The fall-back is one: allowed, all of the work on one offer, and both offers are large enough."""
    may_follow(findings, bench, spot, later)
    fleet_limits = bench.workload.fleet
    parts = [] if fleet_limits is None else [
        fleet_limits.max_share_per_region, fleet_limits.max_share_per_offer, fleet_limits.max_spot_share
    ]  # fmt: skip
    findings.require(all(part in (None, 1) for part in parts), "lines", "one offer exceeds a share")
    for offer in (spot, later):
        findings.require(
            nodes <= offer.capacity, "lines", f"{offer.offer_id}: {offer.capacity:g} are available"
        )


def may_follow(findings: Findings, bench: Bench, spot: Offer, later: Offer) -> None:
    """Workers may fall back from one offer on the other: by a deadline, in the same region."""
    bought = [offer.text("purchase_option") for offer in (spot, later)]
    findings.require(
        bought == ["spot", "on_demand"], "lines", "spot and what it falls back on, in this order"
    )
    findings.require(bench.deadline is not None, "deadline", "a fall-back without a deadline")
    findings.require(has_fallback(bench.workload), "launch.strategy", "the workload allows no fall-back")
    findings.require(spot.place == later.place, "lines", "the fall-back is in another region")
    findings.require(
        bench.workload.constraints.min_throughput is None,
        "lines",
        "no throughput is sustained while spot is gone",
    )


def lines_of_fallback(
    bench: Bench,
    fallback: FallbackFleet,
    worker: FallbackWorkers,
    bought: Sequence[tuple[list[Charge], Fraction]],
    period: float,
) -> list[dict[str, Any]]:
    """What the lines of spot and of on-demand must say; `period`: hours of the whole plan."""
    share = sum(
        number * candidate.need * (0.0 if candidate.course is None else candidate.course.share)
        for number, candidate in fallback.groups
    ) / sum(number * candidate.need for number, candidate in fallback.groups)
    speed = fallback.work / period / 3600.0
    out = []
    shares, ratios = (1.0 - share, share), ratios_of(fallback)
    for buyer, (charges, hours), part, ratio in zip(
        buyers_of(worker, fallback), bought, shares, ratios, strict=True
    ):
        expected = fleet_lines.line_of(bench, buyer, charges, hours, period)
        near = {
            "throughput_per_s": Near(speed * part, ratio, CHANCE_SLACK * speed),
            "billed_hours": Near(hours, ratio, 2e-9), "costs": [charge.wanted(ratio) for charge in charges],
            "cost_usd": Near(total(charges), ratio, 1e-6),
        }  # fmt: skip
        out.append(expected | near)
    return out


def near_usd(ends: tuple[Fraction, Fraction], slack: float = 0.011) -> tuple[Near, Near]:
    """P10 and P90 of a cost as figures to be near to."""
    return Near(ends[0], SPREAD_RATIO, slack), Near(ends[1], SPREAD_RATIO, slack)


def _sum(fallback: FallbackFleet, figure: Callable[[Candidate], float]) -> Near:
    return Near(fallback.count * fallback.mean(figure), CHANCE_RATIO, 1e-6)


def launch_of_fallback(
    bench: Bench, plan: Node, fallback: FallbackFleet, chances: tuple[float, float],
    ends: tuple[tuple[Near, Near], tuple[float, float]],
) -> dict[str, Any]:  # fmt: skip
    """What the section must say: sums over the workers."""
    situation, (usd, hours), launch = fallback.most.situation, ends, plan["launch"]
    assert situation is not None
    pool = bench.capacity(fallback.spot, fallback.each)[0]
    waits = (
        fallback.stay - fallback.mean(lambda one: one.waiting) - fallback.spot_hours - fallback.later_hours
    )
    near, slack_hours = frame.closeness(fallback.most), 2.0 * CHANCE_SLACK * fallback.stay
    spot = Near(fallback.count * fallback.spot_hours, near)
    needed = fallback.mean(lambda one: 0.0 if one.course is None else one.course.p_needed)
    return {
        "strategy": "spot_with_fallback", "p_meet_deadline": Near(chances[0], CHANCE_RATIO, 1e-5),
        "p_meet_spot_only_ratio": Near(chances[1], CHANCE_RATIO, 1e-5),
        "p_on_demand_needed_ratio": Near(needed, CHANCE_RATIO, 1e-6),
        "expected_cost_usd": Exactly(plan["total_usd"].money()), "cost_p10_usd": usd[0], "cost_p90_usd": usd[1],
        "expected_hours": Exactly(plan["hours"].money()),
        "p10_hours": Near(hours[0], SPREAD_RATIO), "p90_hours": Near(hours[1], SPREAD_RATIO),
        "finish_p10": frame.finish(bench, launch["p10_hours"].number()),
        "finish_p90": frame.finish(bench, launch["p90_hours"].number()),
        "expected_interruptions": _sum(fallback, lambda one: one.interruptions), "spot_hours": spot,
        "on_demand_hours": Near(fallback.count * fallback.later_hours, CHANCE_RATIO, 1e-5),
        "waiting_hours": Near(fallback.count * max(waits, 0.0), near, fallback.count * slack_hours),
        "lost_hours": _sum(fallback, lambda one: one.lost),
        "on_demand_acquire_s": Near(3600.0 * situation.acquire, 1e-9, 1e-6),
        "checkpoints": checkpoints(bench, fallback.most),
        "places": [place(bench, fallback.spot, fallback.each, spot) | {"records": None, "hazards": IfStated(None)}],
        "why": STATED, "notes": [UNKNOWN, NOTE], "replay": None,
        "first_wait_hours": first_wait(
            replace(pool, first_wait=situation.pool.first_wait), max(waits, 0.0), near, slack_hours
        ),
        "p_on_demand_had_ratio": Near(situation.had),
    }  # fmt: skip
