"""Reuse of stored answers: the option, and the lookup of the answer to the same question.

Only the program keeps answers. A process that runs commands beside other work (a test, `planner.cli.main(ARGUMENTS)`)
may have changed what no file shows, and what reads the clouds, signed catalogs or standard input is asked anew.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from planner.commands.options import SECONDS_OR_NONE

if TYPE_CHECKING:
    from planner.workloads.kept import KeptAnswer

# how an answer is shown is worked out each time
_OF_SHOWING = frozenset({"output", "out", "certificate", "why_not", "details", "verbose", "reuse_answers"})
_LONGEST_S = 10 * 366 * 86_400.0  # longer ones are no dates

reuse_option = click.option(
    "--reuse-answers",
    type=SECONDS_OR_NONE,
    default="5min",
    show_default=True,
    metavar="DURATION",
    help="How long to reuse the answer to the same question while its inputs have not changed (with --as-of, always); "
    "0: plan anew.",
)


def asked_before(now: datetime, *, within_s: float, unless: Collection[str] = ()) -> KeptAnswer | None:
    """The entry of the running command in the store of answers, with its answer if there is one; None: not reusable.

    Args:
        now: time of the question.
        within_s: maximum age of an answer, seconds, unless the question has an `--as-of`.
        unless: parameters that make an answer depend on more than files (the network, say) unless they are at their
            default.
    """
    context = click.get_current_context()
    if not within_s or not getattr(context.obj, "is_program", False) or os.environ.get("PLANNER_CATALOG_KEY"):
        return None
    defaults = {param.name: param.get_default(context) for param in context.command.params}
    if any(context.params[name] != defaults[name] for name in unless):
        return None
    from planner.workloads.kept import KeptAnswer

    asked = {name: value for name, value in context.params.items() if name not in _OF_SHOWING}
    within = None if context.params["as_of"] is not None else timedelta(seconds=min(within_s, _LONGEST_S))
    with contextlib.suppress(OSError):  # it only saves time
        return KeptAnswer({"command": context.command_path, **asked}, now, within)
    return None
