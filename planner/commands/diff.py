"""`planner diff`: what changed between two saved plans, or between the prices of two days."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.commands.options import DAY, Written, examples, output_options
from planner.commands.output import show_answer
from planner.render import units
from planner.render.formats import ANSWER_FORMATS

if TYPE_CHECKING:
    from planner.plan.diff import PlanDiff


def _rise(text: str) -> tuple[float, str]:
    """The amount, and its unit: `%` or `usd`."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(%|usd)\s*", text, re.IGNORECASE)
    if match is None:
        raise ValueError(f"{text!r} is not a rise in cost; write it as 5% or 500usd")
    return float(match[1]), match[2].lower()


@click.command(
    epilog=examples(
        "planner diff before.json after.json --fail-above 5% -o md",
        "planner diff workload.yaml --as-of 2026-11-01 --as-of 2026-11-20",
    )
)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="A.json B.json | FILE"
)
@click.option("--as-of", "days", multiple=True, type=DAY, metavar="DATE",
              help="Twice, with a workload: plan with the prices of these two days.")  # fmt: skip
@click.option("--fail-above", type=Written("rise", _rise), default=None, metavar="RISE",
              help="Exit code 5 where the cost rises by more, such as 5% or 500usd, or no plan is left.")  # fmt: skip
@output_options(ANSWER_FORMATS)
def diff(
    files: tuple[Path, ...], days: tuple[datetime, ...], fail_above: tuple[float, str] | None, output: str,
    out: Path | None,
) -> None:  # fmt: skip
    """Compare two plans saved with `-o json`, or the plans of one workload with the prices of two days.

    Lines: ~ changed, + new, - removed. `-o md` writes a comment for a pull request. Exit code 0: compared; 2: invalid
    input; 4: no prices are stored for a day; 5: the cost rose by more than --fail-above.
    """
    plan_diff = _found(files, days)
    show_answer(plan_diff.report(), output, out)
    if fail_above is not None:
        _gate(plan_diff, *fail_above)


def _found(files: tuple[Path, ...], days: tuple[datetime, ...]) -> PlanDiff:
    """What is compared.

    Raises:
        InputError: neither two plans, nor one workload and two days.
    """
    from planner.errors import InputError

    if len(files) == 2 and not days:
        from planner.plan.diff import diff_plans
        from planner.plan.file import load_plan

        old, new = (load_plan(path) for path in files)
        names = (
            [path.stem for path in files] if files[0].stem != files[1].stem else [str(path) for path in files]
        )
        return diff_plans(old, new, *names)
    if len(files) == 1 and len(days) == 2:
        from planner.inputs.load import load_workload
        from planner.workloads.price_days import diff_days

        return diff_days(load_workload(files[0]), days[0].date(), days[1].date())
    raise InputError(
        "diff: give two plans saved with `planner optimize -o json` (planner diff A.json B.json), "
        "or one workload and two days (planner diff FILE --as-of D1 --as-of D2)"
    )


def _gate(plan_diff: PlanDiff, limit: float, unit: str) -> None:
    """Fail where the cost rose by more than the limit.

    Raises:
        GateError: it did, or no plan is left.
    """
    from planner.errors import GateError

    if plan_diff.new.total_usd is None and plan_diff.old.total_usd is not None:
        raise GateError(f"--fail-above {limit:g}{unit}: {plan_diff.new.name} has no plan any more")
    change, ratio = plan_diff.change_usd, plan_diff.change_ratio
    if change is None:
        return
    risen = (
        float(change) > limit
        if unit == "usd"
        else float(change) > 0 and (ratio is None or ratio * 100 > limit)
    )
    if risen:
        much = f"{float(change):,.2f} USD" + ("" if ratio is None else f" ({units.change(ratio, 1)})")
        raise GateError(f"--fail-above {limit:g}{unit}: the cost rises by {much}")
