"""A rolling plan's answer as a `Report`: what people, programs and spreadsheets read of it."""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.plan.words import enable_first
from planner.portfolios.declared_quotas import over_before
from planner.portfolios.report_values import catalog_values
from planner.portfolios.rolling.answer import (
    RollingAnswer,
    figures_of,
    is_late,
    late_hours,
    owned_usd,
    period_hours,
    utilisation,
)
from planner.portfolios.rolling.replan import WAITING_SHARE, WAITING_USD_PER_HOUR
from planner.portfolios.shared_limits import CAPACITY, MICRO
from planner.render.model import Answer, Column, Section, Value, facts, table_section, versioned
from planner.render.numbers import hours as hours_text
from planner.render.numbers import percent, usd
from planner.render.precision import dollars, moment_known
from planner.render.screen import Screen, on_screen
from planner.render.words import without_zones
from planner.units import format_duration

if TYPE_CHECKING:
    from datetime import datetime

    from planner.portfolios.rolling.course import Stint, Task

MOST_SHOWN = 40  # jobs that people see; data formats have all
_ON_SCREEN, _MOST_TEAMS = 8, 4
NO_TEAM = "no team"
COLUMNS = (
    *("job", "team", "priority", "status", "submitted", "deadline", "start", "end", "late_hours", "preemptions"),
    *("cost_usd", "provider", "region", "instance_type", "purchase_option", "nodes", "owned"),
)  # fmt: skip
ASSUMED = (
    "runs take as long as predicted, and each plan knows only the jobs submitted by then",
    "a run is not moved unless it is preempted; each plan is near the best for what was known by then",
    f"with other jobs, an hour until a job's end counts {usd(WAITING_USD_PER_HOUR)} times 1 + priority, at most "
    f"{percent(WAITING_SHARE, 0)} of an hour of its cheapest option; a job's `delay_usd_per_hour` is added",
)


def rolling_report(answer: RollingAnswer, *, verbose: bool = False, details: Collection[str] = ()) -> Answer:
    """Return `answer` in the shape that every format is made of.

    Args:
        answer: the answer.
        verbose: show every job to people too.
        details: keys of sections to show in place of the screen, or `all`.
    """
    values = values_of(answer)
    totals, jobs = values["totals"], values["jobs"]
    rows = [{name: _flat(job, name) for name in COLUMNS} for job in jobs]
    title = _headline(values)
    team_table, job_table = _teams(values), _job_table(jobs, len(jobs) if verbose else MOST_SHOWN)
    notes = Section("warnings", "What this assumes", tuple(values["notes"]), warning=True)
    sections = (team_table, job_table, _limit_table(values["limits"]), notes, _sums(totals))
    whole = Answer(
        f"Rolling plan of {values['name']}", title, (), sections, versioned(values), COLUMNS, rows,
        success=not totals["late"] and not totals["never"], created=answer.created_at,
    )  # fmt: skip
    return on_screen(whole, _screen(values, answer.demand.start), details or (("all",) if verbose else ()))


def values_of(answer: RollingAnswer) -> dict[str, Any]:
    """The machine form of an answer."""
    demand, outcome = answer.demand, answer.outcome
    figures, owned, used = (
        figures_of(demand, outcome.tasks),
        owned_usd(demand, outcome),
        utilisation(demand, outcome),
    )
    by_team = sorted({task.job.team or "" for task in outcome.tasks})
    return {
        "kind": "portfolio_rolling",
        "name": demand.loaded.portfolio.name,
        "sha256": demand.loaded.sha256,
        "created_at": answer.created_at.isoformat(timespec="minutes"),
        "currency": "USD",
        "start": demand.start.isoformat(timespec="minutes"),
        "catalog": catalog_values(answer.catalog),
        "every_hours": demand.every_hours,
        "totals": {
            "jobs": figures.jobs, "late": figures.late, "never": figures.never, "late_hours": figures.late_hours,
            "bought_usd": figures.bought_usd, "owned_usd": owned, "cost_usd": figures.bought_usd + owned,
            "owned_node_hours": figures.owned_node_hours, "period_hours": period_hours(demand),
            "utilisation_ratio": used, "preemptions": figures.preemptions,
            "lost_node_hours": figures.lost_node_hours, "plans": outcome.steps,
        },
        "teams": [_team(answer, team) for team in by_team],
        "jobs": [_job(answer, task) for task in outcome.tasks],
        "limits": [
            {
                "limit": limit.label, "kind": "commitment" if limit.kind == CAPACITY else "quota", "team": limit.team,
                "unit": limit.unit, "available": limit.amount, "peak": outcome.peak.get(at, 0),
            }
            for at, limit in enumerate(demand.limits.all)
        ],
        "notes": [*over_before(demand.loaded.portfolio, demand.start), *ASSUMED],
        "seconds": round(answer.seconds, 3),
    }  # fmt: skip


