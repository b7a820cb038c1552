"""Charts over a numeric axis: a staircase of cost over time, spans from start to end, values with their whiskers."""

from __future__ import annotations

from collections.abc import Sequence

from planner.records import record
from planner.render import numbers
from planner.render.charts_over_time import legend
from planner.render.model import Chart
from planner.render.svg import (
    GRID,
    INK,
    MUTED,
    PALETTE,
    LogScale,
    Scale,
    escaped,
    fit,
    line,
    log_ticks,
    number,
    rect,
    tag,
    text_px,
    ticks,
    words,
)
from planner.render.units import compact, number_of, show, tidy

Drawn = tuple[float, list[str]]
_PLOT_PX, _ROW_PX, _BAR_PX, _DOT_PX = 220.0, 28.0, 16.0, 16.0
_MAX_ROWS = 60
_WIDE_PX = 450.0
_LOG_LEAST, _LOG_RATIOS = 1e-6, (30.0, 1e9)  # smallest value of a logarithmic axis; largest over smallest


def _series(chart: Chart, name: str) -> list[float | None]:
    """Values of the series called `name`, one per label."""
    values = next((series_values for key, series_values in chart.series if key == name), ())
    numbers = [number_of(value) for value in values[: len(chart.labels)]]
    return [*numbers, *[None] * (len(chart.labels) - len(numbers))]


def _known(*series: Sequence[float | None]) -> list[float]:
    return [value for values in series for value in values if value is not None]


def _axis(marks: Sequence[float], scale: Scale, top: float, bottom: float, unit: str, name: str) -> list[str]:
    """Grid lines with their values below, and what the axis counts."""
    parts = []
    low, high = min(scale.start_px, scale.end_px), max(scale.start_px, scale.end_px)
    for mark in marks:
        text = compact(mark, unit)
        half = text_px(text, 11) / 2
        x = scale.at(mark)
        parts.append(line(x, top, x, bottom, MUTED if mark == 0 else GRID))
        parts.append(
            words(
                min(max(x, half), high + 8 - half), bottom + 15, text, anchor="middle", color=MUTED, size=11
            )
        )
    if name:
        parts.append(words((low + high) / 2, bottom + 32, tidy(name), anchor="middle", color=MUTED, size=11))
    return parts


def draw_steps(chart: Chart, currency: str, width: float) -> Drawn:
    """A staircase: each value holds from its place on the axis to the next one; labels name the points."""
    given = dict(chart.series)
    axis, name = _series(chart, "x"), next((key for key in given if key != "x"), "")
    points = [(x, y, label) for x, y, label in zip(axis, _series(chart, name), chart.labels, strict=True)
              if x is not None and y is not None]  # fmt: skip
    if not points:
        return 0.0, []
    points.sort()
    marks_y = ticks(0.0, max(y for _, y, _ in points), 4)
    texts = [compact(mark, chart.unit) for mark in marks_y]
    left, top = max(text_px(text, 11) for text in texts) + 8, 10.0
    bottom = top + _PLOT_PX
    marks_x, x_of = _bottom([x for x, _, _ in points], left, width - 12)
    y_of = Scale(marks_y[0], marks_y[-1], bottom, top)
    words_x = f"{chart.axis} (logarithmic)" if chart.axis and isinstance(x_of, LogScale) else chart.axis
    parts = _axis(marks_x, x_of, top, bottom, "quantity", words_x)
    for mark, text in zip(marks_y, texts, strict=True):
        parts.append(line(left, y_of.at(mark), width, y_of.at(mark)))
        parts.append(words(left - 6, y_of.at(mark) + 4, text, anchor="end", color=MUTED, size=11))
    for mark in chart.marks:
        parts.append(line(x_of.at(mark), top, x_of.at(mark), bottom, PALETTE[1], "5 3"))
    path = f"M{number(x_of.at(points[0][0]))} {number(y_of.at(points[0][1]))}"
    path += (
        "".join(f"H{number(x_of.at(x))}V{number(y_of.at(y))}" for x, y, _ in points[1:])
        + f"H{number(width - 12)}"
    )
    parts.append(tag("path", {"d": path, "fill": "none", "stroke": PALETTE[0], "stroke-width": 2.0}))
    for x, y, label in points:
        hint = tag("title", {}, escaped(f"{tidy(label)}: {show(y, chart.unit, currency)}"))
        parts.append(tag("circle", {"cx": x_of.at(x), "cy": y_of.at(y), "r": 3.5, "fill": PALETTE[0]}, hint))
    parts += _named(chart, x_of, y_of, top)
    return bottom + (42 if chart.axis else 24), parts


