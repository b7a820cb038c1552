"""Days with use of each provider: one provider's missing days must not hide behind the days of the others.

A provider counts where its use is steady and material: use on nine of ten of the bill's days of the month before or
after (or a gap inside the month, or no such month to go by), and a hundredth of what a day costs. What runs for a few
days only, and what is charged by the month or the week, says nothing of missing days.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from planner.finops.frames import rows_of
from planner.finops.kpis.day_sums import over_table, stands_for_focus
from planner.records import record

if TYPE_CHECKING:
    from planner.finops.read.model import Bill

STEADY_RATIO = 0.9  # days with use of the month next to it
MATERIAL_RATIO = 0.01  # of the cost of a day with use, all providers together
UNNAMED = "(unnamed)"
ENDED_DAYS = 28  # with use of others and none of its own, after which a bill is not late but over
LEAST_SHARE = 0.9  # of a month's days, as `compared_withhold_at` of the check complete_providers
LATE_DAYS = 3  # at the end of a bill, as many as forecasts leave out by themselves
_SHOWN = 3
_SQL = Path(__file__).resolve().parent / "data" / "provider_days.sql"
_Days = Mapping[date, float]  # day -> effective cost


@record(frozen=True)
class ProviderDays:
    """A provider's days of one month.

    Attributes:
        days: days with use.
        of: days of the month on which any provider has use.
        missing: those of them without use of this provider, in order.
        begins: its first day, where that is in this month or the next and lacks no later one: its bill begins there.
        ends: its last day of all, where that is in this month or the one before, lacks no earlier one and is four weeks
            past: its bill ends there.
        before_cost: effective cost of its use in the month before, in the bill's currency.
        stops: its last day of all, where that is in this month, the newest asked for, lacks no earlier one and is less
            than four weeks past, and a tenth of the month's days follow it: its file may be late.
    """

    provider: str
    days: int
    of: int
    missing: tuple[date, ...]
    begins: date | None = None
    ends: date | None = None
    before_cost: float = 0.0
    stops: date | None = None

    @property
    def turn(self) -> str:
        """`begins on 15 September`, or `ends on` it; empty where the bill goes on through the month."""
        if self.begins is not None:
            return f"begins on {self.begins:%-d %B}"
        return "" if self.ends is None else f"ends on {self.ends:%-d %B}"

    @property
    def doubt(self) -> str:
        """Where the bill begins or ends exactly with a month, as if a month's file were missing; else empty."""
        if self.begins is not None and self.begins.day == 1:
            return f"has no use before {self.begins:%-d %B} (is it new, or is its file missing?)"
        if self.ends is not None and (self.ends + timedelta(1)).day == 1:
            return f"has no use after {self.ends:%-d %B} (did it end, or is its file missing?)"
        return ""

    @property
    def clause(self) -> str:
        """`Azure, whose bill begins on 15 September`, or `Azure, which has no use before 1 October (...)`."""
        if self.stops is not None:
            return f"{self.provider}, whose reported use ends on {self.stops:%-d %B}"
        said = f"which {self.doubt}" if self.doubt else f"whose bill {self.turn}"
        return f"{self.provider}, {said}"

    @property
    def words(self) -> str:
        """`Azure has use on 10 of 31 days (none on 11 to 31 October)`, or that its bill begins or ends there."""
        if self.doubt:
            return f"{self.provider} {self.doubt}"
        if self.turn:
            return f"the bill of {self.provider} {self.turn}"
        if not self.days:
            return f"{self.provider} has no use in {self.missing[0]:%B}"
        return f"{self.provider} has use on {self.days} of {self.of} days (none on {spans(self.missing)})"


def use_by_provider(bill: Bill, months: Collection[date]) -> dict[str, dict[date, float]]:
    """Effective cost of each provider's use by day, up to the month after the last; 0 where it is unknown.

    Days long before the months tell a provider that comes back from one whose bill begins.

    Args:
        bill: the bill.
        months: first days of the months.
    """
    first = min((*months, *bill.months))
    _, _, last = max(months_around(month) for month in months)
    sql = over_table(_SQL.read_text(encoding="utf-8"), stands_for_focus(bill.engine, "provider_days"))
    frame = bill.engine.query(sql, {"first": first, "next": last})
    by_provider: dict[str, dict[date, float]] = {}
    for provider, day, cost in rows_of(frame):
        own = by_provider.setdefault(provider if isinstance(provider, str) else UNNAMED, {})
        own[date.fromisoformat(str(day)[:10])] = float(cost) if cost == cost else 0.0
    return by_provider


