"""The registry of output formats: a new one is a module with `render`, an entry here, and its goldens."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol, cast

from planner.records import record

if TYPE_CHECKING:
    from planner.plan.model import Plan


class Renderer(Protocol):
    """Turns a plan into text that ends in one newline."""

    def __call__(self, plan: Plan, *, width: int, color: bool, verbose: bool) -> str:
        """Render `plan`; see `planner.render.render_plan` for the arguments."""
        ...


@record(frozen=True)
class Format:
    """One output format; `module` must hold `render`, a `Renderer`. It is imported when it is used."""

    module: str
    extension: str
    media_type: str
    help: str


FORMATS: dict[str, Format] = {
    "table": Format("planner.render.table", "txt", "text/plain", "for people, at most 100 columns"),
    "json": Format("planner.render.json", "json", "application/json", "everything, for programs"),
    "csv": Format("planner.render.csv", "csv", "text/csv", "chosen lines and alternatives, for spreadsheets"),
    "yaml": Format("planner.render.yaml", "yaml", "application/yaml", "everything, for people and programs"),
    "md": Format("planner.render.md", "md", "text/markdown", "for pull-request comments"),
    "focus": Format("planner.finops.focus_out", "focus.csv", "text/csv", "FOCUS 1.4 rows, beside a bill's"),
}


def load_renderer(fmt: str) -> Renderer:
    """Import and return a format's renderer.

    Raises:
        ValueError: there is no such format.
    """
    if fmt not in FORMATS:
        raise ValueError(f"no output format {fmt!r}; there are {', '.join(FORMATS)}")
    return cast("Renderer", importlib.import_module(FORMATS[fmt].module).render)
