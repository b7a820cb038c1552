"""From an engine's version to the row that has its figures in data/engines.csv (data/engine_releases.csv).

A row is the first version that is measured as those of a year: most are as old as they say, but an engine that was
rewritten late in a year counts to the next, and one that was rewritten within a year has another name before.
"""

from __future__ import annotations

from functools import cache

from planner.bundled import bundled_rows


@cache
def _releases() -> dict[str, tuple[tuple[tuple[int, ...], str, int], ...]]:
    """Versions, and the names and years of their figures, of each engine, the oldest first."""
    found: dict[str, list[tuple[tuple[int, ...], str, int]]] = {}
    for row in bundled_rows("engine_releases.csv"):
        one = (numbers(row["version"]), row["figures"], int(row["measured_as"]))
        found.setdefault(row["engine"], []).append(one)
    return {engine: tuple(sorted(rows)) for engine, rows in found.items()}


def released_engines() -> frozenset[str]:
    """Engines whose versions are known."""
    return frozenset(_releases())


def numbers(version: str) -> tuple[int, ...]:
    """`0.6.3` as (0, 6, 3); what follows the numbers (`rc1`, `.post1`) is left out."""
    parts: list[int] = []
    for word in version.removeprefix("v").split("."):
        digits = word[: len(word) - len(word.lstrip("0123456789"))]
        if not digits:
            break
        parts.append(int(digits))
        if digits != word:
            break
    return tuple(parts)


def figures_of_release(engine: str, version: str) -> tuple[str, int]:
    """Name and year by which a version is measured; of versions before the first known, those of the first.

    Raises:
        ValueError: no releases of that engine are known, or the version begins with no number.
    """
    rows, asked = _releases().get(engine, ()), numbers(version)
    if not rows:
        raise ValueError(f"releases of inference engine {engine!r} are not known")
    if not asked:
        raise ValueError(f"version {version!r} does not begin with a number")
    _, name, year = next((row for row in reversed(rows) if row[0] <= asked), rows[0])
    return name, year
