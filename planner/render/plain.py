"""Answers as plain JSON values: dict, list, str, int, float, bool and None, no NaN, no infinity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_AS_IS = frozenset({str, int, bool, type(None)})


def plain_value(value: Any) -> Any:
    """The value in JSON's types: unknown or unbounded numbers become None, dates and decimals text (no exponents)."""
    kind = type(value)
    if kind in _AS_IS:  # most values; what is a Mapping takes longer to tell
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if hasattr(value, "item"):  # a numpy scalar; numpy itself is not needed to see that
        return plain_value(value.item()) if not isinstance(value, float) else plain_value(float(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, int):
        return int(value)
    return format(value, "f") if isinstance(value, Decimal) else str(value)
