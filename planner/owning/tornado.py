"""What moves the answer: every factor at the ends of its range, the others at their centres.

The ranges together: a factor's ends stand for the same chance each, and factors move apart from each other, so what
they add to the cost of a useful hour is combined as the root of the sum of squares, upwards and downwards apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.owning.figures import break_even_month, figures_of
from planner.owning.model import Bar, End, Factor, Figures, Fixed, Spread, Way


def ends_of(factors: Sequence[Factor], fixed: Fixed) -> dict[str, tuple[Figures, Figures]]:
    """The whole case with each factor that has a range at its low and at its high end, by key."""
    values = {factor.key: factor.value for factor in factors}
    return {
        factor.key: (
            figures_of({**values, factor.key: factor.low}, fixed),
            figures_of({**values, factor.key: factor.high}, fixed),
        )
        for factor in factors
        if factor.low < factor.high
    }


def tornado(
    factors: Sequence[Factor], ends: dict[str, tuple[Figures, Figures]], figures: Figures, own: str, rent: str
) -> tuple[Bar, ...]:
    """Bars of one site against one way to rent, widest first; factors that do not move it are left out.

    Args:
        factors: all of them.
        ends: of `ends_of`.
        figures: the case with all factors at their centres.
        own: name of the site.
        rent: name of the way to rent.
    """
    base = _end(figures, own, rent, 0.0).saving_usd_per_useful_hour
    bars = []
    for factor in factors:
        if factor.key not in ends:
            continue
        low, high = ends[factor.key]
        bar = Bar(
            factor.key, factor.words, factor.unit, _end(low, own, rent, factor.low), _end(high, own, rent, factor.high),
            False,
        )  # fmt: skip
        reached = [bar.low.saving_usd_per_useful_hour, bar.high.saving_usd_per_useful_hour]
        if any(abs(one - base) > 1e-12 * max(1.0, abs(base)) for one in reached):
            turns = any((one < 0.0) != (base < 0.0) for one in reached)
            bars.append(Bar(bar.key, bar.words, bar.unit, bar.low, bar.high, turns))
    return tuple(sorted(bars, key=lambda bar: (-_width(bar, base), bar.key)))


def spreads(figures: Figures, ends: dict[str, tuple[Figures, Figures]]) -> tuple[Spread, ...]:
    """Cost per useful hour of every way, with the interval that all ranges make together."""
    out = []
    for way in (*figures.own, *figures.rent):
        base = way.usd_per_useful_hour
        moved = [
            [named(case, way.name).usd_per_useful_hour - base for case in cases] for cases in ends.values()
        ]
        down = math.sqrt(math.fsum(min(0.0, *both) ** 2 for both in moved))
        up = math.sqrt(math.fsum(max(0.0, *both) ** 2 for both in moved))
        out.append(Spread(way.name, max(0.0, base - down), base, base + up))
    return tuple(out)


def named(figures: Figures, name: str) -> Way:
    """The way of that name."""
    return next(way for way in (*figures.own, *figures.rent) if way.name == name)


def _end(figures: Figures, own: str, rent: str, value: float) -> End:
    owned, rented = named(figures, own), named(figures, rent)
    return End(
        value, rented.usd_per_useful_hour - owned.usd_per_useful_hour, rented.npv_usd - owned.npv_usd,
        break_even_month(owned.cash_usd, rented.cash_usd),
    )  # fmt: skip


def _width(bar: Bar, base: float) -> float:
    return max(abs(end.saving_usd_per_useful_hour - base) for end in (bar.low, bar.high))
