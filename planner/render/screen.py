"""The screen of an answer: verdict, one table, what to know before acting, proof and next step; the rest is behind it.

Every question builds its own `Screen` and its sections; how the two stand together is decided once here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import date

from planner.records import record
from planner.render.model import Answer, Section, Unit, Value, facts

ALL = "all"
MOST_NOTES = 5
Row = tuple[str, str, Value, Unit, str]


@record(frozen=True)
class Screen:
    """What fits on a screen.

    Attributes:
        asked: one line: what is asked, with its limits.
        verdict: what to buy or do, cost, date, chance: (key, label, value, unit, words) each.
        table: the one table; None where there is nothing to list.
        notes: what must be known or done first, most important first.
        proof: what was proven, of which set; empty where nothing is.
        following: commands that a person runs next, without the program's name.
        notes_title: of the notes.
    """

    asked: str
    verdict: Sequence[Row]
    table: Section | None
    notes: Sequence[str]
    proof: str
    following: Sequence[str]
    notes_title: str = "Before you buy"


def on_screen(answer: Answer, screen: Screen, details: Collection[str] = ()) -> Answer:
    """Put a screen before an answer's sections, or show the sections asked for in its place.

    Args:
        answer: title, summary and all sections.
        screen: what a terminal shows of it.
        details: keys of sections, or `ALL`.
    """
    if details:
        wanted = tuple(s for s in answer.sections if ALL in details or s.key in details)
        return replace(answer, sections=wanted)
    front = [facts("front", "Verdict", screen.verdict)] if screen.verdict else []
    front += [screen.table] if screen.table is not None else []
    front += _notes(screen)
    front.append(Section("verdict", "Proof and next step", _closing(answer, screen)))
    behind = [replace(section, detail=True) for section in answer.sections if section is not screen.table]
    return replace(answer, summary=(screen.asked,), sections=tuple(behind), front=tuple(front))


def _notes(screen: Screen) -> list[Section]:
    shown = list(dict.fromkeys(screen.notes))
    more = len(shown) - MOST_NOTES
    if more > 0:
        shown = shown[:MOST_NOTES]
        shown[-1] += f" (+ {more} more: --details {ALL})"
    return [Section("notes", screen.notes_title, tuple(shown), warning=True)] if shown else []


def _closing(answer: Answer, screen: Screen) -> tuple[str, ...]:
    """The proof, and what to type next: commands, and the sections that there are."""
    keys = [section.key for section in answer.sections]
    asked = f"--details {', '.join(keys[:3])}{', ...' if len(keys) > 3 else ''} or {ALL}"
    following = f"next: planner {', '.join(screen.following)}; {asked}"
    return (screen.proof, following) if screen.proof else (following,)


# Lines that the rows of a table may take, and the columns of its widest text, beside a verdict and notes: by width.
_ROOM = ((12, 56), (18, 36))


def has_room(texts: Iterable[str], beside: int = 0) -> bool:
    """Whether a table with these texts, one a row, still fits a screen, where long ones take two or three lines.

    Args:
        texts: the widest of each row.
        beside: columns of the screen that a further text of the table takes.
    """
    length = [len(text) for text in texts]
    return all(sum(-(-one // (wide - beside)) for one in length) <= lines for lines, wide in _ROOM)


def prices_note(dates: Iterable[str], today: date) -> list[str]:
    """The age of the oldest price that an answer rests on, in one sentence; nothing where no price has a date.

    Args:
        dates: of the prices, ISO days or months; empty ones are not known.
        today: of the answer.
    """
    known = sorted({text for text in dates if text})
    if not known:
        return []
    year, month, day = (
        (*map(int, known[0].split("-")), 1)[:3] if known[0].count("-") else (int(known[0]), 1, 1)
    )
    since = "" if len(known) == 1 else " and later"
    age = max((today - date(year, month, day)).days, 0)
    return [
        f"prices of {known[0]}{since} ({age:,} days old): refresh before buying (planner catalog refresh)"
    ]
