"""The generated company itself: right columns, the same bill each time, sums that its invoices confirm."""

from __future__ import annotations

import csv
from pathlib import Path

import duckdb
import pytest

from tests.focus_company import VERSIONS, Truth, make_company, write_version
from tests.focus_company.versions import columns


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    return make_company(3, rows_per_month=3000, out=tmp_path_factory.mktemp("company"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    return make_company(1, rows_per_month=300, out=tmp_path_factory.mktemp("small"))


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_has_its_columns_and_all_rows(small: Truth, version: str, tmp_path: Path) -> None:
    written = write_version(small, version, tmp_path, fmt="csv")
    with written.files[0].open(encoding="utf-8") as file:
        assert next(csv.reader(file)) == columns(version)
    found = (
        duckdb.connect()
        .execute(f"select count(*) from read_csv('{tmp_path}/focus-*.csv', all_varchar=true)")
        .fetchone()
    )
    assert found == (small.rows,)


def test_no_column_of_the_newest_version_is_empty(company: Truth) -> None:
    names = columns("1.4")
    counts = (
        duckdb.connect()
        .execute(
            f"select {', '.join(f'count({n})' for n in names)} from read_parquet({[str(f) for f in company.files]})"
        )
        .fetchone()
    )
    assert counts is not None and [n for n, count in zip(names, counts, strict=True) if not count] == []


def test_the_same_seed_makes_the_same_bill(company: Truth, tmp_path: Path) -> None:
    again = make_company(3, rows_per_month=3000, out=tmp_path, fmt="csv")
    other = write_version(company, "1.4", tmp_path / "other", fmt="csv")
    assert [f.read_bytes() for f in again.files] == [f.read_bytes() for f in other.files]


def test_invoices_sum_to_the_bill(company: Truth) -> None:
    with next(f for f in company.datasets if "invoice" in f.name).open(encoding="utf-8") as file:
        invoiced = sum(float(row["BilledCost"]) for row in csv.DictReader(file))
    billed = sum(m.billed + m.tax_usd for m in company.month.values())
    assert invoiced == pytest.approx(billed, abs=1e-6)


def test_an_early_look_lacks_late_rows(company: Truth, tmp_path: Path) -> None:
    from datetime import date

    early = write_version(company, "1.2", tmp_path, as_of=date(2026, 10, 20))
    sql = f"select count(*), max(ChargePeriodStart)::date from '{early.files[-1]}' where ChargeCategory = 'Usage'"
    rows, last = duckdb.connect().execute(sql).fetchone() or (0, None)
    assert 0 < rows < company.month[date(2026, 10, 1)].rows * 0.7
    assert last == date(2026, 10, 19)
