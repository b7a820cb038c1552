"""A fleet in milliseconds without a solver: the first incumbent, and the cost cap that bounds the model.

Offers are bought in order of cost per work (region opening spread over what the region may carry), within
every limit measured against a target throughput; the last piece is covered by the cheapest offer that
completes it. Because shares are held against the target and the fleet delivers at least that, they hold
against the real total too.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints, distinct_values
from planner.fleet.divide import Division, Limit, divide
from planner.fleet.model.prepared import Prepared, prepare
from planner.fleet.model.rows import before, in_rows
from planner.fleet.question import FleetInput, violations

TARGETS = (1.0, 1.05, 1.25, 2.0, 4.0)  # times the requirement, tried in turn until a fleet fits
PLACES = (
    0.01,
    0.03,
    0.1,
    0.3,
    1.0,
    3.0,
    10.0,
)  # times the median worker's cost, for a place among the most workers
MOST_STEPS = 400


@dataclass
class _Room:
    """What is still free while a fleet is filled; one entry per group, `inf` where unlimited."""

    prepared: Prepared
    codes: list[Ints]
    amounts: list[Floats]
    free: list[Floats]
    units: Floats

    def most(self) -> Floats:
        """Most further workers of each offer, shape `(n_kept,)`."""
        limit = self.prepared.upper - self.units
        for code, amount, free in zip(self.codes, self.amounts, self.free, strict=True):
            share = np.full(len(limit), math.inf)
            np.divide(free[code], amount, out=share, where=amount > 0)
            limit = np.minimum(limit, share)
        return np.floor(limit + 1e-9)

    def most_of(self, offer: int) -> float:
        """Most further workers of one offer."""
        limit = float(self.prepared.upper[offer] - self.units[offer])
        for code, amount, free in zip(self.codes, self.amounts, self.free, strict=True):
            if amount[offer] > 0:
                limit = min(limit, float(free[code[offer]]) / float(amount[offer]))
        return math.floor(limit + 1e-9)

    def take(self, offer: int, count: float) -> None:
        """Buy `count` workers of `offer`."""
        self.units[offer] += count
        for code, amount, free in zip(self.codes, self.amounts, self.free, strict=True):
            free[code[offer]] -= amount[offer] * count


Mix = tuple[dict[Hashable, int], dict[Hashable, float]]  # workers and their work (in full workers) per key


def greedy_mix(fleet: FleetInput, prepared: Prepared | None = None) -> Mix | None:
    """Return workers and their work per key of a feasible fleet, None when none was found (which proves nothing)."""
    prepared = prepared or prepare(fleet)
    if fleet.part_time:
        return _divided(prepared)
    best: Floats | None = None
    best_cost = math.inf
    for target in TARGETS:
        for allowed in _region_choices(prepared, target):
            units = _fill(prepared, allowed, target)
            if units is None:
                continue
            full = np.zeros(fleet.n_options)
            full[prepared.keep] = units
            full = _trim(fleet, full)
            cost = fleet.cost_of(full)
            if cost < best_cost and not violations(fleet, full):
                best, best_cost = full, cost
        if best is not None:
            break
    if best is None:
        return None
    return _by_key(fleet, best, best)


def _by_key(fleet: FleetInput, units: Floats, busy: Floats) -> Mix:
    used = np.flatnonzero(units)
    counts = {fleet.keys[number]: int(units[number]) for number in used}
    return counts, {fleet.keys[number]: float(busy[number]) for number in used}


def _divided(prepared: Prepared) -> Mix | None:
    """The cheapest division of the work found over some choices of regions."""
    best: Mix | None = None
    best_cost = math.inf
    fleet, none = prepared.source, np.zeros(len(prepared.keep))
    for worker_usd in _worker_prices(prepared):
        for allowed in _region_choices(prepared, 1.0):
            mix = _divide(prepared, allowed, none, worker_usd)
            if mix is None:
                continue
            cost = fleet.cost_of(fleet.units(mix[0]), fleet.units(mix[1]))
            if cost < best_cost:
                best, best_cost = mix, cost
        if best is not None:
            break
    return best


def _worker_prices(prepared: Prepared) -> Iterator[float]:
    """What a worker is charged for its place among the most workers, tried in turn until a fleet fits.

    Where their number is limited, the cheapest work comes of workers too slow to be done in time: the dearer a place,
    the faster the workers that are bought first.
    """
    yield 0.0
    if prepared.source.max_total_units is not None and len(prepared.keep):
        usual = float(np.median(prepared.of("cost_usd")))
        yield from (usual * part for part in PLACES)


def _divide(prepared: Prepared, allowed: Bools, given: Floats, worker_usd: float = 0.0) -> Mix | None:
    fleet, count = prepared.source, len(prepared.keep)
    division = Division(prepared, _limits(prepared, 1.0), np.zeros(count), np.zeros(count))
    density = _density(prepared, 1.0) + worker_usd / np.maximum(prepared.work, 1e-12)
    if not divide(division, allowed, density, given):
        return None
    full, busy = np.zeros(fleet.n_options), np.zeros(fleet.n_options)
    full[prepared.keep], busy[prepared.keep] = division.units, division.busy
    return None if violations(fleet, full, busy) else _by_key(fleet, full, busy)


def complete_fleet(prepared: Prepared, allowed: Bools, units: Floats) -> Mix | None:
    """Complete `units` (shape `(n_kept,)`) with allowed offers to a feasible fleet, None where that fails.

    Where workers may stop early, `units` is work in workers used in full and need not be whole.
    """
    fleet = prepared.source
    if fleet.part_time:
        return _divide(prepared, allowed, units)
    filled = _fill(prepared, allowed, 1.0, units)
    if filled is None:
        return None
    full = np.zeros(fleet.n_options)
    full[prepared.keep] = filled
    full = _trim(fleet, full)
    return None if violations(fleet, full) else _by_key(fleet, full, full)


def _density(prepared: Prepared, target: float) -> Floats:
    """Cost per work of each offer, with its region's opening spread over the work the region may carry."""
    fleet = prepared.source
    share = 1.0 if fleet.max_share_per_region is None else max(fleet.max_share_per_region, 1e-6)
    carried = np.maximum(np.minimum(prepared.region_work, share * target), 1e-12)
    opening = (fleet.region_cost_usd / carried)[prepared.of("region")]
    return prepared.of("cost_usd") / np.maximum(prepared.work, 1e-12) + opening


