"""A portfolio's answer as a `Report`: what people, programs and spreadsheets read of it."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.portfolios.report_values import searched, values_of
from planner.portfolios.screen import portfolio_screen, total_as_known
from planner.portfolios.shared_limits import MICRO
from planner.portfolios.spread import beside_of, price_dates
from planner.render import claims
from planner.render.model import (
    Answer,
    Chart,
    Column,
    Section,
    Unit,
    Value,
    facts,
    table_section,
    versioned,
)
from planner.render.numbers import hours_enough, number, percent, usd_enough
from planner.render.numbers import usd as decimal_usd
from planner.render.precision import dollars_enough, dollars_stated
from planner.render.screen import on_screen
from solvers.problem.solution import Status

if TYPE_CHECKING:
    from collections.abc import Collection

    from planner.portfolios.answer import PortfolioAnswer
    from planner.portfolios.solve import PortfolioResult

MOST_JOBS = 40  # shown to people; data formats show all
MOST_LIMITS = 12
COLUMNS = (
    *("row", "job", "status", "provider", "region", "zone", "instance_type", "purchase_option", "option_variant"),
    *("nodes", "start", "end", "hours", "cost_usd", "counted_usd", "late_hours", "owned", "offer_id"),
    *("limit", "window", "used", "available", "raised"),
)  # fmt: skip


def usd(value: float) -> str:
    """An amount of US dollars for people."""
    return decimal_usd(Decimal(repr(round(float(value), 2))))


def portfolio_report(
    answer: PortfolioAnswer, *, verbose: bool = False, details: Collection[str] = ()
) -> Answer:
    """Return `answer` in the shape that every format is made of.

    Args:
        answer: the answer.
        verbose: show every job and limit to people too.
        details: keys of sections to show in place of the screen, or `all`.
    """
    values = values_of(answer)
    jobs, limits = values["jobs"], values["limits"]
    rows = [{"row": "job", **{key: job.get(key) for key in COLUMNS if key in job}} for job in jobs]
    rows += [{"row": "limit", **{key: limit.get(key) for key in COLUMNS if key in limit}} for limit in limits]
    title, summary = _headline(answer, values)
    whole = Answer(
        f"Portfolio {answer.loaded.portfolio.name}", title, summary, tuple(_sections(answer, values, verbose)),
        versioned(values), COLUMNS, rows, success=answer.result.picks is not None,
    )  # fmt: skip
    entries = [answer.loaded.jobs[at].name for at in answer.gathered.kinds]
    why, helps = ("", "") if whole.success else (title, "; ".join(summary))
    of = searched(answer)
    stuck = [text for part in whole.sections if part.key == "stuck" for text in (part.title, *part.sentences)]
    risk = (
        None
        if answer.robust is None
        else (answer.robust.sentence("job", answer.options.gap), answer.robust.claim(answer.options.gap))
    )
    chosen = None if answer.shown is None else answer.gathered.question.table.take(answer.shown[1])
    dates = [] if chosen is None else price_dates(answer.gathered, chosen)
    beside = beside_of(answer.loaded)
    screen = portfolio_screen(
        values, entries, dates, stuck=stuck, helps=helps, why=why, of=of, risk=risk, beside=beside
    )
    return on_screen(whole, screen, details)


def _sections(answer: PortfolioAnswer, values: dict[str, Any], verbose: bool) -> list[Section]:
    infeasible = answer.result.picks is None
    sections: list[Section] = []
    if infeasible:
        sections += _why(answer, values, verbose)
    jobs = values["jobs"]
    if jobs:
        sections.append(_job_table(answer, jobs, values["totals"], verbose, relaxed=infeasible))
        sections += _limit_table(values["limits"], verbose)
    if answer.notes:
        sections.append(Section("warnings", "Warnings", answer.notes, warning=True))
    sections += _filter_notes(answer, verbose, everything=infeasible)
    result = answer.result if answer.shown is None else answer.shown[0]
    proof = facts("proof", "Proof", _proof_rows(answer, result), detail=True)
    return [*sections, proof]


def _headline(answer: PortfolioAnswer, values: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    name, totals = answer.loaded.portfolio.name, values["totals"]
    if answer.solver_fault:
        return f"Solver fault on {name}: it reported a feasible problem as infeasible", (
            answer.result.message,
        )
    if answer.result.picks is None:
        if answer.result.status is not Status.INFEASIBLE:
            return f"No plan for {name} within the time limit", ("raise --time-limit",)
        changes = _changes(values["relaxation"])
        title = f"No feasible plan for {name}: no choice {searched(answer)} meets every limit"
        return title, (f"Change that makes one possible: {changes}",) if changes else ()
    left = f", {totals['left_out']:,} left out" if totals["left_out"] else ""
    jobs = "1 job" if totals["planned"] == 1 else f"{totals['planned']:,} jobs"
    headline = f"{name}: {jobs} for {total_as_known(totals['cost_usd'], totals)}{left}"
    gap = values["proof"]
    best = min(gap["gap_exact_ratio"], gap["gap_solver_ratio"])
    of = searched(answer).rstrip(",")
    how = (
        "interrupted"
        if answer.result.interrupted
        else f"at most {percent(best, 3)} above the least cost {of}"
    )
    word = "optimal" if answer.result.status is Status.OPTIMAL else "feasible"
    budget = totals["budget_usd"]
    rest = f"; budget {dollars_stated(budget)}" if budget is not None else ""
    if abs(totals["counted_usd"] - totals["cost_usd"]) >= 0.005:
        rest += f"; {total_as_known(totals['counted_usd'], totals)} with delay and lost value (the objective)"
    return headline, (f"{word}, {how}{rest}",)


def _changes(relaxation: dict[str, Any] | None) -> str:
    if relaxation is None:
        return ""
    parts = [
        f"{item['limit']}{' in ' + item['window'] if item['window'] else ''} {item['now']:,} -> {item['needed']:,} "
        f"{item['unit']}"
        for item in relaxation["limits"]
    ]
    late = relaxation["deadlines"]
    parts += [f"deadline of {item['job']} {hours_enough(item['late_hours'])} h later" for item in late[:5]]
    if len(late) > 5:
        parts.append(f"{len(late) - 5:,} more deadlines later")
    if relaxation["budget"]:
        now, needed = relaxation["budget"]["now_usd"], relaxation["budget"]["needed_usd"]
        parts.append(f"budget {dollars_stated(now)} -> {dollars_enough(needed)}")
    return "; ".join(parts)


def _why(answer: PortfolioAnswer, values: dict[str, Any], verbose: bool) -> list[Section]:
    stuck = [answer.gathered.jobs[at] for at in answer.stuck_jobs.tolist()]
    sections: list[Section] = []
    if stuck:
        kinds = {answer.gathered.kinds[at] for at in answer.stuck_jobs.tolist()}
        sentences = tuple(answer.gathered.reports[kind].sentence() for kind in sorted(kinds))
        sections.append(Section("stuck", "Jobs that nothing can run: no shared limit helps", sentences))
    found = values["relaxation"]
    if found is None:
        return sections
    rows: list[tuple[Value, ...]] = [
        (item["limit"], item["window"], f"{item['now']:,}", f"{item['needed']:,}", item["unit"])
        for item in found["limits"]
    ]
    rows += [
        (f"deadline of {d['job']}", "", "", f"+{hours_enough(d['late_hours'])}", "h")
        for d in found["deadlines"]
    ]
    if found["budget"]:
        rows.append(
            ("budget", "", usd(found["budget"]["now_usd"]), usd_enough(found["budget"]["needed_usd"]), "")
        )
    weighted = f"weighs {usd(found['weighted_usd'])} by the file's `relaxation`"
    lighter = f"no lighter set exists {found['least_of']}"
    claim = lighter if found["least"] else "a lighter set may exist"
    note = f"together they suffice; {weighted}; {claim}; the plan below keeps them"
    columns = (
        Column("limit", "limit", "text"), Column("window", "window", "text"), Column("now", "now", "quantity"),
        Column("enough", "enough", "quantity"), Column("unit", "unit", "text"),
    )  # fmt: skip
    shown = len(rows) if verbose else MOST_JOBS
    return [*sections, table_section("relaxation", "Limits to relax", columns, rows, (note,), shown=shown)]


def _job_table(
    answer: PortfolioAnswer,
    jobs: list[dict[str, Any]],
    totals: dict[str, Any],
    verbose: bool,
    *,
    relaxed: bool,
) -> Section:
    rows: list[tuple[Value, ...]] = [
        (
            job["job"],
            (job["nodes"], job["instance_type"]) if "nodes" in job else job["status"],
            job.get("purchase_option", "") + (" (owned)" if job.get("owned") else ""),
            (job["provider"], job["region"], "") if "region" in job else "",
            job["start"][:16].replace("T", " ") if "start" in job else "",
            job.get("hours", ""),
            job["cost_usd"],
        )
        for job in jobs
    ]
    rows.append(("total", "", "", "", "", "", totals["cost_usd"]))
    columns = (
        Column("job", "job", "text"), Column("cluster", "machines", "cluster"), Column("option", "bought", "text"),
        Column("place", "where", "place"), Column("start", "start", "date"), Column("hours", "hours", "hours"),
        Column("cost_usd", "cost", "usd"),
    )  # fmt: skip
    title = "Plan with the limits moved" if relaxed else "Plan"
    shown = len(rows) if verbose else MOST_JOBS + 1
    charts = _spans(answer, jobs)
    return table_section("jobs", title, columns, rows, shown=shown, total=True, charts=charts)


def _spans(answer: PortfolioAnswer, jobs: list[dict[str, Any]]) -> tuple[Chart, ...]:
    """When each job runs, in hours from the portfolio's start."""
    begin = answer.gathered.start
    running = [job for job in jobs if "start" in job]
    if len(running) < 2:
        return ()
    starts = [(datetime.fromisoformat(job["start"]) - begin).total_seconds() / 3600 for job in running]
    ends = [start + job["hours"] for start, job in zip(starts, running, strict=True)]
    names = tuple(job["job"] for job in running)
    series = (("start", tuple(starts)), ("end", tuple(ends)))
    return (Chart("time_line", "", "spans", names, series, "hours", "When each job runs.", drawn_only=True),)


