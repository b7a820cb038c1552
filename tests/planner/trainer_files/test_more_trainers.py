"""Oumi, MaxText, Levanter, nanotron, SimpleTuner, kohya's scripts, diffusers and AI Toolkit: what is read."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.trainer_files.files import parse_document
from planner.trainer_files.gather import Wishes, gather
from planner.trainer_files.registry import detect
from tests.planner.trainer_files.fixtures_of_trainers import (
    AI_TOOLKIT,
    DIFFUSERS,
    KOHYA,
    LEVANTER,
    MAXTEXT,
    MAXTEXT_SCRIPT,
    NANOTRON,
    OUMI,
    OUMI_VERL,
    SIMPLETUNER,
)
from tests.planner.trainer_files.test_tuners import draft, read


def test_oumi(tmp_path: Path) -> None:
    found = draft(tmp_path, OUMI, accelerators=8)
    assert found["model.preset"] == "llama-3.1-8b"
    assert found["training.global_batch"] == 8 * 4 * 8
    assert (found["training.epochs"], found["training.sequence_length"]) == (2, 8192)
    assert (found["training.method"], found["training.lora_rank"]) == ("qlora", 8)
    assert found["training.adapter.targets"] == ["q_proj", "v_proj"]
    assert (found["training.objective"], found["training.precision"]) == ("sft", "bf16")
    assert (found["training.layout.zero_stage"], found["training.layout.recompute"]) == (3, "full")


def test_oumi_with_all_weights_in_16_bits_keeps_no_copy_in_32(tmp_path: Path) -> None:
    found = draft(tmp_path, OUMI.replace("use_peft: true", "use_peft: false"))
    assert found["training.memory.master"] == "none"
    assert "training.method" not in found


def test_oumi_hands_grpo_to_verl(tmp_path: Path) -> None:
    found = draft(tmp_path, OUMI_VERL)
    assert found["model.preset"] == "qwen3-4b"
    assert found["training.global_batch"] == 64 * 16
    assert found["training.sequence_length"] == 256 + 1024
    assert (found["training.objective"], found["training.epochs"]) == ("grpo", 1)


def test_oumi_without_a_trainer_takes_its_default(tmp_path: Path) -> None:
    found = read(tmp_path, OUMI.replace("trainer_type: TRL_SFT", "")).facts["training.objective"]
    assert (found.value, found.assumed) == ("sft", True)


@pytest.mark.parametrize("section", ["data", "trainer", "algorithm", "actor_rollout_ref"])
@pytest.mark.parametrize("value", [3, True, "x", [1]])
def test_oumi_s_sections_of_verl_that_are_none_count_as_left_out(
    section: str, value: object, tmp_path: Path
) -> None:
    data = {"model": {"model_name": "Qwen/Qwen3-4B"},
            "training": {"trainer_type": "VERL_GRPO", "verl_config_overrides": {section: value}}}  # fmt: skip
    found = draft(tmp_path, json.dumps(data))
    assert (found["model.preset"], found["training.objective"]) == ("qwen3-4b", "grpo")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("model: {model_name: a/b}\ngeneration: {max_new_tokens: 5}\n", "it trains nothing"),
        ("model: {model_name: a/b}\ntraining: {}\ntuning: {n_trials: 3}\n", "tries many values"),
        (
            "model: {model_name: a/b}\ntraining: {trainer_type: PPO}\n",
            r"training\.trainer_type: must be one of",
        ),
    ],
)
def test_files_of_oumi_that_train_nothing_say_so(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=reason):
        read(tmp_path, text)


def test_maxtext_counts_samples_per_device(tmp_path: Path) -> None:
    found = draft(tmp_path, MAXTEXT, accelerators=16)
    assert found["model.preset"] == "llama-3-70b"
    assert found["training.global_batch"] == 4 * 16
    assert (found["training.steps"], found["training.sequence_length"]) == (30, 8192)
    assert found["training.layout.tensor_parallel"] == 2
    assert found["training.stack"] == "compiled"


def test_maxtext_in_a_script_states_its_devices(tmp_path: Path) -> None:
    found = draft(tmp_path, MAXTEXT_SCRIPT, "run.sh")
    assert found["model.preset"] == "mixtral-8x7b"
    assert found["training.global_batch"] == 16 * 4 * 2 // 2  # half a sample for each device
    assert (found["training.precision"], found["training.layout.recompute"]) == ("fp8", "none")


@pytest.mark.parametrize("degree", ["dcn_data_parallelism=16", "ici_fsdp_parallelism=4"])
def test_a_degree_of_maxtext_left_out_takes_devices_that_are_not_known(degree: str, tmp_path: Path) -> None:
    text = MAXTEXT_SCRIPT.replace(degree, "")
    assert "training.global_batch" in draft(tmp_path, MAXTEXT_SCRIPT, "run.sh")
    found = draft(tmp_path, text, "run.sh", accelerators=64)
    assert found["training.global_batch"] == 1 * 64 // 2  # half a sample for each, two devices share one


@pytest.mark.parametrize(
    ("sizes", "billions"),
    [
        # published counts of the models whose sizes these are: llama3.1-8b, qwen3-30b-a3b, deepseek-v3, gemma2-9b
        ({"base_emb_dim": 4096, "base_num_query_heads": 32, "base_num_kv_heads": 8, "base_num_decoder_layers": 32,
          "base_mlp_dim": 14336, "vocab_size": 128256, "decoder_block": "llama2"}, 8.03),
        ({"base_emb_dim": 2048, "base_num_query_heads": 32, "base_num_kv_heads": 4, "base_num_decoder_layers": 48,
          "base_mlp_dim": 768, "base_moe_mlp_dim": 768, "num_experts": 128, "num_experts_per_tok": 8,
          "vocab_size": 151936, "decoder_block": "qwen3_moe"}, 30.53),
        ({"base_emb_dim": 7168, "base_num_query_heads": 128, "base_num_kv_heads": 128, "base_num_decoder_layers": 61,
          "base_mlp_dim": 18432, "base_moe_mlp_dim": 2048, "first_num_dense_layers": 3, "num_experts": 256,
          "num_experts_per_tok": 8, "shared_experts": 1, "vocab_size": 129280, "decoder_block": "deepseek",
          "attention_type": "mla", "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
          "qk_rope_head_dim": 64, "v_head_dim": 128}, 671.0),
        ({"base_emb_dim": 3584, "base_num_query_heads": 16, "base_num_kv_heads": 8, "base_num_decoder_layers": 21,
          "base_mlp_dim": 14336, "head_dim": 256, "vocab_size": 256128, "decoder_block": "gemma2",
          "logits_via_embedding": True}, 9.24),
        ({"global_parameter_scale": 64, "base_config": "base.yml"}, 64.0),
    ],
)  # fmt: skip
def test_sizes_of_maxtext_count_as_published(sizes: dict[str, Any], billions: float, tmp_path: Path) -> None:
    found = draft(tmp_path, json.dumps(sizes), "model.yml")
    within = 0.02 if "global_parameter_scale" in sizes else 0.01  # `64b` is the name of a scale
    assert found["model.params"] == pytest.approx(billions * 1e9, rel=within)


def test_a_size_beside_maxtext_s_model_replaces_its_own(tmp_path: Path) -> None:
    text = MAXTEXT.replace("llama3-70b", "mixtral-8x7b\nbase_num_decoder_layers: 5")
    found = draft(tmp_path, text)
    assert (found["model.layers"], found["model.experts"], found["model.hidden"]) == (5, 8, 4096)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (MAXTEXT + "teacher_overrides: {model_name: llama3-70b}\n", "distillation"),
        (
            "base_emb_dim: 8\nbase_num_decoder_layers: 2\ndecoder_block: unheard-of\n",
            "decoder_block unheard-of",
        ),
        ("base_config: base.yml\nglobal_parameter_scale: 3\n", "power of two"),
        ("base_config: inference/some.yml\nmodel_name: llama2-70b\n", "trains nothing"),
    ],
)
def test_what_is_not_read_of_maxtext_has_a_reason(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=reason):
        read(tmp_path, text)


def test_levanter(tmp_path: Path) -> None:
    found = draft(tmp_path, LEVANTER)
    assert found["model.params"] == pytest.approx(6.738e9, rel=1e-3)
    assert (found["training.global_batch"], found["training.steps"]) == (256, 1000)
    assert (found["training.sequence_length"], found["training.precision"]) == (4096, "bf16")
    assert found["training.layout.tensor_parallel"] == 2
    with pytest.raises(InputError, match=r"model\.type backpack"):
        read(tmp_path, LEVANTER.replace("type: llama", "type: backpack"))


def test_nanotron(tmp_path: Path) -> None:
    found = draft(tmp_path, NANOTRON)
    assert found["model.params"] == pytest.approx(3.213e9, rel=1e-3)
    assert found["training.global_batch"] == 2 * 8 * 4
    assert (found["training.layout.tensor_parallel"], found["training.layout.zero_stage"]) == (2, 1)


@pytest.mark.parametrize(
    ("text", "name", "preset", "batch", "rank"),
    [
        (SIMPLETUNER, "config.json", "flux.1-dev", 2 * 4 * 8, 16),
        (KOHYA, "run.toml", "stable-diffusion-1.5", 2, 32),
        (DIFFUSERS, "run.sh", "stable-diffusion-xl", 2 * 3 * 4, 8),
        (AI_TOOLKIT, "run.yaml", "flux.1-dev", 2, 16),
    ],
)
def test_trainers_of_image_models(
    text: str, name: str, preset: str, batch: int, rank: int, tmp_path: Path
) -> None:
    found = draft(tmp_path, text, name)
    assert (found["model.preset"], found["training.global_batch"]) == (preset, batch)
    assert (found["training.method"], found["training.lora_rank"]) == ("lora", rank)
    assert "training.sequence_length" not in found


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("black-forest-labs/FLUX.1-schnell", "flux.1-schnell"), ("/models/FLUX-dev", "flux.1-dev"),
        ("black-forest-labs/FLUX.1-Kontext-dev", "flux.1-dev"),
        ("stabilityai/stable-diffusion-2-1", "stable-diffusion-2"),
        ("stabilityai/stable-diffusion-3-medium-diffusers", "stable-diffusion-3-medium"),
        ("PixArt-alpha/PixArt-Sigma-XL-2-1024-MS", "pixart-alpha"), ("briaai/BRIA-2.3", ""),
        ("ostris/Flex.1-alpha", ""), ("black-forest-labs/FLUX.2-dev", ""), ("Qwen/Qwen-Image", "qwen-image-20b"),
        ("Wan-AI/Wan2.1-T2V-1.3B-Diffusers", "wan2.1-1.3b"), ("Wan-AI/Wan2.2-T2V-A14B-Diffusers", "wan2.1-14b"),
        ("THUDM/CogVideoX-5b", "cogvideox-5b"), ("Efficient-Large-Model/Sana_1600M_1024px_diffusers", "sana-1.6b"),
    ],
)  # fmt: skip
def test_denoisers_by_name(name: str, preset: str, tmp_path: Path) -> None:
    text = DIFFUSERS.replace("stabilityai/stable-diffusion-xl-base-1.0", name).replace("_sdxl", "")
    if not preset:
        with pytest.raises(InputError, match="is not a preset"):
            read(tmp_path, text, "run.sh")
        return
    assert draft(tmp_path, text, "run.sh")["model.preset"] == preset


def test_kohya_s_epochs_count_before_its_steps(tmp_path: Path) -> None:
    found = draft(
        tmp_path, KOHYA.replace("max_train_epochs", "max_train_steps = 1600\nmax_train_epochs"), "run.toml"
    )
    assert found["training.epochs"] == 10
    assert "training.steps" not in found


def test_kohya_s_base_in_8_bits_is_told_to_count_as_lora(tmp_path: Path) -> None:
    found = read(tmp_path, KOHYA.replace("train_batch_size", "fp8_base = true\ntrain_batch_size"), "run.toml")
    assert found.facts["training.method"].value == "lora"
    assert any("fp8_base: weights in few bits" in line for line in found.warnings)


def test_a_checkpoint_of_unknown_name_is_taken_for_the_program_s_model_with_a_warning(tmp_path: Path) -> None:
    text = DIFFUSERS.replace("stabilityai/stable-diffusion-xl-base-1.0", "own.safetensors").replace(
        "train_text_to_image_lora_sdxl", "sdxl_train_network"
    )
    found = read(tmp_path, text, "run.sh")
    assert found.facts["model.preset"].value == "stable-diffusion-xl"
    assert any("own.safetensors: taken for stable-diffusion-xl" in line for line in found.warnings)


@pytest.mark.parametrize(
    "text", ["python x.yml " * 20_000 + "a", "python " * 30_000, "python a.yml" + " " * 100_000]
)
def test_scripts_are_read_in_time_that_grows_with_them(text: str, tmp_path: Path) -> None:
    start = time.process_time()
    with pytest.raises(InputError, match="script without arguments"):
        read(tmp_path, text, "run.sh")
    assert time.process_time() - start < 5.0  # hours where a pattern tries each pair of words


def test_a_configuration_of_simpletuner_is_no_engine_s_and_no_model_s() -> None:
    assert detect(parse_document(SIMPLETUNER, Path("config.json"))) == "diffusion"
    assert detect(parse_document(LEVANTER, Path("run.yaml"))) == "levanter"


@pytest.mark.parametrize(
    ("family", "flavour", "preset"),
    [
        ("flux", "kontext", "flux.1-dev"), ("sd3", "large", "stable-diffusion-3.5-large"), ("sd3", "", ""),
        ("wan", "", "wan2.1-1.3b"), ("wan", "i2v-14b-2.1", ""), ("qwen_image", "edit-v2", "qwen-image-20b"),
        ("qwen_image", "v2.1", ""), ("unheard_of", "", ""),
    ],
)  # fmt: skip
def test_flavours_of_simpletuner(family: str, flavour: str, preset: str, tmp_path: Path) -> None:
    data = json.loads(SIMPLETUNER) | {"model_family": family, "model_flavour": flavour}
    text = json.dumps(data)
    if not preset:
        with pytest.raises(InputError, match=rf"model_family '{family}"):
            read(tmp_path, text, "config.json")
        return
    assert draft(tmp_path, text, "config.json")["model.preset"] == preset


@pytest.mark.parametrize(
    ("name", "preset", "stated"),
    [
        ("llama3_8b_mxfp8", "llama-3.1-8b", {"training.precision": "fp8"}),
        ("qwen3_1_7b", "qwen3-1.7b", {"training.precision": "bf16"}),
        ("qwen3_8b_first_85_pct_layers_nvfp4", "qwen3-8b", {"training.precision": "fp4"}),
        ("graph_trainer_deepseek_v3_671b", "deepseek-v3", {}),
        ("rl_grpo_qwen3_30b_a3b_varlen", "qwen3-30b-a3b", {"training.objective": "grpo"}),
        ("sft_qwen3_8b_math", "qwen3-8b", {"training.objective": "sft"}),
    ],
)
def test_names_of_torchtitan_s_registry(name: str, preset: str, stated: dict[str, Any]) -> None:
    found = {key: fact.value for key, fact in gather([Path(name)], Wishes(accelerators=8)).facts.items()}
    assert found["model.preset"] == preset
    assert stated.items() <= found.items()


@pytest.mark.parametrize("name", ["llama3_debugmodel", "qwen3_moe_debug"])
def test_models_for_debugging_are_no_preset(name: str) -> None:
    with pytest.raises(InputError, match="is not a preset"):
        gather([Path(name)], Wishes())
