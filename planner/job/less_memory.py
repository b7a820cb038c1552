"""Which options of the training code make a job fit, where every admitted cluster is short of memory.

What is tried first learns the same weights: what a pinned layout forbids, a smaller state of the optimizer, states in
host memory. Adapters learn others, so they are named for fine-tuning alone. Of each kind the first option that has a
plan is named, as the file would have to state it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.candidates.constraints.facts import Memory
from planner.inputs.checks import find_faults
from planner.inputs.training_schema import Layout, TrainingMemory
from planner.job.batch import best_with
from planner.job.memory_room import short_of_memory
from planner.plan.relaxation import Change, Relaxation, relaxation_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.candidates.engine import CandidateSearch
    from planner.inputs.training_schema import Training

    Option = dict[str, int | str | bool]  # values by key, below `training`

MOST_NAMED = 3
_PAGED: tuple[Option, ...] = (
    {"optimizer": "paged_adamw_8bit"},
    {"optimizer": "paged_adamw_8bit", "memory.master": "none", "memory.gradients": "half"},
)
# By the optimizer in use, those that keep less on the accelerator, the fastest first.
_LIGHTER: dict[str, tuple[Option, ...]] = {
    **dict.fromkeys(("adamw_8bit", "paged_adamw"), _PAGED),
    **dict.fromkeys(("adam", "adamw"), ({"optimizer": "adamw_8bit"}, *_PAGED)),
}
_IN_HOST: tuple[Option, ...] = (
    {"memory.offload_optimizer": True},
    {"memory.offload_optimizer": True, "memory.gradients": "half"},
)
_ADAPTERS: dict[str, tuple[Option, ...]] = {
    "full": ({"method": "lora"}, {"method": "qlora"}),
    "lora": ({"method": "qlora"},),
}


def with_less_memory(search: CandidateSearch) -> tuple[Relaxation, ...]:
    """Options of the training code with a plan, and that plan; empty where an admitted cluster fits, or none helps.

    Args:
        search: candidates, none of which fits.
    """
    training = search.candidates.context.asked.workload.training
    if training is None or search.candidates.context.asked.workload.kind != "training":
        return ()
    if not len(short_of_memory(search)):
        return ()
    named: list[Relaxation] = []
    for options in _kinds(training):
        first = next((one for option in options if (one := _named(search, training, option))), None)
        if first is not None:
            named.append(first)
        if len(named) == MOST_NAMED:
            break
    return tuple(named)


def _kinds(training: Training) -> Iterator[tuple[Option, ...]]:
    """Options that do the same in different ways, what costs least quality and speed first."""
    yield _loosened(Layout() if training.layout == "auto" else training.layout)
    if training.objective in ("dpo", "kto") and training.reference in (None, "resident"):
        yield ({"reference": "precomputed"},)
    if training.method == "full":
        yield _LIGHTER.get(training.optimizer, ())
        if not (training.memory or TrainingMemory()).offload_optimizer:
            yield _IN_HOST
    if training.objective != "pretrain":
        yield _ADAPTERS.get(training.method, ())


def _loosened(pinned: Layout) -> tuple[Option, ...]:
    """Parts of a pinned layout in their most frugal form: each, then all of them."""
    parts: list[Option] = []
    if pinned.micro_batch not in (None, 1):
        parts.append({"layout.micro_batch": 1})
    if pinned.recompute not in (None, "full"):
        parts.append({"layout.recompute": "full"})
    if pinned.zero_stage not in (None, 3):
        parts.append({"layout.zero_stage": 3})
    together: Option = {key: value for part in parts for key, value in part.items()}
    return (*parts, together) if len(parts) > 1 else tuple(parts)


def _named(search: CandidateSearch, training: Training, option: Option) -> Relaxation | None:
    """The plan with an option, None where it has none or the workload would not be valid."""
    workload = search.candidates.context.asked.workload
    option = {key: value for key, value in option.items() if value != _value(training, key)}
    changed = _changed(training, option)
    if not option or find_faults(workload.model_copy(update={"training": changed})):
        return None
    best = best_with(search, changed)
    if best is None:
        return None
    changes = [_change(key, _value(training, key), value) for key, value in option.items()]
    return relaxation_of(changes, best, Memory.words)


def _change(key: str, given: object, value: int | str | bool) -> Change:
    counted = [float(one) if type(one) is int else None for one in (given, value)]
    return Change(Memory.id, f"training.{key} {_text(given)}", _text(value), *counted)


def _changed(training: Training, option: Option) -> Training:
    """The section with values at keys such as `optimizer` and `memory.offload_optimizer`."""
    for key, value in option.items():
        section, _, name = key.rpartition(".")
        if section:
            inner = _section(training, section)
            training = training.model_copy(update={section: inner.model_copy(update={name: value})})
        else:
            training = training.model_copy(update={name: value})
    return training


def _section(training: Training, name: str) -> Layout | TrainingMemory:
    if name == "memory":
        return training.memory or TrainingMemory()
    assert training.layout != "auto"
    return training.layout


def _value(training: Training, key: str) -> object:
    section, _, name = key.rpartition(".")
    return getattr(_section(training, section) if section else training, name)


def _text(value: object) -> str:
    """A value as it is written in a workload."""
    if value is None:
        return "resident"
    return str(value).lower() if isinstance(value, bool) else str(value)