def _bottom(values: Sequence[float], left: float, right: float) -> tuple[list[float], Scale]:
    """Marks and scale of the axis of a staircase: logarithmic where most steps would stand at its left edge."""
    low, high, wide = min(values), max(values), right - left >= _WIDE_PX
    if low >= _LOG_LEAST and _LOG_RATIOS[0] <= high / low <= _LOG_RATIOS[1]:
        marks = log_ticks(low, high, 12 if wide else 4)
        return marks, LogScale(marks[0], marks[-1], left, right)
    marks = ticks(0.0, high, 6 if wide else 3)
    return marks, Scale(marks[0], marks[-1], left, right)


def _named(chart: Chart, x_of: Scale, y_of: Scale, top: float) -> list[str]:
    """Rings around the points that are pointed out, each with its name; names of one place share a line."""
    at: dict[tuple[float, float], list[str]] = {}
    for x, y, name in chart.named:
        at.setdefault((x_of.at(x), y_of.at(y)), []).append(tidy(name))
    parts: list[str] = []
    taken: list[tuple[float, float, float]] = []
    for (x, y), names in sorted(at.items()):
        text = ", ".join(names)
        left = min(x + 9, x_of.end_px - text_px(text))
        line_y = max(y - 10, top + 12)
        for begin, end, other in sorted(taken, key=lambda one: -one[2]):
            if left < end and begin < left + text_px(text) and abs(other - line_y) < 16:
                line_y = other - 16 if other - 28 > top else other + 16
        taken.append((left, left + text_px(text), line_y))
        ring = {"cx": x, "cy": y, "r": 7.0, "fill": "none", "stroke": INK, "stroke-width": 2.0}
        parts += [tag("circle", ring), words(left, line_y, text, bold=True)]
    return parts


def draw_spans(chart: Chart, currency: str, width: float) -> Drawn:
    """One row per label with a bar from `start` to `end`; a third series is written beside it."""
    del currency
    starts, ends = _series(chart, "start"), _series(chart, "end")
    drawn = _known(starts, ends)
    if not drawn:
        return 0.0, []
    marks = ticks(min(0.0, *drawn), max(0.0, *drawn), 6 if width >= 500 else 3)
    beside = width >= 500
    room = min(width * 0.3, max(text_px(tidy(label)) for label in chart.labels) + 10) if beside else 0.0
    scale = Scale(marks[0], marks[-1], room, width - 12)
    parts: list[str] = []
    top = 6.0
    count = min(len(chart.labels), _MAX_ROWS)
    bottom = top + count * (_ROW_PX if beside else _ROW_PX + 12)
    parts += _axis(marks, scale, top, bottom, "quantity", chart.axis or "hours from the start")
    for index, (label, start, end) in enumerate(zip(chart.labels, starts, ends, strict=True)):
        if index >= count:
            break
        if beside:
            parts.append(words(0, top + 17, fit(tidy(label), room - 10)))
        else:
            parts.append(words(0, top + 11, fit(tidy(label), width)))
            top += 12
        if start is not None and end is not None:
            hint = f"{tidy(label)}: {numbers.hours(start)} to {numbers.hours(end)} h"
            parts.append(
                rect(scale.at(start), top + 5, scale.at(end) - scale.at(start), _BAR_PX, PALETTE[0], hint)
            )
        top += _ROW_PX
    if len(chart.labels) > count:
        parts.append(words(0, bottom + 48, f"{len(chart.labels) - count:,} more not drawn", color=MUTED))
        return bottom + 56, parts
    return bottom + 42, parts


