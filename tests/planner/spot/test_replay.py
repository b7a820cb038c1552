"""Replay: known traces have known costs, and thousands of runs at once are the same as one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import InputError
from planner.spot.hazards import load_hazards
from planner.spot.policy.job import Action, JobState, SpotJob, SpotZone
from planner.spot.policy.registry import POLICIES, make_policy
from planner.spot.replay_batch import replay_futures, replay_policy
from tests.planner.spot.reference_replay import replay


def job(count: int = 1, **change: object) -> SpotJob:
    places = tuple(
        SpotZone(f"z{number}", f"r{number // 2}", "p3.2xlarge", 1.0 + 0.25 * number, "aws")
        for number in range(count)
    )
    given: dict[str, object] = {
        "work_hours": 2.0,
        "deadline_hours": 4.0,
        "restart_hours": 0.2,
        "on_demand_usd_per_hour": 4.0,
        "zones": places,
        "egress_usd": 0.5,
    }
    return SpotJob(**{**given, **change})  # type: ignore[arg-type]


def tables(made: SpotJob) -> dict[str, object]:
    model = load_hazards()
    return {zone.name: model.table_for(zone) for zone in made.zones}


class Script:
    """A policy that does what it is told, tick by tick, then stays with the last."""

    def __init__(self, *actions: Action) -> None:
        self.actions, self.seen = actions, []  # type: ignore[var-annotated]

    def decide(self, state: JobState) -> Action:
        self.seen.append(state)
        return self.actions[min(len(self.seen), len(self.actions)) - 1]


def up(*rows: str) -> np.ndarray:
    return np.array([[letter == "1" for letter in row] for row in rows])


ALWAYS = "1" * 40


def test_uninterrupted_spot_pays_one_restart_and_the_work() -> None:
    result = replay(job(), Script(Action("spot", "z0")), up(ALWAYS))
    assert result.finished
    assert result.finish_hours == pytest.approx(2.2)
    assert result.cost_usd == pytest.approx(2.2 * 1.0)
    assert (result.starts, result.interruptions, result.lost_hours) == (1, 0, pytest.approx(0.2))


def test_an_interruption_costs_a_second_restart_and_keeps_the_work() -> None:
    result = replay(job(), Script(Action("spot", "z0")), up("1" * 10 + "00" + "1" * 28))
    assert result.finish_hours == pytest.approx(2.0 + 0.4 + 0.2)
    assert result.interruptions == 1
    assert result.cost_usd == pytest.approx(2.4)


def test_a_missed_deadline_is_charged_on_demand() -> None:
    result = replay(job(), Script(Action("idle")), up(ALWAYS))
    assert not result.finished
    assert result.finish_hours is None
    assert result.work_left_hours == pytest.approx(2.0)
    assert result.cost_usd == pytest.approx((2.0 + 0.2) * 4.0)


def test_a_move_to_another_region_pays_egress_once() -> None:
    there = Script(Action("spot", "z0"), Action("spot", "z2"))
    near = Script(Action("spot", "z0"), Action("spot", "z1"))
    equal = job(zones=tuple(SpotZone(f"z{n}", f"r{n // 2}", "t", 1.0) for n in range(3)))
    seen = up(ALWAYS, ALWAYS, ALWAYS)
    assert replay(equal, there, seen).cost_usd == pytest.approx(replay(equal, near, seen).cost_usd + 0.5)


def test_spot_that_is_not_there_is_a_wait() -> None:
    result = replay(job(), Script(Action("spot", "z0")), up("0" * 5 + "1" * 35))
    assert result.finish_hours == pytest.approx(0.5 + 2.2)
    assert result.cost_usd == pytest.approx(2.2)


def test_a_restart_may_end_within_a_tick() -> None:
    result = replay(job(restart_hours=0.05), Script(Action("on_demand")), up(ALWAYS))
    assert result.finish_hours == pytest.approx(2.1)  # 2.05 h, paid by whole ticks
    assert result.lost_hours == pytest.approx(0.05)


def test_waiting_for_on_demand_is_not_paid() -> None:
    waited = replay(job(on_demand_acquire_hours=0.5), Script(Action("on_demand")), up(ALWAYS))
    at_once = replay(job(), Script(Action("on_demand")), up(ALWAYS))
    assert waited.cost_usd == pytest.approx(at_once.cost_usd)
    assert waited.finish_hours == pytest.approx(2.7)


def test_the_price_in_force_is_paid() -> None:
    prices = np.concatenate([np.full(12, 1.0), np.full(28, 2.0)])[None]
    result = replay(job(), Script(Action("spot", "z0")), up(ALWAYS), prices)
    assert result.cost_usd == pytest.approx(1.2 * 1.0 + 1.0 * 2.0)


def test_a_tick_without_a_price_is_paid_at_the_price_of_launch() -> None:
    made = job()
    prices = np.full((1, 40), 2.0)
    prices[0, 3:9] = np.nan
    policy = make_policy("greedy", made, {})
    seen = np.ones((1, 40), bool)
    known = np.where(np.isnan(prices), made.zones[0].usd_per_hour, prices)
    alone, batch = replay(made, policy, seen, prices), replay_policy(made, policy, seen[None], prices)
    assert alone.cost_usd == replay(made, policy, seen, known).cost_usd
    assert batch.cost_usd[0] == pytest.approx(alone.cost_usd)


def test_spells_count_from_the_history_and_from_the_record() -> None:
    history = {"z0": np.array([False, True, True])}
    for made, seen, start in ((job(history=history), up(ALWAYS), 0), (job(), up("011" + ALWAYS), 3)):
        script = Script(Action("idle"))
        replay(made, script, seen, start_tick=start)
        assert script.seen[0].zones[0].since_hours == pytest.approx(0.3)
        assert script.seen[1].zones[0].since_hours == pytest.approx(0.4)


def test_a_record_that_ends_before_the_deadline_is_an_input_error() -> None:
    with pytest.raises(InputError, match="do not reach the deadline"):
        replay(job(), Script(Action("idle")), up("1" * 20))


def test_an_unknown_policy_is_an_input_error_that_names_the_known() -> None:
    with pytest.raises(InputError, match="uniform_progress"):
        make_policy("lucky", job(), {})


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(
    "made",
    [
        job(),
        job(3),
        job(2, restart_hours=0.25, on_demand_acquire_hours=0.3),
        job(1, tick_hours=1 / 6, restart_hours=0.02, history={"z0": np.array([True, False, False])}),
    ],
    ids=["one", "three", "broken restart", "ten minutes"],
)
def test_many_futures_at_once_are_the_same_as_one_after_the_other(name: str, made: SpotJob) -> None:
    rng = np.random.default_rng(7)
    ticks = 40
    flips = rng.random((12, len(made.zones), ticks)) < rng.choice([0.03, 0.2, 0.5], (12, 1, 1))
    futures = (np.cumsum(flips, axis=2) + rng.integers(0, 2, (12, len(made.zones), 1))) % 2 == 0
    prices = 1.0 + rng.random((len(made.zones), ticks))
    batch = replay_futures(made, name, tables(made), futures, prices)  # type: ignore[arg-type]
    policy = make_policy(name, made, tables(made))  # type: ignore[arg-type]
    for number, future in enumerate(futures):
        one = replay(made, policy, future, prices)
        assert batch.cost_usd[number] == pytest.approx(one.cost_usd)
        assert batch.finished[number] == one.finished
        assert batch.interruptions[number] == one.interruptions
        assert batch.starts[number] == one.starts
        assert batch.spot_hours[number] == pytest.approx(one.spot_hours)
        assert batch.on_demand_hours[number] == pytest.approx(one.on_demand_hours)
        assert batch.lost_hours[number] == pytest.approx(one.lost_hours)
        assert batch.work_left_hours[number] == pytest.approx(one.work_left_hours)
        if one.finish_hours is not None:
            assert batch.finish_hours[number] == pytest.approx(one.finish_hours)
