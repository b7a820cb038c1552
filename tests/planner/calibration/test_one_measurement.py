"""The benchmark of one measurement: what it must report on made-up residuals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.one_measurement import after_one_measurement, fit_prior, groups_of, make_pairs, write_prior
from planner.calibration.kernel import DATA_FILE, load_prior
from planner.performance.spec import ModelFamily, ModelSpec, TrainingSpec


def case(source: str, accelerators: int, model: str = "m", batch: int = 64) -> Any:
    return SimpleNamespace(
        source=source, group=source, model=ModelSpec(model, ModelFamily.TRANSFORMER, 1e9), generation="ampere",
        kind="transformer", layout={"tp": 1}, ep=1, training=TrainingSpec(batch, 2048, "bf16"),
        accelerators=accelerators,
        hardware={"accelerator_memory_gib": 80.0, "memory_gb_per_s": 2039.0},
    )  # fmt: skip


def scored(cases: list[Any], log_error: list[float]) -> Any:
    measured = np.full(len(cases), 100.0)
    return SimpleNamespace(
        cases=cases,
        measured=measured,
        predicted=measured * np.exp(log_error),
        spread=np.full(len(cases), 0.3),
    )


def test_a_bias_that_all_runs_share_goes_away() -> None:
    cases = [case("a", n) for n in (8, 16, 32)]
    found = after_one_measurement(scored(cases, [0.3, 0.3, 0.3]))
    assert found["before"]["mape"] == pytest.approx(100 * (np.exp(0.3) - 1))
    assert found["plain multiplier"]["mape"] == pytest.approx(0.0)
    assert found["after"]["mape"] < 0.5 * found["before"]["mape"]
    assert found["nearest"]["mape"] <= found["after"]["mape"]
    assert found["interval coverage"] == 1.0


def test_exact_predictions_stay_exact_and_single_rows_are_no_group() -> None:
    cases = [case("a", 8), case("a", 16), case("b", 8), case("c", 8, model="other")]
    assert len(groups_of(cases)) == 1
    found = after_one_measurement(scored(cases, [0.0, 0.0, 0.5, 0.5]))
    assert (found["after"]["n"], found["after by row"]["n"]) == (1, 2)
    assert found["after"]["mape"] == pytest.approx(0.0)
    assert after_one_measurement(scored(cases[2:], [0.1, 0.1]))["after"] == {"n": 0}


def test_the_fit_trusts_what_is_shared_and_distrusts_what_is_not() -> None:
    rng = np.random.default_rng(0)
    cases = [case(f"s{k}", n, batch=n * 8) for k in range(20) for n in (1, 2, 4, 8)]
    shared = scored(cases, np.repeat(rng.normal(0, 0.3, 20), 4).tolist())
    noise = scored(cases, rng.normal(0, 0.3, 80).tolist())
    start = {**load_prior(), "between_points": 0.3}
    trusting = fit_prior(shared, make_pairs(cases), start)["between_points"]
    doubting = fit_prior(noise, make_pairs(cases), start)["between_points"]
    assert trusting < 0.05 < 0.5 < doubting


def test_figures_are_rewritten_in_place_within_their_bounds(tmp_path: Any) -> None:
    path = tmp_path / "calibration.csv"
    path.write_text(DATA_FILE.read_text())
    write_prior({**load_prior(), "between_points": 1e-9, "decay.sequence": 0.123, "run_to_run": 9.0}, path)
    load_prior.cache_clear()
    found = load_prior(path)
    assert (found["between_points"], found["decay.sequence"]) == (0.001, 0.123)
    assert found["run_to_run"] == load_prior()["run_to_run"]
    assert path.read_text().count("\n") == DATA_FILE.read_text().count("\n")
