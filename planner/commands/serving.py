"""`planner serving`: the cheapest mix of machines for requests of several size classes."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from planner.commands.options import RATIO, SECONDS, as_of_option, details_option, examples, output_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS


@click.command(
    epilog=examples(
        "planner serving examples/serving.yaml",
        "planner serving examples/serving.yaml -o json --out serving.json",
    )
)
@click.argument("serving", type=click.Path(path_type=Path))
@output_options(ANSWER_FORMATS)
@as_of_option
@click.option("--backend", default="auto", show_default=True, help="MILP backend: auto, highspy or scipy.")
@click.option(
    "--time-limit", type=SECONDS, default="30s", show_default=True, help="Time limit of the solver."
)
@click.option(
    "--gap", type=RATIO, default="0.01%", show_default=True, help="Gap at which the solver may stop."
)
@details_option("machines", "speeds", "proof")
def serving(
    serving: Path,
    output: str,
    as_of: datetime | None,
    backend: str,
    time_limit: float,
    gap: float,
    out: Path | None,
    details: tuple[str, ...],
) -> None:
    """Find the cheapest machines that serve the requests in SERVING (a YAML file, `planner schema serving`).

    Exit code 0: a fleet; 3: the allowed machines cannot carry the load; 2: invalid input; 6: none found in time.
    """
    from planner.asked.options import utc_now
    from planner.inputs.serving_load import load_serving
    from planner.serving.answer import plan_serving
    from planner.serving.report import serving_report
    from solvers.problem.options import SolveOptions

    loaded = load_serving(serving)
    options = SolveOptions(gap=gap, time_limit_s=time_limit, backend=backend)
    answer = plan_serving(loaded, options, on=(as_of or utc_now()).date(), as_of=as_of and as_of.date())
    show_answer(serving_report(answer, details=details), output, out)
    if not answer.lines:
        click.get_current_context().exit(3 if answer.result.status.value == "infeasible" else 6)
