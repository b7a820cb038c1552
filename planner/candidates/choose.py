"""Exact choice for one synchronous job: every candidate is priced, the cheapest (or fastest) feasible one wins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.table import distinct
from planner.candidates.model import IN_TURN, MIXED
from planner.records import record

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.candidates.model import Candidates

    IntArray = npt.NDArray[np.int64]

NEAR_TIE_RATIO = 0.02


@record(frozen=True)
class Choice:
    """Positions into the candidates: the winner and the ranking of distinct ways (best candidate of each)."""

    winner: int
    ranking: IntArray
    n_feasible: int
    near_ties: int


def rank(candidates: Candidates, feasible: IntArray, objective: str) -> IntArray:
    """Sort feasible positions by the objective, then the other criterion, then fewer nodes, then offer id.

    The offer id decides ties, never the row order, so that shuffling the catalog changes nothing.
    """
    context = candidates.context
    cost, hours = candidates.cost_usd[feasible], candidates.hours[feasible]
    # 12 significant digits: float noise must not decide between offers that cost the same
    cost, hours = _significant(cost), _significant(hours)
    first, second = (cost, hours) if objective == "cost" else (hours, cost)
    names, nodes = context.market.id_rank[candidates.offer[feasible]], candidates.nodes[feasible]
    # at the same cost and time nobody should run on what may be taken back
    spot = context.market.is_spot[candidates.offer[feasible]]
    return feasible[np.lexsort((names, nodes, spot, second, first))]


def _significant(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.round(mantissa * 2.0**40), exponent - 40), dtype=np.float64)


def choose(candidates: Candidates, objective: str) -> Choice | None:
    """Return the exact optimum and the ranking of alternatives, or None when nothing is feasible.

    Alternatives are distinct in (instance type, provider, purchase option): of each only the best candidate ranks.
    """
    feasible = np.flatnonzero(candidates.bits == 0)
    if not len(feasible):
        return None
    ranked = rank(candidates, feasible, objective)
    _, first, _ = distinct(_ways(candidates, ranked))
    ranking = ranked[np.sort(first)]
    value = candidates.cost_usd if objective == "cost" else candidates.hours
    near = value[ranking] <= value[ranked[0]] * (1 + NEAR_TIE_RATIO)
    return Choice(int(ranked[0]), ranking, len(feasible), int(near.sum()) - 1)


def _ways(candidates: Candidates, at: IntArray) -> IntArray:
    """Code of what alternatives differ in; a mix differs in the purchase options of its parts."""
    context = candidates.context
    ways = context.market.way_of_offer[candidates.offer[at]]
    mixes, turns, kind = candidates.mixes, candidates.turns, candidates.kind[at]
    size = int(context.market.way_of_offer.max()) + 1
    if turns is not None:
        # in turn: the type's spot, with or without a fall-back, in one zone or several
        late = np.flatnonzero(kind == IN_TURN)
        mine = candidates.detail[at[late]]
        several = context.market.is_spot[turns.offer[mine, 1]] & (turns.offer[mine, 1] >= 0)
        ways[late] += size * (1 + turns.has_fallback[mine] + 2 * several)
    mixed = np.flatnonzero(kind == MIXED)
    if mixes is None or not len(mixed):
        return ways
    parts = mixes.offer[candidates.detail[at[mixed]]]
    codes = np.sort(np.where(parts >= 0, context.market.way_of_offer[parts], -1), axis=1)
    _, code = np.unique(codes, axis=0, return_inverse=True)
    ways[mixed] = size * 4 + code.reshape(-1)
    return ways


def pick_alternatives(candidates: Candidates, choice: Choice, limit: int) -> list[int]:
    """Return the next best distinct ways, and the best way of every provider not among them."""
    context = candidates.context
    picked: list[int] = choice.ranking[1 : 1 + limit].tolist()
    provider = context.market.provider_of_offer
    seen = {int(provider[candidates.offer[at]]) for at in (choice.winner, *picked)}
    for at in choice.ranking[1 + limit :].tolist():
        code = int(provider[candidates.offer[at]])
        if code not in seen:
            seen.add(code)
            picked.append(at)
    return picked


def best_where(candidates: Candidates, mask: npt.NDArray[np.bool_], objective: str) -> int | None:
    """Return the best candidate among those where `mask` holds, None where there is none."""
    positions = np.flatnonzero(mask)
    return int(rank(candidates, positions, objective)[0]) if len(positions) else None
