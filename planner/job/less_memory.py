"""Which options of the training code make a job fit, where every admitted cluster is short of memory.

What is tried first learns the same weights: what a pinned layout forbids, a smaller state of the optimizer, states in
host memory. Adapters learn others, so they are named for fine-tuning alone. Of each kind the first option that has a
plan is named, as the file would have to state it. Where none has one, the first that fits into memory is named with
the other limits that must give way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.candidates.constraints.facts import Memory
from planner.candidates.plan_parts.infeasible import find_remedies
from planner.inputs.checks import find_faults
from planner.inputs.training_schema import Layout, TrainingMemory
from planner.job.batch import best_among, candidates_with
from planner.job.later_deadline import with_later_deadline
from planner.job.least_budget import with_least_budget
from planner.job.memory_room import short_of_memory
from planner.plan.relaxation import Change, Relaxation, relaxation_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planner.candidates.engine import CandidateSearch
    from planner.inputs.training_schema import Training

    Option = dict[str, int | str | bool]  # values by key, below `training`

MOST_NAMED = 3
MOST_BESIDE = 2  # ways out beside an option that is not enough alone
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


def with_less_memory(
    search: CandidateSearch, fleet_words: Callable[[CandidateSearch], str] | None = None
) -> tuple[Relaxation, ...]:
    """Options of the training code with a plan, and that plan; empty where an admitted cluster fits, or none helps.

    Args:
        search: candidates, none of which fits; of a fleet, those of one run.
        fleet_words: what a fleet whose runs take an option comes to, empty where there is none; None: not of a fleet.
    """
    workload = search.candidates.context.asked.workload
    training, is_fleet = workload.training, fleet_words is not None
    if training is None or workload.kind != ("fleet" if is_fleet else "training"):
        return ()
    if not len(short_of_memory(search)):
        return ()
    named: list[Relaxation] = []
    fitting: list[tuple[Training, Option, CandidateSearch]] = []
    adapters = _adapters(training, search.candidates.context.asked.job.model.family)
    for options in (*_kinds(training), adapters):
        if len(named) == (MOST_NAMED if options is adapters or not adapters else MOST_NAMED - 1):
            continue
        for option in options:
            tried = _tried(search, training, option)
            if tried is None:
                continue
            best = best_among(tried.candidates)
            words = "" if fleet_words is None or best is None else fleet_words(tried)
            if best is not None and (words or not is_fleet):
                now = _changes(training, option)
                named.append(relaxation_of(now, None if is_fleet else best, words or Memory.words))
                break
            if not is_fleet and not len(short_of_memory(tried)):
                fitting.append((training, option, tried))
    return tuple(named) or next(filter(None, (_beside_others(*one) for one in fitting)), ())


def _beside_others(training: Training, option: Option, tried: CandidateSearch) -> tuple[Relaxation, ...]:
    """An option with other limits that must give way, as few as do; empty where none is found to be enough."""
    others = with_later_deadline(tried, with_least_budget(tried, find_remedies(tried)))
    return tuple(
        relaxation_of((*_changes(training, option), *one.changes), one.best, f"{Memory.words}; {one.note}")
        for one in others[:MOST_BESIDE]
    )


def _kinds(training: Training) -> Iterator[tuple[Option, ...]]:
    """Options that learn the same in different ways, what costs least quality and speed first."""
    full = training.method == "full"
    yield _loosened(Layout() if training.layout == "auto" else training.layout)
    if training.objective in ("dpo", "kto") and training.reference in (None, "resident"):
        beside: tuple[Option, ...] = ({}, _PAGED[-1], _IN_HOST[-1]) if full else ({},)
        yield tuple({"reference": "precomputed", **option} for option in beside)
    if full:
        yield _LIGHTER.get(training.optimizer, ())
        if not (training.memory or TrainingMemory()).offload_optimizer:
            yield _IN_HOST


def _adapters(training: Training, family: str) -> tuple[Option, ...]:
    """Adapters instead of all weights; where a preset of images may be trained further, as its file would say."""
    options = _ADAPTERS.get(training.method, ())
    if training.objective != "pretrain" or training.method == "lora":
        return options
    is_open = family == "diffusion" and "objective" not in training.model_fields_set
    return tuple({"objective": "sft", **option} for option in options) if is_open else ()


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


def _tried(search: CandidateSearch, training: Training, option: Option) -> CandidateSearch | None:
    """Candidates with an option, None where it changes nothing or the workload would not be valid."""
    workload = search.candidates.context.asked.workload
    changed = _changed(training, option)
    if changed == training or find_faults(workload.model_copy(update={"training": changed})):
        return None
    return candidates_with(search, changed)


def _changes(training: Training, option: Option) -> list[Change]:
    """What of an option is not so yet."""
    given = {key: _value(training, key) for key in option}
    return [_change(key, given[key], value) for key, value in option.items() if value != given[key]]


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
