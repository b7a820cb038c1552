"""The inference model: rates of replicas, generation of a step, batch inference on clusters."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.tables.table import Table
from planner.asked.job import resolve_job
from planner.errors import InputError
from planner.estimation.inference import engine_words
from planner.inputs.item_passes import Passes, load_passes
from planner.inputs.load import parse_workload
from planner.inputs.model_config import stored_precision
from planner.inputs.presets import find_preset, load_presets, load_released
from planner.performance.constants import load_constants
from planner.performance.inference.chips import (
    WEIGHT_BYTES,
    chip_class,
    routed_params,
    stored_bytes,
    table_params,
)
from planner.performance.inference.engines import find_engine
from planner.performance.inference.rates import (
    Cases,
    Efficiency,
    output_rate,
    prefill_s,
    read_bytes,
    room,
    step_s,
)
from planner.performance.post_training.spec import Engine
from planner.performance.search import estimate_shapes
from planner.releases import figures_of_release
from planner.render.words import assumed_sizes
from tests.planner.performance.test_performance import A100

REQUESTS = {
    "requests": 1e6, "input_tokens": {"mean": 900}, "output_tokens": {"mean": 300, "max": 2000}, "engine": "vllm",
}  # fmt: skip
H100 = {**A100, "memory_gb_per_s": 3350.0, "bf16_tflops": 989.0, "fp16_tflops": 989.0, "fp8_tflops": 1979.0,
        "generation": "hopper"}  # fmt: skip
A10G = {**A100, "memory_gb_per_s": 600.0, "bf16_tflops": 70.0, "fp16_tflops": 70.0, "fp8_tflops": None,
        "accelerator_count": 1, "accelerator_memory_gib": 22.0}  # fmt: skip


def case(**changes: float) -> Cases:
    """Llama-3.1-8B in 16 bit on one H100."""
    values = {
        "params": 8.03e9, "active": 8.03e9, "routed": 0.0, "layers": 32, "hidden": 4096, "attends": 1,
        "window": np.inf, "windowed": 0,
        "experts": 0, "per_token": 0,
        "key_value_bytes": 131_072, "weight_bytes": 2.0, "expert_bytes": 2.0, "tables": 0.0,
        "table_bytes": 2.0, "prompt": 512, "answer": 512,
        "running": np.inf, "tp": 1, "pp": 1, "peak": 989e12, "memory_rate": 3.35e12, "memory": 80e9, "link_rate": 450e9,
    } | changes  # fmt: skip
    return Cases(**{name: np.asarray([float(value)]) for name, value in values.items()})


def engine(**changes: float) -> Efficiency:
    one = np.ones(1)
    made = Efficiency(0.5 * one, 0.8 * one, 1e-3 * one, 2e-5, 2e-5, 0.2, 256 * one, 0.3, 0.5)
    values: dict[str, Any] = {name: value * one for name, value in changes.items()}
    return replace(made, **values)


def workload(**sections: Any) -> str:
    base = {
        "version": 1,
        "kind": "inference",
        "name": "t",
        "model": {"preset": "llama-3.1-8b"},
        "inference": REQUESTS,
    }
    return json.dumps({key: value for key, value in (base | sections).items() if value is not None})


def estimate(machine: dict[str, Any] = H100, nodes: tuple[int, ...] = (1,), **sections: Any) -> Table:
    job = resolve_job(parse_workload(workload(**sections), Path("w.yaml")).workload, date(2026, 11, 20))
    return estimate_shapes(job.model, job.training, Table({k: [v] for k, v in machine.items()}), nodes)


def test_one_sequence_decodes_at_the_speed_of_memory() -> None:
    alone = step_s(case(running=1), engine(), np.ones(1), np.asarray([768.0]))[0]
    weights = 8.03e9 * 2 / (3.35e12 * 0.8)
    assert weights < alone < 1.4 * weights


def test_long_prompts_are_read_at_the_speed_of_arithmetic() -> None:
    read = prefill_s(case(prompt=8192, running=1), engine())[0]
    flops = 2 * 8.03e9 * 8192 + 2 * 32 * 4096 * 8192**2
    assert read == pytest.approx(flops / (989e12 * 0.5), rel=0.02)


def test_long_prompts_of_windows_and_state_spaces_are_read_faster() -> None:
    def slower(preset: str) -> float:
        """Time of a token in prompts of 60,000 tokens over that in prompts of 1,000."""
        asked = REQUESTS | {"output_tokens": {"mean": 1}}
        rates = [
            estimate(model={"preset": preset}, inference=asked | {"input_tokens": {"mean": mean}}).row(0)
            for mean in (1000, 60_000)
        ]
        return float(rates[0]["samples_per_s"] / rates[1]["samples_per_s"]) / 60.0

    assert slower("llama-3.2-3b") > 2.0
    assert slower("gemma-3-4b") < 1.0 + 0.4 * (slower("llama-3.2-3b") - 1.0)
    assert slower("mamba2-2.7b") < 1.2


def test_layers_with_a_window_keep_no_more_than_its_tokens() -> None:
    full, half = case(prompt=32_768), case(prompt=32_768, window=1024, windowed=0.5)
    assert room(half)[0] == pytest.approx(2 * room(full)[0], rel=0.05)
    short = case(prompt=256, answer=100, window=1024, windowed=0.5)
    assert room(short)[0] == room(case(prompt=256, answer=100))[0]
    state = [case(prompt=tokens, window=256, windowed=1) for tokens in (1_000, 100_000)]
    assert room(state[0])[0] == room(state[1])[0]  # a state is as large however long the text
    number, context = np.asarray([64.0]), np.asarray([32_768.0])
    assert step_s(half, engine(), number, context)[0] < 0.7 * step_s(full, engine(), number, context)[0]


def test_a_group_larger_than_the_key_value_heads_keeps_copies_of_them() -> None:
    node = {**A10G, "accelerator_count": 8.0}

    def held(kv_heads: int) -> float:
        sizes = {"family": "transformer", "layers": 40, "hidden": 4096, "heads": 32, "head_dim": 128, "vocab": 32000,
                 "params": 8_000_000_000, "kv_heads": kv_heads, "kv_width": 1024}  # fmt: skip
        asked = REQUESTS | {"tensor_parallel": 8, "max_concurrency": 16}
        return float(estimate(node, model=sizes, inference=asked).row(0)["memory_needed_gib"])

    weights = 8e9 * 2 / 8 / 2**30
    assert held(8) == held(32)
    assert held(2) - weights == pytest.approx(4 * (held(8) - weights))


def test_weights_in_bf16_are_answered_in_fp16_where_a_chip_has_no_bf16() -> None:
    volta = {**A10G, "bf16_tflops": None, "generation": "volta"}
    row = estimate(volta).row(0)
    assert row["fits"]
    stated = estimate(volta, inference=REQUESTS | {"precision": "fp16"}).row(0)
    assert row["step_time_s"] == stated["step_time_s"] == estimate(A10G).row(0)["step_time_s"]
    eight = estimate(volta, inference=REQUESTS | {"precision": "fp8"}).row(0)
    assert eight["reason"] == "no_peak_for_precision"


def test_items_of_an_encoder_with_windows_are_read_with_the_attention_that_it_does() -> None:
    sizes = {
        key: value for key, value in load_presets()["modernbert-base"].values.items() if "window" not in key
    }
    for tokens, less in ((100, 1.0), (8000, 1.5)):
        asked = {"items": 1e5, "input_tokens": {"mean": tokens}}
        windowed, full = (
            estimate(model=model, inference=asked).row(0)["step_time_s"]
            for model in ({"preset": "modernbert-base"}, sizes)
        )
        assert full / windowed == 1.0 if less == 1.0 else full / windowed > less


def test_a_table_of_tokens_that_is_only_looked_up_takes_no_arithmetic() -> None:
    """XLM-RoBERTa has the layers of BERT and eight times its vocabulary: 278 M parameters, as fast as 109 M."""
    asked = {"items": 1e6, "input_tokens": {"mean": 256}}
    large, small = (
        estimate(model={"preset": name}, inference=asked).row(0)["samples_per_s"]
        for name in ("xlm-roberta-base", "bert-base")
    )
    assert large == pytest.approx(small, rel=0.02)
    filled = estimate(model={"preset": "xlm-roberta-base", "predicted_share": 1}, inference=asked).row(0)
    assert large / filled["samples_per_s"] > 2.5


@given(st.floats(1, 512), st.floats(1, 512), st.floats(16, 8192))
def test_more_sequences_raise_the_rate_and_never_the_speed_of_one(
    few: float, more: float, context: float
) -> None:
    low, high = sorted((few, more))
    times = [step_s(case(), engine(), np.asarray([n]), np.asarray([context]))[0] for n in (low, high)]
    assert times[0] <= times[1] * (1 + 1e-12)
    assert low / times[0] <= high / times[1] * (1 + 1e-9)


@given(st.floats(1, 4096))
def test_experts_touched_lie_between_one_sequence_s_and_all(number: float) -> None:
    mixture = case(params=30e9, active=3e9, routed=28e9, experts=128, per_token=8)
    seen = read_bytes(mixture, np.asarray([number]))[0] / 2.0
    assert 3e9 * 0.99 <= seen <= 30e9 * (1 + 1e-12)


def test_tensor_parallelism_over_pci_express_costs_more_where_many_answer() -> None:
    fast, slow = (case(tp=8, link_rate=rate) for rate in (450e9, 31.5e9))
    few, many = (
        step_s(slow, engine(), np.asarray([n]), np.ones(1))
        / step_s(fast, engine(), np.asarray([n]), np.ones(1))
        for n in (1.0, 256.0)
    )
    assert 1.0 < few[0] < 1.05 < many[0]
    assert prefill_s(slow, engine())[0] > prefill_s(fast, engine())[0]
    assert prefill_s(case(link_rate=1.0), engine())[0] == prefill_s(case(), engine())[0]


def test_more_layers_of_the_same_size_take_longer_to_launch() -> None:
    deep, flat = (step_s(case(layers=n), engine(), np.ones(1), np.ones(1))[0] for n in (64, 32))
    assert flat < deep < flat + 1e-3


def test_without_room_for_keys_the_rate_falls() -> None:
    tight = case(params=35e9, active=35e9, key_value_bytes=327_680)
    roomy = case(params=35e9, active=35e9, key_value_bytes=327_680, memory=141e9)
    assert room(tight)[0] < 20 < room(roomy)[0]
    assert output_rate(roomy, engine())[0] > 3 * output_rate(tight, engine())[0]


def test_engines_go_by_the_nearest_year_and_the_newest_by_default() -> None:
    assert find_engine("vllm", None).year == 2026
    assert find_engine("vllm", 2022).year == 2023
    with pytest.raises(ValueError, match="not known"):
        find_engine("nosuch", None)


def test_nodes_answer_in_proportion_and_eight_bit_answers_faster() -> None:
    table = estimate(nodes=(1, 4))
    # but for the end of the run, at which the longest answers are alone
    ratio = table["step_time_s"][0] / table["step_time_s"][1]
    assert 3.97 < ratio < 4.0
    half, eight = estimate(), estimate(inference=REQUESTS | {"precision": "fp8"})
    assert eight["step_time_s"][0] < 0.8 * half["step_time_s"][0]
    assert table["step_time_low_s"][0] < table["step_time_s"][0] < table["step_time_high_s"][0]


def test_a_model_larger_than_a_node_does_not_run() -> None:
    row = estimate(model={"preset": "llama-3.1-405b"}).row(0)
    assert (row["fits"], row["reason"]) == (False, "out_of_memory")
    assert estimate(model={"preset": "llama-3.1-70b"}).row(0)["tp"] > 1


def images(preset: str, **stated: Any) -> float:
    """Items a second on one node."""
    row = estimate(model={"preset": preset}, inference={"items": 1e5, **stated}).row(0)
    assert 0 < row["mfu"] < 0.9
    return float(row["samples_per_s"])


@pytest.mark.parametrize("machine", [H100, A10G], ids=["h100", "a10g"])
@pytest.mark.parametrize(
    "preset",
    ["resnet-50", "efficientnet-b0", "efficientnet-b4", "mobilenetv3-large-100", "vit-base", "vit-huge"],
)
def test_a_forward_pass_is_some_times_faster_than_a_step_of_training(
    preset: str, machine: dict[str, Any]
) -> None:
    """Training does three times the work; answering fuses more. The share of the peak alone said a hundred times."""
    answered = float(
        estimate(machine, model={"preset": preset}, inference={"items": 1e5}).row(0)["samples_per_s"]
    )
    trained = float(
        estimate(
            machine, kind="training", inference=None, model={"preset": preset},
            training={"samples": 1e5, "global_batch": 64 * int(machine["accelerator_count"])},
        ).row(0)["samples_per_s"]
    )  # fmt: skip
    assert 1.2 < answered / trained < 12.0


def test_what_memory_limits_gains_by_memory_and_not_by_arithmetic() -> None:
    def gain(preset: str, **faster: float) -> float:
        rates = [
            estimate(machine, model={"preset": preset}, inference={"items": 1e5}).row(0)["samples_per_s"]
            for machine in (H100, H100 | faster)
        ]
        return float(rates[1] / rates[0])

    arithmetic = {"bf16_tflops": 2.0 * float(H100["bf16_tflops"])}
    memory = {"memory_gb_per_s": 2.0 * float(H100["memory_gb_per_s"])}
    assert gain("efficientnet-b0", **arithmetic) < 1.1 < 1.9 < gain("efficientnet-b0", **memory)
    assert gain("vit-huge", **arithmetic) > gain("resnet-50", **arithmetic)


def test_convolutional_networks_in_8_bit_answer_as_fast_as_measured() -> None:
    card = {**A10G, "memory_gb_per_s": 2039.0, "bf16_tflops": 312.0, "fp16_tflops": 312.0}
    rates = [
        estimate(card, model={"preset": "resnet-50"}, inference={"items": 1e5, "precision": word})[
            "samples_per_s"
        ][0]
        for word in ("bf16", "int8", "fp8")
    ]
    # MLPerf Inference v3.0, offline: 34,000 to 40,000 images/s on an A100 of 80 GB, which has no fp8
    assert 30_000 < rates[1] < 50_000
    assert rates[2] == rates[0]
    for network in ("vgg16", "convnext-xlarge", "efficientnet-b0"):
        assert images(network, precision="int8") > 1.9 * images(network)


def test_a_part_of_a_card_answers_in_proportion() -> None:
    whole = {**A10G, "accelerator_count": 1.0}
    half = {**whole, "accelerator_count": 0.5}
    for asked in ({"items": 1e5}, {"items": 1e5, "precision": "int8"}):
        rates = [
            estimate(machine, model={"preset": "resnet-50"}, inference=asked)["samples_per_s"][0]
            for machine in (whole, half)
        ]
        assert rates[0] == pytest.approx(2 * rates[1])
    long = REQUESTS | {"input_tokens": {"mean": 4000}, "output_tokens": {"mean": 1}, "max_concurrency": 2}
    rates = [
        estimate(m, model={"preset": "llama-3.2-1b"}, inference=long)["samples_per_s"][0]
        for m in (whole, half)
    ]
    assert rates[0] > 1.8 * rates[1]


def test_images_are_answered_no_faster_than_they_are_read_and_decoded() -> None:
    def row(**data: Any) -> dict[str, Any]:
        given = {"model": {"preset": "resnet-50"}, "inference": {"items": 1e6}}
        return estimate(data=data or None, **given).row(0)

    free, small, large = row(), row(sample_size="1KB"), row(sample_size="5MB")
    assert free["samples_per_s"] == small["samples_per_s"] > 10 * large["samples_per_s"]
    assert (free["limited_by"], large["limited_by"]) == ("compute", "data_loading")
    larger = row(sample_size="10MB")
    assert larger["samples_per_s"] == pytest.approx(large["samples_per_s"] / 2)
    assert larger["data_loading_s"] + larger["compute_s"] == pytest.approx(larger["step_time_s"])
    decoded = row(sample_size="1KB", decode_samples_per_s_per_core=50)
    assert decoded["samples_per_s"] < free["samples_per_s"]
    trained = estimate(
        kind="training", inference=None, model={"preset": "resnet-50"}, data={"sample_size": "5MB"},
        training={"samples": 1e6, "global_batch": 1024},
    ).row(0)  # fmt: skip
    assert large["samples_per_s"] == pytest.approx(trained["samples_per_s"], rel=0.02)


def test_an_image_takes_its_denoising_steps() -> None:
    usual = images("stable-diffusion-xl")  # 50 steps with guidance
    assert images("stable-diffusion-xl", denoising_steps=50, guidance=True) == pytest.approx(usual)
    assert images("stable-diffusion-xl", denoising_steps=25) == pytest.approx(2 * usual)
    assert images("stable-diffusion-xl", guidance=False) == pytest.approx(2 * usual)
    assert images("flux.1-schnell", denoising_steps=4) == pytest.approx(7 * images("flux.1-schnell"))


def test_a_transcript_is_written_token_by_token() -> None:
    job = resolve_job(
        parse_workload(
            workload(model={"preset": "whisper-large-v3"}, inference={"items": 1e6}), Path("w.yaml")
        ).workload,
        date(2026, 11, 20),
    )
    assert job.training.tuning.requests is not None
    assert job.training.tuning.requests.rate_ratio == 0.32
    told = [item for item in job.assumptions if item.key == "inference.rate_ratio"]
    assert told
    assert "Whisper" in told[0].note


def test_what_an_encoder_decoder_does_not_count_is_said() -> None:
    asked = workload(model={"preset": "flan-t5-xl"}, inference={"items": 1e6, "input_tokens": {"mean": 300}})
    job = resolve_job(parse_workload(asked, Path("w.yaml")).workload, date(2026, 11, 20))
    assert any("encoder-decoder writes is not counted" in words for words in assumed_sizes(job.assumptions))


@pytest.mark.parametrize(("row", "passes"), load_passes().items())
def test_passes_are_of_presets_and_have_a_source(row: str, passes: Passes) -> None:
    assert row == "*" or find_preset(row) is not None
    assert passes.source
    assert (passes.steps is None) == (passes.rate_ratio != 1.0)


@pytest.mark.parametrize(("preset", "row"), load_released().items())
def test_weights_left_open_are_as_the_model_was_released(preset: str, row: tuple[str, str]) -> None:
    precision, source = row
    assert source and find_preset(preset) is not None
    open_, stated, wide = (
        resolve_job(
            parse_workload(
                workload(model={"preset": preset}, inference=REQUESTS | more), Path("w.yaml")
            ).workload,
            date(2026, 11, 20),
        )
        for more in ({}, {"precision": precision}, {"precision": "bf16"})
    )
    assert open_.training == stated.training != wide.training
    said = f"weights in {precision} assumed, as released (inference.precision)"
    assert [said in assumed_sizes(one.assumptions) for one in (open_, stated, wide)] == [True, False, False]


def test_weights_of_other_models_have_16_bits_where_nothing_is_stated() -> None:
    assert estimate().row(0) == estimate(inference=REQUESTS | {"precision": "bf16"}).row(0)


def test_tokens_in_and_out_are_the_work() -> None:
    job = resolve_job(parse_workload(workload(), Path("w.yaml")).workload, date(2026, 11, 20))
    assert job.total_units == pytest.approx(1e6 * 1200, rel=0.01)
    assert job.export_gb == pytest.approx(1e6 * 300 * 4 / 1e9)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"inference": None}, "inference needs a section 'inference'"),
        ({"training": {"tokens": 1e9, "global_batch": 8}}, "nothing is trained with kind inference"),
        ({"inference": REQUESTS | {"engine": "vlm"}}, "'vlm' is not known"),
        ({"inference": {"items": 5}}, "give requests, input_tokens and output_tokens"),
        ({"model": {"preset": "resnet-50"}}, "does not generate: write items"),
        (
            {"model": {"preset": "wan2.1-14b"}, "inference": {"items": 5}},
            "{mean: 32760} for wan2.1-14b as usual",
        ),
        ({"model": {"preset": "bert-base"}, "inference": {"items": 5}}, "the tokens of an item: {mean: 300}"),
        ({"model": {"preset": "t5-base"}}, "what an encoder-decoder writes is not modelled: give items"),
        ({"kind": "training"}, "needs 'kind: inference'"),
        (
            {"model": {"preset": "resnet-50"}, "inference": {"items": 5, "denoising_steps": 20}},
            "makes nothing in denoising steps",
        ),
        (
            {"model": {"preset": "whisper-large-v3"}, "inference": {"items": 5, "guidance": True}},
            "makes nothing in denoising steps",
        ),
    ],
)
def test_questions_without_sense_are_refused(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_workload(workload(**sections), Path("w.yaml"))
    assert message in str(caught.value)


@pytest.mark.parametrize(("preset", "gigabytes"), [("gpt-oss-120b", 63.0), ("gpt-oss-20b", 14.0)])
def test_models_in_mxfp4_are_as_large_as_their_checkpoints(preset: str, gigabytes: float) -> None:
    asked = workload(model={"preset": preset}, inference=REQUESTS)
    job = resolve_job(parse_workload(asked, Path("w.yaml")).workload, date(2026, 11, 20))
    # sizes of the released weights: vLLM's notes on gpt-oss of August 2025
    assert stored_bytes(job.model, Engine(precision="mxfp4")) == pytest.approx(gigabytes * 1e9, rel=0.06)
    # in fp8 both tables stay in 16 bits
    tables = table_params(job.model)
    assert stored_bytes(job.model, Engine(precision="fp8")) == job.model.params + tables


@pytest.mark.parametrize("number", [1.0, 4.0, 64.0])
def test_of_models_in_mxfp4_only_experts_have_few_bits(number: float) -> None:
    asked = workload(model={"preset": "gpt-oss-20b"}, inference=REQUESTS)
    job = resolve_job(parse_workload(asked, Path("w.yaml")).workload, date(2026, 11, 20))
    routed = routed_params(job.model)
    values = {"params": job.model.params, "routed": routed, "experts": 32.0, "per_token": 4.0}
    few, many = (
        float(read_bytes(case(**values, expert_bytes=each), np.asarray([number]))[0])
        for each in (WEIGHT_BYTES["mxfp4"], 2.0)
    )
    others = 2.0 * (job.model.params - routed)
    assert (few - others) / (many - others) == pytest.approx(4.25 / 16.0)


@pytest.mark.parametrize(
    ("config", "precision"),
    [
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, "fp8"),
        ({"quantization_config": {"quant_method": "mxfp4"}}, "mxfp4"),
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, "int4"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 8}}, "int8"),
        ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}}, "int8"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}, "fp4"),
        (
            {"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": {
                "weights": {"num_bits": 8, "type": "float"}}}}}, "fp8",
        ),
        ({"text_config": {"quantization_config": {"quant_method": "fp8"}}}, "fp8"),
        ({"quantization_config": {"quant_method": "hqq", "quant_config": {}}}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_a_config_says_in_how_many_bits_its_weights_are(
    config: dict[str, Any], precision: str | None
) -> None:
    assert stored_precision(config) == precision


def test_weights_left_open_are_as_the_config_of_the_model_says(tmp_path: Path) -> None:
    sizes = {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    }  # fmt: skip

    def job(config: dict[str, Any], **more: Any) -> Any:
        (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
        asked = workload(model={"config": "./config.json"}, inference=REQUESTS | more)
        return resolve_job(parse_workload(asked, tmp_path / "w.yaml").workload, date(2026, 11, 20))

    quantised = {**sizes, "quantization_config": {"quant_method": "fp8"}}
    open_, stated = job(quantised), job(sizes, precision="fp8")
    assert open_.training == stated.training != job(sizes).training
    assert job(quantised, precision="bf16").training == job(sizes).training
    said = "weights in fp8 assumed, as released (inference.precision)"
    assert said in assumed_sizes(open_.assumptions)


def test_what_is_answered_is_not_stored_with_the_prompts() -> None:
    short, long = (
        resolve_job(
            parse_workload(
                workload(inference=REQUESTS | {"output_tokens": {"mean": mean}}), Path("w.yaml")
            ).workload,
            date(2026, 11, 20),
        )
        for mean in (10, 1000)
    )
    assert short.data_gb == long.data_gb


def test_prompts_in_the_cache_are_no_work_that_the_utilisation_counts() -> None:
    def row(prompt: int) -> dict[str, Any]:
        asked = {"requests": 1e6, "input_tokens": {"mean": prompt}, "output_tokens": {"mean": 300}}
        return estimate(inference=asked | {"shared_prefix": True}).row(0)

    for prompt in (500, 5_000, 50_000):
        found = row(prompt)
        assert found["mfu"] < 0.5
        answers = 2 * 8.03e9 * 300 * found["samples_per_s"]
        assert found["mfu"] == pytest.approx(answers / (8 * 989e12), rel=0.01)


def test_time_of_the_host_counts_once_per_sequence_of_a_step() -> None:
    number, context = np.asarray([64.0]), np.asarray([512.0])
    plain, hosted = engine(), engine(sequence_s=5e-5)
    more = step_s(case(), hosted, number, context) - step_s(case(), plain, number, context)
    assert more[0] == pytest.approx(64 * 5e-5)


@pytest.mark.parametrize(
    ("vendor", "generation", "year", "expected"),
    [
        ("amd", "cdna3", 2024, "amd.before_2025"),
        ("amd", "cdna3", 2025, "amd"),
        ("amd", "cdna2", 2024, "amd.cdna2"),
        ("nvidia", "hopper", 2024, "nvidia"),
        ("habana", "gaudi3", 2024, "habana"),
    ],
)
def test_software_for_chips_of_amd_changed_with_its_releases(
    vendor: str, generation: str, year: int, expected: str
) -> None:
    assert chip_class(vendor, generation, year) == expected


def test_an_engine_without_a_year_is_the_newest_on_chips_of_amd_too() -> None:
    chip = {**H100, "vendor": "amd", "generation": "cdna3", "accelerator": "mi300x-192gb-oam"}
    rates = []
    for extra in ({}, {"engine_year": 2026}, {"engine_year": 2024}):
        text = workload(inference={**REQUESTS, **extra})
        job = resolve_job(parse_workload(text, Path("w.yaml")).workload, date(2026, 11, 28))
        table = estimate_shapes(job.model, job.training, Table({name: [chip[name]] for name in chip}), [1])
        rates.append(float(table.row(0)["samples_per_s"]))
    assert rates[0] == rates[1] > 2.0 * rates[2]


@pytest.mark.parametrize(
    ("engine_name", "version", "year"),
    [
        ("vllm", "0.2.7", 2023), ("vllm", "v0.5.4", 2024), ("vllm", "0.6.0", 2025), ("vllm", "0.10.1.post1", 2025),
        ("vllm", "0.0.9", 2023), ("vllm", "0.13.0", 2025), ("vllm", "0.14.1", 2026), ("tensorrt_llm", "0.16.0", 2024),
        ("tensorrt_llm", "1.2.0rc2", 2025), ("sglang", "0.4.9", 2025), ("sglang", "0.5.17", 2026),
    ],
)  # fmt: skip
def test_a_version_counts_to_the_year_in_which_it_was_released(
    engine_name: str, version: str, year: int
) -> None:
    assert figures_of_release(engine_name, version)[1] == year
    asked = workload(inference={**REQUESTS, "engine": engine_name, "engine_version": version})
    job = resolve_job(parse_workload(asked, Path("w.yaml")).workload, date(2026, 11, 28))
    assert job.training.tuning.requests is not None
    assert job.training.tuning.requests.engine.year == year


def test_vllm_before_its_rewrite_has_figures_of_its_own() -> None:
    assert figures_of_release("vllm", "0.7.3") == ("vllm_v0", 2025)
    assert figures_of_release("vllm", "0.8.0") == ("vllm", 2025)
    steps = [find_engine(*figures_of_release("vllm", version)).step_s for version in ("0.7.3", "0.8.0")]
    assert steps[0] > 2.0 * steps[1]  # the host's work in each step
    held = [find_engine("vllm", year).sequence_s for year in (2025, 2026)]
    assert held[0] > 2.0 * held[1]  # what asynchronous scheduling hides


@pytest.mark.parametrize(("version", "wide"), [("0.13.0", True), ("0.14.0", False), (None, False)])
def test_weights_in_mxfp4_are_as_sure_as_others_in_engines_of_2026(version: str | None, wide: bool) -> None:
    asked = {**REQUESTS, **({"engine_version": version} if version else {})}
    four, half = (
        estimate(inference={**asked, "precision": precision}).row(0) for precision in ("mxfp4", "bf16")
    )
    widths = [shape["step_time_high_s"] / shape["step_time_s"] for shape in (four, half)]
    assert (widths[0] > 1.2 * widths[1]) == wide


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"engine": "mlc_llm", "engine_version": "0.1"}, "give engine_year instead"),
        ({"engine_version": "0.6.3", "engine_year": 2025}, "remove one"),
        ({"engine_version": "nightly"}, "engine_version"),
        ({"engine_version": 0.10}, "engine_version"),
    ],
)
def test_versions_that_say_nothing_are_refused(extra: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_workload(workload(inference={**REQUESTS, **extra}), Path("w.yaml"))
    assert message in str(caught.value)


def test_quantised_models_keep_their_vocabulary_in_16_bits_but_where_the_engine_quantises_it() -> None:
    asked = workload(model={"preset": "qwen2.5-7b"}, inference=REQUESTS)
    model = resolve_job(parse_workload(asked, Path("w.yaml")).workload, date(2026, 11, 20)).model
    both = table_params(model)
    assert both == 2 * 152_064 * 3584
    kept, whole = (stored_bytes(model, Engine(name, precision="int4")) for name in ("vllm", "llama.cpp"))
    assert kept - whole == pytest.approx(both * (2.0 - WEIGHT_BYTES["int4"]))
    assert stored_bytes(model, Engine("vllm")) == pytest.approx(2.0 * model.params)


def rates_of_runs(*counts: float, **section: Any) -> list[float]:
    """Requests/s of runs of so many requests on eight H100 in one node."""
    found = []
    for count in counts:
        asked = workload(inference={**REQUESTS, **section, "requests": count})
        job = resolve_job(parse_workload(asked, Path("w.yaml")).workload, date(2026, 11, 20))
        table = estimate_shapes(job.model, job.training, Table({name: [H100[name]] for name in H100}), [1])
        found.append(float(table.row(0)["samples_per_s"]))
    return found


def test_short_runs_are_slower_and_long_ones_reach_the_steady_rate() -> None:
    rates = rates_of_runs(100, 1000, 1e4, 1e5, 1e6, 1e8)
    assert rates == sorted(rates)
    assert rates[0] < 0.5 * rates[-1]
    assert rates[-2] > 0.98 * rates[-1]
    # answers of one length end together: what is left is a last wave that may be smaller
    equal = {"output_tokens": {"mean": 300, "p95": 300, "max": 300}}
    even = rates_of_runs(2048 * 8, 1e8, **equal)
    assert even[0] == pytest.approx(even[1], rel=0.02)


@given(number=st.floats(1, 512), layers=st.integers(1, 126), launch=st.floats(1e-5, 2e-3))
def test_a_step_in_eager_mode_takes_no_less_than_its_launches_or_its_kernels(
    number: float, layers: int, launch: float
) -> None:
    one, context = case(layers=layers), np.asarray([1024.0])
    replayed = step_s(one, engine(), np.asarray([number]), context)[0]
    eager = step_s(one, replace(engine(), launch_s=launch), np.asarray([number]), context)[0]
    assert max(replayed, layers * launch) <= eager * (1 + 1e-12)
    assert eager <= 2**0.25 * max(replayed, layers * launch) * (1 + 1e-12)


def answers(**more: Any) -> dict[str, Any]:
    """The bundled requests on one H100 in vLLM since 0.14."""
    return estimate(inference={**REQUESTS, "engine_version": "0.14", "tensor_parallel": 1, **more}).row(0)


def test_eager_mode_costs_a_single_sequence_much_and_many_little() -> None:
    """An 8B model on H100: 1.8 times for one (launches of 32 layers), 1 % at 256 at once, as prompts hide launches."""
    slowed = {
        running: answers(max_concurrency=running)["samples_per_s"]
        / answers(max_concurrency=running, cuda_graphs=False)["samples_per_s"]
        for running in (1, 256)
    }
    assert 1.5 < slowed[1] < 2.0
    assert 1.005 < slowed[256] < 1.05


def test_the_interval_is_wider_in_eager_mode() -> None:
    replayed, eager = (
        np.log(row["step_time_high_s"] / row["step_time_s"])
        for row in (answers(), answers(cuda_graphs=False))
    )
    assert eager == pytest.approx(np.hypot(replayed, load_constants()["decode.eager_spread"]))


def test_releases_without_cuda_graphs_are_no_slower_in_eager_mode() -> None:
    """Figures of vLLM of 2023 hold its launches: it had no graphs before December."""
    old = [answers(engine_version="0.2", cuda_graphs=graphs) for graphs in (True, False)]
    assert [old[1][name] for name in ("step_time_s", "step_time_high_s")] == [
        old[0][name] for name in ("step_time_s", "step_time_high_s")
    ]


def test_items_that_nothing_is_written_for_do_not_ask_for_graphs() -> None:
    asked = {"items": 1e6, "input_tokens": {"mean": 256}}
    each = [
        estimate(model={"preset": "bert-base"}, inference={**asked, "cuda_graphs": graphs}).row(0)
        for graphs in (True, False)
    ]
    assert each[0]["step_time_high_s"] == each[1]["step_time_high_s"]


def test_eager_mode_of_an_engine_that_was_not_measured_is_refused() -> None:
    with pytest.raises(InputError, match=r"eager mode of 'llama\.cpp' is not known"):
        estimate(inference={**REQUESTS, "engine": "llama.cpp", "cuda_graphs": False})
    assert answers(engine_version=None, engine="vllm_v0", cuda_graphs=False)["fits"]


def test_estimates_name_an_engine_in_eager_mode() -> None:
    assert engine_words(Engine("vllm", 2026)) == "vllm 2026"
    assert engine_words(Engine("vllm", 2026, graphs=False)) == "vllm 2026 in eager mode"
