"""GCP machine types, accelerator types and quotas: from the Compute API's answers to rows of the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from catalogs.errors import CatalogError
from catalogs.providers.base import FetchLog, SchemaChanged
from catalogs.providers.gcp_skus import PROVIDER
from catalogs.providers.known_types import known_types
from catalogs.providers.row_reader import RowReader
from catalogs.tables.accelerators import canonical
from catalogs.tables.columns import bundled_rows
from catalogs.tables.normalize import decimal_text, family_of, number_of

Row = dict[str, str]
TYPES_API = "compute.machineTypes.aggregatedList"
ACCELERATORS_API = "compute.acceleratorTypes.aggregatedList"
REGIONS_API = "compute.regions.list"
QUOTA_API = "compute.regions.get"
# Local SSDs that come with a machine type are 375 GiB each (A2, A3, A4, G4), but 3,000 GiB each in A4X.
SSD_GIB = 375
_LARGE_SSD_GIB, _LARGE_SSD_SERIES = 3000, ("a4x-",)
# The same machine without its local SSDs.
NO_SSD = "-nolssd"
_ARCHITECTURES = {"X86_64": "x86_64", "ARM64": "arm64", "": "x86_64"}
_RETIRED = frozenset({"OBSOLETE", "DELETED"})
_VIRTUAL_WORKSTATION = "-vws"


@dataclass(frozen=True)
class Machine:
    """A machine type, or an N1 machine type with GPUs attached, in one zone.

    Attributes:
        name: instance type, such as `a2-highgpu-1g` or `n1-standard-8+nvidia-tesla-t4x1`.
        zone: zone id.
        vcpus: virtual CPUs.
        memory_gib: host memory, GiB.
        accelerator_type: GCP's id such as `nvidia-tesla-a100`, "" none.
        accelerators: how many.
        ssd_gib: bundled local SSD as the API tells, GiB.
        arch: `x86_64` or `arm64`.
        retired: whether it is no longer sold.
    """

    name: str
    zone: str
    vcpus: int
    memory_gib: Decimal
    accelerator_type: str
    accelerators: int
    ssd_gib: int
    arch: str
    retired: bool

    @property
    def region(self) -> str:
        """Region of the zone: its name without the last letter."""
        return self.zone.rpartition("-")[0]


@dataclass(frozen=True)
class AcceleratorType:
    """One row of gcp_accelerators.csv: the API's id, the catalog's word and the usable memory in GiB."""

    accelerator_type: str
    name: str
    memory_gib: str
    source: str
    as_of: str


@cache
def load_accelerator_types() -> Mapping[str, AcceleratorType]:
    """Read gcp_accelerators.csv by accelerator type."""
    return {row["accelerator_type"]: AcceleratorType(**row) for row in bundled_rows("gcp_accelerators.csv")}


@dataclass(frozen=True)
class Attachable:
    """One row of gcp_attachable.csv: how many GPUs of a type an N1 machine of at most `max_vcpus` may have."""

    accelerator_type: str
    count: int
    max_vcpus: int


@cache
def load_attachable() -> tuple[Attachable, ...]:
    """Read gcp_attachable.csv."""
    return tuple(
        Attachable(row["accelerator_type"], int(row["count"]), int(row["max_vcpus"]))
        for row in bundled_rows("gcp_attachable.csv")
    )


@cache
def host_names() -> frozenset[str]:
    """N1 machine types that GPUs are attached to: predefined sizes of 4 to 96 vCPUs (smaller ones starve a GPU)."""
    sizes = (4, 8, 16, 32, 64, 96)
    return frozenset(f"n1-{kind}-{size}" for kind in ("standard", "highmem") for size in sizes)


@cache
def attached_names() -> tuple[tuple[str, str, str, int], ...]:
    """N1 machines with GPUs: (instance type, host machine type, accelerator type, count)."""
    return tuple(
        (f"{host}+{gpu.accelerator_type}x{gpu.count}", host, gpu.accelerator_type, gpu.count)
        for host in sorted(host_names())
        for gpu in load_attachable()
        if int(host.rpartition("-")[2]) <= gpu.max_vcpus
    )


def parse_machine(item: Mapping[str, Any], zone: str) -> Machine:
    """Read one machine type.

    Args:
        item: fields in the SDK's snake case.
        zone: zone id.

    Raises:
        SchemaChanged: when its name, vCPUs or memory are missing: a machine without them cannot be priced.
    """
    name = str(item.get("name") or "")
    for field in ("name", "guest_cpus", "memory_mb"):
        if not item.get(field):
            raise SchemaChanged(
                f"machine type {name or '(unnamed)'} in {zone} lacks a field; update the planner",
                where=field,
                provider=PROVIDER,
                region=zone.rpartition("-")[0],
                api=TYPES_API,
            )
    cards = [card for card in item.get("accelerators") or () if card.get("guest_accelerator_type")]
    card = cards[0] if cards else {}
    bundled = item.get("bundled_local_ssds") or {}
    deprecated = item.get("deprecated") or {}
    arch = str(item.get("architecture") or "")
    return Machine(
        name=name,
        zone=zone,
        vcpus=int(number_of(item["guest_cpus"])),
        memory_gib=Decimal(int(number_of(item["memory_mb"]))) / 1024,
        accelerator_type=str(card.get("guest_accelerator_type", "")),
        accelerators=int(number_of(card.get("guest_accelerator_count", 0))),
        ssd_gib=int(number_of(bundled.get("partition_count") or 0)) * _partition_gib(name),
        arch=_ARCHITECTURES.get(arch, arch.lower()),
        retired=str(deprecated.get("state", "")) in _RETIRED,
    )


def _partition_gib(name: str) -> int:
    return _LARGE_SSD_GIB if name.startswith(_LARGE_SSD_SERIES) else SSD_GIB


def attach_accelerators(hosts: Iterable[Machine], available: Iterable[tuple[str, str]]) -> list[Machine]:
    """N1 machines with GPUs, in the zones that have both the host and the GPU.

    Args:
        hosts: machine types without accelerators.
        available: (accelerator type, zone) pairs.
    """
    by_place = {(host.name, host.zone): host for host in hosts}
    out = []
    for kind, zone in sorted(set(available)):
        for name, host_name, required, count in attached_names():
            host = by_place.get((host_name, zone))
            if required == kind and host is not None:
                out.append(
                    Machine(
                        name=name,
                        zone=zone,
                        vcpus=host.vcpus,
                        memory_gib=host.memory_gib,
                        accelerator_type=kind,
                        accelerators=count,
                        ssd_gib=0,
                        arch=host.arch,
                        retired=host.retired,
                    )
                )
    return out


def type_rows(machines: Sequence[Machine], as_of: str, log: FetchLog) -> list[Row]:
    """Rows of `instance_types`, one per name; machines without a canonical accelerator are logged."""
    out: dict[str, Row] = {}
    refused: set[str] = set()
    for machine in sorted(machines, key=lambda machine: (machine.name, machine.zone)):
        if machine.name in out or machine.name in refused:
            continue
        if machine.accelerator_type.endswith(_VIRTUAL_WORKSTATION):
            continue
        row = _type_row(machine, as_of)
        if isinstance(row, str):
            refused.add(machine.name)
            log.skip("instance_type", machine.name, row)
        else:
            out[machine.name] = row
    return list(out.values())


def _type_row(machine: Machine, as_of: str) -> Row | str:
    """The row of a machine, or why there is none."""
    kind = load_accelerator_types().get(machine.accelerator_type)
    if kind is None:
        return f"accelerator {machine.accelerator_type!r} is not in gcp_accelerators.csv"
    try:
        accelerator = canonical(kind.name, PROVIDER, machine.name)
    except CatalogError as error:
        return str(error)
    share = gpu_share(machine.name)
    recorded = known_types(PROVIDER).get(machine.name.removesuffix(NO_SSD))
    base = recorded or {
        "intra_node": "single" if machine.accelerators * share <= 1 else "unknown",
        "accelerator_memory_gib": decimal_text(Decimal(kind.memory_gib) * share) if kind.memory_gib else "",
        "note": "links and network rate are not in the API and not known otherwise",
        "source": "",
    }
    source = f"{TYPES_API} (Compute API v1)"
    ssd = ssd_gib(machine)
    return {
        **base,
        "provider": PROVIDER,
        "instance_type": machine.name,
        "family": family_of(PROVIDER, machine.name),
        "accelerator": accelerator,
        "accelerator_name": base.get("accelerator_name") or kind.name,
        "accelerator_count": decimal_text(machine.accelerators * share),
        "vcpus": str(machine.vcpus),
        "memory_gib": decimal_text(machine.memory_gib),
        "arch": machine.arch,
        "local_nvme_gib": "" if ssd is None else str(ssd),
        "status": "retired" if machine.retired else "current",
        "source": f"{source}; links: {base['source']}" if base["source"] else source,
        "as_of": as_of,
    }


def gpu_share(name: str) -> Decimal:
    """Share of a GPU that a machine has where the API counts it as a whole one; 1 for whole GPUs."""
    return next((share for pattern, share in _shares() if fnmatchcase(name, pattern)), Decimal(1))


@cache
def _shares() -> tuple[tuple[str, Decimal], ...]:
    return tuple(
        (row["pattern"], Decimal(row["gpu_share"]))
        for row in bundled_rows("gcp_machines.csv")
        if row["gpu_share"]
    )


def ssd_gib(machine: Machine) -> int | None:
    """Local SSD that comes with a machine: by the API, else by the bundled catalog; None if neither knows it, GiB."""
    if machine.name.endswith(NO_SSD):
        return 0
    recorded = known_types(PROVIDER).get(machine.name, {}).get("local_nvme_gib", "")
    if machine.ssd_gib:
        return machine.ssd_gib
    return int(Decimal(recorded)) if recorded else None


def parse_quotas(region: str, quotas: Iterable[Mapping[str, Any]], log: FetchLog | None = None) -> list[Row]:
    """Rows provider, region, quota, code, unit, limit from `regions.get` quotas about GPUs and vCPUs.

    H100 and newer cards have a quota per GPU family outside these; they are absent here, which means unknown.
    """
    reader = RowReader("quota", log or FetchLog(), {"provider": PROVIDER, "region": region, "api": QUOTA_API})
    rows: dict[str, Row] = {}
    for metric, limit in reader.read(quotas, _quota, lambda quota: quota["metric"]):
        unit = "GPU" if metric.endswith("_GPUS") else "vCPU" if metric.endswith("CPUS") else ""
        if unit:
            rows[metric] = {
                "provider": PROVIDER,
                "region": region,
                "quota": metric,
                "code": metric,
                "unit": unit,
                "limit": limit,
            }
    reader.require_some()
    return list(rows.values())


def _quota(quota: Mapping[str, Any]) -> tuple[str, str]:
    metric = str(quota.get("metric") or "")
    if not metric or quota.get("limit") is None:
        where = "quotas.limit" if metric else "quotas.metric"
        raise SchemaChanged("a quota lacks a field", where=where, provider=PROVIDER, api=QUOTA_API)
    return metric, decimal_text(Decimal(str(quota["limit"])))
