"""Azure sizes and quotas: from the Resource SKUs and usages to rows of the catalog.

The interface tells how many GPUs a size has but not which: the model comes from the bundled catalog, or from
the patterns of azure_sizes.csv for sizes it does not have. Every capability is a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from catalogs.providers.base import FetchLog, SchemaChanged
from catalogs.providers.known_types import known_types
from catalogs.providers.row_reader import RowReader
from catalogs.tables.columns import bundled_rows
from catalogs.tables.normalize import decimal_text, family_of, number_of

Row = dict[str, str]
PROVIDER = "azure"
SKUS_API = "Microsoft.Compute/skus"
USAGES_API = "Microsoft.Compute/locations/usages"
_MACHINES = "virtualMachines"
_ARCHITECTURES = {"x64": "x86_64", "arm64": "arm64", "": "x86_64"}


@dataclass(frozen=True)
class SizePattern:
    """One row of azure_sizes.csv: which GPU the sizes of a pattern have.

    Attributes:
        pattern: glob over sizes.
        accelerator: canonical id.
        memory_gib: usable memory of one, "" unknown.
        gpus: how many, "" as the API tells.
        note: what a reader must know.
        source: where.
        as_of: when.
    """

    pattern: str
    accelerator: str
    memory_gib: str
    gpus: str
    note: str
    source: str
    as_of: str


@cache
def load_size_patterns() -> tuple[SizePattern, ...]:
    """Read azure_sizes.csv; the first pattern that fits decides."""
    return tuple(SizePattern(**row) for row in bundled_rows("azure_sizes.csv"))


@dataclass(frozen=True)
class Size:
    """One size with GPUs in one region.

    Attributes:
        name: such as `Standard_ND96asr_v4`.
        region: region id.
        zones: zones that have it, without those restricted.
        vcpus: virtual CPUs.
        memory_gib: host memory, GiB (the interface says GB and means GiB).
        gpus: GPUs as the interface counts them.
        arch: `x86_64` or `arm64`.
        rdma: whether it has RDMA.
        nvme_gib: local NVMe, GiB; None where not told.
        restriction: why this subscription may not use it here, "" where it may.
    """

    name: str
    region: str
    zones: tuple[str, ...]
    vcpus: Decimal
    memory_gib: Decimal
    gpus: Decimal
    arch: str
    rdma: bool
    nvme_gib: Decimal | None
    restriction: str


def parse_resource_skus(items: Iterable[Mapping[str, Any]], reader: RowReader | None = None) -> list[Size]:
    """Read the sizes with GPUs out of Resource SKUs, one per region.

    Args:
        items: elements of `value` as the REST interface spells them.
        reader: counts rows over the pages, and is told of those that cannot be read.
    """
    reader = reader or RowReader("instance_type", FetchLog())
    sizes_of_item = reader.read(items, _sizes_of, lambda item: item["name"])
    return [size for sizes in sizes_of_item for size in sizes]


def _sizes_of(item: Mapping[str, Any]) -> list[Size]:
    if item.get("resourceType") != _MACHINES:
        return []
    capabilities = {
        str(capability.get("name", "")): str(capability.get("value", ""))
        for capability in item.get("capabilities") or ()
    }
    has_gpus = _number(capabilities, "GPUs", str(item.get("name")), required=False) > 0
    return _sizes(item, capabilities) if has_gpus else []


def _sizes(item: Mapping[str, Any], capabilities: Mapping[str, str]) -> list[Size]:
    name = str(item.get("name") or "")
    places = {str(info.get("location", "")).lower(): info for info in item.get("locationInfo") or ()}
    regions = [str(region).lower() for region in item.get("locations") or ()] or list(places)
    for field, value in (("name", name), ("locations", regions)):
        if not value:
            raise _changed(f"a size with GPUs ({name or 'unnamed'}) lacks a field", field)
    arch = capabilities.get("CpuArchitectureType", "")
    nvme = _number(capabilities, "NvmeDiskSizeInMiB", name, required=False)
    refused, refused_zones = _restrictions(item.get("restrictions") or ())
    return [
        Size(
            name=name,
            region=region,
            zones=tuple(
                sorted(
                    str(zone)
                    for zone in places.get(region, {}).get("zones") or ()
                    if str(zone) not in refused_zones
                )
            ),
            vcpus=_number(capabilities, "vCPUs", name),
            memory_gib=_number(capabilities, "MemoryGB", name),
            gpus=_number(capabilities, "GPUs", name),
            arch=_ARCHITECTURES.get(arch.lower(), arch.lower()),
            rdma=capabilities.get("RdmaEnabled", "").lower() == "true",
            nvme_gib=nvme / 1024 if nvme else None,
            restriction=refused.get(region, ""),
        )
        for region in regions
    ]


def _restrictions(items: Iterable[Mapping[str, Any]]) -> tuple[dict[str, str], set[str]]:
    """Region to reason for those closed to the subscription, and the closed zones."""
    regions: dict[str, str] = {}
    zones: set[str] = set()
    for item in items:
        info = item.get("restrictionInfo") or {}
        if str(item.get("type", "")).lower() == "zone":
            zones.update(str(zone) for zone in info.get("zones") or ())
            continue
        reason = str(item.get("reasonCode") or "restricted")
        for region in (*(info.get("locations") or ()), *(item.get("values") or ())):
            regions[str(region).lower()] = reason
    return regions, zones


def _number(capabilities: Mapping[str, str], name: str, size: str, *, required: bool = True) -> Decimal:
    text = capabilities.get(name, "")
    if not text and not required:
        return Decimal(0)
    try:
        return number_of(text)
    except ValueError:
        raise _changed(f"size {size} has {text!r:.40} as {name}", f"capabilities.{name}") from None


def _changed(what: str, where: str) -> SchemaChanged:
    return SchemaChanged(f"{what}; update the planner", where=where, provider=PROVIDER, api=SKUS_API)


def type_rows(sizes: Sequence[Size], as_of: str, log: FetchLog) -> list[Row]:
    """Rows of `instance_types`, one per size; an unknown GPU is logged."""
    out: dict[str, Row] = {}
    refused: set[str] = set()
    for size in sorted(sizes, key=lambda size: (size.name, size.region)):
        if size.name in out or size.name in refused:
            continue
        row = _type_row(size, as_of, log)
        if row is None:
            refused.add(size.name)
            log.skip("instance_type", size.name, "which GPU it has is neither bundled nor in azure_sizes.csv")
        else:
            out[size.name] = row
    return list(out.values())


def _type_row(size: Size, as_of: str, log: FetchLog) -> Row | None:
    recorded = known_types(PROVIDER).get(size.name)
    base = dict(recorded) if recorded else _new_row(size)
    if base is None:
        return None
    base |= {
        "provider": PROVIDER,
        "instance_type": size.name,
        "family": family_of(PROVIDER, size.name),
        "vcpus": decimal_text(size.vcpus),
        "memory_gib": decimal_text(size.memory_gib),
        "arch": size.arch,
        "status": "current",
        "source": f"{SKUS_API}; GPU and links: {base['source']}",
        "as_of": as_of,
    }
    count = Decimal(base["accelerator_count"])
    if count >= 1 and count != size.gpus:  # shares of a GPU are counted as whole ones by the interface
        log.remark(f"{size.name}: {size.gpus} GPUs by the interface, {count} in the bundled catalog")
        base["accelerator_count"] = decimal_text(size.gpus)
    return base


def _new_row(size: Size) -> Row | None:
    """The row of a size the bundled catalog does not have; None where its GPU is not known."""
    pattern = next((p for p in load_size_patterns() if fnmatchcase(size.name, p.pattern)), None)
    if pattern is None:
        return None
    count = pattern.gpus or decimal_text(size.gpus)
    return {
        "accelerator": pattern.accelerator,
        "accelerator_name": pattern.accelerator,
        "accelerator_count": count,
        "accelerator_memory_gib": pattern.memory_gib,
        "intra_node": "single" if Decimal(count) <= 1 else "unknown",
        "rdma": "unspecified" if size.rdma else "",
        "local_nvme_gib": decimal_text(size.nvme_gib, Decimal("0.1")) if size.nvme_gib else "",
        "note": "links and network rate are not in the interface and not known otherwise",
        "source": pattern.source,
    }


def parse_usages(region: str, items: Iterable[Mapping[str, Any]], log: FetchLog | None = None) -> list[Row]:
    """Rows provider, region, quota, code, unit, limit of the vCPU quotas.

    Raises:
        SchemaChanged: when no usage at all can be read.
    """
    reader = RowReader(
        "quota", log or FetchLog(), {"provider": PROVIDER, "region": region, "api": USAGES_API}
    )
    rows: dict[str, Row] = {}
    for code, title, limit in reader.read(items, _usage, lambda item: item["name"]["value"]):
        if code.lower().endswith(("family", "cores")):
            rows[code] = {
                "provider": PROVIDER,
                "region": region,
                "quota": title,
                "code": code,
                "unit": "vCPU",
                "limit": limit,
            }
    reader.require_some()
    return list(rows.values())


def _usage(item: Mapping[str, Any]) -> tuple[str, str, str]:
    name = item.get("name") or {}
    code = str(name.get("value") or "")
    if not code or item.get("limit") is None:
        where = "limit" if code else "name.value"
        raise SchemaChanged("a usage lacks its name or limit", where=where, provider=PROVIDER, api=USAGES_API)
    return code, str(name.get("localizedValue") or code), decimal_text(Decimal(str(item["limit"])))


# Azure's bands are shares evicted per hour over the past week: not the catalog's bands, which are per month.
_EVICTION_BANDS = frozenset({"0-5", "5-10", "10-15", "15-20", "20+"})


def parse_eviction_rates(items: Iterable[Mapping[str, Any]], log: FetchLog) -> dict[tuple[str, str], str]:
    """Eviction band in percent per hour by (region, size in lower case), of a Resource Graph answer."""
    reader = RowReader("eviction rate", log)

    def read(item: Mapping[str, Any]) -> tuple[tuple[str, str], str]:
        text = str(item["spotEvictionRate"]).strip().removesuffix("%")
        if text not in _EVICTION_BANDS:
            raise ValueError(text)
        return (str(item["location"]).lower(), str(item["skuName"]).lower()), text

    return dict(reader.read(items, read, lambda item: f"{item['skuName']} in {item['location']}"))


def named_types() -> list[Row]:
    """Rows of the sizes that azure_sizes.csv names in full with their GPUs, for prices without a login."""
    return [
        {
            "provider": PROVIDER,
            "instance_type": size.pattern,
            "family": family_of(PROVIDER, size.pattern),
            "accelerator": size.accelerator,
            "accelerator_name": size.accelerator,
            "accelerator_count": size.gpus,
            "accelerator_memory_gib": size.memory_gib,
            "arch": "x86_64",
            "intra_node": "single" if Decimal(size.gpus) <= 1 else "unknown",
            "status": "current",
            "source": size.source,
            "as_of": size.as_of,
            "note": size.note,
        }
        for size in load_size_patterns()
        if size.gpus and not set("*?[") & set(size.pattern)
    ]
