"""From what was written to samples, tokens, steps and sizes; every assumption with its origin."""

from __future__ import annotations

import math
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.inputs.load import parse_workload, validate
from planner.inputs.resolve import resolve_model, resolve_times, resolve_training
from planner.inputs.resolved import ResolvedModel
from planner.inputs.schema import Workload
from planner.inputs.tasks import expand_task, load_tasks
from planner.inputs.training_schema import Model, Training
from planner.performance.spec import ModelSpec

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def workload(**sections: Any) -> Workload:
    return Workload.model_validate({"version": 1, "name": "t", **sections})


def job(training: dict[str, Any], data: dict[str, Any] | None = None, model: str = "llama-3-8b") -> Workload:
    return workload(model={"preset": model}, training={"global_batch": 64, **training}, data=data or {})


def test_every_size_the_performance_model_needs_is_there() -> None:
    # plain attention, and every token predicted (or the masked ones), unless the engine is told otherwise
    optional = {"attention_ratio", "predicted_share"}
    needed = {field.name for field in fields(ModelSpec)} - optional
    assert needed <= {field.name for field in fields(ResolvedModel)}


@pytest.mark.parametrize(
    ("training", "data", "samples", "steps", "tokens"),
    [
        ({"tokens": 1e9, "sequence_length": 2048}, {}, 488_282, 7_630, 1_000_000_000),
        ({"samples": 1000, "sequence_length": 2048}, {}, 1000, 16, 2_048_000),
        ({"steps": 10, "sequence_length": 2048}, {}, 640, 10, 1_310_720),
        ({"epochs": 3, "sequence_length": 2048}, {"samples": 1000}, 3000, 47, 6_144_000),
        ({"epochs": 0.5, "sequence_length": 100}, {"tokens": 1e6}, 5000, 79, 500_000),
        ({"epochs": 2, "sequence_length": 100}, {"size": "1MB", "sample_size": "1KB"}, 2000, 32, 200_000),
    ],
)
def test_amount_of_work(
    training: dict[str, Any], data: dict[str, Any], samples: int, steps: int, tokens: int
) -> None:
    resolved = resolve_training(job(training, data))
    assert (resolved.total_samples, resolved.total_steps, resolved.total_tokens) == (samples, steps, tokens)
    assert resolved.unit == "tokens"
    assert resolved.total_units == tokens


@pytest.mark.parametrize(
    ("data", "samples"), [({"samples": 32_000}, 64_000 * 32), ({"tokens": 32_000 * 150}, 64_000 * 32)]
)
def test_an_epoch_of_rollouts_answers_each_prompt_as_often_as_asked(
    data: dict[str, Any], samples: int
) -> None:
    rollouts = {
        "prompt_tokens": {"mean": 150, "max": 512}, "response_tokens": {"mean": 870, "max": 3584},
        "samples_per_prompt": 32,
    }  # fmt: skip
    training = {"epochs": 2, "objective": "grpo", "global_batch": 2048, "rollouts": rollouts}
    resolved = resolve_training(job(training, data))
    assert (resolved.total_samples, resolved.total_steps) == (samples, 1000)


@pytest.mark.parametrize(
    ("amount", "data"),
    [
        ({"samples": 64_000}, {}), ({"epochs": 2}, {"samples": 32_000}), ({"epochs": 2}, {"tokens": 32_000 * 512}),
        ({"epochs": 2}, {"size": "32MB", "sample_size": "1KB"}), ({"tokens": 64_000 * 512}, {}), ({"steps": 250}, {}),
    ],
)  # fmt: skip
def test_packing_puts_several_samples_into_a_sequence(amount: dict[str, Any], data: dict[str, Any]) -> None:
    packed = {"lengths": {"mean": 512, "max": 2048}, "packing": True, "sequence_length": 2048}
    resolved = resolve_training(job({**amount, **packed}, data))
    assert (resolved.total_samples, resolved.total_steps) == (16_000, 250)
    assert resolved.total_tokens == 64_000 * 512


