"""What answers claim to have proven, in words: every sentence names the set of choices that it is true of.

`of` is that set, beginning with "of": `of the 64,544 candidates compared`.
"""

from __future__ import annotations

from planner.render.numbers import percent


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
        return f"infeasible: no choice {of} keeps every limit"
    return status


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
