"""The registry of output formats: a new one is a module with `render`, an entry here, and its goldens."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol, cast

from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.render.model import Answer


class Renderer(Protocol):
    """Turns an answer into text that ends in one newline, or into the bytes of a file."""

    def __call__(self, answer: Answer, *, width: int, color: bool) -> str | bytes:
        """Render `answer`; see `planner.render.render_answer` for the arguments."""
        ...


@record(frozen=True)
class Format:
    """One output format; `module` must hold `render`, a `Renderer`. It is imported when it is used.

    `complete` formats have room for everything: answers are built without summarising for them.
    """

    module: str
    extension: str
    help: str
    complete: bool = False


FORMATS: dict[str, Format] = {
    "table": Format("planner.render.table", "txt", "for people, at most 100 columns"),
    "json": Format("planner.render.json", "json", "everything, for programs"),
    "csv": Format("planner.render.csv", "csv", "flat rows, for spreadsheets and scripts"),
    "yaml": Format("planner.render.yaml", "yaml", "everything, for people and programs"),
    "md": Format("planner.render.md", "md", "for pull requests, chats and wikis"),
    "html": Format("planner.render.html", "html", "one printable page with charts", complete=True),
    "xlsx": Format("planner.render.xlsx", "xlsx", "for finance: one sheet per table", complete=True),
    "focus": Format("planner.render.focus", "focus.csv", "FOCUS 1.4 rows, beside a bill's"),
    "brief": Format("planner.render.brief", "brief.txt", "at most 12 lines for a chat"),
    "slack": Format("planner.render.slack", "slack.json", "a Slack message (Block Kit)"),
    "teams": Format("planner.render.teams", "teams.json", "a Teams message (Adaptive Card)"),
}
CHAT_FORMATS = ("brief", "slack", "teams")
"""Messages for a chat, of reviews alone."""
ANSWER_FORMATS = tuple(name for name in FORMATS if name not in ("focus", *CHAT_FORMATS))
"""Formats of every answer; `focus` is of plans and forecasts alone."""
PLAN_FORMATS = (*ANSWER_FORMATS, "focus")
REVIEW_FORMATS = (*ANSWER_FORMATS, *CHAT_FORMATS)


def format_of(name: str, formats: Iterable[str] = tuple(FORMATS)) -> str | None:
    """The format that a file's ending names (`plan.json`, `plan.focus.csv`); None where it names none of these."""
    endings = {f".{FORMATS[key].extension}": key for key in formats}
    return next((endings[end] for end in sorted(endings, key=len, reverse=True) if name.endswith(end)), None)


def load_renderer(fmt: str) -> Renderer:
    """Import and return a format's renderer.

    Raises:
        ValueError: there is no such format.
    """
    if fmt not in FORMATS:
        raise ValueError(f"no output format {fmt!r}; there are {', '.join(FORMATS)}")
    return cast("Renderer", importlib.import_module(FORMATS[fmt].module).render)
