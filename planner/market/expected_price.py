"""What a quoted spot price is worth: the price to expect at the time of the run, with an 80 % interval.

The logarithm of a place's price is taken apart into the level of its instance type and the distance of the place from
that level. The distance decays over the horizon (age of the quote, days to the start, half the length of the run); the
levels of type and market move without a direction that anybody could know, so they add spread and no drift. A price
stands still until it moves, and what is left of all distances is what the prices that moved have left:

    moved = 1 - exp(-(k / still_days) ** still_power)             1 where a provider's prices move all the time
    left  = rest + (1 - rest) exp(-(k / decay_days) ** decay_power)
    b  = 1 - (1 - left) / moved                                   m  = level + b (x - level)
    s2 = place_sd^2 (1 - b^2) + (type_sd^2 + market_sd^2) k ** (2 level_power)
    price = base exp(x) with 1 - moved, else base clip(exp(N(m, s2)), floor, 1)

where x is ln(price / base). Base is the on-demand price, or one dollar where a provider's spot prices do not follow it.
Expected price and quantiles are those of this law (`planner.market.price_law`).
Constants: planner/data/prices/spot.csv, fitted by tools/fit_prices.py; method and scores: docs/prices.md.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.rows import distinct_rows
from planner.market.price_law import HIGH, PriceLaw, moved_ratio
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints


FRESH_DAYS = 60.0  # quotes of a type this much older than its newest say nothing of its level now
OTHER_PROVIDER = "*"
_DATA = Path(__file__).parents[1] / "data" / "prices"


@record(frozen=True)
class Constants:
    """Constants of one provider's spot prices, a row of spot.csv (which documents the columns)."""

    provider: str
    on_demand_base: bool
    floor_ratio: float
    no_offer_ratio: float
    type_weight: float
    rest: float
    decay_days: float
    decay_power: float
    place_sd: float
    type_sd: float
    market_sd: float
    level_power: float
    still_days: float
    still_power: float
    list_after_days: float
    derived_slope: float
    derived_sd: float


@record(frozen=True, eq=False)
class Quotes:
    """Spot quotes side by side, shape `(n,)` each.

    Attributes:
        usd_per_hour: the quote; on_demand_usd_per_hour: of the same type and region, NaN where unknown.
        provider: code into `providers`; type: code of (provider, instance type).
        age_days: of the quote; derived: computed from a ratio, not read off a market.
        providers: provider ids.
    """

    usd_per_hour: Floats
    on_demand_usd_per_hour: Floats
    provider: Ints
    type: Ints
    age_days: Floats
    derived: Bools
    providers: tuple[str, ...]


