"""Reservations and savings plans of the company: who they cover, what is used, what is wasted, how they are paid."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np

from catalogs.tables.table import Floats, Ints
from tests.focus_company import fields
from tests.focus_company.catalogue import AWS, GOOGLE, MICROSOFT, SKUS, Sku
from tests.focus_company.ledger import Ledger, days_in, next_month

VM_ACCOUNT = 0


@dataclass(frozen=True)
class Commitment:
    """One commitment discount.

    Attributes:
        rate_ratio: its price over the list price; `level`: pricing units per day over the covered resources' usual
            weekday (1.0 covers an average weekday exactly).
        spend: committed in money (savings plan), else in hours.
        upfront: paid at once at the start, else monthly.
    """

    id: str
    name: str
    kind: str
    provider: str
    sku_code: str
    region: int
    rate_ratio: float
    level: float
    spend: bool
    upfront: bool
    start: date
    end: date

    def covers(self, sku: Sku, region: int, holder: int) -> bool:
        """Whether this use is covered by it."""
        return (sku.code, region, holder) == (self.sku_code, self.region, VM_ACCOUNT)

    @property
    def contract_id(self) -> str:
        """The contract it belongs to."""
        return f"CONTRACT-{self.id.rsplit('/', 1)[-1]}"

    def fields(self) -> dict[str, Any]:
        """FOCUS columns that name it."""
        return {
            "CommitmentDiscountId": self.id, "CommitmentDiscountName": self.name, "CommitmentDiscountType": self.kind,
            "CommitmentDiscountCategory": "Spend" if self.spend else "Usage",
            "CommitmentDiscountUnit": "USD" if self.spend else "Hours",
        }  # fmt: skip


def company_commitments(months: tuple[date, ...]) -> tuple[Commitment, ...]:
    """Four commitments: one ends 45 days after the newest month, one is bought in the middle of the months."""
    end = next_month(months[-1])
    bought = months[len(months) // 2]
    long_ago = months[0] - timedelta(days=200)
    return (
        Commitment("arn:aws:ec2:us-east-1:900000000001:reserved-instances/ri-0001", "EC2 RI 1yr No Upfront",
                   "Reserved Instance", AWS, "aws-vm", 0, 0.62, 0.9, False, False, long_ago,
                   long_ago + timedelta(days=365)),
        Commitment("arn:aws:savingsplans::900000000001:savingsplan/sp-0001", "Compute Savings Plan 1yr",
                   "Savings Plan", AWS, "aws-vm-big", 0, 0.72, 0.5, True, False, long_ago,
                   long_ago + timedelta(days=900)),
        Commitment("projects/northwind/regions/us-central1/commitments/cud-0001", "CUD 1yr", "Committed Use Discount",
                   GOOGLE, "gcp-vm", 0, 0.65, 1.3, False, False, end - timedelta(days=320), end + timedelta(days=45)),
        Commitment("providers/Microsoft.Capacity/reservationOrders/res-0001", "VM reservation 1yr upfront",
                   "Reservation", MICROSOFT, "az-vm", 0, 0.6, 0.7, False, True, bought,
                   date(bought.year + 1, bought.month, 1)),
    )  # fmt: skip


def daily_units(one: Commitment, resources: int) -> float:
    """Pricing units (hours) that it pays for each day."""
    sku = next(s for s in SKUS if s.code == one.sku_code)
    return round(one.level * sku.per_resource * resources, 4)


def _applied(one: Commitment, unit: str) -> str:
    element = {
        "ContractId": one.contract_id,
        "ContractCommitmentId": one.id,
        "ContractCommitmentAppliedUnit": unit,
    }
    return json.dumps({"Elements": [element]}, separators=(",", ":"))


def apply_commitment(
    ledger: Ledger, one: Commitment, named: dict[str, Any], month: date, quantity: Floats, day: Ints, number: Ints,
    tag: Ints, listed: float, contracted: float,
) -> Floats:  # fmt: skip
    """Add the covered part, the unused part and the purchase; return what is left to pay on demand.

    Each row of a day is covered by the same share: min(1, committed / used).
    """
    if not one.start <= month:
        return quantity
    days, resources = days_in(month), int(number.max()) + 1
    committed = daily_units(one, resources)
    rate = round(listed * one.rate_ratio, 12)
    used = np.bincount(day, weights=quantity, minlength=days)
    share = np.minimum(1.0, committed / used)
    covered = np.round(quantity * share[day], 4)
    spare = np.maximum(0.0, np.round(committed - np.bincount(day, weights=covered, minlength=days), 4))
    common = {
        **named,
        **one.fields(),
        "PricingCategory": "Committed",
        "ContractApplied": _applied(one, "Hours"),
    }
    unit_value = rate if one.spend else 1.0
    ledger.add(
        {**common, "CommitmentDiscountStatus": "Used", "SkuPriceId": f"{named['SkuId']}-committed",
         "_commitment_unit": unit_value},
        month, day=day, resource=number, tag=tag, quantity=covered, listed=covered * listed,
        contracted=covered * contracted, effective=covered * rate, billed=0.0, commitment=one, status="Used",
        eligible=True,
    )  # fmt: skip
    idle = spare > 0
    ledger.add(
        {**common, "CommitmentDiscountStatus": "Unused", "SkuPriceId": f"{named['SkuId']}-committed",
         "ConsumedUnit": None, "_consumed": False, "_commitment_unit": unit_value, "_resource_id": one.id,
         "ResourceName": one.name, "ResourceType": one.kind, "AvailabilityZone": None,
         "ChargeDescription": f"{one.name} unused"},
        month, day=np.flatnonzero(idle), quantity=spare[idle], listed=spare[idle] * listed,
        contracted=spare[idle] * contracted, effective=spare[idle] * rate, billed=0.0, commitment=one,
        status="Unused",
    )  # fmt: skip
    _purchase(ledger, one, named, month, committed, rate, unit_value)
    left: Floats = np.round(quantity - covered, 4)
    return left


def _purchase(
    ledger: Ledger,
    one: Commitment,
    named: dict[str, Any],
    month: date,
    committed: float,
    rate: float,
    value: float,
) -> None:
    """Monthly fee, or the whole price at the start; its effective cost is 0: use carries it."""
    if one.upfront and month != one.start:
        return
    span = (one.end - one.start).days if one.upfront else days_in(month)
    units = committed * span
    cost = units * rate
    keep = ("RegionId", "RegionName", "SubAccountId", "SubAccountName", "SubAccountType")
    bought = {
        **fields.base(one.provider), **{k: named[k] for k in keep}, **one.fields(),
        "ServiceName": named["ServiceName"], "ServiceCategory": named["ServiceCategory"],
        "ServiceSubcategory": named["ServiceSubcategory"], "SkuId": f"{named['SkuId']}-commitment",
        "SkuMeter": "Commitment", "SkuPriceId": f"{named['SkuId']}-commitment-1y", "PricingCategory": "Standard",
        "PricingUnit": "Hours", "ListUnitPrice": rate, "ContractedUnitPrice": rate, "ResourceName": one.name,
        "ResourceType": one.kind, "ChargeCategory": "Purchase", "_resource_id": one.id,
        "ChargeFrequency": "One-Time" if one.upfront else "Recurring", "ChargeDescription": f"{one.name} purchase",
        "ContractApplied": _applied(one, "Hours"), "_commitment_unit": value,
    }  # fmt: skip
    ledger.add(
        bought, month, day=0, quantity=units, listed=cost, contracted=cost, effective=0.0, billed=cost,
        span_days=span, commitment=one, purchase=True,
    )  # fmt: skip


def list_rate(one: Commitment) -> float:
    """Its price per hour at the SKU's first list price."""
    return next(s for s in SKUS if s.code == one.sku_code).list_price * one.rate_ratio
