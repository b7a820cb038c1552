"""OpenRLHF, LLM Foundry and OLMo, and what newer and older files of other trainers state under other keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.inputs.load import parse_workload
from planner.trainer_files.answer import workload_from
from planner.trainer_files.gather import Wishes, gather
from tests.planner.trainer_files.test_formats import (
    AXOLOTL,
    COMPOSER,
    GPT_NEOX,
    MEGATRON,
    OPENRLHF,
    PEFT,
    TORCHTITAN,
    VERL,
    filled,
)


def draft(folder: Path, text: str, name: str = "run.txt", **wishes: Any) -> dict[str, Any]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return {key: fact.value for key, fact in gather([path], Wishes(**wishes)).facts.items()}


def test_openrlhf_counts_prompts_where_a_workload_counts_responses(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text(OPENRLHF, encoding="utf-8")
    found = gather([path], Wishes())
    facts = {key: fact.value for key, fact in found.facts.items()}
    assert facts["model.preset"] == "qwen3-8b"
    assert facts["training.objective"] == "grpo"
    assert facts["training.global_batch"] == 64 * 8
    assert facts["training.sequence_length"] == 1024 + 3072
    assert (facts["training.epochs"], facts["data.samples"]) == (3, 20000)
    assert facts["training.reference"] == "none"
    assert facts["training.memory.offload_optimizer"] is True
    assert facts["training.layout.zero_stage"] == 3
    example = next(blank.example for blank in found.blanks if blank.key == "training.rollouts")
    assert "update_batch: 128, samples_per_prompt: 8" in example
    assert "tensor_parallel: 2, placement: colocated" in example


def test_openrlhf_with_names_in_dots_says_the_same(tmp_path: Path) -> None:
    old = draft(tmp_path, OPENRLHF)
    dots = {
        "actor_num_nodes": "actor.num_nodes", "actor_num_gpus_per_node": "actor.num_gpus_per_node",
        "vllm_num_engines": "vllm.num_engines", "vllm_tensor_parallel_size": "vllm.tensor_parallel_size",
        "colocate_all_models": "train.colocate_all", "advantage_estimator": "algo.advantage.estimator",
        "init_kl_coef": "algo.kl.init_coef", "--pretrain": "--actor.model_name_or_path",
        "micro_train_batch_size": "train.micro_batch_size", "--train_batch_size": "--train.batch_size",
        "rollout_batch_size": "rollout.batch_size", "n_samples_per_prompt": "rollout.n_samples_per_prompt",
        "num_episodes": "train.num_episodes", "max_samples": "data.max_samples",
        "prompt_max_len 1024": "data.max_len 4096", "generate_max_len": "rollout.max_new_tokens",
        "zero_stage": "ds.zero_stage", "--bf16": "--ds.param_dtype bf16", "adam_offload": "ds.adam_offload",
        "gradient_checkpointing": "actor.gradient_checkpointing_enable",
    }  # fmt: skip
    text = OPENRLHF
    for name, dotted in dots.items():
        assert name in text
        text = text.replace(name, dotted)
    assert draft(tmp_path, text) == old


@pytest.mark.parametrize(
    ("trainer", "more", "objective"),
    [
        ("train_sft", "--max_len 2048", "sft"),
        ("train_sft", "--max_len 2048 --pretrain_mode", "pretrain"),
        ("train_rm", "--max_len 2048", "reward"),
        ("train_dpo", "--max_len 2048 --beta 0.1", "dpo"),
        ("train_kd", "--max_len 2048 --teacher_model meta-llama/Llama-3.1-70B", "distill"),
    ],
)
def test_the_trainer_that_openrlhf_starts_is_the_objective(
    trainer: str, more: str, objective: str, tmp_path: Path
) -> None:
    text = (
        f"read -r -d '' training_commands <<EOF\nopenrlhf.cli.{trainer} \\\n --pretrain meta-llama/Llama-3.1-8B "
        f"--train_batch_size 256 --micro_train_batch_size 2 --lora_rank 64 --load_in_4bit {more}\nEOF\n"
        "deepspeed --module $training_commands"
    )
    path = tmp_path / "run.sh"
    path.write_text(text, encoding="utf-8")
    initial = workload_from([path], Wishes(accelerators=8))
    training = parse_workload(filled(initial.text), tmp_path / "workload.yaml").workload.training
    assert training is not None
    assert (training.objective, training.global_batch, training.sequence_length) == (objective, 256, 2048)
    assert (training.method, training.lora_rank) == ("qlora", 64)


def test_an_update_of_openrlhf_that_divides_no_step_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text(OPENRLHF.replace("--train_batch_size 128", "--train_batch_size 100"), encoding="utf-8")
    found = gather([path], Wishes())
    assert any("100 does not divide 512 responses: left out" in text for text in found.warnings)
    assert not any("update_batch" in blank.example for blank in found.blanks)


def test_llm_foundry(tmp_path: Path) -> None:
    found = draft(tmp_path, COMPOSER)
    assert found["model.params"] == pytest.approx(6.66e9, rel=0.01)
    assert (found["training.steps"], found["training.global_batch"]) == (1000, 1024)
    assert found["training.sequence_length"] == 2048
    assert found["training.precision"] == "bf16"
    assert (found["training.layout.zero_stage"], found["training.layout.recompute"]) == (3, "full")


@pytest.mark.parametrize(
    ("written", "unit", "number"),
    [
        ("2e12T", "tokens", 2_000_000_000_000), ("134e9tok", "tokens", 134_000_000_000), ("2ep", "epochs", 2.0),
        ("1_000_000sp", "samples", 1_000_000), ("100_000", "steps", 100_000),
    ],
)  # fmt: skip
def test_the_length_of_composer_in_its_units(written: str, unit: str, number: float, tmp_path: Path) -> None:
    assert draft(tmp_path, COMPOSER.replace("1000ba", written))[f"training.{unit}"] == number


def test_a_length_that_composer_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"max_duration: must be a number of steps \(ba\), tokens"):
        draft(tmp_path, COMPOSER.replace("1000ba", "3 weeks"))


def test_olmo_counts_both_halves_of_a_gated_network(tmp_path: Path) -> None:
    text = """
