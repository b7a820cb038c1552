"""A comparison as a report: one row a machine, place or way to buy, with what it is beside the base."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from planner.job.compare_notes import miss_note, owed_notes, speed_note
from planner.plan.front_scale import cost_places
from planner.plan.plain import plain
from planner.plan.report_storage import KINDS as STORAGE_KINDS
from planner.plan.words import beside_steps, enable_first, places_of
from planner.render import units
from planner.render.model import (
    Answer,
    Column,
    Section,
    Unit,
    Value,
    facts,
    next_steps,
    table_section,
    versioned,
)
from planner.render.precision import dollars, moment_known, rounded
from planner.render.screen import has_room
from planner.render.words import cluster, place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.job.compare import Comparison, Row
    from planner.job.compare_prices import PlaceClaim

_FLAT = (
    "row", "base", "provider", "region", "instance_type", "accelerator", "accelerators", "nodes", "purchase_option",
    "throughput_per_s", "unit", "speed_ratio", "cost_usd", "cost_ratio", "storage_usd", "data_in",
    "hours", "hours_ratio", "finish", "operational_kgco2e", "energy_kwh",
    "p_meet_deadline", "memory_needed_gib", "memory_available_gib", "misses", "price_as_of", "list_gap_ratio",
    "list_gap_types", "reason",
)  # fmt: skip
_OF_ROW = ("speed_ratio", "cost_ratio", "hours_ratio", "storage_usd", "data_in")
_NOUNS = {"type": "instance types", "region": "regions", "option": "ways to buy", "provider": "providers"}
_SHOWN, _SHOWN_BRIEF, _FEW = 16, 12, 6
# columns of the plan's that emissions and long names take, or lines of what stands below the table
_NARROWER = 19


def comparison_report(comparison: Comparison) -> Answer:
    """Build the answer."""
    rows = [_values(row) for row in comparison.rows]
    values = {
        "workload": comparison.workload,
        "over": comparison.over,
        "base": comparison.base,
        "objective": comparison.objective,
        "workload_sha256": comparison.workload_sha256,
        "created_at": comparison.created_at,
        "excluded": comparison.excluded,
        "catalog": [vars(source) for source in comparison.sources],
        "rows": rows,
        "claims": [{**plain(claim), "holds": claim.holds} for claim in comparison.claims],
    }
    flat = [_flat(row, row.name == comparison.base) for row in comparison.rows]
    able = any(row.best is not None for row in comparison.rows)
    # the lists of all regions are no part of the comparison of this job: pages and files hold them
    beside = (*_claims(comparison.claims), *_spot(comparison))
    sections = [_table(comparison), *beside, *_list_prices(comparison)]
    # of a screen, the claims on the place that it compares with
    near = [claim for claim in comparison.claims if comparison.base in (claim.region, claim.base)]
    screen = (_brief_table(comparison), *_claims(near), *_spot(comparison), _next(comparison))
    return Answer(
        f"{_NOUNS[comparison.over].capitalize()} compared for {comparison.workload}",
        _title(comparison),
        (),
        tuple(sections),
        versioned(values),
        _FLAT,
        flat,
        success=able,
        front=screen,
    )


def _values(row: Row) -> dict[str, Any]:
    out: dict[str, Any] = plain(row)
    return {"row": out.pop("name"), **out}


def _flat(row: Row, is_base: bool) -> dict[str, Any]:
    best, speed, gap = row.best, row.performance, row.list_gap
    out: dict[str, Any] = dict.fromkeys(_FLAT)
    out |= {"row": row.name, "base": is_base, "misses": ";".join(row.misses), "reason": row.reason}
    out |= {"finish": row.finish, "p_meet_deadline": row.p_meet_deadline}
    out |= {name: getattr(row, name) for name in _OF_ROW}
    if best is not None and speed is not None:
        out |= {name: getattr(best, name) for name in _FLAT if hasattr(best, name)}
        out |= {name: getattr(speed, name) for name in _FLAT if hasattr(speed, name)}
    if gap is not None:
        out |= {"list_gap_ratio": gap.median_ratio, "list_gap_types": gap.types}
    return out


def _title(comparison: Comparison) -> str:
    kept = [row for row in comparison.rows if row.best is not None and not row.misses]
    if not kept:
        able = [row for row in comparison.rows if row.best is not None]
        what = "meets every limit" if able else "can run the job"
        return f"None of the {len(comparison.rows)} {_NOUNS[comparison.over]} compared {what}"
    best = min(kept, key=lambda row: _by(row, comparison.objective))
    assert best.best is not None
    title = f"{best.name} is {_FIRST[comparison.objective]}: {_usd(comparison, best)}, done {_done(comparison, best)}"
    others = [row for row in kept if row is not best]
    if others:
        second = min(others, key=lambda row: _by(row, comparison.objective))
        assert second.best is not None
        least, other = (_by(row, comparison.objective) for row in (best, second))
        title += f"; next {second.name} at {_usd(comparison, second)}"
        if least and isfinite(least) and isfinite(other):
            title += f" ({_percent(other / least - 1.0)}{_OF[comparison.objective]})"
    return title


def _percent(change: float) -> str:
    return units.change(change, 0) if abs(change) >= 0.005 else "nearly the same"


def _noun(comparison: Comparison) -> str:
    """What is compared, for the number of those left out."""
    noun = _NOUNS[comparison.over]
    return noun if comparison.excluded != 1 else noun.replace("ways", "way").removesuffix("s")


def _usd(comparison: Comparison, row: Row) -> str:
    assert row.best is not None
    return dollars(row.best.cost_usd, cost_places(row.best.cost_usd, comparison.usd_ratio))


def _done(comparison: Comparison, row: Row) -> str:
    """When a row is done, as well as it is known."""
    assert row.best is not None and row.finish is not None
    year = datetime.fromisoformat(comparison.created_at).year
    return moment_known(row.finish, comparison.hours_ratio * row.best.hours, year)


_FIRST = {"cost": "cheapest", "time": "soonest", "carbon": "the least kgCO2e"}
_OF = {"cost": "", "time": " hours", "carbon": " kgCO2e"}


def _by(row: Row, objective: str) -> float:
    assert row.best is not None
    if objective == "carbon":
        return inf if row.best.operational_kgco2e is None else row.best.operational_kgco2e
    return float(row.best.cost_usd) if objective == "cost" else row.best.hours


_LIMITS = {
    "region": "constraints.regions=[{}]", "provider": "constraints.providers=[{}]",
    "type": "constraints.instance_types.allow=[{}]", "option": "constraints.purchase_options=[{}]",
}  # fmt: skip


def _next(comparison: Comparison) -> Section:
    kept = [row for row in comparison.rows if row.best is not None and not row.misses]
    if not kept:
        return next_steps("next: planner explain FILE")
    best = min(kept, key=lambda row: _by(row, comparison.objective))
    name = "spot, on_demand" if best.name == "spot, else on_demand" else best.name
    limit = _LIMITS[comparison.over].format(name)
    return next_steps(f'next: planner optimize FILE --set "{limit}"; planner explain FILE')


def _table(comparison: Comparison) -> Section:
    columns = (
        Column("row", "", "text"), Column("nodes", "x", "count"),
        *([] if comparison.over == "type" else [Column("instance_type", "type", "text")]),
        *([] if comparison.over == "option" else [Column("option", "bought", "text")]),
        Column("cost", "cost", "usd_known"), Column("cost_change", "change", "percent_change", 0),
        Column("storage", "storage", "usd"), Column("data_in", "data in", "text"),
        Column("done", "done", "date"), Column("speed_change", "speed", "percent_change", 0),
        Column("in_time", "in time", "chance"), Column("memory", "GiB", "text"), Column("prices", "prices of", "date"),
        *_kg_column(comparison),
    )  # fmt: skip
    rows = [(*_row(row, comparison), *_kg(row, comparison)) for row in comparison.rows]
    return table_section("rows", "Comparison", columns, rows, _notes(comparison), shown=_SHOWN)


def _row(row: Row, comparison: Comparison) -> tuple[Value, ...]:
    best, speed = row.best, row.performance
    name = f"{row.name} *" if row.misses else row.name
    named = [key for key in ("type", "option") if key != comparison.over]
    if best is None or speed is None:
        said = [row.reason, *[""] * (len(named) - 1)]
        return (name, "", *said, *[""] * 9)
    memory = ""
    if speed.memory_needed_gib is not None and speed.memory_available_gib is not None:
        memory = f"{speed.memory_needed_gib:.0f}/{speed.memory_available_gib:.0f}"
    words = {"type": best.instance_type, "option": best.purchase_option}
    changes = [
        "" if row.name == comparison.base or ratio is None else ratio - 1.0
        for ratio in (row.cost_ratio, row.speed_ratio)
    ]
    return (
        name, best.nodes, *(words[key] for key in named),
        rounded(best.cost_usd, cost_places(best.cost_usd, comparison.usd_ratio)), changes[0], row.storage_usd,
        STORAGE_KINDS[row.data_in] if row.data_in else "", _done(comparison, row), changes[1],
        row.p_meet_deadline, memory, best.price_as_of,
    )  # fmt: skip


def _brief_table(comparison: Comparison) -> Section:
    """The table in the room of a terminal: what is bought in one cell, memory and dates of prices below."""
    columns = (
        Column("row", "", "text"), Column("plan", "plan", "text"), Column("cost", "cost", "usd_known"),
        Column("cost_change", "change", "percent_change", 0), Column("done", "done", "date"),
        Column("speed_change", "speed", "percent_change", 0), Column("in_time", "in time", "chance"),
        *_kg_column(comparison),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    shown = _fitting(comparison)
    for row in comparison.rows:
        if row.best is None:
            rows.append((row.name, row.reason, "", "", "", "", "", *_kg(row, comparison)))
            continue
        name, *_, cost, change, _, _, done, speed, in_time, _, _ = _row(row, comparison)
        rows.append(
            (
                name,
                _bought(row, comparison.over),
                cost,
                change,
                done,
                speed,
                in_time,
                *_kg(row, comparison, brief=True),
            )
        )
    return table_section("rows", "Comparison", columns, rows, _notes(comparison, brief=True), shown=shown)


def _fitting(comparison: Comparison) -> int:
    """Rows for which a screen has room, where plans take several lines."""
    texts = [
        row.reason if row.best is None else _bought(row, comparison.over)
        for row in comparison.rows[:_SHOWN_BRIEF]
    ]
    narrow = _NARROWER if _kg_column(comparison) or _spot(comparison) else 0
    return next(
        (count for count in range(len(texts), 3, -1) if has_room(texts[:count], narrow)), len(texts[:3])
    )


def _kg_column(comparison: Comparison) -> list[Column]:
    """Emissions where they are what differs: between regions, or where least is asked for."""
    return (
        [Column("kgco2e", "kgCO2e", "number")]
        if comparison.over == "region" or comparison.objective == "carbon"
        else []
    )


def _kg(row: Row, comparison: Comparison, *, brief: bool = False) -> tuple[Value, ...]:
    """Emissions of a row, where there is a column of them; on a screen with two digits: grids are known no better."""
    if not _kg_column(comparison):
        return ()
    kg = None if row.best is None else row.best.operational_kgco2e
    if kg is None:
        return ("" if row.best is None else "unknown",)
    return (float(f"{kg:.2g}") if brief else kg,)


def _bought(row: Row, over: str) -> str:
    """The plan of a row without what its name says already."""
    assert row.best is not None
    best = row.best
    parts = {
        "type": cluster(best.nodes, best.instance_type), "option": best.purchase_option,
        "provider": best.region if over == "provider" else place(best.provider, best.region, ""),
    }  # fmt: skip
    if over == "type":
        parts["type"] = "1 node" if best.nodes == 1 else f"{best.nodes:,} nodes"
    left_out = {"option": "option", "region": "provider"}.get(over)
    return ", ".join(text for key, text in parts.items() if key != left_out and text)


def _notes(comparison: Comparison, *, brief: bool = False) -> list[str]:
    """What stands below the table."""
    shown = comparison.rows[: _fitting(comparison) if brief else _SHOWN]
    # pages have every row, also those that a terminal leaves out
    notes = [miss_note(comparison.rows)] if any(row.misses for row in comparison.rows) else []
    if comparison.excluded:
        notes.append(
            f"{comparison.excluded} more {_noun(comparison)} cannot run this job within the file's other limits"
        )
    if comparison.base:
        said = f"changes are relative to {comparison.base}; each row is the plan of the file restricted to that row"
        notes.append(f"{said}: none moves between regions" if comparison.over == "region" else said)
    notes += owed_notes(shown)
    notes += enable_first(places_of(row.best for row in shown if row.best is not None))
    if _kg_column(comparison):
        notes.append("kgCO2e: expected, of the electricity; grids differ in basis and year (docs/carbon.md)")
    notes += comparison.assumed
    able = [row for row in shown if row.performance and row.best]
    if able and (beside := beside_steps(comparison.beside_steps_ratio)):
        notes.append(f"speed is that of the steps; {beside}")
    if brief and len(able) <= _FEW:
        return notes + [speed_note(row) for row in able]
    if brief and able:
        dates = sorted(row.best.price_as_of for row in able if row.best)
        notes.append(
            f"prices of {dates[0]} to {dates[-1]}; memory and the date of each row: -o csv, md or html"
        )
    return notes if brief else [*notes, "cost at expected prices; GiB: needed and usable in each accelerator"]


def _list_prices(comparison: Comparison) -> list[Section]:
    rows = [(row.name, gap.median_ratio, gap.low_ratio, gap.high_ratio, gap.types, gap.as_of)
            for row in comparison.rows if (gap := row.list_gap)]  # fmt: skip
    if not rows:
        return []
    columns = (
        Column("region", "region", "text"), Column("median", "median", "percent_change"),
        Column("low", "least", "percent_change"), Column("high", "most", "percent_change"),
        Column("types", "types in both", "count"), Column("as_of", "oldest price", "date"),
    )  # fmt: skip
    title = f"On-demand list prices against {comparison.base}, whatever the job"
    return [table_section("list_prices", title, columns, rows, shown=_SHOWN, detail=True)]


def _spot(comparison: Comparison) -> list[Section]:
    rows = [
        (row.name, spot.list_median_ratio, spot.high_share, spot.rows, _known(comparison, spot.cost_usd),
         _known(comparison, spot.on_demand_usd), spot.saved_ratio, spot.p_meet_deadline)
        for row in comparison.rows if (spot := row.spot) and (spot.rows or spot.saved_ratio is not None)
    ]  # fmt: skip
    if not rows:
        return []
    columns = (
        Column("provider", "provider", "text"), Column("list", "list saving", "ratio", 0),
        Column("high", "rows >= 70 %", "ratio", 0), Column("rows", "rows", "count"),
        Column("spot", "job, spot", "usd_known"), Column("steady", "on-demand", "usd_known"),
        Column("saved", "job saves", "ratio", 0), Column("chance", "in time", "chance"),
    )  # fmt: skip
    notes = (
        "list saving: 1 - quoted spot / on-demand, median over types and regions that have both prices",
        "job: the cheapest option with spot (including a fall-back) compared with on-demand alone, at expected prices",
    )
    return [table_section("spot", "What spot saves", columns, rows, notes)]


def _known(comparison: Comparison, usd: float | None) -> Decimal | None:
    """A cost rounded to what is known of costs here."""
    return None if usd is None else rounded(usd, cost_places(usd, comparison.usd_ratio))


def _claims(claims: Sequence[PlaceClaim]) -> list[Section]:
    rows: list[tuple[str, str, Value, Unit, str]] = []
    for claim in claims:
        gap, low, high = claim.gap, claim.claimed_low_ratio, claim.claimed_high_ratio
        said = sorted(abs(end) * 100 for end in (low, high))
        way = "cheaper" if high <= 0 else "more expensive"
        verdict = "holds" if claim.holds else "does not hold"
        text = (
            f"{claim.region} against {claim.base}, on-demand: {gap.median_ratio * 100:+.1f} % in the median of "
            f"{gap.types} types (prices of {gap.as_of}); the claim of {said[0]:.0f}-{said[1]:.0f} % {way} "
            f"({claim.words}) {verdict}"
        )
        rows.append((f"claim_{claim.region}", "claim", gap.median_ratio, "percent_change", text))
    return [facts("claims", "A common claim", rows)] if rows else []
