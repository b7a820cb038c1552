"""When a plan says that 100 steps should be run first, and what that is worth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.plan.front_notes import before_you_buy
from planner.plan.model import Plan
from planner.plan.profile import KEPT_RATIO
from tests.planner.render.render_plans import FLEET, INFEASIBLE, TRAINING


def with_speed(low: float, high: float) -> Plan:
    assert TRAINING.performance is not None
    speed = replace(TRAINING.performance, throughput_low_per_s=low, throughput_high_per_s=high)
    return replace(TRAINING, performance=speed)


def test_the_cost_is_that_of_100_steps_on_one_node_and_the_gain_that_of_speed() -> None:
    line, speed = TRAINING.lines[0], TRAINING.performance
    assert speed is not None and speed.step_time_s is not None
    hours = 0.07 + 100 * speed.step_time_s / 3600  # image pull and the steps
    assert TRAINING.profile_cost_usd == pytest.approx(hours * float(line.price_per_hour))
    machines = 405 * 21.957642
    spread = machines * (98765.4 / 84000.0 - 98765.4 / 113000.0)
    assert TRAINING.profile_narrows_usd == pytest.approx(spread * (1 - KEPT_RATIO))


def test_it_is_said_only_where_speed_is_unsure_and_it_pays() -> None:
    said = "profile 100 steps first"
    assert said in str(before_you_buy(TRAINING))
    sure = with_speed(95_000.0, 102_000.0)
    assert sure.profile_cost_usd is None and said not in str(before_you_buy(sure))
    small = replace(
        TRAINING, lines=(replace(TRAINING.lines[0], costs=TRAINING.lines[0].costs[1:]),)
    )  # nothing is paid by the hour
    assert small.profile_narrows_usd is None
    assert FLEET.profile_cost_usd is None and INFEASIBLE.profile_cost_usd is None


def test_a_gain_of_cents_is_no_line() -> None:
    tiny = replace(
        TRAINING.lines[0], costs=tuple(replace(c, amount_usd=c.amount_usd / 20_000) for c in TRAINING.lines[0].costs),
        price_per_hour=TRAINING.lines[0].price_per_hour / 20_000,
    )  # fmt: skip
    plan = replace(TRAINING, lines=(tiny,))
    assert 0 < (plan.profile_narrows_usd or 0.0) < 1
    assert "profile 100 steps first" not in str(before_you_buy(plan))


def test_nothing_is_gained_where_a_term_is_owed_however_long_the_run_takes() -> None:
    assert TRAINING.risk is not None and TRAINING.profile_narrows_usd is not None
    owed = replace(TRAINING, risk=replace(TRAINING.risk, worst_cost_usd=TRAINING.total_usd))
    assert owed.profile_cost_usd is None and owed.profile_narrows_usd is None


def test_the_wider_the_interval_the_more_it_brings() -> None:
    gains = [with_speed(98765.4 / k, 98765.4 * k).profile_narrows_usd or 0.0 for k in (1.12, 1.3, 1.6)]
    assert gains == sorted(gains) and gains[0] > 0
