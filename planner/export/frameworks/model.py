"""What a framework's exporter gets and gives: the parallel layout, and the flags, variables and files that state it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import Any

from planner.errors import InputError
from planner.export.files import ExportFile
from planner.export.view import Launch
from planner.records import record


@record(frozen=True)
class Parallel:
    """Parallel layout of one gang and what goes with it: degrees, batch, length in tokens, precision, recompute.

    `sequence_length` is None for models without tokens; `interleave` is virtual pipeline stages per accelerator,
    `save_every` optimizer updates between checkpoints (None: unknown), `save_to` their place. `updates` is optimizer
    updates of a step, several where it learns from rollouts: micro-batches are accumulated over one of them. What a
    framework refuses may also depend on the model's `layers` (None: unknown), the optimizer and the methods.
    """

    nodes: int
    gpus: int
    tensor: int
    pipeline: int
    context: int
    expert: int
    data: int
    zero_stage: int
    micro_batch: int
    grad_accumulation: int
    sequence_length: int | None
    precision: str
    recompute: str
    interleave: int = 1
    sequence_parallel: bool = False
    save_every: int | None = None
    save_to: str = ""
    updates: int = 1
    layers: int | None = field(default=None, compare=False)
    optimizer: str = field(default="", compare=False)
    methods: tuple[str, ...] = field(default=(), compare=False)

    @property
    def world(self) -> int:
        """Accelerators of the gang."""
        return self.nodes * self.gpus

    @property
    def global_batch(self) -> int:
        """Samples of one optimizer update."""
        return self.data * self.micro_batch * self.grad_accumulation


@record(frozen=True)
class Part:
    """How a framework is told the layout.

    Attributes:
        args: after the program's own.
        env: variables.
        files: beside the script.
        launcher: the program that starts the workers: torchrun or accelerate; `launch` are its options for the layout.
        notes: what has no flag, for the heading of the script.
    """

    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    files: tuple[ExportFile, ...] = ()
    launcher: str = "torchrun"
    launch: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def file(self, path: str) -> str:
        """The text of a file; KeyError where there is none."""
        return {file.path: file.text for file in self.files}[path]


def parallel_of(launch: Launch) -> Parallel | None:
    """The layout of a launch, None where the plan has none (workers that are independent of each other)."""
    layout, training = launch.layout, launch.training
    if layout is None:
        return None
    every = launch.checkpoints.steps_between(launch.step_time_s)
    return Parallel(
        nodes=launch.nodes, gpus=launch.gpus, tensor=layout.tensor_parallel, pipeline=layout.pipeline_parallel,
        context=layout.context_parallel, expert=layout.expert_parallel, data=layout.data_parallel,
        zero_stage=layout.zero_stage, micro_batch=layout.micro_batch, grad_accumulation=layout.grad_accumulation,
        sequence_length=training.sequence_length, precision=training.precision,
        recompute=layout.recompute, interleave=layout.interleave, sequence_parallel=layout.sequence_parallel,
        save_every=max(1, round(every * training.updates)) if every else None,
        save_to=launch.run.checkpoints, updates=training.updates, layers=training.layers,
        optimizer=training.optimizer, methods=training.methods,
    )  # fmt: skip


def cannot(framework: str, what: str, instead: str) -> InputError:
    """The error for a layout that a framework has no flags for."""
    return InputError(f"--framework {framework}: {what}; {instead}")


_FIELDS = {
    "PLANNER_NODES": "nodes", "PLANNER_GPUS_PER_NODE": "gpus", "PLANNER_TENSOR_PARALLEL": "tensor",
    "PLANNER_PIPELINE_PARALLEL": "pipeline", "PLANNER_CONTEXT_PARALLEL": "context", "PLANNER_EXPERT_PARALLEL": "expert",
    "PLANNER_DATA_PARALLEL": "data", "PLANNER_ZERO_STAGE": "zero_stage", "PLANNER_MICRO_BATCH": "micro_batch",
    "PLANNER_GRAD_ACCUMULATION": "grad_accumulation", "PLANNER_VIRTUAL_STAGES": "interleave",
    "PLANNER_SEQUENCE_LENGTH": "sequence_length", "PLANNER_PRECISION": "precision", "PLANNER_RECOMPUTE": "recompute",
    "PLANNER_SEQUENCE_PARALLEL": "sequence_parallel", "PLANNER_CHECKPOINT_STEPS": "save_every",
    "PLANNER_CHECKPOINTS": "save_to",
}  # fmt: skip
_TEXTS = ("precision", "recompute", "save_to")
_UPDATES = "PLANNER_UPDATES_PER_STEP"


def layout_variables(parallel: Parallel) -> dict[str, str]:
    """The layout as variables `PLANNER_*`; an unknown value is empty."""
    values = {key: getattr(parallel, name) for key, name in _FIELDS.items()}
    texts = {
        key: "" if value is None else str(int(value) if isinstance(value, bool) else value)
        for key, value in values.items()
    }
    several = {_UPDATES: str(parallel.updates)} if parallel.updates > 1 else {}
    return texts | {"PLANNER_GLOBAL_BATCH": str(parallel.global_batch)} | several


def from_variables(part: Part, nodes: int, gpus: int, **stated: Any) -> Parallel:
    """The layout on so many nodes: what a framework's own flags state, the rest from the variables beside them."""
    out: dict[str, Any] = {field.name: field.default for field in fields(Parallel)}
    for key, name in _FIELDS.items():
        text = part.env.get(key, "")
        if name in _TEXTS:
            out[name] = text
        elif text:
            out[name] = bool(int(text)) if name == "sequence_parallel" else int(text)
        elif name in ("sequence_length", "save_every"):
            out[name] = None
    out["updates"] = int(part.env.get(_UPDATES, "1"))
    return Parallel(**{**out, **stated, "nodes": nodes, "gpus": gpus})


def option_values(words: Sequence[str]) -> dict[str, str]:
    """Words `--key=value`, `key=value` and `--key` by key; a key alone has an empty value."""
    pairs = (word.removeprefix("--").partition("=") for word in words)
    return {key: value for key, _, value in pairs}


def save_flags(framework: str, parallel: Parallel, *forms: str, scheme: str = "") -> list[str]:
    """Flags of checkpoints: forms with `{}` take the place, the last of them the steps; unknown ones are left out.

    Args:
        framework: its name.
        parallel: what is saved, and where.
        forms: flags.
        scheme: of addresses that the framework writes to; others would become a folder on the node, lost with it.

    Raises:
        InputError: the place is an address that the framework does not write to.
    """
    used = parallel.save_to.partition("://")[0] if "://" in parallel.save_to else scheme
    if used != scheme:
        own = f", or write it as {scheme}://" if scheme else ""
        raise cannot(
            framework,
            f"it saves to paths, and run.checkpoints is {parallel.save_to}",
            f"mount it on every node and set run.checkpoints to the path{own}; --to skypilot mounts it",
        )
    *places, every = forms
    out = [form.format(parallel.save_to) for form in places] if parallel.save_to else []
    return [*out, every.format(parallel.save_every)] if parallel.save_every else out
