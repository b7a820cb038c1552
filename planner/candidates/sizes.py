"""Cluster sizes that are looked at, and the shapes of all hardware at them.

First a list of node counts that grows in steps for all hardware; then, for the hardware of the leading candidates,
every node count in between. The set considered is stated in the plan's proof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.candidates.footprint import carbon_front, least_kg_per_hour
from planner.candidates.wanted import value_of
from planner.market.offers import unit_of_offer
from planner.performance.kept import estimate_shapes
from solvers.search.pareto import dominated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Floats, Ints, Table
    from planner.asked.model import Asked
    from planner.candidates.context import Context
    from planner.candidates.model import Candidates
    from planner.market.model import Market


# Sizes between the coarse ones are searched wherever the efficiency seen at the coarse ones, improved by this much,
# could still beat what is asked for.
MARGIN_RATIO = 0.15


def coarse_node_counts(limit: int) -> tuple[int, ...]:
    """Node counts for all hardware: 1..8, then steps of about an eighth of the size, and `limit` itself."""
    counts = list(range(1, min(limit, 8) + 1))
    step = 2
    while counts[-1] + step <= limit:
        counts.append(counts[-1] + step)
        if counts[-1] >= 8 * step:
            step *= 2
    return tuple(dict.fromkeys([*counts, limit]))


def unit_node_counts(market: Market, limit: int) -> dict[int, tuple[int, ...]]:
    """Node counts of hardware that is sold in units of several machines: their multiples, by hardware row."""
    units = unit_of_offer(market.offer_set)
    racks = np.flatnonzero(units > 1)
    pairs = sorted(
        {(int(row), int(units[at])) for row, at in zip(hardware_of_offer(market)[racks], racks, strict=True)}
    )
    return {row: tuple(range(unit, limit + 1, unit)) for row, unit in pairs if unit <= limit}


def estimate_all(asked: Asked, market: Market, counts: Sequence[int]) -> Table:
    """Shapes of all hardware at the node counts given."""
    return estimate_hardware(asked, market, np.arange(market.offer_set.hardware.n_rows), counts)


def estimate_for(asked: Asked, market: Market, offers: Ints, counts: Sequence[int]) -> Table:
    """Shapes of the hardware of some offers at the node counts given."""
    return estimate_hardware(asked, market, distinct_values(hardware_of_offer(market)[offers]), counts)


def estimate_hardware(asked: Asked, market: Market, hardware: Ints, counts: Sequence[int]) -> Table:
    """Estimate shapes of some hardware rows; `hardware_row` of the result refers to the whole hardware table."""
    job = asked.job
    rows = market.offer_set.hardware.take(hardware)
    shapes = estimate_shapes(job.model, job.training, rows, counts, keep=asked.keeps_shapes)
    if asked.calibration is not None:
        shapes = asked.calibration.apply(shapes, rows)
    return shapes.with_columns(hardware_row=hardware[shapes["hardware_row"]])


def with_checkpoint(context: Context, shapes: Table) -> Context:
    """The run with the checkpoint sized from the model, where the workload does not give its size."""
    if context.asked.job.checkpoint_gib:
        return context
    size = float(shapes["checkpoint_gib"][0])
    return context.with_job(checkpoint_gib=size)


def hardware_of_offer(market: Market) -> Ints:
    """Hardware row of each offer, shape `(n_offers,)`."""
    return market.offer_set.hardware_of_type[market.offer_set.type_of_offer]


def hopeful_hardware(candidates: Candidates, offer_bits: Ints, up_to: float = -np.inf) -> Ints:
    """Hardware rows that could beat the best candidate (or `up_to`, if more) at a size between the coarse ones.

    A lower bound per hardware: the least over its admitted offers of price x the fewest node-hours of work seen at any
    coarse size, less `MARGIN_RATIO`, and what moving data costs whatever the size (for the objective time: the fewest
    hours; carbon: the least kgCO2e of these node-hours).
    Hardware whose batch no coarse size divides has no bound and is searched too; so is all while nothing is feasible.
    """
    context = candidates.context
    objective = context.asked.workload.preferences.objective
    bound = _least_by_hardware(candidates, offer_bits, objective)
    feasible = np.flatnonzero(candidates.bits == 0)
    value = value_of(candidates)
    best = float(value[feasible].min()) if len(feasible) else np.inf
    return np.flatnonzero(np.isfinite(bound) & (bound <= max(best, up_to)))


def hardware_beside_front(candidates: Candidates, offer_bits: Ints) -> Ints:
    """Hardware rows that could be on the front of cost and emissions at a size between the coarse ones."""
    usd, kg = (_least_by_hardware(candidates, offer_bits, measure) for measure in ("cost", "carbon"))
    return np.flatnonzero(np.isfinite(usd) & np.isfinite(kg) & ~dominated(*carbon_front(candidates), usd, kg))


def _least_by_hardware(candidates: Candidates, offer_bits: Ints, objective: str) -> Floats:
    """Lower bound of cost, hours or emissions per hardware row; infinity where it cannot run or nobody knows."""
    context, shapes = candidates.context, candidates.shapes
    fits = np.asarray(shapes["fits"], dtype=np.bool_)
    row, nodes = shapes["hardware_row"].astype(np.int64), shapes["nodes"].astype(np.float64)
    per_step_s = context.asked.job.total_steps * context.asked.assumptions.work_ratio / 3600.0
    hours = shapes["step_time_s"] * per_step_s
    n_hardware = context.market.offer_set.hardware.n_rows
    least = least_by_group((hours if objective == "time" else hours * nodes)[fits], row[fits], n_hardware)
    undivided = np.zeros(len(least), dtype=np.bool_)
    undivided[row[shapes.is_in("reason", ("batch_not_divisible", "layout_not_possible"))]] = True
    least[undivided & np.isinf(least)] = 0.0
    admitted = np.flatnonzero(offer_bits == 0)
    of_hardware = hardware_of_offer(context.market)[admitted]
    rate, once = _least_per_hour(candidates, admitted, objective), np.zeros(len(admitted))
    if objective == "cost":
        once = context.market.costs.moved_usd(admitted)
    known = np.isfinite(least[of_hardware]) & np.isfinite(rate)
    work = np.where(known, least[of_hardware], 0.0) * np.where(known, rate, 0.0) * (1.0 - MARGIN_RATIO)
    return least_by_group(np.where(known, work + once, np.inf), of_hardware, n_hardware)


def _least_per_hour(candidates: Candidates, offers: Ints, objective: str) -> Floats:
    """Least that an hour of a node adds to what is compared, per offer: USD, 1 for hours, or kgCO2e; NaN: unknown."""
    if objective == "time":
        return np.ones(len(offers))
    if objective == "carbon":
        kg = least_kg_per_hour(candidates)[offers]
        return np.where(np.isnan(kg), np.inf, kg)
    return candidates.context.market.costs.least_usd_per_hour[offers]


def least_by_group(value: Floats, group: Ints, n_groups: int) -> Floats:
    """Least value of each group, infinity where a group has none, shape `(n_groups,)`."""
    least = np.full(n_groups, np.inf)
    np.minimum.at(least, group, value)
    return least
