"""Plots of a simulation as static SVG files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.files import write_atomically
from planner.render.model import Chart
from planner.simulation.answer import lines_by
from planner.simulation.replays import BASELINE, OPTIMUM

if TYPE_CHECKING:
    from planner.simulation.answer import Line, Simulation
    from planner.simulation.replays import Cell
    from planner.simulation.statistics import Interval

KINDS = {"single": "one zone", "several": "several zones"}


def charts(simulation: Simulation) -> Iterator[Chart]:
    """The plots: cost by policy, zone group and job, and the gap closed."""
    partial = "" if simulation.complete else " (PARTIAL)"
    kinds = list(lines_by(simulation, lambda cell: KINDS[cell.kind]))
    yield _costs("cost", f"Cost by policy, 90 % intervals over zone groups{partial}", kinds)
    groups = list(lines_by(simulation, group_label))
    yield _costs("cost-by-zone-group", f"Cost by zone group{partial}", groups)
    if simulation.setting.with_optimum:
        title = f"Gap closed from {BASELINE} (0) to the offline optimum (1){partial}"
        rows = [(f"all, {label}", lines) for label, lines in _labelled(kinds)] + _labelled(groups)
        yield _dots("gap-closed", title, "share of the gap", rows, _gap, (0.0, 1.0))
    if simulation.n_jobs > 1:
        jobs = list(lines_by(simulation, lambda cell: cell.job))
        yield _costs("cost-by-job", f"Cost by job{partial}", jobs)


def group_label(cell: Cell) -> str:
    """How a zone group is called in tables: its zones, type and gang."""
    kind = f"{cell.instance_type}{f' x{cell.gang}' if cell.gang > 1 else ''}".strip()
    return f"{cell.group} ({kind})" if kind else cell.group  # drawn traces may be of no type


def _labelled(lines: list[Line]) -> list[tuple[str, list[Line]]]:
    labels = dict.fromkeys(line.label for line in lines)
    return [(label, [line for line in lines if line.label == label]) for label in labels]


def _cost(line: Line) -> Interval | None:
    return None if line.policy == "on_demand" else line.cost  # on-demand is the line at 1


def _gap(line: Line) -> Interval | None:
    return None if line.policy in (BASELINE, OPTIMUM) else line.gap


def _costs(key: str, title: str, lines: list[Line]) -> Chart:
    """Costs over the same work on-demand, the cheapest label first."""
    rows = sorted(_labelled(lines), key=lambda row: row[1][0].cost.value)
    return _dots(key, title, "cost over the same work on-demand", rows, _cost, (1.0,))


def _dots(
    key: str, title: str, axis: str, rows: list[tuple[str, list[Line]]], pick: Callable[[Line], Interval | None],
    marks: tuple[float, ...],
) -> Chart:  # fmt: skip
    """One dot per label and policy with its interval."""
    policies = dict.fromkeys(line.policy for _, lines in rows for line in lines if pick(line) is not None)
    series = []
    for policy in policies:
        intervals = [next((pick(line) for line in lines if line.policy == policy), None) for _, lines in rows]
        for name in ("value", "low", "high"):
            ends = tuple(None if one is None else _finite(getattr(one, name)) for one in intervals)
            series.append((policy if name == "value" else f"{policy} {name}", ends))
    labels = tuple(label for label, _ in rows)
    return Chart(
        key, title, "dots", labels, tuple(series), "ratio", "", marks=marks, drawn_only=True, axis=axis
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def write_plots(simulation: Simulation, folder: Path) -> list[Path]:
    """Write all plots; returns their paths.

    Raises:
        InputError: the folder cannot be written to.
    """
    from planner.render.charts import draw

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be created: {error.strerror}") from error
    paths = []
    for chart in charts(simulation):
        path = folder / f"{chart.key}.svg"
        write_atomically(path, draw(chart, headed=True) + "\n")
        paths.append(path)
    return paths
