"""What a bill holds beside use: credits, corrections, tax, marketplace, tokens, split costs, capacity reservations."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import numpy as np

from tests.focus_company import fields
from tests.focus_company.catalogue import AWS, CLOUDS, GOOGLE, MICROSOFT, SKUS
from tests.focus_company.ledger import Ledger, days_in
from tests.focus_company.usage import list_price

TAX_RATIO = 0.05
TOKEN_USD = 2.0
CREDITS = {AWS: 150.0, GOOGLE: 90.0, MICROSOFT: 60.0}
SPLIT = (("orders", "payments", 0.5), ("catalogue", "search", 0.3), ("jobs", "platform", 0.2))


def add_extras(ledger: Ledger, month: date, offset: int, first: bool) -> None:
    """Everything but use, commitments and training runs; tax comes last, on what is billed."""
    for provider in CLOUDS:
        _credit(ledger, provider, month)
        _support(ledger, provider, month)
        if not first:
            _correction(ledger, provider, month, offset)
    _marketplace(ledger, month)
    _tokens(ledger, month, first)
    _split(ledger, month)
    _capacity(ledger, month)


def _credit(ledger: Ledger, provider: str, month: date) -> None:
    named = {
        **fields.base(provider), "ChargeCategory": "Credit", "ChargeFrequency": "One-Time", "ServiceName": "Credits",
        "ServiceCategory": "Other", "ServiceSubcategory": "Other (Other)",
        "ChargeDescription": "Promotional credit",
    }  # fmt: skip
    cost = -CREDITS[provider]
    ledger.add(named, month, day=9, quantity=np.nan, listed=0.0, contracted=0.0, effective=cost, billed=cost)


def _support(ledger: Ledger, provider: str, month: date) -> None:
    """A fixed fee: one unit per month."""
    named = {
        **fields.base(provider), **fields.account(provider, 0), "ServiceName": f"{provider} Support",
        "ServiceCategory": "Other", "ServiceSubcategory": "Other (Other)", "SkuId": f"SKU-{provider[:3]}-support",
        "SkuPriceId": f"SKU-{provider[:3]}-support-m", "SkuMeter": "Support", "PricingUnit": "Months",
        "PricingCategory": "Standard", "ListUnitPrice": 400.0, "ContractedUnitPrice": 400.0,
        "ChargeFrequency": "Recurring", "ChargeCategory": "Purchase", "ChargeDescription": "Support plan",
    }  # fmt: skip
    ledger.add(
        named, month, day=0, quantity=1.0, listed=400.0, contracted=400.0, effective=400.0, billed=400.0,
        span_days=days_in(month),
    )  # fmt: skip


def _correction(ledger: Ledger, provider: str, month: date, offset: int) -> None:
    """Two refunds and one late charge for use of the month before, on this month's invoice."""
    before = date(month.year - (month.month == 1), (month.month - 2) % 12 + 1, 1)
    sku = next(s for s in SKUS if s.provider == provider and s.service and s.code.endswith("-vm"))
    listed = list_price(sku, offset - 1)
    contracted = round(listed * sku.contract_ratio, 12)
    named = {
        **fields.base(provider), **fields.account(provider, 1), **fields.region(provider, 0, "b"),
        **fields.sku_fields(sku, listed, contracted), "ChargeClass": "Correction",
        "ChargeDescription": f"Correction of {before:%Y-%m}", "_resource": f"{sku.code}-01-",
    }  # fmt: skip
    q = np.array([-12.0, -3.5, 6.25])
    tag = ledger.tag(team="platform", env="prod", application="core")
    ledger.add(
        named, before, day=np.array([3, 11, 20]), resource=0, tag=tag, quantity=q, listed=q * listed,
        contracted=q * contracted, effective=q * contracted, billed=q * contracted, billing_month=month,
        eligible=True,
    )  # fmt: skip


def add_tax(ledger: Ledger, month: date) -> None:
    """Tax of each issuer on what it billed for the month."""
    issuers = sorted({b.fields["InvoiceIssuerName"] for b in ledger.blocks})
    for issuer in issuers:
        due = sum(
            float(b.billed.sum())
            for b in ledger.blocks
            if b.billing_month == month and b.fields["InvoiceIssuerName"] == issuer
        )
        tax = round(TAX_RATIO * due, 6)
        named = {
            **fields.base(issuer), "ChargeCategory": "Tax", "ChargeFrequency": "Recurring", "ServiceName": "Tax",
            "ServiceCategory": "Other", "ServiceSubcategory": "Other (Other)", "ChargeDescription": "Sales tax",
        }  # fmt: skip
        ledger.add(
            named, month, day=days_in(month) - 1, quantity=np.nan, listed=tax, contracted=tax, effective=tax,
            billed=tax, tax=True,
        )  # fmt: skip


def _marketplace(ledger: Ledger, month: date) -> None:
    named = {
        **fields.base("Brightwall Security", issuer=AWS, host=AWS), **fields.account(AWS, 0),
        **fields.region(AWS, 0), "ServiceName": "Brightwall Firewall", "ServiceCategory": "Security",
        "ServiceSubcategory": "Threat Detection and Response", "SkuId": "SKU-bw-1", "SkuPriceId": "SKU-bw-1-m",
        "SkuMeter": "Licence", "PricingUnit": "Licences", "PricingCategory": "Standard", "ListUnitPrice": 25.0,
        "ContractedUnitPrice": 22.0, "ChargeCategory": "Purchase", "ChargeFrequency": "Recurring",
        "ChargeDescription": "Firewall licences", "ResourceName": "firewall", "ResourceType": "Licence",
        "_resource_id": "marketplace/brightwall/1",
    }  # fmt: skip
    tag = ledger.tag(team="platform", env="prod", application="core")
    ledger.add(
        named, month, day=0, tag=tag, quantity=20.0, listed=500.0, contracted=440.0, effective=440.0, billed=440.0,
        span_days=days_in(month),
    )  # fmt: skip


