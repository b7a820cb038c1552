"""`planner estimate`: what one cluster would do for a workload, with its parts and its price; nothing is chosen."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

from catalogs.store.load import load_catalog
from catalogs.tariffs import load_tariffs
from planner.asked.options import Options, utc_now
from planner.candidates.constraints.registry import SHAPE_FILTERS, constraint
from planner.candidates.default_precision import on_hardware
from planner.candidates.prepare import resolve_asked
from planner.errors import InputError
from planner.estimation.inference import answered_of, engine_words, served_precision
from planner.estimation.layout import batch_words, division_fault, merge_pins, pinned
from planner.estimation.parts import (
    Built,
    doubts_of,
    host_of,
    learned_factor,
    loading_of,
    memory_of,
    others_of,
)
from planner.estimation.predict import predict_shapes
from planner.estimation.prices import prices_of
from planner.estimation.run import run_totals
from planner.estimation.values import Estimate, Interval, Remedy
from planner.inputs.faults import FaultError
from planner.inputs.tasks import expand_task
from planner.market.machines import Machine, find_machine
from planner.market.offers import gather_machines, gather_offers
from planner.performance.constants import load_constants
from planner.performance.phases import told_phase
from planner.performance.post_training.quantized import pinned_note
from planner.performance.spec import COMPONENTS, LayoutPin
from planner.plan.layout import Layout
from planner.records import record
from planner.render.presentable import Presentable
from planner.render.words import assumed_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from catalogs.tables.table import Table
    from planner.asked.model import Asked
    from planner.estimation.values import Answered
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.schema import Workload
    from planner.market.machines import MachineSet
    from planner.market.offers import OfferSet
    from planner.performance.post_training.spec import Requests
    from planner.performance.spec import TrainingSpec

_Machines = TypeVar("_Machines", bound="MachineSet")
MAX_NODES = 128
# Pins released one by one, in pairs, ... to find what fits; beyond that all at once.
MAX_RELEASED = 3
PEAKED = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
_DIVIDES_NOT = ("layout_not_possible", "batch_not_divisible")


@record(frozen=True)
class Estimates(Presentable):
    """Estimates of one workload, in the order asked: by machine, then by nodes."""

    REPORT = "planner.estimation.report:estimates_report"
    __repr__ = Presentable.__repr__

    name: str
    estimates: tuple[Estimate, ...]
    warnings: tuple[str, ...]


def estimate_workload(
    loaded: LoadedWorkload,
    machines: Sequence[str],
    nodes: Sequence[int],
    pin: LayoutPin | None = None,
    provider: str | None = None,
    *,
    calibrated: bool = True,
    options: Options | None = None,
    catalog_dir: Path | None = None,
) -> Estimates:
    """Estimate a workload on every machine at every node count.

    Args:
        loaded: the workload file.
        machines: instance types.
        nodes: node counts.
        pin: parts of the layout to fix.
        provider: whose instance types, None = any.
        calibrated: correct with the user's own measurements.
        options: moment of the run and day of the prices, by default now with the newest.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: an unknown name, or a layout that cannot divide (of a single cluster).
    """
    options = options or Options(utc_now())
    now, as_of = options.now, options.as_of

    def gather(workload: Workload, base: str) -> OfferSet:
        return gather_offers(
            load_catalog(catalog_dir, as_of=as_of), workload, load_tariffs(), base, now.date()
        )

    asked, offer_set = _open(loaded, now, calibrated, gather)
    on_each = on_each_hardware(loaded, asked, offer_set, now)
    selected = [find_machine(offer_set, name, provider) for name in dict.fromkeys(machines)]
    clusters = [(machine, count) for machine in selected for count in dict.fromkeys(nodes)]
    estimates, refused = [], []
    for machine, count in clusters:
        own = on_each(machine.hardware)
        try:
            item = estimate_cluster(own, offer_set, machine, count, pin)
            estimates.append(replace(item, prices=prices_of(own, offer_set, machine, count)))
        except InputError as error:
            if len(clusters) == 1:
                raise
            refused.append(f"{count} x {machine.instance_type} left out: {error}")
    if not estimates:
        raise InputError("\n".join(refused))
    notes = _notes(asked, pin, [on_each(machine.hardware) for machine in selected])
    return Estimates(asked.workload.name, tuple(estimates), (*refused, *notes))


def _notes(asked: Asked, pin: LayoutPin | None, on_each: Sequence[Asked]) -> list[str]:
    """What figures rest on: one of many runs, parts of the layout that are fixed, assumed sizes, measurements."""
    fixed = pinned_note(replace(asked.job.training, layout=merge_pins(asked.job.training.layout, pin)))
    sizes = dict.fromkeys(text for own in on_each for text in assumed_sizes(own.job.assumptions))
    warnings = asked.calibration.warnings if asked.calibration else ()
    return [*_one_of_many(asked.workload), *filter(None, [fixed]), *sizes, *warnings]


def on_each_hardware(
    loaded: LoadedWorkload, asked: Asked, machine_set: MachineSet, now: datetime
) -> Callable[[int], Asked]:
    """What is asked on a row of the hardware table: without bf16, a training that states no precision runs in fp16."""

    @cache
    def on(row: int) -> Asked:
        workload = on_hardware(asked.workload, machine_set.hardware, [row])
        if workload is asked.workload:
            return asked
        return resolve_asked(loaded, workload, machine_set, now, calibrate=asked.calibration is not None)

    return on


def _one_of_many(workload: Workload) -> list[str]:
    """That figures are of one run, where a fleet has several."""
    runs = 1 if workload.fleet is None else workload.fleet.runs
    return (
        [] if runs == 1 else [f"hours and cost are of one of {runs:,} runs: planner optimize plans them all"]
    )


def open_job(
    loaded: LoadedWorkload, now: datetime, *, catalog_dir: Path | None = None
) -> tuple[Asked, MachineSet]:
    """The job of a workload and the machines that it may name; of a task its chosen rung.

    No price is read and no measurement of the user corrects the speed.

    Args:
        loaded: the workload file.
        now: moment of the run.
        catalog_dir: snapshot directory, default the bundled one.

    Raises:
        InputError: the workload names something unknown, with its place.
    """
    return _open(
        loaded, now, False, lambda workload, base: gather_machines(load_catalog(catalog_dir), workload, base)
    )


def _open(
    loaded: LoadedWorkload, now: datetime, calibrated: bool, gather: Callable[[Workload, str], _Machines]
) -> tuple[Asked, _Machines]:
    variants = expand_task(loaded.workload)
    workload = next((variant.workload for variant in variants if variant.chosen), loaded.workload)
    try:
        machine_set = gather(workload, str(loaded.path.parent))
        return resolve_asked(loaded, workload, machine_set, now, calibrate=calibrated), machine_set
    except FaultError as error:
        raise loaded.error(error.faults) from None


def estimate_cluster(
    asked: Asked, machine_set: MachineSet, machine: Machine, nodes: int, pin: LayoutPin | None
) -> Estimate:
    """Predict one cluster with the best layout, or with the parts of it that `pin` (or the workload) fixes.

    Args:
        asked: the workload and the job made of it.
        machine_set: the known types, of which `machine` is one.
        machine: instance type.
        nodes: instances.
        pin: parts of the layout fixed on the command line; they go before the workload's.

    Raises:
        InputError: the layout cannot divide the cluster or the batch.
    """
    training, row = _predicted(asked, machine_set, machine, nodes, pin)
    return _describe(asked, machine_set, machine, nodes, training, row)


def step_time(
    asked: Asked, machine_set: MachineSet, machine: Machine, nodes: int, pin: LayoutPin | None
) -> Interval | None:
    """Seconds per step as of `estimate_cluster`, and nothing else of it; None where the cluster cannot run the job."""
    _, row = _predicted(asked, machine_set, machine, nodes, pin)
    return _step_s(row)


def _step_s(row: Mapping[str, Any]) -> Interval | None:
    if row["reason"]:
        return None
    return Interval(row["step_time_s"], row["step_time_low_s"], row["step_time_high_s"])


def _predicted(
    asked: Asked, machine_set: MachineSet, machine: Machine, nodes: int, pin: LayoutPin | None
) -> tuple[TrainingSpec, dict[str, Any]]:
    """The training with the parts of the layout that are fixed, and its row of `predict_on`."""
    training = replace(asked.job.training, layout=merge_pins(asked.job.training.layout, pin))
    where, count = f"{nodes} x {machine.instance_type}", nodes * max(1, int(machine.accelerators))
    fault = division_fault(training.layout, asked.job.model, training, count, where)
    if fault:
        raise InputError(fault)
    row = _shape(asked, machine_set, machine, training, [nodes])[0]
    if row["reason"] in _DIVIDES_NOT:
        raise InputError(
            f"no parallel layout divides the {batch_words(training)} over the {count:,} accelerators of {where}; "
            "choose another number of nodes, or another batch"
        )
    return training, row


def _shape(
    asked: Asked, machine_set: MachineSet, machine: Machine, training: TrainingSpec, counts: Sequence[int]
) -> list[dict[str, Any]]:
    return predict_on(asked, machine_set.hardware.take([machine.hardware]), training, counts)


def predict_on(
    asked: Asked, hardware: Table, training: TrainingSpec, counts: Sequence[int]
) -> list[dict[str, Any]]:
    """Predict a job on one hardware row at each node count: the rows of `estimate_shapes`, corrected."""
    shapes = predict_shapes(asked.job.model, training, hardware, counts)
    if asked.calibration is not None:
        shapes = asked.calibration.apply(shapes, hardware)
    return [shapes.row(position) for position in range(shapes.n_rows)]


def _describe(
    asked: Asked,
    machine_set: MachineSet,
    machine: Machine,
    nodes: int,
    training: TrainingSpec,
    row: dict[str, Any],
) -> Estimate:
    fits = not row["reason"]
    hardware = machine_set.hardware.take([machine.hardware])
    layout = layout_of(row, training) if fits else None
    whole = training
    requests = training.tuning.requests
    writes = requests is not None and requests.answers is not None
    model, training = told_phase(asked.job.model, whole, row)
    of_phase = replace(asked, job=replace(asked.job, model=model))
    built = Built(of_phase, training, hardware)
    of_all = built if model is asked.job.model else Built(asked, training, hardware)
    return Estimate(
        machine=machine,
        nodes=nodes,
        unit=asked.job.unit,
        units_per_step=asked.job.units_per_step,
        precision=training.precision if requests is None else served_precision(requests, hardware),
        stack=training.stack if requests is None else engine_words(requests.engine),
        reason=_reason(row["reason"], training, hardware),
        layout=layout,
        step_s=_step_s(row),
        mfu=row["mfu"] if fits else None,
        hfu=row["mfu"] * recompute_factor(row["recompute"], training) if fits and requests is None else None,
        breakdown_s={name.removesuffix("_s"): row[name] for name in COMPONENTS} if fits else {},
        limited_by=row["limited_by"],
        memory=memory_of(built, row),
        loading=loading_of(built, row) if fits and not writes else None,
        host=host_of(asked, hardware, nodes, row),
        learned_factor=learned_factor(of_all, nodes) if requests is None else 1.0,
        calibration=_calibration(asked, hardware),
        remedy=None if fits else nearest_fit(asked, machine_set, machine, nodes, whole),
        others=others_of(of_phase, training, hardware, nodes),
        run=run_totals(asked.job, row, nodes * max(1, int(machine.accelerators)), asked.assumptions)
        if fits and not requests
        else None,
        doubts=doubts_of(built, nodes, row) if fits else (),
        answered=_answered(asked, requests, row) if fits else None,
        is_inference=requests is not None,
    )


def _answered(asked: Asked, requests: Requests | None, row: dict[str, Any]) -> Answered | None:
    section = asked.workload.inference
    if requests is None or section is None:
        return None
    return answered_of(asked.job, section.requests or section.items or 0, requests, row)


def _calibration(asked: Asked, hardware: Table) -> str:
    if asked.calibration is None:
        return ""
    return asked.calibration.describe(str(hardware["generation"][0]))


def _reason(word: str, training: TrainingSpec, hardware: Table) -> str:
    """Say why a cluster cannot run the job; empty where it can."""
    if not word:
        return ""
    if word == "no_peak_for_precision":
        precisions = [name for name in PEAKED if hardware.number(f"{name}_tflops")[0] > 0]
        peaks = f"its peaks: {', '.join(precisions)}" if precisions else "no source states its peak"
        return f"the accelerator has no known peak in {training.precision} ({peaks})"
    if word == "out_of_memory" and pinned(training.layout):
        return "no layout with the parts that are fixed fits in accelerator memory"
    return constraint(SHAPE_FILTERS[word]).words


def layout_of(row: Mapping[str, Any], training: TrainingSpec) -> Layout:
    """The layout of a row of `estimate_shapes`."""
    updates, passes = training.updates_and_passes or (None, None)
    return Layout(
        tensor_parallel=row["tp"], pipeline_parallel=row["pp"], context_parallel=row["cp"], data_parallel=row["dp"],
        zero_stage=row["zero_stage"], micro_batch=row["micro_batch"],
        grad_accumulation=row["grad_accum"] // (updates or 1), recompute=row["recompute"],
        expert_parallel=row["ep"], interleave=row["interleave"],
        sequence_parallel=bool(row["sequence_parallel"]), updates=updates, passes=passes,
    )  # fmt: skip


def recompute_factor(recompute: str, training: TrainingSpec) -> float:
    """Hardware FLOPs over model FLOPs: full recompute does one more forward pass (Korthikanti, arXiv 2205.05198).

    Forward and backward are one and two parts of a step, one and one with LoRA. Selective recompute repeats a fifth of
    the forward pass, as in the performance model.
    """
    forward = 1.0 / (2.0 if training.lora_rank else 3.0)
    again = {"none": 0.0, "selective": load_constants().get("recompute.selective_ratio", 0.2), "full": 1.0}
    return 1.0 + forward * again[recompute]


def nearest_fit(
    asked: Asked, machine_set: MachineSet, machine: Machine, nodes: int, training: TrainingSpec
) -> Remedy | None:
    """The layout nearest to the pins that fits this cluster; else the fewest nodes on which any does; else None."""
    fixed = pinned(training.layout)
    for size in sorted({*range(1, min(len(fixed), MAX_RELEASED) + 1), len(fixed)} - {0}):
        fitting: list[tuple[float, tuple[str, ...], dict[str, Any]]] = []
        for dropped in combinations(sorted(fixed), size):
            free = replace(training, layout=replace(training.layout, **dict.fromkeys(dropped)))
            row = _shape(asked, machine_set, machine, free, [nodes])[0]
            if not row["reason"]:
                fitting.append((row["step_time_s"], dropped, row))
        if fitting:
            _, dropped, row = min(fitting, key=lambda item: item[:2])
            return _remedy(asked, nodes, dropped, row)
    counts = range(nodes + 1, max(MAX_NODES, asked.workload.constraints.max_nodes) + 1)
    free = replace(training, layout=LayoutPin())
    for row in _shape(asked, machine_set, machine, free, list(counts)) if len(counts) else []:
        if not row["reason"]:
            return _remedy(asked, row["nodes"], tuple(sorted(fixed)), row)
    return None


def _remedy(asked: Asked, nodes: int, dropped: tuple[str, ...], row: dict[str, Any]) -> Remedy:
    return Remedy(
        layout_of(row, asked.job.training), nodes, dropped, asked.job.units_per_step / row["step_time_s"]
    )
