"""A schedule as a report."""

from __future__ import annotations

import math
from datetime import UTC, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.render import numbers
from planner.render.document import Block, Document, Facts, Grid, without_empty
from planner.render.report import Report

if TYPE_CHECKING:
    from planner.schedules.answer import Copy, Interval, JobLine, ScheduleAnswer, WayOut

MOST_ROWS = 60  # of the people's table; programs get all
_COLUMNS = (
    "row", "job", "pool", "provider", "region", "instance_type", "purchase_option", "from", "until", "start_hour",
    "end_hour", "nodes", "nodes_started", "work", "size_gb", "kept_hours",
    "cost_usd", "transfer_basis", "storage_basis", "price_as_of",
)  # fmt: skip
_PARTS = {"nodes": "nodes", "starts": "starts", "copies": "data moved", "storage": "copies kept"}


def schedule_report(answer: ScheduleAnswer) -> Report:
    """Build the report."""
    intervals = [_interval_values(answer, one) for one in answer.intervals]
    copies = [_copy_values(one) for one in answer.copies]
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
    return Report(_document(answer), values, _COLUMNS, rows)


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


def _document(answer: ScheduleAnswer) -> Document:
    if not answer.intervals:
        return _nothing(answer)
    total = answer.total_usd
    assert total is not None
    end = max(job.end_hour for job in answer.jobs)
    headline = (
        f"{answer.name}: {numbers.usd(total)}, done {numbers.moment(_moment(answer, end))}"
        f" ({end:,} h from the start{numbers.days_of(end)})"
    )
    paused = _paused(answer)
    used = len({one.pool.name for one in answer.intervals})
    summary = [
        f"{used} pool{'s' if used != 1 else ''} used" + (f"; paused for {paused:,} h" if paused else "")
    ]
    parts = tuple((_PARTS[name], numbers.usd(usd)) for name, usd in answer.parts_usd.items() if usd)
    blocks: list[Block] = [_runs(answer), Facts("Cost", (*parts, ("total", numbers.usd(total))))]
    if answer.copies:
        blocks.append(_moved(answer))
    blocks += [_work(answer), _proof(answer)]
    return Document(headline, tuple(summary), tuple(blocks), True)


def _paused(answer: ScheduleAnswer) -> int:
    """Hours between the first and the last in which nothing runs."""
    running = {hour for one in answer.intervals for hour in range(one.start_hour, one.end_hour)}
    return max(running) + 1 - min(running) - len(running)


def _runs(answer: ScheduleAnswer) -> Grid:
    several = len(answer.jobs) > 1
    rows = [
        (one.job if several else "", _when(answer, one.start_hour), f"{one.hours:,}", one.pool.name, f"{one.nodes:,}",
         f"{one.pool.provider}/{one.pool.region}", one.pool.instance_type or "", one.pool.purchase_option,
         numbers.usd(one.usd))
        for one in answer.intervals[:MOST_ROWS]
    ]  # fmt: skip
    header, cells, align = without_empty(
        ("job", "from (UTC)", "hours", "pool", "nodes", "place", "type", "bought", "cost"), rows, "llrlrlllr"
    )
    more = len(answer.intervals) - MOST_ROWS
    notes = (f"and {more:,} more rows; -o csv has them all",) if more > 0 else ()
    return Grid("Runs", header, cells, align, notes)


def _when(answer: ScheduleAnswer, hour: int) -> str:
    return f"{(answer.start + timedelta(hours=hour)).astimezone(UTC):%m-%d %H:%M}"


def _moved(answer: ScheduleAnswer) -> Grid:
    rows = [
        (one.job, one.region, f"{numbers.number(one.size_gb)} GB", numbers.usd(one.transfer_usd),
         numbers.usd(one.storage_usd), f"{one.kept_hours:,}", _stand_ins(one))
        for one in answer.copies
    ]  # fmt: skip
    header, cells, align = without_empty(
        ("job", "copy at", "size", "transfer", "storage", "kept h", "price not known"), rows, "llrrrrl"
    )
    notes = ("where a price is not known another stands in for it",) if any(row[-1] for row in rows) else ()
    return Grid("Data", header, cells, align, notes)


def _stand_ins(one: Copy) -> str:
    """Which of a copy's prices are not the place's own."""
    found = {"transfer": one.transfer_basis, "storage": one.storage_basis}
    return ", ".join(name for name, basis in found.items() if basis != "list")


def _work(answer: ScheduleAnswer) -> Grid:
    rows = [
        (job.name, f"{numbers.number(job.done, 6)} of {numbers.number(job.work, 6)} {answer.work_unit}",
         numbers.usd(job.usd), f"{job.end_hour:,}", f"{job.deadline_hour:,}")
        for job in answer.jobs
    ]  # fmt: skip
    return Grid("Work", ("job", "work done", "cost", "end h", "deadline h"), tuple(rows), "llrrr")


def _nothing(answer: ScheduleAnswer) -> Document:
    if answer.explanation is None:
        advice = ("give it more time with --time-limit, or a wider --gap",)
        return Document(
            f"No schedule for {answer.name}: none was found in time", advice, (_proof(answer),), False
        )
    lines = [
        f"{name}: {numbers.number(missing, 6)} of {numbers.number(work, 6)} {answer.work_unit} cannot be done"
        for name, missing, work in answer.missing
        if missing > 0
    ]
    lines += [_way(way) for way in answer.ways_out]
    if not answer.ways_out:
        lines.append(
            "no single change of a deadline, a pool or max_nodes helps: less work, or a longer forecast"
        )
    headline = f"No schedule for {answer.name}: the work does not fit before the deadline"
    return Document(headline, tuple(lines), (_proof(answer),), False)


def _way(way: WayOut) -> str:
    remedy = way.remedy
    told = {
        "later": f"deadlines {remedy.amount:,} h later",
        "available": f"{remedy.amount:,} more nodes of {remedy.target} in every hour that the forecast offers it",
        "max_nodes": f"max_nodes of {remedy.target} {remedy.amount:,} higher",
        "both": f"{remedy.amount:,} more nodes of {remedy.target} an hour, and max_nodes {remedy.amount:,} higher",
    }[remedy.kind]
    cost = f": {numbers.usd(Decimal(repr(round(way.usd, 6))))}" if way.usd is not None else ""
    return f"it fits with {told}{cost}"


def _proof(answer: ScheduleAnswer) -> Facts:
    result = answer.result
    known = math.isfinite(result.bound_usd)
    bound = Decimal(repr(round(result.bound_usd, 6))) if known else None
    return Facts("Proof", (
        ("status", result.status.value), ("bound", numbers.usd(bound)), ("gap", numbers.percent(result.gap, 3)),
        ("solver", f"{result.solver}, {result.seconds:.2f} s"),
    ), detail=True)  # fmt: skip
