"""Each kind of file: what is read, what is assumed, what is refused. Fixtures are written from documented keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from benchmarks.trainer_files import filled
from planner.commands.init import FORMAT_NAMES
from planner.errors import InputError
from planner.inputs.load import parse_workload
from planner.trainer_files.answer import workload_from
from planner.trainer_files.files import parse_document
from planner.trainer_files.gather import Wishes, gather
from planner.trainer_files.registry import FORMATS, detect
from tests.conftest import ROOT
from tests.draws import draws
from tests.planner.trainer_files.fixtures_of_trainers import (
    AREAL,
    DEEPSPEED_CHAT,
    FAIRSEQ,
    LEVANTER,
    MAXTEXT,
    NANOTRON,
    NEMO_RECIPE,
    OPENCLIP,
    OUMI,
    PRIME_RL,
    SIMPLETUNER,
    TRAINER_SCRIPT,
    ULTRALYTICS,
    UNSLOTH,
    XTUNER,
)
from tests.planner.trainer_files.test_by_table import EASY_R1, ROLL, SKY_RL, SLIME
from tests.planner.trainer_files.test_tuning_scripts import DIFFSYNTH, GROUPS, ONE, PIPE

AXOLOTL = """
base_model: NousResearch/Meta-Llama-3.1-8B
adapter: qlora
load_in_4bit: true
lora_r: 32
lora_target_linear: true
datasets: [{path: some/set, type: alpaca}]
sequence_len: 4096
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
num_epochs: 3
optimizer: adamw_bnb_8bit
bf16: auto
gradient_checkpointing: true
deepspeed: configs/zero3_bf16.json
"""
DEEPSPEED = {
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
}
LLAMA_FACTORY = """
model_name_or_path: Qwen/Qwen3-8B
stage: dpo
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all
dataset: first,second
template: qwen3
cutoff_len: 2048
max_samples: 1000
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
num_train_epochs: 3.0
bf16: true
"""
ACCELERATE = """
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
downcast_bf16: 'no'
fsdp_config:
  fsdp_sharding_strategy: SHARD_GRAD_OP
  fsdp_offload_params: false
mixed_precision: bf16
num_machines: 2
num_processes: 16
"""
PEFT = {"peft_type": "LORA", "r": 64, "base_model_name_or_path": "meta-llama/Llama-2-7b-hf",
        "target_modules": ["q_proj", "v_proj"]}  # fmt: skip
TRL = """
model_name_or_path: mistralai/Mistral-7B-v0.1
dataset_name: some/set
max_length: 1024
per_device_train_batch_size: 4
gradient_accumulation_steps: 2
max_steps: 500
bf16: true
"""
CONFIG = {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
          "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
          "tie_word_embeddings": True, "max_position_embeddings": 131072}  # fmt: skip
MEGATRON = r"""
#!/bin/bash
# an 8B model on 16 nodes
GPUS_PER_NODE=8
NNODES=${NNODES:-16}
TP=4
PP=2
GPT_ARGS=(
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336
    --num-attention-heads 32 --group-query-attention --num-query-groups 8
    --swiglu --untie-embeddings-and-output-weights --position-embedding-type rope
    --vocab-size 128256
)
TRAIN_ARGS="--micro-batch-size 1 --global-batch-size $((8 * 16)) --seq-length 8192 \
    --train-iters 1000 --bf16 --lr 3e-4"
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes "${NNODES}" pretrain_gpt.py \
    ${GPT_ARGS[@]} ${TRAIN_ARGS} \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP --sequence-parallel \
    --use-distributed-optimizer --recompute-granularity selective --data-path $DATA
echo "done"
"""
NEMO = """
trainer: {devices: 8, num_nodes: 4, max_steps: 300000, precision: bf16}
model:
  micro_batch_size: 1
  global_batch_size: 256
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 1
  encoder_seq_length: 2048
  max_position_embeddings: ${.encoder_seq_length}
  num_layers: 24
  hidden_size: 2048
  ffn_hidden_size: 8192
  num_attention_heads: 16
  activation: gelu
  tokenizer: {type: GPT2BPETokenizer}
  activations_checkpoint_granularity: full
  optim: {name: distributed_fused_adam}
"""
VERL = r"""
python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_files=$HOME/data/train.parquet \
    data.train_batch_size=1024 \
    data.max_prompt_length=512 \
    data.max_response_length=1024 \
    actor_rollout_ref.model.path=${MODEL:-Qwen/Qwen2.5-7B-Instruct} \
    actor_rollout_ref.actor.ppo_mini_batch_size=256 \
    actor_rollout_ref.actor.use_kl_loss=True \
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.n=5 \
    trainer.n_gpus_per_node=8 trainer.nnodes=1 trainer.total_epochs=15
"""
TORCHTITAN = """
[job]
description = "Llama 3 8B"

[model]
name = "llama3"
flavor = "8B"
converters = ["float8"]

[optimizer]
name = "AdamW"

[training]
local_batch_size = 2
seq_len = 8192
steps = 1000

