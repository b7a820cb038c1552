"""Roll-outs are replays that begin in the middle; the guard holds whatever a policy wants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.advice.answer import can_still_finish, decide
from planner.advice.rollout import Forced, Guarded, futures_of, roll_out, spot_alone_in_time, ticks_left
from planner.spot.policy.job import JobState, ZoneState
from planner.spot.policy.registry import make_policy
from planner.spot.policy.view import ArrayPolicy, JobView, RunStates
from planner.spot.replay_batch import replay_policy
from tests.draws import draws, share_of
from tests.planner.advice.test_table import hazard_table, job, weather
from tests.planner.spot.reference_replay import replay


def launch(question: Any, up: np.ndarray) -> JobState:
    zones = tuple(
        ZoneState(zone.name, bool(up[number, 0]), zone.usd_per_hour, 0.1)
        for number, zone in enumerate(question.zones)
    )
    return JobState(0.0, 0.0, "idle", None, 0.0, None, zones)


@pytest.mark.parametrize("zones", [1, 3])
@pytest.mark.parametrize("policy", ["survival", "greedy", "uniform_progress"])
def test_from_the_launch_a_roll_out_is_a_replay(policy: str, zones: int) -> None:
    question = job(zones, egress_usd=0.3)
    tables = {zone.name: hazard_table() for zone in question.zones}
    own = make_policy(policy, question, tables)
    up = weather(zones, 3)
    found = roll_out(question, own, launch(question, up), up[None])
    expected = replay_policy(question, own, up[None])
    assert found.cost_usd[0] == pytest.approx(expected.cost_usd[0])
    assert found.finish_hours[0] == pytest.approx(expected.finish_hours[0])


def test_from_the_middle_it_is_the_rest_of_the_replay() -> None:
    """The state of a replay at some tick, rolled out through what came after, ends when the replay ended."""
    question = job()
    own = make_policy("greedy", question, {})
    up = weather(1, 8)
    seen: list[JobState] = []

    class Watching:
        def decide(self, state: JobState) -> Any:
            seen.append(state)
            return own.decide(state)

    whole = replay(question, Watching(), up)
    for state in seen[::7]:
        tick = round(state.elapsed_hours / question.tick_hours)
        rest = roll_out(question, own, state, up[None, :, tick:])
        assert rest.finish_hours[0] == pytest.approx(whole.finish_hours)


def test_a_first_action_is_taken_once() -> None:
    question = job()
    own, up = make_policy("greedy", question, {}), np.ones((1, 1, 70), dtype=bool)
    waited = roll_out(question, Forced(own, 0.0, 0, -1), launch(question, up[0]), up)
    at_once = roll_out(question, own, launch(question, up[0]), up)
    assert waited.finish_hours[0] == pytest.approx(at_once.finish_hours[0] + question.tick_hours)


def test_actions_followed_at_once_come_to_what_each_comes_to() -> None:
    question = job(2, egress_usd=0.3, on_demand_acquire_hours=0.2)
    own = Guarded(make_policy("survival", question, {zone.name: hazard_table() for zone in question.zones}))
    up = np.stack([weather(2, seed) for seed in range(12)])
    up[:, :, 0] = True
    state = launch(question, up[0])
    modes, zones = np.asarray([1, 0, 2]), np.asarray([1, -1, -1])
    of_all = Forced(own, 0.0, np.repeat(modes, len(up)), np.repeat(zones, len(up)))
    found = roll_out(question, of_all, state, up, len(modes))
    assert len(set(found.finish_hours.tolist())) > 6, "runs end, and are set aside, one after the other"
    for number, (mode, zone) in enumerate(zip(modes.tolist(), zones.tolist(), strict=True)):
        alone = roll_out(question, Forced(own, 0.0, mode, zone), state, up)
        rows = slice(number * len(up), (number + 1) * len(up))
        for name in alone.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(found, name)[rows], getattr(alone, name), err_msg=name)


def test_futures_begin_with_what_is_seen_and_end_at_the_deadline() -> None:
    question = job(2)
    tables = {zone.name: hazard_table() for zone in question.zones}
    zones = (ZoneState("z0", True, 1.0, 2.0), ZoneState("z1", False, 1.0, 0.1))
    state = JobState(1.0, 0.5, "idle", None, 0.0, None, zones)
    up = futures_of(question, tables, state, {}, 50, 4)
    assert up.shape == (50, 2, ticks_left(JobView(question), state)) == (50, 2, 60)
    assert up[:, 0, 0].all() and not up[:, 1, 0].any()
    assert (up == futures_of(question, tables, state, {}, 50, 4)).all()
    older = replace(state, zones=(replace(zones[0], since_hours=20.0), zones[1]))
    # hazards fall with age: an old spell lasts longer
    young_life, old_life = (
        f[:, 0].argmin(axis=1).mean() for f in (up, futures_of(question, tables, older, {}, 50, 4))
    )
    assert old_life > young_life or futures_of(question, tables, older, {}, 50, 4)[:, 0].all(axis=1).any()


class Whim(ArrayPolicy):
    """Does anything at all."""

    def __init__(self, question: Any, seed: int) -> None:
        super().__init__(question)
        self.rng = np.random.default_rng(seed)

    def decide_runs(self, runs: RunStates) -> Any:
        mode = self.rng.integers(0, 3, len(runs.mode))
        return mode, np.where(mode == 1, self.rng.integers(0, runs.up.shape[1], len(mode)), -1)


@draws(60)
@given(
    seed=st.integers(0, 10_000),
    zones=st.integers(1, 3),
    restart=st.sampled_from([0.0, 0.1, 0.15, 0.3]),
    acquire=st.sampled_from([0.0, 0.25, 1.0]),
    spare=st.floats(0.0, 2.0),
)
def test_no_whim_misses_a_deadline_under_the_guard(
    seed: int, zones: int, restart: float, acquire: float, spare: float
) -> None:
    need = 3.0 + restart + acquire
    question = job(
        zones,
        work_hours=3.0,
        deadline_hours=need + spare + 0.1,
        restart_hours=restart,
        on_demand_acquire_hours=acquire,
    )
    assert replay(question, Guarded(Whim(question, seed)), weather(zones, seed, 80)).finished


def test_who_decided_is_told() -> None:
    question = job()
    down = (ZoneState("z0", False, 1.0, 1.0),)
    policy = make_policy("spot_only", question, {})
    at = {hours: JobState(hours, 0.0, "idle", None, 0.0, None, down) for hours in (1.0, 2.8, 3.0)}
    assert decide(policy, at[1.0])[1] == "policy" and decide(policy, at[2.8])[1] == "guard"
    assert can_still_finish(question, at[2.8]) and not can_still_finish(question, at[3.0])


@pytest.mark.parametrize(
    ("left", "up", "expected"),
    [(3.5, True, "spot"), (3.5, False, "on_demand"), (3.05, True, "on_demand")],
)
def test_where_on_demand_is_too_late_spot_that_can_be_in_time_is_started(
    left: float, up: bool, expected: str
) -> None:
    question = job(3, work_hours=3.0, deadline_hours=10.0, restart_hours=0.1, on_demand_acquire_hours=1.0)
    zones = tuple(ZoneState(f"z{n}", up and n > 0, 1.0 - n / 10, 1.0) for n in range(3))
    state = JobState(10.0 - left, 0.0, "idle", None, 0.0, None, zones)
    for policy in ("survival", "greedy", "spot_only"):
        action, _ = decide(make_policy(policy, question, {one.name: hazard_table() for one in zones}), state)
        assert action.mode == expected
        assert action.zone == ("z2" if expected == "spot" else None)


@pytest.mark.parametrize("mode", ["idle", "spot", "on_demand"])
@pytest.mark.parametrize("zones", [1, 2, 3])
def test_spot_alone_is_in_time_where_its_roll_out_is(zones: int, mode: str) -> None:
    """Restarts and waits that are no whole ticks among them, and prices that change the zone."""
    draw = np.random.default_rng(zones)
    ends = set()
    for _ in range(share_of(60)):
        question = job(
            zones, work_hours=float(draw.choice([2.0, 5.25, 7.9])), deadline_hours=10.0,
            restart_hours=float(draw.choice([0.0, 0.1, 0.25, 0.37])), on_demand_acquire_hours=0.2,
        )  # fmt: skip
        ticks = round(10.0 / question.tick_hours)
        up = np.stack(
            [np.logical_xor.accumulate(draw.random((zones, ticks)) < 0.1, axis=1) for _ in range(8)]
        )
        up[:, :, 0] = up[0, :, 0]
        now = int(draw.integers(ticks // 2))
        seen = tuple(
            ZoneState(zone.name, bool(up[0, at, 0]), float(draw.choice([0.2, 0.5, np.nan])), 0.5)
            for at, zone in enumerate(question.zones)
        )
        zone = question.zones[int(draw.integers(zones))].name if mode == "spot" else None
        state = JobState(
            now * question.tick_hours,
            float(draw.uniform(0, 2)),
            mode,
            zone,
            float(draw.choice([0.0, 0.13])),
            None,
            seen,
        )  # type: ignore[arg-type]
        policy = make_policy("spot_only", question, {})
        expected = roll_out(question, policy, state, up[:, :, now:]).finished
        found = spot_alone_in_time(question, policy.view, state, up[:, :, now:])
        assert (found == expected).all()
        ends |= set(expected.tolist())
    assert ends == {True, False}
