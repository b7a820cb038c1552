"""The replays behind the coverage of quotes: `benchmarks.quote`."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from benchmarks.quote import SPEEDS, Case, Speeds, replays_of
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
