"""`planner diagnose`: what limits the steps of a run, by its log alone."""

from __future__ import annotations

from pathlib import Path

import click

from planner.commands.options import examples, output_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS

# The names of planner.calibration.logs.READERS, which is imported only when a log is read; a test compares them.
LOG_FORMATS = ("auto", "csv", "progress", "megatron", "hf", "torch", "tensorboard", "wandb", "nsys")
log_format_option = click.option(
    "--format",
    "kind",
    type=click.Choice(LOG_FORMATS),
    default="auto",
    show_default=True,
    help="Format of the log.",
)


@click.command(
    epilog=examples("planner diagnose progress.csv", "planner diagnose train.log --format megatron -o json")
)
@click.argument("log", type=click.Path(path_type=Path))
@log_format_option
@output_options(ANSWER_FORMATS)
def diagnose(log: Path, kind: str, output: str, out: Path | None) -> None:
    """Find what limits the steps of a run from its LOG: data loading, compute, network, checkpoints, one slow host.

    If the log is not sufficient, the answer says which columns are missing. Exit code 0: read; 2: invalid input.
    """
    from planner.tracking.diagnose import diagnose as answer
    from planner.tracking.diagnose_report import diagnosis_report
    from planner.tracking.progress import read_progress

    show_answer(diagnosis_report(answer(read_progress(log, kind))), output, out)
