"""A serving fleet as a report."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.render import claims, numbers
from planner.render.model import Answer, Chart, Column, Section, Unit, Value, facts, table_section, versioned
from planner.render.screen import on_screen
from planner.render.words import cluster
from planner.serving.report_speeds import speed_section, speed_values
from planner.serving.screen import HOURS_PER_MONTH, searched, serving_screen

if TYPE_CHECKING:
    from collections.abc import Collection

    from planner.serving.answer import Line, ServingAnswer

_COLUMNS = ("machine", "count", "usd_per_hour_each", "usd_per_hour", "place", "load_ratio", "buckets", "price_source",
            "price_as_of", "purchase_option")  # fmt: skip


def serving_report(answer: ServingAnswer, *, details: Collection[str] = ()) -> Answer:
    """Build the answer in the shape that every format is made of.

    Args:
        answer: the answer.
        details: keys of sections to show in place of the screen, or `all`.
    """
    rows = [_values(line) for line in answer.lines]
    result = answer.result
    single = answer.single_kind
    values: dict[str, Any] = {
        "serving": answer.name, "currency": "USD", "total_usd_per_hour": answer.total_usd_per_hour, "machines": rows,
        "sha256": answer.sha256, "on": answer.on, "catalog": list(answer.sources),
        "headroom_ratio": answer.headroom_ratio, "speeds": speed_values(answer),
        "confidence": answer.confidence if answer.speeds else None, "doubts": list(answer.doubts),
        "buckets_nobody_serves": list(result.unserved),
        "cheapest_single_kind": None if single is None else {"machine": single[0], "usd_per_hour": single[1]},
        "proof": {
            "status": result.status.value, "bound_usd_per_hour": result.bound_usd_per_hour,
            "gap_ratio": round(result.gap, 9),
            "gap_asked_ratio": answer.gap_asked, "solver": result.solver, "seconds": result.seconds,
            "proven": None if answer.proof is None else {
                "bound_usd_per_hour": answer.proof.bound_usd_per_hour, "gap_ratio": answer.proven_gap,
                "tree": list(answer.proof.tree),
            },
        },
    }  # fmt: skip
    if not answer.lines:
        values["changes"] = [change._asdict() for change in answer.changes]
    flat = [{**row, "buckets": "; ".join(f"{k} {v:.4f}" for k, v in row["buckets"].items())} for row in rows]
    title, summary, sections = _said(answer)
    whole = Answer(
        f"Serving fleet {answer.name}", title, summary, sections, versioned(values), _COLUMNS, flat,
        success=bool(answer.lines),
    )  # fmt: skip
    table = sections[0] if answer.lines else None
    screen = serving_screen(answer, table, title.partition(": ")[2], "; ".join(summary))
    return on_screen(whole, screen, details)


def _values(line: Line) -> dict[str, Any]:
    return {
        "machine": line.name, "count": line.count, "usd_per_hour_each": line.price.usd_per_hour,
        "usd_per_hour": line.usd_per_hour, "place": line.price.place, "load_ratio": line.load_ratio,
        "buckets": line.buckets, "price_source": line.price.source, "price_as_of": line.price.as_of,
        "purchase_option": line.price.option,
    }  # fmt: skip


def _said(answer: ServingAnswer) -> tuple[str, tuple[str, ...], tuple[Section, ...]]:
    result = answer.result
    if not answer.lines:
        reason = "the machines allowed cannot carry the load"
        if result.unserved:
            reason = f"no machine serves {', '.join(result.unserved)}"
        elif result.status.value != "infeasible":
            reason = "none was found in time"
        return f"No fleet for {answer.name}: {reason}", (_advice(answer),), (*_speeds(answer), _proof(answer))
    total = answer.total_usd_per_hour
    assert total is not None
    headline = f"{answer.name}: {numbers.usd(total)} per hour ({numbers.usd(total * HOURS_PER_MONTH)} a month of 730 h)"
    summary = []
    if answer.single_kind is not None:
        name, cost = answer.single_kind
        saved = float((cost - total) / cost) if cost else 0.0
        summary.append(f"{numbers.percent(saved)} less than {name} alone at {numbers.usd(cost)} per hour")
    else:
        summary.append("no kind can serve everything alone")
    return headline, tuple(summary), (_machines(answer), *_speeds(answer), _proof(answer))


def _advice(answer: ServingAnswer) -> str:
    if not answer.changes:
        return "raise max_nodes, or add machines or speeds"
    changes = " and ".join(
        f"max_nodes{f' of {one.machine}' if one.machine else ''} {one.now:,} -> {one.needed:,}"
        for one in answer.changes
    )
    if not answer.needed:
        return f"{changes}, or add machines or speeds"
    fleet = " + ".join(cluster(line.count, line.name) for line in answer.needed)
    cost = numbers.usd(sum((line.usd_per_hour for line in answer.needed), Decimal(0)))
    return f"{changes}: {fleet} carry it then, at {cost} per hour; or add machines or speeds"


def _speeds(answer: ServingAnswer) -> tuple[Section, ...]:
    return (speed_section(answer),) if answer.speeds else ()


def _machines(answer: ServingAnswer) -> Section:
    columns: tuple[Column, ...] = (
        Column("machine", "machine", "text"), Column("count", "count", "count"),
        Column("usd_per_hour_each", "each", "usd_price"), Column("usd_per_hour", "per hour", "usd"),
        Column("load_ratio", "busy", "ratio"), Column("buckets", "serves", "text"), Column("place", "place", "text"),
        Column("price_as_of", "price of", "date"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (line.name, line.count, line.price.usd_per_hour, line.usd_per_hour, line.load_ratio, _buckets(line),
         line.price.place, line.price.as_of)
        for line in answer.lines
    ]  # fmt: skip
    names, costs = (
        tuple(line.name for line in answer.lines),
        tuple(float(line.usd_per_hour) for line in answer.lines),
    )
    chart = Chart("cost_by_machine", "", "parts", names, (("per hour", costs),), "usd", "", drawn_only=True)
    drawn = (chart,) if len(names) > 1 else ()
    if any(line.price.option != "on_demand" for line in answer.lines):
        columns = (*columns[:2], Column("purchase_option", "bought", "text"), *columns[2:])
        rows = [(*row[:2], line.price.option, *row[2:]) for row, line in zip(rows, answer.lines, strict=True)]
    return table_section("machines", "Machines", columns, rows, charts=drawn)


def _buckets(line: Line) -> str:
    """What a kind serves: whole buckets by name, parts with their share."""
    parts = sorted(line.buckets.items(), key=lambda item: -item[1])
    words = [name if share > 0.9995 else f"{name} {numbers.percent(share, 0)}" for name, share in parts]
    return ", ".join(words[:6]) + (f" and {len(words) - 6} more" if len(words) > 6 else "")


def _proof(answer: ServingAnswer) -> Section:
    of, result = searched(answer), answer.result
    has_bound = math.isfinite(result.bound_usd_per_hour) and result.status.value != "infeasible"
    bound = Decimal(repr(round(result.bound_usd_per_hour, 6))) if has_bound else None
    proof, gap = answer.proof, answer.proven_gap
    proven: list[tuple[str, str, Value, Unit, str]] = []
    if proof is not None and gap is not None:
        amount = Decimal(repr(proof.bound_usd_per_hour))
        shown = (
            f"no fleet {of} costs less than {numbers.usd(amount)} per hour: `planner verify` checks the proof"
        )
        proven = [
            ("proven_bound_usd_per_hour", "proven", amount, "usd", shown),
            ("proven_gap_ratio", "gap to it", gap, "ratio", numbers.percent(gap, 3)),
        ]
    per_hour = f"{numbers.usd(bound)} per hour"
    text = claims.by_solver(per_hour, of, what="fleet") if has_bound else per_hour
    return facts("proof", "Proof", [
        *proven,
        ("status", "status", result.status.value, "text", claims.state(result.status.value, of, result.gap)),
        ("bound_usd_per_hour", "bound", bound, "usd", text),
        ("gap_ratio", "gap", result.gap, "ratio", numbers.percent(result.gap, 3)),
        ("seconds", "solver", result.seconds, "seconds", f"{result.solver}, {result.seconds:.2f} s"),
    ], detail=True)  # fmt: skip
