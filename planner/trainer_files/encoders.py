"""Encoders of images or sound that stay frozen while the language model learns: networks of their own in the draft."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.inputs.model_config.encoders import preset_encoder
from planner.inputs.presets import find_preset
from planner.trainer_files.methods import generates, objective_of
from planner.trainer_files.model import FROZEN_ENCODER, Fact

_ONE_NETWORK = {
    **{f"training.layout.{name}_parallel": f"{name} parallelism" for name in ("pipeline", "context")},
    **{f"training.memory.offload_{name}": "offloading" for name in ("optimizer", "weights", "activations")},
}
_COUNTED = ("params", "active_params")
_OF_ANSWERS = ("orpo", "reward")  # without a reference; a pair of an embedder has an image in one of the two
_IN_PARAMS = "which is in params"  # in the notes of presets


def settle_encoder(
    draft: dict[str, Fact], facts: Mapping[str, Fact], encoder: Mapping[str, Any] | None, warnings: list[str]
) -> None:
    """Give a frozen encoder as a part of the model, of which only the forward pass counts.

    Adapters of the language model leave it frozen too. Where several networks are not modelled together, it counts as
    part of the language model.

    Args:
        draft: facts of the workload, method, layout and objective among them; changed in place.
        facts: what the files state.
        encoder: the one in the parameters of a configuration; None: the preset's, if any.
        warnings: what a workload cannot say is added.
    """
    frozen = facts.get(FROZEN_ENCODER)
    if frozen is None:
        return
    name = draft.get("model.preset")
    preset = find_preset(name.value) if name is not None else None
    counted = preset is None or _IN_PARAMS in preset.note
    if preset is not None:
        encoder = preset_encoder(preset.name)
    if encoder is None:
        if preset is not None and counted:
            warnings.append(f"{frozen.where}: the sizes of the encoder are not known: {_uncounted(draft)}")
        return
    reason = next((text for key, text in _ONE_NETWORK.items() if _is_on(draft.get(key))), None)
    reason = "generating responses" if generates(draft) else reason
    if reason is not None:
        warnings.append(f"{frozen.where}: {_uncounted(draft)}: {reason} is modelled for one network")
        return
    _part_the_model(draft, encoder)
    if counted:
        _take_out(draft, encoder["params"], preset.values if preset is not None else {})
    trains = "none" if frozen.value is True else str(frozen.value)
    _put(draft, 1, "trainable", trains, frozen.where, frozen.assumed)
    times, who = _readings(draft)
    unit = "packed sequence" if _is_on(draft.get("training.packing")) else "sample"
    where = f"one image, tile or recording per {unit}{who}; 0 for text alone"
    _put(draft, 1, "per_sample", times, where, assumed=True)


def _uncounted(draft: Mapping[str, Fact]) -> str:
    """What is wrong where an encoder is no network of its own."""
    method = draft.get("training.method")
    if method is not None and method.value != "full":
        return "the work of the frozen encoder on its own positions is not counted"
    return "the frozen encoder counts as trained, with gradients and states of the optimizer"


def _readings(draft: Mapping[str, Fact]) -> tuple[int, str]:
    """How often the encoder reads an image of a sample, and for whom: each answer about it, and the reference too."""
    objective, reference = objective_of(draft), draft.get("training.reference")
    if not objective.reference and objective.name not in _OF_ANSWERS:
        return 1, ""
    answers = objective.sequences + objective.mismatched
    if not objective.reference or (reference is not None and reference.value in ("none", "precomputed")):
        return answers, f" x {answers} answers"
    return 2 * answers, f" x {answers} answers x 2 (policy and reference)"


def _part_the_model(draft: dict[str, Fact], encoder: Mapping[str, Any]) -> None:
    """Move the model to the first of two parts, the second of which is its encoder."""
    own = {key: draft.pop(key) for key in list(draft) if key.startswith("model.")}
    for key, fact in own.items():
        _put(draft, 0, key.partition(".")[2], fact.value, fact.where, fact.assumed)
    where = {
        "family": "its encoder",
        "tokens": "positions of an image (672 pixels a side where any size goes), tile or recording",
    }
    for key, value in encoder.items():
        _put(draft, 1, key, value, where.get(key, ""))


def _take_out(draft: dict[str, Fact], params: int, preset: Mapping[str, Any]) -> None:
    """Count the language model without an encoder that its parameters contain."""
    for key in _COUNTED:
        stated = draft.get(f"model.parts.0.{key}")
        whole = stated.value if stated is not None else preset.get(key)
        if whole is not None:
            _put(draft, 0, key, int(whole) - params, "without the encoder")


def _is_on(fact: Fact | None) -> bool:
    return fact is not None and (fact.value is True or (type(fact.value) is int and fact.value > 1))


def _put(draft: dict[str, Fact], part: int, key: str, value: Any, where: str, assumed: bool = False) -> None:
    name = f"model.parts.{part}.{key}"
    draft[name] = Fact(name, value, where, assumed)
