"""What a plan says because of its workload."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.inputs.presets import encoder_positions, load_presets
from tests.planner.spine_catalogs import A10G, A100X8, L4, Offer, make_catalog, plan_on, work

SPEECH = {"preset": "whisper-tiny"}
CLIPS = {"samples": 100_000, "global_batch": 64}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"encoded": "audio"}, "decoding audio on CPU cores is not in the speed"),
        ({"encoded": "video"}, "decoding video on CPU cores is not in the speed"),
        ({"encoded": "audio", "decode_samples_per_s_per_core": 50}, ""),
        ({"encoded": "image"}, ""),  # at the rate measured
        ({}, ""),
    ],
)
def test_decoding_of_which_no_rate_is_known_is_said(data: dict[str, Any], said: str) -> None:
    set_of = {"samples": 100_000, "sample_size": "480KB", **data}
    plan = plan_on(
        make_catalog([Offer(A10G, "us-east-1", "1.0")]), work(model=SPEECH, training=CLIPS, data=set_of)
    ).plan
    notes = [note for note in plan.warnings if note.startswith("decoding ")]
    assert [note.startswith(said) for note in notes] == ([True] if said else [])


@pytest.mark.parametrize(
    ("start", "said"), [("2026-11-01", True), ("2026-11-20", False), ("2026-12-01", False)]
)
def test_a_start_before_the_day_of_planning_is_said(start: str, said: bool) -> None:
    plan = plan_on(make_catalog([Offer(A10G, "us-east-1", "1.0")]), work(start=start)).plan
    assert any("is before the day of planning, 2026-11-20" in note for note in plan.warnings) is said


@pytest.mark.parametrize(
    ("start", "deadline", "said"),
    [
        ("2026-12-01", "2026-12-03T18:00+05:45", "2026-12-03 18:00+05:45 is 2026-12-03 12:15"),
        ("2026-12-01T01:00+08:00", "72h", "2026-12-01 01:00+08:00 is 2026-11-30 17:00"),
        ("2026-12-01T08:00Z", "2026-12-03T18:00", ""),
    ],
)
def test_times_of_another_zone_are_said_to_be_shown_in_utc(start: str, deadline: str, said: str) -> None:
    job = work(start=start, constraints={"deadline": deadline})
    plan = plan_on(make_catalog([Offer(A10G, "us-east-1", "1.0")]), job).plan
    notes = [note for note in plan.warnings if note.startswith("all times are UTC: ")]
    assert notes == ([f"all times are UTC: {said}"] if said else [])


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"params": 2e9, "forward_flops_per_sample": 5e6}, True),
        ({"params": 2e6, "forward_flops_per_sample": 5e6}, False),
        (
            {
                "params": 2e6, "forward_flops_per_sample": 1e6,
                "embedding_tables": {"rows": 1e6, "width": 64, "tables": 8},
            },
            False,
        ),
    ],
)  # fmt: skip
def test_weights_that_no_layer_multiplies_are_tables(model: dict[str, Any], said: bool) -> None:
    network = {"family": "cnn", "activations_per_sample": 8000, **model}
    training = {"samples": 1e6, "global_batch": 4096, "precision": "fp16", "optimizer": "sgd"}
    catalog = make_catalog([Offer(A100X8, "us-east-1", "20.0")])
    plan = plan_on(catalog, work(model=network, training=training)).plan
    assert any("model.embedding_tables" in note for note in plan.warnings) is said


@pytest.mark.parametrize(
    ("training", "said"),
    [
        (
            {"tokens": 1e9, "global_batch": 4_194_304, "sequence_length": 4096},
            "a step of 4,194,304 samples is 17.2B tokens, all of the training: global_batch counts samples; "
            "if it is meant in tokens, write 1,024",
        ),
        (
            {"tokens": 15e12, "global_batch": 524_288, "sequence_length": 1024},
            "a step of 524,288 samples is 537M tokens: global_batch counts samples; "
            "if it is meant in tokens, write 512",
        ),
        (
            {"tokens": 1000, "global_batch": 64, "sequence_length": 4096},
            "a step of 64 samples is 262k tokens, all of the training",
        ),
        ({"tokens": 1e9, "global_batch": 1024, "sequence_length": 4096}, ""),
        ({"steps": 1, "global_batch": 1024, "sequence_length": 4096}, ""),
    ],
)
def test_a_batch_that_is_meant_in_tokens_is_said(training: dict[str, Any], said: str) -> None:
    catalog = make_catalog([Offer(A100X8, "us-east-1", "20.0")])
    text = work(model={"preset": "gpt-2-124m"}, training=training, constraints={"max_nodes": 64})
    notes = [note for note in plan_on(catalog, text).plan.warnings if note.startswith("a step of")]
    assert notes == ([said] if said else [])


@pytest.mark.parametrize(
    ("model", "length", "said"),
    [
        ("bert-base", 1024, True),
        ("bert-base", 512, False),
        ("gpt2", 2048, False),
        ("modernbert-base", 1024, False),
        ("deberta-v3-base", 1024, False),  # relative positions
    ],
)
def test_a_sequence_beyond_an_encoders_positions_is_said(model: str, length: int, said: bool) -> None:
    training = {"samples": 1e4, "global_batch": 32, "sequence_length": length}
    plan = plan_on(
        make_catalog([Offer(A100X8, "us-east-1", "20.0")]), work(model={"preset": model}, training=training)
    ).plan
    assert any(f"longer than the 512 positions of {model}" in note for note in plan.warnings) is said


@pytest.mark.parametrize(
    ("model", "length", "trained"), [("modernbert-base", 16_384, "8,192"), ("nomic-embed-text", 8192, "2,048"),
                                     ("esm2-650m", 2048, "1,024")],
)  # fmt: skip
def test_rotary_positions_reach_beyond_what_was_trained_only_if_scaled(
    model: str, length: int, trained: str
) -> None:
    training = {"samples": 1e4, "global_batch": 32, "sequence_length": length}
    plan = plan_on(
        make_catalog([Offer(A100X8, "us-east-1", "20.0")]), work(model={"preset": model}, training=training)
    ).plan
    notes = [note for note in plan.warnings if "rotary positions" in note]
    assert notes == [
        f"training.sequence_length {length:,} is longer than the {trained} tokens that {model} was trained on: longer "
        "contexts need scaled rotary positions"
    ]


def test_the_positions_are_those_of_encoders_that_are_presets() -> None:
    presets = load_presets()
    for name, kind in encoder_positions().items():
        assert presets[name].values["architecture"] == "encoder"
        assert kind in ("rotary", "relative")


@pytest.mark.parametrize(
    ("model", "batch", "said"),
    [
        ("resnet-50", 180, "global_batch 180 is not a multiple of 8, so machines with 8 accelerators, which cannot "
         "share it evenly, are excluded; 176 allows them"),
        ("resnet-50", 184, ""),
        ("resnet-50", 4, ""),  # no batch for 8 accelerators at all
        ("bert-base", 180, ""),  # tensor parallelism divides it
    ],
)  # fmt: skip
def test_a_batch_that_no_machine_of_eight_divides_is_said(model: str, batch: int, said: str) -> None:
    training = {"samples": 1e6, "global_batch": batch, "precision": "fp16"}
    catalog = make_catalog([Offer(A10G, "us-east-1", "1.0")])
    plan = plan_on(catalog, work(model={"preset": model}, training=training)).plan
    assert [note for note in plan.warnings if note.startswith("global_batch")] == ([said] if said else [])


@pytest.mark.parametrize(
    ("batch", "layout", "said"),
    [
        (300, {}, "global_batch 300 does not divide among 8 accelerators, so 4 replicas of 2 share it; 304 does"),
        (304, {}, ""),
        (300, {"tensor_parallel": 2}, ""),  # fixed by the user, whatever the batch
        (7, {}, ""),  # fewer samples than accelerators
    ],
)  # fmt: skip
def test_a_batch_that_sends_a_small_model_to_tensor_parallelism_is_said(
    batch: int, layout: dict[str, int], said: str
) -> None:
    training = {"samples": 1e8, "global_batch": batch, "sequence_length": 1024, "layout": layout}
    catalog = make_catalog([Offer(A100X8, "us-east-1", "20.0")])
    plan = plan_on(catalog, work(model={"preset": "bert-base"}, training=training)).plan
    notes = [note for note in plan.warnings if "does not divide among" in note]
    assert bool(notes) == bool(said) and all(
        said in note and "more samples per second" in note for note in notes
    )


@pytest.mark.parametrize(("checkpoint", "assumptions", "said"), [
    ({"export": False}, {}, True), ({"export": False}, {"whole_run_log_sd": 0.1}, True),
    ({"export": False}, {"beside_steps_ratio": 0}, False), ({"export": False}, {"beside_steps_ratio": 0.36}, False),
    ({}, {}, False),
])  # fmt: skip
def test_where_no_model_is_exported_the_hours_beside_the_steps_are_questioned(
    checkpoint: dict[str, Any], assumptions: dict[str, float], said: bool
) -> None:
    """A forward pass described by a training's sizes; who states the ratio knows."""
    catalog = make_catalog([Offer(A10G, "us-east-1", "1.0")])
    plan = plan_on(catalog, work(checkpoint=checkpoint, assumptions=assumptions)).plan
    found = [note for note in plan.warnings if "if nothing is trained, the 0.36 x the steps" in note]
    assert len(found) == said