[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 2

[activation_checkpoint]
mode = "selective"

[compile]
enable = true
"""
GPT_NEOX = """
{
  "pipe-parallel-size": 2,
  "model-parallel-size": 2,
  "num-layers": 20,
  "hidden-size": 2048,
  "num-attention-heads": 16,
  "seq-length": 2048,
  "pos-emb": "rotary",
  "no-weight-tying": true,
  "optimizer": {"type": "Adam", "params": {"lr": 2.0e-4,}},
  "zero_optimization": {"stage": 1,},
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 8,
  "checkpoint-activations": true,
  "fp16": {"enabled": true},
  "train-iters": 5000,
}
"""
LLAMA_FACTORY_V1 = """
model: Qwen/Qwen3-8B
model_class: llm
template: qwen3_nothink
peft_config: {name: lora, r: 32, target_modules: all}
quant_config: {name: bnb, quantization_bit: 4}
dist_config: {name: fsdp2, cp_size: 2}
train_dataset: data/own.yaml
micro_batch_size: 2
cutoff_len: 4096
max_steps: 200
"""
OPENRLHF = """
ray job submit --address="http://127.0.0.1:8265" --runtime-env-json='{"working_dir": "/w"}' \\
   -- python3 -m openrlhf.cli.train_ppo_ray \\
   --actor_num_nodes 1 --actor_num_gpus_per_node 8 --vllm_num_engines 4 --vllm_tensor_parallel_size 2 \\
   --colocate_all_models --advantage_estimator group_norm --init_kl_coef 0 \\
   --pretrain Qwen/Qwen3-8B --micro_train_batch_size 2 --train_batch_size 128 \\
   --rollout_batch_size 64 --n_samples_per_prompt 8 --num_episodes 3 --max_samples 20000 \\
   --prompt_max_len 1024 --generate_max_len 3072 --zero_stage 3 --bf16 --adam_offload --gradient_checkpointing
"""
TORCHTUNE = """
model:
  _component_: torchtune.models.llama3_1.lora_llama3_1_8b
  lora_attn_modules: [q_proj, v_proj, output_proj]
  apply_lora_to_mlp: true
  lora_rank: 8
  lora_alpha: 16
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, path: some/tokenizer.model, max_seq_len: 2048}
dataset: {_component_: torchtune.datasets.alpaca_dataset, packed: true}
batch_size: 2
gradient_accumulation_steps: 8
epochs: 3
max_steps_per_epoch: null
optimizer: {_component_: torch.optim.AdamW, fused: true, lr: 0.0003}
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
compile: false
dtype: bf16
enable_activation_checkpointing: true
enable_activation_offloading: false
"""
LITGPT = """
checkpoint_dir: checkpoints/meta-llama/Llama-3.1-8B
out_dir: out/run
precision: bf16-true
quantize: bnb.nf4
devices: 2
num_nodes: 2
lora_r: 32
lora_query: true
lora_value: true
lora_mlp: true
data: {class_path: litgpt.data.Alpaca}
train: {global_batch_size: 16, micro_batch_size: 2, epochs: 2, max_seq_length: 512}
optimizer: {class_path: torch.optim.AdamW, init_args: {lr: 0.0002}}
"""
MS_SWIFT = r"""
nproc_per_node=4
CUDA_VISIBLE_DEVICES=0,1,2,3 \
NPROC_PER_NODE=$nproc_per_node \
swift sft \
    --model Qwen/Qwen2.5-7B-Instruct \
    --train_type lora \
    --dataset 'some/set#2000' \
    --torch_dtype bfloat16 \
    --num_train_epochs 2 \
    --per_device_train_batch_size 1 \
    --gradient_accumulation_steps $(expr 32 / $nproc_per_node) \
    --lora_rank 16 \
    --target_modules all-linear \
    --max_length 4096 \
    --packing true \
    --deepspeed zero2_offload
"""
OPEN_INSTRUCT = r"""
python open_instruct/grpo_fast.py \
    --dataset_mixer_list some/prompts 1.0 \
    --model_name_or_path Qwen/Qwen3-8B \
    --num_unique_prompts_rollout 48 \
    --num_samples_per_prompt_rollout 16 \
    --num_mini_batches 4 \
    --max_prompt_token_length 1024 \
    --response_length 2048 \
    --total_episodes 200000 \
    --per_device_train_batch_size 1 \
    --num_epochs 2 \
    --num_learners_per_node 4 8 \
    --vllm_num_engines 4 \
    --vllm_tensor_parallel_size 2 \
    --deepspeed_stage 3 \
    --gradient_checkpointing
