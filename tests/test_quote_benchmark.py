"""The replays behind the coverage of quotes: `benchmarks.quote`."""

from __future__ import annotations

from datetime import UTC, datetime
from statistics import NormalDist

import numpy as np
import pytest

from benchmarks.quote import SPEEDS, Case, Speeds, replays_of, tail_z
from planner.spot.hazards import load_hazards
from planner.spot.trace import ZoneTrace

LENGTH = 600


def _case(*, up: bool) -> Case:
    model = load_hazards()
    seen = next(cell for cell in model.cells if cell.provider and cell.gang == 1)
    trace = ZoneTrace(
        provider=seen.provider, region=seen.region, zone=seen.zone, instance_type=seen.instance_type, gang=1,
        start=datetime(2026, 1, 1, tzinfo=UTC), tick_hours=0.1, up=np.full(LENGTH, up),
        spot_usd_per_hour=np.full(LENGTH, np.nan), on_demand_usd_per_hour=None, source="made up",
    )  # fmt: skip
    return Case([trace], model, 6.0, 2.0, 0.2)


def test_certain_spot_is_paid_as_spot_and_none_as_on_demand() -> None:
    exact = Speeds(np.asarray([0.2]), np.asarray([0.0]), np.asarray([1.0]))
    flat = np.ones(3), np.ones(3)
    draw = np.random.default_rng(1)
    for up, share in ((True, 0.3), (False, 1.0)):
        rows = replays_of(_case(up=up), exact, flat, 0.95, 5, draw)
        assert rows.shape == (5 * SPEEDS, 6)
        np.testing.assert_allclose(rows[:, 1], share * 6.2 / 6.0, rtol=0.03)
        assert (rows[:, 0] >= rows[:, 4]).all()  # a bound is not below the expected cost


def test_a_dearer_price_and_a_slower_run_cost_more_and_leave_the_quote_alone() -> None:
    draw = np.random.default_rng(1)
    flat, dear = (np.ones(3), np.ones(3)), (np.ones(3), np.full(3, 2.0))
    exact = Speeds(np.asarray([0.2]), np.asarray([0.0]), np.asarray([1.0]))
    slow = Speeds(np.asarray([0.2]), np.asarray([2.0]), np.asarray([1.0]))
    usual, dearer, slower = (
        replays_of(_case(up=True), speeds, prices, 0.95, 2, draw)
        for speeds, prices in ((exact, flat), (exact, dear), (slow, flat))
    )
    np.testing.assert_allclose(dearer[:, 1], 2.0 * usual[:, 1])
    assert (slower[:, 1] > 1.3 * usual[:, 1]).all()
    np.testing.assert_array_equal(usual[:, 0], slower[:, 0])


def test_errors_as_assumed_are_normal() -> None:
    normal = Speeds(np.full(99, 0.3), np.zeros(99), np.full(99, 1 / 99)).as_assumed()
    assert abs(normal.z.std() - 1.0) < 0.03 and abs(normal.z.mean()) < 1e-9


def test_bounds_of_another_tail_are_judged_on_the_same_replays() -> None:
    exact, flat = Speeds(np.asarray([0.2]), np.asarray([0.0]), np.asarray([1.0])), (np.ones(3), np.ones(3))
    normal = replays_of(_case(up=True), exact, flat, 0.95, 2, np.random.default_rng(1))
    both = replays_of(_case(up=True), exact, flat, 0.95, 2, np.random.default_rng(1), 3.0)
    np.testing.assert_array_equal(both[:, :6], normal)
    np.testing.assert_allclose(both[:, 7] / both[:, 2], np.exp(0.2 * (tail_z(0.95, 3.0) - 1.644854)))
    assert (both[:, 6] > both[:, 0]).all()


@pytest.mark.parametrize(
    ("level", "student"), [(0.95, 2.353363), (0.975, 3.182446), (0.99, 4.540703), (0.999, 10.214532)]
)
def test_a_tail_of_3_degrees_goes_through_the_normal_p90(level: float, student: float) -> None:
    """Percentage points of Student's t with 3 degrees from tables; 1.637744 is that of 90 %."""
    assert tail_z(level, 3.0) == pytest.approx(student / 1.637744 * NormalDist().inv_cdf(0.9), rel=1e-5)
