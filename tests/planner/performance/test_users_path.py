"""What is measured is what users get: the benchmark and `planner estimate` predict a workload through one function."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from benchmarks.accelerators import load_devices
from benchmarks.measured import load_cases, run_date
from benchmarks.points import load_rows
from benchmarks.predict import build_groups, settle, throughput
from benchmarks.workloads import document, job_of, predict_workloads
from catalogs.tables.table import Table
from planner.asked.job import resolve_job
from planner.asked.options import utc_now
from planner.estimation.answer import estimate_workload, open_job
from planner.estimation.predict import predict_shapes
from planner.inputs.load import load_workload
from planner.inputs.schema import Workload
from planner.market.machines import find_machine
from planner.performance.constants import load_constants
from planner.performance.kernels import default_attention, score_ratio
from planner.performance.spec import AttentionKernel, ModelFamily, ModelSpec, TrainingSpec
from tests.planner.performance.test_performance import A100, SMALL, machines

ROWS = 200


def test_the_fit_and_estimate_predict_the_same_on_200_measured_rows() -> None:
    rows = load_rows(None)
    native = [row for row in rows if row["source"].startswith("stas00")]
    experts = [row for row in rows if row["model_name"].startswith("Qwen3-30B")]
    constants = load_constants()
    rows = random.Random(14).sample(rows, ROWS) + native + experts
    cases, _ = settle(load_cases(rows, load_devices())[0], constants)
    fitted = throughput(build_groups(cases), len(cases), constants)
    asked, refused = predict_workloads(cases, False, constants)
    # A few publishers state fewer samples per step than replicas: no workload is like that.
    assert set(refused) <= {"batch_not_divisible"} and sum(refused.values()) <= 3
    known = np.isfinite(asked["value"])
    np.testing.assert_allclose(asked["value"][known], fitted[known], rtol=1e-9)


def test_estimate_answers_with_the_function_of_the_benchmark(tmp_path: Path) -> None:
    rows = [
        row for row in load_rows(None) if row["gpu"] == "A100-SXM-40" and row["gpus"] == "32" and row["tp"]
    ]
    case = settle(load_cases(rows[:1], load_devices())[0], load_constants())[0][0]
    path = tmp_path / "measured.yaml"
    stated = {**document(case, True), "start": "2026-12-01"}
    path.write_text(yaml.safe_dump(stated), encoding="utf-8")
    loaded = load_workload(path)
    found = estimate_workload(loaded, ["p4d.24xlarge"], [4]).estimates[0]
    machine_set = open_job(loaded, utc_now())[1]
    hardware = machine_set.hardware.take([find_machine(machine_set, "p4d.24xlarge", None).hardware])
    job = resolve_job(Workload.model_validate(stated), date(2026, 11, 1))
    row = predict_shapes(job.model, job.training, hardware, [4]).row(0)
    assert found.step_s is not None
    assert (found.step_s.value, found.step_s.low) == (row["step_time_s"], row["step_time_low_s"])


def _training(**stated: Any) -> TrainingSpec:
    model = {
        "family": "transformer",
        "layers": 24,
        "hidden": 2048,
        "heads": 16,
        "vocab": 50304,
        "gated_mlp": True,
    }
    training = {"steps": 10, "global_batch": 64, "sequence_length": 2048, **stated.pop("training", {})}
    made = {"version": 1, "name": "a", "model": model, "training": training, **stated}
    return resolve_job(Workload.model_validate(made), date(2026, 11, 1)).training


def test_what_is_left_open_widens_the_interval_and_moves_nothing() -> None:
    stated = _training(training={"stack": "compiled", "attention": "flash"})
    left_open = _training()
    assert left_open.open_choices == ("stack", "attention") and stated.open_choices == ()
    assert _training(training={"attention": "auto", "software_date": None}) == left_open
    rows = [predict_shapes(SMALL, t, machines(A100), [2]).row(0) for t in (stated, left_open)]
    assert rows[0]["step_time_s"] == rows[1]["step_time_s"]
    assert rows[0]["step_time_high_s"] < rows[1]["step_time_high_s"]


def test_old_accelerators_and_old_runs_get_no_flash_attention_silently() -> None:
    volta = {**A100, "generation": "volta"}
    training = TrainingSpec(64, 4096, "fp16", attention="auto", stack="compiled")
    mixed = Table({name: [A100[name], volta[name], A100[name]] for name in A100})
    step = predict_shapes(SMALL, training, mixed, [1, 2])["step_time_s"]
    alone = [predict_shapes(SMALL, training, machines(m), [1, 2])["step_time_s"] for m in (A100, volta, A100)]
    assert step.tolist() == np.concatenate(alone).tolist()
    written = predict_shapes(SMALL, replace(training, attention="materialised"), machines(volta), [1, 2])
    assert alone[1].tolist() == written["step_time_s"].tolist()
    assert _training(start="2021-03-01").attention == "materialised"
    assert _training(start="2021-03-01", training={"stack": "fused"}).attention == "fused"
    assert _training(training={"software_date": "2021-03-01"}).attention == "materialised"
    assert _training(start="2021-03-01", training={"software_date": "2026-01-01"}).attention == "auto"
    assert _training().attention == "auto"


def test_a_native_attention_kernel_is_faster_where_the_generation_has_one() -> None:
    training = TrainingSpec(8, 65536, "bf16", stack="eager")
    long = replace(SMALL, architecture="decoder", gated_mlp=True)

    def seconds(generation: str, kernel: AttentionKernel) -> float:
        hardware = machines({**A100, "generation": generation, "bf16_tflops": 989.0, "fp16_tflops": 989.0})
        asked = replace(training, attention=kernel)
        return float(predict_shapes(long, asked, hardware, [1]).row(0)["step_time_s"])

    assert seconds("hopper", "native") < 0.9 * seconds("hopper", "flash")
    assert seconds("ampere", "native") == seconds("ampere", "flash")
    assert seconds("volta", "native") == seconds("volta", "materialised")


MOE = replace(
    SMALL, params=3e10, active_params=3e9, gated_mlp=True, experts=128, experts_per_token=8, moe_ffn=768,
    layers=48, hidden=2048, heads=32, kv_heads=4,
)  # fmt: skip


def _recipe(software_date: str | None, precision: str = "fp8", stack: str = "tuned") -> TrainingSpec:
    sizes = {name: getattr(MOE, name) for name in ("layers", "hidden", "heads", "experts", "moe_ffn")}
    model = {"family": "transformer", **sizes, "experts_per_token": 8, "vocab": 50304, "gated_mlp": True}
    training = {"steps": 10, "global_batch": 512, "sequence_length": 4096, "precision": precision}
    training |= {"stack": stack, "attention": "flash"} | (
        {"software_date": software_date} if software_date else {}
    )
    made = {"version": 1, "name": "a", "model": model, "training": training, "start": "2026-12-01"}
    return resolve_job(Workload.model_validate(made), date(2026, 11, 1)).training


def _seconds(training: TrainingSpec, generation: str = "blackwell", model: ModelSpec = MOE) -> float:
    rates = {"bf16_tflops": 2250.0, "fp16_tflops": 2250.0, "fp8_tflops": 4500.0}
    machine = {**A100, **rates, "generation": generation, "accelerator_memory_gib": 180.0}
    return float(predict_shapes(model, training, machines(machine), [2]).row(0)["step_time_s"])


def test_experts_of_older_recipes_are_slower_in_8_bit_on_blackwell_alone() -> None:
    older, newer = _recipe("2026-04-01"), _recipe("2026-06-01")
    assert _seconds(newer) < 0.95 * _seconds(older)
    assert _seconds(newer, "hopper") == _seconds(older, "hopper")
    assert _seconds(newer, model=SMALL) == _seconds(older, model=SMALL)
    for precision, stack in (("bf16", "tuned"), ("fp8", "compiled")):
        dated = [_recipe(day, precision, stack) for day in ("2026-04-01", "2026-06-01")]
        assert _seconds(dated[0]) == _seconds(dated[1])


def test_software_is_of_the_day_of_the_run_unless_stated_and_an_open_date_widens() -> None:
    stated, left_open = _recipe("2026-12-01"), _recipe(None)
    assert left_open == replace(stated, open_choices=("software_date",))
    rows = [
        predict_shapes(
            MOE, t, machines({**A100, "accelerator_memory_gib": 180.0, "fp8_tflops": 624.0}), [2]
        ).row(0)
        for t in (stated, left_open)
    ]
    assert rows[0]["step_time_s"] == rows[1]["step_time_s"]
    assert rows[0]["step_time_high_s"] < rows[1]["step_time_high_s"]
    assert _recipe(None, "bf16").open_choices == ()


def test_eager_code_written_before_flash_attention_is_taken_to_lack_it() -> None:
    bert = ModelSpec(
        "b", ModelFamily.TRANSFORMER, 3e8, layers=24, hidden=1024, heads=16, architecture="encoder"
    )
    llama = replace(bert, architecture="decoder", gated_mlp=True)
    assert default_attention("eager", bert, None) == "materialised"
    assert default_attention("eager", llama, None) == "auto"
    assert default_attention("compiled", bert, None) == "auto"


def test_a_window_leaves_the_scores_that_are_within_it() -> None:
    model = replace(SMALL, attention_window=1024)
    assert score_ratio(model, 1024) == score_ratio(SMALL, 4096) == 1.0
    # causal: all pairs less those further apart than the window
    pairs = sum(min(i + 1, 1024) for i in range(4096)) / sum(i + 1 for i in range(4096))
    assert score_ratio(model, 4096) == pytest.approx(pairs, rel=1e-3)
    half = replace(model, windowed_layers=SMALL.layers // 2) if SMALL.layers else model
    assert score_ratio(half, 4096) == pytest.approx((1.0 + score_ratio(model, 4096)) / 2.0)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2022-02", "2022-02-01"),
        ("2024", "2024-06-01"),
        ("v4.0", "2024-06-01"),
        ("25.11", "2025-11-01"),
        ("25.13", ""),
        ("2024-25", "2024-06-01"),
        ("soon", ""),
    ],
)
def test_dates_of_rows_are_read_however_they_are_written(text: str, day: str) -> None:
    assert run_date(text) == day


def test_capitals_in_a_model_name_lose_no_row() -> None:
    row = next(row for row in load_rows(None) if row["model_name"].startswith("Qwen3-30B"))
    cases = [
        load_cases([{**row, "model_name": name}], load_devices())[0]
        for name in ("Qwen3-30B-A3B", "QWEN3-30B-A3B")
    ]
    assert cases[0][0].model.experts == cases[1][0].model.experts == 128
    assert job_of(cases[0][0], True).model.experts == 128


def test_eager_diffusion_and_fine_tuning_call_the_flash_kernel_since_their_libraries_do() -> None:
    unet = ModelSpec("u", ModelFamily.DIFFUSION, 9e8)
    for day, kernel in ((None, "flash"), (date(2023, 4, 1), "flash"), (date(2023, 1, 1), "materialised")):
        assert default_attention("eager", unet, day) == kernel
    assert default_attention("eager", replace(unet, family=ModelFamily.VIT), None) == "materialised"
    falcon = ModelSpec("f", ModelFamily.TRANSFORMER, 7e9, layers=32, hidden=4544, heads=71)
    for day, kernel in ((None, "auto"), (date(2024, 8, 1), "auto"), (date(2023, 10, 1), "materialised")):
        assert default_attention("eager", falcon, day, tuning=True) == kernel
    assert default_attention("eager", falcon, None) == "materialised"
    bert = replace(falcon, architecture="encoder")
    assert default_attention("eager", bert, None, tuning=True) == "materialised"


def test_a_workload_that_fine_tunes_a_plain_decoder_in_eager_code_gets_the_flash_kernel() -> None:
    def kernel(**training: Any) -> AttentionKernel:
        asked = {
            "version": 1, "name": "t", "model": {"preset": "pythia-1b"},
            "training": {"steps": 10, "global_batch": 8, "stack": "eager", **training},
        }  # fmt: skip
        return resolve_job(Workload.model_validate(asked), date(2026, 11, 28)).training.attention

    assert kernel(objective="sft") == "auto"
    assert kernel(method="lora") == "auto"
    assert kernel() == "materialised"
    assert kernel(objective="sft", attention="materialised") == "materialised"