@pytest.mark.parametrize(("engine", "precision", "year", "said"), [
    ("sglang", "mxfp4", None, True), ("tensorrt_llm", "mxfp4", 2025, True), ("sglang", "mxfp4", 2026, False),
    ("vllm", "mxfp4", None, False), ("sglang", "bf16", None, False),
])  # fmt: skip
def test_engines_with_slow_kernels_for_experts_in_4_bit_are_named(
    engine: str, precision: str, year: int | None, said: bool
) -> None:
    asked = {"requests": 1e6, "engine": engine, "precision": precision, "input_tokens": {"mean": 500},
             "output_tokens": {"mean": 200, "max": 1000}, "engine_year": year}  # fmt: skip
    text = work(kind="inference", model={"preset": "gpt-oss-20b"}, inference=asked, training=None)
    plan = plan_on(make_catalog([Offer(A100X8, "us-east-1", "20.0")]), text).plan
    assert any("with MXFP4 experts on Hopper and Ampere" in note for note in plan.warnings) is said


@pytest.mark.parametrize(
    ("rate", "owned", "option", "said"),
    [(float("nan"), 4, "owned", True), (3200.0, 4, "owned", False), (float("nan"), 1, "owned", False),
     (float("nan"), 4, "on_demand", False)],
)  # fmt: skip
def test_own_machines_that_no_plan_joins_are_named(rate: float, owned: int, option: str, said: bool) -> None:
    mine = replace(A100X8, provider="onprem", instance_type="ours", internode_gbps=rate)
    catalog = make_catalog(
        [Offer(A10G, "us-east-1", "1.0"), Offer(mine, "onprem", "9.0", option, capacity=owned)]
    )
    notes = plan_on(catalog, work()).plan.warnings
    assert any("ours: internode_gbps is not stated, so no plan joins" in note for note in notes) is said


