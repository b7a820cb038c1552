"""The offline optimum: known answers, and laws that any optimum obeys."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.spot.hindsight import offline_optimum
from planner.spot.policy.job import Action, JobState, SpotJob
from tests.draws import draws
from tests.planner.spot.reference_replay import replay
from tests.planner.spot.test_replay import job, up


def test_spot_throughout_costs_spot_and_one_restart() -> None:
    assert offline_optimum(job(), up("1" * 40)) == pytest.approx(2.2)


def test_no_spot_at_all_costs_on_demand_and_one_restart() -> None:
    assert offline_optimum(job(), up("0" * 40)) == pytest.approx(2.2 * 4.0)


def test_a_deadline_out_of_reach_has_no_cost() -> None:
    assert offline_optimum(job(deadline_hours=2.1), up("0" * 40)) == np.inf


def test_it_skips_spot_that_does_not_outlast_its_restart() -> None:
    short = up("110" * 13 + "0")
    assert offline_optimum(job(), short) == pytest.approx(2.2 * 4.0)


def test_it_moves_when_that_pays_and_not_when_egress_eats_it() -> None:
    seen = up("1" * 20 + "0" * 20, "0" * 40, "0" * 25 + "1" * 15)
    prices = np.array([[3.0], [3.0], [0.5]]) * np.ones((3, 40))
    near = offline_optimum(job(3, egress_usd=0.0), seen, prices)
    assert near == pytest.approx(
        (0.7 + 0.2) * 3.0 + 1.5 * 0.5
    )  # 1.3 h of work fit into the cheap zone's 1.5 h
    far = offline_optimum(job(3, egress_usd=10.0), seen, prices)
    # on-demand leaves the checkpoint in no region, so the cheap zone's start moves nothing
    assert far == pytest.approx((0.7 + 0.2) * 4.0 + 1.5 * 0.5)


class Sequence:
    def __init__(self, actions: tuple[Action, ...]) -> None:
        self.actions, self.tick = actions, -1

    def decide(self, _state: JobState) -> Action:
        self.tick += 1
        return self.actions[self.tick]


@draws(15)
@given(
    st.lists(st.booleans(), min_size=6, max_size=6),
    st.lists(st.sampled_from([0.5, 1.0, 3.0, 9.0]), min_size=6, max_size=6),
    st.sampled_from([0.0, 0.1, 0.2]),
)
def test_it_is_the_least_of_all_sequences_of_actions(
    seen: list[bool], prices: list[float], restart: float
) -> None:
    made: SpotJob = job(work_hours=0.2, deadline_hours=0.6, restart_hours=restart)
    choices = (Action("idle"), Action("spot", "z0"), Action("on_demand"))
    costs = [
        result.cost_usd
        for actions in itertools.product(choices, repeat=6)
        if (result := replay(made, Sequence(actions), [seen], [prices])).finished
    ]
    assert offline_optimum(made, [seen], [prices]) == pytest.approx(min(costs))


@draws(30)
@given(st.data())
def test_more_spot_never_costs_more(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    zones = data.draw(st.integers(1, 3))
    restart = data.draw(st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.4]))
    made = job(zones, restart_hours=restart)
    some = rng.random((zones, 40)) < 0.6
    more = some | (rng.random((zones, 40)) < 0.3)
    assert offline_optimum(made, more) <= offline_optimum(made, some) + 1e-9
