"""Units: how a value of each is written, in which column it stands and how a workbook formats it; one registry."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, get_args

from planner.records import record
from planner.render import numbers, words
from planner.render.currency import UNKNOWN_CURRENCY
from planner.render.model import Column, Figure, Table, Unit, Value
from planner.render.plain import plain_value
from planner.render.precision import dollars

NOTHING = "\N{EN DASH}"  # an unknown value
WITHHELD = "withheld"
# ISO 4217: currencies whose minor unit has no digits, and three digits; all others here have two.
_NO_CENTS = frozenset(
    ("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF")
)  # fmt: skip
_THREE_DIGITS = frozenset(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"))
_WHOLE_FROM = 10_000.0  # a column that reaches this is read in whole units of money
_SCIENTIFIC_FROM = 1e15
_JOINERS = "\u200d\u200c"  # hold emoji and letters of some scripts together, and steer nothing
_STEPS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
_DOLLARS = "$#,##0.00"
_SIGNED_DOLLARS = "+$#,##0.00;-$#,##0.00;$0.00"


@record(frozen=True)
class Style:
    """How values of a unit look.

    Attributes:
        write: text of a finite number (digits as the column asks, None: as usual), or of the parts of a compound.
        behind: unit behind a number or in the header of its column; empty where the text says it itself.
        numeric: whether values stand right aligned.
        sheet: number format of a workbook; empty: text.
        sheet_unit: unit in a workbook's header, where cells hold bare numbers.
        parts: of a compound: label of the second and later parts ("" repeats the column's) and unit of each.
    """

    write: Callable[[Any, int | None], str]
    behind: str = ""
    numeric: bool = True
    sheet: str = "#,##0.####"
    sheet_unit: str = ""
    parts: tuple[tuple[str, Unit], ...] = ()


def tidy(text: object) -> str:
    """One line without control or direction-changing characters; emoji and every script stay."""
    given = str(text)
    if given.isprintable():
        return given
    parts = (c if c.isprintable() or c in _JOINERS else " " if c.isspace() else _escape(c) for c in given)
    return " ".join("".join(parts).split())


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()


def number_of(value: object) -> float | None:
    """The value as a finite number; None for text, truth values and what is not a number."""
    plain = float(value) if isinstance(value, Decimal) and value.is_finite() else plain_value(value)
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


def style_of(unit: str) -> Style:
    """The style of a unit; an unknown one is a quantity."""
    return STYLES.get(unit, STYLES["quantity"])


def is_numeric(unit: str) -> bool:
    """Whether values of the unit stand right aligned."""
    return style_of(unit).numeric


def unit_words(unit: str, currency: str) -> str:
    """What stands behind a label or a number: `USD`, `USD/h`, `h`; empty where nothing is to be said.

    An amount says its unit itself, and money of a bill that states no currency has none.
    """
    money = "" if currency == UNKNOWN_CURRENCY else tidy(currency)
    of_money = {"money": money, "money_per_hour": f"{money}/h" if money else "per h", "unit_price": money}
    return of_money[unit] if unit in of_money else style_of(unit).behind


def bare(value: object, unit: str, currency: str, *, places: int | None = None) -> str:
    """The value without its unit, percentages with their sign: for cells under a header that names the unit.

    Args:
        value: number, text, the parts of a compound unit, or None.
        unit: one of `UNITS`; anything else is shown as a quantity.
        currency: ISO 4217; decides the decimals of money.
        places: decimals of money and digits of other numbers; None lets the amount decide.
    """
    style = style_of(unit)
    if isinstance(value, tuple):
        return tidy(style.write(value, places)) if style.parts else ", ".join(tidy(part) for part in value)
    found = number_of(value)
    if found is None:
        plain = plain_value(value)
        if isinstance(plain, bool):
            return "yes" if plain else "no"
        if plain is None or isinstance(value, Decimal):
            return NOTHING
        return tidy(style.write(plain, places)) if unit in ("moment", "moment_short") else tidy(plain)
    if unit == "text" or unit == "date":
        return tidy(plain_value(value))
    if abs(found) >= _SCIENTIFIC_FROM:
        return f"{found:.3e}"
    if unit == "money":
        return _plus_zero(found, _money_digits(abs(found), currency) if places is None else places)
    return style.write(value if isinstance(value, Decimal) else found, places)


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


def exact(value: float | Decimal) -> Decimal:
    """An amount as a decimal: floats to a millionth."""
    return value if isinstance(value, Decimal) else Decimal(repr(round(float(value), 6)))


def _rounded(value: float | Decimal, _digits: int | None = None) -> str:
    """US dollars without cents from a thousand on."""
    size = abs(float(value))
    return f"{'-' if value < 0 else ''}${size:,.0f}" if size >= 1000 else numbers.usd(exact(value))


def _known(value: float | Decimal) -> str:
    """US dollars that were rounded to what is known of them: the places of a decimal say to which digit."""
    known = exact(value)
    return dollars(known, -int(known.as_tuple().exponent))


def three(value: float) -> str:
    """A prediction to three significant digits: `105,000`; more would feign precision."""
    return numbers.number(float(f"{value:.3g}"))


def seconds(value: float) -> str:
    """A time in ms below one second, else in s."""
    return f"{three(value * 1e3)} ms" if value < 1.0 else f"{three(value)} s"


def _marked(parts: tuple[Any, ...], _digits: int | None) -> str:
    amount, derived = parts
    return (words.DERIVED_MARK if derived else "") + numbers.usd(amount)


def _price_words(parts: tuple[Any, ...], _digits: int | None) -> str:
    amount, currency, derived = (*parts, False)[:3]
    return (words.DERIVED_MARK if derived else "") + numbers.price(amount, currency)


def _short_money(value: float) -> str:
    """An amount without cents where they would hide what matters."""
    return f"{value:,.0f}" if abs(value) >= 100 else _plus_zero(value, 2)


def _chance(value: float, _digits: int | None) -> str:
    """A probability in whole per cent, never certain."""
    if value < 0.01:
        return "<1 %"
    return ">99 %" if value > 0.99 else f"{value * 100:.0f} %"


def _interval(parts: tuple[Any, ...], digits: int | None) -> str:
    """A ratio as per cent, with its interval in brackets where there is one."""
    value, low, high = parts
    text = numbers.percent(value, 1 if digits is None else digits)
    return text if low is None or high is None else f"{text} [{100 * low:.0f}, {100 * high:.0f}]"


def _moment_short(value: Any, _digits: int | None) -> str:
    """`11-20 08:00`: a moment whose year is known."""
    try:
        return f"{datetime.fromisoformat(str(value)).astimezone(UTC):%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return str(value)


_TENFOLD = 9.995  # from +1,000 % on, as it is rounded, a factor is easier to read


def change(value: float, digits: int | None) -> str:
    """A change as a percentage with its sign, in so many decimals if given; `x 340` where it is more than tenfold."""
    if value >= _TENFOLD:
        return f"x {float(f'{value + 1:.2g}'):,.0f}"
    if digits is not None:
        text = f"{value * 100:+.{digits}f} %"
        return text if text.strip("+-0. %") else "same"
    text = f"{value * 100:+.{1 if abs(value) < 10 else 0}f} %"
    return text if text.strip("+-0. %") else f"{value * 100:+.2g} %"


_AS_TEXT: Callable[[Any, int | None], str] = lambda value, _digits: str(value)  # noqa: E731
STYLES: dict[str, Style] = {
    "text": Style(_AS_TEXT, numeric=False, sheet=""),
    "date": Style(_AS_TEXT, numeric=False, sheet="yyyy-mm-dd"),
    "moment": Style(
        lambda v, _d: numbers.moment(str(v)), numeric=False, sheet="yyyy-mm-dd hh:mm", sheet_unit="UTC"
    ),
    "moment_short": Style(_moment_short, numeric=False, sheet="yyyy-mm-dd hh:mm", sheet_unit="UTC"),
    "money": Style(lambda v, _d: f"{v:,.2f}"),  # by its currency: see `bare`
    "money_short": Style(lambda v, _d: _short_money(float(v))),
    "money_per_hour": Style(lambda v, _d: _price(float(v)), sheet="#,##0.00##"),
    "unit_price": Style(lambda v, _d: _price(float(v)), sheet="#,##0.00########"),
    "ratio": Style(lambda v, d: numbers.percent(float(v), 1 if d is None else d), sheet="0.0%"),
    "chance": Style(_chance, sheet="0.0%"),
    "percent_change": Style(change, sheet="+0.0%;-0.0%;0%"),
    "count": Style(
        lambda v, _d: f"{v:,.0f}" if v == round(v) else _significant(float(v), 4), sheet="#,##0.####"
    ),
    "hours": Style(lambda v, _d: numbers.hours(v), "h", sheet="#,##0.00", sheet_unit="h"),
    "hours_change": Style(
        lambda v, _d: numbers.hours_change(v), sheet="+#,##0.00;-#,##0.00;0", sheet_unit="h"
    ),
    "days": Style(
        lambda v, _d: _plus_zero(v, 0 if v == round(v) else 1), "days", sheet="#,##0.0", sheet_unit="days"
    ),
    "quantity": Style(lambda v, d: _significant(float(v), 4 if d is None else d)),
    "three": Style(lambda v, _d: three(float(v)), sheet="#,##0.##"),
    "usd_per_hour": Style(lambda v, _d: f"{v:,.3f}", sheet="#,##0.000", sheet_unit="USD/h"),
    "tenths": Style(lambda v, _d: f"{v:,.1f}", sheet="#,##0.0"),
    "number": Style(lambda v, d: numbers.number(v, 3 if d is None else d)),
    "seconds": Style(lambda v, _d: seconds(float(v)), sheet="#,##0.0000", sheet_unit="s"),
    "gib": Style(lambda v, _d: f"{three(float(v))} GiB", sheet="#,##0.00", sheet_unit="GiB"),
    "gb": Style(lambda v, _d: f"{numbers.number(v)} GB", sheet="#,##0.00", sheet_unit="GB"),
    "usd": Style(lambda v, _d: numbers.usd(exact(v)), sheet=_DOLLARS, sheet_unit="USD"),
    "usd_known": Style(lambda v, _d: _known(v), sheet=_DOLLARS, sheet_unit="USD"),
    "usd_change": Style(lambda v, _d: numbers.usd_change(exact(v)), sheet=_SIGNED_DOLLARS, sheet_unit="USD"),
    "usd_change_known": Style(
        lambda v, _d: numbers.usd_change_known(exact(v)), sheet=_SIGNED_DOLLARS, sheet_unit="USD"
    ),
    "usd_rounded": Style(_rounded, sheet=_DOLLARS, sheet_unit="USD"),
    "usd_price": Style(lambda v, _d: numbers.price(exact(v)), sheet="$#,##0.00##", sheet_unit="USD"),
    "usd_marked": Style(_marked, parts=(("", "usd"), ("derived", "text"))),
    "price": Style(_price_words, parts=(("", "unit_price"), ("currency", "text"), ("derived", "text"))),
    "of": Style(
        lambda v, _d: f"{numbers.number(v[0], 6)} of {numbers.number(v[1], 6)} {v[2]}".strip(),
        numeric=False,
        parts=(("", "number"), ("of", "number"), ("unit", "text")),
    ),
    "span": Style(
        lambda v, _d: f"{_short_money(v[0])} to {_short_money(v[1])}", parts=(("", "money"), ("to", "money"))
    ),
    "interval": Style(_interval, parts=(("", "ratio"), ("low", "ratio"), ("high", "ratio"))),
    "three_span": Style(
        lambda v, _d: f"{three(v[0])}-{three(v[1])}", parts=(("low", "three"), ("high", "three"))
    ),
    "measure": Style(
        lambda v, d: f"{numbers.billed(v[0]) if d is None else numbers.number(v[0], d)} {v[1]}".strip(),
        parts=(("", "quantity"), ("unit", "text")),
    ),
    "cluster": Style(
        lambda v, _d: words.cluster(*v), numeric=False, parts=(("nodes", "count"), ("instance type", "text"))
    ),
    "devices": Style(
        lambda v, _d: words.devices(*v),
        numeric=False,
        parts=(("accelerators", "count"), ("accelerator", "text")),
    ),
    "place": Style(
        lambda v, _d: words.place(*v),
        numeric=False,
        parts=(("provider", "text"), ("region", "text"), ("zone", "text")),
    ),
    "option": Style(
        lambda v, _d: words.option(*v), numeric=False, parts=(("option", "text"), ("variant", "text"))
    ),
}
UNITS: tuple[str, ...] = get_args(Unit)
SIMPLE_UNITS: tuple[str, ...] = tuple(name for name in UNITS if not STYLES[name].parts)


def show(value: object, unit: str, currency: str) -> str:
    """The value with its unit: `1,234.50 USD`, `37.5 %`, `12.3 h`."""
    text = bare(value, unit, currency)
    behind = unit_words(unit, currency)
    return f"{text} {behind}" if behind and number_of(value) is not None else text


def figure_text(figure: Figure, currency: str) -> str:
    """What a figure says: its words, else its value, or that it is withheld."""
    if figure.status == "withheld":
        return WITHHELD
    return tidy(figure.words) or show(figure.value, figure.unit, currency)


def compact(value: float, unit: str) -> str:
    """A short form for axes: `1.2k`, `340k`, `2.5M`, `40 %`."""
    size = abs(value)
    if not math.isfinite(value):
        return NOTHING
    if size >= _SCIENTIFIC_FROM:
        return f"{value:.1e}"
    if unit == "ratio":
        return f"{_significant(value * 100, 3)} %"
    sign = "$" if unit.startswith("usd") else ""
    for step, mark in _STEPS:
        if size >= step * 0.9995:
            return f"{sign}{_significant(value / step, 3)}{mark}".replace("$-", "-$")
    return f"{sign}{_significant(value, 3)}".replace("$-", "-$")


def column_label(column: Column, currency: str) -> str:
    """The header of a column with the unit of its numbers, once."""
    return with_unit(tidy(column.label) or tidy(column.key), unit_words(column.unit, currency), column.unit)


def with_unit(label: str, behind: str, unit: str) -> str:
    """`label, unit`; the label alone where it names the unit already."""
    said = label.casefold()
    if not behind or behind.casefold() in said.replace("(", " ").replace(")", " ").replace(",", " ").split():
        return label
    if unit in ("hours", "days") and unit[:-1] in said:
        return label
    return f"{label}, {behind}"


def column_places(values: Sequence[Value], column_unit: str, currency: str) -> int | None:
    """Decimals of every amount of money in one column, so that the points stand below each other."""
    if column_unit != "money":
        return None
    sizes = [abs(found) for value in values if (found := number_of(value)) is not None]
    return _money_digits(max((size for size in sizes if size < _SCIENTIFIC_FROM), default=0.0), currency)


def placed(table: Table, *places: str) -> Table:
    """The table with only the columns that have their place there (`Column.place`)."""
    kept = [at for at, column in enumerate(table.columns) if column.place in places]
    if len(kept) == len(table.columns):
        return table
    rows = tuple(tuple(row[at] for at in kept if at < len(row)) for row in table.rows)
    return replace(table, columns=tuple(table.columns[at] for at in kept), rows=rows)


def cells(table: Table, currency: str, limit: int | None = None) -> list[list[str]]:
    """The rows as texts, without units; at most `limit` rows; a short row is filled, a long one is cut."""
    count = len(table.columns)
    rows = [[*row[:count], *[None] * (count - len(row))] for row in table.rows[:limit]]
    amounts = [row[at] for row in rows for at, column in enumerate(table.columns) if column.unit == "money"]
    places = [
        column_places(amounts, column.unit, currency) if column.digits is None else column.digits
        for column in table.columns
    ]
    return [
        [
            bare(value, column.unit, currency, places=digits)
            for value, column, digits in zip(row, table.columns, places, strict=True)
        ]
        for row in rows
    ]
