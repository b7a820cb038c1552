"""The queries of the review, found in their folders, with values for their parameters, and what makes answers equal.

A new query is tested on every engine without a line here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import planner.finops
from planner.finops.engine.base import Parameter
from planner.finops.engine.dialects import parameter_names
from planner.finops.forecast.bill import daily_of_bill
from planner.finops.read import Bill
from planner.finops.read.columns import detect_dataset, focus_columns
from planner.finops.things.ask import keep_names, keep_things, things_query
from planner.finops.things.together import Rate, ask_steady, keep_together
from tests.focus_company import make_company

ROOM = Path(planner.finops.__file__).parent
QUERIES = sorted([*ROOM.glob("kpis/**/*.sql"), *ROOM.glob("use_cases/**/*.sql"), *ROOM.glob("data/*.sql")])
NAMES = [str(path.relative_to(ROOM)) for path in QUERIES]
THINGS = sorted(path.stem for path in ROOM.glob("things/**/*.sql") if path.stem != "things")
MONTH = date(2026, 10, 1)
MONTHS: dict[str, Parameter] = {
    "start": MONTH, "end": date(2026, 11, 1), "before_start": date(2026, 9, 1), "before_end": MONTH,
}  # fmt: skip
THING_VALUES: dict[str, Parameter] = {
    "left_out": ("Google Cloud", "nobody"),
    "top": 10,
    "least": 2.0,
    "least_ratio": 0.001,
    "tag_1": '$."team"',
    "skus": ("SKU-aws-gpu", "nobody's"),
}
CENT = 0.005


def parameters_of(sql: str) -> dict[str, Parameter]:
    """Give every parameter of a query a value that the company has."""
    before = MONTH - timedelta(days=30)
    values: dict[str, Parameter] = {
        "month": MONTH, "next": date(2026, 11, 1), "start": MONTH, "end": date(2026, 11, 1),
        "first": date(2025, 10, 1),
        "before": before, "before_start": before, "before_end": MONTH, "window_start": date(2026, 8, 1),
        "day": date(2026, 10, 14), "day_end": date(2026, 10, 15), "horizon": date(2027, 2, 1),
        "tag": '$."team"', "tag_1": ('$."team"', '$."Team"'), "run_tag": '$."run_id"', "like_tag": "%run_id%",
        "provider": "Google Cloud", "service": "Compute Engine", "scope": "service", "thing": "Compute Engine",
    }  # fmt: skip
    missing = [name for name in parameter_names(sql) if name not in values and not name.startswith("tag")]
    assert missing == [], "give the parameter a value above"
    return {name: values.get(name, '$."team"') for name in parameter_names(sql)}


def rows_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Put rows in an order of their own; months and days as text, so that engines' types do not matter."""
    frame = frame.copy()
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_datetime64_any_dtype(column):
            frame[name] = column.dt.strftime("%Y-%m-%d %H:%M:%S").astype(object)
        elif not pd.api.types.is_numeric_dtype(column):
            frame[name] = column.astype(object)
        else:
            frame[name] = column.astype("float64")
        if column.isna().all():  # of no value no engine says the type
            frame[name] = "(none)"
        if frame[name].dtype == object:
            frame[name] = frame[name].where(frame[name].notna(), "(none)").astype(str)
    keys = [name for name in frame.columns if frame[name].dtype != "float64"]
    numbers = [name for name in frame.columns if name not in keys]
    order = frame.assign(**{name: frame[name].round(3) for name in numbers}).sort_values([*keys, *numbers])
    return frame.loc[order.index].reset_index(drop=True)


def check_equal(sql: str, given: dict[str, Parameter], duckdb_bill: Bill, other_bill: Bill) -> None:
    """Assert that a query gives the same rows on two engines, amounts to the cent."""
    check_same(duckdb_bill.engine.query(sql, given), other_bill.engine.query(sql, given))


def check_same(of_duckdb: pd.DataFrame, of_other: pd.DataFrame) -> None:
    """Assert that two answers have the same rows, amounts to the cent."""
    here, there = rows_of(of_duckdb), rows_of(of_other)
    assert list(there.columns) == list(here.columns)
    assert len(there) == len(here)
    for name in here.columns:
        assert there[name].dtype == here[name].dtype, name
        if here[name].dtype == "float64":
            np.testing.assert_allclose(
                there[name].astype(float), here[name], rtol=1e-9, atol=CENT, err_msg=name
            )
        else:
            assert list(there[name]) == list(here[name]), name


