"""The data-quality gate: what a month's charges can carry. A KPI whose inputs fail is withheld or flagged, with why.

Measures of both months are one query (`data/quality.sql`), thresholds with their reasons are `data/quality_checks.csv`.
A figure's row in `data/figures.csv` names its KPI: the gate is that of the KPI's own header, less what the figure does
not use.
"""

from __future__ import annotations

import csv
from calendar import monthrange
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from planner.finops.bill_days import rest_days
from planner.finops.counted_twice import quality_checks
from planner.finops.effective_cost import as_percent, effective_stated, stated_words
from planner.finops.frames import rows_of
from planner.finops.kpis.registry import gate_of
from planner.finops.provider_days import (
    ProviderDays,
    going_on,
    missing_words,
    provider_days,
    share_there,
    turned_between,
    use_by_provider,
    without_others,
)
from planner.finops.read.model import Bill, Finding
from planner.finops.unclear_rows import month_words, unclear_rows
from planner.records import record
from planner.render.currency import UNKNOWN_CURRENCY

if TYPE_CHECKING:
    from planner.finops.review.model import Status

# What no figure can do without: costs that are readable, counted once and told apart, in one currency.
EVERY_FIGURE = frozenset(("unknown_cost", "no_category", "repeated", "currency", "effective_stated"))
_DATA = Path(__file__).resolve().parent / "data"
_COMPARED = "compared_withhold_at"  # thresholds of both months of a comparison
_PAIR = ("before_start", "start")  # names of the earlier and the later month in queries
_ORDER: Mapping[str, int] = {"ok": 0, "flagged": 1, "withheld": 2}


class CompletionFactors(Protocol):
    """What `planner.finops.forecast.completion` learns from re-statements."""

    @property
    def newest_age(self) -> int:
        """Days from the last day of a bill to its report."""

    def factor(self, age: int) -> float:
        """What a reported amount of a day of this age is multiplied with."""
        ...


@record(frozen=True)
class Check:
    """One measure against its thresholds.

    Attributes:
        key: row of `quality_checks.csv`.
        value: a share (0..1); None where the bill has nothing to measure.
        status, reason: `ok`, or why figures are flagged or withheld.
    """

    key: str
    label: str
    value: float | None
    status: Status
    reason: str = ""


@record(frozen=True)
class Gate:
    """The gate of one month.

    Attributes:
        checks: in the order of the data file.
        findings: of the bill's reading.
        before: the gate of the month it is compared with; None without one.
        providers: days of each provider that has use every day; empty of a bill of one provider.
        comparing: the month's checks as a comparison with another month needs them; empty without one.
    """

    month: date
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...] = ()
    before: Gate | None = None
    providers: tuple[ProviderDays, ...] = ()
    comparing: tuple[Check, ...] = ()

    @property
    def left_out(self) -> tuple[ProviderDays, ...]:
        """Providers whose bills begin or end within the month compared with: no comparison has them."""
        return () if self.before is None else turned_between(self.before.providers, self.providers)

    @property
    def days(self) -> float:
        """Days of the month that have use."""
        share = next((check.value for check in self.checks if check.key == "complete"), None)
        return monthrange(self.month.year, self.month.month)[1] * (1.0 if share is None else share)

    def status(self, figure: str, *, but: Collection[str] = ()) -> tuple[Status, str]:
        """Return what a figure may be shown as, and the reason where it is not `ok`.

        Args:
            figure: its key (`esr_list_ratio`), a row of `figures.csv`.
            but: checks that are not looked at.

        Raises:
            KeyError: the table has no such row: a figure without a gate is never shown.
        """
        wanted = checks_of_figures()[figure].difference(but)
        before = self.before if figure in compared_figures() else None
        own = [(c.status, c.reason) for c in _failing(self.comparing if before else self.checks, wanted)]
        other = [(one.status, one.reason) for one in before.failed(wanted)] if before else []
        name = f"{before.month:%B %Y}" if before else ""
        failed = [(one, f"{why} (in {name} too)" if (one, why) in other else why) for one, why in own]
        failed += [(one, f"{name}: {why}") for one, why in other if (one, why) not in own]
        if not failed:
            return "ok", ""
        worst = max((status for status, _ in failed), key=_ORDER.__getitem__)
        return worst, "; ".join(reason for status, reason in failed if status == worst)

    def failed(self, keys: frozenset[str]) -> list[Check]:
        """The month's own checks among `keys` that do not pass."""
        return _failing(self.checks, keys)


