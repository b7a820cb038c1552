"""The clouds' own exports: sums are those of the invoice and of amortised cost, row by row where it matters."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from planner.finops.read import Bill, open_bill
from planner.finops.read.adapters import load_adapters
from planner.finops.read.columns import focus_columns
from tests.planner.finops.small_bill import sections_only

SHARED = Path(__file__).parents[5] / "shared" / "finops" / "native_bills"
COMMIT = "arn:aws:savingsplans::1:savingsplan/s"
RESERVED = "arn:aws:ec2:us-east-1:1:reserved-instances/r"

# One hour of each kind: on demand 1.00, under the plan 0.60, reserved 0.50; of both one more hour is paid and unused.
CUR = [
    {"lineItem/LineItemType": "Usage", "lineItem/UnblendedCost": "1.00", "pricing/publicOnDemandCost": "1.25"},
    {"lineItem/LineItemType": "SavingsPlanCoveredUsage", "lineItem/UnblendedCost": "1.00",
     "pricing/publicOnDemandCost": "1.25", "savingsPlan/SavingsPlanEffectiveCost": "0.60",
     "savingsPlan/SavingsPlanARN": COMMIT},
    {"lineItem/LineItemType": "SavingsPlanNegation", "lineItem/UnblendedCost": "-1.00",
     "savingsPlan/SavingsPlanARN": COMMIT},
    {"lineItem/LineItemType": "SavingsPlanRecurringFee", "lineItem/UnblendedCost": "1.20",
     "savingsPlan/TotalCommitmentToDate": "1.20", "savingsPlan/UsedCommitment": "0.60",
     "savingsPlan/SavingsPlanARN": COMMIT},
    {"lineItem/LineItemType": "DiscountedUsage", "lineItem/UnblendedCost": "0", "pricing/publicOnDemandCost": "1.25",
     "reservation/EffectiveCost": "0.50", "reservation/ReservationARN": RESERVED},
    {"lineItem/LineItemType": "RIFee", "lineItem/UnblendedCost": "0.70", "reservation/UnusedRecurringFee": "0.35",
     "reservation/UnusedAmortizedUpfrontFeeForBillingPeriod": "0.15", "reservation/ReservationARN": RESERVED},
    {"lineItem/LineItemType": "Fee", "lineItem/UnblendedCost": "100", "reservation/ReservationARN": RESERVED},
    {"lineItem/LineItemType": "Tax", "lineItem/UnblendedCost": "0.10"},
    {"lineItem/LineItemType": "Credit", "lineItem/UnblendedCost": "-0.25"},
    {"lineItem/LineItemType": "Refund", "lineItem/UnblendedCost": "-0.05"},
]  # fmt: skip
BASE = {
    "bill/PayerAccountId": "1", "bill/BillingPeriodStartDate": "2026-10-01T00:00:00Z",
    "bill/BillingPeriodEndDate": "2026-11-01T00:00:00Z", "lineItem/UsageAccountId": "2",
    "lineItem/UsageStartDate": "2026-10-05T00:00:00Z", "lineItem/UsageEndDate": "2026-10-05T01:00:00Z",
    "lineItem/ProductCode": "AmazonEC2", "lineItem/UsageType": "BoxUsage:p4d.24xlarge", "lineItem/UsageAmount": "1",
    "lineItem/CurrencyCode": "USD", "product/region": "us-east-1", "pricing/unit": "Hrs",
    "product/instanceType": "p4d.24xlarge", "product/gpu": "8", "product/vcpu": "96",
    "resourceTags/user:team": "vision", "resourceTags/aws:createdBy": "",
}  # fmt: skip
BILLED = 1.00 + 1.20 + 0.70 + 100 + 0.10 - 0.25 - 0.05
AMORTISED = 1.00 + 0.60 + 0.60 + 0.50 + 0.50 + 0.10 - 0.25 - 0.05


def write_rows(path: Path, rows: list[dict[str, str]]) -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


def cur(path: Path, rows: list[dict[str, str]] = CUR) -> Path:
    return write_rows(path, [BASE | row for row in rows])


def sums(bill: Bill, where: str = "TRUE") -> tuple[float, float]:
    sql = f"SELECT SUM(BilledCost) AS b, SUM(EffectiveCost) AS e FROM focus WHERE {where}"
    row = bill.engine.query(sql).iloc[0]
    return round(float(row["b"]), 9), round(float(row["e"]), 9)


def one(bill: Bill, where: str) -> pd.Series:
    frame = bill.engine.query(f"SELECT * FROM focus WHERE {where}")
    assert len(frame) == 1
    return frame.iloc[0]


def test_aws_legacy_gives_the_invoice_and_amortised_cost(tmp_path: Path) -> None:
    with open_bill([cur(tmp_path / "cur.csv")]) as bill:
        assert bill.findings == ()
        assert bill.sources[0].adapter == "aws_cur"
        assert sums(bill) == (pytest.approx(BILLED), pytest.approx(AMORTISED))
        row = one(bill, "ChargeCategory = 'Usage' AND PricingCategory = 'Standard'")
        assert (row["ListCost"], row["ContractedCost"], row["ServiceCategory"]) == (1.25, 1.0, "Compute")
        assert (row["Tags"], row["RegionId"]) == ('{"team":"vision"}', "us-east-1")
        assert json.loads(row["SkuPriceDetails"]) == {
            "InstanceType": "p4d.24xlarge",
            "GpuCount": 8.0,
            "CoreCount": 96.0,
        }
        assert one(bill, "ChargeClass = 'Correction'")["ChargeCategory"] == "Credit"


@pytest.mark.parametrize(("commitment", "used", "unused"), [(COMMIT, 0.60, 0.60), (RESERVED, 0.50, 0.50)])
def test_aws_utilisation(commitment: str, used: float, unused: float, tmp_path: Path) -> None:
    with open_bill([cur(tmp_path / "cur.csv")]) as bill:
        usage = f"ChargeCategory = 'Usage' AND CommitmentDiscountId = '{commitment}'"
        assert sums(bill, f"{usage} AND CommitmentDiscountStatus = 'Used'")[1] == pytest.approx(used)
        assert sums(bill, f"{usage} AND CommitmentDiscountStatus = 'Unused'") == (0.0, pytest.approx(unused))
        purchases = f"ChargeCategory = 'Purchase' AND CommitmentDiscountId = '{commitment}'"
        assert sums(bill, purchases)[1] == 0.0


def test_aws_covered_use_without_its_negation_is_told(tmp_path: Path) -> None:
    rows = [row for row in CUR if row["lineItem/LineItemType"] != "SavingsPlanNegation"]
    with open_bill([cur(tmp_path / "cur.csv", rows)]) as bill:
        (finding,) = bill.findings
        assert (finding.code, finding.cost) == ("sp_negation", 1.0)


def test_aws_2_has_maps_and_other_spellings(tmp_path: Path) -> None:
    names = {
        "lineItem/LineItemType": "line_item_line_item_type", "lineItem/UnblendedCost": "line_item_unblended_cost",
        "lineItem/UsageStartDate": "line_item_usage_start_date", "lineItem/UsageEndDate": "line_item_usage_end_date",
        "lineItem/CurrencyCode": "line_item_currency_code",
        "savingsPlan/SavingsPlanARN": "savings_plan_savings_plan_a_r_n",
        "savingsPlan/SavingsPlanEffectiveCost": "savings_plan_savings_plan_effective_cost",
        "savingsPlan/TotalCommitmentToDate": "savings_plan_total_commitment_to_date",
        "savingsPlan/UsedCommitment": "savings_plan_used_commitment",
        "reservation/EffectiveCost": "reservation_effective_cost",
        "reservation/ReservationARN": "reservation_reservation_a_r_n",
        "reservation/UnusedRecurringFee": "reservation_unused_recurring_fee",
        "reservation/UnusedAmortizedUpfrontFeeForBillingPeriod":
            "reservation_unused_amortized_upfront_fee_for_billing_period",
    }  # fmt: skip
    path = cur(tmp_path / "cur.csv")
    kept = ", ".join(f'"{old}" AS {new}' for old, new in names.items())
    target = tmp_path / "cur2.parquet"
    duckdb.connect().sql(
        f"SELECT {kept}, MAP {{'user_team': 'vision', 'aws_created_by': 'x'}} AS resource_tags, "
        f"MAP {{'product_name': 'Amazon EC2', 'region': 'us-east-1'}} AS product FROM read_csv('{path}')"
    ).write_parquet(str(target))
    with open_bill([target]) as bill:
        assert sums(bill) == (pytest.approx(BILLED), pytest.approx(AMORTISED))
        row = one(bill, "ChargeCategory = 'Tax'")
        assert json.loads(row["Tags"]) == {"team": "vision", "aws_created_by": "x"}
        assert (row["ServiceName"], row["RegionId"]) == ("Amazon EC2", "us-east-1")


AZURE = {
    "SubscriptionId": "sub", "Date": "10/05/2026", "BillingPeriodStartDate": "10/01/2026",
    "BillingPeriodEndDate": "10/31/2026", "MeterCategory": "Virtual Machines", "ServiceFamily": "Compute",
    "BillingCurrency": "EUR", "Quantity": "1", "UnitPrice": "1.00", "PayGPrice": "1.25", "MeterId": "m",
    "ChargeType": "Usage", "PricingModel": "OnDemand", "Cost": "1.00", "Tags": '"team": "vision","env": "prod"',
    "ReservationId": "", "ReservationName": "", "Frequency": "UsageBased", "ResourceLocation": "WestEurope",
}  # fmt: skip
RESERVATION = {"PricingModel": "Reservation", "ReservationId": "r1", "ReservationName": "my reservation"}
ACTUAL = [
    AZURE,
    AZURE | RESERVATION | {"Cost": "0", "PayGPrice": "0"},
    AZURE | RESERVATION | {"ChargeType": "Purchase", "Cost": "744", "Frequency": "Recurring"},
]
AMORTIZED = [
    AZURE,
    AZURE | RESERVATION | {"Cost": "0.60", "PayGPrice": "0"},
    AZURE | RESERVATION | {"ChargeType": "UnusedReservation", "Cost": "0.40"},
]


def test_azure_actual_and_amortized_are_never_added(tmp_path: Path) -> None:
    write_rows(tmp_path / "actual.csv", ACTUAL)
    write_rows(tmp_path / "amortized.csv", AMORTIZED)
    with open_bill([tmp_path]) as bill:
        assert [finding.code for finding in bill.findings] == ["cost_kinds"]
        assert sums(bill) == (1.00 + 744, 1.00 + 0.60 + 0.40)
        assert bill.engine.query("SELECT COUNT(*) AS n FROM focus")["n"][0] == 4
        assert bill.currency == "EUR"


def test_azure_actual_alone_leaves_effective_cost_unknown(tmp_path: Path) -> None:
    with open_bill([write_rows(tmp_path / "a.csv", ACTUAL)]) as bill:
        assert [finding.code for finding in bill.findings] == ["actual_only"]
        assert sums(bill) == (745.0, 1.0)
        assert bill.engine.query("SELECT COUNT(*) AS n FROM focus WHERE EffectiveCost IS NULL")["n"][0] == 1


def test_azure_amortized_alone_leaves_purchases_unknown(tmp_path: Path) -> None:
    with open_bill([write_rows(tmp_path / "a.csv", AMORTIZED)]) as bill:
        assert [finding.code for finding in bill.findings] == ["amortized_only"]
        row = one(bill, "CommitmentDiscountStatus = 'Used'")
        assert (row["EffectiveCost"], row["CommitmentDiscountId"], row["x_list_known"]) == (0.6, "r1", False)
        assert json.loads(row["Tags"]) == {"team": "vision", "env": "prod"}
        assert (str(row["ChargePeriodEnd"]), row["RegionId"]) == ("2026-10-06 00:00:00", "westeurope")


def test_azure_customer_agreement_spells_in_camel_case(tmp_path: Path) -> None:
    names = {"Cost": "costInBillingCurrency", "PayGPrice": "payGPrice", "Date": "date"}
    rows = [
        {names.get(key, key[0].lower() + key[1:]): value for key, value in row.items()} for row in AMORTIZED
    ]
    with open_bill([write_rows(tmp_path / "a.csv", rows)]) as bill:
        assert sums(bill) == (1.0, 2.0)


GOOGLE = {
    "billing_account_id": "A-B", "service": {"id": "6F81", "description": "Compute Engine"},
    "sku": {"id": "s1", "description": "Spot Preemptible A2 Instance Core"},
    "usage_start_time": "2026-10-05 00:00:00 UTC", "usage_end_time": "2026-10-05 01:00:00 UTC",
    "project": {"id": "p", "name": "P"}, "labels": [{"key": "team", "value": "vision"}],
    "location": {"location": "us-central1", "region": "us-central1"}, "cost": 2.0, "currency": "USD",
    "usage": {"amount": 3600.0, "unit": "seconds", "amount_in_pricing_units": 1.0, "pricing_unit": "hour"},
    "credits": [{"name": "sud", "amount": -0.5}, {"name": "promo", "amount": -0.25}], "invoice": {"month": "202610"},
    "cost_type": "regular", "cost_at_list": 2.5,
}  # fmt: skip
FLAT = {
    "billing_account_id": "A-B", "service.description": "Compute Engine", "sku.id": "s1",
    "sku.description": "Spot Preemptible A2 Instance Core", "usage_start_time": "2026-10-05 00:00:00 UTC",
    "usage_end_time": "2026-10-05 01:00:00 UTC", "project.id": "p", "location.region": "us-central1", "cost": "2.0",
    "currency": "USD", "usage.amount_in_pricing_units": "1", "usage.pricing_unit": "hour", "invoice.month": "202610",
    "cost_type": "regular", "cost_at_list": "2.5", "labels": '[{"key":"team","value":"vision"}]',
    "credits": '[{"name":"sud","amount":-0.5},{"name":"promo","amount":-0.25}]',
}  # fmt: skip


@pytest.mark.parametrize("form", ["json", "parquet", "csv", "csv with a sum"])
def test_google_in_every_form(form: str, tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(f"{json.dumps(GOOGLE)}\n{json.dumps(GOOGLE | {'cost_type': 'tax', 'credits': []})}\n")
    if form == "parquet":
        duckdb.connect().sql(f"SELECT * FROM read_json('{path}')").write_parquet(
            str(tmp_path / "export.parquet")
        )
        path = tmp_path / "export.parquet"
    elif form.startswith("csv"):
        credit = FLAT["credits"] if form == "csv" else "-0.75"
        path = write_rows(
            tmp_path / "export.csv", [FLAT | {"credits": credit}, FLAT | {"cost_type": "tax", "credits": ""}]
        )
    with open_bill([path]) as bill:
        assert bill.sources[0].adapter == "gcp_bigquery"
        assert sums(bill, "ChargeCategory = 'Usage'") == (1.25, 1.25)
        assert sums(bill, "ChargeCategory = 'Tax'") == (2.0, 2.0)
        row = one(bill, "ChargeCategory = 'Usage'")
        assert (row["ListCost"], row["ContractedCost"], row["PricingCategory"]) == (2.5, 2.0, "Dynamic")
        assert (row["Tags"], row["SubAccountId"], row["RegionId"]) == (
            '{"team":"vision"}',
            "p",
            "us-central1",
        )
        assert (row["PricingQuantity"], row["PricingUnit"], row["ServiceCategory"]) == (
            1.0,
            "hour",
            "Compute",
        )
        assert str(row["BillingPeriodStart"]) == "2026-10-01 00:00:00"
        assert [finding.code for finding in bill.findings] == []


def test_every_adapter_fills_focus_columns_and_says_where_it_has_them_from() -> None:
    assert {adapter.name for adapter in load_adapters()} == {
        "alibaba_bill", "aws_cur", "azure_cost", "azure_payg", "gcp_bigquery", "oci_cost", "runpod", "snowflake",
    }  # fmt: skip
    needed = {
        "BilledCost",
        "EffectiveCost",
        "ListCost",
        "ContractedCost",
        "ChargePeriodStart",
        "ChargePeriodEnd",
    }
    known = focus_columns()["CostAndUsage"]
    for adapter in load_adapters():
        assert all(name in known or name.startswith("x_") for name in adapter.columns), adapter.name
        assert needed | {"BillingCurrency", "ChargeCategory", "Tags", "SkuId"} <= adapter.columns.keys()


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.exists(), reason="the clouds' sample exports are not beside the project")
def test_real_samples() -> None:
    with open_bill([SHARED / "sample-anonymous-aws-export-dataset.csv"]) as bill:
        assert bill.findings == ()
        assert bill.sources[0].rows == 1281
    paths = [SHARED / f"azure_EA_{kind}Cost_Small.csv" for kind in ("Actual", "Amortized")]
    with open_bill(paths) as bill:
        # the amortized file's cost, and the one purchase of the actual file
        assert sums(bill) == (pytest.approx(15.79778 + 3.25), pytest.approx(15.79778 + 0.499152006))


# An enterprise discount of a tenth, as the two kinds of export write it: in net columns, or in rows of its own.
NET = {"lineItem/NetUnblendedCost": "0.90", "pricing/publicOnDemandCost": "1.25"}
DISCOUNT = {"lineItem/LineItemType": "EdpDiscount", "lineItem/UnblendedCost": "-0.10"}


def test_aws_discounts_in_net_columns_are_on_the_bill(tmp_path: Path) -> None:
    """Since CUR 2.0 discounts have no rows: the invoice is the sum of the net costs."""
    plan = {"savingsPlan/SavingsPlanARN": COMMIT}
    rows = [
        CUR[0] | NET,
        CUR[1] | NET | {"savingsPlan/NetSavingsPlanEffectiveCost": "0.54"},
        CUR[2] | {"lineItem/NetUnblendedCost": "-0.90"},
        CUR[3] | {"lineItem/NetUnblendedCost": "1.08", "savingsPlan/RecurringCommitmentForBillingPeriod": "1.20",
                  "savingsPlan/NetRecurringCommitmentForBillingPeriod": "1.08"} | plan,
        CUR[4] | {"lineItem/NetUnblendedCost": "0", "reservation/NetEffectiveCost": "0.45"},
        CUR[5] | {"lineItem/NetUnblendedCost": "0.63", "reservation/NetUnusedRecurringFee": "0.315",
                  "reservation/NetUnusedAmortizedUpfrontFeeForBillingPeriod": "0.135"},
        CUR[7] | {"lineItem/NetUnblendedCost": "0.09"},
    ]  # fmt: skip
    billed, effective = 0.90 + 1.08 + 0.63 + 0.09, 0.90 + 0.54 + 0.54 + 0.45 + 0.45 + 0.09
    with open_bill([cur(tmp_path / "cur.csv", rows)]) as bill:
        assert bill.findings == ()
        assert sums(bill) == (pytest.approx(billed), pytest.approx(effective))
        row = one(bill, "ChargeCategory = 'Usage' AND PricingCategory = 'Standard'")
        assert (row["ListCost"], row["ContractedCost"]) == (1.25, 0.9)
    # the older report has rows for the discount besides; they are in the net costs already
    with open_bill(
        [cur(tmp_path / "old.csv", [*rows, DISCOUNT | {"lineItem/NetUnblendedCost": "0"}])]
    ) as bill:
        assert sums(bill) == (pytest.approx(billed), pytest.approx(effective))
    with open_bill([cur(tmp_path / "blank.csv", [*rows, DISCOUNT])]) as bill:
        assert sums(bill) == (pytest.approx(billed), pytest.approx(effective))


def test_aws_discounts_in_rows_are_savings_without_a_list_price(tmp_path: Path) -> None:
    from planner.finops.review.answer import review_bill

    with open_bill([cur(tmp_path / "cur.csv", [CUR[0], DISCOUNT])]) as bill:
        assert sums(bill) == (0.9, 0.9)
        row = one(bill, "ChargeCategory = 'Adjustment'")
        assert (row["ListCost"], row["ContractedCost"], row["x_list_known"]) == (0.0, -0.1, True)
        found = {figure.key: figure.value for part in review_bill(bill).sections for figure in part.figures}
    assert found["esr_list_ratio"] == pytest.approx(1 - 0.90 / 1.25)
    assert found["esr_contract_ratio"] == pytest.approx(0.0)
    assert found["price_list_known_ratio"] == 1.0


def test_aws_discounts_without_net_columns_are_told(tmp_path: Path) -> None:
    rows = [CUR[0] | {"discount/TotalDiscount": "-0.10"}]
    with open_bill([cur(tmp_path / "cur.csv", rows)]) as bill:
        (finding,) = bill.findings
        assert (finding.code, finding.cost) == ("no_net_cost", -0.1)
        assert "net_unblended_cost" in finding.message


def google(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(GOOGLE | row) + "\n" for row in rows))
    return path


def credit(kind: str, amount: float) -> list[dict[str, object]]:
    return [{"name": "c", "full_name": "c", "id": "c", "type": kind, "amount": amount}]


def test_google_promotions_are_credits_and_discounts_are_not(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"credits": credit("PROMOTION", -1.5)},
        {"credits": credit("SUSTAINED_USAGE_DISCOUNT", -0.5)},
    ]
    with open_bill([google(tmp_path / "export.json", *rows)]) as bill:
        assert sums(bill, "ChargeCategory = 'Credit'") == (-1.5, -1.5)
        assert sums(bill, "ChargeCategory = 'Usage'") == (3.5, 3.5)
        assert bill.engine.query("SELECT SUM(ConsumedQuantity) AS q FROM focus")["q"][0] == 7200.0
    cells = [row["credits"] for row in rows]
    flat = [FLAT | {"credits": json.dumps(cell)} for cell in cells]
    with open_bill([write_rows(tmp_path / "flat.csv", flat)]) as bill:
        assert sums(bill, "ChargeCategory = 'Credit'") == (-1.5, -1.5)


def test_google_commitments_save_what_their_fee_leaves(tmp_path: Path) -> None:
    """A fee of 1.20 covers use of 3.00 at list: the rate is 60 %, not the 100 % of the covered use alone."""
    from planner.finops.review.answer import review_bill

    core = {
        "sku": {"id": "s", "description": "N2 Instance Core"},
        "cost": 3.0,
        "cost_at_list": 3.0,
        "credits": [],
    }
    paid = core | {"credits": credit("COMMITTED_USAGE_DISCOUNT", -3.0)}
    fee = {"sku": {"id": "c", "description": "Commitment v1: N2 Cpu for 1 Year"}, "cost": 1.2, "cost_at_list": 1.2,
           "credits": [], "subscription": {"instance_id": "sub-1"}}  # fmt: skip
    newer = core | {"cost": 1.2, "cost_at_effective_price_default": 3.0}
    spent = fee | {"cost": 1.5, "credits": credit("FEE_UTILIZATION_OFFSET", -1.5)}
    for rows in ([paid, fee], [newer, spent]):
        with open_bill([google(tmp_path / "export.json", *rows)]) as bill:
            row = one(bill, "ChargeCategory = 'Usage'")
            assert (row["PricingCategory"], row["CommitmentDiscountStatus"]) == ("Committed", "Used")
            assert (row["ListCost"], row["ContractedCost"]) == (3.0, 3.0)
            assert one(bill, "ChargeCategory = 'Purchase'")["CommitmentDiscountId"] == "sub-1"
            found = {figure.key: figure for part in review_bill(bill).sections for figure in part.figures}
        assert found["esr_list_ratio"].value == pytest.approx(0.6)
        assert found["esr_contract_ratio"].value == pytest.approx(0.6)
        assert found["commitment_coverage_ratio"].value == 1.0
        assert found["commitment_utilisation_ratio"].status == "withheld"  # the export does not tell it


def test_google_labels_of_resource_tags_and_project_are_one_and_a_key_given_twice_breaks_nothing(
    tmp_path: Path,
) -> None:
    project = {
        "id": "p",
        "labels": [{"key": "team", "value": "of the project"}, {"key": "unit", "value": "ml"}],
    }
    twice = [{"key": "env", "value": "prod"}, {"key": "env", "value": "test"}]
    tags = [{"key": "unit", "value": "ai", "inherited": True, "namespace": "n"}]
    path = google(tmp_path / "a.json", {"labels": twice, "project": project, "tags": tags})
    with open_bill([path]) as bill:
        tags_read = json.loads(bill.engine.query("SELECT Tags FROM focus")["Tags"][0])
    assert tags_read == {"team": "of the project", "unit": "ai", "env": "prod"}
    flat = [FLAT | {"labels": json.dumps(twice)}]
    with open_bill([write_rows(tmp_path / "flat.csv", flat)]) as bill:
        assert bill.engine.query("SELECT Tags FROM focus")["Tags"][0] == '{"env":"prod"}'


def test_google_credits_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    rows = [FLAT, FLAT | {"credits": "none at all", "labels": "{broken"}, FLAT | {"credits": "[]"}]
    with open_bill([write_rows(tmp_path / "flat.csv", rows)]) as bill:
        (finding,) = bill.findings
        assert (finding.code, finding.rows) == ("bad_cells", 1)
        assert "flat.csv:3: credits: must be a number" in finding.message
        assert sums(bill) == (1.25 + 2.0 + 2.0, 1.25 + 2.0 + 2.0)


def test_tags_given_as_pairs_may_repeat_a_key(tmp_path: Path) -> None:
    target = tmp_path / "bill.parquet"
    duckdb.connect().sql(
        "SELECT TIMESTAMP '2026-10-05' AS ChargePeriodStart, 'Usage' AS ChargeCategory, 1.0 AS BilledCost, "
        "1.0 AS EffectiveCost, 1.0 AS ListCost, 1.0 AS ContractedCost, 'USD' AS BillingCurrency, "
        "[{'key': 'team', 'value': 'a', 'x': 1}, {'key': 'team', 'value': 'b', 'x': 2}] AS Tags"
    ).write_parquet(str(target))
    with open_bill([target]) as bill:
        assert bill.engine.query("SELECT Tags FROM focus")["Tags"][0] == '{"team":"a"}'


def test_accelerators_are_counted(tmp_path: Path) -> None:
    from planner.finops.review.answer import review_bill

    gpu = {"sku": {"id": "g", "description": "Nvidia Tesla A100 GPU running in Americas"}, "credits": []}
    core = {"sku": {"id": "c", "description": "A2 Instance Core running in Americas"}, "credits": []}
    none = CUR[0] | {"product/gpu": "NA", "product/instanceType": "m5.large"}
    google_bill = google(tmp_path / "google.json", gpu, gpu, core)
    # eight each of one hour on demand, under the plan and reserved; fees and negations are no machines
    for path, hours in ((cur(tmp_path / "cur.csv", [*CUR, none]), 24), (google_bill, 2)):
        with sections_only("gpu"), open_bill([path]) as bill:
            found = {
                figure.key: figure.value for part in review_bill(bill).sections for figure in part.figures
            }
        assert found["gpu_hours"] == hours


def test_machines_of_exports_that_do_not_count_their_gpus(tmp_path: Path) -> None:
    """Their GPU-hours were not counted, and a small machine's discount was promised for them."""

    def typed(**more: str) -> dict[str, str]:
        return CUR[0] | {"product/gpu": "", "product/instanceType": "p4de.24xlarge"} | more

    aws = cur(
        tmp_path / "cur.csv",
        [typed(), typed(**{"product/gpu": "4"}), typed(**{"product/instanceType": "r6i.large"})],
    )
    info = '"UsageType":"ComputeHR","ServiceType":"Standard_ND96isr_H100_v5","VCPUs":96'
    azure = write_rows(
        tmp_path / "azure.csv", [AZURE | {"AdditionalInfo": one} for one in (f"{{{info}}}", info, "")]
    )
    for path, gpus in ((aws, [8, 4, None]), (azure, [8, 8, None])):
        with open_bill([path]) as opened:
            found = opened.engine.rows("SELECT JSON_EXTRACT_STRING(SkuPriceDetails, '$.GpuCount') FROM focus")
        assert sorted(float(count) for (count,) in found if count) == sorted(filter(None, gpus))
        assert len(found) == 3
