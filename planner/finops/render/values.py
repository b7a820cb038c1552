"""Values of a review as people read them: separators, the currency's code, units; one rule for every format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import get_args

from planner.finops.currency import UNKNOWN_CURRENCY
from planner.finops.review.model import Column, Figure, Table, Unit, Value
from planner.render.plain import plain_value

NOTHING = "\N{EN DASH}"  # an unknown value
WITHHELD = "withheld"
TEXT_UNITS: frozenset[str] = frozenset({"text", "date"})
UNITS: tuple[str, ...] = get_args(Unit)
# ISO 4217: currencies whose minor unit has no digits, and three digits; all others here have two.
_NO_CENTS = frozenset(
    ("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF")
)  # fmt: skip
_THREE_DIGITS = frozenset(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"))
_WHOLE_FROM = 1_000_000.0  # a column that reaches this is read in whole units of money
_SCIENTIFIC_FROM = 1e15
_JOINERS = "\u200d\u200c"  # hold emoji and letters of some scripts together, and steer nothing
_STEPS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


def tidy(text: object) -> str:
    """One line without control or direction-changing characters; emoji and every script stay."""
    words = str(text)
    if words.isprintable():
        return words
    parts = (c if c.isprintable() or c in _JOINERS else " " if c.isspace() else _escape(c) for c in words)
    return " ".join("".join(parts).split())


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()


def number_of(value: object) -> float | None:
    """The value as a finite number; None for text, truth values and what is no number."""
    plain = plain_value(value)
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        return None
    try:
        found = float(plain)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def money_places(currency: str) -> int:
    """Decimals of an amount of money (ISO 4217): 2 for most currencies."""
    return 0 if currency in _NO_CENTS else 3 if currency in _THREE_DIGITS else 2


def is_numeric(unit: str) -> bool:
    """Whether values of the unit stand right aligned."""
    return unit not in TEXT_UNITS


def unit_words(unit: str, currency: str) -> str:
    """What stands behind a label or a number: `USD`, `USD/h`, `h`; empty where nothing is to be said.

    An amount says its unit itself, and money of a bill that states no currency has none.
    """
    money = "" if currency == UNKNOWN_CURRENCY else tidy(currency)
    words = {
        "money": money,
        "money_per_hour": f"{money}/h" if money else "per h",
        "unit_price": money,
        "hours": "h",
        "days": "days",
    }
    return words.get(unit, "")


def bare(value: object, unit: str, currency: str, *, places: int | None = None) -> str:
    """The value without its unit, percentages with their sign: for cells under a header that names the unit.

    Args:
        value: number, text or None.
        unit: one of `UNITS`; anything else is shown as a quantity.
        currency: ISO 4217; decides the decimals of money.
        places: decimals of money; None lets the amount decide.
    """
    found = number_of(value)
    if found is None:
        plain = plain_value(value)
        if isinstance(plain, bool):
            return "yes" if plain else "no"
        text = tidy(plain) if isinstance(plain, str) else ""
        return text or NOTHING
    if unit == "text" or unit == "date":
        return tidy(plain_value(value))
    return _number_text(found, unit, currency, places)


def _number_text(value: float, unit: str, currency: str, places: int | None) -> str:
    size = abs(value)
    if size >= _SCIENTIFIC_FROM:
        return f"{value:.3e}"
    if unit == "ratio":
        return f"{_plus_zero(value * 100, 1)} %"
    if unit == "money":
        return _plus_zero(value, _money_digits(size, currency) if places is None else places)
    if unit in ("money_per_hour", "unit_price"):
        return _price(value)
    if unit == "hours":
        return _plus_zero(value, 2 if size < 9.995 else 1 if size < 999.95 else 0)
    if unit == "days":
        return _plus_zero(value, 0 if value == round(value) else 1)
    if unit == "count" and value == round(value):
        return _plus_zero(value, 0)
    return _significant(value, 4)


def _money_digits(size: float, currency: str) -> int:
    return 0 if size >= _WHOLE_FROM else money_places(currency)


def _price(value: float) -> str:
    """Two to four decimals, three significant digits where it is tinier."""
    if value == 0:
        return "0.00"
    places = 4 if abs(value) >= 0.01 else min(12, 2 - math.floor(math.log10(abs(value))))
    whole, _, decimals = f"{value:,.{places}f}".partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')}"


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(places, 12)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _plus_zero(value: float, places: int) -> str:
    text = f"{value:,.{places}f}"
    return text.lstrip("-") if not text.strip("-0.,") else text


def show(value: object, unit: str, currency: str) -> str:
    """The value with its unit: `1,234.50 USD`, `37.5 %`, `12.3 h`."""
    text = bare(value, unit, currency)
    words = unit_words(unit, currency)
    return f"{text} {words}" if words and number_of(value) is not None else text


def figure_text(figure: Figure, currency: str) -> str:
    """The value of a figure, or that it is withheld."""
    return WITHHELD if figure.status == "withheld" else show(figure.value, figure.unit, currency)


def compact(value: float, unit: str) -> str:
    """A short form for axes: `1.2k`, `340k`, `2.5M`, `40 %`."""
    size = abs(value)
    if not math.isfinite(value):
        return NOTHING
    if size >= _SCIENTIFIC_FROM:
        return f"{value:.1e}"
    if unit == "ratio":
        return f"{_significant(value * 100, 3)} %"
    for step, mark in _STEPS:
        if size >= step * 0.9995:
            return f"{_significant(value / step, 3)}{mark}"
    return _significant(value, 3)


def column_label(column: Column, currency: str) -> str:
    """The header of a column with the unit of its numbers, once."""
    label, words = tidy(column.label) or tidy(column.key), unit_words(column.unit, currency)
    said = label.casefold()
    if not words or words.casefold() in said.replace("(", " ").replace(")", " ").replace(",", " ").split():
        return label
    if column.unit in ("hours", "days") and column.unit[:-1] in said:
        return label
    return f"{label}, {words}"


def column_places(values: Sequence[Value], unit: str, currency: str) -> int | None:
    """Decimals of every amount of money in one column, so that the points stand below each other."""
    if unit != "money":
        return None
    sizes = [abs(found) for value in values if (found := number_of(value)) is not None]
    return _money_digits(max((size for size in sizes if size < _SCIENTIFIC_FROM), default=0.0), currency)


def cells(table: Table, currency: str, limit: int | None = None) -> list[list[str]]:
    """The rows as texts, without units; at most `limit` rows; a short row is filled, a long one is cut."""
    count = len(table.columns)
    rows = [[*row[:count], *[None] * (count - len(row))] for row in table.rows[:limit]]
    places = [
        column_places([row[index] for row in rows], column.unit, currency)
        for index, column in enumerate(table.columns)
    ]
    return [
        [
            bare(value, column.unit, currency, places=digits)
            for value, column, digits in zip(row, table.columns, places, strict=True)
        ]
        for row in rows
    ]
