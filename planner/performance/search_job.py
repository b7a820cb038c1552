"""What stays the same while layouts vary: one model and training, the devices, the constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from catalogs.tables.table import Floats, Ints, Table
from planner.performance.constants import Constants, load_constants
from planner.performance.contrastive import with_pairs
from planner.performance.device import Devices, build_devices
from planner.performance.embeddings import TABLES_WITHIN, with_tables
from planner.performance.kernels import with_kernel
from planner.performance.layouts import Layouts
from planner.performance.links import Links, build_links, layer_comm_s
from planner.performance.memory import FULL, NONE, SELECTIVE, levels_gib, needed_gib
from planner.performance.memory_host import with_offload
from planner.performance.memory_risk import budget_gib, usable_gib
from planner.performance.memory_work import Footprint, build_footprint
from planner.performance.micro import Micro, transformer_micro
from planner.performance.parts import layout_of
from planner.performance.post_training.reinforcement import Generations, build_generations, with_rollouts
from planner.performance.spec import ModelSpec, TrainingSpec
from planner.performance.step import Step, step_time
from planner.performance.vision import sampled_micro
from planner.performance.work import Work, build_work, is_sampled
from planner.records import record

LEVELS = {"none": NONE, "selective": SELECTIVE, "full": FULL}


@record(frozen=True, eq=False)
class Job:
    """Everything that stays the same while layouts vary.

    `beside` are the devices as each network of `footprint.beside` meets them: learned factors differ by family.
    """

    model: ModelSpec
    training: TrainingSpec
    work: Work
    footprint: Footprint
    devices: Devices
    constants: Constants
    sampled: bool
    beside: tuple[Devices, ...] = ()

    def take(self, devices: Ints) -> Job:
        """The job on some of its devices."""
        beside = tuple(seen.take(devices) for seen in self.beside)
        return replace(self, devices=self.devices.take(devices), beside=beside)

    @property
    def kind(self) -> str:
        """Model family, by which constants are named."""
        return self.model.family.value

    @property
    def networks(self) -> tuple[tuple[Work, float], ...]:
        """The model and those beside it, with how often each runs for a sample."""
        beside = ((item.footprint.work, item.part.per_sample) for item in self.footprint.beside)
        return ((self.work, 1.0), *beside)

    @property
    def flops_per_sample(self) -> Floats:
        """FLOPs of forward and backward of one sample through all networks."""
        return sum((runs * work.flops_per_sample for work, runs in self.networks), np.zeros(1))

    @property
    def given(self) -> Floats:
        """Log of the factor within which FLOPs given by hand are believed to be right, by the networks' shares."""
        parts = (runs * work.flops_per_sample * work.unsure for work, runs in self.networks)
        return sum(parts, np.zeros(1)) / self.flops_per_sample

    @property
    def unsure(self) -> Floats:
        """Log of the factor within which the work of all networks is believed to be right, tables too."""
        return self.given if self.model.tables is None else np.hypot(self.given, np.log(TABLES_WITHIN))

    @property
    def checkpoint_gib(self) -> float:
        """Weights that learn with their states."""
        held = (float((w.weight_bytes + w.opt_bytes)[0] * w.trainable_params[0]) for w, _ in self.networks)
        tables = 0.0 if self.model.tables is None else self.model.tables.all_bytes
        return (sum(held) + tables) / 1024.0**3

    @property
    def available_gib(self) -> Floats:
        """Memory a framework can allocate per accelerator of each device row, GiB."""
        return usable_gib(self.devices.memory_gib, self.devices.memory_rate, self.constants)

    @property
    def budget_gib(self) -> Floats:
        """The greatest predicted need a layout may have on each device row, GiB."""
        return budget_gib(self.available_gib, self.constants, self.training.memory.confidence)


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
    beside = tuple(
        build_devices(hardware, training, item.part.model.family.value, constants)
        for item in footprint.beside
    )
    return Job(model, training, work, footprint, devices, constants, is_sampled(model), beside)


def distinct_devices(seen_as: Sequence[Devices], decodes: bool) -> tuple[Ints, Ints]:
    """Device rows that stand for all equal ones, and for each row the position of its representative.

    Args:
        seen_as: one row per instance type, as each network meets them.
        decodes: whether CPU cores matter (the loader decodes samples).
    """
    ignored = {"reason", "host_gib", *(() if decodes else ("vcpus",))}
    names = [field.name for field in fields(Devices) if field.name not in ignored]
    numbers = [getattr(devices, name) for devices in seen_as for name in names]
    table = np.stack([np.where(np.isnan(column), -1.0, column) for column in numbers], axis=1)
    seen: dict[tuple[bytes, str], int] = {}
    first: list[int] = []
    inverse = np.empty(len(table), dtype=np.int64)
    for position, key in enumerate(zip(map(bytes, table), seen_as[0].reason.tolist(), strict=True)):
        if key not in seen:
            seen[key] = len(first)
            first.append(position)
        inverse[position] = seen[key]
    return np.asarray(first, dtype=np.int64), inverse


@record(frozen=True, eq=False)
class Layer:
    """What a micro-batch takes in one layer of the model, and its traffic that is not hidden in s, a row per layout."""

    micro: Micro
    comm: Floats

    def take(self, index: Ints) -> Layer:
        """Return rows `index`."""
        return Layer(self.micro.take(index), self.comm[index])

    @staticmethod
    def join(parts: Sequence[Layer]) -> Layer:
        """Rows of several."""
        if len(parts) == 1:
            return parts[0]
        names = [field.name for field in fields(Micro)]
        micro = {name: np.concatenate([getattr(part.micro, name) for part in parts]) for name in names}
        return Layer(Micro(**micro), np.concatenate([part.comm for part in parts]))


