"""Rules that join several fields of a workload. Each yields faults with paths; none stops at the first.

A rule names the sections it needs; a caller that knows some sections to be invalid passes them, and rules
that need those are left out: so one wrong section does not hide the faults of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, NamedTuple

from planner.inputs.checks_parts import RULES as PART_RULES
from planner.inputs.checks_post_training import RULES as POST_TRAINING_RULES
from planner.inputs.embeddings import RULES as TABLE_RULES
from planner.inputs.faults import Fault, near
from planner.inputs.models import has_no, main_network, merge_model, missing_fields, networks
from planner.inputs.phases import RULES as PHASE_RULES
from planner.inputs.presets import find_preset, preset_in_few_bits, preset_names, why_not_modelled

if TYPE_CHECKING:
    from planner.inputs.faults import Path
    from planner.inputs.schema import Workload
    from planner.inputs.training_schema import Network

Check = Callable[["Workload"], Iterator[Fault]]

_LENGTHS = ("tokens", "samples", "epochs", "steps")
_MIN_DATA_BYTES = 10_000


class _Rule(NamedTuple):
    needs: frozenset[str]
    check: Check


_RULES: list[_Rule] = []


def _rule(*needs: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        _RULES.append(_Rule(frozenset(needs), check))
        return check

    return register


_RULES += [
    _Rule(frozenset(needs), check)
    for needs, check in (*PART_RULES, *PHASE_RULES, *POST_TRAINING_RULES, *TABLE_RULES)
]


def find_faults(workload: Workload, invalid: Collection[str] = ()) -> list[Fault]:
    """Return all faults of `workload`, leaving out rules that need one of the sections named `invalid`."""
    bad = frozenset(invalid)
    return [fault for rule in _RULES if not rule.needs & bad for fault in rule.check(workload)]


@_rule("kind", "model", "task", "training")
def _what_is_trained(w: Workload) -> Iterator[Fault]:
    if w.task is not None:
        for name in ("model", "training"):
            if getattr(w, name) is not None:
                yield Fault((name,), f"is chosen by 'task': remove {name!r}, or remove 'task'", at_key=True)
        return
    if w.model is None:
        yield Fault(
            (), "'model' is missing: name a preset or give sizes (or use 'task' when you know only your data)"
        )
    if w.training is None and w.kind != "inference":
        yield Fault(
            (), "'training' is missing: say how long (tokens, samples, epochs or steps) and global_batch"
        )


@_rule("task", "data")
def _task_has_data(w: Workload) -> Iterator[Fault]:
    if w.task is not None and w.data.size is None and w.data.samples is None and w.data.tokens is None:
        yield Fault(
            ("task",), "needs data.size, data.samples or data.tokens to know the amount of work", at_key=True
        )


@_rule("model")
def _model_is_known(w: Workload) -> Iterator[Fault]:
    if w.model is None:
        return
    for place, network in networks(w.model):
        yield from _network_is_known(place, network)


def _network_is_known(place: Path, model: Network) -> Iterator[Fault]:
    config = getattr(model, "config", None)
    if model.preset is not None and find_preset(model.preset) is None:
        yield unknown_preset(model.preset, place)
        return
    if model.preset is None and config is not None and model.family is None:
        text = "is read beside a workload file: move this workload to a separate file"
        yield Fault(("model", "config"), text)
        return
    if model.preset is None and model.family is None:
        yield Fault(place, "needs 'preset', 'config', or 'family' with explicit sizes", at_key=True)
        return
    for fault in _model_is_complete(model):
        yield replace(fault, path=(*place, *fault.path[1:]))


def unknown_preset(name: str, place: Path = ("model",)) -> Fault:
    """The fault of a preset's name that is not known: what is alike, or why there is none."""
    at = (*place, "preset")
    reason = why_not_modelled(name)
    if reason:
        return Fault(at, f"{name!r} cannot be modelled as a preset. {reason}")
    stored = preset_in_few_bits(name)
    if stored is not None:
        text = (
            f"{name!r} is stored in few bits: name the model, and how it is trained (of 4 bits, training.method: "
            "qlora)"
        )
        return Fault(at, text, stored.name)
    text = (
        f"preset {name!r} is not known; 'planner schema presets' lists them, and any other model is described by "
        "'config: ./config.json', or by 'family' and sizes"
    )
    return Fault(at, text, near(name, preset_names()))


