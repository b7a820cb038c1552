"""What a quoted spot price is worth: laws of the expected price and of its interval."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.market.expected_price import Expected, PriceTerms, Quotes, price_terms, spot_constants
from planner.normal.arrays import normal_cdf

# five zones of one type at 10, 20, 30, 40 and 100 % of list
RATIOS = np.array([0.10, 0.20, 0.30, 0.40, 1.00])


def quotes(ratios: Any = RATIOS, provider: str = "aws", **changes: Any) -> Quotes:
    count = len(ratios)
    given = Quotes(
        usd_per_hour=10.0 * np.asarray(ratios, dtype=np.float64),
        on_demand_usd_per_hour=np.full(count, 10.0),
        provider=np.zeros(count, dtype=np.int64),
        type=np.zeros(count, dtype=np.int64),
        age_days=np.zeros(count),
        derived=np.zeros(count, dtype=np.bool_),
        providers=(provider,),
    )
    return replace(given, **changes)


def expect(terms: PriceTerms, days: float) -> Expected:
    count = len(terms.quote)
    return terms.expect(np.arange(count), np.full(count, float(days)))


@pytest.mark.parametrize("provider", ["aws", "gcp", "azure", "alibaba"])
def test_a_quote_of_this_moment_is_what_is_paid(provider: str) -> None:
    terms = price_terms(quotes(provider=provider))
    now = expect(terms, 0)
    for figure in (now.mean, now.p10, now.p90):
        np.testing.assert_array_equal(figure, terms.quote)


@pytest.mark.parametrize("provider", ["aws", "gcp", "azure", "alibaba"])
def test_the_interval_widens_with_the_horizon_and_holds_the_mean(provider: str) -> None:
    terms = price_terms(quotes(RATIOS[:4], provider=provider))
    widths = []
    for days in (1, 7, 30, 91, 182, 365):
        later = expect(terms, days)
        assert (later.p10 <= later.mean).all() and (later.mean <= later.p90).all()
        widths.append(later.sd)
    assert (np.diff(np.array(widths), axis=0) > 0).all()


def test_the_cheapest_zone_is_expected_to_cost_more_and_the_dearest_less() -> None:
    later = expect(price_terms(quotes()), 91)
    assert later.mean[0] > 1.2 * 1.0
    assert later.mean[3] < 4.0


def test_prices_stay_between_the_floor_and_list() -> None:
    later = expect(price_terms(quotes()), 400)
    assert (later.p10 >= 1.0 - 1e-9).all()
    assert (later.mean <= 10.0).all()
    np.testing.assert_allclose(later.p90, 10.0)  # over 300 days some zones are at list


def test_order_of_places_is_kept_within_a_type() -> None:
    for days in (7, 91, 500):
        assert (np.diff(expect(price_terms(quotes()), days).mean) > 0).all()


@pytest.mark.parametrize("provider", ["aws", "gcp"])
def test_all_prices_times_k_cost_k_times_as_much(provider: str) -> None:
    once = quotes(provider=provider)
    scaled = replace(
        once, usd_per_hour=once.usd_per_hour * 7, on_demand_usd_per_hour=once.on_demand_usd_per_hour * 7
    )
    np.testing.assert_allclose(
        expect(price_terms(scaled), 60).mean, 7 * expect(price_terms(once), 60).mean, rtol=1e-12
    )


def test_spot_at_list_is_no_offer_on_aws_and_sets_no_level() -> None:
    with_list, without = price_terms(quotes()), price_terms(quotes(RATIOS[:4]))
    assert with_list.offered.tolist() == [True] * 4 + [False]
    np.testing.assert_allclose(with_list.level[:4], without.level)


def test_an_old_quote_of_a_place_sets_no_level() -> None:
    ages = np.array([0.0, 0.0, 0.0, 0.0, 400.0])
    ratios = np.array([0.2, 0.2, 0.2, 0.2, 0.9])
    terms = price_terms(quotes(ratios, age_days=ages))
    np.testing.assert_allclose(terms.level, np.log(0.2))


def test_derived_prices_are_believed_less_than_observed_ones() -> None:
    observed = expect(price_terms(quotes(RATIOS[:4])), 30)
    derived = expect(price_terms(quotes(RATIOS[:4], derived=np.ones(4, dtype=np.bool_))), 30)
    assert derived.mean[0] > observed.mean[0]
    assert (derived.sd > observed.sd).all()


def test_without_an_on_demand_price_the_quote_is_relative_to_itself() -> None:
    terms = price_terms(quotes(on_demand_usd_per_hour=np.full(5, np.nan)))
    later = expect(terms, 91)
    assert np.isfinite(later.mean).all()
    assert terms.offered.all()


def test_the_normal_distribution_is_exact_near_and_far() -> None:
    z = np.asarray([-np.inf, -50.0, -40.0, -39.0, -1.0, 0.0, 2.0, 39.0, 40.0, np.inf, np.nan])
    wanted = [0.5 * math.erfc(-value * math.sqrt(0.5)) for value in z.tolist()]
    assert np.array_equal(normal_cdf(z), wanted, equal_nan=True)


def test_every_constant_says_where_it_comes_from() -> None:
    assert {"aws", "gcp", "azure", "*"} <= set(spot_constants())
    for model in spot_constants().values():
        assert model.decay_days > 0 and model.place_sd >= 0 and 0 <= model.rest < 1
