"""Storage services a run can read from: prices, limits and sizes by provider and region, one fact per row."""

from __future__ import annotations

from pathlib import Path

from tools.import_tariffs.rows import Row, read_rows

_REQUIRED = ("provider", "service", "tier", "region_group", "measure", "value", "unit", "confidence")
_MB_PER_MIB = 1.048576
_LUSTRE = "persistent-2-ssd-"
# (provider, service, tier prefix) of the collected table: our service and its kind
_SERVICES = {
    ("aws", "s3", "standard"): ("s3-standard", "object"),
    ("gcp", "gcs", "standard"): ("gcs-standard", "object"),
    ("gcp", "gcs", "any"): ("gcs-standard", "object"),
    ("azure", "blob", "hot-lrs"): ("blob-hot-lrs", "object"),
    ("azure", "blob", "account limit"): ("blob-hot-lrs", "object"),
    ("alibaba", "oss", "account limit"): ("oss-standard-lrs", "object"),
    ("aws", "ebs", "gp3"): ("ebs-gp3", "block"),
    ("gcp", "hyperdisk-balanced", "zonal"): ("hyperdisk-balanced", "block"),
    ("azure", "premium-ssd-v2", "lrs"): ("premium-ssd-v2", "block"),
    ("aws", "fsx-lustre", "scratch-2"): ("fsx-lustre-scratch-2", "file_system"),
    **{
        ("aws", "fsx-lustre", f"{_LUSTRE}{rate}"): (f"fsx-lustre-persistent-2-{rate}", "file_system")
        for rate in (125, 250, 500, 1000)
    },
    **{
        ("gcp", "managed-lustre", f"managed-lustre-{rate}"): (f"managed-lustre-{rate}", "file_system")
        for rate in (125, 250, 500, 1000)
    },
    **{
        ("azure", "managed-lustre", f"amlfs-durable-premium-{rate}"): (
            f"managed-lustre-{rate}",
            "file_system",
        )
        for rate in (40, 125, 250, 500)
    },
}
_MEASURES = {
    "capacity_price": "usd_per_gib_month", "provisioned_throughput_price": "usd_per_mb_s_month",
    "get_price": "usd_per_1000_reads", "throughput_included": "included_mb_s", "throughput_per_tib": "mb_s_per_tib",
    "min_size": "min_gib", "max_throughput_per_instance": "client_mb_s",
    "max_throughput_per_project_region": "total_mb_s",
}  # fmt: skip
_REFERENCES = frozenset(("us-east-1", "us-central1", "westus", "eastus", "us (list)"))
_EVERYWHERE = frozenset(("all", "same region", "large regions"))
# what a source states of several services at once, by our service: measure, value, and the row that states it
_STATED = (
    (
        "aws", "fsx-lustre", "persistent-2 and scratch-2", "min_size", "fsx-lustre-",
        (("min_gib", "1200"), ("step_gib", "2400")),
    ),
    ("aws", "fsx-lustre", "any", "max_throughput_per_client", "fsx-lustre-", (("client_mb_s", "12500"),)),
)  # fmt: skip
_OLDER = ("aws", "s3", "8003"), ("aws", "s3", "5741"), ("aws", "s3", "2861"), ("aws", "s3", "2718"), (
    "azure", "blob", "6250",
)  # fmt: skip


def convert(source_dir: Path) -> list[Row]:
    """Return our rows of storage services in the order of the collected table, derived ones last."""
    rows = read_rows(source_dir, "storage_services.csv", _REQUIRED)
    out = [made for row in rows if (made := _convert(row)) is not None]
    return [*out, *_shared(rows, out), *_client_of_gcs(rows), *_local(rows), *_usable(rows)]


def _row(
    provider: str, name: tuple[str, str], region: str, measure: str, value: str, of: Row, **changes: str
) -> Row:
    used = bool(value) and of["confidence"] not in ("suspect", "missing")
    out = {
        "provider": provider, "service": name[0], "kind": name[1], "region": region, "measure": measure,
        "value": value, "reference": "no", "use": "yes" if used else "no", "confidence": of["confidence"],
        "note": of["note"].strip(), "source": of["source"].strip() or "not found in any readable source",
        "as_of": of["as_of"].strip() or "undated",
    }  # fmt: skip
    return {**out, **changes}


def _convert(row: Row) -> Row | None:
    name = _SERVICES.get((row["provider"], row["service"], row["tier"]))
    measure = _MEASURES.get(row["measure"])
    if name is not None and row["measure"] == "max_throughput":
        measure = "volume_mb_s" if name[1] == "block" else "total_mb_s"
    if name is None or measure is None:
        return None
    region = "*" if row["region_group"] in _EVERYWHERE else row["region_group"]
    changes = {"reference": "yes" if row["region_group"] in _REFERENCES or region == "*" else "no"}
    if (row["provider"], row["service"], row["value"]) in _OLDER:
        changes["use"] = "no"
    return _row(row["provider"], name, region, measure, _value(row), row, **changes)


def _value(row: Row) -> str:
    """The value in decimal megabytes."""
    if not row["value"] or "mib_s" not in row["unit"]:
        return row["value"]
    factor = 1.0 / _MB_PER_MIB if row["unit"].startswith("usd") else _MB_PER_MIB
    return f"{float(row['value']) * factor:.6g}"


def _shared(rows: list[Row], made: list[Row]) -> list[Row]:
    """What one row of the source says of several services, and the steps of managed Lustre: its smallest sizes."""
    kinds = dict.fromkeys((row["provider"], row["service"], row["kind"]) for row in made)
    out = []
    for provider, service, tier, measure, prefix, values in _STATED:
        of = next(
            r
            for r in rows
            if (r["provider"], r["service"], r["tier"], r["measure"]) == (provider, service, tier, measure)
        )
        for owner, name, kind in kinds:
            if owner == provider and name.startswith(prefix):
                out += [
                    _row(provider, (name, kind), "*", key, value, of, reference="yes")
                    for key, value in values
                ]
    steps = [
        row for row in made if row["measure"] == "min_gib" and row["service"].startswith("managed-lustre")
    ]
    return out + [{**row, "measure": "step_gib"} for row in steps]


def _client_of_gcs(rows: list[Row]) -> list[Row]:
    """What one client reads through gcsfuse: of large objects, and of small ones."""
    named = {
        "gcsfuse, sequential, 1 GiB files": "client_mb_s",
        "gcsfuse, sequential, 128 KiB files": "small_client_mb_s",
    }
    name = ("gcs-standard", "object")
    return [
        _row("gcp", name, "*", named[row["tier"]], row["value"], row, reference="yes")
        for row in rows
        if row["tier"] in named
    ]


def _local(rows: list[Row]) -> list[Row]:
    """Local NVMe per TB: the least of what was measured on whole instances, as limits follow the instance's size."""
    of = next(row for row in rows if row["tier"] == "i8g.12xlarge")
    note = "4,575 MB/s read, 3,263 written on 11.25 TB: least per TB of the instances measured; GPU types: not found"
    return [
        _row(
            "*",
            ("local-nvme", "local_nvme"),
            "*",
            measure,
            value,
            of,
            reference="yes",
            confidence="derived",
            note=note,
        )
        for measure, value in (("read_mb_s_per_tb", "406"), ("write_mb_s_per_tb", "290"))
    ]


def _usable(rows: list[Row]) -> list[Row]:
    of = next(row for row in rows if row["measure"] == "usable_share" and row["value"] == "0.8")
    return [_row("*", ("file-system", "file_system"), "*", "usable_ratio", "0.8", of, reference="yes")]
