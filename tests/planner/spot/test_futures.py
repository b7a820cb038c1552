"""Futures of spot capacity: marginals, what a history says, what zones share, and what is known before launch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.spot_forecast import p_meet_spot_only, progress_hours
from benchmarks.spot_zones import alone_in, cheapest_forecast
from planner.spot.futures import sample_futures, seen_in, spells_of
from planner.spot.generate import CALM
from planner.spot.hazards import HazardTable, Weather, load_hazards, make_table
from planner.spot.hazards_cells import N_AGES
from planner.spot.launch import (
    LaunchForecast,
    OnDemandLuck,
    forecast_launch,
)
from planner.spot.levels import sample_level
from planner.spot.policy.job import SpotJob, SpotZone
from planner.spot.zones import scarce_together
from tests.draws import draws

NAMES = ("us-west-2a", "us-west-2b", "us-east-1c")
ZONES = tuple(SpotZone(name, name[:-1], "p3.2xlarge", 0.9, "aws") for name in NAMES)


def flat(down: float, up: float, sd: float = 0.0) -> HazardTable:
    return make_table(np.full(N_AGES, down), np.full(N_AGES, up), (sd, sd), 1.0, "flat")


def job(zones: tuple[SpotZone, ...] = ZONES[:1], **changes: Any) -> SpotJob:
    made = SpotJob(12.0, 18.0, 0.2, 3.06, zones)
    return replace(made, **changes)


def share_up(table: HazardTable, **changes: Any) -> np.ndarray:
    up = sample_futures(job(**changes), {NAMES[0]: table}, 400, 300, 1, weather=CALM)
    return np.asarray(up[:, 0].mean(axis=0))


def test_without_a_history_futures_have_the_table_s_availability_all_along() -> None:
    table = flat(0.4, 0.6)
    found = share_up(table)
    assert found[:50].mean() == pytest.approx(0.6, abs=0.05)
    assert found[-50:].mean() == pytest.approx(0.6, abs=0.05)


def test_a_zone_that_is_up_stays_up_as_its_hazard_says() -> None:
    found = share_up(flat(0.5, 1e-6), history={NAMES[0]: np.ones(30, dtype=bool)})
    expected = np.exp(-0.05 * np.arange(1, 61))
    np.testing.assert_allclose(found[:60], expected, atol=0.08)


def test_the_age_of_a_spell_counts() -> None:
    down = np.full(N_AGES, 0.01)
    down[:3] = 4.0
    table = make_table(down, np.full(N_AGES, 1e-6), (0.0, 0.0), 1.0, "young spells end")
    old = np.concatenate([[False], np.ones(200, dtype=bool)])
    young = np.concatenate([np.zeros(200, dtype=bool), [True]])
    assert share_up(table, history={NAMES[0]: old})[20] > 0.95
    assert share_up(table, history={NAMES[0]: young})[20] < 0.3


def test_a_bad_day_lowers_what_is_expected_of_the_next() -> None:
    table = flat(0.5, 0.5, sd=0.5)
    rng = np.random.default_rng(0)
    good = np.ones(240, dtype=bool)
    good[rng.integers(0, 240, 2)] = False
    bad = np.tile([True, False, False, False], 60)
    bad[-1], good[-1] = True, True
    after_good, after_bad = (share_up(table, history={NAMES[0]: seen})[100:].mean() for seen in (good, bad))
    assert after_good > after_bad + 0.1


def test_ends_seen_beside_ends_expected() -> None:
    up, down = spells_of(np.full(N_AGES, 1.0), 0.1), spells_of(np.full(N_AGES, 2.0), 0.1)
    seen = seen_in(np.asarray([1, 1, 0, 0, 0, 1], dtype=bool), up, down)
    assert (seen.up, seen.age_ticks, seen.age_known) == (True, 1, True)
    assert (seen.downs, seen.ups) == (1.0, 1.0)
    # two up ticks and three down ticks before the last one; a constant hazard knows no age
    assert seen.downs_expected == pytest.approx(0.2, rel=1e-3)
    assert seen.ups_expected == pytest.approx(0.6, rel=1e-3)


@given(st.floats(0.05, 0.8), st.integers(0, 30), st.floats(0.0, 30.0))
def test_a_level_moves_towards_what_was_seen(sd: float, ends: int, expected: float) -> None:
    middle = float(sample_level(sd, ends, expected, np.asarray([0.5]))[0])
    prior = float(sample_level(sd, 0, 0.0, np.asarray([0.5]))[0])
    assert prior == pytest.approx(1.0, abs=0.05)
    if ends > expected + 1:
        assert middle > prior - 0.02
    if ends < expected - 1:
        assert middle < prior + 0.02
    wide, narrow = (
        np.ptp(sample_level(sd, *seen, np.asarray([0.1, 0.9]))) for seen in ((0, 0.0), (20, 20.0))
    )
    assert narrow <= wide + 1e-9


def test_the_same_seed_gives_the_same_futures() -> None:
    tables = {zone.name: load_hazards().table_for(zone) for zone in ZONES}
    first, again, other = (sample_futures(job(ZONES), tables, 20, 50, seed) for seed in (1, 1, 2))
    assert first.shape == (20, 3, 50)
    assert (first == again).all()
    assert (first != other).any()


def test_zones_of_a_region_share_their_weather() -> None:
    tables = {zone.name: flat(0.5, 0.5) for zone in ZONES}

    def correlations(weather: Weather) -> tuple[float, float]:
        up = sample_futures(job(ZONES), tables, 200, 600, 5, weather=weather)[:, :, 200:].astype(float)
        a, b, c = (up[:, at].ravel() for at in range(3))
        return float(np.corrcoef(a, b)[0, 1]), float(np.corrcoef(a, c)[0, 1])

    assert max(abs(value) for value in correlations(CALM)) < 0.05
    near, far = correlations(Weather(0.5, 0.3, 12.0))
    assert near > far + 0.05
    assert far > 0.02
    assert near < 0.6


@draws(10)
@given(st.integers(0, 10_000), st.floats(2.0, 20.0), st.floats(0.0, 0.5))
def test_p_meet_never_falls_with_a_later_deadline(seed: int, work: float, restart: float) -> None:
    deadlines = [work, work * 1.1, work * 1.5, work * 2.0, work * 3.0]
    one = job(work_hours=work, restart_hours=restart)
    chance = p_meet_spot_only(one, load_hazards(), deadlines, futures=50, seed=seed)
    assert (np.diff(chance) >= 0.0).all()
    assert chance[0] == 0.0 or restart < 1e-6  # a restart that long is still lost in rounding


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(0, 5))
def test_progress_is_the_ticks_of_a_spell_behind_its_restart(seen: list[bool], restart: int) -> None:
    up = np.asarray([seen])
    work = progress_hours(up, 0.1, restart * 0.1)[0]
    left, expected = restart, []
    for one in seen:
        left = restart if not one else left
        expected.append(0.1 if one and left == 0 else 0.0)
        left -= 1 if one and left > 0 else 0
    np.testing.assert_allclose(work, expected, atol=1e-9)


def test_a_forecast_hangs_together() -> None:
    model = load_hazards()
    made = forecast_launch(job(ZONES), model, "uniform_progress", futures=60, seed=3)
    assert made.p_meet_ratio == 1.0
    assert 0.0 <= made.p_meet_spot_only_ratio <= 1.0
    assert made.cost_ratio_p10 <= made.cost_ratio_p50 <= made.cost_ratio_p90
    assert made.cost_ratio_p10 <= made.cost_ratio <= 1.1
    assert made.cost_usd == pytest.approx(made.cost_ratio * 12.0 * 3.06)
    assert made.finish_hours_p90 <= 18.0
    assert made.spot_hours + made.on_demand_hours >= 12.0
    assert set(made.sources) == set(NAMES)
    assert forecast_launch(job(ZONES), model, "uniform_progress", futures=60, seed=3) == made


def test_spot_alone_by_forecast_and_by_deadline_curve_are_one_figure() -> None:
    one = job()
    made = forecast_launch(one, load_hazards(), "greedy", futures=80, seed=4)
    curve = p_meet_spot_only(one, load_hazards(), [18.0], futures=80, seed=4)
    assert made.p_meet_spot_only_ratio == pytest.approx(float(curve[0]))


def test_a_zone_is_picked_by_cost_not_by_price() -> None:
    scarce, steady = flat(2.0, 0.05), flat(0.01, 2.0)
    zones = (replace(ZONES[0], usd_per_hour=0.80), replace(ZONES[2], usd_per_hour=0.95))
    model = load_hazards().with_tables({zones[0].name: scarce, zones[1].name: steady})
    assert cheapest_forecast(job(zones), model, "greedy") == zones[1]


def test_a_job_alone_in_a_zone_keeps_everything_else() -> None:
    whole = job(ZONES, history={name: np.ones(3, dtype=bool) for name in NAMES}, egress_usd=2.0)
    one = alone_in(whole, ZONES[1])
    assert one.zones == (ZONES[1],)
    assert set(one.history) == {NAMES[1]}
    assert (one.work_hours, one.egress_usd) == (whole.work_hours, 2.0)


@pytest.mark.parametrize(("down", "up"), [(0.3, 0.3), (1.0, 1.0), (0.2, 0.8), (0.8, 0.2)])
def test_a_refit_of_futures_gives_the_hazards_back(down: float, up: float) -> None:
    """Spells end as often per hour as the table says, whatever weather adds to hazards and takes from their hours."""
    table = flat(down, up, 0.4)
    seen = sample_futures(job(), {NAMES[0]: table}, 300, 960, 1)[:, 0]
    sides = spells_of(table.down_per_hour, 0.1), spells_of(table.up_per_hour, 0.1)
    counts = np.sum(
        [[s.downs, s.downs_expected, s.ups, s.ups_expected] for s in (seen_in(one, *sides) for one in seen)],
        axis=0,
    )
    ratios = np.asarray([counts[0] / counts[1], counts[2] / counts[3]])
    assert 0.9 < float(np.sqrt(ratios.prod())) < 1.1, ratios
    # each side too: of twenty draws (four tables, five seeds) they were 0.91 to 1.08
    assert ((ratios > 0.87) & (ratios < 1.15)).all(), ratios


def test_a_forecast_is_late_where_on_demand_does_not_come_and_spot_alone_is_too_late() -> None:
    asked = job(ZONES[:1])

    def chance(had: float, link: float) -> float:
        luck = OnDemandLuck(had, link)
        return forecast_launch(
            asked, load_hazards(), "greedy", futures=200, seed=4, on_demand=luck
        ).p_meet_ratio

    never, always = chance(0.0, 0.0), chance(1.0, 0.0)
    assert always == 1.0 and 0.0 < never < 1.0
    assert chance(0.5, 0.0) == pytest.approx((never + always) / 2.0)
    late = 1.0 - never
    assert chance(0.9, 0.43) == pytest.approx(1.0 - float(scarce_together(0.1, late, 0.43)))


def test_a_forecast_spreads_hours_of_work_around_the_job_s() -> None:
    """Of a zone that is always up: quantiles of the speed, the mean of the work asked for, slow runs late."""
    table = flat(1e-9, 10.0)
    spread = 0.4

    def forecast(log_sd: float, deadline_hours: float) -> LaunchForecast:
        return forecast_launch(
            job(deadline_hours=deadline_hours), load_hazards(), "greedy", tables={NAMES[0]: table},
            work_log_sd=log_sd,
        )  # fmt: skip

    sure, found = forecast(0.0, 60.0), forecast(spread, 60.0)
    assert found.cost_usd_p10 / sure.cost_usd == pytest.approx(np.exp(-1.28 * spread), rel=0.03)
    assert found.cost_usd == pytest.approx(sure.cost_usd, rel=0.02)
    # Phi(ln(17.8 / 12) / 0.4) = 0.84
    assert sure.p_meet_ratio == 1.0 and forecast(spread, 18.0).p_meet_ratio == pytest.approx(0.84, abs=0.01)
