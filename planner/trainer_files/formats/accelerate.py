"""Accelerate: the YAML file of a launch, with FSDP, DeepSpeed or Megatron-LM inside."""

from __future__ import annotations

from planner.trainer_files.formats.common import (
    ACCELERATORS,
    ACCUMULATION,
    NODES,
    add_fsdp2,
    add_offload,
    add_shard,
    add_stage,
    add_whole,
)
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_MARKS = ("distributed_type", "compute_environment")
_OTHER_CHIPS = ("TPU", "XLA", "MULTI_NPU", "MULTI_XPU", "MULTI_HPU", "MULTI_MLU", "MULTI_CPU", "NPU", "XPU")
_WITHOUT_EFFECT = (
    r"compute_environment|debug|downcast_bf16|machine_rank|main_.*|rdzv_.*|same_network|tpu_.*|use_cpu|gpu_ids|enable_.*",
    r"mpirun_.*|ipex_.*|dynamo_.*|command_file|commands|aws_.*|ec2_.*|sagemaker_.*|image_uri|profile|region|base_job.*",
    r"additional_args|distributed_type|mixed_precision|num_.*|fp8_config|use_.*",
)  # fmt: skip


def recognises(document: Document) -> bool:
    """Whether the keys are those of an Accelerate launch."""
    data = document.data
    has_marks = any(mark in data for mark in _MARKS) or (
        "num_processes" in data and "mixed_precision" in data
    )
    return (
        document.syntax in ("yaml", "json")
        and has_marks
        and not any(name in data for name in ("trainer", "model_family"))
    )


def read(document: Document) -> Reading:
    """Read a launch."""
    keys, reading = Lookup(document), Reading(document.path, "Accelerate")
    add_whole(reading, keys, ACCELERATORS, "num_processes")
    add_whole(reading, keys, NODES, "num_machines")
    precision = keys.text("mixed_precision")
    if precision in ("bf16", "fp16", "fp8"):
        reading.add("training.precision", precision, "mixed_precision")
    elif precision == "no":
        reading.add("training.precision", "fp32", "mixed_precision no")
    _fsdp(reading, keys)
    _deepspeed(reading, keys)
    _megatron(reading, keys)
    prefix = "parallelism_config.parallelism_config_"
    add_whole(reading, keys, "training.layout.tensor_parallel", f"{prefix}tp_size", "tp_config.tp_size")
    add_whole(reading, keys, "training.layout.context_parallel", f"{prefix}cp_size", f"{prefix}sp_size")
    backend = (keys.text("dynamo_config.dynamo_backend") or keys.text("dynamo_backend")).lower()
    if backend == "inductor":
        reading.add("training.stack", "compiled", "dynamo_backend inductor")
    kind = keys.text("distributed_type").upper()
    if kind in _OTHER_CHIPS:
        reading.warn(
            f"distributed_type {kind}: plans are for CUDA unless constraints.software says otherwise"
        )
    reading.unknown = keys.unknown(_WITHOUT_EFFECT)
    return reading


def _megatron(reading: Reading, keys: Lookup) -> None:
    prefix, layout = "megatron_lm_config.megatron_lm_", "training.layout."
    add_whole(reading, keys, f"{layout}tensor_parallel", f"{prefix}tp_degree")
    add_whole(reading, keys, f"{layout}pipeline_parallel", f"{prefix}pp_degree")
    add_whole(reading, keys, ACCUMULATION, f"{prefix}num_micro_batches")
    split = reading.facts.get(f"{layout}tensor_parallel")
    if keys.flag(f"{prefix}sequence_parallelism") and split is not None and split.value > 1:
        reading.add(f"{layout}sequence_parallel", True, f"{prefix}sequence_parallelism")
    if keys.flag(f"{prefix}recompute_activations"):
        reading.add(f"{layout}recompute", "selective", f"{prefix}recompute_activations")
    if keys.flag(f"{prefix}use_distributed_optimizer"):
        reading.add(f"{layout}zero_stage", 1, f"{prefix}use_distributed_optimizer")


def _fsdp(reading: Reading, keys: Lookup) -> None:
    config = "fsdp_config"
    if not keys.has(config):
        return
    reshard = f"{config}.fsdp_reshard_after_forward"
    strategy = keys.get(f"{config}.fsdp_sharding_strategy")
    if keys.number(f"{config}.fsdp_version") == 2:
        add_fsdp2(reading, keys.flag(reshard), reshard)
    elif strategy is not None:
        add_shard(reading, str(strategy), f"{config}.fsdp_sharding_strategy")
    if keys.flag(f"{config}.fsdp_offload_params"):
        add_offload(reading, f"{config}.fsdp_offload_params", "optimizer", "weights")
    if keys.flag(f"{config}.fsdp_activation_checkpointing"):
        reading.add("training.layout.recompute", "full", f"{config}.fsdp_activation_checkpointing")


def _deepspeed(reading: Reading, keys: Lookup) -> None:
    config = "deepspeed_config"
    if not keys.has(config):
        return
    add_stage(reading, keys, f"{config}.zero_stage")
    add_whole(reading, keys, ACCUMULATION, f"{config}.gradient_accumulation_steps")
    for name, what in (("offload_optimizer", "optimizer"), ("offload_param", "weights")):
        if keys.text(f"{config}.{name}_device") not in ("", "none"):
            add_offload(reading, f"{config}.{name}_device", what)
    if keys.text(f"{config}.deepspeed_config_file"):
        reading.files["deepspeed"] = keys.text(f"{config}.deepspeed_config_file")
