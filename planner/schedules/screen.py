"""The screen of a schedule: where and when the work runs, what it costs by pool, and on what that rests."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from planner.plan.words import enable_first
from planner.render import claims, numbers
from planner.render.model import Column, Section, Value, table_section
from planner.render.precision import dollars, known_places, moment_known, rounded
from planner.render.screen import Row, Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.schedules.answer import Interval, ScheduleAnswer

OF = "of those that the pools and hours of the forecast allow"
PARTS = {"nodes": "nodes", "starts": "starts", "copies": "data moved", "storage": "copies kept"}
NEXT = ("schedule FILE -o json --out answer.json", "verify answer.json --workload FILE")
_MOST_POOLS = 10


def schedule_screen(answer: ScheduleAnswer, why: str, helps: Sequence[str]) -> Screen:
    """Return the screen.

    Args:
        answer: the answer.
        why: there is no schedule, where there is none.
        helps: what each job lacks, then what would make one possible.
    """
    count = len(answer.jobs) or len(answer.missing)
    jobs = "1 job" if count == 1 else f"{count:,} jobs"
    title = f"{answer.name}: {jobs}, forecast of {answer.n_hours:,} h from {answer.start:%Y-%m-%d %H:%M} UTC"
    if not answer.intervals:
        rows: list[Row] = [("plan", "plan", "none", "text", f"none: {why}")]
        lacking = sum(missing > 0 for _, missing, _ in answer.missing)
        rows += [
            (f"change_{at}", "instead" if at == lacking else "", text, "text", text)
            for at, text in enumerate(helps)
        ]
        proof = claims.state(answer.result.status.value, OF, answer.result.gap)
        following = NEXT[:1] if answer.explanation is not None else ("schedule FILE --time-limit 5m",)
        return Screen(title, rows, None, (), f"{proof[0].upper()}{proof[1:]}.", following)
    rows = [_plan(answer), _cost(answer), _done(answer), *_pauses(answer)]
    best = claims.best_plan("Cheapest", answer.result.status.value, answer.result.gap, "feasible schedule")
    proof = f"{best} {OF}, proven by the solver to {numbers.percent(answer.result.gap, 2)}."
    return Screen(title, rows, _pools(answer), _notes(answer), proof, NEXT)


def usd_known(value: Decimal) -> str:
    """A cost in the digits that are known."""
    return dollars(value, min(known_places(float(value), 0.0), 2))


def _plan(answer: ScheduleAnswer) -> Row:
    pools = list(dict.fromkeys(interval.pool.name for interval in answer.intervals))
    runs = "1 run" if len(answer.intervals) == 1 else f"{len(answer.intervals):,} runs"
    text = f"{runs} on {' and '.join(pools[:3])}" + (
        f" and {len(pools) - 3} more {'pool' if len(pools) == 4 else 'pools'}" if len(pools) > 3 else ""
    )
    return ("plan", "plan", text, "text", text)


def _cost(answer: ScheduleAnswer) -> Row:
    total = answer.total_usd
    assert total is not None
    places = known_places(float(total), 0.0)
    parts = ", ".join(
        f"{PARTS[name]} {dollars(usd, places)}" for name, usd in answer.parts_usd.items() if usd
    )
    return ("cost_usd", "cost", total, "usd", f"{usd_known(total)} at the forecast's prices ({parts})")


def _done(answer: ScheduleAnswer) -> Row:
    last = max(job.end_hour for job in answer.jobs)
    ends = (answer.start + timedelta(hours=last)).isoformat()
    spare = min(job.deadline_hour - job.end_hour for job in answer.jobs)
    room = "the deadline to the hour" if spare == 0 else f"{spare:,} h before the nearest deadline"
    text = f"{moment_known(ends, 0.0, answer.start.year)} UTC, {last:,} h from the start: {room}"
    return ("end", "done", ends, "text", text)


def _pauses(answer: ScheduleAnswer) -> list[Row]:
    paused = paused_hours(answer)
    if not paused:
        return []
    text = f"nothing runs in {paused:,} h between the first run and the last"
    return [("paused_hours", "pauses", paused, "count", text)]


def paused_hours(answer: ScheduleAnswer) -> int:
    """Hours between the first and the last run in which nothing runs."""
    running = {
        hour for interval in answer.intervals for hour in range(interval.start_hour, interval.end_hour)
    }
    return max(running) + 1 - min(running) - len(running)


def _pools(answer: ScheduleAnswer) -> Section:
    """What each job runs on each pool, all its runs together."""
    groups: dict[tuple[str, str], list[Interval]] = {}
    for interval in answer.intervals:
        groups.setdefault((interval.job, interval.pool.name), []).append(interval)
    several = len(answer.jobs) > 1
    rows: list[tuple[Value, ...]] = []
    for (job, _), runs in groups.items():
        pool, usd = runs[0].pool, sum((run.usd for run in runs), Decimal(0))
        hours = sum(run.hours * run.nodes for run in runs)
        begin, end = answer.start + timedelta(hours=runs[0].start_hour), runs[-1].end_hour
        rows.append((
            job if several else "", pool.name, pool.instance_type or "", pool.purchase_option,
            (pool.provider, pool.region, ""), begin.isoformat(), (answer.start + timedelta(hours=end)).isoformat(),
            len(runs), hours, rounded(usd, min(known_places(float(usd), 0.0), 2)),
        ))  # fmt: skip
    columns = (
        Column("job", "job", "text"), Column("pool", "pool", "text"), Column("instance_type", "type", "text"),
        Column("purchase_option", "bought", "text"), Column("place", "place", "place"),
        Column("from", "first (UTC)", "moment_short"), Column("until", "last", "moment_short"),
        Column("runs", "runs", "count"), Column("node_hours", "node-h", "count"),
        Column("cost_usd", "cost", "usd_known"),
    )  # fmt: skip
    return table_section("pools", "Where it runs", columns, rows, shown=_MOST_POOLS)


def _notes(answer: ScheduleAnswer) -> tuple[str, ...]:
    spot = any(interval.pool.purchase_option == "spot" for interval in answer.intervals)
    bases = {interval.region: {interval.transfer_basis, interval.storage_basis} for interval in answer.copies}
    unknown = ", ".join(sorted(region for region, basis in bases.items() if basis != {"list"}))
    stands_in = f"a price of transfer or storage is not known at {unknown}: another one is used"
    return (
        "no interval: the forecast's prices and free nodes are assumed to be certain; plan again when it changes",
        *(
            ["spot may be taken away within an hour: needs automatic resume and saved progress"]
            if spot
            else ()
        ),
        *([stands_in] if unknown else ()),
        *enable_first((interval.pool.provider, interval.pool.region) for interval in answer.intervals),
        "quotas are not checked",
    )