def test_bytes_of_packed_samples_are_those_of_the_set() -> None:
    packed = {"epochs": 2, "lengths": {"mean": 512}, "packing": True, "sequence_length": 2048}
    resolved = resolve_training(job(packed, {"samples": 32_000, "sample_size": "2KB"}))
    assert resolved.bytes_per_sample == 8_000  # of a sequence, which is what steps read
    assert resolved.data_bytes == 32_000 * 2_000


def test_what_the_training_code_keeps_reaches_the_memory_model() -> None:
    from planner.asked.job import resolve_job
    from planner.performance.memory_options import MemoryOptions

    training = {"tokens": 1e9, "sequence_length": 2048}
    assert resolve_job(job(training), date(2026, 11, 1)).training.memory == MemoryOptions()
    chosen = {**training, "memory": {"loss": "fused", "dropout": False}}
    assert resolve_job(job(chosen), date(2026, 11, 1)).training.memory == MemoryOptions(
        loss="fused", dropout=False
    )


def test_images_are_counted_in_samples() -> None:
    resolved = resolve_training(job({"epochs": 90}, {"samples": 1_281_167}, "resnet-50"))
    assert (resolved.unit, resolved.total_units, resolved.total_tokens) == ("samples", 115_305_030, None)
    assert resolved.sequence_length == 1
    assert resolved.bytes_per_sample is None
    assert resolved.data_bytes is None


@given(st.integers(1, 10**15), st.integers(1, 10**5), st.integers(1, 10**5))
def test_steps_cover_the_tokens_and_no_more(tokens: int, batch: int, length: int) -> None:
    resolved = resolve_training(job({"tokens": tokens, "global_batch": batch, "sequence_length": length}))
    assert resolved.total_samples == math.ceil(tokens / length)
    assert (resolved.total_steps - 1) * batch < resolved.total_samples <= resolved.total_steps * batch


def test_defaults_are_told_from_what_was_given() -> None:
    resolved = resolve_training(job({"tokens": 1e9, "precision": "fp16"}))
    origin = {item.key: item.origin for item in resolved.assumptions}
    assert origin["training.precision"] == "workload"
    assert origin["training.optimizer"] == "default"
    assert origin["training.sequence_length"] == "default"
    assert origin["training.samples"] == "derived"
    assert resolved.sequence_length == 8192


@pytest.mark.parametrize(
    ("model", "data", "bytes_per_sample", "data_bytes"),
    [
        ("llama-3-8b", {}, 4 * 1000, 4 * 1_000_000),
        ("gpt-3-1.3b", {}, 2 * 1000, 2 * 1_000_000),
        ("llama-3-8b", {"sample_size": "10KB"}, 10_000, 10_000_000),
        ("llama-3-8b", {"size": "1GB", "samples": 1000}, 1_000_000, 10**9),
        ("llama-3-8b", {"size": "1GB", "tokens": 1e6}, 1_000_000, 10**9),
        ("llama-3-8b", {"sample_size": "10KB", "samples": 50}, 10_000, 500_000),
    ],
)
def test_bytes(model: str, data: dict[str, Any], bytes_per_sample: float, data_bytes: int) -> None:
    resolved = resolve_training(job({"samples": 1000, "sequence_length": 1000}, data, model))
    assert resolved.bytes_per_sample == bytes_per_sample
    assert resolved.data_bytes == data_bytes


def test_lora_rank_is_none_for_full_training() -> None:
    assert resolve_training(job({"tokens": 1e9})).lora_rank is None
    assert resolve_training(job({"tokens": 1e9, "method": "lora"})).lora_rank == 16


def test_explicit_sizes_override_the_preset_and_recount_it() -> None:
    shallow = resolve_model(Model(preset="llama-3-8b", layers=16))
    full = resolve_model(Model(preset="llama-3-8b"))
    assert shallow.layers == 16
    assert shallow.params < 0.65 * full.params
    origin = {item.key: item.origin for item in shallow.assumptions}
    assert origin == {"model.preset": "workload", "model.layers": "workload", "model.params": "derived"}


