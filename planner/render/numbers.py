"""Numbers as people read them: separators, sensible digits, money to the cent, `unknown` for unknown."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal

UNKNOWN = "unknown"
_NOISE = 1e-12  # of sums of floats: no shortfall


def amount(value: Decimal | float | None) -> str:
    """Format an amount to the cent, without a currency sign: `1,234.50`."""
    if value is None or not Decimal(value).is_finite():
        return UNKNOWN
    text = f"{value:,.2f}"  # exact for any size, ties to even by the default context
    return text.lstrip("-") if not text.strip("-0.,") else text


def usd(value: Decimal | float | None) -> str:
    """Format US dollars to the cent: `$1,234.50`, `-$3.00`."""
    text = amount(value)
    if text == UNKNOWN:
        return text
    return f"-${text[1:]}" if text.startswith("-") else f"${text}"


def usd_change(value: Decimal | None) -> str:
    """Format a difference in US dollars with its sign: `+$12.00`, `-$3.00`, `$0.00`."""
    text = usd(value)
    return text if value is None or text in (UNKNOWN, "$0.00") or text.startswith("-") else f"+{text}"


def usd_change_known(value: Decimal) -> str:
    """A difference in US dollars that was rounded to what is known of it: `+$4,800`, `-$20`, `+$0.20`."""
    whole = value == value.to_integral_value()
    text = f"{abs(value):,.0f}" if whole else f"{abs(value):,.2f}"
    return f"{'-' if value < 0 else '+' if value else ''}${text}"


def price(value: Decimal, currency: str = "USD") -> str:
    """Format a unit price with two to four decimals, more where it is tiny: `$32.7726`, `CNY 34.742`."""
    if not value.is_finite():
        return UNKNOWN
    places = 4
    if value and abs(value) < Decimal("0.01"):
        places = min(12, 2 - value.adjusted())  # three significant digits
    text = f"{value:,.{places}f}"
    whole, _, decimals = text.partition(".")
    decimals = decimals.rstrip("0").ljust(2, "0")
    sign = "$" if currency == "USD" else f"{currency} "
    return f"{sign}{whole}.{decimals}"


def number(value: float | Decimal | None, digits: int = 3) -> str:
    """Format a quantity to `digits` significant digits, its whole part in full: `12,346`, `0.0123`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    value = float(value)
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(places, 12)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def billed(value: float | Decimal) -> str:
    """Format a quantity that has a price with four decimals at most, more where it is tiny: `15.6918`, `0.000609`."""
    size = abs(float(value))
    known = 0.0 < size < math.inf
    return number(value, min(6, max(3, 5 + math.floor(math.log10(size)))) if known else 3)


def hours(value: float | Decimal | None) -> str:
    """Format hours without the unit: two decimals below ten, one below a thousand, then none."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    value = float(value)
    places = 2 if abs(value) < 9.995 else 1 if abs(value) < 999.95 else 0
    text = f"{value:,.{places}f}"
    return text.lstrip("-") if not text.strip("-0.,") else text


def hours_enough(value: float) -> str:
    """Format hours that suffice: as `hours`, rounded up."""
    step = 10.0 ** -(2 if abs(value) < 9.995 else 1 if abs(value) < 999.95 else 0)
    return hours(math.ceil(value / step - 1e-6) * step)


def usd_enough(amount: Decimal | float) -> str:
    """Format dollars that suffice: as `usd`, rounded up to the cent; floats count to a millionth."""
    cents = (amount if isinstance(amount, Decimal) else Decimal(repr(round(float(amount), 6)))) * 100
    return usd(cents.to_integral_value(ROUND_CEILING) / 100)


def hours_change(value: float | None) -> str:
    """Format a difference in hours with its sign."""
    text = hours(value)
    return text if text == UNKNOWN or text.startswith("-") or not text.strip("0.,") else f"+{text}"


def days_of(value: float | None) -> str:
    """Return ` (12.3 days)` for spans of three days and more, else an empty text."""
    if value is None or not math.isfinite(value) or value < 72:
        return ""
    return f" ({value / 24:,.1f} days)"


def percent(ratio: float | None, digits: int = 1) -> str:
    """Format a ratio as a percentage: `37.5 %`; what falls short of 100 % or exceeds it does not round to it."""
    if ratio is None or not math.isfinite(ratio):
        return UNKNOWN
    text = f"{ratio * 100:,.{digits}f}"
    if ratio < 1 - _NOISE and round(ratio * 100, digits) >= 100:
        text = f"{100 - 10**-digits:.{digits}f}"
        return f">{text} %"
    if ratio > 1 + _NOISE and round(ratio * 100, digits) <= 100:
        return f">{text} %"
    return f"{text if text.strip('-0.') else text.lstrip('-')} %"


def pace(ratio: float, than: str) -> str:
    """Word the ratio of two times: `14.3 % slower than planned`, `2.7 times as slow as planned`.

    Percents end where one pace is twice the other: `8,338 % slower` and `62 % faster` say little.
    """
    slow, times = ratio > 1.0, max(ratio, 1.0 / ratio)
    if times >= 2.0:
        return f"{number(times, 2)} times as {'slow' if slow else 'fast'} as {than}"
    return f"{percent(abs(ratio - 1.0))} {'slower' if slow else 'faster'} than {than}"


def whole_percent(ratio: float | None) -> str:
    """Format a ratio in whole percents, with one digit where that would be 0: `37 %`, `0.3 %`."""
    if ratio is not None and 0.0 < ratio < 0.005:
        return f"{100.0 * ratio:.1g} %"
    return percent(ratio, 0)


def moment(text: str | None) -> str:
    """Format an ISO moment as `2026-12-01 08:00 UTC`; a date, or what is not a timestamp, stays as it is."""
    if not text:
        return UNKNOWN
    if len(text) <= 10:
        return text
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return text
    if parsed.tzinfo is not None:
        parsed = parsed.astimezone(UTC)
        return f"{parsed:%Y-%m-%d %H:%M} UTC"
    return f"{parsed:%Y-%m-%d %H:%M}"