@pytest.mark.parametrize(
    "changes",
    [
        {"constraints": {"max_nodes": 1}}, {"constraints": {"providers": ["aws"]}},
        {"constraints": {"exclude_purchase_options": ["owned"]}}, {"kind": "fleet", "fleet": {"runs": 4}},
    ],
)  # fmt: skip
def test_own_machines_that_nobody_would_join_are_not_named(changes: dict[str, Any]) -> None:
    """One machine is all that is asked for, these are excluded, or each run of a fleet takes one."""
    mine = replace(A100X8, provider="onprem", instance_type="ours", internode_gbps=float("nan"))
    catalog = make_catalog(
        [Offer(A10G, "us-east-1", "1.0"), Offer(mine, "onprem", "9.0", "owned", capacity=4)]
    )
    assert not [note for note in plan_on(catalog, work(**changes)).plan.warnings if "internode_gbps" in note]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"samples": 100_000, "location": "gcp/us-central1"}, True),
        ({"samples": 100_000, "location": "gcp/us-central1", "sample_size": "480KB"}, False),
        ({"samples": 100_000, "location": "aws/us-east-1"}, False),
        ({"samples": 100_000}, False),
    ],
)
def test_data_of_unknown_size_that_moves_is_said(data: dict[str, Any], said: bool) -> None:
    catalog = make_catalog([Offer(A10G, "us-east-1", "1.0"), Offer(L4, "us-central1", "100.0")])
    notes = plan_on(catalog, work(model=SPEECH, training=CLIPS, data=data)).plan.warnings
    assert (
        any("neither the time nor the price of moving it from gcp/us-central1" in note for note in notes)
        is said
    )


@pytest.mark.parametrize(("hours", "price", "reached"), [(24, "200.0", 0.887), (24, "10.0", None), (25, "200.0", None),
                                                         (20, "200.0", None)])  # fmt: skip
def test_what_just_misses_the_chance_asked_and_costs_far_less_is_shown(
    hours: int, price: str, reached: float | None
) -> None:
    catalog = make_catalog([Offer(A10G, "us-east-1", "1.0"), Offer(A100X8, "us-east-1", price)])
    limits = {"deadline": f"{hours}h", "max_nodes": 1, "deadline_confidence": 0.9}
    plan = plan_on(catalog, work(constraints=limits)).plan
    near = [item for item in plan.relaxations if item.constraint == "confidence"]
    assert [float(item.needed) for item in near] == (
        [] if reached is None else [pytest.approx(reached, abs=0.02)]
    )
    for item in near:
        assert plan.risk is not None
        assert item.best is not None and item.best.instance_type == A10G.instance_type
        assert float(item.best.cost_usd) <= 0.7 * float(plan.risk.expected_cost_usd)
        assert float(item.needed) >= 0.8


@pytest.mark.parametrize(
    ("measured", "said"), [({}, True), ({"measured": "9000 tokens/s on 1 x a10g-24gb-pcie"}, False)]
)
def test_a_run_is_not_asked_for_that_was_measured(measured: dict[str, Any], said: bool) -> None:
    asked = {
        "requests": 1000,
        "input_tokens": {"mean": 4000},
        "output_tokens": {"mean": 50},
        "engine": "vllm",
    }
    job = work(kind="inference", model={"preset": "llama-3.2-1b"}, inference=asked, **measured)
    job.pop("training", None)
    plan = plan_on(make_catalog([Offer(A10G, "us-east-1", "1.0")]), job).plan
    assert plan.lines
    assert any("measure such a job" in text for text in plan.warnings) is said
