"""`planner explain`: why this plan, why not another type."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from planner.commands.completing import instance_types
from planner.commands.options import as_of_option, examples, output_options
from planner.commands.output import show_answer, show_text
from planner.render.formats import ANSWER_FORMATS


@click.command(
    epilog=examples(
        "planner explain workload.yaml",
        "planner explain examples/bert-large.yaml --why-not p4d.24xlarge",
    )
)
@click.argument("workload", type=click.Path(path_type=Path))
@click.option(
    "--why-not",
    shell_complete=instance_types,
    multiple=True,
    metavar="TYPE",
    help="Say why this instance type is not the plan.",
)
@as_of_option
@output_options(ANSWER_FORMATS)
def explain(
    workload: Path, why_not: tuple[str, ...], as_of: datetime | None, output: str, out: Path | None
) -> None:  # fmt: skip
    """Say what removed candidates of WORKLOAD, and why an instance type is not the plan."""
    from planner.asked.options import Options, utc_now
    from planner.inputs.load import load_workload
    from planner.job.explain import explain_choice, explain_kinds, explain_layout
    from planner.job.explain import why_not as explain_type
    from planner.job.explain_report import explain_answer
    from planner.workloads.answer import optimize

    answer = optimize(load_workload(workload), Options(as_of or utc_now(), as_of=as_of and as_of.date()))
    asked, market = answer.context.asked, answer.context.market
    kinds = explain_kinds(answer.found)
    layouts = explain_layout(asked, market, answer.plan) if answer.found is not None else []
    others = {name: explain_type(asked, market, answer.found, name) for name in why_not}
    if output == "table":
        best = [f"best of {line}" for line in kinds]
        lines = [
            *explain_choice(answer.plan),
            *best,
            *layouts,
            *(line for said in others.values() for line in said),
        ]
        show_text("".join(f"{line}\n" for line in lines), out)
    else:
        show_answer(explain_answer(answer.plan, layouts, others, kinds), output, out)
    if answer.plan.status == "infeasible":
        click.get_current_context().exit(3)
