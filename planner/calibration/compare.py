"""From a measured run to a calibration, compared with what the model predicts for it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InputError
from planner.inputs.faults import Fault, FaultError, near
from planner.market.machines import machine_at
from planner.records import record

if TYPE_CHECKING:
    from datetime import datetime

    from planner.calibration.correction import Predicted
    from planner.calibration.logs import Log
    from planner.calibration.store import Calibration
    from planner.candidates.job_spec import Job
    from planner.inputs.measured import Measured
    from planner.market.machines import Machine
    from planner.market.offers import OfferSet
    from planner.performance.spec import LayoutPin, ModelSpec, TrainingSpec

_MEASURED = ("measured",)


def from_line(line: str, job: Job, offer_set: OfferSet, now: datetime) -> Calibration:
    """Turn `12500 tokens/s on 8 x h100-80gb-sxm` into a calibration of this job's training."""
    from planner.inputs.measured import parse_measured

    said = parse_measured(line)
    machine, nodes = _machines(said.device, said.count, offer_set)
    return from_figure(said, job, job.training, offer_set, machine, nodes, now)


def from_figure(
    said: Measured,
    job: Job,
    training: TrainingSpec,
    offer_set: OfferSet,
    machine: Machine,
    nodes: int,
    now: datetime,
) -> Calibration:
    """Turn one stated throughput into a calibration; its spread is assumed (`line_spread`)."""
    from planner.calibration.kernel import load_prior

    prior = load_prior()
    error = math.hypot(prior["line_spread"], prior["run_to_run"])
    source = f"{said.value:g} {said.unit}/s"
    evidence = {"kind": "line", "source": source, "steps_used": None, "steps_dropped": None, "mad_s": None}
    step = step_of(said.value, said.unit, job)
    return make_calibration(job.model, training, offer_set, machine, nodes, step, error, evidence, now)


def step_of(value: float, unit: str, job: Job) -> float:
    """Seconds per optimizer step from units per second.

    Raises:
        InputError: tokens of a model that has none.
    """
    if unit == "steps":
        return 1.0 / value
    if unit == "tokens" and job.unit != "tokens":
        raise FaultError(Fault(_MEASURED, f"this model has no tokens; give {job.unit} per second"))
    samples = job.training.global_batch
    return (samples * job.training.sequence_length if unit == "tokens" else samples) / value


def _machines(device: str, count: int, offer_set: OfferSet) -> tuple[Machine, int]:
    """The machine and node count of `count` x an instance type or accelerator.

    Of an accelerator's machines the largest whose size divides the count is taken, with the fastest network.
    """
    from catalogs.accelerators import canonical
    from catalogs.errors import CatalogError

    types = offer_set.types
    rows = np.flatnonzero(types.equals("instance_type", device))
    if len(rows):
        row, nodes = int(rows[0]), count
    else:
        try:
            wanted = canonical(device)
        except CatalogError:
            raise FaultError(_unknown_device(device, offer_set)) from None
        sizes = types["accelerator_count"]
        rows = np.flatnonzero(types.equals("accelerator", wanted) & (sizes >= 1))
        if not len(rows):
            raise FaultError(_unknown_device(device, offer_set))
        rows = np.asarray([row for row in rows.tolist() if count % int(sizes[row]) == 0], dtype=np.int64)
        if not len(rows):
            text = f"no machine with {device} has a size that divides {count}; name an instance type"
            raise FaultError(Fault(_MEASURED, text))
        network = np.nan_to_num(types["internode_gbps"][rows], nan=-1.0)
        row = int(rows[np.lexsort((-network, -sizes[rows]))[0]])
        nodes = count // int(sizes[row])
    return machine_at(offer_set, row), nodes


def _unknown_device(device: str, offer_set: OfferSet) -> Fault:
    types = offer_set.types
    known = sorted({*types.coded("accelerator").values, *types.coded("instance_type").values} - {""})
    close = near(device.lower(), known)
    more = "" if close else "; `planner catalog list` shows them"
    return Fault(_MEASURED, f"no instance type or accelerator called '{device}' in the catalog{more}", close)


