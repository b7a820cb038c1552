"""Errors a user may see, each with its exit code.

PlannerError
├── InputError        2  the workload, a flag or a file is wrong; lists every fault with its place
├── InfeasibleError   3  no candidate satisfies the constraints
├── CatalogError      4  catalog missing, stale or refused
├── GateError         5  a gate was exceeded (`--fail-above`, budget)
├── TimeLimitError    6  the time limit passed without a plan
└── OutputError       7  what was to be written could not be: a full disk, a failing device
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

LONGEST_VALUE = 200  # characters of a value that a message quotes
_LONGEST_PATH, LONGEST_NAME = 4096, 255  # PATH_MAX and NAME_MAX of Linux
_NO_NAME = rf"[^{re.escape(os.sep)}]{{{LONGEST_NAME + 1}}}"
# A value in quotes as `repr` writes them, on one line, or a long word. An apostrophe inside a word opens nothing, nor
# does an escaped one: each would be sought an end, and the time grow with the square of the length.
_VALUE = r"""(?<![\w\\])(?:'(?:[^'\\\n]|\\.)*+'|"(?:[^"\\\n]|\\.)*+")(?!\w)|\S{201,}+"""


def shortened(text: str) -> str:
    """The two ends of a long value, 200 characters in all; what may be a path stays whole, to be copied.

    >>> shortened("x" * 90 + "y" * 900 + "z" * 90)  # doctest: +ELLIPSIS
    'xxx...yyyyyyyy...yyyyyyyyyzzz...zzz'
    """
    if len(text) <= LONGEST_VALUE or _may_be_path(text):
        return text
    return f"{text[:98]}...{text[-99:]}"


def _may_be_path(text: str) -> bool:
    return len(text) <= _LONGEST_PATH and os.sep in text and not re.search(_NO_NAME, text)


def with_short_values(message: str, values: Iterable[str] = ()) -> str:
    """A message in which each value in quotes, each word, and each of the `values` is `shortened`.

    >>> with_short_values("--as-of '" + "a b " * 1000 + "': is not a day")  # doctest: +ELLIPSIS
    "--as-of 'a b ...a b ': is not a day"
    """
    if len(message) <= LONGEST_VALUE:
        return message
    for value in values:
        if len(value) > LONGEST_VALUE:
            message = message.replace(value, shortened(value))
    return re.sub(_VALUE, _short_value, message)


def _short_value(value: re.Match[str]) -> str:
    text = value[0]
    if text[0] in "'\"" and text[-1] == text[0]:
        return f"{text[0]}{shortened(text[1:-1])}{text[0]}"
    return shortened(text)


class PlannerError(Exception):
    """Base of all errors with a message for the user, which quotes at most 200 characters of a value.

    `exit_code` is the process's exit code.
    """

    exit_code = 1

    def __init__(self, *args: object) -> None:
        """Shorten the values that the message quotes."""
        super().__init__(*(with_short_values(arg) if isinstance(arg, str) else arg for arg in args))

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the message, which names place and remedy, and no traceback (asked for by IPython)."""
        return [f"{type(self).__name__}: {self}"]


class InputError(PlannerError):
    """Invalid input; the message names the place and the remedy."""

    exit_code = 2


class InfeasibleError(PlannerError):
    """No candidate satisfies all constraints."""

    exit_code = 3


class CatalogError(PlannerError):
    """The catalog is missing, unreadable, stale or refused."""

    exit_code = 4


class GateError(PlannerError):
    """A gate was exceeded."""

    exit_code = 5


class TimeLimitError(PlannerError):
    """The time limit passed and no plan was found."""

    exit_code = 6


class OutputError(PlannerError):
    """What was to be written could not be: the disk is full, or a device fails."""

    exit_code = 7
