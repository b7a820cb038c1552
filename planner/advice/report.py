"""Advice as a report."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.render import numbers
from planner.render.document import Block, Document, Facts, Grid, Notes, without_empty
from planner.render.report import Report

if TYPE_CHECKING:
    from planner.advice.model import Advice, Option

_COLUMNS = (
    "workload", "status", "rank", "action", "mode", "zone", "expected_cost_usd", "more_than_chosen_usd",
    "p_finish_ratio", "expected_finish", "expected_finish_hours", "why",
)  # fmt: skip


def advice_report(advice: Advice) -> Report:
    """Build the report."""
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
    return Report(_document(advice), values, _COLUMNS, rows)


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


def _iso(moment: Any) -> str | None:
    return None if moment is None else moment.isoformat(timespec="minutes")


def _usd(value: float) -> str:
    return numbers.usd(Decimal(repr(round(value, 6)))) if math.isfinite(value) else ""


def headline(advice: Advice) -> str:
    """The action in one line."""
    option = advice.chosen
    if advice.status == "finished":
        return f"{advice.question.plan.name}: finished"
    place = f" in {option.action.zone}" if option.action.zone else ""
    if option.word == "stay":
        place = f" on spot{place}" if option.action.mode == "spot" else " on on-demand"
    return f"{advice.question.plan.name}: {option.word}{place}"


def _document(advice: Advice) -> Document:
    blocks: list[Block] = [_where(advice)]
    if len(advice.others):
        blocks.append(_options(advice))
    if advice.decided_by != "state":
        blocks.append(_zones(advice))
    if advice.question.notes:
        blocks.append(Notes("Assumed", advice.question.notes))
    return Document(headline(advice), (advice.why,), tuple(blocks), advice.status in ("running", "finished"))


def _where(advice: Advice) -> Facts:
    question, chosen = advice.question, advice.chosen
    left = advice.no_return_hours
    rows = [
        (
            "work done",
            f"{numbers.hours(question.state.done_hours)} of {numbers.hours(question.job.work_hours)} h",
        ),
        (
            "time left",
            f"{numbers.hours(advice.time_left_hours)} h to {numbers.moment(_iso(question.plan.deadline))}",
        ),
    ]
    if math.isfinite(left) and question.state.mode == "on_demand":
        rows.append(("slack", f"{numbers.hours(left)} h, on-demand kept running"))
    elif math.isfinite(left):
        by = numbers.moment(_iso(advice.moment(left)))
        told = f"in {numbers.hours(left)} h: on-demand must be asked for by {by}"
        rows.append(("point of no return", told if left > 0 else f"{numbers.hours(-left)} h ago"))
    if advice.others:
        rows += [
            ("P(finish in time)", numbers.percent(chosen.p_finish)),
            ("on spot alone", numbers.percent(advice.p_spot_alone)),
        ]
    if math.isfinite(chosen.finish_hours) and advice.status != "finished":
        rows.append(("expected finish", numbers.moment(_iso(advice.moment(chosen.finish_hours)))))
        rows.append(("expected cost from now", _usd(chosen.cost_usd)))
    by = {"guard": "the deadline's guard", "policy": f"policy {advice.policy}", "state": "the state"}[
        advice.decided_by
    ]
    rows.append(("decided by", by))
    return Facts("Now", tuple(rows))


def _options(advice: Advice) -> Grid:
    rows = [
        (option.word, option.action.zone or "", _usd(option.cost_usd),
         numbers.usd_change(Decimal(repr(round(option.cost_usd - advice.chosen.cost_usd, 6)))) if at else "",
         numbers.percent(option.p_finish), numbers.moment(_iso(advice.moment(option.finish_hours))))
        for at, option in enumerate((advice.chosen, *advice.others))
    ]  # fmt: skip
    header, cells, align = without_empty(
        ("action", "zone", "cost from now", "more", "P(in time)", "expected finish"), rows, "llrrrl"
    )
    notes = ("expected, following the policy afterwards, spot prices as they are now",)
    return Grid("What can be done", header, cells, align, notes)


def _zones(advice: Advice) -> Grid:
    from planner.advice.reasons import remaining_hours

    job = advice.question.job
    rows = []
    for place, seen in zip(job.zones, advice.question.state.zones, strict=True):
        table = advice.tables[seen.name]
        rows.append((
            seen.name, place.region, "up" if seen.available else "down", numbers.hours(seen.since_hours),
            numbers.hours(remaining_hours(table, seen)), numbers.percent(table.availability_ratio, 0),
            _usd(seen.usd_per_hour), numbers.percent(seen.usd_per_hour / job.on_demand_usd_per_hour, 0), table.source,
        ))  # fmt: skip
    header = (
        "zone",
        "region",
        "now",
        "since h",
        "lasts h",
        "up in all",
        "$/h",
        "of on-demand",
        "record used",
    )
    return Grid("Zones", header, tuple(rows), "lllrrrrrl", detail=True)
