"""Candidates that run on spot and, where that does not suffice, on on-demand: found, timed, priced, appended.

Of every spot candidate that keeps all other limits, one with on-demand of the same type to fall back on (same region if
it is sold there, else the cheapest region of the provider). Where that could be the plan, also every set of two and
three zones or regions of the type. A candidate is kept only if it meets the deadline with the confidence asked and is
cheaper (or sooner) than on-demand alone; so the optimum over all candidates never rises.

Candidates whose price of spot for the work alone exceeds what is known to be enough for a place in the answer are not
worked out: those are the best candidate, the ways shown beside it, and the best of each provider.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.table import distinct
from planner.candidates.grid import Candidates, Turns
from planner.candidates.ways.course import Cells, price_in_turn, run_in_turn
from planner.market.quota import draws_on
from planner.plan.filters import BIT, mark
from planner.spot.distribution import SpotPool
from planner.spot.evidence import gang_risk
from planner.spot.zones import subsets, unite

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.candidates.context import Context

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]

MAX_ZONES = 3  # of one set: the gain of a fourth is small, the number of sets is not
MAX_CHOICE = 8  # zones of one type that sets are made of, cheapest first
_SLIP_HOURS = 1e-9  # of the sums of hours


def add_turns(context: Context, made: Candidates, offer_bits: IntArray) -> Candidates:
    """Return the candidates with those that run in turn behind them.

    Args:
        context: the planning run.
        made: candidates of one offer and mixes.
        offer_bits: filter bits per offer, shape `(n_offers,)`.
    """
    if context.deadline_hours is None:
        return made
    wish, partner = context.workload.spot, on_demand_partners(context, offer_bits)
    if wish.fallback == "none":
        partner = np.full_like(partner, -1)
    at = spot_candidates(context, made)
    if not len(at):
        return made
    deadline = context.deadline_hours
    likely = at[_enough(context, made, at)]
    parts = [judged_turns(context, made, single_cells(context, likely, made, partner), deadline)]
    if wish.fallback != "none":
        elsewhere = on_demand_partners(context, offer_bits, anywhere=True)
        parts.append(judged_turns(context, made, single_cells(context, likely, made, elsewhere), deadline))
    if wish.zones == "any":
        best = min(_best_value(context, made, part) for part in parts)
        parts.append(judged_turns(context, made, set_cells(context, made, at, partner, best), deadline))
    found = [part for part in parts if part is not None]
    return append_turns(made, found) if found else made


def on_demand_partners(context: Context, offer_bits: IntArray, *, anywhere: bool = False) -> IntArray:
    """On-demand offer that each spot offer falls back on, -1 without one, shape `(n_offers,)`.

    The cheapest admitted one of the same type in the same region; without one there, of any region of the provider.
    `anywhere` sets the own region aside: -1 where that is no cheaper.
    """
    offer_set, out = context.offer_set, np.full(len(context.is_spot), -1)
    rows = np.flatnonzero(offer_set.offers.equals("purchase_option", "on_demand") & (offer_bits == 0))
    if not len(rows):
        return out
    # dearest first, so that the cheapest is written last; equal prices by id
    rows = rows[np.lexsort((context.id_rank[rows], offer_set.usd_per_hour[rows]))][::-1]
    spot = np.flatnonzero(context.is_spot)
    kind, place = offer_set.type_of_offer, context.region_of_offer
    cheapest = np.full(offer_set.types.n_rows, -1)
    cheapest[kind[rows]] = rows
    out[spot] = cheapest[kind[spot]]
    size = int(place.max()) + 1
    here = np.full(offer_set.types.n_rows * size, -1)
    here[kind[rows] * size + place[rows]] = rows
    own = here[kind[spot] * size + place[spot]]
    if anywhere:
        price = offer_set.usd_per_hour
        out[spot] = np.where((own >= 0) & (price[out[spot]] < price[own]), out[spot], -1)
    else:
        out[spot] = np.where(own >= 0, own, out[spot])
    return out


def spot_candidates(context: Context, made: Candidates) -> IntArray:
    """Spot candidates that no limit removes but those that a fall-back changes."""
    changed = BIT["deadline"] | BIT["confidence"] | BIT["budget"]
    single = np.arange(len(made.offer)) < made.n_single
    return np.flatnonzero(single & context.is_spot[made.offer] & ((made.bits & ~changed) == 0))


def _floor(context: Context, made: Candidates, at: IntArray, usd_per_hour: FloatArray) -> FloatArray:
    """Lower bound of what is compared: the work at the price of spot; for the objective time the hours of the work."""
    work = made.work_hours[at] + made.fixed_hours[at]
    if context.workload.preferences.objective == "time":
        return np.asarray(made.waiting_hours[at] + work, dtype=np.float64)
    return np.asarray(made.nodes[at] * usd_per_hour * work * 0.999, dtype=np.float64)


def single_cells(context: Context, at: IntArray, made: Candidates, partner: IntArray) -> Cells:
    """One zone with its fall-back, of the spot candidates `at` whose spot costs less than on-demand."""
    price, own = context.offer_set.usd_per_hour, partner[made.offer[at]]
    at = at[(own >= 0) & (price[made.offer[at]] < price[own])]
    rows, nodes = made.offer[at], made.nodes[at]
    return Cells(
        base=at, zones=rows[:, None], shares=np.ones((len(at), 1)), on_demand=partner[rows],
        pool=gang_risk(context, rows, nodes).pool, moves=np.zeros(len(at)),
    )  # fmt: skip


def _enough(context: Context, made: Candidates, at: IntArray) -> npt.NDArray[np.bool_]:
    """Whether candidates could be among the ways shown, or the best of their provider."""
    value = made.cost_usd if context.workload.preferences.objective == "cost" else made.hours
    feasible = np.flatnonzero(made.bits[: made.n_single] == 0)
    provider = context.provider_of_offer
    limit = np.full(int(provider.max()) + 1, np.inf)
    if len(feasible):
        ways = context.way_of_offer[made.offer[feasible]]
        least = np.full(int(ways.max()) + 1, np.inf)
        np.minimum.at(least, ways, value[feasible])
        shown = np.sort(least)[: context.workload.preferences.max_results + 1]
        own = np.full(len(limit), np.inf)
        np.minimum.at(own, provider[made.offer[feasible]], value[feasible])
        limit = np.maximum(own, shown[-1])
    rows = made.offer[at]
    return _floor(context, made, at, context.offer_set.usd_per_hour[rows]) <= limit[provider[rows]]


def _best_value(context: Context, made: Candidates, single: tuple[dict[str, Any], Turns] | None) -> float:
    name = "cost_usd" if context.workload.preferences.objective == "cost" else "hours"
    known = [getattr(made, name)[made.bits == 0]]
    if single is not None:
        known.append(single[0][name][single[0]["bits"] == 0])
    return float(np.concatenate(known).min(initial=np.inf))


def set_cells(
    context: Context, made: Candidates, at: IntArray, partner: IntArray, best: float
) -> Cells | None:
    """Sets of zones of one type and size that could be better than the best candidate so far.

    Each with on-demand to fall back on and, as that has its price, also without: where spot alone in all of them
    meets the confidence, a fall-back must not make the plan dearer.
    """
    # a type's size is one group (types that perform the same share a shape); within it cheapest first, so that zones
    # are taken in the order in which they stand
    rows, kind = made.offer[at], context.offer_set.type_of_offer
    order = np.lexsort(
        (context.id_rank[rows], context.offer_set.usd_per_hour[rows], made.shape[at], kind[rows])
    )
    at = at[order]
    groups = np.flatnonzero(np.diff(made.shape[at]) | np.diff(kind[made.offer[at]])) + 1
    # a set costs no less than its cheapest zone for all of the work; a dearer one may still be worth its share
    hourly = context.offer_set.usd_per_hour[made.offer[at]]
    cheap = _floor(context, made, at, hourly) <= best
    zones: list[IntArray] = []
    for own in np.split(np.arange(len(at)), groups) if len(at) else ():
        if not cheap[own].any():
            continue
        group = at[own][_first_of_pool(context, made.offer[at[own]])][:MAX_CHOICE]
        zones += _sets_of(context, made.offer, group, set(at[own][cheap[own]].tolist()))
    if not zones:
        return None
    cells = union_cells(context, made, np.asarray(zones), partner)
    alone = cells.take(np.flatnonzero(cells.on_demand >= 0))
    return join_cells([cells, replace(alone, on_demand=np.full_like(alone.on_demand, -1))])


def _sets_of(context: Context, offer: IntArray, group: IntArray, cheap: set[int]) -> list[IntArray]:
    """Sets of the candidates `group` that begin with one of `cheap`, padded with -1.

    An offer of a whole region is no zone beside one of its zones.
    """
    named = context.offer_set.offers["zone"][offer[group]]
    region = context.region_of_offer[offer[group]].tolist()
    whole = {place for place, zone in zip(region, named.tolist(), strict=True) if not zone}
    out = []
    for own in subsets(len(group), MAX_ZONES):
        if int(group[own[0]]) not in cheap:
            continue
        places = [region[k] for k in own]
        if all(places.count(place) == 1 for place in whole.intersection(places)):
            out.append(np.pad(group[list(own)], (0, MAX_ZONES - len(own)), constant_values=-1))
    return out


def _first_of_pool(context: Context, rows: IntArray) -> IntArray:
    """Positions of the first offer of each zone, in order; one zone may be listed more than once."""
    _, first, _ = distinct(context.pool_of_offer[rows])
    return np.sort(first)


def union_cells(context: Context, made: Candidates, members: IntArray, partner: IntArray) -> Cells:
    """Cells of sets of spot candidates of one type and size, -1 where a set has fewer, shape `(n, k)`."""
    parts: list[Cells] = []
    sizes = (members >= 0).sum(axis=1)
    for size in sorted(set(sizes.tolist())):
        own = members[sizes == size][:, :size]
        rows, flat = made.offer[own], made.offer[own].ravel()
        pool = gang_risk(context, flat, made.nodes[own].ravel()).pool
        each = SpotPool(**{f.name: getattr(pool, f.name).reshape(own.shape) for f in fields(SpotPool)})
        assume = context.assumptions
        linked = (assume.spot_zone_correlation_ratio, assume.spot_region_correlation_ratio)
        union = unite(each, context.region_of_offer[rows], linked)
        fallbacks = partner[rows]
        price = np.where(fallbacks >= 0, context.offer_set.usd_per_hour[fallbacks], np.inf)
        on_demand = np.take_along_axis(fallbacks, price.argmin(axis=1)[:, None], axis=1)[:, 0]
        short = ((0, 0), (0, members.shape[1] - size))
        parts.append(
            Cells(
                base=own[:, 0], zones=np.pad(rows, short, constant_values=-1), shares=np.pad(union.shares, short),
                on_demand=on_demand, pool=union.pool, moves=union.moves,
            )
        )  # fmt: skip
    return join_cells(parts)


def join_cells(parts: list[Cells]) -> Cells:
    """Cells one after another."""
    pools = SpotPool(
        **{f.name: np.concatenate([getattr(part.pool, f.name) for part in parts]) for f in fields(SpotPool)}
    )
    columns = {
        f.name: np.concatenate([getattr(part, f.name) for part in parts])
        for f in fields(Cells)
        if f.name != "pool"
    }
    return Cells(**columns, pool=pools)


def judged_turns(
    context: Context, made: Candidates, cells: Cells | None, deadline_hours: float | FloatArray
) -> tuple[dict[str, Any], Turns] | None:
    """Time, price and judge cells; what misses its deadline is left out.

    Args:
        context: the planning run.
        made: candidates that the cells are based on.
        cells: what runs where.
        deadline_hours: hours from the start, one or one per cell.

    Returns:
        Columns of `Candidates` and the `Turns` behind them; None when nothing is left.
    """
    if cells is None or not len(cells.base):
        return None
    deadline_hours = np.broadcast_to(np.asarray(deadline_hours, dtype=np.float64), cells.base.shape)
    limits = context.workload.constraints
    course = run_in_turn(context, made, cells, deadline_hours)
    kept = (course.p_meet >= limits.deadline_confidence - 1e-9) & (course.slack >= 0)
    hours = course.waiting + made.fixed_hours[cells.base] + course.elapsed
    kept &= hours <= deadline_hours + _SLIP_HOURS  # what changes in time ends at the deadline at the latest
    kept &= _allowed(context, made, cells)
    kept &= (cells.on_demand < 0) | (course.work_share < 0.999)
    at = np.flatnonzero(kept)
    if not len(at):
        return None
    columns, turns = price_in_turn(context, made, cells.take(at), _take(course, at))
    if limits.budget_usd is not None:
        mark(columns["bits"], "budget", columns["cash_usd"] > float(limits.budget_usd))
    mark(columns["bits"], "term", ~np.isfinite(columns["cost_usd"]))
    return columns, turns


def _take(course: Any, at: IntArray) -> Any:
    return type(course)(**{f.name: getattr(course, f.name)[at] for f in fields(course)})


def _allowed(context: Context, made: Candidates, cells: Cells) -> npt.NDArray[np.bool_]:
    """Whether on-demand holds the gang and keeps the quotas; spot did already. They are not in use together."""
    nodes, rows = made.nodes[cells.base], cells.on_demand
    has = rows >= 0
    fits = ~has | ~(nodes > context.offer_set.capacity[rows])  # NaN: unlimited
    for limit, units in draws_on(context.workload.constraints.quota, context.offer_set, context.tariffs):
        fits &= ~has | (units[rows] * nodes <= limit * (1 + 1e-9))
    return np.asarray(fits, dtype=np.bool_)


def append_turns(made: Candidates, parts: list[tuple[dict[str, Any], Turns]]) -> Candidates:
    """Put candidates that run in turn behind all others."""
    columns = {name: np.concatenate([part[0][name] for part in parts]) for name in parts[0][0]}
    both: dict[str, Any] = {name: np.concatenate([getattr(made, name), columns[name]]) for name in columns}
    width = max(part[1].offer.shape[1] for part in parts)
    joined: dict[str, Any] = {"first": len(made.offer)}
    for field in fields(Turns):
        if field.name in ("first", "pool"):
            continue
        values = [getattr(part[1], field.name) for part in parts]
        if values[0].ndim == 2:
            values = [_widen(column, width, -1 if field.name == "offer" else 0) for column in values]
        joined[field.name] = np.concatenate(values)
    pools = [part[1].pool for part in parts]
    joined["pool"] = SpotPool(
        **{f.name: np.concatenate([getattr(pool, f.name) for pool in pools]) for f in fields(SpotPool)}
    )
    return replace(made, **both, turns=Turns(**joined))


def _widen(column: Any, width: int, empty: int) -> Any:
    return np.pad(column, ((0, 0), (0, width - column.shape[1])), constant_values=empty)
