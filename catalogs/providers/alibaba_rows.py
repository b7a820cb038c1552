"""Alibaba Cloud answers to catalog rows: pure functions on the JSON of the ECS API (version 2014-05-26)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from catalogs.errors import CatalogError
from catalogs.providers.base import FetchLog, SchemaChanged
from catalogs.providers.known_types import known_types
from catalogs.providers.row_reader import RowReader
from catalogs.tables.accelerators import canonical, load_accelerators
from catalogs.tables.model import PurchaseOption
from catalogs.tables.normalize import decimal_text, family_of, number_of

PROVIDER = "alibaba"
SOURCE = "Alibaba Cloud ECS API 2014-05-26"
# The API states kbit/s in decimal steps for some types and in steps of 1,024 for others.
_KBIT_PER_GBIT, _BINARY_KBIT_PER_GBIT = 1_000_000, 1_024_000
# Hours that a subscription price is spread over, by the unit it is asked in.
SUBSCRIPTION_HOURS: Mapping[str, int] = {"Month": 720, "Year": 8760}
_HAS_STOCK = ("WithStock", "ClosedWithStock", "")
# "T4/4" and "A10*1/6" name a share of a card.
_SHARE = re.compile(r"^(?P<word>.*?)\s*(?:/|\*\s*1\s*/)\s*(?P<parts>\d+)$")
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
    """Region ids of DescribeRegions; an entry without one names no region."""
    api = "ecs:DescribeRegions"
    regions = listed(payload, "Regions.Region", api)
    named = (one.get("RegionId") for one in regions if isinstance(one, Mapping))
    names = sorted({str(name) for name in named if name})
    return names or [str(field(region, "RegionId", api)) for region in regions]


def parse_instance_types(
    payload: Any, as_of: str, log: FetchLog, reader: RowReader | None = None
) -> list[Row]:
    """Rows of one page of DescribeInstanceTypes; machines without an accelerator have empty accelerator cells.

    Args:
        payload: the page.
        as_of: ISO date of the answer.
        log: is told of accelerators without a canonical id, and of rows that cannot be read.
        reader: counts rows over the pages of one region.
    """
    api = "ecs:DescribeInstanceTypes"
    reader = reader or RowReader("instance_type", log)
    items = listed(payload, "InstanceTypes.InstanceType", api)
    return reader.read(items, lambda one: _type_row(one, as_of, log), lambda one: one["InstanceTypeId"])


def _type_row(machine: Any, as_of: str, log: FetchLog) -> Row:
    api = "ecs:DescribeInstanceTypes"
    name = str(field(machine, "InstanceTypeId", api))
    recorded = known_types(PROVIDER).get(name, {})
    count, memory = float(machine.get("GPUAmount") or 0), float(machine.get("GPUMemorySize") or 0)
    word, share = _word(str(machine.get("GPUSpec") or ""))
    row = {
        "provider": PROVIDER,
        "instance_type": name,
        "family": family_of(PROVIDER, name),
        "vcpus": _number(field(machine, "CpuCoreCount", api)),
        "memory_gib": _number(field(machine, "MemorySize", api)),
        "arch": _ARCHITECTURES.get(str(machine.get("CpuArchitecture") or "X86").upper(), ""),
        "internode_gbps": _gbps(float(machine.get("InstanceBandwidthTx") or 0)),
        "rdma": "erdma" if int(machine.get("EriQuantity") or 0) > 0 else recorded.get("rdma", ""),
        "local_nvme_gib": _local_disk_gib(machine),
        "status": "current",
        "source": f"{SOURCE} DescribeInstanceTypes",
        "as_of": as_of,
    }
    if not count and share >= 1:
        return row
    accelerator = recorded.get("accelerator", "") or _accelerator(word, memory, name, log)
    share = min(share, _memory_share(accelerator, memory))
    number = count if 0 < count < 1 else (count or 1.0) * share  # a share may be stated twice
    return {
        **row,
        "accelerator": accelerator,
        "accelerator_name": word or recorded.get("accelerator_name", "") or "not stated",
        "accelerator_count": _number(round(number, 6)),
        "accelerator_memory_gib": _number(memory or recorded.get("accelerator_memory_gib", "")),
        "intra_node": recorded.get("intra_node", "") or ("single" if number <= 1 else "unknown"),
        "intra_node_gb_per_s": recorded.get("intra_node_gb_per_s", ""),
        "note": recorded.get("note", ""),
    }


def _gbps(kbit_per_s: float) -> str:
    if not kbit_per_s:
        return ""
    steps = _BINARY_KBIT_PER_GBIT if kbit_per_s % 1024 == 0 else _KBIT_PER_GBIT
    return _number(kbit_per_s / steps)


def _word(spec: str) -> tuple[str, float]:
    """The provider's word for the card, and the share of one that the machine has."""
    word = re.sub(r"^NVIDIA\s+", "", spec.strip(), flags=re.IGNORECASE)
    match = _SHARE.match(word)
    if not match or not int(match["parts"]):
        return word, 1.0
    return match["word"], 1.0 / int(match["parts"])


