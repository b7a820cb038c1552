"""Machines that the workloads of a portfolio list in their own files: few, and shared by all jobs that may use them.

A file of `prices.offers` says how many instances it holds (`nodes`). Every job reads it, but a machine runs one job at
a time, so each machine of a file is a pool like a commitment of the portfolio, after those that it declares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.inputs.plain import section_of

if TYPE_CHECKING:
    from catalogs.tables.table import Ints, Table
    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.inputs.portfolio_schema import SharedCommitment
    from planner.market.offers import OfferSet

_KEY = ("provider", "region", "instance_type", "purchase_option")
_OF_A_FILE = "user file "


def own_machines(loaded: LoadedPortfolio) -> tuple[SharedCommitment, ...]:
    """One pool for each machine of the files that workloads name; the least of its sizes where files disagree.

    Raises:
        CatalogInputError: a file is wrong; names its lines.
    """
    from catalogs.offers.static import load_static

    paths = {path.resolve() for one in loaded.workloads if one is not None for path in one.offer_paths()}
    nodes: dict[tuple[str, ...], int] = {}
    for path in sorted(paths):
        held: dict[tuple[str, ...], int] = {}
        offers = load_static(path).offers
        for key, count in zip(_keys(offers), offers.number("capacity").tolist(), strict=True):
            held[key] = held.get(key, 0) + int(count)
        nodes |= {key: min(count, nodes.get(key, count)) for key, count in held.items()}
    return tuple(
        section_of(
            "SharedCommitment",
            provider=key[0],
            region=key[1],
            instance_type=key[2],
            purchase_option=key[3],
            nodes=count,
        )
        for key, count in sorted(nodes.items())
    )


def pools_of(offer_set: OfferSet, shared_commitments: tuple[SharedCommitment, ...], declared: int) -> Ints:
    """The pool that each offer draws on, -1 none, shape `(n_offers,)`.

    Args:
        offer_set: what can be bought.
        shared_commitments: machines of the workloads' files, numbered after the declared ones.
        declared: commitments of the portfolio; their offers are the ones that are paid already, in their order.
    """
    pool = np.full(offer_set.offers.n_rows, -1, dtype=np.int64)
    paid = np.flatnonzero(~np.isnan(offer_set.owned_share))
    pool[paid] = np.arange(len(paid))
    if shared_commitments:
        number = {
            tuple(getattr(one, name) for name in _KEY): declared + at
            for at, one in enumerate(shared_commitments)
        }
        keys, sources = _keys(offer_set.offers), offer_set.offers["source"]
        for row in np.flatnonzero(np.isfinite(offer_set.capacity) & (pool < 0)).tolist():
            if str(sources[row]).startswith(_OF_A_FILE):
                pool[row] = number.get(keys[row], -1)
    return pool


def pool_name(number: int, declared: int, place: tuple[str, str, str, str]) -> str:
    """What an answer calls a pool: its place in the portfolio's file, or the machine of a workload's file."""
    return f"commitments[{number}]" if number < declared else f"{place[0]}/{place[1]} {place[2]} ({place[3]})"


def _keys(offers: Table) -> list[tuple[str, ...]]:
    return list(zip(*([str(value) for value in offers[name]] for name in _KEY), strict=True))
