"""A simulation as a report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from planner.render import numbers
from planner.render.model import Answer, Column, Section, Value, facts, table_section, versioned
from planner.simulation.answer import lines_by
from planner.simulation.plots import KINDS, charts, group_label
from planner.simulation.replays import BASELINE, OPTIMUM

if TYPE_CHECKING:
    from planner.simulation.answer import Line, Simulation
    from planner.simulation.replays import Cell
    from planner.simulation.statistics import Interval

MOST_POLICIES = 5  # columns of the table by zone group
MOST_GROUPS = 40  # of the people's table; programs get all
_SHORT = {BASELINE: "UP"}
_COLUMNS = (
    "job", "kind", "zone_group", "recording", "instance_type", "gang", "policy", "launches", "misses",
    "misses_out_of_reach",
    "cost_ratio", "cost_ratio_p10", "cost_ratio_p90", "spot_hours", "on_demand_hours", "interruptions", "lost_hours",
    "finish_over_deadline_ratio", "complete",
)  # fmt: skip


def simulation_report(simulation: Simulation) -> Answer:
    """Build the answer in the shape that every format is made of."""
    setting = simulation.setting
    by_kind = list(lines_by(simulation, lambda cell: KINDS[cell.kind]))
    by_group = list(lines_by(simulation, group_label))
    values: dict[str, Any] = {
        "name": simulation.name, "complete": simulation.complete, "tasks": simulation.tasks,
        "tasks_done": simulation.tasks_done, "jobs": simulation.n_jobs, "zone_groups": simulation.n_groups,
        "starts": setting.starts, "seed": setting.seed, "policies": list(setting.replayed),
        "baseline": BASELINE, "interval_level_ratio": 0.9,
        "by_kind": [_line_values(line) for line in by_kind],
        "by_zone_group": [_line_values(line) for line in by_group],
        "left_out": [{"reason": why, "pairs": count} for why, count in sorted(simulation.left_out.items())],
        "notes": list(simulation.notes),
    }  # fmt: skip
    rows = [_row(cell, simulation.complete) for cell in simulation.cells]
    title, summary = _said(simulation, by_kind)
    return Answer(
        f"Simulation of {simulation.name}", title, summary, _sections(simulation, by_kind, by_group),
        versioned(values), _COLUMNS, rows, success=simulation.complete,
    )  # fmt: skip


def _row(cell: Cell, complete: bool) -> dict[str, Any]:
    return {
        "job": cell.job, "kind": cell.kind, "zone_group": cell.group, "recording": cell.source,
        "instance_type": cell.instance_type, "gang": cell.gang, "policy": cell.policy, "launches": cell.starts,
        "misses": cell.misses, "misses_out_of_reach": cell.misses_out_of_reach,
        "cost_ratio": _finite(cell.cost_ratio), "cost_ratio_p10": _finite(cell.cost_ratio_p10),
        "cost_ratio_p90": _finite(cell.cost_ratio_p90), "spot_hours": _finite(cell.spot_hours),
        "on_demand_hours": _finite(cell.on_demand_hours), "interruptions": _finite(cell.interruptions),
        "lost_hours": _finite(cell.lost_hours), "finish_over_deadline_ratio": _finite(cell.finish_ratio),
        "complete": "yes" if complete else "partial",
    }  # fmt: skip


def _line_values(line: Line) -> dict[str, Any]:
    return {
        "label": line.label, "policy": line.policy, "launches": line.launches, "misses": line.misses,
        "misses_out_of_reach": line.misses_out_of_reach,
        "cost_ratio": _interval(line.cost), "above_optimum_ratio": _finite(line.above_optimum),
        "gap_closed_ratio": _interval(line.gap), "spot_hours": _finite(line.spot_hours),
        "on_demand_hours": _finite(line.on_demand_hours), "interruptions": _finite(line.interruptions),
    }  # fmt: skip


def _interval(interval: Interval) -> dict[str, float | None]:
    return {"value": _finite(interval.value), "low": _finite(interval.low), "high": _finite(interval.high)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _said(simulation: Simulation, by_kind: list[Line]) -> tuple[str, tuple[str, ...]]:
    """The verdict and what it is about."""
    done, setting = simulation, simulation.setting
    title = f"{done.name}: {_verdict(simulation, by_kind)}"
    summary = (f"{_counted(done.n_jobs, 'job')} on {_counted(done.n_groups, 'zone group')}, up to "
               f"{setting.starts} launches of each, seed {setting.seed}")  # fmt: skip
    if done.complete:
        return title, (summary,)
    title = f"PARTIAL ({done.tasks_done} of {done.tasks} tasks): {title}"
    return title, (summary, "interrupted: the figures are of the tasks that were done, not of all")


def _sections(simulation: Simulation, by_kind: list[Line], by_group: list[Line]) -> tuple[Section, ...]:
    kinds = dict.fromkeys(line.label for line in by_kind)
    sections = [_policies(kind, by_kind) for kind in kinds]
    sections += [
        Section("words", "Words", _legend(simulation.setting.with_optimum)),
        Section("plots", "Plots", charts=tuple(charts(simulation))),
        _groups(simulation, by_group),
    ]
    if simulation.left_out:
        rows = [(f"left_out_{at}", why, count, "count", numbers.number(count))
                for at, (why, count) in enumerate(sorted(simulation.left_out.items()), start=1)]  # fmt: skip
        sections.append(facts("left_out", "Not replayed (pairs of job and zone group)", rows))  # type: ignore[arg-type]
    if simulation.notes:
        sections.append(Section("traces", "Traces and launches", simulation.notes))
    return tuple(sections)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _verdict(simulation: Simulation, by_kind: list[Line]) -> str:
    """Cost and misses of the first policy asked for."""
    name = simulation.setting.policies[0]
    policy_lines = [line for line in by_kind if line.policy == name]
    words = ", ".join(f"{numbers.percent(line.cost.value)} with {line.label}" for line in policy_lines)
    misses, without, launches = (
        sum(getattr(line, what) for line in policy_lines)
        for what in ("misses", "misses_out_of_reach", "launches")
    )
    why = f", {without:,} of them without on-demand or too slow for it" if without else ""
    return f"{name} costs {words} of the same work on-demand; {misses:,} of {launches:,} launches late{why}"


def _policies(label: str, lines: list[Line]) -> Section:
    policy_lines = [line for line in lines if line.label == label]
    rows: list[tuple[Value, ...]] = [
        (line.policy, _span(line.cost), _known(line.above_optimum), _gap(line),
         "" if line.policy == OPTIMUM else line.misses, _known(line.spot_hours), _known(line.on_demand_hours),
         _known(line.interruptions))
        for line in policy_lines
    ]  # fmt: skip
    columns = (
        Column("policy", "policy", "text"), Column("cost", "cost", "interval"),
        Column("above_optimum_ratio", "above opt.", "ratio"), Column("gap_closed", "gap closed", "interval", 0),
        Column("misses", "late", "count"), Column("spot_hours", "spot h", "hours"),
        Column("on_demand_hours", "od h", "hours"), Column("interruptions", "stops", "tenths"),
    )  # fmt: skip
    title = f"{label[0].upper()}{label[1:]}, {policy_lines[0].launches:,} launches"
    return table_section(f"policies_{label.replace(' ', '_')}", title, columns, rows)


def _span(interval: Interval) -> Value:
    """A ratio with its interval, where there is one."""
    if not math.isfinite(interval.value):
        return ""
    ends = (interval.low, interval.high) if math.isfinite(interval.low) else (None, None)
    return (interval.value, *ends)


def _known(value: float) -> float | str:
    """The value; nothing where there is none."""
    return value if math.isfinite(value) else ""


def _legend(with_optimum: bool) -> tuple[str, ...]:
    """What the words of the grids mean."""
    items = [
        "cost: over the same work on-demand; [90 % intervals over zone groups]",
        "late: missed the deadline; what was left then is charged on-demand",
    ]
    if with_optimum:
        items.append(
            f"gap closed: from {BASELINE} (0 %) to the offline optimum, which knows the future (100 %)"
        )
    return tuple(items)


def _gap(line: Line) -> Value:
    return "" if line.policy in (BASELINE, OPTIMUM) else _span(line.gap)


def _groups(simulation: Simulation, lines: list[Line]) -> Section:
    """Cost per zone group, one column per policy, and the gap that the first one closes."""
    policies, first = simulation.setting.replayed, simulation.setting.policies[0]
    if len(policies) > MOST_POLICIES:
        policies = tuple(name for name in policies if name in (first, BASELINE, OPTIMUM))
    labels = list(dict.fromkeys(line.label for line in lines))
    line_of = {(line.label, line.policy): line for line in lines}
    rows: list[tuple[Value, ...]] = []
    for label in labels:
        first_line = line_of[label, first]
        costs = [line_of[label, name].cost.value for name in policies]
        rows.append((label, first_line.launches, *costs, _gap(first_line), first_line.misses or ""))
    columns = (
        Column("zone_group", "zone group", "text"), Column("launches", "launches", "count"),
        *(Column(f"cost_{name}", _SHORT.get(name, name), "ratio") for name in policies),
        Column("gap_closed", "gap closed", "interval", 0), Column("misses", "late", "count"),
    )  # fmt: skip
    notes = (f"mean cost over the same work on-demand; gap closed, late: of {first}; UP: {BASELINE}",)
    return table_section("zone_groups", "Zone groups", columns, rows, notes, shown=MOST_GROUPS)
