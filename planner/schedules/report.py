"""A schedule as a report."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.render import claims, numbers
from planner.render.model import Answer, Chart, Column, Section, Value, facts, table_section, versioned
from planner.render.screen import on_screen
from planner.schedules.screen import OF, PARTS, paused_hours, schedule_screen, usd_known

if TYPE_CHECKING:
    from collections.abc import Collection

    from planner.schedules.answer import Copy, Interval, JobLine, ScheduleAnswer, WayOut
    from planner.schedules.relaxation import Remedy

MOST_ROWS = 60  # of the people's table; programs get all
_COLUMNS = (
    "row", "job", "pool", "provider", "region", "instance_type", "purchase_option", "from", "until", "start_hour",
    "end_hour", "nodes", "nodes_started", "work", "size_gb", "kept_hours",
    "cost_usd", "transfer_basis", "storage_basis", "price_as_of",
)  # fmt: skip


def schedule_report(answer: ScheduleAnswer, *, details: Collection[str] = ()) -> Answer:
    """Build the answer in the shape that every format is made of.

    Args:
        answer: the answer.
        details: keys of sections to show in place of the screen, or `all`.
    """
    intervals = [_interval_values(answer, item) for item in answer.intervals]
    copies = [_copy_values(item) for item in answer.copies]
    result = answer.result
    missing = [{"job": name, "missing": lack, "work": work} for name, lack, work in answer.missing]
    values: dict[str, Any] = {
        "schedule": answer.name, "status": "planned" if answer.intervals else result.status.value,
        "start": answer.start.isoformat(), "forecast_hours": answer.n_hours, "work_unit": answer.work_unit,
        "sha256": answer.sha256, "currency": "USD", "total_usd": answer.total_usd, "cost_parts_usd": answer.parts_usd,
        "intervals": intervals, "copies": copies, "jobs": [_job_values(job) for job in answer.jobs],
        "missing_work_at_best": missing, "ways_out": [_way_values(way) for way in answer.ways_out],
        "proof": {
            "status": result.status.value, "bound_usd": result.bound_usd, "gap_ratio": round(result.gap, 9),
            "gap_asked_ratio": answer.gap_asked, "solver": result.solver, "seconds": result.seconds,
        },
    }  # fmt: skip
    rows = [{"row": "run", **row} for row in intervals]
    rows += [{"row": "copy", **row, "cost_usd": row["transfer_usd"] + row["storage_usd"]} for row in copies]
    title, summary, sections = _said(answer) if answer.intervals else _nothing(answer)
    whole = Answer(
        f"Schedule {answer.name}", title, summary, sections, versioned(values), _COLUMNS, rows,
        success=bool(answer.intervals),
    )  # fmt: skip
    return on_screen(whole, schedule_screen(answer, title.partition(": ")[2], summary), details)


def _moment(answer: ScheduleAnswer, hour: int) -> str:
    return (answer.start + timedelta(hours=hour)).isoformat()


def _interval_values(answer: ScheduleAnswer, one: Interval) -> dict[str, Any]:
    pool = one.pool
    return {
        "job": one.job, "pool": pool.name, "provider": pool.provider, "region": pool.region,
        "instance_type": pool.instance_type or "", "purchase_option": pool.purchase_option,
        "from": _moment(answer, one.start_hour), "until": _moment(answer, one.end_hour),
        "start_hour": one.start_hour, "end_hour": one.end_hour, "nodes": one.nodes, "nodes_started": one.started,
        "work": one.work, "cost_usd": one.usd,
    }  # fmt: skip


def _copy_values(one: Copy) -> dict[str, Any]:
    provider, _, region = one.region.partition("/")
    return {
        "job": one.job, "provider": provider, "region": region, "size_gb": one.size_gb,
        "transfer_usd": one.transfer_usd, "storage_usd": one.storage_usd, "kept_hours": one.kept_hours,
        "ready_hour": one.ready_hour, "transfer_basis": one.transfer_basis,
        "storage_basis": one.storage_basis, "price_as_of": one.price_as_of,
    }  # fmt: skip


def _job_values(job: JobLine) -> dict[str, Any]:
    return {"job": job.name, "work": job.work, "work_done": job.done, "cost_usd": job.usd, "end_hour": job.end_hour,
            "deadline_hour": job.deadline_hour}  # fmt: skip


def _way_values(way: WayOut) -> dict[str, Any]:
    remedy = way.remedy
    return {"kind": remedy.kind, "target": remedy.target, "amount": remedy.amount, "total_usd": way.usd}


_Said = tuple[str, tuple[str, ...], tuple[Section, ...]]


def _said(answer: ScheduleAnswer) -> _Said:
    total = answer.total_usd
    assert total is not None
    end = max(job.end_hour for job in answer.jobs)
    title = (
        f"{answer.name}: {numbers.usd(total)}, done {numbers.moment(_moment(answer, end))}"
        f" ({end:,} h from the start{numbers.days_of(end)})"
    )
    paused = paused_hours(answer)
    used = len({interval.pool.name for interval in answer.intervals})
    summary = f"{used} pool{'s' if used != 1 else ''} used" + (f"; paused for {paused:,} h" if paused else "")
    parts = [
        *((name, PARTS[name], usd) for name, usd in answer.parts_usd.items() if usd),
        ("total", "total", total),
    ]
    costs = facts(
        "cost", "Cost", [(f"{key}_usd", label, usd, "usd", numbers.usd(usd)) for key, label, usd in parts]
    )
    moved = (_moved(answer),) if answer.copies else ()
    return title, (summary,), (_runs(answer), costs, *moved, _work(answer), _proof(answer))


def _runs(answer: ScheduleAnswer) -> Section:
    several = len(answer.jobs) > 1
    rows: list[tuple[Value, ...]] = [
        (run.job if several else "", _moment(answer, run.start_hour), run.hours, run.pool.name, run.nodes,
         (run.pool.provider, run.pool.region, ""), run.pool.instance_type or "", run.pool.purchase_option, run.usd)
        for run in answer.intervals
    ]  # fmt: skip
    columns = (
        Column("job", "job", "text"), Column("from", "from (UTC)", "moment_short"), Column("hours", "hours", "count"),
        Column("pool", "pool", "text"), Column("nodes", "nodes", "count"), Column("place", "place", "place"),
        Column("instance_type", "type", "text"), Column("purchase_option", "bought", "text"),
        Column("cost_usd", "cost", "usd"),
    )  # fmt: skip
    names = tuple(f"{run.job}: {run.pool.name}" if several else run.pool.name for run in answer.intervals)
    series = (
        ("start", tuple(float(run.start_hour) for run in answer.intervals)),
        ("end", tuple(float(run.end_hour) for run in answer.intervals)),
    )
    chart = Chart(
        "time_line", "", "spans", names, series, "hours", "When and where jobs run.", drawn_only=True
    )
    return table_section("runs", "Runs", columns, rows, shown=MOST_ROWS, charts=(chart,))


def _moved(answer: ScheduleAnswer) -> Section:
    rows = [
        (
            copy.job,
            copy.region,
            copy.size_gb,
            copy.transfer_usd,
            copy.storage_usd,
            copy.kept_hours,
            _stand_ins(copy),
        )
        for copy in answer.copies
    ]
    columns = (
        Column("job", "job", "text"), Column("region", "copy at", "text"), Column("size_gb", "size", "gb"),
        Column("transfer_usd", "transfer", "usd"), Column("storage_usd", "storage", "usd"),
        Column("kept_hours", "kept h", "count"), Column("not_known", "price not known", "text"),
    )  # fmt: skip
    notes = ("where a price is not known another is used for it",) if any(row[-1] for row in rows) else ()
    return table_section("data", "Data", columns, rows, notes)


def _stand_ins(copy: Copy) -> str:
    """Which of a copy's prices are not the place's own."""
    bases = {"transfer": copy.transfer_basis, "storage": copy.storage_basis}
    return ", ".join(name for name, basis in bases.items() if basis != "list")


def _work(answer: ScheduleAnswer) -> Section:
    columns = (
        Column("job", "job", "text"), Column("work", "work done", "of"), Column("cost_usd", "cost", "usd"),
        Column("end_hour", "end h", "count"), Column("deadline_hour", "deadline h", "count"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (job.name, (job.done, job.work, answer.work_unit), job.usd, job.end_hour, job.deadline_hour)
        for job in answer.jobs
    ]
    return table_section("work", "Work", columns, rows)


def _nothing(answer: ScheduleAnswer) -> _Said:
    if answer.explanation is None:
        advice = ("give it more time with --time-limit, or a wider --gap",)
        return f"No schedule for {answer.name}: none was found in time", advice, (_proof(answer),)
    lines = [
        f"{name}: {numbers.number(missing, 6)} of {numbers.number(work, 6)} {answer.work_unit} cannot be done"
        for name, missing, work in answer.missing
        if missing > 0
    ]
    lines += [_way(way) for way in answer.ways_out]
    if not answer.explanation.in_time:
        lines.append(
            "smaller or other changes may help: not all were tried within the time limit (--time-limit)"
        )
    elif not answer.ways_out:
        lines.append(
            "no single change tried of a deadline, a pool or max_nodes helps: less work, or a longer forecast"
        )
    headline = (
        f"No schedule for {answer.name}: the work does not fit into the forecast's pools before the deadline"
    )
    return headline, tuple(lines), (_proof(answer),)


def _way(way: WayOut) -> str:
    remedy = way.remedy
    words = {
        "later": f"deadlines {remedy.amount:,} h later",
        "available": f"{_nodes(remedy)} in every hour that the forecast offers it",
        "max_nodes": f"max_nodes of {remedy.target} {remedy.amount:,} higher",
        "both": f"{_nodes(remedy)} in each hour, and max_nodes {remedy.amount:,} higher",
    }[remedy.kind]
    cost = f": {usd_known(Decimal(repr(round(way.usd, 6))))}" if way.usd is not None else ""
    return f"it fits with {words}{cost}"


def _nodes(remedy: Remedy) -> str:
    return f"{remedy.amount:,} more node{'' if remedy.amount == 1 else 's'} of pool {remedy.target}"


def _proof(answer: ScheduleAnswer) -> Section:
    result = answer.result
    has_bound = math.isfinite(result.bound_usd)
    bound = Decimal(repr(round(result.bound_usd, 6))) if has_bound else None
    text = claims.by_solver(numbers.usd(bound), OF, what="schedule") if has_bound else numbers.usd(bound)
    return facts("proof", "Proof", [
        ("status", "status", result.status.value, "text", claims.state(result.status.value, OF, result.gap)),
        ("bound_usd", "bound", bound, "usd", text),
        ("gap_ratio", "gap", result.gap, "ratio", numbers.percent(result.gap, 3)),
        ("seconds", "solver", result.seconds, "seconds", f"{result.solver}, {result.seconds:.2f} s"),
    ], detail=True)  # fmt: skip
