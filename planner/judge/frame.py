"""What every plan states around its choice: names, dates, assumptions, catalog, and candidates in brief."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from planner.inputs.resolved import PHASES
from planner.judge import carbon
from planner.judge.bench import Bench, Candidate, NotRecomputedError
from planner.judge.document import Node
from planner.judge.findings import STATED, Exactly, Findings, IfStated, Near, Timestamp
from planner.judge.purchases import Bought, Buy
from planner.judge.work import assumption_rows, work_on
from planner.plan.ids import WAITED
from planner.plan.upgrade import SCHEMA_VERSION

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog
    from planner.judge.goods import Goods

# Of expected hours and money of steady capacity and of spot alone: formulas in another order.
SPOT_RATIO = 1e-6
# With a fall-back they hold integrals of the normal distribution, which the engine interpolates (within 3e-6) and the
# judge does not: seen at most 7e-6.
FALLBACK_RATIO = 3e-5
# Hours of one of its parts, of all hours: seen at most 1e-6; but no part is further off than this ratio of its own.
PART_OF_WHOLE = 2e-6
MOST_PART_RATIO = 5e-4
EXCLUDED = (
    "taxes",
    "support plans",
    "negotiated discounts that no overlay declares",
    "staff time",
    "capacity: a listed price is not availability",
)


def catalog_sources(catalog: Catalog) -> list[dict[str, Any]]:
    """Dates and hashes of the snapshots used."""
    return [
        {
            "provider": source.provider, "oldest_as_of": source.oldest_as_of, "newest_as_of": source.newest_as_of,
            "sha256": source.sha256, "offers": source.n_offers,
        }
        for source in catalog.manifests
    ]  # fmt: skip


def settle(bench: Bench, plan: Node) -> None:
    """Take the default precision of the machines that a plan buys, before what it assumes is compared.

    Plans made before the schedule of phases was noted hold without that note.
    """
    for line in plan["lines"]:
        offer = bench.goods.find(line["offer_id"].text())
        if offer is not None:
            bench.work = work_on(bench.work, bench.workload, offer.hardware)
    if not any(item["key"].text() == PHASES for item in plan["assumptions"]):
        kept = tuple(item for item in bench.work.assumed if item.key != PHASES)
        bench.work = replace(bench.work, assumed=kept)


def assumptions(bench: Bench, first: Sequence[dict[str, str]] = ()) -> list[dict[str, Any]]:
    """Every assumption: the workload's resolution, the start, overlays, then the table with the workload's own values.

    Args:
        bench: the job.
        first: of a task, what its ladder assumes.
    """
    listed = {row["key"] for row in first}
    overrides = bench.workload.assumptions
    out: list[dict[str, Any]] = [
        {"key": item.key, "value": item.value, "unit": item.unit, "origin": item.origin, "note": item.note}
        for item in bench.work.assumed
    ]
    start = bench.start.isoformat(timespec="minutes")
    out.append(
        {
            "key": "start", "value": start, "unit": "", "origin": "workload" if bench.workload.start else "default",
            "note": "",
        }
    )  # fmt: skip
    out += [
        {"key": "prices.overlays", "value": note, "unit": "", "origin": "workload", "note": ""}
        for note in bench.goods.notes
    ]
    if seen := bench.workload.constraints.waited:
        counts = f"{len(seen)} requests, {sum(one.came for one in seen)} came"
        out.append({"key": WAITED, "value": counts, "unit": "", "origin": "workload", "note": ""})
    for row in assumption_rows(bench.workload.kind):
        is_override = row["key"] in overrides
        value = float(overrides[row["key"]]) if is_override else float(row["value"])
        out.append(
            {
                "key": row["key"], "value": f"{value:g}", "unit": row["unit"],
                "origin": "workload" if is_override else "default",
                "note": f"default {float(row['value']):g}" if is_override else row["note"],
            }
        )  # fmt: skip
    return [*first, *(row for row in out if row["key"] not in listed)]


def not_counted(answer: dict[str, Any], kind: str) -> str:
    """What is wrong with a plan that an earlier version made, which knew fewer assumptions; empty for others."""
    known = {item["key"] for item in answer["assumptions"]}
    missing = [row["key"] for row in assumption_rows(kind) if row["key"] not in known]
    if not missing:
        return ""
    return (
        f"assumptions: made without {' and '.join(missing)}, so its hours, costs and chances may not be those of "
        "this version: save the plan again"
    )


def instances(part: Node) -> int:
    """How many instances a part or a line has.

    Raises:
        MalformedError: it is no number from 1 to 100,000.
    """
    count = part["nodes"].count()
    if not 0 < count <= 10**5:
        part["nodes"].fail("a positive number of instances")
    return count


def purchases(goods: Goods, node: Node) -> tuple[list[Buy], bool]:
    """What a candidate in brief buys, and whether its offers are used one after another."""
    buys = []
    for part in node["parts"]:
        count = instances(part)
        names = [part[name].text() for name in ("region", "zone")]
        names += [node["instance_type"].text()]
        names += [part[name].text() for name in ("purchase_option", "option_variant")]
        offer_id = "/".join(name or "-" for name in (node["provider"].text(), *names))
        buys.append(Buy(goods.offer(part.path, offer_id), count))
    if not buys:
        node["parts"].fail("one purchase at least")
    in_turn = len(buys) > 1 and sum(buy.nodes for buy in buys) != node["nodes"].count()
    return (in_first_zone(goods, buys) if in_turn else buys), in_turn


def in_first_zone(goods: Goods, buys: list[Buy]) -> list[Buy]:
    """Purchases used one after another: a fall-back on-demand is bought in the first of zones that are alike."""
    return [buy if buy.offer.is_spot else Buy(goods.first_alike(buy.offer), buy.nodes) for buy in buys]


def parts_of(buys: Sequence[Buy]) -> list[dict[str, Any]]:
    """Purchases of a candidate in brief, as the plan names them."""
    names = ("purchase_option", "option_variant", "region", "zone")
    return [{"nodes": buy.nodes, **{name: buy.offer.text(name) for name in names}} for buy in buys]


def bought_text(buys: Sequence[Buy], *, in_turn: bool) -> str:
    """How a candidate is bought, in words."""
    if in_turn:
        spot = [buy for buy in buys if buy.offer.is_spot]
        zones = f" in {len(spot)} zones" if len(spot) > 1 else ""
        return f"spot{zones}" + (", else on_demand" if len(spot) < len(buys) else "")
    if len(buys) == 1:
        return buys[0].offer.text("purchase_option")
    texts = []
    for buy in buys:
        variant = buy.offer.text("option_variant")
        texts.append(
            f"{buy.nodes} {buy.offer.text('purchase_option')}" + (f" ({variant})" if variant else "")
        )
    return " + ".join(texts)


def summary(
    bench: Bench, node: Node, reference: tuple[Fraction, float] | None
) -> tuple[dict[str, Any], Candidate]:
    """What a candidate in brief must say, recomputed from its purchases.

    Args:
        bench: the job.
        node: the candidate in brief.
        reference: cost and hours of the plan that it is compared with; None: with nothing.
    """
    buys, in_turn = purchases(bench.goods, node)
    candidate = bench.candidate(buys, in_turn=in_turn)
    ratio = closeness(candidate)
    return named(buys, in_turn=in_turn) | {
        "hours": Near(candidate.hours, ratio), "cost_usd": Near(candidate.cost, ratio), **_deltas(node, reference),
        **own_machines(candidate, ratio), **carbon.brief(bench, candidate, ratio),
    }, candidate  # fmt: skip


def named(buys: Sequence[Buy], *, in_turn: bool) -> dict[str, Any]:
    """What a candidate in brief says of its purchases, hours and cost apart."""
    nodes = buys[0].nodes if in_turn else sum(buy.nodes for buy in buys)
    lead = leading(buys, in_turn=in_turn)
    zone = lead.text("zone") if in_turn else lead.text("zone") or max(buy.offer.text("zone") for buy in buys)
    flags = [flag for buy in buys for flag in buy.offer.flags]
    if any(buy.offer.text("basis") == "derived" for buy in buys):
        flags.append("derived")
    return {
        "label": "", "provider": lead.text("provider"), "region": lead.text("region"), "zone": zone,
        "instance_type": lead.text("instance_type"), "accelerator": str(lead.kind["accelerator"]),
        "accelerators": Near(nodes * lead.accelerators), "purchase_option": bought_text(buys, in_turn=in_turn),
        "option_variant": lead.text("option_variant") if len(buys) == 1 else "", "nodes": nodes,
        "price_as_of": min(buy.offer.text("as_of") for buy in buys), "flags": list(dict.fromkeys(flags)),
        "parts": parts_of(buys), "brings": [],
    }  # fmt: skip


def own_machines(candidate: Candidate, ratio: float) -> dict[str, Any]:
    """Its cost with own machines at power and hosting, and with their purchase; None where unknown or none is used."""
    used = [
        (
            part.offer,
            sum((charge.quantity for charge in part.charges if charge.kind == "compute"), Fraction(0)),
        )
        for part in candidate.parts
        if part.offer.own is not None
    ]
    beside = Fraction(candidate.cost) - sum(hours * offer.price for offer, hours in used)
    bases = {
        "marginal_cost_usd": [(offer.marginal, hours) for offer, hours in used],
        "full_cost_usd": [(offer.full, hours) for offer, hours in used],
    }
    return {
        name: None
        if not each or any(rate is None for rate, _ in each)
        else Near(beside + sum(rate * hours for rate, hours in each if rate is not None), ratio)
        for name, each in bases.items()
    }


def _deltas(node: Node, reference: tuple[Fraction, float] | None) -> dict[str, Any]:
    """Differences to what a candidate is compared with."""
    if reference is None:
        return {"delta_cost_usd": Exactly(Fraction(0)), "delta_hours": 0.0}
    return {
        "delta_cost_usd": Exactly(node["cost_usd"].money() - reference[0]),
        "delta_hours": Near(node["hours"].number() - reference[1]),
    }


def closeness(candidate: Candidate) -> float:
    """How far figures of a candidate may be from those recomputed, as a ratio."""
    return FALLBACK_RATIO if candidate.in_turn else SPOT_RATIO


def part_closeness(candidate: Candidate, part: Bought) -> float:
    """The same of one purchase: a fall-back used in few futures is a small part, with the error of the whole."""
    if not candidate.in_turn or not part.hours > 0:
        return closeness(candidate)
    return min(max(FALLBACK_RATIO, PART_OF_WHOLE * candidate.hours / part.hours), MOST_PART_RATIO)


def leading(buys: Sequence[Buy], *, in_turn: bool) -> Any:
    """The offer a candidate is named by: its cheapest spot, else the dearest of what is bought."""
    spot = [buy.offer for buy in buys if buy.offer.is_spot]
    if in_turn or len(buys) == 1:
        return buys[0].offer
    return spot[0] if spot else buys[-1].offer


def brief(
    findings: Findings,
    bench: Bench,
    node: Node,
    reference: tuple[Fraction, float] | None,
    brings: Sequence[str] = (),
) -> Candidate | None:
    """Check a candidate in brief, and in what it must say that it is new; None where it cannot be recomputed."""
    try:
        expected, candidate = summary(bench, node, reference)
    except NotRecomputedError as error:
        findings.skip(node, str(error))
        return None
    findings.expect(node, expected | {"brings": list(brings)})
    return candidate


def finish(bench: Bench, hours: float) -> Timestamp:
    """The moment `hours` after the start."""
    return Timestamp(bench.start + timedelta(hours=min(hours, 1e6)))


def header(bench: Bench, sha256: str, created: datetime) -> dict[str, Any]:
    """Names and dates of a plan that do not depend on its choice."""
    workload = bench.workload
    return {
        "workload": workload.name, "workload_sha256": sha256, "kind": workload.kind,
        "created_at": created.isoformat(timespec="minutes"), "planner_version": STATED,
        "start": Timestamp(bench.start), "deadline": None if bench.deadline is None else Timestamp(bench.deadline),
        "objective": workload.preferences.objective, "excluded": list(EXCLUDED), "currency": "USD",
        "schema_version": SCHEMA_VERSION,
        "catalog": catalog_sources(bench.goods.catalog), "goal": _goal(bench), "run": IfStated(_run(bench)),
        "recurrence": IfStated(_recurrence(bench)),
    }  # fmt: skip


def _goal(bench: Bench) -> dict[str, Any]:
    """What the workload asks for."""
    limits, fleet = bench.workload.constraints, bench.workload.fleet
    each = bench.work.steps * bench.work.units_per_step
    return {
        "units": Near(each * (1 if fleet is None else fleet.runs)), "unit": bench.work.unit,
        "deadline_confidence_ratio": None if bench.deadline is None else limits.deadline_confidence,
        "budget_usd": None if limits.budget_usd is None else Exactly(Fraction(str(limits.budget_usd))),
    }  # fmt: skip


def _recurrence(bench: Bench) -> dict[str, Any] | None:
    """How often the workload comes again; answers leave it out where it does not."""
    again = bench.workload.recurrence
    return (
        None
        if again is None
        else {"every_hours": Near(again.every.total_seconds() / 3600.0), "times": again.times}
    )


def _run(bench: Bench) -> dict[str, Any]:
    """What the workload starts on the machines."""
    workload, run = bench.workload, bench.workload.run
    fleet = workload.fleet
    alone = 1 if workload.kind == "inference" else None
    names = ("image", "command", "setup", "data", "checkpoints", "outputs")
    return {name: getattr(run, name) or "" for name in names} | {
        "env": dict(run.env), "secrets": list(run.secrets), "data_location": workload.data.location or "",
        "team": workload.team or "", "runs": 1 if fleet is None else fleet.runs,
        "nodes_per_run": alone if fleet is None else fleet.nodes_per_run, "tags": dict(workload.tags),
    }  # fmt: skip


def fallback_left_out(bench: Bench, plan: Node) -> IfStated:
    """Whether spot in several zones or with on-demand behind it is wished for, and there is no deadline for it."""
    wish, limits = bench.workload.spot, bench.workload.constraints
    bought = limits.purchase_options
    spot = (bought is None or "spot" in bought) and "spot" not in limits.exclude_purchase_options
    moves = wish.zones == "any" and plan["kind"].value != "fleet"
    return IfStated(plan["deadline"].is_null and spot and (moves or wish.fallback == "on_demand"))
