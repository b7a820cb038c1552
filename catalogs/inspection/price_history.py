"""The price of one machine over time, from the bundled and the stored snapshots."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from catalogs.errors import CatalogError, CatalogInputError
from catalogs.offers.flags import admit_offers
from catalogs.offers.query import near_misses, usd_per_hour
from catalogs.store.history import list_snapshots
from catalogs.store.read import read_provider
from catalogs.store.snapshots import Snapshot, warn
from catalogs.tables.columns import make_table
from catalogs.tables.table import Table


@dataclass(frozen=True)
class PricePoint:
    """The lowest price in one snapshot; admitted offers before those that a flag keeps out.

    Attributes:
        day: the day the snapshot stands for.
        as_of: date of the price itself, "" where there is none.
        price_per_hour: decimal text, "" where the machine was not offered.
        currency: its currency.
        usd_per_hour: the price in USD at the newest exchange rate, None where there is none.
        place: region, and zone where there is one.
        n_offers: offers that fit.
        basis: list, observed, derived or declared.
        refused_by: the flag that keeps the offer out, "" where none.
        source: where the price was read.
        snapshot: name of the snapshot.
    """

    day: date
    as_of: str
    price_per_hour: str
    currency: str
    usd_per_hour: float | None
    place: str
    n_offers: int
    basis: str
    refused_by: str
    source: str
    snapshot: str


@dataclass(frozen=True)
class PriceHistory:
    """Prices of one machine, from old to new.

    Attributes:
        provider: provider id.
        instance_type: the provider's name.
        region: region, "" for the cheapest of all.
        purchase_option: how it is bought.
        option_variant: variant of the option, "" for the cheapest of all.
        points: one per snapshot.
    """

    provider: str
    instance_type: str
    region: str
    purchase_option: str
    option_variant: str
    points: tuple[PricePoint, ...]


def price_history(
    instance_type: str,
    *,
    region: str = "",
    provider: str = "",
    purchase_option: str = "on_demand",
    option_variant: str = "",
) -> PriceHistory:
    """Collect the prices of a machine from every snapshot, those it has vanished from included.

    Args:
        instance_type: the provider's name; case does not matter.
        region: only this region; default: the cheapest of all.
        provider: only this provider's machine of that name.
        purchase_option: how it is bought.
        option_variant: only this variant; default: the cheapest of all.

    Raises:
        CatalogInputError: when no snapshot has such a machine, region or offer; tells which there are.
    """
    versions: dict[tuple[str, str], list[tuple[Snapshot, Table]]] = {}
    names: set[str] = set()
    for snapshot in list_snapshots(provider or None):
        try:
            files = {path.name: data for path, data in read_provider(snapshot.path)[1].items()}
        except CatalogError as error:
            warn(f"passed over: {error}")
            continue
        types = _rows_with(files["instance_types.csv.gz"], "instance_types", None)
        names |= set(types["instance_type"])
        name = next((text for text in types["instance_type"] if text.lower() == instance_type.lower()), "")
        machines = [key for key in versions if key[0] == snapshot.provider]
        if name or machines:
            key = machines[0] if machines else (snapshot.provider, name)
            versions.setdefault(key, []).append(
                (snapshot, _rows_with(files["offers.csv.gz"], "offers", key[1]))
            )
    return _history(versions, names, instance_type, region, purchase_option, option_variant)


def _history(
    versions: dict[tuple[str, str], list[tuple[Snapshot, Table]]],
    names: set[str],
    instance_type: str,
    region: str,
    purchase_option: str,
    option_variant: str,
) -> PriceHistory:
    if len(versions) != 1:
        close = near_misses(instance_type, names)
        hint = f"did you mean {', '.join(close)}?" if close else "`planner catalog list` prints what there is"
        owners = ", ".join(sorted(key[0] for key in versions))
        raise CatalogInputError(
            f"{instance_type!r} is sold by {owners}: say which with --provider"
            if versions
            else f"unknown instance type {instance_type!r} ({hint})"
        )
    (owner, name), snapshots = next(iter(versions.items()))
    _check(snapshots, name, region, purchase_option, option_variant)
    points = tuple(
        _point(snapshot, _fitting(offers, region, purchase_option, option_variant))
        for snapshot, offers in snapshots
    )
    return PriceHistory(owner, name, region, purchase_option, option_variant, points)


def _check(
    snapshots: Sequence[tuple[Snapshot, Table]], name: str, region: str, option: str, variant: str
) -> None:
    """Refuse a region, option or variant that no snapshot has for this machine."""
    stages = (("region", region), ("purchase_option", option), ("option_variant", variant))
    left = [offers for _, offers in snapshots]
    for column, text in stages:
        offered = sorted({value for offers in left for value in offers[column] if value})
        if text and text not in offered:
            words = column.replace("_", " ")
            offered_words = (
                f"there is {', '.join(offered[:8])}{', ...' if len(offered) > 8 else ''}"
                if offered
                else "no offer"
            )
            raise CatalogInputError(f"{name} was never offered with {words} {text!r} ({offered_words})")
        left = [offers.take(offers.equals(column, text)) for offers in left] if text else left


def _fitting(offers: Table, region: str, option: str, variant: str) -> Table:
    mask = offers.equals("purchase_option", option)
    mask &= offers.equals("region", region) if region else True
    mask &= offers.equals("option_variant", variant) if variant else True
    return offers.take(mask)


def _point(snapshot: Snapshot, offers: Table) -> PricePoint:
    if not offers.n_rows:
        return PricePoint(snapshot.as_of, "", "", "", None, "", 0, "", "", "", snapshot.name)
    admission = admit_offers(offers, allow_flagged=False)
    usd = usd_per_hour(offers)
    pool = [at for at in range(offers.n_rows) if admission.mask[at]] or list(range(offers.n_rows))
    at = min(pool, key=lambda at: (float(usd[at]), offers["region"][at], offers["zone"][at]))
    row = offers.row(at)
    return PricePoint(
        day=snapshot.as_of,
        as_of=row["as_of"],
        price_per_hour=row["price_per_hour"],
        currency=row["currency"],
        usd_per_hour=float(usd[at]),
        place="/".join(part for part in (row["region"], row["zone"]) if part),
        n_offers=offers.n_rows,
        basis=row["basis"],
        refused_by=str(admission.refused_by.decode()[at]),
        source=row["source"],
        snapshot=snapshot.name,
    )


def _rows_with(data: bytes, table: str, instance_type: str | None) -> Table:
    """Rows of a file, of one machine only where asked: the others are never parsed."""
    lines = gzip.decompress(data).decode().split("\n")
    chosen = lines[1:] if instance_type is None else [line for line in lines[1:] if instance_type in line]
    rows = make_table(table, list(csv.reader(io.StringIO("\n".join(chosen)))), table)
    return rows if instance_type is None else rows.take(rows.equals("instance_type", instance_type))
