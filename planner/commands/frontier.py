"""`planner frontier`: the cheapest plan for every deadline."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.commands.options import (
    as_of_option,
    details_option,
    examples,
    offer_options,
    output_options,
    set_option,
)
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS

if TYPE_CHECKING:
    from planner.asked.options import Options
    from planner.inputs.load import LoadedWorkload

_POINTS = 10


@click.command(
    epilog=examples(
        "planner frontier examples/bert-large.yaml --deadline 12h --deadline 2d -o csv",
        "planner frontier examples/bert-large.yaml --against carbon",
    )
)
@click.argument("workload", type=click.Path(path_type=Path))
@set_option
@output_options(ANSWER_FORMATS)
@click.option("--against", type=click.Choice(["time", "carbon"]), default="time", show_default=True,
              help="What cost is weighed against: the deadline, or kgCO2e of the electricity.")  # fmt: skip
@click.option("--points", type=click.IntRange(min=2), show_default="10, fewer where a screen has no room",
              help="Most points a table shows; data formats hold all.")  # fmt: skip
@click.option("--deadline", "deadlines", multiple=True, metavar="LENGTH",
              help="Deadline to ask for beside the file's own, such as 36h or 5d; may be repeated.")  # fmt: skip
@as_of_option
@details_option("points", "proof")
@offer_options
def frontier(
    workload: Path, values: tuple[str, ...],
    output: str, against: str, points: int | None, deadlines: tuple[str, ...], as_of: datetime | None,
    allow_flagged: bool, allow_derived: bool, out: Path | None, details: tuple[str, ...],
) -> None:  # fmt: skip
    """Show what WORKLOAD costs by deadline, or by limit on emissions; every point is the plan of `optimize`.

    The file's deadline and budget (against carbon: max_kgco2e) are not applied but marked; all other limits apply.
    Exit code 0: at least one point; 3: no candidate passes the other limits; 2: invalid input.
    """
    from planner.asked.options import options_at
    from planner.inputs.load import load_workload
    from planner.inputs.settings import with_settings
    from planner.job.frontier import frontier as find
    from planner.job.frontier import thin
    from planner.job.frontier_report import frontier_report
    from planner.job.overrides import override

    loaded = override(
        with_settings(load_workload(workload), values),
        allow_flagged=allow_flagged,
        allow_derived=allow_derived,
    )
    deadlines_hours = [_hours(text) for text in deadlines]
    options = options_at(as_of)
    if against == "carbon":
        if deadlines_hours:
            raise click.UsageError(
                "--deadline: only for the frontier against time; set constraints.deadline instead"
            )
        _against_carbon(loaded, options, points, output, out, details)
        return
    offer = find(loaded, options, deadlines_hours=deadlines_hours)
    shown = thin(offer.points, points or _POINTS)
    report = frontier_report(offer, shown, details=details, fit=points is None)
    show_answer(report, output, out)
    if not offer.points:
        click.get_current_context().exit(3)


def _against_carbon(
    loaded: LoadedWorkload,
    options: Options,
    points: int | None,
    output: str,
    out: Path | None,
    details: tuple[str, ...],
) -> None:
    from planner.job.frontier_carbon import carbon_frontier
    from planner.job.frontier_carbon_report import carbon_report

    frontier = carbon_frontier(loaded, options)
    show_answer(carbon_report(frontier, points, details=details), output, out)
    if not frontier.points:
        click.get_current_context().exit(3)


def _hours(text: str) -> float:
    """A length of time as hours.

    Raises:
        BadParameter: the text is no length of time above 0.
    """
    from planner.units import parse_duration

    try:
        hours = parse_duration(text).total_seconds() / 3600.0
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--deadline") from None
    if hours <= 0:
        raise click.BadParameter(f"{text!r} is not above 0", param_hint="--deadline")
    return hours
