"""The review of one month of a bill: one function from an open bill to a `Review`, and no terminal in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.finops.bill_days import daily_frame, month_before, newest_month
from planner.finops.engine.duckdb import DuckDbEngine
from planner.finops.kpis import made_of
from planner.finops.kpis.day_sums import keep_day_sums
from planner.finops.kpis.rowless import expect_rowless
from planner.finops.quality import assess_quality
from planner.finops.read.tag_keys import tag_keys
from planner.finops.review.inputs import MAX_TAGS, Beside, Inputs, compared_months, month_name
from planner.finops.review.model import Review, Section, Table
from planner.finops.review.parts import review_command, table, text
from planner.finops.review.sections.registry import SECTIONS
from planner.finops.review.short_tags import keep_short_tags, with_checked_tags
from planner.finops.review.verdict import verdict
from planner.inputs.quantities import is_of_our_time
from planner.version import __version__

if TYPE_CHECKING:
    from planner.finops.forecast.completion import Completion
    from planner.finops.plan_vs_actual import PlannedRun
    from planner.finops.read import Bill
    from planner.finops.utilisation import Utilisation

DEFAULT_TAGS = ("team", "env")


def review_bill(
    bill: Bill,
    *,
    month: date | None = None,
    compare_month: date | None = None,
    budgets: Any = None,
    plans: Sequence[PlannedRun] = (),
    utilisation: Utilisation | None = None,
    tags: Sequence[str] = DEFAULT_TAGS,
    run_tag: str | None = None,
    forecasts: Sequence[Mapping[str, Any]] = (),
    forecast: bool = True,
    completion: Completion | None = None,
    progress: Callable[[str, float], None] | None = None,
    created: datetime | None = None,
    beside: Beside | None = None,
    lines: bool = False,
    exact_tags: bool = False,
) -> Review:
    """Review one month.

    Args:
        bill: an open bill.
        month: any day of the month; by default the newest with use beyond its first day.
        compare_month: any day of the month it is compared with; by default the one before, if the bill has it.
        budgets: what `planner.inputs.budget_load.load_budgets` read.
        plans: what `planner.finops.plan_vs_actual.load_plans` read.
        utilisation: what `planner.finops.utilisation.load_utilisation` read.
        tags: mandatory tag keys, at most six; the first one names who pays.
        run_tag: tag key that names a run; default `planner_run_id`, else `run_id`, whichever charges carry.
        forecasts: earlier answers of `planner forecast -o json`, read.
        forecast: whether to look ahead.
        completion: share of cost reported by age, learned from re-statements.
        progress: told the step and the share done.
        created: moment to note, by default now.
        beside: what sections of their own are made of, such as usage files.
        lines: whether the flat sheet of a workbook is made, which asks the bill once more.
        exact_tags: keep tag keys apart that differ by case only, and values by case, dashes, underscores or blanks.

    Raises:
        InputError: the bill has no charge in one of the months, or the tags are too many.
    """
    tell = progress or (lambda _step, _share: None)
    tell("summing the days", 0.0)
    daily = _daily(bill)
    wanted = _checked(bill, month.replace(day=1) if month else newest_month(daily), tags)
    before = _before(bill, wanted, compare_month) if compare_month else month_before(bill, wanted, daily)
    keys = tag_keys(bill, exact=exact_tags)
    asked, run_key = tags, keys.run_key(run_tag)
    tags = tuple(dict.fromkeys(map(keys.spelled, asked)))
    merged = {} if exact_tags else keys.merged((*tags, run_key))
    bill, answers = _with_tags_read(bill, compared_months(wanted, before), (*tags, run_key), merged)
    tell("checking the data", 0.1)
    gate = assess_quality(bill, wanted, completion=completion, before=before)
    inputs = Inputs(
        bill, wanted, before, gate, tuple(tags), run_key, daily, budgets, tuple(plans), utilisation, tuple(forecasts),
        forecast, {**answers, "tag_keys": keys}, completion, merged, keys.remark(asked, merged), beside or Beside(),
        exact_tags, keys.runs_remark(run_key) if run_tag is None else "",
    )  # fmt: skip
    return _answer(inputs, _sections(inputs, tell), created, lines=lines)


def _daily(bill: Bill) -> Any:
    """Cost by day, which a large bill is summed up to for all questions; its engine is told how large it is."""
    if isinstance(bill.engine, DuckDbEngine):
        bill.engine.expect(sum(source.rows for source in bill.sources))
    keep_day_sums(bill)
    expect_rowless(bill, made_of())
    return daily_frame(bill)


def _with_tags_read(
    bill: Bill, months: Mapping[str, Any], keys: Sequence[str], merged: Mapping[str, tuple[str, ...]]
) -> tuple[Bill, dict[str, Any]]:
    """Read the tags that opening left unchecked; of the keys the last names runs."""
    if not bill.unchecked:
        return bill, {}
    spelled = [merged.get(key, (key,)) for key in keys]
    kept = keep_short_tags(bill, months, spelled[:-1], spelled[-1])
    return with_checked_tags(bill, months), {"short_tags": kept}


def _answer(
    inputs: Inputs, sections: tuple[Section, ...], created: datetime | None, *, lines: bool
) -> Review:
    sources = tuple(
        f"{s.path}: {s.rows:,} rows, {s.dataset}, FOCUS {s.focus_version}" for s in inputs.bill.sources
    )
    return Review(
        f"{inputs.month:%Y-%m}", inputs.bill.currency, verdict(inputs), sections, sources, created or datetime.now(UTC),
        __version__, review_command(inputs, "").rstrip(), spend_lines(inputs) if lines else None,
    )  # fmt: skip


def _sections(inputs: Inputs, tell: Callable[[str, float], None]) -> tuple[Section, ...]:
    sections = []
    for number, (name, build) in enumerate(SECTIONS):
        tell(name.replace("_", " "), 0.2 + 0.8 * number / len(SECTIONS))
        if (section := build(inputs)) is not None:
            sections.append(section)
    tell("done", 1.0)
    return tuple(sections)


def _before(bill: Bill, month: date, asked: date) -> date:
    """The month asked for."""
    wanted = asked.replace(day=1)
    if wanted not in bill.months:
        shown = ", ".join(f"{m:%Y-%m}" for m in bill.months)
        raise InputError(f"--compare {wanted:%Y-%m}: the bill has no charges in it; it has {shown}")
    if wanted == month:
        raise InputError(f"--compare {wanted:%Y-%m}: is the reviewed month itself")
    return wanted


def _checked(bill: Bill, month: date, tags: Sequence[str]) -> date:
    """The month, if it and the tags can be asked of the bill."""
    if month not in bill.months:
        shown = ", ".join(f"{m:%Y-%m}" for m in bill.months) or "no month"
        raise InputError(
            f"--month {month:%Y-%m} ({month_name(month)}): the bill has no charges in it; it has {shown}"
        )
    if not is_of_our_time(month):
        raise InputError(
            f"--month {month.isoformat()[:7]}: no bill is of that year; name the month to review with --month"
        )
    if not 1 <= len(set(tags)) == len(tags) <= MAX_TAGS:
        raise InputError(f"--tags: name one to {MAX_TAGS} different tags, got {', '.join(tags) or 'none'}")
    return month


def spend_lines(inputs: Inputs) -> Table:
    """Spend of at most 13 months up to the reviewed one, by month, place, product, team and kind of charge."""
    names = ("provider", "account", "region", "service", "product", "team", "charge_category")
    frame = inputs.ask("spend_lines")
    rows = [
        (month, *map(text, keys), float(effective), float(billed))
        for month, *keys, effective, billed in frame[
            ["x_month", *names, "effective_cost", "billed_cost"]
        ].itertuples(index=False)
    ]
    return table(
        "lines", "Data", [("month", "Month", "date"), ("provider", "Provider", "text"), ("account", "Account", "text"),
        ("region", "Region", "text"), ("service", "Service", "text"), ("product", "Product", "text"),
        ("team", inputs.tags[0], "text"), ("charge_category", "Charge category", "text"), ("cost", "Cost", "money"),
        ("billed", "Billed", "money")], rows,
    )  # fmt: skip
