"""Hazards in calm weather: futures that draw weather around them have the table's hazards at every age."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.spot.calm import _NODES, _basis, _rule, calm_hazards
from planner.spot.futures import sample_futures, spells_of
from planner.spot.generate import CALM
from planner.spot.hazards import HazardTable, load_hazards, load_weather, make_table
from planner.spot.hazards_cells import N_AGES, age_bucket, spell_age_ticks
from planner.spot.policy.job import SpotJob, SpotZone

AGES = np.asarray([0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 300.0])


def table_of(down: np.ndarray, up: np.ndarray) -> HazardTable:
    return make_table(down, up, (0.0, 0.0), 1.0, "test")


def test_nothing_changes_without_weather() -> None:
    table = table_of(np.geomspace(3.0, 0.05, N_AGES), np.geomspace(2.0, 0.02, N_AGES))
    down, up = calm_hazards(table, CALM, AGES)
    np.testing.assert_allclose(down, table.down_per_hour[age_bucket(AGES)], rtol=1e-6)
    np.testing.assert_allclose(up, table.up_per_hour[age_bucket(AGES)], rtol=1e-6)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(("other", "at_first"), [(1e-3, 0.5), (20.0, -1.5)])
def test_weather_in_which_spells_begin_and_that_they_come_to(
    side: int, other: float, at_first: float
) -> None:
    """Spells of thousands of hours end in the e^(s^2 / 2) that weather of log sd s has in the mean.

    They begin in good weather, e^(-s^2 / 2) in the mean, after spells as long as weather, which good weather ends; and
    in e^(3 s^2 / 2), the bad weather that ended the spell before, where the other side lasts but minutes.
    """
    sky, rare = load_weather(), 1e-6
    hazards = np.full(N_AGES, rare), np.full(N_AGES, other)
    calm = calm_hazards(table_of(*(hazards if side == 0 else hazards[::-1])), sky, np.asarray([0.1, 300.0]))[
        side
    ]
    variance = sky.region_sd**2 + sky.common_sd**2
    assert calm / rare == pytest.approx(np.exp([at_first * variance, -0.5 * variance]), rel=0.02)


@given(
    st.lists(st.floats(0.0, 30.0), min_size=N_AGES, max_size=N_AGES),
    st.lists(st.floats(0.0, 30.0), min_size=N_AGES, max_size=N_AGES),
)
def test_any_table_has_hazards_in_calm_weather(down: list[float], up: list[float]) -> None:
    table = table_of(np.asarray(down), np.asarray(up))
    for calm, counted in zip(calm_hazards(table, load_weather(), AGES), (down, up), strict=True):
        at = np.asarray(counted)[age_bucket(AGES)]
        assert np.isfinite(calm).all()
        assert ((calm > 0) == (at > 0)).all()


@pytest.mark.parametrize("type_", ["p3.16xlarge", "p3.2xlarge"])
def test_a_refit_of_futures_gives_the_hazards_of_a_recorded_zone_back_at_each_age(type_: str) -> None:
    """Hazards that fall with age fall as they did: weather drawn around them does not make them fall twice."""
    zone = SpotZone("us-west-2a", "us-west-2", type_, 1.0, "aws")
    known = load_hazards().table_for(zone)
    table = table_of(known.down_per_hour, known.up_per_hour)
    drawn = sample_futures(SpotJob(1.0, 1.0, 0.0, 1.0, (zone,)), {zone.name: table}, 700, 900, 1)
    drawn = drawn[:, 0, 200:]
    for side, hazard in ((drawn, table.down_per_hour), (~drawn, table.up_per_hour)):
        ends, hours = np.zeros(N_AGES), np.zeros(N_AGES)
        for future, up in zip(drawn, side, strict=True):
            first = int(np.argmax(future != future[0]))  # of a spell whose beginning is seen
            age, here = age_bucket(spell_age_ticks(future)[first:-1] * 0.1), up[first:]
            ends += np.bincount(age[here[:-1] & ~here[1:]], minlength=N_AGES)
            hours += np.bincount(age[here[:-1]], minlength=N_AGES) * 0.1
        often = ends > 600
        assert often.sum() >= 4
        refit = -np.log1p(-0.1 * ends[often] / hours[often]) / 0.1 / hazard[often]
        # the table's own hazards in their place give 1.2 at the first age and 0.7 to 0.8 at 10 h
        assert ((refit > 0.88) & (refit < 1.12)).all(), refit


@pytest.mark.parametrize("ticks", [3, 30, 150])
@pytest.mark.parametrize("is_up", [True, False])
def test_a_spell_met_at_launch_lasts_as_its_table_says(ticks: int, is_up: bool) -> None:
    """It is met in the weather in which spells last that long, so the hazards of calm weather do not end it sooner."""
    zone = SpotZone("us-west-2a", "us-west-2", "p3.2xlarge", 1.0, "aws")
    known = load_hazards().table_for(zone)
    table = table_of(known.down_per_hour, known.up_per_hour)
    seen = np.concatenate([np.full(90, not is_up), np.full(ticks, is_up)])
    job = SpotJob(1.0, 1.0, 0.0, 1.0, (zone,), history={zone.name: seen})
    drawn = sample_futures(job, {zone.name: table}, 2000, 100, 1)[:, 0]
    lasts = np.cumprod(drawn == is_up, axis=1).mean(axis=0)
    survival = spells_of(table.down_per_hour if is_up else table.up_per_hour, 0.1).survival
    np.testing.assert_allclose(lasts, survival[ticks : ticks + 100] / survival[ticks - 1], atol=0.04)


def test_zones_of_a_region_that_have_long_been_down_are_down_for_longer_together() -> None:
    """Each shows that the weather they share is bad."""
    zones = tuple(SpotZone(f"us-west-2{at}", "us-west-2", "p3.2xlarge", 1.0, "aws") for at in "abc")
    seen = np.concatenate([np.ones(90, dtype=bool), np.zeros(150, dtype=bool)])
    table = table_of(np.full(N_AGES, 0.5), np.full(N_AGES, 0.5))

    def soon(some: tuple[SpotZone, ...]) -> float:
        job = SpotJob(1.0, 1.0, 0.0, 1.0, some, history={zone.name: seen for zone in some})
        return float(
            sample_futures(job, {zone.name: table for zone in some}, 1000, 20, 1)[:, 0].any(axis=1).mean()
        )

    assert soon(zones) < soon(zones[:1]) - 0.05


def test_the_rule_and_its_polynomials_are_numpys() -> None:
    x, weight = np.polynomial.hermite_e.hermegauss(_NODES)
    nodes, chance = _rule()
    np.testing.assert_allclose(nodes, x, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(chance, weight / weight.sum(), rtol=1e-13)
    degrees = np.eye(_NODES)
    for degree in range(_NODES):
        value = np.polynomial.hermite_e.hermeval(nodes, degrees[degree]) / math.sqrt(math.factorial(degree))
        np.testing.assert_array_equal(_basis()[:, degree], value)
