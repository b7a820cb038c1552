"""`planner budget`: what was spent of each budget, where it lands, and how likely it goes over."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import click

from planner.commands.options import DayOption
from planner.render.report import REPORT_FORMATS


@click.command()
@click.argument("budgets", type=click.Path(path_type=Path))
@click.option("--focus", multiple=True, metavar="PATH", help="Bill: files, folders, globs; may be repeated.")
@click.option(
    "--daily", type=click.Path(path_type=Path), help="Instead of a bill: CSV with date, scope, cost."
)
@click.option(
    "--day", type=DayOption(), default=None, help="Check the periods of this day; default: the last known."
)
@click.option(
    "--plans", multiple=True, metavar="[SCOPE=]GLOB", help="Saved plans (-o json) to add; repeatable."
)
@click.option(
    "--drop-days", type=click.IntRange(0, 31), default=None,
    help="Last days to leave out; default: those whose bill looks late.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Choice(REPORT_FORMATS), default="table", show_default=True, help="Format."
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), default=None, help="Write there, not to stdout."
)
def budget(
    budgets: Path, focus: tuple[str, ...], daily: Path | None, day: datetime | None, plans: tuple[str, ...],
    drop_days: int | None, output: str, out: Path | None,
) -> None:  # fmt: skip
    """Check BUDGETS (a YAML file, `planner schema budget`) against a bill (--focus) or daily costs (--daily).

    Exit code 0: all within the gate; 5: one is over, or likelier to go over than its gate allows; 2: bad input.
    """
    from planner.finops.budget.answer import check_budgets, dimensions, refuse_csv_scopes
    from planner.finops.budget.report import budget_report
    from planner.finops.forecast.plans import load_plans
    from planner.finops.forecast.source import check_currency, read_costs
    from planner.render.report import render_report
    from planner.render.terminal import terminal_width, wants_color
    from planner.workload.budget_load import load_budgets

    loaded = load_budgets(budgets)
    if focus and daily is None:
        refuse_csv_scopes(loaded)
    planned, plan_currency = load_plans(plans)
    currency = loaded.file.currency
    costs = read_costs(
        focus,
        daily,
        dimensions(loaded),
        cost=loaded.file.cost,
        currency=currency if daily is not None else None,
    )
    check_currency(costs.currency, plan_currency)
    quiet = bool(getattr(click.get_current_context().find_root().obj, "quiet", False))
    for line in costs.findings if not quiet else ():
        click.echo(line, err=True)
    answer = check_budgets(
        loaded, costs.scopes, currency=costs.currency, day=day.date() if day is not None else None, planned=planned,
        drop_days=drop_days,
    )  # fmt: skip
    color = out is None and wants_color(sys.stdout)
    text = render_report(budget_report(answer), output, width=terminal_width(sys.stdout), color=color)
    if out is None:
        click.echo(text, nl=False)
    else:
        from planner.files import write_atomically

        write_atomically(out, text)
    if answer.exceeded:
        click.get_current_context().exit(5)
