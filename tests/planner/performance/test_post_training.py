"""Fine-tuning and preference training: what memory and time of a step do as the training says more."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from catalogs.tables.table import Table
from planner.asked.job import resolve_job
from planner.errors import InputError
from planner.inputs.load import parse_workload
from planner.normal.arrays import rough_normal_quantile
from planner.performance.post_training.adapters import lora_params
from planner.performance.post_training.lengths import longest_of, quantiles
from planner.performance.post_training.spec import Lengths
from planner.performance.search import estimate_shapes
from tests.planner.performance.test_performance import A100

BASE = {"tokens": 1e8, "global_batch": 32, "sequence_length": 2048, "objective": "sft", "precision": "bf16"}


def workload(**training: Any) -> str:
    values = {key: value for key, value in (BASE | training).items() if value is not None}
    return json.dumps({"version": 1, "name": "t", "model": {"preset": "llama-3.1-8b"}, "training": values})


def estimate(**training: Any) -> dict[str, Any]:
    pin = {
        "zero_stage": 3,
        "micro_batch": 1,
        "recompute": "full",
        "tensor_parallel": 1,
        "pipeline_parallel": 1,
    }
    text = workload(**({"layout": pin} | training))
    job = resolve_job(parse_workload(text, Path("w.yaml")).workload, date(2026, 11, 20))
    machine = Table({name: [value] for name, value in A100.items()})
    return estimate_shapes(job.model, job.training, machine, [1]).row(0)


def test_adapters_and_quantised_weights_need_less_memory_and_frozen_weights_less_time() -> None:
    full, lora, qlora = (estimate(method=method) for method in ("full", "lora", "qlora"))
    assert qlora["memory_needed_gib"] < lora["memory_needed_gib"] < full["memory_needed_gib"]
    assert lora["step_time_s"] < full["step_time_s"]
    assert lora["step_time_s"] < qlora["step_time_s"]


@pytest.mark.parametrize("stack", ["eager", "compiled", "tuned"])
def test_adapters_learn_as_fast_and_in_as_much_memory_whether_or_not_the_objective_is_named(
    stack: str,
) -> None:
    named, unnamed = (estimate(method="lora", stack=stack, objective=name) for name in ("sft", None))
    assert unnamed == named


def test_vision_models_take_as_long_fine_tuned_as_pre_trained() -> None:
    base = {"samples": 1e6, "global_batch": 256, "stack": "compiled"}
    times = []
    for objective in ("pretrain", "sft"):
        sections = {"model": {"preset": "resnet-50"}, "training": base | {"objective": objective}}
        document = json.dumps({"version": 1, "name": "t", **sections})
        job = resolve_job(parse_workload(document, Path("w.yaml")).workload, date(2026, 11, 20))
        machine = Table({name: [value] for name, value in A100.items()})
        times.append(estimate_shapes(job.model, job.training, machine, [1])["step_time_s"][0])
    assert times[0] == times[1]


def test_intervals_of_fine_tuning_reach_as_far_as_it_was_measured() -> None:
    def width(stack: str, objective: str) -> float:
        row = estimate(stack=stack, objective=objective)
        return float(row["step_time_high_s"] / row["step_time_s"])

    # eager code was measured pre-training BERT and fine-tuning 3B; compiled code pre-trained larger models than this
    assert 1.1 < width("eager", "sft") < 0.9 * width("eager", "pretrain")
    assert width("compiled", "sft") >= width("compiled", "pretrain")


def test_a_pair_is_two_sequences_and_a_reference_costs_a_forward_pass_and_its_weights() -> None:
    orpo, dpo = estimate(objective="orpo"), estimate(objective="dpo")
    cached = estimate(objective="dpo", reference="precomputed")
    assert orpo["step_time_s"] == pytest.approx(cached["step_time_s"])
    assert dpo["other_models_s"] > 0.15 * cached["step_time_s"]
    assert dpo["memory_needed_gib"] > cached["memory_needed_gib"]
    assert cached["step_time_s"] > 1.7 * estimate()["step_time_s"]


def test_adapters_are_their_own_reference_without_a_second_model() -> None:
    off = estimate(method="lora", objective="dpo")
    resident = estimate(method="lora", objective="dpo", reference="resident")
    assert off["memory_needed_gib"] < resident["memory_needed_gib"]
    assert off["step_time_s"] == pytest.approx(resident["step_time_s"])


def test_kto_also_reads_answers_to_other_prompts_with_both_models() -> None:
    """The divergence comes from mismatched answers: three forward passes where a reference takes one."""
    plain = estimate()
    kto, cached = estimate(objective="kto"), estimate(objective="kto", reference="precomputed")
    assert kto["other_models_s"] == pytest.approx(3.0 * cached["other_models_s"], rel=0.02)
    assert plain["other_models_s"] == 0 < cached["other_models_s"]
    assert 1.6 * plain["step_time_s"] < kto["step_time_s"] < 2.05 * plain["step_time_s"]
    assert cached["memory_needed_gib"] == pytest.approx(plain["memory_needed_gib"], rel=0.02)


def test_padding_costs_time_and_grouping_by_length_saves_it() -> None:
    lengths = {"mean": 500, "p95": 1500}
    pin = {
        "zero_stage": 3,
        "micro_batch": 4,
        "recompute": "full",
        "tensor_parallel": 1,
        "pipeline_parallel": 1,
    }
    padded = estimate(lengths=lengths, layout=pin)
    grouped = estimate(lengths=lengths, group_by_length=True, layout=pin)
    packed = estimate(lengths=lengths, packing=True, layout=pin)
    assert grouped["step_time_s"] < padded["step_time_s"] < packed["step_time_s"]
    assert padded["memory_needed_gib"] == pytest.approx(packed["memory_needed_gib"])


@pytest.mark.parametrize("stack", ["compiled", "tuned"])
@pytest.mark.parametrize("mean", [500, 5000])
def test_packing_never_lengthens_a_run_and_keeps_samples_apart(stack: str, mean: int) -> None:
    asked = {"lengths": {"mean": mean, "p95": 2.5 * mean}, "sequence_length": 16_384, "stack": stack}
    length = asked | {"tokens": None, "samples": 100_000}
    texts = [workload(**length, packing=packing) for packing in (False, True)]
    jobs = [resolve_job(parse_workload(text, Path("w.yaml")).workload, date(2026, 11, 20)) for text in texts]
    machine = Table({name: [value] for name, value in A100.items()})
    tables = [estimate_shapes(job.model, job.training, machine, [1]) for job in jobs]
    padded, packed = (t["step_time_s"][0] * j.total_steps for t, j in zip(tables, jobs, strict=True))
    assert packed <= padded
    # the scores of samples, not of the sequence that holds them
    whole = workload(**{**length, "samples": None, "tokens": 100_000 * mean, "lengths": None})
    job = resolve_job(parse_workload(whole, Path("w.yaml")).workload, date(2026, 11, 20))
    full = estimate_shapes(job.model, job.training, machine, [1])["step_time_s"][0] * job.total_steps
    assert packed < full


@pytest.mark.parametrize(
    "option",
    [{"optimizer_in_backward": True}, {"offload_optimizer": True}, {"loss": "tiled"}, {"master": "none"}],
)
def test_what_frees_memory_frees_it(option: dict[str, Any]) -> None:
    assert estimate(memory=option)["memory_needed_gib"] < estimate()["memory_needed_gib"]


def test_offload_costs_time() -> None:
    assert estimate(memory={"offload_optimizer": True})["step_time_s"] > 1.2 * estimate()["step_time_s"]


def test_low_rank_adapters_have_the_published_number_of_parameters() -> None:
    text = workload(method="lora", adapter={"rank": 32, "targets": ["q_proj", "v_proj"]})
    job = resolve_job(parse_workload(text, Path("w.yaml")).workload, date(2026, 11, 20))
    # PEFT counts 32 layers x 32 x ((4096 + 4096) + (4096 + 1024))
    assert lora_params(job.model, job.training) == 32 * 32 * (8192 + 5120)


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({"adapter": {"kind": "dora"}}, "has no effect with method full"),
        ({"quantization": "nf4"}, "write 'method: qlora'"),
        ({"method": "lora", "adapter": {"kind": "lorra"}}, "'lorra' is not known"),
        ({"method": "lora", "lora_rank": 8, "adapter": {"rank": 16}}, "contradicts lora_rank 8"),
        ({"reference": "resident"}, "objective sft has no reference model"),
        ({"objective": "dpo", "reference": "adapters_off"}, "needs adapters to switch off"),
        ({"objective": "dpo", "packing": True}, "are not packed"),
        ({"objective": "distill"}, "needs a section 'training.teacher'"),
        ({"objective": "grpo"}, "needs a section 'training.rollouts'"),
        ({"lengths": {"mean": 500, "p95": 100}}, "is less than the mean"),
        ({"lengths": {"mean": 500, "max": 4096}}, "is longer than sequence_length"),
    ],
)
def test_combinations_without_sense_are_refused(training: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_workload(workload(**training), Path("w.yaml"))
    assert message in str(caught.value)


def test_the_longest_of_several_and_quantiles_keep_the_mean() -> None:
    draws = np.exp(0.6 * np.random.default_rng(0).standard_normal((20_000, 8)))
    measured = draws.max(axis=1).mean() / draws.mean()
    assert longest_of(np.asarray([8.0]), np.asarray(0.6))[0] == pytest.approx(measured, rel=0.03)
    assert longest_of(np.asarray([1.0]), np.asarray(0.6))[0] == pytest.approx(1.0, abs=1e-3)
    assert rough_normal_quantile(np.asarray([0.975]))[0] == pytest.approx(1.96, abs=1e-3)
    assert quantiles(Lengths(500.0, 1200.0, 1e9), 32).mean() == pytest.approx(500.0)


@pytest.mark.parametrize("gib", [24.0, 28.0, 32.0])
def test_paged_states_come_and_go_at_once_and_only_where_they_do_not_fit(gib: float) -> None:
    def paging_s(memory: float) -> float:
        machine = {**A100, "accelerator_count": 1.0, "accelerator_memory_gib": memory}
        text = workload(
            optimizer="paged_adamw_8bit", global_batch=1,
            memory={"master": "none", "gradients": "half", "optimizer_in_backward": True, "loss": "tiled"},
            layout={"zero_stage": 0, "micro_batch": 1, "recompute": "full"},
        )  # fmt: skip
        job = resolve_job(parse_workload(text, Path("w.yaml")).workload, date(2026, 11, 20))
        table = Table({name: [value] for name, value in machine.items()})
        row = estimate_shapes(job.model, job.training, table, [1]).row(0)
        assert row["fits"]
        return float(row["offload_s"])

    # two bytes of states per weight of 8B over PCI Express 4 x16, each way, at three quarters of its rate
    whole = 2.0 * 8.03e9 / (31.5e9 * 0.75)
    assert paging_s(60.0) == 0.0
    assert 0.0 < paging_s(gib) <= whole
    assert paging_s(gib + 4.0) < paging_s(gib)
