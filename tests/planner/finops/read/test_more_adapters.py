"""Exports of OCI, Snowflake, RunPod and Alibaba Cloud, in the columns that their documentation gives."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from planner.finops.read import open_bill

OCI = (
    "lineItem/referenceNo,lineItem/tenantId,lineItem/intervalUsageStart,lineItem/intervalUsageEnd,product/service,"
    "product/compartmentId,product/compartmentName,product/region,product/availabilityDomain,product/resourceId,"
    "usage/billedQuantity,usage/billedQuantityOverage,cost/subscriptionId,cost/productSku,product/Description,"
    "cost/unitPrice,cost/unitPriceOverage,cost/myCost,cost/myCostOverage,cost/currencyCode,cost/billingUnitReadable,"
    "cost/overageFlag,lineItem/isCorrection,lineItem/backreferenceNo,tags/Ops.team,tags/env\n"
    "r1,ocid1.tenancy,2026-10-01T00:00Z,2026-10-01T01:00Z,COMPUTE,c1,prod,us-ashburn-1,AD-1,ocid1.instance.a,"
    "8,0,sub,B98415,GPU - H100,10,0,80,0,USD,GPU HOURS,N,false,,ml,prod\n"
    "r2,ocid1.tenancy,2026-10-01T00:00Z,2026-10-01T01:00Z,BLOCK_STORAGE,c1,prod,us-ashburn-1,AD-1,vol,"
    "1,0,sub,B91961,Block Volume,2,0,-2,0,USD,ONE GiB MONTH STORAGE,N,true,r0,,\n"
)
SNOWFLAKE = (
    "ORGANIZATION_NAME,CONTRACT_NUMBER,ACCOUNT_NAME,ACCOUNT_LOCATOR,REGION,SERVICE_LEVEL,USAGE_DATE,USAGE_TYPE,USAGE,"
    "CURRENCY,USAGE_IN_CURRENCY,BALANCE_SOURCE,BILLING_TYPE,RATING_TYPE,SERVICE_TYPE,IS_ADJUSTMENT\n"
    "org,1,ana,AB1,AWS_US_EAST_1,Enterprise,2026-10-01,compute,10,USD,30,capacity,consumption,compute,COMPUTE,false\n"
    "org,1,ana,AB1,AWS_US_EAST_1,Enterprise,2026-10-01,storage,2,USD,46,overage,consumption,storage,STORAGE,false\n"
    "org,1,ana,AB1,AWS_US_EAST_1,Enterprise,2026-10-01,compute,1,USD,3,free usage,consumption,compute,COMPUTE,false\n"
    "org,1,ana,AB1,AWS_US_EAST_1,Enterprise,2026-10-01,adj,0,USD,-5,overage,rebate,compute,X,true\n"
)
RUNPOD = [
    {
        "amount": 55.2,
        "diskSpaceBilledGb": 50,
        "podId": "p1",
        "time": "2026-10-01T00:00:00Z",
        "timeBilledMs": 86_400_000,
    },
    {
        "amount": 4.8,
        "gpuTypeId": "NVIDIA H100 80GB HBM3",
        "time": "2026-10-02T00:00:00Z",
        "timeBilledMs": 7_200_000,
    },
]
ALIBABA = [
    {"BillAccountID": "1", "OwnerID": "2", "BillingDate": "2026-10-01", "ProductCode": "ecs", "ProductName": "ECS",
     "BillingItem": "instance", "InstanceID": "i-1", "InstanceSpec": "ecs.gn7i", "Region": "SG", "Currency": "USD",
     "PretaxGrossAmount": 100, "PretaxAmount": 80, "Usage": "24", "UsageUnit": "Hour", "Item": "PayAsYouGoBill",
     "SubscriptionType": "PayAsYouGo"},
    {"BillAccountID": "1", "OwnerID": "2", "BillingDate": "2026-10-01", "ProductCode": "oss", "ProductName": "OSS",
     "BillingItem": "plan", "InstanceID": "b", "Region": "Singapore", "Currency": "USD", "PretaxGrossAmount": 50,
     "PretaxAmount": 50, "Usage": "1", "UsageUnit": "Month", "Item": "SubscriptionOrder"},
]  # fmt: skip


def rows_of(path: Path) -> tuple[str, list[dict[str, Any]]]:
    with open_bill([path]) as bill:
        assert bill.months == (date(2026, 10, 1),) and not [
            one for one in bill.findings if one.severity == "error"
        ]
        frame = bill.engine.query("SELECT * FROM focus ORDER BY ChargePeriodStart, EffectiveCost DESC")
        return bill.currency, frame.to_dict("records")


def test_oci(tmp_path: Path) -> None:
    path = tmp_path / "reports_cost-csv_1.csv"
    path.write_text(OCI)
    currency, (gpu, disk) = rows_of(path)
    assert (currency, gpu["BilledCost"], gpu["EffectiveCost"], gpu["PricingQuantity"]) == ("USD", 80, 80, 8)
    assert (gpu["x_hours_of"], gpu["SubAccountName"], gpu["ServiceCategory"]) == ("gpu", "prod", "Compute")
    assert json.loads(gpu["Tags"]) == {"Ops.team": "ml", "env": "prod"}
    assert (disk["BilledCost"], disk["ChargeClass"], disk["ServiceCategory"]) == (-2, "Correction", "Storage")


def test_azure_pay_as_you_go(tmp_path: Path) -> None:
    names = (
        "SubscriptionGuid,ResourceGroup,ResourceLocation,UsageDateTime,MeterCategory,MeterSubcategory,MeterId,MeterName,"
        "UsageQuantity,ResourceRate,PreTaxCost,ConsumedService,InstanceId,Tags,Currency,UnitOfMeasure"
    )
    cells = (
        "sub-1,rg,US East,2026-10-01,Virtual Machines,NDv4,m-1,ND96,24,30,720,Microsoft.Compute,"
        '/subscriptions/sub-1/vm-1,"""team"": ""nlp""",EUR,1 Hour'
    )
    path = tmp_path / "usage.csv"
    path.write_text(f"{names}\n{cells}\n")
    currency, (row,) = rows_of(path)
    assert (currency, row["BilledCost"], row["EffectiveCost"], row["ContractedCost"]) == (
        "EUR",
        720,
        720,
        720,
    )
    assert (row["ChargeCategory"], row["ServiceCategory"], row["RegionId"]) == ("Usage", "Compute", "useast")
    assert (row["ResourceId"], json.loads(row["Tags"])) == ("/subscriptions/sub-1/vm-1", {"team": "nlp"})


def test_snowflake(tmp_path: Path) -> None:
    path = tmp_path / "usage.csv"
    path.write_text(SNOWFLAKE)
    _, rows = rows_of(path)
    found = [
        (row["ChargeCategory"], row["BilledCost"], row["EffectiveCost"], row["PricingUnit"]) for row in rows
    ]
    assert found == [
        ("Usage", 46, 46, "TB"), ("Usage", 0, 30, "Credits"), ("Usage", 0, 0, "Credits"), ("Credit", -5, -5, "Credits")
    ]  # fmt: skip
    assert [row["PricingCategory"] for row in rows[:2]] == ["Standard", "Committed"]


def test_the_part_of_cloud_services_that_is_included_is_a_correction(tmp_path: Path) -> None:
    """As use it was "negative cost outside credits": over a twentieth of a bill, everything was withheld.

    Views up to 2023 do not have the column IS_ADJUSTMENT.
    """
    path = tmp_path / "usage.csv"
    head, first, *_ = SNOWFLAKE.splitlines()
    taken_off = first.replace(",compute,10,USD,30,", ",overage-adj for incl cloud services,-1,USD,-3,")
    path.write_text("\n".join((head, first, taken_off)).replace(",IS_ADJUSTMENT", "").replace(",false", ""))
    _, rows = rows_of(path)
    assert {row["EffectiveCost"]: row["ChargeClass"] == "Correction" for row in rows} == {-3: True, 30: False}


@pytest.mark.parametrize("lines", [False, True])
def test_runpod(lines: bool, tmp_path: Path) -> None:
    path = tmp_path / "pods.json"
    path.write_text("\n".join(map(json.dumps, RUNPOD)) if lines else json.dumps(RUNPOD))
    currency, (first, second) = rows_of(path)
    assert (currency, first["BilledCost"], first["PricingQuantity"], first["ResourceId"]) == (
        "USD",
        55.2,
        24,
        "p1",
    )
    assert (second["SkuId"], second["PricingUnit"]) == ("NVIDIA H100 80GB HBM3", "Hours")


def test_alibaba(tmp_path: Path) -> None:
    path = tmp_path / "items.json"
    path.write_text(json.dumps(ALIBABA))
    _, (machine, plan) = rows_of(path)
    assert (machine["BilledCost"], machine["ListCost"], machine["PricingQuantity"]) == (80, 100, 24)
    assert (machine["ServiceCategory"], machine["SkuId"], machine["SubAccountId"]) == (
        "Compute",
        "ecs.gn7i",
        "2",
    )
    assert (plan["ChargeCategory"], plan["ServiceCategory"]) == ("Purchase", "Storage")
