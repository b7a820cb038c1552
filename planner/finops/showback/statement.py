"""What one team is shown: its cost of a month, where it comes from, and what of it was shared."""

from __future__ import annotations

from calendar import monthrange
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.finops.bill_days import daily_frame, month_before, newest_month
from planner.finops.kpis import query_kpi
from planner.finops.quality import assess_quality
from planner.finops.read.tag_keys import known_spelling, own_key
from planner.finops.showback.divide import Divided, divide
from planner.inputs.faults import near
from planner.render.model import Answer, Column, Section, table_section, versioned

if TYPE_CHECKING:
    from planner.finops.read import Bill
    from planner.finops.usage import Usage
    from planner.inputs.showback_schema import ShowbackFile

_NO_MONTH = date(1900, 1, 1)
_OF_EFFECTIVE = frozenset(("effective_stated", "effective_zero", "effective_zero_rows", "negative_effective"))
_COLUMNS = ("month", "team", "currency", "kind", "provider", "service", "cost", "before")


def rules_by_tag(key: str, *others: str) -> ShowbackFile:
    """Rules of those who have none: the team is the value of a tag, else that of the first other one with a value."""
    from planner.inputs.showback_schema import Rule, ShowbackFile

    keys = dict[str, str]()
    for one in (key, *others):
        keys.setdefault(own_key(one), one)
    rules, name = tuple(Rule(from_tag=one) for one in keys.values()), f"tag {' or '.join(keys.values())}"
    return ShowbackFile(version=1, kind="showback", name=name, rules=rules, unused_commitments="keep")


def gpu_hours_by_team(
    file: ShowbackFile, usage: Usage | None, start: date, end: date
) -> dict[tuple[str, ...], dict[str, float]]:
    """Accelerator hours that schedulers gave to teams, for each `clusters` of the splits; empty without usage files."""
    found = {split.clusters: defaultdict[str, float](float) for split in file.split if split.by == "usage"}
    rows = (one for own in (usage.files if usage else ()) for one in own.allocated)
    for one in (row for row in rows if start <= row.day < end and row.team):
        places = {place.lower() for place in one.places}
        for clusters, hours in found.items():
            if not clusters or places & {name.lower() for name in clusters}:
                hours[one.team] += one.hours
    return {clusters: dict(hours) for clusters, hours in found.items()}


def check_usage(file: ShowbackFile, usage: Usage | None) -> None:
    """Refuse splits by usage without usage.

    Raises:
        InputError: names the team.
    """
    for split in file.split:
        if split.by == "usage" and usage is None:
            raise InputError(
                f"--showback: {split.team} is split by usage; give the GPU-hours of teams with --usage FILE"
            )


def month_rows(bill: Bill, month: date) -> list[dict[str, Any]]:
    """Rows of the KPI `showback_lines` of one month."""
    values = {"start": month, "end": _end(month), "before_start": _NO_MONTH, "before_end": _NO_MONTH}
    frame: Any = query_kpi(bill.engine, "showback_lines", values)
    rows: list[dict[str, Any]] = frame.to_dict("records")
    return rows


def team_statement(
    bill: Bill,
    month: date | None,
    file: ShowbackFile,
    team: str,
    usage: Usage | None = None,
    *,
    exact_tags: bool = False,
) -> Answer:
    """The statement of a team.

    Args:
        bill: the open bill.
        month: any day of the month; by default the newest with use beyond its first day, as of a review.
        file: the rules.
        team: as the rules name it.
        usage: measured use, for splits by usage.
        exact_tags: as of `divide`.

    Raises:
        InputError: the bill lacks the month, or no charge is of the team.
    """
    check_usage(file, usage)
    if not bill.months:
        raise InputError("--statement: the bill has no charge with a ChargePeriodStart")
    daily = daily_frame(bill)
    wanted = month.replace(day=1) if month else newest_month(daily)
    if wanted not in bill.months:
        raise InputError(f"--month {wanted:%Y-%m}: the bill has no charges in it")
    now = _divided(bill, wanted, file, usage, exact_tags=exact_tags)
    before, apart = None, ""
    if (earlier := month_before(bill, wanted, daily)) is not None:
        gate = assess_quality(bill, wanted, before=earlier)
        status, reason = gate.status("spend_change_ratio", but=_OF_EFFECTIVE if file.cost == "billed" else ())
        if status == "withheld" or (reason := _without_usage(file, usage, wanted, earlier)):
            apart = f"Not compared with {earlier:%B %Y}: {reason}."
        else:
            before = _divided(bill, earlier, file, usage, called=now.teams, exact_tags=exact_tags)
    team = team if exact_tags else known_spelling(team, now.teams)
    if team not in now.teams:
        close = near(team, list(now.teams))
        hint = f"did you mean {close}?" if close else f"teams are {', '.join(now.teams[:12])}"
        raise InputError(f"--statement {team}: no charge of {wanted:%Y-%m} is of this team; {hint}")
    return _answer(bill, wanted, file, team, now, before, apart)


