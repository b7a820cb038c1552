"""Quantities as people write them: durations, data sizes, counts and amounts of money.

Every parser takes what YAML gives (text or a number) and raises `ValueError` with a remedy; every formatter
is the reverse for messages. Decimal prefixes are powers of 1,000 (`GB`), binary ones of 1,024 (`GiB`), as in
ISO/IEC 80000.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal, InvalidOperation

# Patterns are texts here: `re` compiles one when it is first asked for, most are of other files.
NUMBER = r"[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_DURATION_UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
# first letter is the unit
_DURATION_WORD = r"(?:w|weeks?|d|days?|h|hrs?|hours?|m|min|mins|minutes?|s|sec|secs|seconds?)"
_DURATION_PART = rf"(?i)({NUMBER})\s*({_DURATION_WORD})(?![a-zA-Z])"
_OF_NO_FIXED_LENGTH = r"(?i)(?:months?|mos?|years?|yrs?)\b"
_DURATION_ISO = (
    r"P(?!$)(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?"
    r"(?:T(?!$)(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?$"
)
_DURATION_CLOCK = r"(\d+):([0-5]\d):([0-5]\d)$"
_MAX_DURATION_S = 100 * 365 * 86_400
_MIN_DURATION_S = 0.001
_MAX_EXPONENT = 30
MAX_SIZE_BYTES = 10**17  # 100 PB
MAX_COUNT = 10**21
MAX_USD = 10**15
_SIZE = rf"({NUMBER})\s*([a-zA-Z]*)$"
_SIZE_UNITS = {
    "B": 1,
    **{f"{p}B": 1000**i for i, p in enumerate("KMGTPE", 1)},
    **{f"{p}IB": 1024**i for i, p in enumerate("KMGTPE", 1)},
}
_COUNT = rf"[+-]?{NUMBER}$"
_COUNT_WORD = rf"(?i)({NUMBER})\s*(k|m|mm|mn|b|bn|t|tn|million|billion|trillion)$"
_COUNT_POWER = {"k": 3, "m": 6, "b": 9, "t": 12}
_MONEY = r"(?i)\$?\s*([0-9][0-9,_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*(?:USD)?$"
_GROUPED = r"[0-9]{1,3}(?:,[0-9]{2,3})*,[0-9]{3}(?![0-9,_])"  # also as 1,00,000

# The same forms for editors (JSON Schema); the parsers above are the truth.
DURATION_PATTERN = (
    r"^\s*(([0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*"
    r"([wW]|[wW]eeks?|[dD]|[dD]ays?|[hH]|[hH]rs?|[hH]ours?|[mM]|[mM]ins?|[mM]inutes?|[sS]|[sS]ecs?|[sS]econds?)"
    r"[\s,]*)+|P[0-9.WDTHMS]+|[0-9]+:[0-5][0-9]:[0-5][0-9])\s*$"
)
SIZE_PATTERN = r"^\s*[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*([kKMGTPEmgtpe][iI]?)?[bB]\s*$"
COUNT_PATTERN = r"^\s*[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*$"
MONEY_PATTERN = r"^\s*\$?\s*[0-9][0-9,_]*(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*([uU][sS][dD])?\s*$"


def parse_duration(value: object) -> timedelta:
    """Read `72h`, `3d 4h`, `30m`, `2 weeks`, `72:00:00` (h:m:s) or ISO 8601 (`P3DT4H`); above zero."""
    if isinstance(value, timedelta):
        return _checked_duration(value.total_seconds(), str(value))
    if isinstance(value, bool) or not isinstance(value, str):
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise ValueError(f"needs a unit: write '{value}h' for hours, '{value}d' for days")
        raise ValueError("must be a duration like '72h', '3d 4h' or '2w'")
    text = value.strip()
    seconds = _iso_seconds(text)
    if seconds is None:
        seconds = _clock_seconds(text)
    if seconds is None:
        seconds = _parts_seconds(text)
    return _checked_duration(seconds, text)


def _checked_duration(seconds: Decimal | float, text: str) -> timedelta:
    if seconds <= 0:
        raise ValueError(f"must be longer than zero, got {text!r}")
    if float(seconds) < _MIN_DURATION_S:
        raise ValueError(f"is shorter than a millisecond: {text!r}")
    if seconds > _MAX_DURATION_S:
        raise ValueError(f"is longer than 100 years: {text!r}")
    return timedelta(seconds=float(seconds))


def _iso_seconds(text: str) -> Decimal | None:
    if not text.startswith("P"):
        return None
    match = re.match(_DURATION_ISO, text)
    if match is None:
        raise ValueError(
            f"is not an ISO 8601 duration of fixed length: {text!r}; write like 'P3DT4H' "
            "(months and years differ in length)"
        )
    return sum(
        (
            _exact(part or "0") * unit
            for part, unit in zip(match.groups(), _DURATION_UNITS.values(), strict=True)
        ),
        Decimal(0),
    )


def _clock_seconds(text: str) -> Decimal | None:
    match = re.match(_DURATION_CLOCK, text)
    if match is None:
        return None
    hours, minutes, seconds = (int(part) for part in match.groups())
    return Decimal(hours * 3_600 + minutes * 60 + seconds)


def _parts_seconds(text: str) -> Decimal:
    total, seen, rest = Decimal(0), set[str](), text
    while rest:
        match = re.match(_DURATION_PART, rest)
        if match is None:
            more = " (months and years differ in length)" if re.search(_OF_NO_FIXED_LENGTH, rest) else ""
            raise ValueError(f"is not a duration: {text!r}; write like '72h', '3d 4h', '30m' or '2w'{more}")
        unit = match.group(2)[0].lower()
        if unit in seen:
            raise ValueError(f"names one unit twice: {text!r}")
        seen.add(unit)
        total += _exact(match.group(1)) * _DURATION_UNITS[unit]
        rest = rest[match.end() :].lstrip(" ,\t")
    if not seen:
        raise ValueError("is empty; write a duration like '72h' or '3d 4h'")
    return total


def parse_size(value: object) -> int:
    """Read `100GB`, `1.6 TB`, `80GiB` or a whole number of bytes as bytes (positive)."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a size like '100GB' or '80GiB'")
    if isinstance(value, int | float):
        return _checked_size(_decimal(value), str(value))
    text = value.strip()
    if text.startswith("-"):
        raise ValueError(f"must be more than zero, got {text!r}")
    match = re.match(_SIZE, text)
    if match is None:
        raise ValueError(f"is not a size: {text!r}; write like '100GB', '1.6 TB' or '80GiB'")
    number, unit = match.groups()
    if not unit:
        return _checked_size(_exact(number), text)
    if len(unit) == 2 and unit[0] in "KMGTPE" and unit[1] == "b":
        raise ValueError(f"{unit!r} may mean bits or bytes: write '{number}{unit[0].upper()}B' for bytes")
    factor = _SIZE_UNITS.get(unit.upper())
    if factor is None:
        near = (
            f"; write '{number}{unit[0].upper()}B' or '{number}{unit[0].upper()}iB'"
            if unit[0].upper() in "KMGTPE"
            else ""
        )
        raise ValueError(
            f"has an unknown unit {unit!r} (B, KB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB){near}"
        )
    return _checked_size(_exact(number) * factor, text)


