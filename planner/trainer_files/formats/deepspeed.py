"""DeepSpeed: the JSON file of its engine (www.deepspeed.ai/docs/config-json); `auto` is the trainer's to say."""

from __future__ import annotations

from planner.trainer_files.formats.common import ACCUMULATION, MICRO_BATCH, Reader
from planner.trainer_files.model import Document, Reading

_MARKS = ("zero_optimization", "train_micro_batch_size_per_gpu", "zero_allow_untested_optimizer", "bfloat16")
# Other files have a train_batch_size too.
_BESIDE_A_BATCH = (
    "optimizer", "fp16", "bf16", "gradient_accumulation_steps", "steps_per_print", "gradient_clipping",
)  # fmt: skip
_WITHOUT_EFFECT = (
    r"_comment.*|gradient_clipping|zero_(allow|force).*|steps_per_print|wall_clock.*|dump_state|scheduler|prescale.*",
    r"gradient_predivide.*|sparse_gradients|communication_data_type|comms_.*|.*monitor.*|tensorboard|wandb|csv_monitor",
    r"flops_profiler|memory_breakdown|disable_.*|seed|checkpoint|data_types|elasticity|aio|autotuning|amp|hybrid_engine",
    r"activation_checkpointing|data_efficiency|dataloader_.*|curriculum.*|compile|torch_autocast|eigenvalue|zenflow",
)


def recognises(document: Document) -> bool:
    """Whether the keys are DeepSpeed's."""
    data = document.data
    batch = "train_batch_size" in data and any(name in data for name in _BESIDE_A_BATCH)
    return (
        document.syntax in ("json", "yaml")
        and (batch or any(mark in data for mark in _MARKS))
        and not any(
            key in data
            for key in (
                "base_model",
                "num-layers",
                "num_layers",
                "model_family",
                "pretrained_model_name_or_path",
                "compute_environment",  # Accelerate's, with an engine inside
                "distributed_type",
            )
        )
    )


def read(document: Document) -> Reading:
    """Read an engine's configuration."""
    reader = Reader(document, "DeepSpeed")
    reader.add_whole("training.global_batch", "train_batch_size")
    reader.add_whole(MICRO_BATCH, "train_micro_batch_size_per_gpu")
    reader.add_whole(ACCUMULATION, "gradient_accumulation_steps")
    for name, precision in (("fp8", "fp8"), ("bf16", "bf16"), ("bfloat16", "bf16"), ("fp16", "fp16")):
        if reader.flag(f"{name}.enabled"):
            reader.add("training.precision", precision, f"{name}.enabled")
            break
    old = reader.get("zero_optimization")  # true or false, before there were stages: what is stage 1 now
    stage = int(old) if isinstance(old, bool) else reader.number("zero_optimization.stage")
    if stage is None and reader.has("zero_optimization"):
        stage = 0
    if stage is not None:
        if stage not in (0, 1, 2, 3):
            raise reader.wrong("zero_optimization.stage", "must be 0, 1, 2 or 3")
        source = "zero_optimization" if isinstance(old, bool) else "zero_optimization.stage"
        reader.add("training.layout.zero_stage", int(stage), source)
    for name, what in (("offload_optimizer", "optimizer"), ("offload_param", "weights")):
        device = reader.text(f"zero_optimization.{name}.device")
        if device not in ("", "none"):
            reader.add_offload(f"zero_optimization.{name}.device {device}", what)
        if device not in ("", "none") and (reader.number(f"zero_optimization.{name}.ratio") or 1.0) < 1.0:
            reader.warn(f"zero_optimization.{name}.ratio: all of it is counted on the host, not a part")
        if device == "nvme":
            reader.warn(f"zero_optimization.{name}.device nvme: counted as host memory, which is faster")
    if reader.flag("zero_optimization.cpu_offload"):
        reader.add_offload("zero_optimization.cpu_offload", "optimizer")
    reader.add_optimizer("optimizer.type")
    reader.add_whole("training.layout.tensor_parallel", "tensor_parallel.autotp_size")
    reader.add_whole("training.layout.context_parallel", "sequence_parallel_size")
    reader.add_whole("training.layout.pipeline_parallel", "pipeline.stages")
    if reader.has("compression_training"):
        reader.warn("compression_training is not counted")
    if reader.has("zero_optimization.zero_hpz_partition_size"):
        reader.warn("zero_optimization.zero_hpz_partition_size: a second copy of the weights is not counted")
    if (reader.number("zero_optimization.mics_shard_size") or 0) > 0:
        reader.warn_of_groups("zero_optimization.mics_shard_size")
    for name in ("zero_quantized_weights", "zero_quantized_gradients"):
        if reader.flag(f"zero_optimization.{name}"):
            reader.warn(f"zero_optimization.{name}: fewer bytes on the network are not counted")
    if reader.flag("activation_checkpointing.cpu_checkpointing"):
        reader.warn(
            "activation_checkpointing.cpu_checkpointing: activations are counted as kept on accelerators"
        )
    reader.seen |= {"zero_optimization", "bf16", "fp16", "optimizer", "tensor_parallel"}
    reader.name_unknown(_WITHOUT_EFFECT)
    return reader