def _model_is_complete(model: Network) -> Iterator[Fault]:
    heads, hidden = model.heads, model.hidden
    if heads and hidden and model.head_dim is None and model.preset is None and hidden % heads:
        text = f"{heads} heads do not divide hidden {hidden}: correct one, or give head_dim"
        yield Fault(("model", "heads"), text)
        return
    values, preset = merge_model(model)
    yield from _sizes_apply(model, str(values["family"]))
    if model.stepwise_gelu and values.get("gated_mlp"):
        yield Fault(("model", "stepwise_gelu"), "a gated MLP does not use it: remove it", at_key=True)
    missing = missing_fields(values, model.trainable == "none")
    if missing:
        names = ", ".join(f"{name!r}" for name in missing)
        if preset is not None:
            why = f"preset {preset.name!r} has no published {names}: give it beside the preset"
        else:
            why = f"family '{values['family']}' needs {names}"
        yield Fault(("model",), why, at_key=True)
    if values.get("heads") and values.get("kv_heads") and values["heads"] % values["kv_heads"]:
        yield Fault(("model", "kv_heads"), f"{values['kv_heads']} must divide the {values['heads']} heads")
    experts, used = values.get("experts"), values.get("experts_per_token")
    if experts and used and used > experts:
        yield Fault(("model", "experts_per_token"), f"is more than the {experts} experts")
    if values.get("dense_layers", 0) > (values.get("layers") or float("inf")):
        yield Fault(("model", "dense_layers"), f"is more than the {values['layers']} layers")
    if values.get("active_params") and values.get("params") and values["active_params"] > values["params"]:
        yield Fault(("model", "active_params"), f"is more than the {values['params']:,} parameters in all")


def _sizes_apply(model: Network, family: str) -> Iterator[Fault]:
    """Refuse sizes that the family does not have: they would be ignored silently."""
    if family == "transformer":
        idle: tuple[str, ...] = ("forward_flops_per_sample", "activations_per_sample", "image_size")
    else:
        idle = ("architecture", "active_params", "kv_heads", "gated_mlp", "vocab", "tied_embeddings")
        idle += ("stepwise_gelu", "experts", "experts_per_token", "shared_experts", "moe_ffn", "dense_layers")
        if family == "cnn":
            idle += ("layers", "hidden", "heads", "head_dim", "ffn")
    for name in idle:
        if getattr(model, name) is not None:
            yield Fault(("model", name), f"family '{family}' does not use it: remove it", at_key=True)


def _family(w: Workload) -> str | None:
    """Return the model's family, None where unknown."""
    if w.model is None:
        return None
    main = main_network(w.model)
    if main.preset is not None and find_preset(main.preset) is None:
        return None
    family = merge_model(main)[0].get("family")
    return None if family is None else str(family)


@_rule("training")
def _one_length(w: Workload) -> Iterator[Fault]:
    if w.training is None:
        return
    lengths = [name for name in _LENGTHS if getattr(w.training, name) is not None]
    if not lengths:
        yield Fault(("training",), "needs one of tokens, samples, epochs, steps", at_key=True)
    for name in lengths[1:]:
        words = f"only one of tokens, samples, epochs, steps may be given, and '{lengths[0]}' is"
        if name == "epochs" and lengths[0] in ("tokens", "samples"):
            words += f"; the size of the set that epochs pass over is data.{lengths[0]}"
        yield Fault(("training", name), words, at_key=True)


@_rule("training")
def _micro_batch(w: Workload) -> Iterator[Fault]:
    training = w.training
    if training is None or training.layout == "auto":
        return
    micro = training.layout.micro_batch
    if micro is not None and micro > training.global_batch:
        yield Fault(
            ("training", "layout", "micro_batch"),
            f"{micro} is more than the global batch of {training.global_batch}",
        )


