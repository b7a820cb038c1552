"""Regret of the picked layout on hand-made grids."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.accelerators import load_devices
from benchmarks.layout_regret import grids, layout_regret, regret_lines, regrets
from benchmarks.measured import Case, load_cases
from benchmarks.throughput import Scored
from tests.planner.performance.test_performance_benchmark import ROW


def scored(rows: list[tuple[dict[str, str], float, float]], memory_gib: float = 10.0) -> Scored:
    """Rows as (change to the usual row, measured, predicted)."""
    cases: list[Case] = []
    for number, (change, measured, _) in enumerate(rows):
        row = {**ROW, "row_id": str(number), "value": str(measured), "grad_accum": "", **change}
        made, skipped = load_cases([row], load_devices())
        assert not skipped
        cases += made
    predicted = np.asarray([value for _, _, value in rows])
    size = len(rows)
    return Scored(cases, predicted, np.full(size, memory_gib), np.zeros(size))


def layout(tp: int, dp: int) -> dict[str, str]:
    return {"tp": str(tp), "dp": str(dp), "zero_stage": "1"}


def test_regret_is_what_the_pick_loses() -> None:
    rows = scored([(layout(1, 8), 100.0, 1.0), (layout(2, 4), 80.0, 3.0), (layout(4, 2), 50.0, 2.0)])
    report = layout_regret(rows)["all grids"]
    assert (report["grids"], report["rows"]) == (1, 3)
    assert report["mean"] == pytest.approx(25.0)
    assert report["best picked"] == 0.0
    assert report["at random"] == pytest.approx((0.0 + 25.0 + 100.0) / 3)


def test_the_right_pick_costs_nothing() -> None:
    rows = scored([(layout(1, 8), 100.0, 9.0), (layout(2, 4), 80.0, 3.0)])
    report = layout_regret(rows)
    assert report["all grids"]["mean"] == 0.0 and report["all grids"]["best picked"] == 1.0
    assert any("layout regret" in line for line in regret_lines(report))


def test_other_batches_machines_and_single_layouts_are_no_grid() -> None:
    rows = scored([(layout(1, 8), 100.0, 1.0), ({**layout(2, 4), "global_batch": "64"}, 80.0, 3.0),
                   ({**layout(2, 4), "gpu": "H100-SXM"}, 90.0, 3.0), (layout(1, 8), 99.0, 1.0)])  # fmt: skip
    assert grids(rows) == []
    assert layout_regret(rows)["all grids"] == {"grids": 0, "nothing fits": 0}


def test_recipes_of_one_class_of_precision_are_no_grid() -> None:
    rows = scored([({**layout(1, 8), "gpu": "H100-SXM", "precision": "fp8"}, 100.0, 1.0),
                   ({**layout(2, 4), "gpu": "H100-SXM", "precision": "mxfp8"}, 80.0, 3.0)])  # fmt: skip
    assert {case.training.precision for case in rows.cases} == {"fp8"}
    assert grids(rows) == []


def test_the_batch_may_be_chosen_too() -> None:
    rows = scored([(layout(1, 8), 100.0, 1.0), ({**layout(2, 4), "global_batch": "64"}, 80.0, 3.0)])
    assert layout_regret(rows)["batch free: all grids"]["mean"] == pytest.approx(25.0)


def test_repeated_measurements_of_a_layout_count_once_by_their_median() -> None:
    rows = scored([(layout(1, 8), 60.0, 5.0), (layout(1, 8), 100.0, 5.0), (layout(2, 4), 160.0, 3.0)])
    assert layout_regret(rows)["all grids"]["mean"] == pytest.approx(100.0)


def test_layouts_that_should_not_fit_are_not_picked() -> None:
    rows = scored([(layout(1, 8), 100.0, 9.0), (layout(2, 4), 80.0, 3.0)])
    large = replace(rows, memory_gib=np.asarray([500.0, 10.0]))
    report = layout_regret(large)
    assert report["all grids"]["mean"] == 0.0
    assert report["all that should fit"]["mean"] == pytest.approx(25.0)
    nothing = layout_regret(replace(rows, memory_gib=np.full(2, 500.0)))
    assert nothing["all that should fit"] == {"grids": 0, "nothing fits": 1}
    assert "lets no layout run: 1" in regret_lines(nothing)[-1]


def test_a_grid_without_usable_rows_is_counted() -> None:
    rows = scored([(layout(1, 8), 100.0, 9.0), (layout(2, 4), 80.0, 3.0)])
    report = regrets(rows, np.asarray([False, True]), grids(rows))
    assert report["grids"] == 1 and report["nothing fits"] == 0
