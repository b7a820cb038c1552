"""The screen of a portfolio: what all jobs cost together, when the last one ends, full limits, and the jobs."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.plan.words import enable_first
from planner.render import claims, numbers
from planner.render.model import Column, Section, Value, table_section
from planner.render.precision import dollars, dollars_stated, known_places, moment_known, rounded
from planner.render.screen import Row, Screen, prices_note
from planner.render.words import without_zones

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    _Values = Mapping[str, Any]

NEXT = (
    "portfolio FILE --frontier 5",
    "portfolio FILE -o json --out answer.json",
    "verify answer.json --workload FILE",
)
_MOST_ROWS = 9
_START = 4  # column of the table with the moment from which a job runs
_WHOLE_FROM = 100  # US dollars


def portfolio_screen(
    values: _Values, entries: Sequence[str], dates: Iterable[str], *,
    stuck: Sequence[str], helps: str, why: str, of: str, risk: tuple[str, str] | None = None, beside: str = "",
) -> Screen:  # fmt: skip
    """Return the screen.

    Args:
        values: the machine form of the answer.
        entries: of each job in `values`, the name of its entry of the file: copies are one row.
        dates: of the prices of the offers chosen.
        stuck: jobs that nothing can run.
        helps: what must give way, where not everything fits.
        why: there is no plan, where there is none.
        of: the candidates that the proof is about, with the comma that a sentence goes on after.
        risk: what the worst outcomes cost, and the claim of proof, where the choice counts them.
        beside: what hours of trainings have beside their steps by default.
    """
    totals, jobs, start = values["totals"], values["jobs"], datetime.fromisoformat(values["start"])
    asked = f"{values['name']}: {_asked(entries, totals, start)}"
    rows: list[Row] = [("none", "plan", "none", "text", why)] if why else []
    rows += [("change", "instead", helps, "text", helps)] if helps else []
    proof = _proven(values["proof"], of, why) if risk is None else risk[1]
    if not jobs:
        return Screen(asked, rows, None, (*stuck, *values["notes"]), proof, ("validate FILE",))
    sized = sum(1 for job in jobs if _is_sized(job))
    rows += [
        _plan(jobs, totals, "then" if why else "plan"),
        _cost(totals, sized),
        *_at_worst(values, risk),
        _done(values, start),
        *_limits(values["limits"]),
    ]
    following = NEXT if not why else ("portfolio FILE -v",)
    return Screen(
        asked,
        rows,
        _table(jobs, entries, totals, start, beside),
        (*stuck, *_notes(values, dates)),
        proof,
        following,
    )


def _asked(entries: Sequence[str], totals: _Values, start: datetime) -> str:
    jobs = "1 job" if len(entries) == 1 else f"{len(entries):,} jobs"
    parts = [jobs, f"from {moment_known(start.isoformat(), 0.0, 0)}"]
    if totals.get("budget_usd") is not None:
        parts.append(f"budget {dollars_stated(Decimal(repr(totals['budget_usd'])))}")
    return ", ".join(parts)


def _plan(jobs: Sequence[_Values], totals: _Values, label: str) -> Row:
    running = [job for job in jobs if "nodes" in job]
    owned = sum(1 for job in running if job["owned"])
    count = f"{len(running):,} of {len(jobs):,}" if len(running) < len(jobs) else f"all {len(jobs):,}"
    parts = ["the job runs" if len(running) == len(jobs) == 1 else f"{count} jobs run"]
    if owned:
        parts.append(f"{owned:,} on commitments that are paid already, {len(running) - owned:,} bought")
    if totals["late"]:
        parts.append(f"{totals['late']:,} late")
    if totals["left_out"]:
        parts.append(f"{totals['left_out']:,} left out: not worth their cost, or no capacity")
    text = "; ".join(parts)
    return ("jobs", label, totals["planned"], "count", text)


def _is_sized(job: _Values) -> bool:
    """Whether a job was sized elsewhere: its parts have no cost lines."""
    return any("lines" not in part for part in job.get("parts", ()))


def places(usd: float, half: float = 0.0) -> int:
    """Decimals to which a cost with this half-width is printed."""
    return min(known_places(usd, half), 0 if usd >= _WHOLE_FROM else 2)


def total_as_known(usd: float, totals: _Values) -> str:
    """A total in the digits that the interval of the whole cost leaves."""
    return dollars(Decimal(repr(round(usd, 6))), places(totals["cost_usd"], _half(totals)))


def _half(totals: _Values) -> float:
    """Half of the interval of the whole cost; 0: none is known."""
    low, high = totals["cost_p10_usd"], totals["cost_p90_usd"]
    return 0.0 if low is None else float(high - low) / 2.0


def _known_ratio(totals: _Values) -> float:
    """Half of the interval of the whole cost over it, which is about that of each job; 0: none is known."""
    total = totals["cost_usd"]
    return _half(totals) / total if total else 0.0


def _half_places(usd: float, ratio: float) -> int:
    return places(usd, usd * ratio)


def _cost(totals: _Values, sized: int) -> Row:
    total, low, high = totals["cost_usd"], totals["cost_p10_usd"], totals["cost_p90_usd"]
    if low is None:
        why = "all jobs were sized elsewhere" if sized >= totals["planned"] else "too many different machines"
        parts = [f"{total_as_known(total, totals)} expected", f"no interval: {why}"]
    else:
        shown = [total_as_known(end, totals) for end in (total, low, high)]
        spread = f"{shown[1]} to {shown[2]}, if the errors of all jobs coincide"
        parts = [
            f"{shown[0]} expected",
            "80 %: " + (spread if shown[1] != shown[2] else "the same in the digits shown"),
        ]
        if sized:
            parts.append(f"jobs sized elsewhere ({sized:,}) are assumed to be certain")
    if abs(totals["counted_usd"] - total) >= 0.005:
        counted = total_as_known(totals["counted_usd"], totals)
        parts.append(f"{counted} with delay and lost value (the objective)")
    return ("cost_usd", "cost", total, "usd", "; ".join(parts))


def _at_worst(values: _Values, risk: tuple[str, str] | None) -> list[Row]:
    return [] if risk is None else [("risk", "at worst", values["risk"]["worst_usd"], "usd", risk[0])]


def _done(values: _Values, start: datetime) -> Row:
    ends = [job["end"] for job in values["jobs"] if "end" in job]
    last = max(ends, default=values["start"])
    text = f"{moment_known(last, 1.0, start.year)} the last one, by expected hours"
    if values["deadline_confidence"] is not None:
        each = "each but the late ones" if values["totals"]["late"] else "each"
        text += f"; {each} in time with {numbers.percent(values['deadline_confidence'], 0)} or more"
    return ("end", "done", last, "text", text)


def _limits(limits: Sequence[_Values]) -> list[Row]:
    """Shared limits that are full, which make others wait or buy elsewhere."""
    full: dict[str, str] = {}
    for item in limits:
        room = item["available"] + item["raised"]
        if item["used"] and item["used"] >= room:
            full[item["limit"]] = f"{item['limit']} ({item['used']:,} of {room:,} {item['unit']})"
    if not full:
        return []
    named = list(full.values())
    more = f" and {len(named) - 2:,} more" if len(named) > 2 else ""
    return [("full_limits", "full", len(named), "count", f"{', '.join(named[:2])}{more}")]


def _table(
    jobs: Sequence[_Values], entries: Sequence[str], totals: _Values, start: datetime, beside: str
) -> Section:
    """Jobs, equal copies in one row; the dearest where there are many."""
    groups: dict[tuple[Any, ...], list[_Values]] = {}
    known = _known_ratio(totals)
    for job, entry in zip(jobs, entries, strict=True):
        same = tuple(
            job.get(name) for name in ("nodes", "instance_type", "purchase_option", "provider", "region")
        )
        groups.setdefault((entry, *same), []).append(job)
    ordered = sorted(groups.items(), key=lambda pair: -sum(job["cost_usd"] for job in pair[1]))
    rows = [_row(key[0], copies, start, known) for key, copies in ordered]
    if len(rows) > 1:
        rows.append(
            (
                "total",
                "",
                "",
                "",
                "",
                "",
                rounded(totals["cost_usd"], _half_places(totals["cost_usd"], known)),
            )
        )
    columns = [
        Column("job", "job", "text"), Column("cluster", "machines", "cluster"), Column("option", "bought", "text"),
        Column("place", "where", "place"), Column("start", "from", "text"), Column("end", "until", "text"),
        Column("cost_usd", "cost", "usd_known"),
    ]  # fmt: skip
    if all(datetime.fromisoformat(job["start"]) == start for job in jobs if "start" in job):
        del columns[_START]  # the line above says from when
        rows = [row[:_START] + row[_START + 1 :] for row in rows]
    copies = "copies share a row (--details jobs lists each)" if len(groups) < len(jobs) else ""
    notes = [note] if (note := "; ".join(text for text in (copies, beside) if text)) else []
    return table_section("plan", "Plan", columns, rows, notes, shown=_MOST_ROWS, total=len(rows) > 1)


def _row(entry: str, copies: Sequence[_Values], start: datetime, known: float) -> tuple[Value, ...]:
    first, cost = copies[0], sum(job["cost_usd"] for job in copies)
    name = entry if len(copies) == 1 else f"{entry} x {len(copies)}"
    if "nodes" not in first:
        return (name, first["status"], "", "", "", "", rounded(cost, 0))
    begin, end = min(job["start"] for job in copies), max(job["end"] for job in copies)
    paid = " (owned)" if first["owned"] else ""
    return (
        name, (first["nodes"], first["instance_type"]), without_zones(first["purchase_option"]) + paid,
        (first["provider"], first["region"], ""), moment_known(begin, 1.0, start.year),
        moment_known(end, 1.0, start.year), rounded(cost, _half_places(cost, 0.0 if _is_sized(first) else known)),
    )  # fmt: skip


def _notes(values: _Values, dates: Iterable[str]) -> tuple[str, ...]:
    today = date.fromisoformat(values["created_at"][:10])
    spot = sum(1 for job in values["jobs"] if str(job.get("purchase_option", "")).startswith("spot"))
    text = f"{spot:,} jobs run on spot" if spot != 1 else "1 job runs on spot"
    return (
        *values["notes"],
        *prices_note(dates, today),
        *([f"{text}: needs automatic resume and checkpoints"] if spot else ()),
        *enable_first((job["provider"], job["region"]) for job in values["jobs"] if "region" in job),
        "quotas that neither the portfolio nor a job's file declares are not checked",
    )


def _proven(proof: _Values, of: str, why: str) -> str:
    gap = min(gap for gap in (proof["gap_exact_ratio"], proof["gap_solver_ratio"]) if gap is not None)
    if proof["interrupted"]:
        return f"Interrupted: at most {numbers.percent(gap, 2)} above the least cost {of.rstrip(',')}."
    if why:
        return f"No choice {of} meets every limit; the plan shown meets them after these changes."
    best = f"{claims.best_plan('Cheapest', proof['status'], gap)} {of.rstrip(',')}"
    return f"{best}, proven to {numbers.percent(gap, 2)} in whole numbers. Without taxes and support plans."
