"""Accelerate: the YAML file of a launch, with FSDP, DeepSpeed or Megatron-LM inside."""

from __future__ import annotations

from planner.trainer_files.formats.common import ACCELERATORS, ACCUMULATION, NODES, Reader
from planner.trainer_files.model import Document, Reading

_MARKS = ("distributed_type", "compute_environment")
_OTHER_CHIPS = ("TPU", "XLA", "MULTI_NPU", "MULTI_XPU", "MULTI_HPU", "MULTI_MLU", "MULTI_CPU", "NPU", "XPU")
_WITHOUT_EFFECT = (
    r"compute_environment|debug|downcast_bf16|machine_rank|main_.*|rdzv_.*|same_network|tpu_.*|use_cpu|gpu_ids|enable_.*",
    r"mpirun_.*|ipex_.*|dynamo_.*|command_file|commands|aws_.*|ec2_.*|sagemaker_.*|image_uri|profile|region|base_job.*",
    r"additional_args|distributed_type|mixed_precision|num_.*|fp8_config|use_.*",
)


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
    reader = Reader(document, "Accelerate")
    reader.add_whole(ACCELERATORS, "num_processes")
    reader.add_whole(NODES, "num_machines")
    precision = reader.text("mixed_precision")
    if precision in ("bf16", "fp16", "fp8"):
        reader.add("training.precision", precision, "mixed_precision")
    elif precision == "no":
        reader.add("training.precision", "fp32", "mixed_precision no")
    _fsdp(reader)
    _deepspeed(reader)
    _megatron(reader)
    prefix = "parallelism_config.parallelism_config_"
    reader.add_whole("training.layout.tensor_parallel", f"{prefix}tp_size", "tp_config.tp_size")
    reader.add_whole("training.layout.context_parallel", f"{prefix}cp_size", f"{prefix}sp_size")
    backend = (reader.text("dynamo_config.dynamo_backend") or reader.text("dynamo_backend")).lower()
    if backend == "inductor":
        reader.add("training.stack", "compiled", "dynamo_backend inductor")
    kind = reader.text("distributed_type").upper()
    if kind in _OTHER_CHIPS:
        reader.warn(f"distributed_type {kind}: plans are for CUDA unless constraints.software says otherwise")
    reader.name_unknown(_WITHOUT_EFFECT)
    return reader


def _megatron(reader: Reader) -> None:
    prefix, layout = "megatron_lm_config.megatron_lm_", "training.layout."
    reader.add_whole(f"{layout}tensor_parallel", f"{prefix}tp_degree")
    reader.add_whole(f"{layout}pipeline_parallel", f"{prefix}pp_degree")
    reader.add_whole(ACCUMULATION, f"{prefix}num_micro_batches")
    split = reader.facts.get(f"{layout}tensor_parallel")
    if reader.flag(f"{prefix}sequence_parallelism") and split is not None and split.value > 1:
        reader.add(f"{layout}sequence_parallel", True, f"{prefix}sequence_parallelism")
    if reader.flag(f"{prefix}recompute_activations"):
        reader.add(f"{layout}recompute", "selective", f"{prefix}recompute_activations")
    if reader.flag(f"{prefix}use_distributed_optimizer"):
        reader.add(f"{layout}zero_stage", 1, f"{prefix}use_distributed_optimizer")


def _fsdp(reader: Reader) -> None:
    config = "fsdp_config"
    if not reader.has(config):
        return
    reshard = f"{config}.fsdp_reshard_after_forward"
    strategy = reader.get(f"{config}.fsdp_sharding_strategy")
    if reader.number(f"{config}.fsdp_version") == 2:
        reader.add_fsdp2(reader.flag(reshard), reshard)
    elif strategy is not None:
        reader.add_shard(str(strategy), f"{config}.fsdp_sharding_strategy")
    if reader.flag(f"{config}.fsdp_offload_params"):
        reader.add_offload(f"{config}.fsdp_offload_params", "optimizer", "weights")
    if reader.flag(f"{config}.fsdp_activation_checkpointing"):
        reader.add("training.layout.recompute", "full", f"{config}.fsdp_activation_checkpointing")


def _deepspeed(reader: Reader) -> None:
    config = "deepspeed_config"
    if not reader.has(config):
        return
    reader.add_stage(f"{config}.zero_stage")
    reader.add_whole(ACCUMULATION, f"{config}.gradient_accumulation_steps")
    for name, what in (("offload_optimizer", "optimizer"), ("offload_param", "weights")):
        if reader.text(f"{config}.{name}_device") not in ("", "none"):
            reader.add_offload(f"{config}.{name}_device", what)
    if reader.text(f"{config}.deepspeed_config_file"):
        reader.files["deepspeed"] = reader.text(f"{config}.deepspeed_config_file")
