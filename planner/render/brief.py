"""The brief: an answer in at most twelve lines of plain text, to paste into a chat or a mail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.render.chat import chat_lines

if TYPE_CHECKING:
    from planner.render.model import Answer


def render(answer: Answer, *, width: int, color: bool) -> str:
    """Render `answer` as lines that a chat wraps by itself.

    Raises:
        InputError: the answer has no brief.
    """
    del width, color
    return "".join(f"{line}\n" for line in chat_lines(answer))
