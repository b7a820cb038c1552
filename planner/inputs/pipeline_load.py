"""From pipeline.yaml (and the workloads it names) to a `Pipeline`, or to one error that lists every fault."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from planner.inputs.checks_of_jobs import cost_faults, over_before, tiny_data
from planner.inputs.documents import Document, read_document
from planner.inputs.faults import Fault, Source, near
from planner.inputs.load import LoadedWorkload, load_workload
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.pipeline_schema import Pipeline


@record(frozen=True, eq=False)
class LoadedPipeline:
    """A valid pipeline, a read-only view; `workloads` has that of each task, None where it was sized elsewhere."""

    pipeline: Pipeline
    workloads: tuple[LoadedWorkload | None, ...]
    sha256: str
    path: Path
    source: Source


def load_pipeline(path: Path) -> LoadedPipeline:
    """Load and validate a pipeline file with the workloads it names.

    Raises:
        InputError: lists all faults with their places.
    """
    read: tuple[Pipeline, Document] = read_document(
        path, "pipeline", lambda pipeline: _task_faults(pipeline, path.parent)
    )
    pipeline, document = read
    source = document.source
    digest = hashlib.sha256(document.data)
    workloads: list[LoadedWorkload | None] = []
    for at, task in enumerate(pipeline.tasks):
        loaded = None if task.workload is None else load_workload(path.parent / task.workload, cache=False)
        if loaded is not None:
            digest.update(loaded.sha256.encode())
            if loaded.workload.kind != "training" or loaded.workload.model is None:
                text = (
                    "needs a workload of kind: training with a model; plan others by themselves (`planner "
                    "optimize`) and give what they come to as the task's `candidates`"
                )
                raise source.error([Fault(("tasks", at, "workload"), text)])
            if loaded.workload.preferences.objective != "cost":
                wished = loaded.workload.preferences.objective
                text = (
                    f"task {task.name!r} has preferences.objective: {wished}, but a pipeline is planned by cost within "
                    "its deadline: remove it from the workload and set the pipeline's deadline"
                )
                raise source.error([Fault(("tasks", at, "workload"), text)])
        workloads.append(loaded)
    return LoadedPipeline(pipeline, tuple(workloads), digest.hexdigest(), path, source)


def data_set_aside(loaded: LoadedPipeline) -> tuple[str, ...]:
    """Tasks that read from others and whose workload says where its own data lies: what they read stands for it."""
    return tuple(
        task.name
        for task, task_workload in zip(loaded.pipeline.tasks, loaded.workloads, strict=True)
        if task.reads and task_workload is not None and task_workload.workload.data.location is not None
    )


def _task_faults(pipeline: Pipeline, folder: Path) -> Iterator[Fault]:
    names = [task.name for task in pipeline.tasks]
    yield from over_before(("deadline",), pipeline.deadline, pipeline.start)
    for at, task in enumerate(pipeline.tasks):
        path: tuple[str | int, ...] = ("tasks", at)
        if task.name in names[:at]:
            yield Fault((*path, "name"), f"two tasks are called {task.name!r}")
        if (task.workload is None) == (not task.candidates):
            yield Fault(path, f"task {task.name!r} needs exactly one of workload and candidates")
        if task.workload is not None and not (folder / task.workload).is_file():
            yield Fault((*path, "workload"), f"no such file: {task.workload}")
        yield from cost_faults((*path, "candidates"), task.candidates)
        read = [part.task for part in task.reads]
        for number, other in enumerate(read):
            where = (*path, "reads", number, "task")
            if other not in names:
                yield Fault(where, f"no task {other!r}", near(other, names))
            elif other in read[:number]:
                yield Fault(where, f"{other!r} is read twice: give the whole size once")
        for number, part in enumerate(task.reads):
            yield from tiny_data((*path, "reads", number, "size"), part.size)
    circle = _circle(pipeline)
    if circle:
        yield Fault(("tasks",), f"tasks wait for each other in a circle: {' -> '.join(circle)}")


def _circle(pipeline: Pipeline) -> list[str]:
    """Tasks that form a circle, each read by the next; empty where there is none."""
    reads = {task.name: [part.task for part in task.reads] for task in pipeline.tasks}
    settled = {name for name, parts in reads.items() if not parts}
    left = set(reads) - settled
    while True:
        free = {name for name in left if all(part in settled or part not in reads for part in reads[name])}
        if not free:
            break
        settled |= free
        left -= free
    if not left:
        return []
    walk = [min(left)]
    while walk.count(walk[-1]) < 2:
        walk.append(min(part for part in reads[walk[-1]] if part in left))
    return walk[walk.index(walk[-1]) :][::-1]
