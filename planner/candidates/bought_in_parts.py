"""One job bought in parts: n equal instances of one place, some of them with capacity that does not hold them all.

Owned machines, commitments and quoted offers hold a limited number of instances. Where one of them holds fewer than
`max_nodes`, every split of n instances among the offers of its pool is considered: same type, provider and region, one
zone (offers without a zone go with any). Speed does not depend on how instances are bought, so a split changes money
and risk alone:

- Without spot the hours are those of any steady offer, so the cost is linear in the counts, and filling the offers by
  rising cost per instance, each up to its capacity and its quota, is exact.
- At most one part is spot. For each number m of spot instances the gang of those m gives the elapsed hours (renewal
  model); the others are paid for all of them, waiting included, and filled the same way. Machine failures of the steady
  instances stretch the work. Steady capacity is had first, then spot is asked for: the waits add up, an upper bound.

What is sold as one purchase of limited size (a capacity block: a cluster with a network of its own) is part of no mix,
unless the user already has it. Every candidate made here has at least two parts.
Mathematics: docs/optimisation/single.md.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.candidates.constraints.term import longest_hours
from planner.candidates.limits import mark_deadline, mark_parts
from planner.candidates.model import MIXED, Candidates, Mixes, append, concat_candidates
from planner.candidates.running import checkpoint_interval, spot_outcome_of
from planner.candidates.starts import parts_wait_hours
from planner.candidates.timing import staging_hours
from planner.market.ends import owned_hours
from planner.market.offers import unit_of_offer
from planner.market.quota import draws_on
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.asked.model import Asked
    from planner.market.costs import Money
    from planner.market.ends import Spread
    from planner.market.model import Market
    from planner.market.storage.stores import Stored


_SLACK = 1e-9  # relative; float noise must not cost an instance of a quota


@record(frozen=True, eq=False)
class Pool:
    """Offers of one place whose instances can make one cluster; `steady` and `spot` in order of `Context.id_rank`."""

    steady: Ints
    spot: Ints


@record(frozen=True, eq=False)
class Cells:
    """Numbers of instances and of spot among them, timed; every array has shape `(n_cells,)`.

    Attributes:
        base: candidate of a steady offer with the same instances, whose times hold here too.
        spot: spot offer, -1 without; gang: spot instances, 0 without.
        gang_work, interval: hours, see `Mixes` and `Candidates`.
        elapsed: hours from all capacity asked for to the last step; spot_paid: of them paid for spot instances.
        interruptions, lost: expected, whole job.
    """

    base: Ints
    spot: Ints
    gang: Ints
    gang_work: Floats
    interval: Floats
    elapsed: Floats
    spot_paid: Floats
    interruptions: Floats
    lost: Floats


def add_mixes(candidates: Candidates, offer_bits: Ints, most: int) -> Candidates:
    """Return the candidates with all mixed purchases behind them.

    Args:
        candidates: candidates of one offer each, for every node count looked at.
        offer_bits: filter bits per offer, shape `(n_offers,)`.
        most: largest cluster looked at; an offer that holds it alone needs no company.
    """
    context = candidates.context
    # the scan over all offers is the whole cost where every offer holds what may be wanted
    scarce = np.flatnonzero((context.market.offer_set.offers["capacity"] < most) & (offer_bits == 0))
    if not len(scarce):
        return candidates
    parts = []
    pools = find_pools(context.asked, context.market, scarce, offer_bits)
    for number, pool in enumerate(pools):
        cells = _cells(candidates, pool)
        mixed = _mix(candidates, pool, number, cells)
        if len(mixed.columns["offer"]):
            parts.append(mixed)
    return _append(candidates, parts, tuple(pool.steady for pool in pools)) if parts else candidates


def find_pools(asked: Asked, market: Market, scarce: Ints, offer_bits: Ints) -> list[Pool]:
    """Group the admitted offers that share type, region and zone with an offer of limited capacity."""
    offer_set, rank = market.offer_set, market.id_rank
    regions, zones = offer_set.offers.coded("region").codes, offer_set.offers["zone"]
    usable = (offer_bits == 0) & ~_alone(asked, market)
    pools: list[Pool] = []
    seen: set[tuple[int, ...]] = set()
    for kind, region in sorted({(int(offer_set.type_of_offer[at]), int(regions[at])) for at in scarce}):
        rows = np.flatnonzero((offer_set.type_of_offer == kind) & (regions == region) & usable)
        rows = _distinct_offers(market, rows[np.argsort(rank[rows], kind="stable")])
        names = zones[rows]
        for zone in sorted(set(names.tolist()) - {""}) or [""]:
            mine = rows[(names == "") | (names == zone)]
            spot = market.is_spot[mine]
            key = tuple(mine.tolist())
            if len(mine) > 1 and not spot.all() and np.isin(mine, scarce).any() and key not in seen:
                seen.add(key)
                pools.append(Pool(mine[~spot], mine[spot]))
    return pools


def _alone(asked: Asked, market: Market) -> Bools:
    """Mask of offers that are part of no mix, shape `(n_offers,)`; what the user already has always may be.

    A purchase of limited size is a cluster of its own, and so are whole racks. A new commitment of which the job
    carries a part owes more cash than it costs: under a budget the cheapest split would not be the one that keeps it.
    """
    work, offer_set = asked.workload, market.offer_set
    shared = work.prices.commitment_share is not None and work.constraints.budget_usd is not None
    alone = [rule.max_instances is not None or (shared and rule.whole_term) for rule in offer_set.rules]
    new = np.asarray(alone)[offer_set.rule_of_offer] & np.isnan(offer_set.owned_share)
    return np.asarray(new | (unit_of_offer(offer_set) > 1), dtype=np.bool_)


def _distinct_offers(market: Market, rows: Ints) -> Ints:
    """Duplicates of one listed offer share one capacity; commitments of the user are capacities of their own."""
    seen: set[str] = set()
    kept = []
    for row in rows.tolist():
        name = market.offer_set.offer_id(row)
        owned = not np.isnan(market.offer_set.owned_share[row])
        if owned or name not in seen:
            kept.append(row)
            seen.add(name)
    return np.asarray(kept, dtype=np.int64)


def _cells(candidates: Candidates, pool: Pool) -> Cells:
    """All cluster sizes of a pool without spot, and with each number of spot instances of each spot offer."""
    base = np.flatnonzero(candidates.offer == pool.steady[0])
    base = base[candidates.nodes[base] > 1]
    none = np.full(len(base), -1)
    course = candidates.hours[base] - candidates.waiting_hours[base] - candidates.fixed_hours[base]
    steady = Cells(
        base=base, spot=none, gang=np.zeros(len(base), dtype=np.int64), gang_work=candidates.work_hours[base],
        interval=candidates.interval_hours[base], elapsed=course, spot_paid=course,
        interruptions=candidates.interruptions[base], lost=candidates.lost_hours[base],
    )  # fmt: skip
    parts = [steady] if len(pool.steady) > 1 else []
    parts += [_spot_cells(candidates, base, int(row)) for row in pool.spot]
    return _join(parts) if parts else steady


def _spot_cells(candidates: Candidates, sizes: Ints, spot: int) -> Cells:
    """Every number of instances of one spot offer below each cluster size."""
    context = candidates.context
    counts = candidates.nodes[sizes] - 1
    base = np.repeat(sizes, counts)
    gang = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    held = gang <= context.market.offer_set.capacity[spot]
    base, gang = base[held], gang[held]
    rows, write = np.full(len(base), spot), candidates.write_hours[base]
    interval = checkpoint_interval(context, rows, gang, write)
    others = context.asked.assumptions.machine_failures_per_node_hour * (candidates.nodes[base] - gang)
    loss = others * (interval / 2.0 + context.asked.restart_hours(write))
    work = candidates.work_hours[base] * (1.0 + loss)
    run = spot_outcome_of(context, rows, gang, work, write, interval)
    return Cells(
        base=base, spot=rows, gang=gang, gang_work=work, interval=interval, elapsed=run.expected_elapsed_hours,
        spot_paid=run.expected_paid_hours, interruptions=run.expected_interruptions + others * work,
        lost=run.expected_lost_hours + candidates.work_hours[base] * loss,
    )  # fmt: skip


def _join(parts: list[Cells]) -> Cells:
    return Cells(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Cells)})


def _take(cells: Cells, at: Ints) -> Cells:
    return Cells(**{f.name: getattr(cells, f.name)[at] for f in fields(Cells)})


def unit_money(
    market: Market, rows: Ints, paid_hours: Floats, hours: Floats, spread: Spread
) -> tuple[Floats, Floats]:
    """Cost and cash of one more instance of each offer in each cell, shape `(n_cells, n_offers)`; infinity: cannot.

    Args:
        market: what can be bought, and its prices.
        rows: offers, shape `(n_offers,)`.
        paid_hours: hours in use, shape `(n_cells,)`.
        hours: elapsed hours, shape `(n_cells,)`.
        spread: of the hours in use, of the same shape.
    """
    shape = (len(paid_hours), len(rows))
    cell, row = np.repeat(np.arange(shape[0]), shape[1]), np.broadcast_to(rows, shape).ravel()
    paid, one = paid_hours[cell], np.ones(len(row), dtype=np.int64)
    money = market.costs.evaluate(row, one, paid, hours[cell], spread=spread.take(cell))
    gone = hours[cell] > owned_hours(market.offer_set, row, spread.start)
    cost = np.where(gone | (paid > longest_hours(market.offer_set, row)), np.inf, money.worker_usd)
    cash = money.cash_usd - money.kept_usd
    return cost.reshape(shape), cash.reshape(shape)


def _fill(asked: Asked, market: Market, pool: Pool, cells: Cells, need: Ints, unit_usd: Floats) -> Ints:
    """Instances of each steady offer, cheapest first; a row that sums to less than `need` cannot be filled."""
    capacity = market.offer_set.capacity[pool.steady]
    quotas = []
    for limit, units in draws_on(asked.workload.constraints.quota, market.offer_set, market.tariffs):
        used = np.where(cells.spot >= 0, units[cells.spot], 0.0) * cells.gang
        quotas.append((units[pool.steady], limit * (1 + _SLACK) - used))
    # 12 significant digits, as in `choose.rank`: float noise must not decide between equal prices
    mantissa, exponent = np.frexp(unit_usd)
    rounded = np.ldexp(np.round(mantissa * 2.0**40), exponent - 40)
    order = np.argsort(rounded, axis=1, kind="stable")
    counts = np.zeros(unit_usd.shape, dtype=np.int64)
    left = need.astype(np.float64)
    for position in range(unit_usd.shape[1]):
        column = order[:, position]
        take = np.minimum(left, capacity[column])
        take[~np.isfinite(np.take_along_axis(unit_usd, column[:, None], axis=1)[:, 0])] = 0.0
        for units, free in quotas:
            each = units[column]
            room = np.floor(np.maximum(free, 0.0) / np.where(each > 0, each, 1.0))
            take = np.where(each > 0, np.minimum(take, room), take)
            free -= take * each
        np.put_along_axis(counts, column[:, None], take[:, None].astype(np.int64), axis=1)
        left -= take
    over = np.any([free < 0 for _, free in quotas], axis=0) if quotas else np.zeros(len(need), dtype=np.bool_)
    return np.where(over[:, None], 0, counts)


@record(frozen=True, eq=False)
class _Mixed:
    """Mixed candidates of one pool: columns of `Candidates` by name, and columns of `Mixes`."""

    columns: dict[str, Any]
    mixes: dict[str, Any]


def _mix(candidates: Candidates, pool: Pool, number: int, cells: Cells) -> _Mixed:
    """Split every cell at least cost and price the splits of two parts or more."""
    context = candidates.context
    base, gang = cells.base, cells.gang
    steady_paid = candidates.fixed_hours[base] + cells.elapsed
    hours = candidates.waiting_hours[base] + steady_paid
    unit_usd, _ = unit_money(context.market, pool.steady, steady_paid, hours, candidates.spread(base))
    need = candidates.nodes[base] - gang
    counts = _fill(context.asked, context.market, pool, cells, need, unit_usd)
    usable = np.flatnonzero((counts.sum(axis=1) == need) & ((counts > 0).sum(axis=1) + (gang > 0) > 1))
    cells = _take(cells, usable)
    base, gang, counts, unit_usd = base[usable], gang[usable], counts[usable], unit_usd[usable]
    steady_paid = steady_paid[usable]
    offer = np.column_stack([cells.spot, np.where(counts > 0, pool.steady, -1)])
    waiting = _waiting(candidates, base, offer)
    hours = waiting + steady_paid
    nodes = np.column_stack([gang, counts])
    paid = np.repeat(steady_paid[:, None], nodes.shape[1], axis=1)
    paid[:, 0] = candidates.fixed_hours[base] + cells.spot_paid
    step_s = candidates.shapes["step_time_s"][candidates.shape[base]]
    lead_row = np.where(gang > 0, cells.spot, pool.steady[0])
    stored = context.market.stores.choose(lead_row, candidates.nodes[base], step_s, hours)
    spread = candidates.spread(base)
    money, priced = price_parts(context.market, offer, nodes, paid, hours, stored, spread)
    # the leading part: spot, else the dearest steady one, which is the one that tops up
    dearest = 1 + np.argmax(np.where(counts > 0, unit_usd, -1.0), axis=1)
    lead = (np.arange(len(base)), np.where(gang > 0, 0, dearest))
    columns = {name: getattr(candidates, name)[base] for name in _TIMES} | {
        "waiting_hours": waiting,
        "offer": offer[lead], "bits": np.zeros(len(base), dtype=np.int64), "hours": hours, "paid_hours": paid[lead],
        "billed_hours": priced["billed_hours"][lead], "p_meet": np.full(len(base), np.nan),
        "interruptions": cells.interruptions, "lost_hours": cells.lost, "interval_hours": cells.interval,
        "instance_hours": priced["instance_hours"].sum(axis=1), **money, "store": stored.code,
        "store_usd": stored.usd, "store_usd_per_hour": stored.usd_per_hour,
    }  # fmt: skip
    whole = np.where(gang > 0, gang, nodes.sum(axis=1))
    mixes = {
        "offer": offer, "nodes": nodes, "paid_hours": paid, **priced, "gang": whole, "gang_work": cells.gang_work,
        "pool": np.full(len(base), number), "order": np.column_stack([np.full(len(base), np.inf), unit_usd]),
    }  # fmt: skip
    return _Mixed(columns, mixes)


_TIMES = ("shape", "nodes", "work_hours", "sigma", "fixed_hours", "write_hours")


def _waiting(candidates: Candidates, base: Ints, offer: Ints) -> Floats:
    """Hours before clusters are in use: the data come while the last part is waited for."""
    context = candidates.context
    staging = staging_hours(context.market.offer_set, context.asked.job, context.asked.assumptions)
    assume = context.asked.assumptions
    wait = parts_wait_hours(context.starts, offer, candidates.nodes[base])
    before = (assume.provision_s + assume.on_demand_acquire_s) / 3600.0
    return np.asarray(before + np.maximum(staging[candidates.offer[base]], wait), dtype=np.float64)


def price_parts(
    market: Market, offer: Ints, nodes: Ints, paid: Floats, hours: Floats, stored: Stored, spread: Spread
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Price every part and charge what the place costs once.

    Args:
        market: what can be bought, and its prices.
        offer: of each part, -1 none, shape `(n, n_parts)`.
        nodes: instances of each part, of the same shape.
        paid: hours in use of each part, of the same shape.
        hours: elapsed hours, shape `(n,)`.
        stored: where the nodes read the data from, of the same shape.
        spread: of the hours in use, of the same shape.

    Returns:
        Money by the names of `Candidates`, each of shape `(n,)`; billed and instance-hours, each like `offer`.
    """
    bought = offer >= 0
    row, part = np.nonzero(bought)
    each: Money = market.costs.evaluate(
        offer[bought], nodes[bought], paid[bought], hours[row], spread=spread.take(row), run_hours=hours[row]
    )
    kept, cost, cash = np.zeros(len(hours)), np.zeros(len(hours)), np.zeros(len(hours))
    kept[row] = each.kept_usd  # the same for every part of one place
    kept += stored.cost(hours)
    np.add.at(cost, row, each.worker_usd)
    np.add.at(cash, row, each.cash_usd - each.kept_usd)
    priced: dict[str, Floats] = {}
    for name in ("billed_hours", "instance_hours"):
        priced[name] = np.zeros(offer.shape)
        priced[name][row, part] = getattr(each, name)
    return {"cost_usd": cost + kept, "cash_usd": cash + kept}, priced


