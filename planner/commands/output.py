"""Common output of all commands: render the answer for its destination and write it there."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from planner.render.model import Answer


def layout(out: Path | None, output: str) -> tuple[int, bool]:
    """Columns for the answer, and whether it may be coloured: only a table at a terminal is.

    Args:
        out: the file it is written to; None: standard output.
        output: name of the format.
    """
    from planner.render.terminal import terminal_width, wants_color

    return terminal_width(None if out else sys.stdout), not out and output == "table" and wants_color(
        sys.stdout
    )


def is_complete(output: str) -> bool:
    """Whether the format has room for everything, so that nothing is summarised for it."""
    from planner.render.formats import FORMATS

    return FORMATS[output].complete


def show_answer(answer: Answer, output: str, out: Path | None) -> None:
    """Write an answer to standard output, or to the file of `--out`.

    Raises:
        InputError: a file of bytes is asked for at a terminal.
    """
    from planner.render import render_answer

    if output == "xlsx" and out is None and sys.stdout.isatty():
        from planner.errors import InputError

        raise InputError("-o xlsx: cannot be shown on a terminal; name a file with --out")
    context = click.get_current_context(silent=True)
    if context is not None and getattr(context.obj, "reproducible", False):
        from planner.render.timings import without_timings

        answer = without_timings(answer)
    if out is not None:
        answer = replace(answer, folder=str(out.parent))
    width, color = layout(out, output)
    show_text(render_answer(answer, output, width=width, color=color), out)
    if out is not None and context is not None and not getattr(context.obj, "quiet", False):
        from planner.render.text import clean

        click.echo(clean(f"{out}: {answer.title}"), file=sys.stderr)


def show_text(text: str | bytes, out: Path | None) -> None:
    """Write rendered text."""
    if out is None:
        if isinstance(text, str) and not text.isascii():
            from planner.render.terminal import in_encoding

            text = in_encoding(text, sys.stdout)
        click.echo(text, file=sys.stdout, nl=False)
        return
    from planner.files import write_atomically

    write_atomically(out, text, mode=file_mode())


def file_mode() -> int | None:
    """Permissions that the running command gives its files; None: as usual."""
    from planner.commands.options import FILE_MODE

    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(FILE_MODE)
