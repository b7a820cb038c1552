"""ms-swift: `swift` and `megatron` commands in a launch script, or their arguments in a YAML or JSON file.

Keys and defaults: https://swift.readthedocs.io/en/latest/Instruction/Command-line-parameters.html.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.trainer_files.formats.common import (
    ACCELERATORS,
    ACCUMULATION,
    MEGATRON_DEGREES,
    MICRO_BATCH,
    add_adapter,
    add_attention,
    add_flag,
    add_generations,
    add_launcher,
    add_length,
    add_offload,
    add_optimizer,
    add_recompute,
    add_whole,
)
from planner.trainer_files.keys import LIGHT, Lookup
from planner.trainer_files.model import Document, Reading

_TUNERS = ("tuner_type", "train_type", "sft_type")
_MARKS = (
    *_TUNERS,
    "rlhf_type",
    "split_dataset_ratio",
    "quant_bits",
    "padding_free",
    "attn_impl",
    "model_id_or_path",
)
_MODELS = ("model", "model_id_or_path", "model_type", "load", "mcore_model", "ref_model")
_OBJECTIVES = {"cpo": "orpo", "rm": "reward", "gkd": "distill"}
_PRECISIONS = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "float32": "fp32",
    "bf16": "bf16",
    "fp16": "fp16",
    "fp32": "fp32",
}
_FROZEN = ("freeze_vit", "freeze_llm", "freeze_aligner")
_RANK, _LONGEST_RESPONSE, _LEAST_BATCH = 8, 512, 16


def recognises(document: Document) -> bool:
    """Whether the arguments are ms-swift's."""
    data = document.data
    started = {"swift", "megatron"} & set(document.programs)
    named = started or any(mark in data for mark in _MARKS)
    return "model_name_or_path" not in data and _has_model(data) and bool(named)


def _has_model(data: Mapping[str, object]) -> bool:
    return any(isinstance(data.get(name), str) for name in _MODELS)


def read(document: Document) -> Reading:
    """Read a run."""
    keys, reading = Lookup(document), Reading(document.path, "ms-swift")
    reading.hub_key = keys.first(*_MODELS)
    reading.hub_name = keys.text(reading.hub_key).removesuffix("-mcore")
    is_megatron = keys.has("micro_batch_size") or keys.has("global_batch_size")
    add_launcher(reading, keys)
    if is_megatron:
        _megatron(reading, keys)
    else:
        _trainer(reading, keys)
    add_whole(reading, keys, "training.sequence_length", "max_length", "seq_length")
    _precision(reading, keys)
    _method(reading, keys, megatron=is_megatron)
    _objective(reading, keys)
    add_flag(reading, keys, "training.packing", "packing", True, False, "the default of packing")
    if keys.flag("use_liger_kernel"):
        reading.add("training.memory.loss", "tiled", "use_liger_kernel")
    add_attention(reading, keys, "attn_impl")
    frozen = [name for name in _FROZEN if keys.flag(name)]
    if frozen:
        reading.warn(f"{', '.join(frozen)}: frozen parts are counted as trained")
    reading.unknown = keys.unknown((LIGHT,))
    return reading


