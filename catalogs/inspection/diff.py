"""What changed between two catalogs: machines and offers new, gone or renamed, prices moved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from catalogs.errors import CatalogInputError
from catalogs.store.history import open_snapshot
from catalogs.tables.model import INSTANCE_TYPE_KEY, OFFER_KEY, Catalog
from catalogs.tables.table import Bools, Coded, Floats, Ints, Table

Key = tuple[str, ...]
_UNTOLD = frozenset({"source", "as_of", "note"})
_HARDWARE = ("provider", "accelerator", "accelerator_count", "vcpus", "memory_gib")
_LARGEST = 2**62
_ALIKE = 0.6  # two names less alike than this are two machines


@dataclass(frozen=True)
class Rename:
    """A machine that probably goes on under another name: the only two of their hardware, names alike."""

    provider: str
    old: str
    new: str


@dataclass(frozen=True)
class SpecChange:
    """A machine whose description changed; texts as stored, "" where unknown."""

    provider: str
    instance_type: str
    column: str
    old: str
    new: str


@dataclass(frozen=True)
class PriceMove:
    """An offer whose price changed.

    Attributes:
        key: its key, by the name it has now.
        old: decimal text before.
        new: decimal text after.
        old_currency: currency before.
        new_currency: currency after.
        change_ratio: new over old minus 1; NaN where the currency changed.
        old_as_of: date of the price before.
        new_as_of: date of the price after.
    """

    key: Key
    old: str
    new: str
    old_currency: str
    new_currency: str
    change_ratio: float
    old_as_of: str
    new_as_of: str


@dataclass(frozen=True)
class CatalogDiff:
    """Everything that differs from one catalog to another; keys sorted, moves by size.

    Attributes:
        old: name of the catalog compared with.
        new: name of the other.
        new_providers: providers only in the new one.
        gone_providers: providers only in the old one.
        new_regions: (provider, region) with offers only in the new one.
        gone_regions: (provider, region) with offers only in the old one.
        new_types: (provider, instance type) only in the new one.
        gone_types: (provider, instance type) only in the old one.
        unpriced_types: machines still listed that had offers before and have none now.
        renamed_types: machines that probably go on under another name; their offers are compared.
        changed_types: machines with another description.
        new_offers: keys of offers only in the new one.
        gone_offers: keys of offers only in the old one.
        moves: offers whose price changed by `min_change_ratio` or more, or changed currency.
        n_small_moves: offers whose price changed by less.
        n_same: offers with the same price.
    """

    old: str
    new: str
    new_providers: tuple[str, ...]
    gone_providers: tuple[str, ...]
    new_regions: tuple[Key, ...]
    gone_regions: tuple[Key, ...]
    new_types: tuple[Key, ...]
    gone_types: tuple[Key, ...]
    unpriced_types: tuple[Key, ...]
    renamed_types: tuple[Rename, ...]
    changed_types: tuple[SpecChange, ...]
    new_offers: tuple[Key, ...]
    gone_offers: tuple[Key, ...]
    moves: tuple[PriceMove, ...]
    n_small_moves: int
    n_same: int

    def above(self, ratio: float) -> tuple[PriceMove, ...]:
        """Moves by more than `ratio` either way, and those into another currency."""
        return tuple(move for move in self.moves if not abs(move.change_ratio) <= ratio)


def diff_refs(
    old: str,
    new: str,
    *,
    min_change_ratio: float = 0.0,
    providers: Sequence[str] = (),
    purchase_options: Sequence[str] = (),
) -> CatalogDiff:
    """Compare two snapshots by their names (see `catalogs.store.history.open_snapshot`).

    Where a name speaks of one provider only, the other catalog is cut down to it.

    Raises:
        CatalogInputError: when a name or a filter fits nothing.
        CatalogError: when a snapshot cannot be read.
    """
    before, after = open_snapshot(old), open_snapshot(new)
    ref_providers = {
        catalog.manifests[0].provider
        for ref, catalog in ((old, before), (new, after))
        if len(catalog.manifests) == 1 and ref not in ("bundled", "latest")
    }
    if len(ref_providers) > 1:
        raise CatalogInputError(f"{old} and {new} are of different providers: nothing to compare")
    selected = set(providers) or ref_providers
    unknown = set(providers) - {manifest.provider for manifest in (*before.manifests, *after.manifests)}
    if unknown:
        raise CatalogInputError(f"unknown provider {', '.join(sorted(unknown))} in {old} and {new}")
    cut = (_cut(before, selected, purchase_options), _cut(after, selected, purchase_options))
    return diff_catalogs(*cut, labels=(old, new), min_change_ratio=min_change_ratio)


def diff_catalogs(
    old: Catalog, new: Catalog, *, labels: tuple[str, str] = ("old", "new"), min_change_ratio: float = 0.0
) -> CatalogDiff:
    """Compare two catalogs.

    Args:
        old: catalog to compare with.
        new: the other.
        labels: their names.
        min_change_ratio: smallest change of a price to list, 0.05 for five per cent.
    """
    types = {key: at for at, key in enumerate(old.instance_types.keys_of(*INSTANCE_TYPE_KEY))}
    new_types = {key: at for at, key in enumerate(new.instance_types.keys_of(*INSTANCE_TYPE_KEY))}
    both = {m.provider for m in old.manifests} & {m.provider for m in new.manifests}
    gone = sorted(key for key in types.keys() - new_types.keys() if key[0] in both)
    came = sorted(key for key in new_types.keys() - types.keys() if key[0] in both)
    renames = _renames(
        old.instance_types, new.instance_types, [types[k] for k in gone], [new_types[k] for k in came]
    )
    left, came_as = {(r.provider, r.old) for r in renames}, {(r.provider, r.new) for r in renames}
    before = _renamed(old.offers.take(old.offers.is_in("provider", both)), renames)
    after = new.offers.take(new.offers.is_in("provider", both))
    moves, small, same, gone_offers, new_offers = _compare_offers(before, after, min_change_ratio)
    places = _pairs(before, "region"), _pairs(after, "region")
    priced = _pairs(before, "instance_type"), _pairs(after, "instance_type")
    return CatalogDiff(
        *labels,
        new_providers=tuple(sorted({m.provider for m in new.manifests} - both)),
        gone_providers=tuple(sorted({m.provider for m in old.manifests} - both)),
        new_regions=tuple(sorted(places[1] - places[0])),
        gone_regions=tuple(sorted(places[0] - places[1])),
        new_types=tuple(key for key in came if key not in came_as),
        gone_types=tuple(key for key in gone if key not in left),
        unpriced_types=tuple(sorted((priced[0] - priced[1]) & set(new_types))),
        renamed_types=renames,
        changed_types=_spec_changes(old.instance_types, new.instance_types, types, new_types),
        new_offers=new_offers,
        gone_offers=gone_offers,
        moves=moves,
        n_small_moves=small,
        n_same=same,
    )


def _cut(catalog: Catalog, providers: Iterable[str], purchase_options: Sequence[str]) -> Catalog:
    selected = set(providers) or {manifest.provider for manifest in catalog.manifests}
    types, offers = catalog.instance_types, catalog.offers
    mask = offers.is_in("provider", selected)
    if purchase_options:
        mask &= offers.is_in("purchase_option", purchase_options)
    manifests = tuple(manifest for manifest in catalog.manifests if manifest.provider in selected)
    return Catalog(
        types.take(types.is_in("provider", selected)), offers.take(mask), catalog.accelerators, manifests
    )


def _pairs(offers: Table, column: str) -> set[Key]:
    return set(offers.distinct_keys("provider", column)[1])


def _renames(old: Table, new: Table, gone: Sequence[int], came: Sequence[int]) -> tuple[Rename, ...]:
    """Pairs of a vanished and a new machine that are each other's only match in hardware, with names alike."""
    by_hardware: dict[tuple[object, ...], tuple[list[str], list[str]]] = {}
    for side, (table, rows) in enumerate(((old, gone), (new, came))):
        for at in rows:
            row = {name: table[name][at] for name in (*_HARDWARE, "instance_type")}
            hardware = tuple(_text(row[name]) for name in _HARDWARE)
            by_hardware.setdefault(hardware, ([], []))[side].append(row["instance_type"])
    matches = [
        Rename(str(hardware[0]), *one_old, *one_new)
        for hardware, (one_old, one_new) in by_hardware.items()
        if len(one_old) == len(one_new) == 1
    ]
    alike = [
        rename
        for rename in matches
        if SequenceMatcher(None, rename.old.lower(), rename.new.lower()).ratio() >= _ALIKE
    ]
    return tuple(sorted(alike, key=lambda rename: (rename.provider, rename.old)))


