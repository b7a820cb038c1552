"""A small part of the bundled catalog: real offers of a few regions and families of every provider.

What a plan costs to find grows with its offers. Tests of what is made of an answer - screens, files, pages, refusals,
judgements - ask no less of 1,350 offers than of 7,500: machines of every provider, of one and of eight accelerators,
bought in every way that there is, on three continents; all examples have answers. Tests of prices, of the search
itself and of what documents show read the whole catalog.
"""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

from catalogs.store.read import bundled_directory, provider_directories
from catalogs.store.write import write_snapshot

REGIONS = {
    "aws": ("us-east-1", "us-east-2", "us-west-1", "us-west-2", "eu-west-1", "eu-north-1", "eu-south-2"),
    "gcp": ("us-central1", "us-east1", "europe-west4"),
    "azure": ("eastus", "westeurope", "polandcentral"),
    "alibaba": ("cn-hangzhou", "us-east-1"),
}
FAMILIES = {
    "aws": ("p3.", "p4d.", "p5.", "p5en.", "p6-b200.", "g4dn.12", "g5.", "g6.x", "g6.12", "g6e.", "trn1."),
    "gcp": ("a2-", "a3-", "a4-", "g2-standard-48", "g2-standard-96", "n1-"),
    "azure": ("Standard_N",),
    "alibaba": ("ecs.",),
}


def write_small_catalog(root: Path) -> Path:
    """Write the snapshots of all providers below `root`; small providers are taken whole."""
    for directory in provider_directories(bundled_directory()):
        families = FAMILIES.get(directory.name, ("",))
        types, offers = (
            [row for row in _rows(directory / f"{table}.csv.gz") if row["instance_type"].startswith(families)]
            for table in ("instance_types", "offers")
        )
        regions = REGIONS.get(directory.name)
        kept = [row for row in offers if regions is None or row["region"] in regions]
        write_snapshot(root, directory.name, types, kept)
    return root


def _rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path) as packed:
        return list(csv.DictReader(io.TextIOWrapper(packed, encoding="utf-8")))
