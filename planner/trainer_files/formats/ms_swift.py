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
    Reader,
)
from planner.trainer_files.keys import LIGHT
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
    reader = Reader(document, "ms-swift")
    reader.hub_key = reader.first(*_MODELS)
    reader.hub_name = reader.text(reader.hub_key).removesuffix("-mcore")
    is_megatron = reader.has("micro_batch_size") or reader.has("global_batch_size")
    reader.add_launcher()
    if is_megatron:
        _megatron(reader)
    else:
        _trainer(reader)
    reader.add_whole("training.sequence_length", "max_length", "seq_length")
    _precision(reader)
    _method(reader, megatron=is_megatron)
    _objective(reader)
    reader.add_flag("training.packing", "packing", True, False, "the default of packing")
    if reader.flag("use_liger_kernel"):
        reader.add("training.memory.loss", "tiled", "use_liger_kernel")
    reader.add_attention("attn_impl")
    _frozen(reader)
    reader.name_unknown((LIGHT,))
    return reader


def _frozen(reader: Reader) -> None:
    """What stays frozen although all weights are trained, and what adapters leave as it is."""
    if reader.facts["training.method"].value != "full":
        reader.seen.update(_FROZEN)
        reader.freeze_beside_adapters("freeze_vit")
        return
    usual = ("freeze_vit", "freeze_aligner")
    frozen = [name for name in _FROZEN if (reader.flag(name) if reader.has(name) else name in usual)]
    if "freeze_llm" in frozen:
        reader.add_projector("freeze_llm")
        if reader.flag("freeze_vit") is False:
            reader.warn_of_encoder("freeze_vit")
    elif "freeze_vit" in frozen:
        reader.freeze_by_default("freeze_vit")


