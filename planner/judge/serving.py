"""The answer of `planner serving`: prices, loads and sums recomputed from the question and the catalog."""

from __future__ import annotations

import hashlib
from datetime import date
from fractions import Fraction
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from catalogs.offers.flags import admit_offers
from planner.judge.findings import STATED, Between, Exactly, Findings, IfStated, Near
from planner.judge.serving_proof import kinds_of, proven
from planner.judge.serving_speeds import doubts_of, with_speeds

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog
    from planner.inputs.serving_load import LoadedServing
    from planner.inputs.serving_schema import Machine
    from planner.judge.document import Node

# how far a solver may overload a machine, and shares of a bucket sum to something else than 1
HAIR = 1e-6
_MICRO_USD = Fraction(1, 10**6)


def check(findings: Findings, loaded: LoadedServing, catalog: Catalog) -> None:
    """Compare a serving fleet with what is recomputed."""
    answer, serving = findings.answer, loaded.serving
    predicted = bool(loaded.predicted)
    loaded, speeds = with_speeds(loaded, catalog)
    on = _day(answer["on"])
    prices = {machine.name: _price(machine, catalog, on) for machine in serving.machines}
    needed = _machines_needed(loaded)
    lines = [
        _line(findings, node, prices, needed, float(serving.headroom_ratio)) for node in answer["machines"]
    ]
    total = sum((node["usd_per_hour"].money() for node in answer["machines"]), Fraction(0))
    from_catalog = predicted or any(machine.usd_per_hour is None for machine in serving.machines)
    sources = (
        [{"provider": m.provider, "sha256": m.sha256} for m in catalog.manifests] if from_catalog else []
    )
    findings.expect(
        answer,
        {
            "serving": serving.name, "sha256": hashlib.sha256(loaded.document.data).hexdigest(), "on": on.isoformat(),
            "catalog": sources, "currency": "USD", "schema_version": 1, "planner_version": STATED,
            "total_usd_per_hour": Exactly(total), "machines": lines, "buckets_nobody_serves": [],
            "headroom_ratio": Near(float(serving.headroom_ratio)), "speeds": speeds,
            "confidence": Near(serving.confidence) if predicted else None, "doubts": doubts_of(serving, speeds),
            "cheapest_single_kind": _single(loaded, prices, needed),
            "proof": {**_proof(answer, total), "proven": _proven(loaded, prices, answer["proof"]["proven"], total)},
        },
    )  # fmt: skip
    _limits(findings, loaded, answer["machines"])
    costs = [node["usd_per_hour"].money() for node in answer["machines"]]
    findings.require(costs == sorted(costs, reverse=True), "machines", "not in the order of their cost")


def _day(node: Node) -> date:
    try:
        return date.fromisoformat(node.text())
    except ValueError:
        node.fail("a day such as 2026-11-20")


def _price(machine: Machine, catalog: Catalog, on: date) -> tuple[Fraction, str, str, str, str] | None:
    """USD per hour, place, source, date and option: given, or that of the cheapest admitted offer."""
    if machine.usd_per_hour is not None:
        place = "/".join(part for part in (machine.provider, machine.region) if part)
        return Fraction(machine.usd_per_hour), place, "given", "", machine.purchase_option
    from catalogs.tables.partitions import not_asked
    from catalogs.tariffs import load_tariffs

    offers = catalog.offers
    hit = admit_offers(offers, allow_flagged=False).mask.copy()
    for name in ("provider", "region", "instance_type", "purchase_option"):
        if getattr(machine, name) is not None:
            hit &= offers.equals(name, getattr(machine, name))
    if machine.region is None:
        hit &= ~not_asked(offers)
    priced = []
    for row in offers.take(hit.nonzero()[0]).rows():
        upfront = Fraction(str(row["upfront_per_instance"]) or "0")
        hourly = Fraction(str(row["price_per_hour"])) + (
            upfront and upfront / Fraction(str(row["term_hours"]))
        )
        usd = hourly * Fraction(load_tariffs().usd_per(str(row["currency"]), on).rate)
        place = f"{row['provider']}/{row['region']}"
        priced.append((usd, str(row["region"]), place, str(row["source"]), str(row["as_of"])))
    if not priced:
        return None
    best = min(priced, key=lambda offer: offer[:2])
    return best[0], *best[2:], machine.purchase_option


def _machines_needed(loaded: LoadedServing) -> dict[tuple[str, str], float]:
    """Machines that the whole of a bucket needs of one kind, by (kind, bucket); infinity where it cannot."""
    free = 1.0 - float(loaded.serving.headroom_ratio)
    out = {}
    for machine in loaded.serving.machines:
        for bucket in loaded.serving.buckets:
            speed = loaded.speeds.get((machine.name, bucket.name), 0.0) * free
            out[machine.name, bucket.name] = float(bucket.requests_per_s) / speed if speed > 0 else inf
    return out


