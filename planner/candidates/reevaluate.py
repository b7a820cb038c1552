"""What candidates come to if speed, prices and interruptions are other than expected: the engine's own formulas again.

With no error the figures are those of the candidates themselves (a test holds that). With a drawn error a way is kept
as it is planned: the same zones, blocks and checkpoint interval; what follows from the course of the run changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.bought_in_parts import price_parts
from planner.candidates.model import IN_TURN, MIXED, SINGLE
from planner.candidates.running import model_arguments, steady_hours
from planner.records import record
from planner.spot.renewal import spot_outcome

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.candidates.model import Candidates
    from planner.market.ends import Spread
    from planner.market.model import Market
    from planner.spot.distribution import SpotPool


@record(frozen=True, eq=False)
class Errors:
    """Errors of some candidates, shape `(n,)`: what is true over what is expected.

    Attributes:
        work: of the hours of the work.
        rate, wait: of the rate of interruptions and of the waits behind them.
        known: whether these are the true ones, so that nothing of their spread is left in the figures.
    """

    work: Floats
    rate: Floats
    wait: Floats
    known: bool

    def take(self, at: Ints) -> Errors:
        """Some of them."""
        return Errors(self.work[at], self.rate[at], self.wait[at], self.known)

    def on(self, pool: SpotPool) -> SpotPool:
        """The capacity as it truly is."""
        frailty = np.zeros_like(pool.frailty_sd) if self.known else pool.frailty_sd
        return replace(
            pool, rate=pool.rate * self.rate, wait=pool.wait * self.wait,
            first_wait=pool.first_wait * self.wait, frailty_sd=frailty,
        )  # fmt: skip


@record(frozen=True, eq=False)
class Reevaluated:
    """Candidates under errors.

    Attributes:
        hours, cost_usd, cash_usd: as of `Candidates`, shape `(n,)`; prices are those expected.
        offer, paid_usd: of each part: what it is, -1 none, and what is paid for its hours, shape `(n, n_parts)`.
    """

    hours: Floats
    cost_usd: Floats
    cash_usd: Floats
    offer: Ints
    paid_usd: Floats


def reevaluate(candidates: Candidates, at: Ints, errors: Errors) -> Reevaluated:
    """Work out candidates `at`, which may name one several times, each under its own errors.

    Args:
        candidates: all candidates.
        at: positions, shape `(n,)`.
        errors: of each.
    """
    count, width = len(at), 1
    for table in (candidates.mixes, candidates.turns):
        width = width if table is None else max(width, table.offer.shape[1] + 1)
    hours, cost, cash = np.zeros(count), np.zeros(count), np.zeros(count)
    offer, paid = np.full((count, width), -1), np.zeros((count, width))
    for kind, formula in ((SINGLE, _single), (MIXED, _mixed), (IN_TURN, _in_turn)):
        mine = np.flatnonzero(candidates.kind[at] == kind)
        if len(mine):
            some = candidates.take(at[mine])
            found = formula(some, errors.take(mine))
            hours[mine], cost[mine], cash[mine] = found.hours, found.cost_usd, found.cash_usd
            offer[mine, : found.offer.shape[1]] = found.offer
            paid[mine, : found.offer.shape[1]] = found.paid_usd
    return Reevaluated(hours, cost, cash, offer, paid)


def _single(some: Candidates, errors: Errors) -> Reevaluated:
    context, rows = some.context, some.offer
    work, write, interval = some.work_hours * errors.work, some.write_hours, some.interval_hours
    elapsed = steady_hours(context.asked, some.nodes, work, write, interval)
    paid = elapsed.copy()
    spot = np.flatnonzero(context.market.is_spot[rows])
    if len(spot):
        elapsed[spot], paid[spot] = _on_spot(some, spot, rows[spot], some.nodes[spot], work[spot], errors)
    paid = some.fixed_hours + _of_blocks(some, paid, errors)
    hours = some.waiting_hours + some.fixed_hours + elapsed
    money = context.market.costs.evaluate(
        rows, some.nodes, paid, hours, spread=_spread(some, errors), stored=some.stored(), run_hours=hours
    )
    hourly = context.market.offer_set.usd_during(rows, hours)
    return Reevaluated(
        hours, money.cost_usd, money.cash_usd, rows[:, None], (hourly * money.instance_hours)[:, None]
    )


def _spread(some: Candidates, errors: Errors) -> Spread:
    """What is left of the spread of the hours in use."""
    return (
        some.spread() if not errors.known else replace(some.spread(), work_log_sd=np.zeros_like(some.sigma))
    )


def _of_blocks(some: Candidates, paid: Floats, errors: Errors) -> Floats:
    """Hours in use beyond the fixed ones; a block that was bought for slower work is paid all the same."""
    offer_set = some.context.market.offer_set
    sold = np.asarray([bool(rule.block_hours) for rule in offer_set.rules], dtype=np.bool_)
    blocks = sold[offer_set.rule_of_offer[some.offer]]
    return np.where(blocks & errors.known, np.maximum(paid, some.paid_hours - some.fixed_hours), paid)


def _on_spot(
    some: Candidates, at: Ints, rows: Ints, nodes: Ints, work: Floats, errors: Errors
) -> tuple[Floats, Floats]:
    """Elapsed and paid hours of spot gangs, shape `(len(at),)`."""
    context = some.context
    pool = errors.take(at).on(context.gang_risk(rows, nodes).pool)
    outcome = spot_outcome(
        work,
        **model_arguments(
            context.asked, context.spot, rows, some.write_hours[at], some.interval_hours[at], pool
        ),
    )
    return outcome.expected_elapsed_hours, outcome.expected_paid_hours


def _mixed(some: Candidates, errors: Errors) -> Reevaluated:
    context, mixes = some.context, some.mixes
    assert mixes is not None
    rows, nodes, work = some.gang(np.arange(len(some.offer)))
    elapsed = (some.hours - some.waiting_hours - some.fixed_hours) * errors.work
    is_spot = context.market.is_spot[mixes.offer] & (mixes.offer >= 0)
    paid = np.repeat((some.fixed_hours + elapsed)[:, None], mixes.offer.shape[1], axis=1)
    at = np.flatnonzero(is_spot.any(axis=1))
    if len(at):
        elapsed[at], on_spot = _on_spot(some, at, rows[at], nodes[at], work[at] * errors.work[at], errors)
        steady = some.fixed_hours[at] + elapsed[at]
        paid[at] = np.where(is_spot[at], (some.fixed_hours[at] + on_spot)[:, None], steady[:, None])
    hours = some.waiting_hours + some.fixed_hours + elapsed
    money, priced = price_parts(
        context.market, mixes.offer, mixes.nodes, paid, hours, some.stored(), _spread(some, errors)
    )
    hourly = _during(context.market, mixes.offer, hours)
    return Reevaluated(
        hours, money["cost_usd"], money["cash_usd"], mixes.offer, hourly * priced["instance_hours"]
    )


def _in_turn(some: Candidates, errors: Errors) -> Reevaluated:
    from planner.candidates.ways.course import cells_of, frame_of, run_in_turn
    from planner.candidates.ways.pricing import price_in_turn

    cells = cells_of(some, np.arange(len(some.offer)))
    true = replace(some, work_hours=some.work_hours * errors.work)
    cells = replace(cells, pool=errors.on(cells.pool))
    # work that leaves no time for on-demand ends after the deadline by these formulas too
    columns, turns = price_in_turn(true, cells, run_in_turn(true, cells, frame_of(true, cells)))
    hourly = _during(some.context.market, turns.offer, columns["hours"])
    return Reevaluated(
        columns["hours"], columns["cost_usd"], columns["cash_usd"], turns.offer, hourly * turns.instance_hours
    )


def _during(market: Market, offer: Ints, hours: Floats) -> Floats:
    """Expected price of each part, shape `(n, n_parts)`, of runs of `hours`; that of no part is not read."""
    run = np.repeat(hours, offer.shape[1])
    return market.offer_set.usd_during(offer.ravel(), run).reshape(offer.shape)
