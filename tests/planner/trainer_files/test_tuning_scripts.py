"""Abbreviated arguments, embedders, trainers of clips, nanoGPT, and trainers that are not read but named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.inputs.presets import find_preset
from planner.trainer_files.formats.video_trainers import tokens_of
from tests.planner.trainer_files.drafts import draft, facts

SHORT = (
    "torchrun --nproc_per_node=4 run_clm.py --model_name 'gpt2' --per_device_train 4 --gradient_acc 8 "
    "--num_train=3 --block_size 1024 --bf16=True --output_dir out"
)


def test_abbreviated_arguments_are_read_as_argparse_does(tmp_path: Path) -> None:
    result = draft(tmp_path, "clm.sh", SHORT)
    found = facts(result)
    assert (found["training.global_batch"], found["training.epochs"]) == (128, 3)
    assert any("per_device_train is per_device_train_batch_size" in text for text in result.warnings)


def test_what_could_be_several_arguments_or_is_another_trainers_stays(tmp_path: Path) -> None:
    full = SHORT.replace(
        "--gradient_acc 8", "--gradient_check"
    )  # argparse refuses it: two arguments begin so
    found = facts(draft(tmp_path, "clm.sh", full))
    assert (found["training.global_batch"], found["training.layout.recompute"]) == (16, "none")
    result = draft(tmp_path, "clm.sh", SHORT.replace("--output_dir out", "--resume --max_seq_len 512"))
    assert not any("resume_from" in text or "max_seq" in text for text in result.warnings)


GROUPS = """\
torchrun --nproc_per_node 2 -m FlagEmbedding.finetune.embedder.encoder_only.m3 \\
  --model_name_or_path BAAI/bge-m3 --train_group_size 8 --query_max_len 48 --passage_max_len 512 \\
  --num_train_epochs 2 --per_device_train_batch_size 4 --gradient_checkpointing --fp16
