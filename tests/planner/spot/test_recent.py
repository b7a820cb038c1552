"""Levels of the hazards after the last hours: the direction follows what was seen, and no history says nothing."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.spot.hazards import load_hazards
from planner.spot.policy.recent import recent_levels
from planner.spot.policy.survival import SurvivalPolicy
from tests.planner.spot.test_replay import job

TABLE = load_hazards().table_for(job().zones[0])


def test_no_history_moves_nothing() -> None:
    assert recent_levels(TABLE, np.zeros(0, dtype=bool), 0.1) == (0.0, 0.0)


def test_a_calm_day_lowers_the_hazard_and_a_wild_one_raises_it() -> None:
    calm, _ = recent_levels(TABLE, np.ones(240, dtype=bool), 0.1)
    wild, back = recent_levels(TABLE, np.arange(240) % 2 == 0, 0.1)
    assert calm < 0 < wild
    assert back > 0
    _, long_gone = recent_levels(TABLE, np.arange(240) < 5, 0.1)
    assert long_gone < 0


@given(st.integers(0, 10**6), st.floats(0.02, 0.9))
def test_a_level_stays_within_what_the_table_thinks_possible(seed: int, change: float) -> None:
    seen = np.cumsum(np.random.default_rng(seed).random(240) < change) % 2 == 0
    for level, sd in zip(
        recent_levels(TABLE, seen, 0.1), (TABLE.frailty_sd_down, TABLE.frailty_sd_up), strict=True
    ):
        assert abs(level) <= 3.6 * sd


def test_a_policy_that_saw_a_calm_day_expects_longer_spells() -> None:
    this = job()
    policies = []
    for seen in (np.ones(240, dtype=bool), np.arange(240) % 2 == 0):
        fields = {name: getattr(this, name) for name in this.__dataclass_fields__}
        one = type(this)(**{**fields, "history": {this.zones[0].name: seen}})
        policies.append(SurvivalPolicy(one, {this.zones[0].name: TABLE}))
    calm, wild = (policy.chains[0].leave_up for policy in policies)
    assert (calm < wild).all()
