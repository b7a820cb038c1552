"""Widths that follow the week before are told from one width, on blocks of dates left out."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.price_phases import left_out

PHASES = np.repeat([0.4, 0.2, 0.1], 6)


def test_one_width_covers_phases_unevenly_and_the_week_before_evens_them() -> None:
    rng = np.random.default_rng(0)
    after = [np.abs(rng.normal(0.0, spread, 800)) for spread in PHASES]
    one = [covered for covered, _ in left_out(after, PHASES / 2.0, 0.0)]
    assert one[0] < 0.6 and one[2] > 0.95
    for power in (1.0, None):
        found = left_out(after, PHASES / 2.0, power)
        assert [covered for covered, _ in found] == pytest.approx([0.81] * 3, abs=0.03)
        assert [grown for _, grown in found] == pytest.approx([1.0] * 3, abs=0.1)
