"""Small static SVG: escaped elements, scales, round axis marks and labels that fit; no script, no style sheet."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from xml.sax.saxutils import escape, quoteattr

from planner.records import record
from planner.render.text import display_width
from planner.render.units import tidy

INK, MUTED, GRID, TOTAL = "#1b1f24", "#57606a", "#d8dee4", "#44546a"
# Okabe and Ito (jfly.uni-koeln.de/color, 2008): told apart with any common colour blindness; yellow is too pale here.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "1 4", "12 4")  # a second way to tell lines apart, also in grey
MORE, LESS = PALETTE[1], PALETTE[0]  # cost goes up, cost goes down
BAND = "#b9d7ea"
FONT_PX = 12.0
_SPECIAL = re.compile(r"""[&<>"\n\r\t]""")
_EM = 0.6  # mean width of a character of a sans-serif type, of its size
_FAMILY = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def tag(name: str, attributes: Mapping[str, object], *inner: str) -> str:
    """One element; attribute values are escaped, `inner` must be elements or `escaped` text."""
    given = "".join([f" {key}={_quoted(_plain(value))}" for key, value in attributes.items() if value != ""])
    return f"<{name}{given}>{''.join(inner)}</{name}>" if inner else f"<{name}{given}/>"


def _quoted(text: str) -> str:
    """An attribute's value; most are numbers and colours, which need no look-up of entities."""
    return quoteattr(text) if _SPECIAL.search(text) else f'"{text}"'


def _plain(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def number(value: float) -> str:
    """A coordinate: a tenth of a pixel is enough."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def escaped(text: object) -> str:
    """Text as the content of an element."""
    return escape(tidy(text))


def words(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    color: str = INK,
    bold: bool = False,
    size: float = 0,
) -> str:
    """A line of text; `anchor` is start, middle or end."""
    given: dict[str, object] = {"x": x, "y": y, "fill": color}
    given |= {"text-anchor": anchor} if anchor != "start" else {}
    given |= {"font-weight": "600"} if bold else {}
    given |= {"font-size": size} if size else {}
    shown = f"\N{MINUS SIGN}{text[1:]}" if text[:1] == "-" and text[1:2].isdigit() else text
    return tag("text", given, escaped(shown))


def line(x1: float, y1: float, x2: float, y2: float, color: str = GRID, dash: str = "") -> str:
    """A straight line."""
    return tag("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "stroke": color, "stroke-dasharray": dash})


def rect(x: float, y: float, width: float, height: float, color: str, hint: str = "") -> str:
    """A filled box with a hint that shows under the pointer; widths below 0 are drawn to the other side."""
    left, wide = (x, width) if width >= 0 else (x + width, -width)
    top, high = (y, height) if height >= 0 else (y + height, -height)
    inner = (tag("title", {}, escaped(hint)),) if hint else ()
    given = {"x": left, "y": top, "width": max(wide, 0.5), "height": max(high, 0.5), "fill": color}
    return tag("rect", given, *inner)


def frame(
    width: float, height: float, title: str, description: str, identity: str, parts: Sequence[str]
) -> str:
    """The picture around its parts, named and described for who cannot see it."""
    names = {"title": f"{identity}-t", "desc": f"{identity}-d"}
    attributes = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {number(width)} {number(height)}",
        "width": width,
        "height": height,
        "role": "img",
        "aria-labelledby": " ".join(names.values()),
        "font-family": _FAMILY,
        "font-size": FONT_PX,
    }
    head = tag("title", {"id": names["title"]}, escaped(title) or "chart")
    described = tag("desc", {"id": names["desc"]}, escaped(description) or escaped(title) or "chart")
    return tag("svg", attributes, head, described, *parts)


@record(frozen=True)
class Scale:
    """A straight map from values to pixels."""

    low: float
    high: float
    start_px: float
    end_px: float

    def at(self, value: float) -> float:
        """The pixel of a value; values outside are held at the edge."""
        span = self.high - self.low
        part = (value - self.low) / span if span > 0 and math.isfinite(span) else 0.0
        return self.start_px + min(max(part, 0.0), 1.0) * (self.end_px - self.start_px)


@record(frozen=True)
class LogScale(Scale):
    """A map from the logarithms of values above 0 to pixels."""

    def at(self, value: float) -> float:
        """The pixel of a value; values outside are held at the edge."""
        held = min(max(value, self.low), self.high)
        part = math.log(held / self.low) / math.log(self.high / self.low)
        return self.start_px + part * (self.end_px - self.start_px)


def log_ticks(low: float, high: float, count: int) -> list[float]:
    """Round values that enclose `low` to `high`, which are above 0.

    They are 1, 2 and 5 times the powers of ten; if these are more than `count`, the ends and the powers.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    all_of = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    first = max(value for value in all_of if value <= low * (1 + 1e-9))
    last = min(value for value in all_of if value >= high * (1 - 1e-9))
    between = [value for value in all_of if first <= value <= last]
    decades = [value for value in between if math.isclose(value, 10.0 ** round(math.log10(value)))]
    return between if len(between) <= count else sorted({first, *decades, last})


def ticks(low: float, high: float, count: int) -> list[float]:
    """Round values that enclose `low` to `high` in about `count` steps of 1, 2, 2.5 or 5 times a power of ten."""
    if not high > low:
        low, high = (low - abs(low) * 0.5 - 0.5, high + abs(high) * 0.5 + 0.5) if low else (0.0, 1.0)
    rough = (high - low) / max(count, 1)
    if not math.isfinite(rough) or rough < 1e-290:
        return [low, high]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(
        (factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999), 10 * power
    )
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    found = [index * step for index in range(first, last + 1)]
    return (
        found
        if len(found) >= 2 and len(set(found)) == len(found) and math.isfinite(found[-1])
        else [low, high]
    )


def text_px(text: str, size: float = FONT_PX) -> float:
    """About how wide a text is drawn."""
    return display_width(text) * _EM * size


def fit(text: str, room_px: float, size: float = FONT_PX) -> str:
    """The text, its end cut with an ellipsis where it is wider than `room_px`."""
    if text_px(text, size) <= room_px:
        return text
    kept = text
    while kept and text_px(kept, size) + size > room_px:
        kept = kept[: min(len(kept) - 1, int(room_px / (_EM * size)) + 1)]
    return f"{kept.rstrip()}\N{HORIZONTAL ELLIPSIS}"


def fit_lines(text: str, room_px: float, count: int, size: float = FONT_PX) -> list[str]:
    """The text broken at blanks into at most `count` lines, the last one cut where it must be."""
    lines: list[str] = []
    left = text.split(" ")
    while left and len(lines) < count - 1:
        taken = 1
        while taken < len(left) and text_px(" ".join(left[: taken + 1]), size) <= room_px:
            taken += 1
        lines.append(fit(" ".join(left[:taken]), room_px, size))
        left = left[taken:]
    return [*lines, fit(" ".join(left), room_px, size)] if left else lines


def as_dates(labels: Sequence[str]) -> list[date] | None:
    """The labels as days, months standing for their first day; None where one is not a date."""
    found = []
    for label in labels:
        try:
            found.append(date.fromisoformat(f"{label}-01" if len(label) == 7 else label))
        except ValueError:
            return None
    return found or None


def date_texts(days: Sequence[date], monthly: bool) -> list[str]:
    """Short dates: the year stands at the first and where it changes."""
    texts, year = [], 0
    for day in days:
        name = f"{day:%b}" if monthly else f"{day.day} {day:%b}"
        texts.append(f"{name} {day.year}" if day.year != year else name)
        year = day.year
    return texts
