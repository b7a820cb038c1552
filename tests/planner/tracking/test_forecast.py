"""The forecast of a run: intervals that hold, chances that are better than the plan's, and laws."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from planner.errors import InputError
from planner.plan.model import Goal
from planner.tracking.answer import Ask, Tracked, track
from planner.tracking.forecast import _Run, draw_futures
from planner.tracking.model import Progress, Speed
from planner.tracking.planned import planned_of
from planner.tracking.renewal import SETBACK_SHAPE, Interruptions, count_interruptions
from planner.tracking.row_order import intervals_of
from planner.tracking.speed import correlation_time
from tests.planner.tracking.runs import STEPS, draw_runs, spot_plan, spot_planned

WHEN = 50.0
RUNS = 200


@pytest.fixture(scope="module")
def tracked() -> list[tuple[Tracked, float, float]]:
    """200 runs half-way, each with its deadline and the hours at which it really ended."""
    rng, out = np.random.default_rng(5), []
    for number, run in enumerate(draw_runs(RUNS)):
        deadline = float(rng.uniform(110, 170))
        planned = spot_planned(deadline)
        if run.finish_hours > WHEN:
            ask = Ask(now=planned.start + timedelta(hours=WHEN), futures=600, seed=number)
            out.append((track(planned, run.log(WHEN), ask), deadline, run.finish_hours))
    return out


def test_four_in_five_runs_end_within_the_interval(tracked: list[tuple[Tracked, float, float]]) -> None:
    held = [
        (one.finish[1] - one.planned.start) / timedelta(hours=1)
        <= end
        <= (one.finish[2] - one.planned.start) / timedelta(hours=1)
        for one, _, end in tracked
    ]
    assert len(held) >= 190
    assert 0.72 <= np.mean(held) <= 0.88


def test_the_chance_of_being_late_beats_the_plans(tracked: list[tuple[Tracked, float, float]]) -> None:
    planned = spot_planned()
    shape = 1.0 / math.expm1(planned.rate_sd**2)
    prior = Interruptions(
        0,
        0.0,
        (),
        0.0,
        shape,
        shape / planned.rate_per_hour,
        planned.rate_per_hour,
        3.0,
        3.0 * planned.setback_hours,
    )
    step_s = planned.step_s * (1.0 + planned.overhead_ratio)
    speed = Speed(step_s, planned.step_log_sd, 0, 0.0, None, step_s)
    ends = draw_futures(planned, speed, prior, planned.steps, hours_to_deadline=None, n=4000).hours
    late = np.asarray([end > deadline for _, deadline, end in tracked])
    known = np.asarray([one.p_late for one, _, _ in tracked])
    before = np.asarray([(ends > deadline).mean() for _, deadline, _ in tracked])
    brier, prior_brier = ((known - late) ** 2).mean(), ((before - late) ** 2).mean()
    assert 0.2 < late.mean() < 0.8
    assert brier < 0.75 * prior_brier


def test_a_run_is_late_more_often_where_on_demand_is_scarce_when_spot_is() -> None:
    """Spot alone and on-demand are drawn by the rule of the plan (docs/spot/launch.md)."""

    def p_late(had: float, link: float) -> float:
        planned = replace(
            spot_planned(125.0), fallback_usd_per_hour=6.0, fallback_hours=0.5, had_ratio=had, link_ratio=link
        )
        found = track(planned, steady(60.0, 300), Ask(futures=4000)).p_late
        assert found is not None
        return found

    never, always = p_late(0.0, 0.43), p_late(1.0, 0.43)
    assert (never, always) == (p_late(0.0, 0.0), p_late(1.0, 0.0)) and always < 0.5 * never
    chances = [p_late(0.9, link) for link in (0.0, 0.43, 1.0)]
    assert always < chances[0] < chances[1] - 0.005 < chances[2] - 0.01 and chances[2] <= never


def steady(step_s: float, rows: int = 500, per_row: int = 6, hours: float = 0.2) -> Progress:
    start = spot_planned().start.timestamp() + 3600.0 * hours
    n = np.arange(1.0, rows + 1.0)
    none = np.full(rows, np.nan)
    return Progress("x.csv", "csv", start + n * per_row * step_s, True, n * per_row, none, none, {}, {})


def test_a_slower_run_ends_later_and_costs_more() -> None:
    found = [track(spot_planned(), steady(pace)) for pace in (50.0, 60.0, 75.0)]
    assert found[0].hours_left.value < found[1].hours_left.value < found[2].hours_left.value
    assert found[0].total_usd.value < found[1].total_usd.value < found[2].total_usd.value
    chances = [one.p_late for one in found]
    assert chances == sorted(chances) and chances[0] < chances[2]


def test_the_interval_narrows_as_the_run_goes_on() -> None:
    widths = []
    for rows in (50, 300, 900):
        found = track(spot_planned(), steady(60.0, rows))
        widths.append(found.hours_left.high - found.hours_left.low)
    assert widths == sorted(widths, reverse=True)


def test_a_run_that_is_done_is_finished_with_nothing_left() -> None:
    found = track(spot_planned(), steady(50.0, 1000))
    assert found.status == "finished" and found.hours_left.value == 0 and found.p_late == 0.0
    late = track(spot_planned(60.0), steady(50.0, 1000))
    assert late.status == "finished" and late.p_late == 1.0


def test_no_step_for_long_is_a_stop_that_delays() -> None:
    planned, log = spot_planned(), steady(60.0)
    last = track(planned, log).last
    soon = track(planned, log, Ask(now=last + timedelta(minutes=5)))
    later = track(planned, log, Ask(now=last + timedelta(hours=6)))
    assert soon.stalled_hours == 0 and later.stalled_hours == pytest.approx(6.0)
    assert later.interruptions.seen == soon.interruptions.seen + 1
    assert later.finish[0] > soon.finish[0] + timedelta(hours=5)


def test_a_wait_that_has_lasted_lasts_longer_still() -> None:
    """What is left of a setback is that of the setbacks that lasted so long, and its mean rises with the wait."""
    rng, scale, passed = np.random.default_rng(3), 2.0, 1.5
    whole = scale * rng.standard_gamma(SETBACK_SHAPE, 400_000)
    lasting = whole[whole > passed] - passed
    run = _Run(spot_planned(), rng, np.ones(40_000), np.ones(40_000), np.full(40_000, scale), None)
    left = run._rest_of(passed)
    assert np.quantile(left, (0.1, 0.5, 0.9)) == pytest.approx(
        np.quantile(lasting, (0.1, 0.5, 0.9)), rel=0.04
    )
    assert whole.mean() < left.mean() < run._rest_of(10 * passed).mean() < scale


def test_interruptions_move_the_plans_rate_both_ways() -> None:
    planned = spot_planned()
    none = count_interruptions(intervals_of(steady(60.0, 900)), planned)
    assert none.seen == 0 and none.per_hour < planned.rate_per_hour
    short = count_interruptions(intervals_of(steady(60.0, 5)), planned)
    assert short.per_hour == pytest.approx(planned.rate_per_hour, rel=0.05)


def test_gates_of_the_plan_and_of_who_asks() -> None:
    slow, plan = steady(75.0), spot_plan(130.0, "10000", 0.9)
    by_plan = track(planned_of(plan, "p"), slow)
    assert [gate.name for gate in by_plan.broken] == ["late"] and by_plan.gates[0].limit == pytest.approx(0.1)
    kept = track(planned_of(plan, "p"), slow, Ask(fail_late=1.0))
    assert not kept.broken and [gate.origin for gate in kept.gates] == ["asked"]
    half = replace(plan.goal or Goal(1, "", None, None), budget_usd=plan.total_usd / 2)
    poor = planned_of(replace(plan, goal=half), "p")
    assert "over budget" in [gate.name for gate in track(poor, slow).broken]
    with pytest.raises(InputError, match="--fail-late: the plan has no such limit"):
        track(spot_planned(None), slow, Ask(fail_late=0.5))


def test_tokens_count_more_than_steps_where_the_batch_is_another() -> None:
    log = steady(60.0, 300)
    tokens = log.step * 5.0  # half of the plan's 600 samples per step
    found = track(spot_planned(), replace(log, tokens=tokens * 60.0))
    assert found.done_steps == pytest.approx(log.step[-1] / 2)


def test_samples_are_no_tokens() -> None:
    """A log that counts samples says a hundredth of a percent is done, if they are taken for the plan's tokens."""
    planned, log = spot_planned(), steady(60.0, 300)
    samples = log.step * planned.units / planned.steps
    of_samples = track(replace(planned, unit="samples"), replace(log, samples=samples / 2.0))
    assert of_samples.done_steps == pytest.approx(log.step[-1] / 2)
    # a vision model's log may count patches as tokens
    beside = replace(log, samples=samples / 2.0, tokens=samples * 196.0)
    assert track(replace(planned, unit="samples"), beside).done_steps == pytest.approx(log.step[-1] / 2)
    of_tokens = track(replace(planned, unit="tokens"), replace(log, samples=samples / 512.0))
    assert of_tokens.done_steps == log.step[-1]
    assert any("counts samples and the plan tokens" in note for note in of_tokens.notes)
    both = track(replace(planned, unit="tokens"), replace(log, samples=samples / 512.0, tokens=samples / 2.0))
    assert both.done_steps == pytest.approx(log.step[-1] / 2) and not both.notes


def test_a_log_of_another_run_or_of_the_future_is_refused() -> None:
    with pytest.raises(InputError, match="beyond the plan's 6,000 steps"):
        track(spot_planned(), steady(60.0, 2000))
    with pytest.raises(InputError, match="after the present"):
        track(spot_planned(), steady(60.0), Ask(now=spot_planned().start))


def test_correlated_steps_count_less() -> None:
    rng = np.random.default_rng(3)
    white = rng.standard_normal(4000)
    red = np.zeros(4000)
    for at in range(1, 4000):
        red[at] = 0.9 * red[at - 1] + white[at]
    assert correlation_time(white) < 1.5
    assert correlation_time(red) == pytest.approx(19.0, rel=0.35)  # (1 + 0.9) / (1 - 0.9)


def test_runs_of_the_tests_end() -> None:
    assert all(run.steps[-1] == STEPS for run in draw_runs(5, 9))
