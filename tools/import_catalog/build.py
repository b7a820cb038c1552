"""The import: collected lists in, the catalog's tables out; the same input gives the same bytes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from catalogs.errors import CatalogError
from catalogs.store.validate import Fault, References, validate_rows
from catalogs.store.write import csv_bytes, write_snapshot
from catalogs.tables.model import REGIONAL_OFFER_KEY, ProviderManifest
from catalogs.tables.normalize import decimal_text
from tools.import_catalog.accelerators import build_accelerators, build_interconnects
from tools.import_catalog.offers import build_offers
from tools.import_catalog.rules import Row, read_rows, source_rates
from tools.import_catalog.types import build_types


@dataclass(frozen=True)
class ImportReport:
    """What an import wrote.

    Attributes:
        manifests: one per provider.
        n_instance_types: instance types of all providers.
        n_offers: offers by offer_id.
        n_regional_offers: offers when the zones of a region count once.
        n_admitted: offers without a refusing flag.
        faults: rows refused by validation, with the reason.
    """

    manifests: tuple[ProviderManifest, ...]
    n_instance_types: int
    n_offers: int
    n_regional_offers: int
    n_admitted: int
    faults: tuple[Fault, ...]


def import_catalog(source: Path, out: Path) -> ImportReport:
    """Build snapshot, accelerators, interconnects and commitment ratios from collected lists.

    Args:
        source: directory that holds `catalog/` and `performance/` (or the catalog directory itself).
        out: data directory to write: `snapshot/` and the CSV tables beside it.

    Raises:
        CatalogError: when a list is missing, or nothing valid is left.
    """
    catalog = source if (source / "offers.csv").is_file() else source / "catalog"
    gpus = catalog.parent / "performance" / "gpus.csv"
    if not (catalog / "offers.csv").is_file():
        raise CatalogError(
            f"no offers.csv in {source} or {catalog}; give the directory of the collected lists"
        )
    accelerators = build_accelerators(gpus, catalog.parent / "tariffs" / "power_and_hosting.csv")
    by_id = {row["accelerator"]: row for row in accelerators}
    types = build_types(catalog, by_id)
    offers = build_offers(catalog)
    rates = source_rates()
    references = References.of(accelerators, types, rates)
    kept_types, faults = validate_rows("instance_types", types, references)
    references = References.of(accelerators, kept_types, rates)
    kept_offers, offer_faults = validate_rows("offers", offers, references)
    priced = {(row["provider"], row["instance_type"]) for row in kept_offers}
    for row in kept_types:
        if (row["provider"], row["instance_type"]) in priced:
            row["note"] = row["note"].replace("no price found", "").strip(" ;")
    try:
        manifests = _write_all(out, catalog, accelerators, kept_types, kept_offers)
    except OSError as error:
        raise CatalogError(
            f"cannot write the catalog to {out}: {error.strerror}; choose another --out"
        ) from error
    return _report(manifests, kept_types, kept_offers, (*faults, *offer_faults))


def _write_all(
    out: Path, catalog: Path, accelerators: Sequence[Row], types: Sequence[Row], offers: Sequence[Row]
) -> list[ProviderManifest]:
    ratios = _ratios(catalog)
    out.mkdir(parents=True, exist_ok=True)
    _write(out / "accelerators.csv", "accelerators", accelerators)
    _write(out / "interconnects.csv", "interconnects", build_interconnects(types))
    _write(out / "commitment_ratios.csv", "commitment_ratios", ratios)
    manifests = []
    for provider in sorted({row["provider"] for row in types}):
        own_types = [row for row in types if row["provider"] == provider]
        own_offers = [row for row in offers if row["provider"] == provider]
        manifests.append(write_snapshot(out / "snapshot", provider, own_types, own_offers))
    return manifests


def _report(
    manifests: Sequence[ProviderManifest],
    types: Sequence[Row],
    offers: Sequence[Row],
    faults: tuple[Fault, ...],
) -> ImportReport:
    from catalogs.offers.flags import admit_offers
    from catalogs.tables.columns import column_names, make_table

    table = make_table("offers", [[row[name] for name in column_names("offers")] for row in offers], "offers")
    admitted = int(admit_offers(table, allow_flagged=False).mask.sum())
    regional = len(Counter(tuple(row[name] for name in REGIONAL_OFFER_KEY) for row in offers))
    return ImportReport(tuple(manifests), len(types), len(offers), regional, admitted, faults)


def _ratios(catalog: Path) -> list[Row]:
    """Median price ratios of commitments to on-demand, one row per option."""
    options: Mapping[str, tuple[tuple[str, str, str], ...]] = {
        "aws": (("ratio_1y_median", "reserved_1y", "standard.no_upfront"),),
        "azure": (("ratio_1y_median", "reserved_1y", ""), ("ratio_3y_median", "reserved_3y", "")),
        "gcp": (("ratio_1y_median", "cud_1y", "resource"), ("ratio_3y_median", "cud_3y", "resource")),
    }
    sources = {
        "aws": ("tsaol/aws-gpu@77fcd9fe (from ec2instances.info)", "2026-01-21"),
        "azure": ("sstybel/azure-vm-price-importer@6c018796, Poland Central only", "2026-01-26"),
        "gcp": ("doitintl/gcpinstances.info@e4becb58", "2024-06-26"),
    }
    out = []
    for row in read_rows(catalog / "commitment_ratios.csv"):
        for column, option, variant in options[row["provider"]]:
            if row[column]:
                source, as_of = sources[row["provider"]]
                out.append(
                    {
                        "provider": row["provider"],
                        "instance_type": row["instance_type"],
                        "purchase_option": option,
                        "option_variant": variant,
                        "ratio": decimal_text(Decimal(row[column])),
                        "regions": row["regions"],
                        "source": source,
                        "as_of": as_of,
                    }
                )
    return sorted(out, key=lambda row: (row["provider"], row["instance_type"], row["purchase_option"]))


def _write(path: Path, table: str, rows: Sequence[Row]) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(csv_bytes(table, rows))
    partial.replace(path)
