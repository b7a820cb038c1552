"""Plans as text: one module per output format, found through the registry in `planner.render.formats`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.render.formats import FORMATS, load_renderer

if TYPE_CHECKING:
    from planner.plan.model import Plan

__all__ = ["FORMATS", "render_plan"]


def render_plan(plan: Plan, fmt: str, *, width: int = 100, color: bool = False, verbose: bool = False) -> str:
    """Render a plan.

    Args:
        plan: the answer.
        fmt: a name in `FORMATS`.
        width: columns that no line of a text layout may exceed; data formats ignore it.
        color: whether terminal colour codes may be used; only text for a terminal uses them.
        verbose: whether every assumption, cost line and filter is listed instead of the most telling ones.

    Returns:
        The text, ending in one newline.

    Raises:
        ValueError: `fmt` is not registered.
    """
    return load_renderer(fmt)(plan, width=width, color=color, verbose=verbose)
