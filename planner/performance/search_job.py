"""What stays the same while layouts vary: one model and training, the devices, the constants."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import numpy.typing as npt

from catalogs.table import Table
from planner.performance.constants import Constants, load_constants
from planner.performance.core import evaluate
from planner.performance.device import Devices, build_devices
from planner.performance.kernels import with_kernel
from planner.performance.layouts import Layouts
from planner.performance.links import build_links
from planner.performance.memory import FULL, NONE, SELECTIVE, levels_gib, needed_gib
from planner.performance.memory_host import with_offload
from planner.performance.memory_risk import budget_gib, usable_gib
from planner.performance.memory_work import Footprint, build_footprint
from planner.performance.post_training.reinforcement import with_rollouts
from planner.performance.spec import ModelSpec, TrainingSpec
from planner.performance.step import Step
from planner.performance.work import Floats, Work, build_work, is_sampled
from planner.records import record

Ints = npt.NDArray[np.int64]
LEVELS = {"none": NONE, "selective": SELECTIVE, "full": FULL}


@record(frozen=True, eq=False)
class Job:
    """Everything that stays the same while layouts vary."""

    model: ModelSpec
    training: TrainingSpec
    work: Work
    footprint: Footprint
    devices: Devices
    constants: Constants
    sampled: bool

    @property
    def kind(self) -> str:
        """Model family, by which constants are named."""
        return self.model.family.value

    @property
    def available_gib(self) -> Floats:
        """Memory a framework can allocate per accelerator of each device row, GiB."""
        return usable_gib(self.devices.memory_gib, self.devices.memory_rate, self.constants)

    @property
    def budget_gib(self) -> Floats:
        """The greatest predicted need a layout may have on each device row, GiB."""
        return budget_gib(self.available_gib, self.constants)


def build_job(
    model: ModelSpec, training: TrainingSpec, hardware: Table, constants: Constants | None = None
) -> Job:
    """Prepare one job on some hardware rows.

    Raises:
        ValueError: when the model lacks a size that its family needs, or the rows differ in attention kernels.
    """
    constants = constants or load_constants()
    training = with_kernel(training, hardware)
    devices = build_devices(hardware, training, model.family.value, constants)
    work = build_work(model, training)
    footprint = build_footprint(model, training, work)
    return Job(model, training, work, footprint, devices, constants, is_sampled(model))


def distinct_devices(devices: Devices, decodes: bool) -> tuple[Ints, Ints]:
    """Device rows that stand for all equal ones, and for each row the position of its representative.

    Args:
        devices: one row per instance type.
        decodes: whether CPU cores matter (the loader decodes samples).
    """
    ignored = {"reason", "host_gib", *(() if decodes else ("vcpus",))}
    numbers = [getattr(devices, field.name) for field in fields(Devices) if field.name not in ignored]
    table = np.stack([np.where(np.isnan(column), -1.0, column) for column in numbers], axis=1)
    seen: dict[tuple[bytes, str], int] = {}
    first: list[int] = []
    inverse = np.empty(len(table), dtype=np.int64)
    for position, key in enumerate(zip(map(bytes, table), devices.reason.tolist(), strict=True)):
        if key not in seen:
            seen[key] = len(first)
            first.append(position)
        inverse[position] = seen[key]
    return np.asarray(first, dtype=np.int64), inverse


def step_of(job: Job, layout: Layouts) -> Step:
    """Step time of layouts whose `hardware` points into the job's devices, generation included."""
    step = training_step_of(job, layout)
    rollouts = job.training.tuning.rollouts
    if rollouts is None:
        return step
    devices = job.devices.take(layout.hardware)
    links = build_links(devices, job.constants)
    samples = job.training.global_batch
    return with_rollouts(job.model, rollouts, samples, devices, layout, links, step, job.constants)


def training_step_of(job: Job, layout: Layouts) -> Step:
    """As `step_of`, of training alone."""
    devices = job.devices.take(layout.hardware)
    step = evaluate(job.work, devices, layout, job.kind, job.training.stack, job.constants)
    offloads = (job.footprint.offload_optimizer + job.footprint.offload_activations).any()
    return with_offload(job.footprint, devices, layout, step, job.constants) if offloads else step


def memory_levels(job: Job, layout: Layouts) -> tuple[Floats, Floats, Floats]:
    """Needed memory at the three recompute levels, GiB; a pinned level stands in for the others."""
    pinned = job.training.layout.recompute
    wanted = (NONE, SELECTIVE, FULL) if pinned is None else (LEVELS[pinned],)
    made = levels_gib(job.footprint, layout, wanted, job.constants)
    return made[0], made[len(made) // 2], made[-1]


def need_of(job: Job, layout: Layouts) -> Floats:
    """Needed memory at each row's own recompute level, GiB."""
    return needed_gib(job.footprint, layout, job.constants)
