"""The plan of a fleet, leaf by leaf: each line's hours of work follow from its speed, all else from those hours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from fractions import Fraction
from math import exp
from typing import Any

from planner.judge import carbon, choices, fleet_stored, frame, single
from planner.judge.bench import Bench, Buy, ImpossibleError
from planner.judge.document import Node
from planner.judge.findings import STATED, Exactly, Findings, IfStated, Near
from planner.judge.fleet_chance import chance_of, course_of
from planner.judge.fleet_launch import launch_of
from planner.judge.fleet_spread import Spread, spread_of
from planner.judge.fleet_workers import (
    RUN_HAIR,
    Worker,
    billed_hours,
    fewest,
    limit_hours,
    runs_of,
    slowed,
    sure_hours,
    with_hours,
    worker_of,
)
from planner.judge.limits import has_fallback
from planner.judge.money import Charge, by_month, rounded, total
from planner.judge.prices import Z80

WORK_SHARE = 1e-6  # of all work; what dividing it among workers may be off by
_RATIO = 1e-6
_HAIR = 1e-9  # of the hours until the deadline
_SURE_RATIO = 1e-5  # of hours in which a wait is in time with a given chance
BASIS = "sized at the cautious end of the prediction; P: workers take each other's runs until the deadline"
METHOD = "MILP over whole workers and their hours"
LIMITED_BY = "see each instance type"
CHEAPEST = "cheapest fleet of one on-demand offer, limits on shares ignored"


def check(findings: Findings, bench: Bench, sha256: str) -> None:
    """Compare a plan of kind `fleet` with what is recomputed."""
    plan = findings.answer
    fleet = bench.workload.fleet
    each = 1 if fleet is None else fleet.nodes_per_run
    period = plan["hours"].number()
    created = plan["created_at"].moment()
    # first, as a fleet on records of one's own is not recomputed further
    findings.members(plan, frame.header(bench, sha256, created) | {"assumptions": frame.assumptions(bench)})
    single.money(findings, plan)
    workers = []
    for line in plan["lines"]:
        offer = bench.goods.offer(f"{line.path}.offer_id", line["offer_id"].text())
        nodes = line["nodes"].count()
        if nodes < 1 or nodes % each or nodes > 10**6:
            line["nodes"].fail(f"whole workers of {each} instances")
        worker = worker_of(bench, Buy(offer, each), nodes // each)
        units = line["throughput_per_s"].number() * period * 3600.0
        workers.append(with_hours(worker, units / worker.count / worker.units_per_hour))
    if not workers:
        raise ImpossibleError("a plan without lines")
    _shape(findings, bench, workers, period)
    runs = 1 if fleet is None else fleet.runs
    work = bench.work.steps * bench.work.units_per_step * runs
    lines = _lines(bench, workers, work)
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
        {"one_offer": _one_offer(findings, bench, plan, work), "on_demand": firm},
    )
    single.filters(findings, plan)


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
    return sum((total(charges) for charges, _ in _lines(bench, other, work, workers)), Fraction(0))


def _lines(
    bench: Bench, workers: Sequence[Worker], work: float, planned: Sequence[Worker] | None = None
) -> list[tuple[list[Charge], Fraction]]:
    """Charges and billed hours of each line; what a place shares is on its first line.

    `planned`: the same workers at the predicted speed, by which it was chosen where they read from.
    """
    out: list[tuple[list[Charge], Fraction]] = []
    opened: set[tuple[str, str]] = set()
    for worker, data in zip(workers, fleet_stored.charges(bench, workers, work, planned), strict=True):
        offer, each = worker.buy.offer, worker.buy.nodes
        hours = billed_hours(bench, worker)
        charges = [_times(charge, worker.count) for charge in bench.prices.worker(offer, each, hours)]
        longest = max(w.end for w in workers if w.buy.offer.place == offer.place)
        saved = bench.prices.place(offer, worker.lead + worker.hours)
        shared = [] if offer.place in opened else bench.prices.place(offer, longest)
        charges += [charge for charge in shared if charge.id == "dataset_storage"]
        charges += [_times(charge, worker.count) for charge in saved if charge.id == "checkpoint_storage"]
        charges += [charge for charge in shared if charge.kind == "data_transfer"]
        opened.add(offer.place)
        out.append((charges + data, hours))
    return out


def _times(charge: Charge, count: int) -> Charge:
    return Charge(
        charge.id, charge.label, rounded(charge.quantity * count), charge.unit, charge.unit_price, charge.currency,
        charge.rate, charge.basis, charge.source, charge.as_of, charge.flags,
    )  # fmt: skip


def line_of(
    bench: Bench, worker: Worker, charges: Sequence[Charge], hours: Fraction, period: float
) -> dict[str, Any]:
    offer, nodes = worker.buy.offer, worker.buy.nodes * worker.count
    text = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant", "currency")
    return {
        "offer_id": offer.offer_id, **{name: offer.text(name) for name in text}, "family": str(offer.kind["family"]),
        "accelerator": str(offer.kind["accelerator"]), "accelerators_per_node": Near(offer.accelerators),
        "accelerator_memory_gib": Near(float(offer.kind["accelerator_memory_gib"])), "nodes": nodes,
        "vcpus_per_node": single.vcpus(offer),
        "billed_hours": Near(hours, _RATIO, 2e-9), **single.prices_of(offer),
        "usd_per_currency": Exactly(Fraction(offer.rate.rate)),
        "throughput_per_s": Near(worker.units / period / 3600.0), "price_basis": offer.text("basis"),
        "price_source": offer.text("source"), "price_as_of": offer.text("as_of"), "flags": offer.flags,
        "quota": single.quota_of(bench, offer, nodes), "layout": None,
        "costs": [charge.wanted(_RATIO) for charge in charges], "cost_usd": Near(total(charges), _RATIO, 1e-6),
    }  # fmt: skip


def _last(plan: Node, workers: Sequence[Worker]) -> Worker:
    """The worker that ends last; of several that end together the one whose course the plan states."""
    ends = max(worker.end for worker in workers)
    together = [worker for worker in workers if worker.end >= ends * (1 - _RATIO)]
    stated = [part["hours"].number() for part in plan["timeline"] if part["id"].text() == "fleet_lead"]
    return min(together, key=lambda worker: abs(worker.run.waiting - sum(stated)))


def timeline_of(last: Worker, period: float) -> list[dict[str, Any]]:
    fixed = last.run.steps.fixed
    rows = (
        ("fleet_lead", last.run.waiting, "default"), ("fleet_fixed", fixed, "default"),
        ("fleet_work", period - last.run.waiting - fixed, "model"),
    )  # fmt: skip
    return [
        {"id": name, "name": STATED, "hours": Near(hours, _RATIO, 1e-8), "origin": origin, "note": STATED}
        for name, hours, origin in rows
        if hours > 0
    ]


def performance_of(bench: Bench, workers: Sequence[Worker], period: float) -> dict[str, Any]:
    seconds = period * 3600.0
    slow, middle, fast = (
        sum(worker.units * exp(sign * worker.run.steps.sigma * Z80) for worker in workers)
        for sign in (-1, 0, 1)
    )
    nothing = dict.fromkeys(
        (
            "step_time_s",
            "mfu",
            "memory_needed_gib",
            "memory_available_gib",
            "memory_headroom_gib",
        ),
        None,
    )
    return {
        **nothing, "memory_fits_ratio": IfStated(None), "unit": bench.work.unit,
        "throughput_per_s": Near(middle / seconds, _RATIO),
        "throughput_low_per_s": Near(slow / seconds, _RATIO),
        "throughput_high_per_s": Near(fast / seconds, _RATIO), "limited_by": LIMITED_BY, "breakdown_s": {},
    }  # fmt: skip


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


def cash_of(
    bench: Bench, workers: Sequence[Worker], lines: Sequence[tuple[list[Charge], Fraction]], period: float,
    near: float = _RATIO,
) -> list[dict[str, Any]]:  # fmt: skip
    end = bench.start + timedelta(hours=period)
    owed: list[tuple[Fraction, datetime, datetime]] = []
    for worker, (charges, hours) in zip(workers, lines, strict=True):
        rule, whole = worker.buy.offer.rule, hours * worker.buy.nodes * worker.count
        until = bench.start + timedelta(hours=float(hours)) if rule.whole_term else end
        for charge in charges:
            compute = charge.kind == "compute"
            amount = single.due(worker.buy.offer, charge)
            if compute and 0 < charge.quantity < whole:
                amount = amount * whole / charge.quantity
            at_once = charge.kind == "upfront" or (compute and rule.upfront_all)
            owed.append((amount, bench.start, bench.start if at_once else until if compute else end))
    months = by_month(owed)
    slack = 2e-6 * len(owed)
    return [{"month": name, "amount_usd": Near(months[name], near, slack)} for name in sorted(months)]


def unknown_of(bench: Bench, workers: Sequence[Worker]) -> list[str]:
    from catalogs.offers.derive import unknown_options

    kinds = dict.fromkeys((w.buy.offer.text("provider"), w.buy.offer.text("instance_type")) for w in workers)
    return [
        f"{kind}: {option}"
        for provider, kind in kinds
        for option in unknown_options(bench.goods.catalog, provider, kind)
    ]


def proof_of(bench: Bench, plan: Node) -> dict[str, Any]:
    """The bound is the solver's (a certificate proves it); its gap and the status follow from it."""
    node, whole = plan["proof"], plan["total_usd"].money()
    bound = node["bound_usd"].money()
    gap = float((whole - bound) / whole) if whole else 0.0
    gap_asked = node["gap_asked_ratio"].number()
    low = Near(bound, 0.0, 0.0) if 0 <= bound <= whole else Exactly(whole)
    stated = dict.fromkeys(
        (
            "candidates",
            "shapes",
            "seconds",
            "near_ties",
            "note",
            "solver",
            "gap_exact_ratio",
            "gap_asked_ratio",
        ),
        STATED,
    )
    return {
        **stated, "method": METHOD,
        "status": "optimal" if gap <= gap_asked * (1 + 1e-6) else "feasible", "objective_usd": Exactly(whole),
        "bound_usd": low, "gap_ratio": Near(gap, 1e-9, 1e-12), "offers": bench.goods.offers.n_rows, "verified": True,
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
    lines = _lines(bench, [worker], work)
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


def _one_offer(findings: Findings, bench: Bench, plan: Node, work: float) -> Near | None:
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
        findings.require(recorded, best.path, "spot alone by a deadline without a record of its family")
    if not choice["p_meet_deadline"].is_null:
        sure = choice["p_meet_deadline"].number() >= limits.deadline_confidence - _SURE_RATIO
        findings.require(sure, best.path, "does not reach the required probability for the deadline")
    return chance