def _team(answer: RollingAnswer, team: str) -> dict[str, Any]:
    own = [task for task in answer.outcome.tasks if (task.job.team or "") == team]
    figures = figures_of(answer.demand, own)
    return {
        "team": team or None, "jobs": figures.jobs, "late": figures.late, "never": figures.never,
        "late_hours": figures.late_hours, "bought_usd": figures.bought_usd,
        "owned_node_hours": figures.owned_node_hours, "preemptions": figures.preemptions,
    }  # fmt: skip


def _job(answer: RollingAnswer, task: Task) -> dict[str, Any]:
    job = task.job
    late = late_hours(task)
    return {
        "job": job.name, "team": job.team, "priority": job.priority,
        "status": "never started" if task.end is None else "late" if is_late(task) else "in time",
        "submitted_hours": job.submitted, "deadline_hours": None if math.isinf(job.deadline) else job.deadline,
        "start_hours": task.stints[0].begin if task.stints else None, "end_hours": task.end,
        "submitted": _moment(answer, job.submitted), "deadline": _moment(answer, job.deadline),
        "start": _moment(answer, task.stints[0].begin if task.stints else math.inf),
        "end": _moment(answer, math.inf if task.end is None else task.end),
        "late_hours": None if math.isinf(late) else late,
        "preemptions": sum(stint.preempted for stint in task.stints),
        "cost_usd": sum(stint.cost_micro_usd for stint in task.stints) / MICRO,
        "stints": [_stint(answer, stint) for stint in task.stints],
    }  # fmt: skip


def _stint(answer: RollingAnswer, stint: Stint) -> dict[str, Any]:
    """One run, with what it holds of each limit while it lasts.

    Limits of equal terms have one name: `row`, from 0, is the place of the limit in the answer's `limits`.
    """
    table, row = stint.option.table, stint.option.row
    ways = answer.demand.gatherer.ways.all
    way = ways[int(table.way[row, 0])]
    limits = answer.demand.limits.all
    how = way.purchase_option
    if table.source[row] >= 0:
        how = answer.demand.gatherer.sources[int(table.source[row])].bought(int(table.row[row])).how
    return {
        "begin_hours": stint.begin, "end_hours": stint.end, "provider": way.provider, "region": way.region,
        "instance_type": way.instance_type, "purchase_option": how, "offer_id": way.offer_id,
        "parts": int((table.way[row] >= 0).sum()), "nodes": int(table.nodes[row, 0]), "owned": stint.option.owned,
        "whole_hours": stint.option.hours, "whole_cost_usd": stint.option.cost_micro_usd / MICRO,
        "cost_usd": stint.cost_micro_usd / MICRO, "preempted": stint.preempted, "lost_hours": stint.lost_hours,
        "draws": [
            {"limit": limits[at].label, "row": at, "units": units}
            for at, units in sorted(stint.option.draws.items())
        ],
    }  # fmt: skip


def _moment(answer: RollingAnswer, hours: float) -> str | None:
    if math.isinf(hours):
        return None
    return (answer.demand.start + timedelta(hours=hours)).isoformat(timespec="minutes")


