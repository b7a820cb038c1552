"""Goodput of whole runs: it falls with the accelerators, and large sites are as good as such operators report."""

from __future__ import annotations

import pytest

from planner.performance.goodput import TYPICAL, estimate_goodput, kept_ratio, load_site

MONTH = 720.0


def test_goodput_falls_with_the_accelerators_and_lies_between_its_bounds() -> None:
    counts = [8 * 2**power for power in range(15)]
    found = [estimate_goodput(count, MONTH) for count in counts]
    for name in ("kept_ratio", "low_ratio", "high_ratio"):
        values = [getattr(one, name) for one in found]
        assert values == sorted(values, reverse=True)
    usual = 1.0 - load_site(TYPICAL).other_loss_ratio  # what other losses leave at a typical site
    assert all(0.0 < one.low_ratio < one.kept_ratio < min(one.high_ratio, 1.0) for one in found)
    assert all(one.high_ratio * usual < 1.0 for one in found)


@pytest.mark.parametrize("count", [8.0, 512.0, 1024.0])
def test_up_to_a_thousand_accelerators_a_site_is_typical(count: float) -> None:
    assert estimate_goodput(count, MONTH).kept_ratio == kept_ratio(load_site(TYPICAL), count)


@pytest.mark.parametrize("count", [9600.0, 12288.0, 16384.0])
def test_sites_of_many_thousands_are_not_far_below_what_their_operators_report(count: float) -> None:
    # ByteRobust 0.97, MegaScale and Llama 3 over 0.90; a site that repairs as smaller ones do would reach 0.72 to 0.78.
    found = estimate_goodput(count, MONTH)
    assert 0.89 < found.kept_ratio < 1.0
    assert found.kept_ratio > kept_ratio(load_site(TYPICAL), count)


def test_the_worst_published_large_run_lies_inside() -> None:
    # PaLM: two thirds of its wall hours on 6,144 chips were steps that count; a typical site has other losses of 0.1.
    assert estimate_goodput(6144.0, MONTH).low_ratio * 0.9 < 0.67
