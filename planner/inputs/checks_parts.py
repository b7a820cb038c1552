"""Rules on models given by parts, on models of which only a part learns, on what is started and what is owned."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.inputs.faults import Fault
from planner.inputs.models import main_network, merge_model, networks
from planner.inputs.post_training import ADAPTED, load_objectives
from planner.inputs.presets import find_preset

if TYPE_CHECKING:
    from planner.inputs.faults import Path
    from planner.inputs.schema import Workload
    from planner.inputs.training_schema import Network, Part

_COMMITMENTS = ("reserved", "savings_plan", "cud", "capacity_block", "subscription", "dedicated", "owned")
_VARIABLE = r"(?a)[A-Za-z_][A-Za-z0-9_]*"
_OFFLOADS = ("offload_optimizer", "offload_weights", "offload_activations")


def _values(network: Network) -> dict[str, object] | None:
    """The sizes of a network, None where its preset is not known."""
    if network.preset is not None and find_preset(network.preset) is None:
        return None
    return merge_model(network)[0]


_ONCE = (
    "it runs once for each sample; if it runs for each of n views or frames, count those as samples "
    "(n times the samples and global_batch, per_sample of the others divided by n)"
)


def part_faults(w: Workload) -> Iterator[Fault]:
    """What a list of parts needs, and what has no meaning in it."""
    model = w.model
    if model is None or model.parts is None:
        return
    if not model.parts:
        yield Fault(("model", "parts"), "is an empty list: give each network, or name a preset instead")
        return
    for name in model.model_fields_set - {"parts"}:
        if getattr(model, name) is not None:
            text = f"parts state the sizes: move {name!r} into the part that it belongs to"
            yield Fault(("model", name), text, at_key=True)
    first, *others = model.parts
    for name in ("tokens", "per_sample"):
        if name in first.model_fields_set:
            text = "the first part is what 'training' describes: "
            remedy = "write training.sequence_length" if name == "tokens" else _ONCE
            yield Fault(("model", "parts", 0, name), text + remedy, at_key=True)
    main = _values(first)
    for index, part in enumerate(others, 1):
        yield from _tokens_of_part(("model", "parts", index), part, main)


def _tokens_of_part(place: Path, part: Part, main: dict[str, object] | None) -> Iterator[Fault]:
    values = _values(part)
    if values is None or main is None or values.get("family") is None:
        return
    if not part.per_sample and part.trainable != "none":
        yield Fault((*place, "per_sample"), "a network that never runs cannot learn: add 'trainable: none'")
    text = values["family"] == "transformer"
    if part.tokens is not None and not text:
        fault = f"family '{values['family']}' has no tokens: give its FLOPs per run, and 'per_sample'"
        yield Fault((*place, "tokens"), fault, at_key=True)
    if part.tokens is None and text and main.get("family") != "transformer":
        yield Fault(place, "needs 'tokens': the first part has no sequences to take them from", at_key=True)


def learning_faults(w: Workload) -> Iterator[Fault]:
    """What learns of each network."""
    if w.model is None:
        return
    adapted = w.training is not None and w.training.method in ADAPTED
    for place, network in networks(w.model):
        if network.last_layers is not None:
            yield from _last_layers(place, network)
    main = main_network(w.model)
    main_place: Path = ("model", "parts", 0) if w.model.parts else ("model",)
    if adapted and (main.trainable != "all" or main.last_layers is not None):
        name = "trainable" if main.trainable != "all" else "last_layers"
        assert w.training is not None
        yield Fault(
            (*main_place, name),
            f"method {w.training.method} freezes this network and trains adapters: remove one of the two",
        )
    if not adapted and w.kind != "inference" and all(n.trainable == "none" for _, n in networks(w.model)):
        yield Fault((*main_place, "trainable"), "nothing learns: write all, head or through for what does")


def _last_layers(place: Path, network: Network) -> Iterator[Fault]:
    at, values = (*place, "last_layers"), _values(network) or {}
    if network.trainable != "all":
        text = f"contradicts 'trainable: {network.trainable}': remove one of the two"
        yield Fault(at, text, at_key=True)
    if values.get("family", "transformer") != "transformer":
        text = f"the layers of family '{values['family']}' are not known: list the frozen part as a separate part"
        yield Fault(at, text, at_key=True)
    layers = values.get("layers")
    if isinstance(layers, int) and network.last_layers is not None and network.last_layers >= layers:
        yield Fault(at, f"the network has {layers} layers: give fewer, or remove it to train them all")


def several_networks_faults(w: Workload) -> Iterator[Fault]:
    """What is not modelled where more than one network runs, the frozen layers of one included."""
    if w.model is None:
        return
    several = len(w.model.parts or ()) > 1 or main_network(w.model).last_layers is not None
    if not several:
        return
    if w.kind == "inference":
        yield Fault(("model",), "is answered by one network: name the one that generates", at_key=True)
    if w.training is None:
        return
    if w.training.layout != "auto":
        for name in ("pipeline_parallel", "context_parallel"):
            if (getattr(w.training.layout, name) or 1) > 1:
                text = "several networks run without pipeline and context parallelism: remove it"
                yield Fault(("training", "layout", name), text, at_key=True)
    if load_objectives()[w.training.objective].rollouts:
        text = f"{w.training.objective} is modelled for one network: give the language model alone"
        yield Fault(("training", "objective"), text)
    memory = w.training.memory
    for name in _OFFLOADS if memory is not None else ():
        if getattr(memory, name):
            yield Fault(("training", "memory", name), "is modelled for one network: remove it", at_key=True)


def run_faults(w: Workload) -> Iterator[Fault]:
    """A command that is not words, names of variables that no shell takes, and secrets with a value."""
    try:
        shlex.split(w.run.command or "")
    except ValueError as error:
        yield Fault(("run", "command"), f"cannot be split into words: {error}".lower())
    for name in w.run.env:
        if not re.fullmatch(_VARIABLE, name):
            text = "no name of an environment variable: letters, digits and _, not starting with a digit"
            yield Fault(("run", "env", name), text, at_key=True)
        if name in w.run.secrets:
            yield Fault(("run", "env", name), "is a secret: leave its value out of the file", at_key=True)


def commitment_faults(w: Workload) -> Iterator[Fault]:
    """Ways to buy that are no commitment, among the commitments."""
    for index, owned in enumerate(w.commitments):
        if not owned.purchase_option.startswith(_COMMITMENTS):
            text = f"'{owned.purchase_option}' is not a commitment; write reserved_1y, cud_3y, ..."
            yield Fault(("commitments", index, "purchase_option"), text)


RULES = (
    (("run",), run_faults),
    (("commitments",), commitment_faults),
    (("model",), part_faults),
    (("kind", "model", "training"), learning_faults),
    (("kind", "model", "training"), several_networks_faults),
)
