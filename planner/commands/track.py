"""`planner track`: a running job against its plan."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.commands.diagnose import log_format_option
from planner.commands.options import currency_option, details_option, examples, output_options
from planner.commands.output import show_answer
from planner.render.formats import ANSWER_FORMATS

if TYPE_CHECKING:
    from planner.tracking.bill import Spent
    from planner.tracking.model import Progress
    from planner.tracking.planned import Planned

SECTIONS = ("run", "split", "interruptions", "causes", "gates", "ways")


class MomentOption(click.ParamType[datetime]):
    """A moment such as `2026-11-20T08:00Z`, or `now`."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return an aware moment."""
        if isinstance(value, datetime):
            return value
        if str(value).strip().lower() == "now":
            return datetime.now(UTC)
        try:
            found = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a moment; write it as 2026-11-20T08:00Z, or now", param, ctx)
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


class ChanceOption(click.ParamType[float]):
    """A probability such as `20%` or `0.2`."""

    name = "probability"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return a ratio from 0 to 1."""
        text = str(value).strip()
        try:
            found = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
        except ValueError:
            found = -1.0
        if not 0.0 <= found <= 1.0:
            self.fail(f"{value!r} is not a probability; write it as 20% or 0.2", param, ctx)
        return found


@click.command(
    epilog=examples(
        "planner track plan.json --log progress.csv --fail-late 20%",
        "planner track plan.json --log train.jsonl --bill bill-2026-10.csv --now now -o html --out run.html",
    )
)
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--log", type=click.Path(path_type=Path), default=None, metavar="FILE",
              help="Progress as CSV or JSON lines (step, time, ...), or a log that calibrate reads.")  # fmt: skip
@log_format_option
@click.option(
    "--started", type=MomentOption(), default=None, help="When the run began, for logs without moments."
)
@click.option("--now", type=MomentOption(), default=None,
              help="The present moment, or now: time since the last row is a stop (default: last row).")  # fmt: skip
@click.option(
    "--bill", multiple=True, metavar="PATH", help="Spend so far by the bill (FOCUS); may be repeated."
)
@click.option("--run-tag", default=None, metavar="KEY",
              help="Tag key that names a run (default: planner_run_id, else run_id).")  # fmt: skip
@currency_option
@click.option("--fail-late", type=ChanceOption(), default=None, metavar="P",
              help="Exit with 5 where the run is late with more than this probability.")  # fmt: skip
@click.option("--fail-over", type=ChanceOption(), default=None, metavar="P", help="The same for the budget.")
@details_option(*SECTIONS)
@output_options(ANSWER_FORMATS)
def track(plan: Path, output: str, out: Path | None, details: tuple[str, ...], **given: Any) -> None:
    """Compare a running job with its PLAN (JSON of `planner optimize -o json`): is it on time and within budget?

    With new finish and cost intervals, where the time went and the first likely cause when it is slow. Exit code 0: no
    gate breaks; 5: --fail-late, --fail-over, or without them the plan's own confidence or budget breaks; 2: bad input.
    """
    from planner.tracking.answer import Ask
    from planner.tracking.answer import track as answer
    from planner.tracking.planned import load_planned
    from planner.tracking.report import track_report

    planned = load_planned(plan)
    progress = _progress(planned, given)
    ask = Ask(given["started"], given["now"], given["fail_late"], given["fail_over"])
    found = answer(planned, progress, ask, _spent(planned, given))
    show_answer(track_report(found, details), output, out)
    if found.broken:
        click.get_current_context().exit(5)


def _progress(planned: Planned, given: dict[str, Any]) -> Progress:
    """What the log says."""
    del planned
    from planner.errors import InputError
    from planner.tracking.progress import read_progress

    if given["log"] is None:
        raise InputError("nothing to read: give --log FILE")
    return read_progress(given["log"], given["kind"])


def _spent(planned: Planned, given: dict[str, Any]) -> Spent | None:
    if not given["bill"]:
        return None
    from planner.tracking.bill import read_spent

    return read_spent(given["bill"], planned.plan.run_id, given["run_tag"], given["currency"])
