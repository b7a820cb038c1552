"""Candidates that run on spot and, where that does not suffice, on on-demand: found, timed, priced, appended.

Of every spot candidate that keeps all other limits, one with on-demand of the same type to fall back on (same region if
it is sold there, else the cheapest region of the provider). Where that could be the plan, also every set of two and
three zones or regions of the type. A candidate is kept only if it meets the deadline with the confidence asked and is
cheaper (or sooner) than on-demand alone; so the optimum over all candidates never rises.

Candidates whose price of spot for the work alone exceeds what the question could use are not worked out
(`planner.candidates.wanted`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.rows import greatest, pick_or, whole
from planner.candidates.constraints.deadline import needs_record
from planner.candidates.constraints.registry import BIT
from planner.candidates.footprint import carbon_front, least_kg_per_hour
from planner.candidates.model import IN_TURN, SINGLE, append, join_tables, widen
from planner.candidates.starts import allotted_hours
from planner.candidates.wanted import Scope, Wanted, ceilings
from planner.candidates.ways.choice import sets_of
from planner.candidates.ways.course import Cells, frame_at, join_cells, until_progress
from planner.candidates.ways.judged import judged_turns
from planner.candidates.ways.partners import Partners, cheapest_partner, mark_no_discount
from planner.spot.zones import unite_alike
from solvers.search.pareto import dominated

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.model import Candidates
    from planner.candidates.ways.judged import Judged
    from planner.market.model import Market
    from planner.spot.evidence import GangRisk


# Limits that a fall-back changes: spot that they alone remove may still run with one.
BY_FALLBACK = BIT["deadline"] | BIT["unrecorded"] | BIT["confidence"] | BIT["budget"] | BIT["carbon"]
_SLIP_HOURS = 1e-9  # of the sums of hours
_FIRST_JUDGED = 256  # sets, of those that may be the cheapest
_SAME = 1.0 + 1e-9  # equal but for rounding: such sets are judged together


def add_turns(
    candidates: Candidates, offer_bits: Ints, wanted: Wanted, partners: Partners | None = None
) -> Candidates:
    """Return the candidates with those that run in turn behind them, and spot at no discount marked.

    Args:
        candidates: candidates of one offer and mixes; the bits of those of one offer change in place.
        offer_bits: filter bits per offer, shape `(n_offers,)`.
        wanted: what the question needs; ways that are of no use to it are not worked out.
        partners: what spot offers fall back on, where that is known.
    """
    context = candidates.context
    if partners is None:
        partners = Partners(context.market, offer_bits)
    mark_no_discount(candidates, partners)
    if context.dates.deadline_hours is None:
        return candidates
    partner, wish = partners.own, context.asked.workload.spot
    if wish.fallback == "none":
        partner = np.full_like(partner, -1)
    if wanted.one_region:
        place = context.market.region_of_offer
        partner = np.where(place[partner] == place, partner, -1)
    at = spot_candidates(candidates)
    if not len(at):
        return candidates
    judged = _ways(candidates, at, wanted, (partner, partners.elsewhere))
    return _appended(candidates, judged, for_good=True)


def _ways(
    candidates: Candidates, at: Ints, wanted: Wanted, partners: tuple[Ints, Ints]
) -> list[Judged | None]:
    """Ways to run in turn that begin with the spot candidates `at`; `partners` as of `set_cells`."""
    context, (partner, elsewhere) = candidates.context, partners
    wish = context.asked.workload.spot
    likely = at[_useful(candidates, at, wanted)]
    cells = [single_cells(likely, candidates, partner)]
    if wish.fallback == "none" or wanted.one_region:
        elsewhere = np.full_like(partner, -1)
    else:
        cells.append(single_cells(likely, candidates, elsewhere))
    judged = [judged_turns(candidates, join_cells(cells))]
    if wish.zones == "any":
        useful, limit = None, np.zeros(0)
        if wanted.scope is Scope.CARBON_FRONT:
            useful = beside_front(_appended(candidates, judged), at)
        elif context.asked.workload.preferences.objective == "carbon":
            limit = ceilings(_appended(candidates, judged), wanted, of_sets=True)
        else:
            limit = ceilings(
                candidates, wanted, of_sets=True, more=[part[0] for part in judged if part is not None]
            )
        if useful is None:
            useful = work_floor(candidates, at) <= wanted.within(candidates, at, limit)
        sets = set_cells(candidates, at, (partner, elsewhere), useful, one_region=wanted.one_region)
        if wanted.counted or context.asked.workload.preferences.objective != "cost":
            judged.append(judged_turns(candidates, sets))
        else:
            judged += _cheapest_sets(candidates, sets, limit)
    return judged


def _appended(candidates: Candidates, judged: list[Judged | None], *, for_good: bool = False) -> Candidates:
    """The candidates with the ways found behind them; `for_good`: those are used up, to save their memory."""
    parts = [part for part in judged if part is not None]
    if not parts:
        return candidates
    columns = [own if for_good else dict(own) for own, _ in parts]
    table = join_tables([table for _, table in parts])
    if for_good:
        judged.clear()
        parts.clear()
    return append(candidates, columns, IN_TURN, table)


def spot_candidates(candidates: Candidates) -> Ints:
    """Spot candidates that no limit removes but those that a fall-back changes."""
    context = candidates.context
    at = np.flatnonzero((candidates.bits & ~BY_FALLBACK) == 0)
    spot: Ints = at[(candidates.kind[at] == SINGLE) & context.market.is_spot[candidates.offer[at]]]
    return spot


def work_floor(candidates: Candidates, at: Ints) -> Floats:
    """Lower bound of what is compared: the work at the price of spot, its hours, or its least emissions."""
    context = candidates.context
    if context.asked.workload.preferences.objective == "carbon":
        return kg_floor(candidates, at)
    work = candidates.work_hours[at] + candidates.fixed_hours[at]
    if context.asked.workload.preferences.objective == "time":
        return np.asarray(candidates.waiting_hours[at] + work, dtype=np.float64)
    hourly = context.market.offer_set.least_usd_per_hour[candidates.offer[at]]
    return np.asarray(candidates.nodes[at] * hourly * work * 0.999, dtype=np.float64)


def cost_floor(candidates: Candidates, cells: Cells) -> Floats:
    """Lower bound of the cost of cells, USD: the work at the price of each zone by its share, or of the fall-back."""
    least = candidates.context.market.offer_set.least_usd_per_hour
    spot = (cells.shares * pick_or(least, cells.zones, 0.0)).sum(axis=1)
    work = candidates.work_hours[cells.base] + candidates.fixed_hours[cells.base]
    hourly = np.minimum(spot, pick_or(least, cells.on_demand, np.inf))
    return np.asarray(candidates.nodes[cells.base] * hourly * work * 0.999, dtype=np.float64)


def _cheapest_sets(candidates: Candidates, sets: Cells | None, limit: Floats) -> list[Judged | None]:
    """Judge the sets that may be the cheapest way: those of the least floors, then what is below the best of them."""
    if sets is None or not len(sets.base):
        return []
    floor, most = cost_floor(candidates, sets), limit[candidates.offer[sets.base]]
    first = floor <= np.minimum(most, np.sort(floor)[:_FIRST_JUDGED][-1] * _SAME)
    found = judged_turns(candidates, sets.take(np.flatnonzero(first)))
    best = np.inf if found is None else float(found[0]["cost_usd"][found[0]["bits"] == 0].min(initial=np.inf))
    rest = ~first & (floor <= np.minimum(most, best))
    return [found, judged_turns(candidates, sets.take(np.flatnonzero(rest)))]


def _useful(candidates: Candidates, at: Ints, wanted: Wanted) -> Bools:
    """Whether a way that begins with spot candidates could be of use to the question."""
    if wanted.scope is Scope.CARBON_FRONT:
        return beside_front(candidates, at)
    return np.asarray(
        work_floor(candidates, at) <= wanted.within(candidates, at, ceilings(candidates, wanted)),
        dtype=np.bool_,
    )


def beside_front(candidates: Candidates, at: Ints) -> Bools:
    """Whether a way that begins with spot candidates could be on the front of cost and emissions."""
    cost, kg = carbon_front(candidates)
    return ~dominated(cost, kg, work_floor(candidates, at), kg_floor(candidates, at))


def kg_floor(candidates: Candidates, at: Ints) -> Floats:
    """Lower bound of the emissions of any way to run that begins with candidates: their work in the best region.

    A way may be in any place where the type is sold, so each type counts at its cleanest.
    """
    offer_set, rate = candidates.context.market.offer_set, least_kg_per_hour(candidates)
    least = np.full(offer_set.types.n_rows, np.inf)
    known = np.flatnonzero(~np.isnan(rate))
    np.minimum.at(least, offer_set.type_of_offer[known], rate[known])
    of_type = least[offer_set.type_of_offer[candidates.offer[at]]]
    return np.asarray(candidates.nodes[at] * of_type * candidates.work_hours[at] * 0.999, dtype=np.float64)


def single_cells(at: Ints, candidates: Candidates, partner: Ints) -> Cells:
    """One zone with its fall-back, of the spot candidates `at` whose spot costs less than on-demand."""
    context = candidates.context
    price, own = context.market.offer_set.usd_per_hour, partner[candidates.offer[at]]
    at = at[(own >= 0) & (price[candidates.offer[at]] < price[own])]
    rows, nodes = candidates.offer[at], candidates.nodes[at]
    return Cells(
        base=at, zones=rows[:, None], shares=np.ones((len(at), 1)), on_demand=partner[rows],
        pool=context.gang_risk(rows, nodes).pool, moves=np.zeros(len(at)),
    )  # fmt: skip


def set_cells(
    candidates: Candidates,
    at: Ints,
    partners: tuple[Ints, Ints],
    useful: Bools,
    *,
    one_region: bool,
) -> Cells | None:
    """Sets of zones of one type and size that could be of use.

    Each with on-demand to fall back on and, as that has its price, also without: where spot alone in all of them
    meets the confidence, a fall-back must not make the plan dearer.

    Args:
        candidates: candidates that the cells are based on.
        at: spot candidates that keep all limits but those of time.
        partners: on-demand offers to fall back on per spot offer, -1 without one: of its region where there is one, and
            cheaper ones of other regions.
        useful: which of `at` a set may begin with.
        one_region: only sets within one region.
    """
    context = candidates.context
    # a type's size is one group (types that perform the same share a shape); within it cheapest first, so that zones
    # are taken in that order
    rows, kind = candidates.offer[at], context.market.offer_set.type_of_offer
    group_of = kind[rows] * candidates.shapes.n_rows + candidates.shape[at]
    order = np.lexsort((context.market.id_rank[rows], context.market.offer_set.usd_per_hour[rows], group_of))
    at, group_of = at[order], group_of[order]
    # a set costs no less than its cheapest zone for all of the work; a dearer one may still be worth its share
    cheap = useful[order]
    if not cheap.any():
        return None
    group = np.append(0, np.cumsum(group_of[1:] != group_of[:-1]))
    # no set of a group is in time where fewer than two of its zones are
    soon = _soon_enough(candidates, at[:, None])
    some = ((np.bincount(group, cheap) > 0) & (np.bincount(group, soon) > 1))[group]
    at, group, cheap = at[some], group[some], cheap[some]
    risk = context.gang_risk(candidates.offer[at], candidates.nodes[at])
    alone = risk.recorded | (not needs_record(context.asked.workload))
    cheap &= alone | _may_be_sure(candidates, at, group, partners)
    if not cheap.any():
        return None
    down = risk.pool.rate * risk.pool.wait
    members = sets_of(context.market, candidates.offer[at], group, cheap, down, one_region=one_region)
    members = members[_soon_enough(candidates, np.append(at, -1)[members])]
    if not len(members):
        return None
    members = members[np.argsort((members >= 0).sum(axis=1), kind="stable")]
    cells = union_cells(candidates, at, risk, members, partners[0])
    away = replace(cells, on_demand=cheapest_partner(context.market, cells.zones, cells.shares, partners[1]))
    price = context.market.offer_set.usd_per_hour
    cheaper = pick_or(price, away.on_demand, np.inf) < pick_or(price, cells.on_demand, np.inf)
    cheaper &= _is_discount(context.market, away)
    falls_back, may_run_alone = cells.on_demand >= 0, whole(np.append(alone, True)[members])
    kept = np.flatnonzero((falls_back | may_run_alone) & _is_discount(context.market, cells))
    elsewhere, without = np.flatnonzero(cheaper), np.flatnonzero(falls_back & may_run_alone)
    on_demand = np.concatenate([cells.on_demand[kept], away.on_demand[elsewhere], np.full_like(without, -1)])
    return replace(cells.take(np.concatenate([kept, elsewhere, without])), on_demand=on_demand)


def _is_discount(market: Market, cells: Cells) -> Bools:
    """Whether every zone of a set costs less than what it falls back on; true without a fall-back."""
    price = market.offer_set.usd_per_hour
    dearest = greatest(pick_or(price, cells.zones, 0.0))
    return np.asarray(dearest < pick_or(price, cells.on_demand, np.inf), dtype=np.bool_)


def _may_be_sure(candidates: Candidates, at: Ints, group: Ints, partners: tuple[Ints, Ints]) -> Bools:
    """Whether sets that begin with spot candidates may keep the confidence by the quickest fall-back.

    Args:
        candidates: all of them.
        at: spot candidates.
        group: their type and size: members of sets are of one.
        partners: on-demand offers to fall back on per spot offer, -1 without one.
    """
    least = np.full(int(group.max(initial=-1)) + 1, np.inf)
    for partner in partners:
        rows = partner[candidates.offer[at]]
        hours = allotted_hours(candidates, rows, candidates.nodes[at])
        np.minimum.at(least, group, np.where(rows >= 0, hours, np.inf))
    change = until_progress(candidates, at, least[group])
    frame = frame_at(candidates, at, candidates.offer[at][:, None], change, np.ones(len(at), dtype=np.bool_))
    return frame.possible(candidates.context.asked.workload.constraints.deadline_confidence)


def _soon_enough(candidates: Candidates, members: Ints) -> Bools:
    """Whether sets could be in time: the bare work, after the data have come to all regions."""
    base = members[:, 0]
    waiting = greatest(np.where(members >= 0, candidates.waiting_hours[members], 0.0))
    least = waiting + candidates.fixed_hours[base] + candidates.work_hours[base]
    return np.asarray(least <= candidates.deadline_hours(base) + _SLIP_HOURS, dtype=np.bool_)


def union_cells(candidates: Candidates, at: Ints, risk: GangRisk, members: Ints, partner: Ints) -> Cells:
    """Cells of sets of spot candidates of one type and size.

    Args:
        candidates: all of them.
        at: spot candidates, with the risk of each.
        risk: see `at`.
        members: positions in `at`, smaller sets first, -1 where a set has fewer, shape `(n, k)`.
        partner: on-demand offer to fall back on per spot offer, -1 without one.
    """
    context = candidates.context
    parts: list[Cells] = []
    sizes, shared = (members >= 0).sum(axis=1), risk.shared
    for size in sorted(set(sizes.tolist())):
        own = members[sizes == size][:, :size]
        rows = candidates.offer[at[own]]
        assume = context.asked.assumptions
        linked = (assume.spot_zone_correlation_ratio, assume.spot_region_correlation_ratio)
        union = unite_alike(risk.pool, own, context.market.region_of_offer[rows], linked, shared)
        on_demand = cheapest_partner(context.market, rows, union.shares, partner)
        width = members.shape[1]
        parts.append(
            Cells(
                base=at[own[:, 0]], zones=widen(rows, width, -1), shares=widen(union.shares, width, 0),
                on_demand=on_demand, pool=union.pool, moves=union.moves,
            )
        )  # fmt: skip
    return join_cells(parts)
