"""torchtune, LitGPT, ms-swift, open-instruct, Unsloth: what is read. Fixtures are written from documented keys."""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any

import pytest

from planner.errors import InputError
from planner.trainer_files.formats.torchtune import hub_name
from planner.trainer_files.gather import Draft, Wishes, gather
from planner.trainer_files.hub import preset_of_hub_name
from tests.planner.trainer_files.test_formats import LITGPT, MS_SWIFT, OPEN_INSTRUCT, TORCHTUNE


def read(folder: Path, text: str, name: str = "run.yaml", **wishes: Any) -> Draft:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return gather([path], Wishes(**wishes))


def draft(folder: Path, text: str, name: str = "run.yaml", **wishes: Any) -> dict[str, Any]:
    return {key: fact.value for key, fact in read(folder, text, name, **wishes).facts.items()}


def test_torchtune(tmp_path: Path) -> None:
    found = draft(tmp_path, TORCHTUNE, accelerators=8)
    assert found["model.preset"] == "llama-3.1-8b"
    assert found["training.global_batch"] == 2 * 8 * 8
    assert (found["training.epochs"], found["training.sequence_length"]) == (3, 2048)
    assert (found["training.method"], found["training.lora_rank"]) == ("lora", 8)
    assert found["training.adapter.targets"] == [
        "q_proj",
        "v_proj",
        "o_proj",
        "gate_proj",
        "up_proj",
        "down_proj",
    ]
    assert (found["training.packing"], found["training.objective"]) == (True, "sft")
    assert found["training.memory.loss"] == "tiled"
    assert found["training.memory.master"] == "none"
    assert found["training.layout.zero_stage"] == 3


def test_a_recipe_of_torchtune_for_one_accelerator_is_told_by_its_name(tmp_path: Path) -> None:
    found = draft(tmp_path, TORCHTUNE, "8B_lora_single_device.yaml")
    assert found["training.global_batch"] == 2 * 8
    assert "training.layout.zero_stage" not in found


@pytest.mark.parametrize(
    ("builder", "preset"),
    [
        ("llama3_1.lora_llama3_1_8b", "llama-3.1-8b"), ("llama3_2.qlora_llama3_2_1b", "llama-3.2-1b"),
        ("qwen2_5.lora_qwen2_5_0_5b", "qwen2.5-0.5b"), ("qwen2_5.qwen2_5_7b_instruct", "qwen2.5-7b"),
        ("qwen2.qwen2_1_5b", "qwen2.5-1.5b"), ("gemma2.gemma2_27b", "gemma-2-27b"), ("gemma.lora_gemma_2b", "gemma-2b"),
        ("phi3.phi3_mini", "phi-3-mini"), ("phi4.qlora_phi4_14b", "phi-4"), ("mistral.mistral_7b", "mistral-7b"),
        ("code_llama2.code_llama2_7b", "llama-2-7b"), ("llama3_3.llama3_3_70b", "llama-3.3-70b"),
        ("llama3_2_vision.lora_llama3_2_vision_11b", "llama-3.2-vision-11b"), ("clip.clip_text_vit_large", None),
    ],
)  # fmt: skip
def test_builders_of_torchtune_name_presets(builder: str, preset: str | None) -> None:
    found = preset_of_hub_name(hub_name(f"torchtune.models.{builder}"))
    assert (None if found is None else found.name) == preset


def test_parts_that_torchtune_does_not_train_are_named(tmp_path: Path) -> None:
    vision = "llama3_2_vision.llama3_2_vision_11b\n  decoder_trainable: False\n  encoder_trainable: True"
    path = tmp_path / "run.yaml"
    path.write_text(
        f"model:\n  _component_: torchtune.models.{vision}\nbatch_size: 2\n"
        "optimizer: {_component_: torch.optim.AdamW}\n",
        encoding="utf-8",
    )
    found = gather([path], Wishes(accelerators=8))
    assert found.facts["model.preset"].value == "llama-3.2-vision-11b"
    assert any("decoder_trainable: frozen parts are counted as trained" in text for text in found.warnings)


