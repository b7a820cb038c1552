"""Errors of the command line: where an option that there is not names a key of the workload, how `--set` is written."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

import click

from planner.startup import abandon, as_shown


def show(error: click.ClickException, arguments: Sequence[str] = ()) -> None:
    """Show the error, where that can be written, with the `--set` that was meant."""
    said = io.StringIO()
    with_setting(error).show(said)
    try:
        click.echo(as_shown(said.getvalue(), arguments), file=sys.stderr, nl=False)
    except OSError:
        abandon(sys.stderr)


def with_setting(error: click.ClickException) -> click.ClickException:
    """The error of an unknown option with the `--set` that was meant; any other error as it is.

    >>> command = click.Command("optimize", params=[click.Option(["--set"])])
    >>> with_setting(click.NoSuchOption("--budget", ctx=click.Context(command))).message
    "No such option '--budget'. It is a key of the workload: --set constraints.budget_usd=VALUE"
    """
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return error
    if not any("--set" in param.opts for param in error.ctx.command.params):
        return error
    key = _key(error.option_name.lstrip("-").replace("-", "_"))
    if not key:
        return error
    said = f"No such option {error.option_name!r}. It is a key of the workload: --set {key}=VALUE"
    return click.UsageError(said, ctx=error.ctx)


def _key(word: str) -> str:
    """The dotted key that a word names; empty where it names none, or several."""
    from planner.inputs.messages import homes_of, section_at
    from planner.inputs.other_words import KEYS
    from planner.inputs.schema import Workload
    from planner.inputs.training_schema import Layout

    limits = section_at(("constraints",))
    assert limits is not None
    for name in (word, f"{word}s", f"{word}_usd"):
        if name in limits.model_fields:
            return f"constraints.{name}"
    meant = KEYS.get(word, word)
    if meant in Workload.model_fields:
        return ""
    homes = homes_of(meant, Workload) + ["training.layout"] * (meant in Layout.model_fields)
    return f"{homes[0]}.{meant}" if len(homes) == 1 else ""
