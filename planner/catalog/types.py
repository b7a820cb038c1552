"""One instance type of the catalog as an answer: machine, accelerator, prices, what is not known, sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.catalog.diff import price_cell
from planner.render.model import ALL_ROWS, Answer, Column, Section, Unit, Value, facts, table_section
from planner.render.numbers import UNKNOWN, number

_MACHINE_LINES = (
    ("vcpus", "vCPUs", ""),
    ("memory_gib", "host memory", "GiB"),
    ("arch", "architecture", ""),
    ("intra_node", "link inside", ""),
    ("intra_node_gb_per_s", "link rate", "GB/s per accelerator, both directions"),
    ("link_domain_accelerators", "link domain", "accelerators, across machines"),
    ("allocation_unit", "sold in units of", "machines"),
    ("internode_gbps", "network", "Gbit/s"),
    ("rdma", "RDMA", ""),
    ("local_nvme_gib", "local disk", "GiB"),
    ("status", "status", ""),
)
_CHIP_LINES = (
    ("memory_gb_per_s", "memory rate", "GB/s"),
    ("fp32_tflops", "FP32", "TFLOP/s"),
    ("tf32_tflops", "TF32", "TFLOP/s"),
    ("fp16_tflops", "FP16", "TFLOP/s"),
    ("bf16_tflops", "BF16", "TFLOP/s"),
    ("fp8_tflops", "FP8", "TFLOP/s"),
    ("fp4_tflops", "FP4", "TFLOP/s"),
    ("achievable_bf16_tflops", "BF16 measured", "TFLOP/s"),
    ("tdp_w", "power limit", "W"),
)
_PRICE_COLUMNS = (
    Column("region", "region", "text"), Column("option", "option", "option"), Column("n_offers", "offers", "count"),
    Column("price_per_hour", "lowest price/h", "price"), Column("basis", "basis", "text"),
    Column("interruption_band", "reclaimed", "text"), Column("as_of", "as of", "date"),
    Column("admitted", "admitted", "text"),
)  # fmt: skip
_ROWS = ("provider", "instance_type", "region", "purchase_option", "option_variant", "n_offers", "price_per_hour",
         "currency", "basis", "interruption_band", "as_of", "admitted")  # fmt: skip
_Rows = list[tuple[str, str, Value, Unit, str]]


def types_answer(summaries: Sequence[Mapping[str, Any]], max_results: int) -> Answer:
    """Instance types of one name as an answer.

    Args:
        summaries: what the catalog knows of each.
        max_results: prices that texts show; 0: all.
    """
    sections = [section for summary in summaries for section in _type_sections(summary, max_results)]
    rows = [
        {**{name: offer.get(name) for name in _ROWS}, "provider": entry["instance_type"]["provider"],
         "instance_type": entry["instance_type"]["instance_type"]}
        for entry in summaries for offer in entry["offers"]
    ]  # fmt: skip
    title = "; ".join(_title(entry["instance_type"]) for entry in summaries)
    name = summaries[0]["instance_type"]["instance_type"]
    values = list(summaries) if len(summaries) > 1 else dict(summaries[0])
    return Answer(f"Instance type {name}", title, (), tuple(sections), values, _ROWS, rows)


def _title(machine: Mapping[str, Any]) -> str:
    inside = f"{machine['accelerator_count']:g} x {machine['accelerator']}"
    return f"{machine['provider']} {machine['instance_type']} (family {machine['family']}): {inside}"


def _type_sections(summary: Mapping[str, Any], max_results: int) -> list[Section]:
    machine, chip = summary["instance_type"], summary["accelerator"]
    memory = machine["accelerator_memory_gib"]
    said = UNKNOWN if memory is None else f"{memory:g} GiB usable each"
    inside = f"{machine['accelerator_count']:g} x {machine['accelerator']} ({said})"
    rows: _Rows = [("accelerators", "accelerators", machine["accelerator_count"], "number", inside)]
    rows += [_fact(machine, *spec) for spec in _MACHINE_LINES if _applies(machine, spec[0])]
    rows += [("note", "note", machine["note"], "text", machine["note"])] if machine["note"] else []
    key = machine["provider"]
    return [
        facts(f"{key}_machine", f"Machine of {key}", rows),
        _chip(key, chip),
        *_prices(key, summary, max_results),
        *_flags(key, summary["flags"]),
        table_section(
            f"{key}_sources", "Sources", (Column("as_of", "as of", "text"), Column("source", "source", "text")),
            [(", ".join(source["as_of"]), source["source"]) for source in summary["sources"]],
        ),
    ]  # fmt: skip


def _applies(machine: Mapping[str, Any], key: str) -> bool:
    if key in ("link_domain_accelerators", "allocation_unit"):
        return machine[key] is not None
    return not (key == "intra_node_gb_per_s" and machine["intra_node"] == "single")


def _fact(values: Mapping[str, Any], key: str, label: str, unit: str) -> tuple[str, str, Value, Unit, str]:
    value = values[key]
    text = UNKNOWN if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    if key == "rdma" and value is None:
        text = "none stated"
    words = f"{text} {unit}" if unit and value is not None else text
    return (key, label, value, "number" if isinstance(value, int | float) else "text", words)


def _chip(key: str, chip: Mapping[str, Any] | None) -> Section:
    if chip is None:
        text = "not in the table, so its speed is unknown and it is never a candidate"
        return Section(f"{key}_accelerator", "Accelerator", (text,))
    rows: _Rows = [_fact(chip, *spec) for spec in _CHIP_LINES if chip[spec[0]] is not None]
    notes = []
    if all(chip[name] is None for name in ("fp16_tflops", "bf16_tflops", "fp32_tflops")):
        notes.append("no peaks are known: listed, never a candidate")
    if not chip["trainable"]:
        notes.append("inference only: never a candidate for training")
    notes += [chip["note"]] if chip["note"] else []
    rows += [("note", "note", text, "text", text) for text in notes]
    rows.append(("source", "source", chip["source"], "text", f"{chip['source']} ({chip['as_of']})"))
    title = (
        f"{chip['accelerator']}: {chip['vendor']} {chip['generation']}, form {chip['form']}; peaks are dense"
    )
    return facts(f"{key}_accelerator", title, rows)


def _prices(key: str, summary: Mapping[str, Any], max_results: int) -> list[Section]:
    offers: Sequence[Mapping[str, Any]] = summary["offers"]
    unknown = summary["unknown_options"]
    missing = f"no price known for: {', '.join(unknown)}" if unknown else ""
    if not offers:
        text = "no price is known for this type: it is listed, never a candidate"
        return [Section(f"{key}_prices", "Prices", (text,))]
    rows: list[tuple[Value, ...]] = [
        (
            offer["region"], (offer["purchase_option"], offer["option_variant"]), offer["n_offers"],
            price_cell(offer["price_per_hour"], offer["currency"], offer["basis"] == "derived"), offer["basis"],
            offer["interruption_band"] or "", offer["as_of"], "" if offer["admitted"] else "no",
        )
        for offer in offers
    ]  # fmt: skip
    notes = [f"{number(len(offers), 6)} region prices, {summary['n_offers']} offers in all", missing]
    return [
        table_section(f"{key}_prices", "Prices", _PRICE_COLUMNS, rows, notes, shown=max_results or ALL_ROWS)
    ]


def _flags(key: str, flags: Sequence[Mapping[str, Any]]) -> list[Section]:
    if not flags:
        return []
    columns = (
        Column("severity", "severity", "text"), Column("flag", "flag", "text"), Column("n_offers", "offers", "count"),
        Column("description", "meaning and remedy", "text"),
    )  # fmt: skip
    rows = [
        (
            flag["severity"],
            flag["flag"],
            flag["n_offers"],
            f"{flag['description']} {flag['remedy'] or ''}".strip(),
        )
        for flag in flags
    ]
    return [table_section(f"{key}_flags", "Flags", columns, rows)]
