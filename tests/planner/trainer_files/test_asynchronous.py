"""Trainers whose generation has accelerators of its own, DeepSpeed-Chat, fairseq, and what Slurm gives a script."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import InputError
from planner.inputs.load import parse_workload
from planner.trainer_files.answer import workload_from
from planner.trainer_files.gather import Wishes
from planner.trainer_files.slurm import slurm_variables
from tests.planner.trainer_files.fixtures_of_trainers import (
    AREAL,
    DEEPSPEED_CHAT,
    FAIRSEQ,
    PRIME_RL,
    VERL_ASYNC,
)
from tests.planner.trainer_files.test_formats import draft, filled


def written(folder: Path, text: str, name: str = "run.txt") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return workload_from([path], Wishes()).text


def test_areal(tmp_path: Path) -> None:
    text = written(tmp_path, AREAL)
    for line in (
        "preset: qwen3-30b-a3b", "epochs: 2", "global_batch: 512", "sequence_length: 5120", "pipeline_parallel: 2",
        "expert_parallel: 2", "recompute: full", "objective: grpo", "reference: none", "optimizer: adamw",
    ):  # fmt: skip
        assert f"\n  {line}" in text or f"\n    {line}" in text, line
    assert (
        "response_tokens: {mean: 2048, max: 4096}, samples_per_prompt: 8, update_batch: 128, engine: sglang,"
        " tensor_parallel: 2, placement: disaggregated, generation_share: 0.75, steps_off_policy: 2,"
        " in_flight_updates: true}"
    ) in text
    parse_workload(filled(text), Path("w.yaml"))


def test_the_backends_of_areal_may_stand_apart(tmp_path: Path) -> None:
    apart = AREAL.replace("allocation_mode: sglang:d6t2+megatron:(attn:d2p2|ffn:d1p2e2)\n", "")
    apart = apart.replace("rollout: {", "rollout: {backend: 'vllm:d4', ").replace(
        "actor:\n", "actor:\n  backend: fsdp:d12\n"
    )
    text = written(tmp_path, apart)
    assert "engine: vllm, tensor_parallel" not in text
    assert "generation_share: 0.25" in text
    assert "zero_stage: 3" in text


def test_areal_on_policy_takes_turns_of_two_pools(tmp_path: Path) -> None:
    text = written(tmp_path, AREAL.replace("max_head_offpolicyness: 2", "max_head_offpolicyness: 0"))
    assert "steps_off_policy: 0}" in text
    parse_workload(filled(text), Path("w.yaml"))


@pytest.mark.parametrize(
    "mode", ["sglang:d0+d0", "sglang:d" + "9" * 5000 + "+d4", "sglang:d9999999+megatron:(|)"]
)
def test_degrees_of_areal_that_cannot_be_are_left_out(tmp_path: Path, mode: str) -> None:
    text = written(tmp_path, AREAL.replace("sglang:d6t2+megatron:(attn:d2p2|ffn:d1p2e2)", mode))
    assert "engine: sglang, placement: disaggregated, steps_off_policy: 2" in text


@pytest.mark.parametrize(
    ("mode", "placement", "zero"),
    [
        ("sglang:d8|megatron:d4t2", "", 1),
        ("sglang:d8|megatron:(attn:d4t2|ffn:d2e4)", "", 1),
        ("vllm[rollout]:d4+fsdp[actor]:d4t2", "placement: disaggregated", 3),
    ],
)
def test_pools_of_areal_may_be_shared_or_named(tmp_path: Path, mode: str, placement: str, zero: int) -> None:
    text = written(tmp_path, AREAL.replace("sglang:d6t2+megatron:(attn:d2p2|ffn:d1p2e2)", mode))
    assert "\n    tensor_parallel: 2" in text
    assert f"zero_stage: {zero}" in text
    assert f"engine: {mode.partition(':')[0].partition('[')[0]}" in text
    assert ("placement" in text) is bool(placement)


def test_what_areal_takes_where_a_file_is_silent(tmp_path: Path) -> None:
    older = AREAL.replace("sglang:d6t2+megatron:(attn:d2p2|ffn:d1p2e2)", "sglang.d6t2+d4").replace(
        "  ppo_n_minibatches: 4\n", ""
    )
    assert "ppo_n_minibatches" not in older
    text = written(tmp_path, older)
    assert "update_batch: 128, engine: sglang, tensor_parallel: 2" in text
    assert "generation_share: 0.75" in text


def test_fine_tuning_with_areal(tmp_path: Path) -> None:
    tuned = AREAL.replace("actor:", "model:").partition("gconfig:")
    text = written(tmp_path, tuned[0] + tuned[2].partition("\n")[2])
    assert "objective: sft" in text
    assert "global_batch: 64" in text


def test_prime_rl(tmp_path: Path) -> None:
    text = written(tmp_path, PRIME_RL)
    for line in (
        "preset: qwen3-8b", "steps: 200", "global_batch: 512", "sequence_length: 8192", "context_parallel: 2",
        "recompute: full", "stack: compiled", "method: lora", "lora_rank: 32", "objective: grpo",
    ):  # fmt: skip
        assert f"\n  {line}" in text or f"\n    {line}" in text, line
    assert (
        "old_logprobs: reused, samples_per_prompt: 16, engine: vllm, tensor_parallel: 2, placement: disaggregated,"
        " generation_share: 0.75, steps_off_policy: 4, in_flight_updates: true}"
    ) in text
    parse_workload(filled(text), Path("w.yaml"))


def test_replicas_of_prime_rl_have_nodes_each(tmp_path: Path) -> None:
    text = PRIME_RL.replace("num_infer_nodes = 3", "num_infer_nodes = 1\nnum_infer_replicas = 7")
    assert "generation_share: 0.875" in written(tmp_path, text)
    unknown = written(tmp_path, PRIME_RL.replace("num_infer_nodes = 3", ""))
    assert "generation_share" not in unknown


@pytest.mark.parametrize(
    ("said", "ahead"), [("max_off_policy_steps = 0", "0}"), ("", "8, in_flight_updates: true}")]
)
def test_how_far_prime_rl_runs_ahead(tmp_path: Path, said: str, ahead: str) -> None:
    text = PRIME_RL.replace("max_off_policy_steps = 4", said)
    assert text != PRIME_RL
    assert f"steps_off_policy: {ahead}" in written(tmp_path, text)


def test_fine_tuning_with_prime_rl_leaves_what_evaluates_out(tmp_path: Path) -> None:
    text = written(
        tmp_path,
        'max_steps = 100\n[deployment]\nnum_train_gpus = 4\nnum_infer_gpus = 2\n[model]\nname = "Qwen/Qwen3-4B"\n'
        '[data]\nseq_len = 4096\nbatch_size = 32\n[optim]\ntype = "adamw"\n',
    )
    assert "objective: sft" in text
    assert "global_batch: 32" in text
    assert "packing: true" in text


def test_deepspeed_chat(tmp_path: Path) -> None:
    text = written(tmp_path, DEEPSPEED_CHAT)
    for line in (
        "preset: llama-2-7b", "epochs: 2", "precision: bf16", "global_batch: 64", "sequence_length: 1024",
        "zero_stage: 2", "recompute: full", "method: lora", "lora_rank: 64", "objective: sft", "packing: false",
    ):  # fmt: skip
        assert f"\n  {line}" in text or f"\n    {line}" in text, line


def test_the_steps_of_deepspeed_chat(tmp_path: Path) -> None:
    reward = draft(tmp_path, DEEPSPEED_CHAT.replace("--only_optimize_lora", "--num_padding_at_beginning 1"))
    assert reward["training.objective"] == "reward"
    assert "training.method" not in reward
    third = DEEPSPEED_CHAT.replace("--model_name_or_path", "--actor_model_name_or_path")
    third = third.replace(
        "--max_seq_len 1024", "--max_prompt_seq_len 256 --max_answer_seq_len 512 --actor_zero_stage 3"
    )
    text = written(
        tmp_path, third.replace("--per_device_train_batch_size", "--per_device_generation_batch_size")
    )
    assert "objective: ppo" in text
    assert "global_batch: 32" in text
    assert "sequence_length: 768" in text
    assert "zero_stage: 3" in text


def test_verl_ahead_of_training(tmp_path: Path) -> None:
    text = written(tmp_path, VERL_ASYNC)
    assert "global_batch: 4096" in text
    assert "steps: 200" in text
    assert (
        "samples_per_prompt: 16, update_batch: 512, engine: vllm, placement: disaggregated, generation_share: 0.75,"
        " steps_off_policy: 1, in_flight_updates: true}"
    ) in text
    parse_workload(filled(text), Path("w.yaml"))


def test_verl_that_streams_on_policy(tmp_path: Path) -> None:
    text = written(tmp_path, VERL_ASYNC.replace("staleness_threshold=0.5", "staleness_threshold=0"))
    assert "placement: disaggregated" in text
    assert "steps_off_policy" not in text


def test_what_verl_takes_where_a_script_is_silent(tmp_path: Path) -> None:
    words = [word for word in VERL_ASYNC.split(" ") if not word.startswith("async_training.")]
    text = written(tmp_path, " ".join([*words, "async_training.require_batches=1"]))
    assert "steps_off_policy: 1, in_flight_updates: true}" in text
    assert "global_batch: 2048" in text  # 32 prompts x 16 responses x 4 mini-batches between updates


@pytest.mark.parametrize(("said", "expected"), [(", in_flight_weight_updates: true", "true"), ("", "false")])
def test_nemo_rl_says_whether_updates_wait(tmp_path: Path, said: str, expected: str) -> None:
    text = written(
        tmp_path,
        "grpo:\n  num_prompts_per_step: 32\n  num_generations_per_prompt: 16\n"
        f"  async_grpo: {{enabled: true, max_trajectory_age_steps: 1{said}}}\n"
        "policy:\n  model_name: Qwen/Qwen3-8B\n  train_global_batch_size: 512\n  max_total_sequence_length: 4096\n"
        "  generation: {backend: vllm, colocated: {enabled: false}}\n",
    )
    assert f"steps_off_policy: 1, in_flight_updates: {expected}" in text


def test_generation_that_runs_ahead_shares_no_accelerators_in_openrlhf(tmp_path: Path) -> None:
    text = written(
        tmp_path,
        "python3 -m openrlhf.cli.train_ppo_ray --pretrain Qwen/Qwen3-4B --micro_train_batch_size 2"
        " --rollout_batch_size 128 --n_samples_per_prompt 8 --train_batch_size 1024 --colocate_all_models"
        " --actor_num_gpus_per_node 4 --vllm_num_engines 2 --async_train --partial_rollout --zero_stage 3",
    )
    assert "placement: disaggregated, steps_off_policy: 1, in_flight_updates: true" in text
    parse_workload(filled(text), Path("w.yaml"))


@pytest.mark.parametrize(
    ("lines", "nodes", "chips"),
    [
        ("--nodes=2\n#SBATCH --gpus-per-node=8", "2", "8"),
        ("-N 4\n#SBATCH --gres=gpu:a100:4", "4", "4"),
        ("--nodes 1-2\n#SBATCH --gres=shard:2,gpu:8", "1", "8"),
        ("--nodes=2\n#SBATCH --gpus=16", "2", "8"),
        ("--nodes=2 --ntasks-per-node=4 --gpus-per-task=1", "2", "4"),
        ("--gpus-per-node=h100:8(S:0-1)  # all of them", None, "8"),
        ("--nodes=2", "2", None),
        ("--nodes=2 -J bert-Nightly -o logs/run-n8.out -G 8", "2", "4"),
        ("--nodes=2 --ntasks=16 --gpus-per-task=1", "2", "8"),
        ("--nodes=2 --gres=gpu:" + "9" * 5000, "2", None),
    ],
)
def test_directives_of_slurm(lines: str, nodes: str | None, chips: str | None) -> None:
    found = slurm_variables(f"#!/bin/bash\n#SBATCH --time=01:00:00\n#SBATCH {lines}\n# SBATCH --nodes=9\n")
    assert found.get("SLURM_NNODES") == nodes
    assert found.get("SLURM_GPUS_ON_NODE") == chips


@pytest.mark.parametrize(
    "launcher",
    [
        "srun torchrun --nnodes=$SLURM_NNODES --nproc_per_node=$SLURM_GPUS_ON_NODE",
        "srun python -u",
        "srun accelerate launch --num_processes $((SLURM_NNODES * SLURM_GPUS_PER_NODE))",
        "torchrun --nnodes 2 --nproc_per_node 4",
    ],
)
def test_slurm_gives_the_accelerators_of_the_batch(tmp_path: Path, launcher: str) -> None:
    found = draft(
        tmp_path,
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:4\n"
        f"{launcher} run_clm.py --model_name_or_path Qwen/Qwen3-4B --per_device_train_batch_size 2"
        " --gradient_accumulation_steps 4 --num_train_epochs 1 --bf16 --block_size 2048",
    )
    assert found["training.global_batch"] == 64


@pytest.mark.parametrize(
    ("launcher", "batch"),
    [("deepspeed --num_gpus 2", 16), ("CUDA_VISIBLE_DEVICES=0,1 python", 16), ("python", 64),
     ("torchrun --nnodes 2 --nproc_per_node $GPUS", 64)],
)  # fmt: skip
def test_numbers_of_a_launcher_count_before_those_of_slurm(tmp_path: Path, launcher: str, batch: int) -> None:
    found = draft(
        tmp_path,
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:4\n"
        f"{launcher} run_clm.py --model_name_or_path Qwen/Qwen3-4B --per_device_train_batch_size 2"
        " --gradient_accumulation_steps 4 --num_train_epochs 1 --bf16 --block_size 2048",
    )
    assert found["training.global_batch"] == batch


def test_sound_of_fairseq_is_counted_in_samples_of_the_preset(tmp_path: Path) -> None:
    found = draft(tmp_path, FAIRSEQ)
    assert found["model.preset"] == "wav2vec2-base"
    assert found["training.global_batch"] == 64 * 11  # 2.8 M values in samples of 250,000
    assert (found["training.steps"], found["training.precision"]) == (400_000, "fp16")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            "{_name: wav2vec2, encoder_embed_dim: 1024, encoder_layers: 24, layer_type: conformer}",
            "conformer-24x1024",
        ),
        ("{_name: hubert, encoder_embed_dim: 1280, encoder_layers: 48}", "hubert-transformer-48x1280"),
        ('{_name: wav2vec_ctc, w2v_path: "???"}', "states no model"),
    ],
)
def test_models_of_fairseq_without_known_sizes_are_named(tmp_path: Path, model: str, said: str) -> None:
    text = FAIRSEQ.replace("{_name: wav2vec2, encoder_layerdrop: 0.05}", model)
    with pytest.raises(InputError, match=said):
        draft(tmp_path, text)
    assert draft(tmp_path, text, model="wav2vec2-large")["training.global_batch"] == 64 * 11


def test_text_of_fairseq(tmp_path: Path) -> None:
    text = FAIRSEQ.replace(
        'audio_pretraining, data: "???", max_sample_size: 250000', "masked_lm, tokens_per_sample: 512"
    )
    text = text.replace("_name: wav2vec2, encoder_layerdrop: 0.05", "_name: roberta")
    found = draft(tmp_path, text.replace("max_tokens: 1400000", "batch_size: 16"))
    assert (found["model.preset"], found["training.objective"]) == ("roberta-base", "pretrain")
    assert found["training.global_batch"] == 16 * 2 * 64
    assert found["training.sequence_length"] == 512