def _trainer(reader: Reader) -> None:
    """What `swift` shares with the Trainer of Hugging Face."""
    reader.add_whole(MICRO_BATCH, "per_device_train_batch_size", "batch_size", default=1)
    reader.add_whole(ACCUMULATION, "gradient_accumulation_steps")
    if ACCUMULATION not in reader.facts:
        accelerators = reader.facts.get(ACCELERATORS)
        once = reader.facts[MICRO_BATCH].value * (accelerators.value if accelerators is not None else 1)
        text = f"the default of gradient_accumulation_steps: a batch of at least {_LEAST_BATCH}"
        reader.add(ACCUMULATION, max(1, -(-_LEAST_BATCH // once)), text, assumed=True)
    reader.add_length(steps="max_steps", epochs="num_train_epochs", default_epochs=3.0)
    reader.add_optimizer("optim")
    absent = "on unless gradient_checkpointing is false"
    reader.add_recompute("gradient_checkpointing", absent, usual=True)
    reader.add_whole("training.layout.context_parallel", "sequence_parallel_size")
    deepspeed = reader.text("deepspeed")
    stage = deepspeed.removeprefix("default-").removesuffix("_offload")
    if stage in ("zero0", "zero1", "zero2", "zero3"):
        reader.add("training.layout.zero_stage", int(stage[-1]), f"deepspeed {deepspeed}")
        if deepspeed.endswith("_offload"):
            reader.add_offload(
                f"deepspeed {deepspeed}", "optimizer", *(("weights",) if stage == "zero3" else ())
            )
    elif deepspeed:
        reader.files["deepspeed"] = deepspeed
    if reader.text("fsdp") == "fsdp2":
        reader.add("training.layout.zero_stage", 3, "fsdp fsdp2")


def _megatron(reader: Reader) -> None:
    reader.add_whole(MICRO_BATCH, "micro_batch_size")
    reader.add_whole("training.global_batch", "global_batch_size", default=16)
    epochs = reader.first("max_epochs", "num_train_epochs") or "max_epochs"
    reader.add_length(steps="train_iters", epochs=epochs, default_epochs=None)
    for degree, name in MEGATRON_DEGREES.items():
        reader.add_whole(f"training.layout.{degree}", name)
    split = reader.facts.get("training.layout.tensor_parallel")
    if reader.flag("sequence_parallel") and split is not None and split.value > 1:
        reader.add("training.layout.sequence_parallel", True, "sequence_parallel")
    granularity = reader.text("recompute_granularity")
    chosen = granularity if granularity in ("full", "none") else "selective"
    reader.add("training.layout.recompute", chosen,
               "recompute_granularity" if granularity else "the default of recompute_granularity",
               assumed=not granularity)  # fmt: skip
    if reader.flag("use_distributed_optimizer") is not False:
        reader.add(
            "training.layout.zero_stage", 1, "use_distributed_optimizer is on by default", assumed=True
        )
    if reader.flag("optimizer_cpu_offload"):
        reader.add_offload("optimizer_cpu_offload", "optimizer")
    reader.add("training.stack", "tuned", "Megatron-LM's fused kernels", assumed=True)


def _precision(reader: Reader) -> None:
    if reader.has("fp8_format"):
        reader.add("training.precision", "fp8", "fp8_format")
        return
    key = reader.first("torch_dtype", "dtype")
    named = _PRECISIONS.get(reader.text(key).lower()) if key else None
    if named is None:
        named = next((name for name in ("bf16", "fp16") if reader.flag(name)), None)
        key = named or ""
    reader.add(
        "training.precision", named or "bf16", key or "the weights' own precision", assumed=named is None
    )


def _method(reader: Reader, *, megatron: bool) -> None:
    key = reader.first(*_TUNERS)
    kind = reader.text(key) if key else ("full" if megatron else "lora")
    source = f"{key} {kind}" if key else "the default of tuner_type"
    if kind == "full":
        reader.add("training.method", "full", source)
        return
    if kind == "lora_llm":
        reader.warn(f"{source}: the image encoder is trained whole; adapters alone are counted")
        kind = "lora"
    kind = "dora" if reader.flag("use_dora") else kind
    reader.add_adapter(kind, source, reader.whole("lora_rank") or _RANK, "lora_rank")
    targets = reader.first("target_modules", "lora_target_modules")
    value = reader.document.data.get(targets) if targets else "all-linear"
    value = "all-linear" if value in ("ALL", "AUTO", "DEFAULT") else value
    reader.add(
        "training.lora_targets", value, targets or "the default of target_modules", assumed=not targets
    )
    bits = reader.first("quant_bits", "quantization_bit")
    if bits:
        reader.add("training.frozen_bits", reader.whole(bits), bits)


def _objective(reader: Reader) -> None:
    kind, task = reader.text("rlhf_type").lower(), reader.text("task_type").lower()
    if task == "embedding":
        reader.add("training.objective", "contrastive", "task_type embedding")
        return
    if task not in ("", "causal_lm"):
        reader.warn(f"task_type {task}: its loss counts as that of a language model")
    if not kind:
        is_text = "pt" in reader.document.programs or reader.flag("use_chat_template") is False
        if not is_text:
            reader.add("training.objective", "sft", "no rlhf_type", assumed=True)
        return
    reader.add("training.objective", _OBJECTIVES.get(kind, kind), f"rlhf_type {kind}")
    if reader.text("teacher_model"):
        reader.add("training.teacher", reader.text("teacher_model"), "teacher_model")
    reader.add_precomputed_reference()
    share = reader.number("lmbda")
    if kind == "gkd" and (share is None or share > 0):  # half of the batches by default
        reader.warn("lmbda: the time in which the student writes its own answers is not counted")
    if kind in ("grpo", "ppo"):
        reader.add_generations()
        if "rollouts.response_max" not in reader.facts:
            reader.add(
                "rollouts.response_max",
                _LONGEST_RESPONSE,
                "the default of max_completion_length",
                assumed=True,
            )
        prompt, response = reader.whole("max_length"), reader.facts["rollouts.response_max"].value
        if prompt is not None:  # max_length bounds the prompt where responses are generated
            reader.add("rollouts.prompt_max", prompt, "max_length")
            reader.add("training.sequence_length", prompt + response, "max_length + max_completion_length")
