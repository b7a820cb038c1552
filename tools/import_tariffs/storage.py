"""Storage prices: object storage, block storage, parallel file systems, and the hourly system disk fee."""

from __future__ import annotations

from pathlib import Path

from tools.import_tariffs.rows import Row, provenance, read_rows

_REQUIRED = ("provider", "region_group", "service", "unit", "value", "confidence")
# Which service answers `storage_price(kind=...)`; every other service is kept for reference.
_ROLES = {
    ("aws", "s3-standard"): "object",
    ("gcp", "gcs-standard"): "object",
    ("azure", "blob-hot-lrs"): "object",
    ("alibaba", "oss-standard-lrs"): "object",
    ("aws", "ebs-gp3"): "system_disk",
    ("gcp", "pd-balanced"): "system_disk",
    ("alibaba", "essd-pl1"): "system_disk",
}
_PLACES = {
    "mainland China": "cn-*",
    "Hong Kong": "cn-hongkong",
    "Tokyo": "ap-northeast-1",
    "Singapore": "ap-southeast-1",
    "Jakarta": "ap-southeast-5",
    "Frankfurt": "eu-central-1",
    "example in the price rules": "*",
    "all": "*",
}
_REFERENCE = {
    ("aws", "us-east-1"),
    ("gcp", "us-central1"),
    ("azure", "westus"),
    ("alibaba", "*"),
    ("alibaba", "cn-*"),
}


def convert(source_dir: Path) -> list[Row]:
    """Return our storage rows in the order of the collected table, the hourly system disk fee last."""
    rows = read_rows(source_dir, "storage_prices.csv", _REQUIRED)
    return [*(_convert(row) for row in rows), _alibaba_disk_fee()]


def _convert(row: Row) -> Row:
    role = _ROLES.get((row["provider"], row["service"]), "other")
    region = _PLACES.get(row["region_group"], row["region_group"])
    used = row["unit"] == "usd_per_gib_month" and bool(row["value"]) and role != "other"
    return {
        "provider": row["provider"],
        "region": region,
        "service": row["service"],
        "role": role,
        "measure": row["unit"] or "limit",
        "value": row["value"],
        "currency": "USD",
        "tier_from_gib": row["tier_from_gib"],
        "tier_to_gib": row["tier_to_gib"],
        "reference": "yes" if (row["provider"], region) in _REFERENCE else "no",
        "max_throughput_mb_s": row["max_throughput_mb_s"],
        "max_iops": row["max_iops"],
        "durability": row["durability_note"],
        "use": "yes" if used else "no",
        **provenance(row),
    }


def _alibaba_disk_fee() -> Row:
    return {
        "provider": "alibaba",
        "region": "cn-*",
        "service": "default system disk of an instance",
        "role": "system_disk",
        "measure": "per_instance_hour",
        "value": "0.084",
        "currency": "CNY",
        "tier_from_gib": "",
        "tier_to_gib": "",
        "reference": "yes",
        "max_throughput_mb_s": "",
        "max_iops": "",
        "durability": "",
        "use": "yes",
        "confidence": "derived",
        "note": "constant part of mainland prices: 0.011592 USD / 0.138 USD per CNY; other regions not known",
        "source": "sugarlxn/skypilot-catalog@003c56a7 catalogs/v8/alicloud (rows with only a disk)",
        "as_of": "2026-04",
    }
