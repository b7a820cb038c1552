"""Writes what was proven of a portfolio: plan, prices and reductions, for `plan.certificates.portfolio` to check."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.plan.certificates import VERSION
from planner.portfolios.bound import BETA_SCALE
from planner.portfolios.shared_limits import PortfolioInput
from planner.portfolios.solve import PortfolioResult

if TYPE_CHECKING:
    from planner.portfolios.answer import PortfolioAnswer


def build_certificate(result: PortfolioResult, note: str = "") -> dict[str, Any]:
    """The certificate of a result: what is missing (plan or bound) is None."""
    question, reduced = result.reduced.source, result.reduced
    dominated = np.flatnonzero(reduced.dominator >= 0)
    lam = np.zeros(len(question.limit), dtype=np.int64)
    homes = np.full(len(reduced.keep), -1, dtype=np.int64)
    mu: list[int] = []
    beta = 0
    if result.prices is not None and result.homes is not None:
        lam[reduced.live] = result.prices.lam
        inside = result.homes.row >= 0
        homes[inside] = reduced.live[result.homes.row[inside]]
        mu, beta = result.prices.mu.tolist(), result.prices.beta
    return {
        "certificate_version": VERSION,
        "kind": "portfolio",
        "unit": "micro_usd",
        "note": note,
        "objective": result.objective,
        "bound": result.exact_bound,
        "gap_ratio": _gap(result.objective, result.exact_bound),
        "picks": None if result.picks is None else result.picks.tolist(),
        "question": _question(question),
        "dominated": dominated.tolist(),
        "dominators": reduced.dominator[dominated].tolist(),
        "prices": {"mu": mu, "lambda": lam.tolist(), "beta": beta, "beta_scale": BETA_SCALE},
        "homes": homes.tolist(),
    }


def certificate_text(answer: PortfolioAnswer) -> str:
    """The certificate of the plan that is shown, as the text of a file."""
    result = answer.result if answer.shown is None else answer.shown[0]
    name = answer.loaded.portfolio.name
    note = name if answer.result.picks is not None else f"{name}, with relaxed limits"
    return json.dumps(build_certificate(result, note), separators=(",", ":")) + "\n"


def _gap(objective: int | None, bound: int | None) -> float | None:
    if objective is None or bound is None or (not objective and bound < objective):
        return None
    return float(max(Fraction(0), Fraction(objective - bound, objective))) if objective else 0.0


def _question(question: PortfolioInput) -> dict[str, Any]:
    order = np.lexsort((question.entry_limit, question.entry_candidate))
    per = np.bincount(question.entry_candidate, minlength=question.n_candidates)
    same = bool((question.objective == question.cost).all())
    return {
        "candidates_per_job": np.diff(question.first_of_job()).tolist(),
        "cost": question.cost.tolist(),
        "objective": None if same else question.objective.tolist(),
        "draws_per_candidate": None if bool((per == 1).all()) else per.tolist(),
        "draw_limit": question.entry_limit[order].tolist(),
        "draw_units": question.entry_units[order].tolist(),
        "limit": question.limit.tolist(),
        "budget": question.budget,
    }
