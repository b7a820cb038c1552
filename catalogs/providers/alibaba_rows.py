"""Alibaba Cloud answers to catalog rows: pure functions on the JSON of the ECS API (version 2014-05-26)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from catalogs.accelerators import canonical, load_accelerators
from catalogs.errors import CatalogError
from catalogs.model import PurchaseOption
from catalogs.normalize import decimal_text, family_of
from catalogs.providers.base import FetchLog, SchemaChanged
from catalogs.providers.known_types import known_types

PROVIDER = "alibaba"
SOURCE = "Alibaba Cloud ECS API 2014-05-26"
_KBIT_PER_GBIT = 1_000_000.0  # the API states decimal kbit/s
_ARCHITECTURES = {"X86": "x86_64", "ARM": "arm64"}
_MEMORY_TOLERANCE = 0.1
Row = dict[str, str]


def field(payload: Any, path: str, api: str, region: str = "") -> Any:
    """Take a required field `a.b.c`.

    Raises:
        SchemaChanged: naming the path.
    """
    value = payload
    for part in path.split("."):
        if not isinstance(value, Mapping) or value.get(part) is None:
            raise SchemaChanged(
                "the answer lacks a field this version needs; update the planner",
                where=path,
                provider=PROVIDER,
                region=region,
                api=api,
            )
        value = value[part]
    return value


def listed(payload: Any, path: str, api: str, region: str = "") -> list[Any]:
    """Take a required list `a.b`.

    Raises:
        SchemaChanged: when it is absent or no list.
    """
    value = field(payload, path, api, region)
    if not isinstance(value, list):
        raise SchemaChanged(
            "a list was expected; update the planner", where=path, provider=PROVIDER, region=region, api=api
        )
    return value


def parse_regions(payload: Any) -> list[str]:
    """Region ids of DescribeRegions."""
    regions = listed(payload, "Regions.Region", "ecs:DescribeRegions")
    return sorted({str(field(region, "RegionId", "ecs:DescribeRegions")) for region in regions})


def parse_instance_types(payload: Any, as_of: str, log: FetchLog) -> list[Row]:
    """Rows of one page of DescribeInstanceTypes; machines without an accelerator have empty accelerator cells."""
    api = "ecs:DescribeInstanceTypes"
    return [_type_row(one, as_of, log) for one in listed(payload, "InstanceTypes.InstanceType", api)]


def _type_row(one: Any, as_of: str, log: FetchLog) -> Row:
    api = "ecs:DescribeInstanceTypes"
    name = str(field(one, "InstanceTypeId", api))
    known = known_types(PROVIDER).get(name, {})
    count, memory = float(one.get("GPUAmount") or 0), float(one.get("GPUMemorySize") or 0)
    word = _word(str(one.get("GPUSpec") or ""))
    row = {
        "provider": PROVIDER,
        "instance_type": name,
        "family": family_of(PROVIDER, name),
        "vcpus": _number(field(one, "CpuCoreCount", api)),
        "memory_gib": _number(field(one, "MemorySize", api)),
        "arch": _ARCHITECTURES.get(str(one.get("CpuArchitecture") or "X86").upper(), ""),
        "internode_gbps": _number(float(one.get("InstanceBandwidthTx") or 0) / _KBIT_PER_GBIT or ""),
        "rdma": "erdma" if int(one.get("EriQuantity") or 0) > 0 else known.get("rdma", ""),
        "local_nvme_gib": _local_disk_gib(one),
        "status": "current",
        "source": f"{SOURCE} DescribeInstanceTypes",
        "as_of": as_of,
    }
    if not count:
        return row
    return {
        **row,
        "accelerator": known.get("accelerator", "") or _accelerator(word, memory, name, log),
        "accelerator_name": word or known.get("accelerator_name", "") or "not stated",
        "accelerator_count": _number(count),
        "accelerator_memory_gib": _number(memory or known.get("accelerator_memory_gib", "")),
        "intra_node": known.get("intra_node", "") or ("single" if count <= 1 else "unknown"),
        "intra_node_gb_per_s": known.get("intra_node_gb_per_s", ""),
        "note": known.get("note", ""),
    }


def _word(spec: str) -> str:
    return re.sub(r"^NVIDIA\s+", "", spec.strip())


def _accelerator(word: str, memory_gib: float, instance_type: str, log: FetchLog) -> str:
    """Canonical id by the provider's word, and by the word with its memory where that tells models apart."""
    tried = [f"{word}-{memory_gib:g}GB", word] if memory_gib else [word]
    for name in tried:
        try:
            found = canonical(name, PROVIDER, instance_type)
        except CatalogError:
            continue
        if _fits(found, memory_gib):
            return found
    log.skip("accelerator", word or "(no name)", f"{instance_type} with {memory_gib:g} GiB: no canonical id")
    return ""


def _fits(accelerator: str, memory_gib: float) -> bool:
    table = load_accelerators()
    nominal = dict(zip(table["accelerator"], table["memory_gib"], strict=True))[accelerator]
    return not memory_gib or abs(memory_gib - float(nominal)) <= _MEMORY_TOLERANCE * float(nominal)


def _local_disk_gib(one: Mapping[str, Any]) -> str:
    amount, capacity = one.get("LocalStorageAmount"), one.get("LocalStorageCapacity")
    return _number(float(amount) * float(capacity)) if amount and capacity else "0"