@record(frozen=True, eq=False)
class PriceTerms:
    """What the expected price of each quote follows from at any horizon, shape `(n,)` each.

    Attributes:
        quote: USD per hour; base: USD per hour that logarithms are relative to.
        x: logarithm of quote over base; level: of the type's level over base.
        relative: base is the on-demand price, which bounds the price to expect.
        derived: computed from a ratio; offered: whether the quote is an offer at all.
        constants: index into `models`.
    """

    quote: Floats
    base: Floats
    x: Floats
    level: Floats
    relative: Bools
    derived: Bools
    offered: Bools
    constants: Ints
    models: tuple[Constants, ...]

    def expect(self, rows: Ints, horizon_days: Floats) -> Expected:
        """Return the expected prices of quotes `rows` at `horizon_days`, both of shape `(m,)`."""
        days = np.maximum(horizon_days, 0.0)
        law = self.law(rows, days)
        bounds = law.quantile(np.asarray([[1.0 - HIGH], [HIGH]]))
        mean, p10, p90 = (self._in_usd(over, rows, days) for over in (law.mean(), *bounds))
        return Expected(mean, np.minimum(p10, mean), np.maximum(p90, mean), law.spread())

    def mean(self, rows: Ints, horizon_days: Floats) -> Floats:
        """Return the expected prices of `expect` alone, USD per hour."""
        days = np.maximum(horizon_days, 0.0)
        return self._in_usd(self.law(rows, days).mean(), rows, days)

    def _in_usd(self, over_base: Floats, rows: Ints, days: Floats) -> Floats:
        """Prices over the base in USD per hour; those of now are the quotes."""
        now = (days <= 0.0) & ~self.derived[rows]
        return np.where(now, self.quote[rows], self.base[rows] * over_base)

    def alike(self, horizon_days: Floats) -> tuple[Ints, Ints]:
        """Return one of each kind of quotes that are expected to go alike, and the kind of each quote among those."""
        return distinct_rows(
            self.quote, self.base, self.x, self.level, self.relative, self.derived, self.constants, horizon_days
        )  # fmt: skip

    def at_level(self, rows: Ints, horizon_days: Floats, level: Floats) -> Floats:
        """Return the prices that quotes `rows` do not exceed with probability `level` at `horizon_days`, USD per hour.

        All three broadcast.
        """
        law = self.law(rows, np.maximum(horizon_days, 0.0))
        return np.asarray(self.base[rows] * law.quantile(level), dtype=np.float64)

    @cached_property
    def _columns(self) -> dict[str, Floats]:
        return _columns(self.models)

    def law(self, rows: Ints, days: Floats) -> PriceLaw:
        """Return how the prices of quotes `rows` over their base are distributed `days` (at least 0) after them."""
        of = {name: column[self.constants[rows]] for name, column in self._columns.items()}
        x, level, relative, derived = self.x[rows], self.level[rows], self.relative[rows], self.derived[rows]
        # a derived price was never quoted, so it does not stand still
        of["still_days"] = np.where(derived, 0.0, of["still_days"])
        moved, kept = moved_and_kept(of, days)
        slope = np.where(derived, kept * of["derived_slope"], kept)
        levels = (of["type_sd"] ** 2 + of["market_sd"] ** 2) * days ** (2.0 * of["level_power"])
        variance = of["place_sd"] ** 2 * (1.0 - kept**2) + levels
        sd = np.sqrt(np.where(derived, variance + of["derived_sd"] ** 2, variance))
        low = np.where(relative, np.log(np.maximum(of["floor_ratio"], 1e-9)), -np.inf)
        return PriceLaw(
            x, moved, level + slope * (x - level), np.maximum(sd, 1e-9),
            np.minimum(low, x),  # a quote below the floor shows that the floor is lower there
            np.where(relative, 0.0, np.inf), relative & (days > of["list_after_days"]),
        )  # fmt: skip


def moved_and_kept(of: dict[str, Floats], days: Floats) -> tuple[Floats, Floats]:
    """Share of prices that are no longer the quote, and the share of its distance that such a price has left.

    Args:
        of: constants by name.
        days: after the quote, at least 0, of the shape of the constants.
    """
    moved = moved_ratio(of["still_days"], of["still_power"], days)
    gone = (1.0 - of["rest"]) * -np.expm1(-((days / of["decay_days"]) ** of["decay_power"]))
    return moved, 1.0 - np.minimum(gone / np.maximum(moved, 1e-12), 1.0)


def shared_variance(provider: str, horizon_days: float) -> tuple[float, float, float]:
    """Shares of the variance of a spot price that moved: common to the provider, to the type, and its own; sums to 1.

    Args:
        provider: whose price.
        horizon_days: from the quote to the run.
    """
    known = spot_constants()
    of, days = known.get(provider, known[OTHER_PROVIDER]), max(horizon_days, 0.0)
    kept = float(moved_and_kept(_columns((of,)), np.asarray([days]))[1][0])
    grown = days ** (2.0 * of.level_power)
    parts = of.market_sd**2 * grown, of.type_sd**2 * grown, of.place_sd**2 * (1.0 - kept**2)
    whole = sum(parts)
    return (parts[0] / whole, parts[1] / whole, parts[2] / whole) if whole > 0 else (0.0, 0.0, 1.0)


@record(frozen=True, eq=False)
class Expected:
    """Expected price and its 80 % interval in USD per hour, and the standard deviation of the logarithm."""

    mean: Floats
    p10: Floats
    p90: Floats
    sd: Floats


@cache
def spot_constants() -> dict[str, Constants]:
    """Constants by provider; `*` is every provider without a history of its own."""
    text = (_DATA / "spot.csv").read_text(encoding="utf-8")
    models = {}
    for row in csv.DictReader(text.splitlines()):
        figures = {name: float(row[name]) for name in _FIGURES}
        based = row["base"] == "on_demand"
        models[row["provider"]] = Constants(provider=row["provider"], on_demand_base=based, **figures)
    return models