"""


def test_passages_of_an_embedder_count_as_pairs(tmp_path: Path) -> None:
    result = draft(tmp_path, "embed.sh", GROUPS)
    found = facts(result)
    assert found["training.objective"] == "contrastive"
    assert (found["training.global_batch"], found["training.sequence_length"]) == (32, 512)
    assert found["training.epochs"] == 8  # of 4 queries 16 pairs are seen, and samples are queries
    assert "samples are queries" in result.facts["training.epochs"].where


def test_a_reranker_reads_each_passage_with_its_query(tmp_path: Path) -> None:
    text = GROUPS.replace("embedder.encoder_only.m3", "reranker.encoder_only.base")
    found = facts(draft(tmp_path, "rerank.sh", text.replace("bge-m3", "bge-reranker-v2-m3")))
    assert found["training.objective"] == "reward"
    assert (found["training.global_batch"], found["training.sequence_length"]) == (32, 560)


def test_names_of_other_code_for_recomputation_and_stored_weights(tmp_path: Path) -> None:
    base = (
        "accelerate launch sft.py --model_name_or_path Qwen/Qwen3-8B --num_train_epochs 1 --max_seq_len 512 "
    )
    found = facts(
        draft(tmp_path, "sft.sh", base + "--grad_checkpoint True --lora_r 8 --use_4bit_quantization True")
    )
    assert (found["training.layout.recompute"], found["training.sequence_length"]) == ("full", 512)
    assert (found["training.method"], found["training.quantization"]) == ("qlora", "nf4_double")
    found = facts(draft(tmp_path, "sft.sh", base + "--use_peft false --lora_r 8"))
    assert "training.method" not in found


VISION = (
    "torchrun --nproc_per_node 8 internvl_chat_finetune.py --model_name_or_path OpenGVLab/InternVL3-8B --bf16 True "
    "--num_train_epochs 1 --per_device_train_batch_size 4 --max_seq_length 8192 --grad_checkpoint True "
)


@pytest.mark.parametrize(
    ("arguments", "rank", "named", "encoder"),
    [
        ("--freeze_llm True --use_llm_lora 16", 16, False, ""),
        ("--freeze_llm True --freeze_backbone True", 8, True, ""),
        ("--freeze_llm True --freeze_backbone False", 8, True, "freeze_backbone: the image"),
        ("--freeze_llm True", 8, True, "the default of freeze_backbone: the image"),
        ("--tune_mm_mlp_adapter True --freeze_backbone False", 8, True, ""),  # of LLaVA: its language model
        ("--tune_mm_llm False --tune_mm_mlp True", 8, True, ""),
        ("--tune_mm_llm False --tune_mm_vision True", 8, True, "tune_mm_vision: the image"),
        ("--freeze_llm False --tune_mm_llm True --lora_enable False --lora_r 64", None, False, ""),
    ],
)
def test_what_learns_beside_a_frozen_language_model(
    tmp_path: Path, arguments: str, rank: int | None, named: bool, encoder: str
) -> None:
    result = draft(tmp_path, "sft.sh", VISION + arguments)
    assert facts(result).get("training.lora_rank") == rank
    assert any("beside the frozen language model" in warning for warning in result.warnings) == named
    learning = [warning for warning in result.warnings if "image encoder learns" in warning]
    assert len(learning) == bool(encoder)
    assert all(encoder in warning for warning in learning)


def test_bits_of_the_script_of_qlora(tmp_path: Path) -> None:
    found = facts(draft(tmp_path, "qlora.sh", VISION + "--lora_enable True --lora_r 64 --bits 4"))
    assert (found["training.method"], found["training.lora_rank"]) == ("qlora", 64)


PIPE = """\
dataset = 'examples/dataset.toml'
epochs = 10
micro_batch_size_per_gpu = [[512, 4], [1024, 2]]
pipeline_stages = 2
gradient_accumulation_steps = 4
activation_checkpointing = true
[model]
type = 'wan'
ckpt_path = '/models/Wan2.1-T2V-1.3B'
dtype = 'bfloat16'
transformer_dtype = 'float8'
[adapter]
type = 'lora'
rank = 32
[optimizer]
type = 'adamw_optimi'
"""
MUSUBI = """\
accelerate launch --num_processes 2 "$HOME_OF/src/musubi_tuner/wan_train_network.py" --task t2v-A14B \\
  --dit "$MODELS/wan.safetensors" --dataset_config clips.toml --mixed_precision bf16 --gradient_checkpointing \\
  --network_module networks.lora_wan --network_dim 32 --max_train_epochs 20
"""
DIFFSYNTH = """\
accelerate launch --num_processes 8 examples/wanvideo/model_training/train.py --height 480 --width 832 \\
  --dataset_repeat 100 --num_epochs 2 --num_frames 17 --trainable_models dit \\
  --model_id_with_origin_paths "Wan-AI/Wan2.1-T2V-14B:diffusion*.safetensors,Wan-AI/Wan2.1-T2V-14B:t5.pth"
