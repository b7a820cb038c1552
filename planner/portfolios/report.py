"""A portfolio's answer as a `Report`: what people, programs and spreadsheets read of it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.portfolios.bought import bought_of
from planner.portfolios.shared_limits import CAPACITY, MICRO
from planner.render.document import Block, Document, Facts, Grid, Notes
from planner.render.numbers import hours, number, percent
from planner.render.numbers import usd as decimal_usd
from planner.render.report import Report
from solvers.solution import Status

if TYPE_CHECKING:
    from planner.portfolios.answer import PortfolioAnswer
    from planner.portfolios.relax import Relaxed
    from planner.portfolios.solve import PortfolioResult

MOST_JOBS = 40  # shown to people; data formats show all
MOST_LIMITS = 12
COLUMNS = (
    *("row", "job", "status", "provider", "region", "zone", "instance_type", "purchase_option", "option_variant"),
    *("nodes", "start", "end", "hours", "cost_usd", "counted_usd", "late_hours", "owned", "offer_id"),
    *("limit", "window", "used", "available", "raised"),
)  # fmt: skip


def portfolio_report(answer: PortfolioAnswer, *, verbose: bool = False) -> Report:
    """Return the report of `answer`; `verbose` shows every job and limit to people too."""
    jobs, limits = _jobs(answer), _limits(answer)
    values: dict[str, Any] = {
        "kind": "portfolio",
        "name": answer.loaded.portfolio.name,
        "sha256": answer.loaded.sha256,
        "currency": "USD",
        "start": answer.gathered.start.isoformat(timespec="minutes"),
        "catalog": _catalog(answer),
        "status": _status(answer),
        "jobs": jobs,
        "limits": limits,
        "totals": _totals(answer, jobs),
        "proof": _proof(answer),
        "relaxation": None if answer.relaxed is None else _relaxation(answer, answer.relaxed),
        "filters": [
            {
                "job": item.name, "copies": item.copies, "candidates": item.total, "passed": item.passed,
                "removed": dict(item.removed),
            }
            for item in answer.gathered.reports
        ],
        "notes": list(answer.gathered.notes),
        "seconds": round(answer.seconds, 3),
    }  # fmt: skip
    rows = [{"row": "job", **{key: job.get(key) for key in COLUMNS if key in job}} for job in jobs]
    rows += [{"row": "limit", **{key: limit.get(key) for key in COLUMNS if key in limit}} for limit in limits]
    return Report(_document(answer, values, verbose), values, COLUMNS, rows)


def usd(value: float) -> str:
    """An amount of US dollars for people."""
    return decimal_usd(Decimal(repr(round(float(value), 2))))


def _status(answer: PortfolioAnswer) -> str:
    return "solver_fault" if answer.solver_fault else answer.result.status.value


def _catalog(answer: PortfolioAnswer) -> list[dict[str, Any]]:
    if answer.catalog is None:
        return []
    return [
        {
            "provider": m.provider,
            "oldest_as_of": m.oldest_as_of,
            "newest_as_of": m.newest_as_of,
            "sha256": m.sha256,
        }
        for m in answer.catalog.manifests
    ]


def _jobs(answer: PortfolioAnswer) -> list[dict[str, Any]]:
    """What each job gets, in the order of the file; without a plan, nothing."""
    shown = answer.shown
    if shown is None:
        return []
    gathered = answer.gathered
    table, out = gathered.question.table.take(shown[1]), []
    for at, name in enumerate(gathered.jobs):
        counted = int(table.counted_micro_usd[at]) / MICRO
        if table.left_out[at]:
            out.append({"job": name, "status": "left out", "cost_usd": 0.0, "counted_usd": counted})
            continue
        bought = bought_of(gathered, table, at)
        way = gathered.ways[int(table.way[at, 0])]
        begin, length = float(table.start_hours[at]), float(table.hours[at])
        moments = [gathered.start + timedelta(hours=value) for value in (begin, begin + length)]
        out.append(
            {
                "job": name, "status": "late" if table.late_hours[at] > 0 else "planned",
                "provider": way.provider, "region": way.region, "zone": way.zone,
                "instance_type": way.instance_type, "purchase_option": bought.how,
                "option_variant": way.option_variant if len(bought.parts) == 1 else "", "nodes": bought.nodes,
                "start": moments[0].isoformat(timespec="minutes"), "end": moments[1].isoformat(timespec="minutes"),
                "hours": round(length, 4), "cost_usd": int(table.cost_micro_usd[at]) / MICRO, "counted_usd": counted,
                "late_hours": round(float(table.late_hours[at]), 2), "owned": bool((table.pool[at] >= 0).any()),
                "offer_id": way.offer_id, "in_turn": bought.in_turn, "parts": bought.parts,
            }
        )  # fmt: skip
    return out


def _limits(answer: PortfolioAnswer) -> list[dict[str, Any]]:
    """Use of every shared limit."""
    shown, whole = answer.shown, answer.gathered.question
    used = np.zeros(len(whole.limits), dtype=np.int64) if shown is None else whole.numbers.used(shown[1])
    raised = np.zeros(len(whole.limits), dtype=np.int64)
    if answer.relaxed is not None and answer.result.picks is None:
        raised = answer.relaxed.raised
    return [
        {
            "limit": limit.label, "kind": "commitment" if limit.kind == CAPACITY else "quota",
            "window": limit.window, "unit": limit.unit, "used": int(used[at]), "available": limit.amount,
            "raised": int(raised[at]),
        }
        for at, limit in enumerate(whole.limits)
    ]  # fmt: skip


def _totals(answer: PortfolioAnswer, jobs: list[dict[str, Any]]) -> dict[str, Any]:
    shown = answer.shown
    if shown is None:
        return {}
    cost = int(answer.gathered.question.numbers.cost[shown[1]].sum()) / MICRO
    budget = answer.loaded.portfolio.budget_usd
    return {
        "cost_usd": cost,
        "counted_usd": (shown[0].objective or 0) / MICRO,
        "budget_usd": None if budget is None else float(budget),
        "jobs": len(jobs),
        "planned": sum(job["status"] == "planned" for job in jobs),
        "late": sum(job["status"] == "late" for job in jobs),
        "left_out": sum(job["status"] == "left out" for job in jobs),
    }


def _proof(answer: PortfolioAnswer) -> dict[str, Any]:
    result = answer.result if answer.shown is None else answer.shown[0]
    exact = result.exact_bound
    return {
        "status": result.status.value,
        "objective_usd": None if result.objective is None else result.objective / MICRO,
        "bound_exact_usd": None if exact is None else exact / MICRO,
        "gap_exact_ratio": result.exact_gap,
        "bound_solver_usd": result.solver_bound / MICRO,
        "gap_solver_ratio": result.solver_gap,
        "gap_asked_ratio": answer.options.gap,
        "mode": answer.options.mode,
        "solver": result.solver,
        "about": _searched(answer),
        "candidates": answer.question.numbers.n_candidates,
        "in_model": len(result.reduced.keep),
        "removed": result.reduced.dropped,
        "interrupted": result.interrupted,
        "stages": [
            {"stage": stage, "seconds": round(at, 3), "objective_usd": value and value / MICRO}
            for stage, at, value, _ in result.stages
        ],
        "seconds": round(result.seconds, 3),
        "message": result.message,
    }


def _relaxation(answer: PortfolioAnswer, relaxed: Relaxed) -> dict[str, Any]:
    limits = answer.gathered.question.limits
    budget = answer.question.numbers.budget
    over = None
    if relaxed.over_budget and budget is not None:
        over = {"now_usd": budget / MICRO, "needed_usd": (budget + relaxed.over_budget) / MICRO}
    return {
        "limits": [
            {
                "limit": limits[at].label, "window": limits[at].window, "unit": limits[at].unit,
                "now": limits[at].amount, "needed": limits[at].amount + int(relaxed.raised[at]),
            }
            for at in np.flatnonzero(relaxed.raised).tolist()
        ],
        "deadlines": [
            {"job": answer.gathered.jobs[at], "late_hours": round(float(relaxed.late_hours[at]), 2)}
            for at in np.flatnonzero(relaxed.late_hours > 0).tolist()
        ],
        "budget": over,
        "weighted_usd": relaxed.weighted_usd,
        "bound_usd": relaxed.bound_usd,
        "least": relaxed.proven,
    }  # fmt: skip


def _document(answer: PortfolioAnswer, values: dict[str, Any], verbose: bool) -> Document:
    infeasible = answer.result.picks is None
    blocks: list[Block] = []
    if answer.gathered.notes:
        blocks.append(Notes("Warnings", answer.gathered.notes, warning=True))
    if infeasible:
        blocks += _why(answer, values, verbose)
    jobs = values["jobs"]
    if jobs:
        blocks.append(_job_grid(jobs, values["totals"], verbose, relaxed=infeasible))
        blocks += _limit_grid(values["limits"], verbose)
    blocks += _filter_notes(answer, verbose, everything=infeasible)
    result = answer.result if answer.shown is None else answer.shown[0]
    blocks.append(Facts("Proof", _proof_rows(answer, result), detail=True))
    headline, summary = _headline(answer, values)
    return Document(headline, summary, tuple(blocks), success=not infeasible)


def _headline(answer: PortfolioAnswer, values: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    name, totals = answer.loaded.portfolio.name, values["totals"]
    if answer.solver_fault:
        return f"Solver fault on {name}: it called infeasible what is not", (answer.result.message,)
    if answer.result.picks is None:
        if answer.result.status is not Status.INFEASIBLE:
            return f"No plan for {name} within the time limit", ("raise --time-limit",)
        told = _changes(values["relaxation"])
        return f"No feasible plan for {name}", (f"Least change: {told}",) if told else ()
    left = f", {totals['left_out']:,} left out" if totals["left_out"] else ""
    headline = f"{name}: {totals['planned']:,} jobs for {usd(totals['cost_usd'])}{left}"
    gap = values["proof"]
    best = min(gap["gap_exact_ratio"], gap["gap_solver_ratio"])
    word = "optimal" if answer.result.status is Status.OPTIMAL else "feasible"
    how = "interrupted" if answer.result.interrupted else f"at most {percent(best, 3)} above the optimum"
    budget = totals["budget_usd"]
    rest = f"; budget {usd(budget)}" if budget is not None else ""
    if abs(totals["counted_usd"] - totals["cost_usd"]) >= 0.005:
        rest += f"; {usd(totals['counted_usd'])} with delay and lost value, which is what is least"
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
    parts += [f"{item['job']} {hours(item['late_hours'])} h late" for item in late[:5]]
    if len(late) > 5:
        parts.append(f"{len(late) - 5:,} more jobs late")
    if relaxation["budget"]:
        parts.append(
            f"budget {usd(relaxation['budget']['now_usd'])} -> {usd(relaxation['budget']['needed_usd'])}"
        )
    return "; ".join(parts)


def _why(answer: PortfolioAnswer, values: dict[str, Any], verbose: bool) -> list[Block]:
    stuck = [answer.gathered.jobs[at] for at in answer.stuck_jobs.tolist()]
    blocks: list[Block] = []
    if stuck:
        kinds = {answer.gathered.kinds[at] for at in answer.stuck_jobs.tolist()}
        told = tuple(answer.gathered.reports[kind].sentence() for kind in sorted(kinds))
        blocks.append(Notes("Jobs that nothing can run: no shared limit helps", told))
    found = values["relaxation"]
    if found is None:
        return blocks
    rows = [
        (item["limit"], item["window"], f"{item['now']:,}", f"{item['needed']:,}", item["unit"])
        for item in found["limits"]
    ]
    rows += [
        (f"deadline of {d['job']}", "", "", f"+{hours(d['late_hours'])}", "h") for d in found["deadlines"]
    ]
    if found["budget"]:
        rows.append(("budget", "", usd(found["budget"]["now_usd"]), usd(found["budget"]["needed_usd"]), ""))
    weighted = f"weighs {usd(found['weighted_usd'])} by the file's `relaxation`"
    claim = "no lighter set exists" if found["least"] else "a lighter set may exist"
    note = f"together they suffice; {weighted}; {claim}; the plan below keeps them"
    shown = tuple(rows if verbose else rows[:MOST_JOBS])
    blocks.append(
        Grid("What must give way", ("limit", "window", "now", "enough", "unit"), shown, "llrrl", (note,))
    )
    return blocks


def _job_grid(jobs: list[dict[str, Any]], totals: dict[str, Any], verbose: bool, *, relaxed: bool) -> Grid:
    shown = jobs if verbose else jobs[:MOST_JOBS]
    rows = [
        (
            job["job"],
            f"{job['nodes']:,} x {job['instance_type']}" if "nodes" in job else job["status"],
            job.get("purchase_option", "") + (" (owned)" if job.get("owned") else ""),
            f"{job['provider']}/{job['region']}" if "region" in job else "",
            job["start"][:16].replace("T", " ") if "start" in job else "",
            hours(job["hours"]) if "hours" in job else "",
            usd(job["cost_usd"]),
        )
        for job in shown
    ]
    rows.append(("total", "", "", "", "", "", usd(totals["cost_usd"])))
    notes = () if len(shown) == len(jobs) else (f"{len(jobs) - len(shown):,} more jobs with -v",)
    title = "Plan with the limits moved" if relaxed else "Plan"
    header = ("job", "machines", "bought", "where", "start", "hours", "cost")
    return Grid(title, header, tuple(rows), "lllllrr", notes, total=True)


def _limit_grid(limits: list[dict[str, Any]], verbose: bool) -> list[Block]:
    """Limits in use, the fullest first."""
    used = [limit for limit in limits if limit["used"]]

    def fullness(limit: dict[str, Any]) -> float:
        return float(-limit["used"] / max(limit["available"] + limit["raised"], 1))

    used.sort(key=lambda limit: (fullness(limit), limit["limit"], limit["window"]))
    shown = used if verbose else used[:MOST_LIMITS]
    if not shown:
        return []
    rows = tuple(
        (
            item["limit"], item["window"], f"{item['used']:,}", f"{item['available'] + item['raised']:,}", item["unit"],
            percent(item["used"] / max(item["available"] + item["raised"], 1), 0),
        )
        for item in shown
    )  # fmt: skip
    notes = () if len(shown) == len(used) else (f"{len(used) - len(shown):,} more in use with -v",)
    return [Grid("Shared limits", ("limit", "window", "used", "of", "unit", "full"), rows, "llrrlr", notes)]


def _filter_notes(answer: PortfolioAnswer, verbose: bool, *, everything: bool) -> list[Block]:
    reports = answer.gathered.reports
    poor = [item for item in reports if item.passed == 0] if not (verbose or everything) else list(reports)
    if everything:
        poor.sort(key=lambda item: (item.passed, item.name))
    if not poor:
        return []
    told = tuple(item.sentence() for item in (poor if verbose else poor[:MOST_LIMITS]))
    more = len(poor) - len(told)
    return [Notes("Candidates per job", (*told, f"{more:,} more with -v") if more > 0 else told, detail=True)]


def _searched(answer: PortfolioAnswer) -> str:
    """What the proof is about."""
    return _candidates(answer) + (", at the starts considered," if answer.gathered.follows else "")


def _candidates(answer: PortfolioAnswer) -> str:
    if all(workload is None for workload in answer.loaded.workloads):
        return "of the candidates given"
    if answer.whole:
        return "of the candidates that `optimize` searches for each job"
    return "of the candidates gathered (for each job those up to some price)"


def _proof_rows(answer: PortfolioAnswer, result: PortfolioResult) -> tuple[tuple[str, str], ...]:
    rows = [("status", f"{result.status.value} (gap asked {percent(answer.options.gap, 3)})")]
    if result.exact_bound is not None:
        told = (
            f"no plan {_searched(answer)} costs less than {usd(result.exact_bound / MICRO)}, in whole numbers"
        )
        rows.append(
            (
                "exact bound",
                told + (f": gap {percent(result.exact_gap, 3)}" if result.picks is not None else ""),
            )
        )
    if np.isfinite(result.solver_bound):
        bound = usd(result.solver_bound / MICRO)
        rows.append(("solver's bound", f"{bound}: gap {percent(result.solver_gap, 3)} ({result.solver})"))
    removed = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in result.reduced.dropped.items()
    )
    rows.append(
        ("candidates", f"{result.reduced.source.n_candidates:,}" + (f"; {removed}" if removed else ""))
    )
    rows.append(("solved in", f"{number(result.seconds, 2)} s of {number(answer.seconds, 2)} s"))
    return tuple(rows)
