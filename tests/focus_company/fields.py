"""The columns that all rows of a line share."""

from __future__ import annotations

import json
from typing import Any

from tests.focus_company.catalogue import (
    BILLING_ACCOUNTS,
    PROGRAMS,
    REGIONS,
    SUB_ACCOUNT_TYPES,
    SUB_ACCOUNTS,
    Sku,
)


def base(provider: str, issuer: str | None = None, host: str | None = None) -> dict[str, Any]:
    """Who sells, who hosts, who sends the invoice, to which billing account."""
    issuer = issuer or provider
    account, name, kind = BILLING_ACCOUNTS.get(
        issuer, (f"acct-{issuer.lower()}", f"Northwind at {issuer}", "Account")
    )
    return {
        "ProviderName": provider, "PublisherName": provider, "ServiceProviderName": provider,
        "HostProviderName": host or provider, "InvoiceIssuerName": issuer, "BillingAccountId": account,
        "BillingAccountName": name, "BillingAccountType": kind, "BillingCurrency": "USD", "PricingCurrency": "USD",
        "ChargeFrequency": "Usage-Based", "ChargeCategory": "Usage",
    }  # fmt: skip


def account(provider: str, number: int) -> dict[str, Any]:
    """The sub account of that number."""
    name = SUB_ACCOUNTS[number]
    return {
        "SubAccountId": f"{provider.split()[0].lower()}-{number + 1:03d}", "SubAccountName": name,
        "SubAccountType": SUB_ACCOUNT_TYPES.get(provider, "Workspace"),
    }  # fmt: skip


def region(provider: str, number: int, zone: str | None = None) -> dict[str, Any]:
    """Where, with the letter of the zone."""
    code, name = REGIONS[provider][number]
    return {"RegionId": code, "RegionName": name, "AvailabilityZone": f"{code}{zone}" if zone else None}


def sku_fields(
    sku: Sku, list_price: float | None, contracted_price: float | None, variant: str = "od"
) -> dict[str, Any]:
    """What is sold, at which unit prices."""
    eligible = {"CommitmentPrograms": [{"ProgramType": p} for p in PROGRAMS.get(sku.provider, ())]}
    return {
        "ServiceName": sku.service, "ServiceCategory": sku.category, "ServiceSubcategory": sku.subcategory,
        "SkuId": sku.sku_id, "SkuMeter": sku.meter, "SkuPriceId": f"{sku.sku_id}-{variant}",
        "SkuPriceDetails": json.dumps(sku.details, separators=(",", ":")) if sku.details else None,
        "PricingUnit": sku.unit, "ConsumedUnit": sku.unit, "PricingCategory": "Standard",
        "ListUnitPrice": list_price, "ContractedUnitPrice": contracted_price, "ResourceType": sku.resource_type,
        "ChargeDescription": f"{sku.service} {sku.meter.lower()} ({sku.code})",
        "CommitmentProgramEligibilityDetails": json.dumps(eligible, separators=(",", ":")) if sku.eligible else None,
        "_resource": f"{sku.code}-", "_consumed": True,
    }  # fmt: skip