def provider_days(
    by_provider: Mapping[str, _Days], months: Collection[date]
) -> dict[date, tuple[ProviderDays, ...]]:
    """Days of the steady and material providers of months, the fewest first; empty of a bill of one provider.

    Args:
        by_provider: what `use_by_provider` found of these months.
        months: first days of the months.
    """
    out = {month: _of_month(by_provider, month, *months_around(month)) for month in months}
    # a file is late in the newest month; after an earlier one charges of more than a day may have followed
    return {
        month: own if month == max(months) else tuple(replace(one, stops=None) for one in own)
        for month, own in out.items()
    }


def lost_providers(bill: Bill) -> tuple[str, ...]:
    """Steady and material providers without use in, or on days of, the newest month: a file may be missing."""
    used = use_by_provider(bill, bill.months[-1:]) if bill.months else {}
    days = {day for own in used.values() for day in own}
    if not days:
        return ()
    # The first days of a month say nothing yet, and hours on the first alone belong to the invoice of the month before.
    month = (max(days) - timedelta(LATE_DAYS)).replace(day=1)
    (own,) = provider_days(used, [month]).values()
    return lost_words(own, month, bill.currency)


def lost_words(providers: Sequence[ProviderDays], month: date, currency: str) -> tuple[str, ...]:
    """What forecasts leave out of providers without use in a month, or on days of it, in words.

    Args:
        providers: those of the month.
        month: its first day.
        currency: of the bill.
    """
    out = []
    for one in providers:
        if one.begins or (one.turn and not one.doubt) or len(one.missing) <= LATE_DAYS:
            continue
        if one.days:
            out.append(f"{one.words}: forecasts take these as days without cost")
        else:
            cost = f"{one.before_cost:,.0f} {currency} in {month - timedelta(1):%B}"
            out.append(f"{one.words}: forecasts take it as ended; it cost {cost}")
    return tuple(out)


def months_around(month: date) -> tuple[date, date, date]:
    """First days of the month before, of the month after, and of the one after that."""
    end = month + timedelta(monthrange(month.year, month.month)[1])
    return (month - timedelta(1)).replace(day=1), end, end + timedelta(monthrange(end.year, end.month)[1])


def _of_month(
    providers: Mapping[str, _Days], month: date, before: date, end: date, after: date
) -> tuple[ProviderDays, ...]:
    """Judge the providers by their days from `before` to `after`."""
    near = {
        name: {day: cost for day, cost in days.items() if before <= day < after}
        for name, days in providers.items()
    }
    by_provider = {name: days for name, days in near.items() if days}
    if len(by_provider) < 2:
        return ()
    whole = _between(by_provider.values(), month, end)
    if not whole:
        return ()
    rates = {name: _rate(own, month, end) for name, own in by_provider.items()}
    least = MATERIAL_RATIO * sum(rates.values())
    rows = []
    for name, own in sorted(by_provider.items()):
        neighbours = [
            (own.keys() & days, days)
            for first, last in ((before, month), (end, after))
            if (days := _between(by_provider.values(), first, last))
        ]
        if rates[name] <= 0 or rates[name] < least or not _steady(own.keys() & whole, whole, neighbours):
            continue
        missing = tuple(sorted(whole - own.keys()))
        begins = _begins(providers[name].keys(), month, missing)
        ends = None if begins else _ends(name, providers, end, missing)
        cost = sum(cost for day, cost in own.items() if day < month)
        there = len(whole) - len(missing)
        last = max(providers[name])
        is_late = not (begins or ends) and bool(there) and last < missing[0] if missing else False
        stops = last if is_late and there < LEAST_SHARE * len(whole) else None
        rows.append(ProviderDays(name, there, len(whole), missing, begins, ends, cost, stops))
    return tuple(sorted(rows, key=lambda one: (one.days, one.provider)))


