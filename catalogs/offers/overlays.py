"""Price overlays: a customer's own discounts, surcharges and prices laid over the list.

An overlay names offers by glob patterns and a change:

* `-12%` or `+5%`: the hourly price and the upfront part are scaled;
* `+0.40` or `-0.40`: added to the hourly price, in the offer's own currency;
* `3.20`: becomes the hourly price, in the offer's own currency, also where none was known; the upfront part
  goes.

Overlays apply in the order written, each on the result of the one before. Prices stay decimal strings: the
arithmetic is exact. A changed offer carries the flag `overlay`; one with an absolute price has basis
`declared`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from catalogs.errors import CatalogInputError
from catalogs.patterns import matches
from catalogs.tables.table import Bools, Coded, Table

FLAG = "overlay"
_CHANGE = re.compile(r"(?P<sign>[+-]?)(?P<amount>\d+(?:\.\d+)?|\.\d+)(?P<percent>%?)")
_PATTERNS = ("provider", "region", "instance_type", "purchase_option")


@dataclass(frozen=True)
class Overlay:
    """One change of price; patterns are globs, None matches everything.

    Attributes:
        provider: provider id.
        region: region id, or `provider/region` where it holds a slash.
        family: instance family.
        instance_type: instance type.
        purchase_option: purchase option.
        change: `-12%`, `+0.40` or `3.20`.
        note: why; repeated on the plan.
    """

    provider: str | None = None
    region: str | None = None
    family: str | None = None
    instance_type: str | None = None
    purchase_option: str | None = None
    change: str = ""
    note: str = ""

    def __str__(self) -> str:
        parts = [f"{name} {getattr(self, name)}" for name in (*_PATTERNS, "family") if getattr(self, name)]
        why = f" ({self.note})" if self.note else ""
        return f"{self.change} on {', '.join(parts) or 'every offer'}{why}"


@dataclass(frozen=True)
class _Change:
    """How a price changes; `upfront` scales or drops the upfront part."""

    price: Callable[[Decimal | None], Decimal | None]
    upfront: Callable[[Decimal], Decimal]
    absolute: bool


def parse_change(change: str) -> _Change:
    """Parse the text of a change.

    Raises:
        ValueError: the text is none of the three forms.
    """
    match = _CHANGE.fullmatch(change.strip())
    if match is None or (match["percent"] and not match["sign"]):
        raise ValueError(f"expected '-12%', '+0.40' or '3.20', got {change!r}")
    amount = Decimal(match["amount"]) * (-1 if match["sign"] == "-" else 1)
    if match["percent"]:
        factor = 1 + amount / 100
        return _Change(lambda old: None if old is None else old * factor, lambda old: old * factor, False)
    if match["sign"]:
        return _Change(lambda old: None if old is None else old + amount, lambda old: old, False)
    return _Change(lambda _: amount, lambda _: Decimal(0), True)


class PriceNote(NamedTuple):
    """What a reader of prices should know; a warning where something is probably wrong.

    `key` tells notes on what clouds did not answer from those on overlays, which have none.
    """

    text: str
    is_warning: bool = False
    key: str = ""

    def __str__(self) -> str:
        """The text, with its level before it."""
        return f"warning: {self.text}" if self.is_warning else self.text


def apply_overlays(
    offers: Table, instance_types: Table, overlays: Sequence[Overlay]
) -> tuple[Table, tuple[PriceNote, ...]]:
    """Return `offers` with the overlays applied in order, and a note per overlay (a warning if it hit none).

    Args:
        offers: offers table.
        instance_types: gives the family of each (provider, instance type).
        overlays: in the order written.

    Raises:
        CatalogInputError: an overlay's change is not understood, or brings a price to zero or below; every
        fault is
            listed.
    """
    faults: list[str] = []
    notes: list[PriceNote] = []
    family = _family_of(offers, instance_types)
    for position, overlay in enumerate(overlays, start=1):
        try:
            change = parse_change(overlay.change)
        except ValueError as error:
            faults.append(f"overlay {position}: {error}")
            continue
        hit = _hits(offers, family, overlay)
        count = int(hit.sum())
        if not count:
            notes.append(PriceNote(f"overlay {position} ({overlay}) matches no offer", is_warning=True))
            continue
        offers, fault = _apply(offers, hit, change)
        if fault:
            faults.append(f"overlay {position} ({overlay}): {fault}")
        notes.append(PriceNote(f"overlay {position}: {overlay}, {count} offer{'s' if count != 1 else ''}"))
    if faults:
        raise CatalogInputError("\n".join(faults))
    return offers, tuple(notes)


def _family_of(offers: Table, instance_types: Table) -> Coded:
    keys = ("provider", "instance_type")
    family = dict(zip(instance_types.keys_of(*keys), instance_types["family"].tolist(), strict=True))
    return Coded.encode(family.get(key, "") for key in offers.keys_of(*keys))


def _hits(offers: Table, family: Coded, overlay: Overlay) -> Bools:
    hit = np.ones(offers.n_rows, dtype=np.bool_)
    for name in _PATTERNS:
        pattern = getattr(overlay, name)
        if pattern and name == "region" and "/" in pattern:
            provider, _, region = pattern.partition("/")
            hit &= _match(offers.coded("provider"), provider) & _match(offers.coded("region"), region)
        elif pattern:
            hit &= _match(offers.coded(name), str(pattern))
    return hit & _match(family, overlay.family) if overlay.family else hit


def _match(column: Coded, pattern: str) -> Bools:
    fits = np.asarray([matches(pattern, text) for text in (*column.values, "")], dtype=np.bool_)
    return np.asarray(fits[column.codes], dtype=np.bool_)


def _apply(offers: Table, hit: Bools, change: _Change) -> tuple[Table, str]:
    """Change the rows where `hit`; returns the first price that fell to zero or below as a fault."""
    fault = ""

    def new_price(text: str) -> str:
        nonlocal fault
        amount = change.price(Decimal(text) if text else None)
        if amount is not None and amount <= 0 and not fault:
            fault = f"brings the price {text or 'unknown'} to {_text(amount)}; a price must stay above 0"
        return "" if amount is None else _text(amount)

    def new_upfront(text: str) -> str:
        amount = change.upfront(Decimal(text)) if text else Decimal(0)
        return _text(amount) if amount else ""

    def flagged(text: str) -> str:
        flags = [flag for flag in text.split(";") if flag]
        return ";".join(sorted({*flags, FLAG}))

    columns: dict[str, Coded] = {
        "price_per_hour": _mapped(offers.coded("price_per_hour"), hit, new_price),
        "upfront_per_instance": _mapped(offers.coded("upfront_per_instance"), hit, new_upfront),
        "flags": _mapped(offers.coded("flags"), hit, flagged),
    }
    if change.absolute:
        columns["basis"] = _mapped(offers.coded("basis"), hit, lambda _: "declared")
    return offers.with_columns(**columns), fault


def _mapped(column: Coded, hit: Bools, new: Callable[[str], str]) -> Coded:
    """Replace the texts of the rows where `hit`; `new` is called once per distinct text there."""
    texts = list(column.values)
    index = {text: code for code, text in enumerate(texts)}
    # Code -1 stands for "", so it is the last entry here too.
    swap = np.asarray([*range(len(texts)), -1], dtype=np.int32)
    for code in np.unique(column.codes[hit]).tolist():
        mapped = new(column.values[code] if code >= 0 else "")
        swap[code] = index.setdefault(mapped, len(texts))
        if swap[code] == len(texts):
            texts.append(mapped)
    codes = np.where(hit, swap[column.codes], column.codes).astype(np.int32)
    return Coded(codes, tuple(texts))


def _text(value: Decimal) -> str:
    """Plain decimal text without an exponent or trailing zeros."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