def _region_choices(prepared: Prepared, target: float) -> Iterator[Bools]:
    """Sets of regions worth trying, each once, as masks over the offers kept: best by the cost of their share."""
    seen: set[bytes] = set()
    for mask in _ranked_choices(prepared, target):
        if mask.tobytes() not in seen:
            seen.add(mask.tobytes())
            yield mask


def _ranked_choices(prepared: Prepared, target: float) -> Iterator[Bools]:
    """The same, where some come again."""
    fleet = prepared.source
    region = prepared.of("region")
    present = distinct_values(region)
    most = len(present) if fleet.max_regions is None else min(fleet.max_regions, len(present))
    share = 1.0 if fleet.max_share_per_region is None else max(fleet.max_share_per_region, 1e-6)
    density = _density(prepared, target)
    scores, reach = _scores(prepared, density, share * target)
    ranked = np.argsort(scores, kind="stable")[: int(np.count_nonzero(np.isfinite(scores)))]
    least = max(1, math.ceil(1 / share - 1e-9))
    sizes = sorted({min(size, most, len(ranked)) for size in (least, least + 1, least + 3, most)})
    steady = _steady_regions(prepared, density)
    widest = np.argsort(-reach, kind="stable")

    def within(codes: Ints) -> Bools:
        inside = np.zeros(fleet.n_regions, dtype=np.bool_)
        inside[codes] = True
        return inside[region]

    for size in sizes:
        if size and len(steady):  # a limited spot share asks for a region where the rest is cheap
            yield within(np.append(ranked[ranked != steady[0]][: size - 1], steady[0]))
        if size:
            yield within(ranked[:size])
            yield within(widest[:size])