def _begins(own: Collection[date], month: date, missing: Sequence[date]) -> date | None:
    """The first day of a provider that has none before it, and every day of the month from then on."""
    first = min(own, default=month)
    return first if missing and month < first and missing[-1] < first else None


def _ends(name: str, providers: Mapping[str, _Days], end: date, missing: Sequence[date]) -> date | None:
    """The last day of a provider that has every day up to it and none since, while others had four weeks of use."""
    last = max(providers[name], default=end)
    if not (missing and last < missing[0]):
        return None
    since = {day for days in providers.values() for day in days if day > last}
    return last if len(since) >= ENDED_DAYS else None


def without_others(
    by_month: Mapping[date, tuple[ProviderDays, ...]], month: date
) -> dict[date, tuple[ProviderDays, ...]]:
    """Leave out providers whose bills begin after the reviewed month, or ended before the one compared with."""
    return {
        of: tuple(one for one in own if one.days or (one.begins if of == month else one.ends) is None)
        for of, own in by_month.items()
    }


def turned_between(before: Sequence[ProviderDays], after: Sequence[ProviderDays]) -> tuple[ProviderDays, ...]:
    """Providers whose bills end or begin between the first day of a month and that of a later one, both included.

    And those whose use stops early in one of the months, as that of a late file does.

    One that ends with the month, or begins with the later one, may as well lack a file: it is among them. None is where
    all of them turn, as when one takes the place of another.

    Args:
        before: providers of the earlier month.
        after: providers of the later one.
    """
    found = {one.provider: one for one in before if one.turn}
    found |= {one.provider: one for one in after if one.ends and not one.days}
    found |= {one.provider: one for one in (*before, *after) if one.stops}
    goes_on = {one.provider for one in (*before, *after)} - found.keys()
    return tuple(found.values()) if goes_on else ()


def going_on(by_provider: Sequence[ProviderDays]) -> tuple[ProviderDays, ...]:
    """Those whose bills neither begin, end nor stop within the month; no month is compared by the others.

    Where the use of all stops early, none is the measure of the others: they are compared.
    """
    lasting = tuple(one for one in by_provider if not one.turn)
    return tuple(one for one in lasting if not one.stops) or lasting


def share_there(by_provider: Sequence[ProviderDays]) -> float | None:
    """The least share of its days that a provider has; None where none counts."""
    return min((one.days / one.of for one in by_provider), default=None)


def missing_words(by_provider: Sequence[ProviderDays]) -> str:
    """The providers that lack days, with the days."""
    lacking = [one.words for one in by_provider if one.missing]
    more = f"; and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
    return "; ".join(lacking[:_SHOWN]) + more


def spans(days: Sequence[date]) -> str:
    """Days of one month in words: `3, 7 to 9 October`; of more than three spans the rest is counted."""
    if not days:
        return "no day"
    runs: list[list[date]] = []
    for day in sorted(days):
        if runs and day - runs[-1][-1] == timedelta(1):
            runs[-1].append(day)
        else:
            runs.append([day])
    shown = [f"{run[0].day}" if len(run) == 1 else f"{run[0].day} to {run[-1].day}" for run in runs[:_SHOWN]]
    more = sum(len(run) for run in runs[_SHOWN:])
    return f"{', '.join(shown)} {days[0]:%B}{f' and {more} more days' if more else ''}"


def _between(providers: Collection[_Days], first: date, last: date) -> set[date]:
    return {day for own in providers for day in own if first <= day < last}


def _rate(own: _Days, month: date, end: date) -> float:
    """Cost of a day with use: of the month, else of those around it."""
    inside = [cost for day, cost in own.items() if month <= day < end]
    costs = inside or list(own.values())
    return sum(costs) / len(costs)


def _steady(there: set[date], whole: set[date], neighbours: Sequence[tuple[set[date], set[date]]]) -> bool:
    """Whether a provider's use is to be expected on every day of the month."""
    if not neighbours:
        return bool(there)
    if any(len(own) >= STEADY_RATIO * len(days) for own, days in neighbours):
        return True
    if not there:
        return False
    inside = {day for day in whole if min(there) <= day <= max(there)}
    return there != inside and len(there) >= len(inside) / 2
