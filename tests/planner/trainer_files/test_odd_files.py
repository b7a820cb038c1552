"""What people's files hold besides plain keys: references, sums, files inside files, and commands that start a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputError
from planner.trainer_files.gather import Draft, Wishes, gather
from tests.planner.trainer_files.drafts import facts

NEMO = """\
trainer: {devices: 8, num_nodes: 1, precision: bf16, max_steps: 10}
model:
  micro_batch_size: 1
  global_batch_size: 8
  encoder_seq_length: 2048
  num_layers: 4
  hidden_size: 256
  ffn_hidden_size: %s
  num_attention_heads: 4
  activation: swiglu
  tokenizer: {library: sentencepiece, model: /models/tokenizer.model}
"""
LLAMA_FACTORY = """\
model_name_or_path: %s
stage: sft
template: qwen
dataset: alpaca_en_demo
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
deepspeed: %s
"""
SIZES = (
    "--hidden-size 4096 --num-attention-heads 32 --micro-batch-size 1 --global-batch-size 8 --seq-length 2048"
)
KOHYA = (
    "accelerate launch --num_processes 2 sdxl_train_network.py --network_module networks.lora --train_batch_size 4 "
    "--pretrained_model_name_or_path sdxl.safetensors --dataset_config sets.toml --resolution 512,512 "
    "--max_train_epochs 10 --mixed_precision bf16"
)
SETS = """\
[general]
batch_size = 3
[[datasets]]
resolution = [1152, 896]
[[datasets.subsets]]
image_dir = '/data'
num_repeats = 10
"""
TORCHTITAN = """\
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 8192
steps = 1000
[parallelism]
tensor_parallel_degree = 1
"""
TORCHTUNE = """\
model: {_component_: torchtune.models.llama3_1.lora_llama3_1_8b, lora_rank: 8}
tokenizer: {max_seq_len: 1024}
loss: {_component_: torchtune.rlhf.loss.DPOLoss}
optimizer: {_component_: torch.optim.AdamW}
batch_size: 4
epochs: 1
"""


def _drafted(folder: Path, name: str, text: str, **beside: str) -> Draft:
    for other, body in beside.items():
        (folder / other.replace("__", ".")).write_text(body, encoding="utf-8")
    (folder / name).write_text(text, encoding="utf-8")
    return gather([folder / name], Wishes())


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("${multiply:4, ${.hidden_size}}", 1024),
        ("${mul:3,${model.hidden_size}}", 768),
        ("${.hidden_size}", 256),
        ("${add:-56, ${.hidden_size}}", 200),
        ("${oc.select:.hidden_size, 512}", 256),
        ("${oc.select:.ffn, 512}", 512),
    ],
)
def test_sums_of_references_are_worked_out(tmp_path: Path, text: str, width: int) -> None:
    found = _drafted(tmp_path, "run.yaml", NEMO % f"'{text}'")
    assert found.facts["model.ffn"].value == width


@pytest.mark.parametrize(
    "text",
    ["${my_resolver:4}", "${model.ffn_hidden_size}", "${.not_there}", "${trainer.precision.x}", "${divide:4,0}",
     "${multiply:1__0,2}", "${divide_ceil:1e400,1}"],
)  # fmt: skip
def test_a_reference_that_cannot_be_worked_out_is_said(tmp_path: Path, text: str) -> None:
    found = _drafted(tmp_path, "run.yaml", NEMO % f"'{text}'")
    assert any(f"ffn_hidden_size: {text} cannot be worked out" in warning for warning in found.warnings)


@pytest.mark.parametrize("text", ["${nothing}", "${oc.select:nothing,null}", "${oc.select:not_there}"])
def test_a_reference_to_null_is_not_given_and_not_in_doubt(tmp_path: Path, text: str) -> None:
    found = _drafted(tmp_path, "run.yaml", f"nothing: null\n{NEMO % repr(text)}")
    assert (
        found.facts["model.ffn"].value == 640
    )  # the default of a gated network, 8 / 3 of the width in steps of 64
    assert not any("cannot be worked out" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    "name", ["${oc.env:MODEL,Qwen/Qwen2.5-7B}", "${MODEL:-Qwen/Qwen2.5-7B}", "${base}/Qwen2.5-7B"]
)
def test_the_default_of_a_variable_names_the_model(tmp_path: Path, name: str) -> None:
    text = f"base: /models\n{LLAMA_FACTORY % (name, 'null')}"
    assert _drafted(tmp_path, "run.yaml", text).facts["model.preset"].value == "qwen2.5-7b"


@pytest.mark.parametrize(
    "engine",
    ["{zero_optimization: {stage: 3, offload_optimizer: {device: cpu}}}",
     """'{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}'"""],
)  # fmt: skip
def test_the_keys_of_deepspeed_inside_the_trainers_file(tmp_path: Path, engine: str) -> None:
    found = _drafted(tmp_path, "run.yaml", LLAMA_FACTORY % ("Qwen/Qwen2.5-7B", engine))
    assert found.facts["training.layout.zero_stage"].value == 3
    assert found.facts["training.memory.offload_optimizer"].value is True
    assert found.files == ["run.yaml"]


def test_json_that_is_none_is_refused_with_its_key(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"deepspeed: is not valid JSON|deepspeed:1:"):
        _drafted(tmp_path, "run.yaml", LLAMA_FACTORY % ("Qwen/Qwen2.5-7B", "'{\"stage\" 3}'"))


def test_a_sum_with_spaces_does_not_end_an_array(tmp_path: Path) -> None:
    array = "ARGS=(\n  --ffn-hidden-size $(( H * 7 / 2 ))\n  --num-layers 8\n)"
    text = f"H=4096\n{array}\npretrain_gpt.py {SIZES} ${{ARGS[@]}}"
    values = facts(_drafted(tmp_path, "run.sh", text))
    assert (values["model.ffn"], values["model.layers"]) == (14336, 8)


def test_the_halves_of_t5_have_lengths_of_their_own(tmp_path: Path) -> None:
    megatron = (
        "pretrain_t5.py --encoder-num-layers 6 --decoder-num-layers 4 --hidden-size 512 --num-attention-heads 8 "
        "--micro-batch-size 8 --encoder-seq-length 512 --decoder-seq-length 128 --vocab-size 1024"
    )
    found = facts(_drafted(tmp_path, "run.sh", megatron))
    assert (found["training.sequence_length"], found["model.layers"]) == (320, 10)
    nemo = """\
