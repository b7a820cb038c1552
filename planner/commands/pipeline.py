"""`planner pipeline`: tasks that feed each other data, placed and timed together."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click

from planner.commands.options import (
    as_of_option,
    details_option,
    examples,
    output_options,
    robust_option,
    solver_options,
)
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS


@click.command(
    epilog=examples(
        "planner pipeline examples/pipeline.yaml",
        "planner pipeline examples/pipeline.yaml -o md --out pipeline.md",
    )
)
@click.argument("pipeline", type=click.Path(path_type=Path))
@output_options(ANSWER_FORMATS)
@as_of_option
@click.option("--solver", type=click.Choice(["auto", "milp"]), default="auto", show_default=True,
              help="auto: trees by dynamic programming, other graphs as a MILP.")  # fmt: skip
@solver_options
@robust_option
@details_option("warnings", "tasks", "transfers", "proof")
def pipeline(
    pipeline: Path, output: str, as_of: datetime | None, solver: str, backend: str, time_limit: float, gap: float,
    robust: float | None, out: Path | None, details: tuple[str, ...],
) -> None:  # fmt: skip
    """Plan all tasks of PIPELINE (a YAML file, `planner schema pipeline`): where, on which machines and when.

    Transfers between regions are priced by their tariffs and take their time. Exit code 0: a plan; 3: none keeps
    deadline and budget (the answer names the smallest change); 2: invalid input; 6: none found within the time limit.
    """
    from planner.asked.options import options_at
    from planner.inputs.pipeline_load import load_pipeline
    from planner.pipelines.answer import plan_pipeline
    from planner.pipelines.report import pipeline_report

    loaded = load_pipeline(pipeline)
    options = replace(options_at(as_of), solver=solver, backend=backend, gap=gap, time_limit_s=time_limit)
    answer = plan_pipeline(loaded, options, robust_level=robust)
    show_answer(pipeline_report(answer, details=details), output, out)
    if not answer.feasible:
        click.get_current_context().exit(6 if answer.undecided else 3)
