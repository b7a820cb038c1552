"""From the texts of many sources to the catalog's own: decimals, dates, sources, families."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from functools import cache

from catalogs.tables.columns import bundled_rows

_DATE = r"\d{4}-\d{2}(-\d{2})?"
_PLACES = Decimal("1e-8")
_MOST_DIGITS = 15  # before the point
_THOUSANDS = r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?"


def decimal_text(value: Decimal | str, places: Decimal = _PLACES) -> str:
    """Return a price as a plain decimal text, rounded half even to `places`, without trailing zeros.

    Sources that went through floats carry noise such as 49.35922000000001; eight decimals keep every
    published price exact.

    Raises:
        ValueError: when `value` is not a finite number.
    """
    number = number_of(value)
    text = f"{number.quantize(places):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def number_of(value: object) -> Decimal:
    """Read an amount as people and lists write it: `1,234.56` and `1234.56` are the same.

    >>> number_of("1,234.56")
    Decimal('1234.56')

    Raises:
        ValueError: when it is no finite number, its commas do not part thousands, or nothing has so much of anything.
    """
    text = str(value).strip()
    if "," in text and re.fullmatch(_THOUSANDS, text):
        text = text.replace(",", "")
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(f"{value!r:.60} is not a number") from error
    if not number.is_finite():
        raise ValueError(f"{value!r} is not finite")
    if number.adjusted() > _MOST_DIGITS:
        raise ValueError(f"{str(value)[:20]}... is too large")
    return number


def split_date(text: str) -> tuple[str, str]:
    """Split a source's date into an ISO date (or month) and a remark.

    >>> split_date("2026-04 or later (undated commit)")
    ('2026-04', 'or later (undated commit)')

    Raises:
        ValueError: when the text does not begin with a date.
    """
    match = re.match(_DATE, text)
    if not match:
        raise ValueError(f"{text!r} does not begin with an ISO date or month")
    return match.group(), text[match.end() :].strip()


@cache
def _family_rules() -> tuple[tuple[str, re.Pattern[str], str], ...]:
    return tuple(
        (row["provider"], re.compile(row["pattern"]), row["family"]) for row in bundled_rows("families.csv")
    )


def family_of(provider: str, instance_type: str) -> str:
    """Return the provider's family of an instance type, by the patterns of families.csv.

    A name no pattern fits is its own family.
    """
    for of_provider, pattern, family in _family_rules():
        matched = pattern.match(instance_type) if of_provider == provider else None
        if matched:
            return matched.expand(family)
    return instance_type
