"""Why cost changed between two months: price, volume, mix, new, retired and the rest, exactly.

Mid-point (symmetric) decomposition of e = q p for every thing i that was bought in both months:

    volume_i = (q1 - q0) (p0 + p1) / 2        price_i = (p1 - p0) (q0 + q1) / 2

Both add up to e1 - e0 without a remainder. Inside a group whose quantities share a unit the volume effect splits into
pure volume, (Q1 - Q0) times the mean of the group's two average prices, and mix, what is left of the sum of volume_i.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from planner.records import record

Floats = NDArray[np.float64]
# Effects that are this many times the cost itself say nothing of it (a unit was changed, or what was paid became
# free), and two numbers so large cannot add up to a small one exactly.
_ABSURD = 1e5
EFFECTS = ("price", "volume", "mix", "new", "retired", "other")


@record(frozen=True)
class Bridge:
    """The change of cost and its parts, money in one currency.

    Attributes:
        before, after: cost of the two months.
        price, volume, mix, new, retired: see the module; other: credits, fees and corrections without a quantity.
    """

    before: float
    after: float
    price: float
    volume: float
    mix: float
    new: float
    retired: float
    other: float

    @property
    def change(self) -> float:
        """Cost after minus cost before."""
        return self.after - self.before

    @property
    def steps(self) -> tuple[tuple[str, float], ...]:
        """The effects, in the order of `EFFECTS`."""
        return tuple((name, getattr(self, name)) for name in EFFECTS)


@record(frozen=True, eq=False)
class Effects:
    """Effects of each thing; all arrays are (n,).

    Attributes:
        price, volume: of things bought in both months (volume with its share of the mix).
        new, retired, other: whole change of the thing.
        both: whether it is split into price and volume.
    """

    price: Floats
    volume: Floats
    new: Floats
    retired: Floats
    other: Floats
    both: NDArray[np.bool_]

    @property
    def change(self) -> Floats:
        """Sum of the effects."""
        total: Floats = self.price + self.volume + self.new + self.retired + self.other
        return total


def split_effects(
    quantity0: Floats, cost0: Floats, quantity1: Floats, cost1: Floats, has_unit: NDArray[np.bool_]
) -> Effects:
    """Split each thing's change.

    Args:
        quantity0: (n,) pricing units of the month before.
        cost0: (n,) effective cost of the month before.
        quantity1: (n,) pricing units of the month.
        cost1: (n,) effective cost of the month.
        has_unit: (n,) whether it is bought by quantity; what is not becomes `other`.
    """
    change = cost1 - cost0
    both = has_unit & (quantity0 > 0) & (quantity1 > 0)
    new = has_unit & (quantity0 == 0) & (cost0 == 0) & (quantity1 > 0)
    retired = has_unit & (quantity1 == 0) & (cost1 == 0) & (quantity0 > 0)
    price0 = np.divide(cost0, quantity0, out=np.zeros_like(cost0), where=both)
    price1 = np.divide(cost1, quantity1, out=np.zeros_like(cost1), where=both)
    volume = np.where(both, (quantity1 - quantity0) * (price0 + price1) / 2, 0.0)
    both &= np.abs(volume) <= _ABSURD * np.maximum(np.abs(cost0), np.abs(cost1))
    volume = np.where(both, volume, 0.0)
    return Effects(
        # equal to (p1 - p0)(q0 + q1) / 2, without its rounding
        price=np.where(both, change - volume, 0.0),
        volume=volume,
        new=np.where(new, change, 0.0),
        retired=np.where(retired, change, 0.0),
        other=np.where(both | new | retired, 0.0, change),
        both=both,
    )


def sum_bridge(
    quantity0: Floats,
    cost0: Floats,
    quantity1: Floats,
    cost1: Floats,
    effects: Effects,
    groups: NDArray[np.int64],
) -> Bridge:
    """Sum the effects and split volume from mix.

    Args:
        quantity0: (n,) as of `split_effects`, like the next three.
        cost0: (n,)
        quantity1: (n,)
        cost1: (n,)
        effects: what `split_effects` made of them.
        groups: (n,) number of the group of each thing; quantities of a group share a unit.
    """
    # members of a group side by side, in their order
    members = np.flatnonzero(effects.both)
    members = members[np.argsort(groups[members], kind="stable")]
    ends = np.flatnonzero(np.diff(groups[members])) + 1
    pure = [
        _pure_volume(effects.volume[rows], *(a[rows] for a in (quantity0, cost0, quantity1, cost1)))
        for rows in np.split(members, ends)
        if len(rows)
    ]
    volume, mixed = math.fsum(pure), math.fsum(effects.volume)
    return Bridge(
        before=math.fsum(cost0),
        after=math.fsum(cost1),
        price=math.fsum(effects.price),
        volume=volume,
        mix=mixed - volume,
        new=math.fsum(effects.new),
        retired=math.fsum(effects.retired),
        other=math.fsum(effects.other),
    )


def _pure_volume(
    effects: Floats, quantity0: Floats, cost0: Floats, quantity1: Floats, cost1: Floats
) -> float:
    """Return a group's pure volume; where it would be absurd, all of its volume effects: then there is no mix."""
    before, after = math.fsum(quantity0), math.fsum(quantity1)
    price = (math.fsum(cost0) / before + math.fsum(cost1) / after) / 2
    pure = (after - before) * price
    known = math.fsum(np.abs(cost0)) + math.fsum(np.abs(cost1))
    return pure if abs(pure) <= _ABSURD * known else math.fsum(effects)
