"""EC2 descriptions: regions, zones, instance types and where each type is offered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

from catalogs.errors import CatalogError
from catalogs.providers.aws_rows import PROVIDER, Row, changed, field, listed
from catalogs.providers.row_reader import RowReader, read_rows
from catalogs.tables.accelerators import canonical, load_accelerators
from catalogs.tables.columns import DATA_DIRECTORY, read_csv_table
from catalogs.tables.normalize import decimal_text, family_of

REGIONS, ZONES = "ec2:DescribeRegions", "ec2:DescribeAvailabilityZones"
TYPES, OFFERINGS = "ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypeOfferings"
_GIB_PER_GB = Decimal(10**9) / Decimal(2**30)
_FIXED_RATE = re.compile(r"^(?:(\d+)x )?(\d+(?:\.\d+)?) Gigabit$")
# Usable memory may be a little below the nominal one; an answer far above it counts something else.
_MOST_OVER_NOMINAL = Decimal("1.1")


def parse_regions(payload: Mapping[str, Any]) -> dict[str, bool]:
    """Region ids of a DescribeRegions answer, and whether the account may use each."""
    regions = listed(payload, "Regions", REGIONS)
    is_usable = {
        name: item.get("OptInStatus") != "not-opted-in" for item, name in _named(regions, "RegionName")
    }
    if regions and not is_usable:
        raise changed(REGIONS, "RegionName")
    return is_usable


def _named(items: Iterable[Any], *names: str) -> Iterator[tuple[Any, ...]]:
    """Each item that has all of some texts, before them: one without is of no use, and says nothing of the others."""
    for item in items:
        texts = [item.get(name) for name in names] if isinstance(item, Mapping) else []
        if texts and all(isinstance(text, str) and text for text in texts):
            yield item, *texts


def parse_zones(payload: Mapping[str, Any], region: str) -> dict[str, str]:
    """Zone name to zone id: names differ per account, ids do not."""
    zones = listed(payload, "AvailabilityZones", ZONES, region)
    return {name: zone_id for _, name, zone_id in _named(zones, "ZoneName", "ZoneId")}


def parse_offerings(payload: Mapping[str, Any], region: str) -> set[tuple[str, str]]:
    """(instance type, zone id) of a DescribeInstanceTypeOfferings answer asked by availability-zone-id."""
    offerings = listed(payload, "InstanceTypeOfferings", OFFERINGS, region)
    return {(name, zone) for _, name, zone in _named(offerings, "InstanceType", "Location")}


def parse_instance_types(
    payload: Mapping[str, Any], as_of: str, region: str = "", reader: RowReader | None = None
) -> list[Row]:
    """Rows of the machines with accelerators; the catalog has no place for machines without.

    A machine whose accelerator has no canonical id keeps the provider's word as its id; see `is_known`.

    Args:
        payload: the answer.
        as_of: ISO date of the answer.
        region: region asked.
        reader: is told of machines that cannot be read; without it the first one is an error.

    Raises:
        SchemaChanged: naming the required field that is missing.
    """
    items = listed(payload, "InstanceTypes", TYPES, region)
    rows = read_rows(reader, items, lambda item: _type_row(item, as_of, region), lambda i: i["InstanceType"])
    return [row for row in rows if row is not None]


def block_types(payload: Mapping[str, Any], region: str = "") -> set[str]:
    """Instance types sold as Capacity Blocks, by the usage classes of a DescribeInstanceTypes answer."""
    machines = _named(listed(payload, "InstanceTypes", TYPES, region), "InstanceType")
    return {name for item, name in machines if "capacity-block" in str(item.get("SupportedUsageClasses"))}


def _type_row(item: Mapping[str, Any], as_of: str, region: str) -> Row | None:
    name = field(item, "InstanceType", TYPES, region)
    device = _device(item, region)
    if device is None:
        return None
    word, count, mib = device
    accelerator = _canonical(word, name)
    memory, note = _memory(accelerator, mib, count)
    row = {
        "provider": PROVIDER,
        "instance_type": name,
        "family": family_of(PROVIDER, name),
        "accelerator": accelerator,
        "accelerator_name": word,
        "accelerator_count": decimal_text(count),
        "accelerator_memory_gib": memory,
        "vcpus": str(field(item, "VCpuInfo.DefaultVCpus", TYPES, region)),
        "memory_gib": decimal_text(Decimal(field(item, "MemoryInfo.SizeInMiB", TYPES, region)) / 1024),
        "arch": _arch(item, region),
        "local_nvme_gib": _local_nvme(item, region),
        "status": "current",
        "source": TYPES,
        "as_of": as_of,
        "note": note,
    }
    return row | _links(item, name, accelerator, count, region)


def _device(item: Mapping[str, Any], region: str) -> tuple[str, Decimal, Decimal] | None:
    """Name, number and MiB of one accelerator of a machine; None for a machine without."""
    places = (
        ("GpuInfo", "Gpus"),
        ("NeuronInfo", "NeuronDevices"),
        ("InferenceAcceleratorInfo", "Accelerators"),
    )
    for info, devices in places:
        if info not in item:
            continue
        accelerators = listed(item[info], devices, TYPES, region)
        if not accelerators:
            continue
        first = accelerators[0]
        where = f"{info}.{devices}"
        name = field(first, "Name", f"{TYPES} {where}", region)
        count = sum((_count(device, where, region) for device in accelerators), Decimal(0))
        mib = Decimal(field(first, "MemoryInfo.SizeInMiB", f"{TYPES} {where}", region))
        return name, count, mib
    return None


def _count(device: Mapping[str, Any], where: str, region: str) -> Decimal:
    """Whole devices, or the share of one: shared GPUs state Count 0, a logical count and a partition size."""
    count = Decimal(field(device, "Count", f"{TYPES} {where}", region))
    logical, part = device.get("LogicalGpuCount"), device.get("GpuPartitionSize")
    if count == 0 and logical and part:
        return Decimal(logical) * Decimal(str(part))
    return count


def _canonical(word: str, instance_type: str) -> str:
    try:
        return canonical(word, PROVIDER, instance_type)
    except CatalogError:
        return word


def is_known(row: Row) -> bool:
    """Whether the machine's accelerator has a canonical id."""
    return row["accelerator"] in _accelerators()