trainer: {devices: 8, precision: bf16, max_steps: 10}
model:
  global_batch_size: 8
  seq_length: 512
  encoder: {num_layers: 6, hidden_size: 512, ffn_hidden_size: 1024, num_attention_heads: 8, activation: geglu}
  decoder: {num_layers: 4, hidden_size: 512, ffn_hidden_size: 1024, num_attention_heads: 8, activation: geglu}
  data: {seq_length: 512, seq_length_dec: 128, dataset_type: t5}
"""
    found = facts(_drafted(tmp_path, "run.yaml", nemo))
    assert (found["training.sequence_length"], found["model.layers"]) == (320, 10)
    assert (found["model.architecture"], found["model.gated_mlp"]) == ("encoder_decoder", True)


def test_a_dataset_states_batch_and_size_before_the_arguments(tmp_path: Path) -> None:
    found = _drafted(tmp_path, "run.sh", KOHYA, sets__toml=SETS)
    assert (found.facts["training.global_batch"].value, found.facts["model.image_size"].value) == (6, 1016)
    assert any("num_repeats 10" in text for text in found.warnings)


def test_a_dataset_that_is_not_there_leaves_the_batch_in_doubt(tmp_path: Path) -> None:
    found = _drafted(tmp_path, "run.sh", KOHYA)
    batch = found.facts["training.global_batch"]
    assert batch.value == 8
    assert "unless sets.toml says another" in batch.where
    assert any("dataset_config sets.toml: is not next to it" in text for text in found.warnings)


def test_a_part_of_a_dataset_is_no_file(tmp_path: Path) -> None:
    text = "trl sft --model_name_or_path gpt2 --dataset_name wikitext --dataset_config en --max_steps 10"
    assert not any("dataset_config" in warning for warning in _drafted(tmp_path, "run.sh", text).warnings)


def test_the_clips_of_a_dataset_give_the_length(tmp_path: Path) -> None:
    text = (
        "accelerate launch wan_train_network.py --task t2v-14B --dataset_config sets.toml --mixed_precision bf16 "
        "--network_module networks.lora_wan --network_dim 32 --max_train_epochs 16"
    )
    clips = "[general]\nresolution = [832, 480]\nbatch_size = 2\n[[datasets]]\ntarget_frames = [1, 25, 45]\n"
    values = facts(_drafted(tmp_path, "run.sh", text, sets__toml=clips))
    assert values["training.global_batch"] == 2
    assert values["training.sequence_length"] == 12 * 52 * 30  # 45 frames are 12 in the latent space


def test_commands_that_start_a_file_are_read_with_it(tmp_path: Path) -> None:
    titan = (
        "torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file ./configs/llama3_8b.toml $overrides "
        "--training.seq_len 4096 --parallelism.tensor_parallel_degree=2"
    )
    values = facts(_drafted(tmp_path, "run.sh", titan, llama3_8b__toml=TORCHTITAN))
    assert (values["training.sequence_length"], values["training.global_batch"]) == (4096, 4)
    tune = (
        "tune run --nproc_per_node 4 lora_dpo_distributed --config llama3_1/8B_lora_dpo batch_size=8 "
        "model.lora_rank=64 gradient_accumulation_steps=2"
    )
    values = facts(_drafted(tmp_path, "tune.sh", tune, **{"8B_lora_dpo__yaml": TORCHTUNE}))
    assert (values["training.global_batch"], values["training.lora_rank"]) == (64, 64)
    assert values["training.objective"] == "dpo"


def test_a_command_whose_file_is_not_there_says_how_to_give_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config llama3_1/8B_full: is not next to it.*tune cp.*--from"):
        _drafted(
            tmp_path, "run.sh", "tune run full_finetune_distributed --config llama3_1/8B_full batch_size=8"
        )


def test_the_command_line_of_lightning_is_not_nemos(tmp_path: Path) -> None:
    text = "trainer: {devices: 8}\nmodel: {class_path: proj.LM, init_args: {lr: 1e-4}}\n"
    with pytest.raises(InputError, match=r"Lightning CLI.*planner init --model"):
        _drafted(tmp_path, "config.yaml", text)


@pytest.mark.parametrize(("given", "found"), [("", "full"), (", use_gradient_checkpointing=False", "none")])
def test_a_model_in_few_bits_is_prepared_to_compute_again(tmp_path: Path, given: str, found: str) -> None:
    script = f"""\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
