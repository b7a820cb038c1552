"""`planner simulate`: what spot policies would have cost on recorded availability."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.commands.advise import POLICY_NAMES, load_model
from planner.commands.completing import instance_types
from planner.commands.options import Written, evidence_option, examples, output_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS

if TYPE_CHECKING:
    from planner.simulation.answer import Simulation
    from planner.simulation.groups import ZoneGroup
    from planner.simulation.jobs import SimJob
    from planner.spot.hazards import HazardModel

INTERRUPTED = 130


def _hours(text: str) -> float:
    """Hours of a time such as `48h`, `12m` or `3d`, or of a number of hours."""
    from planner.units import parse_duration

    try:
        hours = float(text)
    except ValueError:
        return parse_duration(text) / timedelta(hours=1)
    if not 0.0 < hours < 1e5:
        raise ValueError(f"{text!r} is not a time; write it as 48h, 12m or 3d")
    return hours


_HOURS = Written("time", _hours)


@click.command(
    epilog=examples(
        "planner simulate workload.yaml --generate 5 --policy all",
        "planner simulate --work-hours 40h --deadline 3d --generate 2 --instance-type p3.2xlarge",
    )
)
@click.argument("workloads", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--traces", type=click.Path(path_type=Path), default=None, help="Folder (or file) of recorded traces."
)
@click.option(
    "--generate",
    type=click.IntRange(1, 1000),
    default=None,
    help="Draw N traces from the fitted model instead.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice([*POLICY_NAMES, "all"]),
    default=("survival",),
    show_default=True,
    help="Policy to compare; may be repeated.",
)
@click.option(
    "--starts", type=click.IntRange(1, 100_000), default=60, show_default=True, help="Random launches."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the launches.")
@click.option(
    "--sweep", type=click.Path(path_type=Path), default=None, help="Many jobs: `planner schema sweep`."
)
@click.option(
    "--work-hours", type=_HOURS, default=None, help="Without a workload: hours of undisturbed work."
)
@click.option("--deadline", type=_HOURS, default=None, help="Without a workload: time from the launch.")
@click.option(
    "--restart", type=_HOURS, default=None, help="Without a workload: paid time of a restart.  [0.2h]"
)
@click.option("--acquire", type=_HOURS, default=None, help="Time until on-demand is obtained.  [0]")
@click.option(
    "--egress-usd",
    type=click.FloatRange(0),
    default=None,
    help="Cost of moving a checkpoint to another region.",
)
@click.option(
    "--instance-type", shell_complete=instance_types, default=None, help="Only traces of this type."
)
@click.option("--gang", type=click.IntRange(1), default=None, help="Instances needed together.")
@click.option(
    "--spot-ratio",
    type=click.FloatRange(0.01, 1.0),
    default=0.3,
    show_default=True,
    help="Spot price over on-demand price, if neither traces nor job have prices.",
)
@click.option(
    "--polarity",
    type=click.Choice(["auto", "instances", "preempted"]),
    default="auto",
    show_default=True,
    help="Meaning of the values in sample lists.",
)
@click.option("--any-trace", is_flag=True, help="Use traces of other types as substitutes.")
@click.option(
    "--groups",
    type=click.Choice(["both", "single", "several"]),
    default="both",
    show_default=True,
    help="Each zone alone, all zones of a recording together, or both.",
)
@click.option("--no-optimum", is_flag=True, help="Omit the offline optimum: several times faster.")
@evidence_option
@click.option("--workers", type=click.IntRange(1, 1024), default=1, show_default=True, help="Processes.")
@click.option(
    "--engine",
    type=click.Choice(["processes", "dask", "ray"]),
    default="processes",
    show_default=True,
    help="Engine that runs the tasks.",
)
@click.option(
    "--address",
    "--dask-address",
    default="",
    help="Address of a running Dask or Ray cluster (default: one on this machine).",
)
@click.option(
    "--plots", type=click.Path(path_type=Path, file_okay=False), default=None, help="Write SVG plots there."
)
@output_options(ANSWER_FORMATS)
@click.pass_context
def simulate(ctx: click.Context, /, **given: Any) -> None:
    """Replay spot policies on recorded or generated availability: cost, misses, gap to the offline optimum.

    The plan of each of WORKLOADS is replayed, or the best one on spot if it is not on spot. Alternatively, describe a
    job with --work-hours and --deadline, or many with --sweep. The same seed gives the same answer on every engine.
    After Ctrl-C, the results so far are shown, marked as partial.

    Exit code 0: done; 2: invalid input; 130: interrupted.
    """
    from planner.engines.executors import make_executor
    from planner.render.progress import counted_progress
    from planner.simulation.answer import Setting
    from planner.simulation.answer import simulate as run
    from planner.simulation.jobs import drawn_note

    name, jobs = _jobs(given)
    model = load_model(given["spot_evidence"])
    groups, model, notes = _groups(given, jobs, model)
    beside = (f"{job.name}: {job.beside}" for job in jobs if job.beside)
    notes = (*notes, *filter(None, map(drawn_note, jobs)), *beside)
    names = POLICY_NAMES if "all" in given["policies"] else tuple(dict.fromkeys(given["policies"]))
    setting = Setting(names, given["starts"], given["seed"], not given["no_optimum"])
    executor = make_executor(given["engine"], given["workers"], given["address"])
    quiet = ctx.obj is not None and ctx.obj.quiet
    with counted_progress("simulate", quiet=quiet) as on_done:
        replays = run(name, jobs, groups, model, setting, executor, on_done=on_done, notes=notes)
    _write(replays, given)
    if not replays.complete:
        ctx.exit(INTERRUPTED)


def _write(simulation: Simulation, given: dict[str, Any]) -> None:
    from planner.simulation.report import simulation_report

    show_answer(simulation_report(simulation), given["output"], given["out"])
    if given["plots"] is not None:
        from planner.simulation.plots import write_plots

        for path in write_plots(simulation, given["plots"]):
            click.echo(f"wrote {path}", file=sys.stderr)


def _jobs(given: dict[str, Any]) -> tuple[str, Sequence[SimJob]]:
    """Name and jobs of the question.

    Raises:
        InputError: nothing, or two things at once, say what to replay.
    """
    from planner.errors import InputError
    from planner.simulation.gather import named_apart, sweep_and_workload_jobs, workload_jobs
    from planner.simulation.jobs import SimJob, with_changes

    ways = [bool(given["workloads"]), given["sweep"] is not None, given["work_hours"] is not None]
    if sum(ways) != 1:
        raise InputError("give one of: workload files, --sweep FILE, or --work-hours with --deadline")
    any_trace = given["any_trace"]
    if given["sweep"] is not None:
        name, jobs = sweep_and_workload_jobs(given["sweep"], any_trace=any_trace)
    elif given["workloads"]:
        jobs = list(workload_jobs(given["workloads"], any_trace=any_trace))
        name = jobs[0].name if len(jobs) == 1 else f"{len(jobs)} workloads"
    else:
        if given["deadline"] is None:
            raise InputError("--work-hours needs --deadline, e.g. --work-hours 48 --deadline 72h")
        name = f"{given['work_hours']:g} h of work in {given['deadline']:g} h"
        jobs = [SimJob(name, given["work_hours"], given["deadline"], 0.2)]
    fields = {"deadline": "deadline_hours", "restart": "restart_hours", "acquire": "on_demand_acquire_hours",
             "egress_usd": "egress_usd"}  # fmt: skip
    changed: dict[str, Any] = {
        field: given[flag] for flag, field in fields.items() if given[flag] is not None
    }
    if given["instance_type"] is not None:
        changed["instance_types"] = (given["instance_type"],)
    if given["gang"] is not None:
        changed["gangs"] = (given["gang"],)
    return name, named_apart([with_changes(job, changed) for job in jobs])


def _groups(
    given: dict[str, Any], jobs: Sequence[SimJob], model: HazardModel
) -> tuple[list[ZoneGroup], HazardModel, tuple[str, ...]]:
    """Zone groups of the question, the hazards of their zones, and notes on them.

    Raises:
        InputError: neither or both of --traces and --generate.
    """
    from planner.errors import InputError
    from planner.simulation.groups import KINDS, zone_groups

    if (given["traces"] is None) == (given["generate"] is None):
        raise InputError("give either --traces FOLDER with recorded availability or --generate N")
    kinds = KINDS if given["groups"] == "both" else (given["groups"],)
    if given["generate"] is not None:
        from planner.simulation.gather import generated

        drawn, model, notes = generated(
            jobs,
            given["generate"],
            model,
            given["spot_ratio"],
            given["seed"],
            own=bool(given["spot_evidence"]),
        )
        return list(zone_groups(drawn, kinds)), model, notes
    from planner.simulation.gather import priced
    from planner.spot.traces.registry import read_traces

    traces = read_traces(given["traces"], gang=given["gang"], polarity=given["polarity"])
    zones, notes = priced(traces, jobs, given["spot_ratio"])
    return list(zone_groups(zones, kinds)), model, notes
