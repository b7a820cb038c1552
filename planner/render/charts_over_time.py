"""Charts with time, or another order, along the bottom: lines, a forecast's fan, columns."""

from __future__ import annotations

from collections.abc import Sequence

from planner.records import record
from planner.render.model import Chart
from planner.render.svg import (
    BAND,
    DASHES,
    GRID,
    INK,
    MUTED,
    PALETTE,
    Scale,
    as_dates,
    date_texts,
    fit,
    line,
    number,
    rect,
    tag,
    text_px,
    ticks,
    words,
)
from planner.render.units import compact, number_of, show, tidy, unit_words

Values = list[float | None]
_PLOT_PX, _NARROW_PLOT_PX = 210.0, 180.0
_MAX_SERIES = len(PALETTE)


@record(frozen=True)
class _Plot:
    """The area between the axes."""

    left: float
    right: float
    top: float
    bottom: float
    y: Scale
    count: int
    inset: bool  # labels stand in the middle of equal parts, as columns do, instead of from edge to edge

    def x(self, index: int) -> float:
        """The pixel of the label at `index`."""
        part = (index + 0.5) / self.count
        if not self.inset and self.count > 1:
            part = index / (self.count - 1)
        return self.left + part * (self.right - self.left)


def _series(chart: Chart) -> dict[str, Values]:
    """Every series by name, one value per label."""
    count = len(chart.labels)
    by_name: dict[str, Values] = {}
    for name, values in chart.series:
        numbers = [number_of(value) for value in values[:count]]
        by_name[tidy(name)] = [*numbers, *[None] * (count - len(numbers))]
    return by_name


def _axes(
    chart: Chart, series: Sequence[Values], width: float, top: float, *, inset: bool = False
) -> tuple[_Plot, list[str]] | None:
    """The plot's area with its grid and labels; None where there is no value."""
    drawn = [value for values in series for value in values if value is not None]
    if not drawn:
        return None
    low, high = min(drawn), max(drawn)
    if low >= 0 and (low <= 0.6 * high or inset):
        low = 0.0
    marks = ticks(low, max(high, 0.0) if inset else high, 4)
    if inset and marks[0] > 0:
        marks = [0.0, *marks]
    texts = [compact(mark, chart.unit) for mark in marks]
    left = max(text_px(text, 11) for text in texts) + 8
    height = _PLOT_PX if width >= 500 else _NARROW_PLOT_PX
    y = Scale(marks[0], marks[-1], top + height, top + 6)
    plot = _Plot(left, width - 8, top + 6, top + height, y, len(chart.labels), inset)
    parts = []
    for mark, text in zip(marks, texts, strict=True):
        color = MUTED if mark == 0 else GRID
        parts.append(line(left, y.at(mark), width, y.at(mark), color))
        parts.append(words(left - 6, y.at(mark) + 4, text, anchor="end", color=MUTED, size=11))
    return plot, [*parts, *_bottom(chart, plot, width)]


