"""Examine a catalog: is it whole, how old is it, what does it hold, what is kept out and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

from catalogs.errors import CatalogError
from catalogs.inspection.history import HistoryHealth, examine_history
from catalogs.offers.flags import admit_offers
from catalogs.store.read import (
    Source,
    catalog_directory,
    check_count,
    history_directory,
    is_named,
    parse_file,
    provider_directories,
    read_provider,
)
from catalogs.store.snapshots import newest_source, provider_places
from catalogs.store.validate import Fault, References, validate_rows
from catalogs.tables.accelerators import load_accelerators
from catalogs.tables.columns import column_names, make_table
from catalogs.tables.model import REGIONAL_OFFER_KEY, ProviderManifest
from catalogs.tables.regions import residency_groups
from catalogs.tables.table import Table
from catalogs.tariffs import usd_per

TextRow = dict[str, str]


@dataclass(frozen=True)
class ProviderHealth:
    """What one provider's snapshot holds.

    Attributes:
        manifest: its manifest.
        newest_age_days: days from its newest price to `today`; a month counts from its first day.
        oldest_age_days: days from its oldest price.
        n_regional_offers: offers when the zones of a region count once.
        n_admitted: offers without a refusing flag.
        flags: offers per flag, those that only inform included.
        refused: offers kept out, per first refusing flag.
        unpriced_types: instance types without any offer.
        faults: rows that validation refuses.
    """

    manifest: ProviderManifest
    newest_age_days: int
    oldest_age_days: int
    n_regional_offers: int
    n_admitted: int
    flags: Mapping[str, int]
    refused: Mapping[str, int]
    unpriced_types: tuple[str, ...]
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class Examination:
    """The state of a catalog.

    Attributes:
        directory: the snapshot examined.
        providers: health of every provider that could be read.
        broken: one message per provider (or the directory) that could not.
        idle_regions: known regions without any offer.
        unknown_regions: regions of offers that regions.csv does not know.
        history: state of the refreshed snapshots, where no directory was named.
    """

    directory: Path
    providers: tuple[ProviderHealth, ...]
    broken: tuple[str, ...]
    idle_regions: tuple[str, ...]
    unknown_regions: tuple[str, ...]
    history: tuple[HistoryHealth, ...] = ()

    @property
    def is_healthy(self) -> bool:
        """Whether every provider and every stored snapshot could be read and no row is refused."""
        damaged = any(one.damaged for one in self.history)
        return not (self.broken or damaged or any(provider.faults for provider in self.providers))


def examine(directory: Path | None, today: date) -> Examination:
    """Examine every provider of the catalog in use; one that is broken does not hide the others.

    Args:
        directory: snapshot directory; default as for `load_catalog`, the history then included.
        today: the date ages are counted from.
    """
    root = catalog_directory(directory)
    healths: list[ProviderHealth] = []
    broken: list[str] = []
    places: set[tuple[str, str]] = set()
    try:
        readers = _readers(directory, root)
    except CatalogError as error:
        return Examination(root, (), (str(error),), (), ())
    accelerators = [{"accelerator": name} for name in load_accelerators()["accelerator"]]
    for read in readers:
        try:
            source = read()
            if source is None:
                continue  # a history without a whole snapshot: `history` says why
            manifest, files = source
            rows = {path.name.partition(".")[0]: _rows(path, data) for path, data in files.items()}
            for path in files:
                name = path.name.partition(".")[0]
                check_count(manifest, name, len(rows[name]), path)
            healths.append(_health(manifest, rows, accelerators, today))
            places |= {(row["provider"], row["region"]) for row in rows["offers"]}
        except CatalogError as error:
            broken.append(str(error))
    history = () if is_named(directory) else examine_history(history_directory(), today)
    grouped = set(residency_groups())
    examined = {health.manifest.provider for health in healths}
    idle = [f"{provider}/{region}" for provider, region in sorted(grouped - places) if provider in examined]
    unknown = ["/".join(place) for place in sorted(places - grouped)]
    return Examination(root, tuple(healths), tuple(broken), tuple(idle), tuple(unknown), history)


def _readers(directory: Path | None, root: Path) -> list[Callable[[], Source | None]]:
    """One function per provider that reads the snapshot in use."""
    if is_named(directory):
        return [partial(read_provider, path) for path in provider_directories(root)]
    return [partial(newest_source, *pair) for pair in provider_places(history_directory()).values()]


def _rows(path: Path, data: bytes) -> list[TextRow]:
    table = path.name.partition(".")[0]
    names = column_names(table)
    return [dict(zip(names, row, strict=False)) for row in parse_file(table, path, data)]


def _health(
    manifest: ProviderManifest,
    rows: Mapping[str, Sequence[TextRow]],
    accelerators: Sequence[TextRow],
    today: date,
) -> ProviderHealth:
    types, offers = rows["instance_types"], rows["offers"]
    currencies = {row.get("currency", "") for row in offers}
    references = References.of(accelerators, types, _rates(currencies))
    faults = [fault for name in rows for fault in validate_rows(name, rows[name], references)[1]]
    table = _offers_table(offers, manifest.provider)
    admission = admit_offers(table, allow_flagged=False)
    priced = {row["instance_type"] for row in offers}
    return ProviderHealth(
        manifest=manifest,
        newest_age_days=_age_days(manifest.newest_as_of, today),
        oldest_age_days=_age_days(manifest.oldest_as_of, today),
        n_regional_offers=len(set(table.keys_of(*REGIONAL_OFFER_KEY))),
        n_admitted=int(admission.mask.sum()),
        flags=admission.counts,
        refused=admission.refused,
        unpriced_types=tuple(sorted({row["instance_type"] for row in types} - priced)),
        faults=tuple(faults),
    )


def _offers_table(rows: Sequence[TextRow], provider: str) -> Table:
    names = column_names("offers")
    return make_table("offers", [[row.get(name, "") for name in names] for row in rows], f"{provider} offers")


def _rates(currencies: set[str]) -> dict[str, float]:
    rates: dict[str, float] = {}
    for currency in sorted(currencies - {""}):
        try:
            rates[currency] = float(usd_per(currency))
        except CatalogError:
            # Left out on purpose: validation then names every offer whose currency has no rate.
            continue
    return rates


def _age_days(as_of: str, today: date) -> int:
    parts = [int(part) for part in as_of.split("-")]
    year, month, day = (*parts, 1)[:3]
    return (today - date(year, month, day)).days
