"""A sweep as a report: how many cells have a plan, what they cost by scenario and day, and what planning took."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Any

from planner.plan.plain import plain
from planner.plan.words import enable_first
from planner.render.model import Answer, Column, Figure, Section, next_steps, table_section, versioned
from planner.render.timings import KEY
from planner.workloads.sweeps.answer import COLUMNS
from planner.workloads.sweeps.cells import FAILED, INFEASIBLE, PLANNED, REFUSED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.workloads.sweeps.answer import Row, Spent, Sweep

AS_IT_IS = "as the file says"
_SHOWN = 10  # messages
_STATUSES = (PLANNED, INFEASIBLE, REFUSED, FAILED)


def sweep_report(sweep: Sweep) -> Answer:
    """Build the answer."""
    counts = {status: sweep.counts().get(status, 0) for status in _STATUSES}
    groups = _groups(sweep)
    columns = (
        Column("as_of", "as of", "text"), Column("scenario", "if", "text"), Column("cells", "cells", "count"),
        Column("planned", "planned", "count"), Column("total_usd", "cost of all", "usd_rounded"),
        Column("change_ratio", "median change", "percent_change", 1),
    )  # fmt: skip
    shown = [tuple(group[column.key] for column in columns) for group in groups]
    off = enable_first(place for row in sweep.rows if row["status"] == PLANNED for place in _places(row))
    sections = [
        table_section("groups", "Days and scenarios", columns, shown, off),
        *_messages(sweep),
        _spent(sweep),
    ]
    values = {
        "cells": len(sweep.rows), "skipped_files": sweep.skipped, "statuses": counts, "groups": plain(groups),
        "rows": [dict(row) for row in sweep.rows],
        "cpu": {one.kind: _times(one) for one in sweep.spent},
    }  # fmt: skip
    said = ", ".join(f"{count:,} {status}" for status, count in counts.items() if count)
    return Answer(
        "Sweep", f"{_cells(len(sweep.rows))}: {said}", (), tuple(sections), versioned(values), tuple(COLUMNS),
        sweep.rows, success=bool(counts[PLANNED]), front=(*sections, _next(sweep)),
    )  # fmt: skip


def _cells(count: int) -> str:
    return f"{count:,} cell{'' if count == 1 else 's'}"


def _places(row: Row) -> Iterator[tuple[str, str]]:
    """Provider and region of a plan's lines, whose distinct names are joined."""
    return product(row["provider"].split(" + "), row["region"].split(" + "))


def _groups(sweep: Sweep) -> list[dict[str, Any]]:
    """Per day and scenario: how many have a plan, their cost, the median change against the file as it is."""
    before = {
        (row["file"], row["as_of"]): Decimal(row["total_usd"])
        for row in sweep.rows
        if row["status"] == PLANNED and not row["scenario"]
    }
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in sweep.rows:
        groups.setdefault((row["as_of"], row["scenario"]), []).append(row)
    out = []
    for (day, scenario), rows in sorted(groups.items()):
        planned = [row for row in rows if row["status"] == PLANNED]
        changes = [
            float(Decimal(row["total_usd"]) / old) - 1.0
            for row in planned
            if scenario and (old := before.get((row["file"], day)))
        ]
        out.append(
            {
                "as_of": day, "scenario": scenario or AS_IT_IS, "cells": len(rows), "planned": len(planned),
                "total_usd": sum(Decimal(row["total_usd"]) for row in planned) if planned else None,
                "change_ratio": median(changes) if changes else "",
            }
        )  # fmt: skip
    return out


def _messages(sweep: Sweep) -> list[Section]:
    """What kept cells without a plan from one: the first few of each kind."""
    out = []
    for status, title in ((REFUSED, "Refused"), (FAILED, "Failed"), (INFEASIBLE, "No plan")):
        rows = [row for row in sweep.rows if row["status"] == status]
        lines = [
            f"{_name(row)}: {row.get('message') or row.get('needs') or 'see planner explain'}" for row in rows
        ]
        more = (
            [f"and {len(rows) - _SHOWN:,} more: column message of the results"] if len(rows) > _SHOWN else []
        )
        if rows:
            out.append(Section(status, title, (*lines[:_SHOWN], *more)))
    return out


def _name(row: Row) -> str:
    return ", ".join(text for text in (row["file"], row["as_of"], row["scenario"]) if text)


def _next(sweep: Sweep) -> Section:
    """How to see the plan of a row."""
    row = next((row for row in sweep.rows if row["status"] == PLANNED), None)
    if row is None:
        return next_steps("next: planner explain FILE")
    return next_steps("next: a row's plan: planner optimize FILE --as-of DATE --set KEY=VALUE")


def _times(spent: Spent) -> dict[str, dict[str, float | None]]:
    """CPU seconds of a cell; None where no cell was measured."""
    return {
        "median": {KEY: spent.median_s if spent.cells else None},
        "p90": {KEY: spent.p90_s if spent.cells else None},
    }


def _spent(sweep: Sweep) -> Section:
    """What planning took: jobs and fleets apart, and how much of it was done before."""
    words = f"{_cells(sweep.computed)}; {sweep.kept:,} from earlier runs"
    figure = Figure("computed", "Planned now", sweep.computed, "count", words=words)
    figures = [
        Figure(
            KEY, f"CPU time of {one.kind}", one.median_s, "seconds",
            words=f"{one.median_s * 1000:,.0f} ms in the median, {one.p90_s * 1000:,.0f} ms in the 90th percentile "
            f"({_cells(one.cells)} on workers that had planned before)",
        )
        for one in sweep.spent
        if one.cells
    ]  # fmt: skip
    return Section("work", "Work", figures=(figure, *figures))
