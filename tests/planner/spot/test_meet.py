"""Calibrated chances: laws of the map, and that limits and chances use the same one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.judge.chance import calibrated, model_chance
from planner.spot.distribution import SpotPool, describe_elapsed
from planner.spot.launch import chance_of
from planner.spot.meet import Calibration, calibration
from planner.spot.moments import split_job


@pytest.mark.parametrize("estimator", ["renewal", "replay"])
def test_the_map_rises_keeps_certainty_and_has_its_inverse(estimator: str) -> None:
    said = calibration(estimator)
    chance = np.linspace(0.0, 1.0, 1001)
    assert np.all(np.diff(said.apply(chance)) > 0)
    assert said.apply([0.0, 1.0]).tolist() == [0.0, 1.0]
    assert said.invert(said.apply(chance)) == pytest.approx(chance, abs=1e-12)


@given(st.floats(1e-6, 1 - 1e-6), st.floats(0.3, 3.0), st.floats(-2.0, 2.0))
def test_it_is_a_line_in_the_log_odds(chance: float, slope: float, shift: float) -> None:
    said = float(Calibration(slope, shift).apply(chance))
    assert said == pytest.approx(
        1.0 / (1.0 + np.exp(-shift - slope * np.log(chance / (1.0 - chance)))), rel=1e-9
    )


def test_the_judge_reads_the_same_constants_with_its_own_formula() -> None:
    for chance in (0.0, 0.02, 0.4, 0.93, 1.0):
        assert calibrated(chance) == pytest.approx(float(calibration("renewal").apply(chance)), abs=1e-12)
        assert model_chance(chance) == pytest.approx(float(calibration("renewal").invert(chance)), abs=1e-12)


def test_certain_capacity_stays_certain_and_parts_add_up() -> None:
    job = split_job(*(np.asarray([value]) for value in (10.0, 1.0, 0.1, 0.2, 0.0)))
    for rate in (0.0, 0.3):
        pool = SpotPool(*(np.asarray([value]) for value in (rate, 2.0, 4.0, 0.5, 3.0)))
        elapsed = describe_elapsed(job, pool)
        for hours in (12.0, 20.0, 60.0):
            at = np.asarray([hours])
            assert elapsed.still_chance + elapsed.moved_chance(at) == pytest.approx(elapsed.chance(at))
        assert (elapsed.chance(np.asarray([60.0]))[0] == 1.0) == (rate == 0.0)


def test_replays_of_spot_alone_are_calibrated_and_guarded_policies_counted() -> None:
    finished = np.arange(10) < 7
    assert chance_of("survival", finished) == 0.7
    assert chance_of("spot_only", finished) == pytest.approx(float(calibration("replay").apply(0.7)))
