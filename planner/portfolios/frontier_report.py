"""`planner portfolio --frontier`: the points, and what people, programs and spreadsheets read of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.portfolios.frontier import FrontierPoint, delay_of, find_frontier
from planner.portfolios.gather import Gatherer
from planner.portfolios.question import in_time
from planner.portfolios.shared_limits import MICRO
from planner.render.model import Answer, Chart, Column, Value, table_section, versioned

if TYPE_CHECKING:
    from catalogs.model import Catalog
    from planner.asked.options import Options
    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.portfolios.solve import PortfolioOptions

COLUMNS = (
    *(
        "budget_usd",
        "cost_usd",
        "delay",
        "delay_bound",
        "gap_ratio",
        "gap_exact_ratio",
        "mean_hours",
        "status",
    ),
)


@dataclass(frozen=True, eq=False)
class PortfolioFrontier:
    """The points with their file; `weighted` tells whether jobs have a price of delay."""

    loaded: LoadedPortfolio
    points: list[FrontierPoint]
    ends_hours: np.ndarray[tuple[int], np.dtype[np.float64]]
    weighted: bool


def plan_frontier(
    loaded: LoadedPortfolio,
    planning: Options,
    options: PortfolioOptions,
    points: int,
    *,
    catalog: Callable[[], Catalog],
) -> PortfolioFrontier:
    """Find the frontier of a portfolio; all its jobs run.

    Raises:
        InputError: a job or a file is wrong.
    """
    gathered = Gatherer(loaded, catalog, planning).gather()
    question = in_time(gathered.question)
    table = question.table
    ends = table.start_hours + table.hours
    weight = np.array([loaded.jobs[kind].delay_usd_per_hour for kind in gathered.kinds])
    runs = ~table.left_out  # whom to leave out is decided by the plan, not by a frontier
    if not runs.all():
        alone = np.setdiff1d(np.arange(len(gathered.jobs)), table.job[runs])
        runs |= np.isin(table.job, alone)
    numbers, keep = _without(question.numbers, runs), np.flatnonzero(runs)
    delay = delay_of(ends[keep], weight[table.job[keep]])
    found = find_frontier(numbers, delay, points, options)
    return PortfolioFrontier(loaded, found, ends[keep], bool((weight > 0).any()))


def _without(numbers: Any, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Any:
    position, inside = np.cumsum(keep) - 1, keep[numbers.entry_candidate]
    return replace(
        numbers, job=numbers.job[keep], cost=numbers.cost[keep], objective=numbers.objective[keep],
        entry_candidate=position[numbers.entry_candidate[inside]], entry_limit=numbers.entry_limit[inside],
        entry_units=numbers.entry_units[inside],
    )  # fmt: skip


def frontier_report(made: PortfolioFrontier) -> Answer:
    """Return a frontier in the shape that every format is made of."""
    points = [_values(made, point) for point in made.points]
    name = made.loaded.portfolio.name
    values = {
        "kind": "portfolio_frontier",
        "name": name,
        "sha256": made.loaded.sha256,
        "currency": "USD",
        "delay_unit": "USD of delay" if made.weighted else "job-hours",
        "points": points,
    }
    topic = f"Cost against delay of {name}"
    if not points:
        title = f"No feasible plan for {name}: `planner portfolio` says why"
        return Answer(topic, title, (), (), versioned(values), COLUMNS, [], success=False)
    unit = "delay (USD)" if made.weighted else "job-hours"
    names = ("budget_usd", "cost_usd", "delay", "delay_bound", "gap_ratio", "mean_hours")
    rows: list[tuple[Value, ...]] = [
        tuple("" if point[key] is None else point[key] for key in names) for point in points
    ]
    columns = (
        Column("budget_usd", "budget", "usd"), Column("cost_usd", "cost", "usd"), Column("delay", unit, "number", 6),
        Column("delay_bound", "at least", "number", 6), Column("gap_ratio", "gap", "ratio", 2),
        Column("mean_hours", "mean hours to end", "number", 3),
    )  # fmt: skip
    notes = (
        "`at least`: of the candidates gathered for these jobs no plan within the budget has less; all jobs run",
    )
    found = [point for point in points if point["delay"] is not None and point["cost_usd"] is not None]
    series = (("x", tuple(p["delay"] for p in found)), ("cost", tuple(p["cost_usd"] for p in found)))
    labels = tuple(f"budget {point['budget_usd']:,.0f}" for point in found)
    chart = Chart("cost_by_delay", "", "steps", labels, series, "usd", "", drawn_only=True, axis=unit)
    section = table_section(
        "points", "Cost against delay", columns, rows, notes, charts=(chart,) if len(found) > 1 else ()
    )
    title = f"{name}: {len(points)} points of cost against delay"
    return Answer(topic, title, (), (section,), versioned(values), COLUMNS, points)


def _values(made: PortfolioFrontier, point: FrontierPoint) -> dict[str, Any]:
    picks = point.result.picks
    return {
        "budget_usd": point.budget / MICRO,
        "cost_usd": None if point.cost is None else point.cost / MICRO,
        "delay": None if point.delay is None else point.delay / MICRO,
        "delay_bound": (point.delay_bound or 0) / MICRO,
        "gap_ratio": point.gap,
        "gap_exact_ratio": point.result.exact_gap,
        "mean_hours": None if picks is None else float(made.ends_hours[picks].mean()),
        "status": point.result.status.value,
    }
