"""Spot that a limit on offers keeps out, bought as it would be without that limit: with on-demand to fall back on.

What `optimize` works out are ways on admitted offers. Beside a plan that falls back on on-demand, spot alone elsewhere
looks cheaper than it is; here such spot gets its fall-back too, in one zone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.model import IN_TURN, SINGLE, append, concat_candidates
from planner.candidates.ways.build import BY_FALLBACK, single_cells, work_floor
from planner.candidates.ways.course import join_cells
from planner.candidates.ways.judged import judged_turns
from planner.candidates.ways.partners import on_demand_partners

if TYPE_CHECKING:
    from catalogs.tables.table import Ints
    from planner.candidates.model import Candidates


def with_kept_out(
    candidates: Candidates, offer_bits: Ints, words: Ints, limit: float, dearer: int = 0
) -> Candidates:
    """The candidates, and behind them those of `kept_out`."""
    return concat_candidates([candidates, *kept_out(candidates, offer_bits, words, limit, dearer)])


def kept_out(
    candidates: Candidates, offer_bits: Ints, words: Ints, limit: float, dearer: int = 0
) -> list[Candidates]:
    """Spot with a fall-back on offers that `words` keep out, for each of them.

    Their bits are the word that keeps the offer out: no other limit removes them.

    Args:
        candidates: all candidates of one offer, those of offers kept out among them.
        offer_bits: filter bits per offer, shape `(n_offers,)`.
        words: filter bits of the offers to look at; on-demand that the same bits keep out may be fallen back on.
        limit: ways whose bare work is worth more than this (US dollars, hours or kg, by the objective) are left out.
        dearer: how many of these are kept for each word, the next ones.
    """
    context = candidates.context
    if context.dates.deadline_hours is None or context.asked.workload.spot.fallback == "none":
        return []
    of_offer = offer_bits[candidates.offer]
    spot = (candidates.kind == SINGLE) & context.market.is_spot[candidates.offer]
    at = np.flatnonzero(spot & np.isin(of_offer, words) & ((candidates.bits & ~BY_FALLBACK) == of_offer))
    floor = work_floor(candidates, at)
    order = np.argsort(floor, kind="stable")
    at, floor = at[order], floor[order]
    parts: list[Candidates] = []
    for word in sorted(set(of_offer[at].tolist())):
        same, admitted = of_offer[at] == word, offer_bits & ~word
        base = at[same][: np.count_nonzero(floor[same] <= limit) + dearer]
        partners = (on_demand_partners(context.market, admitted, anywhere=away) for away in (False, True))
        judged = judged_turns(
            candidates, join_cells([single_cells(base, candidates, partner) for partner in partners])
        )
        if judged is not None:
            columns, turns = judged
            columns["bits"] |= word
            none = replace(candidates.take(at[:0]), mixes=None, turns=None)
            parts.append(append(none, [columns], IN_TURN, turns))
    return parts