def _line(
    findings: Findings,
    node: Node,
    prices: dict[str, Any],
    needed: dict[tuple[str, str], float],
    headroom: float,
) -> dict[str, Any]:
    name, count = node["machine"].text(), node["count"].count()
    price = prices.get(name)
    if price is None or count < 1:
        findings.fault(node.path, f"{count} of {name}: no machine of the question that can be bought")
        return {"machine": STATED}
    load, shares = 0.0, {}
    for bucket in node["buckets"].keys():  # noqa: SIM118 - a node, not a dict
        share = node["buckets"][bucket].number()
        load += share * needed.get((name, bucket), inf)
        shares[bucket] = Near(share)
        findings.require(0.0 < share <= 1.0 + HAIR, node["buckets"].path, f"{bucket}: {share} is not a share")
    findings.require(load <= count + HAIR * max(1.0, load), node.path, f"{load:g} machines' load on {count}")
    each, place, source, as_of, option = price
    return {
        "machine": name, "count": count, "usd_per_hour_each": Exactly(each), "usd_per_hour": Exactly(each * count),
        "place": place, "load_ratio": Near(load / count * (1.0 - headroom)) if load < inf else None,
        "buckets": shares, "price_source": source, "price_as_of": as_of,
        "purchase_option": IfStated(option),
    }  # fmt: skip


def _single(
    loaded: LoadedServing, prices: dict[str, Any], needed: dict[tuple[str, str], float]
) -> dict[str, Any] | None:
    """The cheapest fleet of one kind that serves everything."""
    best: tuple[Fraction, str] | None = None
    most = loaded.serving.max_nodes or inf
    for machine in loaded.serving.machines:
        load = sum(needed[machine.name, bucket.name] for bucket in loaded.serving.buckets)
        if load == inf or prices[machine.name] is None:
            continue
        count = ceil(load - 1e-9)
        cost = prices[machine.name][0] * count
        if count <= min(machine.max_nodes or inf, most) and (best is None or cost < best[0]):
            best = cost, machine.name
    return None if best is None else {"machine": best[1], "usd_per_hour": Exactly(best[0])}


def _limits(findings: Findings, loaded: LoadedServing, machines: Node) -> None:
    """Every bucket is served once, every kind named once and within its limit, all within the limit of all."""
    most = {machine.name: machine.max_nodes or inf for machine in loaded.serving.machines}
    names = [node["machine"].text() for node in machines]
    findings.require(len(set(names)) == len(names), "machines", "a kind of machine on two lines")
    counts = [node["count"].count() for node in machines]
    findings.require(
        sum(counts) <= (loaded.serving.max_nodes or inf), "machines", "more machines than max_nodes"
    )
    for name, count in zip(names, counts, strict=True):
        findings.require(
            count <= most.get(name, 0), "machines", f"{count} of {name}, at most {most.get(name, 0)}"
        )
    for bucket in loaded.serving.buckets:
        served = sum(
            node["buckets"][bucket.name].number() for node in machines if bucket.name in node["buckets"]
        )
        findings.require(
            abs(served - 1.0) <= HAIR, "machines", f"bucket {bucket.name} is served {served:.9g} times"
        )


def _proof(answer: Node, total: Fraction) -> dict[str, Any]:
    """The bound is the solver's; the gap and the status follow from it."""
    node = answer["proof"]
    bound = node["bound_usd_per_hour"].money()
    most = total * (1 + Fraction(1, 10**9))  # no bound is above what the answer costs
    gap = float((total - bound) / total) if total else 0.0
    limit = node["gap_asked_ratio"].number()
    return {
        "bound_usd_per_hour": Exactly(min(bound, most)),
        "gap_ratio": Near(max(gap, 0.0), 1e-6, 1e-9), "gap_asked_ratio": STATED,
        "status": "optimal" if gap <= limit * (1 + 1e-6) + 1e-9 else "feasible", "solver": STATED, "seconds": STATED,
    }  # fmt: skip


def _proven(loaded: LoadedServing, prices: dict[str, Any], node: Node, total: Fraction) -> dict[str, Any]:
    """The bound that the tree of prices proves, to the micro-dollar below, and the gap to it."""
    serving = loaded.serving
    usd_of = {name: price[0] for name, price in prices.items() if price is not None}
    kinds = kinds_of(loaded, usd_of)
    bound = proven(kinds, [bucket.name for bucket in serving.buckets], serving.max_nodes, node["tree"])
    stated = node["bound_usd_per_hour"].money()
    gap = max(0.0, float((total - stated) / total)) if total else 0.0
    below = Fraction(float(bound)) - 2 * _MICRO_USD
    return {
        "bound_usd_per_hour": Between(max(0.0, float(below)), float(bound)),
        "gap_ratio": Near(gap, 1e-9, 1e-12), "tree": STATED,
    }  # fmt: skip
