"""Answers as text and files: one model, and one module per format in the registry `planner.render.formats`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.render.formats import ANSWER_FORMATS, FORMATS, load_renderer

if TYPE_CHECKING:
    from planner.render.model import Answer

__all__ = ["ANSWER_FORMATS", "FORMATS", "render_answer"]


def render_answer(answer: Answer, fmt: str, *, width: int = 100, color: bool = False) -> str | bytes:
    """Render an answer.

    Args:
        answer: what a command answers.
        fmt: a name in `FORMATS`.
        width: columns that no line of a text layout may exceed; other formats ignore it.
        color: whether terminal colour codes may be used; only text for a terminal uses them.

    Returns:
        Text that ends in one newline; bytes for `xlsx`.

    Raises:
        ValueError: `fmt` is not registered.
        InputError: the answer has no such form, such as FOCUS rows of a frontier.
    """
    return load_renderer(fmt)(answer, width=width, color=color)
