"""What pairs of sizes cost at least, from what each size costs at a few paces: a few questions for all pairs.

A pool of a pair does at least the pair's work W, within the deadline at most. So it costs no less than the same
machines do for some hours V <= W of work within the deadline, and (W - V - g) h more: each further hour costs h at
least, and g hours may be free (`pools_bound`, with s = 1). Work that takes x times as long has (x - 1) V / 2 hours
more. V is the hour of one grid for all pairs before W, or the pool's own pace where that is slower. The least over the
ways of a region is concave in W, so that between two hours of the grid it is at least what is straight between both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct
from planner.pipelines.pools_asked import Ask
from planner.pipelines.pools_ways import By

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.pipelines.pools_asked import Ways
    from planner.pipelines.pools_bound import Bounds
    from planner.pipelines.pools_sizes import Sizes


_CELLS = 4  # of a doubling of the hours
_BOTH = (0, 1)


def floors(
    bounds: Bounds, sizes: list[Sizes], rows: tuple[Ints, Ints], step_s: Floats, hours: Floats,
    below_usd: float,
) -> Floats:  # fmt: skip
    """What pairs of sizes cost at least, both pools in one region, USD; infinite where it is `below_usd` or more.

    Args:
        bounds: of the pools by their deadline.
        sizes: of both pools.
        rows: number of the size of each pool, shape `(n,)` each.
        step_s: time of a step that both share.
        hours: work of the pair.
        below_usd: nothing dearer is of use.
    """
    cell = np.floor(np.log2(hours) * _CELLS).astype(np.int64)
    start = 2.0 ** (cell / _CELLS)
    n_regions = 1 + int(bounds.sides[0].found.context.market.region_of_offer.max(initial=0))
    out = np.zeros((len(hours), n_regions))
    for number in _BOTH:
        own, beside = rows[number], sizes[1 - number].points.usd_per_hour[rows[1 - number]] * hours
        key = (
            own * (int(cell.max(initial=0)) - int(cell.min(initial=0)) + 1) + cell - int(cell.min(initial=0))
        )
        _, first, of_pair = distinct(key)
        least = np.full(len(first), np.inf)
        np.minimum.at(least, of_pair, beside)
        asks = []
        # no pool works faster than at its own pace, which may be that of the pair
        work = np.maximum(start, sizes[number].points.step_s[own] * hours / step_s)[first]
        for at, usd, alone in zip(first.tolist(), least.tolist(), work.tolist(), strict=True):
            size = sizes[number].sizes[int(own[at])]
            most = (below_usd - usd) / bounds.share(number, size, alone, bounds.deadline_hours)
            by = By(bounds.deadline_hours, bounds.level, alone / 2.0)
            asks.append(Ask(size, float(step_s[at] * alone / hours[at]), by, most))
        low, high, flat = np.full((3, len(asks), n_regions), np.inf)
        answers = bounds.asked[number].all(asks)
        for n, (at, alone, ways) in enumerate(zip(first.tolist(), work.tolist(), answers, strict=True)):
            _fill(bounds, ways, (alone, float(start[at])), (low[n], high[n], flat[n]))
        share = (hours / start - 1.0) / (2.0 ** (1.0 / _CELLS) - 1.0)
        has = np.isfinite(flat)
        slope = np.where(has, high, 0.0) - np.where(has, low, 0.0)
        straight = low[of_pair] + slope[of_pair] * share[:, None]
        out += np.maximum(flat[of_pair], straight)
    least_of_pair: Floats = out.min(axis=1, initial=np.inf)
    return least_of_pair


def _fill(
    bounds: Bounds, ways: Ways, hours: tuple[float, float], into: tuple[Floats, Floats, Floats]
) -> None:
    """The least of the ways of each region, by its number: straight in W at both ends of a cell, and of V alone.

    `hours`: V of the ways, and the start of the cell.
    """
    if not len(ways.usd):
        return
    work, start = hours
    usd = ways.usd * bounds.prices(ways, work, bounds.deadline_hours)
    free = ways.spare_hours + (work - start)
    more = start * (2.0 ** (1.0 / _CELLS) - 1.0)
    low, high, flat = into
    np.minimum.at(flat, ways.region, usd)
    np.minimum.at(low, ways.region, usd - ways.hourly_usd * free)
    np.minimum.at(high, ways.region, usd + ways.hourly_usd * (more - free))