def check_things_equal(duckdb_bill: Bill, other_bill: Bill) -> None:
    """Assert that what is kept of a bill, and every question about it, is the same on two engines."""
    for bill in (duckdb_bill, other_bill):
        keep_things(bill.engine, MONTHS)
        keep_names(bill.engine, {**MONTHS, **THING_VALUES})
        services = ask_steady(bill.engine, MONTHS)
        pairs = services[["provider", "service"]].fillna("").itertuples(index=False)
        keep_together(
            bill.engine,
            {**MONTHS, **THING_VALUES},
            [Rate(*pair, share=0.9, plain=0.3, gpu=0.2) for pair in pairs],
        )
    for name in THINGS:
        sql = things_query(name)
        given = {name: {**MONTHS, **THING_VALUES}[name] for name in parameter_names(sql)}
        check_equal(sql, given, duckdb_bill, other_bill)


def check_days_equal(duckdb_bill: Bill, other_bill: Bill) -> None:
    """Assert that what forecasts know of each scope and day is the same on two engines."""
    for by, kind in (("total", "effective"), ("service", "billed")):
        expected, found = (daily_of_bill(bill, by, kind) for bill in (duckdb_bill, other_bill))
        assert found.keys() == expected.keys()
        for scope, one in expected.items():
            same = found[scope]
            assert same.days.tolist() == one.days.tolist()
            assert one.used is not None and same.used is not None
            assert same.cost == pytest.approx(one.cost, abs=0.01)
            assert same.used == pytest.approx(one.used, abs=0.01, nan_ok=True)


_LACKING = {"ChargeCategory": 0, "BilledCost": 6}  # of 30 parts of the resources the one without
_OTHER = {  # what the company's bill has none of: corrections in their own month, of which half name no billing period,
    # refunds that state a quantity of 0, and commitments paid at once
    "ChargeClass": "WHEN HASH(ResourceId) % 30 = 12 THEN 'Correction'",
    "BillingPeriodStart": "WHEN HASH(ResourceId) % 60 = 12 THEN NULL",
    "PricingQuantity": "WHEN HASH(ResourceId) % 30 = 15 THEN 0",
    "EffectiveCost": "WHEN HASH(ResourceId) % 30 = 3 THEN NULL "
    "WHEN HASH(ResourceId) % 30 = 15 THEN -CAST(EffectiveCost AS DOUBLE)",
    "ChargeFrequency": "WHEN CommitmentDiscountType = 'Savings Plan' THEN 'One-Time'",
}


def _cell(name: str, columns: Sequence[str]) -> str:
    """A column, with values of its own for some charges where they may have them."""
    if "ResourceId" not in columns:
        return f'"{name}"'
    if name in _OTHER:
        return f'CASE {_OTHER[name]} ELSE "{name}" END'
    if name in _LACKING:
        return f'CASE WHEN ResourceId IS NULL OR HASH(ResourceId) % 30 <> {_LACKING[name]} THEN "{name}" END'
    return f'"{name}"'


def make_small_bill(folder: Path) -> dict[str, Path]:
    """Write a small company's bill in Parquet, one file a dataset, with every kind of row that it has.

    Returns:
        Dataset -> file. Costs have some 8,000 rows: a third of the machines, and all that is not use. Some resources'
            charges lack their category or a cost, those of others are corrections in their own month, or refunds.
    """
    made = folder / "company"
    make_company(3, seed=11, rows_per_month=5000, version="1.4", out=made)
    with duckdb.connect() as connection:
        by_dataset: dict[str, list[str]] = {}
        for file in sorted(made.iterdir()):
            header = connection.sql(f"SELECT * FROM '{file}' LIMIT 0").columns
            dataset = detect_dataset(header)
            assert dataset is not None, file
            by_dataset.setdefault(dataset, []).append(str(file))
        out = {}
        for dataset, files in by_dataset.items():
            out[dataset] = folder / "small" / f"{dataset}.parquet"
            out[dataset].parent.mkdir(exist_ok=True)
            kinds = {name: column.kind for name, column in focus_columns()[dataset].items()}
            casts = {"number": "DOUBLE", "moment": "TIMESTAMP", "flag": "BOOLEAN"}
            rows = (
                f"READ_PARQUET({files}, union_by_name = true)"
                if files[0].endswith("parquet")
                else (f"READ_CSV({files}, all_varchar = true)")
            )
            names = connection.sql(f"SELECT * FROM {rows} LIMIT 0").columns
            items = ", ".join(
                f'CAST({_cell(n, names)} AS {casts.get(kinds.get(n, "text"), "VARCHAR")}) AS "{n}"'
                for n in names
            )
            kept = (
                ""
                if dataset != "CostAndUsage"
                else ("WHERE ChargeCategory <> 'Usage' OR ResourceId IS NULL OR HASH(ResourceId) % 3 = 0")
            )
            connection.execute(f"COPY (SELECT {items} FROM {rows} {kept}) TO '{out[dataset]}'")
    return out
