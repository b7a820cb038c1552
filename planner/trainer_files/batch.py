"""The global batch from what trainers state: samples per accelerator, accumulation, accelerators, parallel degrees."""

from __future__ import annotations

from dataclasses import replace
from math import lcm, prod
from typing import Any

from planner.errors import InputError
from planner.inputs.presets import Preset, find_preset
from planner.trainer_files.formats.common import (
    ACCELERATORS,
    ACCUMULATION,
    GENERATED,
    GENERATION_STEPS,
    MICRO_BATCH,
    PASSES,
)
from planner.trainer_files.model import Fact

_ASSUMED_BATCH = 128
_DIVIDED = {"tensor_parallel": "heads", "pipeline_parallel": "layers", "expert_parallel": "experts"}
_COPIES = ("batch.shards", "batch.replicas", "batch.expert_groups")
_SPLITTING = ("tensor_parallel", "pipeline_parallel", "context_parallel")


def global_batch(facts: dict[str, Fact], warnings: list[str]) -> Fact:
    """The samples of one optimizer step, with how they follow from the files."""
    key = "training.global_batch"
    stated, micro = facts.get(key), facts.get(MICRO_BATCH)
    if stated is not None:
        _check(facts, stated, warnings)
        return stated
    if micro is None:
        text = f"{_ASSUMED_BATCH} samples, as in fine-tuning"
        return Fact(key, _ASSUMED_BATCH, text, assumed=True)
    accumulation = facts.get(ACCUMULATION)
    times = accumulation.value if accumulation is not None else 1
    replicas, how, assumed = _replicas(facts)
    parts = f"{micro.where} {micro.value} x {times} accumulated x {how}"
    return Fact(key, micro.value * times * replicas, parts, assumed)


def settle_generations(facts: dict[str, Fact], batch: Fact) -> Fact:
    """The batch of a step of rollouts, by trainers that state that of an update and count steps in updates.

    Args:
        facts: of the files; the update, the passes and the steps of rollouts are put in.
        batch: samples of one optimizer update.

    Raises:
        InputError: the responses of a step are no whole groups, as no trainer takes them.
    """
    steps, whole, passes = (facts.get(key) for key in (GENERATION_STEPS, GENERATED, PASSES))
    step = batch
    if whole is not None:
        step = Fact(batch.key, whole.value, whole.where)
    elif steps is not None:
        accumulation = facts.get(ACCUMULATION)
        times = accumulation.value if accumulation is not None else 1
        where = f"{batch.where} x {steps.value} / {times} (steps_per_generation)"
        step = Fact(batch.key, batch.value * steps.value // times, where, batch.assumed)
    group = facts.get("rollouts.samples_per_prompt")
    if group is not None and not group.assumed and step.value % group.value:
        if whole is not None or not batch.assumed:
            alone = whole is not None or MICRO_BATCH not in facts
            raise InputError(
                f"{group.where}: {group.value} does not divide the {step.value} responses of a step ({step.where})"
                + ("" if alone else ": give --accelerators with which it does")
            )
        more = lcm(step.value, group.value) // step.value
        where = f"{batch.where}, raised to whole groups of {group.value}"
        return settle_generations(facts, replace(batch, value=batch.value * more, where=where))
    if step.value <= batch.value:  # a generation for each update, or several
        step = batch
    elif step.value % batch.value == 0:
        facts["rollouts.update_batch"] = replace(batch, key="rollouts.update_batch")
    if passes is not None and passes.value > 1:
        facts["rollouts.epochs"] = replace(passes, key="rollouts.epochs")
    updates = step.value // batch.value * (1 if passes is None else passes.value)
    length = facts.get("training.steps")
    if updates > 1 and length is not None:
        where = f"{length.where} {length.value} / {updates} updates a step"
        facts["training.steps"] = replace(length, value=max(1, length.value // updates), where=where)
    return step


def _replicas(facts: dict[str, Fact]) -> tuple[int, str, bool]:
    """Copies of the model that see samples of their own, in words, and whether they are assumed."""
    stated = [facts[key].value for key in _COPIES if key in facts]
    if stated:
        return prod(stated), f"{prod(stated)} data-parallel", False
    accelerators = facts.get(ACCELERATORS)
    split = _split(facts)
    if accelerators is None:
        experts = facts.get("training.layout.expert_parallel")
        least = max(
            1, experts.value * _degree(facts, "pipeline_parallel") // split if experts is not None else 1
        )
        text = "1 accelerator" if least == 1 else f"{least} that share the experts"
        return least, f"{text} (--accelerators N)", True
    if accelerators.value % split:
        return (
            max(1, accelerators.value // split),
            f"{accelerators.value} accelerators / {split}, rounded",
            True,
        )
    many = "accelerator" if accelerators.value == 1 else "accelerators"
    how = f"{accelerators.value} {many}" + (f" / {split} that share a sample" if split > 1 else "")
    return accelerators.value // split, how, False


def _split(facts: dict[str, Fact]) -> int:
    return prod(_degree(facts, name) for name in _SPLITTING)


def _degree(facts: dict[str, Fact], name: str) -> int:
    fact = facts.get(f"training.layout.{name}")
    return int(fact.value) if fact is not None else 1


def _check(facts: dict[str, Fact], stated: Fact, warnings: list[str]) -> None:
    """Name a batch that its own parts contradict."""
    if any(key not in facts for key in (MICRO_BATCH, ACCELERATORS)):
        return
    micro, accelerators = facts[MICRO_BATCH].value, facts[ACCELERATORS].value
    one_pass = micro * max(1, accelerators // _split(facts))
    if stated.value % one_pass:
        warnings.append(
            f"the global batch of {stated.value} is not a multiple of the {one_pass} samples that {accelerators} "
            f"accelerators take at {micro} each"
        )


def leave_out_what_divides_nothing(facts: dict[str, Fact], warnings: list[str]) -> None:
    """Take degrees of parallelism out of the facts that the model's sizes do not allow; a warning names each."""
    preset_fact = facts.get("model.preset")
    preset = None if preset_fact is None else find_preset(str(preset_fact.value))
    experts = facts.get("training.layout.expert_parallel")
    known = preset is not None or "model.layers" in facts
    if experts is not None and known and not _stated_size(facts, preset, "experts"):
        del facts[experts.key]
        if experts.value > 1:
            warnings.append(f"{experts.where}: {experts.value}, but the model has no experts: left out")
    for name, size in _DIVIDED.items():
        key = f"training.layout.{name}"
        pinned, of = facts.get(key), _stated_size(facts, preset, size)
        if pinned is None or not of:
            continue
        if pinned.value > of or (size != "layers" and of % pinned.value):
            del facts[key]
            warnings.append(
                f"{pinned.where}: {pinned.value} does not divide the model's {of} {size}: left out"
            )


def _stated_size(facts: dict[str, Fact], preset: Preset | None, size: str) -> Any:
    """A size of the model, by its own facts or by its preset; None where neither has it."""
    stated = facts.get(f"model.{size}")
    return stated.value if stated is not None else preset.values.get(size) if preset is not None else None
