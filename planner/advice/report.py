"""Advice as a report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from planner.plan.front_scale import chance
from planner.render import numbers
from planner.render.model import Answer, Column, Section, Unit, Value, facts, table_section, versioned
from planner.render.precision import dollars, known_places, rounded

if TYPE_CHECKING:
    from datetime import datetime

    from planner.advice.model import Advice, Option

_COLUMNS = (
    "workload", "status", "rank", "action", "mode", "zone", "expected_cost_usd", "more_than_chosen_usd",
    "p_finish_ratio", "expected_finish", "expected_finish_hours", "why",
)  # fmt: skip


def advice_report(advice: Advice) -> Answer:
    """Build the answer in the shape that every format is made of."""
    question, left = advice.question, advice.no_return_hours
    options = [_option_values(advice, option) for option in (advice.chosen, *advice.others)]
    values: dict[str, Any] = {
        "workload": question.plan.name, "status": advice.status, "policy": advice.policy,
        "decided_by": advice.decided_by, "action": options[0]["action"], "mode": options[0]["mode"],
        "zone": options[0]["zone"], "why": advice.why, "interrupted": question.interrupted,
        "now": question.now.isoformat(), "deadline": _iso(question.plan.deadline),
        "time_left_hours": advice.time_left_hours, "work_left_hours": advice.work_left_hours,
        "done_hours": question.state.done_hours, "work_hours": question.job.work_hours,
        "point_of_no_return_hours": _finite(left), "point_of_no_return": _iso(advice.moment(left)),
        "p_finish_ratio": _finite(advice.chosen.p_finish), "p_finish_spot_alone_ratio": _finite(advice.p_spot_alone),
        "p_on_demand_had_ratio": question.plan.on_demand_had_ratio,
        "expected_cost_usd": options[0]["expected_cost_usd"], "expected_finish": options[0]["expected_finish"],
        "next_best": options[1] if len(options) > 1 else None, "options": options,
        "prices": {
            "on_demand_usd_per_hour": question.job.on_demand_usd_per_hour, "egress_usd": question.job.egress_usd,
        },
        "restart_hours": question.job.restart_hours, "tick_hours": question.job.tick_hours,
        "on_demand_acquire_hours": question.job.on_demand_acquire_hours,
        "hazards": {name: table.source for name, table in advice.tables.items()}, "notes": list(question.notes),
    }  # fmt: skip
    rows = [
        {**option, "workload": question.plan.name, "status": advice.status, "rank": rank,
         "why": advice.why if rank == 1 else ""}
        for rank, option in enumerate(options, start=1)
    ]  # fmt: skip
    return Answer(
        f"Advice for {question.plan.name}", headline(advice), (advice.why,), _sections(advice), versioned(values),
        _COLUMNS, rows, success=advice.status in ("running", "finished"),
    )  # fmt: skip


def _option_values(advice: Advice, option: Option) -> dict[str, Any]:
    return {
        "action": option.word,
        "mode": option.action.mode,
        "zone": option.action.zone,
        "expected_cost_usd": _finite(option.cost_usd),
        "more_than_chosen_usd": _finite(option.cost_usd - advice.chosen.cost_usd),
        "p_finish_ratio": _finite(option.p_finish),
        "expected_finish": _iso(advice.moment(option.finish_hours)),
        "expected_finish_hours": _finite(option.finish_hours),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="minutes")


def headline(advice: Advice) -> str:
    """The action in one line."""
    option = advice.chosen
    if advice.status == "finished":
        return f"{advice.question.plan.name}: finished"
    place = f" in {option.action.zone}" if option.action.zone else ""
    if option.word == "stay":
        place = f" on spot{place}" if option.action.mode == "spot" else " on on-demand"
    return f"{advice.question.plan.name}: {option.word}{place}"


def _sections(advice: Advice) -> tuple[Section, ...]:
    sections = [_where(advice)]
    if len(advice.others):
        sections.append(_options(advice))
    if advice.decided_by != "state":
        sections.append(_zones(advice))
    if advice.question.notes:
        sections.append(Section("assumed", "Assumed", advice.question.notes))
    return tuple(sections)


def _where(advice: Advice) -> Section:
    question, chosen = advice.question, advice.chosen
    left, state, job = advice.no_return_hours, advice.question.state, advice.question.job
    done = f"{numbers.hours(state.done_hours)} of {numbers.hours(job.work_hours)} h"
    to_go = f"{numbers.hours(advice.time_left_hours)} h to {numbers.moment(_iso(question.plan.deadline))}"
    rows: list[tuple[str, str, Value, Unit, str]] = [
        ("done_hours", "work done", state.done_hours, "hours", done),
        ("time_left_hours", "time left", advice.time_left_hours, "hours", to_go),
    ]
    if math.isfinite(left) and state.mode == "on_demand":
        rows.append(
            ("slack_hours", "slack", left, "hours", f"{numbers.hours(left)} h, on-demand kept running")
        )
    elif math.isfinite(left):
        by = numbers.moment(_iso(advice.moment(left)))
        text = f"in {numbers.hours(left)} h: on-demand must be requested by {by}"
        text = text if left > 0 else f"{numbers.hours(-left)} h ago"
        rows.append(("point_of_no_return_hours", "point of no return", left, "hours", text))
    if advice.others:
        alone, had = advice.p_spot_alone, question.plan.on_demand_had_ratio
        rows += [
            ("p_finish_ratio", "P(finish in time)", chosen.p_finish, "ratio", chance(chosen.p_finish)),
            ("p_spot_alone_ratio", "on spot alone", alone, "ratio", chance(alone)),
            (
                "p_on_demand_had_ratio",
                "on-demand comes",
                had,
                "ratio",
                f"with {numbers.percent(had)}, assumed",
            ),
        ]
    if math.isfinite(chosen.finish_hours) and advice.status != "finished":
        finish = _iso(advice.moment(chosen.finish_hours))
        rows.append(("expected_finish", "expected finish", finish, "moment", numbers.moment(finish)))
        cost = chosen.cost_usd
        places = known_places(cost, chosen.cost_half_usd)
        text = dollars(cost, places) if math.isfinite(cost) else ""
        rows.append(("expected_cost_usd", "expected cost from now", _finite(cost), "usd", text))
    by = {"guard": "the deadline's guard", "policy": f"policy {advice.policy}", "state": "the state"}[
        advice.decided_by
    ]
    rows.append(("decided_by", "decided by", advice.decided_by, "text", by))
    return facts("now", "Now", rows)


def _options(advice: Advice) -> Section:
    rows: list[tuple[Value, ...]] = [
        (option.word, option.action.zone or "", _told(option.cost_usd, option.cost_half_usd),
         _told(option.cost_usd - advice.chosen.cost_usd, option.more_half_usd) if at else "", option.p_finish,
         _iso(advice.moment(option.finish_hours)))
        for at, option in enumerate((advice.chosen, *advice.others))
    ]  # fmt: skip
    columns = (
        Column("action", "action", "text"), Column("zone", "zone", "text"),
        Column("cost_usd", "cost from now", "usd_known"), Column("more_usd", "more", "usd_change_known"),
        Column("p_finish_ratio", "P(in time)", "chance"), Column("finish", "expected finish", "moment"),
    )  # fmt: skip
    notes = (
        "expected, following the policy afterwards, spot prices as they are now; costs and ends where on-demand comes",
    )
    return table_section("options", "What can be done", columns, rows, notes)


def _told(usd: float, half: float) -> Value:
    """An amount in the digits that the futures drawn leave it; nothing where it is endless."""
    return rounded(usd, known_places(usd, half)) if math.isfinite(usd) else ""


def _known(value: float) -> float | str:
    """The value; nothing where it is endless."""
    return value if math.isfinite(value) else ""


def _zones(advice: Advice) -> Section:
    from planner.advice.reasons import remaining_hours

    job = advice.question.job
    rows: list[tuple[Value, ...]] = []
    for place, seen in zip(job.zones, advice.question.state.zones, strict=True):
        table = advice.tables[seen.name]
        rows.append((
            seen.name, place.region, "up" if seen.available else "down", seen.since_hours,
            remaining_hours(table, seen), table.availability_ratio, _known(seen.usd_per_hour),
            seen.usd_per_hour / job.on_demand_usd_per_hour, table.source,
        ))  # fmt: skip
    columns = (
        Column("zone", "zone", "text"), Column("region", "region", "text"), Column("state", "now", "text"),
        Column("since_hours", "since h", "hours"), Column("remaining_hours", "lasts h", "hours"),
        Column("availability_ratio", "up in all", "ratio", 0), Column("usd_per_hour", "$/h", "usd"),
        Column("of_on_demand_ratio", "of on-demand", "ratio", 0),
        Column("source", "record used", "text", place="data"),
    )  # fmt: skip
    by_source: dict[str, list[str]] = {}
    for zone in advice.question.state.zones:
        by_source.setdefault(advice.tables[zone.name].source, []).append(zone.name)
    notes = [f"record used for {', '.join(zones)}: {source}" for source, zones in by_source.items()]
    return table_section("zones", "Zones", columns, rows, notes, detail=True)