model = AutoModelForCausalLM.from_pretrained("mistralai/Mistral-7B-v0.1", load_in_4bit=True)
model = get_peft_model(prepare_model_for_kbit_training(model{given}), LoraConfig(r=32))
Trainer(model, TrainingArguments("out", per_device_train_batch_size=2, max_steps=10)).train()
"""
    assert facts(_drafted(tmp_path, "train.py", script))["training.layout.recompute"] == found


def test_what_a_script_asks_of_its_model(tmp_path: Path) -> None:
    script = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("EleutherAI/pythia-1b", attn_implementation="eager")
model.gradient_checkpointing_enable()
Trainer(model, TrainingArguments("out", per_device_train_batch_size=8, max_steps=10)).train()
"""
    values = facts(_drafted(tmp_path, "train.py", script))
    assert values["training.attention"] == "materialised"
    assert values["training.layout.recompute"] == "full"


@pytest.mark.parametrize(
    ("name", "preset"),
    [("Wan-AI/Wan2.1-FLF2V-14B-720P", "wan2.1-i2v-14b"), ("PAI/Wan2.1-Fun-1.3B-InP", "wan2.1-fun-1.3b-inp"),
     ("PAI/Wan2.1-Fun-V1.1-14B-InP", "wan2.1-i2v-14b")],
)  # fmt: skip
def test_denoisers_that_see_an_image_have_its_matrices(tmp_path: Path, name: str, preset: str) -> None:
    text = (
        f"train.py --model_id_with_origin_paths '{name}:diffusion*.safetensors' --height 480 --width 832 "
        "--num_frames 49 --num_epochs 5 --dataset_repeat 1 --lora_base_model dit"
    )
    values = facts(_drafted(tmp_path, "run.sh", text))
    assert values["model.preset"] == preset
    assert values["training.sequence_length"] == 13 * 52 * 30


def test_a_denoiser_with_other_controls_is_not_taken_for_the_plain_one(tmp_path: Path) -> None:
    text = "train.py --model_id_with_origin_paths 'PAI/Wan2.1-Fun-14B-Control:x.safetensors' --num_epochs 5"
    with pytest.raises(InputError, match="is not a preset"):
        _drafted(tmp_path, "run.sh", text)


def test_recomputing_that_is_asked_of_unsloths_loader(tmp_path: Path) -> None:
    script = """\
from unsloth import FastVisionModel
from trl import SFTConfig, SFTTrainer
model, _ = FastVisionModel.from_pretrained("unsloth/Qwen2.5-VL-7B-Instruct", use_gradient_checkpointing="unsloth")
model = FastVisionModel.get_peft_model(model, r=16)
SFTTrainer(model=model, args=SFTConfig(per_device_train_batch_size=2, max_steps=30)).train()
"""
    assert facts(_drafted(tmp_path, "train.py", script))["training.layout.recompute"] == "full"