@record(frozen=True)
class ListTerms:
    """How list prices of a provider move, a row of list.csv.

    Attributes:
        changes_per_year: of one price; change_sd: of its logarithm in one change.
        unplaced_margin: what finding a machine counts as where the list names no place, over the price.
    """

    changes_per_year: float
    change_sd: float
    unplaced_margin: float


@lru_cache(maxsize=256)  # users name providers too
def list_terms(provider: str) -> ListTerms:
    """Terms of a provider's list prices; those of `*` for one without a history of its own."""
    text = (_DATA / "list.csv").read_text(encoding="utf-8")
    rows = {row["provider"]: row for row in csv.DictReader(text.splitlines())}
    row = rows.get(provider, rows[OTHER_PROVIDER])
    return ListTerms(**{name: float(row[name]) for name in ListTerms.__dataclass_fields__})


_FIGURES = tuple(
    name for name in Constants.__dataclass_fields__ if name not in ("provider", "on_demand_base")
)


def price_terms(quotes: Quotes, constants: dict[str, Constants] | None = None) -> PriceTerms:
    """Return what the expected prices of `quotes` follow from; levels come from the quotes themselves.

    Args:
        quotes: all quotes known at one moment, of all places of each type.
        constants: by provider, default the bundled ones.
    """
    constants = spot_constants() if constants is None else constants
    models = tuple(constants.get(name, constants[OTHER_PROVIDER]) for name in quotes.providers)
    mine = {name: column[quotes.provider] for name, column in _columns(models).items()}
    listed = quotes.on_demand_usd_per_hour
    has_list = np.isfinite(listed)
    base = np.where((mine["on_demand_base"] > 0) & has_list, listed, 1.0)
    relative = (mine["on_demand_base"] > 0) & has_list
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.log(quotes.usd_per_hour / base)
        offered = ~(has_list & (quotes.usd_per_hour > mine["no_offer_ratio"] * listed))
    x = np.where(relative, np.minimum(x, 0.0), x)
    # a type with on-demand prices in some regions only has two levels: of ratios and of prices
    kind = quotes.type * 2 + relative
    level = _levels(replace(quotes, type=kind), x, offered & np.isfinite(x), relative, mine["type_weight"])
    return PriceTerms(
        quotes.usd_per_hour, base, x, level, relative, quotes.derived, offered, quotes.provider, models
    )


def _levels(quotes: Quotes, x: Floats, usable: Bools, relative: Bools, weight: Floats) -> Floats:
    """Level of each quote's type: the median of its fresh quotes, drawn to the provider's where few places are known.

    Observed quotes rule; a type without any takes its derived ones. A type without usable quotes has its own price.
    """
    level = x.copy()
    n_types = int(quotes.type.max(initial=-1)) + 1
    observed = np.zeros(n_types, dtype=np.bool_)
    observed[quotes.type[usable & ~quotes.derived]] = True
    usable = usable & (~quotes.derived | ~observed[quotes.type])
    newest = np.full(n_types, np.inf)
    np.minimum.at(newest, quotes.type[usable], quotes.age_days[usable])
    rows = np.flatnonzero(usable & (quotes.age_days <= newest[quotes.type] + FRESH_DAYS))
    if not len(rows):
        return level
    order = rows[np.lexsort((x[rows], quotes.type[rows]))]
    kinds, start, count = np.unique(quotes.type[order], return_index=True, return_counts=True)
    middle = (x[order[start + (count - 1) // 2]] + x[order[start + count // 2]]) / 2.0
    first = order[start]
    for code in sorted(set(quotes.provider[first].tolist())):
        mine = (quotes.provider[first] == code) & relative[first]
        if mine.any():
            prior = weight[first[mine]]
            middle[mine] = (count[mine] * middle[mine] + prior * middle[mine].mean()) / (count[mine] + prior)
    of_type = np.full(n_types, np.nan)
    of_type[kinds] = middle
    known = of_type[quotes.type]
    return np.where(np.isnan(known), level, known)


def _columns(models: tuple[Constants, ...]) -> dict[str, Floats]:
    names = ("on_demand_base", *_FIGURES)
    return {name: np.asarray([float(getattr(m, name)) for m in models], dtype=np.float64) for name in names}