def make_calibration(
    model: ModelSpec, training: TrainingSpec, offer_set: OfferSet, machine: Machine, nodes: int, step_time_s: float,
    error: float, evidence: dict[str, Any], now: datetime,
) -> Calibration:  # fmt: skip
    """Describe a measured point."""
    from planner.calibration.correction import hardware_row
    from planner.calibration.store import Calibration

    cluster = {
        "provider": machine.provider, "instance_type": machine.instance_type, "accelerator": machine.accelerator,
        "nodes": nodes,
    }  # fmt: skip
    return Calibration(
        model, training, hardware_row(offer_set.hardware, machine.hardware), cluster, step_time_s, error, evidence,
        now.isoformat(timespec="minutes"),
    )  # fmt: skip


@record(frozen=True)
class Calibrated:
    """A measured point beside its prediction; `warnings` doubt the inputs."""

    calibration: Calibration
    predicted: Predicted
    machine: Machine
    unit: str
    units_per_step: float
    warnings: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Measured over predicted step time."""
        return self.calibration.step_time_s / self.predicted.step_time_s


def from_log(
    log: Log, source: str, job: Job, offer_set: OfferSet, machine: Machine, nodes: int, pin: LayoutPin | None,
    skip: int | None, now: datetime,
) -> Calibration:  # fmt: skip
    """Turn a log into a calibration.

    Args:
        log: what was read.
        source: name of the log for people.
        job: what was run.
        offer_set: hardware.
        machine: where it ran.
        nodes: instances it ran on.
        pin: parts of the layout it ran with; the workload's own where None.
        skip: leading steps to leave out, None finds them.
        now: moment of the run.

    Raises:
        InputError: the log and the workload do not describe the same run.
    """
    from planner.calibration.kernel import load_prior
    from planner.calibration.steps import summarise_steps
    from planner.estimation.layout import merge_pins

    batch = job.training.global_batch
    if log.global_batch is not None and log.global_batch != batch:
        raise InputError(
            f"{source}: the log's global batch is {log.global_batch:,}, the workload's {batch:,}; "
            f"set training.global_batch to {log.global_batch:,}, so that both describe the same run"
        )
    count = nodes * max(1, int(machine.accelerators))
    if log.accelerators is not None and log.accelerators != count:
        raise InputError(
            f"{source}: the run had {log.accelerators} accelerators, {nodes} x {machine.instance_type} has {count}; "
            "correct --instance-type or --nodes"
        )
    seconds = log.values
    if log.unit != "seconds":
        seconds = tuple(step_of(value, log.unit, job) for value in log.values)
    found = summarise_steps(seconds, skip)
    prior = load_prior()
    spread = prior["line_spread"] if found.error is None else found.error
    evidence = {
        "kind": log.kind, "source": source, "steps_used": found.used * log.steps, "mad_s": found.mad_s,
        "steps_dropped": found.dropped * log.steps,
    }  # fmt: skip
    training = replace(job.training, layout=merge_pins(job.training.layout, pin))
    error = math.hypot(spread, prior["run_to_run"])
    return make_calibration(
        job.model, training, offer_set, machine, nodes, found.seconds, error, evidence, now
    )


def compare(calibration: Calibration, machine: Machine, job: Job, notes: tuple[str, ...] = ()) -> Calibrated:
    """Put a measured point beside its prediction.

    Raises:
        InputError: the model cannot predict it, or it is faster than the accelerators' peak.
    """
    from planner.calibration.correction import doubt, predict
    from planner.estimation.layout import division_fault, pin_text

    training = calibration.training
    where = f"{calibration.cluster['nodes']} x {machine.instance_type}"
    count = int(calibration.cluster["nodes"]) * max(1, int(machine.accelerators))
    fault = division_fault(training.layout, job.model, training, count, where)
    if fault:
        raise InputError(fault)
    found = predict(calibration)
    if found.reason:
        layout = pin_text(training.layout)
        raise InputError(
            f"what was measured cannot be predicted on {where} ({found.reason.replace('_', ' ')}"
            + (f" with {layout}" if layout else "")
            + "); check the workload's model, batch and sequence length, and --layout"
        )
    strange = doubt(calibration.step_time_s, found)
    if found.mfu > calibration.step_time_s / found.step_time_s:
        raise InputError(f"on {where}, {strange}")
    warnings = (*notes, strange) if strange else notes
    return Calibrated(calibration, found, machine, job.unit, job.units_per_step, warnings)
