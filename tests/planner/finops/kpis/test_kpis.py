"""Every KPI's query against what the generated company knows of itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from planner.finops.engine.dialects import DIALECT, emit_sql
from planner.finops.kpis import load_kpi, load_kpis, query_kpi
from planner.finops.kpis.registry import parse_kpi
from planner.finops.read import Bill, open_bill
from tests.focus_company import MonthTruth, Truth
from tests.focus_company.shared import small_company

AUGUST, SEPTEMBER, OCTOBER, NOVEMBER = (date(2026, m, 1) for m in (8, 9, 10, 11))
TAGS = {"tags_apart": "no"} | {f"tag_{i}": '$."env"' if i == 2 else '$."team"' for i in range(1, 7)}
VALUES: dict[str, Any] = {
    "first": AUGUST, "start": OCTOBER, "end": NOVEMBER, "before_start": SEPTEMBER, "before_end": OCTOBER,
    "horizon": NOVEMBER + timedelta(days=90), "like_tag": "%run_id%", "run_tag": '$."run_id"', "provider": "AWS",
    "service": "AWSDataTransfer", "day": date(2026, 10, 17), "day_end": date(2026, 10, 18),
    "window_start": date(2026, 9, 19), "scope": "sku", "thing": "SKU-aws-net", **TAGS,
}  # fmt: skip


@pytest.fixture(scope="module")
def company() -> Truth:
    return small_company()


@pytest.fixture(scope="module")
def bill(company: Truth) -> Iterator[Bill]:
    with open_bill([*company.files, *company.datasets]) as opened:
        yield opened


@pytest.fixture(params=[SEPTEMBER, OCTOBER], ids=["2026-09", "2026-10"])
def month(request: pytest.FixtureRequest) -> date:
    chosen: date = request.param
    return chosen


def sums(bill: Bill, name: str, month: date) -> Any:
    """Column sums of a KPI's rows of one month."""
    frame = query_kpi(bill.engine, name, VALUES)
    return frame[frame["x_month"].astype(str).str[:10] == month.isoformat()].sum(numeric_only=True)


def test_the_days_sum_to_the_month(bill: Bill, company: Truth) -> None:
    frame = query_kpi(bill.engine, "daily_cost", {})
    frame = frame[frame["charge_category"] != "Tax"]
    for month, truth in company.month.items():
        own = frame[frame["x_day"].astype(str).str[:7] == f"{month:%Y-%m}"]
        assert own["effective_cost"].sum() == pytest.approx(truth.effective, abs=1e-6)
        by_day = own.groupby(own["x_day"].astype(str).str[8:10].astype(int))["effective_cost"].sum()
        assert by_day.to_dict() == pytest.approx({d + 1: c for d, c in truth.daily.items()}, abs=1e-6)


def test_savings_rates(bill: Bill, company: Truth, month: date) -> None:
    found, truth = sums(bill, "savings_rate", month), company.month[month]
    assert found["list_cost"] == pytest.approx(truth.list_cost, abs=0.001)
    esr_list = 1 - found["effective_cost_with_list"] / found["list_cost"]
    esr_contract = 1 - found["effective_cost_with_contracted"] / found["contracted_cost"]
    assert esr_list == pytest.approx(truth.esr_list_ratio, abs=1e-9)
    assert esr_contract == pytest.approx(truth.esr_contract_ratio, abs=1e-9)


def test_utilisation_of_each_commitment(bill: Bill, company: Truth, month: date) -> None:
    frame = query_kpi(bill.engine, "commitment_utilisation", VALUES)
    frame = frame[frame["x_month"].astype(str).str[:10] == month.isoformat()].set_index("commitment_id")
    truth = company.month[month]
    assert frame["used_cost"].to_dict() == pytest.approx(truth.used)
    assert frame["unused_cost"].to_dict() == pytest.approx(
        {key: truth.unused.get(key, 0.0) for key in truth.used}
    )
    bought = {key: cost for key, cost in frame["purchased_billed_cost"].items() if cost}
    assert bought == pytest.approx(truth.purchases)


def test_coverage_counts_what_is_eligible(bill: Bill, company: Truth, month: date) -> None:
    found = sums(bill, "commitment_coverage", month)
    covered = found["covered_list_cost"]
    ratio = covered / (covered + found["eligible_uncovered_list_cost"])
    assert ratio == pytest.approx(company.month[month].coverage_ratio, abs=1e-9)


def test_expiries_within_90_days(bill: Bill, company: Truth) -> None:
    found = query_kpi(bill.engine, "commitment_expiries", VALUES)
    soon = {c.id: c.end for c in company.commitments if NOVEMBER <= c.end < NOVEMBER + timedelta(days=90)}
    assert {i: t.date() for i, t in zip(found["commitment_id"], found["period_end"], strict=True)} == soon
    assert len(soon) == 2


