"""Encoders of images and sound that trainers keep frozen: networks of which only the forward pass counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.bundled import bundled_rows
from planner.errors import InputError
from planner.estimation.answer import estimate_workload
from planner.inputs.load import load_workload
from planner.inputs.model_config.encoders import encoder_of, preset_encoder
from planner.inputs.model_config.model import Keys
from planner.inputs.models import count_params, merge_model
from planner.inputs.presets import find_preset
from planner.inputs.training_schema import Network
from planner.trainer_files.gather import Draft, Wishes, gather
from planner.trainer_files.write import render_draft

QWEN = "Qwen/Qwen2.5-VL-7B-Instruct"
SWIFT = f"swift sft --model {QWEN} --train_type full --max_length 2048 --max_steps 50"
FACTORY = (
    f"model_name_or_path: {QWEN}\nstage: sft\nfinetuning_type: full\ntemplate: qwen2_vl\nmax_steps: 50\n"
)
AXOLOTL = f"base_model: {QWEN}\nmicro_batch_size: 1\nsequence_len: 2048\nmax_steps: 5\n"
AUTOMODEL = f"""model:
  _target_: nemo_automodel.NeMoAutoModelForImageTextToText.from_pretrained
  pretrained_model_name_or_path: {QWEN}
step_scheduler: {{global_batch_size: 8, local_batch_size: 1, max_steps: 100}}
"""
OUMI = f"""model: {{model_name: {QWEN}, model_max_length: 2048, freeze_layers: [model.visual]}}
training: {{trainer_type: TRL_SFT, per_device_train_batch_size: 1, max_steps: 10}}
"""
PRESETS = [name for row in bundled_rows("preset_encoders.csv") for name in row["presets"].split(";")]


def draft(folder: Path, name: str, text: str, wishes: Wishes | None = None) -> Draft:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return gather([path], wishes or Wishes())


def is_apart(result: Draft) -> bool:
    return "model.parts.1.trainable" in result.facts


@pytest.mark.parametrize(
    ("name", "text", "apart"),
    [
        ("run.sh", SWIFT, True),
        ("run.sh", f"{SWIFT} --freeze_vit false", False),
        ("run.sh", SWIFT.replace("full", "lora"), True),
        ("run.sh", SWIFT.replace("2.5-VL-7B", "2.5-7B"), False),  # sees no images
        ("run.yaml", FACTORY, True),
        ("run.yaml", f"{FACTORY}freeze_vision_tower: false\n", False),
        ("run.yaml", FACTORY.replace("full", "lora"), True),
        ("run.yaml", AXOLOTL, False),
        ("run.yaml", f"{AXOLOTL}freeze_mm_modules: true\n", True),
        ("run.sh", f"python train.py --model_name_or_path {QWEN} --tune_mm_vision False --tune_mm_llm True "
         "--per_device_train_batch_size 1 --max_steps 5", True),
        ("run.yaml", AUTOMODEL, False),
        ("run.yaml", f"{AUTOMODEL}freeze_config: {{freeze_embeddings: true}}\n", True),
        ("run.yaml", f"{AUTOMODEL}freeze_config: {{freeze_vision_tower: false, freeze_audio_tower: true}}\n", False),
        ("run.yaml", OUMI, True),
        ("run.yaml", OUMI.replace("model.visual", "model.layers"), False),
    ],
)  # fmt: skip
def test_an_encoder_that_does_not_learn_is_a_network_of_its_own(
    name: str, text: str, apart: bool, tmp_path: Path
) -> None:
    result = draft(tmp_path, name, text)
    assert is_apart(result) is apart
    if apart:
        first, second = (result.facts[f"model.parts.{part}.params"].value for part in (0, 1))
        preset = find_preset("qwen2.5-vl-7b")
        assert preset is not None
        assert first + second == preset.values["params"]
        workload = tmp_path / "workload.yaml"
        workload.write_text(render_draft(result), encoding="utf-8")
        model = load_workload(workload).workload.model
        assert model is not None
        assert model.parts is not None
        assert [part.trainable for part in model.parts] == ["all", "none"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("--deepspeed zero3_offload", "offloading"),
        ("--sequence_parallel_size 4", "context parallelism"),
    ],
)
def test_where_several_networks_are_not_modelled_the_frozen_encoder_counts_as_trained(
    more: str, reason: str, tmp_path: Path
) -> None:
    result = draft(tmp_path, "run.sh", f"{SWIFT} {more}")
    assert not is_apart(result)
    assert any("counts as trained" in text and reason in text for text in result.warnings)


@pytest.mark.parametrize(
    ("objective", "more", "times"),
    [
        ("dpo", "", 4),  # both answers, by the model and by its reference
        ("dpo", "--precompute_ref_log_probs true", 2),
        ("orpo", "", 2),
        ("rm", "", 2),
        ("kto", "", 4),
    ],
)
def test_images_are_read_with_each_answer_and_by_the_reference(
    objective: str, more: str, times: int, tmp_path: Path
) -> None:
    text = SWIFT.replace("swift sft", f"swift rlhf --rlhf_type {objective}")
    assert draft(tmp_path, "run.sh", f"{text} {more}").facts["model.parts.1.per_sample"].value == times


def test_without_images_an_encoder_costs_its_memory_and_no_time(tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    text = render_draft(draft(tmp_path, "run.sh", SWIFT))
    times, memories = [], []
    for runs in ("1  ", "0  "):
        path.write_text(text.replace("per_sample: 1  ", f"per_sample: {runs}"), encoding="utf-8")
        (estimate,) = estimate_workload(load_workload(path), ["p5.48xlarge"], [1], calibrated=False).estimates
        times.append(estimate.breakdown_s.get("other_models", 0.0))
        memories.append(estimate.memory.parts["weights"])
    assert times[0] > 0
    assert times[1] == 0
    assert memories[0] == memories[1]
    path.write_text(
        text.replace("per_sample: 1  ", "per_sample: 0  ").replace("trainable: none", "trainable: all"),
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="cannot learn"):
        load_workload(path)


@pytest.mark.parametrize(
    ("name", "text", "trains"),
    [
        ("run.sh", SWIFT.replace("full", "lora"), "none"),
        ("run.sh", f"{SWIFT.replace('full', 'lora')} --freeze_vit false", "through"),
        ("run.yaml", f"{FACTORY.replace('full', 'lora')}freeze_vision_tower: false\n", "through"),
        ("run.yaml", f"{AXOLOTL}gradient_accumulation_steps: 8\nadapter: qlora\nfreeze_mm_modules: true\n", "none"),
        ("run.yaml", f"{AUTOMODEL}peft: {{dim: 8}}\nfreeze_config: {{freeze_language_model: false}}\n", "none"),
    ],
)  # fmt: skip
def test_beside_adapters_an_encoder_costs_the_work_on_its_own_positions(
    name: str, text: str, trains: str, tmp_path: Path
) -> None:
    result = draft(tmp_path, name, text)
    assert result.facts["model.parts.1.trainable"].value == trains
    steps = []
    for positions in (2304, 64):
        workload = tmp_path / "workload.yaml"
        text = render_draft(result).replace("tokens: 2304 ", f"tokens: {positions} ")
        workload.write_text(text, encoding="utf-8")
        (found,) = estimate_workload(
            load_workload(workload), ["p5.48xlarge"], [1], calibrated=False
        ).estimates
        assert found.step_s is not None
        steps.append(found.step_s.value)
    assert steps[0] > steps[1]


def test_a_resident_reference_has_its_own_copy_of_the_encoder(tmp_path: Path) -> None:
    text = SWIFT.replace("swift sft", "swift rlhf --rlhf_type dpo")
    held = []
    for more in ("", "--precompute_ref_log_probs true"):
        workload = tmp_path / "workload.yaml"
        workload.write_text(render_draft(draft(tmp_path, "run.sh", f"{text} {more}")), encoding="utf-8")
        (found,) = estimate_workload(
            load_workload(workload), ["p5.48xlarge"], [1], calibrated=False
        ).estimates
        held.append(found.memory.parts["weights"])
    preset = find_preset("qwen2.5-vl-7b")
    assert preset is not None
    assert held[0] - held[1] == pytest.approx(2 * int(preset.values["params"]) / 2**30, rel=0.02)


def test_an_encoder_that_the_parameters_do_not_contain_is_added(tmp_path: Path) -> None:
    """Gemma 3's: 417 M at 896 pixels, 4,096 positions (arXiv 2503.19786)."""
    result = draft(tmp_path, "run.sh", SWIFT.replace(QWEN, "google/gemma-3-4b-it"))
    assert result.facts["model.parts.0.preset"].value == "gemma-3-4b"
    assert "model.parts.0.params" not in result.facts
    assert result.facts["model.parts.1.params"].value == pytest.approx(417e6, rel=0.002)
    assert result.facts["model.parts.1.tokens"].value == 4096