run_name: run
model: {d_model: 4096, n_heads: 32, n_layers: 32, mlp_hidden_size: 22016, weight_tying: false, block_type: sequential,
        activation_type: swiglu, max_sequence_length: 2048, vocab_size: 50280, embedding_size: 50304}
optimizer: {name: adamw}
max_duration: 2e12T
global_train_batch_size: 2048
device_train_microbatch_size: 2
precision: amp_bf16
activation_checkpointing: whole_layer
fsdp: {wrapping_strategy: by_block, precision: mixed}
"""
    found = draft(tmp_path, text)
    assert found["model.params"] == pytest.approx(6.888e9, rel=0.001)  # published: 6,888,095,744
    assert found["model.ffn"] == 11008
    assert (found["training.layout.zero_stage"], found["training.layout.recompute"]) == (3, "full")


def test_adapters_of_llm_foundry_on_a_named_model(tmp_path: Path) -> None:
    model = """
  name: hf_causal_lm
  pretrained_model_name_or_path: ${variables.name}
  peft_config: {r: 64, peft_type: LORA, target_modules: [q_proj, v_proj]}
variables: {name: meta-llama/Meta-Llama-3.1-8B}
train_loader: {name: finetuning, dataset: {packing_ratio: auto}}
"""
    lines = COMPOSER.splitlines()
    text = "\n".join("model:" + model if line.startswith("model:") else line for line in lines)
    found = draft(tmp_path, text)
    assert (found["model.preset"], found["training.method"]) == ("llama-3.1-8b", "lora")
    assert found["training.adapter.targets"] == ["q_proj", "v_proj"]
    assert (found["training.objective"], found["training.packing"]) == ("sft", True)


def test_megatron_deepspeed_ends_at_its_tokens_and_has_experts_in_every_other_layer(tmp_path: Path) -> None:
    text = (
        "deepspeed pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 "
        "--max-position-embeddings 2048 --micro-batch-size 8 --global-batch-size 512 --train-tokens 300000000000 "
        "--train-iters 858306 --num-experts 128 --moe-expert-parallel-size 64 --fp16 --deepspeed --vocab-size 50257"
    )
    found = draft(tmp_path, text)
    assert found["model.params"] == pytest.approx(52e9, rel=0.01)  # "1.3B-MoE-128", 52 B in all
    assert (found["model.experts_per_token"], found["model.dense_layers"]) == (1, 12)
    assert found["training.layout.expert_parallel"] == 64
    assert found["training.tokens"] == 300_000_000_000
    assert "training.steps" not in found
    fewer = draft(tmp_path, text.replace("858306", "1000"))
    assert (fewer["training.steps"], fewer.get("training.tokens")) == (1000, None)


def test_one_expert_of_megatron_deepspeed_is_a_dense_model(tmp_path: Path) -> None:
    dense = draft(tmp_path, MEGATRON)
    assert draft(tmp_path, MEGATRON + " --num-experts 1")["model.params"] == dense["model.params"]


def test_megatron_splits_no_sequences_without_tensor_parallelism(tmp_path: Path) -> None:
    text = f"{MEGATRON} --sequence-parallel"
    assert draft(tmp_path, text)["training.layout.sequence_parallel"] is True
    assert "training.layout.sequence_parallel" not in draft(tmp_path, text.replace("TP=4", "TP=1"))


def test_experts_of_gpt_neox_are_in_every_other_layer(tmp_path: Path) -> None:
    experts = '{"num-experts": 4, "moe-expert-parallel-size": 2,'
    found = draft(tmp_path, GPT_NEOX.replace("{", experts, 1))
    assert (found["model.experts"], found["model.experts_per_token"]) == (4, 1)
    assert found["model.dense_layers"] == found["model.layers"] // 2
    assert found["training.layout.expert_parallel"] == 2


TITAN = """
[model]
name = "llama3"
flavor = "8B"
[training]
{training}
seq_len = 8192
steps = 1000
"""


def test_older_torchtitan_has_the_degrees_under_training(tmp_path: Path) -> None:
    text = TITAN.format(training="batch_size = 2\ndata_parallel_degree = 8\nenable_float8_linear = true")
    found = draft(tmp_path, text, name="run.toml")
    assert found["training.global_batch"] == 16
    assert found["training.precision"] == "fp8"


def test_torchtitan_in_low_precision_throughout_keeps_no_master_weights(tmp_path: Path) -> None:
    text = TITAN.format(training='local_batch_size = 2\ndtype = "bfloat16"')
    found = draft(tmp_path, f"{text}[optimizer]\nearly_step_in_backward = true\n", name="run.toml")
    assert found["training.memory.master"] == "none"
    assert found["training.memory.optimizer_in_backward"] is True


def test_verl_adapters_under_their_newer_name(tmp_path: Path) -> None:
    text = (
        "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=128 "
        "actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct actor_rollout_ref.model.lora.rank=16 "
        "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4 actor_rollout_ref.rollout.n=4"
    )
    found = draft(tmp_path, text)
    assert (found["training.method"], found["training.lora_rank"]) == ("lora", 16)


@pytest.mark.parametrize(
    ("name", "text", "groups"),
    [
        ("run.sh", f"{VERL.strip()} actor_rollout_ref.actor.fsdp_config.fsdp_size=4", True),
        ("run.sh", f"{VERL.strip()} actor_rollout_ref.actor.fsdp_config.fsdp_size=8", False),
        ("run.sh", f"{VERL.strip()} actor_rollout_ref.actor.fsdp_config.fsdp_size=-1", False),
        ("run.toml", TORCHTITAN.replace("replicate_degree = 1", "replicate_degree = 2"), True),
        ("run.toml", TORCHTITAN, False),
        ("run.yml", f"{AXOLOTL}dp_shard_size: 4\ndp_replicate_size: 2\n", True),
        ("run.yml", f"{AXOLOTL}dp_shard_size: 4\n", False),
    ],
)
def test_weights_that_only_groups_share_are_named(name: str, text: str, groups: bool, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    warnings = gather([path], Wishes(accelerators=8)).warnings
    assert any("sharding within groups is not modelled" in warning for warning in warnings) == groups


NEMO_RL = """
grpo: {num_prompts_per_step: 32, num_generations_per_prompt: 16, max_num_epochs: 1, max_num_steps: STEPS}
loss_fn: {reference_policy_kl_penalty: 0.0}
policy:
  model_name: Qwen/Qwen3-8B
  train_global_batch_size: 512
  max_total_sequence_length: 4096
  precision: bfloat16
  automodel_cfg: {enabled: true, tensor_parallel_size: 2, cpu_offload: true}
  megatron_cfg: {enabled: false, tensor_model_parallel_size: 4}
  generation: {backend: vllm, max_new_tokens: 2048, vllm_cfg: {tensor_parallel_size: 2}}