@record(frozen=True)
class _Dot:
    """One value with what it may also be."""

    series: int
    value: float
    low: float | None
    high: float | None


def _dots(chart: Chart) -> tuple[list[str], list[list[_Dot]]]:
    """Names of the series, and the dots of each row."""
    names = [name for name, _ in chart.series if not name.endswith((" low", " high"))]
    rows: list[list[_Dot]] = [[] for _ in chart.labels]
    for at, name in enumerate(names):
        ends = zip(_series(chart, f"{name} low"), _series(chart, f"{name} high"), strict=True)
        for row, value, (low, high) in zip(rows, _series(chart, name), ends, strict=True):
            if value is not None:
                row.append(_Dot(at, value, low, high))
    return names, rows


def draw_dots(chart: Chart, currency: str, width: float) -> Drawn:
    """Rows of dots over one axis, each with the whisker of its interval; marks are dark lines."""
    names, rows = _dots(chart)
    dots = [dot for row in rows for dot in row]
    if not dots:
        return 0.0, []
    ends = [end for dot in dots for end in (dot.value, dot.low, dot.high) if end is not None]
    marks = ticks(min(0.0, *ends, *chart.marks), max((*ends, *chart.marks)), 5 if width >= 500 else 3)
    beside = width >= 500
    room = min(width * 0.36, max(text_px(tidy(label)) for label in chart.labels) + 12) if beside else 4.0
    scale = Scale(marks[0], marks[-1], room, width - 12)
    named = [(tidy(name), PALETTE[at % len(PALETTE)], "", True) for at, name in enumerate(names)]
    is_labelled = len(names) == 1 and names[0] in chart.labels  # the row says the name already
    parts, begin = ([], 4.0) if is_labelled else legend(named, width)
    top = begin
    drawn: list[str] = []
    for label, row in list(zip(chart.labels, rows, strict=True))[:_MAX_ROWS]:
        tall = _DOT_PX * max(len(row), 1) + 8
        if beside:
            drawn.append(words(room - 8, top + tall / 2 + 4, fit(tidy(label), room - 12), anchor="end"))
        else:
            drawn.append(words(0, top + 12, fit(tidy(label), width)))
            top += 16
        for place, dot in enumerate(row):
            hint = f"{tidy(label)}, {tidy(names[dot.series])}: {show(dot.value, chart.unit, currency)}"
            drawn += _whisker(dot, scale, top + 4 + _DOT_PX * (place + 0.5), hint)
        top += tall
        drawn.append(line(0, top, width, top))
    parts += _axis(marks, scale, begin, top, chart.unit, chart.axis)
    parts += [line(scale.at(mark), begin, scale.at(mark), top, INK) for mark in chart.marks]
    return top + 42, [*parts, *drawn]


def _whisker(dot: _Dot, scale: Scale, y: float, hint: str) -> list[str]:
    """A line from low to high, and the value on it; series differ in colour and in shape."""
    color, x = PALETTE[dot.series % len(PALETTE)], scale.at(dot.value)
    parts = []
    if dot.low is not None and dot.high is not None:
        ends = {"x1": scale.at(dot.low), "x2": scale.at(dot.high), "y1": y, "y2": y}
        parts.append(tag("line", {**ends, "stroke": color, "stroke-width": 2.0}))
    shapes = (
        f"M{number(x - 4)} {number(y)}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        f"M{number(x - 3.5)} {number(y - 3.5)}h7v7h-7z",
        f"M{number(x)} {number(y - 5)}l5 9h-10z",
        f"M{number(x)} {number(y - 5)}l5 5l-5 5l-5 -5z",
    )
    title = tag("title", {}, escaped(hint))
    return [*parts, tag("path", {"d": shapes[dot.series % len(shapes)], "fill": color}, title)]
