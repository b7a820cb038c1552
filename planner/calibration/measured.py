"""From a stated throughput to a calibration: a measured point of one job on one machine."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.errors import CatalogError
from catalogs.tables.accelerators import canonical
from planner.inputs.faults import Fault, FaultError, near
from planner.market.machines import machine_at

if TYPE_CHECKING:
    from datetime import datetime

    from planner.asked.job import Job
    from planner.calibration.store import Calibration
    from planner.inputs.measured import Measured
    from planner.market.machines import Machine, MachineSet
    from planner.performance.spec import ModelSpec, TrainingSpec

_MEASURED = ("measured",)


def from_line(line: str, job: Job, machine_set: MachineSet, now: datetime) -> Calibration:
    """Turn `12500 tokens/s on 8 x h100-80gb-sxm` into a calibration of this job's training."""
    figure, machine, nodes = read_line(line, machine_set)
    return from_figure(figure, job, job.training, machine_set, machine, nodes, now)


def read_line(line: str, machine_set: MachineSet) -> tuple[Measured, Machine, int]:
    """What such a line states, and the machines on which it was measured with their number."""
    from planner.inputs.measured import parse_measured

    figure = parse_measured(line)
    return figure, *_machines(figure.device, figure.count, machine_set)


def from_figure(
    said: Measured,
    job: Job,
    training: TrainingSpec,
    machine_set: MachineSet,
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
    return make_calibration(job.model, training, machine_set, machine, nodes, step, error, evidence, now)


def step_of(value: float, unit: str, job: Job) -> float:
    """Seconds per optimizer step from units per second.

    Raises:
        InputError: tokens of a model that has none.
    """
    if unit == "steps":
        return 1.0 / value
    if unit == "tokens" and job.unit != "tokens":
        raise FaultError(Fault(_MEASURED, f"this model has no tokens; give {job.unit} per second"))
    return (job.units_per_step if unit == "tokens" else job.training.global_batch) / value


def _machines(device: str, count: int, machine_set: MachineSet) -> tuple[Machine, int]:
    """The machine and node count of `count` x an instance type or accelerator.

    Of an accelerator's machines the largest whose size divides the count is taken, with the fastest network.
    """
    types = machine_set.types
    rows = np.flatnonzero(types.equals("instance_type", device))
    if len(rows):
        row, nodes = int(rows[0]), count
    else:
        try:
            wanted = canonical(device)
        except CatalogError:
            raise FaultError(_unknown_device(device, machine_set)) from None
        sizes = types["accelerator_count"]
        rows = np.flatnonzero(types.equals("accelerator", wanted) & (sizes >= 1))
        if not len(rows):
            raise FaultError(_unknown_device(device, machine_set))
        rows = np.asarray([row for row in rows.tolist() if count % int(sizes[row]) == 0], dtype=np.int64)
        if not len(rows):
            text = f"no machine with {device} has a size that divides {count}; name an instance type"
            raise FaultError(Fault(_MEASURED, text))
        network = np.nan_to_num(types["internode_gbps"][rows], nan=-1.0)
        row = int(rows[np.lexsort((-network, -sizes[rows]))[0]])
        nodes = count // int(sizes[row])
    return machine_at(machine_set, row), nodes


def _unknown_device(device: str, machine_set: MachineSet) -> Fault:
    types = machine_set.types
    known = sorted({*types.coded("accelerator").values, *types.coded("instance_type").values} - {""})
    close = near(device.lower(), known)
    more = "" if close else "; `planner catalog list` shows them"
    return Fault(_MEASURED, f"no instance type or accelerator called {device!r} in the catalog{more}", close)


def make_calibration(
    model: ModelSpec, training: TrainingSpec, machine_set: MachineSet, machine: Machine, nodes: int, step_time_s: float,
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
        model, training, hardware_row(machine_set.hardware, machine.hardware), cluster, step_time_s, error, evidence,
        now.isoformat(timespec="minutes"),
    )  # fmt: skip