@_rule("model", "training")
def _training_fits_model(w: Workload) -> Iterator[Fault]:
    family = _family(w)
    if family is None or w.training is None or w.model is None:
        return
    training = w.training
    if training.method == "qlora" and family != "transformer":
        text = f"qlora is modelled for transformers, not for family '{family}': write lora"
        yield Fault(("training", "method"), text)
    if training.adapter is not None and family != "transformer":
        text = f"of family '{family}' the layers are not known: give training.lora_rank alone"
        yield Fault(("training", "adapter"), text, at_key=True)
    if family == "transformer":
        yield from _transformer_training(w)
        return
    if training.tokens is not None:
        text = f"{has_no('tokens', main_network(w.model))}: give samples, epochs or steps"
        yield Fault(("training", "tokens"), text, at_key=True)
    if training.sequence_length is not None:
        text = f"{has_no('sequences', main_network(w.model))}: remove it"
        yield Fault(("training", "sequence_length"), text, at_key=True)


def _transformer_training(w: Workload) -> Iterator[Fault]:
    training = w.training
    assert training is not None and w.model is not None
    preset_name = main_network(w.model).preset
    preset = find_preset(preset_name) if preset_name is not None else None
    stated = training.rollouts is not None or training.lengths is not None
    if training.sequence_length is None and (preset is None or preset.sequence_length is None) and not stated:
        yield Fault(
            ("training",),
            "needs sequence_length: the model is not a preset with a known context",
            at_key=True,
        )
    if training.layout == "auto":
        return
    values, _ = merge_model(w.model)
    limits = {"tensor_parallel": "heads", "pipeline_parallel": "layers", "expert_parallel": "experts"}
    for name, size in limits.items():
        pinned, of = getattr(training.layout, name), values.get(size)
        if pinned and of and (pinned > of or (size != "layers" and of % pinned)):
            yield Fault(("training", "layout", name), f"{pinned} does not divide the model's {of} {size}")


@_rule("training", "data", "model")
def _epochs_have_a_set(w: Workload) -> Iterator[Fault]:
    if w.training is None or w.training.epochs is None:
        return
    if any(getattr(w.training, name) is not None for name in _LENGTHS if name != "epochs"):
        return
    data = w.data
    if data.samples is not None or (data.size is not None and data.sample_size is not None):
        return
    if data.tokens is not None and _family(w) in ("transformer", None):
        return
    text = "needs to know the set: give data.samples, or data.size with data.sample_size"
    if _family(w) == "transformer":
        text += ", or data.tokens"
    yield Fault(("training", "epochs"), text, at_key=True)


@_rule("checkpoint")
def _checkpoints_have_units(w: Workload) -> Iterator[Fault]:
    for name in ("size", "initial"):
        size = getattr(w.checkpoint, name)
        if size is not None and size < _MIN_DATA_BYTES:
            yield Fault(("checkpoint", name), f"is only {size} bytes; write a unit", f"{size}GB")


@_rule("data")
def _data_is_plausible(w: Workload) -> Iterator[Fault]:
    data = w.data
    if data.size is not None and data.size < _MIN_DATA_BYTES and (data.samples or 0) != 1:
        yield Fault(("data", "size"), f"is only {data.size} bytes; write a unit", f"{data.size}GB")
    if data.size is not None and data.sample_size is not None and data.sample_size > data.size:
        yield Fault(("data", "sample_size"), "is more than the size of the whole set")
    if (
        data.location is not None
        and data.location != "onprem"
        and len(list(filter(None, data.location.split("/")))) != 2
    ):
        text = f"must be provider/region like aws/us-east-1, or onprem, got {data.location!r}"
        if "://" in data.location:
            text += "; an address goes under run.data, the region of its bucket here"
        yield Fault(("data", "location"), text)


