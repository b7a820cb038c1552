"""As many digits as an interval supports: what is uncertain by a third is not printed to the cent.

The half-width of the interval decides: its leading digit and one more are kept, so that the rounding is at most a
twentieth of it. Nothing is printed with more than four digits, and a moment to the day, hour or minute.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Context, Decimal

from planner.render.numbers import UNKNOWN

MOST_DIGITS = 4
_ANY_SIZE = Context(prec=800)  # holds every float, whole
_CENTS = 2  # decimals of a dollar
_NO_TENTHS_FROM_USD = 100
_ENOUGH_DIGITS = 3  # of a budget that suffices
_GUARD = 1  # digits kept below the leading one of the half-width
DAY_FROM, HOUR_FROM = 24.0, 1.0  # hours of half-width from which the hour, or the minute, is not known


def known_places(value: float, half_width: float) -> int:
    """Decimals (negative: places before the point) to which a value is known.

    Args:
        value: the figure.
        half_width: half of its interval in the same unit; 0: it is exact.
    """
    if not value or not math.isfinite(value):
        return 0
    most = MOST_DIGITS - 1 - math.floor(math.log10(abs(value)))
    if not half_width > 0 or not math.isfinite(half_width):
        return most
    # a value below its own uncertainty still shows a digit
    least = -math.floor(math.log10(abs(value)))
    return min(most, max(_GUARD - math.floor(math.log10(half_width)), least))


def rounded(value: float | Decimal, places: int) -> Decimal:
    """The value at so many decimals, exactly: `rounded(13149.61, -2)` is 13100."""
    exact = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    return exact.quantize(Decimal(1).scaleb(-places), context=_ANY_SIZE) if exact.is_finite() else exact


def figure(value: float | Decimal, places: int) -> str:
    """The same as text: `13,100`, `6.6`; no decimals beyond those known."""
    if not math.isfinite(value):
        return UNKNOWN
    text = f"{rounded(value, places):,f}" if places > 0 else f"{int(rounded(value, places)):,}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def with_interval(value: float, low: float, high: float, unit: str) -> str:
    """A figure with its 80 % interval in the digits that this supports: `33,000 tokens/s (80 %: 22,000 to 50,000)`."""
    places = known_places(value, (high - low) / 2.0)
    return f"{figure(value, places)} {unit} (80 %: {figure(low, places)} to {figure(high, places)})"


def dollars(value: float | Decimal, places: int) -> str:
    """US dollars: `$13,100`, `$18.60`, `$7`.

    An amount that is not whole has two decimals, as money is written; tenths of a dollar are rounded away from $100.
    """
    text = figure(value, 0 if places == 1 and abs(float(value)) >= _NO_TENTHS_FROM_USD else places)
    if text == UNKNOWN:
        return text
    whole, point, decimals = text.partition(".")
    if point:
        text = f"{whole}.{decimals.ljust(_CENTS, '0')}"
    return f"-${text[1:]}" if text.startswith("-") else f"${text}"


def dollars_stated(value: float | Decimal) -> str:
    """US dollars as somebody stated them, with cents where there are any: `$5,000`, `$1.50`."""
    return f"${value:,.0f}" if value == round(value) else f"${value:,.2f}"


def dollars_at_most(value: Decimal, digits: int) -> str:
    """US dollars rounded up to so many digits, no further than cents: a bound is not rounded down.

    As of `dollars`, what is not whole has two decimals.
    """
    places = min(digits - 1 - value.adjusted(), _CENTS) if value else 0
    up = value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_CEILING)
    return f"${up:,.{_CENTS if places > 0 else 0}f}"


def dollars_enough(value: Decimal | float) -> str:
    """US dollars that suffice, in three digits: what a plan would cost is known no better."""
    exact = value if isinstance(value, Decimal) else Decimal(repr(round(float(value), 6)))
    return dollars_at_most(exact, _ENOUGH_DIGITS)


def dollars_known(value: float | Decimal, half_width: float) -> str:
    """US dollars in the digits that a half-width supports; of a dollar and more no further than cents."""
    places = known_places(float(value), half_width)
    return dollars(value, min(places, _CENTS) if abs(float(value)) >= 1.0 else places)


def about(value: float) -> str:
    """A count that is an expectation, to one digit: `about 60`; below one `fewer than 1`."""
    if not math.isfinite(value):
        return "an unknown number of"
    if value < 1:
        return "fewer than 1"
    return f"about {figure(value, -math.floor(math.log10(value)))}"


def moment_known(text: str, half_width_hours: float, year: int) -> str:
    """A moment to the day, hour or minute that is known: `Dec 3`, `Nov 24 09:00`, `Jan 2, 2027`.

    Args:
        text: ISO moment.
        half_width_hours: half of its interval.
        year: left out where it is this one.
    """
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return text
    if half_width_hours < DAY_FROM and half_width_hours >= HOUR_FROM:
        moment = (moment + timedelta(minutes=30)).replace(minute=0)
    day = f"{moment:%b} {moment.day}" + (f", {moment.year}" if moment.year != year else "")
    return day if half_width_hours >= DAY_FROM else f"{day} {moment:%H:%M}"
