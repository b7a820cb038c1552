"""`planner portfolio --frontier`: the points, and what people, programs and spreadsheets read of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import Ints
from planner.portfolios.frontier import FrontierPoint, delay_of, find_frontier
from planner.portfolios.frontier_screen import frontier_screen
from planner.portfolios.gather import Gatherer, opened
from planner.portfolios.job_times import refuse_arrivals
from planner.portfolios.question import Question, in_time
from planner.portfolios.report_values import catalog_values, job_values, limit_values, window_values
from planner.portfolios.shared_limits import MICRO, PortfolioInput
from planner.portfolios.spread import beside_of, between_usd, price_dates
from planner.render.model import Answer, Chart, Column, Section, Value, table_section, versioned
from planner.render.screen import on_screen

if TYPE_CHECKING:
    from datetime import datetime

    from catalogs.tables.model import Catalog
    from planner.asked.options import Options
    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.portfolios.gather import Gathered
    from planner.portfolios.solve import PortfolioOptions

_MOST_JOBS = 100  # rows of the jobs by point
COLUMNS = (
    "budget_usd", "cost_usd", "delay", "delay_bound", "delay_bound_exact", "gap_ratio", "gap_exact_ratio", "mean_hours",
    "status",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class PortfolioFrontier:
    """The points with their file.

    Attributes:
        loaded: the file.
        points: the points; their picks number the candidates in `kept`.
        gathered: candidates and what they mean.
        question: the candidates in time, under the limits as given.
        kept: those that the points choose from, numbered as in `question`, shape `(n,)`.
        weighted: whether jobs have a price of delay.
        catalog: prices used, None where every candidate was sized elsewhere.
        created_at: moment of the answer.
    """

    loaded: LoadedPortfolio
    points: list[FrontierPoint]
    gathered: Gathered
    question: Question
    kept: Ints
    weighted: bool
    catalog: Catalog | None
    created_at: datetime


def plan_frontier(
    loaded: LoadedPortfolio,
    planning: Options,
    options: PortfolioOptions,
    points: int,
    *,
    catalog: Callable[[], Catalog] | None = None,
) -> PortfolioFrontier:
    """Find the frontier of a portfolio; all its jobs run.

    Raises:
        InputError: a job or a file is wrong.
        TimeLimitError: no plan was found in time, and none is proven impossible.
    """
    refuse_arrivals(loaded)
    used: list[Catalog] = []

    gathered = Gatherer(loaded, opened(used, catalog, planning), planning).gather()
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
    return PortfolioFrontier(
        loaded,
        found,
        gathered,
        question,
        keep,
        bool((weight > 0).any()),
        used[0] if used else None,
        planning.now,
    )


def _without(numbers: PortfolioInput, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> PortfolioInput:
    position, inside = np.cumsum(keep) - 1, keep[numbers.entry_candidate]
    return replace(
        numbers, job=numbers.job[keep], cost=numbers.cost[keep], objective=numbers.objective[keep],
        entry_candidate=position[numbers.entry_candidate[inside]], entry_limit=numbers.entry_limit[inside],
        entry_units=numbers.entry_units[inside],
    )  # fmt: skip


def frontier_report(frontier: PortfolioFrontier, *, details: Sequence[str] = ()) -> Answer:
    """Return a frontier in the shape that every format is made of.

    Args:
        frontier: the points.
        details: keys of sections to show in place of the screen, or `all`.
    """
    points = [_values(frontier, point) for point in frontier.points]
    name = frontier.loaded.portfolio.name
    values = {
        "kind": "portfolio_frontier",
        "name": name,
        "sha256": frontier.loaded.sha256,
        "created_at": frontier.created_at.isoformat(timespec="minutes"),
        "start": frontier.gathered.start.isoformat(timespec="minutes"),
        "currency": "USD",
        "catalog": catalog_values(frontier.catalog),
        "windows": window_values(frontier.gathered),
        "delay_unit": "USD of delay" if frontier.weighted else "job-hours",
        "points": points,
    }
    topic = f"Cost against delay of {name}"
    if points:
        title = f"{name}: {len(points)} points of cost against delay"
        sections: tuple[Section, ...] = (_point_section(frontier, points), _job_section(points))
    else:
        title, sections = f"No feasible plan for {name}: `planner portfolio` says why", ()
    flat = [{name: point[name] for name in COLUMNS} for point in points]
    whole = Answer(topic, title, (), sections, versioned(values), COLUMNS, flat, success=bool(points))
    budget = frontier.loaded.portfolio.budget_usd
    half, dates = _known(frontier)
    screen = frontier_screen(
        values,
        dates,
        half=half,
        budget=None if budget is None else float(budget),
        notes=frontier.gathered.notes,
        beside=beside_of(frontier.loaded),
    )
    return on_screen(whole, screen, details)


def _known(frontier: PortfolioFrontier) -> tuple[float, list[str]]:
    """Half of the interval of the costs, of the costs (0: not known), and the dates of the prices behind them."""
    half, dates = 0.0, set[str]()
    for point in frontier.points:
        if point.result.picks is None:
            continue
        table = frontier.question.table.take(frontier.kept[point.result.picks])
        dates |= set(price_dates(frontier.gathered, table))
        if point in (frontier.points[0], frontier.points[-1]) and point.cost:
            low, high = between_usd(frontier.gathered, table) or (Decimal(0), Decimal(0))
            half = max(half, float(high - low) / 2.0 / (point.cost / MICRO))
    return half, sorted(dates)


def _point_section(frontier: PortfolioFrontier, points: list[dict[str, Any]]) -> Section:
    unit = "delay (USD)" if frontier.weighted else "job-hours"
    names = ("budget_usd", "cost_usd", "delay", "delay_bound", "gap_ratio", "mean_hours")
    rows: list[tuple[Value, ...]] = [
        tuple("" if point[key] is None else point[key] for key in names) for point in points
    ]
    columns = (
        Column("budget_usd", "budget", "usd"), Column("cost_usd", "cost", "usd"), Column("delay", unit, "number", 6),
        Column("delay_bound", "at least", "number", 6), Column("gap_ratio", "gap", "ratio", 2),
        Column("mean_hours", "mean hours to end", "number", 3),
    )  # fmt: skip
    less = (
        "by the solver's bound no plan of the candidates gathered for these jobs has less within the budget"
    )
    notes = (f"`at least`: {less}", "all jobs run")
    found = [point for point in points if point["delay"] is not None and point["cost_usd"] is not None]
    series = (("x", tuple(p["delay"] for p in found)), ("cost", tuple(p["cost_usd"] for p in found)))
    labels = tuple(f"budget {point['budget_usd']:,.0f}" for point in found)
    chart = Chart("cost_by_delay", "", "steps", labels, series, "usd", "", drawn_only=True, axis=unit)
    charts = (chart,) if len(found) > 1 else ()
    return table_section("points", "Cost against delay", columns, rows, notes, charts=charts)


def _job_section(points: list[dict[str, Any]]) -> Section:
    """What each job gets at each point."""
    columns = (
        Column("budget_usd", "budget", "usd"), Column("job", "job", "text"), Column("cluster", "machines", "cluster"),
        Column("option", "bought", "text"), Column("place", "where", "place"), Column("end", "ends", "date"),
        Column("cost_usd", "cost", "usd"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (
            point["budget_usd"], job["job"], (job["nodes"], job["instance_type"]) if "nodes" in job else job["status"],
            job.get("purchase_option", "") + (" (owned)" if job.get("owned") else ""),
            (job["provider"], job["region"], "") if "region" in job else "",
            job["end"][:16].replace("T", " ") if "end" in job else "", job["cost_usd"],
        )
        for point in points
        for job in point["jobs"]
    ]  # fmt: skip
    return table_section("jobs", "Jobs by point", columns, rows, shown=_MOST_JOBS, detail=True)


def _values(frontier: PortfolioFrontier, point: FrontierPoint) -> dict[str, Any]:
    picks = point.result.picks
    question, jobs, limits, ends = frontier.question, [], [], None
    if picks is not None:
        chosen = frontier.kept[picks]
        table = question.table.take(chosen)
        ends = table.start_hours + table.hours
        jobs = job_values(frontier.gathered, table)
        limits = limit_values(
            question, question.numbers.used(chosen), np.zeros(len(question.limits), dtype=np.int64)
        )
    return {
        "budget_usd": point.budget / MICRO,
        "cost_usd": None if point.cost is None else point.cost / MICRO,
        "delay": None if point.delay is None else point.delay / MICRO,
        "delay_bound": (point.delay_bound or 0) / MICRO,
        "delay_bound_exact": (point.result.exact_bound or 0) / MICRO,
        "gap_ratio": point.gap,
        "gap_exact_ratio": point.result.exact_gap,
        "mean_hours": None if ends is None else float(ends.mean()),
        "status": point.result.status.value,
        "jobs": jobs,
        "limits": limits,
    }