def _limit_table(limits: list[dict[str, Any]], verbose: bool) -> list[Section]:
    """Limits in use, the fullest first."""
    used = [limit for limit in limits if limit["used"]]

    def full(limit: dict[str, Any]) -> float:
        return float(limit["used"] / max(limit["available"] + limit["raised"], 1))

    used.sort(key=lambda limit: (-full(limit), limit["limit"], limit["window"]))
    if not used:
        return []
    rows: list[tuple[Value, ...]] = [
        (
            item["limit"],
            item["window"],
            item["used"],
            item["available"] + item["raised"],
            item["unit"],
            full(item),
        )
        for item in used
    ]
    columns = (
        Column("limit", "limit", "text"), Column("window", "window", "text"), Column("used", "used", "count"),
        Column("available", "of", "count"), Column("unit", "unit", "text"), Column("full_ratio", "full", "ratio", 0),
    )  # fmt: skip
    shown = len(rows) if verbose else MOST_LIMITS
    return [table_section("limits", "Shared limits", columns, rows, shown=shown)]


def _filter_notes(answer: PortfolioAnswer, verbose: bool, *, everything: bool) -> list[Section]:
    reports = answer.gathered.reports
    poor = [item for item in reports if item.passed == 0] if not (verbose or everything) else list(reports)
    if everything:
        poor.sort(key=lambda item: (item.passed, item.name))
    if not poor:
        return []
    sentences = tuple(item.sentence() for item in (poor if verbose else poor[:MOST_LIMITS]))
    more = len(poor) - len(sentences)
    said = (*sentences, f"{more:,} more with -v") if more > 0 else sentences
    return [Section("filters", "Candidates per job", said, detail=True)]


