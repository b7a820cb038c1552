"""Plain scalars by the YAML 1.2 core schema (section 10.3.2 of the YAML 1.2.2 specification)."""

from __future__ import annotations

import re

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+$")
_OCT = r"0o[0-7]+$"  # seldom there: `re` compiles it when it is
_HEX = r"0x[0-9a-fA-F]+$"
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$")
_INF = r"([-+]?)\.(?:inf|Inf|INF)$"
_NAN = frozenset((".nan", ".NaN", ".NAN"))
_MAX_DIGITS = 400  # Python refuses to read integers of more than 4,300 digits; nothing sensible needs 400


def resolve_scalar(text: str) -> str | int | float | bool | None:
    """The value of a plain scalar.

    Raises:
        ValueError: a number of too many digits.
    """
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    first = text[0]
    if first not in "0123456789+-.":
        return text
    if len(text) > _MAX_DIGITS and (_INT.match(text) or re.match(_HEX, text) or re.match(_OCT, text)):
        raise ValueError(f"number of {len(text)} digits is too long")
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    if text.startswith("0o") and re.match(_OCT, text):
        return int(text[2:], 8)
    if text.startswith("0x") and re.match(_HEX, text):
        return int(text[2:], 16)
    infinite = re.match(_INF, text) if "." in text else None
    if infinite is not None:
        return float(f"{infinite.group(1)}inf")
    return float("nan") if text in _NAN else text
