"""fairseq: the Hydra YAML of a run, of text and of speech (https://fairseq.readthedocs.io/en/latest/hydra_integration.html)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from planner.trainer_files.formats.common import ACCELERATORS, ACCUMULATION, MICRO_BATCH, Reader
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_WITHOUT_EFFECT = (
    r"common.*|checkpoint|distributed_training|task|criterion|dataset|optimiz.*|lr_scheduler|bpe|tokenizer|hydra|eval.*",
    r"generation|interactive|ema|scoring|decoding|fsdp_.*|job_logging.*|defaults",
)
# of a model's `_name`, the checkpoints with its sizes by width and layers of the encoder; the first is the default
_SIZES = {
    "roberta": {(768, 12): "roberta-base", (1024, 24): "roberta-large"},
    "wav2vec2": {(768, 12): "wav2vec2-base", (1024, 24): "wav2vec2-large"},
    "hubert": {(768, 12): "hubert-base", (1024, 24): "hubert-large"},
}
_SPEECH = re.compile(r"audio_.*|hubert_.*")  # tasks
# A sample of the presets of speech, values at 16 kHz; fairseq counts what a batch holds in such values.
_VALUES = 250_000


def recognises(document: Document) -> bool:
    """Whether the sections are those of fairseq-hydra-train."""
    data = document.data
    task, model = data.get("task"), data.get("model")
    named = isinstance(task, Mapping) and "_name" in task and isinstance(model, Mapping) and "_name" in model
    return named and isinstance(data.get("optimization"), Mapping)


def read(document: Document) -> Reading:
    """Read a run."""
    reader = Reader(document, "fairseq")
    name = reader.text("model._name")
    speech = _SPEECH.fullmatch(reader.text("task._name")) is not None
    _model(reader, name)
    reader.add_whole(ACCELERATORS, "distributed_training.distributed_world_size")
    reader.add_whole("training.steps", "optimization.max_update")
    times = _accumulation(reader)
    if times:
        reader.add(ACCUMULATION, times, "optimization.update_freq")
    if speech:
        _sound(reader, times)
    else:
        _text(reader)
    precision = next((word for word in ("bf16", "fp16") if reader.flag(f"common.{word}")), "fp32")
    source = "neither common.fp16 nor bf16" if precision == "fp32" else f"common.{precision}"
    reader.add("training.precision", precision, source, assumed=precision == "fp32")
    reader.add_optimizer("optimizer._name")
    shards = reader.text("distributed_training.ddp_backend") == "fully_sharded"
    text = "distributed_training.ddp_backend fully_sharded" if shards else "plain data parallelism"
    reader.add("training.layout.zero_stage", 3 if shards else 0, text, assumed=not shards)
    again = reader.flag("model.checkpoint_activations")
    text = "model.checkpoint_activations" if again else "no model.checkpoint_activations"
    reader.add("training.layout.recompute", "full" if again else "none", text, assumed=not again)
    reader.add("training.stack", "eager", "fairseq's own modules", assumed=True)
    tunes = name == "roberta" and reader.text("task._name") != "masked_lm"
    reader.add(
        "training.objective", "sft" if tunes else "pretrain", f"task._name {reader.text('task._name')}"
    )
    reader.name_unknown(_WITHOUT_EFFECT)
    return reader


def _model(reader: Reader, name: str) -> None:
    reader.hub_key = "model._name"
    sizes = _SIZES.get(name)
    if sizes is None:
        path = next((key for key in ("model.w2v_path", "model.model_path") if reader.text(key)), "")
        reader.hub_key, reader.hub_name = path or "model._name", reader.text(path)
        if not reader.hub_name or reader.hub_name == "???":
            reader.hub_name = ""
            reader.warn(f"model._name {name}: what it is built on is not in the file")
        return
    usual = next(iter(sizes))
    size = (
        reader.whole("model.encoder_embed_dim") or usual[0],
        reader.whole("model.encoder_layers") or usual[1],
    )
    kind = reader.text("model.layer_type") or "transformer"
    known = size in sizes and kind == "transformer"
    reader.hub_name = sizes[size] if known else f"{name}-{kind}-{size[1]}x{size[0]}"


def _accumulation(keys: Lookup) -> int:
    value = keys.get("optimization.update_freq")
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, int) and not isinstance(first, bool) and first > 0 else 0


def _text(reader: Reader) -> None:
    length = reader.whole("task.tokens_per_sample") or reader.whole("model.max_positions")
    reader.add("training.sequence_length", length, "task.tokens_per_sample")
    samples, most = reader.whole("dataset.batch_size"), reader.whole("dataset.max_tokens")
    if samples:
        reader.add(MICRO_BATCH, samples, "dataset.batch_size")
    elif most and length:
        reader.add(MICRO_BATCH, max(1, most // length), f"dataset.max_tokens / {length} tokens")


def _sound(reader: Reader, times: int) -> None:
    """A batch of sound, in samples of 15.6 s: `max_tokens` counts values on each accelerator."""
    most, world = (
        reader.whole("dataset.max_tokens"),
        reader.whole("distributed_training.distributed_world_size"),
    )
    if most:
        each = max(1, round(most * (times or 1) / _VALUES))
        text = f"dataset.max_tokens x update_freq / {_VALUES:,} values of a sample, rounded, x accelerators"
        reader.add("training.global_batch", each * (world or 1), text, assumed=world is None)
    else:
        reader.add_whole(MICRO_BATCH, "dataset.batch_size")
