"""What a framework's exporter gets and gives: the parallel layout, and the flags, variables and files that state it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from planner.errors import InputError
from planner.export.files import ExportFile
from planner.export.view import Launch
from planner.records import record


@record(frozen=True)
class Parallel:
    """Parallel layout of one gang and what goes with it: degrees, batch, length in tokens, precision, recompute.

    `sequence_length` is None for models without tokens; `interleave` is virtual pipeline stages per accelerator.
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

    @property
    def world(self) -> int:
        """Accelerators of the gang."""
        return self.nodes * self.gpus

    @property
    def global_batch(self) -> int:
        """Samples of one optimizer step."""
        return self.data * self.micro_batch * self.grad_accumulation


@record(frozen=True)
class Part:
    """How a framework is told the layout: arguments after the program's own, variables, and files beside the script."""

    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    files: tuple[ExportFile, ...] = ()

    def file(self, path: str) -> str:
        """The text of a file; KeyError where there is none."""
        return {file.path: file.text for file in self.files}[path]


def parallel_of(launch: Launch) -> Parallel | None:
    """The layout of a launch, None where the plan has none (workers that are independent of each other)."""
    layout = launch.layout
    if layout is None:
        return None
    return Parallel(
        nodes=launch.nodes, gpus=launch.gpus, tensor=layout.tensor_parallel, pipeline=layout.pipeline_parallel,
        context=layout.context_parallel, expert=layout.expert_parallel, data=layout.data_parallel,
        zero_stage=layout.zero_stage, micro_batch=layout.micro_batch, grad_accumulation=layout.grad_accumulation,
        sequence_length=launch.training.sequence_length, precision=launch.training.precision,
        recompute=layout.recompute, interleave=layout.interleave, sequence_parallel=layout.sequence_parallel,
    )  # fmt: skip


def cannot(framework: str, what: str, instead: str) -> InputError:
    """The error for a layout that a framework has no flags for."""
    return InputError(f"--framework {framework}: {what}; {instead}")
