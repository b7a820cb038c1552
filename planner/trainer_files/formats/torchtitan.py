"""torchtitan: a TOML file, its dotted arguments, or the name of one of its configurations (`llama3_8b`)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from planner.errors import InputError
from planner.inputs.model_config import model_of_config
from planner.inputs.presets import find_preset
from planner.trainer_files.formats.common import ACCELERATORS, MICRO_BATCH, Reader
from planner.trainer_files.model import Document, Reading

# model of torchtitan -> beginning of a preset's name; `{}` is the flavour
_PRESETS = {
    "llama2": ("llama-2-{}",), "llama3": ("llama-3.1-{}", "llama-3.2-{}", "llama-3-{}"), "qwen3": ("qwen3-{}",),
    "deepseek_v3": ("deepseek-v3-{}", "deepseek-v2-lite-{}"), "gpt_oss": ("gpt-oss-{}",), "flux": ("{}", "flux.1-{}"),
    "llama4": ("llama-4-{}",), "qwen35": ("qwen3.5-{}",),
}  # fmt: skip
_FLAVOURS = {"17bx16e": "scout", "17bx128e": "maverick", "flux-dev": "dev", "flux-schnell": "schnell"}
_NAME = re.compile(r"(llama[234]|qwen3|deepseek_v3|gpt_oss|flux)[_-]([A-Za-z0-9.]+(?:[_-][A-Za-z0-9.]+)*)")
# names of 0.3: what the configuration is for, the model, its size (`1_7b` is 1.7b) and what is changed
_SIZED = re.compile(
    r"(?:(graph_trainer|rl_grpo|rl_dapo|sft)_)?(llama[234]|qwen3|qwen35|deepseek_v3|gpt_oss|flux)_"
    r"((?:[0-9]+_)?[0-9]+b(?:_a[0-9]+b)?(?=_|$)|dev|schnell)(?:_(\w+))?"
)
_PURPOSES = {"rl_grpo": "grpo", "rl_dapo": "grpo", "sft": "sft"}
_ADAPTED = re.compile(r"(?:^|[_-])lora(?![^_-])")
_RANK = 8  # torchtitan/components/lora.py, read on 2026-11-29
_CHANGES = (("nvfp4", "fp4"), ("mxfp8", "fp8"), ("float8", "fp8"))
# what forks call the section of what is learned from: their own programs generate, or compare, responses
_FORKS = {"rl": "grpo", "rloo": "grpo"} | {name: name for name in ("grpo", "ppo", "dpo", "orpo", "kto")}
# keys that move neither work nor memory here (pytorch/torchtitan@000204a4 torchtitan/config/job_config.py, and names of
# 0.1 and 0.2)
_WITHOUT_EFFECT = (
    "memory_estimation", "fault_tolerance", "eval", "debug", "training", "model", "mx",
    r"model\.(tokenizer.*|hf_assets_path|print_after_conversion|norm_type|purpose|change)",
    r"optimizer\.(lr|betas?[12]?|eps|weight_decay|implementation|fused|foreach)",
    r"training\.(dataset.*|max_norm|mixed_precision_reduce|gc_.*|seed|deterministic|warmup_steps|data_parallel_type)",
    r"(parallelism|experimental|training)\.(pipeline_parallel_.*|.*loss_parallel|enable_async_tensor_parallel|"
    r"enable_compiled_autograd|context_parallel_rotate_method|custom_.*)",
    r"activation_checkpoint\.(selective_ac_.*|per_op_sac_.*|early_stop|preserve_rng_state|determinism_check|debug)",
    r"compile\..*",
)  # fmt: skip
_INSIDE = ("model", "optimizer", "training", "parallelism", "activation_checkpoint", "experimental")
_SECTIONS = ("training", "parallelism", "job", "activation_checkpoint", "experimental")
# names of sizes in torchtitan's own arguments of a model -> those of config.json
_ARGUMENTS = {
    "dim": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads", "vocab_size": "vocab_size", "hidden_dim": "intermediate_size",
}  # fmt: skip


def document_of_name(document: Document) -> Document | None:
    """The document of a configuration's name, None where the word is not one."""
    sized = _SIZED.fullmatch(document.path.name)
    if sized is not None and "/" not in str(document.path):
        size = re.sub(r"^([0-9]+)_([0-9]+b)", r"\1.\2", sized[3]).replace("_", "-")
        model = {"name": sized[2], "flavor": size, "purpose": sized[1] or "", "change": sized[4] or ""}
        return Document(document.path, "name", {"model": model})
    match = _NAME.fullmatch(document.path.name)
    if match is None or "/" in str(document.path):
        return None
    flavour = match[2].replace("_", "-")
    return Document(document.path, "name", {"model": {"name": match[1], "flavor": flavour}})