"""
COMPOSER = """
max_seq_len: 2048
model: {name: mpt_causal_lm, d_model: 4096, n_heads: 32, n_layers: 32, expansion_ratio: 4, vocab_size: 50368}
optimizer: {name: decoupled_adamw, lr: 1.0e-4}
max_duration: 1000ba
global_train_batch_size: 1024
device_train_microbatch_size: 8
precision: amp_bf16
fsdp_config: {sharding_strategy: FULL_SHARD, activation_checkpointing: true, activation_cpu_offload: false}
"""
FIXTURES: dict[str, str] = {
    "llama_factory_v1": LLAMA_FACTORY_V1, "openrlhf": OPENRLHF, "composer": COMPOSER,
    "torchtune": TORCHTUNE, "litgpt": LITGPT, "ms_swift": MS_SWIFT,
    "open_instruct": OPEN_INSTRUCT,
    "gpt_neox": GPT_NEOX, "megatron": MEGATRON, "nemo": NEMO, "verl": VERL, "torchtitan": TORCHTITAN,
    "axolotl": AXOLOTL, "deepspeed": json.dumps(DEEPSPEED), "llama_factory": LLAMA_FACTORY,
    "accelerate": ACCELERATE, "peft": json.dumps(PEFT), "trl": TRL, "huggingface": json.dumps(CONFIG),
    "oumi": OUMI, "maxtext": MAXTEXT, "levanter": LEVANTER, "nanotron": NANOTRON, "diffusion": SIMPLETUNER,
    "areal": AREAL, "prime_rl": PRIME_RL, "by_table": EASY_R1, "deepspeed_chat": DEEPSPEED_CHAT,
    "fairseq": FAIRSEQ, "trainer_script": TRAINER_SCRIPT, "xtuner": XTUNER, "vision": OPENCLIP,
    "ultralytics": ULTRALYTICS, "nemo_recipe": NEMO_RECIPE, "unsloth": UNSLOTH,
    "nanogpt": "import time\nout_dir = 'out'\nbatch_size = 12\nmax_iters = 100\n",
}  # fmt: skip


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def draft(folder: Path, *texts: str, **wishes: Any) -> dict[str, Any]:
    paths = [write(folder, f"file{at}.txt", text) for at, text in enumerate(texts)]
    found = gather(paths, Wishes(**wishes))
    return {key: fact.value for key, fact in found.facts.items()}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_fixture_and_is_told_by_its_content(name: str) -> None:
    assert detect(parse_document(FIXTURES[name], Path("some-file"))) == name


def test_the_command_offers_every_format() -> None:
    assert set(FORMAT_NAMES) == set(FORMATS)


def test_axolotl(tmp_path: Path) -> None:
    found = draft(tmp_path, AXOLOTL, accelerators=8)
    assert found["model.preset"] == "llama-3.1-8b"
    assert found["training.epochs"] == 3
    assert found["training.global_batch"] == 2 * 4 * 8
    assert found["training.sequence_length"] == 4096
    assert found["training.optimizer"] == "adamw_8bit"
    assert found["training.lora_rank"] == 32
    assert found["training.layout.recompute"] == "full"
    assert found["training.layout.zero_stage"] == 3  # by the name of the absent file


def test_a_named_file_is_read_beside_and_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    write(folder, "zero3_bf16.json", json.dumps(DEEPSPEED))
    path = write(folder, "a.yaml", AXOLOTL)
    found = gather([path], Wishes())
    assert found.facts["training.layout.zero_stage"].value == 2
    assert any(
        "offload_optimizer" in text for text in found.warnings
    ) or "training.memory.offload_optimizer" in (found.facts)
    write(tmp_path, "ds.json", json.dumps({"zero_optimization": {"stage": 1}}))
    outside = write(folder, "b.yaml", AXOLOTL.replace("configs/zero3_bf16.json", "../ds.json"))
    found = gather([outside], Wishes())
    assert "training.layout.zero_stage" not in found.facts


def test_llama_factory(tmp_path: Path) -> None:
    found = draft(tmp_path, LLAMA_FACTORY, ACCELERATE)
    assert found["training.global_batch"] == 1 * 8 * 16
    assert found["data.samples"] == 2000
    assert found["training.layout.zero_stage"] == 2
    assert found["training.layout.recompute"] == "full"  # its default
    assert (found["training.method"], found["training.lora_rank"]) == ("lora", 8)


def test_predicting_files_train_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="trains nothing"):
        draft(tmp_path, LLAMA_FACTORY.replace("do_train: true", "do_predict: true"))


def test_deepspeed_auto_is_left_to_the_trainer(tmp_path: Path) -> None:
    found = draft(tmp_path, TRL, json.dumps(DEEPSPEED), accelerators=4)
    assert found["training.global_batch"] == 4 * 2 * 4
    assert found["training.steps"] == 500
    assert found["training.layout.zero_stage"] == 2


@pytest.mark.parametrize(
    ("launcher", "accelerators"),
    [
        ("torchrun --nproc_per_node 8 --nnodes 2", 16),
        ("torchrun --nproc_per_node=8", 8),
        ("deepspeed --num_gpus=4 --num_nodes=2", 8),
        ("accelerate launch --num_processes 6", 6),
        ("torchrun --nproc_per_node gpu", 1),
        ("python", 1),
    ],
)
def test_arguments_of_the_trainer_behind_a_launcher(launcher: str, accelerators: int, tmp_path: Path) -> None:
    text = (
        f"{launcher} run_clm.py --model_name_or_path gpt2 --dataset_name x --per_device_train_batch_size 4"
        " --gradient_accumulation_steps 2 --max_steps 100 --block_size 1024 --bf16 --output_dir out"
    )
    found = draft(tmp_path, text)
    assert found["model.preset"] == "gpt-2-124m"
    assert found["training.global_batch"] == 8 * accelerators
    assert found["training.steps"] == 100


def test_reinforcement_states_what_it_needs_beyond_the_file(tmp_path: Path) -> None:
    text = TRL.replace(
        "max_length: 1024", "num_generations: 8\nmax_prompt_length: 512\nmax_completion_length: 1536"
    )
    found = gather([write(tmp_path, "run.yaml", text)], Wishes())
    assert found.facts["training.objective"].value == "grpo"
    assert found.facts["training.sequence_length"].value == 2048
    (blank,) = [blank for blank in found.blanks if blank.key == "training.rollouts"]
    assert "samples_per_prompt: 8" in blank.example
    assert "max: 1536" in blank.example


def test_adapters_quantisation_and_host_memory_are_keys_of_the_workload(tmp_path: Path) -> None:
    text = AXOLOTL.replace(
        "deepspeed: configs/zero3_bf16.json", "gradient_checkpointing: offload\npeft_use_dora: true"
    )
    found = draft(tmp_path, text)
    assert (found["training.method"], found["training.quantization"]) == ("qlora", "nf4_double")
    assert (found["training.adapter.kind"], found["training.adapter.targets"]) == ("dora", ["all_linear"])
    assert found["training.memory.offload_activations"] is True
    unknown = json.dumps({**PEFT, "peft_type": "NEW_KIND"})
    assert draft(tmp_path, unknown)["training.adapter.kind"] == "other"


def test_weights_in_host_memory_need_the_third_stage(tmp_path: Path) -> None:
    engine = {"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}
    path = write(tmp_path, "ds.json", json.dumps(engine))
    found = gather([write(tmp_path, "t.yaml", TRL), path], Wishes())
    assert "training.memory.offload_weights" not in found.facts
    assert any("ZeRO stage 3 alone" in text for text in found.warnings)


def test_contradictions_are_named_and_the_trainer_counts(tmp_path: Path) -> None:
    engine = write(tmp_path, "ds.json", json.dumps({"gradient_accumulation_steps": 16, "fp16": {"enabled": True}}
                                                    | {"zero_optimization": {"stage": 1}}))  # fmt: skip
    found = gather([write(tmp_path, "t.yaml", TRL), engine], Wishes())
    assert found.facts["training.precision"].value == "bf16"
    assert any("ds.json: fp16.enabled says fp16" in text for text in found.warnings)


def test_peft_names_adapter_and_model(tmp_path: Path) -> None:
    found = draft(tmp_path, json.dumps(PEFT))
    assert found["model.preset"] == "llama-2-7b"
    assert (found["training.method"], found["training.lora_rank"]) == ("lora", 64)


def test_megatron_arguments_through_variables_arrays_and_arithmetic(tmp_path: Path) -> None:
    found = gather([write(tmp_path, "train.sh", MEGATRON)], Wishes())
    values = {key: fact.value for key, fact in found.facts.items()}
    assert values["model.params"] == pytest.approx(8.03e9, rel=0.001)
    assert values["training.global_batch"] == 128
    assert values["training.steps"] == 1000
    assert values["training.precision"] == "bf16"
    layout = {key.rpartition(".")[2]: value for key, value in values.items() if "layout" in key}
    assert layout == {"tensor_parallel": 4, "pipeline_parallel": 2, "zero_stage": 1, "recompute": "selective",
                      "sequence_parallel": True}  # fmt: skip
    assert found.warnings == []
    unset = gather([write(tmp_path, "train.sh", MEGATRON.replace("TP=4", ""))], Wishes())
    assert any("--tensor-model-parallel-size is not read" in text for text in unset.warnings)


def test_megatron_mixture_of_experts_with_latent_attention(tmp_path: Path) -> None:
    text = (
        "--num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 --swiglu"
        " --untie-embeddings-and-output-weights --position-embedding-type rope --multi-latent-attention"
        " --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128"
        " --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048"
        " --moe-shared-expert-intermediate-size 2048 --moe-layer-freq '([0]*3+[1]*58)' --vocab-size 129280"
        " --micro-batch-size 1 --global-batch-size 8192 --seq-length 4096 --train-samples 1e6 --bf16"
        " --expert-model-parallel-size 64"
    )
    found = draft(tmp_path, text)
    assert found["model.params"] == pytest.approx(671.03e9, rel=0.001)
    assert found["model.active_params"] == pytest.approx(37.55e9, rel=0.001)
    assert found["training.layout.expert_parallel"] == 64
    assert found["training.samples"] == 1_000_000


SIZES = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --micro-batch-size 1"


@pytest.mark.parametrize(
    "text",
    [
        'ARGS=(\n "--num-layers 2"\n "--hidden-size 64"\n --num-attention-heads 4\n --seq-length 128\n'
        " --micro-batch-size 1\n)\nrun ${ARGS[@]}",
        f'options=" \\\n {SIZES}"\nrun_cmd="python -u pretrain_gpt.py ${{options}}"\nsrun sh -c "${{run_cmd}}"',
        f'GPT_ARGS="{SIZES}"\nexport GPT_ARGS',
        f"A=(\n --exit-interval 4 \\\n # --num-experts 8 \\\n {SIZES}\n)\nrun ${{A[@]}}",
        "MODEL_ARGS:\n  --num-layers: 2\n  --hidden-size: 64\n  --num-attention-heads: 4\n  --seq-length: 128\n"
        "  --micro-batch-size: 1\n  --bf16: true\n",
    ],
)
def test_megatron_arguments_however_the_script_puts_them_together(text: str, tmp_path: Path) -> None:
    found = draft(tmp_path, text)
    assert (found["model.layers"], found["model.hidden"], found["model.heads"]) == (2, 64, 4)
    assert found["training.sequence_length"] == 128
    assert "model.experts" not in found


def test_variables_that_grow_without_bound_are_refused(tmp_path: Path) -> None:
    lines = ["A0=--num-layers"] + [f'A{at}="$A{at - 1} $A{at - 1} $A{at - 1}"' for at in range(1, 30)]
    with pytest.raises(InputError, match="grow without bound"):
        draft(tmp_path, "\n".join([*lines, "train $A29 --hidden-size 8 --num-layers 2"]))


def test_nothing_of_a_script_is_executed(tmp_path: Path) -> None:
    made = tmp_path / "made"
    text = MEGATRON.replace("TP=4", f"TP=$(touch {made}; echo 4)").replace("PP=2", f"PP=`touch {made}`")
    found = gather([write(tmp_path, "train.sh", text)], Wishes())
    assert not made.exists()
    assert "training.layout.tensor_parallel" not in found.facts


def test_nemo(tmp_path: Path) -> None:
    found = draft(tmp_path, NEMO)
    assert found["model.params"] == pytest.approx(1.3157e9, rel=0.01)
    assert found["training.global_batch"] == 256
    assert found["training.sequence_length"] == 2048
    assert found["training.layout.tensor_parallel"] == 2
    assert found["training.layout.recompute"] == "full"


def test_nemo_overrides_on_a_command_line(tmp_path: Path) -> None:
    text = (
        "python megatron_gpt_pretraining.py --config-name=gpt trainer.devices=8 trainer.num_nodes=2 \\\n"
        " trainer.precision=bf16 trainer.max_steps=100 model.num_layers=24 model.hidden_size=2048 \\\n"
        " model.num_attention_heads=16 model.micro_batch_size=4 model.global_batch_size=512"
    )
    found = draft(tmp_path, text)
    assert found["training.global_batch"] == 512
    assert found["model.layers"] == 24


def test_references_of_omegaconf_are_followed_and_resolvers_left_out(tmp_path: Path) -> None:
    text = NEMO.replace("ffn_hidden_size: 8192", "ffn_hidden_size: ${multiply:4, ${.hidden_size}}").replace(
        "encoder_seq_length: 2048", "encoder_seq_length: ${model.max_position_embeddings}"
    ).replace("max_position_embeddings: ${.encoder_seq_length}", "max_position_embeddings: 1024")  # fmt: skip
    found = draft(tmp_path, text)
    assert found["training.sequence_length"] == 1024
    assert found["model.ffn"] == 4 * 2048


@pytest.mark.parametrize(
    ("more", "batch", "rollouts", "steps"),
    [
        ("", 256, (), 240),
        ("steps_per_generation: 8\n", 1024, ("update_batch: 256",), 60),
        ("generation_batch_size: 512\n", 512, ("update_batch: 256",), 120),
        ("num_iterations: 3\n", 256, ("epochs: 3",), 80),
        ("steps_per_generation: 4\nnum_iterations: 2\n", 512, ("update_batch: 256", "epochs: 2"), 60),
        ("steps_per_generation: 1\n", 256, (), 240),  # a generation for each micro-batch: an update of two
    ],
)
@pytest.mark.parametrize("tool", ["trl", "axolotl"])
def test_trl_counts_updates_where_a_workload_counts_generations(
    tool: str, more: str, batch: int, rollouts: tuple[str, ...], steps: int, tmp_path: Path
) -> None:
    """32 responses on each of 4 accelerators, accumulated twice, are an update of 256; 240 updates are max_steps."""
    grpo = f"num_generations: 8\nmax_completion_length: 1024\n{more}"
    if tool == "axolotl":
        section = "".join(f"  {line}\n" for line in grpo.splitlines())
        text = f"base_model: Qwen/Qwen2.5-7B\nrl: grpo\ntrl:\n{section}micro_batch_size: 32\nbf16: true\n"
        text += "gradient_accumulation_steps: 2\nmax_steps: 240\ndatasets: [{path: a, type: b}]\n"
    else:
        text = f"model_name_or_path: Qwen/Qwen2.5-7B\ndataset_name: x\n{grpo}bf16: true\n"
        text += "per_device_train_batch_size: 32\nmax_prompt_length: 512\n"
        text += "gradient_accumulation_steps: 2\nmax_steps: 240\n"
    found = gather([write(tmp_path, "run.yaml", text)], Wishes(accelerators=4))
    assert found.facts["training.global_batch"].value == batch
    assert found.facts["training.steps"].value == steps
    (blank,) = [blank for blank in found.blanks if blank.key == "training.rollouts"]
    assert all(part in blank.example for part in rollouts)
    assert ("update_batch" in blank.example) is any("update_batch" in part for part in rollouts)
    assert ("epochs" in blank.example) is any("epochs" in part for part in rollouts)
    assert ("max: 512" in blank.example) is (tool == "trl")


def test_generations_of_an_objective_without_any_change_nothing(tmp_path: Path) -> None:
    """A section of GRPO that was left in a file of DPO would have divided its steps."""
    text = "base_model: Qwen/Qwen2.5-7B\nrl: dpo\ntrl: {num_iterations: 2, steps_per_generation: 8}\n"
    text += "micro_batch_size: 32\nbf16: true\ngradient_accumulation_steps: 2\nmax_steps: 240\n"
    text += "datasets: [{path: a, type: b}]\n"
    found = gather([write(tmp_path, "run.yaml", text)], Wishes(accelerators=4))
    assert (found.facts["training.global_batch"].value, found.facts["training.steps"].value) == (256, 240)


def test_nemo_rl_divides_a_step_into_updates(tmp_path: Path) -> None:
    text = (
        "grpo: {num_prompts_per_step: 64, num_generations_per_prompt: 32, max_num_steps: 500}\n"
        "policy: {model_name: Qwen/Qwen2.5-1.5B, train_global_batch_size: BATCH, train_micro_batch_size: 4,"
        " max_total_sequence_length: 512, precision: bfloat16, dtensor_cfg: {enabled: true}}\n"
        "cluster: {gpus_per_node: 8, num_nodes: 1}\n"
    )
    for update, said in ((512, "update_batch: 512"), (2048, "")):
        found = gather([write(tmp_path, "run.yaml", text.replace("BATCH", str(update)))], Wishes())
        assert found.facts["training.global_batch"].value == 64 * 32
        assert found.facts["training.steps"].value == 500
        (blank,) = [blank for blank in found.blanks if blank.key == "training.rollouts"]
        assert ("update_batch" in blank.example) is bool(said) and said in blank.example


def test_verl_counts_prompts_where_a_workload_counts_responses(tmp_path: Path) -> None:
    found = gather([write(tmp_path, "run.sh", VERL)], Wishes())
    values = {key: fact.value for key, fact in found.facts.items()}
    assert values["model.preset"] == "qwen2.5-7b"
    assert values["training.objective"] == "grpo"
    assert values["training.global_batch"] == 1024 * 5
    assert values["training.sequence_length"] == 512 + 1024
    assert values["training.layout.zero_stage"] == 3
    assert "training.reference" not in values  # use_kl_loss
    (blank,) = [blank for blank in found.blanks if blank.key == "training.rollouts"]
    for part in (
        "max: 512",
        "max: 1024",
        "samples_per_prompt: 5",
        "update_batch: 1280",
        "engine: vllm",
        "tensor_parallel: 2",
    ):
        assert part in blank.example
    assert [blank.why for blank in found.blanks if blank.key == "data.samples"] == [
        "prompts in the training set, for the epochs"
    ]


def test_an_update_that_divides_no_step_is_left_out_with_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path, "run.sh", VERL.replace("train_batch_size=1024", "train_batch_size=100"))
    text = workload_from([path], Wishes()).text
    assert "256 does not divide 100 prompts: left out" in " ".join(text.replace("#", "").split())
    training = parse_workload(filled(text), tmp_path / "w.yaml").workload.training
    assert training is not None and training.rollouts is not None
    assert training.rollouts.update_batch is None


@pytest.mark.parametrize(("said", "graphs"), [("True", "cuda_graphs: false"), ("False", "engine: vllm")])
def test_verl_says_whether_its_engine_runs_in_eager_mode(tmp_path: Path, said: str, graphs: str) -> None:
    text = VERL.strip() + f" actor_rollout_ref.rollout.enforce_eager={said}\n"
    found = gather([write(tmp_path, "run.sh", text)], Wishes())
    (blank,) = [blank for blank in found.blanks if blank.key == "training.rollouts"]
    assert graphs in blank.example
    assert ("cuda_graphs" in blank.example) is (said == "True")


def test_verl_on_megatron_without_a_reference(tmp_path: Path) -> None:
    named = VERL.replace("${MODEL:-Qwen/Qwen2.5-7B-Instruct}", "$HOME/models/Qwen3-235B-A22B")
    text = named.strip().replace("use_kl_loss=True", "use_kl_loss=False") + (
        " actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4"
        " actor_rollout_ref.actor.megatron.expert_model_parallel_size=$EP trainer.total_training_steps=100\n"
    )
    found = gather([write(tmp_path, "run.sh", text)], Wishes())
    values = {key: fact.value for key, fact in found.facts.items()}
    assert (
        values["model.preset"] == "qwen3-235b-a22b"
    )  # of a path with an unknown folder the last part counts
    assert (values["training.layout.tensor_parallel"], values["training.layout.zero_stage"]) == (4, 1)
    assert "training.layout.expert_parallel" not in values
    assert any("expert_model_parallel_size is not read" in text for text in found.warnings)
    assert (values["training.steps"], values["training.reference"]) == (100, "none")


def test_verl_fine_tuning(tmp_path: Path) -> None:
    text = (
        "torchrun --nproc_per_node=4 -m verl.trainer.fsdp_sft_trainer data.train_files=a.parquet \\\n"
        " data.train_batch_size=64 data.max_length=2048 model.partial_pretrain=Qwen/Qwen2.5-0.5B-Instruct \\\n"
        " trainer.total_epochs=2 model.lora_rank=32 model.target_modules=all-linear\n"
    )
    found = draft(tmp_path, text)
    assert (found["training.objective"], found["training.global_batch"]) == ("sft", 64)
    assert (found["training.method"], found["training.lora_rank"]) == ("lora", 32)


@pytest.mark.parametrize(
    ("text", "packing", "asked"),
    [
        (AXOLOTL, True, True), (AXOLOTL.replace("num_epochs: 3", "max_steps: 50"), True, False),
        (AXOLOTL.replace("sample_packing: true", "max_steps: 50"), False, True),
        (AXOLOTL.replace("sample_packing: true", "pad_to_sequence_len: true\nmax_steps: 50"), None, False),
        (AXOLOTL + "rl: dpo\n", None, True), (LLAMA_FACTORY.replace("stage: dpo", "stage: pt"), True, True),
        (VERL, None, False),
    ],
)  # fmt: skip
def test_lengths_are_asked_for_where_the_work_follows_from_them(
    text: str, packing: bool | None, asked: bool, tmp_path: Path
) -> None:
    found = gather([write(tmp_path, "run", text)], Wishes())
    fact = found.facts.get("training.packing")
    assert (fact and fact.value) == packing
    assert ("training.lengths" in [blank.key for blank in found.blanks]) == asked
    told = gather([tmp_path / "run"], Wishes(values={"training.lengths.mean": 300}))
    assert "training.lengths" not in [blank.key for blank in told.blanks]


def test_distillation_names_its_teacher(tmp_path: Path) -> None:
    found = gather(
        [write(tmp_path, "a.yaml", AXOLOTL + "gkd_trainer: true\ngkd_teacher: Qwen/Qwen3-32B\n")], Wishes()
    )
    assert found.facts["training.objective"].value == "distill"
    assert found.facts["training.teacher.preset"].value == "qwen3-32b"
    assert "training.teacher" not in [blank.key for blank in found.blanks]


@pytest.mark.parametrize(
    ("name", "method", "quantization"),
    [
        ("casperhansen/Qwen3-8B-AWQ", "qlora", "nf4_double"), ("Qwen/Qwen3-8B-GPTQ-Int8", "qlora", "int8"),
        ("unsloth/Qwen3-8B-bnb-4bit", "qlora", "nf4_double"), ("Qwen/Qwen3-8B", "lora", None),
    ],
)  # fmt: skip
def test_adapters_on_weights_stored_in_few_bits(
    name: str, method: str, quantization: str | None, tmp_path: Path
) -> None:
    found = draft(tmp_path, LLAMA_FACTORY.replace("Qwen/Qwen3-8B", name))
    assert (found["training.method"], found.get("training.quantization")) == (method, quantization)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("zero3_bf16_cpuoffload_all.json", {"optimizer", "weights"}),
        ("zero3_bf16_cpuoffload_params.json", {"weights"}),
        ("ds_z2_offload_config.json", {"optimizer"}), ("ds_z3_config.json", set()),
    ],
)  # fmt: skip
def test_an_absent_engine_file_tells_host_memory_by_its_name(
    name: str, kept: set[str], tmp_path: Path
) -> None:
    found = draft(tmp_path, AXOLOTL.replace("zero3_bf16.json", name))
    prefix = "training.memory.offload_"
    assert {key.removeprefix(prefix) for key in found if key.startswith(prefix)} == kept


def test_nemo_rl(tmp_path: Path) -> None:
    text = """
