"""What lines of a fleet say, and what follows from them: charges, speed, money by month, the proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from math import exp
from typing import Any

from planner.judge import fleet_stored, frame, single
from planner.judge.bench import Bench
from planner.judge.document import Node
from planner.judge.ends import with_after
from planner.judge.findings import STATED, Exactly, IfStated, Near
from planner.judge.fleet_workers import Worker, billed_hours
from planner.judge.money import Charge, by_month, rounded, total
from planner.judge.prices import Z80

_RATIO = 1e-6
METHOD = "MILP over whole workers and their hours"
LIMITED_BY = "see each instance type"


def lines_of(
    bench: Bench,
    workers: Sequence[Worker],
    work: float,
    planned: Sequence[Worker] | None = None,
    part: float = 1.0,
) -> list[tuple[list[Charge], Fraction]]:
    """Charges and billed hours of each line; what a place shares is on its first line.

    `planned`: the same workers at the predicted speed, by which it was chosen where they read from; `part`: of all
    `work`, what the workers do.
    """
    out: list[tuple[list[Charge], Fraction]] = []
    opened: set[tuple[str, str]] = set()
    for worker, data in zip(workers, fleet_stored.charges(bench, workers, work, planned, part), strict=True):
        offer, each = worker.buy.offer, worker.buy.nodes
        hours = billed_hours(bench, worker)
        charges = [_times(charge, worker.count) for charge in bench.prices.worker(offer, each, hours)]
        charges = with_after(charges, bench.goods, offer, worker.after, worker.lead + worker.hours)
        longest = max(w.end for w in workers if w.buy.offer.place == offer.place)
        shared = [] if offer.place in opened else bench.prices.place(offer, longest)
        charges += [charge for charge in shared if charge.id == "dataset_storage"]
        charges += _saved(bench, worker)
        charges += [charge for charge in shared if charge.kind == "data_transfer"]
        opened.add(offer.place)
        out.append((charges + data, hours))
    return out


def _saved(bench: Bench, worker: Worker) -> list[Charge]:
    """Checkpoints kept by all workers of a line: by those that do one run more for longer."""
    kept = [
        (charge, count * charge.quantity)
        for count, hours in worker.shifts
        for charge in bench.prices.kept(worker.buy.offer, worker.lead + hours)
        if charge.id == "checkpoint_storage"
    ]
    return [replace(kept[0][0], quantity=sum((amount for _, amount in kept), Fraction(0)))] if kept else []


def _times(charge: Charge, count: int) -> Charge:
    return Charge(
        charge.id, charge.label, rounded(charge.quantity * count), charge.unit, charge.unit_price, charge.currency,
        charge.rate, charge.basis, charge.source, charge.as_of, charge.flags,
    )  # fmt: skip


def line_of(
    bench: Bench, worker: Worker, charges: Sequence[Charge], hours: Fraction, period: float
) -> dict[str, Any]:
    """What a line of the plan must say; `hours`: billed, of an instance; `period`: of the whole plan."""
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


def timeline_of(last: Worker, period: float) -> list[dict[str, Any]]:
    """The course of the worker that ends last, after `period` hours."""
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
    """The speed in the mean of the plan's `period` hours."""
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


def cash_of(
    bench: Bench, workers: Sequence[Worker], lines: Sequence[tuple[list[Charge], Fraction]], period: float,
    near: float = _RATIO,
) -> list[dict[str, Any]]:  # fmt: skip
    """What falls due by month, within `near` of it."""
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
    """Purchase options of the types used whose price is not known."""
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
        "fallback_left_out": frame.fallback_left_out(bench, plan),
    }  # fmt: skip