def test_allocation(bill: Bill, company: Truth, month: date) -> None:
    found, truth = sums(bill, "allocation", month), company.month[month]
    assert found["taggable_cost"] == pytest.approx(truth.taggable, abs=1e-6)
    assert found["tagged_cost"] == pytest.approx(truth.tagged, abs=1e-6)


def test_quantities_and_costs_of_everything_bought(bill: Bill, company: Truth) -> None:
    frame = query_kpi(bill.engine, "price_volume", VALUES)
    key = ["provider", "sku_id", "region_id", "pricing_category", "service", "pricing_unit"]
    own = frame[frame["pricing_unit"].notna()].astype(dict.fromkeys(key, object))
    own = own.where(own.notna(), None)
    for suffix, month in (("", OCTOBER), ("_before", SEPTEMBER)):
        found = {
            tuple(row[k] for k in key): (row[f"quantity{suffix}"], row[f"effective_cost{suffix}"])
            for row in own.to_dict("records")
            if row[f"quantity{suffix}"]
        }
        truth: MonthTruth = company.month[month]
        assert found.keys() == truth.units.keys()
        for thing, values in truth.units.items():
            assert found[thing] == pytest.approx(tuple(values), rel=1e-9), thing
        rest = frame[frame["pricing_unit"].isna()][f"effective_cost{suffix}"].sum()
        assert rest == pytest.approx(sum(truth.no_unit.values()))


def test_spot(bill: Bill, company: Truth, month: date) -> None:
    found, truth = sums(bill, "spot", month), company.month[month]
    assert found["spot_cost"] == pytest.approx(truth.spot_effective)
    assert found["spot_list_cost"] == pytest.approx(truth.spot_list)
    assert found["compute_cost"] == pytest.approx(truth.compute_effective)


def test_gpu_hours(bill: Bill, company: Truth, month: date) -> None:
    found, truth = sums(bill, "gpu_hours", month), company.month[month]
    assert found["gpu_hours"] == pytest.approx(truth.gpu_hours)
    assert found["effective_cost"] == pytest.approx(truth.gpu_usd)


def test_runs(bill: Bill, company: Truth) -> None:
    frame = query_kpi(bill.engine, "run_cost", VALUES).set_index("run_id")
    assert set(frame.index) == {run.run_id for run in company.runs}
    for run in company.runs:
        row = frame.loc[run.run_id]
        assert row["nodes"] == run.nodes
        assert row["node_hours"] / row["nodes"] == pytest.approx(run.hours)
        assert row["gpu_hours"] == pytest.approx(run.gpu_hours)
        assert row["machine_cost"] == pytest.approx(run.billed_usd)


def test_the_cause_of_the_spike(bill: Bill, company: Truth) -> None:
    frame = query_kpi(bill.engine, "anomaly_cause", VALUES)
    excess = frame["day_cost"] - frame["window_cost"] / 28
    worst = frame.loc[excess.idxmax()]
    assert (worst["sku_id"], worst["region_id"]) == (company.spike.sku_id, company.spike.region_id)
    assert excess.max() == pytest.approx(company.spike.excess_usd, rel=0.05)


def test_idle_capacity(bill: Bill) -> None:
    (row,) = query_kpi(bill.engine, "idle_resources", VALUES).to_dict("records")
    # 4 hours a day at 36, 31 days
    assert (row["resource_id"], row["is_reservation"], row["effective_cost"]) == ("cr-0001", 1, 4 * 36.0 * 31)


@pytest.mark.parametrize("kpi", load_kpis(), ids=lambda kpi: kpi.name)
def test_each_kpi_can_be_written(kpi: Any) -> None:
    """For the other engines `engine/test_spark_equal.py` writes every query."""
    assert "SELECT" in emit_sql(kpi.sql, DIALECT, {name: VALUES[name] for name in kpi.parameters})


def test_each_kpi_reads_only_columns_that_its_header_names() -> None:
    from sqlglot import exp, parse_one

    from planner.finops.read.columns import focus_columns

    known = {name for columns in focus_columns().values() for name in columns}
    helpers = {"x_month": "ChargePeriodStart", "x_day": "ChargePeriodStart", "x_list_known": "ListCost",
               "x_contracted_known": "ContractedCost", "x_hours_of": "PricingUnit",
               "x_unit_hours": "PricingUnit"}  # fmt: skip
    for kpi in load_kpis():
        names = {c.name for c in parse_one(kpi.sql.replace(":", "$"), read="duckdb").find_all(exp.Column)}
        used = (names & known) | {helpers[n] for n in names & helpers.keys()}
        assert used - set(kpi.columns) == set(), kpi.name
        assert set(kpi.columns) <= known, kpi.name


def test_an_unknown_kpi_is_named_with_the_nearest() -> None:
    from planner.errors import InputError

    with pytest.raises(InputError, match="did you mean savings_rate"):
        load_kpi("saving_rate")


def test_a_header_without_a_field_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks meaning"):
        parse_kpi("x", "-- name: x\n-- title: X\nSELECT 1")
