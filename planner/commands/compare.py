"""`planner compare`: one job on machines, places or ways to buy, side by side."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from planner.commands.completing import instance_types, rows_compared
from planner.commands.options import as_of_option, examples, offer_options, output_options, set_option
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS


@click.command(
    epilog=examples(
        "planner compare workload.yaml --pick p4d.24xlarge,a2-highgpu-8g,Standard_ND96asr_v4",
        "planner compare workload.yaml --over region --base aws/us-west-1",
    )
)
@click.argument("workload", type=click.Path(path_type=Path))
@set_option
@click.option(
    "--pick",
    shell_complete=instance_types,
    multiple=True,
    metavar="TYPE,...",
    help="Instance types to compare; may be repeated.",
)
@click.option("--over", type=click.Choice(["region", "type", "option", "provider"]), default=None,
              help="Compare all of these that can run the job.")  # fmt: skip
@click.option("--base", shell_complete=rows_compared, default=None, metavar="NAME",
              help="Row to compare with (default: the first one picked, otherwise the best).")  # fmt: skip
@output_options(ANSWER_FORMATS)
@as_of_option
@offer_options
def compare(
    workload: Path, values: tuple[str, ...], pick: tuple[str, ...], over: str | None, base: str | None, output: str,
    as_of: datetime | None, allow_flagged: bool, allow_derived: bool, out: Path | None,
) -> None:  # fmt: skip
    """Compare cost and speed of WORKLOAD by machine, region, provider or purchase option.

    Each row is the plan of `planner optimize` restricted to that row. Exit code 0: at least one row can run the job;
    3: none can; 2: invalid input.
    """
    from planner.asked.options import options_at
    from planner.inputs.load import load_workload
    from planner.inputs.settings import with_settings
    from planner.job.compare import OVERS
    from planner.job.compare import compare as find
    from planner.job.overrides import override

    loaded = with_settings(load_workload(workload), values)
    loaded = override(loaded, allow_flagged=allow_flagged, allow_derived=allow_derived)
    names = [name.strip() for text in pick for name in text.split(",") if name.strip()]
    offer = find(
        loaded, options_at(as_of), pick=names,
        over=next((choice for choice in OVERS if choice == over), None), base=base,
    )  # fmt: skip
    show_answer(offer.report(), output, out)
    if all(row.best is None for row in offer.rows):
        click.get_current_context().exit(3)
