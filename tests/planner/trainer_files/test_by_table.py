"""EasyR1, SkyRL, slime, RL2 and ROLL: fixtures with documented keys, and what must be read from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.trainer_files.gather import Draft
from tests.planner.trainer_files.drafts import draft, facts

EASY_R1 = """
data: {rollout_batch_size: 256, max_prompt_length: 1024, max_response_length: 3072}
algorithm: {adv_estimator: grpo, disable_kl: true}
worker:
  actor:
    global_batch_size: 64
    model: {model_path: Qwen/Qwen2.5-7B-Instruct, enable_gradient_checkpointing: true}
  rollout: {n: 8, tensor_parallel_size: 2, enforce_eager: true}
trainer: {total_epochs: 3, n_gpus_per_node: 8, nnodes: 2}
"""
SKY_RL = """
NUM_GPUS=8
uv run --isolated --extra megatron -m skyrl.train.entrypoints.main_base \\
  trainer.policy.model.path="Qwen/Qwen3-30B-A3B" trainer.strategy=megatron \\
  trainer.placement.colocate_all=false trainer.placement.policy_num_gpus_per_node=$NUM_GPUS \\
  trainer.policy.megatron_config.tensor_model_parallel_size=4 \\
  generator.inference_engine.num_engines=2 generator.inference_engine.tensor_parallel_size=4 \\
  trainer.train_batch_size=128 trainer.policy_mini_batch_size=32 generator.n_samples_per_prompt=16 \\
  trainer.max_prompt_length=2048 generator.sampling_params.max_generate_length=$((1024 * 6)) \\
  trainer.algorithm.use_kl_loss=false trainer.epochs=4
"""
SLIME = """#!/bin/bash
source models/qwen3-4B.sh
ROLLOUT_ARGS=(
   --num-rollout 500
   --rollout-batch-size 32
   --n-samples-per-prompt 8
   --rollout-max-response-len 8192
   --global-batch-size 128
)
ray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 \\
   --colocate ${MODEL_ARGS[@]} ${ROLLOUT_ARGS[@]} --hf-checkpoint /models/Qwen3-4B \\
   --tensor-model-parallel-size 2 --recompute-granularity full --use-kl-loss --kl-loss-coef 0.01
"""
RL2 = """
torchrun --nproc_per_node=4 -m RL2.trainer.ppo train_data.path=prompts train_data.responses_per_prompt=16 \\
    train_data.sampling_params.max_new_tokens=4096 actor.model_name=Qwen/Qwen2.5-7B actor.cp_size=2 \\
    actor.update_per_rollout=4 rollout.train_prompts_per_rollout=64 adv.estimator=gae trainer.total_steps=200
"""
RL2_DPO = """
torchrun --nproc_per_node=4 -m RL2.trainer.dpo data.train.path=pairs data.train.max_length=1024 \\
    actor.model_name=Qwen/Qwen2.5-7B actor.max_length_per_device=4096
"""
ROLL = """
rollout_batch_size: 64
prompt_length: 2048
response_length: 1024
num_return_sequences_in_group: 8
adv_estimator: grpo
pretrain: Qwen/Qwen3-8B
max_steps: 300
actor_train:
  training_args: {per_device_train_batch_size: 1, gradient_accumulation_steps: 32}
  strategy_args:
    strategy_name: megatron_train
    strategy_config: {tensor_model_parallel_size: 2, pipeline_model_parallel_size: 1}
  device_mapping: list(range(0,4))
actor_infer:
  strategy_args: {strategy_name: vllm, strategy_config: {tensor_parallel_size: 1}}
  device_mapping: list(range(4,8))
