"""The month at a glance: spend, budget and forecast, how spend came to where it is, and where it went."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import numpy as np

from planner.finops.review.inputs import Inputs, month_name
from planner.finops.review.model import Chart, Figure, Section, Table
from planner.finops.review.parts import and_words, figure, money, percent, ratio, share, table, text, withheld
from planner.finops.review.sections import budgets
from planner.finops.review.sections.allocation import NOBODY
from planner.finops.review.sections.forecast import Outlook, known_money, outlook, range_words
from planner.finops.review.sections.things import least_amount
from planner.finops.review.verdict import against

TITLE = "The month at a glance"
MONTHS = 13  # of the trend: the month, and a year back to the same month
RESTATED = 3  # corrected months by name
NAMED = 5  # parts of a whole by name; the rest is one part
_WORDS = {"env": "environment", "stage": "environment"}
_REST = "Cannot be tagged"  # credits, adjustments, fees, unused commitments


def build(inputs: Inputs) -> Section:
    """Tiles, the trend, and spend by provider and by the first two mandatory tags."""
    status, reason = inputs.gate.status("overview_spend_money")
    if status == "withheld":
        return withheld("overview", TITLE, reason)
    trend = monthly_spend(inputs)
    figures = [_spend(inputs, trend), *_budget(inputs), *_forecast(inputs)]
    charts = [_trend(inputs, trend)] if len(trend) > 1 else []
    splits = _splits(inputs)
    charts += [_parts(inputs, key, label, sums) for key, label, sums in splits if not _is_of_nobody(sums)]
    said = (
        []
        if len(trend) > 1
        else [f"The bill has no month before {month_name(inputs.month)}: there is no trend yet."]
    )
    said += _earlier_charges(inputs) or _restated(inputs)
    said += _untagged([label for _, label, sums in splits if _is_of_nobody(sums)])
    if inputs.budgets is None:
        said.append("No budget was given to compare with (--budgets).")
    return Section("overview", TITLE, tuple(said), tuple(figures), _currencies(inputs), tuple(charts))


def _earlier_charges(inputs: Inputs) -> list[str]:
    """What a bill that begins in the month charges for days before it: they look like a month to compare with."""
    if inputs.begins.replace(day=1) != inputs.month:
        return []
    early = inputs.daily[
        (inputs.daily["day"].to_numpy().astype("datetime64[D]") < np.datetime64(inputs.begins))
        & (inputs.daily["charge_category"] != "Tax")
    ]
    if early.empty:
        return []
    cost, days = money(float(early["effective_cost"].sum()), inputs.bill.currency), early["day"].nunique()
    return [
        f"The bill begins on {inputs.begins:%-d %B %Y}. Its charges of {days} day{'s' * (days > 1)} before that, such "
        f"as corrections, add up to {cost}: that is not a month to compare with."
    ]


def _restated(inputs: Inputs) -> list[str]:
    """What the month's invoices correct of earlier months, if it is worth a line: their own reviews did not have it."""
    rows = inputs.ask("restated_months").sort_values("x_month", ascending=False)
    rows = rows[rows["effective_cost"].abs() >= least_amount(inputs)]
    changes = {
        date.fromisoformat(f"{month}-01"): money(float(cost), inputs.bill.currency)
        for month, cost in zip(rows["x_month"], rows["effective_cost"], strict=True)
    }
    here = changes.pop(inputs.month, None)
    month = month_name(inputs.month)
    out = [f"{month} bears {here} of corrections of closed months, which are dated in it."] if here else []
    if changes:
        named = [f"{month_name(one)} by {amount}" for one, amount in changes.items()]
        named = [*named[:RESTATED], *([f"{len(named) - RESTATED} more"] if len(named) > RESTATED else [])]
        out.append(
            f"Corrections billed in {month} change earlier months, where they count: {and_words(named)}."
        )
    return out


