"""`planner size`: machines for those who know their data and their goal."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path

import click

from planner.commands.options import USD, FileBeside, as_of_option, details_option, examples, output_options
from planner.commands.output import show_answer, show_text
from planner.render.formats import ANSWER_FORMATS


@click.command(
    epilog=examples(
        "planner size --data 100GB --goal image_classification --deadline 3w --budget 5000",
        "planner size --data 2TB --goal language_model_pretraining --write workload.yaml",
    )
)
@click.option("--data", required=True, metavar="SIZE", help="Volume of the data, such as 100GB or 2TB.")
@click.option("--goal", required=True, metavar="GOAL",
              help="What it is for: image_classification, text_classification, text_finetuning, ...")  # fmt: skip
@click.option("--effort", type=click.Choice(["small", "medium", "large"]), default="medium", show_default=True,
              help="How large a model and training to assume.")  # fmt: skip
@click.option("--deadline", default=None, metavar="LENGTH", help="Time from now, such as 3w.")
@click.option("--budget", type=USD, default=None, metavar="USD", help="Budget.")
@click.option("--location", default=None, metavar="PLACE", help="Where the data are, such as aws/us-east-1.")
@click.option("--write", type=FileBeside(), default=None, metavar="FILE",
              help="Also write the workload there, to refine and plan.")  # fmt: skip
@details_option("needs", "rules", "refuted", "published", "undetermined", "beside", "relax", "workload")
@output_options(ANSWER_FORMATS)
@as_of_option
def size(
    data: str, goal: str, effort: str, deadline: str | None, budget: Decimal | None, location: str | None,
    write: Path | None, details: tuple[str, ...], output: str, as_of: datetime | None, out: Path | None,
) -> None:  # fmt: skip
    """Suggest machines from the amount of data and the goal, and compare them with published rules of thumb.

    Exit code 0: machines were found; 3: none within the limits; 2: invalid input.
    """
    from planner.asked.options import options_at
    from planner.workloads.size import size_workload
    from planner.workloads.size_report import size_report

    size = size_workload(
        data, goal, options_at(as_of), effort=effort, deadline=deadline,
        budget_usd=budget, location=location,
    )  # fmt: skip
    report = size_report(size, details=details, written="" if write is None else str(write))
    show_answer(report, output, out)
    if write is not None:
        show_text(size.workload, write)
    if not report.success:
        click.get_current_context().exit(3)