def test_losses_and_quantised_bases_of_torchtune(tmp_path: Path) -> None:
    text = TORCHTUNE.replace("modules.loss.LinearCrossEntropyLoss", "rlhf.loss.DPOLoss")
    text = text.replace("  lora_alpha: 16", "  lora_alpha: 16\n  quantize_base: true\n  use_dora: true")
    found = draft(tmp_path, text.replace("max_steps_per_epoch: null", "max_steps_per_epoch: 100"))
    assert found["training.objective"] == "dpo"
    assert (found["training.method"], found["training.adapter.kind"]) == ("qlora", "dora")
    assert found["training.steps"] == 300
    teacher = "teacher_model: {_component_: torchtune.models.llama3_1.llama3_1_70b}\n"
    assert draft(tmp_path, TORCHTUNE + teacher)["training.teacher.preset"] == "llama-3.1-70b"


def test_ppo_of_torchtune_counts_responses(tmp_path: Path) -> None:
    text = TORCHTUNE.replace("modules.loss.LinearCrossEntropyLoss", "rlhf.loss.PPOLoss").replace(
        "epochs: 3", ""
    )
    more = "num_steps: 10000\nppo_batch_size: 32\nppo_epochs: 2\nmax_generated_tokens: 58\n"
    found = read(tmp_path, text.replace("batch_size: 2", "batch_size: 64") + more)
    facts = {key: fact.value for key, fact in found.facts.items()}
    assert (facts["training.objective"], facts["training.samples"], facts["training.global_batch"]) == (
        "ppo",
        10000,
        64,
    )
    example = next(blank.example for blank in found.blanks if blank.key == "training.rollouts")
    assert "max: 58" in example
    assert "update_batch: 32" in example
    assert "epochs: 2" in example


def test_files_of_torchtune_that_generate_train_nothing(tmp_path: Path) -> None:
    text = "\n".join(line for line in TORCHTUNE.splitlines() if not line.startswith("optimizer"))
    with pytest.raises(InputError, match="trains nothing"):
        draft(tmp_path, text)


def test_litgpt(tmp_path: Path) -> None:
    found = draft(tmp_path, LITGPT)
    assert found["model.preset"] == "llama-3.1-8b"
    assert (found["training.global_batch"], found["training.sequence_length"]) == (16, 512)
    assert (found["training.method"], found["training.quantization"]) == ("qlora", "nf4")
    assert found["training.adapter.targets"] == ["q_proj", "v_proj", "gate_proj", "up_proj", "down_proj"]
    assert found["training.layout.zero_stage"] == 3
    doubled = draft(tmp_path, LITGPT.replace("bnb.nf4", "bnb.nf4-dq"))
    assert doubled["training.quantization"] == "nf4_double"


def test_sizes_of_litgpt(tmp_path: Path) -> None:
    text = """
model_config: {name: own, n_layer: 22, n_head: 32, n_embd: 2048, n_query_groups: 4, intermediate_size: 5632,
  padded_vocab_size: 32000, mlp_class_name: LLaMAMLP, block_size: 2048}
out_dir: out
train: {global_batch_size: 512, micro_batch_size: 4, max_tokens: 3000000000000}
"""
    found = draft(tmp_path, text)
    assert found["model.params"] == pytest.approx(1_100_048_384, rel=1e-3)  # TinyLlama's published count
    assert (found["training.tokens"], found["training.sequence_length"]) == (3 * 10**12, 2048)
    assert found["training.stack"] == "compiled"


def test_ms_swift(tmp_path: Path) -> None:
    found = draft(tmp_path, MS_SWIFT, "train.sh")
    assert found["model.preset"] == "qwen2.5-7b"
    assert (
        found["training.global_batch"] == 1 * 8 * 4
    )  # accumulation by `expr`, accelerators by NPROC_PER_NODE
    assert (found["training.epochs"], found["training.sequence_length"]) == (2, 4096)
    assert (found["training.method"], found["training.lora_rank"]) == ("lora", 16)
    assert found["training.adapter.targets"] == ["all_linear"]
    assert found["training.layout.zero_stage"] == 2
    assert found["training.memory.offload_optimizer"] is True
    assert found["training.layout.recompute"] == "full"  # its default
    assert found["training.packing"] is True


