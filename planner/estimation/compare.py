"""Make a calibration from the log of a run, and compare a calibration with the model's prediction."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.calibration.measured import make_calibration, step_of
from planner.errors import InputError
from planner.records import record

if TYPE_CHECKING:
    from datetime import datetime

    from planner.asked.job import Job
    from planner.calibration.correction import Predicted
    from planner.calibration.logs import Log
    from planner.calibration.store import Calibration
    from planner.market.machines import Machine, MachineSet
    from planner.performance.spec import LayoutPin


@record(frozen=True)
class Calibrated:
    """A measured point with its prediction; `warnings` are doubts about the inputs."""

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
    log: Log, source: str, job: Job, machine_set: MachineSet, machine: Machine, nodes: int, pin: LayoutPin | None,
    skip: int | None, now: datetime,
) -> Calibration:  # fmt: skip
    """Turn a log into a calibration.

    Args:
        log: what was read.
        source: name of the log for people.
        job: what was run.
        machine_set: hardware.
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
    step_time = summarise_steps(seconds, skip)
    prior = load_prior()
    spread = prior["line_spread"] if step_time.error is None else step_time.error
    evidence = {
        "kind": log.kind, "source": source, "steps_used": step_time.used * log.steps, "mad_s": step_time.mad_s,
        "steps_dropped": step_time.dropped * log.steps,
    }  # fmt: skip
    training = replace(job.training, layout=merge_pins(job.training.layout, pin))
    error = math.hypot(spread, prior["run_to_run"])
    return make_calibration(
        job.model, training, machine_set, machine, nodes, step_time.seconds, error, evidence, now
    )


def compare(calibration: Calibration, machine: Machine, job: Job, notes: tuple[str, ...] = ()) -> Calibrated:
    """Compare a measured point with its prediction.

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
    predicted = predict(calibration)
    if predicted.reason:
        layout = pin_text(training.layout)
        raise InputError(
            f"what was measured cannot be predicted on {where} ({predicted.reason.replace('_', ' ')}"
            + (f" with {layout}" if layout else "")
            + "); check the workload's model, batch and sequence length, and --layout"
        )
    strange = doubt(calibration.step_time_s, predicted)
    if predicted.mfu > calibration.step_time_s / predicted.step_time_s:
        raise InputError(f"on {where}, {strange}")
    warnings = (*notes, strange) if strange else notes
    return Calibrated(calibration, predicted, machine, job.unit, job.units_per_step, warnings)
