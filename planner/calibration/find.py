"""The user's measurements that apply to one job; costs one look at a folder where there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalogs.cache.copies import is_folder
from catalogs.store.read import history_directory
from planner.inputs.resolved import Assumed

if TYPE_CHECKING:
    from datetime import datetime

    from planner.asked.job import Job
    from planner.calibration.correction import Correction
    from planner.inputs.schema import Workload
    from planner.market.machines import MachineSet


def find_correction(
    workload: Workload, job: Job, machine_set: MachineSet, now: datetime
) -> Correction | None:
    """Stored calibrations and the workload's `measured` line, as the correction of a job; None without any.

    Args:
        workload: may carry a `measured` line.
        job: resolved work.
        machine_set: the hardware that the line may name.
        now: moment of the run.

    Raises:
        InputError: the line names something unknown.
    """
    folder = history_directory().parent / "calibrations"
    if workload.measured is None and not is_folder(folder):
        return None
    from planner.calibration.correction import build_correction
    from planner.calibration.store import file_name, load_all

    calibrations, problems = load_all(folder)
    if workload.measured is not None:
        from planner.calibration.measured import from_line

        calibration = from_line(workload.measured, job, machine_set, now)
        # `planner calibrate` may have stored the same point: it counts once
        if all(file_name(item) != file_name(calibration) for item in calibrations):
            calibrations = [*calibrations, calibration]
    return build_correction(job.model, job.training, calibrations, problems)


def calibration_notes(correction: Correction) -> tuple[Assumed, ...]:
    """What the plan says of the measurements in force: one assumption per accelerator generation."""
    source = "your measurements (planner calibrate)"
    return tuple(
        Assumed(f"calibration.{name}", correction.describe(name), "", "derived", source)
        for name in sorted(correction.generations)
    )
