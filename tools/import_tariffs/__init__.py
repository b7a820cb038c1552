"""Builds `catalogs/data/tariffs/*.csv` (our own schema) from collected public tariff tables.

`import_tariffs(source_dir, out_dir)` reads the collected tables and writes ours. It is deterministic: the
same input gives the same bytes. Every row keeps `source`, `as_of` and `confidence`. A row that must not enter
a price (an older table, a suspect value, a looked-for but missing figure) is kept with `use = no` so that it
can be seen.
"""

from __future__ import annotations

from pathlib import Path

from tools.import_tariffs import options, priors, services, storage, transfer, world
from tools.import_tariffs.rows import Row, write_rows

__all__ = ["import_tariffs"]


def import_tariffs(source_dir: Path, out_dir: Path) -> dict[str, int]:
    """Convert the collected tables in `source_dir` into our tariff tables in `out_dir`.

    Args:
        source_dir: holds transfer_prices.csv, storage_prices.csv, storage_services.csv, purchase_options.csv,
            quota_rules.csv, interruption_priors.csv, fx.csv and power_and_hosting.csv.
        out_dir: existing or new directory for our tables.

    Returns:
        Rows written per table.

    Raises:
        CatalogInputError: a source table is missing or lacks a column.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    tables: dict[str, list[Row]] = {
        "transfer": transfer.convert(source_dir),
        "storage": storage.convert(source_dir),
        "storage_services": services.convert(source_dir),
        "purchase_options": options.convert_options(source_dir),
        "quota_rules": options.convert_quotas(source_dir),
        "interruption_priors": priors.convert(source_dir),
        "fx": world.convert_fx(source_dir),
        "power_and_hosting": world.convert_power(source_dir),
    }
    for name, rows in tables.items():
        write_rows(out_dir / f"{name}.csv", rows)
    return {name: len(rows) for name, rows in tables.items()}
