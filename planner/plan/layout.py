"""The parallel layout of a plan, and how often a step of it updates the model."""

from __future__ import annotations

from typing import ClassVar

from planner.records import record


@record(frozen=True)
class Layout:
    """Parallel layout of one synchronous job; `interleave` is virtual pipeline stages per accelerator.

    `grad_accumulation` is micro-batches of one optimizer update. A step of rollouts has `updates` of them in each of
    `passes` over its batch; both are None for other steps, and in plans of rollouts from versions that counted the
    micro-batches of the whole step.
    """

    tensor_parallel: int
    pipeline_parallel: int
    context_parallel: int
    data_parallel: int
    zero_stage: int
    micro_batch: int
    grad_accumulation: int
    recompute: str
    expert_parallel: int = 1
    interleave: int = 1
    sequence_parallel: bool = False
    updates: int | None = None
    passes: int | None = None

    left_out: ClassVar[tuple[str, ...]] = ("updates", "passes")  # of files, where None

    @property
    def update_batch(self) -> int:
        """Samples of one optimizer update."""
        return self.data_parallel * self.micro_batch * self.grad_accumulation

    @property
    def updates_per_step(self) -> int:
        """Optimizer updates of a step: 1, but where it learns from rollouts."""
        return (self.updates or 1) * (self.passes or 1)
