"""Prices and plans that anybody can check hold on the bundled catalog."""

from __future__ import annotations

from benchmarks.sanity_plans import checks


def test_prices_and_plans_hold() -> None:
    assert [item for item in checks() if not item.holds] == []
