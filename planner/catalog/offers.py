"""The catalog as text: tables as wide as standard output takes, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from catalogs.model import OFFER_KEY, offer_id
from planner.render.terminal import terminal_width

if TYPE_CHECKING:
    from catalogs.inspection.diff import PriceMove
    from catalogs.inspection.doctor import Examination
    from catalogs.inspection.history import HistoryHealth
    from catalogs.table import Table

_MIN_WIDTH = 60
_JSON_SCHEMA_VERSION = 1
_LISTED = (
    "provider",
    "region",
    "zone",
    "instance_type",
    "purchase_option",
    "option_variant",
    "accelerator",
    "accelerator_count",
    "accelerator_memory_gib",
    "price_per_hour",
    "currency",
    "usd_per_hour",
    "usd_per_accelerator_hour",
    "usd_per_pflop_hour",
    "usd_per_gib_hour",
    "term_hours",
    "basis",
    "interruption_band",
    "flags",
    "refused_by",
    "source",
    "as_of",
)
_METRICS = {
    "usd_per_pflop_hour": "USD/PFLOP-h",
    "usd_per_accelerator_hour": "USD/accel-h",
    "usd_per_gib_hour": "USD/GiB-h",
}
_MACHINE_LINES = (
    ("vcpus", "vCPUs", ""),
    ("memory_gib", "host memory", "GiB"),
    ("arch", "architecture", ""),
    ("intra_node", "link inside", ""),
    ("intra_node_gb_per_s", "link rate", "GB/s per accelerator, both directions"),
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


def json_text(value: Any) -> str:
    """Render as JSON; unknown numbers are null."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n"


