"""`planner track`: a running job against its plan."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.commands.options import (
    SECONDS,
    Written,
    currency_option,
    details_option,
    examples,
    log_format_option,
    output_options,
    share,
)
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS

if TYPE_CHECKING:
    from planner.tracking.bill import Spent
    from planner.tracking.model import Progress
    from planner.tracking.planned import Planned

SECTIONS = ("run", "split", "interruptions", "causes", "gates", "ways")


def _moment(text: str) -> datetime:
    """An aware moment."""
    from planner.inputs.quantities import of_our_time

    if text.strip().lower() == "now":
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a timestamp; write it as 2026-11-20T08:00Z, or now") from None
    return of_our_time(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))


def _chance(text: str) -> float:
    chance = share(text)
    if not 0.0 <= chance <= 1.0:
        raise ValueError(f"{text!r} is not a probability; write it as 20% or 0.2")
    return chance


def _metric(text: str) -> tuple[str, str]:
    """Name and query."""
    name, separator, query = text.partition("=")
    if not (separator and name.strip() and query.strip()):
        raise ValueError(f"{text!r} is not NAME=QUERY; write it as step='max(my_step)'")
    return name.strip(), query.strip()


_MOMENT, _CHANCE = Written("moment", _moment), Written("probability", _chance)


@click.command(
    epilog=examples(
        "planner track plan.json --log progress.csv --fail-late 20%",
        "planner track plan.json --prometheus http://127.0.0.1:9090 --bill bill.csv --replan",
    )
)
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--log", type=click.Path(path_type=Path), default=None, metavar="FILE",
              help="Progress as CSV or JSON lines (step, time, ...), or a log that calibrate reads.")  # fmt: skip
@log_format_option
@click.option(
    "--prometheus", default=None, metavar="URL", help="Instead of a log: metrics of a Prometheus server."
)
@click.option("--selector", default=None, metavar="LABELS",
              help="Labels of the run's metrics, job=\"train\" (default: planner_run_id of the plan).")  # fmt: skip
@click.option("--metric", "metrics", multiple=True, type=Written("metric", _metric), metavar="NAME=QUERY",
              help="Query for a quantity such as step, instead of the default one; may be repeated.")  # fmt: skip
@click.option("--token-env", default="PLANNER_PROMETHEUS_TOKEN", show_default=True, metavar="NAME",
              help="Environment variable with a bearer token.")  # fmt: skip
@click.option(
    "--timeout", type=SECONDS, default="30s", show_default=True, help="Time limit of all queries together."
)
@click.option("--replan", is_flag=True,
              help="Also recommend a step (stay, add nodes, change type, go on-demand), with costs.")  # fmt: skip
@click.option("--workload", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
              help="Workload of the plan, for --replan (default: found next to the plan by its hash).")  # fmt: skip
@click.option(
    "--started", type=_MOMENT, default=None, help="When the run began, for logs without timestamps."
)
@click.option("--now", type=_MOMENT, default=None,
              help="Current time, or now; the time since the last row is a stop (default: last row).")  # fmt: skip
@click.option(
    "--bill",
    multiple=True,
    metavar="PATH",
    help="Take the spend so far from this bill (FOCUS); may be repeated.",
)
@click.option("--run-tag", default=None, metavar="KEY",
              help="Tag key that identifies a run (default: planner_run_id, otherwise run_id).")  # fmt: skip
@currency_option
@click.option("--fail-late", type=_CHANCE, default=None, metavar="P",
              help="Exit with code 5 if the run is late with more than this probability.")  # fmt: skip
@click.option("--fail-over", type=_CHANCE, default=None, metavar="P", help="The same for the budget.")
@details_option(*SECTIONS)
@output_options(ANSWER_FORMATS, private=True)
def track(plan: Path, output: str, out: Path | None, details: tuple[str, ...], **given: Any) -> None:
    """Compare a running job with its PLAN (JSON of `planner optimize -o json`): is it on time and within budget?

    The answer has new intervals for finish and cost, shows where the time went, and names the most likely cause if
    the job is slow. Exit code 0: within the gates; 5: --fail-late or --fail-over (by default, the plan's confidence
    or budget) is exceeded; 2: invalid input.
    """
    from planner.tracking.answer import Ask
    from planner.tracking.answer import track as answer
    from planner.tracking.planned import load_planned
    from planner.tracking.report import track_report

    planned = load_planned(plan)
    progress = _progress(planned, given)
    ask = Ask(given["started"], given["now"], given["fail_late"], given["fail_over"])
    status = answer(planned, progress, ask, _spent(planned, given))
    if given["replan"]:
        from planner.tracking.replan import replan, workload_of

        status = replan(status, workload_of(status, plan, given["workload"]))
    show_answer(track_report(status, details), output, out)
    if status.broken:
        click.get_current_context().exit(5)


def _progress(planned: Planned, given: dict[str, Any]) -> Progress:
    """Progress from the log or the server.

    Raises:
        InputError: neither is named, or both.
    """
    from planner.errors import InputError

    if (given["log"] is None) == (given["prometheus"] is None):
        raise InputError("give --log FILE or --prometheus URL, one of the two")
    if given["log"] is not None:
        from planner.tracking.progress import read_progress

        return read_progress(given["log"], given["kind"])
    from planner.tracking.metrics import read_run

    return read_run(
        given["prometheus"], planned, started=given["started"], now=given["now"], selector=given["selector"],
        own=dict(given["metrics"]), token_env=given["token_env"], timeout_s=given["timeout"],
    )  # fmt: skip


def _spent(planned: Planned, given: dict[str, Any]) -> Spent | None:
    if not given["bill"]:
        return None
    from planner.tracking.bill import read_spent

    return read_spent(given["bill"], planned.plan.run_id, given["run_tag"], given["currency"])