def _accelerator(word: str, memory_gib: float, instance_type: str, log: FetchLog) -> str:
    """Canonical id by the provider's word, or by the word and the memory where models share a word."""
    tried = [f"{word}-{memory_gib:g}GB", word] if memory_gib else [word]
    shared = "vgn" in instance_type or "sgn" in instance_type
    for name in tried:
        try:
            identifier = canonical(name, PROVIDER, instance_type)
        except CatalogError:
            continue
        if shared or _fits(identifier, memory_gib):
            return identifier
    log.skip("accelerator", word or "(no name)", f"{instance_type} with {memory_gib:g} GiB: no canonical id")
    return ""


def _memory_share(accelerator: str, memory_gib: float) -> float:
    """Share of a card by its memory, of machines that state less than a whole card's; 1 where it is whole."""
    nominal = _nominal_gib().get(accelerator, 0.0)
    if not memory_gib or not nominal or _fits(accelerator, memory_gib):
        return 1.0
    return min(1.0, memory_gib / nominal)


def _fits(accelerator: str, memory_gib: float) -> bool:
    nominal = _nominal_gib()[accelerator]
    return not memory_gib or abs(memory_gib - nominal) <= _MEMORY_TOLERANCE * nominal


@cache
def _nominal_gib() -> dict[str, float]:
    table = load_accelerators()
    return dict(zip(table["accelerator"], map(float, table["memory_gib"]), strict=True))


def _local_disk_gib(machine: Mapping[str, Any]) -> str:
    amount, capacity = machine.get("LocalStorageAmount"), machine.get("LocalStorageCapacity")
    return _number(float(amount) * float(capacity)) if amount and capacity else "0"


def parse_zones(payload: Any, region: str, log: FetchLog | None = None) -> dict[str, set[str]]:
    """Instance type to the zones that have it in stock, of one DescribeAvailableResource answer.

    A zone and a type each state a status and a category of stock; `Available` with `WithoutStock` has none.
    """
    api = "ecs:DescribeAvailableResource"
    zones_of: dict[str, set[str]] = {}
    zones = payload.get("AvailableZones") if isinstance(payload, Mapping) else None
    if zones is None:  # a region without this resource answers without the list
        field(payload, "RequestId", api, region)
        return zones_of
    place = {"provider": PROVIDER, "region": region, "api": api}
    log = log or FetchLog()
    reader = RowReader("zone", log, place)
    kinds_reader, types_reader = (RowReader("instance_type", log, place) for _ in range(2))

    def stocked(resource: Any) -> str:
        name = str(field(resource, "Value", api, region))
        return name if _in_stock(resource) else ""

    def types_of(zone: Any) -> tuple[str, list[str]]:
        zone_id = str(field(zone, "ZoneId", api, region))
        if not _in_stock(zone):
            return zone_id, []
        kinds = (zone.get("AvailableResources") or {}).get("AvailableResource") or []
        lists = kinds_reader.read(
            kinds, lambda kind: (kind.get("SupportedResources") or {}).get("SupportedResource") or []
        )
        found = [
            types_reader.read(types, stocked, lambda one: f"{zone_id}/{one['Value']}") for types in lists
        ]
        return zone_id, [name for names in found for name in names if name]

    items = listed(zones, "AvailableZone", api, region)
    for zone_id, names in reader.read(items, types_of, lambda zone: zone["ZoneId"]):
        for name in names:
            zones_of.setdefault(name, set()).add(zone_id)
    for one in (reader, kinds_reader, types_reader):
        one.require_some()
    return zones_of


def _in_stock(resource: Mapping[str, Any]) -> bool:
    status, category = str(resource.get("Status") or "Available"), str(resource.get("StatusCategory") or "")
    return status == "Available" and category in _HAS_STOCK