def test_layers_with_windows_score_less_than_those_that_see_the_whole_image() -> None:
    encoder = preset_encoder("qwen2.5-vl-7b")
    assert encoder is not None
    assert (encoder["attention_window"], encoder["windowed_layers"], encoder["layers"]) == (64, 28, 32)
    older = preset_encoder("qwen2-vl-2b")
    assert older is not None
    assert "attention_window" not in older


@pytest.mark.parametrize(("frozen", "apart"), [(True, True), (False, False)])
def test_recipes_of_megatron_bridge_freeze_the_encoder_by_a_flag(
    frozen: bool, apart: bool, tmp_path: Path
) -> None:
    text = "from megatron.bridge.recipes.qwen_vl import qwen25_vl_7b_finetune_config\n"
    text += f"cfg = qwen25_vl_7b_finetune_config()\ncfg.model.freeze_vision_model = {frozen}\n"
    assert is_apart(draft(tmp_path, "run.py", text + "cfg.train.global_batch_size = 64\n")) is apart


def test_gated_networks_of_an_encoder_are_as_wide_as_its_parameters_say(tmp_path: Path) -> None:
    sizes = {"hidden_size": 1536, "num_hidden_layers": 40, "num_attention_heads": 24, "patch_size": 14}
    encoder = encoder_of(Keys({**sizes, "use_swiglu_ffn": True, "image_size": [224, 448]}, "config.json"))
    blocks = 40 * (4 * 1536 * 1536 + 3 * 1536 * encoder["ffn"])
    assert encoder["params"] == pytest.approx(blocks, rel=0.01)
    assert encoder["tokens"] == pytest.approx(16 * 32, rel=0.06)  # a square of the same area


