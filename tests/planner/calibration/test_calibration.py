"""Laws of calibration: nothing changes without a surprise, layouts keep their order, files survive damage."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.tables.table import Table
from planner.calibration.correction import Correction, build_correction, hardware_table, model_key, predict
from planner.calibration.kernel import Common, Points, Posterior, correlation, load_prior, posterior
from planner.calibration.store import Calibration, file_name, load, load_all, save, to_text
from planner.errors import InputError
from planner.performance.layouts import explicit
from planner.performance.search import estimate_layouts, estimate_shapes
from planner.performance.search_table import RECOMPUTE_WORDS
from planner.performance.spec import LayoutPin, ModelFamily, ModelSpec, TrainingSpec
from tests.draws import draws
from tests.planner.performance.test_performance import A100, SMALL, machines

TRAINING = TrainingSpec(64, 2048, "bf16")
PLAIN = {
    name: None if isinstance(value, float) and math.isnan(value) else value for name, value in A100.items()
} | {"trainable": True}
PRIOR = load_prior()


def measured(ratio: float, *, nodes: int = 1, error: float = 0.03, **training: Any) -> Calibration:
    """A run of SMALL that took `ratio` times the predicted step."""
    plain = Calibration(
        SMALL, replace(TRAINING, **training), PLAIN, {"provider": "x", "instance_type": "a100", "accelerator": "a",
        "nodes": nodes}, 1.0, error, {"kind": "line", "source": "s", "steps_used": 9, "steps_dropped": 1, "mad_s": 0.1},
        "2026-11-20T12:00+00:00",
    )  # fmt: skip
    return replace(plain, step_time_s=predict(plain).step_time_s * ratio)


def correct(*found: Calibration, training: TrainingSpec = TRAINING) -> Correction:
    made = build_correction(SMALL, training, found)
    assert made is not None
    return made


def shapes(nodes: tuple[int, ...] = (1, 2, 4), training: TrainingSpec = TRAINING) -> tuple[Table, Table]:
    hardware = machines(A100)
    return estimate_shapes(SMALL, training, hardware, nodes), hardware


def half_width(table: Table) -> Any:
    return np.log(table["step_time_high_s"] / table["step_time_s"])


def test_a_measurement_equal_to_the_prediction_changes_only_the_interval() -> None:
    before, hardware = shapes()
    after = correct(measured(1.0)).apply(before, hardware)
    assert after["step_time_s"] == pytest.approx(before["step_time_s"], rel=1e-9)
    assert (half_width(after) <= half_width(before)).all()
    assert half_width(after)[0] < 0.5 * half_width(before)[0]


@draws(40)
@given(st.floats(0.75, 2.5), st.floats(0.75, 2.5))
def test_the_prediction_moves_towards_the_measurement_and_never_beyond(first: float, second: float) -> None:
    before, hardware = shapes()
    moved = [
        correct(measured(ratio)).apply(before, hardware)["step_time_s"] / before["step_time_s"]
        for ratio in sorted((first, second))
    ]
    assert (moved[0] <= moved[1] + 1e-12).all()
    for ratio, change in zip(sorted((first, second)), moved, strict=True):
        low, high = min(ratio, 1.0), max(ratio, 1.0)
        assert (change >= low - 1e-9).all() and (change <= high + 1e-9).all()


def test_the_measured_cluster_is_corrected_most_and_its_interval_is_the_measurement_s() -> None:
    before, hardware = shapes((1, 2, 4, 8))
    after = correct(measured(1.4, error=0.03)).apply(before, hardware)
    factor = after["step_time_s"] / before["step_time_s"]
    assert factor[0] == pytest.approx(1.4, rel=0.02)
    assert (np.diff(factor) < 0).all() and factor[-1] > 1.0
    assert half_width(after)[0] == pytest.approx(0.03 * 1.28, rel=0.1)
    assert (np.diff(half_width(after)) >= 0).all() and half_width(after)[1] > half_width(after)[0]


def test_more_measurements_of_one_point_narrow_the_interval() -> None:
    before, hardware = shapes((1,))
    one = correct(measured(1.2)).apply(before, hardware)
    two = correct(measured(1.2), measured(1.2, error=0.031)).apply(before, hardware)
    assert half_width(two)[0] < half_width(one)[0]


def test_other_models_say_little_and_other_stacks_and_families_nothing() -> None:
    before, hardware = shapes((1,))
    other = replace(measured(1.5), model=replace(SMALL, layers=SMALL.layers + 4 if SMALL.layers else 4))
    other = replace(other, step_time_s=predict(other).step_time_s * 1.5)
    own = correct(measured(1.5)).apply(before, hardware)["step_time_s"] / before["step_time_s"]
    weak = correct(other).apply(before, hardware)["step_time_s"] / before["step_time_s"]
    assert 1.0 <= weak[0] < own[0]
    assert "another model" in correct(other).describe("ampere")
    assert build_correction(SMALL, replace(TRAINING, stack="tuned"), [measured(1.5)]) is None
    assert correct(measured(1.5)).describe("hopper") == ""


def test_flops_given_by_hand_are_corrected_at_every_size_and_on_every_generation() -> None:
    hardware = machines(A100, {**A100, "generation": "hopper"})
    before: dict[float, Table] = {}
    change: dict[float, Any] = {}
    for within in (1.0, 3.0):
        model = ModelSpec(
            "net",
            ModelFamily.CNN,
            5e6,
            forward_flops_per_sample=4e10,
            activations_per_sample=1e8,
            flops_within=within,
        )
        training = TrainingSpec(512, 1, "fp32")
        item = replace(measured(1.0), model=model, training=training)
        item = replace(item, step_time_s=predict(item).step_time_s * 2.0)
        made = build_correction(model, training, [item])
        assert made is not None
        before[within] = estimate_shapes(model, training, hardware, (1, 8))
        after = made.apply(before[within], hardware)
        change[within] = after["step_time_s"] / before[within]["step_time_s"]
        narrow = half_width(after) / half_width(before[within])
        assert narrow[0] < 0.2
        assert made.describe("hopper").startswith("measured on ampere only") == (within > 1.0)
    known, given_by_hand = change[1.0], change[3.0]
    assert known[0] == pytest.approx(given_by_hand[0], rel=0.03)  # the measured point
    assert known[1] < given_by_hand[1] < 2.0  # eight nodes
    assert known[2:] == pytest.approx(1.0)  # another generation: only the FLOPs tell anything of it
    assert (given_by_hand[2:] > 1.5).all() and (narrow[2:] < 1.0).all()


def test_the_name_of_a_model_does_not_count_but_its_sizes_do() -> None:
    assert model_key(SMALL, TRAINING) == model_key(replace(SMALL, name="other"), TRAINING)
    assert model_key(SMALL, TRAINING) != model_key(replace(SMALL, hidden=64), TRAINING)
    assert model_key(SMALL, TRAINING) != model_key(SMALL, replace(TRAINING, lora_rank=16))


@given(st.floats(0.2, 5.0))
@draws(20)
def test_layouts_keep_their_order(ratio: float) -> None:
    rows = [
        {"tp": tp, "micro_batch": mb, "recompute": r} for tp in (1, 2, 4) for mb in (1, 2, 4) for r in (0, 2)
    ]
    hardware = machines(A100)
    table = estimate_layouts(SMALL, TRAINING, hardware, explicit(8, TRAINING, 24, 1, rows))
    after = correct(measured(max(ratio, 0.8))).apply(table, hardware)
    order, moved = np.argsort(table["step_time_s"], kind="stable"), after["step_time_s"]
    assert (np.diff(moved[order]) >= -1e-12).all()
    assert set(table["recompute"]) <= set(RECOMPUTE_WORDS)


def test_a_correction_stops_at_the_roofline() -> None:
    before, hardware = shapes()
    after = correct(measured(0.01)).apply(before, hardware)
    assert (after["mfu"] <= 1.0 + 1e-9).all()
    assert (after["step_time_low_s"] <= after["step_time_s"]).all()
    assert after["mfu"][0] == pytest.approx(1.0)


def test_parts_still_sum_to_the_step_and_rows_that_do_not_fit_stay_unknown() -> None:
    hardware = machines(A100, {**A100, "accelerator_memory_gib": 0.5})
    before = estimate_shapes(SMALL, TRAINING, hardware, (1,))
    after = correct(measured(1.3)).apply(before, hardware)
    parts = [name for name in after if name.endswith("_s") and not name.startswith(("step_", "samples_"))]
    assert sum(after[name][0] for name in parts) == pytest.approx(after["step_time_s"][0])
    assert np.isnan(after["step_time_s"][1]) and after["reason"][1] == "out_of_memory"


def points(*rows: tuple[float, float, str]) -> Points:
    accelerators, units, model = zip(*rows, strict=True)
    size = len(rows)
    return Points(
        np.asarray(accelerators), np.asarray(units), np.full(size, 2048.0), np.full(size, 1555.0),
        np.asarray(model, dtype=object), np.full(size, "bf16", dtype=object),
    )  # fmt: skip


ROW = st.tuples(st.floats(1, 4096), st.floats(64, 1e6), st.sampled_from(["a", "b"]))


@given(st.lists(ROW, min_size=2, max_size=8))
def test_the_correlation_is_one_at_the_same_point_symmetric_and_positive_definite(
    rows: list[tuple[float, float, str]],
) -> None:
    found = correlation(points(*rows), points(*rows), PRIOR)
    assert np.diag(found) == pytest.approx(1.0)
    assert found == pytest.approx(found.T)
    assert np.linalg.eigvalsh(found).min() > -1e-9
    assert (found > 0).all() and (found <= 1).all()


def told(
    rows: list[tuple[float, float, str]], target: tuple[float, float, str], error: float, shared: float = 0.0,
    elsewhere: bool = False,
) -> Posterior:  # fmt: skip
    """What runs of model `a` and others say of a target, all on one generation or the target on another."""
    size, there = len(rows), "hopper" if elsewhere else "ampere"
    common = Common(
        shared, points(*rows).model == "a", np.full(size, "ampere", dtype=object), np.full(1, there, dtype=object),
        np.full(1, 0.25),
    )  # fmt: skip
    noise, sigma = np.full(size, error), np.full(size, 0.25)
    return posterior(points(*rows), np.full(size, 0.3), noise, sigma, points(target), PRIOR, common)


@given(st.lists(ROW, min_size=1, max_size=5), ROW, st.floats(0.01, 0.2), st.floats(0.0, 0.25))
def test_an_error_that_all_points_share_moves_all_of_them_and_evidence_never_widens(
    rows: list[tuple[float, float, str]], target: tuple[float, float, str], error: float, shared: float
) -> None:
    target = (*target[:2], "a")
    for elsewhere in (False, True):
        found, fewer = (told(given, target, error, shared, elsewhere) for given in (rows, rows[:1]))
        assert 0.0 <= found.left[0] <= fewer.left[0] + 1e-9 <= 1.0 + 1e-8
    first = [(*rows[0][:2], "a")]
    here, there = (told(first, target, error, shared, elsewhere) for elsewhere in (False, True))
    assert -1e-12 <= there.log_ratio[0] <= here.log_ratio[0] + 1e-9 <= 0.3 + 1e-8
    assert there.log_ratio[0] == pytest.approx(0.3 * shared**2 / (0.25**2 + error**2))


@given(st.lists(ROW, min_size=1, max_size=5), ROW, st.floats(0.01, 0.2))
def test_evidence_never_widens_the_interval(
    rows: list[tuple[float, float, str]], target: tuple[float, float, str], error: float
) -> None:
    found, fewer = (told(given, target, error) for given in (rows, rows[:1]))
    assert 0.0 <= found.left[0] <= fewer.left[0] + 1e-9 <= 1.0 + 1e-8
    assert told(rows, target, error, elsewhere=True).log_ratio[0] == 0.0


def stored(folder: Path, ratio: float = 1.2) -> Path:
    item = measured(ratio)
    found = predict(item)
    return save(item, to_text(item, found.step_time_s, found.spread), folder / file_name(item))[0]


def test_a_calibration_survives_its_file(tmp_path: Path) -> None:
    item = load(stored(tmp_path))
    assert replace(item, path=None, error=0.03) == replace(measured(1.2), evidence=item.evidence)
    assert item.evidence["steps_used"] == 9
    assert hardware_table(item.hardware)["generation"][0] == "ampere"


def test_a_new_measurement_of_a_point_replaces_the_old_one(tmp_path: Path) -> None:
    first, second = stored(tmp_path, 1.2), stored(tmp_path, 1.3)
    assert first == second
    assert len(load_all(tmp_path)[0]) == 1


def test_a_pinned_layout_is_another_point(tmp_path: Path) -> None:
    pinned = measured(1.2, layout=LayoutPin(tensor_parallel=2))
    assert file_name(pinned) != file_name(measured(1.2))


DAMAGE = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "list": lambda text: "[]",
    "newer": lambda text: text.replace('"schema_version": 1', '"schema_version": 2'),
    "negative": lambda text: text.replace('"step_time_s": ', '"step_time_s": -', 1),
    "unknown key": lambda text: text.replace('"layers"', '"layer"'),
    "no cluster": lambda text: text.replace('"cluster"', '"clutter"'),
    "binary": lambda text: "\x00\x01",
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_files_are_left_out_and_named(tmp_path: Path, how: str) -> None:
    path = stored(tmp_path)
    good = stored(tmp_path / "x")
    (tmp_path / "good.json").write_text(good.read_text())
    path.write_text(DAMAGE[how](path.read_text()))
    found, problems = load_all(tmp_path)
    assert len(found) == 1
    assert len(problems) == 1 and path.name in problems[0] and "planner calibrate" in problems[0]
    made = build_correction(SMALL, TRAINING, found, problems)
    assert made is not None and made.warnings == tuple(problems)


def test_what_the_model_cannot_predict_is_left_out_with_a_warning() -> None:
    item = measured(1.2)
    tiny = replace(item, hardware={**item.hardware, "accelerator_memory_gib": 0.5})
    made = build_correction(SMALL, TRAINING, [tiny])
    assert made is not None and not made.generations
    assert "out_of_memory" in made.warnings[0]


def test_nothing_is_written_where_there_is_no_room(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="PLANNER_DATA_DIR"):
        save(measured(1.0), "{}", tmp_path / "file" / "x" / "a.json")


def test_the_file_holds_no_path_of_the_machine(tmp_path: Path) -> None:
    text = stored(tmp_path).read_text()
    assert str(tmp_path) not in text
    assert json.loads(text)["measured_over_predicted_ratio"] == pytest.approx(1.2)
