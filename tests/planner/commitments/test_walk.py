"""Scenarios of a bill: what its history says of changes, and what chance may have put there."""

from __future__ import annotations

import numpy as np
import pytest

from catalogs.tables.table import Floats
from planner.commitments.from_bill import RISK, SELDOM_LOSES, scenario_size
from planner.commitments.walk import BLOCK_DAYS, draw_year, moves_of

BLOCKS = 14


def daily(*levels: list[float]) -> Floats:
    """Machines per day of pools whose blocks of 28 days have these levels."""
    return np.repeat(np.array(levels).T, BLOCK_DAYS, axis=0)


def test_a_drift_that_chance_explains_is_none_and_a_steady_one_is_kept() -> None:
    rng = np.random.default_rng(3)
    steady = moves_of(daily(*(list(10.0 * 1.03 ** np.arange(BLOCKS)) for _ in range(3))))
    assert np.log(steady.ratio) == pytest.approx(np.full((BLOCKS - 1, 3), np.log(1.03)), abs=1e-9)
    logs = np.cumsum(rng.normal(0.0, 0.2, (3, BLOCKS)), axis=1)
    logs -= np.linspace(0.0, 1.0, BLOCKS) * (
        logs[:, -1:] - logs[:, :1] - 0.1
    )  # ends where it began, plus 0.1
    noisy = moves_of(daily(*(list(50.0 * np.exp(one)) for one in logs)))
    assert np.log(noisy.ratio).mean() == pytest.approx(0.0, abs=1e-9)
    assert np.log(noisy.ratio).std() > 0.1  # changes stay, only their direction is not believed


@pytest.mark.parametrize("levels", [[10.0, 16.0], [10.0, 16.0, 20.0], [10.0, 16.0, 20.0, 26.0]])
def test_a_few_blocks_tell_of_no_direction(levels: list[float]) -> None:
    """One ratio of 1.6 continued for a year would be 4,500 times the use of today."""
    moves = moves_of(daily(levels))
    logs = np.log(moves.ratio[np.isfinite(moves.ratio)])
    assert len(logs) == len(levels) - 1
    assert logs.mean() == pytest.approx(0.0, abs=1e-12)
    futures = draw_year(daily(levels), 24, count=60, rows=30, seed=2)
    mean = np.mean([one.demand.mean() for one in futures.blocks])
    assert mean == pytest.approx(levels[-1], rel=0.25)  # some end, which makes less of it


def test_four_moves_that_agree_tell_of_one() -> None:
    levels = [10.0, 12.0, 14.5, 17.3, 20.8]
    mean = float(np.diff(np.log(levels)).mean())
    assert np.log(moves_of(daily(levels)).ratio).mean() == pytest.approx(mean, rel=0.01)


def test_the_drift_is_never_turned_round_nor_raised() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        logs = np.cumsum(rng.normal(rng.normal(0.0, 0.05), 0.1, (4, BLOCKS)), axis=1)
        before = float(np.diff(logs, axis=1).mean())
        after = float(np.log(moves_of(daily(*(list(50.0 * np.exp(one)) for one in logs))).ratio).mean())
        assert after * np.sign(before) >= -1e-12
        assert abs(after) <= abs(before) + 1e-9


def test_blocks_in_which_use_began_or_ended_are_no_change_of_the_level() -> None:
    whole = [20.0] * BLOCKS
    began = [0.0] * 5 + [8.0] + [20.0] * (BLOCKS - 6)
    ended = [20.0] * 6 + [9.0] + [0.0] * (BLOCKS - 7)
    moves = moves_of(daily(whole, began, ended))
    assert np.nanmin(moves.ratio) == np.nanmax(moves.ratio) == 1.0
    assert np.isfinite(moves.ratio).sum(axis=0).tolist() == [13, 7, 5]
    assert moves.ended == 1
    assert moves.level[2] == 0.0


def test_the_chance_of_an_end_is_as_uncertain_as_the_history_leaves_it() -> None:
    """Beta(1/2, N + 14): its mean over scenarios is (1/2) / (N + 14.5), and pools of a scenario share it."""
    use = daily(*([30.0] * BLOCKS for _ in range(20)))
    futures = draw_year(use, 24, count=400, rows=30, seed=5)
    alive = np.stack([one.demand[-1] > 0 for one in futures.blocks])
    lived = 20 * (BLOCKS - 1)
    went_on = np.mean(
        [(1 - np.random.default_rng([6, n]).beta(0.5, lived + 14)) ** 13 for n in range(20_000)]
    )
    assert alive.mean() == pytest.approx(went_on, abs=0.01)
    by_scenario = alive.mean(axis=1)
    assert by_scenario.var() > 1.5 * went_on * (1 - went_on) / 20  # more than independent ends would give


def test_steady_use_is_expected_to_last_longer_the_longer_it_was_seen() -> None:
    def share(days: int) -> float:
        futures = draw_year(np.full((days, 1), 30.0), 24, count=400, rows=30, seed=5)
        return float(np.mean([one.demand.mean() for one in futures.blocks])) / 30.0

    assert 0.8 < share(20) < share(92) < share(390) < 0.95


def test_a_choice_by_the_chance_of_a_loss_sees_more_scenarios_of_fewer_steps() -> None:
    for hours in (1, 24):
        plain, loss = scenario_size(RISK, hours), scenario_size(SELDOM_LOSES, hours)
        assert loss[0] >= 3 * plain[0]
        assert loss[0] * loss[1] <= 1.2 * plain[0] * plain[1]
