"""For users who know only their data: a task becomes a ladder of concrete workloads (data/tasks.csv)."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from planner.bundled import bundled_rows
from planner.errors import InputError
from planner.inputs.faults import near
from planner.inputs.resolve import resolve_training
from planner.inputs.resolved import Assumed, ResolvedTraining
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.schema import Workload
    from planner.inputs.training_schema import Data


@record(frozen=True)
class TaskVariant:
    """One rung: a concrete workload (its `task` is None) and what it assumes; `chosen` is the one to plan.

    Confidence is low: the user named neither model nor training.
    """

    name: str
    note: str
    workload: Workload
    chosen: bool
    assumptions: tuple[Assumed, ...]

    def resolve_training(self) -> ResolvedTraining:
        """Resolve the training with the ladder's values marked as defaults, not as the user's."""
        resolved = resolve_training(self.workload)
        ladder_keys = {item.key for item in self.assumptions}
        others = tuple(item for item in resolved.assumptions if item.key not in ladder_keys)
        return replace(resolved, assumptions=(*self.assumptions, *others))


@cache
def load_tasks() -> dict[str, tuple[dict[str, str], ...]]:
    """Read the ladders: rows by task, from the least effort to the most."""
    rows = bundled_rows("tasks.csv")
    return {
        name: tuple(r for r in rows if r["task"] == name) for name in dict.fromkeys(r["task"] for r in rows)
    }


@cache
def _tasks_of_words() -> dict[str, frozenset[str]]:
    """Tasks by the word that people use for them, and by the parts of their own names."""
    found = {row["word"]: set(row["tasks"].split()) for row in bundled_rows("task_words.csv")}
    for task in load_tasks():
        for part in task.split("_"):
            found.setdefault(part, set()).add(task)
    return {word: frozenset(tasks) for word, tasks in found.items()}


def nearest_tasks(written: str) -> tuple[str, ...]:
    """The tasks that a goal in a user's words may mean: a misspelt name, else those that most of its words name.

    >>> nearest_tasks("image_clasification"), nearest_tasks("fine-tune llm")
    (('image_classification',), ('text_finetuning',))

    Args:
        written: as written.
    """
    words = re.findall(r"[a-z0-9]+", re.sub(r"\b(fine|pre)[\W_]+(?=tun|train)", r"\1", written.lower()))
    if likely := near("_".join(words), load_tasks()):
        return (likely,)
    meant = [_tasks_of_words().get(word, frozenset()) for word in words]
    named = {task: sum(task in tasks for tasks in meant) for task in load_tasks()}
    most = max(named.values())
    return tuple(task for task, count in named.items() if count == most) if most else ()


def expand_task(workload: Workload) -> tuple[TaskVariant, ...]:
    """Return the rungs of the workload's task from the least effort to the most; () without a task.

    Raises:
        InputError: the task is unknown or the data give no amount of work.
    """
    if workload.task is None:
        return ()
    from planner.inputs.view import as_view

    rows = load_tasks().get(workload.task.type)
    if rows is None:
        raise InputError(f"task.type: '{workload.task.type}' has no ladder of assumptions")
    return tuple(_variant(as_view(workload), row) for row in rows)


def _variant(workload: Workload, row: dict[str, str]) -> TaskVariant:
    from planner.inputs.plain import read_section

    assert workload.task is not None
    noted: list[Assumed] = []

    def assume(key: str, column: str, unit: str) -> None:
        if row[column]:
            noted.append(
                Assumed(key, row[column], unit, "default", f"{row['task']}/{row['effort']}: {row['source']}")
            )

    for key, column, unit in (
        ("model.preset", "preset", ""),
        ("training.method", "method", ""),
        ("training.epochs", "epochs", "epochs"),
        ("training.global_batch", "global_batch", "samples"),
        ("training.sequence_length", "sequence_length", "tokens"),
        ("training.optimizer", "optimizer", ""),
    ):
        assume(key, column, unit)
    training: dict[str, Any] = {key: row[key] for key in ("method", "optimizer")}
    training |= {"epochs": float(row["epochs"]), "global_batch": int(row["global_batch"])}
    if row["sequence_length"]:
        training["sequence_length"] = int(row["sequence_length"])
    concrete = workload.model_copy(
        update={
            "task": None,
            "model": read_section("Model", {"preset": row["preset"]}),
            "training": read_section("Training", training),
            "data": _concrete_data(workload.data, row, noted),
        }
    )
    return TaskVariant(
        name=f"{row['task']}/{row['effort']}",
        note=f"{row['note']}; {row['preset']}, {row['epochs']} epochs, batch {row['global_batch']}",
        workload=concrete,
        chosen=row["effort"] == workload.task.effort,
        assumptions=tuple(noted),
    )


def _concrete_data(data: Data, row: dict[str, str], noted: list[Assumed]) -> Data:
    """Fill in what turns the set's size into samples or tokens."""
    note = f"{row['task']}/{row['effort']}: {row['source']}"
    if row["bytes_per_token"]:
        return _text_data(data, row, noted, note)
    if data.samples is not None or data.sample_size is not None:
        return data
    size = int(row["sample_bytes"])
    noted.append(Assumed("data.sample_size", str(size), "bytes", "default", note))
    return data.model_copy(update={"sample_size": size})


def _text_data(data: Data, row: dict[str, str], noted: list[Assumed], note: str) -> Data:
    if data.tokens is not None or data.samples is not None:
        return data
    if data.size is None:
        raise InputError("task needs data.size, data.samples or data.tokens")
    per_token = float(row["bytes_per_token"])
    tokens = max(1, round(data.size / per_token))
    noted.append(
        Assumed("data.tokens", str(tokens), "tokens", "default", f"{per_token:g} bytes per token; {note}")
    )
    return data.model_copy(update={"tokens": tokens})