def recognises(document: Document) -> bool:
    """Whether the sections are torchtitan's."""
    model = document.data.get("model")
    if document.syntax == "name":
        return True
    has_model = isinstance(model, Mapping) and ("flavor" in model or "name" in model)
    return (
        has_model
        and any(section in document.data for section in _SECTIONS)
        and "trainer" not in document.data
    )


def read(document: Document) -> Reading:
    """Read a run.

    Raises:
        InputError: it is that of a fork which does not learn from plain text.
    """
    if fork := next((name for name in _FORKS if isinstance(document.data.get(name), Mapping)), ""):
        raise InputError(
            f"{document.path}: [{fork}] is of a fork of torchtitan, which is not read: "
            f"planner init --model PRESET --set training.objective={_FORKS[fork]}"
        )
    reader = Reader(document, "torchtitan")
    _model(reader)
    _adapters(reader)
    reader.add(
        "training.objective", _PURPOSES.get(reader.text("model.purpose")), "by the configuration's name"
    )
    reader.add_whole(MICRO_BATCH, "training.local_batch_size", "training.batch_size")
    reader.add_whole("training.global_batch", "training.global_batch_size")
    reader.add_whole("training.sequence_length", "training.seq_len")
    reader.add_whole("training.steps", "training.steps")
    each = reader.whole("processes.procs")  # of torchforge, which trains by torchtitan
    if each is not None:
        text = "processes.procs" + (" x hosts" if reader.has("processes.hosts") else "")
        reader.add(ACCELERATORS, each * (reader.whole("processes.hosts") or 1), text)
    if document.syntax == "arguments":
        reader.add_launcher()
    reader.add_optimizer("optimizer.name")
    _parallel(reader)
    mode = reader.text("activation_checkpoint.mode")
    if mode in ("none", "selective", "full"):
        reader.add("training.layout.recompute", mode, "activation_checkpoint.mode")
    elif mode:
        reader.warn(f"activation_checkpoint.mode {mode}: left to the planner")
    _precision(reader)
    parts = reader.get("compile.components")
    whole = not isinstance(parts, list) or not parts or "model" in parts  # the loss alone is a small part
    compiled = (reader.flag("compile.enable") and whole) or reader.flag("training.compile")
    source = reader.first("compile.enable", "training.compile")
    reader.add_stack(bool(compiled), source, "compile is not set for the model")
    if reader.text("training.dtype") == "bfloat16":
        reader.add("training.memory.master", "none", "training.dtype bfloat16")
    if reader.flag("optimizer.early_step_in_backward"):
        reader.add("training.memory.optimizer_in_backward", True, "optimizer.early_step_in_backward")
    if reader.flag("training.enable_cpu_offload") or reader.flag("experimental.enable_cpu_offload"):
        reader.add_offload("enable_cpu_offload", "optimizer", "weights")
    reader.seen |= {
        "job",
        "profiling",
        "metrics",
        "lr_scheduler",
        "checkpoint",
        "comm",
        "validation",
        "quantize",
    }
    reader.name_unknown(_WITHOUT_EFFECT, _INSIDE)
    return reader


