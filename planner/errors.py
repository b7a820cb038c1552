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


class PlannerError(Exception):
    """Base of all errors with a message for the user; `exit_code` is the process's exit code."""

    exit_code = 1

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
