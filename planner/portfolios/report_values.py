"""The machine form of a portfolio's answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.candidates.constraints.deadline import leaves_out_fallbacks
from planner.errors import PlannerError
from planner.market.pricing import total_usd
from planner.portfolios.job_times import limit_of
from planner.portfolios.own_machines import pool_name
from planner.portfolios.shared_limits import CAPACITY, MICRO
from planner.portfolios.spread import between_usd
from planner.render import claims

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog
    from catalogs.tables.table import Ints
    from planner.portfolios.answer import PortfolioAnswer
    from planner.portfolios.gather import Gathered
    from planner.portfolios.question import Question
    from planner.portfolios.relax import Relaxed
    from planner.portfolios.table import CandidateTable, Way

_ROUNDING_USD = 1e-5  # of sums of lines in floating point


@dataclass(frozen=True)
class Bought:
    """How the chosen candidate of a job is bought, with cost lines priced as `planner optimize` does.

    Attributes:
        how: purchase options in words, fall-back and zones included.
        nodes: instances that run together.
        in_turn: whether the parts are used one after another.
        parts: per offer: its id, instances, hours in use, draws on quota, the commitment of the file, cost lines.
    """

    how: str
    nodes: int
    in_turn: bool
    parts: tuple[dict[str, Any], ...]


def _pool(gathered: Gathered, way: Way, number: int) -> str | None:
    """What limits a part: a commitment of the portfolio, or a machine of a workload's file."""
    place = (way.provider, way.region, way.instance_type, way.purchase_option)
    return None if number < 0 else pool_name(number, gathered.declared, place)


def bought_of(gathered: Gathered, table: CandidateTable, at: int) -> Bought:
    """Describe candidate `at` of `table`.

    Raises:
        PlannerError: its lines cost something else than what the solver was told: a fault, never a plan.
    """
    used = [slot for slot in range(table.way.shape[1]) if table.way[at, slot] >= 0]
    ways = [gathered.ways[int(table.way[at, slot])] for slot in used]
    parts: list[dict[str, Any]] = [
        {
            "offer_id": way.offer_id, "nodes": int(table.nodes[at, slot]),
            "draws": dict(way.amounts), "owned": bool(0 <= table.pool[at, slot] < gathered.declared),
            "commitment": _pool(gathered, way, int(table.pool[at, slot])),
        }
        for way, slot in zip(ways, used, strict=True)
    ]  # fmt: skip
    if table.source[at] < 0:
        return Bought(ways[0].purchase_option, parts[0]["nodes"], False, tuple(parts))
    source, row = gathered.sources[int(table.source[at])], int(table.row[at])
    own = source.bought(row)
    for part, purchase in zip(parts, own.parts, strict=True):
        part |= {name: value for name, value in purchase.to_dict().items() if name not in part}
    total = total_usd([line for purchase in own.parts for line in purchase.lines])
    counted = int(table.cost_micro_usd[at]) / MICRO
    if abs(float(total) - counted) > 1e-9 * abs(counted) + _ROUNDING_USD:
        raise PlannerError(f"the lines of {own.how} cost {total}, the solver was given {counted}")
    nodes = parts[0]["nodes"] if own.in_turn else sum(part["nodes"] for part in parts)
    return Bought(own.how, nodes, own.in_turn, tuple(parts))


def values_of(answer: PortfolioAnswer) -> dict[str, Any]:
    """The machine form of an answer."""
    jobs, limits = _jobs(answer), _limits(answer)
    gathered = answer.gathered
    return {
        "kind": "portfolio",
        "name": answer.loaded.portfolio.name,
        "sha256": answer.loaded.sha256,
        "created_at": answer.created_at.isoformat(timespec="minutes"),
        "currency": "USD",
        "start": gathered.start.isoformat(timespec="minutes"),
        "catalog": catalog_values(answer.catalog),
        "status": _status(answer),
        "deadline_confidence": _confidence(answer),
        "jobs": jobs,
        "windows": window_values(gathered),
        "limits": limits,
        "totals": _totals(answer, jobs),
        "proof": _proof(answer),
        "relaxation": None if answer.relaxed is None else _relaxation(answer, answer.relaxed),
        **({} if answer.robust is None else {"risk": answer.robust.values()}),
        "filters": [
            {
                "job": item.name, "copies": item.copies, "candidates": item.total, "passed": item.passed,
                "removed": dict(item.removed),
            }
            for item in answer.gathered.reports
        ],
        "notes": list(answer.notes),
        "seconds": round(answer.seconds, 3),
    }  # fmt: skip


def _confidence(answer: PortfolioAnswer) -> float | None:
    """The least probability with which a job that is a workload is in time; None where all were sized elsewhere."""
    given = [
        one.workload.constraints.deadline_confidence for one in answer.loaded.workloads if one is not None
    ]
    return min(given, default=None)


def _status(answer: PortfolioAnswer) -> str:
    return "solver_fault" if answer.solver_fault else answer.result.status.value


def catalog_values(catalog: Catalog | None) -> list[dict[str, Any]]:
    """The snapshots used."""
    if catalog is None:
        return []
    return [
        {
            "provider": m.provider,
            "oldest_as_of": m.oldest_as_of,
            "newest_as_of": m.newest_as_of,
            "sha256": m.sha256,
        }
        for m in catalog.manifests
    ]


