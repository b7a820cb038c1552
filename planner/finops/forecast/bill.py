"""Daily costs from an open bill, by scope."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InputError
from planner.finops.bought_once import once_by_day
from planner.finops.forecast.daily import DailyCost
from planner.finops.read.tag_keys import dearest_spellings, tag_keys
from planner.inputs.faults import near
from planner.inputs.quantities import FIRST_YEAR, LAST_YEAR

if TYPE_CHECKING:
    from planner.finops.read import Bill

TOTAL = "total"
NO_VALUE = "(none)"
DIMENSIONS = {
    "provider": "ServiceProviderName",
    "service": "ServiceName",
    "category": "ServiceCategory",
    "account": "BillingAccountId",
    "project": "SubAccountName",
    "sub_account": "SubAccountId",
    "region": "RegionId",
}
COSTS = {"effective": "EffectiveCost", "billed": "BilledCost"}
# of what a bill may end on; beyond are stand-ins, such as for "no end"
_FIRST_DAY, _LAST_DAY = np.datetime64(f"{FIRST_YEAR}-01-01"), np.datetime64(f"{LAST_YEAR}-12-31")
_TAG_KEY = re.compile(r"[^\"'\\\x00-\x1f]{1,128}")


def daily_of_bill(
    bill: Bill, by: str = TOTAL, cost: str = "effective", *, exact_tags: bool = False
) -> dict[str, DailyCost]:
    """Sum a bill by day and scope, taxes left out.

    A day on which the bill has charges, but none of a scope, is a day without cost for that scope.

    Args:
        bill: an open bill.
        by: `total`, a name in `DIMENSIONS`, or `tag:KEY`.
        cost: `effective` (commitments spread over their use) or `billed`.
        exact_tags: keep values of a tag apart that differ in spelling only, else the dearest spelling names them; and
            keys that differ in case only, else the one asked for counts first.

    Raises:
        InputError: there is no such dimension, or no charge.
    """
    scope = scope_of_bill(bill, by, exact_tags=exact_tags)
    daily = _query(bill, scope_sql(TOTAL), COSTS[cost])
    if not daily:
        raise InputError(
            f"the bill has no {COSTS[cost]} that can be read but taxes: there is nothing to forecast"
        )
    days = np.array(sorted({day for _, day, _ in daily}), dtype="datetime64[D]")
    if not _FIRST_DAY <= days[-1] <= _LAST_DAY:
        raise InputError(f"the bill's last charge is of {days[-1]}: no bill is of that year; leave it out")
    days = days[days >= _FIRST_DAY]  # the reader has reported what is before
    rows = daily if by == TOTAL else _query(bill, scope, COSTS[cost])
    rows += _once(bill, scope, COSTS[cost])
    if by.startswith("tag:") and not exact_tags:
        sums: dict[str, float] = {}
        for scope, _, amounts in rows:
            sums[scope] = sums.get(scope, 0.0) + amounts[0]
        names = dearest_spellings(sums)
        rows = [(names[scope], day, amounts) for scope, day, amounts in rows]
    place = {day: at for at, day in enumerate(days.tolist())}
    found: dict[str, np.ndarray[tuple[int, int], np.dtype[np.float64]]] = {}
    for scope, day, amounts in rows:
        if (at := place.get(day.astype("datetime64[D]").item())) is not None:
            found.setdefault(scope, np.zeros((4, len(days))))[:, at] += amounts
    return {
        scope: DailyCost(days, cost, np.where(charges > 0, used, np.nan), once if once.any() else None)
        for scope, (cost, used, once, charges) in sorted(found.items())
    }


def scope_name(value: object) -> str:
    """What a value of a dimension is called; `(none)` where there is none."""
    return value if isinstance(value, str) and value.strip() else NO_VALUE


def scope_of_bill(bill: Bill, by: str, *, exact_tags: bool = False) -> str:
    """The expression of a scope; a tag's key as the bill spells it, in one or in several ways."""
    if not by.startswith("tag:"):
        return scope_sql(by)
    keys = tag_keys(bill, exact=exact_tags)
    key = keys.spelled(by.removeprefix("tag:"))
    spellings = (key,) if exact_tags else keys.spellings(key)
    values = [scope_sql(f"tag:{one}") for one in spellings]
    filled = ", ".join(f"NULLIF(TRIM({value}), '')" for value in values)
    return values[0] if len(values) == 1 else f"COALESCE({filled})"


def scope_sql(by: str) -> str:
    """The expression of a scope, a tag's key as it is given."""
    kind, _, key = by.partition(":")
    if kind == "tag" and key:
        if not _TAG_KEY.fullmatch(key):
            raise InputError(f"--by {by}: a tag key has no quotes, backslashes or control characters")
        return f"JSON_EXTRACT_STRING(Tags, '$.\"{key}\"')"
    if by == TOTAL:
        return f"'{TOTAL}'"
    if by not in DIMENSIONS:
        names = [TOTAL, *DIMENSIONS, "tag:KEY"]
        hint = near(by, names)
        meant = f" (did you mean '{hint}'?)" if hint else ""
        tag = "" if hint else f"; for the values of a tag: tag:{by}"
        raise InputError(f"--by {by}: no such dimension{meant}; there are {', '.join(names)}{tag}")
    return DIMENSIONS[by]


# scope, day; what all, use alone, what bought once cost; charges of use
_Row = tuple[str, np.datetime64, tuple[float, float, float, float]]


def _query(bill: Bill, scope: str, column: str) -> list[_Row]:
    """Cost by scope and day, without telling apart what was bought once."""
    # scope is a column before it is grouped by: PostgreSQL refuses GROUP BY 'total'
    frame = bill.engine.query(
        "SELECT scope, x_day, SUM(amount) AS cost, "  # noqa: S608 - from this file's tables
        "SUM(CASE WHEN ChargeCategory = 'Usage' THEN amount ELSE 0 END) AS used, "
        "SUM(CASE WHEN ChargeCategory = 'Usage' THEN 1 ELSE 0 END) AS charges "
        f"FROM (SELECT {scope} AS scope, x_day, ChargeCategory, {column} AS amount FROM focus) AS of_scope "
        "WHERE COALESCE(ChargeCategory, '') <> 'Tax' AND amount IS NOT NULL AND x_day IS NOT NULL GROUP BY scope, x_day"
    )
    charges = frame["charges"].astype(float)
    rows = zip(_by_scope(frame), charges, strict=True)
    return [(*at, (cost, used, 0.0, count)) for (at, cost, used), count in rows]


def _once(bill: Bill, scope: str, column: str) -> list[_Row]:
    """What tells apart what was bought once: it is in the cost already, and is no use that goes on."""
    return [(*at, (0.0, -used, cost, 0.0)) for at, cost, used in _by_scope(once_by_day(bill, scope, column))]


def _by_scope(frame: Any) -> Iterator[tuple[tuple[str, np.datetime64], float, float]]:
    days = frame["x_day"].to_numpy().astype("datetime64[D]")
    at = zip(map(scope_name, frame["scope"]), days, strict=True)
    return zip(at, frame["cost"].astype(float), frame["used"].astype(float), strict=True)
