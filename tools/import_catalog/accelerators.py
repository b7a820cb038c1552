"""Accelerator and interconnect tables from the collected peaks and the instance types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.import_catalog.rules import HERE, Row, accelerator_seed, origin, read_rows

_PEAKS = {
    "fp32_tflops": "fp32",
    "tf32_tflops": "tf32",
    "fp16_tflops": "fp16",
    "bf16_tflops": "bf16",
    "fp8_tflops": "fp8",
    "achievable_bf16_tflops": "mamf_bf16",
    "pcie_gen": "pcie_gen",
}
# What the table of peaks leaves open: column, column of its source, and how that is introduced.
_SEEDED = (
    ("pcie_gen", "pcie_source", "PCI Express"),
    ("link_gb_per_s", "link_source", "link"),
    ("fp4_tflops", "fp4_source", "fp4"),
)
# A card's NVLink is a bridge between two of them; without a word that a machine has it, none is assumed.
_LINKED_FORMS = frozenset({"sxm", "oam", "chip"})


def build_accelerators(gpus: Path, power: Path | None) -> list[Row]:
    """Build accelerators.csv.

    Args:
        gpus: table of dense peaks per GPU.
        power: table of power limits, or None.
    """
    peaks = {row["gpu"]: row for row in read_rows(gpus)}
    watts = {}
    if power is not None and power.is_file():
        watts = {row["item"]: row["value"] for row in read_rows(power) if row["category"] == "gpu_power"}
    # What the table of peaks does not have was read elsewhere, row by row with its own source.
    return [
        *(_accelerator(seed, peaks, watts) for seed in accelerator_seed()),
        *read_rows(HERE / "accelerator_facts.csv"),
    ]


def _accelerator(seed: Row, peaks: Mapping[str, Row], watts: Mapping[str, str]) -> Row:
    out = {
        name: seed[name]
        for name in ("accelerator", "vendor", "generation", "form", "memory_gib", "trainable")
    }
    notes = [seed["note"]]
    found = peaks.get(seed["gpu_row"])
    if found is None:
        out |= {"source": "the provider's own name and memory; no peaks read", "as_of": "2026-11"}
        return out | {"note": seed["note"]}
    memory = peaks[seed["memory_row"]] if seed["memory_row"] else found
    out |= {name: found[column] for name, column in _PEAKS.items()}
    out["memory_gb_per_s"] = memory["mem_bw_gbs"]
    if seed["form"] in _LINKED_FORMS:
        out["link_gb_per_s"] = found["nvlink_gbs"]
    elif found["nvlink_gbs"]:
        notes.append("bridges or switch links exist for this model but are not assumed")
    out["tdp_w"] = watts.get(seed["power_item"], "")
    came = origin("performance", found["source"], "peaks")
    rows = " and ".join(dict.fromkeys(row["gpu"] for row in (found, memory)))
    out["source"] = f"{came.source or found['source']} [row {rows}]"
    out["as_of"] = came.as_of
    for column, source, word in _SEEDED:
        if seed[column]:
            out[column] = seed[column]
            out["source"] += f"; {word}: {seed[source]}"
    notes.append(found["notes"].removeprefix("TRAP: "))
    return out | {"note": "; ".join(note for note in notes if note)}


def build_interconnects(types: Sequence[Row]) -> list[Row]:
    """Build interconnects.csv: every kind of link that an instance type states with a rate."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in types:
        if row["intra_node_gb_per_s"]:
            found.setdefault(("intra_node", row["intra_node"], row["intra_node_gb_per_s"]), []).append(row)
        if row["internode_gbps"] and row["rdma"]:
            found.setdefault(("inter_node", row["rdma"], row["internode_gbps"]), []).append(row)
    out = []
    for (scope, kind, rate), rows in sorted(
        found.items(), key=lambda item: (item[0][0], item[0][1], float(item[0][2]))
    ):
        out.append(
            {
                "interconnect": f"{kind}-{rate}",
                "scope": scope,
                "kind": kind,
                "gb_per_s": rate if scope == "intra_node" else "",
                "gbps": rate if scope == "inter_node" else "",
                "instance_types": " ".join(sorted({row["instance_type"] for row in rows})),
                "source": "; ".join(sorted({row["source"] for row in rows})),
                "as_of": max(row["as_of"] for row in rows),
            }
        )
    return out