"""


@pytest.mark.parametrize(
    ("name", "text", "stated", "named"),
    [
        ("pipe.toml", PIPE,
         {"model.preset": "wan2.1-1.3b", "training.epochs": 10, "training.method": "qlora", "training.lora_rank": 32,
          "training.layout.pipeline_parallel": 2, "training.layout.recompute": "full"},
         "dataset examples/dataset.toml: the size"),
        ("musubi.sh", MUSUBI,
         {"model.preset": "wan2.1-14b", "training.epochs": 20, "training.method": "lora", "training.lora_rank": 32,
          "training.global_batch": 2, "training.sequence_length": 32760},
         "dataset_config clips.toml: the size"),
        ("diffsynth.sh", DIFFSYNTH,
         {"model.preset": "wan2.1-14b", "training.epochs": 200, "training.global_batch": 8,
          "training.layout.recompute": "full", "training.sequence_length": 7800},  # 5 x 30 x 52
         ""),
    ],
)  # fmt: skip
def test_trainers_of_clips_are_read(
    tmp_path: Path, name: str, text: str, stated: dict[str, Any], named: str
) -> None:
    result = draft(tmp_path, name, text)
    found = facts(result)
    assert {key: found.get(key) for key in stated} == stated
    assert any(named in warning for warning in (*result.warnings, ""))


@pytest.mark.parametrize(
    ("preset", "width", "height", "frames"),
    [("wan2.1-14b", 832, 480, 81), ("wan2.2-ti2v-5b", 1280, 704, 121), ("hunyuan-video-13b", 1280, 720, 129),
     ("cogvideox-5b", 720, 480, 49), ("qwen-image-20b", 1024, 1024, None), ("flux.2-klein-4b", 512, 512, None)],
)  # fmt: skip
def test_tokens_of_a_clip_are_those_of_the_preset_at_its_size(
    preset: str, width: int, height: int, frames: int | None
) -> None:
    found = find_preset(preset)
    assert found is not None
    side = round((width * height) ** 0.5)
    assert tokens_of(preset, side, frames) == pytest.approx(found.sequence_length, rel=2e-3)
    assert tokens_of("wan2.1-14b", side, None) is None


def test_the_resolution_of_an_image_of_a_transformer(tmp_path: Path) -> None:
    text = (
        "accelerate launch --num_processes 2 train_dreambooth_lora.py --pretrained_model_name_or_path=Qwen/Qwen-Image "
        "--resolution 512 --train_batch_size 1 --rank 4 --max_train_steps 9"
    )
    assert facts(draft(tmp_path, "run.sh", text))["training.sequence_length"] == 1536


def test_defaults_of_diffsynth_are_said_to_be_defaults_and_an_image_has_no_frames(tmp_path: Path) -> None:
    clip = draft(tmp_path, "run.sh", DIFFSYNTH.replace("--num_frames 17 ", "--lora_base_model dit ")).facts
    assert clip["training.sequence_length"].value == 32760  # 21 x 30 x 52
    assert "the default of num_frames 81" in clip["training.sequence_length"].where
    rank = clip["training.lora_rank"]
    assert (rank.value, rank.assumed) == (32, True)
    assert rank.where.endswith("the default of lora_rank")
    image = DIFFSYNTH.replace("--num_frames 17 ", "").replace("Wan-AI/Wan2.1-T2V-14B", "Qwen/Qwen-Image")
    assert "frames" not in draft(tmp_path, "run.sh", image).facts["training.sequence_length"].where


def test_errors_name_the_keys_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"train_batch_size.toml: micro_batch_size_per_gpu: must be a number"
    ):
        draft(tmp_path, "train_batch_size.toml", PIPE.replace("[[512, 4], [1024, 2]]", "[]"))
    with pytest.raises(InputError, match=r"pipe.toml: micro_batch_size_per_gpu: must be a number"):
        draft(tmp_path, "pipe.toml", PIPE.replace("[1024, 2]", "[1024, 'many']"))


def test_the_comments_name_the_keys_of_the_file(tmp_path: Path) -> None:
    result = draft(tmp_path, "pipe.toml", PIPE)
    assert "adapter.rank" in result.facts["training.lora_rank"].where
    assert "micro_batch_size_per_gpu 4 x 4 accumulated" in result.facts["training.global_batch"].where


ONE = """\
{"training_method": "LORA", "model_type": "STABLE_DIFFUSION_XL_10_BASE", "batch_size": 4, "resolution": "1024",
 "base_model_name": "stabilityai/stable-diffusion-xl-base-1.0", "train_dtype": "BFLOAT_16",
 "unet": {"weight_dtype": "NFLOAT_4"}, "optimizer": {"optimizer": "ADAFACTOR"}}
