"""Charts as static SVG, one engine for pages, notebooks and files: each kind for a wide and a narrow page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from planner.render.charts_over_time import columns_over_time, draw_fan, draw_lines, draw_stack, legend
from planner.render.charts_ranges import draw_dots, draw_spans, draw_steps
from planner.render.model import Chart
from planner.render.numbers import percent
from planner.render.svg import (
    INK,
    LESS,
    MORE,
    MUTED,
    PALETTE,
    TOTAL,
    Scale,
    as_dates,
    fit,
    fit_lines,
    frame,
    line,
    number,
    rect,
    tag,
    text_px,
    ticks,
    words,
)
from planner.render.units import compact, number_of, show, tidy
from planner.render.whole_amounts import amount_texts

WIDE_PX, PANEL_PX, NARROW_PX = 900, 520, 340  # alone, beside another one, on a phone
_MAX_BARS = 30
_ROW_PX, _BAR_PX, _GAP_PX = 30.0, 16.0, 10.0
_EDGE_PX = 10  # beside a picture that is on its own
_DUST = 1e-9  # of the largest step: what sums of floats leave of nothing
_MINUS = "\N{MINUS SIGN}"
_MAX_COLUMNS = 9  # more steps of a bridge are drawn as rows


def draw(
    chart: Chart, *, currency: str = "", width_px: int = WIDE_PX, identity: str = "", headed: bool = False
) -> str:
    """Draw a chart as one `svg` element that needs nothing else.

    Args:
        chart: what to draw.
        currency: ISO 4217 of its money.
        width_px: of the picture; below 500 labels stand above bars instead of beside them.
        identity: unique in the page, for the title's and description's ids.
        headed: whether the title is drawn too, on white, for a picture that stands alone.
    """
    identity = identity or f"chart-{''.join(c for c in chart.key if c.isalnum())}-{width_px}"
    height, parts = _DRAWERS[chart.kind](
        chart, currency, float(width_px - 2 * _EDGE_PX if headed else width_px)
    )
    if not parts:
        height, parts = 40.0, [words(0, 24, "No values to draw.", color=MUTED)]
    if headed:
        head = words(_EDGE_PX, 20, fit(tidy(chart.title), width_px - 2 * _EDGE_PX), bold=True)
        paper = rect(0, 0, width_px, height + 30, "#ffffff")
        moved = tag("g", {"transform": f"translate({_EDGE_PX} 28)"}, *parts)
        height, parts = height + 30, [paper, head, moved]
    return frame(width_px, height, tidy(chart.title), chart.alt, identity, parts)


Drawn = tuple[float, list[str]]


def _values(chart: Chart, index: int) -> list[float | None]:
    values = chart.series[index][1] if index < len(chart.series) else ()
    numbers = [number_of(value) for value in values[: len(chart.labels)]]
    return [*numbers, *[None] * (len(chart.labels) - len(numbers))]


def _bars(chart: Chart, currency: str, width: float) -> Drawn:
    if as_dates(chart.labels) and len(chart.labels) > 2:
        return columns_over_time(chart, currency, width)
    series = [_values(chart, index) for index in range(len(chart.series))]
    drawn = [value for values in series for value in values if value is not None]
    if not drawn:
        return 0.0, []
    names = [tidy(name) for name, _ in chart.series]
    parts, top = legend(_boxes(names), width) if len(series) > 1 else ([], 4.0)
    beside = width >= 500
    room = min(width * 0.36, max(text_px(tidy(label)) for label in chart.labels) + 8) if beside else 0.0
    texts = amount_texts(chart.unit, currency, drawn)
    value_px = max(map(text_px, texts.values())) + 10
    left = value_px if min(drawn) < 0 else 0.0
    marks = (min(0.0, *drawn), max(0.0, *drawn))
    scale = Scale(*marks, room + left, width - (value_px if max(drawn) > 0 else 4.0))
    signed = len(series) == 1 and min(drawn) < 0  # a change: what adds and what takes away
    thick = _BAR_PX if len(series) == 1 else 14.0
    for index, label in enumerate(chart.labels[:_MAX_BARS]):
        block = thick * len(series)
        if not beside:
            parts.append(words(0, top + 12, fit(tidy(label), width), color=INK))
            top += 17
        else:
            parts.append(words(0, top + block / 2 + 4, fit(tidy(label), room - 8)))
        for place, values in enumerate(series):
            color = PALETTE[place % len(PALETTE)]
            if signed:
                color = MORE if (values[index] or 0) > 0 else LESS
            parts += _bar(scale, top + place * thick, thick - 2, values[index], color, texts)
        zero = scale.at(0.0)
        after = top + block + (_GAP_PX if beside else 0)
        parts.append(line(zero, top - 2, zero, after, MUTED))
        top += block + _GAP_PX
    if len(chart.labels) > _MAX_BARS:
        parts.append(words(0, top + 12, f"{len(chart.labels) - _MAX_BARS:,} more not drawn", color=MUTED))
        top += 20
    return top + 4, parts


def _bar(
    scale: Scale, y: float, thick: float, value: float | None, color: str, texts: Mapping[float, str]
) -> list[str]:
    zero = scale.at(0.0)
    if value is None:
        return [words(zero + 4, y + thick - 1, "unknown", color=MUTED, size=10)]
    end, text = scale.at(value), texts[value]
    place, anchor = (end + 5, "start") if value >= 0 else (end - 5, "end")
    return [
        rect(zero, y, end - zero, thick, color, text),
        words(place, y + thick / 2 + 4, text, anchor=anchor, size=min(12.0, thick - 2)),
    ]


def _boxes(names: Sequence[str]) -> list[tuple[str, str, str, bool]]:
    return [(name, PALETTE[index % len(PALETTE)], "", True) for index, name in enumerate(names)]


class _Step:
    """One part of a bridge: from where to where it reaches, and how it is coloured and labelled."""

    def __init__(
        self, label: str, low: float, high: float, value: float | None, total: bool, text: str
    ) -> None:
        self.label, self.low, self.high, self.value, self.total = label, low, high, value, total
        self.color = TOTAL if total else MORE if (value or 0) > 0 else LESS
        self.text = text


def _steps(chart: Chart) -> list[_Step]:
    values, level, steps = _values(chart, 0), 0.0, []
    last = len(values) - 1
    dust = _DUST * max((abs(value) for value in values if value is not None), default=0.0)
    for index, (label, given) in enumerate(zip(chart.labels, values, strict=True)):
        value = 0.0 if given is not None and abs(given) < dust else given
        total = index in (0, last)
        reach = (value or 0.0) if total else level + (value or 0.0)
        base = 0.0 if total else level
        text = "unknown" if value is None else compact(value, chart.unit)
        text = f"+{text}" if not total and (value or 0) > 0 else text
        steps.append(_Step(tidy(label), base, reach, value, total, text))
        level = reach
    return steps


def _axis_start(steps: list[_Step]) -> float:
    """Where the axis of a bridge begins: above zero where every step would otherwise be too small to see."""
    levels = [step.high for step in steps]
    low, high = min(levels), max(levels)
    if low <= 0 or high - low > 0.3 * high:
        return 0.0
    return max(0.0, ticks(low - (high - low) * 0.6, high, 5)[0])


def _bridge(chart: Chart, currency: str, width: float) -> Drawn:
    steps = _steps(chart) if chart.series else []
    if not any(step.value is not None for step in steps):
        return 0.0, []
    start = _axis_start(steps)
    if start > 0:
        for step in steps:
            step.low = max(step.low, start) if step.total else step.low
    vertical = width >= 500 and len(steps) <= _MAX_COLUMNS
    height, parts = (_bridge_columns if vertical else _bridge_rows)(steps, start, width)
    if start > 0:
        note = f"The axis begins at {show(start, chart.unit, currency)}, so that the steps can be seen."
        for text in fit_lines(note, width, 2, 11):
            parts.append(words(0, height + 10, text, color=MUTED, size=11))
            height += 15
    return height, parts


def _range(steps: list[_Step], start: float) -> tuple[float, float]:
    ends = [end for step in steps for end in (step.low, step.high)]
    return min(start, *ends), max(*ends, start)


def _bridge_columns(steps: list[_Step], start: float, width: float) -> Drawn:
    top, bottom = 22.0, 232.0
    low, high = _range(steps, start)
    scale = Scale(low, high, bottom, top)
    pitch = width / len(steps)
    wide = min(pitch * 0.62, 84)
    parts = [line(0, scale.at(max(start, low)), width, scale.at(max(start, low)), MUTED)]
    for index, step in enumerate(steps):
        x = index * pitch + (pitch - wide) / 2
        y1, y2 = scale.at(step.low), scale.at(step.high)
        parts.append(rect(x, y1, wide, y2 - y1, step.color, f"{step.label}: {step.text}"))
        if step.total and start > 0:  # the column is cut: its foot is not zero
            parts.append(tag("path", {"d": _zigzag(x, bottom - 12, wide), "stroke": "#fff", **_CUT}))
        middle = x + wide / 2
        above = min(y1, y2) - 6
        parts.append(words(middle, above, step.text, anchor="middle", bold=True))
        if index + 1 < len(steps):
            parts.append(line(x + wide, y2, x + pitch, y2, MUTED, "2 2"))
        for place, text in enumerate(fit_lines(step.label, pitch - 6, 3)):
            parts.append(words(middle, bottom + 18 + 15 * place, text, anchor="middle", color=INK))
    rows = max(len(fit_lines(step.label, pitch - 6, 3)) for step in steps)
    return bottom + 12 + 15 * rows, parts


_CUT = {"fill": "none", "stroke-width": 3.0}


def _zigzag(x: float, y: float, width: float) -> str:
    steps = range(7)
    return "M" + "L".join(f"{number(x + width * i / 6)} {number(y + (4 if i % 2 else -4))}" for i in steps)


def _bridge_rows(steps: list[_Step], start: float, width: float) -> Drawn:
    low, high = _range(steps, start)
    room = max(text_px(step.text) for step in steps) + 16
    beside = min(width * 0.3, max(text_px(step.label) for step in steps) + 10) if width >= 500 else 0.0
    scale = Scale(low, high, beside + (room if low < 0 else 0), width - room)
    parts, top = [], 4.0
    for index, step in enumerate(steps):
        if not beside:
            parts.append(words(0, top + 12, fit(step.label, width)))
            top += 17
        else:
            parts.append(words(0, top + 12, fit(step.label, beside - 8)))
        x1, x2 = scale.at(step.low), scale.at(step.high)
        parts.append(rect(x1, top, x2 - x1, _BAR_PX, step.color, f"{step.label}: {step.text}"))
        parts.append(words(max(x1, x2) + 5, top + 12, step.text, bold=True))
        following = top + _BAR_PX + _GAP_PX
        if index + 1 < len(steps):
            parts.append(line(x2, top + _BAR_PX, x2, following + (17 if not beside else 0), MUTED, "2 2"))
        top = following
    return top, parts


def _levels(chart: Chart, currency: str, width: float) -> Drawn:
    """Levels of a funnel, or parts of a whole: a bar each with its value and its share, as long as the share."""
    values = _values(chart, 0)
    heights = [value for value in values if value is not None]
    if not heights:
        return 0.0, []
    parts = chart.kind == "parts"
    first = next((value for value in heights if value > 0), 0.0)
    whole = chart.shared_whole if parts else first
    scale = Scale(0.0, whole if parts and whole > 0 else max(0.0, *heights), 0.0, width)
    drawn, top = [], 4.0
    texts = amount_texts(chart.unit, currency, heights)
    for index, (label, value) in enumerate(zip(chart.labels, values, strict=True)):
        text = "unknown" if value is None else texts[value]
        has_share = value is not None and whole > 0 and math.isfinite(whole) and (parts or index)
        shown = f"{text} ({percent((value or 0.0) / whole).replace('-', _MINUS)})" if has_share else text
        drawn.append(words(0, top + 12, fit(tidy(label), width - text_px(shown) - 12), bold=not parts))
        drawn.append(words(width, top + 12, shown, anchor="end"))
        drawn.append(rect(0, top + 18, width, _BAR_PX, "#eef1f4"))
        if value is not None:
            drawn.append(rect(0, top + 18, scale.at(value), _BAR_PX, PALETTE[0], shown))
        top += 18 + _BAR_PX + 10
    return top, drawn


_DRAWERS: dict[str, Callable[[Chart, str, float], Drawn]] = {
    "bridge": _bridge,
    "bars": _bars,
    "lines": draw_lines,
    "fan": draw_fan,
    "funnel": _levels,
    "parts": _levels,
    "steps": draw_steps,
    "spans": draw_spans,
    "dots": draw_dots,
    "stack": draw_stack,
}
