"""A sparkline: the values that led to a figure, small enough to stand in its tile."""

from __future__ import annotations

from collections.abc import Sequence

from planner.render.svg import PALETTE, frame, rect

WIDTH_PX, HEIGHT_PX = 156.0, 30.0
_PAST = "#b9d7ea"


def draw_sparkline(values: Sequence[float | None], title: str, said: str, identity: str) -> str:
    """Columns from zero, the last one in colour; None leaves a gap; values below zero stand below the line.

    Args:
        values: oldest first.
        title: for who cannot see it.
        said: the same in a sentence.
        identity: unique in the page.
    """
    known = [value for value in values if value is not None]
    top, low = max(known, default=0.0), min(known, default=0.0)
    span = max(top, 0.0) - min(low, 0.0)
    if not span:
        return ""
    pitch = WIDTH_PX / max(len(values), 6)
    scale = HEIGHT_PX / span
    zero = HEIGHT_PX + min(low, 0.0) * scale
    parts = [
        rect(at * pitch, zero, pitch * 0.75, -value * scale, PALETTE[0] if at == len(values) - 1 else _PAST)
        for at, value in enumerate(values)
        if value is not None
    ]
    return frame(WIDTH_PX, HEIGHT_PX, title, said, identity, parts)