def _without_usage(file: ShowbackFile, usage: Usage | None, month: date, before: date) -> str:
    """Teams that are split by hours which the files have of one of the two months alone."""
    now, was = (gpu_hours_by_team(file, usage, start, _end(start)) for start in (month, before))
    lost = [
        one.team
        for one in file.split
        if one.by == "usage" and bool(now[one.clusters]) != bool(was[one.clusters])
    ]
    return (
        f"the GPU-hours to split {', '.join(lost)} by are known of one of the two months alone"
        if lost
        else ""
    )


def _end(month: date) -> date:
    return month + timedelta(days=monthrange(month.year, month.month)[1])


def _divided(
    bill: Bill,
    month: date,
    file: ShowbackFile,
    usage: Usage | None,
    *,
    called: Sequence[str] = (),
    exact_tags: bool,
) -> Divided:
    hours = gpu_hours_by_team(file, usage, month, _end(month))
    return divide(month_rows(bill, month), file, hours, called=called, exact_tags=exact_tags)


def _answer(
    bill: Bill, month: date, file: ShowbackFile, team: str, now: Divided, before: Divided | None, apart: str
) -> Answer:
    total, whole = now.of(team) / 100, now.of() / 100
    was = None if before is None else before.of(team) / 100
    lines = _lines(team, now, before)
    head = {"month": f"{month:%Y-%m}", "team": team, "currency": bill.currency}
    flat = [{**head, **dict(zip(_COLUMNS[3:], line, strict=True))} for line in lines]
    # a percentage of or to what is no cost says nothing
    change = (
        ""
        if was is None or was <= 0 or total < 0
        else f", {100 * (total / was - 1):+.1f} % against the month before"
    )
    share = f", {100 * total / whole:.1f} % of the bill's {whole:,.2f}" if whole > 0 else ""
    title = f"{team}: {total:,.2f} {bill.currency} in {month:%B %Y}{change}{share}"
    kinds = [(kind, now.of(team, kind) / 100) for kind in dict.fromkeys(line[0] for line in lines)]
    sections = (
        table_section("parts", "Where it comes from",
                      (Column("kind", "Cost", "text"), Column("cost", "Amount", "money")),
                      [*kinds, ("in all", total)], total=True),
        table_section("lines", "By service",
                      (Column("service", "Service", "text"), Column("provider", "Provider", "text"),
                       Column("kind", "Cost", "text"), Column("cost", "Amount", "money"),
                       Column("before", "Month before", "money")),
                      [(service, provider, kind, *costs) for kind, provider, service, *costs in lines]),
        Section("basis", "How it was divided", (*_basis(file, now), *([apart] if apart else []))),
    )  # fmt: skip
    values = versioned({
        **head, "rules": file.name, "cost_kind": file.cost, "total": total, "before": was, "bill_total": whole,
        "lines": [dict(zip(_COLUMNS[3:], line, strict=True)) for line in lines], "remarks": list(now.remarks),
    })  # fmt: skip
    sources = tuple(source.path for source in bill.sources)
    return Answer(
        f"Statement {month:%Y-%m}",
        title,
        (),
        sections,
        values,
        _COLUMNS,
        flat,
        currency=bill.currency,
        sources=sources,
    )


_Row = tuple[str, str, str, float, float | None]


def _lines(team: str, now: Divided, before: Divided | None) -> list[_Row]:
    was = (
        {(one.kind, one.provider, one.service): one.cents for one in before.lines if one.team == team}
        if before
        else {}
    )
    here = {(one.kind, one.provider, one.service): one.cents for one in now.lines if one.team == team}
    keys = sorted({*here, *was}, key=lambda key: (-here.get(key, 0), key))
    return [(*key, here.get(key, 0) / 100, None if before is None else was.get(key, 0) / 100) for key in keys]


def _basis(file: ShowbackFile, now: Divided) -> tuple[str, ...]:
    said = [
        f"{file.cost.capitalize()} cost of all charges, tax and credits too, by the rules of {file.name}."
    ]
    for one in file.split:
        where = f" on {', '.join(one.clusters)}" if one.clusters else ""
        said.append(f"Cost of {one.team} is shared {_BY[one.by]}{where}.")
    said.append(f"Unused commitments: {_UNUSED[file.unused_commitments]}.")
    return (*said, *now.remarks)


_BY = {
    "cost": "by the teams' own cost",
    "usage": "by their GPU-hours",
    "equal": "in equal parts",
    "weights": "by fixed weights",
}
_UNUSED = {"use": "by use of the same commitment", "cost": "by all cost", "keep": "left to the rules"}
