"""`planner tco`: buy a machine or rent its work, over the machine's life."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from planner.commands.options import as_of_option, details_option, examples, output_options
from planner.commands.output import show_answer, show_text
from planner.render.formats import ANSWER_FORMATS


@click.command(
    epilog=examples(
        "planner tco examples/tco-8xh100.yaml", "planner tco examples/tco-8xh100.yaml --owned own.yaml"
    )
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--owned", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
              help="Also write the machine there, for `prices: {offers: [FILE]}` of a workload.")  # fmt: skip
@details_option("ways", "pairs", "tornado", "cash", "inputs", "parts", "quotes", "checks", "resales", "owned")
@output_options(ANSWER_FORMATS)
@as_of_option
def tco(
    file: Path,
    owned: Path | None,
    details: tuple[str, ...],
    output: str,
    as_of: datetime | None,
    out: Path | None,
) -> None:
    """Compare buying the machine in FILE (YAML) with renting, per useful accelerator-hour.

    Your site, a colocation and each way to rent are compared month by month over the machine's life: price, power,
    staff, repairs and resale against the catalog's expected prices. The answer has the month and the utilisation at
    which owning breaks even, and what a range of each input does to it. Exit code 0: an answer; 2: invalid input.
    """
    from planner.asked.options import options_at
    from planner.inputs.tco_load import load_tco
    from planner.owning.answer import plan_tco
    from planner.owning.report import tco_report

    options = options_at(as_of)
    answer = plan_tco(load_tco(file), options)
    show_answer(tco_report(answer, details=details), output, out)
    if owned is not None:
        show_text(answer.handover.text, owned)
