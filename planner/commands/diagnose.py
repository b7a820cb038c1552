"""`planner diagnose`: what limits the steps of a run, by its log alone."""

from __future__ import annotations

from pathlib import Path

import click

from planner.commands.options import examples, log_format_option, output_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS


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