def test_mixture_of_experts_from_dimensions() -> None:
    model = Model(
        family="transformer", layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, gated_mlp=True,
        vocab=32000, experts=8, experts_per_token=2,
    )  # fmt: skip
    resolved = resolve_model(model)
    assert resolved.params == pytest.approx(46.7e9, rel=0.01)
    assert resolved.active_params == pytest.approx(12.88e9, rel=0.01)


def test_unknown_preset_in_python() -> None:
    with pytest.raises(InputError, match="did you mean 'llama-3-8b'"):
        resolve_model(Model(preset="llama-3-8c"))


def test_a_task_must_be_expanded_first() -> None:
    with pytest.raises(InputError, match="expand it"):
        resolve_training(workload(task={"type": "image_classification"}, data={"size": "1GB"}))


def test_times() -> None:
    plain = job({"tokens": 1e9})
    assert resolve_times(plain, NOW).start == NOW
    assert resolve_times(plain, NOW).deadline is None
    for deadline, hours in (("72h", 72.0), ("2026-11-21", 36.0), ("2026-11-20T13:00Z", 1.0)):
        limited = plain.model_copy(update={"constraints": _constraints(deadline)})
        assert resolve_times(limited, NOW).deadline == NOW + timedelta(hours=hours)
    with pytest.raises(InputError, match="is in the past"):
        resolve_times(plain.model_copy(update={"constraints": _constraints("2026-11-19")}), NOW)


def test_start_and_earliest_start() -> None:
    base = {"model": {"preset": "llama-3-8b"}, "training": {"tokens": 1e9, "global_batch": 1}}
    later = workload(**base, earliest_start="2026-12-01", constraints={"deadline": "2d"})
    times = resolve_times(later, NOW)
    assert times.start == datetime(2026, 12, 1, tzinfo=UTC)
    assert times.deadline == times.start + timedelta(days=2)
    fixed = workload(**base, start="2026-12-01T08:00+01:00")
    assert resolve_times(fixed, NOW).start == datetime(2026, 12, 1, 7, tzinfo=UTC)


def _constraints(deadline: str) -> Any:
    return workload(
        model={"preset": "llama-3-8b"},
        training={"tokens": 1, "global_batch": 1},
        constraints={"deadline": deadline},
    ).constraints


@pytest.mark.parametrize("task", load_tasks())
def test_every_ladder_gives_three_concrete_sourced_workloads(task: str) -> None:
    variants = expand_task(workload(task={"type": task}, data={"size": "100GB"}))
    assert [variant.chosen for variant in variants] == [False, True, False]
    for variant in variants:
        assert variant.workload.task is None
        resolved = variant.resolve_training()
        assert resolved.total_samples > 0
        assert resolved.data_bytes == 100 * 10**9
        origin = {item.key: (item.origin, item.note) for item in resolved.assumptions}
        assert origin["model.preset"][0] == "default"
        assert origin["training.epochs"][0] == "default"
        assert all(note for key, (_, note) in origin.items() if key.startswith("model."))
        assert len(origin) == len(resolved.assumptions), "a key is listed once"
        plain = variant.workload.model_dump(mode="json", exclude_unset=True)
        assert validate(plain) == (variant.workload, [])


@pytest.mark.parametrize("task", load_tasks())
def test_every_ladder_climbs(task: str) -> None:
    work = []
    for variant in expand_task(workload(task={"type": task}, data={"size": "100GB"})):
        assert variant.workload.model is not None
        model = resolve_model(variant.workload.model)
        resolved = variant.resolve_training()
        passes = 4 if resolved.lora_rank else 6
        if resolved.total_tokens is not None:
            work.append(passes * model.params * resolved.total_tokens)
        else:
            assert model.forward_flops_per_sample is not None
            work.append(3 * model.forward_flops_per_sample * resolved.total_samples)
    assert work == sorted(work)


