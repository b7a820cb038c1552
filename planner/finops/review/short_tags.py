"""Long tags read once: charges of the two months summed by the tags that a review asks for, as a table for its queries.

Reading tag texts of some 400 characters costs more than all other columns of a bill together, and three questions
need them. The table has the columns of `focus` that the KPIs `SHORT` name, with `Tags` cut down to the asked keys and
days to months, so these KPIs give the same answers on it. Short texts are cheap where they are: nothing is kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from planner.finops.engine.duckdb import DuckDbEngine
from planner.finops.read.long_tags import LONG_TEXT, MANY_ROWS, mean_length_sql, with_bad_tags
from planner.finops.read.select import text
from planner.finops.use_cases.library import tag_path

if TYPE_CHECKING:
    from planner.finops.engine.base import Parameter
    from planner.finops.read import Bill

TABLE = "x_short_tags"
SHORT = ("allocation", "owners")
_KEYS = (
    *("x_month", "ServiceProviderName", "ServiceName", "CommitmentDiscountId", "CommitmentDiscountStatus"),
    *("ChargeCategory", "SubAccountName", "SubAccountId", "BillingAccountId"),
)
_MONTHS = (
    "((ChargePeriodStart >= :start AND ChargePeriodStart < :end)"
    " OR (ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end))"
)
# One range a question: by it whole parts of Parquet files are passed over.
_OTHER_MONTHS = (
    "ChargePeriodStart < LEAST(:start, :before_start)",
    "ChargePeriodStart >= LEAST(:end, :before_end) AND ChargePeriodStart < GREATEST(:start, :before_start)",
    "ChargePeriodStart >= GREATEST(:end, :before_end)",
    "ChargePeriodStart IS NULL",
)


def keep_short_tags(
    bill: Bill, months: Mapping[str, Parameter], tags: Sequence[Sequence[str]], run_tag: Sequence[str]
) -> bool:
    """Make the table where the bill has many rows and long tags.

    Args:
        bill: an open bill.
        months: values of `start`, `end`, `before_start` and `before_end`: first days of months.
        tags: keys that are kept under their first spelling; of a charge with several the first with a value counts.
        run_tag: spellings of the key of which only is kept whether use carries it.

    Returns:
        Whether it was made.
    """
    engine = bill.engine
    if not isinstance(engine, DuckDbEngine) or not (bill.unchecked or _are_long(bill)):
        return False
    engine.keep(TABLE, _table_sql(tags, run_tag), months)
    return True


def _are_long(bill: Bill) -> bool:
    if sum(source.rows for source in bill.sources) < MANY_ROWS:
        return False
    (length,) = bill.engine.query(mean_length_sql("Tags", "focus"))["mean"]
    return bool(length > LONG_TEXT)


def with_checked_tags(bill: Bill, months: Mapping[str, Parameter]) -> Bill:
    """The bill with a finding where a tag is not JSON: one that the table was made of, or one of another month."""
    bad = bill.engine.query(f"SELECT 1 AS one FROM {TABLE} WHERE x_is_bad LIMIT 1")
    if len(bad) or any(_is_bad_where(bill, where, months) for where in _OTHER_MONTHS):
        return with_bad_tags(bill)
    return bill


def _is_bad_where(bill: Bill, where: str, months: Mapping[str, Parameter]) -> bool:
    given = {name: value for name, value in months.items() if f":{name}" in where}
    found = bill.engine.query(
        f"SELECT 1 AS one FROM focus WHERE {where} AND Tags <> '' AND NOT JSON_VALID(Tags) LIMIT 1", given
    )
    return len(found) > 0


def names_runs(bill: Bill, months: Mapping[str, Parameter], like_tag: Parameter) -> bool:
    """Whether a charge for use carries the tag that names runs: in the table, or in other months of the bill."""
    kept = bill.engine.query(f"SELECT 1 AS one FROM {TABLE} WHERE x_is_run LIMIT 1")
    if len(kept):
        return True
    rest = bill.engine.query(
        f"SELECT 1 AS one FROM focus WHERE Tags LIKE :like_tag AND ChargeCategory = 'Usage' AND NOT {_MONTHS} LIMIT 1",
        {**months, "like_tag": like_tag},
    )
    return len(rest) > 0


def _table_sql(tags: Sequence[Sequence[str]], run_tag: Sequence[str]) -> str:
    paths = ", ".join(text(tag_path(key)) for spellings in (*tags, run_tag) for key in spellings)
    numbers = itertools.count(1)
    values = [_first_of([f"found[{next(numbers)}]" for _ in spellings]) for spellings in (*tags, run_tag)]
    names = [f"tag_{number}" for number in range(1, len(tags) + 1)]
    pairs = ", ".join(f"{text(tag[0])}, {name}" for tag, name in zip(tags, names, strict=True))
    *found, run = values  # as texts: lists are dear to group by
    named = ", ".join(f"{value} AS {name}" for value, name in zip(found, names, strict=True))
    keys, groups = ", ".join(_KEYS), ", ".join(found)
    # what names a run may differ in every charge: only that it is there is kept
    is_run = f"COALESCE(ChargeCategory = 'Usage' AND {run} IS NOT NULL, FALSE)"
    is_bad = "COALESCE(filled AND found IS NULL, FALSE)"  # `DuckDbEngine.tries_json`
    return (
        f"SELECT {keys}, CAST(x_month AS TIMESTAMP) AS ChargePeriodStart, JSON_OBJECT({pairs}) AS Tags, "
        "EffectiveCost, x_is_run, x_is_bad FROM ("
        f"SELECT {keys}, {named}, {is_run} AS x_is_run, {is_bad} AS x_is_bad, SUM(EffectiveCost) AS EffectiveCost "
        f"FROM (SELECT {keys}, EffectiveCost, Tags <> '' AS filled, JSON_EXTRACT_STRING(Tags, [{paths}]) AS found "
        f"FROM focus WHERE {_MONTHS}) AS charges "
        f"GROUP BY {keys}, {groups}, {is_run}, {is_bad}) AS sums"
    )


def _first_of(values: Sequence[str]) -> str:
    """The first spelling's value that is not blank; of one spelling its value as it is."""
    filled = ", ".join(f"NULLIF(TRIM({one}), '')" for one in values)
    return values[0] if len(values) == 1 else f"COALESCE({filled})"
