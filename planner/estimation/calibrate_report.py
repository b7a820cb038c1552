"""A new calibration as a report: the measurement, the prediction, and the calibrated step time."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

from planner.render.model import Answer, Cell, Section, Unit, Value, facts, versioned
from planner.render.numbers import number, pace
from planner.render.units import seconds, three
from planner.render.words import cluster

if TYPE_CHECKING:
    from planner.estimation.calibrate import Result
    from planner.estimation.compare import Calibrated
    from planner.estimation.values import Interval

SCHEMA_VERSION = 1
COLUMNS = (
    "workload", "provider", "instance_type", "nodes", "precision", "stack", "source_kind", "steps_used",
    "steps_dropped", "measured_step_time_s", "predicted_step_time_s", "measured_over_predicted_ratio",
    "calibrated_step_time_s", "calibrated_step_time_low_s", "calibrated_step_time_high_s", "file",
)  # fmt: skip


def calibration_report(result: Result) -> Answer:
    """Return the answer for one run of `planner calibrate`."""
    return build_report(result.name, result.calibrated, result.after, result.file, result.replaced)


def build_report(name: str, calibrated: Calibrated, after: Interval, file: str, replaced: bool) -> Answer:
    """Return the answer for one measurement.

    Args:
        name: of the workload.
        calibrated: measurement and prediction.
        after: calibrated step time of the same cluster, s.
        file: where the calibration was written; empty for a trial.
        replaced: whether an older measurement of the same point was replaced.
    """
    item, prediction = calibrated.calibration, calibrated.predicted
    where = cluster(int(item.cluster["nodes"]), calibrated.machine.instance_type)
    headline = f"{name} on {where}: measured {pace(calibrated.ratio, 'predicted')}"
    evidence = item.evidence
    used, dropped = evidence["steps_used"], evidence["steps_dropped"]
    steps = (
        "one stated figure"
        if not used
        else f"{number(used, 6)} steps used, {number(dropped, 6)} of warm-up skipped"
    )
    if evidence["mad_s"] is not None:
        steps += f", median absolute deviation {seconds(evidence['mad_s'])}"
    low, high = (prediction.step_time_s * exp(end) for end in (-prediction.spread, prediction.spread))
    unit = calibrated.unit
    speed = f"{seconds(item.step_time_s)} per step, {three(calibrated.units_per_step / item.step_time_s)} {unit}/s"
    before = f"{seconds(prediction.step_time_s)} per step (80 %: {seconds(low)} to {seconds(high)})"
    now = f"{seconds(after.value)} per step (80 %: {seconds(after.low)} to {seconds(after.high)})"
    rows: list[tuple[str, str, Value, Unit, str]] = [
        ("source", "from", evidence["source"], "text", f"{evidence['kind']}: {evidence['source']}"),
        ("steps_used", "evidence", used, "count", steps),
        ("measured_step_time_s", "measured", item.step_time_s, "seconds", speed),
        ("predicted_step_time_s", "predicted", prediction.step_time_s, "seconds", before),
        ("calibrated_step_time_s", "from now on", after.value, "seconds", now),
    ]
    saved = f"{'replaced' if replaced else 'written'}: {file}" if file else "a trial: nothing was written"
    use = (
        "used by `planner optimize` and `planner estimate` for this accelerator generation and stack, most for this "
        "model, precision and size; --no-calibration leaves it out"
    )
    sections = (
        [Section("warnings", "Warnings", calibrated.warnings, warning=True)] if calibrated.warnings else []
    )
    sections += [
        facts("measurement", "Measurement", rows),
        Section("calibration", "Calibration", (saved, *((use,) if file else ()))),
    ]
    row = _row(name, calibrated, after, file)
    values = {**row, "warnings": list(calibrated.warnings), "replaced": replaced}
    return Answer(
        f"Calibration of {name}",
        headline,
        (),
        tuple(sections),
        versioned(values, SCHEMA_VERSION),
        COLUMNS,
        [row],
    )


def _row(name: str, calibrated: Calibrated, after: Interval, file: str) -> dict[str, Cell]:
    """The flat form of one measurement."""
    item, evidence = calibrated.calibration, calibrated.calibration.evidence
    return {
        "workload": name, **item.cluster, "precision": item.training.precision, "stack": item.training.stack,
        "source_kind": evidence["kind"], "steps_used": evidence["steps_used"],
        "steps_dropped": evidence["steps_dropped"],
        "measured_step_time_s": item.step_time_s, "predicted_step_time_s": calibrated.predicted.step_time_s,
        "measured_over_predicted_ratio": calibrated.ratio, "calibrated_step_time_s": after.value,
        "calibrated_step_time_low_s": after.low, "calibrated_step_time_high_s": after.high, "file": file or None,
    }  # fmt: skip
