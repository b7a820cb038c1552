"""`planner whatif`: the plan under other values of the workload, beside that of the file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from planner.commands.options import as_of_option, examples, output_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS


@click.command(
    epilog=examples(
        "planner whatif workload.yaml --set constraints.deadline=10d --set constraints.max_nodes=16",
        "planner whatif workload.yaml --set constraints.deadline=5d --set constraints.budget_usd=9000 --together",
    )
)
@click.argument("workload", type=click.Path(path_type=Path))
@click.option("--set", "values", multiple=True, required=True, metavar="KEY=VALUE",
              help="A scenario: a value put over the file's; may be repeated.")  # fmt: skip
@click.option("--together", is_flag=True, help="All --set are one scenario, not one each.")
@output_options(ANSWER_FORMATS)
@as_of_option
def whatif(
    workload: Path, values: tuple[str, ...], together: bool, output: str, as_of: datetime | None, out: Path | None
) -> None:  # fmt: skip
    """Show what WORKLOAD would cost, and when it would be done, with other values.

    A key is a dotted path (`planner schema` lists them), a value is YAML; null removes the key. Exit code 0: a scenario
    has a plan; 3: none has one; 2: invalid input.
    """
    from planner.asked.options import options_at
    from planner.inputs.load import load_workload
    from planner.workloads.whatif import ask_whatif

    scenarios = [values] if together else [(value,) for value in values]
    what_if = ask_whatif(load_workload(workload), scenarios, options_at(as_of))
    report = what_if.report()
    show_answer(report, output, out)
    if not report.success:
        click.get_current_context().exit(3)
