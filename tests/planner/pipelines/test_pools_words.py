"""The first line of `planner pools` does not sell two pools where one cluster costs less."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from planner.pipelines.pools_report import _against, _beside


def found(**more: Any) -> Any:
    between = (Decimal(900), Decimal(1100))
    pair = SimpleNamespace(
        cost_usd=Decimal(1000), between_usd=between, colocated=None, same_ways=None, divided=None, **more
    )
    return cast("Any", pair)


@pytest.mark.parametrize(("usd", "cheaper"), [("137.31", True), ("1000", False), ("1040", False)])
def test_one_cluster_that_is_cheaper_is_in_the_headline(usd: str, cheaper: bool) -> None:
    pair = found()
    pair.colocated = SimpleNamespace(cost_usd=Decimal(usd), hours=20.0)
    assert ("one colocated cluster is cheaper: $137," in _beside(pair)) is cheaper
    assert _beside(found()) == ""


def test_the_cheaper_of_two_single_clusters_is_in_the_headline() -> None:
    pair = found()
    pair.colocated = SimpleNamespace(cost_usd=Decimal(490), hours=47.5)
    pair.divided = SimpleNamespace(cost_usd=Decimal(360), hours=40.0)
    assert "; one cluster divided between training and generation is cheaper: $360," in _beside(pair)
    pair.divided.cost_usd = Decimal(500)
    assert "; one colocated cluster is cheaper: $490," in _beside(pair)


def test_costs_are_compared_in_words() -> None:
    assert _against(found(), Decimal(137)) == "86 % less than the two pools"
    assert _against(found(), Decimal(1040)) == "4 % more than the two pools"
    assert _against(found(), Decimal(1001)) == "as much as the two pools"
