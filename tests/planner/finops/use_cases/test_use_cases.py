"""Every official FOCUS use case answers, non-empty, on the generated company in every version that asks it."""

from __future__ import annotations

import csv
import math
from datetime import date
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.finops.read import Bill, open_bill
from planner.finops.use_cases import answer_use_case, load_use_cases, query_sql
from planner.finops.use_cases.library import tag_path
from planner.finops.use_cases.report import _unit
from tests.focus_company import make_company, write_version

VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")
QUERIES = sorted({case.query for case in load_use_cases()})
SHARED = Path(__file__).parents[5] / "shared" / "finops" / "models" / "focus_use_case_catalogue.csv"


@pytest.fixture(scope="module")
def bills(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bill]:
    company, made = make_company(3, seed=4, rows_per_month=1_500), {}
    for version in VERSIONS:
        folder = tmp_path_factory.mktemp(f"focus-{version}")
        write_version(company, version, folder)
        made[version] = open_bill([folder])
    return made


@pytest.mark.parametrize("version", VERSIONS)
def test_every_use_case_answers(version: str, bills: dict[str, Bill]) -> None:
    bill = bills[version]
    start, end = _span(bill)
    empty = [
        case.slug
        for case in load_use_cases(version)
        if answer_use_case(bill.engine, case.slug, start=start, end=end, tag="team").empty
    ]
    assert empty == []


@pytest.mark.parametrize(
    ("version", "count"), [("1.0", 36), ("1.1", 41), ("1.2", 53), ("1.3", 58), ("1.4", 66)]
)
def test_the_catalogue_is_complete(version: str, count: int) -> None:
    cases = load_use_cases(version)
    assert len({case.slug for case in cases}) == len(cases) == count
    assert all(case.source.startswith("https://focus.finops.org/use-case/") for case in cases)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.exists(), reason="the official catalogue is not beside the project")
def test_the_catalogue_is_the_official_one() -> None:
    with SHARED.open(encoding="utf-8", newline="") as file:
        official = {(row["focus_version"], row["slug"]) for row in csv.DictReader(file)}
    assert {(case.focus_version, case.slug) for case in load_use_cases()} == official


def test_sums_are_those_of_the_bill(bills: dict[str, Bill]) -> None:
    bill = bills["1.4"]
    start, end = _span(bill)
    total = bill.engine.query("SELECT SUM(BilledCost) AS b, SUM(EffectiveCost) AS e FROM focus").iloc[0]
    for name, column, truth in [
        ("service_categories", "billed_cost", total["b"]),
        ("provider_spend", "billed_cost", total["b"]),
        ("invoice_reconciliation", "billed_cost", total["b"]),
        ("application_spend", "billed_cost", total["b"]),
        ("services_by_region", "effective_cost", total["e"]),
        ("applications_month_over_month", "effective_cost", total["e"]),
        ("cash_and_accrual", "effective_cost", total["e"]),
    ]:
        answer = answer_use_case(bill.engine, name, start=start, end=end, tag="team")
        assert math.isclose(float(answer[column].sum()), float(truth), abs_tol=0.005), name


def test_the_range_is_half_open(bills: dict[str, Bill]) -> None:
    bill = bills["1.4"]
    start, end = _span(bill)
    middle = date(start.year + (start.month == 12), start.month % 12 + 1, 1)
    parts = [
        float(answer_use_case(bill.engine, "services_by_region", start=a, end=b)["effective_cost"].sum())
        for a, b in [(start, middle), (middle, end), (start, end)]
    ]
    assert math.isclose(parts[0] + parts[1], parts[2], abs_tol=0.005)
    assert parts[0] > 0


def test_prices_of_a_unit_keep_their_digits_and_another_currency_is_no_amount_of_the_bills() -> None:
    """A price of 0.0034 was 0.00, and 0 beside large amounts."""
    units = {
        "EffectiveCost": "money", "negotiated_saving": "money", "ListUnitPrice": "unit_price",
        "cost_per_unit": "unit_price", "saving_per_unit": "unit_price",
        "saving_per_unit_in_pricing_currency": "quantity",
        "effective_cost_in_pricing_currency": "quantity", "savings_ratio": "ratio", "PricingQuantity": "quantity",
    }  # fmt: skip
    assert {name: _unit(name, [0.0034, 1]) for name in units} == units
    assert _unit("SkuPriceId", ["a"]) == "text"


def test_a_wrong_name_says_what_was_meant() -> None:
    with pytest.raises(
        InputError, match=r"no use case 'unused_comitments'; did you mean unused_commitments\?"
    ):
        query_sql("unused_comitments")
    with pytest.raises(InputError, match="no use case"):
        query_sql("../library")
    with pytest.raises(InputError, match=r"FOCUS '0\.9'"):
        load_use_cases("0.9")
    with pytest.raises(InputError, match="double quote"):
        tag_path('team"')


def _span(bill: Bill) -> tuple[date, date]:
    row = bill.engine.query("SELECT MIN(x_month) AS a, MAX(x_month) AS b FROM focus").iloc[0]
    first, last = row["a"], row["b"]
    return (
        date(first.year, first.month, 1),
        date(last.year + (last.month == 12), last.month % 12 + 1, 1),
    )
