"""Dot-and-whisker charts as small SVG files: no plotting library, nothing to run, readable in any browser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from planner.records import record

ROW, TOP, BOTTOM, RIGHT = 15, 62, 40, 24
LABEL_CHARACTER = 6.1  # pixels at font size 11
PLOT_WIDTH = 460
# Okabe and Ito's palette: told apart by most colour-blind readers, and by shape besides.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
GRID, INK, FAINT = "#e2e2e2", "#222", "#777"


@record(frozen=True)
class Dot:
    """A value with what it may also be; `low` and `high` are NaN where there is no interval."""

    series: str
    value: float
    low: float = math.nan
    high: float = math.nan


@record(frozen=True)
class Row:
    """One label and its dots, one above the other."""

    label: str
    dots: tuple[Dot, ...]
    strong: bool = False


@record(frozen=True)
class Chart:
    """Rows of dots over one axis.

    Attributes:
        title, axis: what is shown, and the unit.
        rows: from top to bottom.
        marks: values at which a dark line stands (1 = on-demand, say).
        limits: ends of the axis; values beyond stand at the edge with an arrow. None: from the data.
    """

    title: str
    axis: str
    rows: tuple[Row, ...]
    marks: tuple[float, ...] = ()
    limits: tuple[float, float] | None = None


def draw(chart: Chart) -> str:
    """The chart as SVG text; series keep their colour by order of first appearance."""
    series = list(dict.fromkeys(dot.series for row in chart.rows for dot in row.dots))
    low, high = chart.limits or _limits(chart)
    ticks = _ticks(low, high)
    left = 20 + LABEL_CHARACTER * max((len(row.label) for row in chart.rows), default=0)
    heights = [ROW * max(len(row.dots), 1) + 8 for row in chart.rows]
    bottom = TOP + sum(heights)
    width, height = left + PLOT_WIDTH + RIGHT, bottom + BOTTOM

    def x_of(value: float) -> float:
        return left + PLOT_WIDTH * (min(max(value, low), high) - low) / (high - low)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="11" fill="{INK}">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>',
        f'<text x="10" y="18" font-size="13">{escape(chart.title)}</text>',
        *_legend(series, left, width),
    ]
    for tick in ticks:
        lines.append(f'<path d="M{x_of(tick):.1f} {TOP}V{bottom}" stroke="{GRID}"/>')
        lines.append(f'<text x="{x_of(tick):.1f}" y="{bottom + 14}" text-anchor="middle">{tick:g}</text>')
    lines += [
        f'<path d="M{x_of(mark):.1f} {TOP}V{bottom}" stroke="{FAINT}"/>'
        for mark in chart.marks
        if low <= mark <= high
    ]
    y = float(TOP)
    for row, tall in zip(chart.rows, heights, strict=True):
        weight = ' font-weight="bold"' if row.strong else ""
        lines.append(
            f'<text x="{left - 8:.0f}" y="{y + tall / 2 + 4:.1f}" text-anchor="end"{weight}>{escape(row.label)}</text>'
        )
        lines.append(f'<path d="M{left:.0f} {y + tall:.1f}h{PLOT_WIDTH}" stroke="{GRID}"/>')
        for number, dot in enumerate(row.dots):
            lines += _dot(dot, series.index(dot.series), y + 4 + ROW * (number + 0.5), x_of, (low, high))
        y += tall
    lines.append(
        f'<text x="{left + PLOT_WIDTH / 2:.0f}" y="{bottom + 32}" text-anchor="middle">{escape(chart.axis)}</text>'
    )
    return "\n".join([*lines, "</svg>", ""])


def _legend(series: Sequence[str], left: float, width: float) -> list[str]:
    """One line of names, wrapped once where they do not fit."""
    lines, x, y = [], left, 36.0
    for number, name in enumerate(series):
        wide = 30 + LABEL_CHARACTER * len(name)
        if x + wide > width - 8 and x > left:
            x, y = left, y + 15
        lines.append(_shape(number, x + 5, y - 4))
        lines.append(f'<text x="{x + 14:.1f}" y="{y:.0f}">{escape(name)}</text>')
        x += wide
    return lines


def _dot(dot: Dot, number: int, y: float, x_of, limits: tuple[float, float]) -> list[str]:  # type: ignore[no-untyped-def]
    """A whisker from low to high, and the value on it."""
    if not math.isfinite(dot.value):
        return []
    colour, out = COLOURS[number % len(COLOURS)], []
    if math.isfinite(dot.low) and math.isfinite(dot.high):
        out.append(
            f'<path d="M{x_of(dot.low):.1f} {y:.1f}H{x_of(dot.high):.1f}" stroke="{colour}" stroke-width="2"/>'
        )
    low, high = limits
    out.append(_shape(number, x_of(dot.value), y))
    if not low <= dot.value <= high:
        anchor, at, arrow = ("start", 8, "◂") if dot.value < low else ("end", -8, "▸")
        out.append(
            f'<text x="{x_of(dot.value) + at:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}" font-size="9">'
            f"{arrow} {dot.value:.2g}</text>"
        )
    return out


def _shape(number: int, x: float, y: float) -> str:
    """A mark by number of the series: colour and shape differ."""
    colour = COLOURS[number % len(COLOURS)]
    shapes = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"',
        f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7"',
        f'<path d="M{x:.1f} {y - 5:.1f}l5 9h-10z"',
        f'<path d="M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z"',
    )
    return f'{shapes[number % len(shapes)]} fill="{colour}"/>'


def _limits(chart: Chart) -> tuple[float, float]:
    """Ends of the axis that hold every dot, whisker and mark, rounded outwards to a tick."""
    values = [v for row in chart.rows for dot in row.dots for v in (dot.value, dot.low, dot.high)]
    finite = [v for v in (*values, *chart.marks) if math.isfinite(v)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    step = _step(high - low)
    return math.floor(low / step) * step, math.ceil(high / step) * step


def _ticks(low: float, high: float) -> list[float]:
    step = _step(high - low)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 10) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _step(span: float) -> float:
    """A step of 1, 2 or 5 times a power of ten that divides `span` into five to twelve parts."""
    power = 10.0 ** math.floor(math.log10(span / 5.0))
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if span / (m * power) <= 10.0)