def _bottom(chart: Chart, plot: _Plot, width: float) -> list[str]:
    """Labels below: as many as fit, the first and the last among them."""
    days = as_dates(chart.labels)
    wanted = 7 if width >= 500 else 4
    count = len(chart.labels)
    step = max(1, -(-(count - 1) // (wanted - 1)))
    chosen = sorted({*range(0, count, step), count - 1})
    if len(chosen) > 2 and chosen[-1] - chosen[-2] < step * 0.6:
        del chosen[-2]
    if days:
        texts = date_texts([days[index] for index in chosen], all(len(label) == 7 for label in chart.labels))
    else:
        room = (plot.right - plot.left) / max(len(chosen), 1)
        texts = [fit(tidy(chart.labels[index]), room, 11) for index in chosen]
    parts = []
    for index, text in zip(chosen, texts, strict=True):
        half = text_px(text, 11) / 2
        x = min(max(plot.x(index), half), width - half)
        parts.append(line(plot.x(index), plot.bottom, plot.x(index), plot.bottom + 4, MUTED))
        parts.append(words(x, plot.bottom + 17, text, anchor="middle", color=MUTED, size=11))
    return parts


def _runs(plot: _Plot, values: Values) -> list[list[tuple[float, float]]]:
    """Points of a line, cut at its gaps; where there are more points than pixels, those that reach furthest."""
    runs: list[list[tuple[float, float]]] = [[]]
    stride = max(1, int(len(values) / max(plot.right - plot.left, 1)))
    for begin in range(0, len(values), stride):
        chunk = [(index, value) for index, value in enumerate(values[begin : begin + stride], begin)]
        points = [(index, value) for index, value in chunk if value is not None]
        if not points:
            runs += [[]] if runs[-1] else []
            continue
        lowest, highest = min(points, key=lambda item: item[1]), max(points, key=lambda item: item[1])
        for index, value in sorted({lowest, highest}):
            runs[-1].append((plot.x(index), plot.y.at(value)))
    return [run for run in runs if run]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def _curve(plot: _Plot, values: Values, color: str, dash: str, width: float = 2.0) -> list[str]:
    parts = []
    for run in _runs(plot, values):
        if len(run) == 1:
            parts.append(tag("circle", {"cx": run[0][0], "cy": run[0][1], "r": 2.5, "fill": color}))
            continue
        drawn = {"d": _path(run), "fill": "none", "stroke": color, "stroke-width": width}
        parts.append(tag("path", {**drawn, "stroke-dasharray": dash, "stroke-linejoin": "round"}))
    return parts


def legend(
    items: Sequence[tuple[str, str, str, bool]], width: float, unit: str = ""
) -> tuple[list[str], float]:
    """Names above the plot: (name, colour, dash, whether it is a filled band), and where the plot may begin."""
    parts, x, y = [], 0.0, 12.0
    for name, color, dash, filled in items:
        shown = fit(name, min(width - 34, 240))
        if x and x + 28 + text_px(shown) > width:
            x, y = 0.0, y + 18
        if filled:
            parts.append(rect(x, y - 10, 22, 12, color))
        else:
            stroke = {"stroke": color, "stroke-width": 2.5, "stroke-dasharray": dash}
            parts.append(tag("line", {"x1": x, "y1": y - 4, "x2": x + 22, "y2": y - 4, **stroke}))
        parts.append(words(x + 28, y, shown, color=INK))
        x += 28 + text_px(shown) + 18
    if unit:
        if x + text_px(unit) > width:
            x, y = 0.0, y + 18
        parts.append(words(width, y, unit, anchor="end", color=MUTED))
    return parts, y + 10


def draw_lines(chart: Chart, currency: str, width: float) -> tuple[float, list[str]]:
    """One line per series, told apart by colour and dashes; at most as many as there are colours."""
    series = dict(list(_series(chart).items())[:_MAX_SERIES])
    items = [(name, PALETTE[index], DASHES[index], False) for index, name in enumerate(series)]
    parts, top = legend(items, width, unit_words(chart.unit, currency))
    axes = _axes(chart, list(series.values()), width, top)
    if axes is None:
        return 0.0, []
    plot, drawn = axes
    parts += drawn
    for index, values in enumerate(series.values()):
        parts += _curve(plot, values, PALETTE[index], DASHES[index])
    height = plot.bottom + 26
    if len(chart.series) > _MAX_SERIES:
        parts.append(
            words(0, height + 8, f"{len(chart.series) - _MAX_SERIES:,} more lines not drawn", color=MUTED)
        )
        height += 16
    return height, parts


def draw_fan(chart: Chart, currency: str, width: float) -> tuple[float, list[str]]:
    """What was billed, what is expected, and the band between `low` and `high`; other series as thin lines."""
    series = _series(chart)
    nothing: Values = [None] * len(chart.labels)
    ends = zip(series.get("low", nothing), series.get("high", nothing), strict=True)
    band = [_band_point(low, high) for low, high in ends]
    others = [name for name in series if name not in ("actual", "expected", "low", "high")][:3]
    items = [("actual", INK, "", False)] if "actual" in series else []
    items += [("expected", PALETTE[0], "7 3", False)] if "expected" in series else []
    items += [("range, low to high", BAND, "", True)] if any(band) else []
    items += [(name, PALETTE[index + 1], DASHES[index + 2], False) for index, name in enumerate(others)]
    parts, top = legend(items, width, unit_words(chart.unit, currency))
    axes = _axes(chart, list(series.values()), width, top)
    if axes is None:
        return 0.0, []
    plot, drawn = axes
    parts += [*drawn, *_filled(plot, band)]
    parts += _curve(plot, series.get("expected", []), PALETTE[0], "7 3")
    for index, name in enumerate(others):
        parts += _curve(plot, series[name], PALETTE[index + 1], DASHES[index + 2], 1.5)
    parts += _curve(plot, series.get("actual", []), INK, "")
    return plot.bottom + 26, parts


def _band_point(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (min(low, high), max(low, high))


def _filled(plot: _Plot, band: Sequence[tuple[float, float] | None]) -> list[str]:
    """The band as closed areas, one per stretch without a gap."""
    parts: list[str] = []
    run: list[tuple[int, tuple[float, float]]] = []
    for index, ends in enumerate([*band, None]):
        if ends is not None:
            run.append((index, ends))
            continue
        if len(run) > 1:
            upper = [(plot.x(at), plot.y.at(high)) for at, (_, high) in run]
            lower = [(plot.x(at), plot.y.at(low)) for at, (low, _) in reversed(run)]
            parts.append(tag("path", {"d": f"{_path([*upper, *lower])}Z", "fill": BAND}))
        run = []
    return parts


def columns_over_time(chart: Chart, currency: str, width: float) -> tuple[float, list[str]]:
    """Bars that stand on the time axis, those of one date beside each other."""
    series = dict(list(_series(chart).items())[:_MAX_SERIES])
    single = len(series) == 1
    items = [(name, PALETTE[index], "", True) for index, name in enumerate(series)]
    parts, top = legend([] if single else items, width, unit_words(chart.unit, currency))
    axes = _axes(chart, list(series.values()), width, top, inset=True)
    if axes is None:
        return 0.0, []
    plot, drawn = axes
    parts += drawn
    pitch = (plot.right - plot.left) / max(plot.count, 1)
    wide = max(0.75 * pitch / len(series), 0.6)
    for number_of_series, values in enumerate(series.values()):
        for index, value in enumerate(values):
            if value is None:
                continue
            x = plot.x(index) - wide * (len(series) / 2 - number_of_series)
            hint = f"{tidy(chart.labels[index])}: {show(value, chart.unit, currency)}"
            y = plot.y.at(value)
            parts.append(rect(x, plot.y.at(0.0), wide, y - plot.y.at(0.0), PALETTE[number_of_series], hint))
    return plot.bottom + 26, parts


def draw_stack(chart: Chart, currency: str, width: float) -> tuple[float, list[str]]:
    """One column per label, its parts one upon the other in the order of the series; parts below zero are left out."""
    series = dict(list(_series(chart).items())[:_MAX_SERIES])
    items = [(name, PALETTE[index], "", True) for index, name in enumerate(series)]
    parts, top = legend(items, width, unit_words(chart.unit, currency))
    heights = [[max(value or 0.0, 0.0) for value in values] for values in series.values()]
    totals: Values = [sum(column) for column in zip(*heights, strict=True)]
    axes = _axes(chart, [totals], width, top, inset=True)
    if axes is None:
        return 0.0, []
    plot, drawn = axes
    parts += drawn
    wide = 0.75 * (plot.right - plot.left) / plot.count
    for index, label in enumerate(chart.labels):
        level = 0.0
        for at, (name, values) in enumerate(zip(series, heights, strict=True)):
            if values[index] > 0:
                low, high = plot.y.at(level), plot.y.at(level + values[index])
                hint = f"{tidy(label)}, {name}: {show(values[index], chart.unit, currency)}"
                parts.append(rect(plot.x(index) - wide / 2, low, wide, high - low, PALETTE[at], hint))
                level += values[index]
    return plot.bottom + 26, parts