def _tokens(ledger: Ledger, month: date, first: bool) -> None:
    """A SaaS bought in tokens (virtual currency): tokens are paid at once, use carries the effective cost."""
    named = {
        **fields.base("Quillmind"), "SubAccountId": "quillmind-1", "SubAccountName": "ml-research",
        "SubAccountType": "Workspace", "ServiceName": "Quillmind Inference",
        "ServiceCategory": "AI and Machine Learning", "ServiceSubcategory": "Generative AI",
        "PricingCategory": "Standard",
    }  # fmt: skip
    if first:
        bought = {
            **named, "ChargeCategory": "Purchase", "ChargeFrequency": "One-Time", "SkuId": "SKU-qm-token",
            "SkuPriceId": "SKU-qm-token-1", "PricingUnit": "Token", "ListUnitPrice": TOKEN_USD * 1.25,
            "ContractedUnitPrice": TOKEN_USD, "ChargeDescription": "Token Purchase",
            "ResourceName": "Quillmind tokens", "ResourceType": "Token Allocation", "_resource_id": "quillmind/tokens",
        }  # fmt: skip
        n = 10_000.0
        ledger.add(
            bought, month, day=0, quantity=n, listed=n * TOKEN_USD * 1.25, contracted=n * TOKEN_USD, effective=0.0,
            billed=n * TOKEN_USD, span_days=365, prepaid=True,
        )  # fmt: skip
    used = {
        **named, "SkuId": "SKU-qm-answer", "SkuPriceId": "SKU-qm-answer-1", "SkuMeter": "Answers",
        "PricingUnit": "Executions", "ConsumedUnit": "Executions", "_consumed": True, "PricingCurrency": "Token",
        "PricingCurrencyListUnitPrice": 0.02, "PricingCurrencyContractedUnitPrice": 0.02,
        "ListUnitPrice": 0.02 * TOKEN_USD * 1.25, "ContractedUnitPrice": 0.02 * TOKEN_USD,
        "_pricing_ratio": 1 / TOKEN_USD, "ChargeDescription": "Token Consumption - answers",
        "ResourceName": "answers", "ResourceType": "Endpoint", "_resource_id": "quillmind/answers",
    }  # fmt: skip
    days = np.arange(days_in(month))
    q = 800.0 + 25.0 * (days % 7)
    price = 0.02 * TOKEN_USD
    ledger.add(
        used, month, day=days, tag=ledger.tag(team="search", env="prod", application="finder"), quantity=q,
        listed=q * price * 1.25, contracted=q * price, effective=q * price, billed=0.0,
    )  # fmt: skip


def _split(ledger: Ledger, month: date) -> None:
    """A shared Kubernetes host, split to its workloads by the provider (FOCUS 1.3)."""
    sku = next(s for s in SKUS if s.code == "aws-vm")
    listed = sku.list_price
    contracted = listed * sku.contract_ratio
    days = np.arange(days_in(month))
    for workload, team, ratio in SPLIT:
        method = {"Elements": [{"AllocatedRatio": ratio, "UsageUnit": "Hours", "UsageQuantity": 24 * ratio}]}
        tags = {"team": team, "env": "prod", "application": "shared"}
        named = {
            **fields.base(AWS), **fields.account(AWS, 0), **fields.region(AWS, 1, "a"),
            **fields.sku_fields(sku, listed, contracted), "ResourceName": "shared-host-1",
            "_resource_id": "aws/shared-host-1", "AllocatedMethodId": "split-proportional",
            "AllocatedMethodDetails": json.dumps(method, separators=(",", ":")),
            "AllocatedResourceId": f"aws/shared-host-1/{workload}", "AllocatedResourceName": workload,
            "AllocatedTags": json.dumps(tags, separators=(",", ":")),
            "ChargeDescription": "Shared host split to workloads",
        }  # fmt: skip
        q = 24.0 * ratio
        ledger.add(
            named, month, day=days, tag=ledger.tag(**tags), quantity=q, listed=q * listed,
            contracted=q * contracted, effective=q * contracted, billed=q * contracted, eligible=True,
        )  # fmt: skip


def _capacity(ledger: Ledger, month: date) -> None:
    """A capacity reservation of two GPU machines for 8 hours a day: 6 used, 2 idle."""
    sku = next(s for s in SKUS if s.code == "aws-gpu")
    price = sku.list_price * sku.contract_ratio
    days = np.arange(days_in(month))
    programs = {
        "CommitmentPrograms": [{"ProgramType": "Capacity Reservation"}, {"ProgramType": "Savings Plan"}]
    }
    for status, hours in (("Used", 12.0), ("Unused", 4.0)):
        named: dict[str, Any] = {
            **fields.base(AWS), **fields.account(AWS, 2), **fields.region(AWS, 0, "c"),
            **fields.sku_fields(sku, sku.list_price, price), "CapacityReservationId": "cr-0001",
            "CapacityReservationStatus": status, "ResourceName": "gpu-reservation", "_resource_id": "aws/cr-0001",
            "CommitmentProgramEligibilityDetails": json.dumps(programs, separators=(",", ":")),
        }  # fmt: skip
        if status == "Unused":
            named |= {"_consumed": False, "ConsumedUnit": None}
        ledger.add(
            named, month, day=days, tag=ledger.tag(team="research", env="dev", application="lab"), quantity=hours,
            listed=hours * sku.list_price, contracted=hours * price, effective=hours * price, billed=hours * price,
            eligible=True, gpus=8, capacity=status,
        )  # fmt: skip