def _failing(checks: Sequence[Check], keys: frozenset[str]) -> list[Check]:
    return [check for check in checks if check.key in keys and check.status != "ok"]


def assess_quality(
    bill: Bill, month: date, *, completion: CompletionFactors | None = None, before: date | None = None
) -> Gate:
    """Measure one month of a bill, and the month it is compared with: both at once, for each question reads the bill.

    Args:
        bill: the bill.
        month: any day of the month.
        completion: factors learned from earlier re-statements; without them lateness is not judged.
        before: any day of the month compared with; figures of both months need the checks of both.
    """
    month = month.replace(day=1)
    compared = before and before.replace(day=1)
    months = (month, month) if compared is None else (min(month, compared), max(month, compared))
    sums = _sums(bill, months)
    beside = {
        "invoices": invoice_differences(bill, months),
        "reported": _reported(bill, months, completion),
        "effective_stated": effective_stated(bill, months),
    }
    is_unclear = any(sums[of]["unknown_cost_rows"] or sums[of]["no_category_rows"] for of in months)
    unclear = unclear_rows(bill, months) if is_unclear else ()
    used = use_by_provider(bill, months)
    providers = without_others(provider_days(used, months), month)
    days = {day for by_day in used.values() for day in by_day}

    def judged(of: date, withhold: str) -> tuple[Check, ...]:
        own, found = providers[of], {name: by_month.get(of) for name, by_month in beside.items()}
        values = _values(bill, of, sums[of], days) | found | {"complete_providers": share_there(own)}
        words = {"providers": missing_words(own), "days": _days_words(of, values["complete"]),
                 "effective": stated_words(values["effective_stated"]), **month_words(unclear, of)}  # fmt: skip
        others = share_there(going_on(own))
        stricter = {"complete_providers": 1.0 if others is None else others}
        return tuple(
            _judge(check, values.get(check["check"]), withhold, words, stricter.get(check["check"]))
            for check in quality_checks()
        )

    gate = Gate(month, judged(month, "withhold_at"), bill.findings, providers=providers[month])
    if compared is None:
        return gate
    other = Gate(compared, judged(compared, _COMPARED), bill.findings, providers=providers[compared])
    return replace(gate, before=other, comparing=judged(month, _COMPARED))


def _sums(bill: Bill, months: tuple[date, date]) -> dict[date, Mapping[str, float]]:
    """The measures of `quality.sql` by month; 0 in one without charges."""
    sql = (_DATA / "quality.sql").read_text(encoding="utf-8")
    ends = {"before_end": _end(months[0]), "end": _end(months[1])}
    frame = bill.engine.query(sql, dict(zip(_PAIR, months, strict=True)) | ends)
    names = [str(name) for name in frame.columns[1:]]
    out: dict[date, Mapping[str, float]] = {month: dict.fromkeys(names, 0.0) for month in months}
    for month, *values in rows_of(frame):
        out[_day(month)] = dict(zip(names, map(_number, values), strict=True))
    return out


def _end(month: date) -> date:
    return month + timedelta(days=monthrange(month.year, month.month)[1])


def _day(value: object) -> date:
    return date.fromisoformat(str(value)[:10])


def _values(
    bill: Bill, month: date, sums: Mapping[str, float], used: Collection[date]
) -> dict[str, float | None]:
    """What the charges and findings of a month, and the days with use, say for each check."""
    values = _shares(sums)
    values["unknown_cost"] = _with_rejected(values["unknown_cost"], sums, bill.findings)
    values["repeated"] = _repeated(bill.findings, sums["billed"], month)
    values["currency"] = 0.0 if bill.currency == UNKNOWN_CURRENCY else 1.0
    # credits, fees and tax say nothing of the days, unless the bill has nothing else
    is_idle = bool(used) and not sums["use_rows"]
    there = 0.0 if is_idle else _days_there(sums) + len(rest_days(used, month, _end(month)))
    values["complete"] = min(1.0, there / monthrange(month.year, month.month)[1])
    return values