def _append(candidates: Candidates, parts: list[_Mixed], pools: tuple[Ints, ...]) -> Candidates:
    """Join the mixes of all pools, mark the limits they break and put them behind the candidates of one offer."""
    width = max(int((part.mixes["offer"] >= 0).sum(axis=1).max(initial=0)) for part in parts)
    narrow = [_narrow(part.mixes, width) for part in parts]
    columns: dict[str, Any] = {
        name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns
    }
    mixes = {name: np.concatenate([part[name] for part in narrow]) for name in narrow[0]}
    _, first = np.unique(
        np.column_stack([columns["nodes"], mixes["offer"], mixes["nodes"]]), axis=0, return_index=True
    )
    keep = np.sort(first)  # a split of offers without a zone is in the pool of every zone
    columns = {name: column[keep] for name, column in columns.items()}
    table = Mixes(pools=pools, **{name: column[keep] for name, column in mixes.items()})
    whole = append(candidates, [columns], MIXED, table)
    mixed = whole.take(np.flatnonzero(whole.kind == MIXED))
    mark_parts(mixed)
    mark_deadline(mixed)
    return concat_candidates([candidates, mixed])


def _narrow(mixes: dict[str, Any], width: int) -> dict[str, Any]:
    """Put the parts of each mix in order, cheapest instances first and spot last, and cut the columns to `width`."""
    out = dict(mixes)
    order = np.lexsort((out.pop("order"), mixes["offer"] < 0), axis=1)[:, :width]
    for name in ("offer", "nodes", "paid_hours", "billed_hours", "instance_hours"):
        column = np.take_along_axis(mixes[name], order, axis=1)
        short = width - column.shape[1]
        out[name] = np.pad(column, ((0, 0), (0, max(short, 0))), constant_values=-1 if name == "offer" else 0)
    return out
