"""Instance types: what each machine is, from the specification table and the price lists' own columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path

from catalogs.offers.racks import with_racks
from catalogs.offers.retirement import retirement_of
from catalogs.tables.columns import column_names
from catalogs.tables.normalize import decimal_text, family_of
from tools.import_catalog.marketplaces import marketplace_types
from tools.import_catalog.rules import (
    HERE,
    IMPORT_DAY,
    Row,
    accelerator_seed,
    fraction_of,
    origin,
    read_json,
    read_rows,
)

_WHOLE_CARD_GIB = 16  # no share of a card that is sold has as much
_GIB_PER_TB = Decimal(10**12) / Decimal(2**30)
_RDMA_KINDS = (
    ("EFA", "efa"),
    ("InfiniBand", "infiniband"),
    ("RoCE", "roce"),
    ("TCPXO", "tcpxo"),
    ("TCPX", "tcpx"),
    ("eRDMA", "erdma"),
)
_SPEC_NOTE = re.compile(r"vcpus=(\d+) mem_gib=(\d+) gpu_mem_mib=(\d+)")
_GPU_SHARE = re.compile(r"(\d+) of \d+ Gbps is GPU-to-GPU")
_FAMILY_REMARK = re.compile(r"network: the family's maximum[^;]*")
_BESIDE = ("vcpus", "memory_gib", "accelerator_memory_gib", "arch")


def build_types(catalog: Path, peaks: Mapping[str, Row]) -> list[Row]:
    """Build the instance_types rows of every provider.

    Args:
        catalog: directory of the collected lists.
        peaks: accelerators by canonical id.
    """
    from catalogs.tables.accelerators import (
        canonical,  # the alias tables only: accelerators.csv is being built
    )

    listed: dict[tuple[str, str], Row] = {}
    for row in read_rows(catalog / "offers.csv"):
        listed.setdefault((row["provider"], row["instance_type"]), row)
    specs = read_rows(catalog / "instance_specs.csv")
    specs += _neuron_specs(catalog) + _sparecores_specs(
        catalog, {(s["provider"], s["instance_type"]) for s in specs}
    )
    storage = _bundled_ssd(catalog)
    out = []
    for spec in specs:
        key = (spec["provider"], spec["instance_type"])
        name = canonical(spec["accelerator_name"], *key)
        beside = listed.get(key) or _from_note(spec)
        row = _type_row(spec, beside, name)
        row |= _links(spec, peaks[name])
        if storage.get(key):
            row["local_nvme_gib"] = storage[key]
        out.append(row)
    _drop_family_maxima(out)
    out += [
        dict.fromkeys(column_names("instance_types"), "")
        | row
        | {"family": family_of(row["provider"], row["instance_type"]), "status": "current"}
        for row in [*read_rows(HERE / "type_facts.csv"), *marketplace_types(catalog)]
    ]
    _correct(out)
    return sorted(with_racks(out), key=lambda row: (row["provider"], row["instance_type"]))


def _correct(rows: Iterable[Row]) -> None:
    """Take cells that published tables of a machine state and the lists do not, each with its own source."""
    by_key = {(row["provider"], row["instance_type"]): row for row in rows}
    for one in read_rows(HERE / "type_corrections.csv"):
        row = by_key.get((one["provider"], one["instance_type"]))
        if row is not None and row.get(one["column"]) != one["value"]:
            row[one["column"]] = one["value"]
            row["source"] = f"{row['source']}; {one['column']}: {one['source']}"
            if one["column"] == "internode_gbps":
                row["note"] = _FAMILY_REMARK.sub("", row["note"]).strip(" ;")


def _type_row(spec: Row, beside: Row, accelerator: str) -> Row:
    provider, name = spec["provider"], spec["instance_type"]
    came = origin(provider, spec.get("sources") or beside.get("source", ""), "specs")
    retired = retirement_of(provider, name, IMPORT_DAY) is not None
    count = fraction_of(provider, name) or Decimal(spec["accelerator_count"])
    memory = beside["accelerator_memory_gib"]
    return {
        "provider": provider,
        "instance_type": name,
        "family": family_of(provider, name),
        "accelerator": accelerator,
        "accelerator_name": spec["accelerator_name"],
        "accelerator_count": decimal_text(count),
        "accelerator_memory_gib": decimal_text(_memory(memory, count), Decimal("0.01")) if memory else "",
        "vcpus": decimal_text(beside["vcpus"]),
        "memory_gib": decimal_text(beside["memory_gib"]),
        "arch": beside["arch"],
        "local_nvme_gib": _gib(spec["local_nvme_tb"]),
        "status": "retired" if retired else "current",
        "source": came.source,
        "as_of": came.as_of,
        "note": _note(spec),
    }


def _memory(gib: str, count: Decimal) -> Decimal:
    """Memory that the machine can use of one accelerator: its share where it has a share.

    Lists state the whole card's for some shares and the share's own for others; AWS states the share's.
    """
    stated = Decimal(gib)
    return stated * count if count < 1 and stated >= _WHOLE_CARD_GIB else stated


def _note(spec: Row) -> str:
    text = (
        _SPEC_NOTE.sub("", spec["notes"]).replace("spec only, no price found;", "no price found").strip(" ;")
    )
    if _gpu_share(spec):
        text = f"{text}; {spec['internode_network_gbps']} Gbps in all, {_gpu_share(spec)} between GPUs"
    return text.strip(" ;")


def _from_note(spec: Row) -> Row:
    """Host sizes of a type that no price list has, from the note of its specification row."""
    found = _SPEC_NOTE.search(spec["notes"])
    if not found:
        return {name: spec[name] for name in _BESIDE}
    vcpus, memory, gpu_mib = found.groups()
    gib = decimal_text(Decimal(gpu_mib) / 1024)
    return {"vcpus": vcpus, "memory_gib": memory, "accelerator_memory_gib": gib, "arch": "x86_64"}


def _gib(terabytes: str) -> str:
    return decimal_text(Decimal(terabytes) * _GIB_PER_TB, Decimal("0.1")) if terabytes else ""


def _gpu_share(spec: Row) -> str:
    found = _GPU_SHARE.search(spec["rdma_kind"])
    return found.group(1) if found else ""


def _links(spec: Row, accelerator: Row) -> Row:
    kind, rate = _intra_node(spec, accelerator)
    gbps = _gpu_share(spec) or spec["internode_network_gbps"]
    rdma = next((word for text, word in _RDMA_KINDS if text in spec["rdma_kind"]), "")
    if not rdma and spec["rdma"] == "yes":
        rdma = "unspecified"
    return {
        "intra_node": kind,
        "intra_node_gb_per_s": decimal_text(rate) if rate else "",
        "internode_gbps": decimal_text(gbps) if gbps else "",
        "rdma": rdma,
    }


def _intra_node(spec: Row, accelerator: Row) -> tuple[str, str]:
    """Link inside the machine: stated by the specification, or the only one the board form leaves.

    A PCIe card always has PCIe, so that is a floor where bridges are not stated; OAM boards of AMD are linked
    by xGMI and Trainium chips by NeuronLink, at the accelerator's own rate. Anything else stays unknown.
    """
    if Decimal(spec["accelerator_count"]) <= 1:
        return "single", ""
    rate = spec["nvlink_gb_s_per_gpu"]
    if spec["nvswitch"] == "yes":
        return "nvswitch", rate
    if rate:
        return "nvlink", rate
    if spec["intra_node_interconnect"] == "PCIe" or accelerator["form"] in ("pcie", "nvl"):
        return "pcie", ""
    by_vendor = {("amd", "oam"): "xgmi", ("aws", "chip"): "neuronlink"}
    trainable = accelerator["trainable"] == "true"
    kind = by_vendor.get((accelerator["vendor"], accelerator["form"])) if trainable else None
    return (kind, accelerator.get("link_gb_per_s", "")) if kind else ("unknown", "")


def _drop_family_maxima(rows: Iterable[Row]) -> None:
    """Keep a rate that is the family's maximum only on the family's largest machine."""
    rows = list(rows)
    marker = "bandwidth is the family maximum"
    largest: dict[tuple[str, str], float] = {}
    for row in rows:
        key = (row["provider"], row["family"])
        largest[key] = max(largest.get(key, 0.0), float(row["accelerator_count"]))
    for row in rows:
        if marker in row["note"]:
            if float(row["accelerator_count"]) < largest[row["provider"], row["family"]]:
                row["note"] = (
                    f"network: the family's maximum is {row['internode_gbps']} Gbps, this size's not stated"
                )
                row["internode_gbps"] = ""
            else:
                row["note"] = "network: the family's maximum"


def _bundled_ssd(catalog: Path) -> dict[tuple[str, str], str]:
    """Local SSD that GCP bundles with a machine type, GiB (its listed price includes it)."""
    servers = read_json(catalog / "raw" / "sparecores" / "gpu_servers.json")
    return {
        ("gcp", server["api_reference"]): str(server["storage_size"])
        for server in servers
        if server["vendor_id"] == "gcp" and server["storage_size"]
    }


def _neuron_specs(catalog: Path) -> list[Row]:
    """Trainium2 machines, which only the recorded DescribeInstanceTypes answers have."""
    records = read_json(catalog / "raw" / "moto" / "instance_types.json.gz")
    memory = {row["accelerator"]: row["memory_gib"] for row in accelerator_seed()}
    out = []
    for name in ("trn2.3xlarge", "trn2.48xlarge"):
        record = records[name]
        chips = sum(device["Count"] for device in record["NeuronInfo"]["NeuronDevices"])
        network = sum(card["BaselineBandwidthInGbps"] for card in record["NetworkInfo"]["NetworkCards"])
        disk = record.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0)
        out.append(
            _spec("aws", name, "Trainium2", chips, network, "moto 5.2.5")
            | {
                "rdma": "yes",
                "rdma_kind": "EFA",
                "local_nvme_tb": str(Decimal(disk) / 1000),
                "notes": "memory per chip as in the peaks table; the recorded API answer has another figure",
                "vcpus": str(record["VCpuInfo"]["DefaultVCpus"]),
                "memory_gib": str(Decimal(record["MemoryInfo"]["SizeInMiB"]) / 1024),
                "accelerator_memory_gib": memory["trn2-96gb"],
            }
        )
    return out


def _sparecores_specs(catalog: Path, known: set[tuple[str, str]]) -> list[Row]:
    """Further GN7 machines whole GPUs of which are named, without a price."""
    out = []
    for server in read_json(catalog / "raw" / "sparecores" / "gpu_servers.json"):
        name = server["api_reference"]
        wanted = server["vendor_id"] == "alicloud" and re.match(r"ecs\.(ebm)?gn7", name)
        if (
            not wanted
            or ("alibaba", name) in known
            or server["gpu_model"] not in ("A10", "A30", "A100", "A800")
        ):
            continue
        spec = _spec(
            "alibaba", name, server["gpu_model"], server["gpu_count"], server["network_speed"], "SpareCores"
        )
        memory = server["gpu_memory_min"]
        out.append(
            spec
            | {
                "local_nvme_tb": str(Decimal(server["storage_size"]) / 1000),
                "notes": "no price found",
                "vcpus": str(server["vcpus"]),
                "memory_gib": str(Decimal(server["memory_amount"]) / 1024),
                "accelerator_memory_gib": str(Decimal(memory) / 1024) if memory else "",
            }
        )
    return out


def _spec(provider: str, name: str, accelerator: str, count: int, gbps: float | None, source: str) -> Row:
    """A row of the specification table with nothing known but these."""
    return {
        "provider": provider,
        "instance_type": name,
        "accelerator_name": accelerator,
        "accelerator_count": str(count),
        "nvlink_gb_s_per_gpu": "",
        "nvswitch": "",
        "intra_node_interconnect": "",
        "internode_network_gbps": "" if gbps is None else str(gbps),
        "rdma": "",
        "rdma_kind": "",
        "local_nvme_tb": "",
        "sources": source,
        "notes": "",
        "arch": "x86_64",
    }