def _days_there(measured: Mapping[str, float]) -> float:
    """Days with use; of a bill without use with a charge.

    Monthly fees among charges of single days say nothing of the days; of bills by the month or week only how far they
    reach is known.
    """
    if measured["use_rows"]:
        days, short, up_to = measured["used_days"], measured["used_days"], measured["used_up_to_days"]
        by_day = short > 1 or 2 * measured["short_use_rows"] > measured["use_rows"]
    else:
        days, short, up_to = measured["charged_days"], measured["short_days"], measured["charged_up_to_days"]
        by_day = short > 1
    return max(days, 0.0 if by_day else up_to)


def _shares(sums: Mapping[str, float]) -> dict[str, float | None]:
    rows, use = sums["charge_rows"], sums["use_weight"]
    kindless = _share(sums["no_category_rows"], rows), _share(sums["no_category_weight"], sums["weight"])
    return {
        "list_known": _share(sums["list_known_weight"], use),
        "contracted_known": _share(sums["contracted_known_weight"], use),
        "effective_zero": _share(sums["effective_zero"], sums["billed_use"]),
        "effective_zero_rows": _share(sums["effective_zero_rows"], sums["billed_use_rows"]),
        "negative_effective": _share(sums["negative_effective"], sums["effective_weight"]),
        "unknown_cost": _share(sums["unknown_cost_rows"], rows),
        "no_category": max((one for one in kindless if one is not None), default=None),
        "quantity_priced": _share(sums["quantity_priced_weight"], use),
        "quantity_known": _share(sums["quantity_known_weight"], use),
        "gpu_unit_known": _share(sums["gpu_unit_known_weight"], sums["gpu_weight"]),
        "contracted_above_list": _share(sums["contracted_above_list_weight"], use),
        "tags_known": _share(sums["tags_known_weight"], use),
        "commitment_status": _share(
            sums["commitment_rows"] - sums["commitment_status_unknown_rows"], sums["commitment_rows"]
        ),
    }


def _with_rejected(share: float | None, measured: Mapping[str, float], findings: Sequence[Finding]) -> float:
    """Add rows that could not even be read to those without a cost; they belong to no month, so to each."""
    rejected = sum(finding.rows for finding in findings if finding.code == "rejected_rows")
    rows = measured["charge_rows"]
    return ((share or 0.0) * rows + rejected) / max(rows + rejected, 1.0)


def _repeated(findings: Sequence[Finding], billed: float, month: date) -> float:
    """Share of billed cost that is counted twice; of findings without a month all are taken to be in this one."""
    twice = sum(one.cost_in(month) for one in findings if one.code == "repeated_charges")
    return min(abs(twice) / abs(billed), 1.0) if billed else 0.0


def invoice_differences(bill: Bill, months: tuple[date, date]) -> dict[date, float | None]:
    """Return |charges - invoices| over all invoices of billing periods, as a share of them; none without invoices.

    Compared are the sums by InvoiceId of the datasets CostAndUsage and InvoiceDetail.
    """
    if not any(source.dataset == "InvoiceDetail" for source in bill.sources):
        return {}
    frame = bill.engine.query(_INVOICES, {**dict(zip(_PAIR, months, strict=True)), "currency": bill.currency})
    out: dict[date, float | None] = {}
    for period, own in frame.groupby("period"):
        if invoiced := float(own["invoiced"].abs().sum()):
            out[_day(period)] = float((own["charged"] - own["invoiced"]).abs().sum()) / invoiced
    return out