@_rule("constraints")
def _lists_are_not_empty(w: Workload) -> Iterator[Fault]:
    for name in ("providers", "regions", "residency", "purchase_options"):
        if getattr(w.constraints, name) == ():
            yield Fault(("constraints", name), "an empty list allows nothing: remove the key to allow all")
    for name in ("accelerators", "instance_types"):
        if getattr(w.constraints, name).allow == ():
            yield Fault(
                ("constraints", name, "allow"), "an empty list allows nothing: remove the key to allow all"
            )
    for index, region in enumerate(w.constraints.regions or ()):
        if region.count("/") > 1:
            yield Fault(
                ("constraints", "regions", index), f"must be region or provider/region, got {region!r}"
            )
    options = w.constraints.purchase_options
    if options and set(options) <= set(w.constraints.exclude_purchase_options):
        yield Fault(
            ("constraints", "exclude_purchase_options"), "excludes every option that purchase_options allows"
        )


@_rule("constraints", "model")
def _throughput_floor(w: Workload) -> Iterator[Fault]:
    floor = w.constraints.min_throughput
    if floor is None:
        return
    path = ("constraints", "min_throughput")
    if (floor.tokens_per_s is None) == (floor.samples_per_s is None):
        yield Fault(path, "needs exactly one of tokens_per_s, samples_per_s", at_key=True)
    elif floor.tokens_per_s is not None and _family(w) not in ("transformer", None):
        yield Fault(
            (*path, "tokens_per_s"), f"family '{_family(w)}' has no tokens: write samples_per_s", at_key=True
        )


@_rule("measured", "model")
def _measured_unit(w: Workload) -> Iterator[Fault]:
    if w.measured is not None and "tokens/s" in w.measured and _family(w) not in ("transformer", None):
        text = f"family '{_family(w)}' has no tokens: write samples/s"
        yield Fault(("measured",), text)


@_rule("kind", "fleet")
def _fleet_and_kind(w: Workload) -> Iterator[Fault]:
    if w.kind == "fleet" and w.fleet is None:
        yield Fault(("kind",), "fleet needs a 'fleet' section, e.g. 'fleet: {runs: 20}'")
    if w.kind != "fleet" and w.fleet is not None:
        yield Fault(("fleet",), f"needs 'kind: fleet' (kind is {w.kind})", at_key=True)
    if w.fleet is not None and w.fleet.max_regions is not None and w.fleet.max_share_per_region is not None:
        most = w.fleet.max_regions * w.fleet.max_share_per_region
        if most < 1:
            text = (
                f"in each of max_regions {w.fleet.max_regions} covers only {most:.0%} of the work: raise one"
            )
            yield Fault(("fleet", "max_share_per_region"), text)


@_rule("prices")
def _overlays(w: Workload) -> Iterator[Fault]:
    for index, overlay in enumerate(w.prices.overlays):
        change = overlay.change
        worthless = (
            float(change.rstrip("%")) <= -100
            if change.endswith("%")
            else change[0].isdigit() and not float(change)
        )
        if worthless:
            yield Fault(("prices", "overlays", index, "change"), f"{change!r} makes the price zero or less")


def start_moment(value: date | datetime) -> datetime:
    """Return the first moment of a date (UTC), or the date and time itself, in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return datetime.combine(value, time.min, tzinfo=UTC)


def end_moment(value: date | datetime) -> datetime:
    """Return the last moment of a date (UTC, exclusive), or the date and time itself, in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return datetime.combine(value, time.min, tzinfo=UTC) + timedelta(days=1)


@_rule("constraints", "start", "earliest_start")
def _deadline_after_start(w: Workload) -> Iterator[Fault]:
    deadline = w.constraints.deadline
    if deadline is None or isinstance(deadline, timedelta):
        return
    for name in ("start", "earliest_start"):
        begin = getattr(w, name)
        if begin is not None and end_moment(deadline) <= start_moment(begin):
            text = f"{deadline.isoformat()} is not after {name} {begin.isoformat()}"
            yield Fault(("constraints", "deadline"), text)
