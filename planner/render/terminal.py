"""What standard output can show: its width and whether colour is wanted."""

from __future__ import annotations

import os
from typing import TextIO

MAX_WIDTH = 100
_LEVELS = "▁▂▃▄▅▆▇"  # heights below a full block, as a sparkline has them


def terminal_width(stream: TextIO | None) -> int:
    """Return the columns to use: those of `COLUMNS`, else the terminal's; at most `MAX_WIDTH`, a pipe's and a file's.

    Args:
        stream: where the text goes; None: a file.
    """
    asked = os.environ.get("COLUMNS", "").strip()
    try:
        if asked.isdecimal() and int(asked) > 0:
            columns = int(asked)
        else:
            columns = os.get_terminal_size(stream.fileno()).columns if stream and stream.isatty() else 0
    except (OSError, ValueError):
        columns = 0
    return min(columns, MAX_WIDTH) if columns > 0 else MAX_WIDTH


def wants_color(stream: TextIO) -> bool:
    """Tell whether `stream` is a terminal whose user did not switch colour off (https://no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def in_encoding(text: str, stream: TextIO) -> str:
    """Return `text` with the blocks of bars drawn in ASCII where `stream` cannot show them."""
    from planner.render.table import BAR_FULL, BAR_PARTS

    try:
        (BAR_FULL + BAR_PARTS + _LEVELS).encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        narrow = {ord(part): "" if number < 4 else "#" for number, part in enumerate(BAR_PARTS, 1)}
        levels = {ord(block): mark for block, mark in zip(_LEVELS, "_.-=+*#", strict=True)}
        return text.translate({ord(BAR_FULL): "#", **levels, **narrow})
    return text
