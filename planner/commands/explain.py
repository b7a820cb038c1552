"""`planner explain`: why this plan, what a limit is worth, what lost, how sure the choice is."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from planner.commands.completing import instance_types
from planner.commands.options import as_of_option, details_option, examples, output_options, set_option
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS

_SECTIONS = (
    "limits", "rivals", "lost", "grounds", "plan", "alternatives", "kinds", "relaxations", "filters", "layouts",
    "assumptions",
)  # fmt: skip


@click.command(
    epilog=examples(
        "planner explain workload.yaml",
        "planner explain examples/bert-large.yaml --why-not p4d.24xlarge --details lost",
    )
)
@click.argument("workload", type=click.Path(path_type=Path))
@set_option
@click.option(
    "--why-not",
    shell_complete=instance_types,
    multiple=True,
    metavar="TYPE",
    help="Explain why this instance type was not chosen.",
)
@details_option(*_SECTIONS)
@click.option("--draws", type=click.IntRange(0, 100_000), default=1000, show_default=True, metavar="N",
              help="Draws of prices, speed and interruptions: how often the choice stays best.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the draws.")
@as_of_option
@output_options(ANSWER_FORMATS)
def explain(
    workload: Path, values: tuple[str, ...], why_not: tuple[str, ...], details: tuple[str, ...], draws: int,
    seed: int, as_of: datetime | None, output: str, out: Path | None,
) -> None:  # fmt: skip
    """Explain the plan of WORKLOAD: what binds, what one more unit is worth, what lost, how certain the choice is.

    Exit code 0: a plan; 3: nothing fits; 2: invalid input.
    """
    from planner.asked.options import options_at
    from planner.inputs.load import load_workload
    from planner.inputs.settings import with_settings
    from planner.render.progress import counted_progress
    from planner.workloads.explain import explain as find
    from planner.workloads.explain_report import explanation_report

    loaded = with_settings(load_workload(workload), values)
    options = options_at(as_of)
    with counted_progress("draws") as progress:
        offer = find(loaded, options, types=why_not, draws=draws, seed=seed, progress=progress)
    show_answer(explanation_report(offer, details), output, out)
    if offer.plan.status == "infeasible":
        click.get_current_context().exit(3)
