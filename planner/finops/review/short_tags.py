"""Long tags read once: charges of the two months summed by the tags that a review asks for, as a table for its queries.

Reading tag texts of some 400 characters costs more than all other columns of a bill together, and three questions
need them. The table has the columns of `focus` that the KPIs `SHORT` name, with `Tags` cut down to the asked keys and
days to months, so these KPIs give the same answers on it. Short texts are cheap where they are: nothing is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from planner.finops.engine.duckdb import DuckDbEngine
from planner.finops.read.select import text
from planner.finops.use_cases.library import tag_path

if TYPE_CHECKING:
    from planner.finops.engine.base import Parameter
    from planner.finops.read import Bill

TABLE = "x_short_tags"
SHORT = ("allocation", "owners")
MANY_ROWS = 300_000  # of smaller bills the texts are read soon enough
LONG_TEXT = 150  # characters; from here on the KPI `allocation` does not sum by whole texts either
_SAMPLE = 20_000
_KEYS = (
    *("x_month", "ServiceProviderName", "ServiceName", "CommitmentDiscountId", "CommitmentDiscountStatus"),
    *("ChargeCategory", "SubAccountName", "SubAccountId", "BillingAccountId"),
)
_MONTHS = (
    "((ChargePeriodStart >= :start AND ChargePeriodStart < :end)"
    " OR (ChargePeriodStart >= :before_start AND ChargePeriodStart < :before_end))"
)


def keep_short_tags(bill: Bill, months: Mapping[str, Parameter], tags: Sequence[str], run_tag: str) -> bool:
    """Make the table where the bill has many rows and long tags.

    Args:
        bill: an open bill.
        months: values of `start`, `end`, `before_start` and `before_end`: first days of months.
        tags: keys that are kept.
        run_tag: key of which only is kept whether use carries it.

    Returns:
        Whether it was made.
    """
    engine = bill.engine
    if not isinstance(engine, DuckDbEngine) or sum(source.rows for source in bill.sources) < MANY_ROWS:
        return False
    sample = f"SELECT Tags FROM focus WHERE Tags IS NOT NULL LIMIT {_SAMPLE}"
    (length,) = engine.query(f"SELECT AVG(LENGTH(Tags)) AS mean FROM ({sample}) AS texts")["mean"]
    if not length > LONG_TEXT:
        return False
    engine.keep(TABLE, _table_sql(tags, run_tag), months)
    return True


def names_runs(bill: Bill, months: Mapping[str, Parameter], like_tag: str) -> bool:
    """Whether a charge for use carries the tag that names runs: in the table, or in other months of the bill."""
    kept = bill.engine.query(f"SELECT 1 AS one FROM {TABLE} WHERE x_is_run LIMIT 1")
    if len(kept):
        return True
    rest = bill.engine.query(
        f"SELECT 1 AS one FROM focus WHERE Tags LIKE :like_tag AND ChargeCategory = 'Usage' AND NOT {_MONTHS} LIMIT 1",
        {**months, "like_tag": like_tag},
    )
    return len(rest) > 0


def _table_sql(tags: Sequence[str], run_tag: str) -> str:
    paths = ", ".join(text(tag_path(tag)) for tag in (*tags, run_tag))
    names = [f"tag_{number}" for number in range(1, len(tags) + 1)]
    pairs = ", ".join(f"{text(tag)}, {name}" for tag, name in zip(tags, names, strict=True))
    found = [f"found[{number}]" for number in range(1, len(tags) + 1)]  # as texts: lists are dear to group by
    named = ", ".join(f"{value} AS {name}" for value, name in zip(found, names, strict=True))
    keys, values = ", ".join(_KEYS), ", ".join(found)
    # what names a run may differ in every charge: only that it is there is kept
    is_run = f"COALESCE(ChargeCategory = 'Usage' AND found[{len(tags) + 1}] IS NOT NULL, FALSE)"
    return (
        f"SELECT {keys}, CAST(x_month AS TIMESTAMP) AS ChargePeriodStart, JSON_OBJECT({pairs}) AS Tags, "
        "EffectiveCost, x_is_run FROM ("
        f"SELECT {keys}, {named}, {is_run} AS x_is_run, SUM(EffectiveCost) AS EffectiveCost "
        f"FROM (SELECT {keys}, EffectiveCost, JSON_EXTRACT_STRING(Tags, [{paths}]) AS found FROM focus "
        f"WHERE ChargeCategory NOT IN ('Tax', 'Credit') AND {_MONTHS}) AS charges "
        f"GROUP BY {keys}, {values}, {is_run}) AS sums"
    )
