"""The official use cases and their answers as reports."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.finops.read.tag_keys import tag_keys
from planner.finops.use_cases.library import answer_use_case, load_use_cases, query_sql
from planner.render.currency import currency_words
from planner.render.model import Answer, Column, Section, Unit, table_section, versioned

if TYPE_CHECKING:
    from planner.finops.read import Bill
    from planner.render.model import Cell

LIST = "list"
_SHOWN = 50
_WORD = re.compile("(?<=[a-z])(?=[A-Z])")  # between the words of a FOCUS column
_MONEY = ("cost", "price", "spend", "saving")


def list_use_cases(bill: Bill | None) -> Answer:
    """The questions of the bill's version of FOCUS; without a bill those of all versions."""
    version = _version(bill) if bill is not None else None
    rows = [
        {
            "focus_version": case.focus_version,
            "use_case": case.slug,
            "title": case.title,
            "source": case.source,
        }
        for case in load_use_cases(version)
    ]
    asked = dict.fromkeys((row["use_case"], row["title"]) for row in rows)
    said = f"{len(asked)} use cases of FOCUS {version or '1.0 to 1.4'}; ask one with --use-case NAME"
    section = Section("use_cases", "NAME: question", tuple(_question(*one, rows) for one in asked))
    return Answer(
        "FOCUS use cases", said, (), (section,), versioned({"use_cases": rows}), tuple(rows[0]), rows
    )


def _question(name: str, title: str, rows: list[dict[str, str]]) -> str:
    versions = [row["focus_version"] for row in rows if (row["use_case"], row["title"]) == (name, title)]
    return f"{name}: {title} (FOCUS {', '.join(versions)})"


def report_use_case(
    bill: Bill,
    name: str,
    *,
    month: date | None,
    compare: date | None,
    tag: str,
    exact_tags: bool = False,
) -> Answer:
    """Answer one question.

    Args:
        bill: the open bill.
        name: slug of the use case.
        month: the month asked about; by default all months of the bill.
        compare: an earlier or later month that is asked about too, and those between.
        tag: key of the tag that the question needs, if it needs one.
        exact_tags: keep keys apart that differ in case only.

    Raises:
        InputError: no such use case, or no charge in the month.
    """
    needs_tag = ":tag" in query_sql(name)  # a wrong name is told before the sums
    asked = [one.replace(day=1) for one in (month, compare) if one is not None] or list(bill.months)
    lacking = [f"{one:%Y-%m}" for one in asked if one not in bill.months]
    if lacking:
        shown = ", ".join(f"{one:%Y-%m}" for one in bill.months)
        raise InputError(f"--month {lacking[0]}: the bill has no charges in it; it has {shown}")
    first, last = min(asked), max(asked)
    after = date(last.year + last.month // 12, last.month % 12 + 1, 1)
    keys = _spellings(bill, tag, exact=exact_tags) if needs_tag else (tag,)
    frame = answer_use_case(bill.engine, name, start=first, end=after, tag=keys)
    columns = [str(column) for column in frame.columns]
    rows = [dict(zip(columns, map(_cell, row), strict=True)) for row in frame.itertuples(index=False)]
    case = next((one for one in reversed(load_use_cases()) if one.slug == name), None)
    title = case.title if case is not None else name
    span = f"{first:%Y-%m}" if first == last else f"{first:%Y-%m} to {last:%Y-%m}"
    values: dict[str, Any] = {
        "use_case": name, "title": title, "source": case.source if case is not None else "", "first_month":
        f"{first:%Y-%m}", "last_month": f"{last:%Y-%m}", "currency": bill.currency, "columns": columns, "rows": rows,
    }  # fmt: skip
    said = (
        f"{title}: {span}, {currency_words(bill.currency)}, {len(rows):,} row{'' if len(rows) == 1 else 's'}"
    )
    return Answer(
        f"FOCUS use case {name}", said, (), _rows(title, columns, rows), versioned(values), columns, rows,
        currency=bill.currency,
    )  # fmt: skip


def _spellings(bill: Bill, tag: str, *, exact: bool) -> tuple[str, ...]:
    keys = tag_keys(bill, exact=exact)
    key = keys.spelled(tag)
    return (key,) if exact else keys.spellings(key)


def _version(bill: Bill) -> str:
    """The newest version of the bill's cost files."""
    return max(source.focus_version for source in bill.sources if source.dataset == "CostAndUsage")


def _cell(value: Any) -> Cell:
    if hasattr(value, "item"):
        value = value.item()  # numpy's numbers
    if value is None or value != value:
        return None
    if isinstance(value, datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int | str) else str(value)


def _rows(title: str, columns: list[str], rows: list[dict[str, Cell]]) -> tuple[Section, ...]:
    if not rows:
        return ()
    header = [
        Column(name, _WORD.sub(" ", name).replace("_", " "), _unit(name, [row[name] for row in rows]))
        for name in columns
    ]
    body = [tuple(row[name] for name in columns) for row in rows]
    return (table_section("rows", title, header, body, shown=_SHOWN),)


def _unit(column: str, values: list[Cell]) -> Unit:
    """The unit that a column's name and values tell."""
    if not all(isinstance(value, int | float | None) for value in values):
        return "text"
    name = column.lower()
    if name.endswith("ratio"):
        return "ratio"
    if not any(word in name for word in _MONEY) or "pricingcurrency" in name.replace("_", ""):
        return "quantity"  # amounts of another currency than the bill's among them
    return "unit_price" if "unitprice" in name or "per_unit" in name else "money"
