"""fairseq: the Hydra YAML of a run, of text and of speech (https://fairseq.readthedocs.io/en/latest/hydra_integration.html)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from planner.trainer_files.formats.common import (
    ACCELERATORS,
    ACCUMULATION,
    MICRO_BATCH,
    add_optimizer,
    add_whole,
)
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_WITHOUT_EFFECT = (
    r"common.*|checkpoint|distributed_training|task|criterion|dataset|optimiz.*|lr_scheduler|bpe|tokenizer|hydra|eval.*",
    r"generation|interactive|ema|scoring|decoding|fsdp_.*|job_logging.*|defaults",
)  # fmt: skip
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
    keys, reading = Lookup(document), Reading(document.path, "fairseq")
    name = keys.text("model._name")
    speech = _SPEECH.fullmatch(keys.text("task._name")) is not None
    _model(reading, keys, name)
    add_whole(reading, keys, ACCELERATORS, "distributed_training.distributed_world_size")
    add_whole(reading, keys, "training.steps", "optimization.max_update")
    times = _accumulation(keys)
    if times:
        reading.add(ACCUMULATION, times, "optimization.update_freq")
    if speech:
        _sound(reading, keys, times)
    else:
        _text(reading, keys)
    precision = next((word for word in ("bf16", "fp16") if keys.flag(f"common.{word}")), "fp32")
    source = "neither common.fp16 nor bf16" if precision == "fp32" else f"common.{precision}"
    reading.add("training.precision", precision, source, assumed=precision == "fp32")
    add_optimizer(reading, keys, "optimizer._name")
    shards = keys.text("distributed_training.ddp_backend") == "fully_sharded"
    text = "distributed_training.ddp_backend fully_sharded" if shards else "plain data parallelism"
    reading.add("training.layout.zero_stage", 3 if shards else 0, text, assumed=not shards)
    again = keys.flag("model.checkpoint_activations")
    text = "model.checkpoint_activations" if again else "no model.checkpoint_activations"
    reading.add("training.layout.recompute", "full" if again else "none", text, assumed=not again)
    reading.add("training.stack", "eager", "fairseq's own modules", assumed=True)
    tunes = name == "roberta" and keys.text("task._name") != "masked_lm"
    reading.add("training.objective", "sft" if tunes else "pretrain", f"task._name {keys.text('task._name')}")
    reading.unknown = keys.unknown(_WITHOUT_EFFECT)
    return reading


def _model(reading: Reading, keys: Lookup, name: str) -> None:
    reading.hub_key = "model._name"
    sizes = _SIZES.get(name)
    if sizes is None:
        path = next((key for key in ("model.w2v_path", "model.model_path") if keys.text(key)), "")
        reading.hub_key, reading.hub_name = path or "model._name", keys.text(path) if path else ""
        if not reading.hub_name or reading.hub_name == "???":
            reading.hub_name = ""
            reading.warn(f"model._name {name}: what it is built on is not in the file")
        return
    usual = next(iter(sizes))
    size = (keys.whole("model.encoder_embed_dim") or usual[0], keys.whole("model.encoder_layers") or usual[1])
    kind = keys.text("model.layer_type") or "transformer"
    known = size in sizes and kind == "transformer"
    reading.hub_name = sizes[size] if known else f"{name}-{kind}-{size[1]}x{size[0]}"


def _accumulation(keys: Lookup) -> int:
    value = keys.get("optimization.update_freq")
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, int) and not isinstance(first, bool) and first > 0 else 0


def _text(reading: Reading, keys: Lookup) -> None:
    length = keys.whole("task.tokens_per_sample") or keys.whole("model.max_positions")
    reading.add("training.sequence_length", length, "task.tokens_per_sample")
    samples, most = keys.whole("dataset.batch_size"), keys.whole("dataset.max_tokens")
    if samples:
        reading.add(MICRO_BATCH, samples, "dataset.batch_size")
    elif most and length:
        reading.add(MICRO_BATCH, max(1, most // length), f"dataset.max_tokens / {length} tokens")


def _sound(reading: Reading, keys: Lookup, times: int) -> None:
    """A batch of sound, in samples of 15.6 s: `max_tokens` counts values on each accelerator."""
    most, world = keys.whole("dataset.max_tokens"), keys.whole("distributed_training.distributed_world_size")
    if most:
        each = max(1, round(most * (times or 1) / _VALUES))
        text = f"dataset.max_tokens x update_freq / {_VALUES:,} values of a sample, rounded, x accelerators"
        reading.add("training.global_batch", each * (world or 1), text, assumed=world is None)
    else:
        add_whole(reading, keys, MICRO_BATCH, "dataset.batch_size")