def window_values(gathered: Gathered) -> list[dict[str, Any]]:
    """Windows of time that the limits are kept in; each lasts until the next one starts."""
    windows = gathered.windows
    return [
        {"window": name, "start_hours": hours}
        for name, hours in zip(windows.names, windows.starts.tolist(), strict=True)
    ]


def _jobs(answer: PortfolioAnswer) -> list[dict[str, Any]]:
    """What each job gets; without a plan, nothing."""
    if answer.shown is None:
        return []
    return job_values(answer.gathered, answer.gathered.question.table.take(answer.shown[1]))


def job_values(gathered: Gathered, table: CandidateTable) -> list[dict[str, Any]]:
    """What each job gets, in the order of the file.

    Args:
        gathered: what the table's numbers mean.
        table: one candidate per job.
    """
    out: list[dict[str, Any]] = []
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
                "start_hours": begin, "end_hours": begin + length,
                "hours": round(length, 4), "cost_usd": int(table.cost_micro_usd[at]) / MICRO, "counted_usd": counted,
                "late_hours": round(float(table.late_hours[at]), 2),
                "owned": any(part["owned"] for part in bought.parts),
                "offer_id": way.offer_id, "in_turn": bought.in_turn, "parts": bought.parts,
            }
        )  # fmt: skip
    return out


def _limits(answer: PortfolioAnswer) -> list[dict[str, Any]]:
    """Use of the shared limits."""
    shown, whole = answer.shown, answer.gathered.question
    used = np.zeros(len(whole.limits), dtype=np.int64) if shown is None else whole.numbers.used(shown[1])
    raised = np.zeros(len(whole.limits), dtype=np.int64)
    if answer.relaxed is not None and answer.result.picks is None:
        raised = answer.relaxed.raised
    return limit_values(whole, used, raised)


def limit_values(question: Question, used: Ints, raised: Ints) -> list[dict[str, Any]]:
    """Commitments, and quotas that are drawn on or raised, with both amounts.

    Args:
        question: the limits.
        used: what is drawn of each, `(n_limits,)`.
        raised: by how much each is raised, `(n_limits,)`.
    """
    return [
        {
            "limit": limit.label, "kind": "commitment" if limit.kind == CAPACITY else "quota",
            "window": limit.window, "unit": limit.unit, "used": int(used[at]), "available": limit.amount,
            "raised": int(raised[at]),
        }
        for at, limit in enumerate(question.limits)
        if limit.kind == CAPACITY or used[at] or raised[at]
    ]  # fmt: skip


def _totals(answer: PortfolioAnswer, jobs: list[dict[str, Any]]) -> dict[str, Any]:
    shown = answer.shown
    if shown is None:
        return {}
    cost = int(answer.gathered.question.numbers.cost[shown[1]].sum()) / MICRO
    budget = answer.loaded.portfolio.budget_usd
    chosen = answer.gathered.question.table.take(shown[1])
    low, high = between_usd(answer.gathered, chosen) or (None, None)
    return {
        "cost_usd": cost,
        "cost_p10_usd": None if low is None else float(low),
        "cost_p90_usd": None if high is None else float(high),
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
        "about": searched(answer),
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
            {"job": answer.gathered.jobs[at], "late_hours": _hours_enough(float(relaxed.late_hours[at]))}
            for at in np.flatnonzero(relaxed.late_hours > 0).tolist()
        ],
        "budget": over,
        "weighted_usd": relaxed.weighted_usd,
        "bound_usd": relaxed.bound_usd,
        "gap_ratio": relaxed.gap,
        "least": relaxed.proven,
        "least_of": f"{searched(answer).rstrip(',')}{_left_aside(answer)}",
    }  # fmt: skip


def _hours_enough(late: float) -> float:
    """Hours to two decimals, rounded up so that a deadline moved by them is met."""
    return math.ceil(late * 100 - 1e-6) / 100


def searched(answer: PortfolioAnswer) -> str:
    """What the proof is about."""
    if answer.gathered.follows:
        return f"{_candidates(answer)}, at the starts considered,"
    starts = " at the starts that the windows allow" if answer.loaded.portfolio.windows else ""
    return _candidates(answer) + starts


def _left_aside(answer: PortfolioAnswer) -> str:
    """What the search for limits to relax does not look at."""
    late = ["late jobs start first"] if answer.gathered.follows else []
    if any(workload is not None for workload in answer.loaded.workloads):
        late.append("spot in several zones, or with a fall-back, only as the deadlines given allow it")
    return f" ({'; '.join(late)})" if late else ""


def _candidates(answer: PortfolioAnswer) -> str:
    if all(workload is None for workload in answer.loaded.workloads):
        return "of the candidates given"
    needs = f", those {claims.NONE_NEEDED} for jobs without one" if _has_no_deadline(answer) else ""
    if answer.whole:
        return f"of the candidates that `optimize` searches for each job{needs}"
    return f"of the candidates gathered (for each job those up to some price{needs})"


def _has_no_deadline(answer: PortfolioAnswer) -> bool:
    """Whether a job that is a workload has no deadline, and ways to run that need one are left out for it."""
    jobs = zip(answer.loaded.jobs, answer.loaded.workloads, strict=True)
    return any(
        leaves_out_fallbacks(workload.workload, None)
        for job, workload in jobs
        if workload is not None and limit_of(job, workload, answer.gathered.start) is None
    )
