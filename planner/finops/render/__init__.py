"""A review as text or as a file: one module per format, found through `RENDERERS`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from planner.records import record

if TYPE_CHECKING:
    from planner.finops.review.model import Review

__all__ = ["FORMATS", "RENDERERS", "Format", "render_review"]


@record(frozen=True)
class Format:
    """One output format; `module` holds `render(review, *, width, color) -> str | bytes`."""

    module: str
    extension: str
    media_type: str
    help: str


FORMATS: dict[str, Format] = {
    "table": Format("planner.finops.render.table", "txt", "text/plain", "for people at a terminal"),
    "html": Format("planner.finops.render.html", "html", "text/html", "one printable page with charts"),
    "md": Format("planner.finops.render.md", "md", "text/markdown", "for pull requests, chats and wikis"),
    "xlsx": Format(
        "planner.finops.render.xlsx",
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "for finance: one sheet per table",
    ),
    "json": Format("planner.finops.render.json", "json", "application/json", "everything, for programs"),
    "csv": Format("planner.finops.render.csv", "csv", "text/csv", "every value as one row"),
}


def render_review(review: Review, fmt: str, *, width: int = 100, color: bool = False) -> str | bytes:
    """Render a review.

    Args:
        review: the answer.
        fmt: a name in `FORMATS`.
        width: columns that no line of the `table` format may exceed; other formats ignore it.
        color: whether the `table` format may use terminal colour codes.

    Returns:
        Text that ends in one newline; bytes for `xlsx`.

    Raises:
        ValueError: there is no such format.
    """
    if fmt not in FORMATS:
        raise ValueError(f"no output format {fmt!r}; there are {', '.join(FORMATS)}")
    render = importlib.import_module(FORMATS[fmt].module).render
    return cast("str | bytes", render(review, width=width, color=color))


def _renderer(fmt: str) -> Callable[..., str | bytes]:
    """The renderer of one format; its module is imported when it is called."""

    def render(review: Review, *, width: int = 100, color: bool = False) -> str | bytes:
        return render_review(review, fmt, width=width, color=color)

    return render


RENDERERS: dict[str, Callable[..., str | bytes]] = {name: _renderer(name) for name in FORMATS}