def test_verls_supervised_trainer_with_weights_on_the_host(tmp_path: Path) -> None:
    text = """\
data: {train_batch_size: 256, train_files: x.parquet, max_length: 1024}
model: {partial_pretrain: Qwen/Qwen2.5-0.5B, fsdp_config: {cpu_offload: true, offload_params: %s}}
trainer: {total_epochs: 4}
"""
    moved = facts(_drafted(tmp_path, "sft.yaml", text % "true"))
    assert moved["training.memory.offload_weights"] is True
    assert "training.memory.offload_weights" not in facts(_drafted(tmp_path, "sft.yaml", text % "false"))


def test_openrlhf_keeps_the_reference_beside_adapters(tmp_path: Path) -> None:
    dpo = (
        "deepspeed --module openrlhf.cli.train_dpo --pretrain meta-llama/Meta-Llama-3-8B --micro_train_batch_size 1 "
        "--train_batch_size 256 --lora_rank 64 --ref_offload"
    )
    found = _drafted(tmp_path, "run.sh", dpo)
    assert found.facts["training.reference"].value == "resident"
    assert any("ref_offload" in text for text in found.warnings)
    plain = _drafted(tmp_path, "run.sh", dpo.replace("train_dpo", "train_sft"))
    assert "training.reference" not in plain.facts


@pytest.mark.parametrize("line", ["cat > cfg.yml <<EOF", "cat <<'EOF' > \"cfg.yml\""])
def test_a_configuration_that_a_script_writes(tmp_path: Path, line: str) -> None:
    run = "base_model: Qwen/Qwen2.5-7B\nmicro_batch_size: 4\ndatasets: [{path: x, type: alpaca}]\nsequence_len: 4096"
    text = f"#!/bin/bash\n{line}\n{run}\nEOF\naccelerate launch -m axolotl.cli.train cfg.yml --num-epochs 2\n"
    found = _drafted(tmp_path, "run.sh", text)
    assert found.facts["model.preset"].value == "qwen2.5-7b"
    assert found.facts["training.sequence_length"].value == 4096
    assert any("cfg.yml, which the script writes, is read" in warning for warning in found.warnings)


def test_an_engines_configuration_that_a_script_writes_is_not_the_run(tmp_path: Path) -> None:
    engine = 'cat > ds.json <<EOF\n{"zero_optimization": {"stage": $STAGE}}\nEOF\n'
    run = "python run_clm.py --model_name_or_path gpt2 --per_device_train_batch_size 4 --num_train_epochs 3"
    found = _drafted(tmp_path, "run.sh", f"#!/bin/bash\n{engine}{run} --deepspeed ds.json\n")
    assert (found.facts["model.preset"].value, found.facts["training.global_batch"].value) == (
        "gpt-2-124m",
        4,
    )


def test_another_programs_configuration_does_not_hide_the_command(tmp_path: Path) -> None:
    text = """\
cat > eval.yaml <<EOF
model: gpt2
tasks: [mmlu]
EOF
torchrun --nproc_per_node 8 sft.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 4 --max_steps 9
lm_eval --config eval.yaml
"""
    found = _drafted(tmp_path, "run.sh", text)
    assert found.facts["model.preset"].value == "qwen2.5-7b"
    assert found.facts["training.global_batch"].value == 32


@pytest.mark.parametrize(
    "text",
    ["cat > a.yaml <<EOF\n" * 50_000, f"cat > a.yaml <<{'E' * 500_000}\n" + "x: 1\n" * 100_000,
     "".join(f"cat > a.json <<A{at}\n" for at in range(20_000))],
    ids=["without an end", "a long end", "one in another"],
)  # fmt: skip
def test_scripts_that_write_files_without_end_are_refused_at_once(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="is a script without arguments"):
        _drafted(tmp_path, "run.sh", f"#!/bin/bash\n{text}")


def test_a_negative_number_is_named_and_minus_one_is_not_set(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        "base_model: NousResearch/Meta-Llama-3-8B\nadapter: lora\nmicro_batch_size: -4\nmax_steps: -1\n",
        "utf-8",
    )
    warnings = gather([path], Wishes()).warnings
    assert [text for text in warnings if "below 0" in text] == [
        "run.yaml: micro_batch_size: -4 is below 0: it counts as not given"
    ]
