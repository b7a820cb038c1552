"""A part of a plan as plain JSON values."""

from __future__ import annotations

import dataclasses
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any

_AS_IS = frozenset({str, int, float, bool, type(None)})


def plain(value: Any) -> Any:
    """Return a part of a plan as JSON values, with what its class derives.

    Fields that the class names in `left_out` are missing where they are None.
    """
    kind: Any = type(value)
    if kind in _AS_IS:  # most values; an Enum of texts is of a type of its own
        return value
    saved = _saved(kind)
    if saved is not None:
        names, some = saved
        out = {}
        for name in names:
            field_value = getattr(value, name)
            if type(field_value) in _AS_IS:  # without a call of its own
                if field_value is not None or name not in some:
                    out[name] = field_value
            else:
                out[name] = plain(field_value)
        return out
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


@cache
def _saved(kind: type) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Names of the values of a part's class that are saved (its fields in order, then what it derives).

    With them those that are left out where they are None; None for what is no part.
    """
    if not dataclasses.is_dataclass(kind):
        return None
    hidden = getattr(kind, "unsaved", ())
    fields = (field.name for field in dataclasses.fields(kind))
    names = (*(name for name in fields if name not in hidden), *getattr(kind, "derived", ()))
    return names, getattr(kind, "left_out", ())