def test_ms_swift_with_rollouts_and_with_megatron(tmp_path: Path) -> None:
    more = (
        "--rlhf_type grpo --num_generations 8 --use_vllm true --vllm_mode server --max_completion_length 2048"
    )
    text = MS_SWIFT.replace("swift sft", "swift rlhf").replace("--packing true", more)
    found = read(tmp_path, text, "train.sh")
    example = next(blank.example for blank in found.blanks if blank.key == "training.rollouts")
    assert "samples_per_prompt: 8, engine: vllm, placement: disaggregated" in example
    assert found.facts["training.objective"].value == "grpo"
    assert found.facts["training.sequence_length"].value == 4096 + 2048
    megatron = r"""
NNODES=$WORLD_SIZE \
megatron sft --load Qwen3-30B-A3B-Base-mcore --split_dataset_ratio 0.01 --pipeline_model_parallel_size 2 \
    --expert_model_parallel_size 8 --micro_batch_size 1 --global_batch_size 16 --packing true \
    --recompute_granularity full --max_epochs 3 --max_length 8192
"""
    facts = draft(tmp_path, megatron, "moe.sh")
    assert facts["model.preset"] == "qwen3-30b-a3b"
    assert (facts["training.global_batch"], facts["training.method"]) == (16, "full")
    assert (facts["training.layout.pipeline_parallel"], facts["training.layout.expert_parallel"]) == (2, 8)


def test_open_instruct_counts_responses(tmp_path: Path) -> None:
    found = read(tmp_path, OPEN_INSTRUCT, "run.sh")
    facts = {key: fact.value for key, fact in found.facts.items()}
    assert (facts["model.preset"], facts["training.objective"]) == ("qwen3-8b", "grpo")
    assert (facts["training.samples"], facts["training.global_batch"]) == (200000, 48 * 16)
    assert facts["training.sequence_length"] == 1024 + 2048
    assert (facts["training.layout.zero_stage"], facts["training.layout.recompute"]) == (3, "full")
    example = next(blank.example for blank in found.blanks if blank.key == "training.rollouts")
    for part in (
        "max: 2048",
        "samples_per_prompt: 16",
        "update_batch: 192",
        "epochs: 2",
        "tensor_parallel: 2",
    ):
        assert part in example


def test_what_open_instruct_takes_where_a_script_states_nothing_is_assumed(tmp_path: Path) -> None:
    text = OPEN_INSTRUCT.replace("    --response_length 2048 \\\n", "")
    text = text.replace("    --num_samples_per_prompt_rollout 16 \\\n", "")
    facts = read(tmp_path, text, "run.sh").facts
    for key, value in (("training.sequence_length", 1024 + 256), ("training.global_batch", 48 * 4)):
        assert (facts[key].value, facts[key].assumed) == (value, True)
    stated = read(tmp_path, OPEN_INSTRUCT, "run.sh").facts
    assert not any(stated[key].assumed for key in ("training.sequence_length", "training.global_batch"))


def test_older_programs_of_open_instruct_state_prompts_of_each_accelerator(tmp_path: Path) -> None:
    text = r"""
python open_instruct/ppo_vllm_thread_ray_gtrl.py --model_name_or_path /data/Meta-Llama-3.1-70B-Instruct \
    --total_episodes 100000 --local_mini_batch_size 8 --local_rollout_batch_size 16 --actor_num_gpus_per_node 8 8 8 4 \
    --response_length 1024 --deepspeed_stage 3
"""
    found = read(tmp_path, text, "run.sh")
    assert found.facts["training.objective"].value == "ppo"
    assert found.facts["training.global_batch"].value == 16 * 28
    example = next(blank.example for blank in found.blanks if blank.key == "training.rollouts")
    assert "update_batch: 224" in example


