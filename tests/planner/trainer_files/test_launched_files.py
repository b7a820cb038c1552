"""Scripts that start a trainer with files of their own, and what trainers take where a script is silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputError
from planner.trainer_files.arguments import parse_arguments
from planner.trainer_files.gather import Draft, Wishes, gather
from planner.trainer_files.hub import name_of_folder
from tests.planner.trainer_files.fixtures_of_trainers import AI_TOOLKIT

TRL = "train_dpo.py --model_name_or_path Qwen/Qwen3-8B --max_length 2048 --bf16"
FSDP = "distributed_type: FSDP\nnum_processes: 4\nfsdp_config: {fsdp_sharding_strategy: SHARD_GRAD_OP}\n"
DPO = "max_length: 4096\nper_device_train_batch_size: 2\nnum_train_epochs: 2\nbf16: true\n"
UNSLOTH = """
from unsloth import FastLanguageModel
from trl import SFTTrainer
from transformers import TrainingArguments
model, tokenizer = FastLanguageModel.from_pretrained(model_name="unsloth/llama-3-8b"%s)
model = FastLanguageModel.get_peft_model(model, r=16%s)
trainer = SFTTrainer(model=model, args=TrainingArguments(output_dir="out", max_steps=60, bf16=True))
"""
SD = "accelerate launch train_network.py --pretrained_model_name_or_path stabilityai/stable-diffusion-xl-base-1.0"


def _drafted(folder: Path, text: str, name: str = "run.sh", *more: Path) -> Draft:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return gather([path, *more], Wishes())


def test_the_file_of_accelerate_is_read_where_it_lies_beside(tmp_path: Path) -> None:
    text = f"accelerate launch --config_file accel/fsdp2.yaml {TRL}"
    absent = _drafted(tmp_path, text)
    stage = absent.facts["training.layout.zero_stage"]
    assert (stage.value, stage.assumed) == (3, True)
    assert any("accelerate accel/fsdp2.yaml is not next to it" in warning for warning in absent.warnings)
    (tmp_path / "accel").mkdir()
    (tmp_path / "accel" / "fsdp2.yaml").write_text(FSDP)
    found = _drafted(tmp_path, text)
    assert (found.facts["training.layout.zero_stage"].value, found.warnings) == (2, [])
    assert found.facts["training.global_batch"].value == 8 * 4


@pytest.mark.parametrize(
    ("name", "stage"),
    [("zero2.yaml", 2), ("ds_stage_1.yml", 1), ("fsdp.yaml", 3), ("default_config.yaml", None)],
)
def test_the_stage_by_the_name_of_an_absent_file_of_accelerate(
    tmp_path: Path, name: str, stage: int | None
) -> None:
    fact = _drafted(tmp_path, f"accelerate launch --config_file {name} {TRL}").facts.get(
        "training.layout.zero_stage"
    )
    assert (None if fact is None else fact.value) == stage


@pytest.mark.parametrize("named", ["--config recipes/zero3.yaml", "recipes/zero3.yaml"])
def test_arguments_of_trl_in_a_file_that_a_command_names(tmp_path: Path, named: str) -> None:
    text = f"accelerate launch --num_processes 8 train_dpo.py {named} --per_device_train_batch_size 4"
    with pytest.raises(InputError, match=r"add recipes/zero3\.yaml to --from"):
        _drafted(tmp_path, text)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "zero3.yaml").write_text(f"model_name_or_path: Qwen/Qwen3-8B\n{DPO}")
    found = _drafted(tmp_path, text).facts
    assert found["model.preset"].value == "qwen3-8b"
    assert (found["training.global_batch"].value, found["training.epochs"].value) == (4 * 8, 2)
    assert found["training.sequence_length"].value == 4096
    assert "training.layout.zero_stage" not in found, "the name of a file of arguments tells no stage"


def test_a_script_that_only_names_a_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"it starts my\.yaml: name that file with --from"):
        _drafted(tmp_path, "python run.py --config my.yaml --seed 1")


def test_a_file_whose_base_is_absent_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"defaults grpo\.yaml: is not next to it"):
        _drafted(tmp_path, "defaults: grpo.yaml\nloss_fn: {use_cispo: true}\n", "cispo.yaml")


def test_accelerators_that_deepspeed_is_told_to_use(tmp_path: Path) -> None:
    def batch(hosts: str) -> int:
        text = f"deepspeed --include {hosts} {TRL} --per_device_train_batch_size 1"
        return int(_drafted(tmp_path, text).facts["training.global_batch"].value)

    assert batch("localhost:4,5,6") == 3
    assert batch("worker-1:0,1@worker-2:0,1") == 4


def test_a_backslash_at_the_end_of_a_file(tmp_path: Path) -> None:
    assert parse_arguments("run.py --a 1 \\", "run.sh")[0] == {"a": "1"}


def test_elements_of_an_array_are_words() -> None:
    text = 'A=(\n  data.x=1\n  "data.y=a b"\n)\npython -m main "${A[@]}" data.z=3'
    assert parse_arguments(text, "run.sh")[0] == {"data": {"x": "1", "y": "a b", "z": "3"}}


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/0a1b2c3d", "Qwen/Qwen3-8B"),
        ("models--Qwen--Qwen3-8B/", "Qwen/Qwen3-8B"),
        ("/models/Qwen3-8B", "/models/Qwen3-8B"),
        ("models--Qwen", "models--Qwen"),
        ("a/" * 5000, "a/" * 5000),
    ],
)
def test_a_folder_of_the_cache_is_its_model(folder: str, name: str) -> None:
    assert name_of_folder(folder) == name


def test_a_folder_of_the_cache_that_lies_beside_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "models--someone--own" / "snapshots" / "0a1b"
    folder.mkdir(parents=True)
    sizes = (
        '{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, '
    )
    sizes += '"num_attention_heads": 32, "vocab_size": 128256}'
    (folder / "config.json").write_text(sizes, encoding="utf-8")
    text = "train_sft.py --model_name_or_path models--someone--own/snapshots/0a1b --max_length 2048"
    assert _drafted(tmp_path, text).facts["model.layers"].value == 16


def test_one_file_of_arguments_with_an_override_is_no_file_of_accelerate(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(f"model_name_or_path: Qwen/Qwen3-8B\n{DPO}", encoding="utf-8")
    found = _drafted(tmp_path, "python train_sft.py run.yaml lr=1e-5 --num_train_epochs 1 --max_length 1024")
    assert (found.facts["model.preset"].value, found.facts["training.global_batch"].value) == ("qwen3-8b", 2)


def test_what_unsloth_is_given_by_place(tmp_path: Path) -> None:
    text = UNSLOTH.replace('model_name="unsloth/llama-3-8b"%s', '"unsloth/llama-3-8b", 4096, None, False%s')
    facts = _drafted(tmp_path, text % ("", ""), "run.py").facts
    assert (facts["training.sequence_length"].value, facts["training.method"].value) == (4096, "lora")
    length = "import sys\nLENGTH = len(sys.argv)\n" + text.replace("4096", "LENGTH")
    found = _drafted(tmp_path, length % ("", ""), "run.py")
    assert any("max_seq_length: the script works out the value" in warning for warning in found.warnings)


def test_what_unsloth_takes_where_a_script_is_silent(tmp_path: Path) -> None:
    facts = _drafted(tmp_path, UNSLOTH % ("", ""), "run.py").facts
    for key, value in (("training.sequence_length", 2048), ("training.layout.recompute", "full"),
                       ("training.method", "qlora")):  # fmt: skip
        assert (facts[key].value, facts[key].assumed) == (value, True), key
    stated = ", max_seq_length=512, load_in_4bit=False"
    facts = _drafted(tmp_path, UNSLOTH % (stated, ", use_gradient_checkpointing=False"), "run.py").facts
    found = [facts[f"training.{key}"].value for key in ("sequence_length", "layout.recompute", "method")]
    assert found == [512, "none", "lora"]
    longer = _drafted(tmp_path, UNSLOTH % ("", ", max_seq_length=4096"), "run.py").facts
    assert longer["training.sequence_length"].value == 4096


@pytest.mark.parametrize(
    ("resolution", "side"),
    [("1024", 1024), ("768,1344", 1016), ("512x512", 512), ("0", None), ("1,2,3", None)],
)
def test_the_resolution_of_a_diffusion_model(tmp_path: Path, resolution: str, side: int | None) -> None:
    text = f"{SD} --resolution={resolution} --train_batch_size 1 --network_module networks.lora --max_train_steps 9"
    found = _drafted(tmp_path, text)
    size = found.facts.get("model.image_size")
    assert (None if size is None else size.value) == side
    assert any(f"resolution {resolution}" in warning for warning in found.warnings) == (side is None)


def test_the_share_of_gkd_that_the_student_writes_is_named(tmp_path: Path) -> None:
    text = "swift rlhf --rlhf_type gkd --model Qwen/Qwen3-8B --teacher_model Qwen/Qwen3-14B --dataset a"
    assert any("lmbda" in warning for warning in _drafted(tmp_path, text).warnings)
    assert not any("lmbda" in warning for warning in _drafted(tmp_path, f"{text} --lmbda 0").warnings)


def test_accelerators_are_at_least_those_that_share_the_experts(tmp_path: Path) -> None:
    text = """
