"""What the quantities of an input file are in Python: each function reads what YAML may write for one kind of value.

No pydantic here: the models (`fields`) and the plain reader (`plain`) use the same functions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, TypeVar

from planner.inputs.bounds import MOST_HOURS
from planner.inputs.measured import EXAMPLE, parse_measured
from planner.units import parse_cost, parse_count, parse_duration, parse_money, parse_size

_Moment = TypeVar("_Moment", bound=date)
SOFTWARE = ("cuda", "rocm", "neuron", "tpu", "gaudi", "cann", "any")
FIRST_YEAR, LAST_YEAR = 2000, 2100  # of cloud prices; one step from them cannot leave the calendar
_ISO_LIKE = 4  # digits of a year before the first dash
_LIKE_A_DATE = r"[0-9]{4}-"
_OTHER_ORDER = r"[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}|[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2}"
_LONGEST_DATE = 40  # characters, with a weekday, a time and a zone
_NAMED_MONTH = (
    r"(?i)\b(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?"
    r"|nov(ember)?|dec(ember)?)\b"
)


def unix_hint(value: object) -> str:
    """What to write where a number looks like Unix time of 2001 to 2286, in seconds or milliseconds; else empty."""
    text = str(value).strip()
    digits = text.partition(".")[0]
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{10}([0-9]{3})?(\.[0-9]*)?", text):
        return ""
    unit, seconds = ("milliseconds", int(digits) // 1000) if len(digits) == 13 else ("seconds", int(digits))
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{text} looks like Unix {unit}: write the moment as {moment:%Y-%m-%dT%H:%M:%SZ}"


def date_hint(value: object) -> str:
    """What to write where a date is in another order or names its month (`31.12.2026`, `Dec 31`); else empty."""
    text = str(value).strip()
    if len(text) > _LONGEST_DATE or not re.search("[0-9]", text):
        return ""
    is_date = re.fullmatch(_OTHER_ORDER, text) or re.search(_NAMED_MONTH, text)
    return f"write the date as year-month-day, like 2026-12-31, got {text!r}" if is_date else ""


def parse_moment(value: object) -> date | datetime:
    """Read a date (`2026-12-01`) or a date and time (`2026-12-01T08:00+01:00`; UTC without offset) of our time."""
    return of_our_time(_parse_moment(value))


def is_of_our_time(moment: date) -> bool:
    """Whether a day or moment is of a year for which anything is known."""
    return FIRST_YEAR <= moment.year <= LAST_YEAR


def of_our_time(moment: _Moment) -> _Moment:
    """The day or moment as it is; ValueError where it is of no year for which anything is known."""
    if not is_of_our_time(moment):
        raise ValueError(f"must be in the years {FIRST_YEAR} to {LAST_YEAR}, got {moment.isoformat()}")
    return moment


def parse_month(text: str) -> date:
    """The first day of a month of our time, written as `2026-10`."""
    try:
        month = date.fromisoformat(f"{text.strip()}-01")
    except ValueError:
        raise ValueError(f"{text!r} is not a month; write it as 2026-10") from None
    return of_our_time(month)


def _parse_moment(value: object) -> date | datetime:
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return value
    if not isinstance(value, str):
        raise ValueError(
            unix_hint(value) or "must be a date like 2026-12-01 or a date and time like 2026-12-01T08:00Z"
        )
    text = value.strip()
    try:
        if len(text) == 10:
            return date.fromisoformat(text)
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        wrong = f"is not a date: {text!r}; write like 2026-12-01 or 2026-12-01T08:00Z"
        raise ValueError(unix_hint(text) or date_hint(text) or wrong) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def parse_day(value: object) -> date:
    """Read a date (`2026-12-01`)."""
    moment = parse_moment(value)
    if isinstance(moment, datetime):
        raise ValueError("must be a date without time, like 2026-12-01")
    return moment


def parse_deadline(value: object) -> timedelta | date | datetime:
    """Read a length of time from the start, a date (its last moment counts) or a date and time."""
    if isinstance(value, date):
        return parse_moment(value)
    if isinstance(value, str) and re.match(_LIKE_A_DATE, value.strip()):
        return parse_moment(value)
    try:
        return parse_duration(value)
    except ValueError as error:
        raise ValueError(
            unix_hint(value) or date_hint(value) or f"{error}; a deadline may also be a date like 2026-12-01"
        ) from None


def parse_ratio(value: object) -> float:
    """Read a share from 0 (excluded) to 1; percent are refused with the ratio to write."""
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            percent = float(value.strip()[:-1])
        except ValueError:
            raise ValueError(f"must be a ratio above 0 and at most 1, got '{value[:60]}'") from None
        raise ValueError(f"must be a ratio above 0 and at most 1, not percent: write {percent / 100:g}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a ratio above 0 and at most 1, got '{str(value)[:60]}'")
    if 1 < value <= 100:
        raise ValueError(
            f"must be a ratio above 0 and at most 1, not percent: write {value / 100:g} instead of {value:g}"
        )
    if not 0 < value <= 1:
        given = str(value)[:60] if isinstance(value, int) else f"{value:g}"  # an int may be beyond all floats
        raise ValueError(f"must be a ratio above 0 and at most 1, got {given}")
    return float(value)


def parse_confidence(value: object) -> float:
    """Read a probability between 0 and 1, both excluded."""
    if not isinstance(value, bool) and isinstance(value, int | float) and value == 1:
        raise ValueError("must be below 1: certainty cannot be bought; write 0.99")
    return parse_ratio(value)


def parse_share(value: object) -> float:
    """Read a share from 0 to 1, both included."""
    if not isinstance(value, bool) and isinstance(value, int | float) and value == 0:
        return 0.0
    return parse_ratio(value)


def check_measured(value: object) -> str:
    """Accept a line such as `12500 tokens/s on 8 x h100-80gb-sxm`; it stays text."""
    if not isinstance(value, str):
        raise ValueError(f"must be a line like {EXAMPLE}, got '{str(value)[:60]}'")
    parse_measured(value)
    return value.strip()


def parse_software(value: object) -> tuple[str, ...]:
    """Read one word for software, or a list of them."""
    words = (value,) if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not words or not all(word in SOFTWARE for word in words):
        raise ValueError(f"must be one or more of {', '.join(SOFTWARE)}")
    return tuple(words)


def parse_targets(value: object) -> tuple[str, ...]:
    """Read one name of adapted matrices, or a list of them."""
    words = (value,) if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not words or not all(isinstance(w, str) and w for w in words):
        raise ValueError("must be attention, mlp, all_linear, or a list of matrices such as [q_proj, v_proj]")
    return tuple(words)


def parse_hours_or_moment(value: object) -> float | datetime:
    """Read hours (`6.5`), a duration (`6h 30m`) or a moment (`2026-12-01T08:00Z`).

    Returns:
        Hours as a float of at least 0, or an aware moment.
    """
    if isinstance(value, bool):
        raise ValueError(
            "must be hours like 6.5, a duration like '6h 30m' or a moment like 2026-12-01T08:00Z"
        )
    if isinstance(value, int | float):
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"must be a finite number of hours of at least 0, got {value:g}")
        if value > MOST_HOURS:
            raise ValueError(
                unix_hint(value) or f"a number counts hours, and {value:g} of them are over a century"
            )
        return float(value)
    if isinstance(value, date) or (
        isinstance(value, str) and value.strip()[:_ISO_LIKE].isdigit() and "-" in value
    ):
        moment = parse_moment(value)
        return moment if isinstance(moment, datetime) else datetime.combine(moment, time(), tzinfo=UTC)
    try:
        return parse_duration(value) / timedelta(hours=1)
    except ValueError as error:
        hint = unix_hint(value)
        if hint:
            raise ValueError(hint) from None
        raise ValueError(
            f"{error}; hours may also be a plain number, and a moment like 2026-12-01T08:00Z"
        ) from None


QUANTITIES: Mapping[str, Callable[[object], Any]] = {
    "duration": parse_duration,
    "size": parse_size,
    "count": parse_count,
    "money": parse_money,
    "cost": parse_cost,
    "measured": check_measured,
    "moment": parse_moment,
    "day": parse_day,
    "deadline": parse_deadline,
    "ratio": parse_ratio,
    "share": parse_share,
    "confidence": parse_confidence,
    "software": parse_software,
    "targets": parse_targets,
    "hours_or_moment": parse_hours_or_moment,
}
