"""One run of `planner calibrate`: read the measurement, compare it, store it, and report what it changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.asked.options import utc_now
from planner.calibration.correction import build_correction
from planner.calibration.logs import ReadOptions, read_log
from planner.calibration.measured import from_figure, read_line
from planner.calibration.store import load_all, save, to_text
from planner.errors import InputError
from planner.estimation.answer import on_each_hardware, open_job, step_time
from planner.estimation.compare import Calibrated, compare, from_log
from planner.estimation.layout import merge_pins, parse_layout
from planner.estimation.values import Interval
from planner.inputs.measured import Measured, parse_measured
from planner.market.machines import Machine, find_machine
from planner.records import record
from planner.render.presentable import Presentable

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from planner.asked.job import Job
    from planner.calibration.store import Calibration
    from planner.inputs.load import LoadedWorkload
    from planner.market.machines import MachineSet


@record(frozen=True)
class Run:
    """Options of the command line; see `planner.commands.calibrate`."""

    log: Path | None = None
    measured: str | None = None
    machine: str | None = None
    nodes: int = 1
    provider: str | None = None
    layout: str | None = None
    kind: str = "auto"
    skip: int | None = None
    step_name: str | None = None
    out: Path | None = None
    dry_run: bool = False


@record(frozen=True)
class Result(Presentable):
    """The measurement beside its prediction, the calibrated step time of the same cluster, and the file."""

    REPORT = "planner.estimation.calibrate_report:calibration_report"
    __repr__ = Presentable.__repr__

    name: str
    calibrated: Calibrated
    after: Interval
    file: str
    replaced: bool


def run_calibration(loaded: LoadedWorkload, run: Run, *, catalog_dir: Path | None = None) -> Result:
    """Calibrate with one measurement.

    Raises:
        InputError: the log, the line, the machine or the layout is wrong, or they contradict each other.
    """
    now = utc_now()
    asked, machine_set = open_job(loaded, now, catalog_dir=catalog_dir)
    on_each = on_each_hardware(loaded, asked, machine_set, now)
    item, machine, note = _measurement(
        lambda there: on_each(there.hardware).job, machine_set, now, loaded.workload.measured, run
    )
    asked = on_each(machine.hardware)
    comparison = compare(item, machine, asked.job, (note,) if note else ())
    stored, problems = load_all()
    file, replaced = "", False
    if not run.dry_run:
        path, replaced = save(
            item, to_text(item, comparison.predicted.step_time_s, comparison.predicted.spread), run.out
        )
        file = str(path)
    others = [other for other in stored if other.path is None or other.path.name != Path(file).name]
    correction = build_correction(item.model, item.training, [*others, item], problems)
    calibrated = replace(asked, calibration=correction)
    after = step_time(calibrated, machine_set, machine, int(item.cluster["nodes"]), item.training.layout)
    assert after is not None  # `compare` has predicted the same cluster
    return Result(asked.workload.name, comparison, after, file, replaced)


def _measurement(
    job_on: Callable[[Machine], Job], machine_set: MachineSet, now: datetime, line: str | None, run: Run
) -> tuple[Calibration, Machine, str]:
    """The measured point, where it was measured, and what to know of its kind.

    `job_on`: the job as a machine runs it; its precision may be one that the machine has.
    """
    if run.log is not None and run.measured is not None:
        raise InputError("give a log or --measured, not both")
    if run.log is None and run.measured is None:
        if line is None:
            raise InputError(
                "nothing was measured: give a LOG, --measured '12500 tokens/s', or a line 'measured:' in the workload"
            )
        if run.machine is not None:
            raise InputError("the workload's line 'measured:' tells where it ran: leave --instance-type out")
        figure, machine, nodes = read_line(line, machine_set)
        job = job_on(machine)
        return from_figure(figure, job, job.training, machine_set, machine, nodes, now), machine, ""
    if run.machine is None:
        raise InputError("--instance-type is needed: where did it run? (see `planner catalog list`)")
    machine = find_machine(machine_set, run.machine, run.provider)
    job = job_on(machine)
    pin = None if run.layout is None else parse_layout(run.layout)
    if run.log is not None:
        log = read_log(run.log, run.kind, ReadOptions(run.step_name))
        item = from_log(log, run.log.name, job, machine_set, machine, run.nodes, pin, run.skip, now)
        return item, machine, log.note
    training = replace(job.training, layout=merge_pins(job.training.layout, pin))
    return from_figure(_said(run), job, training, machine_set, machine, run.nodes, now), machine, ""


def _said(run: Run) -> Measured:
    """The throughput of `--measured`."""
    try:
        measured = parse_measured(run.measured or "", whole=False)
    except ValueError as fault:
        raise InputError(f"--measured {fault}") from None
    if measured.device:
        raise InputError(
            f"--measured: say where by --instance-type and --nodes, not by 'on ... {measured.device}'"
        )
    return measured
