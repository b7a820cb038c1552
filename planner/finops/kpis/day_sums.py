"""A bill summed by day for the KPIs that ask for totals: each would read all rows of it again.

The table has the columns of `focus` that these KPIs name, at the grain of days and services, so they are asked over it
as they are. Where a KPI looks at a single charge (is it of no cost, negative, without a price) the sums keep such
charges apart: charges of one sign add up to that sign, and those without a value to none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.finops.engine.duckdb import DuckDbEngine
from planner.finops.engine.spark import SparkEngine

if TYPE_CHECKING:
    from planner.finops.engine.base import Engine
    from planner.finops.read import Bill

TABLE = "x_day_sums"
DAY_SUMS = ("commitment_coverage", "daily_cost", "provider_days", "savings_rate", "spot")
_KEEPERS = (DuckDbEngine, SparkEngine)
MANY_ROWS = 300_000  # smaller bills are read soon enough
_KEYS = (
    *("x_month", "x_day", "ServiceProviderName", "ServiceName", "ServiceCategory", "ChargeCategory"),
    *("PricingCategory", "CommitmentDiscountStatus", "x_focus_version", "x_list_known", "x_contracted_known"),
)
_APART = {
    "is_committed": "CommitmentDiscountId IS NOT NULL",
    "is_eligible": "CommitmentProgramEligibilityDetails IS NOT NULL",
    "is_short": "COALESCE(DATE_DIFF('day', ChargePeriodStart, ChargePeriodEnd) <= 1, TRUE)",
    "effective_sign": "SIGN(EffectiveCost)",
    "list_sign": "SIGN(ListCost)",
}
_SUMS = """
  SUM(EffectiveCost) AS effective_cost,
  SUM(BilledCost) AS billed_cost,
  SUM(ListCost) AS list_cost,
  SUM(ContractedCost) AS contracted_cost,
  SUM(x_rows) AS row_count
"""
_COLUMNS = """
  CAST(x_day AS TIMESTAMP) AS ChargePeriodStart,
  CAST(x_day AS TIMESTAMP) + CASE WHEN is_short THEN INTERVAL 1 DAY ELSE INTERVAL 2 DAY END AS ChargePeriodEnd,
  CASE WHEN is_committed THEN 'some' END AS CommitmentDiscountId,
  CASE WHEN is_eligible THEN 'some' END AS CommitmentProgramEligibilityDetails,
  effective_cost AS EffectiveCost,
  billed_cost AS BilledCost,
  list_cost AS ListCost,
  contracted_cost AS ContractedCost,
  CAST(row_count AS BIGINT) AS x_rows
"""


def _table_sql() -> str:
    keys = ", ".join(_KEYS)
    apart = ", ".join(f"{value} AS {name}" for name, value in _APART.items())
    groups = ", ".join((*_KEYS, *_APART.values()))
    sums = ("SELECT", keys, ",", apart, ",", _SUMS, "FROM focus GROUP BY", groups)
    return " ".join(("WITH sums AS (", *sums, ") SELECT", keys, ",", _COLUMNS, "FROM sums"))


def keep_day_sums(bill: Bill) -> None:
    """Make the table where the bill has many rows and its engine can write."""
    if isinstance(bill.engine, _KEEPERS) and sum(source.rows for source in bill.sources) >= MANY_ROWS:
        bill.engine.keep(TABLE, _table_sql())


def stands_for_focus(engine: Engine, query: str) -> str:
    """The table that a query may be asked over in place of `focus`; empty where there is none."""
    is_kept = isinstance(engine, _KEEPERS) and TABLE in engine.kept
    return TABLE if is_kept and query in DAY_SUMS else ""


def over_table(sql: str, table: str) -> str:
    """A query with a table in the place of `focus`; as it is without one."""
    if not table:
        return sql
    return "\n".join(("WITH focus AS (SELECT * FROM", table, ") SELECT * FROM (", sql, ") AS asked"))