"""


def rollouts(result: Draft) -> str:
    return next(blank.example for blank in result.blanks if blank.key == "training.rollouts")


@pytest.mark.parametrize(
    ("name", "text", "stated", "generation"),
    [
        ("run.yaml", EASY_R1,
         {"model.preset": "qwen2.5-7b", "training.global_batch": 2048, "training.sequence_length": 4096,
          "training.epochs": 3.0, "training.objective": "grpo", "training.reference": "none",
          "training.layout.zero_stage": 3, "training.layout.recompute": "full"},
         ["update_batch: 512", "samples_per_prompt: 8", "cuda_graphs: false", "tensor_parallel: 2", "max: 3072"]),
        ("sky.sh", SKY_RL,
         {"model.preset": "qwen3-30b-a3b", "training.global_batch": 2048, "training.sequence_length": 8192,
          "training.reference": "none", "training.layout.tensor_parallel": 4, "training.layout.zero_stage": 1,
          "training.stack": "tuned", "training.epochs": 4.0},
         ["update_batch: 512", "placement: disaggregated", "generation_share: 0.5", "engine: vllm"]),
        ("slime.sh", SLIME,
         {"model.preset": "qwen3-4b", "training.steps": 500, "training.global_batch": 256,
          "training.layout.tensor_parallel": 2, "training.layout.recompute": "full", "training.objective": "grpo"},
         ["update_batch: 128", "engine: sglang", "max: 8192"]),
        ("rl2.sh", RL2,
         {"model.preset": "qwen2.5-7b", "training.steps": 200, "training.global_batch": 1024,
          "training.objective": "ppo", "training.layout.context_parallel": 2, "training.reference": "none"},
         ["update_batch: 256", "samples_per_prompt: 16"]),
        ("roll.yaml", ROLL,
         {"model.preset": "qwen3-8b", "training.steps": 300, "training.global_batch": 512,
          "training.sequence_length": 3072, "training.layout.tensor_parallel": 2},
         ["update_batch: 64", "placement: disaggregated", "generation_share: 0.5", "engine: vllm"]),
    ],
)  # fmt: skip
def test_reinforcement_is_read(
    tmp_path: Path, name: str, text: str, stated: dict[str, Any], generation: list[str]
) -> None:
    result = draft(tmp_path, name, text)
    found, example = facts(result), rollouts(result)
    assert {key: found.get(key) for key in stated} == stated
    assert [part for part in generation if part not in example] == []


def test_an_update_of_easy_r1_takes_256_prompts_unless_it_is_stated(tmp_path: Path) -> None:
    text = EASY_R1.replace("    global_batch_size: 64\n", "").replace("batch_size: 256", "batch_size: 512")
    assert "update_batch: 2048" in rollouts(draft(tmp_path, "run.yaml", text))


def test_a_program_of_rl2_tells_its_objective(tmp_path: Path) -> None:
    found = facts(draft(tmp_path, "dpo.sh", RL2_DPO))
    assert found["training.objective"] == "dpo"
    assert (found["training.global_batch"], found["training.sequence_length"]) == (128, 1024)


ROLL_PAIRS = """\
max_steps: 500
sequence_length: 512
train_batch_size: 64
pretrain: Qwen/Qwen3-4B
chosen_key: chosen
actor_train:
  training_args: {per_device_train_batch_size: 16, gradient_accumulation_steps: 1}
  strategy_args:
    strategy_name: megatron_train
    strategy_config: {tensor_model_parallel_size: 1, recompute_granularity: full}
  device_mapping: list(range(0,2))
"""


def test_pairs_of_roll_are_no_reinforcement(tmp_path: Path) -> None:
    found = facts(draft(tmp_path, "dpo.yaml", ROLL_PAIRS))
    assert found["training.objective"] == "dpo"
    assert (found["training.global_batch"], found["training.sequence_length"]) == (64, 512)
    tuned = ROLL_PAIRS.replace("actor_train:", "sft_train:").replace("chosen_key: chosen\n", "")
    found = facts(draft(tmp_path, "sft.yaml", tuned))
    assert (found["training.objective"], found["training.global_batch"]) == ("sft", 32)


DEEPSPEED = """  strategy_args: {strategy_name: deepspeed_train, strategy_config: "${deepspeed_zero2}"}
"""


def test_the_stage_of_roll_is_that_of_the_section_it_names(tmp_path: Path) -> None:
    head, rest = ROLL.split("  strategy_args:", 1)
    text = head + DEEPSPEED + rest[rest.index("  device_mapping") :]
    result = draft(tmp_path, "roll.yaml", text)
    assert facts(result)["training.layout.zero_stage"] == 2
    assert "deepspeed_zero2" in result.facts["training.layout.zero_stage"].where
    found = facts(draft(tmp_path, "roll.yaml", text.replace("zero2", "zero3_cpuoffload")))
    assert (found["training.layout.zero_stage"], found["training.memory.offload_optimizer"]) == (3, True)
    assert "training.memory.offload_weights" not in found
    unknown = draft(tmp_path, "roll.yaml", text.replace('"${deepspeed_zero2}"', "{}")).facts
    stage = unknown["training.layout.zero_stage"]
    assert stage.assumed and "DeepSpeed" in stage.where


@pytest.mark.parametrize(
    ("mapping", "share"),
    [
        ("list(range(0,4)) + list(range(8,12))", "0.666667"),
        ('"[0, 1, 2, 3]"', "0.5"),
        ("list(range(0, 4, 2))", "0.333333"),
    ],
)
def test_accelerators_of_roll_by_any_text_of_their_numbers(tmp_path: Path, mapping: str, share: str) -> None:
    text = ROLL.replace("list(range(4,8))", "MAPPING").replace("list(range(0,4))", "list(range(12,16))")
    assert f"generation_share: {share}" in rollouts(
        draft(tmp_path, "roll.yaml", text.replace("MAPPING", mapping))
    )


def test_a_reference_or_a_critic_apart_is_named(tmp_path: Path) -> None:
    apart = "reference: {device_mapping: 'list(range(0,6))'}\n"
    result = draft(tmp_path, "dpo.yaml", ROLL_PAIRS + apart)
    assert any("reference.device_mapping: accelerators of its own (4)" in text for text in result.warnings)
    beside = draft(tmp_path, "dpo.yaml", ROLL_PAIRS + apart.replace("6", "2"))
    assert not any("device_mapping" in text for text in beside.warnings)
    result = draft(tmp_path, "roll.yaml", ROLL + apart.replace("reference", "critic").replace("6", "9"))
    assert any("critic.device_mapping: accelerators of its own (1)" in text for text in result.warnings)


ALPACA = """\
python finetune.py --base_model Qwen/Qwen2.5-7B --data_path d.json --micro_batch_size 2 --lora_r 16 \\
  --cutoff_len 512 --adapter_name dora --use_gradient_checkpointing