[model]
name = "qwen3"
flavor = "30B-A3B"
[optimizer]
name = "AdamW"
[training]
local_batch_size = 2
seq_len = 2048
steps = 3
[parallelism]
data_parallel_shard_degree = -1
tensor_parallel_degree = 2
expert_parallel_degree = 8
[compile]
enable = true
components = ["loss"]
"""
    facts = _drafted(tmp_path, text, "run.toml").facts
    assert (facts["training.global_batch"].value, facts["training.global_batch"].assumed) == (2 * 4, True)
    assert "not set for the model" in facts["training.stack"].where


def test_a_file_of_accelerate_with_an_engine_inside(tmp_path: Path) -> None:
    accelerate = (
        '{"distributed_type": "DEEPSPEED", "num_processes": 4, "zero_optimization": {"stage": 3}, '
        '"deepspeed_config": {"zero_stage": 2}, "train_micro_batch_size_per_gpu": 1}'
    )
    path = tmp_path / "accelerate.json"
    path.write_text(accelerate)
    found = _drafted(tmp_path, f"python {TRL}", "run.sh", path)
    assert found.facts["training.layout.zero_stage"].value == 2


def test_a_step_that_is_no_whole_number_of_groups_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "grpo.sh"
    path.write_text(
        "accelerate launch --num_processes 3 grpo.py --model_name Qwen/Qwen3-8B --num_generations 3 "
        "--per_device_train_batch_size 1"
    )
    assert gather([path], Wishes()).facts["training.global_batch"].value == 3
    path.write_text(path.read_text().replace("--num_processes 3", ""))
    assert gather([path], Wishes()).facts["training.global_batch"].value == 3
    with pytest.raises(
        InputError, match=r"num_generations: 3 does not divide the 8 responses.*give --accelerators"
    ):
        gather([path], Wishes(accelerators=8))
    path.write_text(path.read_text() + " --generation_batch_size 8")
    with pytest.raises(InputError, match=r"8 responses of a step \(grpo\.sh: generation_batch_size\)$"):
        gather([path], Wishes())


def test_a_trainer_of_groups_that_only_says_how_many(tmp_path: Path) -> None:
    found = _drafted(
        tmp_path, "python grpo_math.py --model_name Qwen/Qwen2.5-7B-Instruct --num_generations 4"
    )
    assert found.facts["training.objective"].value == "grpo"


def test_several_resolutions_of_ai_toolkit_are_sides_of_squares_and_named(tmp_path: Path) -> None:
    text = AI_TOOLKIT.replace("[512, 768, 1024]", "[512, 768]")
    found = _drafted(tmp_path, text, "run.yaml")
    assert found.facts["model.image_size"].value == 768
    assert any("[512, 768]: each image is trained at all of them" in warning for warning in found.warnings)
    one = _drafted(tmp_path, text.replace("[512, 768]", "[512]"), "run.yaml")
    assert one.facts["model.image_size"].value == 512
    assert not any("resolution" in warning for warning in one.warnings)


@pytest.mark.parametrize(
    ("program", "model", "answer"),
    [
        ("flux_2_train_network.py", "black-forest-labs/FLUX.2-klein-base-4B", "flux.2-klein-4b"),
        ("flux_2_train_network.py", "black-forest-labs/FLUX.2-dev", "denoisers without a preset"),
        ("flux_train_network.py", "models/my.safetensors", "flux.1-dev"),
        ("train.py", "tencent/HunyuanVideo", "hunyuan-video-13b"),
        ("train.py", "tencent/HunyuanVideo-1.5", "denoisers without a preset"),
    ],
)
def test_a_later_release_is_not_taken_for_the_first(
    tmp_path: Path, program: str, model: str, answer: str
) -> None:
    command = (
        f"accelerate launch {program} --pretrained_model_name_or_path {model} --network_module networks.lora"
    )
    text = f"{command} --resolution 512 --train_batch_size 1 --max_train_steps 9"
    if " " in answer:
        with pytest.raises(InputError, match=answer):
            _drafted(tmp_path, text)
    else:
        assert _drafted(tmp_path, text).facts["model.preset"].value == answer
