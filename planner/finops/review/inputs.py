"""What the sections of a review are made from: the bill, the two months, and answers that several sections need."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from planner.finops.account_days import account_gaps
from planner.finops.bill_days import bill_begins, rest_days, untaxed
from planner.finops.bought_ahead import divide_ahead, moved_gpu_hours, with_shares
from planner.finops.counted_twice import months_counted_twice, twice_by_month
from planner.finops.frames import in_order, records_of
from planner.finops.kpis import load_kpi, query_kpi
from planner.finops.kpis.rowless import NEVER, has_no_rows
from planner.finops.provider_days import UNNAMED
from planner.finops.quality import Gate
from planner.finops.read import Bill
from planner.finops.review.short_tags import SHORT, TABLE, keep_short_tags, names_runs
from planner.records import record

if TYPE_CHECKING:
    from planner.finops.bought_ahead import Moved, Share
    from planner.finops.forecast.completion import Completion
    from planner.finops.ledger.book import Book
    from planner.finops.plan_vs_actual import PlannedRun
    from planner.finops.usage.model import Usage
    from planner.finops.utilisation import Utilisation
    from planner.inputs.showback_schema import ShowbackFile

EXPIRY_DAYS = 90
MAX_TAGS = 6
_NO_MONTH = date(1900, 1, 1)  # a comparison month without any row
_NAMES_RUN = "SELECT 1 AS one FROM focus WHERE Tags LIKE :like_tag AND ChargeCategory = 'Usage' LIMIT 1"


def month_end(month: date) -> date:
    """First day after the month."""
    return month + timedelta(days=monthrange(month.year, month.month)[1])


def year_before(month: date) -> date:
    """The same month a year before: the first of the 13 that a trend shows."""
    return month.replace(year=max(month.year - 1, 1))


def compared_months(month: date, before: date | None) -> dict[str, Any]:
    """The two months as parameters of queries: first days, and first days after them."""
    before = before or _NO_MONTH
    return {"start": month, "end": month_end(month), "before_start": before, "before_end": month_end(before)}


def month_name(month: date) -> str:
    """`October 2026`."""
    return f"{month:%B %Y}"


@record(frozen=True, eq=False)
class Beside:
    """What some reviews are given beside the bill, each for a section of its own.

    Attributes:
        usage: what `planner.finops.usage.load_usage` read: accelerators allocated and busy.
        ledger: what `planner.finops.ledger.open_book` read: accepted actions, and those to accept.
        showback: rules of whose cost it is, of `planner.inputs.showback_load.load_showback`.
        fiscal_start: month in which the fiscal year begins, 1 to 12, where it is asked for.
    """

    usage: Usage | None = None
    ledger: Book | None = None
    showback: ShowbackFile | None = None
    fiscal_start: int | None = None


@record(frozen=True, eq=False)
class Inputs:
    """Everything a section may ask for.

    Attributes:
        bill: the open bill.
        month, before: first days of the month and of the one it is compared with (None: there is none).
        gate: what the month's data can carry.
        tags: mandatory tag keys, the first one names who pays.
        run_tag: tag key that names a run.
        daily: rows of the KPI `daily_cost`, all months, with `day` as datetime64[D].
        budgets, plans, utilisation, forecasts: what the user gave beside the bill.
        with_forecast: whether the coming days are forecast.
        answers: frames that are asked for once.
        completion: share of a day's cost reported by its age, learned from re-statements; None: unknown.
        spellings: of tag keys that the bill spells in several ways, all that count.
        tags_remark: of mandatory tag keys that the bill lacks or spells in several ways.
        beside: what sections of their own are made of.
        exact_tags: whether tag values that differ in spelling only are kept apart.
        runs_remark: that charges name runs by another usual tag too.
    """

    bill: Bill
    month: date
    before: date | None
    gate: Gate
    tags: tuple[str, ...]
    run_tag: str
    daily: Any
    budgets: Any
    plans: tuple[PlannedRun, ...]
    utilisation: Utilisation | None
    forecasts: tuple[Mapping[str, Any], ...]
    with_forecast: bool
    answers: dict[str, Any]
    completion: Completion | None = None
    spellings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tags_remark: str = ""
    beside: Beside = Beside()
    exact_tags: bool = False
    runs_remark: str = ""

    @property
    def end(self) -> date:
        """First day after the month."""
        return month_end(self.month)

    @property
    def last_day(self) -> date:
        """Last day of the bill with a use charge, at most the month's last.

        Days after it on which none is to be expected count (`rest_days`). Of a bill by the month, which has charges on
        one day of it, the last day that their periods reach. Of a month without use its last day with a charge.
        """
        days, end = self.use_days(), self.end - timedelta(days=1)
        if not any(self.month <= day <= end for day in days):
            return self._last_charge(end)
        last = min(days[-1], end)
        if sum(self.month <= day <= end for day in days) > 1:
            return max({last, *rest_days(days, self.month, self.end)})
        return max(last, min(self.month + timedelta(days=round(self.gate.days) - 1), end))

    def _last_charge(self, end: date) -> date:
        """The month's last day with any charge, a tax for instance."""
        days = self.daily["day"].to_numpy().astype("datetime64[D]").tolist()
        return max((day for day in days if self.month <= day <= end), default=self.month)

    @property
    def is_complete(self) -> bool:
        """Whether the month's charges reach its last day."""
        return self.last_day == self.end - timedelta(days=1)

    @property
    def begins(self) -> date:
        """Day on which the bill begins; corrections of the time before it may be there."""
        if "begins" not in self.answers:
            self.answers["begins"] = bill_begins(self.daily)
        found: date = self.answers["begins"]
        return found

    def account_gaps(self) -> str:
        """Billing accounts that lack days of one of the two months, in words; empty where none does."""
        if "account_gaps" not in self.answers:
            months = [self.month, *([self.before] if self.before is not None else [])]
            self.answers["account_gaps"] = account_gaps(self.bill, months)
        found: str = self.answers["account_gaps"]
        return found

    def use_days(self) -> list[date]:
        """Days with use, in order, since the bill begins; of a bill without any use the days with a charge."""
        if "use_days" not in self.answers:
            own = self.daily.loc[self.daily["charge_category"] == "Usage", "day"].drop_duplicates()
            own = own if len(own) else self.daily["day"].drop_duplicates()
            days = sorted(own.to_numpy().astype("datetime64[D]").tolist())
            self.answers["use_days"] = [day for day in days if day >= self.begins] or days
        found: list[date] = self.answers["use_days"]
        return found

    def days_of(self, month: date) -> int:
        """Days of the calendar month."""
        return monthrange(month.year, month.month)[1]

    def begins_late(self, month: date) -> date | None:
        """First day with use of the bill's first month, where it is not the month's first; else None."""
        days = self.use_days()
        first = days[0] if days else month
        return first if first.replace(day=1) == month and first.day > 1 and len(days) > 1 else None

    def ask(self, kpi: str, **more: Any) -> Any:
        """The rows of a KPI; asked once per set of parameters. Month columns become `YYYY-MM`."""
        values = {**self.parameters, **more}
        key = repr((kpi, sorted(more.items(), key=str)))
        if key not in self.answers:
            needed = load_kpi(kpi).parameters
            over = TABLE if kpi in SHORT and self._has_short_tags() else ""
            frame: Any = query_kpi(self.bill.engine, kpi, {name: values[name] for name in needed}, over=over)
            for name in ("x_month", "first_month", "last_month"):
                if name in frame:
                    frame[name] = frame[name].astype(str).str[:7]
            self.answers[key] = in_order(frame)
        return self.answers[key]

    def runs(self) -> Any:
        """Rows of the KPI `run_cost` of runs that go on in the month; a bill may name many others.

        Runs with charges in another month that is counted twice are left out: `runs_counted_twice`.
        """
        runs, twice = self._all_runs(), self._twice_of_runs()
        return runs[[not months for months in twice]] if any(twice) else runs

    def runs_counted_twice(self) -> dict[str, tuple[date, ...]]:
        """Runs that go on in the month, with the other months of theirs that are counted twice; none without."""
        pairs = zip(self._all_runs()["run_id"], self._twice_of_runs(), strict=True)
        return {run: months for run, months in pairs if months}

    def _twice_of_runs(self) -> list[tuple[date, ...]]:
        """Months beside the reviewed one, of which the gate knows, that are counted twice; in the order of runs."""
        twice = twice_by_month(self.bill.findings)
        costs = {month: self.spend(month, column="billed_cost") for month in twice if month != self.month}
        months = months_counted_twice(twice, costs)
        frame = self._all_runs()
        spans = zip(frame["first_month"], frame["last_month"], strict=True)
        return [tuple(one for one in months if first <= f"{one:%Y-%m}" <= last) for first, last in spans]

    def _all_runs(self) -> Any:
        if "runs" not in self.answers:
            there = "first_month <= :start AND (last_month >= :start OR last_end > :start)"
            there = there if self._names_runs() else NEVER  # the query reads all tags twice
            frame: Any = query_kpi(self.bill.engine, "run_cost", self.parameters, where=there)
            for name in ("first_month", "last_month"):
                frame[name] = frame[name].astype(str).str[:7]
            self.answers["runs"] = with_shares(in_order(frame), self.ahead())
        return self.answers["runs"]

    def ahead(self) -> tuple[Share, ...]:
        """What was bought ahead, divided by its use, over all months; worked out once."""
        if "ahead" not in self.answers:
            self.answers["ahead"] = divide_ahead(self.ahead_rows())
        parts: tuple[Share, ...] = self.answers["ahead"]
        return parts

    def moved_ahead(self) -> dict[tuple[str, ...], Moved]:
        """What to add to the month's own GPU-hours, see `bought_ahead.moved_gpu_hours`; worked out once."""
        if "moved_ahead" not in self.answers:
            moved = moved_gpu_hours(self.ahead_rows(), self.ahead(), f"{self.month:%Y-%m}")
            self.answers["moved_ahead"] = moved
        found: dict[tuple[str, ...], Moved] = self.answers["moved_ahead"]
        return found

    def ahead_rows(self) -> list[dict[str, Any]]:
        """Rows of the KPI `bought_ahead`; the search for purchases ends at the first one.

        Tags, half of what a large bill holds, are read only where use names runs.
        """
        bought = load_kpi("bought_ahead").made_of
        if "buys_ahead" not in self.answers:
            sql = " ".join(("SELECT 1 AS one FROM focus WHERE", bought, "LIMIT 1"))
            engine = self.bill.engine
            self.answers["buys_ahead"] = (
                not has_no_rows(engine, "bought_ahead") and len(engine.query(sql)) > 0
            )
        if not self.answers["buys_ahead"]:
            return []
        return records_of(
            self.ask("bought_ahead") if self._names_runs() else self.ask("bought_ahead", like_tag=None)
        )

    def _names_runs(self) -> bool:
        """Whether a charge for use carries the tag that names runs; the search, made once, ends at the first one."""
        if "names_runs" not in self.answers:
            like = self.parameters["like_tag"]
            self.answers["names_runs"] = (
                names_runs(self.bill, self._months, like)
                if self._has_short_tags()
                else len(self.bill.engine.query(_NAMES_RUN, {"like_tag": like})) > 0
            )
        return bool(self.answers["names_runs"])

    def _has_short_tags(self) -> bool:
        """Whether long tags were read once for all questions; decided by the first of them."""
        if "short_tags" not in self.answers:
            self.answers["short_tags"] = keep_short_tags(
                self.bill, self._months, list(map(self.spelled, self.tags)), self.spelled(self.run_tag)
            )
        return bool(self.answers["short_tags"])

    def spelled(self, tag: str) -> tuple[str, ...]:
        """All spellings of a tag's key that count, itself first."""
        return self.spellings.get(tag, (tag,))

    @property
    def _months(self) -> dict[str, Any]:
        return compared_months(self.month, self.before)

    def of_month(self, frame: Any, month: date | None = None) -> Any:
        """Rows of one month, by default the reviewed one."""
        return frame[frame["x_month"].to_numpy(dtype=object) == f"{month or self.month:%Y-%m}"]

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Values of the parameters that KPIs share."""
        from planner.finops.use_cases.library import like_tags, tag_paths

        keys = [*self.tags[:MAX_TAGS], *([self.tags[0]] * MAX_TAGS)][:MAX_TAGS]
        return {
            **self._months, "first": year_before(self.month), "horizon": self.end + timedelta(days=EXPIRY_DAYS),
            "left_out": self.left_out or "", "tags_apart": "yes" if self.exact_tags else "no",
            "run_tag": tag_paths(self.spelled(self.run_tag)), "like_tag": like_tags(self.spelled(self.run_tag)),
            **{f"tag_{i}": tag_paths(self.spelled(key)) for i, key in enumerate(keys, 1)},
        }  # fmt: skip

    def of_this_month(self, kpi: str) -> Any:
        """Rows of a KPI of the reviewed month; charges of the other month are not read."""
        return self.of_month(self.ask(kpi, before_start=_NO_MONTH, before_end=_NO_MONTH))

    @property
    def left_out(self) -> tuple[str, ...]:
        """Providers of neither side of a comparison: their bills begin or end within the month compared with."""
        return tuple(one.provider for one in self.gate.left_out)

    def spend(
        self, month: date, *, column: str = "effective_cost", tax: bool = False, without: Sequence[str] = ()
    ) -> float:
        """Cost of a month without tax, or the tax; without some providers."""
        months, is_tax, providers = self._charged()
        own = (months == month_64(month)) & (is_tax == tax)
        own = own & ~providers.isin(without).to_numpy() if without else own
        return float(self.daily[column].to_numpy()[own].sum())

    def _charged(self) -> tuple[Any, Any, Any]:
        """Months, whether they are tax, and providers of the rows of `daily`."""
        if "charged" not in self.answers:
            months = self.daily["day"].to_numpy().astype("datetime64[M]")
            is_tax = (self.daily["charge_category"] == "Tax").to_numpy(dtype=bool)
            self.answers["charged"] = months, is_tax, self.daily["provider"].fillna(UNNAMED)
        found: tuple[Any, Any, Any] = self.answers["charged"]
        return found

    def series(self) -> tuple[Any, Any]:
        """Days and cost without tax of all months, from the day on which the bill begins to the last with use."""
        import numpy as np

        from planner.finops.forecast.clean import until

        if "series" in self.answers:
            found_before: tuple[Any, Any] = self.answers["series"]
            return found_before
        days, cost = untaxed(self.daily)
        keep = (days >= np.datetime64(self.begins)) & (days <= np.datetime64(self.use_days()[-1]))
        self.answers["series"] = until(days[keep], cost[keep], np.datetime64(self.last_day))
        return self.series()


def known_days(inputs: Inputs, month: date) -> int:
    """Days of a month between the bill's first and last day, up to the reviewed month's last known; below 1: none."""
    last = inputs.last_day if month == inputs.month else month_end(month) - timedelta(days=1)
    return (last - max(month, inputs.begins)).days + 1


def month_64(month: date) -> Any:
    """A month as numpy knows it."""
    import numpy as np

    return np.datetime64(month, "M")
