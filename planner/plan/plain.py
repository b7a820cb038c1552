"""A part of a plan as plain JSON values."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from enum import Enum
from typing import Any


def plain(value: Any) -> Any:
    """Return a part of a plan as JSON values, with what its class derives."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        hidden = getattr(value, "unsaved", ())
        saved = (f.name for f in dataclasses.fields(value) if f.name not in hidden)
        out = {name: plain(getattr(value, name)) for name in saved}
        return out | {name: plain(getattr(value, name)) for name in getattr(value, "derived", ())}
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value
