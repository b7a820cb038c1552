"""A parallel layout written by hand: `tp=8,pp=2,micro_batch=1,zero=1,recompute=full`."""

from __future__ import annotations

import difflib
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.performance.spec import LayoutPin

if TYPE_CHECKING:
    from planner.performance.spec import ModelSpec, TrainingSpec

SHORT = {
    "tp": "tensor_parallel",
    "pp": "pipeline_parallel",
    "cp": "context_parallel",
    "ep": "expert_parallel",
    "sp": "sequence_parallel",
    "zero": "zero_stage",
    "mb": "micro_batch",
}
_WORDS = {"recompute": ("none", "selective", "full")}
_SWITCHES = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def parse_layout(text: str) -> LayoutPin:
    """Read the layout of `--layout`; parts that are not named stay the planner's choice.

    Raises:
        InputError: an unknown part or value; names it and what it may be.
    """
    names = {field.name for field in fields(LayoutPin)}
    values: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, word = (piece.strip() for piece in part.partition("="))
        name = SHORT.get(key, key)
        if name not in names:
            hint = difflib.get_close_matches(key, [*SHORT, *names], n=1)
            raise InputError(
                f"--layout: no part is called {key!r}"
                + (f" (did you mean {hint[0]}?)" if hint else f"; there are {', '.join(sorted(names))}")
            )
        if not equals or not word:
            raise InputError(f"--layout: {part!r} needs a value, like {key}=1")
        if name in values:
            raise InputError(f"--layout: {name} is given twice")
        values[name] = _value(name, word)
    return LayoutPin(**values)


def _value(name: str, word: str) -> int | str | bool:
    if name == "sequence_parallel":
        if word.lower() not in _SWITCHES:
            raise InputError(f"--layout: {name} must be true or false, not {word!r}")
        return _SWITCHES[word.lower()]
    if name in _WORDS:
        if word not in _WORDS[name]:
            raise InputError(f"--layout: {name} must be one of {', '.join(_WORDS[name])}, not {word!r}")
        return word
    if not (word.isascii() and word.isdigit()):
        raise InputError(f"--layout: {name} must be a whole number, not {word!r}")
    number = int(word)
    if name == "zero_stage" and number > 3:
        raise InputError(f"--layout: zero_stage is 0, 1, 2 or 3, not {number}")
    if name != "zero_stage" and number < 1:
        raise InputError(f"--layout: {name} must be at least 1")
    return number


def merge_pins(base: LayoutPin, over: LayoutPin | None) -> LayoutPin:
    """Return `base` (the workload's pins) overridden by those of `over`."""
    if over is None:
        return base
    return replace(base, **{name: value for name, value in asdict(over).items() if value is not None})


def pinned(pin: LayoutPin) -> dict[str, Any]:
    """Return the parts that are fixed, by name."""
    return {name: value for name, value in asdict(pin).items() if value is not None}


def pin_text(pin: LayoutPin) -> str:
    """Write fixed parts the way `--layout` reads them."""
    short = {long: word for word, long in SHORT.items() if word != "mb"}
    return ",".join(f"{short.get(name, name)}={value}" for name, value in pinned(pin).items())


def batch_words(training: TrainingSpec) -> str:
    """What replicas divide: the global batch, or the responses of one update of a step."""
    if training.update_batch == training.global_batch:
        return f"global batch of {training.global_batch:,}"
    return f"{training.update_batch:,} responses of an update (training.rollouts.update_batch)"


def division_fault(
    pin: LayoutPin, model: ModelSpec, training: TrainingSpec, accelerators: int, where: str
) -> str:
    """Say why fixed parts of a layout cannot divide the model, the cluster or the batch; empty where they can.

    Args:
        pin: the fixed parts.
        model: gives heads and layers.
        training: gives the global batch.
        accelerators: in the whole cluster.
        where: the cluster in words.
    """
    tp, pp, cp = pin.tensor_parallel or 1, pin.pipeline_parallel or 1, pin.context_parallel or 1
    faults = []
    if model.heads and model.heads % tp:
        faults.append(f"tp={tp} does not divide the {model.heads} attention heads")
    if model.layers and pp > model.layers:
        faults.append(f"pp={pp} is more than the {model.layers} layers")
    shard = tp * pp * cp
    whole = None not in (pin.tensor_parallel, pin.pipeline_parallel, pin.context_parallel)
    if accelerators % shard:
        faults.append(f"tp x pp x cp = {shard} does not divide the {accelerators:,} accelerators of {where}")
    elif whole or shard == accelerators:
        replicas, batch = accelerators // shard, training.update_batch
        if batch % replicas:
            faults.append(f"{replicas} data-parallel replicas do not divide the {batch_words(training)}")
        elif pin.micro_batch and (batch // replicas) % pin.micro_batch:
            each = f"{batch // replicas:,} samples of a replica"
            faults.append(f"micro_batch={pin.micro_batch} does not divide the {each}")
    return "layout: " + "; ".join(faults) if faults else ""