def _scores(prepared: Prepared, density: Floats, most: float) -> tuple[Floats, Floats]:
    """What the work of each region costs, infinite where it does none, and how much it does: up to `most`."""
    fleet, cost = prepared.source, np.asarray(prepared.of("cost_usd"), dtype=np.float64)
    scores, reach = np.full(fleet.n_regions, math.inf), np.zeros(fleet.n_regions)
    rows = in_rows(prepared.of("region"), np.argsort(density, kind="stable"))
    done = np.cumsum(rows.of(prepared.work * prepared.upper), axis=1)
    spent = np.cumsum(rows.of(cost * prepared.upper), axis=1)
    wanted = np.minimum(most, before(done, rows.size))
    whole = rows.below(done, wanted)
    usd, had = before(spent, whole), before(done, whole)
    part = np.flatnonzero((whole < rows.size) & (had < wanted))
    last = (part, whole[part])
    slope = (spent[last] - usd[part]) / (done[last] - had[part])
    usd[part] += slope * (wanted - had)[part]
    does = wanted > 0
    own = rows.group[does]
    scores[own] = (usd[does] + fleet.region_cost_usd[own]) / wanted[does]
    reach[own] = wanted[does]
    return scores, reach


def _steady_regions(prepared: Prepared, density: Floats) -> Ints:
    """Regions by their cheapest work that is not spot, where the share of spot is limited; empty elsewhere."""
    share = prepared.source.max_spot_share
    steady = np.flatnonzero(~prepared.of("is_spot").astype(np.bool_) & (prepared.work > 0))
    if share is None or share >= 1 or not len(steady):
        return np.zeros(0, dtype=np.int64)
    order = steady[np.argsort(density[steady], kind="stable")]
    return prepared.of("region")[order[:1]]


def _rooms(prepared: Prepared, target: float) -> _Room:
    """All limits as (group, amount per worker, free) triples, shares measured against `target`."""
    limits = _limits(prepared, target)
    codes, amounts = [item.code for item in limits], [item.amount for item in limits]
    return _Room(prepared, codes, amounts, [item.free for item in limits], np.zeros(len(prepared.keep)))


def _limits(prepared: Prepared, target: float) -> list[Limit]:
    """All limits with what is free, shares measured against `target`."""
    fleet, count = prepared.source, len(prepared.keep)
    everything = np.zeros(count, dtype=np.int64)
    limits: list[Limit] = []

    def limit(code: Ints, amount: Floats, free: Floats, *, of_work: bool = False) -> None:
        known = np.append(np.where(np.isnan(free), math.inf, free), math.inf)  # -1: unlimited
        limits.append(Limit(code, amount, known, of_work))

    ones = np.ones(count)
    limit(prepared.of("capacity_group"), ones, fleet.capacity_limit)
    limit(
        prepared.of("quota_group"),
        np.asarray(prepared.of("quota_units"), dtype=np.float64),
        fleet.quota_limit,
    )
    for use in fleet.uses:
        amount = use.in_full[prepared.keep]
        limit(np.where(amount > 0, 0, -1), amount, np.array([use.limit]))
    shares = (
        (np.where(prepared.of("is_spot"), 0, -1), fleet.max_spot_share),
        (prepared.of("region"), fleet.max_share_per_region),
        (prepared.of("provider"), fleet.max_share_per_provider),
        (fleet.pool()[prepared.keep], fleet.max_share_per_offer),
    )
    for code, share in shares:
        if share is not None:
            limit(code, prepared.work, np.full(int(code.max(initial=0)) + 1, share * target), of_work=True)
    if fleet.max_total_units is not None:
        limit(everything, ones, np.array([float(fleet.max_total_units)]))
    return limits


def _fill(prepared: Prepared, allowed: Bools, target: float, given: Floats | None = None) -> Floats | None:
    """Buy in order of density until the target is met; None where the limits leave too little."""
    room = _rooms(prepared, target)
    if given is not None:
        for number in np.flatnonzero(given).tolist():
            room.take(number, min(float(given[number]), max(room.most_of(number), 0.0)))
    density = np.where(allowed, _density(prepared, target), math.inf)
    order = np.argsort(density, kind="stable")[: int(np.count_nonzero(allowed))]
    work, cost = prepared.work, np.asarray(prepared.of("cost_usd"), dtype=np.float64)
    missing = target - float(work @ room.units)
    for offer in order.tolist():
        if missing <= 1e-12:
            break
        if work[offer] <= 0:
            continue
        count = min(room.most_of(offer), math.floor(missing / work[offer] + 1e-9))
        if count > 0:
            room.take(offer, count)
            missing -= count * float(work[offer])
    for _ in range(MOST_STEPS):
        if missing <= 1e-9:
            break
        offer, count = _finish(np.where(allowed, room.most(), 0.0), work, cost, missing)
        if count <= 0:
            return None
        room.take(offer, count)
        missing -= count * float(work[offer])
    return _add_memory(prepared, room, allowed) if missing <= 1e-9 else None


