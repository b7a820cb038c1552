"""Intervals are widened as much as few windows of dates ask for."""

from __future__ import annotations

import numpy as np
import pytest

from tools.fit_windows import WIDEST, factor_for, windows


def test_windows_lie_a_horizon_apart() -> None:
    assert windows([10], 7) == 1
    assert windows([10, 16], 7) == 1
    assert windows([17, 10, 12], 7) == 2
    assert windows(range(0, 120, 7), 91) == 2


def test_no_factor_narrows_and_none_is_needed_where_enough_is_held() -> None:
    assert factor_for(lambda factor: 0.9 * min(factor, 1.0), 0.81, 17) == 1.0


def test_the_factor_holds_what_the_windows_ask_for_and_little_more() -> None:
    def covered(factor: float) -> float:
        return min(0.6 * factor, 1.0)

    factor = factor_for(covered, 0.81, 9)
    assert 0.9 <= covered(factor) < 0.91
    assert factor_for(covered, 0.81, 6) > factor
    assert factor_for(lambda _: 0.5, 0.81, 9) == WIDEST


def test_too_few_windows_are_named() -> None:
    with pytest.raises(ValueError, match="4 windows are too few to hold 81 %"):
        factor_for(lambda _: 1.0, 0.81, 4)


def test_what_is_left_out_is_held_as_often_as_wanted() -> None:
    """Days whose moves are normal, few of them seen: intervals fitted to those hold too little, widened ones enough."""
    rng, n, plain, wide = np.random.default_rng(1), 9, [], []
    for _ in range(400):
        seen = np.abs(rng.standard_normal(n))
        half = np.sort(seen)[round(0.8 * n) - 1]
        factor = factor_for(lambda f, seen=seen, half=half: float(np.mean(seen <= f * half)), 0.8, n)
        later = np.abs(rng.standard_normal(50))
        plain.append(np.mean(later <= half))
        wide.append(np.mean(later <= factor * half))
    assert np.mean(plain) < 0.78
    assert 0.79 < np.mean(wide) < 0.84
