"""What the bundled catalog knows of a machine and no cloud's interface tells: links, network, GPU model."""

from __future__ import annotations

from functools import cache

Row = dict[str, str]


@cache
def _bundled_types() -> dict[str, dict[str, Row]]:
    from catalogs.store import bundled_directory, parse_file, provider_directories, read_provider

    found: dict[str, dict[str, Row]] = {}
    for directory in provider_directories(bundled_directory()):
        manifest, files = read_provider(directory)
        path = directory / "instance_types.csv.gz"
        found[manifest.provider] = _by_name("instance_types", parse_file("instance_types", path, files[path]))
    return found


def _by_name(table: str, rows: list[list[str]]) -> dict[str, Row]:
    from catalogs.columns import column_names

    names = column_names(table)
    made = [dict(zip(names, row, strict=True)) for row in rows]
    return {row["instance_type"]: row for row in made}


def known_types(provider: str) -> dict[str, Row]:
    """Bundled instance_types rows of a provider by instance type; copies are the caller's to make."""
    return _bundled_types().get(provider, {})
