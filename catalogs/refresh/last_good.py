"""The snapshot that a refresh would replace, and answers too poor to replace it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from catalogs.errors import CatalogError
from catalogs.providers.base import FetchLog, SchemaChanged

if TYPE_CHECKING:
    from catalogs.refresh.checking import Checked

SUDDEN_END_OFFERS = 10


@dataclass(frozen=True)
class LastGood:
    """The snapshot in use of a provider: date and number of its offers, and where it lies."""

    as_of: str
    n_offers: int
    path: Path

    def offers(self) -> list[dict[str, str]]:
        """Its offers as text rows."""
        from catalogs.store.read import read_provider
        from catalogs.store.snapshots import source_rows

        return source_rows(read_provider(self.path))[1]

    def n_by_option(self) -> Mapping[str, int]:
        """Number of its offers per purchase option, derived and declared ones left out."""
        return Counter(
            row["purchase_option"] for row in self.offers() if row["basis"] in ("list", "observed")
        )


def last_good(provider: str) -> LastGood | None:
    """The snapshot in use of a provider; None where there is none."""
    from catalogs.store.history import list_snapshots

    try:
        snapshots = list_snapshots(provider)
    except (CatalogError, OSError):
        return None
    if not snapshots:
        return None
    current = next((snapshot for snapshot in snapshots if snapshot.is_current), snapshots[-1])
    return LastGood(current.manifest.newest_as_of, current.manifest.n_offers, current.path)


def refuse_emptiness(name: str, checked: Checked, previous: LastGood | None) -> None:
    """An answer without a single usable row is a fault of the answer, not the end of the provider."""
    if not checked.instance_types:
        raise SchemaChanged(
            "not one instance type in the answer passes the checks" + _first(checked),
            where="instance_types",
            provider=name,
        )
    if not checked.offers and previous and previous.n_offers:
        raise SchemaChanged(
            "not one price in the answer passes the checks" + _first(checked), where="offers", provider=name
        )


def keep_vanished_options(
    name: str, checked: Checked, previous: LastGood | None, requested: Collection[str], log: FetchLog
) -> None:
    """A purchase option that had many prices and now has none anywhere is an empty answer, not its end."""
    present = {row["purchase_option"] for row in checked.offers}
    lost = {option for error in log.failures for option in error.purchase_options}
    before = previous.n_by_option() if previous else {}
    for option, number in sorted(before.items()):
        if number >= SUDDEN_END_OFFERS and option in requested and option not in present | lost:
            words = f"no {option} price in the answer, {number} before: the old ones are kept"
            log.failed(SchemaChanged(words, where="offers", provider=name), {option})


def _first(checked: Checked) -> str:
    return f", first: {checked.examples[0]}" if checked.examples else " (it is empty)"