def test_effort_chooses_the_rung() -> None:
    chosen = workload(task={"type": "image_classification", "effort": "large"}, data={"samples": 5})
    assert [variant.chosen for variant in expand_task(chosen)] == [False, False, True]
    assert expand_task(chosen)[2].resolve_training().total_samples == 1500


def test_a_workload_without_task_has_no_variants() -> None:
    assert expand_task(job({"tokens": 1})) == ()


def test_hundred_gigabytes_of_images() -> None:
    path = Path(__file__).parents[3] / "examples" / "images-100gb.yaml"
    loaded = parse_workload(path.read_text(encoding="utf-8"), path)
    middle = next(variant for variant in expand_task(loaded.workload) if variant.chosen)
    resolved = middle.resolve_training()
    assert resolved.total_samples == 300 * (100 * 10**9 // 114_660)
    assert "114660" in {item.value for item in resolved.assumptions}


def test_adapters_of_a_diffusion_model_learn_in_proportion_to_their_rank() -> None:
    model = Model(preset="sdxl")
    small, large = (
        resolve_model(model, Training(method="lora", lora_rank=rank, samples=100, global_batch=4))
        for rank in (16, 64)
    )
    assert small.trains == large.trains == "through" and resolve_model(model).trains == "all"
    assert small.learned_params == pytest.approx(0.01 * small.params)
    assert large.learned_params == pytest.approx(4 * small.learned_params)
    assert any("adapters of rank 16" in item.note for item in small.assumptions)


@pytest.mark.parametrize(
    ("training", "tokens"),
    [
        ({"lengths": {"mean": 600, "p95": 1400, "max": 2048}}, 2048),
        ({"lengths": {"mean": 600, "p95": 1400}}, 2800),  # no max: twice the 95th percentile
        ({"lengths": {"mean": 600, "max": 500_000}}, 131_072),  # no longer than the published context
        ({"lengths": {"mean": 600, "max": 2048}, "sequence_length": 4096}, 4096),
    ],
)
def test_lengths_say_how_long_a_sequence_is(training: dict[str, Any], tokens: int) -> None:
    """Not the context of the model: a run on 600 tokens does not need the memory of 131,072."""
    resolved = resolve_training(job({"epochs": 1, **training}, {"samples": 1000}, "llama-3.1-8b"))
    assert resolved.sequence_length == tokens


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("llama-3.1-8b", 8192),
        ("qwen3-32b", 8192),
        ("llama-2-7b", 4096),
        ("bert-base", 512),
        ("wan2.1-1.3b", 32_760),
    ],
)
def test_a_length_that_nobody_stated_is_one_that_is_trained_on(model: str, tokens: int) -> None:
    """Not a context that a last stage opens; the tokens of a clip of video are its size."""
    assert resolve_training(job({"steps": 10}, {}, model)).sequence_length == tokens


def test_rollouts_say_how_long_a_sequence_is_without_a_limit_of_the_prompts() -> None:
    rollouts = {"prompt_tokens": {"mean": 200}, "response_tokens": {"mean": 400, "max": 1024}}
    training = {"objective": "ppo", "steps": 10, "rollouts": rollouts}
    resolved = resolve_training(job(training, {"samples": 1000}, "llama-3.1-8b"))
    assert resolved.sequence_length == 4 * 200 + 1024


def test_own_sizes_need_no_context_where_lengths_are_stated() -> None:
    model = {"family": "transformer", "layers": 2, "hidden": 64, "heads": 4, "vocab": 1000}
    raw = {
        "version": 1, "name": "t", "model": model, "data": {"samples": 1000},
        "training": {"epochs": 1, "global_batch": 8, "lengths": {"mean": 100, "max": 256}},
    }  # fmt: skip
    checked, faults = validate(raw)
    assert checked is not None and not faults and resolve_training(checked).sequence_length == 256