def _renamed(offers: Table, renames: Sequence[Rename]) -> Table:
    """Give offers of renamed machines the new name."""
    if not renames:
        return offers
    names = offers["instance_type"].copy()
    for rename in renames:
        names[offers.equals("provider", rename.provider) & offers.equals("instance_type", rename.old)] = (
            rename.new
        )
    return offers.with_columns(instance_type=Coded.encode(names))


def _spec_changes(
    old: Table, new: Table, old_at: dict[Key, int], new_at: dict[Key, int]
) -> tuple[SpecChange, ...]:
    shared = sorted(old_at.keys() & new_at.keys())
    changes = []
    for column in old:
        if column in _UNTOLD or column in INSTANCE_TYPE_KEY:
            continue
        before, after = old[column], new[column]
        for key in shared:
            texts = _text(before[old_at[key]]), _text(after[new_at[key]])
            if texts[0] != texts[1]:
                changes.append(SpecChange(key[0], key[1], column, *texts))
    return tuple(sorted(changes, key=lambda change: (change.provider, change.instance_type, change.column)))


def _text(value: object) -> str:
    if isinstance(value, float | np.floating):
        return "" if math.isnan(value) else f"{value:g}"
    return str(value)


def _compare_offers(
    old: Table, new: Table, min_change_ratio: float
) -> tuple[tuple[PriceMove, ...], int, int, tuple[Key, ...], tuple[Key, ...]]:
    """Join offers by key: moves, number of smaller moves, number of equal prices, gone keys, new keys."""
    old_keys, new_keys = _joint_codes(old, new)
    order = np.argsort(new_keys, kind="stable")
    at = np.searchsorted(new_keys[order], old_keys)
    at = (
        order[np.minimum(at, max(len(order) - 1, 0))]
        if len(order)
        else np.zeros(len(old_keys), dtype=np.int64)
    )
    matched = new_keys[at] == old_keys if len(order) else np.zeros(len(old_keys), dtype=np.bool_)
    a, b = old.take(matched), new.take(at[matched])
    changed = ~(_same_text(a, b, "price_per_hour") & _same_text(a, b, "currency"))
    a, b = a.take(changed), b.take(changed)
    ratio = b.number("price_per_hour") / a.number("price_per_hour") - 1.0
    ratio[~_same_text(a, b, "currency")] = np.nan
    big = ~(np.abs(ratio) < min_change_ratio) & ~(ratio == 0.0)
    fresh = np.ones(new.n_rows, dtype=np.bool_)
    fresh[at[matched]] = False
    moves = _moves(a.take(big), b.take(big), ratio[big])
    small = int((~big & (ratio != 0.0)).sum())
    same = int(matched.sum()) - len(moves) - small
    return moves, small, same, _sorted_keys(old, ~matched), _sorted_keys(new, fresh)


