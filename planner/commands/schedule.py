"""`planner schedule`: when and where jobs run that may pause, given a forecast by the hour."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from planner.commands.options import DAY, details_option, examples, output_options, solver_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS


@click.command(
    epilog=examples(
        "planner schedule examples/schedule.yaml",
        "planner schedule examples/schedule.yaml -o csv --out schedule.csv",
    )
)
@click.argument("schedule", type=click.Path(path_type=Path))
@output_options(ANSWER_FORMATS)
@click.option(
    "--as-of",
    type=DAY,
    default=None,
    metavar="DATE",
    help="Plan as on this day: earlier hours of the forecast are past (default: from its start).",
)
@solver_options
@details_option("runs", "cost", "data", "work", "proof")
def schedule(
    schedule: Path,
    output: str,
    as_of: datetime | None,
    backend: str,
    time_limit: float,
    gap: float,
    out: Path | None,
    details: tuple[str, ...],
) -> None:
    """Find where and when the jobs in SCHEDULE (a YAML file, `planner schema schedule`) run at the lowest cost.

    Jobs may pause and move. Prices and available nodes come from the hourly forecast. Exit code 0: a schedule; 3: the
    work does not fit (the answer says what is missing and the least that helps); 2: invalid input; 6: none found in
    time.
    """
    from planner.inputs.schedule_load import as_on, load_schedule
    from planner.schedules.answer import plan_schedule
    from planner.schedules.report import schedule_report
    from solvers.problem.options import SolveOptions

    loaded = load_schedule(schedule)
    if as_of is not None:
        loaded = as_on(loaded, as_of)
    options = SolveOptions(gap=gap, time_limit_s=time_limit, backend=backend)
    answer = plan_schedule(loaded, options)
    show_answer(schedule_report(answer, details=details), output, out)
    if not answer.intervals:
        click.get_current_context().exit(3 if answer.result.status.value == "infeasible" else 6)
