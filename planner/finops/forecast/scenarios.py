"""What-if changes of price and volume: `--scenario price=-20%`, `team-a:volume=+30%@2026-12-01`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date

import numpy as np
from numpy.typing import NDArray

from catalogs.tables.table import Floats
from planner.errors import InputError
from planner.inputs.quantities import of_our_time
from planner.records import record

_FORM = re.compile(
    r"(?:(?P<scope>.+):)?(?P<kind>price|volume)=(?P<sign>[+-]?)(?P<percent>\d{1,4}(?:\.\d+)?)%(?:@(?P<day>\d{4}-\d{2}-\d{2}))?"
)


@record(frozen=True)
class Scenario:
    """One change.

    Attributes:
        text: as given.
        scope: whose cost changes; None: all.
        factor: what daily cost is multiplied with; price and volume both act so.
        begins: first day; None: all forecast days.
    """

    text: str
    scope: str | None
    factor: float
    begins: date | None


def parse_scenario(text: str) -> Scenario:
    """Read one scenario.

    Raises:
        InputError: not of the form `[SCOPE:]price|volume=+-N%[@DAY]`, or below -100 %.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise InputError(
            f"--scenario {text}: write price=-20% or volume=+30%, with SCOPE: before it for one scope and "
            "@2026-12-01 after it for a first day"
        )
    share = float(match["percent"]) / 100 * (-1 if match["sign"] == "-" else 1)
    if share < -1:
        raise InputError(f"--scenario {text}: a fall of more than 100 % is not possible")
    try:
        begins = date.fromisoformat(match["day"]) if match["day"] else None
    except ValueError:
        raise InputError(f"--scenario {text}: {match['day']} is not a date") from None
    try:
        begins = begins and of_our_time(begins)
    except ValueError as error:
        raise InputError(f"--scenario {text}: {error}") from None
    return Scenario(text.strip(), match["scope"], 1 + share, begins)


def check_scopes(scenarios: Iterable[Scenario], scopes: Sequence[str]) -> None:
    """Refuse a scenario whose scope is not there.

    Raises:
        InputError: names the scopes that are.
    """
    for one in scenarios:
        if one.scope is not None and one.scope not in scopes:
            some = ", ".join(scopes[:8]) + (", ..." if len(scopes) > 8 else "")
            hint = "; raise --top to have more apart" if "(others)" in scopes else ""
            raise InputError(f"--scenario {one.text}: no scope {one.scope!r}; there are {some}{hint}")


def day_factors(scenarios: Iterable[Scenario], scope: str, days: NDArray[np.datetime64]) -> Floats:
    """What each day's cost of a scope is multiplied with, (n_days,)."""
    out = np.ones(len(days))
    for one in scenarios:
        if one.scope in (None, scope):
            touched = (
                days >= np.datetime64(one.begins, "D") if one.begins is not None else np.full(len(days), True)
            )
            out[touched] *= one.factor
    return out
