"""Search of one synchronous job: shapes, all candidates, then the leaders at every node count.

First a list of node counts that grows in steps for all hardware; then, for the hardware of the leading candidates,
every node count in between. The set considered is stated in the plan's proof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.factored import least_by_group
from planner.candidates.grid import Candidates, build_candidates, concat_candidates
from planner.candidates.limits import mark_offers
from planner.performance.search import estimate_shapes
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from catalogs.table import Table
    from planner.candidates.context import Context

    IntArray = npt.NDArray[np.int64]

# Sizes between the coarse ones are searched wherever the efficiency seen at the coarse ones, improved by this much,
# could still beat the best candidate.
MARGIN_RATIO = 0.15


@record(frozen=True, eq=False)
class Found:
    """All candidates and the filter bits of the offers."""

    candidates: Candidates
    offer_bits: IntArray
    node_counts: tuple[int, ...]
    refined_hardware: int


def coarse_node_counts(limit: int) -> tuple[int, ...]:
    """Node counts for all hardware: 1..8, then steps of about an eighth of the size, and `limit` itself."""
    counts = list(range(1, min(limit, 8) + 1))
    step = 2
    while counts[-1] + step <= limit:
        counts.append(counts[-1] + step)
        if counts[-1] >= 8 * step:
            step *= 2
    return tuple(dict.fromkeys([*counts, limit]))


def estimate_all(context: Context, counts: Sequence[int]) -> Table:
    """Shapes of all hardware at the node counts given."""
    return _shapes(context, np.arange(context.offer_set.hardware.n_rows), counts)


def search_job(context: Context, shapes: Table, counts: Sequence[int]) -> Found:
    """Build all candidates of the job.

    Args:
        context: the planning run.
        shapes: output of `estimate_all` for `counts`.
        counts: node counts looked at for all hardware, ascending; the last is the limit.
    """
    limits = context.workload.constraints
    offer_bits = mark_offers(context.offer_set, limits, context.job.model.family)
    first = build_candidates(context, offer_bits, shapes)
    leaders = _hopeful(context, first, offer_bits)
    between = sorted(set(range(1, counts[-1] + 1)) - set(counts))
    if not len(leaders) or not between:
        return Found(with_all(context, first, offer_bits, counts[-1]), offer_bits, tuple(counts), 0)
    offers = np.flatnonzero(_is_leader(context, leaders)[_hardware_of_offer(context)] & (offer_bits == 0))
    second = build_candidates(context, offer_bits, _shapes(context, leaders, between), offers)
    every = with_all(context, concat_candidates([first, second]), offer_bits, counts[-1])
    return Found(every, offer_bits, tuple(counts), len(leaders))


def with_all(context: Context, made: Candidates, offer_bits: IntArray, most: int) -> Candidates:
    """Add clusters bought in parts, and spot with on-demand to fall back on or in several zones."""
    if not (context.is_spot & (offer_bits == 0)).any():
        return with_mixes(context, made, offer_bits, most)
    from planner.candidates.ways.build import add_turns, on_demand_partners
    from planner.candidates.ways.discount import mark_no_discount

    mark_no_discount(context, made, on_demand_partners(context, offer_bits))
    return add_turns(context, with_mixes(context, made, offer_bits, most), offer_bits)


def with_mixes(context: Context, made: Candidates, offer_bits: IntArray, most: int) -> Candidates:
    """Add clusters bought in parts where an admitted offer holds fewer than `most` instances; else import nothing."""
    if not ((context.offer_set.offers["capacity"] < most) & (offer_bits == 0)).any():  # NaN: unlimited
        return made
    from planner.candidates.bought_in_parts import add_mixes

    return add_mixes(context, made, offer_bits, most)


def _hardware_of_offer(context: Context) -> IntArray:
    return context.offer_set.hardware_of_type[context.offer_set.type_of_offer]


def _shapes(context: Context, hardware: IntArray, counts: Sequence[int]) -> Table:
    """Estimate shapes of some hardware rows; `hardware_row` of the result refers to the whole hardware table."""
    job = context.job
    rows = context.offer_set.hardware.take(hardware)
    shapes = estimate_shapes(job.model, job.training, rows, counts)
    if context.calibration is not None:
        shapes = context.calibration.apply(shapes, rows)
    return shapes.with_columns(hardware_row=hardware[shapes["hardware_row"]])


def _is_leader(context: Context, leaders: IntArray) -> npt.NDArray[np.bool_]:
    mask = np.zeros(context.offer_set.hardware.n_rows, dtype=np.bool_)
    mask[leaders] = True
    return mask


def estimate_for(context: Context, offers: IntArray, counts: Sequence[int]) -> Table:
    """Shapes of the hardware of some offers at the node counts given."""
    return _shapes(context, np.unique(_hardware_of_offer(context)[offers]), counts)


def _hopeful(context: Context, candidates: Candidates, offer_bits: IntArray) -> IntArray:
    """Hardware rows that could beat the best candidate at a size between the coarse ones.

    A lower bound per hardware: its cheapest admitted price x the fewest node-hours of steps seen at any coarse size,
    less `MARGIN_RATIO` (for the objective time: the fewest hours). Hardware whose batch no coarse size divides has no
    bound and is searched too; so is all hardware while nothing is feasible.
    """
    shapes, offer_set = candidates.shapes, context.offer_set
    fits = np.asarray(shapes["fits"], dtype=np.bool_)
    row, nodes = shapes["hardware_row"].astype(np.int64), shapes["nodes"].astype(np.float64)
    hours = shapes["step_time_s"] * context.job.total_steps / 3600.0
    by_cost = context.workload.preferences.objective == "cost"
    n_hardware = offer_set.hardware.n_rows
    least = least_by_group((hours * nodes if by_cost else hours)[fits], row[fits], n_hardware)
    undivided = np.zeros(len(least), dtype=np.bool_)
    undivided[row[shapes.is_in("reason", ("batch_not_divisible", "layout_not_possible"))]] = True
    least[undivided & np.isinf(least)] = 0.0
    admitted = np.flatnonzero(offer_bits == 0)
    owned = ~np.isnan(offer_set.owned_share[admitted])
    hourly = np.where(owned, 0.0, offer_set.usd_per_hour[admitted]) if by_cost else np.ones(len(admitted))
    price = least_by_group(hourly, _hardware_of_offer(context)[admitted], n_hardware)
    feasible = np.flatnonzero(candidates.bits == 0)
    value = candidates.cost_usd if by_cost else candidates.hours
    best = float(value[feasible].min()) if len(feasible) else np.inf
    known = np.isfinite(least) & np.isfinite(price)
    bound = np.where(known, least, 0.0) * np.where(known, price, 0.0) * (1.0 - MARGIN_RATIO)
    return np.flatnonzero(known & (bound <= best))