def offers_text(offers: Table, fmt: str, metric: str = "usd_per_hour") -> str:
    """Render query results as `table`, `json` or `csv`; the table shows the column sorted by."""
    if fmt == "table":
        return _offers_table(offers, metric)
    rows = [{name: _value(row[name]) for name in _LISTED} for row in offers.rows()]
    if fmt == "json":
        keys = offers.keys_of(*OFFER_KEY)
        listed = [{"offer_id": offer_id(key), **row} for key, row in zip(keys, rows, strict=True)]
        return json_text({"schema_version": _JSON_SCHEMA_VERSION, "offers": listed})
    out = io.StringIO()
    writer = csv.DictWriter(out, _LISTED, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
    return out.getvalue()


def _value(value: Any) -> Any:
    return None if value == "" or (isinstance(value, float) and math.isnan(value)) else value


def _offers_table(offers: Table, metric: str) -> str:
    heads = ["place", "instance type", "accelerators", "option", "USD/h", "as of"]
    if metric in _METRICS:
        heads.insert(5, _METRICS[metric])
    rows = []
    for row in offers.rows():
        mark = "!" if row["refused_by"] else "~" if row["basis"] == "derived" else ""
        cells = [
            place_text(row["provider"], row["region"], row["zone"]),
            row["instance_type"],
            f"{row['accelerator_count']:g}x {row['accelerator']}",
        ]
        cells += [row["purchase_option"], f"{row['usd_per_hour']:.4f}{mark}"]
        cells += [_number(row[metric], ".4g")] if metric in _METRICS else []
        rows.append([*cells, row["as_of"]])
    text = plain_table(heads, rows, numbers=tuple(range(4, len(heads) - 1)))
    legend = []
    if any(row[4].endswith("~") for row in rows):
        legend.append("~ derived from a ratio or a fixed share, not a published price")
    if any(row[4].endswith("!") for row in rows):
        legend.append("! kept out by a flag; `catalog show TYPE` says why")
    return "\n".join([text, *legend]) + "\n"


def place_text(provider: str, region: str, zone: str) -> str:
    """Name provider and region, with the zone where there is one; AWS zone ids do not name their region."""
    if zone.startswith(region):
        return f"{provider}/{zone}"
    return f"{provider}/{region}" + (f"/{zone}" if zone else "")


def type_text(summary: Mapping[str, Any], max_results: int) -> str:
    """Render one instance type; at most `max_results` prices (0: all)."""
    machine, chip = summary["instance_type"], summary["accelerator"]
    count = machine["accelerator_count"]
    memory = _number(machine["accelerator_memory_gib"], "g", " GiB usable each")
    lines = [
        f"{machine['provider']} {machine['instance_type']}  (family {machine['family']})",
        f"  accelerators    {count:g} x {machine['accelerator']}  ({memory})",
        *(_line(machine, *spec) for spec in _MACHINE_LINES if _applies(machine, spec[0])),
        *([f"  note            {machine['note']}"] if machine["note"] else []),
        "",
        *_chip_lines(chip),
        "",
        *_price_lines(summary, max_results),
        *_unknown_lines(summary),
        *_flag_lines(summary["flags"]),
        "sources",
        *(f"  {', '.join(source['as_of'])}  {source['source']}" for source in summary["sources"]),
    ]
    return "\n".join(wrapped for line in lines for wrapped in wrap_line(line)) + "\n"


def _applies(machine: Mapping[str, Any], key: str) -> bool:
    return not (key == "intra_node_gb_per_s" and machine["intra_node"] == "single")


def _line(values: Mapping[str, Any], key: str, label: str, unit: str) -> str:
    value = values[key]
    text = "unknown" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    if key == "rdma" and value is None:
        text = "none stated"
    return f"  {label:<16}{text}{' ' + unit if unit and value is not None else ''}"


def _chip_lines(chip: Mapping[str, Any] | None) -> list[str]:
    if chip is None:
        return ["accelerator: not in the table, so its speed is unknown and it is never a candidate"]
    name = f"{chip['accelerator']}: {chip['vendor']} {chip['generation']}, form {chip['form']}"
    lines = [f"{name}, peaks are dense"]
    known = [spec for spec in _CHIP_LINES if chip[spec[0]] is not None]
    lines += [_line(chip, *spec) for spec in known]
    if all(chip[key] is None for key in ("fp16_tflops", "bf16_tflops", "fp32_tflops")):
        lines.append("  no peaks are known: listed, never a candidate")
    if not chip["trainable"]:
        lines.append("  inference only: never a candidate for training")
    if chip["note"]:
        lines.append(f"  note            {chip['note']}")
    return [*lines, f"  source          {chip['source']} ({chip['as_of']})"]


def _price_lines(summary: Mapping[str, Any], max_results: int) -> list[str]:
    offers: Sequence[Mapping[str, Any]] = summary["offers"]
    if not offers:
        return ["no price is known for this type: it is listed, never a candidate", ""]
    shown = offers[: max_results or len(offers)]
    rows = []
    for offer in shown:
        option = offer["purchase_option"] + (f" {offer['option_variant']}" if offer["option_variant"] else "")
        mark = "" if offer["admitted"] else "!"
        price = f"{offer['price_per_hour']} {offer['currency']}{mark}"
        band = offer["interruption_band"] or ""
        rows.append(
            (offer["region"], option, str(offer["n_offers"]), price, offer["basis"], band, offer["as_of"])
        )
    heads = ("region", "option", "offers", "lowest price/h", "basis", "reclaimed", "as of")
    lines = plain_table(heads, rows, numbers=(2, 3)).split("\n")
    lines.append(f"{len(shown)} of {len(offers)} region prices shown, {summary['n_offers']} offers in all")
    return [*lines, ""]


def _unknown_lines(summary: Mapping[str, Any]) -> list[str]:
    unknown = summary["unknown_options"]
    return [f"no price known for: {', '.join(unknown)}", ""] if unknown else []


def _flag_lines(flags: Sequence[Mapping[str, Any]]) -> list[str]:
    if not flags:
        return []
    lines = ["flags"]
    for flag in flags:
        remedy = f" {flag['remedy']}" if flag["remedy"] else ""
        head = f"  {flag['severity']:<8}{flag['flag']} ({flag['n_offers']} offers)"
        lines.append(f"{head}: {flag['description']}{remedy}")
    return [*lines, ""]


def examination_text(found: Examination, fmt: str) -> str:
    """Render what `catalog doctor` found as `table` or `json`."""
    if fmt == "json":
        return json_text(_examination_values(found))
    rows: list[tuple[str, ...]] = [
        (
            health.manifest.provider,
            str(health.manifest.n_instance_types),
            str(health.manifest.n_offers),
            str(health.n_regional_offers),
            str(health.n_admitted),
            f"{health.newest_age_days} d",
            f"{health.oldest_age_days} d",
            health.manifest.sha256[:12],
        )
        for health in found.providers
    ]
    total = [str(sum(int(row[at]) for row in rows)) for at in range(1, 5)]
    rows.append(("all", *total, "", "", ""))
    heads = ("provider", "types", "offers", "regional", "admitted", "newest", "oldest", "sha256")
    lines = [plain_table(heads, rows, numbers=(1, 2, 3, 4, 5, 6)), ""]
    for health in found.providers:
        name = health.manifest.provider
        lines += [f"{name}: {count} offers kept out by {flag}" for flag, count in health.refused.items()]
        if health.unpriced_types:
            lines.append(
                f"{name}: no price for {len(health.unpriced_types)} types: {', '.join(health.unpriced_types)}"
            )
        lines += [f"{name}: refused row: {fault}" for fault in health.faults[:20]]
    lines += (
        [f"known regions without an offer: {', '.join(found.idle_regions)}"] if found.idle_regions else []
    )
    lines += [f"unknown regions: {', '.join(found.unknown_regions)}"] if found.unknown_regions else []
    lines += [line for one in found.history for line in _history_lines(one)]
    lines += [f"broken: {message}" for message in found.broken]
    lines.append("the catalog is whole" if found.is_healthy else "the catalog is broken")
    return "\n".join(wrapped for line in lines for wrapped in wrap_line(line)) + "\n"


def _history_lines(one: HistoryHealth) -> list[str]:
    """What the history of one provider holds, and what in it asks for a look."""
    span = f", {one.oldest} to {one.newest}" if one.oldest else ""
    lines = [f"{one.provider}: {one.n_snapshots} refreshed snapshots{span}"]
    old = [f"{region} ({days} d)" for region, days in one.kept_age_days.items()]
    lines += (
        [f"{one.provider}: kept from before, as no refresh reached them: {', '.join(old)}"] if old else []
    )
    if one.missing_regions:
        lines.append(
            f"{one.provider}: regions lost since the snapshot before: {', '.join(one.missing_regions)}"
        )
    if one.disagreements:
        worst = ", ".join(_disagreement(move) for move in one.disagreements[:3])
        lines.append(
            f"{one.provider}: {len(one.disagreements)} of {one.n_compared} prices are more than 20 % from the "
            f"bundled ones: {worst}; `planner catalog diff bundled latest --provider {one.provider}` lists them"
        )
    lines += [f"{one.provider}: {one.n_leftovers} leftovers of killed writers"] if one.n_leftovers else []
    return [*lines, *(f"broken: {message}" for message in one.damaged)]


def _disagreement(move: PriceMove) -> str:
    prices = f"{move.old} {move.old_currency} -> {move.new} {move.new_currency}"
    return f"{offer_id(move.key).partition('/')[2]} {prices}"


def _history_values(one: HistoryHealth) -> dict[str, Any]:
    return {
        "provider": one.provider,
        "n_snapshots": one.n_snapshots,
        "oldest": one.oldest,
        "newest": one.newest,
        "damaged": one.damaged,
        "n_leftovers": one.n_leftovers,
        "kept_age_days": dict(one.kept_age_days),
        "missing_regions": one.missing_regions,
        "n_compared_with_bundled": one.n_compared,
        "disagreements": [
            {
                "offer_id": offer_id(move.key),
                "bundled_price_per_hour": move.old,
                "refreshed_price_per_hour": move.new,
                "change_ratio": None if math.isnan(move.change_ratio) else move.change_ratio,
            }
            for move in one.disagreements
        ],
    }


def _examination_values(found: Examination) -> dict[str, Any]:
    providers = [
        {
            "provider": health.manifest.provider,
            "sha256": health.manifest.sha256,
            "n_instance_types": health.manifest.n_instance_types,
            "n_offers": health.manifest.n_offers,
            "n_regional_offers": health.n_regional_offers,
            "n_admitted": health.n_admitted,
            "oldest_as_of": health.manifest.oldest_as_of,
            "newest_as_of": health.manifest.newest_as_of,
            "newest_age_days": health.newest_age_days,
            "flags": dict(health.flags),
            "refused": dict(health.refused),
            "unpriced_types": list(health.unpriced_types),
            "faults": [str(fault) for fault in health.faults],
        }
        for health in found.providers
    ]
    return {
        "schema_version": _JSON_SCHEMA_VERSION,
        "directory": str(found.directory),
        "healthy": found.is_healthy,
        "broken": list(found.broken),
        "idle_regions": list(found.idle_regions),
        "unknown_regions": list(found.unknown_regions),
        "providers": providers,
        "history": [_history_values(one) for one in found.history],
    }


def _number(value: float | None, spec: str, unit: str = "") -> str:
    return "unknown" if value is None or math.isnan(value) else f"{value:{spec}}{unit}"


def plain_table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: tuple[int, ...]) -> str:
    """Render a plain table; cells of the widest columns are folded so that a line fits."""
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    while sum(widths) + 2 * (len(widths) - 1) > _width():
        widths[widths.index(max(widths))] -= 1
    lines = []
    for row in (heads, *rows):
        parts = [_fold(cell, width) for cell, width in zip(row, widths, strict=True)]
        for height in range(max(len(part) for part in parts)):
            texts = [part[height] if height < len(part) else "" for part in parts]
            cells = [
                text.rjust(width) if at in numbers else text.ljust(width)
                for at, (text, width) in enumerate(zip(texts, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _width() -> int:
    """Columns of standard output, at least enough to be read."""
    return max(terminal_width(sys.stdout), _MIN_WIDTH)


def _fold(cell: str, width: int) -> list[str]:
    """Cut a cell into lines; nothing is dropped: `A10...` must not hide whether it is an A100."""
    return [cell[at : at + width] for at in range(0, len(cell), max(width, 1))] or [""]


def wrap_line(line: str) -> list[str]:
    """Break a line at spaces, and nowhere else, so that it fits; what follows is indented by two more."""
    import textwrap

    if len(line) <= _width() or "\n" in line:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(
        line, _width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
