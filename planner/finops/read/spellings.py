"""Values of a tag that differ in spelling only: `ML-Platform`, `ml_platform` and `ml platform` are one.

The rule is that of the KPI `allocation`, which applies it inside the engine; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def plain_value(value: str) -> str:
    """A value without what spellings differ in: case, and dashes, underscores or blanks between letters.

    Of values with a digit dashes count: team-1-2 is not team-12.
    """
    dashed = value.lower().replace("_", "-").replace(" ", "-").replace("--", "-").replace("--", "-")
    if any(digit in dashed for digit in "0123456789"):
        return dashed
    return dashed.replace("-", "") or value


def dearest_spellings(costs: Mapping[str, float]) -> dict[str, str]:
    """Each spelling, and the one that costs most of those that are the same value.

    Args:
        costs: cost by value as it is written.
    """
    names: dict[str, str] = {}
    for value in sorted(costs, key=lambda one: (-costs[one], one)):
        names.setdefault(plain_value(value), value)
    return {value: names[plain_value(value)] for value in costs}


def known_spelling(asked: str, known: Iterable[str]) -> str:
    """The value as it is known: itself where it is, else the only one that differs in spelling, else as asked."""
    values = list(known)
    if asked in values:
        return asked
    alike = [one for one in values if plain_value(one) == plain_value(asked)]
    return alike[0] if len(alike) == 1 else asked
