"""What moving data between places costs and takes; places with the same tariffs form groups."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Floats, Ints
    from catalogs.tariffs import Tariffs, TierCurve
    from planner.asked.assumptions import Assumptions


GB = 1e9


@record(frozen=True, eq=False)
class Moves:
    """Tariffs between places.

    Attributes:
        places: `provider/region`, length `n_places`.
        group: group of each place, shape `(n_places,)`; places of one group have the same tariffs.
        curve: number of the tariff between two groups (in one group: between two different places), `(G, G)`.
        curves: the tariffs; a pair without a known price uses the dearest internet price.
        known: whether each tariff's price is known.
        gbps: speed between two groups, `(G, G)`.
    """

    places: tuple[str, ...]
    group: Ints
    curve: Ints
    curves: tuple[TierCurve, ...]
    known: tuple[bool, ...]
    gbps: Floats

    def usd(self, size_gb: Sequence[float]) -> Floats:
        """Cost of moving each size between groups, shape `(n_sizes, G, G)`."""
        price = [[float(curve_usd(curve, size)) for curve in self.curves] for size in size_gb]
        table = np.asarray(price, dtype=np.float64).reshape(len(size_gb), len(self.curves))
        return np.asarray(table[:, self.curve], dtype=np.float64)

    def hours(self, size_gb: Sequence[float]) -> Floats:
        """Duration of the same."""
        size = np.asarray(size_gb, dtype=np.float64)
        return np.asarray(size[:, None, None] * 8.0 / self.gbps / 3600.0, dtype=np.float64)

    def tariff(self, source: int, target: int) -> tuple[TierCurve, bool]:
        """The tariff between two different places and whether its price is known."""
        number = int(self.curve[self.group[source], self.group[target]])
        return self.curves[number], self.known[number]


def curve_usd(curve: TierCurve, size_gb: float) -> Decimal:
    """Cost of moving `size_gb` (decimal gigabytes), free tiers apart.

    What a month has free is the account's, once; counted for each transfer it would make several look free.
    """
    free = Decimal(0)
    for edge, price in zip(curve.edges_gb, curve.usd_per_gb, strict=True):
        if price:
            free = edge
            break
    return curve.cost_usd(curve.quantity(Decimal(repr(round(size_gb, 9)))), free)


def build_moves(places: Sequence[str], tariffs: Tariffs, assume: Assumptions) -> Moves:
    """Look up the tariff of every pair of places and group the places.

    Args:
        places: `provider/region`, unique.
        tariffs: transfer prices.
        assume: speeds between regions and between providers.
    """
    split = [place.partition("/")[::2] for place in places]
    dearest = tariffs.dearest_internet_curve()
    # tariffs alike in price and date are one, whatever pair they were found for
    numbers: dict[tuple[Any, ...], int] = {}
    # by identity, as one object holds for many pairs; each is kept, so that no other is given its id
    seen: dict[int, tuple[int, TierCurve | None]] = {}
    curves: list[TierCurve] = []
    known: list[bool] = []
    pair = np.zeros((len(places), len(places)), dtype=np.int64)
    for r, source in enumerate(split):
        for q, target in enumerate(split):
            if r == q:
                continue
            tier_curve = tariffs.transfer_curve(*source, *target)
            if id(tier_curve) not in seen:
                curve = dearest if tier_curve is None else tier_curve
                key = (curve.edges_gb, curve.usd_per_gb, curve.unit, curve.as_of, tier_curve is None)
                if key not in numbers:
                    numbers[key] = len(curves)
                    curves.append(curve)
                    known.append(tier_curve is not None)
                seen[id(tier_curve)] = numbers[key], tier_curve
            pair[r, q] = seen[id(tier_curve)][0]
    provider = np.asarray([name for name, _ in split])
    same = provider[:, None] == provider[None, :]
    group = group_places(pair * 2 + same)
    members = [np.flatnonzero(group == g) for g in range(int(group.max(initial=-1)) + 1)]
    first, last = (np.asarray([own[end] for own in members], dtype=np.int64) for end in (0, -1))
    # inside a group any two different members tell; a group of one never moves data within itself
    apart, inside = np.ix_(first, first), np.ix_(first, last)
    diagonal = np.eye(len(first), dtype=bool)
    table = np.where(diagonal, pair[inside], pair[apart])
    near = np.where(diagonal, same[inside], same[apart])
    speed = np.where(near, assume.inter_region_staging_gbps, assume.cross_cloud_staging_gbps)
    if not curves:
        curves, known = [dearest], [False]
    return Moves(tuple(places), group, table, tuple(curves), tuple(known), speed.astype(np.float64))


def group_places(pair: Ints) -> Ints:
    """Put places together that no other place can tell apart, shape `(n_places,)`.

    Args:
        pair: code of the tariff from each place to each other one, shape `(n, n)`; the diagonal is not looked at.
    """
    count = len(pair)
    group = np.full(count, -1, dtype=np.int64)
    members: list[list[int]] = []
    for place in range(count):
        for number, others in enumerate(members):
            if all(_alike(pair, place, other) for other in others) and _one_inside(pair, [*others, place]):
                others.append(place)
                group[place] = number
                break
        else:
            group[place] = len(members)
            members.append([place])
    return group


def _alike(pair: Ints, a: int, b: int) -> bool:
    apart = (pair[a] != pair[b]) | (pair[:, a] != pair[:, b])
    apart[[a, b]] = False
    return not apart.any()


def _one_inside(pair: Ints, members: list[int]) -> bool:
    inside = pair[np.ix_(members, members)][~np.eye(len(members), dtype=bool)]
    return bool((inside == inside[0]).all())
