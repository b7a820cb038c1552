"""Columns of each FOCUS version, in alphabetical order as the specification lists them."""

from __future__ import annotations


def names(text: str) -> list[str]:
    """Column names apart."""
    return text.split()


VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")
_V10 = names(
    "AvailabilityZone BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd "
    "BillingPeriodStart ChargeCategory ChargeClass ChargeDescription ChargeFrequency ChargePeriodEnd "
    "ChargePeriodStart CommitmentDiscountCategory CommitmentDiscountId CommitmentDiscountName "
    "CommitmentDiscountStatus CommitmentDiscountType ConsumedQuantity ConsumedUnit ContractedCost "
    "ContractedUnitPrice EffectiveCost InvoiceIssuerName ListCost ListUnitPrice PricingCategory PricingQuantity "
    "PricingUnit ProviderName PublisherName RegionId RegionName ResourceId ResourceName ResourceType "
    "ServiceCategory ServiceName SkuId SkuPriceId SubAccountId SubAccountName Tags"
)
_V11 = names(
    "CapacityReservationId CapacityReservationStatus CommitmentDiscountQuantity CommitmentDiscountUnit "
    "ServiceSubcategory SkuMeter SkuPriceDetails"
)
_V12 = names(
    "BillingAccountType InvoiceId PricingCurrency PricingCurrencyContractedUnitPrice PricingCurrencyEffectiveCost "
    "PricingCurrencyListUnitPrice SubAccountType"
)
_V13 = names(
    "AllocatedMethodDetails AllocatedMethodId AllocatedResourceId AllocatedResourceName AllocatedTags "
    "ContractApplied HostProviderName ServiceProviderName"
)
_V14 = names("CommitmentProgramEligibilityDetails InvoiceDetailId")
_GONE_14 = {"ProviderName", "PublisherName"}
NUMBERS = frozenset(
    names(
        "BilledCost CommitmentDiscountQuantity ConsumedQuantity ContractedCost ContractedUnitPrice EffectiveCost "
        "ListCost ListUnitPrice PricingCurrencyContractedUnitPrice PricingCurrencyEffectiveCost "
        "PricingCurrencyListUnitPrice PricingQuantity"
    )
)
TIMES = ("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd")


def columns(version: str) -> list[str]:
    """Columns of the Cost and Usage dataset of a version.

    Raises:
        ValueError: there is no such version.
    """
    place = VERSIONS.index(version)
    found = [*_V10, *(n for part in (_V11, _V12, _V13, _V14)[:place] for n in part)]
    return sorted(set(found) - (_GONE_14 if version == "1.4" else set()))