def _model(reader: Reader) -> None:
    name, flavour = reader.text("model.name"), reader.text("model.flavor").lower()
    arguments = reader.get("model.args")
    if isinstance(arguments, Mapping) and "dim" in arguments:
        data = {size_key: arguments[key] for key, size_key in _ARGUMENTS.items() if key in arguments}
        data.setdefault("intermediate_size", _ffn(arguments))
        data.setdefault("vocab_size", 32000)
        reader.model = model_of_config(
            {"model_type": "llama", "tie_word_embeddings": False, **data}, str(reader.path)
        )
        return
    flavour = _ADAPTED.sub("", flavour)
    flavour = _FLAVOURS.get(flavour, flavour)
    spelt = [pattern.format(flavour) for pattern in (*_PRESETS.get(name, ()), "{}")]
    known = next((preset for preset in map(find_preset, spelt) if preset is not None), None)
    reader.hub_key = "model.name and model.flavor"
    reader.hub_name = known.name if known is not None else f"{name}-{reader.text('model.flavor')}"


def _adapters(reader: Reader) -> None:
    """LoRA, which a flavour (`671B_lora`) or a configuration (`llama3_8b_lora`) has in its name."""
    source = next(
        (key for key in ("model.flavor", "model.change") if _ADAPTED.search(reader.text(key).lower())), ""
    )
    if source:
        reader.add_adapter("lora", f"{source} {reader.text(source)}", None, "")
        reader.add("training.lora_rank", _RANK, "the rank that torchtitan takes", assumed=True)


def _ffn(arguments: Mapping[str, object]) -> int:
    """Width of the feed-forward network as torchtitan's Llama derives it."""
    dim, multiple, factor = (arguments.get(key) for key in ("dim", "multiple_of", "ffn_dim_multiplier"))
    width = int(2 * 4 * dim / 3) if isinstance(dim, int) else 0
    width = int(factor * width) if isinstance(factor, int | float) and factor else width
    step = multiple if isinstance(multiple, int) and multiple > 0 else 256
    return step * -(-width // step)


def _parallel(reader: Reader) -> None:
    layout = "training.layout."
    for degree in ("tensor", "pipeline", "context", "expert"):
        name = f"{degree}_parallel_degree"
        places = (f"parallelism.{name}", f"training.{name}", f"experimental.{name}")
        reader.add_whole(f"{layout}{degree}_parallel", *places)
    shards = reader.first("parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree",
                        "training.data_parallel_degree")  # fmt: skip
    replicas = reader.first(
        "parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"
    )
    if shards and (reader.number(shards) or 0) > 0:
        reader.add_whole("batch.shards", shards)
        if replicas:
            reader.add_whole("batch.replicas", replicas)
    if not shards or reader.number(shards) != 1:
        if replicas and (reader.whole(replicas) or 1) > 1:
            reader.warn_of_groups(replicas)
        policy = reader.text("parallelism.fsdp_reshard_after_forward")
        reader.add(f"{layout}zero_stage", 2 if policy == "never" else 3, shards or "sharded by default",
                   assumed=not shards)  # fmt: skip


def _precision(reader: Reader) -> None:
    converters = reader.get("model.converters")
    listed = " ".join(map(str, converters)) if isinstance(converters, list) else str(converters or "")
    if (
        "float8" in listed
        or "mx" in listed
        or any(reader.flag(f"{section}.enable_float8_linear") for section in ("float8", "training"))
        or reader.flag("training.enable_fp8_linear")
        or reader.text("training.fp8_linear")
    ):
        source = reader.first(
            "model.converters",
            "float8.enable_float8_linear",
            "training.enable_float8_linear",
            "training.enable_fp8_linear",
            "training.fp8_linear",
        )
        reader.add("training.precision", "fp8", source)
    elif named := next((bits for mark, bits in _CHANGES if mark in reader.text("model.change")), ""):
        reader.add("training.precision", named, f"by the configuration's name: {reader.text('model.change')}")
        if "pct_layers" in reader.text("model.change"):
            reader.warn(f"{reader.text('model.change')}: all layers are counted in that precision")
    else:
        word = reader.text("training.mixed_precision_param")
        precision = {"float32": "fp32", "bfloat16": "bf16"}.get(word, "bf16")
        reader.add("training.precision", precision, "training.mixed_precision_param", assumed=not word)
