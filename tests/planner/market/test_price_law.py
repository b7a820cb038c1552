"""A price stands still, or it moves: the mixture's mean and quantiles against its distribution, and how it grows."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from planner.judge.prices import quotes_of
from planner.market.expected_price import Quotes, price_terms, shared_variance, spot_constants
from planner.market.price_law import PriceLaw
from planner.market.spot_prices import price_book
from planner.normal.arrays import normal_quantile

NOW = date(2026, 11, 20)
LEVELS = (0.001, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99)


def law(moved: float, *, x: float = -0.3, low: float = -np.inf, high: float = np.inf) -> PriceLaw:
    """A law of one price; its distribution before the clip is `cdf`."""
    quote, share, middle, sd, least, most = (
        np.asarray([value]) for value in (x, moved, -0.1, 0.25, low, high)
    )
    return PriceLaw(quote, share, middle, sd, least, most, np.asarray([False]))


def cdf(of: PriceLaw, usd: float) -> float:
    """Probability of at most `usd`, from the definition."""
    logs = np.log(usd)
    if logs >= of.high[0]:
        return 1.0
    moved = 0.0 if logs < of.low[0] else norm.cdf((logs - of.middle[0]) / of.sd[0])
    return float((1.0 - of.moved[0]) * (logs >= of.x[0] - 1e-12) + of.moved[0] * moved)


@pytest.mark.parametrize("moved", [0.02, 0.15, 0.5, 0.9, 1.0])
@pytest.mark.parametrize(("low", "high"), [(-np.inf, np.inf), (-0.5, 0.0)])
def test_quantiles_are_those_of_the_distribution(moved: float, low: float, high: float) -> None:
    of = law(moved, low=low, high=high)
    for level in LEVELS:
        usd = float(of.quantile(level)[0])
        assert cdf(of, usd * (1 + 1e-9)) >= level - 1e-6
        assert cdf(of, usd * (1 - 1e-9)) <= level + 1e-6


def test_the_inverse_of_the_normal_distribution() -> None:
    levels = np.asarray([1e-9, 1e-4, 0.1, 0.4999, 0.5, 0.5001, 0.9, 0.9999, 1.0 - 1e-9])
    np.testing.assert_allclose(normal_quantile(levels), norm.ppf(levels), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(
        normal_quantile(np.asarray([-0.5, 0.0, 1.0, 1.5])), [-np.inf, -np.inf, np.inf, np.inf]
    )


@pytest.mark.parametrize("moved", [0.02, 0.5, 1.0])
def test_the_mean_is_the_integral_of_the_quantiles(moved: float) -> None:
    of = law(moved, low=-0.5, high=0.0)
    mean = quad(lambda level: float(of.quantile(level)[0]), 0.0, 1.0, limit=200)[0]
    assert float(of.mean()[0]) == pytest.approx(mean, rel=1e-4)


def test_a_price_that_hardly_moves_has_its_quote_as_interval() -> None:
    of = law(0.05)
    np.testing.assert_allclose([of.quantile(0.1), of.quantile(0.9)], np.exp(-0.3))
    assert of.quantile(0.99) > 1.05 * np.exp(-0.3)


def quotes(provider: str, *, derived: bool = False) -> Quotes:
    """Four places of one type at 1 to 4 USD."""
    zeros = np.zeros(4, dtype=np.int64)
    return Quotes(
        np.asarray([1.0, 2.0, 3.0, 4.0]), np.full(4, 10.0), zeros, zeros, np.zeros(4),
        np.full(4, derived), (provider,),
    )  # fmt: skip


def test_standing_still_takes_nothing_from_what_is_expected_of_distances() -> None:
    """In the mean over prices that stand still and that moved `left` of the logarithm's distance is left."""
    known = spot_constants()["gcp"]
    assert known.still_days > 0
    terms, rows = price_terms(quotes("gcp")), np.arange(4)
    for days in (1.0, 30.0, 91.0, 365.0):
        of = terms.law(rows, np.full(4, days))
        mean = (1.0 - of.moved) * of.x + of.moved * of.middle
        left = known.rest + (1.0 - known.rest) * np.exp(-((days / known.decay_days) ** known.decay_power))
        np.testing.assert_allclose(mean - terms.level, left * (terms.x - terms.level), rtol=1e-12)


def test_more_prices_have_moved_later_and_derived_ones_stand_nowhere() -> None:
    rows, days = np.zeros(5, dtype=np.int64), np.asarray([0.0, 7.0, 30.0, 91.0, 365.0])
    moved = price_terms(quotes("gcp")).law(rows, days).moved
    assert moved[0] == 0 and (np.diff(moved) > 0).all() and moved[-1] < 1
    assert (price_terms(quotes("gcp", derived=True)).law(rows, days).moved == 1).all()
    assert (price_terms(quotes("aws")).law(rows, days).moved == 1).all()


def test_standing_still_narrows_the_interval_of_a_price_at_its_level() -> None:
    known = spot_constants()
    moving = {**known, "gcp": replace(known["gcp"], still_days=0.0)}
    same = replace(quotes("gcp"), usd_per_hour=np.full(4, 2.0))
    rows, days = np.arange(4), np.full(4, 30.0)
    one, other = (price_terms(same, of).expect(rows, days) for of in (known, moving))
    assert (one.p90 / one.p10 < other.p90 / other.p10).all()


@pytest.mark.parametrize("provider", ["gcp", "aws", "azure"])
def test_shares_of_the_variance_sum_to_one(provider: str) -> None:
    for days in (0.0, 30.0, 365.0):
        assert sum(shared_variance(provider, days)) == pytest.approx(1.0)


@pytest.mark.parametrize("mode", ["expected", "quoted"])
def test_the_judge_comes_to_the_same_quantiles(mode: str) -> None:
    from catalogs.store.load import load_catalog

    table = load_catalog(None, as_of=NOW).offers
    usd = table.number("price_per_hour") * np.where(table.equals("currency", "CNY"), 0.14, 1.0)
    start = NOW + timedelta(days=2)
    book = price_book(table, usd, mode, NOW, start)
    judged = quotes_of(table, usd.tolist(), mode == "quoted", NOW, start)
    spot = np.flatnonzero(table.equals("purchase_option", "spot"))
    for provider in ("gcp", "aws", "azure"):
        for row in spot[table.equals("provider", provider)[spot]][::40].tolist():
            for hours in (0.0, 50.0, 3000.0):
                quote = judged[row].during(hours)
                own = book.quantile(row, np.asarray([0.75, 0.95, 0.99]), hours)
                mine = [quote.at_level(level) for level in (0.75, 0.95, 0.99)]
                np.testing.assert_allclose(mine, np.maximum(own, quote.expected), rtol=1e-9)
