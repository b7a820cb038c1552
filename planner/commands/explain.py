"""`planner explain`: why this plan, why not another type."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from planner.commands.options import as_of_option


@click.command()
@click.argument("workload", type=click.Path(path_type=Path))
@click.option("--why-not", multiple=True, metavar="TYPE", help="Say why this instance type is not the plan.")
@as_of_option
def explain(workload: Path, why_not: tuple[str, ...], as_of: datetime | None) -> None:
    """Say what removed candidates of WORKLOAD, and why an instance type is not the plan."""
    from planner.inputs.load import load_workload
    from planner.job.answer import Options, optimize, utc_now
    from planner.job.explain import explain_choice, explain_layout
    from planner.job.explain import why_not as explain_type

    answer = optimize(load_workload(workload), Options(as_of or utc_now(), as_of=as_of and as_of.date()))
    for line in explain_choice(answer.plan):
        click.echo(line)
    if answer.found is not None:
        for line in explain_layout(answer.context, answer.plan):
            click.echo(line)
    for name in why_not:
        for line in explain_type(answer.context, answer.found, name):
            click.echo(line)
    if answer.plan.status == "infeasible":
        click.get_current_context().exit(3)
