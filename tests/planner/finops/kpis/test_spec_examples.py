"""The specification's worked examples of commitments, re-made small: utilisation 1 and 0, and the stated amounts."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from planner.finops.kpis import query_kpi
from planner.finops.read import open_bill

HEADER = (
    "BillingPeriodStart,BillingPeriodEnd,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ChargeFrequency,"
    "PricingCategory,ResourceId,PricingQuantity,PricingUnit,ListUnitPrice,ListCost,ContractedCost,BilledCost,"
    "EffectiveCost,ConsumedQuantity,SkuId,CommitmentDiscountId,CommitmentDiscountCategory,"
    "CommitmentDiscountStatus,BillingCurrency,ProviderName,ServiceName,ServiceCategory"
)
_TIMES = "2023-01-01T00:00:00Z,2023-02-01T00:00:00Z,2023-01-01T00:00:00Z,2023-01-01T01:00:00Z"
_TAIL = "USD,AWS,VMs,Compute"
VALUES: dict[str, Any] = {
    "start": date(2023, 1, 1), "end": date(2023, 2, 1), "before_start": date(2022, 12, 1),
    "before_end": date(2023, 1, 1), "horizon": date(2023, 5, 2),
}  # fmt: skip


def row(category: str, pricing: str, listed: float, billed: float, effective: float, status: str) -> str:
    """A row of the example: one hour of a large machine, committed at half its list price of 3."""
    frequency = "Recurring" if category == "Purchase" else "Usage-Based"
    committed = "cd-1,Usage" if pricing == "Committed" or category == "Purchase" else ","
    return (
        f"{_TIMES},{category},{frequency},{pricing},vm-1,1,Hours,3,{listed},{listed},{billed},{effective},1,VM_LARGE,"
        f"{committed},{status},{_TAIL}"
    )


PURCHASE = row("Purchase", "Standard", 3, 1.5, 0, "")
USED = row("Usage", "Committed", 3, 0, 1.5, "Used")
UNUSED = row("Usage", "Committed", 3, 0, 1.5, "Unused")
ON_DEMAND = row("Usage", "Standard", 2, 2, 2, "")


@pytest.mark.parametrize(
    ("rows", "used", "unused", "savings"),
    [
        ((PURCHASE, USED), 1.5, 0.0, 0.5),
        ((PURCHASE, UNUSED, ON_DEMAND), 0.0, 1.5, 1 - 3.5 / 5),
        ((PURCHASE, USED, UNUSED), 1.5, 1.5, 0.5),
    ],
    ids=["100 %", "0 %", "50 %"],
)
def test_utilisation_of_the_examples(
    rows: tuple[str, ...], used: float, unused: float, savings: float, tmp_path: Path
) -> None:
    path = tmp_path / "bill.csv"
    path.write_text("\n".join((HEADER, *rows)) + "\n")
    with open_bill([path]) as bill:
        (found,) = query_kpi(bill.engine, "commitment_utilisation", VALUES).to_dict("records")
        assert (found["used_cost"], found["unused_cost"]) == (used, unused)
        assert found["purchased_billed_cost"] == 1.5
        sums = query_kpi(bill.engine, "savings_rate", VALUES).sum(numeric_only=True)
        assert 1 - sums["effective_cost_with_list"] / sums["list_cost"] == pytest.approx(savings)


def test_the_end_of_a_commitment_paid_at_once_is_that_of_its_purchase(tmp_path: Path) -> None:
    path = tmp_path / "bill.csv"
    bought = PURCHASE.replace("Recurring", "One-Time").replace(
        "2023-01-01T01:00:00Z", "2023-03-15T00:00:00Z", 1
    )
    path.write_text("\n".join((HEADER, bought, USED)) + "\n")
    with open_bill([path]) as bill:
        (found,) = query_kpi(bill.engine, "commitment_terms", VALUES).to_dict("records")
    assert (found["commitment_id"], str(found["period_end"])[:10]) == ("cd-1", "2023-03-15")


OFFICIAL = {
    "one_hundred_percent_utilization_with_commitment_discount_flexibility_with_1_resource": (0.5, 0.0),
    "one_hundred_percent_utilization_with_commitment_discount_flexibility_with_2_resources": (2.0, 0.0),
    "one_hundred_percent_utilization_without_commitment_discount_flexibility": (1.5, 0.0),
    "zero_percent_utilization_without_commitment_discount_flexibility": (0.0, 1.5),
    "commitment_discount_usage_scenario_1": (1.0, 0.0),
    "commitment_discount_usage_scenario_2": (0.0, 1.0),
    "commitment_discount_usage_scenario_3": (0.75, 0.25),
    "commitment_discount_usage_scenario_4": (1.0, 0.0),
    "commitment_discount_purchase_scenario_1": (0.0, 0.0),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", OFFICIAL)
def test_the_official_files_give_the_stated_amounts(name: str, shared_dir: Path) -> None:
    with open_bill([shared_dir / "finops" / "focus_spec_examples" / f"{name}.csv"]) as bill:
        frame = query_kpi(bill.engine, "commitment_utilisation", VALUES)
    assert (frame["used_cost"].sum(), frame["unused_cost"].sum()) == OFFICIAL[name]


@pytest.mark.shared
@pytest.mark.parametrize(
    "name",
    [
        "commitment_discount_purchase_scenario_3",
        "saas_spend_agreements_b2",
        "virtual_currency_pricing_model_b3",
        "zero_percent_utilization_without_commitment_discount_flexibility",
    ],
)
def test_official_files_can_be_reviewed(name: str, shared_dir: Path) -> None:
    from planner.finops.review.answer import review_bill

    with open_bill([shared_dir / "finops" / "focus_spec_examples" / f"{name}.csv"]) as bill:
        review = review_bill(bill, forecast=False)
    assert review.sections[0].key == "overview" and review.sections[-1].key == "quality"