def test_the_tuners_of_open_instruct_are_scripts_around_the_trainer(tmp_path: Path) -> None:
    text = r"""
accelerate launch --mixed_precision bf16 --num_machines 1 --num_processes 8 --use_deepspeed \
    --deepspeed_config_file configs/stage3_no_offloading_accelerate.conf open_instruct/dpo_tune_cache.py \
    --model_name_or_path allenai/Llama-3.1-Tulu-3-8B-SFT --dataset_mixer_list some/pairs 1.0 --max_seq_length 2048 \
    --per_device_train_batch_size 1 --gradient_accumulation_steps 16 --num_train_epochs 1
"""
    found = draft(tmp_path, text, "run.sh")
    assert found["model.preset"] == "llama-3.1-8b"
    assert (found["training.precision"], found["training.objective"]) == ("bf16", "dpo")
    assert (found["training.global_batch"], found["training.layout.zero_stage"]) == (128, 3)
    assert "training.memory.offload_optimizer" not in found  # its name says that nothing is


def test_arguments_of_unsloth(tmp_path: Path) -> None:
    text = (
        'python unsloth-cli.py --model_name "unsloth/llama-3-8b" --max_seq_length 8192 --load_in_4bit --r 64 '
        '--lora_alpha 32 --use_gradient_checkpointing "unsloth" --per_device_train_batch_size 4 '
        "--gradient_accumulation_steps 8 --max_steps 400 --optim adamw_8bit\n"
    )
    found = draft(tmp_path, text, "run.sh")
    assert (found["training.method"], found["training.lora_rank"]) == ("qlora", 64)
    assert (found["training.precision"], found["training.layout.recompute"]) == ("bf16", "full")


def test_defaults_in_colons_and_variables_before_a_command(tmp_path: Path) -> None:
    text = r"""
: ${N_LAYERS:=32} ${HS:=4096}
: ${GBS=64}
A=1 B="two words" torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers $N_LAYERS --hidden-size $HS \
    --num-attention-heads 32 --seq-length 2048 --micro-batch-size 1 --global-batch-size $GBS --vocab-size 32000
"""
    found = draft(tmp_path, text, "run.sh")
    assert (found["model.layers"], found["model.hidden"], found["training.global_batch"]) == (32, 4096, 64)


def test_a_name_put_together_from_many_variables_is_read_at_once(tmp_path: Path) -> None:
    """Each variable took several times as long as all before it: names of experiments have ten."""
    parts = "-".join(f"$EXPERIMENT_{letter}" for letter in "ABCDEFGHIJ")
    start = process_time()
    found = draft(tmp_path, f"OUT={parts}\n{LAUNCHED.format(before='')}", "run.sh")
    assert found["training.global_batch"] == 4 * 8
    assert process_time() - start < 5


def test_overrides_may_begin_their_lines(tmp_path: Path) -> None:
    text = """
python megatron_gpt_peft_tuning.py \\
trainer.precision=bf16 \\
trainer.max_steps=100 \\
model.restore_from_path=/models/llama2-13b.nemo \\
model.peft.peft_scheme=lora \\
model.data.train_ds.global_batch_size=64
"""
    found = draft(tmp_path, text, "run.sh")
    assert (found["model.preset"], found["training.steps"], found["training.method"]) == (
        "llama-2-13b",
        100,
        "lora",
    )


@pytest.mark.parametrize(
    ("targets", "read_as"),
    [
        ('"^(?!.*visual).*(?:q_proj|k_proj)$"', ["q_proj", "k_proj"]),
        ('"(?:.*?(?:language|text).*?(?:self_attn|mlp).*?(?:v_proj|down_proj).*?)"', ["v_proj", "down_proj"]),
        ('["self_attn.q_proj", "self_attn.v_proj"]', ["q_proj", "v_proj"]),
        ('".*nothing.*known.*"', [".*nothing.*known.*"]),
        ('"all-linear"', ["all_linear"]),
    ],
)
def test_adapted_matrices_by_expressions_and_paths(targets: str, read_as: list[str], tmp_path: Path) -> None:
    text = f'{{"peft_type": "LORA", "base_model_name_or_path": "Qwen/Qwen3-8B", "r": 8, "target_modules": {targets}}}'
    assert draft(tmp_path, text, "adapter_config.json")["training.adapter.targets"] == read_as


