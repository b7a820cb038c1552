"""Exact choice for one synchronous job: every candidate is priced, the cheapest (or fastest) feasible one wins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import distinct
from planner.candidates.footprint import operational_kg
from planner.records import record

if TYPE_CHECKING:
    import numpy.typing as npt

    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.model import Candidates


_ALIKE = 1e-9  # relative; what differs by more differs in its first 12 digits, too


@record(frozen=True)
class Choice:
    """The best candidate's position and the number of feasible ones."""

    winner: int
    n_feasible: int


def rank(candidates: Candidates, feasible: Ints, objective: str) -> Ints:
    """Sort feasible positions by the objective, then the other criterion, then fewer nodes, then offer id.

    The offer id decides ties, never the row order, so that shuffling the catalog changes nothing.
    """
    return feasible[_ranked(candidates, feasible, _criteria(candidates, feasible, objective))]


def rank_best(candidates: Candidates, feasible: Ints, objective: str, group: Ints) -> tuple[Ints, Ints]:
    """The first of each group that `rank` would give, in its order, found by sorting few of the others.

    Args:
        candidates: all candidates.
        feasible: positions, shape `(n,)`.
        objective: what is compared.
        group: of each of them, counted from 0, shape `(n,)`.

    Returns:
        Place of each group's best in `feasible`, and its group.
    """
    criteria = _criteria(candidates, feasible, objective)
    least = np.full(int(group.max(initial=-1)) + 1, np.inf)
    np.minimum.at(least, group, criteria[0])
    leading = np.flatnonzero(~(criteria[0] > least[group]))
    order = leading[_ranked(candidates, feasible[leading], tuple(values[leading] for values in criteria))]
    first = np.sort(distinct(group[order])[1])
    return order[first], group[order[first]]


def _ranked(candidates: Candidates, feasible: Ints, criteria: tuple[Floats, ...]) -> Ints:
    context, (first, second) = candidates.context, criteria
    names, nodes = context.market.id_rank[candidates.offer[feasible]], candidates.nodes[feasible]
    # at the same cost and time nobody should run on what may be taken back
    spot = context.market.is_spot[candidates.offer[feasible]]
    return _sorted((first, second, spot, nodes, names))


def _sorted(keys: tuple[npt.NDArray[Any], ...]) -> Ints:
    """Positions by the first key, of equal ones by the next and so on; few are equal, so the rest sorts those alone."""
    order = np.argsort(keys[0], kind="stable")
    ordered = keys[0][order]
    same = ordered[1:] == ordered[:-1]
    tied = np.append(same, False) | np.append(False, same)
    if tied.any():
        some = np.sort(order[tied])
        order[tied] = some[np.lexsort([key[some] for key in reversed(keys)])]
    return order


def _criteria(candidates: Candidates, at: Ints, objective: str) -> tuple[Floats, Floats]:
    """What candidates are sorted by, in order: cost and hours, hours and cost, or emissions and cost.

    To 12 significant digits: float noise must not decide between offers that cost the same.
    """
    cost = _significant(candidates.cost_usd[at])
    if objective == "carbon":
        kg = operational_kg(candidates.take(at))
        return _significant(np.where(np.isnan(kg), np.inf, kg)), cost
    hours = _significant(candidates.hours[at])
    return (cost, hours) if objective == "cost" else (hours, cost)


def best_of(candidates: Candidates, positions: Ints, objective: str) -> int:
    """The first that `rank` would give, found without sorting the others."""
    if objective != "carbon":
        value = (candidates.cost_usd if objective == "cost" else candidates.hours)[positions]
        least = value.min()
        positions = positions[~(value > least + abs(least) * _ALIKE)]
    first, _ = _criteria(candidates, positions, objective)
    return int(rank(candidates, positions[~(first > first.min())], objective)[0])


def _significant(values: Floats) -> Floats:
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.round(mantissa * 2.0**40), exponent - 40), dtype=np.float64)


def choose(candidates: Candidates, objective: str) -> Choice | None:
    """Return the exact optimum, or None when nothing is feasible."""
    feasible = np.flatnonzero(candidates.bits == 0)
    return Choice(best_of(candidates, feasible, objective), len(feasible)) if len(feasible) else None


def best_where(candidates: Candidates, mask: Bools, objective: str) -> int | None:
    """Return the best candidate among those where `mask` holds, None where there is none."""
    positions = np.flatnonzero(mask)
    return best_of(candidates, positions, objective) if len(positions) else None


def best_missing(candidates: Candidates, mask: Bools, missable: int, objective: str) -> int | None:
    """Return the best of the candidates where `mask` holds that miss the fewest limits, None where there is none.

    Args:
        candidates: all of them.
        mask: which of them are meant, shape `(n_candidates,)`.
        missable: bits of the limits that may be missed.
        objective: what is best.
    """
    near = mask & (candidates.bits & ~missable == 0)
    missed = np.bitwise_count(candidates.bits)
    return best_where(candidates, near & (missed == missed[near].min(initial=64)), objective)
