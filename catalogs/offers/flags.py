"""Flags on offers: what each means, and which offers they keep out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from catalogs.tables.columns import DATA_DIRECTORY, read_csv_table
from catalogs.tables.model import Severity
from catalogs.tables.table import Bools, Coded, Table

FLAG_SEPARATOR = ";"
NO_PRICE = "no_price"
UNKNOWN_FLAG = "unknown_flag"


class Flag(NamedTuple):
    """One row of flags.csv.

    Attributes:
        flag: id, as it stands in the `flags` column of offers.
        severity: whether it informs or refuses.
        scope: what it speaks of: `offer`, `spot_offer`, `type` or `place` (place and stock are not known).
        description: the reason in words.
        remedy: what the user can do, or empty.
    """

    flag: str
    severity: Severity
    scope: str
    description: str
    remedy: str


@dataclass(frozen=True, eq=False)
class Admission:
    """Which offers may be used.

    Attributes:
        mask: true where the offer is admitted, shape `(n_offers,)`.
        refused_by: per offer the first refusing flag, "" where none; also if flagged ones are allowed.
        counts: number of offers per flag, flags that only inform included.
        refused: number of offers kept out per refusing flag (an offer counts once, at its first one).
    """

    mask: Bools
    refused_by: Coded
    counts: Mapping[str, int]
    refused: Mapping[str, int]


@cache
def load_flags() -> Mapping[str, Flag]:
    """Read flags.csv: flag id to flag."""
    table = read_csv_table("flags", DATA_DIRECTORY / "flags.csv")
    return {
        row["flag"]: Flag(
            row["flag"], Severity(row["severity"]), row["scope"], row["description"], row["remedy"]
        )
        for row in table.rows()
    }


def split_flags(text: str) -> tuple[str, ...]:
    """Return the flag ids of a `flags` cell."""
    return tuple(part for part in text.split(FLAG_SEPARATOR) if part)


def join_flags(flags: tuple[str, ...]) -> str:
    """Return the `flags` cell of `flags`: sorted, each once."""
    return FLAG_SEPARATOR.join(sorted(set(flags)))


def is_placeless(flags: str) -> bool:
    """Whether a `flags` cell says that place and stock are not known."""
    definitions = load_flags()
    return any(flag in definitions and definitions[flag].scope == "place" for flag in split_flags(flags))


def placeless(offers: Table) -> Bools:
    """Mask of offers whose place and stock are not known, shape `(n_offers,)`."""
    column = offers.coded("flags")
    return np.asarray([*map(is_placeless, column.values), False], dtype=np.bool_)[column.codes]


def admit_offers(offers: Table, *, allow_flagged: bool, tolerated: frozenset[str] = frozenset()) -> Admission:
    """Decide which offers may be used.

    An offer whose price is missing, zero, negative or not a number is never admitted, whatever is allowed: it
    must not cost 0. A flag this version does not know refuses.

    Args:
        offers: offers table.
        allow_flagged: admit offers with refusing flags too.
        tolerated: refusing flags that do not keep out, such as `retired` for a machine that was asked for by name.
    """
    column = offers.coded("flags")
    definitions = load_flags()
    texts = (*column.values, "")
    refusing = [_first_refusing(text, definitions, tolerated) for text in texts]
    ids = ("", *sorted({flag for flag in refusing if flag} | {NO_PRICE}))
    of_text = np.asarray([ids.index(flag) for flag in refusing], dtype=np.int32)
    codes = of_text[column.codes]
    priced = _is_priced(offers)
    codes[~priced] = ids.index(NO_PRICE)
    mask = priced.copy() if allow_flagged else np.asarray(codes == 0, dtype=np.bool_)

    per_text = np.bincount(column.codes, minlength=len(texts))
    counts: dict[str, int] = {}
    for text, number in zip(texts, per_text, strict=True):
        for flag in split_flags(text) if number else ():
            counts[flag] = counts.get(flag, 0) + int(number)
    if not priced.all():
        counts[NO_PRICE] = int((~priced).sum())
    out = np.bincount(codes[~mask], minlength=len(ids))
    refused = {ids[at]: int(out[at]) for at in range(1, len(ids)) if out[at]}
    return Admission(mask, Coded(codes, ids), dict(sorted(counts.items())), refused)


def _first_refusing(text: str, definitions: Mapping[str, Flag], tolerated: frozenset[str]) -> str:
    for flag in split_flags(text):
        if flag not in definitions:
            return UNKNOWN_FLAG
        if definitions[flag].severity is Severity.REFUSE and flag not in tolerated:
            return flag
    return ""


def _is_priced(offers: Table) -> Bools:
    """Offers with a price: above zero, or zero for a machine that its owner says costs nothing more."""
    return _has_price(offers) | _owned_for_nothing(offers)


def _owned_for_nothing(offers: Table) -> Bools:
    if "purchase_option" not in offers:
        return np.zeros(offers.n_rows, dtype=np.bool_)
    prices, options = offers.coded("price_per_hour"), offers.coded("purchase_option")
    nothing = np.asarray([text == "0" for text in (*prices.values, "")], dtype=np.bool_)
    owned = np.asarray([text == "owned" for text in (*options.values, "")], dtype=np.bool_)
    return np.asarray(nothing[prices.codes] & owned[options.codes], dtype=np.bool_)


def _has_price(offers: Table) -> Bools:
    column = offers.coded("price_per_hour")
    try:
        price = offers.number("price_per_hour")
    except ValueError:
        pass  # reported text by text below
    else:
        return np.asarray((price > 0.0) & (price < np.inf), dtype=np.bool_)
    good = np.asarray([_is_price(text) for text in (*column.values, "")], dtype=np.bool_)
    return np.asarray(good[column.codes], dtype=np.bool_)


def _is_price(text: str) -> bool:
    try:
        return 0.0 < float(text) < float("inf")
    except ValueError:
        return False
