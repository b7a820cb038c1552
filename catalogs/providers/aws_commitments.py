"""Savings Plans rates of one and three years, and Capacity Block offerings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from catalogs.offers.racks import rack_of
from catalogs.providers.aws_rows import (
    Price,
    Row,
    amount,
    changed,
    field,
    is_hourly,
    listed,
    payment_word,
    word,
)
from catalogs.providers.row_reader import RowReader, read_rows
from catalogs.tables.model import PurchaseOption

SAVINGS_API = "savingsplans:DescribeSavingsPlansOfferingRates"
BLOCK_API = "ec2:DescribeCapacityBlockOfferings"
_YEAR_S = 365 * 24 * 3600
_TERMS = {_YEAR_S: PurchaseOption.SAVINGS_PLAN_1Y, 3 * _YEAR_S: PurchaseOption.SAVINGS_PLAN_3Y}
_PLANS = {"Compute": "", "EC2Instance": "ec2_instance"}
_USUAL_PAYMENT = "no_upfront"


def savings_query(region: str, families: Sequence[str]) -> dict[str, Any]:
    """Arguments of the query for one region: Linux on shared machines of some families, both kinds of plan."""
    criteria = {
        "region": [region],
        "tenancy": ["shared"],
        "productDescription": ["Linux/UNIX"],
        "instanceFamily": list(families),
    }
    return {
        "savingsPlanTypes": list(_PLANS),
        "products": ["EC2"],
        "serviceCodes": ["AmazonEC2"],
        "operations": ["RunInstances"],
        "filters": [{"name": name, "values": values} for name, values in criteria.items()],
    }


def parse_savings_rates(
    payload: Mapping[str, Any],
    region: str,
    as_of: str,
    types: Collection[str],
    options: Collection[str],
    reader: RowReader | None = None,
) -> list[Row]:
    """Offers of a DescribeSavingsPlansOfferingRates answer.

    A rate is what one machine-hour takes from the commitment, whenever that is paid, so there is no upfront
    part beside it. The variant is empty for a Compute plan without upfront payment, `ec2_instance` for
    the plan bound to a family; other payments are named.

    Args:
        payload: the answer.
        region: region asked.
        as_of: ISO date of the answer.
        types: instance types wanted.
        options: purchase options wanted.
        reader: is told of rates that cannot be read; without it the first one is an error.

    Raises:
        SchemaChanged: naming the required field that is missing.
    """

    def rate_row(item: Mapping[str, Any]) -> Row | None:
        words = {
            field(pair, "name", f"{SAVINGS_API} properties", region): pair.get("value", "")
            for pair in listed(item, "properties", SAVINGS_API, region)
        }
        name = words.get("instanceType", "")
        if name not in types or words.get("region", region) != region or not _usual(item, words, region):
            return None
        plan = field(item, "savingsPlanOffering", SAVINGS_API, region)
        option = _TERMS.get(int(field(plan, "durationSeconds", SAVINGS_API, region)))
        kind = field(plan, "planType", SAVINGS_API, region)
        rate = amount(field(item, "rate", SAVINGS_API, region), "rate", SAVINGS_API, region)
        if option is None or kind not in _PLANS or option.value not in options or rate <= 0:
            return None
        payment = payment_word(field(plan, "paymentOption", SAVINGS_API, region))
        price = Price(
            region=region,
            instance_type=name,
            option=option,
            variant=_variant(_PLANS[kind], payment),
            per_hour=rate,
            currency=plan.get("currency") or "USD",
            source=SAVINGS_API,
            as_of=as_of,
        )
        return price.row()

    items = listed(payload, "searchResults", SAVINGS_API, region)
    rows = read_rows(reader, items, rate_row, lambda item: item.get("usageType") or item["rate"])
    return [row for row in rows if row is not None]


def _usual(item: Mapping[str, Any], words: Mapping[str, str], region: str) -> bool:
    """Linux on a shared machine in use, per hour; the server filters too."""
    usage = field(item, "usageType", SAVINGS_API, region).rpartition(":")[0]
    return (
        words.get("tenancy", "shared").lower() == "shared"
        and words.get("productDescription", "Linux/UNIX") == "Linux/UNIX"
        and item.get("operation", "RunInstances") == "RunInstances"
        and is_hourly(item.get("unit", "Hrs"))
        and usage.rpartition("-")[2] == "BoxUsage"  # UnusedBox and dedicated usage have other prices
    )


def _variant(plan: str, payment: str) -> str:
    if payment == _USUAL_PAYMENT:
        return plan
    return f"{plan or 'compute'}.{payment}"


def block_queries(instance_type: str) -> list[dict[str, Any]]:
    """Arguments that ask for blocks of a machine: by its type, or by the UltraServers that it is sold in."""
    rack = rack_of("aws", instance_type)
    if rack is None or not rack.sold_as:
        return [{"InstanceType": instance_type, "InstanceCount": 1}]
    return [{"UltraserverType": name, "UltraserverCount": 1} for name in rack.sold_as.split()]


def parse_blocks(
    payload: Mapping[str, Any],
    zones: Mapping[str, str],
    region: str,
    as_of: str,
    reader: RowReader | None = None,
) -> list[Row]:
    """Offers of a DescribeCapacityBlockOfferings answer: the block's fee per machine and hour.

    Args:
        payload: the answer.
        zones: zone name to zone id.
        region: region asked.
        as_of: ISO date of the answer.
        reader: is told of blocks that cannot be read; without it the first one is an error.

    Raises:
        SchemaChanged: naming the required field that is missing.
    """

    def block(item: Mapping[str, Any]) -> Row | None:
        fee = amount(field(item, "UpfrontFee", BLOCK_API, region), "UpfrontFee", BLOCK_API, region)
        count, hours = int(field(item, "InstanceCount", BLOCK_API, region)), _hours(item, region)
        if count <= 0 or hours <= 0:
            raise changed(BLOCK_API, "CapacityBlockDurationHours or InstanceCount", region)
        if fee <= 0:
            return None
        price = Price(
            region=region,
            instance_type=word(item, "InstanceType", BLOCK_API, region),
            zone=_zone(item, zones, region),
            option=PurchaseOption.CAPACITY_BLOCK,
            variant="",
            per_hour=fee / count / hours,
            currency=word(item, "CurrencyCode", BLOCK_API, region),
            source=BLOCK_API,
            as_of=as_of,
        )
        return price.row()

    items = listed(payload, "CapacityBlockOfferings", BLOCK_API, region)
    rows = read_rows(reader, items, block, lambda item: item["CapacityBlockOfferingId"])
    return [row for row in rows if row is not None]


def _hours(item: Mapping[str, Any], region: str) -> Decimal:
    """Hours that the fee is for: the duration asked, of which the machine is taken back half an hour early."""
    hours = item.get("CapacityBlockDurationHours")
    if not hours and item.get("CapacityBlockDurationMinutes"):
        return Decimal(item["CapacityBlockDurationMinutes"]) / 60
    return Decimal(field(item, "CapacityBlockDurationHours", BLOCK_API, region))


def _zone(item: Mapping[str, Any], zones: Mapping[str, str], region: str) -> str:
    """Zone id; "" where the answer names the region only."""
    if item.get("AvailabilityZoneId"):
        return str(item["AvailabilityZoneId"])
    name = field(item, "AvailabilityZone", BLOCK_API, region)
    if name == region:
        return ""
    if name not in zones:
        raise changed(BLOCK_API, f"AvailabilityZone ({name} has no id)", region)
    return zones[name]


def cheapest(rows: Iterable[Row]) -> list[Row]:
    """One row per key, the cheapest: a block is offered at several starts, sometimes at several prices."""
    best: dict[tuple[str, ...], Row] = {}
    for row in rows:
        key = (
            row["region"],
            row["zone"],
            row["instance_type"],
            row["purchase_option"],
            row["option_variant"],
        )
        earlier = best.get(key)
        if earlier is None or Decimal(row["price_per_hour"]) < Decimal(earlier["price_per_hour"]):
            best[key] = row
    return [best[key] for key in sorted(best)]
