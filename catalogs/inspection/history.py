"""Examine the history of refreshed snapshots: damage, leftovers, old regions, regions lost, sources that disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from catalogs.errors import CatalogError
from catalogs.inspection.diff import PriceMove, diff_catalogs
from catalogs.store.files import POINTER, read_pointer, snapshot_directories
from catalogs.store.load import assemble
from catalogs.store.read import bundled_directory, parse_source, read_provider
from catalogs.store.snapshots import Snapshot, day_of, histories, stored_snapshots
from catalogs.tables.model import Catalog, PurchaseOption

DISAGREE_ABOVE_RATIO = 0.2


@dataclass(frozen=True)
class HistoryHealth:
    """The state of one provider's refreshed snapshots.

    Attributes:
        provider: provider id.
        n_snapshots: snapshots with a readable manifest.
        oldest: day of the oldest one, None where there is none.
        newest: day of the newest one.
        damaged: one message per damaged snapshot or pointer.
        n_leftovers: what killed writers left; the next refresh removes it.
        kept_age_days: region that the last refresh did not reach, to the age of its oldest price.
        missing_regions: regions of the snapshot before that are not in the one in use.
        disagreements: prices other than spot that differ by more than a fifth from the bundled ones.
        n_compared: prices of both sources that were compared.
    """

    provider: str
    n_snapshots: int
    oldest: date | None
    newest: date | None
    damaged: tuple[str, ...] = ()
    n_leftovers: int = 0
    kept_age_days: Mapping[str, int] = field(default_factory=dict)
    missing_regions: tuple[str, ...] = ()
    disagreements: tuple[PriceMove, ...] = ()
    n_compared: int = 0


def examine_history(home: Path, today: date) -> tuple[HistoryHealth, ...]:
    """Examine every provider's history; every file of every snapshot is read and hashed.

    Args:
        home: directory of the history.
        today: the date ages are counted from.
    """
    return tuple(_examine(directory, today) for directory in histories(home))


def _examine(directory: Path, today: date) -> HistoryHealth:
    snapshots = stored_snapshots(directory)
    damaged = _damaged_snapshots(directory)
    pointer = _pointer_damage(directory)
    history_health = HistoryHealth(
        directory.name,
        len(snapshots),
        snapshots[0].as_of if snapshots else None,
        snapshots[-1].as_of if snapshots else None,
        (*damaged.values(), *pointer),
        _count_leftovers(directory),
    )
    intact = [snapshot for snapshot in snapshots if snapshot.path not in damaged]
    current = next((snapshot for snapshot in intact if snapshot.is_current), None)
    if current is None:
        return history_health
    age_days = {region: (today - day_of(as_of)).days for region, as_of in current.kept_regions.items()}
    before = _before(intact, current)
    history_health = replace(
        history_health, kept_age_days=age_days, missing_regions=_missing(before, current)
    )
    return _compare_with_bundled(history_health, current)


def _damaged_snapshots(directory: Path) -> dict[Path, str]:
    out = {}
    for path in snapshot_directories(directory):
        try:
            parse_source(read_provider(path))
        except CatalogError as error:
            out[path] = f"{error}; or remove the directory {path}"
    return out


def _pointer_damage(directory: Path) -> list[str]:
    pointer, present = read_pointer(directory), snapshot_directories(directory)
    if pointer is None and present:
        return [f"{directory / POINTER} is missing or damaged; the next `planner catalog refresh` repairs it"]
    if pointer is not None and directory / pointer.snapshot not in present:
        return [f"{directory / POINTER} names {pointer.snapshot}, which is not there"]
    return []


def _count_leftovers(directory: Path) -> int:
    try:
        return sum(path.name.startswith(".") for path in directory.iterdir())
    except OSError:
        return 0


def _before(snapshots: Sequence[Snapshot], current: Snapshot) -> Path | None:
    """The snapshot written before the one in use; else the bundled one."""
    older = [snapshot for snapshot in snapshots if snapshot.sequence < current.sequence]
    if older:
        return max(older, key=lambda snapshot: snapshot.sequence).path
    bundled = bundled_directory() / current.provider
    return bundled if bundled.is_dir() else None


def _missing(before: Path | None, current: Snapshot) -> tuple[str, ...]:
    if before is None:
        return ()
    regions = [set(_catalog(path).offers["region"]) for path in (before, current.path)]
    return tuple(sorted(regions[0] - regions[1]))


def _compare_with_bundled(history_health: HistoryHealth, current: Snapshot) -> HistoryHealth:
    """Compare published prices; spot moves by itself."""
    bundled = bundled_directory() / current.provider
    if not bundled.is_dir():
        return history_health
    options = {option.value for option in PurchaseOption} - {PurchaseOption.SPOT.value}
    sides = []
    for path in (bundled, current.path):
        catalog = _catalog(path)
        offers = catalog.offers.take(catalog.offers.is_in("purchase_option", options))
        sides.append(Catalog(catalog.instance_types, offers, catalog.accelerators, catalog.manifests))
    diff = diff_catalogs(*sides)
    compared = len(diff.moves) + diff.n_same
    return replace(history_health, disagreements=diff.above(DISAGREE_ABOVE_RATIO), n_compared=compared)


def _catalog(path: Path) -> Catalog:
    return assemble([read_provider(path)], cache=False)