policy:
  model_name: Qwen/Qwen3-8B
  train_global_batch_size: 512
  train_micro_batch_size: 4
  max_total_sequence_length: 4096
  precision: bfloat16
  dtensor_cfg: {enabled: true, tensor_parallel_size: 2, activation_checkpointing: true}
sft: {max_num_steps: 60}
cluster: {gpus_per_node: 8, num_nodes: 2}
"""
    found = draft(tmp_path, text)
    assert found["model.preset"] == "qwen3-8b"
    assert found["training.steps"] == 60
    assert found["training.layout.tensor_parallel"] == 2


def test_torchtitan(tmp_path: Path) -> None:
    found = draft(tmp_path, TORCHTITAN, accelerators=16)
    assert found["model.preset"] == "llama-3.1-8b"
    assert found["training.global_batch"] == 2 * 16 // 2
    assert found["training.precision"] == "fp8"
    assert found["training.stack"] == "compiled"
    assert found["training.layout.recompute"] == "selective"


def test_the_name_of_a_torchtitan_configuration_serves_as_a_file() -> None:
    assert gather([Path("llama3_8b")], Wishes()).facts["model.preset"].value == "llama-3.1-8b"
    with pytest.raises(InputError, match="no such file"):
        gather([Path("llama9_8b")], Wishes())


def test_a_model_alone_is_sized_and_its_training_assumed(tmp_path: Path) -> None:
    found = gather([write(tmp_path, "config.json", json.dumps(CONFIG))], Wishes())
    assert found.facts["model.params"].value == pytest.approx(1.2358e9, rel=0.001)
    assert found.facts["training.global_batch"].assumed
    assert {blank.key for blank in found.blanks} == {"training.tokens", "constraints.deadline"}


def test_model_config_serves_where_the_name_is_unknown(tmp_path: Path) -> None:
    unknown = AXOLOTL.replace("NousResearch/Meta-Llama-3.1-8B", "someone/unheard-of")
    with pytest.raises(InputError, match=r"base_model 'someone/unheard-of' is not a preset.*--model-config"):
        draft(tmp_path, unknown)
    config = write(tmp_path, "config.json", json.dumps(CONFIG))
    assert draft(tmp_path, unknown, model_config=config)["model.layers"] == 16


def test_a_model_in_a_folder_beside_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine", "config.json", json.dumps(CONFIG))
    assert draft(tmp_path, AXOLOTL.replace("NousResearch/Meta-Llama-3.1-8B", "./mine"))["model.layers"] == 16


@pytest.mark.parametrize("name", FORMATS)
def test_every_fixture_gives_a_valid_workload(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, "file", FIXTURES[name])
    model = "" if name not in ("deepspeed", "accelerate") else "llama-3.1-8b"
    initial = workload_from([path], Wishes(model=model))
    loaded = parse_workload(filled(initial.text), tmp_path / "workload.yaml")
    assert loaded.workload.training is not None


def test_a_config_beside_the_file_is_no_model_that_was_not_named(tmp_path: Path) -> None:
    write(tmp_path, "config.json", json.dumps(CONFIG))
    assert draft(tmp_path, AXOLOTL)["model.preset"] == "llama-3.1-8b"
    with pytest.raises(InputError, match="is not a preset"):
        draft(tmp_path, AXOLOTL.replace("NousResearch/Meta-Llama-3.1-8B", "unheard-of"))


def test_anchors_and_merge_keys_mean_what_the_trainer_reads(tmp_path: Path) -> None:
    text = "base: &base {micro_batch_size: 3, sequence_len: 512}\n<<: *base\n" + AXOLOTL.replace(
        "sequence_len: 4096", "gradient_accumulation_steps: 2"
    )
    found = draft(tmp_path, text)
    assert found["training.sequence_length"] == 512
    assert found["training.global_batch"] == 2 * 4  # the last of repeated keys, over the merged one


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("just words", "holds no mapping"),
        ("a: 1\nb: 2\n", "is none of the files that are read"),
        ("a: [1, 2\n", "is not valid YAML"),
        ("base_model: x\nadapter: lora\nmicro_batch_size: two\n", "micro_batch_size: must be a number"),
        ("base_model: x\nadapter: lora\nmicro_batch_size: 1.5\n", "micro_batch_size: must be a whole number"),
        (
            "base_model: x\nadapter: lora\nmodel_name_or_path: y\ntemplate: z\n",
            "looks like axolotl and LLaMA",
        ),
        ("[" * 5000, "nested"),
        ("&a [*a]", "refers to itself"),
    ],
)
def test_odd_files_are_refused_with_a_reason(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        draft(tmp_path, text)
    assert "file0.txt" in str(error.value)
    assert reason in str(error.value)


def test_nothing_in_a_file_ends_a_comment_early(tmp_path: Path) -> None:
    text = AXOLOTL.replace("base_model: NousResearch/Meta-Llama-3.1-8B",
                           'base_model: "x/Meta-Llama-3.1-8B"\noptimizer_note: 1').replace(
        "adamw_bnb_8bit", '"odd\\nversion: 2"')  # fmt: skip
    initial = workload_from([write(tmp_path, "a.yaml", text)], Wishes())
    assert parse_workload(filled(initial.text), tmp_path / "w.yaml").workload.version == 1


ODD = st.sampled_from(
    ["", "-1", "0", "1e400", "null", "[]", "{}", "1.5", "9" * 30, "auto", "[1, 2]", "{a: 1}", "*a", "${a.b}", "$(ls)",
     "!!python/object:os.system x", "nan", "\u2028", "\x85"]
)  # fmt: skip


# files of further trainers whose format reads several
CHANGED = {
    **FIXTURES, "roll": ROLL, "sky_rl": SKY_RL, "slime": SLIME, "pipe": PIPE, "one_trainer": ONE,
    "diffsynth": DIFFSYNTH, "embedder": GROUPS,
}  # fmt: skip


@draws(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(CHANGED)), st.data())
def test_any_changed_file_gives_a_valid_workload_or_an_error_that_names_it(
    tmp_path: Path, name: str, drawn: st.DataObject
) -> None:
    lines = CHANGED[name].splitlines()
    for _ in range(drawn.draw(st.integers(1, 3))):
        at = drawn.draw(st.integers(0, len(lines) - 1))
        cut = drawn.draw(st.integers(0, len(lines[at])))
        lines[at] = lines[at][:cut] + drawn.draw(ODD)
    python = name in ("trainer_script", "xtuner", "nemo_recipe")
    ending = ".py" if python else ".toml" if name == "pipe" else ".txt"
    path = write(tmp_path, f"changed{ending}", "\n".join(lines))
    try:
        initial = workload_from([path], Wishes(model="llama-3.1-8b" if drawn.draw(st.booleans()) else ""))
    except InputError as error:
        assert path.name in str(error)
        return
    assert parse_workload(filled(initial.text), tmp_path / "workload.yaml").workload.training is not None


@pytest.mark.parametrize("model", ["", "llama-3.1-8b"])
def test_a_degree_that_divides_nothing_is_left_out_with_a_warning(tmp_path: Path, model: str) -> None:
    path = write(tmp_path, "train.sh", MEGATRON.replace("TP=4", "TP=40"))
    initial = workload_from([path], Wishes(model=model))
    assert "40 does not divide the model's 32 heads: left out" in " ".join(
        initial.text.replace("#", "").split()
    )
    assert parse_workload(filled(initial.text), tmp_path / "w.yaml").workload.training is not None


SAMPLES = ROOT.parent / "shared" / "training_configs"


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples beside the project")
@pytest.mark.shared
def test_every_sample_gives_a_valid_workload_or_a_named_reason(tmp_path: Path) -> None:
    reasons = {}
    for path in sorted(SAMPLES.glob("*/*")):
        launcher = path.parent.name in ("accelerate", "deepspeed")
        wishes = Wishes(model="llama-3.1-8b" if launcher else "", accelerators=8)
        try:
            initial = workload_from([path], wishes)
        except InputError as error:
            reasons[path.name] = str(error)
            continue
        parse_workload(filled(initial.text), tmp_path / "workload.yaml")
    assert all(path in text for path, text in reasons.items())
    assert all("is not a preset" in text or "trains nothing" in text for text in reasons.values()), reasons


@pytest.mark.parametrize(
    ("keys", "objective"),
    [
        ("loss_type: sigmoid\nbeta: 0.1", "dpo"),
        ("loss_type: apo_zero_unpaired", "kto"),
        ("desirable_weight: 1.0\nloss_type: apo_zero", "kto"),
        ("center_rewards_coefficient: 0.01", "reward"),
        ("loss_type: dft", "sft"),
    ],
)
def test_the_objective_of_trl_follows_from_keys_that_one_trainer_alone_has(
    keys: str, objective: str, tmp_path: Path
) -> None:
    text = TRL.replace("max_length: 1024", f"max_length: 1024\n{keys}")
    found = gather([write(tmp_path, "run.yaml", text)], Wishes())
    assert found.facts["training.objective"].value == objective
    # KTO's divergence, which this loss does not compute, is said to be counted
    assert ("apo_zero_unpaired" in keys) == any("answers to other prompts" in text for text in found.warnings)
