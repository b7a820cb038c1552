"""What is said of runs that figures leave out."""

from __future__ import annotations

from collections.abc import Collection

from planner.finops.review.inputs import Inputs, month_name
from planner.finops.review.parts import and_words

_NAMED = 5


def twice_words(inputs: Inputs, of: Collection[str] | None = None) -> str:
    """Runs whose other months are counted twice, in words; empty where there are none.

    Args:
        inputs: of the review.
        of: ids of the runs that are asked for; None: all.
    """
    found = {run: months for run, months in inputs.runs_counted_twice().items() if of is None or run in of}
    if not found:
        return ""
    months = and_words([month_name(one) for one in sorted({one for own in found.values() for one in own})])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    names = ", ".join(sorted(found)[:_NAMED])
    runs = "run" if len(found) == 1 else "runs"
    return f"charges of {months} are counted twice, so the cost of {runs} {names}{more} is not known"
