"""Steps of reinforcement learning: generation with its tail, log-probabilities, updates, refit."""

from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from catalogs.tables.table import Table
from planner.asked.job import resolve_job
from planner.errors import InputError
from planner.inputs.load import parse_workload
from planner.performance.inference.engines import find_engine
from planner.performance.search import estimate_shapes
from planner.performance.spec import COMPONENTS
from tests.planner.performance.test_inference import H100

ROLLOUTS = {
    "prompt_tokens": {"mean": 150, "max": 512}, "samples_per_prompt": 16,
    "response_tokens": {"mean": 800, "p95": 1600, "max": 3584},
}  # fmt: skip
PIN = {"zero_stage": 3, "micro_batch": 4, "recompute": "full", "tensor_parallel": 1, "pipeline_parallel": 1}
TRAINING = {"objective": "grpo", "steps": 100, "global_batch": 1024, "stack": "tuned", "layout": PIN}


def text(training: dict[str, Any], rollouts: dict[str, Any]) -> str:
    training = TRAINING | {"rollouts": ROLLOUTS | rollouts} | training
    return json.dumps({"version": 1, "name": "t", "model": {"preset": "llama-3.1-8b"}, "training": training})


def estimate(
    training: dict[str, Any] | None = None, machine: dict[str, Any] = H100, **rollouts: Any
) -> dict[str, Any]:
    loaded = parse_workload(text(training or {}, rollouts), Path("w.yaml"))
    job = resolve_job(loaded.workload, date(2026, 11, 20))
    return estimate_shapes(job.model, job.training, Table({k: [v] for k, v in machine.items()}), [2]).row(0)


def test_the_parts_of_a_step_add_up() -> None:
    row = estimate()
    assert sum(row[name] for name in COMPONENTS) == pytest.approx(row["step_time_s"])
    assert row["generation_s"] > 0.2 * row["step_time_s"]
    assert row["other_models_s"] > 0
    assert row["refit_s"] > 0


@pytest.mark.parametrize("batch", [4, 8, 32, 1024])
def test_replicas_and_micro_batches_divide_the_responses_of_an_update(batch: int) -> None:
    row = estimate({"layout": {}}, update_batch=batch, samples_per_prompt=4)
    assert row["reason"] == ""
    per_micro = row["dp"] * row["micro_batch"]
    assert batch % per_micro == 0
    assert per_micro * row["grad_accum"] == 1024  # over all updates of the step


def test_a_pinned_micro_batch_above_an_update_has_no_layout() -> None:
    assert estimate(update_batch=16, samples_per_prompt=4)["reason"] == "batch_not_divisible"
    assert estimate(update_batch=64, samples_per_prompt=4)["reason"] == ""


def test_the_tail_counts_not_the_mean_alone() -> None:
    even = estimate(response_tokens={"mean": 800, "p95": 801, "max": 802})
    assert estimate()["generation_s"] > 1.15 * even["generation_s"]


def test_the_work_is_prompts_and_answers() -> None:
    job = resolve_job(parse_workload(text({}, {}), Path("w.yaml")).workload, date(2026, 11, 20))
    assert job.total_units == pytest.approx(100 * 1024 * 950)
    assert job.training.sequence_length == 512 + 3584


def test_ppo_s_critic_costs_another_model() -> None:
    grpo, ppo = estimate(), estimate({"objective": "ppo"})
    assert ppo["step_time_s"] > grpo["step_time_s"]
    assert ppo["memory_needed_gib"] > 1.1 * grpo["memory_needed_gib"]


def test_running_ahead_hides_the_shorter_of_generation_and_training() -> None:
    apart: dict[str, Any] = {"placement": "disaggregated", "generation_share": 0.5}
    on_policy, ahead = estimate(**apart), estimate(**apart, steps_off_policy=1)
    assert ahead["step_time_s"] < 0.8 * on_policy["step_time_s"]
    free = estimate(placement="disaggregated", steps_off_policy=1)
    assert free["step_time_s"] <= ahead["step_time_s"] * (1 + 1e-12)


@pytest.mark.parametrize("internode_gbps", [25.0, 400.0, 3200.0])
@pytest.mark.parametrize("response", [50, 800])
def test_an_engine_is_as_large_as_generation_and_refit_ask_together(
    internode_gbps: float, response: int
) -> None:
    machine = H100 | {"internode_gbps": internode_gbps}
    lengths = {"mean": response, "p95": 2 * response, "max": 4 * response}
    own = estimate(machine=machine, response_tokens=lengths)
    fixed = [
        estimate(machine=machine, response_tokens=lengths, tensor_parallel=tp) for tp in (1, 2, 4, 8, 16)
    ]
    assert own["step_time_s"] == pytest.approx(min(row["step_time_s"] for row in fixed))
    half = {name: size / 2 for name, size in lengths.items()}
    assert estimate(machine=machine, response_tokens=half)["step_time_s"] < own["step_time_s"]
    eight = estimate(machine=machine, response_tokens=lengths, precision="fp8")
    assert eight["step_time_s"] < own["step_time_s"]


