"""`planner sweep`: plans of many workloads, on many days, under many scenarios, here or on a cluster."""

from __future__ import annotations

import sys
from datetime import date, datetime
from pathlib import Path

import click

from planner.commands.options import DAY, RATIO, SECONDS, examples, output_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS

INTERRUPTED = 130


@click.command(
    epilog=examples(
        "planner sweep workloads/ --as-of 2026-11-20 --set constraints.deadline=12h --results sweep.parquet",
        "planner sweep *.yaml --as-of 2026-11-20 --engine dask --address tcp://head:8786 --results sweep.parquet",
    )
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--as-of", "days", multiple=True, type=DAY, metavar="DATE",
    help="Plan as on this day, with the prices known then; may be repeated.  [default: today]",
)  # fmt: skip
@click.option("--set", "values", multiple=True, metavar="KEY=VALUE",
              help="A scenario: a value put over each file's; may be repeated.")  # fmt: skip
@click.option("--together", is_flag=True, help="All --set are one scenario, not one each.")
@click.option("--results", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="FILE",
              help="Write one row a cell there: .parquet or .csv.")  # fmt: skip
@click.option("--parts", type=click.Path(path_type=Path, file_okay=False), default=None, metavar="DIR",
              help="Folder for finished cells, to resume an interrupted run.  [default: FILE.parts]")  # fmt: skip
@click.option("--engine", type=click.Choice(["local", "dask", "ray"]), default="local", show_default=True,
              help="Who computes.")  # fmt: skip
@click.option("--address", default="", help="A running Dask or Ray cluster; default: one of this machine.")
@click.option("--workers", type=click.IntRange(1, 1024), default=1, show_default=True,
              help="Processes of this machine.")  # fmt: skip
@click.option(
    "--time-limit", type=SECONDS, default="30s", show_default=True, help="Time limit of a cell's MILP."
)
@click.option("--gap", type=RATIO, default="0.1%", show_default=True, help="Gap at which a MILP may stop.")
@click.option(
    "--calibration/--no-calibration", "calibrated", default=True,
    help="Correct predictions with your measured runs (planner calibrate).",
)  # fmt: skip
@output_options(ANSWER_FORMATS)
@click.pass_context
def sweep(
    ctx: click.Context, /, files: tuple[Path, ...], days: tuple[datetime, ...], values: tuple[str, ...], together: bool,
    results: Path, parts: Path | None, engine: str, address: str, workers: int, time_limit: float, gap: float,
    calibrated: bool, output: str, out: Path | None,
) -> None:  # fmt: skip
    """Plan each of FILES (workloads, folders, sweep files) on each day, as it is and under each scenario.

    To resume a run that was interrupted, repeat the command: finished cells are not planned again. The results have
    the same bytes on every engine. Exit code 0: every cell has a row; 1: some failed; 2: invalid input,
    or some were refused; 130: interrupted.
    """
    from planner.asked.options import utc_now
    from planner.engines.executors import make_executor
    from planner.render.progress import counted_progress
    from planner.workloads.sweeps.answer import sweep as plan_all
    from planner.workloads.sweeps.question import Flags, gather_cells
    from planner.workloads.sweeps.table import check_ending, write_results

    check_ending(results)
    scenarios = _scenarios(values, together=together)
    own_days: tuple[date, ...] = tuple(day.date() for day in days)
    cells = gather_cells(
        files, scenarios, own_days, flags=Flags(calibrated, time_limit, gap), today=utc_now().date()
    )
    folder = results.with_name(f"{results.name}.parts") if parts is None else parts
    quiet = ctx.obj is not None and ctx.obj.quiet
    try:
        with counted_progress("sweep", quiet=quiet) as on_done:
            outcome = plan_all(cells, make_executor(engine, workers, address), folder, on_done=on_done)
    except KeyboardInterrupt:
        click.echo(
            f"finished cells are in {folder}; the same command continues with the others", file=sys.stderr
        )
        raise
    write_results(outcome.rows, results)
    show_answer(outcome.report(), output, out)
    if outcome.failed or outcome.refused:
        ctx.exit(1 if outcome.failed else 2)


def _scenarios(values: tuple[str, ...], *, together: bool) -> list[tuple[str, tuple[str, ...]]]:
    """Names and texts of the scenarios of the command line."""
    texts = [values] if together and values else [(value,) for value in values]
    return [(", ".join(combination), tuple(combination)) for combination in texts]
