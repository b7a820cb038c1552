"""Models given by parts: what runs beside the model costs what it would alone, frozen parts only their forward pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from catalogs.tables.table import Table
from planner.asked.job import Job, resolve_job
from planner.errors import InputError
from planner.inputs.load import parse_workload
from planner.performance.parts import all_params, flops_per_sample, model_from, split_layers
from planner.performance.search import estimate_shapes
from planner.performance.search_job import build_job
from tests.planner.performance.test_performance import A100

LANGUAGE = "preset: llama-3.2-1b"
ENCODER = "preset: vit-l-16"
PINNED = "layout: {micro_batch: 4, zero_stage: 1, tensor_parallel: 1, recompute: none}"
MACHINE = Table({name: [value] for name, value in A100.items()})


def job(model: str, training: str = f"sequence_length: 2048, {PINNED}") -> Job:
    text = f"version: 1\nname: x\nmodel: {{{model}}}\ntraining: {{samples: 1e6, global_batch: 256, {training}}}\n"
    return resolve_job(parse_workload(text, Path("w.yaml")).workload, date(2026, 11, 20))


def estimate(model: str, training: str = f"sequence_length: 2048, {PINNED}") -> dict[str, Any]:
    asked = job(model, training)
    return estimate_shapes(asked.model, asked.training, MACHINE, [1]).row(0)


def parts(*each: str) -> str:
    return f"parts: [{', '.join(f'{{{part}}}' for part in each)}]"


def test_a_list_of_one_part_is_the_model_itself() -> None:
    one, alone = estimate(parts(LANGUAGE)), estimate(LANGUAGE)
    assert {key: value for key, value in one.items() if value == value} == {
        key: value for key, value in alone.items() if value == value
    }


def test_a_second_network_that_learns_adds_its_own_step_and_memory() -> None:
    text, images = estimate(LANGUAGE), estimate(ENCODER, PINNED)
    both = estimate(parts(LANGUAGE, ENCODER))
    once = images["fixed_s"]
    assert both["step_time_s"] == pytest.approx(text["step_time_s"] + images["step_time_s"] - once, rel=1e-6)
    # context and libraries of a process count once
    more = both["memory_needed_gib"] - text["memory_needed_gib"]
    assert 0.5 * images["memory_needed_gib"] < more < images["memory_needed_gib"]
    assert both["checkpoint_gib"] == pytest.approx(text["checkpoint_gib"] + images["checkpoint_gib"])
    assert both["mfu"] > 0.0


def test_a_frozen_network_adds_a_forward_pass_and_its_weights() -> None:
    text, images = estimate(LANGUAGE), estimate(ENCODER, PINNED)
    both = estimate(parts(LANGUAGE, f"{ENCODER}, trainable: none"))
    added = both["step_time_s"] - text["step_time_s"]
    assert both["other_models_s"] == pytest.approx(added, rel=1e-6)
    # a forward pass is a third of forward and backward
    assert added == pytest.approx((images["compute_s"] + images["memory_bound_s"]) / 3.0, rel=0.1)
    weights_gib = 2.0 * job(ENCODER, PINNED).model.params / 2.0**30
    assert weights_gib < both["memory_needed_gib"] - text["memory_needed_gib"] < 2.0 * weights_gib
    assert both["checkpoint_gib"] == text["checkpoint_gib"]
    assert job(parts(LANGUAGE, f"{ENCODER}, trainable: none")).export_gb == job(LANGUAGE).export_gb


def test_gradients_that_pass_through_cost_more_than_none_and_less_than_learning() -> None:
    each = [estimate(parts(LANGUAGE, f"{ENCODER}, trainable: {word}")) for word in ("none", "through", "all")]
    for key in ("step_time_s", "memory_needed_gib", "checkpoint_gib"):
        values = [row[key] for row in each]
        assert values == sorted(values) and values[0] < values[2]


def test_eight_crops_cost_eight_forward_passes_and_the_weights_of_one() -> None:
    one, eight = (
        estimate(parts(LANGUAGE, f"{ENCODER}, trainable: none, per_sample: {number}")) for number in (1, 8)
    )
    # larger batches fill the device better, so eight cost a little less than eight times one
    assert 5.0 < eight["other_models_s"] / one["other_models_s"] < 8.0
    assert eight["memory_needed_gib"] - one["memory_needed_gib"] < 3.0


@pytest.mark.parametrize(
    "name", ["llama-3.1-8b", "llama-3.2-1b", "mixtral-8x7b", "gpt-oss-20b", "bert-large"]
)
def test_splitting_a_model_loses_no_parameters_and_no_forward_work(name: str) -> None:
    asked = job(f"preset: {name}", "sequence_length: 512")
    half = split_layers(asked.model, int(asked.model.layers or 0) // 2)
    assert all_params(half) == pytest.approx(asked.model.params, rel=1e-9)
    frozen = replace(half, parts=tuple(replace(part, trains="all") for part in half.parts))
    whole = flops_per_sample(asked.model, asked.training)
    assert flops_per_sample(frozen, asked.training) == pytest.approx(whole, rel=0.02)
    assert flops_per_sample(half, asked.training) < 0.75 * whole


def test_the_more_layers_learn_the_more_it_costs() -> None:
    rows = [estimate(f"{LANGUAGE}, trainable: head")]
    rows += [estimate(f"{LANGUAGE}, last_layers: {number}") for number in (1, 4, 12)]
    rows.append(estimate(LANGUAGE))
    for key in ("step_time_s", "memory_needed_gib", "checkpoint_gib"):
        values = [row[key] for row in rows]
        assert values == sorted(values), key
    assert rows[0]["step_time_s"] < 0.5 * rows[-1]["step_time_s"]


@pytest.mark.parametrize(
    "model",
    [
        parts("preset: llama-3.2-1b", f"{ENCODER}, trainable: none", "preset: bert-base, tokens: 128"),
        "preset: mixtral-8x7b, last_layers: 8",
    ],
)
def test_the_search_with_and_without_its_bound_agrees(model: str) -> None:
    asked = job(model, "sequence_length: 2048")
    machines = Table({**{name: [value] * 2 for name, value in A100.items()}, "accelerator_count": [8, 4]})
    found = [
        estimate_shapes(asked.model, asked.training, machines, [1, 4, 16], prune=prune)
        for prune in (True, False)
    ]
    assert any(found[0]["fits"])
    assert found[0]["step_time_s"].tolist() == pytest.approx(found[1]["step_time_s"].tolist(), nan_ok=True)


def test_flops_given_by_hand_widen_the_interval_by_their_share() -> None:
    sure, unsure = (
        estimate(parts(LANGUAGE, f"{ENCODER}, flops_within: {factor}")) for factor in ("1.0", "2.0")
    )
    alone = estimate("preset: vit-l-16, flops_within: 2.0", PINNED)
    assert unsure["step_time_s"] == sure["step_time_s"]
    spread = [row["step_time_high_s"] / row["step_time_s"] for row in (sure, unsure, alone)]
    assert spread == sorted(spread) and spread[2] > 2.0


def test_a_model_with_parts_survives_plain_values() -> None:
    from dataclasses import asdict

    model = job(parts(LANGUAGE, f"{ENCODER}, trainable: none")).model
    assert model_from(asdict(model)) == model
    assert len(build_job(model, job(LANGUAGE).training, MACHINE).beside) == 1


def test_another_resolution_of_a_preset_changes_its_work_with_the_area() -> None:
    small, large = (job(f"preset: resnet-50, image_size: {size}", PINNED).model for size in (224, 448))
    assert large.forward_flops_per_sample == pytest.approx(4 * (small.forward_flops_per_sample or 0))
    assert large.activations_per_sample == pytest.approx(4 * (small.activations_per_sample or 0))


@pytest.mark.parametrize(
    ("model", "training", "message"),
    [
        ("preset: bert-base, parts: [{preset: bert-base}]", "", "model.preset: parts state the sizes"),
        ("parts: []", "", "model.parts: is an empty list"),
        (parts("preset: bert-base, tokens: 5"), "", "model.parts.0..tokens: .*training.sequence_length"),
        (parts("preset: bert-base", "preset: nonsense-1"), "", "model.parts.1..preset: .*not known"),
        (parts("preset: bert-base", "family: cnn, params: 1e6"), "", "model.parts.1.* needs 'forward_flops"),
        (parts("preset: resnet-50", "preset: bert-base"), "", "model.parts.1.: needs 'tokens'"),
        (
            parts("preset: bert-base", "preset: resnet-50, tokens: 9"),
            "",
            "model.parts.1..tokens: .*has no tokens",
        ),
        ("preset: bert-base, trainable: none", "", "model.trainable: nothing learns"),
        ("preset: bert-base, last_layers: 12", "", "model.last_layers: the network has 12 layers"),
        ("preset: resnet-50, last_layers: 2", "", "model.last_layers: the layers of family 'cnn'"),
        ("preset: bert-base, last_layers: 2", "method: lora", "model.last_layers: method lora freezes"),
        (
            "preset: bert-base, last_layers: 2",
            "layout: {pipeline_parallel: 2}",
            "training.layout.pipeline_parallel: several networks run without",
        ),
        (
            parts("preset: bert-base", "preset: vit-l-16"),
            "memory: {offload_optimizer: true}",
            "training.memory.offload_optimizer: is modelled for one network",
        ),
    ],
)
def test_faults_name_the_place_and_the_remedy(model: str, training: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        job(model, training or "precision: bf16")
