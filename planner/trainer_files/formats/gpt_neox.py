"""GPT-NeoX: YAML of a run, keys with dashes or underscores (github.com/EleutherAI/gpt-neox, configs/)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planner.errors import InputError
from planner.trainer_files.formats.common import ACCUMULATION, MICRO_BATCH, Reader
from planner.trainer_files.formats.sizes import NUMBERS, stated_model
from planner.trainer_files.model import Document, Reading

_SIZES = ("num_layers", "hidden_size", "num_attention_heads")
_GATED = ("swiglu", "geglu", "reglu", "bilinear", "glu")
_WITHOUT_EFFECT = (
    r".*lr.*|.*decay.*|.*path.*|.*file|.*_interval|.*_iters|.*iters|.*dropout|.*norm.*|.*init.*|.*fusion|rotary.*|pos_emb",
    r"save.*|load.*|data_.*|split|tokenizer.*|distributed_.*|warmup|log_.*|.*dir|wandb.*|use_wandb|tensorboard.*|steps_per.*",
    r"wall_clock.*|gradient_clipping|gpt_j.*|output_layer.*|bias_.*|use_.*|checkpoint_.*|partition_.*|synchronize.*|seed",
    r"launcher|deepspeed.*|hostfile|extra_save.*|scheduler|attention_config|make_vocab.*|num_workers|eval.*|master_.*",
)


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
    reader = Reader(replace(document, data=_plain(document)), "GPT-NeoX")
    kinds = str(reader.get("attention_config"))
    if "mamba" in kinds or "rwkv" in kinds:
        raise InputError(
            f"{document.path}: attention-config names layers without attention: give --model-config"
        )
    _layout(reader)
    gated = reader.text("mlp_type") == "llama" or reader.text("activation") in _GATED
    tied = not reader.flag("no_weight_tying")
    reader.model = stated_model(
        reader, "", gated=gated, tied=tied, learned_positions=reader.text("pos_emb") in ("", "learned"), vocab=None,
        split=reader.whole("model_parallel_size") or 1, kv_heads=reader.whole("num_kv_heads"), latent=False,
    )  # fmt: skip
    reader.add_whole(MICRO_BATCH, "train_micro_batch_size_per_gpu")
    reader.add_whole(ACCUMULATION, "gradient_accumulation_steps")
    reader.add_whole("training.global_batch", "train_batch_size")
    reader.add_whole("training.sequence_length", "seq_length")
    reader.add_whole("training.steps", "train_iters")
    _precision(reader)
    reader.add_optimizer("optimizer.type")
    reader.add("training.stack", "tuned", "Megatron-LM's fused kernels", assumed=True)
    reader.name_unknown((*_WITHOUT_EFFECT, *NUMBERS.values()))
    return reader


def _plain(document: Document) -> Mapping[str, object]:
    """The keys with underscores, and the width of the feed-forward network as Megatron-LM calls it."""
    data = {str(key).replace("-", "_"): value for key, value in document.data.items()}
    hidden, width = data.get("hidden_size"), data.get("intermediate_size")
    if width is None and data.get("mlp_type") == "llama" and type(hidden) is int:
        width = 256 * -(-int(8 * hidden / 3) // 256)
    if width is not None:
        data["ffn_hidden_size"] = width
    return data


def _layout(reader: Reader) -> None:
    layout = "training.layout."
    reader.add_whole(f"{layout}tensor_parallel", "model_parallel_size")
    reader.add_whole(f"{layout}pipeline_parallel", "pipe_parallel_size")
    reader.add_whole(f"{layout}expert_parallel", "moe_expert_parallel_size")
    if reader.flag("sequence_parallel") and f"{layout}tensor_parallel" in reader.facts:
        reader.add(f"{layout}sequence_parallel", True, "sequence_parallel")
    reader.add_stage("zero_optimization.stage")
    if reader.flag("checkpoint_activations"):
        reader.add(f"{layout}recompute", "full", "checkpoint_activations")
    else:
        reader.add(f"{layout}recompute", "none", "checkpoint_activations is off by default", assumed=True)


def _precision(reader: Reader) -> None:
    if reader.text("te_fp8_format"):
        reader.add("training.precision", "fp8", "te_fp8_format")
        reader.seen.update(("precision", "fp16", "bf16"))  # what it computes in beside fp8
        return
    word = reader.text("precision") or reader.text("fp16.type")
    precision = {"bfloat16": "bf16", "fp16": "fp16", "fp32": "fp32"}.get(word)
    if precision is not None:
        reader.add("training.precision", precision, "precision" if reader.has("precision") else "fp16.type")
    elif reader.flag("bf16.enabled"):
        reader.add("training.precision", "bf16", "bf16.enabled")
    elif reader.flag("fp16.enabled"):
        reader.add("training.precision", "fp16", "fp16.enabled")
    else:
        reader.add("training.precision", "fp32", "neither fp16 nor bf16 is enabled", assumed=True)
