"""Where daily costs come from: a bill, or a CSV file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.finops.counted_twice import twice_by_month
from planner.finops.forecast.daily import DailyCost, load_daily
from planner.finops.forecast.plans import PlannedCost, as_known
from planner.finops.forecast.silent import silent_words
from planner.finops.read.tag_keys import TagKeys, tag_keys
from planner.records import record
from planner.render.currency import UNKNOWN_CURRENCY

if TYPE_CHECKING:
    from planner.finops.read import Bill
    from planner.finops.read.rates import Rates

_LEAST_RATIO = 0.001  # of what a month costs: less does not show in a forecast


@record(frozen=True, eq=False)
class Costs:
    """Daily costs.

    Attributes:
        scopes: dimension -> scope -> cost; a CSV file has its scopes under `scope`.
        currency: ISO 4217; `XXX` where unknown.
        findings: what a reader must know about the bill.
        endings: what commitments that end add; empty unless asked for.
        twice: billed cost that is counted twice, by first day of the month.
    """

    scopes: Mapping[str, Mapping[str, DailyCost]]
    currency: str
    findings: tuple[str, ...] = ()
    endings: tuple[PlannedCost, ...] = ()
    twice: Mapping[date, float] = field(default_factory=dict)


def read_costs(
    focus: Sequence[str],
    daily: Path | None,
    dimensions: Sequence[str],
    *,
    cost: str = "effective",
    currency: str | None = None,
    endings: bool = False,
    mapping: Mapping[str, str] | None = None,
    rates: Rates | None = None,
    exact_tags: bool = False,
) -> Costs:
    """Read a bill, or a file of daily costs.

    Args:
        focus: files, folders and globs of a bill.
        daily: CSV file with columns date, scope, cost.
        dimensions: by what to divide: see `bill.daily_of_bill`; a CSV file has only `scope`.
        cost: `effective` or `billed`.
        currency: of the rows to take from a bill; of a CSV file what its amounts are in.
        endings: whether commitments that end are looked for, along the first dimension.
        mapping: of a bill's columns, see `read.open_bill`.
        rates: put a bill's currencies into one (`read.rates.load_rates`).
        exact_tags: as of `bill.daily_of_bill`.

    Raises:
        InputError: neither or both are given, or the files cannot be used.
    """
    if bool(focus) == (daily is not None):
        raise InputError("give costs either with --focus (a bill) or with --daily (a CSV file)")
    if daily is not None:
        _refuse_of_bills(mapping, rates, endings=endings)
        return _costs_of_file(daily, dimensions, currency or UNKNOWN_CURRENCY)
    from planner.finops.account_days import account_gaps
    from planner.finops.forecast.bill import daily_of_bill
    from planner.finops.forecast.endings import ending_commitments
    from planner.finops.monthly_fees import fees_to_come
    from planner.finops.provider_days import lost_providers
    from planner.finops.read import open_bill

    with open_bill(focus, currency=currency, mapping=mapping, rates=rates) as bill:
        found = {by: daily_of_bill(bill, by, cost, exact_tags=exact_tags) for by in dimensions}
        warnings = tuple(f"{one.severity}: {one.message}" for one in bill.findings if one.severity != "info")
        warnings += tuple(
            f"warning: {words}"
            for words in (
                *lost_providers(bill),
                *_silent_in(found, bill.currency),
                account_gaps(bill),
                fees_to_come(bill, _last_day(found)),
                *_unclear_in(bill, cost),
                _once_of(bill, cost, found[dimensions[0]]),
                *_names_of(bill, dimensions, exact_tags),
            )
            if words
        )
        ending = ending_commitments(bill, dimensions[0], exact_tags=exact_tags) if endings else ()
        if dimensions[0].startswith("tag:") and not exact_tags:
            ending = tuple(as_known(one, found[dimensions[0]]) for one in ending)
        return Costs(found, bill.currency, warnings, ending, twice_by_month(bill.findings))


def _costs_of_file(path: Path, dimensions: Sequence[str], currency: str) -> Costs:
    scopes = load_daily(path, until_last_day=True)
    silent = tuple(f"warning: {words}" for words in silent_words(scopes, currency))
    return Costs(dict.fromkeys(dimensions, scopes), currency, silent)


def _refuse_of_bills(mapping: Mapping[str, str] | None, rates: Rates | None, *, endings: bool) -> None:
    """Options that daily costs cannot have."""
    if mapping:
        raise InputError("--map names columns of a bill (--focus): daily costs have date, scope and cost")
    if rates is not None:
        raise InputError("--rates: is for a bill (--focus): daily costs name no currency")
    if endings:
        raise InputError("--commitments-end needs a bill (--focus): daily costs tell of no commitments")


def _silent_in(series: Mapping[str, Mapping[str, DailyCost]], currency: str) -> list[str]:
    """Scopes without use of late, in words, once each; providers are named by `lost_providers`."""
    from planner.finops.forecast.bill import TOTAL

    said = (silent_words(scopes, currency) for by, scopes in series.items() if by not in (TOTAL, "provider"))
    return list(dict.fromkeys(words for each in said for words in each))


def _last_day(series: Mapping[str, Mapping[str, DailyCost]]) -> date:
    """The last day of any scope."""
    last: date = max(one.days[-1] for scopes in series.values() for one in scopes.values()).item()
    return last


def _unclear_in(bill: Bill, cost: str) -> list[str]:
    """Rows whose cost or kind is not known, in words."""
    from planner.finops.forecast.bill import COSTS
    from planner.finops.unclear_rows import unclear_words

    return unclear_words(bill, COSTS[cost])


def _once_of(bill: Bill, cost: str, scopes: Mapping[str, DailyCost]) -> str:
    """What forecasts do not expect again, in words."""
    from planner.finops.bought_once import bought_once, once_words
    from planner.finops.forecast.bill import COSTS

    if all(one.once is None for one in scopes.values()):
        return ""
    least = _LEAST_RATIO * sum(float(one.cost.sum()) for one in scopes.values()) / len(bill.months)
    return once_words(bought_once(bill, COSTS[cost]), least, bill.currency)


def _names_of(bill: Bill, dimensions: Sequence[str], exact_tags: bool) -> list[str]:
    """What to say of tags that go by another name in the bill (`Owner` for `team`)."""
    asked = [by.removeprefix("tag:") for by in dimensions if by.startswith("tag:")]
    keys = tag_keys(bill, exact=exact_tags) if asked else TagKeys(None)
    return [keys.names_remark(key).removesuffix(".") for key in asked]


def check_currency(currency: str, plan_currency: str) -> str:
    """The one currency of costs and plans.

    Raises:
        InputError: they differ, or the costs name none.
    """
    if not plan_currency or currency == plan_currency:
        return currency
    if currency == UNKNOWN_CURRENCY:
        raise InputError(
            f"--plans: the plans are in {plan_currency}, the costs name no currency: say what they are in, "
            f"e.g. --currency {plan_currency}"
        )
    raise InputError(
        f"--plans: the plans are in {plan_currency}, the costs in {currency}; convert one of them first"
    )
