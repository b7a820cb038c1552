"""Energy and emissions of candidates: hours in use by part, at what steps and setup draw (docs/carbon.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct
from planner.candidates.carbon import GRAMS_PER_KG, MID, draw_in, draw_of_shapes
from planner.candidates.model import IN_TURN, MIXED, SINGLE, Mixes
from solvers.search.pareto import pareto_front

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Floats, Ints
    from planner.candidates.model import Candidates


def operational_kg(candidates: Candidates) -> Floats:
    """Expected kgCO2e of the electricity of each candidate; NaN where grid or power is unknown."""
    return _summed(candidates, np.arange(len(candidates.offer)))[1]


def least_kg_per_hour(candidates: Candidates) -> Floats:
    """Lower bound of what an hour of one instance at work emits, per offer of the run; NaN where unknown."""
    context = candidates.context
    family = context.asked.job.model.family.value
    least = min(draw_in(phase, family) for phase in ("compute", "memory_bound", "generation", "waiting"))
    power = context.power
    draw = np.full(len(power.grid), least)
    return np.asarray(power.kwh_per_hour(draw) * power.grid / GRAMS_PER_KG, dtype=np.float64)


def carbon_front(candidates: Candidates) -> tuple[Floats, Floats]:
    """Cost and kgCO2e of the feasible candidates that none beats in both, by rising cost."""
    kg = operational_kg(candidates)
    at = np.flatnonzero((candidates.bits == 0) & ~np.isnan(kg))
    front = at[pareto_front(candidates.cost_usd[at], kg[at])]
    return candidates.cost_usd[front], kg[front]


def footprint_of(candidates: Candidates, at: int) -> tuple[float, float]:
    """Expected energy in kWh and `operational_kg` of candidate `at` alone; NaN where unknown."""
    return footprints_of(candidates, (at,))[0]


def footprints_of(candidates: Candidates, rows: Sequence[int]) -> list[tuple[float, float]]:
    """The same of several candidates, in one call for all that were not asked for before."""
    known = candidates.footprints
    if new := [at for at in dict.fromkeys(rows) if at not in known]:
        kwh, kg = _summed(candidates, np.asarray(new))
        known.update(zip(new, zip(kwh.tolist(), kg.tolist(), strict=True), strict=True))
    return [known[at] for at in rows]


def _summed(candidates: Candidates, at: Ints) -> tuple[Floats, Floats]:
    """Energy in kWh and emissions in kgCO2e of some candidates over their parts, each of shape `(n,)`."""
    kind, out = candidates.kind[at], np.zeros((2, len(at)))
    for number, table in ((SINGLE, None), (MIXED, candidates.mixes), (IN_TURN, candidates.turns)):
        mine = np.flatnonzero(kind == number)
        if not len(mine):
            continue
        rows = at[mine]
        offer, nodes, paid = (
            candidates.offer[rows][:, None],
            candidates.nodes[rows][:, None],
            candidates.paid_hours[rows][:, None],
        )
        if table is not None:
            own = candidates.detail[rows]
            offer, paid = table.offer[own], table.paid_hours[own]
            nodes = table.nodes[own] if isinstance(table, Mixes) else np.broadcast_to(nodes, offer.shape)
        out[:, mine] = [part.sum(axis=1) for part in of_parts(candidates, rows, offer, nodes, paid, MID)]
    return out[0], out[1]


def of_parts(
    candidates: Candidates, at: Ints, offer: Ints, nodes: Ints, paid: Floats, level: int
) -> tuple[Floats, Floats]:
    """Energy in kWh and emissions in kgCO2e of each part of some candidates.

    The hours without work (image, staging, warm-up, export) are those of every part that runs beside the others, and
    shared in proportion by parts that run one after another.

    Args:
        candidates: candidates.
        at: which of them, shape `(n,)`.
        offer: of each part, -1 none, shape `(n, parts)`.
        nodes: instances, of the same shape.
        paid: hours in use, of the same shape.
        level: of the interval.
    """
    family = candidates.context.asked.job.model.family.value
    work = _draw(candidates, at, family, level)[:, None]
    in_turn = (candidates.kind[at] == IN_TURN)[:, None]
    used = np.where(in_turn, paid.sum(axis=1, keepdims=True), paid)
    idle = np.minimum(1.0, candidates.fixed_hours[at][:, None] / np.where(used > 0, used, 1.0))
    draw = work * (1.0 - idle) + draw_in("setup", family, level) * idle
    machines = candidates.context.power.take(np.maximum(offer, 0))
    kwh = nodes * paid * machines.kwh_per_hour(draw, level)
    return np.where(offer >= 0, kwh, 0.0), np.where(offer >= 0, kwh * machines.grid / GRAMS_PER_KG, 0.0)


def _draw(candidates: Candidates, at: Ints, family: str, level: int) -> Floats:
    """Mean draw during a step of some candidates: worked out once for all shapes that candidates have."""
    if level not in candidates.drawn:
        shapes = distinct(candidates.shape)[0]
        candidates.drawn[level] = np.full(candidates.shapes.n_rows, np.nan)
        candidates.drawn[level][shapes] = draw_of_shapes(candidates.shapes, family, level, shapes)
    return np.asarray(candidates.drawn[level][candidates.shape[at]], dtype=np.float64)
