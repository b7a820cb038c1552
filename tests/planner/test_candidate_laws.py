"""Laws of candidates find what breaks them: a model that gains memory, speed or money out of nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.planner import candidate_laws
from tests.planner.candidate_laws import memory_headroom, roofline, transfer_prices
from tests.planner.real_catalog import Drawn, draw_workload


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return Drawn(5, draw_workload(5))


def test_a_layout_that_needs_more_on_more_nodes_is_found(
    drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = candidate_laws.estimate_layouts

    def wrong(model: Any, training: Any, hardware: Any, layouts: Any) -> Any:
        table = real(model, training, hardware, layouts)
        return table.with_columns(memory_needed_gib=table["memory_needed_gib"] * layouts.nodes)

    assert memory_headroom(drawn.context, drawn.shapes) == []
    shapes = drawn.shapes
    named = shapes.with_columns(memory_needed_gib=shapes["memory_needed_gib"] * shapes["nodes"])
    monkeypatch.setattr(candidate_laws, "estimate_layouts", wrong)
    assert "on twice the nodes" in memory_headroom(drawn.context, named)[0]


def test_a_cluster_above_its_peak_is_found(drawn: Drawn) -> None:
    assert roofline(drawn.context, drawn.shapes) == []
    fast = drawn.shapes.with_columns(samples_per_s=drawn.shapes["samples_per_s"] * 100)
    assert "FLOP/s" in roofline(drawn.context, fast)[0]


def test_a_transfer_at_another_price_is_found(drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    real = candidate_laws.moves_of
    dice = np.random.default_rng(5)
    assert transfer_prices(drawn.context, dice) == []
    monkeypatch.setattr(
        candidate_laws, "moves_of", lambda *asked: replace(found := real(*asked), usd=found.usd * 1.001)
    )
    assert "the list" in transfer_prices(drawn.context, dice)[0]
