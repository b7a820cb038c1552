"""GPT-NeoX: YAML of a run, keys with dashes or underscores (github.com/EleutherAI/gpt-neox, configs/)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.errors import InputError
from planner.trainer_files.formats.common import (
    ACCUMULATION,
    MICRO_BATCH,
    add_optimizer,
    add_stage,
    add_whole,
)
from planner.trainer_files.formats.sizes import NUMBERS, stated_model
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_SIZES = ("num_layers", "hidden_size", "num_attention_heads")
_GATED = ("swiglu", "geglu", "reglu", "bilinear", "glu")
_WITHOUT_EFFECT = (
    r".*lr.*|.*decay.*|.*path.*|.*file|.*_interval|.*_iters|.*iters|.*dropout|.*norm.*|.*init.*|.*fusion|rotary.*|pos_emb",
    r"save.*|load.*|data_.*|split|tokenizer.*|distributed_.*|warmup|log_.*|.*dir|wandb.*|use_wandb|tensorboard.*|steps_per.*",
    r"wall_clock.*|gradient_clipping|gpt_j.*|output_layer.*|bias_.*|use_.*|checkpoint_.*|partition_.*|synchronize.*|seed",
    r"launcher|deepspeed.*|hostfile|extra_save.*|scheduler|attention_config|make_vocab.*|num_workers|eval.*|master_.*",
)  # fmt: skip


def recognises(document: Document) -> bool:
    """Whether the keys are GPT-NeoX's."""
    data = _plain(document)
    parallel = "pipe_parallel_size" in data or "pos_emb" in data or "train_micro_batch_size_per_gpu" in data
    return document.syntax in ("yaml", "json") and all(size in data for size in _SIZES) and parallel


def read(document: Document) -> Reading:
    """Read a run.

    Raises:
        InputError: its layers mix tokens in another way than by attention; says what to do.
    """
    keys, reading = Lookup(replace(document, data=_plain(document))), Reading(document.path, "GPT-NeoX")
    kinds = str(keys.get("attention_config"))
    if "mamba" in kinds or "rwkv" in kinds:
        raise InputError(
            f"{document.path}: attention-config names layers without attention: give --model-config"
        )
    _layout(reading, keys)
    gated = keys.text("mlp_type") == "llama" or keys.text("activation") in _GATED
    tied = not keys.flag("no_weight_tying")
    reading.model = stated_model(
        keys, "", gated=gated, tied=tied, learned_positions=keys.text("pos_emb") in ("", "learned"), vocab=None,
        split=keys.whole("model_parallel_size") or 1, kv_heads=keys.whole("num_kv_heads"), latent=False,
    )  # fmt: skip
    add_whole(reading, keys, MICRO_BATCH, "train_micro_batch_size_per_gpu")
    add_whole(reading, keys, ACCUMULATION, "gradient_accumulation_steps")
    add_whole(reading, keys, "training.global_batch", "train_batch_size")
    add_whole(reading, keys, "training.sequence_length", "seq_length")
    add_whole(reading, keys, "training.steps", "train_iters")
    _precision(reading, keys)
    add_optimizer(reading, keys, "optimizer.type")
    reading.add("training.stack", "tuned", "Megatron-LM's fused kernels", assumed=True)
    reading.unknown = keys.unknown((*_WITHOUT_EFFECT, *NUMBERS.values()))
    return reading


def _plain(document: Document) -> Mapping[str, object]:
    """The keys with underscores, and the width of the feed-forward network as Megatron-LM calls it."""
    data = {str(key).replace("-", "_"): value for key, value in document.data.items()}
    hidden, width = data.get("hidden_size"), data.get("intermediate_size")
    if width is None and data.get("mlp_type") == "llama" and type(hidden) is int:
        width = 256 * -(-int(8 * hidden / 3) // 256)
    if width is not None:
        data["ffn_hidden_size"] = width
    return data


def _layout(reading: Reading, keys: Lookup) -> None:
    layout = "training.layout."
    add_whole(reading, keys, f"{layout}tensor_parallel", "model_parallel_size")
    add_whole(reading, keys, f"{layout}pipeline_parallel", "pipe_parallel_size")
    add_whole(reading, keys, f"{layout}expert_parallel", "moe_expert_parallel_size")
    if keys.flag("sequence_parallel") and f"{layout}tensor_parallel" in reading.facts:
        reading.add(f"{layout}sequence_parallel", True, "sequence_parallel")
    add_stage(reading, keys, "zero_optimization.stage")
    if keys.flag("checkpoint_activations"):
        reading.add(f"{layout}recompute", "full", "checkpoint_activations")
    else:
        reading.add(f"{layout}recompute", "none", "checkpoint_activations is off by default", assumed=True)


def _precision(reading: Reading, keys: Lookup) -> None:
    if keys.text("te_fp8_format"):
        reading.add("training.precision", "fp8", "te_fp8_format")
        keys.seen.update(("precision", "fp16", "bf16"))  # what it computes in beside fp8
        return
    word = keys.text("precision") or keys.text("fp16.type")
    precision = {"bfloat16": "bf16", "fp16": "fp16", "fp32": "fp32"}.get(word)
    if precision is not None:
        reading.add("training.precision", precision, "precision" if keys.has("precision") else "fp16.type")
    elif keys.flag("bf16.enabled"):
        reading.add("training.precision", "bf16", "bf16.enabled")
    elif keys.flag("fp16.enabled"):
        reading.add("training.precision", "fp16", "fp16.enabled")
    else:
        reading.add("training.precision", "fp32", "neither fp16 nor bf16 is enabled", assumed=True)