def _currencies(inputs: Inputs) -> tuple[Table, ...]:
    """What the month was billed in each currency, where rates put them into one."""
    together = inputs.bill.consolidated
    own = [] if together is None else [row for row in together.months if row[0] == inputs.month]
    if together is None or all(code == inputs.bill.currency for _, code, _, _ in own):
        return ()  # nothing was put into another currency
    rows = [(code, billed, ratio(inside, billed), inside)
            for _, code, billed, inside in sorted(own, key=lambda row: (-row[3], row[1]))]  # fmt: skip
    columns: list[Any] = [("currency", "Currency", "text"), ("billed", "Billed in it", "quantity"),
                          ("rate", "Mean rate", "quantity"), ("converted", "Billed", "money")]  # fmt: skip
    old = [f"{code} of {day:%-d %B %Y}" for month, code, day in together.old if month == inputs.month]
    more = f" Old rates: {', '.join(old)}." if old else ""
    note = f"Rates of {together.path}; billed cost with tax.{more}"
    return (table("currencies", "Currencies of the bill", columns, rows, note),)


def monthly_spend(inputs: Inputs) -> dict[date, float | None]:
    """Cost without tax of at most 13 months up to the reviewed one, oldest first; None: a month without a charge."""
    own = inputs.daily[inputs.daily["charge_category"] != "Tax"]
    sums = own.groupby(own["day"].to_numpy().astype("datetime64[M]"))["effective_cost"].sum()
    months_of = sums.index.to_numpy().astype("datetime64[D]").tolist()
    known = dict(zip(months_of, map(float, sums), strict=True))
    # corrections of the time before the bill are no month of it
    begun = inputs.begins.replace(day=1)
    first = min(
        (month for month, cost in known.items() if begun <= month <= inputs.month and cost > 0),
        default=inputs.month,
    )
    months = [inputs.month]
    while len(months) < MONTHS and months[-1] > first:
        months.append((months[-1] - timedelta(days=1)).replace(day=1))
    return {month: known.get(month) for month in reversed(months)}


def _begin(trend: Mapping[date, float | None], inputs: Inputs) -> str:
    """Why the trend has fewer months than it could show; empty where it has all."""
    if len(trend) >= MONTHS:
        return ""
    first = min(trend)
    late = inputs.begins_late(first)
    tail = f", the first from {late:%-d %B} on" if late is not None else ""
    return f" The bill begins in {month_name(first)}{tail}: {len(trend)} of {MONTHS} months."


def _spend(inputs: Inputs, trend: Mapping[date, float | None]) -> Figure:
    spent = inputs.spend(inputs.month)
    until = "" if inputs.is_complete else f" up to {inputs.last_day:%-d %B}"
    spend = figure(
        inputs, "overview_spend_money", f"Spend, {month_name(inputs.month)}{until}", spent, "money"
    )
    return replace(
        spend,
        note=against(inputs, spent, known=spend.reason, is_brief=True),
        trend=tuple(trend.values()) if len(trend) > 1 else (),
    )


def _budget(inputs: Inputs) -> list[Figure]:
    line = budgets.total_budget(inputs)
    if line is None:
        return []
    own = f"{inputs.month:%Y-%m}"
    name = month_name(inputs.month) if line.period.label == own else line.period.label
    budget = figure(inputs, "overview_budget_money", f"Budget, {name}", line.amount, "money")
    gap = line.landing - line.amount
    side = "over" if gap > 0 else "under"
    size = known_money(line, abs(gap), inputs.bill.currency)
    note = f"{size} ({percent(abs(ratio(gap, line.amount)))}) {side}"
    if line.days_left:
        note = f"expected to end {note}; {percent(line.p_over, 0)} likely to go over"
    return [replace(budget, note=note)]


def _forecast(inputs: Inputs) -> list[Figure]:
    ahead = outlook(inputs)
    if not isinstance(ahead, Outlook):
        return []
    forecast = figure(
        inputs, "overview_forecast_money", f"Forecast, {ahead.name}", ahead.month_end.landing, "money"
    )
    end = ahead.month_end
    words = "" if forecast.value is None else known_money(end, end.landing, inputs.bill.currency)
    return [replace(forecast, note=range_words(ahead), words=words)]


