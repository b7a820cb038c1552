"""The plan of a fleet, leaf by leaf: each line's hours of work follow from its speed, all else from those hours."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from planner.judge import carbon, choices, fleet_stored, frame, single
from planner.judge.bench import Bench, ImpossibleError
from planner.judge.document import Node
from planner.judge.findings import STATED, Exactly, Findings, IfStated, Near
from planner.judge.fleet_chance import chance_of, course_of
from planner.judge.fleet_ends import on_each, with_ends
from planner.judge.fleet_launch import launch_of
from planner.judge.fleet_lines import (
    cash_of,
    line_of,
    lines_of,
    performance_of,
    proof_of,
    timeline_of,
    unknown_of,
)
from planner.judge.fleet_spread import Spread, spread_of
from planner.judge.fleet_workers import (
    RUN_HAIR,
    Worker,
    fewest,
    limit_hours,
    runs_of,
    slowed,
    sure_hours,
    with_hours,
    worker_of,
)
from planner.judge.limits import has_fallback
from planner.judge.money import total
from planner.judge.prices import Z80
from planner.judge.purchases import Buy

WORK_SHARE = 1e-6  # of all work; what dividing it among workers may be off by
_RATIO = 1e-6
_HAIR = 1e-9  # of the hours until the deadline
_SURE_RATIO = 1e-5  # of hours in which a wait is in time with a given chance
BASIS = "sized at the cautious end of the prediction; P: workers take each other's runs until the deadline"
CHEAPEST = "cheapest fleet of one on-demand offer, limits on shares ignored"


def check(findings: Findings, bench: Bench, sha256: str) -> None:
    """Compare a plan of kind `fleet` with what is recomputed."""
    plan = findings.answer
    fleet = bench.workload.fleet
    period = plan["hours"].number()
    created = plan["created_at"].moment()
    # first, as a fleet on records of one's own is not recomputed further
    findings.members(plan, frame.header(bench, sha256, created) | {"assumptions": frame.assumptions(bench)})
    single.money(findings, plan)
    workers = with_ends(findings, bench, plan, _workers(bench, plan, period))
    _shape(findings, bench, workers, period)
    runs = 1 if fleet is None else fleet.runs
    work = bench.work.steps * bench.work.units_per_step * runs
    lines = lines_of(bench, workers, work)
    last = _last(plan, workers)
    course = course_of(bench, workers, lines)
    chance = chance_of(bench, course, work)
    bills = _bill(bench, workers, work, -Z80), _bill(bench, workers, work, Z80)
    spread = spread_of(bench, plan, workers, lines, (course.coming(), work), bills)
    expected: dict[str, Any] = {
        **frame.header(bench, sha256, created), "status": "planned", "finish_expected": frame.finish(bench, period),
        "lines": [line_of(bench, worker, *bought, period) for worker, bought in zip(workers, lines, strict=True)],
        "total_usd": Near(sum((total(charges) for charges, _ in lines), Fraction(0)), _RATIO),
        "hours": Near(last.end, _RATIO), "timeline": timeline_of(last, period),
        "performance": performance_of(bench, workers, period), "risk": _risk(plan, workers, chance, spread),
        "cash": cash_of(bench, workers, lines, period), "launch": launch_of(bench, plan, workers, spread, chance),
        "filters": STATED, "filter_pairs": STATED, "relaxations": [], "warnings": STATED, "n_feasible": STATED,
        "unknown_options": unknown_of(bench, workers), "n_results": 1, "run_id": single.run_id(plan),
        "starts_in_hours": single.starts_in(plan), "profile_cost_usd": IfStated(None),
        "profile_narrows_usd": IfStated(None),
        "assumptions": frame.assumptions(bench), "confidence": "normal", "sensitivity": [], "on_known_prices": None,
        "alternatives": [], "folded": [],
        "savings": STATED, "proof": proof_of(bench, plan), "choices": STATED,
        "checkpoint_interval_hours": IfStated(None),
        "carbon": carbon.of_fleet(bench, workers),
        "storage": IfStated(fleet_stored.storage(bench, workers, lines, work)), "loading": IfStated(None),
    }  # fmt: skip
    findings.expect(plan, expected)
    units = sum(worker.units for worker in workers)
    findings.require(units >= work * (1 - WORK_SHARE), "lines", f"the workers do {units:.10g} of {work:.10g}")
    firm = savings_of(findings, bench, plan, work)
    choices.check_fleet(
        findings,
        bench,
        plan,
        chance,
        {"one_offer": one_offer(findings, bench, plan, work), "on_demand": firm},
    )
    single.filters(findings, plan)


def _workers(bench: Bench, plan: Node, period: float) -> list[Worker]:
    """The workers of each line, with the hours that its throughput says."""
    fleet, out = bench.workload.fleet, []
    each = 1 if fleet is None else fleet.nodes_per_run
    for line in plan["lines"]:
        offer = bench.goods.offer(f"{line.path}.offer_id", line["offer_id"].text())
        nodes = line["nodes"].count()
        if nodes < 1 or nodes % each or nodes > 10**6:
            line["nodes"].fail(f"whole workers of {each} instances")
        worker = worker_of(bench, Buy(offer, each), nodes // each)
        units = line["throughput_per_s"].number() * period * 3600.0
        out.append(with_hours(worker, units / worker.count / worker.units_per_hour))
    if not out:
        raise ImpossibleError("a plan without lines")
    return out


def _shape(findings: Findings, bench: Bench, workers: Sequence[Worker], period: float) -> None:
    """Workers end in time, buy what can be bought, once each, in the order of their names."""
    fleet = bench.workload.fleet
    runs = 1 if fleet is None else fleet.runs
    most = limit_hours(bench, bench.work.steps * bench.work.units_per_step * runs)
    seen: dict[str, int] = {}
    for at, worker in enumerate(workers):
        path, offer = f"lines[{at}]", worker.buy.offer
        findings.require(
            abs(worker.runs - round(worker.runs)) < RUN_HAIR,
            path,
            f"{worker.runs:g} runs: no worker can do part of one",
        )
        findings.require(
            worker.end <= period * (1 + 1e-9) + 1e-9,
            path,
            f"ends after {worker.end:g} h, the fleet after {period:g} h",
        )
        slow = worker.slow_end
        findings.require(
            slow <= most * (1 + 1e-9) + 1e-9, path, f"a slow run ends after {slow:g} h, {most:g} h are there"
        )
        longest = offer.rule.max_term_hours
        if not offer.rule.whole_term and longest is not None:
            findings.require(
                worker.bought_of(worker.longest) <= longest * (1 + 1e-9),
                path,
                f"{worker.bought_of(worker.longest):g} h, at most {longest:g} h are sold",
            )
        seen[offer.offer_id] = seen.get(offer.offer_id, 0) + worker.count * worker.buy.nodes
    for name, nodes in seen.items():
        available = bench.goods.offer("lines", name).capacity
        findings.require(
            nodes <= available, "lines", f"{name}: {nodes} instances, {available:g} are available"
        )
    ranks = [_rank(bench, worker.buy.offer) for worker in workers]
    findings.require(ranks == sorted(ranks), "lines", "not in the order of preferred regions and names")


def _rank(bench: Bench, offer: Any) -> tuple[Any, ...]:
    patterns = bench.workload.preferences.prefer_regions
    place = "/".join(offer.place)
    wish = next(
        (k for k, p in enumerate(patterns) if fnmatchcase(place if "/" in p else offer.place[1], p)),
        len(patterns),
    )
    names = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
    return (wish, *(offer.text(name) for name in names))


def _bill(bench: Bench, workers: Sequence[Worker], work: float, z: float) -> Fraction:
    """Cost of the fleet at a speed that errs by `z` standard deviations."""
    other = [slowed(worker, z) for worker in workers]
    return sum((total(charges) for charges, _ in lines_of(bench, other, work, workers)), Fraction(0))


def _last(plan: Node, workers: Sequence[Worker]) -> Worker:
    """The worker that ends last; of several that end together the one whose course the plan states."""
    ends = max(worker.end for worker in workers)
    together = [worker for worker in workers if worker.end >= ends * (1 - _RATIO)]
    stated = [part["hours"].number() for part in plan["timeline"] if part["id"].text() == "fleet_lead"]
    return min(together, key=lambda worker: abs(worker.run.waiting - sum(stated)))


def _risk(plan: Node, workers: Sequence[Worker], chance: Near | None, spread: Spread) -> dict[str, Any]:
    whole = Exactly(plan["total_usd"].money())
    return {
        "p_meet_deadline": chance,
        "expected_interruptions": Near(sum(w.run.interruptions * runs_of(w) for w in workers), _RATIO),
        "expected_lost_hours": Near(sum(w.run.lost * runs_of(w) for w in workers), _RATIO),
        "expected_hours": Exactly(plan["hours"].money()), "worst_hours": Near(spread.hours[1], 1e-5),
        "expected_cost_usd": whole, "worst_cost_usd": spread.usd[1],
        "basis": BASIS,
    }  # fmt: skip


def savings_of(findings: Findings, bench: Bench, plan: Node, work: float) -> Near | None:
    """The baseline: workers of one on-demand offer, as many as do the work in time; with their chance."""
    node = plan["savings"]
    if node["baseline"].is_null:
        findings.expect(node, {"baseline": None, "saved_usd": None, "saved_ratio": None, "note": STATED})
        return None
    baseline = node["baseline"]
    worker, chance, expected = _alone(bench, plan, baseline, work)
    most = sure_hours(bench, worker, (limit_hours(bench, work) - worker.lead) / worker.caution)
    least = {fewest(worker, work, most * (1.0 + slack)) for slack in (-_SURE_RATIO, _SURE_RATIO)}
    findings.require(
        worker.count in least, f"{baseline.path}.nodes", f"{min(least)} workers do the work in time"
    )
    cost, whole = baseline["cost_usd"].money(), plan["total_usd"].money()
    saved = cost - whole
    option = worker.buy.offer.text("purchase_option")
    findings.require(option == "on_demand", baseline.path, "the baseline is not on-demand")
    choices.says_what_it_breaks(findings, bench, plan, worker)
    findings.expect(
        node,
        {
            "saved_usd": Exactly(saved), "saved_ratio": Near(saved / cost if cost else 0.0), "note": CHEAPEST,
            "baseline": expected,
        },
    )  # fmt: skip
    return chance


def _alone(bench: Bench, plan: Node, node: Node, work: float) -> tuple[Worker, Near | None, dict[str, Any]]:
    """Workers of one offer that do all work in equal parts, their chance, and what a summary of them says."""
    buys, _ = frame.purchases(bench.goods, node)
    fleet = bench.workload.fleet
    each = 1 if fleet is None else fleet.nodes_per_run
    offer, nodes = buys[0].offer, buys[0].nodes
    worker = worker_of(bench, Buy(offer, each), nodes // each)
    worker = with_hours(worker, work / (worker.units_per_hour * worker.count))
    ways = [(one, lines_of(bench, [one], work)) for one in on_each(bench, worker)]
    stated = node["cost_usd"].money()
    worker, lines = min(ways, key=lambda way: abs(total(way[1][0][0]) - stated))
    charges, _ = lines[0]
    text = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
    expected = {
        "label": "", **{name: offer.text(name) for name in text}, "accelerator": str(offer.kind["accelerator"]),
        "accelerators": Near(nodes * offer.accelerators), "nodes": nodes,
        "hours": Near(worker.end, _RATIO), "cost_usd": Near(total(charges), _RATIO, 2e-6),
        "delta_cost_usd": Exactly(node["cost_usd"].money() - plan["total_usd"].money()),
        "delta_hours": Near(node["hours"].number() - plan["hours"].number()),
        "price_as_of": offer.text("as_of"), "flags": [], "parts": frame.parts_of([Buy(offer, nodes)]),
        "brings": [], "marginal_cost_usd": None, "full_cost_usd": None,
        **carbon.of_workers(bench, worker, node),
    }  # fmt: skip
    return worker, chance_of(bench, course_of(bench, [worker], lines), work), expected


def one_offer(findings: Findings, bench: Bench, plan: Node, work: float) -> Near | None:
    """The fleet of one offer that a row is named: recomputed, in time, sure enough and within the shares."""
    choice = choices.named(plan, "one_offer")
    if choice is None:
        return None
    best, limits = choice["best"], bench.workload.constraints
    worker, chance, expected = _alone(bench, plan, best, work)
    findings.expect(best, expected)
    ends = best["hours"].number()
    findings.require(ends <= limit_hours(bench, work) * (1 + _HAIR), best.path, "ends after the deadline")
    nodes = worker.count * worker.buy.nodes
    findings.require(nodes <= limits.max_nodes, best.path, f"{nodes} nodes, max_nodes is {limits.max_nodes}")
    findings.require(nodes <= worker.buy.offer.capacity, best.path, "more instances than are available")
    findings.require(not choices.exceeds_a_share(bench, worker), best.path, "one offer exceeds a share")
    if bench.deadline is not None and worker.buy.offer.is_spot and has_fallback(bench.workload):
        recorded = bench.capacity(worker.buy.offer, worker.buy.nodes)[2] is not None
        findings.require(
            recorded, best.path, "spot alone by a deadline without recorded availability of its family"
        )
    if not choice["p_meet_deadline"].is_null:
        sure = choice["p_meet_deadline"].number() >= limits.deadline_confidence - _SURE_RATIO
        findings.require(sure, best.path, "does not reach the required probability for the deadline")
    return chance