def _moves(old: Table, new: Table, ratio: Floats) -> tuple[PriceMove, ...]:
    columns = [
        new.keys_of(*OFFER_KEY),
        *(table[name] for name in ("price_per_hour", "currency") for table in (old, new)),
        ratio.tolist(),
        old["as_of"],
        new["as_of"],
    ]
    moves = [PriceMove(*values) for values in zip(*columns, strict=True)]
    return tuple(sorted(moves, key=lambda move: (-abs(_size(move.change_ratio)), move.key)))


def _size(ratio: float) -> float:
    """Another currency comes first: nothing says how far the price moved."""
    return math.inf if math.isnan(ratio) else ratio


def _sorted_keys(offers: Table, mask: Bools) -> tuple[Key, ...]:
    return tuple(sorted(offers.take(mask).keys_of(*OFFER_KEY)))


def _joint_codes(old: Table, new: Table) -> tuple[Ints, Ints]:
    """One number per row and key of an offer, the same in both tables."""
    joint = np.zeros(old.n_rows, dtype=np.int64), np.zeros(new.n_rows, dtype=np.int64)
    for name in OFFER_KEY:
        old_codes, new_codes = _shared_codes(old.coded(name), new.coded(name))
        size = int(max(old_codes.max(initial=0), new_codes.max(initial=0))) + 1
        if max(int(codes.max(initial=0)) for codes in joint) >= _LARGEST // size:
            joint = _dense(*joint)
        joint = joint[0] * size + old_codes, joint[1] * size + new_codes
    return joint


def _dense(old: Ints, new: Ints) -> tuple[Ints, Ints]:
    """Number the codes that occur from 0 on, so that the next column cannot overflow them."""
    codes = np.unique(np.concatenate([old, new]), return_inverse=True)[1].astype(np.int64)
    return codes[: len(old)], codes[len(old) :]


def _shared_codes(old: Coded, new: Coded) -> tuple[Ints, Ints]:
    index: dict[str, int] = {}
    maps = [
        np.asarray([index.setdefault(text, len(index)) for text in (*coded.values, "")], dtype=np.int64)
        for coded in (old, new)
    ]
    return maps[0][old.codes], maps[1][new.codes]


def _same_text(old: Table, new: Table, name: str) -> Bools:
    old_codes, new_codes = _shared_codes(old.coded(name), new.coded(name))
    return np.asarray(old_codes == new_codes, dtype=np.bool_)
