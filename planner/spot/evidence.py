"""What is known of interruptions, per spot offer and gang: one answer from the nearest evidence.

In this order: the user's own records; recorded pools (`planner.spot.hazards`), where the tariff table says that the
offer's family was recorded; the provider's published band; a pessimistic prior (both of the tariff table).

The renewal model (`planner.spot.renewal`) knows one rate and one mean wait. Recorded spells are not exponential: many
are short, some very long. Rate and wait are the inverse mean up spell and the mean down spell of the record; beside
them the model gets the mean wait of whoever comes at any time, E[D^2] / (2 E[D]), and `dispersion`, the variance that
alternating spells with the recorded moments bring over that of exponential ones,
(E[U]^2 Var D + E[D]^2 Var U) / E[U]^3 per hour of up-time (Cox, Renewal Theory, 1962). Offers without a record get the
record's typical ratios (assumptions `spot_dispersion_ratio`, `spot_first_wait_ratio`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints, distinct
from planner.records import record
from planner.spot.distribution import SpotPool
from planner.spot.pools import figures_at, observed_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.asked.model import Asked
    from planner.market.model import Market
    from planner.spot.pools import Pool
    from planner.spot.risk import SpotRisk


_MOST_KEPT = 8  # sets of gangs, and of assumptions: questions about the same offers ask for some of the same
_NODE_BITS = 32  # of a gang's code, below its pool


@record(frozen=True, eq=False)
class GangRisk:
    """Interruptions of gangs: how their capacity comes and goes, and what that rests on.

    Attributes:
        pool: arrays of shape `(n,)`.
        source: index into `sources`, shape `(n,)`; -1 where nothing interrupts.
        sources: what the figures rest on.
        observed: share of time up in the records behind them, as seen; NaN without a record, shape `(n,)`.
    """

    pool: SpotPool
    source: Ints
    sources: tuple[str, ...]
    observed: Floats

    @property
    def recorded(self) -> Bools:
        """Whether a record of the gang's own family is behind the figures, shape `(n,)`."""
        return ~np.isnan(self.observed)

    @property
    def shared(self) -> Ints:
        """Code of what offers without a record are known from, the same for the same evidence; -1 with a record."""
        named = {text: code for code, text in enumerate(dict.fromkeys(self.sources))}
        code = np.asarray([named[text] for text in self.sources], dtype=np.int64)
        return np.where(self.recorded | (self.source < 0), -1, code[self.source])


