"""`planner verify`: recompute a saved answer or certificate, without the code that made it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.commands.options import DayOption

if TYPE_CHECKING:
    from planner.inputs.load import LoadedWorkload
    from planner.judge.judge import Verdict

_MOST_FAULTS = 20
_NOT_YET = {
    "portfolio": "save and verify its certificate (`planner portfolio --certificate FILE`)",
    "commit": "save and verify its certificate (`planner commit --certificate FILE`)",
}


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
@click.option("--as-of", type=DayOption(), default=None, metavar="DATE", help="As given to schedule.")
def verify(
    answer: Path, workload: Path | None, prices: bool, objective: str | None, allow_flagged: bool, allow_derived: bool,
    as_of: datetime | None,
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
        _verify_certificate(answer, saved)
        return
    from planner.judge.judge import kind_of

    kind = kind_of(saved)
    try:
        if kind in _NOT_YET:
            raise MalformedError(f"answers of `planner {kind}` are not recomputed; {_NOT_YET[kind]}")
        if kind in ("serving", "schedule", "pipeline"):
            judge = {"serving": _serving, "schedule": _schedule, "pipeline": _pipeline}[kind]
            _show(answer, kind, judge(saved, workload, as_of))
            return
        loaded = _load(workload, objective, allow_flagged, allow_derived)
        _verify_answer(answer, saved, loaded, prices)
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


def _verify_answer(path: Path, saved: Any, loaded: LoadedWorkload | None, prices: bool) -> None:
    from planner.judge.judge import judge_saved, kind_of
    from planner.plan.file import as_plan

    kind = kind_of(saved)
    made = as_plan(path, saved) if kind == "plan" else saved
    older = kind == "plan" and saved["schema_version"] != made["schema_version"]
    verdict = judge_saved(made, loaded, prices=prices, older=older)
    _show(path, kind, verdict)


def _schedule(saved: Any, path: Path | None, as_of: datetime | None) -> Verdict:
    from planner.errors import InputError
    from planner.inputs.schedule_load import as_on, load_schedule
    from planner.judge.judge import judge_schedule

    if path is None:
        raise InputError("a schedule is recomputed from its question: give it with --workload")
    loaded = load_schedule(path)
    return judge_schedule(saved, loaded if as_of is None else as_on(loaded, as_of))


def _pipeline(saved: Any, path: Path | None, _: datetime | None) -> Verdict:
    from planner.errors import InputError
    from planner.inputs.pipeline_load import load_pipeline
    from planner.judge.document import Node
    from planner.judge.judge import catalog_of, judge_pipeline
    from planner.judge.memory import Memory

    if path is None:
        raise InputError("a pipeline is recomputed from its file: give it with --workload")
    return judge_pipeline(saved, load_pipeline(path), Memory(catalog_of(Node(saved)), path.parent))


def _serving(saved: Any, path: Path | None, _: datetime | None) -> Verdict:
    from planner.errors import InputError
    from planner.inputs.serving_load import load_serving
    from planner.judge.document import Node
    from planner.judge.judge import catalog_of, judge_serving

    if path is None:
        raise InputError("a serving fleet is recomputed from its question: give it with --workload")
    return judge_serving(saved, load_serving(path), catalog_of(Node(saved)))


def _show(path: Path, kind: str, verdict: Verdict) -> None:
    from planner.errors import GateError

    if verdict.nothing:
        click.echo(f"{path}: {verdict.nothing}")
        return
    if verdict.faults:
        shown = [f"  {fault}" for fault in verdict.faults[:_MOST_FAULTS]]
        if len(verdict.faults) > len(shown):
            shown.append(f"  ... and {len(verdict.faults) - len(shown)} more")
        raise GateError(f"{path}: the {kind} does not hold:\n" + "\n".join(shown))
    click.echo(f"{path}: holds ({', '.join(verdict.checked)}); {verdict.summary}")
    for why in dict.fromkeys(verdict.left_out.values()):
        names = [name for name, reason in verdict.left_out.items() if reason == why]
        click.echo(f"  stated, not recomputed: {', '.join(names)} ({why})")


def _verify_certificate(path: Path, certificate: dict[str, Any]) -> None:
    from planner.errors import GateError
    from planner.plan.certificates import check_certificate, summary

    faults = check_certificate(certificate)
    if faults:
        shown = [f"  {fault}" for fault in faults[:_MOST_FAULTS]]
        if len(faults) > len(shown):
            shown.append(f"  ... and {len(faults) - len(shown)} more")
        raise GateError(f"{path}: the certificate does not hold:\n" + "\n".join(shown))
    click.echo(f"{path}: holds; {summary(certificate)}")