"""


def test_one_trainer_is_read_with_its_defaults(tmp_path: Path) -> None:
    result = draft(tmp_path, "one.json", ONE)
    found = facts(result)
    assert (found["model.preset"], found["model.image_size"]) == ("stable-diffusion-xl", 1024)
    assert (found["training.method"], found["training.lora_rank"]) == ("lora", 16)
    assert any("counted as LoRA" in warning for warning in result.warnings)
    assert (found["training.epochs"], found["training.layout.recompute"]) == (100, "full")
    assert (found["training.precision"], found["training.optimizer"]) == ("bf16", "adafactor")
    with pytest.raises(InputError, match="training_method EMBEDDING: only LORA and FINE_TUNE"):
        draft(tmp_path, "one.json", ONE.replace('"LORA"', '"EMBEDDING"'))


NANO = """\
batch_size = 12
block_size = 512
gradient_accumulation_steps = 5 * 8
max_iters = 600000
n_layer = 6
compile = False
"""


def test_constants_of_nanogpt_are_read_with_its_defaults(tmp_path: Path) -> None:
    result = draft(tmp_path, "train_small.py", NANO)
    found = facts(result)
    assert (found["training.global_batch"], found["training.sequence_length"]) == (480, 512)
    assert (found["model.layers"], found["model.hidden"], found["training.stack"]) == (6, 768, "eager")
    assert result.facts["model.hidden"].where.endswith("the default of n_embd")
    tuned = facts(draft(tmp_path, "finetune.py", NANO + "init_from = 'gpt2-xl'\n"))
    assert tuned["model.preset"] == "gpt-2-1.5b"


def test_a_script_with_a_loop_of_its_own_is_not_taken_for_nanogpt(tmp_path: Path) -> None:
    """It accumulates nothing and has a vocabulary of its own, which the defaults of train.py would get wrong."""
    own = "import torch\n" + NANO.replace("gradient_accumulation_steps = 5 * 8\n", "eval_iters = 200\n")
    with pytest.raises(InputError, match="is none of the files that are read"):
        draft(tmp_path, "gpt.py", own)


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("act.sh", "lerobot-train \\\n  --dataset.repo_id=u/d \\\n  --policy.type=act --steps=10", "LeRobot"),
        (
            "config.json",
            '{"type": "act", "n_obs_steps": 1, "input_features": {"i": {}}, "output_features": {"a": {}}}',
            "LeRobot",
        ),
        ("rcnn.yaml", "_BASE_: base.yaml\nMODEL: {MASK_ON: true}\nSOLVER: {MAX_ITER: 10}", "Detectron2"),
        ("rcnn.py", "_base_ = ['../a.py', '../b.py']", "MMEngine"),
        ("asr.yaml", "encoder: conformer\nencoder_conf: {output_size: 512}\nmax_epoch: 3", "ESPnet"),
        ("vit.yaml", "student: {arch: vit_large}\ncrops: {local_crops_size: 98}", "DINOv2"),
        ("cli.yaml", "model: {class_path: my.Model}\ndata: {class_path: my.Data}", "Lightning CLI"),
        (
            "olmo.py",
            "from olmo_core.train import TrainerConfig\nc = TrainerConfig(save_folder='x')",
            "OLMo-core",
        ),
    ],
)
def test_a_trainer_that_is_not_read_is_named_with_what_to_give(
    tmp_path: Path, name: str, text: str, named: str
) -> None:
    with pytest.raises(InputError, match=rf"is a file of {named}.*, which is not read: "):
        draft(tmp_path, name, text)


FORGE = """\
model: {name: llama3, flavor: 8B}
processes: {scheduler: local, hosts: 2, procs: 8}
training: {local_batch_size: 1, seq_len: 2048, steps: 1000}
parallelism: {tensor_parallel_degree: 2}
"""
AUTOMODEL_FLUX = """\
model: {pretrained_model_name_or_path: black-forest-labs/FLUX.1-dev, mode: finetune}
fsdp: {dp_size: 8, tp_size: 1, activation_checkpointing: false}
step_scheduler: {num_epochs: 5, local_batch_size: 1, global_batch_size: 8}
data: {dataloader: {base_resolution: [512, 512]}}
"""


def test_torchforge_names_its_accelerators_and_automodel_the_size_of_images(tmp_path: Path) -> None:
    assert facts(draft(tmp_path, "forge.yaml", FORGE))["training.global_batch"] == 8
    found = facts(draft(tmp_path, "flux.yaml", AUTOMODEL_FLUX))
    assert (found["model.preset"], found["model.image_size"]) == ("flux.1-dev", 512)
    assert (found["training.layout.zero_stage"], found["training.layout.recompute"]) == (3, "none")