def parse_price(
    payload: Any, region: str, instance_type: str, zones: Iterable[str], as_of: str, unit: str = "Hour"
) -> list[Row]:
    """Rows, one per zone (or one for the region), of a DescribePrice answer.

    The machine's own part of the price is taken where the answer splits it; else the whole, which holds a default
    system disk. The list price (`OriginalPrice`) is meant: what an account pays is for overlays.

    Args:
        payload: the answer.
        region: region asked.
        instance_type: instance type asked.
        zones: zones that have it in stock.
        as_of: ISO date of the answer.
        unit: what the price is for: `Hour` on demand, `Month` or `Year` by subscription.
    """
    api = "ecs:DescribePrice"
    price = field(payload, "PriceInfo.Price", api, region)
    currency = str(field(price, "Currency", api, region))
    machine_parts = [
        part
        for part in _details(price)
        if part.get("Resource") == "instanceType" and part.get("OriginalPrice") is not None
    ]
    amount = field(machine_parts[0] if machine_parts else price, "OriginalPrice", api, region)
    flag = "system_disk_separate" if machine_parts else "system_disk_included"
    option = PurchaseOption.SUBSCRIPTION if unit in SUBSCRIPTION_HOURS else PurchaseOption.ON_DEMAND
    base = _offer(region, instance_type, option, amount, currency, api, SUBSCRIPTION_HOURS.get(unit, 1))
    if unit in SUBSCRIPTION_HOURS:
        base |= {"option_variant": unit.lower(), "term_hours": str(SUBSCRIPTION_HOURS[unit])}
    row = {**base, "basis": "list", "flags": flag, "source": f"{SOURCE} DescribePrice", "as_of": as_of}
    return [{**row, "zone": zone} for zone in sorted(zones) or [""]]


def _details(price: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The parts of a price: the list's name depends on the SDK's age, and some answers have no name at all."""
    parts = price.get("DetailInfos") or []
    if isinstance(parts, Mapping):
        parts = next((parts[name] for name in ("ResourcePriceModel", "DetailInfo") if parts.get(name)), [])
    return [part for part in parts if isinstance(part, Mapping)]


def parse_spot(payload: Any, region: str, log: FetchLog | None = None) -> list[tuple[str, Row]]:
    """(timestamp, row) of each preemptible price in a page of DescribeSpotPriceHistory."""
    api = "ecs:DescribeSpotPriceHistory"
    currency = str(field(payload, "Currency", api, region))

    def quote(one: Any) -> tuple[str, Row] | None:
        if (
            str(one.get("NetworkType") or "vpc") != "vpc"
            or str(one.get("OSType") or "linux").lower() != "linux"
        ):
            return None  # the request asks for neither
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
        return stamp, {**base, **more}

    reader = RowReader("spot price", log or FetchLog(), {"provider": PROVIDER, "region": region, "api": api})
    items = listed(payload, "SpotPrices.SpotPriceType", api, region)
    rows = reader.read(items, quote, lambda one: f"{one['InstanceType']} {one['Timestamp']}")
    reader.require_some()
    return [row for row in rows if row is not None]


def newest_per_zone(rows: Iterable[tuple[str, Row]]) -> list[Row]:
    """The last price of each zone and instance type."""
    newest: dict[tuple[str, str], tuple[str, Row]] = {}
    for stamp, row in rows:
        key = (row["zone"], row["instance_type"])
        if key not in newest or stamp > newest[key][0]:
            newest[key] = (stamp, row)
    return [row for _, row in newest.values()]


def parse_quotas(payload: Any, region: str, log: FetchLog | None = None) -> list[Row]:
    """Rows of DescribeAccountAttributes: the account's vCPU limits of one region."""
    api = "ecs:DescribeAccountAttributes"
    row = {"provider": PROVIDER, "region": region, "unit": "vCPU"}

    def limits(item: Any) -> list[Row]:
        name = str(field(item, "AttributeName", api, region))
        values = (item.get("AttributeValues") or {}).get("ValueItem") or []
        stated = [str(value.get("Value") or "") for value in values]
        return [{**row, "quota": name, "code": name, "limit": limit} for limit in stated if limit.isdigit()]

    reader = RowReader("quota", log or FetchLog(), {"provider": PROVIDER, "region": region, "api": api})
    items = listed(payload, "AccountAttributeItems.AccountAttributeItem", api, region)
    rows = reader.read(items, limits, lambda item: item["AttributeName"])
    reader.require_some()
    return [one for found in rows for one in found]


def _offer(
    region: str,
    instance_type: str,
    option: PurchaseOption,
    amount: Any,
    currency: str,
    api: str,
    hours: int = 1,
) -> Row:
    try:
        price = number_of(amount)
        if price <= 0:
            raise CatalogError(f"the price is {amount}")
        text = decimal_text(price / hours)
    except ValueError:
        raise SchemaChanged(
            f"{instance_type}: {amount!r} is not a price",
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
        "price_per_hour": text,
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
