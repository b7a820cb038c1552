"""The plan of one job, leaf by leaf: everything that its offers, sizes and dates determine is computed anew."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil, exp, isnan
from typing import TYPE_CHECKING, Any

from planner.judge import carbon, choices, frame, stored
from planner.judge.alternatives import alternatives, decision_of, hidden, on_known_prices, savings
from planner.judge.bench import Bench, Candidate, NotRecomputedError
from planner.judge.capacity_waits import booked_from, waits
from planner.judge.document import Node
from planner.judge.findings import STATED, Between, Exactly, Findings, IfStated, Near
from planner.judge.launch_figures import launch_of
from planner.judge.layouts import layout, phases
from planner.judge.money import by_month, stated_price, total
from planner.judge.prices import Z80, scaled
from planner.judge.profile import profile_fields
from planner.judge.purchases import Bought, Buy
from planner.judge.quote import quote_of, sure_hours, table_ratio

if TYPE_CHECKING:
    from planner.judge.goods import Offer
    from planner.judge.money import Charge

BREAKDOWN = (
    "compute", "memory_bound", "tp_comm", "pp_comm", "bubble", "dp_comm", "optimizer", "data_loading", "fixed",
    "other_models", "offload", "generation", "refit", "evaluation",
)  # fmt: skip
# The worst hours of steady capacity are searched on a grid of 24 points in three rounds: the answer is at most one step
# of the last one, 8 / 23^3 in the logarithm, above the quantile.
_GRID = 8.0 / 23.0**3
STEADY_BASIS = "capacity is not taken back; machine failures and the spread of the predicted hours only"
BY_MILP = "MILP, equal to the exact enumeration"
# parts of a plan that are not recomputed here: stated, or looked at by themselves
_STATED = (
    "filters",
    "filter_pairs",
    "relaxations",
    "warnings",
    "n_feasible",
    "assumptions",
    "confidence",
    "sensitivity",
    "on_known_prices",
    "alternatives",
    "savings",
    "folded",
    "choices",
)


def check(findings: Findings, bench: Bench, sha256: str) -> None:
    """Compare a plan of kind `training` with what is recomputed."""
    plan = findings.answer
    created = plan["created_at"].moment()
    buys, in_turn = purchases(bench, plan)
    reference = plan["total_usd"].money(), plan["hours"].number()
    money(findings, plan)
    filters(findings, plan)
    try:
        candidate = bench.candidate(buys, in_turn=in_turn)
    except NotRecomputedError:
        _without_hours(findings, bench, buys, in_turn=in_turn, sha256=sha256)
        raise
    ratio = frame.closeness(candidate)
    launch = launch_of(bench, plan, candidate) if candidate.situation else None
    expected: dict[str, Any] = {
        **frame.header(bench, sha256, created),
        **dict.fromkeys(_STATED, STATED),
        "status": "planned",
        "finish_expected": frame.finish(bench, candidate.hours),
        "lines": [line_of(bench, part, candidate) for part in candidate.parts],
        "total_usd": Near(candidate.cost, ratio),
        "hours": Near(candidate.hours, ratio),
        "timeline": timeline(bench, candidate),
        "performance": performance(bench, candidate.shape),
        "risk": risk(bench, plan, candidate),
        "cash": cash(bench, candidate),
        "launch": launch,
        "unknown_options": unknown_options(bench, candidate),
        "checkpoint_interval_hours": IfStated(Near(candidate.interval, ratio)),
        "n_results": len(plan["alternatives"]) + 1,
        "run_id": run_id(plan),
        "proof": proof(bench, plan, candidate),
        "starts_in_hours": starts_in(plan),
        **profile_fields(plan),
        **quote_of(bench, plan, candidate, _GRID),
        **phases(bench, candidate, ratio),
        "carbon": carbon.carbon(
            bench, candidate, ratio, [frame.part_closeness(candidate, part) for part in candidate.parts]
        ),
        **stored.stated(bench, candidate, reference[0]),
    }
    findings.expect(plan, expected)
    others = alternatives(findings, bench, plan, reference, decision_of(buys, in_turn=in_turn))
    on_known_prices(findings, bench, plan, reference)
    savings(findings, bench, plan, reference)
    hidden(findings, bench, plan, reference)
    choices.check(findings, bench, plan, candidate, others)
    for part in candidate.parts:
        day = booked_from(part.offer, bench.start, created)
        is_said = any(f"from {day}" in text.text() for text in plan["warnings"])
        findings.require(
            is_said or not day, "warnings", f"not said: it can be booked from {day} on, not before"
        )


def _without_hours(findings: Findings, bench: Bench, buys: list[Buy], *, in_turn: bool, sha256: str) -> None:
    """Compare what does not rest on how spot comes and goes."""
    plan = findings.answer
    nodes = buys[0].nodes if in_turn else sum(buy.nodes for buy in buys)
    header = frame.header(bench, sha256, plan["created_at"].moment()) | {
        "status": "planned",
        "performance": performance(bench, bench.shape(buys[0].offer, nodes)),
        "run_id": run_id(plan),
        "n_results": len(plan["alternatives"]) + 1,
    }
    findings.members(plan, header)
    reference = plan["total_usd"].money(), plan["hours"].number()
    alternatives(findings, bench, plan, reference, decision_of(buys, in_turn=in_turn))


def purchases(bench: Bench, plan: Node) -> tuple[list[Buy], bool]:
    """What the lines buy, and whether they are used one after another."""
    buys = []
    for line in plan["lines"]:
        nodes = frame.instances(line)
        buys.append(Buy(bench.goods.offer(f"{line.path}.offer_id", line["offer_id"].text()), nodes))
    spot = sum(buy.offer.is_spot for buy in buys)
    same = len({buy.nodes for buy in buys}) == 1
    strategy = "" if plan["launch"].is_null else plan["launch"]["strategy"].text()
    in_turn = len(buys) > 1 and same and (spot == len(buys) or strategy == "spot_with_fallback")
    return (frame.in_first_zone(bench.goods, buys) if in_turn else buys), in_turn


def money(findings: Findings, plan: Node) -> None:
    """Amounts are quantity times price exactly, and sums are sums."""
    whole = Fraction(0)
    for line in plan["lines"]:
        sum_of_line = Fraction(0)
        for item in line["costs"]:
            quantity, price = item["quantity"].money(), item["unit_price"].money()
            amount = round(quantity * price * item["usd_per_currency"].money() * 10**12)
            amount_usd = item["amount_usd"].money()
            findings.require(
                amount_usd == Fraction(amount, 10**12), item["amount_usd"].path, "not quantity x price"
            )
            sum_of_line += amount_usd
        findings.require(
            sum_of_line == line["cost_usd"].money(), line["cost_usd"].path, "not the sum of its costs"
        )
        whole += sum_of_line
    findings.require(whole == plan["total_usd"].money(), "total_usd", "not the sum of the lines")


def line_of(bench: Bench, part: Bought, candidate: Candidate) -> dict[str, Any]:
    """What a line of the plan must say."""
    offer, ratio = part.offer, frame.part_closeness(candidate, part)
    text = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant", "currency")
    units = bench.work.units_per_step / candidate.shape["step_time_s"]
    return {
        "offer_id": offer.offer_id, **{name: offer.text(name) for name in text}, "family": str(offer.kind["family"]),
        "accelerator": str(offer.kind["accelerator"]), "accelerators_per_node": Near(offer.accelerators),
        "accelerator_memory_gib": Near(float(offer.kind["accelerator_memory_gib"])), "nodes": part.nodes,
        "vcpus_per_node": vcpus(offer),
        "billed_hours": Near(part.hours, ratio, 2e-9), **prices_of(offer),
        "usd_per_currency": Exactly(Fraction(offer.rate.rate)),
        "throughput_per_s": Near(units * part.nodes / candidate.nodes), "price_basis": offer.text("basis"),
        "price_source": offer.text("source"), "price_as_of": offer.text("as_of"), "flags": offer.flags,
        "quota": quota_of(bench, offer, part.nodes), "layout": layout(bench, candidate.shape),
        "costs": [charge.wanted(ratio) for charge in part.charges],
        "cost_usd": Near(total(part.charges), ratio, 1e-6),
    }  # fmt: skip


def prices_of(offer: Offer) -> dict[str, Any]:
    """Price expected, quoted and between which it may lie, per instance-hour."""
    quote, moves = offer.quote, bool(offer.quote.path)
    low, high = (stated_price(scaled(offer.quoted, end), moves=moves) for end in (quote.p10, quote.p90))
    return {
        "price_per_hour": stated_price(offer.price, moves=moves), "quoted_price_per_hour": Exactly(offer.quoted),
        "price_p10_per_hour": low, "price_p90_per_hour": high, "price_kind": quote.kind,
        "price_age_days": None if isnan(quote.age_days) else Near(quote.age_days),
        "marginal_usd_per_hour": None if offer.marginal is None else Exactly(offer.marginal),
        "full_usd_per_hour": None if offer.full is None else Exactly(offer.full),
    }  # fmt: skip


def vcpus(offer: Any) -> Near | None:
    """Virtual processors of an instance, None where unknown."""
    count = float(offer.kind["vcpus"])
    return None if isnan(count) else Near(count)


def quota_of(bench: Bench, offer: Any, nodes: int) -> dict[str, Any]:
    """What the quota of a line must say."""
    need = bench.goods.quota(offer, nodes)
    limit = None if need["limit"] is None else Near(need["limit"])
    return {**need, "needed": Near(need["needed"]), "limit": limit}


def timeline(bench: Bench, candidate: Candidate) -> list[dict[str, Any]]:
    """Parts of the elapsed hours, in order; parts of nothing are left out."""
    work, steps = bench.work, candidate.steps
    all_spot = candidate.in_turn or all(part.offer.is_spot for part in candidate.parts)
    provision = work.hours("provision") + (0.0 if all_spot else work.hours("on_demand_acquire"))
    offers = [] if candidate.in_turn else [part.offer for part in candidate.parts]
    wait = waits(offers, candidate.nodes, bench.workload.constraints, *bench.dates)[0]
    evaluated, beside = (work.figures[f"{name}_ratio"] for name in ("evaluation_share", "beside_steps"))
    training = steps.work / (1.0 + evaluated + beside)
    on_spot = candidate.in_turn or any(part.offer.is_spot for part in candidate.parts)
    saves = steps.work / candidate.interval
    if on_spot:  # expected interval by interval, the last of which ends with the run
        saves = max(ceil(saves - 1e-9) - 1, 0)
    saving = saves * steps.write
    interrupted = candidate.hours - candidate.waiting - steps.fixed - steps.work - saving
    rows = (
        ("data_staging", candidate.waiting - provision - wait, "default"), ("capacity", wait, "default"),
        ("provisioning", provision, "default"),
        ("image_pull", work.hours("image_pull"), "default"),
        ("warm_up", work.hours("compile_warmup"), "default"), ("training_steps", training, "model"),
        ("evaluation", training * evaluated, "default"), ("beside_steps", training * beside, "default"),
        ("checkpoints", saving, "model"),
        ("interruptions", interrupted, "derived"), ("final_export", steps.write + work.hours("export"), "default"),
    )  # fmt: skip
    return [
        {
            "id": name,
            "name": STATED,
            "hours": Near(hours, frame.closeness(candidate), 1e-8),
            "origin": origin,
            "note": STATED,
        }
        for name, hours, origin in rows
        if hours > 1e-9
    ]


def performance(bench: Bench, shape: dict[str, Any]) -> dict[str, Any]:
    """Speed and memory, predicted anew."""
    units = bench.work.units_per_step
    need, available = float(shape["memory_needed_gib"]), float(shape["memory_available_gib"])
    fits = None if bench.workload.kind == "inference" else Near(1.0 - shape["oom_probability"])
    return {
        "unit": bench.work.unit, "throughput_per_s": Near(units / shape["step_time_s"]),
        "throughput_low_per_s": Near(units / shape["step_time_high_s"]),
        "throughput_high_per_s": Near(units / shape["step_time_low_s"]), "step_time_s": Near(shape["step_time_s"]),
        "mfu": Near(shape["mfu"]), "memory_needed_gib": Near(need), "memory_available_gib": Near(available),
        "memory_headroom_gib": Near(available - need),
        "memory_fits_ratio": IfStated(fits), "limited_by": str(shape["limited_by"]),
        "breakdown_s": {name: Near(float(shape[f"{name}_s"])) for name in BREAKDOWN if f"{name}_s" in shape},
    }  # fmt: skip


def risk(bench: Bench, plan: Node, candidate: Candidate) -> dict[str, Any]:
    """Interruptions and the worst case."""
    out: dict[str, Any] = {
        "p_meet_deadline": None if candidate.p_meet is None else Near(candidate.p_meet, 1e-4),
        "expected_interruptions": Near(candidate.interruptions, frame.closeness(candidate)),
        "expected_lost_hours": Near(candidate.lost, frame.closeness(candidate)),
        "expected_hours": Exactly(plan["hours"].money()),
        "expected_cost_usd": Exactly(plan["total_usd"].money()),
    }
    if candidate.situation is not None:
        launch = plan["launch"]
        sources = [
            bench.capacity(part.offer, part.nodes)[1] for part in candidate.parts if part.offer.is_spot
        ]
        worst = max(launch["cost_p90_usd"].money(), plan["total_usd"].money())
        return out | {
            "worst_hours": Exactly(launch["p90_hours"].money()), "worst_cost_usd": Exactly(worst),
            "basis": "; ".join(dict.fromkeys(sources)),
        }  # fmt: skip
    before = candidate.waiting + candidate.steps.fixed
    sure = sure_hours(candidate, 0.9, candidate.steps.sigma)
    least = max(sure * (1.0 - table_ratio(candidate)), candidate.hours)
    worst_hours = plan["risk"]["worst_hours"].number()
    most = max(before + (sure - before) * exp(_GRID), candidate.hours)
    usd = max(bench.cost_if(candidate, exp(candidate.steps.sigma * Z80), worst_hours), candidate.cost)
    return out | {
        "worst_hours": Between(least, most), "worst_cost_usd": Near(usd, 1e-9, 2e-6), "basis": STEADY_BASIS,
    }  # fmt: skip


def obligations(bench: Bench, candidate: Candidate) -> list[tuple[Fraction, datetime, datetime]]:
    """What is owed, from when until when it accrues: in full, upfront parts at the start."""
    end = bench.start + timedelta(hours=candidate.hours)
    owed: list[tuple[Fraction, datetime, datetime]] = []
    for part in candidate.parts:
        rule, whole = part.offer.rule, part.hours * part.nodes
        until = bench.start + timedelta(hours=float(part.hours)) if rule.whole_term else end
        for charge in part.charges:
            amount = due(part.offer, charge)
            if charge.kind == "compute" and 0 < charge.quantity < whole:
                amount = amount * whole / charge.quantity
            at_once = charge.kind == "upfront" or (charge.kind == "compute" and rule.upfront_all)
            stop = bench.start if at_once else until if charge.kind == "compute" else end
            owed.append((amount, bench.start, stop))
    return owed


def due(offer: Offer, charge: Charge) -> Fraction:
    """What falls due of a charge: of an own machine its power and hosting, never its purchase."""
    if charge.kind != "compute" or offer.marginal is None:
        return charge.usd
    return charge.quantity * offer.marginal


def cash(bench: Bench, candidate: Candidate) -> Any:
    """Money by the month it falls due."""
    owed = obligations(bench, candidate)
    ratio = frame.closeness(candidate)
    # a moment's difference in the finish moves money of the whole job between two months
    months, slack = by_month(owed), 2e-6 * len(owed) + ratio * float(candidate.cost)
    return [{"month": name, "amount_usd": Near(months[name], ratio, slack)} for name in sorted(months)]


def unknown_options(bench: Bench, candidate: Candidate) -> list[str]:
    """Ways to buy the types of the plan that exist without a known price."""
    from catalogs.offers.derive import unknown_options as without_price

    kinds = dict.fromkeys(
        (part.offer.text("provider"), part.offer.text("instance_type")) for part in candidate.parts
    )
    return [
        f"{kind}: {option}"
        for provider, kind in kinds
        for option in without_price(bench.goods.catalog, provider, kind)
    ]


def starts_in(plan: Node) -> Near:
    """Hours until the first instance is in use: the parts of the timeline before it, and the first wait for spot."""
    before = ("data_staging", "capacity", "provisioning", "fleet_lead")
    parts = sum(part["hours"].number() for part in plan["timeline"] if part["id"].text() in before)
    wait = 0.0 if plan["launch"].is_null else plan["launch"]["first_wait_hours"].number()
    return Near(parts + wait, 1e-9, 1e-9)


def run_id(plan: Node) -> str:
    """The name of the run: its workload, choice and prices."""
    choice = [[line["offer_id"].value, line["nodes"].value, line["layout"].value] for line in plan["lines"]]
    prices = [[source["provider"].value, source["sha256"].value] for source in plan["catalog"]]
    text = json.dumps((plan["workload_sha256"].value, choice, prices), sort_keys=True)
    return f"run-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def proof(bench: Bench, plan: Node, candidate: Candidate) -> dict[str, Any]:
    """An enumeration's bound is its objective, as is that of the MILP that was held against it."""
    node, whole = plan["proof"], plan["total_usd"].money()
    stated = dict.fromkeys(("candidates", "shapes", "seconds", "near_ties", "note"), STATED)
    out = {
        **stated, "status": "optimal", "gap_exact_ratio": None, "gap_asked_ratio": None, "verified": True,
        "offers": bench.goods.offers.n_rows, "fallback_left_out": frame.fallback_left_out(bench, plan),
    }  # fmt: skip
    if node["method"].value != BY_MILP:
        exact = {"objective_usd": Exactly(whole), "bound_usd": Exactly(whole), "gap_ratio": 0.0}
        return {**out, **exact, "method": "exact enumeration", "solver": "numpy"}
    by_cost = bench.workload.preferences.objective == "cost"
    objective, bound = node["objective_usd"].money(), node["bound_usd"].money()
    gap = max(0.0, float((objective - bound) / objective)) if objective else 0.0
    return out | {
        "method": BY_MILP, "solver": STATED, "objective_usd": Near(whole if by_cost else candidate.hours, 1e-6),
        "bound_usd": Near(objective, 1e-6), "gap_ratio": Near(gap, slack=1e-9),
    }  # fmt: skip


def filters(findings: Findings, plan: Node) -> None:
    """Counts of the search are stated; those that contradict each other are faults."""
    most = plan["proof"]["candidates"].count()
    for node in plan["filters"]:
        removed, alone = node["removed"].count(), node["removed_only_by_this"].count()
        findings.require(alone <= removed <= most, node.path, "counts that contradict each other")
