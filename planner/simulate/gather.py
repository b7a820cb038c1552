"""What to simulate: jobs from workloads, a sweep or flags; zone groups from recorded or generated traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.simulate.jobs import SimJob, plan_job, sweep_jobs

if TYPE_CHECKING:
    from planner.advise.saved_plan import SpotPlan
    from planner.risk.trace import ZoneTrace

TRACE_SUFFIXES = (".json", ".csv", ".gz", ".txt", ".jsonl", ".parquet")


def workload_jobs(paths: Sequence[Path], *, any_trace: bool) -> Iterator[SimJob]:
    """Plan each workload and take its best candidate on spot.

    Raises:
        InputError: a workload is wrong, has no deadline, or has no plan on spot.
    """
    for path in paths:
        plan = spot_plan_of(path)
        if plan.deadline is None:
            raise InputError(
                f"{path}: needs constraints.deadline: without one waiting for spot never costs anything"
            )
        yield plan_job(plan, any_trace=any_trace)


def spot_plan_of(path: Path) -> SpotPlan:
    """The plan of a workload with spot as the only way to buy, whatever else would be cheaper or safer.

    The deadline's confidence is not asked of it: with on-demand as the way out, spot alone need not be certain.

    Raises:
        InputError: the workload is wrong, or nothing on spot fits it.
    """
    from planner.advise.prices import with_prices
    from planner.advise.saved_plan import spot_plan
    from planner.optimize import Options, optimize, utc_now
    from planner.workload.load import load_workload

    loaded = load_workload(path, cache=False)
    from dataclasses import replace

    limits = loaded.workload.constraints.model_copy(
        update={"purchase_options": ("spot",), "exclude_purchase_options": (), "deadline_confidence": 0.01}
    )
    spot_only = loaded.workload.model_copy(update={"constraints": limits})
    answer = optimize(replace(loaded, workload=spot_only), Options(utc_now()))
    if not answer.plan.lines:
        raise InputError(
            f"{path}: nothing on spot fits this workload; `planner explain {path}` says what is in the way"
        )
    return with_prices(spot_plan(answer.plan.to_dict(), str(path)))[0]


def sweep_and_workload_jobs(path: Path, *, any_trace: bool) -> tuple[str, list[SimJob]]:
    """Name and jobs of a sweep file."""
    from planner.workload.sweep_load import load_sweep

    loaded = load_sweep(path)
    return loaded.sweep.name, [
        *sweep_jobs(loaded.sweep),
        *workload_jobs(loaded.workloads, any_trace=any_trace),
    ]


def named_apart(jobs: Sequence[SimJob]) -> list[SimJob]:
    """The jobs, with a number behind names that occur twice."""
    from dataclasses import replace

    seen: dict[str, int] = {}
    out = []
    for job in jobs:
        seen[job.name] = seen.get(job.name, 0) + 1
        out.append(job if seen[job.name] == 1 else replace(job, name=f"{job.name} ({seen[job.name]})"))
    return out


def recorded(folder: Path, gang: int | None) -> list[ZoneTrace]:
    """All traces of a folder or file, in the order of the files' names.

    Raises:
        InputError: nothing there can be read as a trace.
    """
    from planner.risk.traces.run_length import read_run_length

    files = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else [folder]
    files = [path for path in files if path.suffix.lower() in TRACE_SUFFIXES] if folder.is_dir() else files
    if not files:
        raise InputError(
            f"{folder}: holds no trace ({', '.join(TRACE_SUFFIXES)}); see docs/spot/hazards.md for formats"
        )
    return [trace for path in files for trace in read_run_length(path, gang=gang)]
