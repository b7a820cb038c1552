"""How long clusters wait for their capacity, and how often it comes.

A cluster bought in several parts starts when the last of its steady parts is there; each is taken to wait as if the
whole cluster were asked of it. Spot waits as its records say, in the course of the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.model import IN_TURN, MIXED, SINGLE

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.candidates.model import Candidates
    from planner.market.starts import Starts

    Floats = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]


def parts_wait_hours(starts: Starts, offer: IntArray, nodes: IntArray) -> Floats:
    """Hours until the last part is there.

    Args:
        starts: waits of the offers.
        offer: purchases, -1 none, shape `(n, k)`.
        nodes: instances of the whole cluster, shape `(n,)`.
    """
    each = np.where(offer >= 0, starts.hours(offer, nodes[:, None]), 0.0)
    return np.asarray(each.max(axis=1), dtype=np.float64)


def wait_hours(made: Candidates, at: int) -> float:
    """Hours that candidate `at` waits for what is not spot before it starts."""
    starts, one = made.context.starts, np.asarray([at])
    if made.kind[at] == IN_TURN:
        return 0.0
    if made.kind[at] == MIXED and made.mixes is not None:
        return float(parts_wait_hours(starts, made.mixes.offer[made.detail[one]], made.nodes[one])[0])
    return float(starts.hours(made.offer[one], made.nodes[one])[0])


def chance_had(made: Candidates, at: IntArray) -> Floats:
    """Probability that capacity comes, shape `(len(at),)`; of clusters in turn their own chance holds it already."""
    starts, had = made.context.starts, np.ones(len(at))
    single = made.kind[at] == SINGLE
    had[single] = starts.had(made.offer[at[single]], made.nodes[at[single]])
    mixed = np.flatnonzero(made.kind[at] == MIXED)
    if len(mixed) and made.mixes is not None:
        offer, nodes = made.mixes.offer[made.detail[at[mixed]]], made.nodes[at[mixed]]
        had[mixed] = np.where(offer >= 0, starts.had(offer, nodes[:, None]), 1.0).min(axis=1)
    return had


def fallback_hours(starts: Starts, on_demand: IntArray, nodes: IntArray) -> Floats:
    """Hours from asking for the fall-back to having it, 0 without one; `on_demand`: offers, -1 none."""
    return np.where(on_demand >= 0, starts.hours(on_demand, nodes), 0.0)
