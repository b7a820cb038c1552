"""`planner frontier`: the cheapest plan for every deadline."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from planner.commands.options import as_of_option, output_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS


@click.command()
@click.argument("workload", type=click.Path(path_type=Path))
@output_options(ANSWER_FORMATS)
@click.option("--points", type=click.IntRange(min=2), default=12, show_default=True,
              help="Most points a table shows; data formats hold all.")  # fmt: skip
@as_of_option
@click.option("--allow-flagged", is_flag=True, help="Admit offers with a refusing flag (see `catalog show`).")
@click.option("--allow-derived", is_flag=True, help="Add commitment prices derived from median ratios.")
def frontier(
    workload: Path, output: str, points: int, as_of: datetime | None, allow_flagged: bool, allow_derived: bool,
    out: Path | None,
) -> None:  # fmt: skip
    """Show what WORKLOAD costs for every deadline: the exact frontier of cost and time, with its proof.

    The file's own deadline and budget are set aside and marked in the table; all other limits hold.
    Exit code 0: at least one point; 3: no candidate passes the other limits; 2: bad input.
    """
    from planner.inputs.load import load_workload
    from planner.job.answer import Options, utc_now
    from planner.job.frontier import frontier as find
    from planner.job.frontier import thin
    from planner.job.frontier_report import frontier_report
    from planner.job.overrides import override

    loaded = override(load_workload(workload), allow_flagged=allow_flagged, allow_derived=allow_derived)
    found = find(loaded, Options(as_of or utc_now(), as_of=as_of and as_of.date()))
    report = frontier_report(found, thin(found.points, points))
    show_answer(report, output, out)
    if not found.points:
        click.get_current_context().exit(3)
