"""What answers claim to have proven, in words: every sentence names the set of choices that it is true of.

`of` is that set, beginning with "of": `of the 64,544 candidates compared`.
"""

from __future__ import annotations

import math

from planner.render.numbers import percent

_FAR = 1.0  # of the bound; a plan that may be twice as dear is near nothing


# Without a deadline some ways to buy are left out of the set: what is left, and why.
NO_DEADLINE_NEEDED, NONE_NEEDED = "that needs no deadline", "that need no deadline"
NEEDS_DEADLINE = (
    "spot with on-demand to fall back on, or in several zones, needs a deadline and is not among them"
)


def state(status: str, of: str, gap_ratio: float = 0.0) -> str:
    """Return a status with the set that it is about.

    Args:
        status: a solver's, as data formats give it.
        of: the set.
        gap_ratio: of what is called optimal, to the bound.
    """
    if status == "optimal":
        near = f"within {percent(gap_ratio, 3)} of " if gap_ratio >= 5e-6 else ""
        return f"optimal: {near}the best {of}"
    if status == "infeasible":
        return f"infeasible: no choice {of} meets every limit"
    return status


def best_plan(best: str, status: str, gap_ratio: float, what: str = "feasible plan") -> str:
    """Return what a headline may say of a plan: the best, or how near it is proven to come.

    Args:
        best: `Cheapest` or `Fastest`.
        status: a solver's; `optimal` is within the gap asked for.
        gap_ratio: of the plan's figure, to the bound below which no plan is.
        what: is chosen.
    """
    if status == "optimal":
        return f"{best} {what}"
    any_one = f"{what[0].upper()}{what[1:]}"
    above = math.ceil(gap_ratio / (1.0 - gap_ratio) * 1000) / 1000 if gap_ratio < 1.0 else math.inf
    if above > _FAR:
        return any_one
    return f"{any_one} within {percent(above, 1)} of the {best.lower()}"


def none_below(amount: str, of: str, *, what: str = "plan", figure: str = "costs") -> str:
    """Return the claim of a bound that was proven, or is checked by a certificate.

    Args:
        amount: the bound.
        of: the set.
        what: what is chosen.
        figure: `costs`, or `takes` of a time.
    """
    return f"no {what} {of} {figure} less than {amount}"


def by_solver(amount: str, of: str, *, what: str = "plan") -> str:
    """Return the claim of a bound that only the solver vouches for."""
    return f"{none_below(amount, of, what=what)}, by the solver's bound"
