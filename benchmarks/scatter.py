"""A scatter of measured against predicted as SVG text: log axes, the diagonal, and lines 20 % to either side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

SIZE, MARGIN = 480.0, 56.0
COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7b4ea3", "#b8860b", "#4a4a4a", "#008b8b", "#a0527a")
BAND = 1.2
Points = Mapping[str, tuple[Sequence[float], Sequence[float]]]


def scatter_svg(groups: Points, title: str, unit: str) -> str:
    """Draw points by group.

    Args:
        groups: per label (predicted, measured), both positive.
        title: above the drawing.
        unit: of both axes.
    """
    values = [value for pair in groups.values() for column in pair for value in column]
    low, high = math.log10(min(values) / 1.15), math.log10(max(values) * 1.15)

    def at(value: float) -> float:
        return (math.log10(value) - low) / (high - low) * (SIZE - 2 * MARGIN)

    def point(x: float, y: float) -> tuple[float, float]:
        return MARGIN + at(x), SIZE - MARGIN - at(y)

    ends = 10**low, 10**high
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE + 190:g} {SIZE:g}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{SIZE + 190:g}" height="{SIZE:g}" fill="white"/>',
        f'<text x="{MARGIN:g}" y="24" font-size="14">{escape(title)}</text>',
    ]
    for factor, dash in ((1.0, "none"), (BAND, "4 4"), (1.0 / BAND, "4 4")):
        start, stop = max(ends[0], ends[0] / factor), min(ends[1], ends[1] / factor)
        (x1, y1), (x2, y2) = point(start, start * factor), point(stop, stop * factor)
        parts.append(
            f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="#999" stroke-dasharray="{dash}"/>'
        )
    for tick in _ticks(*ends):
        x, y = point(tick, tick)
        parts.append(f'<text x="{x:.1f}" y="{SIZE - MARGIN + 18:.1f}" text-anchor="middle">{tick:g}</text>')
        parts.append(f'<text x="{MARGIN - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    parts.append(
        f'<text x="{SIZE / 2:g}" y="{SIZE - 12:g}" text-anchor="middle">predicted, {escape(unit)}</text>'
    )
    parts.append(
        f'<text transform="translate(16 {SIZE / 2:g}) rotate(-90)" text-anchor="middle">measured, {escape(unit)}</text>'
    )
    for number, (label, (predicted, measured)) in enumerate(groups.items()):
        colour = COLOURS[number % len(COLOURS)]
        for x, y in (point(a, b) for a, b in zip(predicted, measured, strict=True)):
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}" fill-opacity="0.6"/>')
        height = MARGIN + 18 * number
        parts.append(f'<circle cx="{SIZE - 36:g}" cy="{height - 4:g}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{SIZE - 26:g}" y="{height:g}">{escape(label)} ({len(measured)})</text>')
    return "\n".join([*parts, "</svg>", ""])


def _ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [m * 10.0**p for p in powers for m in (1.0, 2.0, 5.0) if low <= m * 10.0**p <= high]