def _trainer(reading: Reading, keys: Lookup) -> None:
    """What `swift` shares with the Trainer of Hugging Face."""
    add_whole(reading, keys, MICRO_BATCH, "per_device_train_batch_size", "batch_size", default=1)
    add_whole(reading, keys, ACCUMULATION, "gradient_accumulation_steps")
    if ACCUMULATION not in reading.facts:
        accelerators = reading.facts.get(ACCELERATORS)
        once = reading.facts[MICRO_BATCH].value * (accelerators.value if accelerators is not None else 1)
        text = f"the default of gradient_accumulation_steps: a batch of at least {_LEAST_BATCH}"
        reading.add(ACCUMULATION, max(1, -(-_LEAST_BATCH // once)), text, assumed=True)
    add_length(reading, keys, steps="max_steps", epochs="num_train_epochs", default_epochs=3.0)
    add_optimizer(reading, keys, "optim")
    absent = "on unless gradient_checkpointing is false"
    add_recompute(reading, keys, "gradient_checkpointing", absent, usual=True)
    add_whole(reading, keys, "training.layout.context_parallel", "sequence_parallel_size")
    deepspeed = keys.text("deepspeed")
    stage = deepspeed.removeprefix("default-").removesuffix("_offload")
    if stage in ("zero0", "zero1", "zero2", "zero3"):
        reading.add("training.layout.zero_stage", int(stage[-1]), f"deepspeed {deepspeed}")
        if deepspeed.endswith("_offload"):
            add_offload(
                reading, f"deepspeed {deepspeed}", "optimizer", *(("weights",) if stage == "zero3" else ())
            )
    elif deepspeed:
        reading.files["deepspeed"] = deepspeed
    if keys.text("fsdp") == "fsdp2":
        reading.add("training.layout.zero_stage", 3, "fsdp fsdp2")


def _megatron(reading: Reading, keys: Lookup) -> None:
    add_whole(reading, keys, MICRO_BATCH, "micro_batch_size")
    add_whole(reading, keys, "training.global_batch", "global_batch_size", default=16)
    epochs = keys.first("max_epochs", "num_train_epochs") or "max_epochs"
    add_length(reading, keys, steps="train_iters", epochs=epochs, default_epochs=None)
    for degree, name in MEGATRON_DEGREES.items():
        add_whole(reading, keys, f"training.layout.{degree}", name)
    split = reading.facts.get("training.layout.tensor_parallel")
    if keys.flag("sequence_parallel") and split is not None and split.value > 1:
        reading.add("training.layout.sequence_parallel", True, "sequence_parallel")
    granularity = keys.text("recompute_granularity")
    chosen = granularity if granularity in ("full", "none") else "selective"
    reading.add("training.layout.recompute", chosen,
                "recompute_granularity" if granularity else "the default of recompute_granularity",
                assumed=not granularity)  # fmt: skip
    if keys.flag("use_distributed_optimizer") is not False:
        reading.add(
            "training.layout.zero_stage", 1, "use_distributed_optimizer is on by default", assumed=True
        )
    if keys.flag("optimizer_cpu_offload"):
        add_offload(reading, "optimizer_cpu_offload", "optimizer")
    reading.add("training.stack", "tuned", "Megatron-LM's fused kernels", assumed=True)


def _precision(reading: Reading, keys: Lookup) -> None:
    if keys.has("fp8_format"):
        reading.add("training.precision", "fp8", "fp8_format")
        return
    key = keys.first("torch_dtype", "dtype")
    named = _PRECISIONS.get(keys.text(key).lower()) if key else None
    if named is None:
        named = next((name for name in ("bf16", "fp16") if keys.flag(name)), None)
        key = named or ""
    reading.add(
        "training.precision", named or "bf16", key or "the weights' own precision", assumed=named is None
    )


def _method(reading: Reading, keys: Lookup, *, megatron: bool) -> None:
    key = keys.first(*_TUNERS)
    kind = keys.text(key) if key else ("full" if megatron else "lora")
    source = f"{key} {kind}" if key else "the default of tuner_type"
    if kind == "full":
        reading.add("training.method", "full", source)
        return
    if kind == "lora_llm":
        reading.warn(f"{source}: the image encoder is trained whole; adapters alone are counted")
        kind = "lora"
    kind = "dora" if keys.flag("use_dora") else kind
    add_adapter(reading, kind, source, keys.whole("lora_rank") or _RANK, "lora_rank")
    targets = keys.first("target_modules", "lora_target_modules")
    value = keys.document.data.get(targets) if targets else "all-linear"
    value = "all-linear" if value in ("ALL", "AUTO", "DEFAULT") else value
    reading.add(
        "training.lora_targets", value, targets or "the default of target_modules", assumed=not targets
    )
    bits = keys.first("quant_bits", "quantization_bit")
    if bits:
        reading.add("training.frozen_bits", keys.whole(bits), bits)


def _objective(reading: Reading, keys: Lookup) -> None:
    kind = keys.text("rlhf_type").lower()
    if not kind:
        is_text = "pt" in keys.document.programs or keys.flag("use_chat_template") is False
        if not is_text:
            reading.add("training.objective", "sft", "no rlhf_type", assumed=True)
        return
    reading.add("training.objective", _OBJECTIVES.get(kind, kind), f"rlhf_type {kind}")
    if keys.text("teacher_model"):
        reading.add("training.teacher", keys.text("teacher_model"), "teacher_model")
    share = keys.number("lmbda")
    if kind == "gkd" and (share is None or share > 0):  # half of the batches by default
        reading.warn("lmbda: the time in which the student writes its own answers is not counted")
    if kind in ("grpo", "ppo"):
        add_generations(reading, keys)
        if "rollouts.response_max" not in reading.facts:
            reading.add(
                "rollouts.response_max",
                _LONGEST_RESPONSE,
                "the default of max_completion_length",
                assumed=True,
            )
        prompt, response = keys.whole("max_length"), reading.facts["rollouts.response_max"].value
        if prompt is not None:  # max_length bounds the prompt where responses are generated
            reading.add("rollouts.prompt_max", prompt, "max_length")
            reading.add("training.sequence_length", prompt + response, "max_length + max_completion_length")
