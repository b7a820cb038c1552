"""Bills of a few rows, for one question each."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from planner.finops import read
from planner.finops.review.answer import review_bill
from planner.finops.review.model import Review, Section
from planner.finops.review.sections.registry import SECTIONS

PLAIN = {
    "ChargePeriodStart": "", "ChargePeriodEnd": "", "BilledCost": "100", "EffectiveCost": "100", "ListCost": "100",
    "ContractedCost": "100", "ChargeCategory": "Usage", "BillingCurrency": "USD", "ProviderName": "AWS",
    "ServiceName": "EC2", "ServiceCategory": "Compute", "SkuId": "gpu", "RegionId": "east",
    "PricingCategory": "Standard", "PricingQuantity": "10", "PricingUnit": "Hours", "ResourceId": "i-1",
    "Tags": '{"team":"ml","env":"prod"}',
}  # fmt: skip
COSTS = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")


def charge(day: date, cost: float | str = 100, *, days: float = 1, **changed: Any) -> dict[str, str]:
    """One row of `days` days from `day`, its four costs alike."""
    end = date.fromordinal(day.toordinal() + max(int(days), 1))
    row = PLAIN | {name: str(cost) for name in COSTS}
    row |= {"ChargePeriodStart": f"{day}T00:00:00Z", "ChargePeriodEnd": f"{end}T00:00:00Z"}
    return row | {name: str(value) for name, value in changed.items()}


def each_day(first: date, last: date, cost: float = 100, **changed: Any) -> list[dict[str, str]]:
    """A row a day, both ends included."""
    return [charge(first + timedelta(n), cost, **changed) for n in range((last - first).days + 1)]


def write_bill(path: Path, rows: Iterable[Mapping[str, str]], *, leave: tuple[str, ...] = ()) -> Path:
    """A FOCUS export; columns that rows do not share are empty."""
    given = list(rows)
    names = [name for name in dict.fromkeys(n for row in given for n in row) if name not in leave]
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, names, extrasaction="ignore")
        out.writeheader()
        out.writerows(given)
    return path


def review_of(path: Path, *, only: tuple[str, ...] = (), **options: Any) -> Review:
    """The review of a file, without a forecast unless asked for; `only`: of these sections, for tests of them."""
    with sections_only(*only), read.open_bill([path]) as bill:
        return review_bill(bill, **({"forecast": False} | options))


@contextlib.contextmanager
def sections_only(*names: str) -> Iterator[None]:
    """Reviews have these sections alone, in the order of all; without names every one."""
    assert set(names) <= {name for name, _ in SECTIONS}
    wanted = tuple(one for one in SECTIONS if not names or one[0] in names)
    with mock.patch("planner.finops.review.answer.SECTIONS", wanted):
        yield


def section(made: Review, key: str) -> Section:
    """One section."""
    return next(one for one in made.sections if one.key == key)


def rows_of(made: Review, part: str, key: str) -> list[dict[str, Any]]:
    """The rows of a section's table by column; none where there is no such table."""
    found = [table for table in section(made, part).tables if table.key == key]
    return [dict(zip((c.key for c in t.columns), row, strict=True)) for t in found for row in t.rows]
