"""What an answer says in a chat: a few labelled lines, decided once for the formats `brief`, `slack` and `teams`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.records import record
from planner.render.text import clean

if TYPE_CHECKING:
    from planner.render.model import Answer

MOST_LINES = 12
# Twelve lines of it stay within the services' limits even where every character must be escaped: Slack takes 50 blocks
# and 3,000 characters a text (docs.slack.dev/reference/block-kit, read 2026-11-23); Teams 28 KB a message in UTF-16
# (learn.microsoft.com/microsoftteams/limits-specifications-teams, read 2026-11-23).
MOST_CHARACTERS = 360


@record(frozen=True)
class ChatLine:
    """One line; `label` is empty for the verdict and for lines that continue the one before."""

    label: str
    text: str

    def __str__(self) -> str:
        """`Label: text`."""
        return f"{self.label}: {self.text}" if self.label else self.text


def chat_lines(answer: Answer) -> list[ChatLine]:
    """The verdict and the lines of the answer's brief, at most twelve.

    Raises:
        InputError: the answer has no brief.
    """
    if not answer.brief:
        raise InputError("-o brief, slack, teams: only the review of a bill has a message for a chat")
    lines = [ChatLine("", _cut(answer.title))]
    for section in answer.brief:
        labels = [section.title, *[""] * len(section.sentences)]
        said = zip(labels, section.sentences, strict=False)
        lines += [ChatLine(clean(label), _cut(text)) for label, text in said]
    if len(lines) > MOST_LINES:
        more = len(lines) - MOST_LINES + 1
        lines = [*lines[: MOST_LINES - 1], ChatLine("", f"{more} more lines are not shown")]
    return lines


def _cut(text: str) -> str:
    """One line without control characters; of a long one the beginning."""
    line = clean(text)
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 3].rstrip()}..."