"""
MLX = "model: Qwen/Qwen3-8B\ndata: data\ntrain: true\niters: 400\nlora_parameters: {rank: 4}\n"


def test_trainers_of_adapters_are_read_with_their_defaults(tmp_path: Path) -> None:
    found = facts(draft(tmp_path, "alpaca.sh", ALPACA))
    assert (found["training.global_batch"], found["training.epochs"]) == (128, 3.0)
    assert (found["training.adapter.kind"], found["training.lora_rank"]) == ("dora", 16)
    found = facts(draft(tmp_path, "mlx.yaml", MLX))
    assert (found["training.method"], found["training.lora_rank"], found["training.global_batch"]) == (
        "lora",
        4,
        4,
    )
    found = facts(draft(tmp_path, "mlx.yaml", MLX + "fine_tune_type: full\n"))
    assert "training.method" not in found
    assert found["training.layout.zero_stage"] == 0


def test_a_flag_before_an_array_of_another_file_is_set(tmp_path: Path) -> None:
    assert draft(tmp_path, "slime.sh", SLIME).warnings == []
    apart = draft(tmp_path, "slime.sh", SLIME.replace("--colocate", "--rollout-num-gpus 8"))
    assert "generation_share: 0.5" in rollouts(apart)


def test_one_word_of_an_array_of_another_file_is_a_value_that_is_not_known(tmp_path: Path) -> None:
    result = draft(
        tmp_path, "slime.sh", SLIME.replace("train.py", "train.py --rollout-max-prompt-len ${LENGTHS[1]}")
    )
    assert any("rollout-max-prompt-len is not read" in warning for warning in result.warnings)
    assert facts(result)["training.sequence_length"] == 8192


def test_overrides_change_the_file_that_they_name(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "config.yaml").write_text(EASY_R1, encoding="utf-8")
    script = (
        "python3 -m verl.trainer.main config=examples/config.yaml worker.rollout.n=4 "
        "worker.actor.model.model_path=Qwen/Qwen3-4B trainer.nnodes=1\n"
    )
    result = draft(tmp_path, "run.sh", script)
    found = facts(result)
    assert (found["model.preset"], found["training.global_batch"]) == ("qwen3-4b", 1024)
    assert any("builds on config.yaml" in note for note in result.notes)
    alone = draft(tmp_path, "other.sh", script.replace("examples/config.yaml", "absent.yaml"))
    assert any("absent.yaml: is not next to it" in warning for warning in alone.warnings)


def test_an_update_of_no_whole_share_is_named(tmp_path: Path) -> None:
    result = draft(tmp_path, "run.yaml", EASY_R1.replace("global_batch_size: 64", "global_batch_size: 60"))
    assert any("does not divide" in warning for warning in result.warnings)
    assert "update_batch" not in rollouts(result)
    result = draft(tmp_path, "roll.yaml", ROLL.replace("accumulation_steps: 32", "accumulation_steps: 10"))
    assert any("20 does not divide 512 responses" in warning for warning in result.warnings)
    assert "update_batch" not in rollouts(result)