def _flat(job: dict[str, Any], name: str) -> Any:
    if name in job:
        return job[name]
    return job["stints"][-1][name] if job["stints"] else None


def _headline(values: dict[str, Any]) -> str:
    totals = values["totals"]
    late = f"{totals['late']:,} late" if totals["late"] else "none late"
    never = f", {totals['never']:,} never started" if totals["never"] else ""
    jobs = "1 job" if totals["jobs"] == 1 else f"{totals['jobs']:,} jobs"
    used = totals["utilisation_ratio"]
    held = "" if used is None else f"; owned instances {percent(used, 0)} in use"
    return f"{values['name']}: {jobs} for {_usd(totals['cost_usd'])}, {late}{never}{held}"


def _usd(value: float) -> str:
    return dollars(Decimal(repr(round(value, 2))), 0 if value >= 100 else 2)


def _sums(totals: dict[str, Any]) -> Section:
    rows: list[tuple[str, str, Value, Any, str]] = [
        ("cost_usd", "cost", totals["cost_usd"], "usd",
         f"{_usd(totals['bought_usd'])} bought, {_usd(totals['owned_usd'])} for owned instances"),
        ("late", "late", totals["late"], "count", _late_words(totals)),
        ("preemptions", "preempted", totals["preemptions"], "count",
         f"{totals['preemptions']:,} runs; {hours_text(totals['lost_node_hours'])} instance-hours lost"),
        ("plans", "plans", totals["plans"], "count", f"{totals['plans']:,} with jobs waiting"),
    ]  # fmt: skip
    return facts("sums", "Sums", rows, detail=True)


def _late_words(totals: dict[str, Any]) -> str:
    if not totals["late"]:
        return f"none of {totals['jobs']:,}"
    return f"{totals['late']:,} of {totals['jobs']:,}, {hours_text(totals['late_hours'])} h in all"


