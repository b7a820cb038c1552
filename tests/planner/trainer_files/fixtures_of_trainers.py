"""Runs of Oumi, MaxText, Levanter, nanotron and of trainers of image models, written from documented keys."""

from __future__ import annotations

import json

OUMI = """
model: {model_name: meta-llama/Llama-3.1-8B-Instruct, model_max_length: 8192, torch_dtype_str: bfloat16}
data: {train: {datasets: [{dataset_name: some/set}], pack: false}}
training:
  trainer_type: TRL_SFT
  use_peft: true
  num_train_epochs: 2
  per_device_train_batch_size: 8
  gradient_accumulation_steps: 4
  enable_gradient_checkpointing: true
  optimizer: adamw_torch_fused
peft: {q_lora: true, lora_r: 8, lora_alpha: 16, lora_target_modules: [q_proj, v_proj]}
fsdp: {enable_fsdp: true, sharding_strategy: FULL_SHARD, cpu_offload: false}
"""
OUMI_VERL = """
model: {model_name: Qwen/Qwen3-4B}
data: {train: {datasets: [{dataset_name: some/prompts}]}}
training:
  trainer_type: VERL_GRPO
  num_train_epochs: 1
  grpo: {max_completion_length: 1024, use_vllm: true}
  verl_config_overrides:
    data: {train_batch_size: 64, max_prompt_length: 256}
    actor_rollout_ref:
      actor: {use_kl_loss: true, ppo_mini_batch_size: 16}
      rollout: {tensor_model_parallel_size: 2, n: 16}
    trainer: {n_gpus_per_node: 8, nnodes: 1}
"""
MAXTEXT = """
base_config: base.yml
model_name: llama3-70b
hardware: gpu
steps: 30
per_device_batch_size: 4
max_target_length: 8192
attention: cudnn_flash_te
remat_policy: full
ici_tensor_parallelism: 2
"""
MAXTEXT_SCRIPT = r"""
export RUN_NAME="run-$(date +%Y)"
python3 -m maxtext.trainers.pre_train.train "${CONFIGS}"/base.yml model_name=mixtral-8x7b run_name=$RUN_NAME \
    steps=15 per_device_batch_size=0.5 max_target_length=1024 quantization=fp8 \
    dcn_data_parallelism=16 ici_fsdp_parallelism=4 ici_tensor_parallelism=2 remat_policy=minimal
"""
LEVANTER = """
data: {train_urls: ["gs://some/place.jsonl.gz"], tokenizer: meta-llama/Llama-2-7b-hf}
model: {type: llama, seq_len: 4096, hidden_dim: 4096, num_heads: 32, num_layers: 32, gradient_checkpointing: true}
trainer:
  mp: p=f32,c=bfloat16
  train_batch_size: 256
  num_train_steps: 1000
  model_axis_size: 2
  wandb: {project: some}
optimizer: {learning_rate: 1.2E-5, weight_decay: 0.1}
"""
NANOTRON = """
model:
  dtype: bfloat16
  make_vocab_size_divisible_by: 1
  model_config:
    {is_llama_config: true, hidden_size: 3072, intermediate_size: 8192, num_attention_heads: 24, num_hidden_layers: 28,
     num_key_value_heads: 8, max_position_embeddings: 8192, tie_word_embeddings: true, vocab_size: 128256}
optimizer: {zero_stage: 1, optimizer_factory: {name: adamW, adam_beta1: 0.9}}
parallelism: {dp: 4, pp: 1, tp: 2, expert_parallel_size: 1}
tokens: {batch_accumulation_per_replica: 8, micro_batch_size: 2, sequence_length: 4096, train_steps: 200}
"""
SIMPLETUNER = json.dumps({
    "model_family": "flux", "model_type": "lora", "lora_rank": 16, "lora_type": "standard", "train_batch_size": 2,
    "gradient_accumulation_steps": 4, "max_train_steps": 1000, "num_train_epochs": 0, "mixed_precision": "bf16",
    "optimizer": "adamw_bf16", "gradient_checkpointing": True, "base_model_precision": "int8-quanto",
    "data_backend_config": "config/data.json", "resolution": 1024, "num_processes": 8,
})  # fmt: skip
KOHYA = """
[model_arguments]
pretrained_model_name_or_path = "runwayml/stable-diffusion-v1-5"
[dataset_arguments]
resolution = 512
[training_arguments]
train_batch_size = 2
max_train_epochs = 10
mixed_precision = "bf16"
gradient_checkpointing = true
[optimizer_arguments]
optimizer_type = "AdamW8bit"
[additional_network_arguments]
network_module = "networks.lora"
network_dim = 32
"""
DIFFUSERS = r"""
export MODEL_NAME="stabilityai/stable-diffusion-xl-base-1.0"
accelerate launch --num_processes=4 --mixed_precision="fp16" train_text_to_image_lora_sdxl.py \
  --pretrained_model_name_or_path=$MODEL_NAME --resolution=1024 --train_batch_size=2 --rank=8 --use_8bit_adam \
  --gradient_accumulation_steps=3 --max_train_steps=20000 --validation_prompt="a face"
"""
AI_TOOLKIT = """
job: extension
config:
  name: some
  process:
    - type: sd_trainer
      network: {type: lora, linear: 16, linear_alpha: 16}
      datasets: [{folder_path: some/images, resolution: [512, 768, 1024]}]
      train: {batch_size: 1, steps: 2000, gradient_accumulation: 2, gradient_checkpointing: true, optimizer: adamw8bit,
              dtype: bf16}
      model: {name_or_path: black-forest-labs/FLUX.1-dev, is_flux: true, quantize: true}
"""
AREAL = """
experiment_name: run
trial_name: first
total_train_epochs: 2
cluster: {n_nodes: 2, n_gpus_per_node: 8}
allocation_mode: sglang:d6t2+megatron:(attn:d2p2|ffn:d1p2e2)
rollout: {max_concurrent_rollouts: 64, max_head_offpolicyness: 2}
gconfig: {n_samples: 8, max_new_tokens: 4096}
actor:
  path: Qwen/Qwen3-30B-A3B
  dtype: bfloat16
  gradient_checkpointing: true
  optimizer: {type: adam, lr: 1e-5}
  kl_ctl: 0.0
  ppo_n_minibatches: 4
ref: {path: "${actor.path}"}
train_dataset: {path: some/prompts, batch_size: 64, type: rl, max_length: 1024}
"""
PRIME_RL = """
max_steps = 200
seq_len = 8192
[deployment]
type = "multi_node"
num_train_nodes = 1
num_infer_nodes = 3
[model]
name = "Qwen/Qwen3-8B"
[trainer.model]
cp = 2
[trainer.model.compile]
[trainer.model.ac]
freq = 1
[trainer.model.lora]
rank = 32
[trainer.optim]
type = "adamw"
[orchestrator]
batch_size = 512
group_size = 16
max_off_policy_steps = 4
[orchestrator.train.sampling]
max_completion_tokens = 4096
[inference.vllm]
tensor_parallel_size = 2
"""
DEEPSPEED_CHAT = r"""
#!/bin/bash
STAGE=$1
if [ "$STAGE" == "" ]; then
    STAGE=2
fi
deepspeed --num_gpus 8 main.py \
    --data_path some/preferences \
    --data_split 2,4,4 \
    --model_name_or_path meta-llama/Llama-2-7b-hf \
    --per_device_train_batch_size 4 \
    --gradient_accumulation_steps 2 \
    --max_seq_len 1024 \
    --num_train_epochs 2 \
    --zero_stage $STAGE \
    --gradient_checkpointing \
    --lora_dim 64 \
    --only_optimize_lora \
    --dtype bf16
"""
VERL_ASYNC = r"""
python -m verl.experimental.fully_async_policy.fully_async_main \
    data.max_prompt_length=1024 \
    data.max_response_length=8192 \
    data.train_batch_size=0 \
    algorithm.adv_estimator=grpo \
    actor_rollout_ref.model.path=Qwen/Qwen3-8B \
    actor_rollout_ref.actor.ppo_mini_batch_size=32 \
    actor_rollout_ref.actor.use_kl_loss=False \
    actor_rollout_ref.rollout.n=16 \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.hybrid_engine=False \
    trainer.nnodes=1 trainer.n_gpus_per_node=8 \
    rollout.nnodes=3 rollout.n_gpus_per_node=8 \
    rollout.total_rollout_steps=51200 \
    async_training.staleness_threshold=0.5 \
    async_training.trigger_parameter_sync_step=4 \
    async_training.require_batches=2 \
    async_training.partial_rollout=True
"""
FAIRSEQ = """
common: {fp16: true}
task: {_name: audio_pretraining, data: "???", max_sample_size: 250000}
dataset: {num_workers: 6, max_tokens: 1400000}
distributed_training: {distributed_world_size: 64, ddp_backend: legacy_ddp}
criterion: {_name: wav2vec}
optimization: {max_update: 400000, lr: [0.0005], update_freq: [2]}
optimizer: {_name: adam}
model: {_name: wav2vec2, encoder_layerdrop: 0.05}
"""
TRAINER_SCRIPT = """
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig
from trl import SFTConfig, SFTTrainer

MODEL = "Qwen/Qwen3-8B"
PER_STEP, EACH = 64, 4
stored = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)
tokenizer = AutoTokenizer.from_pretrained(MODEL)
model = AutoModelForCausalLM.from_pretrained(MODEL, quantization_config=stored)
model = get_peft_model(model, LoraConfig(r=16, target_modules=["q_proj", "v_proj"]))
trainer = SFTTrainer(
    model=model,
    args=SFTConfig(
        output_dir="out",
        per_device_train_batch_size=EACH,
        gradient_accumulation_steps=PER_STEP // EACH,
        num_train_epochs=2,
        max_length=2048,
        packing=True,
        optim="paged_adamw_8bit",
    ),
    train_dataset=data,
)
trainer.train()
"""
XTUNER = """
from peft import LoraConfig
from torch.optim import AdamW
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from xtuner.model import SupervisedFinetune

pretrained_model_name_or_path = "meta-llama/Meta-Llama-3-8B"
max_length = 4096
pack_to_max_length = True
sequence_parallel_size = 2
batch_size = 1
accumulative_counts = 8
accumulative_counts *= sequence_parallel_size
max_epochs = 3
optim_type = AdamW
model = dict(
    type=SupervisedFinetune,
    llm=dict(
        type=AutoModelForCausalLM.from_pretrained,
        pretrained_model_name_or_path=pretrained_model_name_or_path,
        quantization_config=dict(type=BitsAndBytesConfig, load_in_4bit=True, load_in_8bit=False),
    ),
    lora=dict(type=LoraConfig, r=64, lora_alpha=16),
)
optim_wrapper = dict(
    type=AmpOptimWrapper, optimizer=dict(type=optim_type, lr=2e-4),
    accumulative_counts=accumulative_counts, dtype="bfloat16",
)
train_cfg = dict(type=TrainLoop, max_epochs=max_epochs)
"""
OPENCLIP = """
torchrun --nproc_per_node 4 -m open_clip_train.main \\
    --train-data '/data/cc3m/{00000..00331}.tar' \\
    --train-num-samples 2905954 \\
    --dataset-type webdataset \\
    --model ViT-B-16 \\
    --batch-size 512 --accum-freq 2 \\
    --epochs 30 \\
    --precision amp_bf16 \\
    --local-loss --gather-with-grad --grad-checkpointing
"""
TIMM = """
./distributed_train.sh 8 /data/imagenet --model vit_small_patch16_224.augreg_in1k --sched cosine --epochs 300 \\
    --opt adamw -j 8 --amp --amp-dtype bfloat16 --grad-accum-steps 2 --aa rand-m9-mstd0.5 --img-size 384 -b 128
"""
ULTRALYTICS = """
task: detect
mode: train
model: yolo11m.pt
data: coco.yaml
epochs: 300
batch: 64
imgsz: 1280
device: 0,1,2,3
amp: true
optimizer: auto
patience: 100
"""
NEMO_RECIPE = """
import nemo_run as run
from nemo.collections import llm
from nemo.collections.llm.recipes.precision.mixed_precision import bf16_with_fp8_mixed

recipe = llm.llama3_70b.pretrain_recipe(dir="/checkpoints", name="llama3", num_nodes=4, num_gpus_per_node=8)
recipe.trainer.strategy.tensor_model_parallel_size = 4
recipe.trainer.strategy.pipeline_model_parallel_size = 2
recipe.trainer.strategy.context_parallel_size = 1
recipe.data.global_batch_size = 128
recipe.data.micro_batch_size = 1
recipe.data.seq_length = 8192
recipe.trainer.max_steps = 1000
recipe.trainer.plugins = bf16_with_fp8_mixed()
run.run(recipe, executor=executor)
"""
UNSLOTH = """\
model: unsloth/Qwen2.5-0.5B
data: {dataset: someone/texts}
training: {training_type: lora, max_seq_length: 2048, load_in_4bit: true, num_epochs: 2, batch_size: 2,
  gradient_accumulation_steps: 4, max_steps: 0, packing: false, gradient_checkpointing: unsloth}
lora: {lora_r: 64, lora_alpha: 16, target_modules: "q_proj,v_proj"}
"""
