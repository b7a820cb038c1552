"""One job in other words is the same job: by preset or sizes, by tokens, samples, steps or epochs, defaults stated."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from catalogs.tables.table import Table
from planner.asked.job import Job, resolve_job
from planner.inputs.load import parse_workload
from planner.inputs.presets import load_presets, load_released
from planner.performance.search import estimate_shapes
from tests.planner.performance.test_inference import H100

# One of every kind: dense, windows, mixtures, latent attention, hybrids, states, encoders, both, sampled.
KINDS = (
    *("llama-3.2-1b", "gemma-3-4b", "qwen3-30b-a3b", "deepseek-v2-lite", "gpt-oss-20b", "nemotron-h-8b"),
    *("mamba2-1.3b", "bert-large", "modernbert-base", "t5-base", "resnet-50", "vit-base", "whisper-small"),
)
AMOUNT, BATCH, LENGTH = 1_024_000, 256, 1024
EXPLICIT = {
    "precision": "bf16", "optimizer": "adamw", "objective": "pretrain", "method": "full", "layout": "auto",
    "group_by_length": False,
}  # fmt: skip


def job(model: dict[str, Any], **sections: Any) -> Job:
    document = json.dumps({"version": 1, "name": "t", "model": model, **sections})
    return resolve_job(parse_workload(document, Path("w.yaml")).workload, date(2026, 11, 20))


def answer(made: Job) -> tuple[float, ...]:
    """Run time, interval and memory on one node."""
    machine = Table({name: [value] for name, value in H100.items()})
    row = estimate_shapes(made.model, made.training, machine, [1]).row(0)
    assert row["fits"], row["reason"]
    steps = made.total_steps
    return (
        steps * row["step_time_s"], steps * row["step_time_low_s"], steps * row["step_time_high_s"],
        row["memory_needed_gib"], row["mfu"],
    )  # fmt: skip


def sizes(name: str) -> dict[str, Any]:
    """What a preset says, as its owner would write it down; operators of vision models go by the name."""
    values = dict(load_presets()[name].values)
    return values if values["family"] == "transformer" else values | {"name": name}


@pytest.mark.parametrize("name", KINDS)
def test_training_by_preset_sizes_tokens_samples_steps_and_epochs(name: str) -> None:
    text = load_presets()[name].values["family"] == "transformer"
    base = {"global_batch": BATCH, **({"sequence_length": LENGTH} if text else {})}
    wanted = answer(job({"preset": name}, training={**base, "samples": AMOUNT}))
    said: list[dict[str, Any]] = [
        {"model": sizes(name), "training": {**base, "samples": AMOUNT}},
        {"training": {**base, "steps": AMOUNT // BATCH}},
        {"training": {**base, "epochs": 4}, "data": {"samples": AMOUNT // 4}},
        {"training": {**base, "samples": AMOUNT, **EXPLICIT, **({"attention": "auto"} if text else {})}},
    ]
    if text:
        said += [
            {"training": {**base, "tokens": AMOUNT * LENGTH}},
            {"training": {**base, "epochs": 2}, "data": {"tokens": AMOUNT * LENGTH // 2}},
        ]
    for words in said:
        assert answer(job(**{"model": {"preset": name}, **words})) == pytest.approx(wanted), words


@pytest.mark.parametrize("more", [{}, {"lengths": {"mean": 256, "p95": 500}, "packing": False}])
def test_passes_over_a_set_copy_it_once_however_it_is_counted(more: dict[str, Any]) -> None:
    each = LENGTH if not more else 256
    base = {"global_batch": BATCH, "sequence_length": LENGTH, **more}
    passes = [
        job({"preset": "bert-large"}, training={**base, **amount}, data=data).data_gb
        for amount in ({"epochs": 4}, {"samples": AMOUNT}, {"tokens": AMOUNT * each})
        for data in ({"samples": AMOUNT // 4}, {"tokens": AMOUNT // 4 * each})
    ]
    assert passes == pytest.approx([AMOUNT / 4 * each * 2 / 1e9] * len(passes))


@pytest.mark.parametrize("name", KINDS)
def test_answering_by_preset_and_by_sizes(name: str) -> None:
    values = load_presets()[name].values
    asked: dict[str, Any] = {"items": 1e6}
    if values["family"] == "transformer":
        asked["input_tokens"] = {"mean": 700}
    if values.get("architecture") == "decoder":
        asked = {"requests": 1e6, "input_tokens": {"mean": 700}, "output_tokens": {"mean": 200}}
    if name.startswith("whisper"):
        pytest.skip("a transcript is known by the name of its model")
    released = {"precision": load_released().get(name, ("bf16", ""))[0]}  # sizes do not say it
    made = [
        answer(job(model, kind="inference", inference={**asked, **stated}))
        for model, stated in (
            ({"preset": name}, {}), (sizes(name), released), ({"preset": name}, {**released, "kv_precision": "bf16"}),
        )
    ]  # fmt: skip
    assert made[1] == pytest.approx(made[0])
    assert made[2] == pytest.approx(made[0])


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        ("llama-3.2-1b", {"objective": "reward"}), ("xlm-roberta-base", {"objective": "sft"}),
        ("xlm-roberta-base", {"objective": "contrastive", "contrastive": {"width": 768}}),
    ],
)  # fmt: skip
def test_scores_embeddings_and_classes_have_no_output_layer_of_the_vocabulary(
    name: str, objective: dict[str, Any]
) -> None:
    training = {"samples": 1e6, "global_batch": 256, "sequence_length": 128, **objective}
    left_out, none, all_of_it = (
        answer(job({"preset": name, **share}, training=training))
        for share in ({}, {"predicted_share": 0}, {"predicted_share": 1})
    )
    assert left_out == none
    assert all_of_it[0] > 1.1 * none[0]
