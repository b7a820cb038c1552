"""`planner verify`: recompute a saved answer or certificate, without the code that made it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.commands.options import output_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS

if TYPE_CHECKING:
    from planner.inputs.load import LoadedWorkload

_MOST_FAULTS = 20


@click.command()
@click.argument("answer", type=click.Path(path_type=Path))
@click.option(
    "--workload", type=click.Path(path_type=Path), default=None,
    help="The file the answer was made from: speed, hours, chances and limits are recomputed too.",
)  # fmt: skip
@click.option(
    "--prices/--no-prices", default=True, show_default=True, help="Compare prices with the catalog."
)
@click.option("--objective", type=click.Choice(["cost", "time"]), default=None, help="As given to optimize.")
@click.option("--allow-flagged", is_flag=True, help="As given to optimize.")
@click.option("--allow-derived", is_flag=True, help="As given to optimize.")
@output_options(ANSWER_FORMATS)
def verify(
    answer: Path, workload: Path | None, prices: bool, objective: str | None, allow_flagged: bool, allow_derived: bool,
    output: str, out: Path | None,
) -> None:  # fmt: skip
    """Recompute ANSWER (saved with `-o json`) from the catalog and its workload, without the code that made it.

    Without --workload: sums, dates and prices. With it: speed and memory, hours, chances, every cost line, quotas and
    limits too; what is stated and not recomputed is listed. Given a certificate (`--certificate FILE`), re-check the
    point, its cost, and the bound that no point is below, in whole numbers and without any solver.

    Exit code 0: it holds; 5: it does not; 2: it is no answer of this program.
    """
    from planner.judge.document import MalformedError, read_answer
    from planner.plan.certificates import is_certificate

    saved = read_answer(answer)
    if is_certificate(saved):
        _verify_certificate(answer, saved, output, out)
        return
    loaded = _load(workload, objective, allow_flagged, allow_derived)
    try:
        _verify_answer(answer, saved, loaded, prices, output, out)
    except MalformedError as error:
        raise MalformedError(f"{answer}: {error}") from error


def _load(
    path: Path | None, objective: str | None, allow_flagged: bool, allow_derived: bool
) -> LoadedWorkload | None:
    if path is None:
        return None
    from planner.inputs.load import load_workload
    from planner.job.overrides import override

    return override(
        load_workload(path), objective=objective, allow_flagged=allow_flagged, allow_derived=allow_derived
    )


def _verify_answer(
    path: Path, saved: Any, loaded: LoadedWorkload | None, prices: bool, output: str, out: Path | None
) -> None:  # fmt: skip
    from planner.errors import GateError
    from planner.judge.judge import judge_saved
    from planner.plan.file import as_plan
    from planner.plan.report_verdict import verdict_answer

    made = as_plan(path, saved)
    verdict = judge_saved(
        made, loaded, prices=prices, older=saved["schema_version"] != made["schema_version"]
    )
    if output != "table":
        show_answer(verdict_answer(str(path), verdict), output, out)
        if verdict.faults:
            click.get_current_context().exit(GateError.exit_code)
        return
    if verdict.nothing:
        click.echo(f"{path}: {verdict.nothing}")
        return
    if verdict.faults:
        shown = [f"  {fault}" for fault in verdict.faults[:_MOST_FAULTS]]
        if len(verdict.faults) > len(shown):
            shown.append(f"  ... and {len(verdict.faults) - len(shown)} more")
        raise GateError(f"{path}: the plan does not hold:\n" + "\n".join(shown))
    click.echo(f"{path}: holds ({', '.join(verdict.checked)}); {verdict.summary}")
    for why in dict.fromkeys(verdict.left_out.values()):
        names = [name for name, reason in verdict.left_out.items() if reason == why]
        click.echo(f"  stated, not recomputed: {', '.join(names)} ({why})")


def _verify_certificate(path: Path, certificate: dict[str, Any], output: str, out: Path | None) -> None:
    from planner.errors import GateError
    from planner.judge.judge import Verdict
    from planner.plan.certificates import check_certificate, summary
    from planner.plan.report_verdict import verdict_answer

    faults = check_certificate(certificate)
    if output != "table":
        said = "" if faults else summary(certificate)
        verdict = Verdict(tuple(map(str, faults)), ("point", "cost", "bound"), said)
        show_answer(verdict_answer(str(path), verdict), output, out)
        if faults:
            click.get_current_context().exit(GateError.exit_code)
        return
    if faults:
        shown = [f"  {fault}" for fault in faults[:_MOST_FAULTS]]
        if len(faults) > len(shown):
            shown.append(f"  ... and {len(faults) - len(shown)} more")
        raise GateError(f"{path}: the certificate does not hold:\n" + "\n".join(shown))
    click.echo(f"{path}: holds; {summary(certificate)}")
