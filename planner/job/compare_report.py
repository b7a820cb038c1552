"""A comparison as a report: one row a machine, place or way to buy, with what it is beside the base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.plan.plain import plain
from planner.render import numbers
from planner.render.model import Answer, Column, Section, Value, table_section, versioned
from planner.render.units import three

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.job.compare import Comparison, Row
    from planner.job.compare_prices import PlaceClaim

_FLAT = (
    "row", "base", "provider", "region", "instance_type", "accelerator", "accelerators", "nodes", "purchase_option",
    "throughput_per_s", "unit", "speed_ratio", "cost_usd", "cost_ratio", "hours", "hours_ratio", "finish",
    "p_meet_deadline", "memory_needed_gib", "memory_available_gib", "misses", "price_as_of", "list_gap_ratio",
    "list_gap_types", "reason",
)  # fmt: skip
_NOUNS = {"type": "instance types", "region": "regions", "option": "ways to buy", "provider": "providers"}
_MISSES = {
    "deadline": "too late", "unrecorded": "spot alone without a record, which no deadline may rest on",
    "confidence": "too unsure to be in time", "budget": "over budget", "throughput": "too slow",
    "no_discount": "spot without a discount",
}  # fmt: skip
_SHOWN = 16


def comparison_report(found: Comparison) -> Answer:
    """Build the answer."""
    rows = [_values(row) for row in found.rows]
    values = {
        "workload": found.workload, "over": found.over, "base": found.base, "objective": found.objective,
        "workload_sha256": found.workload_sha256, "created_at": found.created_at, "excluded": found.excluded,
        "catalog": [vars(source) for source in found.sources], "rows": rows,
        "claims": [{**plain(claim), "holds": claim.holds} for claim in found.claims],
    }  # fmt: skip
    flat = [_flat(row, row.name == found.base) for row in found.rows]
    able = any(row.best is not None for row in found.rows)
    sections = [_table(found), *_list_prices(found), *_spot(found), *_claims(found.claims)]
    return Answer(
        f"{_NOUNS[found.over].capitalize()} compared for {found.workload}", _title(found), _summary(found),
        tuple(sections), versioned(values), _FLAT, flat, success=able,
    )  # fmt: skip


def _values(row: Row) -> dict[str, Any]:
    out: dict[str, Any] = plain(row)
    return {"row": out.pop("name"), **out}


def _flat(row: Row, is_base: bool) -> dict[str, Any]:
    best, speed, gap = row.best, row.performance, row.list_gap
    out: dict[str, Any] = dict.fromkeys(_FLAT)
    out |= {"row": row.name, "base": is_base, "misses": ";".join(row.misses), "reason": row.reason}
    out |= {"finish": row.finish, "p_meet_deadline": row.p_meet_deadline}
    out |= {name: getattr(row, name) for name in ("speed_ratio", "cost_ratio", "hours_ratio")}
    if best is not None and speed is not None:
        out |= {name: getattr(best, name) for name in _FLAT if hasattr(best, name)}
        out |= {name: getattr(speed, name) for name in _FLAT if hasattr(speed, name)}
    if gap is not None:
        out |= {"list_gap_ratio": gap.median_ratio, "list_gap_types": gap.types}
    return out


def _title(found: Comparison) -> str:
    kept = [row for row in found.rows if row.best is not None and not row.misses]
    if not kept:
        able = [row for row in found.rows if row.best is not None]
        what = "keeps every limit" if able else "can run the job"
        return f"None of the {len(found.rows)} {_NOUNS[found.over]} compared {what}"
    by_cost = found.objective == "cost"
    best = min(kept, key=lambda row: _by(row, by_cost))
    assert best.best is not None
    title = f"{best.name} is {'cheapest' if by_cost else 'soonest'}: {numbers.usd(best.best.cost_usd)}"
    title += f" in {numbers.hours(best.best.hours)} h"
    others = [row for row in kept if row is not best]
    if others:
        second = min(others, key=lambda row: _by(row, by_cost))
        assert second.best is not None
        more = float(second.best.cost_usd / best.best.cost_usd) - 1.0 if best.best.cost_usd else None
        title += f"; next {second.name} at {numbers.usd(second.best.cost_usd)}"
        title += "" if more is None else f" ({more * 100:+.1f} %)"
    return title


def _by(row: Row, by_cost: bool) -> float:
    assert row.best is not None
    return float(row.best.cost_usd) if by_cost else row.best.hours


def _summary(found: Comparison) -> tuple[str, ...]:
    text = "Each row is what `planner optimize` answers for the file, limited to that row."
    if found.base:
        text += f" Changes are to {found.base}."
    return (text,)


def _table(found: Comparison) -> Section:
    columns = (
        Column("row", "", "text"), Column("nodes", "x", "count"),
        *([] if found.over == "type" else [Column("instance_type", "type", "text")]),
        *([] if found.over == "option" else [Column("option", "bought", "text")]),
        Column("cost", "cost", "usd_rounded"), Column("cost_change", "cost %", "percent_change"),
        Column("hours", "h", "hours"), Column("speed_change", "speed %", "percent_change"),
        Column("in_time", "in time", "chance"), Column("memory", "GiB", "text"), Column("prices", "prices of", "date"),
    )  # fmt: skip
    rows = [_row(row, found) for row in found.rows]
    notes = [_miss_note(found)] if any(row.misses for row in found.rows) else []
    if found.excluded:
        notes.append(
            f"{found.excluded} more {_NOUNS[found.over]} cannot run this job within the file's other limits"
        )
    notes.append("GiB: needed and usable in each accelerator; h: expected; cost at expected prices")
    unit = next((row.performance.unit for row in found.rows if row.performance), "")
    speeds = [(row.name, row.performance) for row in found.rows[:_SHOWN] if row.performance]
    if unit and len(speeds) <= 4:
        notes += [
            f"{name}: {three(speed.throughput_per_s)} {unit}/s "
            f"(80 %: {three(speed.throughput_low_per_s)} to {three(speed.throughput_high_per_s)})"
            for name, speed in speeds
        ]
    return table_section("rows", "Comparison", columns, rows, notes, shown=_SHOWN)


def _row(row: Row, found: Comparison) -> tuple[Value, ...]:
    best, speed = row.best, row.performance
    name = f"{row.name} *" if row.misses else row.name
    named = [key for key in ("type", "option") if key != found.over]
    if best is None or speed is None:
        said = [row.reason, *[""] * (len(named) - 1)]
        return (name, None, *said, None, None, None, None, None, "", "")
    memory = ""
    if speed.memory_needed_gib is not None and speed.memory_available_gib is not None:
        memory = f"{speed.memory_needed_gib:.0f}/{speed.memory_available_gib:.0f}"
    words = {"type": best.instance_type, "option": best.purchase_option}
    changes = [
        None if row.name == found.base or ratio is None else ratio - 1.0
        for ratio in (row.cost_ratio, row.speed_ratio)
    ]
    return (
        name, best.nodes, *(words[key] for key in named), best.cost_usd, changes[0], best.hours, changes[1],
        row.p_meet_deadline, memory, best.price_as_of,
    )  # fmt: skip


def _miss_note(found: Comparison) -> str:
    missed = dict.fromkeys(_MISSES[key] for row in found.rows for key in row.misses)
    return f"* breaks a limit ({'; '.join(missed)}): nothing of that row keeps all of them"


def _list_prices(found: Comparison) -> list[Section]:
    rows = [(row.name, gap.median_ratio, gap.low_ratio, gap.high_ratio, gap.types, gap.as_of)
            for row in found.rows if (gap := row.list_gap)]  # fmt: skip
    if not rows:
        return []
    columns = (
        Column("region", "region", "text"), Column("median", "median", "percent_change"),
        Column("low", "least", "percent_change"), Column("high", "most", "percent_change"),
        Column("types", "types in both", "count"), Column("as_of", "oldest price", "date"),
    )  # fmt: skip
    title = f"On-demand list prices against {found.base}, whatever the job"
    return [table_section("list_prices", title, columns, rows, shown=_SHOWN, detail=True)]


def _spot(found: Comparison) -> list[Section]:
    rows = [
        (row.name, spot.list_median_ratio, spot.high_share, spot.rows, spot.cost_usd, spot.on_demand_usd,
         spot.saved_ratio, spot.p_meet_deadline)
        for row in found.rows if (spot := row.spot) and (spot.rows or spot.saved_ratio is not None)
    ]  # fmt: skip
    if not rows:
        return []
    columns = (
        Column("provider", "provider", "text"), Column("list", "list saving", "ratio", 0),
        Column("high", "rows >= 70 %", "ratio", 0), Column("rows", "rows", "count"),
        Column("spot", "job, spot", "usd_rounded"), Column("steady", "on-demand", "usd_rounded"),
        Column("saved", "job saves", "ratio", 0), Column("chance", "in time", "chance"),
    )  # fmt: skip
    notes = (
        "list saving: 1 - quoted spot / on-demand, median over types and regions that have both prices",
        "job: the cheapest way with spot (a fall-back included) beside on-demand alone, at expected prices",
    )
    return [table_section("spot", "What spot saves", columns, rows, notes)]


def _claims(claims: Sequence[PlaceClaim]) -> list[Section]:
    sentences = []
    for claim in claims:
        gap = claim.gap
        sentences.append(
            f"Claim: {claim.words}. On-demand in {claim.region} is {gap.median_ratio * 100:+.1f} % against "
            f"{claim.base} in the median of {gap.types} types (prices of {gap.as_of}): the claim "
            f"{'holds' if claim.holds else 'does not hold'}."
        )
    return [Section("claims", "A common claim", tuple(sentences))] if sentences else []
