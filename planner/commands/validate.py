"""`planner validate`: every fault of an input file at once, with its place; nothing is planned."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from planner.commands.options import as_of_option, examples, output_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS


@click.command(epilog=examples("planner validate workload.yaml", "planner validate - < workload.yaml"))
@click.argument("file", type=click.Path(path_type=Path))
@output_options(ANSWER_FORMATS)
@as_of_option
def validate(file: Path, output: str, as_of: datetime | None, out: Path | None) -> None:
    """Check FILE, a workload or the file of another question; - is a workload from standard input.

    The others are portfolios, pipelines, schedules, serving fleets, commitments, tco, budgets, sweeps and own machines.
    Missing and unknown keys, values, and names that the catalog does not have are listed together, with line, column
    and the nearest name. Exit code 0: valid; 2: not.
    """
    from planner.asked.options import options_at
    from planner.workloads.validate import validate_file

    valid = validate_file(file, options_at(as_of))
    show_answer(valid.report(), output, out)