@cache
def _accelerators() -> dict[str, Mapping[str, Any]]:
    return {row["accelerator"]: row for row in load_accelerators().rows()}


def _memory(accelerator: str, mib: Decimal, count: Decimal) -> tuple[str, str]:
    """GiB of one accelerator (of the share where the count is a fraction), and a note where not as answered."""
    gib = mib / 1024
    nominal = _accelerators().get(accelerator, {}).get("memory_gib")
    if nominal is None or not float(nominal) > 0:
        return decimal_text(gib, Decimal("0.01")), ""
    most = Decimal(str(nominal)) * min(count, Decimal(1))
    if gib <= most * _MOST_OVER_NOMINAL:
        return decimal_text(gib, Decimal("0.01")), ""
    return decimal_text(most), f"memory: nominal; the API answers {decimal_text(gib)} GiB per device"


def _arch(item: Mapping[str, Any], region: str) -> str:
    supported = field(item, "ProcessorInfo.SupportedArchitectures", TYPES, region)
    return next((arch for arch in ("x86_64", "arm64") if arch in supported), "")


def _local_nvme(item: Mapping[str, Any], region: str) -> str:
    if not item.get("InstanceStorageSupported", "InstanceStorageInfo" in item):
        return "0"
    gigabytes = Decimal(field(item, "InstanceStorageInfo.TotalSizeInGB", TYPES, region))
    return decimal_text(gigabytes * _GIB_PER_GB, Decimal("0.1"))


def _links(item: Mapping[str, Any], name: str, accelerator: str, count: Decimal, region: str) -> Row:
    network = field(item, "NetworkInfo", TYPES, region)
    kind, rate = _intra_node(name, accelerator, count)
    return {
        "intra_node": kind,
        "intra_node_gb_per_s": rate,
        "internode_gbps": _network_gbps(network),
        "rdma": "efa" if network.get("EfaSupported") else "",
    }


def _network_gbps(network: Mapping[str, Any]) -> str:
    """Sustained network rate of one machine, Gbit/s.

    With one card its baseline holds ("Up to" figures are bursts). With several cards the stated total is
    taken: the cards' own baselines are not a partition of it (g6e.48xlarge answers 4 x 400 and 400 in all).
    """
    cards = network.get("NetworkCards") or []
    baselines = [
        Decimal(str(card["BaselineBandwidthInGbps"])) for card in cards if "BaselineBandwidthInGbps" in card
    ]
    stated = _FIXED_RATE.match(network.get("NetworkPerformance", ""))
    if len(baselines) == 1:
        return decimal_text(baselines[0])
    if stated:
        return decimal_text(Decimal(stated.group(1) or 1) * Decimal(stated.group(2)))
    return decimal_text(sum(baselines, Decimal(0))) if baselines else ""


@cache
def _known_links() -> dict[str, tuple[str, str]]:
    """Instance type to link inside the machine, from interconnects.csv: the API does not state it."""
    links = {}
    for row in read_csv_table("interconnects", DATA_DIRECTORY / "interconnects.csv").rows():
        if row["scope"] == "intra_node":
            for name in str(row["instance_types"]).split():
                links[name] = (str(row["kind"]), decimal_text(str(row["gb_per_s"])))
    return links


def _intra_node(name: str, accelerator: str, count: Decimal) -> tuple[str, str]:
    """The documented link, or the only one the accelerator's form leaves; anything else stays unknown."""
    if count <= 1:
        return "single", ""
    if name in _known_links():
        return _known_links()[name]
    row = _accelerators().get(accelerator, {})
    if row.get("form") in ("pcie", "nvl") or _shares_pcie(accelerator):
        return "pcie", ""
    if row.get("form") == "chip" and row.get("vendor") == "aws" and row.get("trainable"):
        rate = float(row.get("link_gb_per_s") or "nan")
        return "neuronlink", decimal_text(str(rate)) if rate > 0 else ""
    return "unknown", ""


def _shares_pcie(accelerator: str) -> bool:
    """GPUs of unknown board form that AWS sells in machines without any link but PCIe."""
    return accelerator in ("t4g-16gb-unknown", "v520-8gb-unknown")


def merge_types(pages: Iterable[list[Row]]) -> list[Row]:
    """Each instance type once, sorted; regions answer alike, so the first answer is kept."""
    by_name: dict[str, Row] = {}
    for rows in pages:
        for row in rows:
            by_name.setdefault(row["instance_type"], row)
    return [by_name[name] for name in sorted(by_name)]