@record(frozen=True, eq=False)
class Place:
    """The device of each layout, and its links."""

    devices: Devices
    links: Links


def place_of(job: Job, layout: Layouts) -> Place:
    """Devices and links that layouts run on."""
    devices = job.devices.take(layout.hardware)
    return Place(devices, build_links(devices, job.constants))


def model_layer(job: Job, layout: Layouts, place: Place) -> Layer:
    """The layer of the model itself."""
    return layer_of(job.work, place.devices, place.links, layout, job.kind, job.training.stack, job.constants)


def step_of(
    job: Job, layout: Layouts, layer: Layer | None = None, generations: Generations | None = None
) -> Step:
    """Step time of layouts whose `hardware` points into the job's devices, generation included.

    Args:
        job: the job.
        layout: the layouts, shape `(n,)`.
        layer: `layer_of` them, where it is known.
        generations: `generations_on` their clusters, where it is known.
    """
    step = training_step_of(job, layout, layer)
    rollouts = job.training.tuning.rollouts
    if rollouts is None:
        return step
    if generations is None:
        generations = generations_on(job, layout.hardware, layout.nodes)
    return with_rollouts(rollouts, generations, layout, step, job.constants)


def generations_on(job: Job, hardware: Ints, nodes: Floats) -> Generations | None:
    """What clusters generate, by rows of the job's devices and numbers of machines; None where nothing is."""
    rollouts = job.training.tuning.rollouts
    if rollouts is None or rollouts.pool == "trainer":
        return None
    samples = job.training.global_batch
    return build_generations(job.model, rollouts, samples, job.devices, hardware, nodes, job.constants)


def training_step_of(
    job: Job, layout: Layouts, layer: Layer | None = None, place: Place | None = None
) -> Step:
    """As `step_of`, of training alone; `place`: of the layouts, where it is known."""
    place = place_of(job, layout) if place is None else place
    devices, links = place.devices, place.links
    layer = model_layer(job, layout, place) if layer is None else layer
    step = step_time(
        job.work, devices, links, layout, layer.micro, layer.comm, job.training.stack, job.constants
    )
    step = _with_networks(job, layout, step)
    step = with_pairs(job.work, devices, layout, links, step)
    if job.model.tables is not None:
        step = with_tables(job.model.tables, job.work, devices, layout, links, step)
    offloads = (job.footprint.offload_optimizer + job.footprint.offload_activations).any()
    return with_offload(job.footprint, devices, layout, step, job.constants) if offloads else step


def _with_networks(job: Job, layout: Layouts, step: Step) -> Step:
    """Add the networks beside the model: those that learn part by part, frozen ones as other models.

    Only what the whole step does not hide of data loading remains; the fixed time of a step counts once.
    """
    if not job.footprint.beside:
        return step
    parts = dict(step.parts)
    loading, added = parts["data_loading_s"], np.zeros(layout.tp.shape)
    for item, devices in zip(job.footprint.beside, job.beside, strict=True):
        if not item.part.per_sample:
            continue
        work = replace(item.footprint.work, global_batch=job.work.global_batch * item.part.per_sample)
        place = layout_of(item.part, layout)
        family = item.part.model.family.value
        own = evaluate(
            work, devices.take(layout.hardware), place, family, job.training.stack, job.constants
        ).parts
        used = {name: value for name, value in own.items() if name not in ("fixed_s", "data_loading_s")}
        for name, value in used.items():
            kept = name if item.part.trains != "none" or name == "evaluation_s" else "other_models_s"
            parts[kept] = parts[kept] + value
            added = added + value
    parts["data_loading_s"] = np.maximum(loading - added, 0.0)
    return Step(sum(parts.values(), np.zeros(layout.tp.shape)), parts)


def memory_levels(job: Job, layout: Layouts) -> tuple[Floats, Floats, Floats]:
    """Needed memory at the three recompute levels, GiB; a pinned level stands in for the others."""
    pinned = job.training.layout.recompute
    wanted = (NONE, SELECTIVE, FULL) if pinned is None else (LEVELS[pinned],)
    levels = levels_gib(job.footprint, layout, wanted, job.constants)
    return levels[0], levels[len(levels) // 2], levels[-1]


def need_of(job: Job, layout: Layouts) -> Floats:
    """Needed memory at each row's own recompute level, GiB."""
    return needed_gib(job.footprint, layout, job.constants)


SAMPLED_KINDS = frozenset({"cnn", "vit", "diffusion"})


def evaluate(
    work: Work,
    devices: Devices,
    layout: Layouts,
    kind: str,
    stack: str,
    c: Constants,
) -> Step:
    """Step time of layouts.

    Args:
        work: one row for all, or one row per layout.
        devices: one row per layout.
        layout: the layouts, shape `(n,)`.
        kind: model family (`transformer`, `cnn`, `vit`, `diffusion`).
        stack: software stack class.
        c: constants.
    """
    links = build_links(devices, c)
    layer = layer_of(work, devices, links, layout, kind, stack, c)
    return step_time(work, devices, links, layout, layer.micro, layer.comm, stack, c)


def layer_of(
    work: Work, devices: Devices, links: Links, layout: Layouts, kind: str, stack: str, c: Constants
) -> Layer:
    """One layer of layouts: of dense models it depends on tp, cp and the micro-batch alone; arguments as above."""
    if kind in SAMPLED_KINDS:
        return Layer(sampled_micro(work, devices, layout.micro_batch, stack, c), np.zeros(layout.tp.shape))
    comm = layer_comm_s(work, devices, layout, links, stack, c)
    return Layer(transformer_micro(work, devices, layout, comm, stack, c), comm)
