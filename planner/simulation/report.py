"""A simulation as a report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from planner.render import numbers
from planner.render.document import Block, Document, Facts, Grid, Notes, without_empty
from planner.render.report import Report
from planner.simulation.answer import lines_by
from planner.simulation.replays import BASELINE, OPTIMUM

if TYPE_CHECKING:
    from planner.simulation.answer import Line, Simulation
    from planner.simulation.replays import Cell
    from planner.simulation.statistics import Interval

MOST_POLICIES = 5  # columns of the table by zone group
MOST_GROUPS = 40  # of the people's table; programs get all
_SHORT = {BASELINE: "UP"}
KINDS = {"single": "one zone", "several": "several zones"}
_COLUMNS = (
    "job", "kind", "zone_group", "recording", "instance_type", "gang", "policy", "launches", "misses",
    "cost_ratio", "cost_ratio_p10", "cost_ratio_p90", "spot_hours", "on_demand_hours", "interruptions", "lost_hours",
    "finish_over_deadline_ratio", "complete",
)  # fmt: skip


def simulation_report(simulation: Simulation) -> Report:
    """Build the report."""
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
    return Report(_document(simulation, by_kind, by_group), values, _COLUMNS, rows)


def group_label(cell: Cell) -> str:
    """How a zone group is called in tables: its zones, type and gang."""
    kind = f"{cell.instance_type}{f' x{cell.gang}' if cell.gang > 1 else ''}".strip()
    return f"{cell.group} ({kind})" if kind else cell.group  # drawn traces may be of no type


def _row(cell: Cell, complete: bool) -> dict[str, Any]:
    return {
        "job": cell.job, "kind": cell.kind, "zone_group": cell.group, "recording": cell.source,
        "instance_type": cell.instance_type, "gang": cell.gang, "policy": cell.policy, "launches": cell.starts,
        "misses": cell.misses, "cost_ratio": _finite(cell.cost_ratio), "cost_ratio_p10": _finite(cell.cost_ratio_p10),
        "cost_ratio_p90": _finite(cell.cost_ratio_p90), "spot_hours": _finite(cell.spot_hours),
        "on_demand_hours": _finite(cell.on_demand_hours), "interruptions": _finite(cell.interruptions),
        "lost_hours": _finite(cell.lost_hours), "finish_over_deadline_ratio": _finite(cell.finish_ratio),
        "complete": "yes" if complete else "partial",
    }  # fmt: skip


def _line_values(line: Line) -> dict[str, Any]:
    return {
        "label": line.label, "policy": line.policy, "launches": line.launches, "misses": line.misses,
        "cost_ratio": _interval(line.cost), "above_optimum_ratio": _finite(line.above_optimum),
        "gap_closed_ratio": _interval(line.gap), "spot_hours": _finite(line.spot_hours),
        "on_demand_hours": _finite(line.on_demand_hours), "interruptions": _finite(line.interruptions),
    }  # fmt: skip


def _interval(found: Interval) -> dict[str, float | None]:
    return {"value": _finite(found.value), "low": _finite(found.low), "high": _finite(found.high)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _document(simulation: Simulation, by_kind: list[Line], by_group: list[Line]) -> Document:
    done, setting = simulation, simulation.setting
    headline = f"{done.name}: {_verdict(simulation, by_kind)}"
    summary = [f"{_counted(done.n_jobs, 'job')} on {_counted(done.n_groups, 'zone group')}, up to "
               f"{setting.starts} launches of each, seed {setting.seed}"]  # fmt: skip
    if not done.complete:
        headline = f"PARTIAL ({done.tasks_done} of {done.tasks} tasks): {headline}"
        summary.append("interrupted: the figures are of the tasks that were done, not of all")
    kinds = dict.fromkeys(line.label for line in by_kind)
    blocks: list[Block] = [_policies(kind, by_kind) for kind in kinds]
    blocks += [Notes("Words", _legend(setting.with_optimum)), _groups(simulation, by_group)]
    left_out = [(why, numbers.number(count)) for why, count in sorted(done.left_out.items())]
    if left_out:
        blocks.append(Facts("Not replayed (pairs of job and zone group)", tuple(left_out)))
    if done.notes:
        blocks.append(Notes("Traces", done.notes))
    return Document(headline, tuple(summary), tuple(blocks), done.complete)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _verdict(simulation: Simulation, by_kind: list[Line]) -> str:
    """Cost and misses of the first policy asked for."""
    name = simulation.setting.policies[0]
    own = [line for line in by_kind if line.policy == name]
    told = ", ".join(f"{numbers.percent(line.cost.value)} with {line.label}" for line in own)
    misses, launches = sum(line.misses for line in own), sum(line.launches for line in own)
    return f"{name} costs {told} of the same work on-demand; {misses:,} of {launches:,} launches late"


def _span(found: Interval, digits: int = 1) -> str:
    """A ratio as per cent, with its interval where there is one."""
    if not math.isfinite(found.value):
        return ""
    text = numbers.percent(found.value, digits)
    return f"{text} [{100 * found.low:.0f}, {100 * found.high:.0f}]" if math.isfinite(found.low) else text


def _policies(label: str, lines: list[Line]) -> Grid:
    own = [line for line in lines if line.label == label]
    rows = [
        (line.policy, _span(line.cost), _percent(line.above_optimum), _gap(line),
         "" if line.policy == OPTIMUM else f"{line.misses:,}", _hours(line.spot_hours), _hours(line.on_demand_hours),
         _count(line.interruptions))
        for line in own
    ]  # fmt: skip
    header, cells, align = without_empty(
        ("policy", "cost", "above opt.", "gap closed", "late", "spot h", "od h", "stops"), rows, "lrrrrrrr"
    )
    title = f"{label[0].upper()}{label[1:]}, {own[0].launches:,} launches"
    return Grid(title, header, cells, align)


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


def _gap(line: Line) -> str:
    return "" if line.policy in (BASELINE, OPTIMUM) else _span(line.gap, 0)


def _percent(value: float) -> str:
    return numbers.percent(value) if math.isfinite(value) else ""


def _hours(value: float) -> str:
    return numbers.hours(value) if math.isfinite(value) else ""


def _count(value: float) -> str:
    return f"{value:.1f}" if math.isfinite(value) else ""


def _groups(simulation: Simulation, lines: list[Line]) -> Grid:
    """Cost per zone group, one column per policy, and the gap that the first one closes."""
    policies, first = simulation.setting.replayed, simulation.setting.policies[0]
    if len(policies) > MOST_POLICIES:
        policies = tuple(name for name in policies if name in (first, BASELINE, OPTIMUM))
    labels = list(dict.fromkeys(line.label for line in lines))
    found = {(line.label, line.policy): line for line in lines}
    rows = []
    for label in labels[:MOST_GROUPS]:
        costs = [numbers.percent(found[label, name].cost.value) for name in policies]
        own = found[label, first]
        rows.append((label, f"{own.launches:,}", *costs, _gap(own), f"{own.misses:,}" if own.misses else ""))
    header, cells, align = without_empty(
        ("zone group", "launches", *(_SHORT.get(name, name) for name in policies), "gap closed", "late"),
        rows,
        "lr" + "r" * (len(policies) + 2),
    )
    more = len(labels) - MOST_GROUPS
    notes = [f"mean cost over the same work on-demand; gap closed, late: of {first}; UP: {BASELINE}"]
    if more > 0:
        notes.append(f"and {more:,} more zone groups; -o json has them all, -o csv every cell")
    return Grid("Zone groups", header, cells, align, tuple(notes))