def test_an_engine_larger_than_the_cluster_does_not_run_and_has_no_time() -> None:
    row = estimate(tensor_parallel=32)  # of 16 accelerators
    assert (row["fits"], row["reason"]) == (False, "out_of_memory")
    assert all(math.isnan(row[name]) for name in ("step_time_s", "step_time_low_s", "step_time_high_s"))


def test_more_updates_and_epochs_take_longer() -> None:
    assert estimate(update_batch=256)["step_time_s"] > estimate()["step_time_s"]
    assert estimate(epochs=2)["compute_s"] == pytest.approx(2 * estimate()["compute_s"])


@pytest.mark.parametrize(
    ("training", "rollouts", "message"),
    [
        ({"global_batch": 1000}, {}, "16 must divide global_batch"),
        ({}, {"steps_off_policy": 1}, "placement: disaggregated"),
        ({}, {"in_flight_updates": True}, "steps_off_policy: 1"),
        ({}, {"generation_share": 0.5}, "needs 'placement: disaggregated'"),
        ({}, {"update_batch": 100}, "must divide global_batch"),
        ({"reference": "precomputed"}, {}, "are new in each step"),
        ({"objective": "sft"}, {}, "objective sft has no rollouts"),
    ],
)
def test_what_cannot_be_is_refused(training: dict[str, Any], rollouts: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_workload(text(training, rollouts), Path("w.yaml"))
    assert message in str(caught.value)


def test_the_set_of_reinforcement_learning_holds_prompts_and_no_answers() -> None:
    def data_gb(**rollouts: Any) -> float:
        loaded = parse_workload(text({}, rollouts), Path("w.yaml"))
        size = resolve_job(loaded.workload, date(2026, 11, 20)).data_gb
        assert size is not None
        return size

    once = data_gb()
    # 100 steps of 1,024 answers, 16 to a prompt of 150 tokens of 4 bytes
    assert once == pytest.approx(100 * 1024 / 16 * 150 * 4 / 1e9)
    assert data_gb(response_tokens={"mean": 50, "max": 3000}) == once
    assert data_gb(prompt_tokens={"mean": 300, "max": 512}) == pytest.approx(2.0 * once)
    assert data_gb(samples_per_prompt=4) == pytest.approx(4.0 * once)


def test_a_stated_set_of_prompts_is_as_large_as_stated() -> None:
    def job(data: dict[str, Any]) -> Any:
        asked = json.loads(text({"steps": None, "epochs": 3}, {})) | {"data": data}
        asked["training"].pop("steps")
        return resolve_job(parse_workload(json.dumps(asked), Path("w.yaml")).workload, date(2026, 11, 20))

    counted = job({"samples": 64_000})
    assert counted.data_gb == pytest.approx(64_000 * 150 * 4 / 1e9)
    sized = job({"samples": 64_000, "sample_size": "1 kB"})
    assert sized.data_gb == pytest.approx(64_000 * 1000 / 1e9)
    # each answer reads its share of the prompt
    assert sized.training.bytes_per_sample == pytest.approx(1000 / 16)


def test_log_probabilities_that_are_reused_take_no_pass() -> None:
    alone: dict[str, Any] = {"reference": "none"}
    computed, reused = estimate(alone), estimate(alone, old_logprobs="reused")
    assert computed["other_models_s"] > 0.0 == reused["other_models_s"]
    assert reused["generation_s"] == computed["generation_s"]
    # with a reference one of two passes is left
    both, one = estimate(), estimate(old_logprobs="reused")
    assert one["other_models_s"] == pytest.approx(both["other_models_s"] / 2.0, rel=0.05)


def width(row: dict[str, Any]) -> float:
    return math.log(row["step_time_high_s"] / row["step_time_s"])


def test_the_engine_s_interval_counts_with_its_share_of_the_step() -> None:
    """Its half-width, of vLLM of 2026 and of 2025, times what generation takes of the step."""
    new, old = estimate(engine="vllm", engine_version="0.14"), estimate(engine="vllm", engine_version="0.8")
    spreads = [find_engine("vllm", year).spread for year in (2026, 2025)]
    parts = [
        spread * row["generation_s"] / row["step_time_s"]
        for spread, row in zip(spreads, (new, old), strict=True)
    ]
    rest = [width(row) ** 2 - part**2 for row, part in zip((new, old), parts, strict=True)]
    assert parts[1] > 1.5 * parts[0] > 0.1
    assert rest[0] == pytest.approx(rest[1], rel=1e-6)
    assert rest[0] > 0.2**2


def test_an_engine_that_training_hides_widens_nothing() -> None:
    ahead = {"placement": "disaggregated", "steps_off_policy": 1, "engine": "vllm"}
    hidden = estimate(generation_share=0.9, engine_version="0.8", **ahead)
    slow = estimate(generation_share=0.1, engine_version="0.8", **ahead)
    assert hidden["generation_s"] == 0.0 < slow["generation_s"]
    assert width(hidden) < 0.8 * width(slow)