def _checked_size(size: Decimal, text: str) -> int:
    if not size.is_finite() or size < 1:
        raise ValueError(f"must be at least one byte, got {text!r}")
    if size > MAX_SIZE_BYTES:
        raise ValueError(f"is more than 100 PB: {text!r}")
    return int(size.to_integral_value())


def parse_count(value: object) -> int:
    """Read a whole number written `300`, `3e11`, `300e9` or `1_000_000`; must be positive."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a whole number like 300 or 300e9")
    if isinstance(value, str):
        text = value.strip()
        word = re.match(_COUNT_WORD, text)
        if word is not None:
            raise ValueError(f"must be a plain number, got {text!r}: {_in_digits(*word.groups())}")
        if re.fullmatch(_GROUPED, text):
            raise ValueError(f"has commas between its digits: {text!r}; write '{text.replace(',', '_')}'")
        if re.match(_COUNT, text) is None:
            raise ValueError(f"must be a whole number like 300 or 300e9, got {text!r}")
        number = _exact(text)
    else:
        text, number = str(value), _decimal(value)
    if not number.is_finite():
        raise ValueError(f"must be a finite number, got {text!r}")
    if number <= 0:
        raise ValueError(f"must be more than zero, got {text}")
    if number > MAX_COUNT:
        raise ValueError(f"is larger than 1e21: {text}")
    if number != number.to_integral_value():
        raise ValueError(f"must be a whole number, got {text}")
    return int(number)


def _in_digits(number: str, word: str) -> str:
    """How a count with a word is written: `write '1e9'`; k may be 1,000 or, of lengths and batches, 1,024."""
    plain = f"write '{number}e{_COUNT_POWER[word[0].lower()]}'"
    binary = _exact(number) * 1024
    if word.lower() != "k" or binary != binary.to_integral_value():
        return plain
    return f"{plain}, or '{binary:f}' where k is 1,024"


def parse_cost(value: object) -> Decimal:
    """Read what something costs: an amount like those of `parse_money`, or 0 for what is already paid."""
    return _parse_usd(value, zero=True)


def parse_money(value: object) -> Decimal:
    """Read an amount in US dollars written `5000`, `5000.50`, `$5,000` or `5000 USD`; must be positive."""
    return _parse_usd(value, zero=False)


def _parse_usd(value: object, *, zero: bool) -> Decimal:
    least = "must not be below zero" if zero else "must be more than zero"
    if isinstance(value, Decimal):
        amount = value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        amount = _decimal(value)
    elif isinstance(value, str):
        text = value.strip()
        if text.startswith("-"):
            raise ValueError(f"{least}, got {text}")
        match = re.match(_MONEY, text)
        if match is None:
            raise ValueError(f"is not an amount in US dollars: {value!r}; write like 5000 or 5000.50")
        if "," in match.group(1) and not re.match(_GROUPED, match.group(1)):
            raise ValueError(
                f"has a comma that separates no thousands: {value!r}; write like 5000 or 5000.50"
            )
        amount = _exact(match.group(1).replace(",", ""))
    else:
        raise ValueError("must be an amount in US dollars like 5000")
    if not amount.is_finite():
        raise ValueError("must be a finite amount")
    if amount < 0 or (amount == 0 and not zero):
        raise ValueError(f"{least}, got {value}")
    if amount > MAX_USD:
        raise ValueError(f"is more than 1e15 dollars: {value}")
    return amount


def _exact(text: str) -> Decimal:
    """The number as written, of a size that arithmetic holds: `1e999999h` is refused, not overflowed."""
    try:
        number = Decimal(text.replace("_", ""))
    except InvalidOperation:
        raise ValueError(f"is not a number of a usual size: {text[:40]!r}") from None
    if number and not -_MAX_EXPONENT <= number.adjusted() <= _MAX_EXPONENT:
        raise ValueError(f"is not between 1e-{_MAX_EXPONENT} and 1e{_MAX_EXPONENT}: {text[:40]!r}")
    return number


def _decimal(value: float) -> Decimal:
    """Exact for int; for float the shortest decimal that reads back as it, which is what the user typed."""
    try:
        return Decimal(repr(value))
    except InvalidOperation:  # pragma: no cover - repr of a number always parses
        raise ValueError(f"is not a number: {value}") from None


def format_duration(value: timedelta) -> str:
    """Write a length of time so that `parse_duration` reads it back (to the microsecond)."""
    micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    parts: list[str] = []
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("m", 60)):
        count, micros = divmod(micros, seconds * 1_000_000)
        if count:
            parts.append(f"{count}{unit}")
    if micros or not parts:
        parts.append(f"{Decimal(micros).scaleb(-6).normalize():f}s")
    return " ".join(parts)
