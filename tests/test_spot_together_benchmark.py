"""`benchmarks.spot_together`: correlation of zones at several lags, against series whose correlation is known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.spot_together import LAGS_HOURS, lag_correlation


def test_lag_correlation_of_known_series() -> None:
    """A zone that repeats another one two hours later correlates with it wholly at that lag, and not at others."""
    rng = np.random.default_rng(0)
    first = rng.random(9600) < 0.5
    up = np.stack([first, np.roll(first, 20), rng.random(9600) < 0.5])[None]
    at_two = LAGS_HOURS.index(2.0)
    found = lag_correlation(up, [(0, 1)])
    assert found[at_two] == pytest.approx(1.0 - 20 / 960, abs=0.01)
    assert np.abs(np.delete(found, at_two)).max() < 0.05
    assert np.abs(lag_correlation(up, [(0, 2), (1, 2)])).max() < 0.05
    assert lag_correlation(up, [(0, 0)])[0] == pytest.approx(1.0)


def test_levels_of_days_have_no_part() -> None:
    """Zones that share only how much they are up in four days do not correlate."""
    rng = np.random.default_rng(1)
    share = np.repeat(np.tile([0.2, 0.8], 20), 960)
    up = (rng.random((2, len(share))) < share)[None]
    assert np.corrcoef(up[0].astype(float))[0, 1] > 0.3
    assert abs(lag_correlation(up, [(0, 1)])[0]) < 0.02
