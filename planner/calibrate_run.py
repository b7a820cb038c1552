"""One run of `planner calibrate`: read the measurement, compare it, store it, and say what it changes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from catalogs.store import load_catalog
from planner.calibrate import Calibrated, compare, from_line, from_log, make_calibration, step_of
from planner.calibration.correction import build_correction
from planner.calibration.kernel import load_prior
from planner.calibration.logs import ReadOptions, read_log
from planner.calibration.store import load_all, save, to_text
from planner.errors import InputError
from planner.estimate import estimate_cluster
from planner.estimate_layout import merge_pins, parse_layout
from planner.estimate_values import Interval
from planner.machines import Machine, find_machine
from planner.optimize import build_context, utc_now
from planner.records import record
from planner.workload.measured import parse_measured
from planner.workload.tasks import expand_task

if TYPE_CHECKING:
    from planner.calibration.store import Calibration
    from planner.context import Context
    from planner.workload.load import LoadedWorkload


@record(frozen=True)
class Run:
    """What the command line says; see `planner.commands.calibrate`."""

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
class Result:
    """The measurement beside its prediction, the calibrated step time of the same cluster, and the file."""

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
    workload = loaded.workload
    variants = expand_task(workload)
    if variants:
        workload = next(variant.workload for variant in variants if variant.chosen)
    plain = workload.model_copy(update={"measured": None})
    context = build_context(loaded, plain, load_catalog(catalog_dir), utc_now(), calibrate=False)
    item, machine, note = _measurement(context, workload.measured, run)
    made = compare(item, machine, context.job, (note,) if note else ())
    stored, problems = load_all()
    file, replaced = "", False
    if not run.dry_run:
        path, replaced = save(item, to_text(item, made.predicted.step_time_s, made.predicted.spread), run.out)
        file = str(path)
    others = [other for other in stored if other.path is None or other.path.name != Path(file).name]
    correction = build_correction(item.model, item.training, [*others, item], problems)
    calibrated = replace(context, calibration=correction)
    after = estimate_cluster(calibrated, machine, int(item.cluster["nodes"]), item.training.layout).step_s
    assert after is not None  # `compare` has predicted the same cluster
    return Result(workload.name, made, after, file, replaced)


def _measurement(context: Context, line: str | None, run: Run) -> tuple[Calibration, Machine, str]:
    """The measured point, where it was measured, and what to know of its kind."""
    job, offers = context.job, context.offer_set
    if run.log is not None and run.measured is not None:
        raise InputError("give a log or --measured, not both")
    if run.log is None and run.measured is None:
        if line is None:
            raise InputError(
                "nothing was measured: give a LOG, --measured '12500 tokens/s', or a line 'measured:' in the workload"
            )
        if run.machine is not None:
            raise InputError("the workload's line 'measured:' tells where it ran: leave --instance-type out")
        item = from_line(line, job, offers, context.now)
        return item, find_machine(offers, item.cluster["instance_type"], item.cluster["provider"]), ""
    if run.machine is None:
        raise InputError("--instance-type is needed: where did it run? (see `planner catalog list`)")
    machine = find_machine(offers, run.machine, run.provider)
    pin = None if run.layout is None else parse_layout(run.layout)
    if run.log is not None:
        log = read_log(run.log, run.kind, ReadOptions(run.step_name))
        item = from_log(log, run.log.name, job, offers, machine, run.nodes, pin, run.skip, context.now)
        return item, machine, log.note
    return _from_option(context, run, machine), machine, ""


def _from_option(context: Context, run: Run, machine: Machine) -> Calibration:
    job, prior = context.job, load_prior()
    assert run.measured is not None
    try:
        said = parse_measured(run.measured, whole=False)
    except ValueError as fault:
        raise InputError(f"--measured {fault}") from None
    if said.device:
        raise InputError(
            f"--measured: say where by --instance-type and --nodes, not by 'on ... {said.device}'"
        )
    pin = None if run.layout is None else parse_layout(run.layout)
    training = replace(job.training, layout=merge_pins(job.training.layout, pin))
    error = math.hypot(prior["line_spread"], prior["run_to_run"])
    evidence = {
        "kind": "line",
        "source": run.measured,
        "steps_used": None,
        "steps_dropped": None,
        "mad_s": None,
    }
    step = step_of(said.value, said.unit, job)
    return make_calibration(
        job.model, training, context.offer_set, machine, run.nodes, step, error, evidence, context.now
    )