cluster: {gpus_per_node: 8, num_nodes: 2}
"""


def test_nemo_rl_on_automodel(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(NEMO_RL.replace("STEPS", "500"), encoding="utf-8")
    found = gather([path], Wishes())
    facts = {key: fact.value for key, fact in found.facts.items()}
    assert (facts["training.steps"], facts["training.global_batch"]) == (500, 512)
    assert (facts["training.layout.tensor_parallel"], facts["training.layout.zero_stage"]) == (2, 3)
    assert facts["training.memory.offload_weights"] is True
    assert (facts["training.reference"], facts["training.stack"]) == ("none", "eager")
    example = next(blank.example for blank in found.blanks if blank.key == "training.rollouts")
    assert "tensor_parallel: 2, engine: vllm" in example


@pytest.mark.parametrize(("backend", "eager"), [("vllm", True), ("megatron", False)])
def test_eager_mode_of_nemo_rl_is_that_of_the_engine_that_generates(
    tmp_path: Path, backend: str, eager: bool
) -> None:
    path = tmp_path / "run.yaml"
    text = NEMO_RL.replace("STEPS", "500").replace("backend: vllm", f"backend: {backend}")
    path.write_text(text.replace("vllm_cfg: {", "vllm_cfg: {enforce_eager: true, "), encoding="utf-8")
    found = gather([path], Wishes())
    example = next(blank.example for blank in found.blanks if blank.key == "training.rollouts")
    assert ("cuda_graphs: false" in example) is eager


def test_a_limit_of_a_million_steps_is_none_where_epochs_end_the_run(tmp_path: Path) -> None:
    found = draft(tmp_path, NEMO_RL.replace("STEPS", "1000000"))
    assert found["training.epochs"] == 1
    assert "training.steps" not in found


def test_a_file_of_nemo_rl_that_builds_on_another_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="states no model: add the trainer's own file to --from"):
        draft(tmp_path, "defaults: ../base.yaml\npolicy: {megatron_cfg: {tensor_model_parallel_size: 4}}\n")


def test_whole_layers_were_recomputed_before_nemo_had_a_granularity(tmp_path: Path) -> None:
    text = """
