"""Put a refresh together with the last good data of what it did not reach, each row with its own date."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catalogs.errors import CatalogError
from catalogs.tables.columns import column_names
from catalogs.tables.model import INSTANCE_TYPE_KEY, OFFER_KEY, offer_id

Row = Mapping[str, str]


@dataclass(frozen=True)
class Scope:
    """What a refresh reached.

    Attributes:
        failed_regions: regions that could not be read.
        regions: regions asked for; None is all.
        purchase_options: purchase options asked for; None is all.
    """

    failed_regions: frozenset[str] = frozenset()
    regions: frozenset[str] | None = None
    purchase_options: frozenset[str] | None = None

    @classmethod
    def of(
        cls,
        failed_regions: Collection[str],
        regions: Collection[str] | None,
        purchase_options: Collection[str] | None,
    ) -> Scope:
        """Take any collections of texts."""
        limited = None if regions is None else frozenset(regions)
        options = None if purchase_options is None else frozenset(map(str, purchase_options))
        return cls(frozenset(failed_regions), limited, options)

    @property
    def is_whole(self) -> bool:
        """Whether everything was asked for and answered."""
        return not self.failed_regions and self.regions is None and self.purchase_options is None

    def reached(self, offer: Row) -> bool:
        """Whether the refresh would have returned this offer if it were still sold."""
        return (
            offer["region"] not in self.failed_regions
            and (self.regions is None or offer["region"] in self.regions)
            and (self.purchase_options is None or offer["purchase_option"] in self.purchase_options)
        )


@dataclass(frozen=True)
class Merged:
    """Rows to store.

    Attributes:
        instance_types: text rows.
        offers: text rows.
        kept_regions: region to the oldest date of the offers kept from before.
        n_kept_offers: offers kept from before.
    """

    instance_types: Sequence[Row]
    offers: Sequence[Row]
    kept_regions: Mapping[str, str] = field(default_factory=dict)
    n_kept_offers: int = 0


def text_rows(rows: Any) -> list[dict[str, str]]:
    """Take text rows, or a DataFrame of texts, as dicts; missing values become empty texts."""
    if hasattr(rows, "to_dict"):
        rows = rows.fillna("").astype(str).to_dict("records")
    return [{name: str(value) for name, value in row.items()} for row in rows]


def merge(
    new_types: Sequence[Row],
    new_offers: Sequence[Row],
    old_types: Sequence[Row],
    old_offers: Sequence[Row],
    scope: Scope,
) -> Merged:
    """Keep of the old rows what the refresh did not reach.

    An old offer stays when its region failed or it was not requested, with its own date and source; one that was
    asked for and not returned is gone. Old instance types stay when offers kept need them, and when the
    refresh was not whole (nothing then says that they are gone).
    """
    if scope.is_whole:
        return Merged(new_types, new_offers)
    seen = {_key(row, OFFER_KEY) for row in new_offers}
    unreached = [row for row in old_offers if not scope.reached(row) and _key(row, OFFER_KEY) not in seen]
    new_keys = {_key(row, INSTANCE_TYPE_KEY) for row in new_types}
    types = [row for row in old_types if _key(row, INSTANCE_TYPE_KEY) not in new_keys]
    dates: dict[str, str] = {}
    for row in unreached:
        dates[row["region"]] = min(row["as_of"], dates.get(row["region"], row["as_of"]))
    return Merged(
        [*new_types, *types], [*new_offers, *unreached], dict(sorted(dates.items())), len(unreached)
    )


def check_rows(provider: str, types: Sequence[Row], offers: Sequence[Row]) -> None:
    """Refuse what must never replace good data: nothing at all, foreign rows, keys that stand twice.

    Raises:
        CatalogError: naming the first such row.
    """
    if not types:
        raise CatalogError(
            f"the refresh of {provider} returned no instance type; what was stored stays in use"
        )
    for name, rows, keys in (("instance_types", types, INSTANCE_TYPE_KEY), ("offers", offers, OFFER_KEY)):
        seen: set[tuple[str, ...]] = set()
        for row in rows:
            key = _key(row, keys)
            if row.get("provider") != provider:
                raise CatalogError(f"{name} of {provider}: {offer_id(key)} belongs to another provider")
            if key in seen:
                raise CatalogError(f"{name} of {provider}: {offer_id(key)} is listed twice")
            if not row.get("as_of"):
                raise CatalogError(f"{name} of {provider}: {offer_id(key)} has no as_of")
            seen.add(key)
    names = {row["instance_type"] for row in types}
    for row in offers:
        if row["instance_type"] not in names:
            raise CatalogError(
                f"offers of {provider}: {row['instance_type']} is not among its instance types"
            )


def content_hash(
    types: Iterable[Row], offers: Iterable[Row], waiting: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Hash of everything but the dates: equal when a refresh found nothing new.

    Args:
        types: rows of `instance_types`.
        offers: rows of `offers`.
        waiting: quotes in quarantine.
    """
    digest = hashlib.sha256()
    for table, rows in (("instance_types", types), ("offers", offers)):
        names = [name for name in column_names(table) if name != "as_of"]
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(
            sorted(tuple(row.get(name, "") for name in names) for row in rows)
        )
        digest.update(f"{table}\n".encode())
        digest.update(out.getvalue().encode())
    quotes = sorted(
        f"{_key(quote['row'], OFFER_KEY)} {quote['row'].get('price_per_hour')}" for quote in waiting
    )
    digest.update("\n".join(quotes).encode())
    return digest.hexdigest()


def _key(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(row.get(name, "") for name in names)