def test_layers_that_adapters_leave_out_are_named(tmp_path: Path) -> None:
    text = '{"peft_type": "LORA", "base_model_name_or_path": "Qwen/Qwen3-8B", "r": 8, "layers_to_transform": [0, 1]}'
    assert any(
        "layers_to_transform" in warning for warning in read(tmp_path, text, "adapter_config.json").warnings
    )


def test_the_first_form_of_zero_is_stage_one(tmp_path: Path) -> None:
    text = '{"train_batch_size": 64, "zero_optimization": true, "fp16": {"enabled": true}}'
    assert draft(tmp_path, text, "ds.json", model="llama-3.1-8b")["training.layout.zero_stage"] == 1
    off = draft(tmp_path, text.replace('true, "fp16', 'false, "fp16'), "ds.json", model="llama-3.1-8b")
    assert off["training.layout.zero_stage"] == 0


def test_what_deepspeed_quantises_or_moves_is_named(tmp_path: Path) -> None:
    text = '{"train_batch_size": 64, "zero_optimization": {"stage": 3, "zero_quantized_weights": true}, ' \
        '"activation_checkpointing": {"cpu_checkpointing": true}}'  # fmt: skip
    warnings = " ".join(read(tmp_path, text, "ds.json", model="llama-3.1-8b").warnings)
    assert "zero_quantized_weights" in warnings and "cpu_checkpointing" in warnings


def test_accelerate_with_megatron_a_compiler_and_other_chips(tmp_path: Path) -> None:
    text = """
distributed_type: MEGATRON_LM
num_processes: 16
mixed_precision: bf16
megatron_lm_config: {megatron_lm_tp_degree: 4, megatron_lm_pp_degree: 2, megatron_lm_sequence_parallelism: true,
  megatron_lm_recompute_activations: true, megatron_lm_use_distributed_optimizer: true}
"""
    found = draft(tmp_path, text, model="llama-3.1-8b")
    layout = {
        key.rpartition(".")[2]: value for key, value in found.items() if key.startswith("training.layout.")
    }
    assert layout == {
        "tensor_parallel": 4, "pipeline_parallel": 2, "sequence_parallel": True, "recompute": "selective",
        "zero_stage": 1,
    }  # fmt: skip
    other = "distributed_type: TPU\nnum_processes: 8\ndynamo_config: {dynamo_backend: INDUCTOR}\n"
    chips = read(tmp_path, other, model="llama-3.1-8b")
    assert chips.facts["training.stack"].value == "compiled"
    assert any("distributed_type TPU" in warning for warning in chips.warnings)


LAUNCHED = r"""
{before}llamafactory-cli train \
    --stage sft --do_train True --model_name_or_path meta-llama/Llama-3.1-8B-Instruct --finetuning_type lora \
    # which template
    --template llama3 --dataset some --per_device_train_batch_size 4 --gradient_accumulation_steps 8
"""


@pytest.mark.parametrize(
    ("before", "accelerators"),
    [
        ("", 1), ("CUDA_VISIBLE_DEVICES=2,3 ", 2), ("NNODES=2 NPROC_PER_NODE=8 ", 16),
        ("CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=2 ", 2), ("export CUDA_VISIBLE_DEVICES=0,1,2\n", 3),
        ("CARDS=0,1,2,3\nCUDA_VISIBLE_DEVICES=$CARDS ", 4),
    ],
)  # fmt: skip
def test_launchers_of_llama_factory(before: str, accelerators: int, tmp_path: Path) -> None:
    found = read(tmp_path, LAUNCHED.format(before=before), "run.sh")
    assert found.facts["training.global_batch"].value == 4 * 8 * accelerators
    assert not found.unknown


def test_a_script_that_starts_a_file_names_it(tmp_path: Path) -> None:
    text = "FORCE_TORCHRUN=1 llamafactory-cli train examples/qwen3_full_sft.yaml num_train_epochs=5\n"
    with pytest.raises(InputError, match=r"name the file that it starts: examples/qwen3_full_sft\.yaml"):
        draft(tmp_path, text, "run.sh")
