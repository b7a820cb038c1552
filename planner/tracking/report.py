"""A run against its plan as an answer: the verdict first, on one screen."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from planner.plan.front import bought
from planner.plan.front_scale import chance
from planner.render.model import Answer, Column, Section, Unit, Value, facts, table_section, versioned
from planner.render.numbers import number, pace, percent
from planner.render.precision import about, dollars_known, moment_known
from planner.render.screen import Screen, on_screen
from planner.render.units import compact
from planner.render.units import seconds as seconds_words
from planner.tracking.answer import is_slow
from planner.tracking.thresholds import thresholds

if TYPE_CHECKING:
    from datetime import datetime

    from planner.tracking.answer import Tracked
    from planner.tracking.model import Advised, Cause, Split

SCHEMA_VERSION = 1
DETAILS = ("run", "split", "interruptions", "causes", "gates", "ways")
_Row = tuple[str, str, Value, Unit, str]
_COLUMNS = (
    "run_id", "workload", "status", "now", "done_ratio", "p_late_ratio", "p_over_budget_ratio", "finish_expected",
    "finish_p10", "finish_p90", "expected_cost_usd", "cost_p10_usd", "cost_p90_usd", "spent_usd", "step_time_s",
    "step_time_planned_s", "goodput_ratio", "compute_hours", "checkpoint_hours", "lost_hours", "waiting_hours",
    "loader_hours", "interruptions", "interruptions_expected", "first_cause", "decision", "gate_broken",
)  # fmt: skip


def track_report(tracked: Tracked, details: Collection[str] = ()) -> Answer:
    """Return the answer of a tracked run."""
    values = _values(tracked)
    answer = Answer(
        f"Run of {tracked.planned.plan.workload}", headline(tracked), (), _sections(tracked),
        versioned(values, SCHEMA_VERSION), _COLUMNS, [_flat(tracked, values)],
        success=not tracked.broken,
    )  # fmt: skip
    screen = Screen(
        headline(tracked), _verdict(tracked), _ways(tracked), _before(tracked), _proof(tracked), _following(tracked),
        notes_title="Before you act",
    )  # fmt: skip
    return on_screen(answer, screen, details)


def headline(tracked: Tracked) -> str:
    """The verdict in one line."""
    late, over = tracked.p_late, tracked.p_over
    if tracked.status == "finished":
        parts = ["finished" if late is None else "finished late" if late else "finished in time"]
    elif late is None:
        parts = ["running, without a deadline"]
    elif tracked.status == "on time" or (tracked.status == "over budget" and late <= 0.5):
        parts = [f"on time with {chance(1.0 - late)}"]
    else:
        parts = [f"{'at risk: ' if tracked.status == 'at risk' else ''}late with {chance(late)}"]
    if over is not None:
        parts.append(f"over budget with {chance(over)}")
    return f"{tracked.planned.plan.workload}: {', '.join(parts)}"


def _asked(tracked: Tracked) -> str:
    """The plan that the run is compared with."""
    plan, planned = tracked.planned.plan, tracked.planned
    by = "no deadline" if plan.deadline is None else f"by {_moment(tracked, planned.deadline, 0.0)}"
    budget = "" if planned.budget_usd is None else f", budget {dollars_known(planned.budget_usd, 0.0)}"
    return f"{bought(plan)}; {compact(planned.units, 'count')} {planned.unit} {by}{budget}"


def _moment(tracked: Tracked, moment: datetime | None, half_hours: float) -> str:
    return "" if moment is None else moment_known(moment.isoformat(), half_hours, tracked.now.year)


def _verdict(tracked: Tracked) -> list[_Row]:
    planned, split = tracked.planned, tracked.split
    done_ratio = min(tracked.done_steps / planned.steps, 1.0)
    at = _moment(tracked, tracked.now, 0.0)
    run = f"step {tracked.done_steps:,.0f} of {planned.steps:,.0f} ({percent(done_ratio)}) at {at}"
    if tracked.stalled_hours:
        run += f"; no step for {number(tracked.stalled_hours)} h"
    rows: list[_Row] = [
        ("plan", "plan", _asked(tracked), "text", _asked(tracked)), ("done_ratio", "run", done_ratio, "ratio", run),
        _done(tracked), _cost(tracked), _speed(tracked),
    ]  # fmt: skip
    rows.append(("goodput_ratio", "time", split.goodput_ratio, "ratio", split_words(split)))
    rows.append(("interruptions", "breaks", tracked.interruptions.seen, "count", _breaks(tracked)))
    cause = tracked.causes[0] if tracked.causes else None
    if cause is not None or is_slow(tracked):
        rows.append(("first_cause", "cause", cause.key if cause else "unknown", "text", _cause_words(cause)))
    advised = None if tracked.replan is None else tracked.replan.advised
    if advised is not None:
        rows.append(("advice", "spot now", advised.action, "text", f"{advised.action}: {advised.why}"))
    return rows


def _done(tracked: Tracked) -> _Row:
    finish, early, late = tracked.finish
    half = (tracked.hours_left.high - tracked.hours_left.low) / 2.0
    words = _moment(tracked, finish, half)
    if tracked.left_steps > 0:
        words += f"; 80 %: {_moment(tracked, early, half)} to {_moment(tracked, late, half)}"
    planned = tracked.planned.plan.finish_expected
    if planned is not None:
        words += f"; planned {moment_known(planned, half, tracked.now.year)}"
    return ("finish_expected", "done", finish.isoformat(), "text", words)


def _cost(tracked: Tracked) -> _Row:
    total, plan = tracked.total_usd, tracked.planned.plan
    half = (total.high - total.low) / 2.0
    low, high = (dollars_known(end, half) for end in (total.low, total.high))
    spread = f" (80 %: {low} to {high})" if tracked.left_steps > 0 else ""
    words = (
        f"{dollars_known(total.value, half)}{spread}; spent {dollars_known(tracked.spent_usd, half / 10.0)} by "
        f"{tracked.spent_from}; planned {dollars_known(plan.total_usd, half)}"
    )
    return ("expected_cost_usd", "cost", total.value, "usd", words)


def _speed(tracked: Tracked) -> _Row:
    speed = tracked.speed
    if speed.measured_s is None or speed.planned_s is None:
        return (
            "step_time_s",
            "speed",
            speed.step_s,
            "seconds",
            "too few steps to measure: the planned speed is used",
        )
    least = speed.planned_least_s or speed.planned_s
    nearest = min(max(speed.measured_s, least), speed.planned_s)
    planned = " to ".join(dict.fromkeys(seconds_words(end) for end in (least, speed.planned_s)))
    change = speed.measured_s / nearest - 1.0
    word = "as planned" if abs(change) < 0.005 else pace(1.0 + change, "planned")
    words = (
        f"{seconds_words(speed.measured_s)} per step, {word} ({planned}); {speed.steps:,} rows, "
        f"{speed.effective:,.0f} of them independent"
    )
    return ("step_time_s", "speed", speed.measured_s, "seconds", words)


def split_words(split: Split) -> str:
    """Where the time went, in shares."""
    if not split.hours > 0:
        return ""
    parts = [("compute", split.compute), ("checkpoint", split.checkpoint), ("lost", split.lost),
             ("waiting", split.waiting), ("loader", split.loader)]  # fmt: skip
    shares = ", ".join(f"{name} {percent(hours / split.hours, 0)}" for name, hours in parts if hours > 0)
    unseen = "" if "loader" in split.known else " (loader not logged)"
    return f"{number(split.hours)} h: {shares}{unseen}"


def _breaks(tracked: Tracked) -> str:
    breaks = tracked.interruptions
    each = "" if not breaks.setbacks else f", {number(sum(breaks.setbacks) / len(breaks.setbacks))} h each"
    expected = about(breaks.expected)
    return f"{breaks.seen} interruption{'' if breaks.seen == 1 else 's'}{each}; the plan expects {expected} by now"


def _cause_words(cause: Cause | None) -> str:
    if cause is None:
        return "slower than planned, for an unknown reason: log loader_seconds, gpu_busy, network_seconds"
    return f"{'' if cause.sure else 'perhaps '}{cause.title}: {cause.evidence}"


def _before(tracked: Tracked) -> list[str]:
    """What must be known or done, most important first."""
    notes = [
        f"gate broken: {gate.name} with {chance(gate.value)}, at most {percent(gate.limit)} "
        + ("asked for" if gate.origin == "asked" else "by the plan")
        for gate in tracked.broken
    ]
    table = thresholds()
    if tracked.causes:
        notes.append(tracked.causes[0].remedy)
    if tracked.memory_ratio is not None and tracked.memory_ratio > table["memory_used_max"].value:
        notes.append(
            f"GPU memory is {percent(tracked.memory_ratio)} full: a longer batch or fragmentation may end the run"
        )
    if tracked.spend_ratio is not None and tracked.spend_ratio > table["spend_rate_max"].value:
        notes.append(f"an hour in use costs {tracked.spend_ratio:.2f} times what was planned")
    return [*notes, *tracked.notes]


def _proof(tracked: Tracked) -> str:
    if tracked.replan is None:
        return ""
    return tracked.replan.why


def _following(tracked: Tracked) -> list[str]:
    again = [] if tracked.replan is not None else ["track PLAN.json --log LOG --replan"]
    return [*again, "calibrate FILE LOG", "advise PLAN.json --state STATE"][:2]


def _ways(tracked: Tracked) -> Section | None:
    """The ways to go on, where they were asked for."""
    if tracked.replan is None:
        return None
    rows: list[tuple[Value, ...]] = [
        (
            f"{'> ' if way.action == tracked.replan.decision else '  '}{way.action}", way.choice or way.reason,
            _usd(way.usd), _usd(way.change_usd) if way.usd is not None else "",
            "" if way.finish is None else moment_known(way.finish, 1.0, tracked.now.year),
            "" if way.p_meet is None else way.p_meet,
        )
        for way in tracked.replan.ways
    ]  # fmt: skip
    columns = (
        Column("action", "what now", "text"), Column("choice", "", "text"), Column("cost_usd", "cost from now", "text"),
        Column("change_usd", "of it change", "text"), Column("finish", "done", "text"),
        Column("p_meet_deadline", "in time", "chance"),
    )  # fmt: skip
    return table_section("ways", "What now", columns, rows, tracked.replan.notes)


def _usd(value: float | None) -> str:
    return "" if value is None else dollars_known(value, abs(value) * 0.02)


def _sections(tracked: Tracked) -> tuple[Section, ...]:
    table = _ways(tracked)
    sections = [
        facts("run", "Run", _verdict(tracked)), _split_section(tracked), _interruptions_section(tracked),
        _causes_section(tracked), _gates_section(tracked),
    ]  # fmt: skip
    notes = [Section("notes", "Notes", tracked.notes)] if tracked.notes else []
    return (*sections, *([table] if table is not None else []), *notes)


def _split_section(tracked: Tracked) -> Section:
    split = tracked.split
    rows = [(name, getattr(split, name), getattr(split, name) / split.hours if split.hours else None)
            for name in ("compute", "checkpoint", "lost", "waiting", "loader")]  # fmt: skip
    columns = (
        Column("part", "part", "text"),
        Column("hours", "hours", "hours"),
        Column("share", "share", "ratio"),
    )
    note = "checkpoint and loader are logged or inferred: logged here are " + (
        ", ".join(split.known) or "neither"
    )
    return table_section("split", "Where the time went", columns, rows, (note,))


def _interruptions_section(tracked: Tracked) -> Section:
    breaks = tracked.interruptions
    rows: list[_Row] = [
        ("interruptions", "seen", breaks.seen, "count", f"{breaks.seen} in {number(breaks.hours)} h in use"),
        ("interruptions_expected", "planned for as long", breaks.expected, "tenths", number(breaks.expected)),
        ("interruptions_per_hour", "per hour from now on", breaks.per_hour, "number",
         f"{number(breaks.per_hour)} (planned {number(breaks.planned_per_hour)})"),
        ("setback_hours", "hours lost by each", breaks.setback_hours, "hours", f"{number(breaks.setback_hours)} h"),
    ]  # fmt: skip
    return facts("interruptions", "Interruptions", rows)


def _causes_section(tracked: Tracked) -> Section:
    rows = [(cause.key, cause.evidence, cause.share, cause.remedy) for cause in tracked.causes]
    columns = (
        Column("cause", "cause", "text"), Column("evidence", "evidence", "text"),
        Column("share", "of the step", "ratio"), Column("remedy", "remedy", "text"),
    )  # fmt: skip
    if not rows:
        return Section("causes", "Why slow", ("no threshold is passed in what the log has",))
    return table_section("causes", "Why slow", columns, rows)


def _gates_section(tracked: Tracked) -> Section:
    if not tracked.gates:
        return Section("gates", "Gates", ("none: the plan states no confidence and no budget",))
    rows = [(g.name, g.value, g.limit, g.origin, "broken" if g.broken else "kept") for g in tracked.gates]
    columns = (
        Column("gate", "gate", "text"), Column("value", "probability", "ratio"), Column("limit", "at most", "ratio"),
        Column("origin", "stated by", "text"), Column("state", "", "text"),
    )  # fmt: skip
    return table_section("gates", "Gates", columns, rows)


def _values(tracked: Tracked) -> dict[str, Any]:
    planned, split, breaks, speed = (tracked.planned, tracked.split, tracked.interruptions, tracked.speed)
    finish, early, late = (moment.isoformat(timespec="minutes") for moment in tracked.finish)
    replan = tracked.replan
    return {
        "run_id": planned.plan.run_id, "workload": planned.plan.workload, "status": tracked.status,
        "now": tracked.now.isoformat(timespec="seconds"), "last_step_at": tracked.last.isoformat(timespec="seconds"),
        "deadline": planned.plan.deadline, "budget_usd": planned.budget_usd,
        "p_late_ratio": tracked.p_late, "p_over_budget_ratio": tracked.p_over,
        "done_steps": tracked.done_steps, "steps": planned.steps,
        "done_ratio": min(tracked.done_steps / planned.steps, 1.0),
        "finish_expected": finish, "finish_p10": early, "finish_p90": late, "hours_left": tracked.hours_left.value,
        "expected_cost_usd": tracked.total_usd.value, "cost_p10_usd": tracked.total_usd.low,
        "cost_p90_usd": tracked.total_usd.high, "spent_usd": tracked.spent_usd, "spent_from": tracked.spent_from,
        "planned_finish": planned.plan.finish_expected, "planned_cost_usd": float(planned.plan.total_usd),
        "speed": {
            "step_time_s": speed.measured_s, "step_time_planned_s": speed.planned_s,
            "step_time_forecast_s": speed.step_s,
            "log_sd": speed.log_sd, "rows": speed.steps, "independent_rows": speed.effective,
            "over_planned_ratio": tracked.slow_ratio,
        },
        "time": {
            "hours": split.hours, "compute_hours": split.compute, "checkpoint_hours": split.checkpoint,
            "lost_hours": split.lost, "waiting_hours": split.waiting, "loader_hours": split.loader,
            "goodput_ratio": split.goodput_ratio, "logged": list(split.known),
        },
        "interruptions": {
            "seen": breaks.seen, "expected": breaks.expected, "hours_in_use": breaks.hours, "per_hour": breaks.per_hour,
            "planned_per_hour": breaks.planned_per_hour, "setback_hours": breaks.setback_hours,
        },
        "stalled_hours": tracked.stalled_hours, "memory_used_ratio": tracked.memory_ratio,
        "spend_over_planned_ratio": tracked.spend_ratio, "causes": [cause_values(cause) for cause in tracked.causes],
        "gates": [{"gate": g.name, "p_ratio": g.value, "limit_ratio": g.limit, "stated_by": g.origin,
                   "broken": g.broken} for g in tracked.gates],
        "replan": None if replan is None else {
            "decision": replan.decision, "why": replan.why,
            "ways": [{"action": w.action, "choice": w.choice, "cost_usd": w.usd, "change_usd": w.change_usd,
                      "finish": w.finish, "p_meet_deadline": w.p_meet, "reason": w.reason} for w in replan.ways],
            "notes": list(replan.notes), "advice": _advice_values(replan.advised),
        },
        "notes": list(tracked.notes),
    }  # fmt: skip


def _advice_values(advised: Advised | None) -> dict[str, Any] | None:
    """What `planner advise` decides; null for plans that are not on spot with on-demand behind."""
    if advised is None:
        return None
    return {
        "action": advised.action, "why": advised.why, "p_meet_deadline": advised.p_finish, "cost_usd": advised.usd,
        "slack_hours": advised.slack_hours, "supposed": advised.supposed,
    }  # fmt: skip


def cause_values(cause: Cause) -> dict[str, Any]:
    """A cause as plain values."""
    return {
        "cause": cause.key, "evidence": cause.evidence, "remedy": cause.remedy, "share_ratio": cause.share,
        "value": cause.value, "limit": cause.limit, "logged": cause.sure,
    }  # fmt: skip


def _flat(tracked: Tracked, values: dict[str, Any]) -> dict[str, Any]:
    flat = {**values, **values["time"], **values["speed"]}
    flat |= {
        "interruptions": tracked.interruptions.seen, "interruptions_expected": tracked.interruptions.expected,
        "first_cause": tracked.causes[0].key if tracked.causes else None, "gate_broken": bool(tracked.broken),
        "decision": None if tracked.replan is None else tracked.replan.decision,
    }  # fmt: skip
    return {name: flat[name] for name in _COLUMNS}