def _proof_rows(answer: PortfolioAnswer, result: PortfolioResult) -> list[tuple[str, str, Value, Unit, str]]:
    of, gap = searched(answer), min(result.exact_gap, result.solver_gap)
    asked = f"{claims.state(result.status.value, of.rstrip(','), gap)} (gap asked {percent(answer.options.gap, 3)})"
    rows: list[tuple[str, str, Value, Unit, str]] = [("status", "status", result.status.value, "text", asked)]
    if result.exact_bound is not None:
        bound = result.exact_bound / MICRO
        claim = f"{claims.none_below(usd(bound), of)}, in whole numbers"
        claim += f": gap {percent(result.exact_gap, 3)}" if result.picks is not None else ""
        rows.append(("bound_exact_usd", "exact bound", bound, "usd", claim))
    if np.isfinite(result.solver_bound):
        bound = result.solver_bound / MICRO
        claim = f"{claims.by_solver(usd(bound), of)}: gap {percent(result.solver_gap, 3)} ({result.solver})"
        rows.append(("bound_solver_usd", "solver's bound", bound, "usd", claim))
    removed = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in result.reduced.dropped.items()
    )
    count = result.reduced.source.n_candidates
    rows.append(
        ("candidates", "candidates", count, "count", f"{count:,}" + (f"; {removed}" if removed else ""))
    )
    if answer.robust is not None:
        objective = answer.robust.chosen.objective_usd
        rows.append(("risk_objective_usd", "with risk", objective, "usd", answer.robust.proof()))
    spent = f"{number(result.seconds, 2)} s of {number(answer.seconds, 2)} s"
    rows.append(("seconds", "solved in", result.seconds, "seconds", spent))
    return rows