def _teams(values: dict[str, Any]) -> Section:
    columns = (
        Column("team", "team", "text"), Column("jobs", "jobs", "count"), Column("late", "late", "count"),
        Column("late_hours", "hours late", "number"), Column("bought_usd", "bought", "usd_rounded"),
        Column("owned_node_hours", "owned instance-hours", "number"), Column("preemptions", "preempted", "count"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (team["team"] or NO_TEAM, *(team[column.key] for column in columns[1:])) for team in values["teams"]
    ]
    totals = values["totals"]
    if len(rows) > 1:
        rows.append(("total", *(totals[column.key] for column in columns[1:])))
    return table_section("teams", "Teams", columns, rows, total=len(rows) > 1)


def _job_table(jobs: list[dict[str, Any]], shown: int) -> Section:
    columns = (
        Column("job", "job", "text"), Column("team", "team", "text"), Column("cluster", "last on", "cluster"),
        Column("option", "bought", "text"), Column("start", "start", "date"), Column("end", "end", "date"),
        Column("late_hours", "hours late", "number"), Column("preemptions", "preempted", "count"),
        Column("cost_usd", "cost", "usd"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for job in _latest_first(jobs):
        last = job["stints"][-1] if job["stints"] else None
        rows.append(
            (
                job["job"], job["team"] or "", (last["nodes"], last["instance_type"]) if last else job["status"],
                (last["purchase_option"] + (" (owned)" if last["owned"] else "")) if last else "",
                (job["start"] or "")[:16].replace("T", " "), (job["end"] or "")[:16].replace("T", " "),
                job["late_hours"], job["preemptions"], job["cost_usd"],
            )
        )  # fmt: skip
    return table_section("jobs", "Jobs, the latest first", columns, rows, shown=shown)


def _limit_table(limits: list[dict[str, Any]]) -> Section:
    columns = (
        Column("limit", "limit", "text"), Column("peak", "most used", "count"), Column("available", "of", "count"),
        Column("unit", "unit", "text"),
    )  # fmt: skip
    rows = [tuple(limit[column.key] for column in columns) for limit in limits if limit["peak"]]
    return table_section("limits", "Shared limits", columns, rows, detail=True)


def _latest_first(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(jobs, key=lambda one: (one["late_hours"] is not None, -(one["late_hours"] or 0.0)))


def _first_jobs(values: dict[str, Any], start: datetime) -> Section:
    """The jobs of a screen: where each ran last, and until when."""
    columns: tuple[Column, ...] = (
        Column("job", "job", "text"), Column("team", "team", "text"), Column("cluster", "last on", "cluster"),
        Column("option", "bought", "text"), Column("start", "from", "text"), Column("end", "until", "text"),
        Column("late_hours", "hours late", "number"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for job in _latest_first(values["jobs"]):
        last = job["stints"][-1] if job["stints"] else None
        how = "" if last is None else without_zones(last["purchase_option"]) + " (owned)" * last["owned"]
        machines = job["status"] if last is None else (last["nodes"], last["instance_type"])
        begin, end = (moment_known(job[key], 1.0, start.year) if job[key] else "" for key in ("start", "end"))
        rows.append((job["job"], job["team"] or "", machines, how, begin, end, job["late_hours"]))
    if not any(job["team"] for job in values["jobs"]):
        columns = (columns[0], *columns[2:])
        rows = [(row[0], *row[2:]) for row in rows]
    return table_section("first_jobs", "Jobs, the latest first", columns, rows, shown=_ON_SCREEN)


def _of_teams(values: dict[str, Any]) -> list[tuple[str, str, Value, Any, str]]:
    """One line on teams, where there are several."""
    teams = values["teams"]
    if len(teams) < 2:
        return []
    ordered = sorted(teams, key=lambda team: -team["late_hours"])[:_MOST_TEAMS]
    parts = [
        f"{team['team'] or NO_TEAM} {team['late']:,} of {team['jobs']:,} late, {_usd(team['bought_usd'])} bought"
        for team in ordered
    ]
    more = f"; {len(teams) - _MOST_TEAMS:,} more teams" if len(teams) > _MOST_TEAMS else ""
    return [("teams", "teams", len(teams), "count", f"{'; '.join(parts)}{more}")]


def _screen(values: dict[str, Any], start: datetime) -> Screen:
    totals = values["totals"]
    every = format_duration(timedelta(hours=values["every_hours"]))
    asked = f"{values['name']}: {totals['jobs']:,} jobs as they arrive, planned again every {every}"
    parts = f"{_usd(totals['bought_usd'])} bought, {_usd(totals['owned_usd'])} for owned instances"
    used = totals["utilisation_ratio"]
    rows: list[tuple[str, str, Value, Any, str]] = [
        ("cost_usd", "cost", totals["cost_usd"], "usd", f"{_usd(totals['cost_usd'])}: {parts}"),
        ("late", "late", totals["late"], "count", _late_words(totals)),
    ]  # fmt: skip
    if totals["never"]:
        rows.append(
            ("never", "never", totals["never"], "count", f"{totals['never']:,} that nothing could run")
        )
    if used is not None:
        days = totals["period_hours"] / 24
        text = f"{percent(used, 0)} in use until the last job is submitted ({days:,.0f} days)"
        rows.append(("utilisation_ratio", "owned", used, "ratio", text))
    rows.append(
        (
            "preemptions",
            "preempted",
            totals["preemptions"],
            "count",
            f"{totals['preemptions']:,} run{'s' * (totals['preemptions'] != 1)} on owned instances",
        )
    )
    rows += _of_teams(values)
    places = ((run["provider"], run["region"]) for job in values["jobs"] for run in job["stints"])
    proof = "A plan at each step, near the best for what was known; nothing is proven over time."
    return Screen(
        asked, rows, _first_jobs(values, start), (*values["notes"], *enable_first(places)), proof,
        (f"portfolio FILE --rolling {every} -o json --out answer.json", "verify answer.json --workload FILE"),
    )  # fmt: skip