def _trend(inputs: Inputs, trend: Mapping[date, float | None]) -> Chart:
    labels = tuple(f"{month:%Y-%m}" for month in trend)
    known = {month: cost for month, cost in trend.items() if cost is not None}
    dearest = max(known, key=lambda month: known[month])
    so_far = "" if inputs.is_complete else f"; {inputs.month:%B} is not over"
    said = f"{month_name(dearest)} was the most expensive month{so_far}.{_begin(trend, inputs)}"
    counted = [one for one in inputs.bill.findings if one.code == "repeated_charges" and one.by_month]
    if twice := [month_name(month) for month in known if any(one.cost_in(month) for one in counted)]:
        said += f" Charges of {', '.join(twice)} are counted twice."
    if late := "; ".join(one.words for one in inputs.gate.left_out):
        said += f" {late[0].upper()}{late[1:]}."
    return Chart("spend_months", "Spend by month", "bars", labels, (("spend", tuple(trend.values())),), "money", said,
                 small=True)  # fmt: skip


def _splits(inputs: Inputs) -> list[tuple[str, str, dict[str, float]]]:
    """Key, label and sums of each way in which the month's spend is split; each adds up to all of it."""
    days = inputs.daily["day"].to_numpy().astype("datetime64[M]").astype(str)
    own = inputs.daily[(days == f"{inputs.month:%Y-%m}") & (inputs.daily["charge_category"] != "Tax")]
    providers = own.groupby("provider")["effective_cost"].sum()
    out = [("spend_providers", "provider", {str(name): float(cost) for name, cost in providers.items()})]
    if inputs.gate.status("allocation_ratio")[0] == "withheld":
        return out
    frame, spent = inputs.of_month(inputs.ask("allocation")), inputs.spend(inputs.month)
    for number, tag in enumerate(inputs.tags[:2], start=1):
        sums: dict[str, float] = {}
        for value, cost in zip(frame[f"value_{number}"], frame["taggable_cost"], strict=True):
            name = text(value, NOBODY)
            sums[name] = sums.get(name, 0.0) + float(cost)
        rest = spent - math.fsum(sums.values())
        sums |= {_REST: rest} if abs(rest) >= 0.005 else {}
        out.append((f"spend_tag_{number}", _WORDS.get(tag.lower(), tag), sums))
    return out


def _is_of_nobody(sums: Mapping[str, float]) -> bool:
    """Whether no charge of the month carries the tag: one bar of all cost says less than a sentence."""
    return NOBODY in sums and not sums.keys() - {NOBODY, _REST}


def _untagged(labels: list[str]) -> list[str]:
    """What to say of the tags that nothing carries."""
    if not labels:
        return []
    carried = "these tags" if labels[1:] else "this tag"
    return [
        f"Spend by {' and '.join(labels)} is not known: no charge of the month carries {carried}. "
        '"Whose cost is it?" has the keys of the bill; --tags names the one to use.'
    ]


def _parts(inputs: Inputs, key: str, label: str, sums: Mapping[str, float]) -> Chart:
    ranked = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    shown, rest = ranked[:NAMED], ranked[NAMED:]
    if len(rest) == 1:
        shown, rest = ranked, []
    if rest:
        shown = [*shown, (f"{len(rest)} others", math.fsum(cost for _, cost in rest))]
    first, cost = ranked[0] if ranked else ("", 0.0)
    spent = inputs.spend(inputs.month)
    said = "More was credited or refunded than charged." if spent < 0 else "Nothing was spent."
    if (of_spend := share(cost, spent)) == of_spend:
        said = f"{first}: {percent(of_spend, 0)} of spend."
    elif cost > 0:
        said = f"{first} cost most: {money(cost, inputs.bill.currency)}. "
        left = f"After credits and refunds, {money(spent, inputs.bill.currency)} is left of all cost."
        said += left if spent > 0 else "Credits and refunds are as much or more than all cost."
    return Chart(key, f"Spend by {label}", "parts", tuple(name for name, _ in shown),
                 (("spend", tuple(cost for _, cost in shown)),), "money", said, spent if spent > 0 else None,
                 small=True)  # fmt: skip
