"""What is planned for later, in words: nothing of it is bought now, and each day says what to ask again for."""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from planner.render.precision import figure

if TYPE_CHECKING:
    from datetime import date

    from planner.commitments.answer import CommitAnswer, Line
    from planner.render.screen import Row

_MOST_DAYS, _MOST_NAMED = 2, 2


def bought_now(answer: CommitAnswer) -> tuple[Line, ...]:
    """The lines that begin at the start."""
    return tuple(line for line in answer.lines if line.now)


def planned(answer: CommitAnswer) -> tuple[Line, ...]:
    """The lines that begin later, by day."""
    return tuple(line for line in answer.lines if not line.now)


def later_row(answer: CommitAnswer) -> list[Row]:
    """On which days to ask again, why, and what would be bought as things stand."""
    lines = planned(answer)
    if not lines:
        return []
    days = [_on(answer, day, list(group)) for day, group in groupby(lines, key=lambda line: line.begins)]
    rest = len(days) - _MOST_DAYS
    more = f"; {rest} more {'day' if rest == 1 else 'days'}: --details later" if rest > 0 else ""
    text = (
        f"nothing yet: ask again {'; '.join(days[:_MOST_DAYS])}{more}. The figures below count it as bought"
    )
    return [("later", "later", len(lines), "count", text)]


def _on(answer: CommitAnswer, day: date, lines: list[Line]) -> str:
    ended = [
        f"{one.option} of {one.serves}" for one in answer.expiring if one.expires + timedelta(days=1) == day
    ]
    why = f", when {_some(ended)} {'ends' if len(ended) == 1 else 'end'}" if ended else ""
    return f"on {day}{why} (as things stand, you would then buy {_some([_what(line) for line in lines])})"


def _what(line: Line) -> str:
    # of dollars an hour two digits: what is decided later, on other demand, is known no better
    whole = line.unit == "instance"
    units = f"{line.units:f}" if whole else f"{figure(line.units, 1 - line.units.adjusted())} {line.unit}"
    return f"{units} {line.option} of {'+'.join(line.serves)}"


def _some(items: list[str]) -> str:
    names = list(dict.fromkeys(items))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"
