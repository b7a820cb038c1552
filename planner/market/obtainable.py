"""How many accelerators of an offer can be had at once by asking: obtainable.csv and the user's word.

Reservations, capacity blocks, queues and owned machines are firm: what bounds them is on the offer.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from catalogs.offers.naming import fits_name
from catalogs.patterns import matches
from planner.bundled import bundled_rows
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Floats
    from planner.inputs.schema import ObtainableLimit
    from planner.market.offers import OfferSet


@record(frozen=True)
class Obtainable:
    """Most accelerators of a kind that asking for one purchase option brings in one place.

    Attributes:
        accelerator: pattern over accelerator ids; of several rows that match, the first counts.
        basis: `assumed`, or `recorded` where a public record shows it.
    """

    accelerator: str
    purchase_option: str
    most_accelerators: float
    basis: str
    source: str
    as_of: str


@cache
def load_obtainable() -> tuple[Obtainable, ...]:
    """Read obtainable.csv in its order."""
    return tuple(
        Obtainable(
            row["accelerator"], row["purchase_option"], float(row["most_accelerators"]), row["basis"],
            row["source"], row["as_of"],
        )
        for row in bundled_rows("obtainable.csv")
    )  # fmt: skip


@lru_cache(maxsize=64)
def _usual_table(accelerators: tuple[str, ...], options: tuple[str, ...]) -> Floats:
    """Most accelerators by obtainable.csv per accelerator and purchase option, with a last row and column for none."""
    table = np.full((len(accelerators) + 1, len(options) + 1), np.inf)
    for item in reversed(load_obtainable()):
        hit = [matches(item.accelerator, name) for name in accelerators] + [False]
        option = [value == item.purchase_option for value in options] + [False]
        table[np.ix_(hit, option)] = item.most_accelerators
    table.setflags(write=False)
    return table


def most_obtainable(offer_set: OfferSet, obtainable_limits: Sequence[ObtainableLimit]) -> Floats:
    """Most accelerators of each offer that can be had at once, infinite where it is firm, shape `(n_offers,)`.

    Args:
        offer_set: what can be bought.
        obtainable_limits: what the user knows; the last that matches an offer wins over obtainable.csv.
    """
    limits = tuple(obtainable_limits)
    return offer_set.once(("most_obtainable", limits), lambda: _most(offer_set, limits))


def largest_requests(offer_set: OfferSet, obtainable_limits: Sequence[ObtainableLimit]) -> Floats:
    """The request of each offer that waits longest, in accelerators, infinite where it is firm, shape `(n_offers,)`.

    At least that of obtainable.csv: whoever states that less can be had does not say that it takes longer.
    """
    return np.fmax(most_obtainable(offer_set, obtainable_limits), most_obtainable(offer_set, ()))


def _most(offer_set: OfferSet, obtainable_limits: Sequence[ObtainableLimit]) -> Floats:
    offers, most = offer_set.offers, _usual(offer_set)
    names, places, whose = (
        offer_set.types.coded("accelerator"), offers.coded("region"), offers.coded("provider")
    )  # fmt: skip
    for own in obtainable_limits:
        mask = offers.equals("purchase_option", own.purchase_option)
        theirs = np.asarray([*(matches(own.provider or "*", name) for name in whose.values), False])
        same = np.asarray([*(fits_name(own.accelerator, name) for name in names.values), False])
        near = np.asarray([*(matches(own.region, name) for name in places.values), False])
        mask &= theirs[whose.codes] & near[places.codes]
        most[mask & same[names.codes][offer_set.type_of_offer]] = own.accelerators
    return most


def _usual(offer_set: OfferSet) -> Floats:
    names, options = offer_set.types.coded("accelerator"), offer_set.offers.coded("purchase_option")
    table = _usual_table(names.values, options.values)
    return np.asarray(table[names.codes[offer_set.type_of_offer], options.codes], dtype=np.float64)


def instances_at_once(offer_set: OfferSet, obtainable_limits: Sequence[ObtainableLimit]) -> Floats:
    """Most instances of each offer that can be had at once: what it holds, and what asking brings; NaN: unlimited."""
    per_node = offer_set.types["accelerator_count"][offer_set.type_of_offer]
    by_asking = np.floor(most_obtainable(offer_set, obtainable_limits) / per_node)
    return np.asarray(np.fmin(offer_set.capacity, by_asking), dtype=np.float64)
