"""The correlation of both hazards is found where it is, and not where it is not."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.spot_pace import Levels, fitted


def made(correlation: float) -> Levels:
    """Levels of 60 pools in three windows each, with an effect of the pool on both sides."""
    rng = np.random.default_rng(5)
    pools, windows = 60, 3
    effect = rng.multivariate_normal([0, 0], 0.25 * np.asarray([[1, correlation], [correlation, 1]]), pools)
    n = pools * windows
    level = np.repeat(effect, windows, axis=0) + rng.normal(0, 0.2, (n, 2))
    pool = np.kron(np.eye(pools), np.ones((windows, windows)))
    return Levels(
        level.T.ravel(), np.full(2 * n, 0.04), (np.eye(n), pool), np.kron(np.eye(2), np.ones((n, 1)))
    )


@pytest.mark.parametrize(("correlation", "gain"), [(0.8, True), (0.0, False)])
def test_sides_that_differ_together_are_told_from_sides_that_do_not(correlation: float, gain: bool) -> None:
    levels = made(correlation)
    apart, log_sd, _ = fitted(levels, None, np.full((2, 2), np.log(0.25)))
    together, _, found = fitted(levels, 1, log_sd)
    assert np.exp(log_sd[1]) == pytest.approx([0.5, 0.5], abs=0.12)
    assert found == pytest.approx(correlation, abs=0.25)
    assert (apart - together > 5.0) is gain
