"""When candidates are done, with the spread of the wait for their capacity: chances of an hour and hours of a chance.

Of a cluster that is not taken back, with the wait W, work of need e^(sigma z) hours and `room` hours for both:

    P(W + need e^(sigma z) <= room) = Phi(z*) times the mean over u in 0..1 of P(W <= room - T(u)),

z* the slowest speed that is in time if nothing is waited for longer than the data, T(u) the work at the quantile
u Phi(z*) of the speed: by Gauss-Legendre quadrature, which is exact at a certain speed and at a certain wait. Spot
beside capacity that is waited for is averaged over quantiles of the wait instead. The inverse is found by bracketed
secants (Illinois): the work and the wait at the level alone bound it from below, both at half the chance of being late
from above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.rows import distinct_rows
from planner.candidates.running import meet_probability, steady_hours
from planner.candidates.starts import waits_of
from planner.candidates.ways.fallback import unit_quadrature
from planner.normal.arrays import normal_cdf_by_table, normal_quantile_by_table

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.candidates.model import Candidates
    from planner.candidates.starts import Waits


POINTS = 12  # of the speeds in time
WAIT_POINTS = 12  # of the waits beside spot
_ROUNDS, _GRID_POINTS = 3, 24
_SECANTS = 10
_AT_ONCE = 4096  # chances in one call, which costs a millisecond however few they are
_CERTAIN = 1e-9  # log error of a speed below which it has none
_SLIP = 1e-10  # of the chance at the hours found


def chance_in_time(candidates: Candidates, at: Ints, hours: float | Floats) -> Floats:
    """Probability that candidates `at` are done within `hours` from the start, given that capacity comes."""
    waits, hours = waits_of(candidates, at), np.broadcast_to(np.asarray(hours, dtype=np.float64), len(at))
    spot, out = candidates.context.market.is_spot[candidates.gang(at)[0]], np.empty(len(at))
    known = np.flatnonzero(~waits.has_spread)
    out[known] = _work_chance(candidates, at[known], hours[known] - candidates.waiting_hours[at[known]])
    steady = np.flatnonzero(waits.has_spread & ~spot)
    if len(steady):
        own = waits.take(steady)
        room = hours[steady] - own.before - candidates.fixed_hours[at[steady]]
        later, sigma = candidates.later_hours(at[steady]), candidates.sigma[at[steady]]
        need, room = _need(candidates, at[steady]) - later, room - later
        # offers of many regions are waited for alike
        one, alike = distinct_rows(need, sigma, room, *own.kinds())
        out[steady] = _steady_chance(own.take(one), need[one], sigma[one], room[one])[alike]
    beside = np.flatnonzero(waits.has_spread & spot)
    if len(beside):
        own, room = waits.take(beside), hours[beside]
        nodes, weights = unit_quadrature(WAIT_POINTS)
        rooms = np.asarray([room - own.before - own.at_level(u) for u in nodes.tolist()])
        out[beside] = weights @ _work_chances(candidates, at[beside], rooms)
    return np.clip(out, 0.0, 1.0)


def finish_quantile(candidates: Candidates, at: Ints, level: float | Floats) -> Floats:
    """Hours from the start within which candidates end with probability `level`, shape `(len(at),)`.

    Given that capacity comes; a level of 1 or more is never reached.
    """
    wanted = np.broadcast_to(np.asarray(level, dtype=np.float64), len(at))
    waits, spot = waits_of(candidates, at), candidates.context.market.is_spot[candidates.gang(at)[0]]
    solved = waits.has_spread & ~spot & (wanted < 1.0)
    out = np.empty(len(at))
    if solved.any():
        one = np.flatnonzero(solved)
        out[one] = steady_quantile(candidates, at[one], wanted[one], waits.take(one))
    if not solved.all():
        rest = np.flatnonzero(~solved)
        out[rest] = _on_grid(candidates, at[rest], wanted[rest][:, None])
    return out


def steady_quantile(candidates: Candidates, at: Ints, level: Floats, waits: Waits) -> Floats:
    """The same of capacity that is not taken back and whose wait is not certain, for levels below 1."""
    need, sigma = _need(candidates, at), candidates.sigma[at]

    def work(share: Floats) -> Floats:
        return np.asarray(need * np.exp(sigma * normal_quantile_by_table(share)), dtype=np.float64)

    half = 1.0 - (1.0 - level) / 2.0
    low = np.maximum(work(level) + waits.soonest, waits.at_level(level))
    high = work(half) + waits.at_level(half)
    # offers of many regions are waited for alike
    one, own = distinct_rows(need, sigma, level, *waits.kinds())
    hours = _crossing(waits.take(one), need[one], sigma[one], level[one], low[one], high[one])[own]
    return np.asarray(waits.before + candidates.fixed_hours[at] + hours, dtype=np.float64)


def _crossing(waits: Waits, need: Floats, sigma: Floats, level: Floats, low: Floats, high: Floats) -> Floats:
    """Hours between `low` and `high` where the chance to be done reaches `level`."""
    below = _steady_chance(waits, need, sigma, low) - level
    above = np.maximum(_steady_chance(waits, need, sigma, high) - level, 1e-300)
    side = np.zeros(len(need))
    for _ in range(_SECANTS):
        gap = above - below
        middle = np.where(
            gap > 0,
            low + (high - low) * np.minimum(np.maximum(-below / np.where(gap > 0, gap, 1.0), 0.0), 1.0),
            high,
        )
        value = _steady_chance(waits, need, sigma, middle) - level
        late, early = value < -_SLIP, value >= -_SLIP
        # whoever is kept twice in a row counts half
        above = np.where(late & (side < 0), above / 2.0, above)
        below = np.where(early & (side > 0), below / 2.0, below)
        low, below = np.where(late, middle, low), np.where(late, value, below)
        high, above = np.where(early, middle, high), np.where(early, np.maximum(value, 0.0), above)
        side = np.where(late, -1.0, 1.0)
    return high


def _steady_chance(waits: Waits, need: Floats, sigma: Floats, room: Floats) -> Floats:
    """P(wait + work <= room) of capacity that is not taken back."""
    nodes, weights = unit_quadrature(POINTS)
    left = np.maximum(room - waits.soonest, 1e-300)
    certain = sigma < _CERTAIN
    scaled = np.log(left / need) / np.where(certain, 1.0, sigma)
    cap = np.where(certain, np.where(scaled >= -1e-12, 1.0, 0.0), normal_cdf_by_table(scaled))
    speed = normal_quantile_by_table(cap[:, None] * nodes) * np.where(certain, 0.0, sigma)[:, None]
    after = room[:, None] - need[:, None] * np.exp(speed)
    within = waits.within(np.maximum(after, 0.0))
    # a product of matrices would round a row otherwise beside other rows
    return np.asarray(cap * np.einsum("ij,j->i", within, weights), dtype=np.float64)


def _work_chance(candidates: Candidates, at: Ints, hours: Floats) -> Floats:
    """Probability that the hours in use end within `hours` from when the cluster is there."""
    return meet_probability(
        candidates.context,
        *candidates.gang(at),
        candidates.sigma[at],
        candidates.write_hours[at],
        candidates.interval_hours[at],
        hours - candidates.fixed_hours[at],
        candidates.later_hours(at),
    )


def _work_chances(candidates: Candidates, at: Ints, hours: Floats) -> Floats:
    """`_work_chance` for several hours of each candidate, shape `(k, len(at))`."""
    if hours.size > _AT_ONCE:
        return np.asarray([_work_chance(candidates, at, one) for one in hours])
    return _work_chance(candidates, np.tile(at, len(hours)), hours.ravel()).reshape(hours.shape)


def _need(candidates: Candidates, at: Ints) -> Floats:
    _, nodes, work = candidates.gang(at)
    return steady_hours(
        candidates.context.asked, nodes, work, candidates.write_hours[at], candidates.interval_hours[at]
    )


def _on_grid(candidates: Candidates, at: Ints, wanted: Floats) -> Floats:
    """Hours of a chance on grids: round by round a finer one between the last point too early and the first in time."""
    base = candidates.waiting_hours[at] + candidates.fixed_hours[at]
    need = np.maximum(candidates.hours[at] - base, 1e-6)
    low, high = np.log(need) - 2.0, np.log(need) + 6.0
    for _ in range(_ROUNDS):
        grid = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, _GRID_POINTS)[None, :]
        each = np.repeat(at, _GRID_POINTS)
        hours = np.repeat(base, _GRID_POINTS) + np.exp(grid.ravel())
        chance = chance_in_time(candidates, each, hours).reshape(grid.shape)
        first = np.minimum(np.maximum((chance < wanted).sum(axis=1), 1), _GRID_POINTS - 1)
        row = np.arange(len(at))
        low, high = grid[row, first - 1], grid[row, first]
    return np.asarray(base + np.exp(high), dtype=np.float64)
