"""`--prices live` and `--quota live`: what was asked of the clouds, and what they did not answer, on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from planner.records import record
from planner.startup import as_shown

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from planner.inputs.load import LoadedWorkload
    from planner.workloads.answer import Answer


@record(frozen=True)
class LivePrices:
    """What a plan says of prices that did not come, and whether all that count did.

    Providers without a login do not count as failed unless the workload names them.
    """

    warnings: tuple[str, ...]
    is_whole: bool


def ask_prices(loaded: LoadedWorkload, as_of: datetime | None) -> LivePrices:
    """Fetch and store prices before planning; report the providers, failures and the age of what is used instead.

    Raises:
        InputError: `--as-of` is given too, or plans do not use refreshed prices.
        CatalogError: nothing was refreshed.
    """
    from planner.candidates.sources import asked_of
    from planner.catalog.live import ask_prices, live_messages, live_notes
    from planner.catalog.refresh import refresh_errors
    from planner.commands.refresh import exit_code
    from planner.errors import InputError
    from planner.render.progress import refresh_progress

    if as_of is not None:
        raise InputError("--prices live asks for the prices of today: leave out --as-of or --prices live")
    query = asked_of(loaded.workload.constraints)
    with refresh_progress(query.providers, quiet=_is_quiet()) as on_progress:
        report = ask_prices(query, on_progress)
    code = exit_code(report, named=query.is_named)
    notes = live_notes(query, report)
    if not _is_quiet():
        click.echo(f"prices {notes[0]}", file=sys.stderr)
        _say("warning", (*notes[1:], *live_messages(report)))
    elif code:
        _say("error", refresh_errors(report))
    return LivePrices(notes[1:], not code)


def quotas_were_read(answer: Answer) -> bool:
    """Name each provider whose quotas could not be read; whether those that the plan draws on were."""
    from planner.candidates.live_quota import KEY

    notes = [note for note in answer.context.market.offer_set.notes if note.key.startswith(KEY)]
    failed = {note.key.removeprefix(KEY) for note in notes}
    lacks = any(line.provider in failed and line.quota.limit is None for line in answer.plan.lines)
    if lacks or not _is_quiet():
        _say("error" if _is_quiet() else "warning", (note.text for note in notes))
    return not lacks


def _say(level: str, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        click.echo(as_shown(f"{level}: {sentence}"), file=sys.stderr)


def _is_quiet() -> bool:
    return bool(getattr(click.get_current_context().obj, "quiet", False))