def parse_zones(payload: Any, region: str) -> dict[str, set[str]]:
    """Instance type to the zones that have it in stock, of one DescribeAvailableResource answer."""
    api = "ecs:DescribeAvailableResource"
    found: dict[str, set[str]] = {}
    zones = payload.get("AvailableZones") if isinstance(payload, Mapping) else None
    if zones is None:  # a region without this resource answers without the list
        field(payload, "RequestId", api, region)
        return found
    for zone in listed(zones, "AvailableZone", api, region):
        zone_id = str(field(zone, "ZoneId", api, region))
        if str(zone.get("StatusCategory") or zone.get("Status")) in (
            "WithoutStock",
            "SoldOut",
            "ClosedWithoutStock",
        ):
            continue
        for resource in (zone.get("AvailableResources") or {}).get("AvailableResource") or []:
            for one in (resource.get("SupportedResources") or {}).get("SupportedResource") or []:
                if str(one.get("Status") or "Available") == "Available":
                    found.setdefault(str(field(one, "Value", api, region)), set()).add(zone_id)
    return found


def parse_price(payload: Any, region: str, instance_type: str, zones: Iterable[str], as_of: str) -> list[Row]:
    """On-demand rows, one per zone (or one for the region), of a DescribePrice answer.

    The machine's own part of the price is taken where the answer splits it; else the whole, which holds a default
    system disk. The list price (`OriginalPrice`) is meant: what an account pays is for overlays.
    """
    api = "ecs:DescribePrice"
    price = field(payload, "PriceInfo.Price", api, region)
    currency = str(field(price, "Currency", api, region))
    details = (price.get("DetailInfos") or {}).get("DetailInfo") or []
    own = [one for one in details if one.get("Resource") == "instanceType"]
    amount = field(own[0] if own else price, "OriginalPrice", api, region)
    flag = "system_disk_separate" if own else "system_disk_included"
    base = _offer(region, instance_type, PurchaseOption.ON_DEMAND, amount, currency, api)
    row = {**base, "basis": "list", "flags": flag, "source": f"{SOURCE} DescribePrice", "as_of": as_of}
    return [{**row, "zone": zone} for zone in sorted(zones) or [""]]


def parse_spot(payload: Any, region: str) -> list[tuple[str, Row]]:
    """(timestamp, row) of each preemptible price in a page of DescribeSpotPriceHistory."""
    api = "ecs:DescribeSpotPriceHistory"
    currency = str(field(payload, "Currency", api, region))
    rows = []
    for one in listed(payload, "SpotPrices.SpotPriceType", api, region):
        stamp = str(field(one, "Timestamp", api, region))
        name = str(field(one, "InstanceType", api, region))
        amount = field(one, "SpotPrice", api, region)
        base = _offer(region, name, PurchaseOption.SPOT, amount, currency, api)
        more = {
            "zone": str(one.get("ZoneId") or ""),
            "basis": "observed",
            "flags": "system_disk_separate",
            "source": f"{SOURCE} DescribeSpotPriceHistory",
            "as_of": stamp[:10],
        }
        rows.append((stamp, {**base, **more}))
    return rows


def newest_per_zone(rows: Iterable[tuple[str, Row]]) -> list[Row]:
    """The last price of each zone and instance type."""
    newest: dict[tuple[str, str], tuple[str, Row]] = {}
    for stamp, row in rows:
        key = (row["zone"], row["instance_type"])
        if key not in newest or stamp > newest[key][0]:
            newest[key] = (stamp, row)
    return [row for _, row in newest.values()]


def parse_quotas(payload: Any, region: str) -> list[Row]:
    """Rows of DescribeAccountAttributes: the account's vCPU limits of one region."""
    api = "ecs:DescribeAccountAttributes"
    rows = []
    for item in listed(payload, "AccountAttributeItems.AccountAttributeItem", api, region):
        name = str(field(item, "AttributeName", api, region))
        for value in (item.get("AttributeValues") or {}).get("ValueItem") or []:
            limit = str(value.get("Value") or "")
            if limit.isdigit():
                rows.append(
                    {
                        "provider": PROVIDER,
                        "region": region,
                        "quota": name,
                        "code": name,
                        "unit": "vCPU",
                        "limit": limit,
                    }
                )
    return rows


def _offer(
    region: str, instance_type: str, option: PurchaseOption, amount: Any, currency: str, api: str
) -> Row:
    try:
        price = decimal_text(str(amount))
    except ValueError:
        raise SchemaChanged(
            f"{instance_type}: {amount!r} is no price",
            where="price",
            provider=PROVIDER,
            region=region,
            api=api,
        ) from None
    return {
        "provider": PROVIDER,
        "region": region,
        "zone": "",
        "instance_type": instance_type,
        "purchase_option": option.value,
        "price_per_hour": price,
        "currency": currency,
    }


def hidden_models() -> frozenset[str]:
    """Accelerators whose model the vendor hides: no peak is known of them."""
    table = load_accelerators()
    peaks = ("fp32_tflops", "fp16_tflops", "bf16_tflops")
    return frozenset(
        name
        for at, name in enumerate(table["accelerator"])
        if all(math.isnan(table[peak][at]) for peak in peaks)
    )


def _number(value: Any) -> str:
    return f"{float(value):.10g}" if value not in ("", None) else ""
