"""Whole runs: what they take beyond their steps, and how families are left out."""

from __future__ import annotations

import pytest

from benchmarks.rows import read_csv
from benchmarks.whole_runs import (
    ELAPSED,
    OTHERS,
    RUNS,
    Run,
    assumed_from,
    families_left_out,
    predict_runs,
    summary,
    usual_ratio,
    usual_spread,
)
from planner.asked.assumptions import load_assumptions
from planner.estimation.values import Interval, RunTotals


def run(family: str, published: float, predicted: float = 100.0) -> Run:
    wall = Interval(predicted, predicted / 1.1, predicted * 1.1)
    totals = RunTotals(1e20, 1, predicted, 0.0, 0.0, 0.0, 0.0, wall, Interval(1.0, 0.8, 1.0), 0.0, 1.0)
    return Run("a run", family, "wall", published, totals, totals, None)


def test_a_family_counts_once_however_many_runs_it_publishes() -> None:
    many = [run("large", 200.0) for _ in range(9)]
    assert usual_ratio([*many, run("b", 110.0), run("c", 120.0)]) == pytest.approx(1.2)


def test_the_spread_is_what_the_interval_of_steps_does_not_hold() -> None:
    runs = [run("a", 100.0), run("b", 100.0), run("c", 105.0), run("d", 95.0), run("e", 105.0)]
    assert usual_spread(runs, 1.0) == 0.0
    assert usual_spread([*runs, run("f", 300.0), run("g", 300.0)], 1.0) > 0.5


def test_a_family_is_scored_with_the_others_alone() -> None:
    # Each family takes twice or once its steps: with the ratio of the other, one is twice too long, one half as long.
    figures = families_left_out([run("a", 200.0), run("b", 100.0)])
    assert figures["mape"] == pytest.approx(75.0)
    assert figures["n"] == 2


def test_other_runs_are_not_those_that_the_ratio_comes_from_and_stay_as_near_as_the_page_states() -> None:
    rows = read_csv(OTHERS)
    assert not {row["run"] for row in rows} & {row["run"] for row in read_csv(RUNS)}
    assert all(row["read_from"] and row["confidence"] in ("read", "recalled") for row in rows)
    runs, left_out = predict_runs(rows)
    assert not left_out
    figures = summary([one for one in runs if one.kind in ELAPSED])
    assert figures["n"] >= 25
    assert figures["median"] < 33.0
    assert 0.85 < figures["bias"] < 1.1
    assert 0.7 <= figures["held"] <= 0.93


def test_what_plans_assume_beside_the_steps_is_what_these_runs_took() -> None:
    """To the digits that planner/data/assumptions.csv gives."""
    assume = load_assumptions()
    runs, _ = predict_runs(read_csv(RUNS))
    beside, spread = assumed_from([one for one in runs if one.kind in ELAPSED])
    assert beside == pytest.approx(assume.beside_steps_ratio, abs=0.005)
    assert spread == pytest.approx(assume.whole_run_log_sd, abs=0.005)


def test_naming_the_software_brings_runs_that_no_constant_comes_from_nearer() -> None:
    rows = read_csv(OTHERS)
    assert sum(bool(row["stack"]) for row in rows) >= 10
    open_, stated = (
        summary([one for one in predict_runs(rows, stated_software=named)[0] if one.kind in ELAPSED])
        for named in (False, True)
    )
    assert stated["n"] == open_["n"]
    assert stated["median"] <= open_["median"]
    assert stated["mape"] < open_["mape"] - 3.0
