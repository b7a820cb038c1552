"""Plots of a simulation as static SVG files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from planner.simulation.answer import lines_by
from planner.simulation.replays import BASELINE, OPTIMUM
from planner.simulation.report import KINDS, group_label
from planner.simulation.svg import Chart, Dot, Row, draw

if TYPE_CHECKING:
    from planner.simulation.answer import Line, Simulation

MOST_ROWS = 60
_GAP_LIMITS = (-0.5, 1.0)


def charts(simulation: Simulation) -> Iterator[tuple[str, Chart]]:
    """File name and chart of each plot."""
    partial = "" if simulation.complete else " (PARTIAL)"
    kinds = list(lines_by(simulation, lambda cell: KINDS[cell.kind]))
    yield "cost", Chart(
        f"Cost by policy, 90 % intervals over zone groups{partial}", "cost over the same work on-demand",
        tuple(_groups(kinds)), marks=(1.0,), limits=_cost_limits(kinds),
    )  # fmt: skip
    groups = list(lines_by(simulation, group_label))
    yield "cost-by-zone-group", Chart(
        f"Cost by zone group{partial}", "cost over the same work on-demand",
        tuple(_groups(groups))[:MOST_ROWS], marks=(1.0,), limits=_cost_limits(groups),
    )  # fmt: skip
    if simulation.setting.with_optimum:
        yield "gap-closed", Chart(
            f"Gap closed from {BASELINE} (0) to the offline optimum (1){partial}", "share of the gap",
            tuple(_gaps(kinds, groups))[:MOST_ROWS], marks=(0.0, 1.0), limits=_GAP_LIMITS,
        )  # fmt: skip
    if simulation.n_jobs > 1:
        jobs = list(lines_by(simulation, lambda cell: cell.job))
        yield (
            "cost-by-job",
            Chart(
                f"Cost by job{partial}",
                "cost over the same work on-demand",
                tuple(_groups(jobs))[:MOST_ROWS],
                marks=(1.0,),
                limits=_cost_limits(jobs),
            ),
        )


def _cost_limits(lines: list[Line]) -> tuple[float, float]:
    """From nothing to on-demand, or to the dearest: a share of a whole is drawn from 0."""
    most = max((line.cost.value for line in lines), default=1.0)
    return 0.0, max(1.0, math.ceil(most * 5.0 - 1e-9) / 5.0)


def _groups(lines: list[Line]) -> Iterator[Row]:
    """One row per label with the dots of all policies in it, the cheapest first."""
    labels = dict.fromkeys(line.label for line in lines)
    found = {label: [line for line in lines if line.label == label] for label in labels}
    for label, lines_of in sorted(found.items(), key=lambda item: item[1][0].cost.value):
        own = [line for line in lines_of if line.policy != "on_demand"]  # it is the line at 1
        yield Row(
            label, tuple(Dot(line.policy, line.cost.value, line.cost.low, line.cost.high) for line in own)
        )


def _gaps(kinds: list[Line], groups: list[Line]) -> Iterator[Row]:
    """The overall figures with their intervals first, then each zone group."""
    for lines, strong in ((kinds, True), (groups, False)):
        labels = dict.fromkeys(line.label for line in lines)
        for label in labels:
            own = [line for line in lines if line.label == label and line.policy not in (BASELINE, OPTIMUM)]
            dots = tuple(Dot(line.policy, line.gap.value, line.gap.low, line.gap.high) for line in own)
            if dots:
                yield Row(label if not strong else f"all, {label}", dots, strong)


def write_plots(simulation: Simulation, folder: Path) -> list[Path]:
    """Write all plots; returns their paths.

    Raises:
        InputError: the folder cannot be written to.
    """
    from planner.errors import InputError
    from planner.files import write_atomically

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from error
    paths = []
    for name, chart in charts(simulation):
        path = folder / f"{name}.svg"
        write_atomically(path, draw(chart))
        paths.append(path)
    return paths
