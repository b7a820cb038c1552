"""Changes of a bill whose effect on every figure of its review is known: none, or all money times a number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from planner.finops.read import open_bill
from planner.finops.read.rates import load_rates
from planner.finops.review.answer import review_bill
from planner.finops.review.model import Review, Value
from tests.focus_company.shared import small_company
from tests.planner.finops.review.conftest import value
from tests.planner.finops.small_bill import sections_only

CREATED = datetime(2026, 11, 2, 6, 30, tzinfo=UTC)
COSTS = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")
AMOUNTS = (
    *COSTS,
    "PricingQuantity",
    "ConsumedQuantity",
    "CommitmentDiscountQuantity",
    "PricingCurrencyEffectiveCost",
)
PRICES = ("ListUnitPrice", "ContractedUnitPrice")
MOMENTS = ("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd")
MONEY = {"money", "money_per_hour", "unit_price"}
TOLD_APART = {
    "command",
    "plan",
    "plan_needs",
    "why",
}  # they name the files of the bill, or round what lies on an edge
Cells = dict[str, tuple[str, Value]]


def times(factor: float, names: tuple[str, ...] = AMOUNTS) -> str:
    """The select list of rows whose amounts are multiplied."""
    return ", ".join(f"{name} * {factor} AS {name}" for name in names)


SOME = (
    "SELECT * FROM b WHERE ChargeCategory = 'Usage' AND ChargeClass IS NULL "
    "AND HASH(ResourceId, ChargePeriodStart) % 5 < 2"
)
PARTS = [f"SELECT * REPLACE ({times(part)}) FROM b" for part in (0.375, 0.625)]
KEPT = (
    "CommitmentDiscountId IS NOT NULL OR ChargeCategory <> 'Usage' OR ServiceCategory LIKE 'AI %' "
    "OR ServiceName = 'AWSDataTransfer' OR HASH(ResourceId) % 4 = 0"  # with a jump to look into
)
MOVED = (
    "SELECT * REPLACE ("
    + ", ".join(
        f"STRFTIME({name} - INTERVAL 4 HOUR, '%Y-%m-%dT%H:%M:%S-04:00') AS {name}" for name in MOMENTS
    )
    + ") FROM b"
)
CONVERTED = (
    "SELECT * REPLACE ("
    + ", ".join(f"IF(BillingCurrency = 'EUR', {n} / 2, {n}) AS {n}" for n in (*COSTS, *PRICES))
    + ") FROM (SELECT * REPLACE (IF(HASH(ResourceId) % 2 = 0, 'EUR', 'USD') AS BillingCurrency) FROM b)"
)
# two changes at once, as a review takes seconds: what neither of them alters, both leave as it was
SAME = {
    "rows in another order, with another spelling of moments": (
        f"SELECT * FROM ({MOVED}) ORDER BY HASH(ResourceId, SkuId, ChargePeriodStart)"
    ),
    "each row in two parts, half of them in another currency": (
        " UNION ALL ".join(part.replace("FROM b", f"FROM ({CONVERTED})") for part in PARTS)
    ),
    "charges that a later invoice takes back, and a correction of long before": (
        f"SELECT * FROM b UNION ALL SELECT * REPLACE ({times(0.37)}) FROM ({SOME}) UNION ALL "
        f"SELECT * REPLACE ({times(-0.37)}, 'Correction' AS ChargeClass, BillingPeriodStart + INTERVAL 1 YEAR AS "
        "BillingPeriodStart, BillingPeriodEnd + INTERVAL 1 YEAR AS BillingPeriodEnd) "  # by a later invoice
        f"FROM ({SOME}) UNION ALL "
        f"SELECT * REPLACE ({times(-1)}, 'Correction' AS ChargeClass, "
        "ChargePeriodStart - INTERVAL 200 DAY AS ChargePeriodStart, ChargePeriodEnd - INTERVAL 200 DAY AS "
        f"ChargePeriodEnd) FROM (FROM ({SOME}) ORDER BY EffectiveCost LIMIT 1)"
    ),
}


@pytest.fixture(scope="module")
def rows() -> Iterator[duckdb.DuckDBPyConnection]:
    """The company's charges as the table b: of its use without a commitment, AI apart, that of every fourth resource.

    So every section says what it says of all of them, of a third of the rows.
    """
    with duckdb.connect() as made:
        made.execute("SET TimeZone = 'UTC'")
        files = ", ".join(f"'{path}'" for path in small_company().files)
        made.execute(f"CREATE TABLE b AS SELECT * FROM read_parquet([{files}]) WHERE {KEPT}")
        yield made


@pytest.fixture(scope="module")
def plain(rows: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Review:
    return review_of(rows, "SELECT * FROM b", tmp_path_factory.mktemp("plain"))


def review_of(
    rows: duckdb.DuckDBPyConnection, sql: str, folder: Path, *, parts: int = 1, **asked: Any
) -> Review:
    """The review of the rows that a query gives, in so many CSV files."""
    bill, rates = folder / "bill", folder / "rates.csv"
    bill.mkdir()
    numbered = f"SELECT *, ROW_NUMBER() OVER () % {parts} AS part FROM ({sql})"
    for part in range(parts):
        rows.execute(
            f"COPY (SELECT * EXCLUDE (part) FROM ({numbered}) WHERE part = {part}) "
            f"TO '{bill}/part-{part}.csv' (FORMAT csv, HEADER)"
        )
    rates.write_text("date,from,to,rate\n2026-08,EUR,USD,2\n2026-10,EUR,USD,2\n")
    with open_bill([bill], rates=load_rates(rates, "USD") if "EUR" in sql else None) as opened:
        return review_bill(opened, created=CREATED, **asked)


def cells(review: Review) -> Cells:
    """Every figure, cell, point of a chart and sentence by its place; what counts rows and files stays out."""
    out: Cells = {"verdict": ("text", review.verdict)}
    for section in review.sections:
        if section.key == "quality":
            continue
        out |= {
            f"{section.key} {n}": ("text", said)
            for n, said in enumerate((section.status, *section.sentences))
        }
        for figure in section.figures:
            out[f"{section.key}.{figure.key}"] = (figure.unit, figure.value)
            out[f"{section.key}.{figure.key} status"] = ("text", f"{figure.status} {figure.reason}")
        for table in section.tables:
            for number, row in enumerate(table.rows if table.key != "currencies" else ()):
                for column, cell in zip(table.columns, row, strict=True):
                    if column.key not in TOLD_APART:
                        out[f"{section.key}.{table.key}[{number}].{column.key}"] = (column.unit, cell)
        for chart in section.charts:
            for name, values in chart.series:
                for label, point in zip(chart.labels, values, strict=False):
                    out[f"{section.key}.{chart.key}.{name} {label}"] = (chart.unit, point)
    return out


def differences(before: Cells, after: Cells, factor: float = 1.0) -> list[tuple[str, object, object]]:
    """Places whose value is not what it was, money times a factor."""
    found: list[tuple[str, object, object]] = []
    for place in dict.fromkeys((*before, *after)):
        (unit, was), (_, now) = before.get(place, ("", None)), after.get(place, ("", None))
        if isinstance(was, float | int) and isinstance(now, float | int):
            wanted = was * factor if unit in MONEY else was
            if not math.isclose(wanted, now, rel_tol=1e-7, abs_tol=1e-6 * max(factor, 1.0)):
                found.append((place, wanted, now))
        elif was != now and not (factor != 1 and unit == "text"):  # texts name amounts
            found.append((place, was, now))
    return found


@pytest.mark.parametrize("change", SAME)
def test_nothing_changes(change: str, plain: Review, rows: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    made = review_of(rows, SAME[change], tmp_path, parts=3 if "order" in change else 1)
    assert differences(cells(plain), cells(made)) == []


@pytest.mark.parametrize("factor", [10.0, 1 / 128])
def test_all_costs_times_k_is_all_money_times_k(
    factor: float, plain: Review, rows: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    made = review_of(rows, f"SELECT * REPLACE ({times(factor, (*COSTS, *PRICES))}) FROM b", tmp_path)
    assert differences(cells(plain), cells(made), factor) == []


def test_the_months_the_other_way_round(
    rows: duckdb.DuckDBPyConnection, plain: Review, tmp_path: Path
) -> None:
    september, october = date(2026, 9, 1), date(2026, 10, 1)
    with sections_only("bridge"):
        made = review_of(
            rows, "SELECT * FROM b", tmp_path, month=september, compare_month=october, forecast=False
        )
    for effect in ("change", "price", "volume", "mix", "other"):
        one = f"bridge_{effect}_money"
        assert value(made, one) == pytest.approx(-value(plain, one), abs=1e-6), effect
    assert value(made, "bridge_new_money") == pytest.approx(-value(plain, "bridge_retired_money"), abs=1e-6)
