"""Facts on machines that no cloud's API reports, from the bundled catalog: links, network, GPU model."""

from __future__ import annotations

from functools import cache

Row = dict[str, str]


@cache
def _bundled(provider: str, table: str) -> list[Row]:
    from catalogs.store.read import bundled_directory, parse_file, provider_directories, read_provider
    from catalogs.tables.columns import column_names

    for directory in provider_directories(bundled_directory()):
        if directory.name == provider:
            path = directory / f"{table}.csv.gz"
            rows = parse_file(table, path, read_provider(directory)[1][path])
            return [dict(zip(column_names(table), row, strict=True)) for row in rows]
    return []


@cache
def known_types(provider: str) -> dict[str, Row]:
    """Bundled instance_types rows of a provider by instance type; copies are the caller's to make."""
    return {row["instance_type"]: row for row in _bundled(provider, "instance_types")}


@cache
def known_places(provider: str) -> dict[str, list[tuple[str, str]]]:
    """Where a machine was on offer when the bundled catalog was made: instance type to (region, zone)."""
    places: dict[str, set[tuple[str, str]]] = {}
    for row in _bundled(provider, "offers"):
        places.setdefault(row["instance_type"], set()).add((row["region"], row["zone"]))
    return {name: sorted(pairs) for name, pairs in places.items()}