def _finish(room: Floats, work: Floats, cost: Floats, missing: float) -> tuple[int, float]:
    """The cheapest way to cover what is missing with one offer, or the cheapest step towards it."""
    usable = (room >= 1) & (work > 0)
    if not usable.any():
        return 0, 0.0
    count = np.ceil(missing / np.where(usable, work, 1.0) - 1e-9)
    whole = np.where(usable & (count <= room), cost * count, math.inf)
    best = int(np.argmin(whole))
    if math.isfinite(whole[best]):
        return best, float(count[best])
    step = int(np.argmin(np.where(usable, cost / np.where(usable, work, 1.0), math.inf)))
    return step, float(room[step])


def _add_memory(prepared: Prepared, room: _Room, allowed: Bools) -> Floats | None:
    """Buy further workers where the fleet's memory falls short."""
    wanted = prepared.source.min_total_memory_gib or 0.0
    memory = np.asarray(prepared.of("memory_gib"), dtype=np.float64)
    cost = np.asarray(prepared.of("cost_usd"), dtype=np.float64)
    for _ in range(MOST_STEPS):
        missing = wanted - float(memory @ room.units)
        if missing <= 0:
            return room.units
        offer, count = _finish(np.where(allowed, room.most(), 0.0), memory, cost, missing)
        if count <= 0:
            return None
        room.take(offer, count)
    return None


def _trim(fleet: FleetInput, units: Floats) -> Floats:
    """Give back workers that no limit needs, dearest first; judged over the offers used only."""
    used = np.flatnonzero(units)
    small, left = fleet.only(used), units[used]
    for offer in np.argsort(-small.cost_usd, kind="stable").tolist():
        while left[offer] > 0:
            left[offer] -= 1
            if violations(small, left):
                left[offer] += 1
                break
    units[used] = left
    return units


def knapsack_bound(prepared: Prepared) -> float:
    """Return a lower bound on the fleet's cost, in USD: the work alone, bought in parts, cheapest first."""
    cost = np.asarray(prepared.of("cost_usd"), dtype=np.float64)
    able = np.flatnonzero(prepared.work > 0)
    order = able[np.argsort(cost[able] / prepared.work[able], kind="stable")]
    done = np.r_[0.0, np.cumsum(prepared.work[order] * prepared.upper[order])]
    spent = np.r_[0.0, np.cumsum(cost[order] * prepared.upper[order])]
    return float(np.interp(1.0, done, spent)) * (1 - 1e-9)


def reachable_work(prepared: Prepared, workers: float | None) -> float:
    """Return the most work that so many workers do together, at most, over the requirement.

    Each does no more than the shares of its region, provider, offer and of spot allow one: with T the work of a fleet
    of T >= 1 and s the least of its shares, a worker's part is at most min(w, s T) <= T min(w, s).

    Args:
        prepared: the offers.
        workers: how many there may be; None: as many as the offers have.
    """
    fleet, work, upper = prepared.source, prepared.work, prepared.upper
    shares = (fleet.max_share_per_region, fleet.max_share_per_provider, fleet.max_share_per_offer)
    most = np.minimum(work, min((share for share in shares if share is not None), default=math.inf))
    if fleet.max_spot_share is not None:
        most = np.where(prepared.of("is_spot"), np.minimum(most, fleet.max_spot_share), most)
    order = np.argsort(-most, kind="stable")
    upper = upper[order]
    if workers is not None:
        upper = np.clip(workers - (np.cumsum(upper) - upper), 0.0, upper)
    return float(most[order] @ upper)
