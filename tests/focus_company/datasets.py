"""The other FOCUS datasets: ContractCommitment (1.3, 1.4), InvoiceDetail and BillingPeriod (1.4)."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from tests.focus_company.commitments import Commitment, daily_units, list_rate
from tests.focus_company.ledger import Ledger, next_month
from tests.focus_company.write import invoice_id


def _time(day: date) -> str:
    return f"{day.isoformat()}T00:00:00Z"


def _save(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, sorted(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_commitments(
    out: Path, version: str, commitments: Sequence[Commitment], resources: dict[str, int]
) -> Path:
    """The ContractCommitment dataset: 13 columns in 1.3, 30 in 1.4."""
    rows = []
    for one in commitments:
        days = (one.end - one.start).days
        units = daily_units(one, resources[one.id]) * days
        cost = units * list_rate(one)
        row: dict[str, Any] = {
            "ContractCommitmentId": one.id, "ContractCommitmentType": one.kind,
            "ContractCommitmentCategory": "Spend" if one.spend else "Usage", "ContractCommitmentCost": cost,
            "ContractCommitmentQuantity": "" if one.spend else units,
            "ContractCommitmentUnit": "" if one.spend else "Hours", "ContractCommitmentDescription": one.name,
            "ContractCommitmentPeriodStart": _time(one.start), "ContractCommitmentPeriodEnd": _time(one.end),
            "ContractId": one.contract_id, "ContractPeriodStart": _time(one.start), "ContractPeriodEnd": _time(one.end),
            "BillingCurrency": "USD",
        }  # fmt: skip
        if version == "1.4":
            row |= {
                "ContractCommitmentApplicability": '{"IsComplexScope":true}',
                "ContractCommitmentBenefitCategory": "Discount", "ContractCommitmentCreated": _time(one.start),
                "ContractCommitmentDiscountPercentage": round(1 - one.rate_ratio, 4),
                "ContractCommitmentDurationType": "1 Year", "ContractCommitmentFulfillmentInterval": "Hourly",
                "ContractCommitmentLastUpdated": _time(one.start), "ContractCommitmentLifecycleStatus": "Active",
                "ContractCommitmentModel": "Continuous", "ContractCommitmentOfferCategory": "Public",
                "ContractCommitmentPaymentInterval": "One-Time" if one.upfront else "Monthly",
                "ContractCommitmentPaymentModel": "All Upfront" if one.upfront else "No Upfront",
                "ContractCommitmentPaymentUpfrontPercentage": 1 if one.upfront else 0,
                "InvoiceIssuerName": one.provider, "PricingCurrency": "USD",
                "PricingCurrencyContractCommitmentCost": cost, "ServiceProviderName": one.provider,
            }  # fmt: skip
        rows.append(row)
    return _save(out / f"contract-commitment-{version}.csv", rows)


def write_invoices(out: Path, ledger: Ledger) -> Path:
    """The InvoiceDetail dataset: what each invoice says per charge category (equal to the bill, by construction)."""
    sums: dict[tuple[str, date, str], float] = defaultdict(float)
    accounts = {}
    for block in ledger.blocks:
        issuer = block.fields["InvoiceIssuerName"]
        sums[issuer, block.billing_month, block.fields["ChargeCategory"]] += float(block.billed.sum())
        accounts[issuer] = block.fields["BillingAccountId"]
    rows = []
    for (issuer, month, category), billed in sorted(sums.items()):
        invoice, end = invoice_id(issuer, month), next_month(month)
        rows.append({
            "BilledCost": repr(billed), "BillingAccountId": accounts[issuer], "BillingCurrency": "USD",
            "BillingPeriodStart": _time(month), "BillingPeriodEnd": _time(end), "ChargeCategory": category,
            "InvoiceDetailCreated": _time(end), "InvoiceDetailDescription": f"{category} of {invoice}",
            "InvoiceDetailGrain": '{"x_GroupedBy":"ChargeCategory"}',
            "InvoiceDetailId": f"{invoice}-{category.upper()[:3]}", "InvoiceDetailLastUpdated": _time(end),
            "InvoiceId": invoice, "InvoiceIssueDate": _time(end), "InvoiceIssueStatus": "Issued",
            "InvoiceIssuerName": issuer, "PaymentDueDate": "", "PaymentTerms": "Net 30", "PaymentCurrency": "USD",
            "PaymentCurrencyBilledCost": repr(billed), "PurchaseOrderNumber": "", "ReferenceInvoiceId": invoice,
            "PaymentCurrencyInvoiceDetailId": f"{invoice}-{category.upper()[:3]}",
        })  # fmt: skip
    return _save(out / "invoice-detail-1.4.csv", rows)


def write_periods(out: Path, ledger: Ledger) -> Path:
    """The BillingPeriod dataset; the newest month is still open."""
    keys = sorted({(b.fields["InvoiceIssuerName"], b.billing_month) for b in ledger.blocks})
    newest = max(month for _, month in keys)
    rows = [
        {
            "BillingPeriodCreated": _time(month), "BillingPeriodStart": _time(month),
            "BillingPeriodEnd": _time(next_month(month)), "BillingPeriodLastUpdated": _time(next_month(month)),
            "BillingPeriodStatus": "Open" if month == newest else "Closed", "InvoiceIssuerName": issuer,
        }
        for issuer, month in keys
    ]  # fmt: skip
    return _save(out / "billing-period-1.4.csv", rows)
