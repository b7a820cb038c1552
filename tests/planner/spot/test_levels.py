"""Levels of hazards in drawn futures: what zones of a type share, and what the hours before launch say of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.spot.hazards_cells import scale
from planner.spot.levels import Known, draw_levels
from tests.draws import draws

N = 20_000
SIDES = ("down", "up")


def logs(*zones: Known, side: str = "down") -> np.ndarray:
    assert side in SIDES
    return np.log(draw_levels(np.random.default_rng(3), side, zones, N))  # type: ignore[arg-type]


def fresh(pool: str, frailty_sd: float = 0.5) -> Known:
    return Known(pool, frailty_sd, 0.0, 0.0)


@pytest.mark.parametrize("side", SIDES)
def test_without_a_history_levels_spread_by_what_is_own_and_what_the_days_bring(side: str) -> None:
    drift, days = scale("drift_sd", side), scale("days_sd", side)
    one, other, elsewhere = logs(fresh("v100"), fresh("v100"), fresh("h100"), side=side)
    variance = 0.5**2 - drift**2 + days**2
    assert one.std() == pytest.approx(variance**0.5, rel=0.03)
    assert one.mean() == pytest.approx(0.0, abs=0.02)
    assert np.corrcoef(one, other)[0, 1] == pytest.approx(days**2 / variance, abs=0.03)
    assert np.corrcoef(one, elsewhere)[0, 1] == pytest.approx(0.0, abs=0.03)


def test_a_table_that_is_sure_has_no_level() -> None:
    assert logs(fresh("v100", 0.0)) == pytest.approx(0.0)


def test_what_one_zone_shows_is_believed_of_its_type_too_but_less() -> None:
    bad = Known("v100", 0.5, 12.0, 4.0)
    itself, sibling, stranger = logs(bad, fresh("v100"), fresh("h100")).mean(axis=1)
    assert itself > sibling + 0.1
    assert sibling > 0.05
    assert stranger == pytest.approx(0.0, abs=0.02)


def test_several_zones_that_agree_say_more_of_their_days_than_one() -> None:
    bad = Known("v100", 0.5, 12.0, 4.0)
    after_one = logs(fresh("v100"), bad)[0]
    after_three = logs(fresh("v100"), bad, bad, bad)[0]
    assert after_three.mean() > after_one.mean() + 0.05
    assert after_three.std() < after_one.std()


@draws(20)
@given(st.floats(0.4, 0.9), st.integers(0, 30), st.floats(0.5, 30.0))
def test_a_zone_alone_has_the_posterior_of_its_whole_level(
    frailty_sd: float, ends: int, expected: float
) -> None:
    """Own and days together are normal, so one zone's level has one prior, here integrated without the two parts."""
    sd = (frailty_sd**2 - scale("drift_sd", "down") ** 2 + scale("days_sd", "down") ** 2) ** 0.5
    grid = np.linspace(-6.0, 6.0, 4001) * sd
    weight = np.exp(-0.5 * (grid / sd) ** 2 + ends * grid - expected * np.exp(grid) + expected)
    mean = float(weight @ grid / weight.sum())
    # each part is drawn within 3.5 of its own sd: nothing more surprising is believed
    assume(abs(mean) < 2.0 * sd)
    spread = float(weight @ (grid - mean) ** 2 / weight.sum()) ** 0.5
    (drawn,) = logs(Known("v100", frailty_sd, float(ends), expected))
    assert drawn.mean() == pytest.approx(mean, abs=0.04)
    assert drawn.std() == pytest.approx(spread, rel=0.1)


def test_zones_of_one_line_without_a_record_are_wrong_together_by_all_that_it_may_be_wrong() -> None:
    band = Known("p5", 0.5, 0.0, 0.0, "band of p5")
    one, other, elsewhere = logs(band, band, Known("p5", 0.5, 0.0, 0.0, "band of another region"))
    assert one.std() == pytest.approx(0.5, rel=0.03)
    assert one == pytest.approx(other)
    assert np.corrcoef(one, elsewhere)[0, 1] == pytest.approx(0.0, abs=0.03)


def test_what_one_zone_of_a_line_shows_is_believed_of_all_of_it() -> None:
    seen, unseen = logs(Known("p5", 0.5, 12.0, 4.0, "band"), Known("p5", 0.5, 0.0, 0.0, "band"))
    assert seen == pytest.approx(unseen) and seen.mean() > 0.2
