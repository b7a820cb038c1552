"""The wait for capacity has a spread: in the chance to meet the deadline, in when the job is done, on what is left to
a fall-back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.in_time import (
    POINTS,
    WAIT_POINTS,
    _steady_chance,
    _work_chance,
    chance_in_time,
    steady_quantile,
)
from planner.candidates.model import MIXED
from planner.candidates.starts import Waits, waits_of
from planner.judge.capacity_waits import Wait
from planner.judge.capacity_waits import Waits as JudgedWaits
from planner.judge.completion import POINTS as JUDGED_POINTS
from planner.judge.completion import done, sure
from planner.market.starts import Starts
from planner.plan.model import Plan
from tests.draws import draws
from tests.planner.candidates.test_bought_in_parts import LISTED, eight_nodes
from tests.planner.candidates.test_starts import asked
from tests.planner.spine_catalogs import V100, Offer, make_catalog, plan_on

HOURS = st.floats(0.05, 100.0)


def waits(mean: float, shape: float | None, data: float = 0.0, lead: float = 0.0) -> Waits:
    """One purchase of one accelerator that waits `mean` hours beyond its lead; no shape: exactly so long."""
    known = shape is None
    zero, one = np.zeros(1), np.ones(1)
    starts = Starts(
        lead=np.array([lead + (mean if known else 0.0)]), each=np.array([0.0 if known else mean]), never_each=zero,
        accelerators=one, never_flat=zero, has_calendar=np.zeros(1, dtype=np.bool_),
        shape=np.array([3.0 if shape is None else shape]),
    )  # fmt: skip
    offer = np.zeros((1, 1), dtype=np.int64)
    return Waits(starts, zero, np.array([data]), offer, np.array([1]), np.array([not known]))


def chance(wait: Waits, need: float, sigma: float, room: float) -> float:
    return float(_steady_chance(wait, np.array([need]), np.array([sigma]), np.array([room]))[0])


@given(HOURS, HOURS, st.floats(1.0, 20.0))
@draws(60)
def test_a_wait_that_may_differ_is_never_likelier_in_time_where_the_slack_is_above_its_mean(
    mean: float, need: float, times: float
) -> None:
    """Of a job whose hours are certain; a known wait is then surely in time."""
    room = need + mean * max(times, 1.0 + 1e-7)
    assert chance(waits(mean, None), need, 0.0, room) == pytest.approx(1.0, abs=1e-12)
    assert chance(waits(mean, 3.0), need, 0.0, room) < 1.0


@given(HOURS, HOURS, st.floats(3.0, 30.0), st.floats(0.0, 0.4), st.integers(1, 20))
@draws(60)
def test_requests_that_waited_as_long_as_the_table_says_make_a_wide_slack_surer(
    mean: float, need: float, times: float, sigma: float, count: int
) -> None:
    """They leave the mean and narrow the wait; beyond three means the wider wait has more left."""
    slowest = need * np.exp(sigma * 9.0)  # so that every speed has the slack
    room = float(slowest + times * mean)
    narrow, wide = waits(mean, 3.0 + count), waits(mean, 3.0)
    assert chance(narrow, need, sigma, room) >= chance(wide, need, sigma, room)


@given(HOURS, HOURS, HOURS, st.floats(0.0, 0.4), st.floats(1.0, 5.0))
@draws(60)
def test_a_longer_wait_is_never_likelier_in_time(
    mean: float, need: float, room: float, sigma: float, times: float
) -> None:
    longer, shorter = waits(mean * times, 3.0), waits(mean, 3.0)
    assert chance(longer, need, sigma, room) <= chance(shorter, need, sigma, room) + 1e-12


@pytest.mark.parametrize(
    ("mean", "need", "sigma", "room"),
    [(6, 100, 0.1, 115), (6, 1, 0.2, 10), (0.5, 1000, 0.15, 1050), (12, 20, 0.3, 40), (3, 3, 0.5, 9)],
)
def test_the_chance_is_that_of_drawn_waits_and_speeds(
    mean: float, need: float, sigma: float, room: float
) -> None:
    draws = np.random.default_rng(5)
    slow = need * np.exp(sigma * draws.standard_normal(400_000))
    wait = draws.exponential(1.0, 400_000) / draws.gamma(3.0, 1.0 / (2.0 * mean), 400_000)
    late = np.maximum(wait, 0.25)  # the data take a quarter of an hour
    assert chance(waits(mean, 3.0, data=0.25), need, sigma, room) == pytest.approx(
        float((late + slow <= room).mean()), abs=0.004
    )


@given(HOURS, HOURS, st.floats(0.0, 0.4), st.floats(0.05, 0.99), st.floats(0.0, 3.0))
@draws(60)
def test_the_hours_of_a_chance_have_that_chance_and_the_judge_finds_them(
    mean: float, need: float, sigma: float, level: float, data: float
) -> None:
    wait = waits(mean, 3.0, data, lead=0.5)

    class Made:
        fixed_hours = np.zeros(1)

    import planner.candidates.in_time as module

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_need", lambda *_: np.array([need]))
        made: Any = Made()
        made.sigma = np.array([sigma])
        hours = float(steady_quantile(made, np.array([0]), np.array([level]), wait)[0])
    reached = chance(wait, need, sigma, hours)
    assert reached >= level - 1e-9
    assert chance(wait, need, sigma, hours * (1.0 - 1e-4)) < level or sigma == 0.0
    judged = JudgedWaits((Wait(0.5, 0.5 + mean, 3.0, 1.0),), data)
    assert done(judged, need, hours, sigma) == pytest.approx(reached, abs=2e-5)
    assert sure(judged, need, level, sigma) == pytest.approx(hours, rel=1e-4)


def test_quadrature_has_as_many_points_as_the_judge() -> None:
    assert POINTS == WAIT_POINTS == JUDGED_POINTS


def planned(**limits: Any) -> Plan:
    return plan_on(make_catalog([Offer(V100, "us-east-1", "3.06")]), asked(**limits)).plan


def test_a_plan_on_demand_is_done_later_at_worst_and_sooner_at_best() -> None:
    limits: dict[str, Any] = {"deadline": "144h", "deadline_confidence": 0.8, "max_nodes": 1}
    # a request given up after 254 means: 128 times the mean of 6 h / 256
    given_up = {
        "purchase_option": "on_demand",
        "accelerators": 1,
        "waited_hours": 254 * 6 / 256,
        "came": False,
    }
    wide = planned(**limits, waited=[given_up])
    never = 0.05 / 256 / (1 + 0.05 / 256)
    known = planned(**limits, waiting=[{"purchase_option": "on_demand", "hours": 3.0, "never_ratio": never}])
    assert wide.hours == pytest.approx(known.hours) and wide.lines[0].nodes == known.lines[0].nodes
    assert wide.risk is not None and known.risk is not None
    assert wide.risk.worst_hours > known.risk.worst_hours + 1.0
    assert wide.risk.p_meet_deadline is not None and known.risk.p_meet_deadline is not None
    assert (
        0.9 < wide.risk.p_meet_deadline < known.risk.p_meet_deadline == pytest.approx(1.0 - never, abs=1e-6)
    )


def test_a_fall_back_is_left_more_than_its_mean_wait_and_said_to_come_within_it() -> None:
    offers = [
        Offer(V100, "us-east-1", "0.40", "spot", interruption_band=">20%"),
        Offer(V100, "us-east-1", "3.06"),
    ]
    surer, plan = (
        plan_on(
            make_catalog(offers), asked(deadline="60h", max_nodes=1, deadline_confidence=confidence)
        ).plan.launch
        for confidence in (0.99, 0.9)
    )
    mean = 6.0 / 256  # one of the 256 V100 that asking brings
    assert plan is not None and surer is not None and plan.strategy == "spot_with_fallback"
    assert plan.on_demand_acquire_s == pytest.approx(3600 * 2 * mean * (0.05 ** (-1 / 3) - 1))
    assert surer.on_demand_acquire_s > plan.on_demand_acquire_s
    assert plan.p_on_demand_had_ratio == pytest.approx((1 - 0.05 / 256) * 0.95)
    assert plan.p_meet_deadline is not None and plan.p_meet_deadline >= 0.9


def test_spot_beside_machines_that_are_waited_for_is_the_mean_over_the_wait() -> None:
    fast = plan_on(make_catalog(LISTED), eight_nodes(0)).plan.performance
    assert fast is not None
    job = eight_nodes(
        6, purchase_options=["spot", "reserved_1y"], deadline="900h",
        min_throughput={"tokens_per_s": fast.throughput_per_s * 0.9},
    )  # fmt: skip
    found = plan_on(make_catalog(LISTED), job).found
    assert found is not None
    at = np.flatnonzero(found.candidates.kind == MIXED)[:1]
    made, owned = found.candidates, found.candidates.context.starts

    at_once, late = waits_of(made, at), made.hours[at] * 1.5  # owned machines
    context = made.context.with_deadline(made.context.dates.deadline)
    vars(context)["starts"] = replace(owned, each=np.full_like(owned.each, 5.0))
    mean = 5.0 * float(made.nodes[at][0])
    waiting = made.waiting_hours.copy()
    waiting[at] = at_once.before + np.maximum(at_once.least, mean)
    later = replace(made, context=context, waiting_hours=waiting)
    wait, levels = waits_of(later, at), (np.arange(200) + 0.5) / 200
    assert wait.has_spread.all() and wait.before == pytest.approx(at_once.before)
    each = [_work_chance(later, at, late - wait.before - wait.at_level(u))[0] for u in levels.tolist()]
    assert 0.1 < np.mean(each) < chance_in_time(made, at, late)[0] - 0.01
    assert chance_in_time(later, at, late) == pytest.approx(np.mean(each), abs=0.01)