def test_the_encoder_of_a_configuration_is_told_from_its_language_model(tmp_path: Path) -> None:
    sizes = {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 1024}
    vision = {**sizes, "model_type": "siglip_vision_model", "patch_size": 14, "image_size": 224}
    whole = {"model_type": "llava", "vision_config": vision,
             "text_config": {**sizes, "model_type": "llama", "vocab_size": 32000}}  # fmt: skip
    config = tmp_path / "config.json"
    config.write_text(json.dumps(whole), encoding="utf-8")
    result = draft(tmp_path, "run.sh", SWIFT.replace(QWEN, "me/mine"), Wishes(model_config=config))
    encoder = {key.rpartition(".")[2]: fact.value for key, fact in result.facts.items() if ".1." in key}
    assert (encoder["layers"], encoder["hidden"], encoder["tokens"]) == (4, 512, 256)
    blocks = 4 * (4 * 512 * 512 + 2 * 512 * 1024)
    assert encoder["params"] == pytest.approx(blocks + 3 * 14 * 14 * 512, rel=0.04)
    together = encoder["params"] + result.facts["model.parts.0.params"].value
    config_alone = draft(tmp_path, "again.json", json.dumps(whole))
    assert together == config_alone.facts["model.params"].value


@pytest.mark.parametrize("name", PRESETS)
def test_encoders_of_presets_are_what_their_parameters_exceed_those_of_the_language_model_by(
    name: str,
) -> None:
    """Unless their note says that the encoder is not counted."""
    preset, encoder = find_preset(name), preset_encoder(name)
    assert preset is not None
    assert encoder is not None
    values = {**merge_model(Network(preset=name))[0]}
    language, _ = count_params(values)
    if preset.values.get("attention_ratio") is None:  # of hybrids the other layers differ
        contained = 0 if "image encoder of 0.4 B is not counted" in preset.note else encoder["params"]
        rest = int(preset.values["params"]) - language - contained
        assert -0.002 * language <= rest <= 0.06 * language  # what joins them, biases, norms
    assert encoder["hidden"] % encoder["heads"] == 0