def gang_risk(
    asked: Asked, market: Market, spot: SpotRisk, rows: Ints, nodes: Ints, *, once: bool = False
) -> GangRisk:
    """Interruptions of `nodes` instances of each offer; of offers that nothing interrupts the rate is 0.

    Offers of one pool and one line of the table share their figures, so each gang is worked out once for all of them.

    Args:
        asked: says which assumptions apply, and whether workers come again and again.
        market: the offers.
        spot: figures and records of interruptions.
        rows: offers, shape `(n,)`.
        nodes: instances that must run together, shape `(n,)`.
        once: all work is one job, which comes to its pool once, also where the workload is a fleet.
    """
    again = asked.workload.kind == "fleet" and not once
    size = int(nodes.max(initial=0)) + 1
    alike, first, own = distinct(spot.alike(market.pool_of_offer)[rows] * size + nodes)
    gangs = (alike // size << _NODE_BITS) + alike % size
    assume = asked.assumptions
    key = (
        again, assume.spot_frailty_sd, assume.spot_unrecorded_frailty_sd,
        assume.spot_first_wait_ratio, assume.spot_dispersion_ratio,
    )  # fmt: skip
    kept = spot.gangs.setdefault(key, [])
    if len(spot.gangs) > _MOST_KEPT:
        del spot.gangs[next(iter(spot.gangs))]
    for known, (pool, source, sources, observed) in kept:  # most are some of those asked for before
        place = np.searchsorted(known, gangs)
        if len(known) and (known[np.minimum(place, len(known) - 1)] == gangs).all():
            at = place[own]
            return GangRisk(pool.take(at), source[at], sources, observed[at])
    each = _gang_risk(asked, market, spot, rows[first], nodes[first], again=again)
    kept.append((gangs, (each.pool, each.source, each.sources, each.observed)))
    del kept[:-_MOST_KEPT]
    return GangRisk(each.pool.take(own), each.source[own], each.sources, each.observed[own])


def _gang_risk(
    asked: Asked, market: Market, spot: SpotRisk, rows: Ints, nodes: Ints, *, again: bool
) -> GangRisk:
    risk, count = spot.figures, nodes.astype(np.float64)
    assume = asked.assumptions
    prior = risk.prior_of_offer[rows]
    recorded = risk.is_recorded
    sd = np.where(recorded, assume.spot_frailty_sd, assume.spot_unrecorded_frailty_sd)
    sd[-1] = 0.0
    frailty = sd[prior]
    # the table's levels are medians, as those of the hazards; the renewal model's frailties have mean 1
    mean = np.exp(frailty * frailty / 2.0)
    wait = risk.mean_wait_hours[rows] * count ** risk.wait_exponent[rows] * mean
    columns = [
        risk.rate_per_hour[rows] * count ** risk.gang_exponent[rows] * mean,
        wait,
        wait * assume.spot_first_wait_ratio,
        frailty,
        np.full(len(rows), assume.spot_dispersion_ratio),
    ]
    sources = list(risk.sources)
    source, observed = prior.copy(), np.full(len(rows), np.nan)
    at = np.flatnonzero(market.is_spot[rows] & (recorded[prior] | (spot.hazards is not None)))
    if len(at):
        _put_records(market, spot, rows, count, at, columns, source, sources, observed)
    if again:  # a worker does run after run: it comes to its pool once, not with each
        columns[2] = columns[1]
    return GangRisk(SpotPool(*columns), source, tuple(sources), observed)


def _put_records(
    market: Market,
    spot: SpotRisk,
    rows: Ints,
    count: Floats,
    at: Ints,
    columns: Sequence[Floats],
    source: Ints,
    sources: list[str],
    observed: Floats,
) -> None:
    """Overwrite the figures of the candidates `at` with those of recorded pools, where there are any."""
    _, first, own = distinct(market.pool_of_offer[rows[at]])
    pools: list[Pool] = []
    place_of, source_of = np.full(len(first), -1), np.full(len(first), -1)
    for number, row in enumerate(rows[at][first].tolist()):
        pool = spot.recorded_pool(row)
        if pool is None:
            if spot.hazards is not None:
                _move_by_hint(spot, row, at[own == number], columns, source, sources)
            continue
        place_of[number], source_of[number] = len(pools), len(sources)
        pools.append(pool)
        sources.append(pool.source)
    known = np.flatnonzero(place_of[own] >= 0)
    if len(known):
        mine, own = at[known], own[known]
        for column, values in zip(columns, figures_at(pools, place_of[own], count[mine]), strict=True):
            column[mine] = values
        source[mine] = source_of[own]
        observed[mine] = observed_at(pools, place_of[own], count[mine])


def _move_by_hint(
    spot: SpotRisk,
    row: int,
    mine: Ints,
    columns: Sequence[Floats],
    source: Ints,
    sources: list[str],
) -> None:
    """Move the table's figures of a zone by what the user's prices or scores say of it."""
    hint = None if spot.hazards is None else spot.hazards.hint_for(spot.spot_zone(row))
    if hint is None:
        return
    rate, *waits = columns[:3]
    rate[mine] *= np.exp(hint.log_down)
    for wait in waits:
        wait[mine] /= np.exp(hint.log_up)
    sources.append(f"{sources[int(source[mine[0]])]}; moved by {hint.by}")
    source[mine] = len(sources) - 1


def unused_records(spot: SpotRisk, kinds: Sequence[str]) -> str | None:
    """What to say where the user's own records are of no instance type among `kinds`, nor of their families."""
    if spot.hazards is None or not kinds:
        return None
    from planner.spot.hazards import load_hazards
    from planner.spot.hazards_cells import family_of

    public = {id(cell) for cell in load_hazards().cells}
    own = dict.fromkeys(cell.instance_type for cell in spot.hazards.cells if id(cell) not in public)
    own |= dict.fromkeys(kind for kind, _ in spot.hazards.hints)
    if {family_of(kind) for kind in own} & {family_of(kind) for kind in kinds}:
        return None
    named = ", ".join(kind or "no type (column instance_type is empty)" for kind in own)
    return f"your spot records cover {named}, not {', '.join(kinds)}"