_INVOICES = """
SELECT invoices.BillingPeriodStart AS period, invoices.invoiced, COALESCE(charges.charged, 0) AS charged
FROM (
  SELECT BillingPeriodStart, InvoiceId, SUM(BilledCost) AS invoiced
  FROM InvoiceDetail
  WHERE BillingPeriodStart IN (CAST(:before_start AS TIMESTAMP), CAST(:start AS TIMESTAMP))
    AND COALESCE(InvoiceIssueStatus, '') <> 'Voided'
    AND COALESCE(BillingCurrency, :currency) = :currency
  GROUP BY BillingPeriodStart, InvoiceId
) AS invoices
LEFT JOIN (
  SELECT BillingPeriodStart, InvoiceId, SUM(BilledCost) AS charged
  FROM focus
  WHERE BillingPeriodStart IN (CAST(:before_start AS TIMESTAMP), CAST(:start AS TIMESTAMP))
  GROUP BY BillingPeriodStart, InvoiceId
) AS charges
  ON charges.BillingPeriodStart = invoices.BillingPeriodStart AND charges.InvoiceId = invoices.InvoiceId
ORDER BY invoices.BillingPeriodStart, invoices.InvoiceId
"""


def _reported(
    bill: Bill, months: tuple[date, date], completion: CompletionFactors | None
) -> dict[date, float | None]:
    """Share of the cost of months that is reported so far; none without factors."""
    if completion is None:
        return {}
    frame = bill.engine.query(
        "SELECT CAST(x_day AS VARCHAR) AS day, SUM(EffectiveCost) AS cost FROM focus "
        "WHERE x_month IN (:before_start, :start) GROUP BY x_day ORDER BY x_day",
        dict(zip(_PAIR, months, strict=True)),
    )
    end = _day(bill.engine.query("SELECT CAST(MAX(x_day) AS VARCHAR) AS day FROM focus")["day"].iloc[0])
    sums = {month: [0.0, 0.0] for month in months}
    for text, cost in rows_of(frame):
        day = _day(text)
        reported = sums[day.replace(day=1)]
        reported[0] += float(cost)
        reported[1] += float(cost) * completion.factor((end - day).days + completion.newest_age)
    return {month: _share(*own) for month, own in sums.items()}


def _days_words(month: date, share: float | None) -> str:
    """`17 of 30 days of the month have`; empty where it is not known."""
    if share is None:
        return ""
    of = monthrange(month.year, month.month)[1]
    there = round(share * of)
    return f"{there} of {of} days of the month {'has' if there == 1 else 'have'}"


def _judge(
    check: Mapping[str, str],
    value: float | None,
    withhold: str,
    words: Mapping[str, str],
    to_withhold: float | None = None,
) -> Check:
    """Compare a value with its thresholds; at a threshold it passes.

    Args:
        check: row of `quality_checks.csv`.
        value: what was measured.
        withhold: column of the stricter threshold.
        words: what texts may name beside the value: the days that are there, the providers that lack some.
        to_withhold: what is held against the stricter threshold; None: the value.
    """
    key, label = check["check"], check["label"]
    if value is None:
        return Check(key, label, None, "ok")
    sign = 1.0 if check["better"] == "high" else -1.0
    status: Status = "ok"
    if sign * (value if to_withhold is None else to_withhold) < sign * float(check[withhold]):
        status = "withheld"
    elif sign * value < sign * float(check["flag_at"]):
        status = "flagged"
    reason = "" if status == "ok" else check["text"].format(value=as_percent(value), **words)
    return Check(key, label, value, status, reason)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _number(value: object) -> float:
    """Read a sum; the sum of no rows is 0."""
    import pandas as pd

    return 0.0 if pd.isna(value) else float(value)  # type: ignore[call-overload, arg-type]


@lru_cache(maxsize=1)
def _figures() -> tuple[Mapping[str, str], ...]:
    with (_DATA / "figures.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


@lru_cache(maxsize=1)
def checks_of_figures() -> Mapping[str, frozenset[str]]:
    """The checks that each figure needs: those of every figure and those of its KPI, less what it does not use."""
    return {
        row["figure"]: EVERY_FIGURE
        | frozenset(gate_of(row["kpi"])) - frozenset(row["without"].split())
        | frozenset(row["adds"].split())
        for row in _figures()
    }


@lru_cache(maxsize=1)
def compared_figures() -> frozenset[str]:
    """Figures of both months, which the month compared with must carry too."""
    return frozenset(row["figure"] for row in _figures() if row["months"] == "both")
