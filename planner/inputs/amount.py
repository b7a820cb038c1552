"""How much is trained, and how many bytes it has: samples, tokens, epochs or steps as sequences that are read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from planner.inputs.faults import Fault, FaultError
from planner.inputs.post_training import longest_stated
from planner.inputs.resolved import Assumed, ResolvedModel

if TYPE_CHECKING:
    from planner.inputs.training_schema import Data, Training

_TWO_BYTE_VOCAB = 65_536


def total_samples(training: Training, data: Data, length: float, each: float, noted: list[Assumed]) -> int:
    """Return sequences of one run, noting how they follow from what was given; each holds `each` samples of the set."""
    _note_tokens(training, length, noted)
    if training.samples is not None:
        if each == 1.0:
            return training.samples
        count, how = _packed(training.samples, f"{training.samples:,} samples", each)
        samples, note = math.ceil(count), how
    elif training.steps is not None:
        samples = training.steps * training.global_batch
        note = f"{training.steps:,} steps x {training.global_batch:,} samples"
    elif training.tokens is not None:
        samples = math.ceil(training.tokens / length)
        note = f"{training.tokens:,} tokens / {length:,} tokens per sequence"
    else:
        assert training.epochs is not None
        rollouts = training.rollouts
        size, how = _set_samples(data, length if rollouts is None else rollouts.prompt_tokens.mean, each)
        note = f"{training.epochs:g} epochs x {how}"
        if rollouts is not None:  # the set holds prompts, the batch counts responses
            size *= rollouts.samples_per_prompt
            note += f" x {rollouts.samples_per_prompt} responses to each"
        elif data.samples is not None and length > 1.0:
            n_samples = round(size * length)
            noted.append(
                Assumed("data.tokens", str(n_samples), "tokens", "derived", f"at {length:,.0f} each")
            )
        samples = math.ceil(round(training.epochs * size, 6))
    noted.append(Assumed("training.samples", str(samples), "samples", "derived", note))
    return samples


def _note_tokens(training: Training, length: float, noted: list[Assumed]) -> None:
    """Note the tokens that follow from samples or steps where the context of the model is assumed as their length."""
    stated = training.sequence_length is not None or longest_stated(training) is not None
    samples = training.samples or (training.steps or 0) * training.global_batch
    if length > 1.0 and samples and not stated:
        note = f"{samples:,} samples at {length:,.0f} each"
        noted.append(Assumed("training.tokens", str(round(samples * length)), "tokens", "derived", note))


def _set_samples(data: Data, length: float, each: float) -> tuple[float, str]:
    """Return the samples in the set, or the sequences that they are packed into, and how they were found."""
    if data.samples is not None:
        return _packed(data.samples, f"{data.samples:,} samples", each)
    if data.tokens is not None and length > 1:
        return math.ceil(data.tokens / length), f"{data.tokens:,} tokens / {length:,}"
    if data.size is not None and data.sample_size is not None:
        how = f"{data.size:,} B / {data.sample_size:,} B per sample"
        return _packed(max(1, data.size // data.sample_size), how, each)
    text = "needs data.samples, or data.size with data.sample_size"
    raise FaultError(Fault(("training", "epochs"), text))


def _packed(samples: int, how: str, each: float) -> tuple[float, str]:
    """Sequences that hold so many samples each, and how they were found."""
    return (samples, how) if each == 1.0 else (samples / each, f"{how}, {each:.3g} packed into a sequence")


def as_stored(training: Training, each: float, length: float) -> tuple[float, float]:
    """Samples of the set and tokens that a sequence is stored as: an answer as its share of the prompt."""
    rollouts = training.rollouts
    if rollouts is None:
        return each, length
    return 1.0 / rollouts.samples_per_prompt, rollouts.prompt_tokens.mean / rollouts.samples_per_prompt


def bytes_per_sample(
    data: Data, model: ResolvedModel, length: float, noted: list[Assumed], each: float = 1.0
) -> float | None:
    """Return stored bytes per sample: as given, from the set, or from packed token ids; None unknown.

    Of sequences that hold `each` samples of the set (answers: a share of their prompt), those of a sequence.
    """
    if data.sample_size is not None:
        return data.sample_size * each
    if data.size is not None and data.samples is not None:
        value, note = data.size / data.samples * each, "data.size / data.samples"
    elif data.size is not None and data.tokens is not None and length > 1:
        value, note = data.size / data.tokens * length, "data.size / data.tokens x sequence length"
    elif model.family == "transformer":
        width = 2 if model.vocab is not None and model.vocab <= _TWO_BYTE_VOCAB else 4
        value, note = float(width * length), f"token ids packed in {width} bytes"
    else:
        return None
    noted.append(Assumed("data.sample_size", f"{value:.0f}", "bytes", "derived", note))
    return value


def data_bytes(
    data: Data,
    samples: int,
    runs: int,
    bytes_per_sample: float | None,
    noted: list[Assumed],
    each: float = 1.0,
    length: float = 1.0,
) -> int | None:
    """Return the bytes of the set; without its size, no more samples than all runs read (they may share).

    Sequences hold `each` samples of the set and `length` tokens.
    """
    if data.size is not None:
        return data.size
    if bytes_per_sample is None:
        return None
    if data.samples is not None:
        in_set, note = min(data.samples / each, samples * runs), "the set's samples x bytes per sample"
    elif data.tokens is not None and length > 1:
        in_set, note = min(data.tokens / length, samples * runs), "the set's sequences x bytes per sample"
    else:
        in_set, note = samples, "samples of one run x bytes per sample (no repeats)"
    noted.append(Assumed("data.size", str(round(in_set * bytes_per_sample)), "bytes", "derived", note))
    return round(in_set * bytes_per_sample)