trainer: {devices: 8, num_nodes: 1, precision: bf16, max_steps: 1000}
model: {num_layers: 12, hidden_size: 768, num_attention_heads: 12, encoder_seq_length: 1024, micro_batch_size: 4,
        global_batch_size: 32, override_vocab_size: 50304, activations_checkpoint_method: uniform}
"""
    assert draft(tmp_path, text)["training.layout.recompute"] == "full"


def test_nemo_automodel_names_its_model_in_the_configuration(tmp_path: Path) -> None:
    text = """
step_scheduler: {global_batch_size: 512, local_batch_size: 4, max_steps: 30}
model: {config: {pretrained_model_name_or_path: Qwen/Qwen3-30B-A3B}}
distributed: {strategy: fsdp2, ep_size: 8}
parallelizer: {activation_checkpointing: true}
dataset: {seq_len: 4096}
"""
    found = draft(tmp_path, text)
    assert (found["model.preset"], found["training.sequence_length"]) == ("qwen3-30b-a3b", 4096)
    assert (found["training.layout.expert_parallel"], found["training.layout.recompute"]) == (8, "full")


def test_sequences_split_by_ulysses_in_a_launch(tmp_path: Path) -> None:
    text = (
        "distributed_type: DEEPSPEED\nnum_processes: 4\nparallelism_config: {parallelism_config_sp_size: 2}\n"
    )
    assert draft(tmp_path, text, model="llama-3.1-8b")["training.layout.context_parallel"] == 2


@pytest.mark.parametrize("model", ["openai/whisper-large-v3-turbo", "openai/whisper-large-v3-bnb-4bit"])
def test_adapters_on_a_model_that_is_known_as_a_whole_state_their_rank_alone(
    model: str, tmp_path: Path
) -> None:
    path = tmp_path / "adapter_config.json"
    path.write_text(json.dumps({**PEFT, "base_model_name_or_path": model}), encoding="utf-8")
    initial = workload_from([path], Wishes())
    training = parse_workload(filled(initial.text), tmp_path / "workload.yaml").workload.training
    assert training is not None
    assert (training.method, training.lora_rank, training.adapter) == ("lora", 64, None)
    assert "only the rank counts" in " ".join(initial.text.replace("#", "").split())


def test_a_degree_of_experts_is_left_out_where_the_model_has_none(tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    path.write_text(f"{MEGATRON} --expert-model-parallel-size 8", encoding="utf-8")
    found = gather([path], Wishes())
    assert "training.layout.expert_parallel" not in found.facts
    assert any("8, but the model has no experts: left out" in text for text in found.warnings)
