"""What each pool costs by each option: the question's own prices first, else the catalog's cheapest admitted offer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InputError
from planner.inputs.faults import Fault
from planner.inputs.purchase_options import COMMIT_OPTIONS
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog
    from planner.inputs.commit_schema import Pool
    from planner.inputs.faults import Source

WANTED = ("on_demand", "spot", *COMMIT_OPTIONS)
MICRO = 6  # decimals kept of a price in USD per hour: whole micro-dollars, so that certificates can count
HOURS_PER_YEAR = 8760


@record(frozen=True)
class Term:
    """One way to pay for a unit of a pool.

    Attributes:
        option: purchase option.
        variant: its variant, such as `standard.no_upfront`.
        usd_per_hour: USD per unit-hour, to the micro-dollar.
        upfront_usd: due at once per unit.
        source: where the price is from.
        as_of: its date; empty where unknown.
    """

    option: str
    variant: str
    usd_per_hour: float
    upfront_usd: float
    source: str
    as_of: str

    @property
    def years(self) -> int:
        """Length of the term; 0 without obligation."""
        return int(self.option[-2]) if self.option.endswith("y") and self.option[-2].isdigit() else 0

    @property
    def all_in_usd_per_hour(self) -> float:
        """USD per hour of the term, the upfront spread over it."""
        return self.usd_per_hour + (self.upfront_usd / (self.years * HOURS_PER_YEAR) if self.years else 0.0)


@record(frozen=True)
class PoolPrices:
    """The terms of one pool; `family` groups machines that share committed resources."""

    on_demand: Term
    spot: Term | None
    committed: tuple[Term, ...]
    family: str


def pool_prices(
    catalog: Catalog | None, pools: Sequence[Pool], file: str, source: Source | None = None
) -> list[PoolPrices]:
    """Return the prices of every pool.

    Args:
        catalog: None where every pool gives its own prices.
        pools: the pools.
        file: the question's name, the source of prices given in it.
        source: the question's text, of which errors name the place; None of pools that no file lists.

    Raises:
        InputError: a pool has no on-demand price, or no spot price where it may use spot.
    """
    out = []
    for number, pool in enumerate(pools):
        found: dict[tuple[str, str], Term] = {}
        family = ""
        if pool.instance_type is not None and catalog is not None:
            if source is not None:
                _check_provider(catalog, pool, number, source)
            found, family = _from_catalog(catalog, pool)
        for option, usd in pool.prices.items():
            found = {key: term for key, term in found.items() if key[0] != option}
            upfront = next((float(usd) for name, usd in pool.upfront_usd.items() if name == option), 0.0)
            found[option, ""] = Term(option, "", round(float(usd), MICRO), upfront, f"given in {file}", "")
        missing = _missing(pool, found)
        if missing and source is not None and pool.instance_type is not None and catalog is not None:
            from planner.market.names import unknown_part

            key, close = unknown_part(catalog.offers, pool.provider, pool.region, pool.instance_type)
            raise source.error([Fault(("pools", number, key or "instance_type"), missing, close)])
        if missing:
            raise InputError(missing)
        out.append(_sorted(found, family))
    return out


def without_commitments(
    pools: Sequence[Pool], prices: Sequence[PoolPrices], allowed: Sequence[str]
) -> list[str]:
    """Say which pools no commitment can be weighed for, because none that is allowed has a known price."""
    names = [
        f"{pool.name} ({pool.instance_type} in {pool.provider}/{pool.region})"
        if pool.instance_type
        else pool.name
        for pool, price in zip(pools, prices, strict=True)
        if not any(term.option in allowed for term in price.committed)
    ]
    if not names:
        return []
    return [
        f"no commitment is weighed for {', '.join(names)}: the catalog has no price of a term that is allowed; "
        "give your provider's in the pool's 'prices'"
    ]


def _check_provider(catalog: Catalog, pool: Pool, number: int, source: Source) -> None:
    """Refuse a provider that the catalog does not have.

    Raises:
        InputError: its place, and one that is written like it, or those that there are.
    """
    from planner.market.names import unknown_part

    key, close = unknown_part(catalog.offers, pool.provider, None, None)
    if key:
        known = "" if close else f" (known: {', '.join(sorted(set(catalog.offers[key].tolist())))})"
        text = f"pool {pool.name}: unknown provider {pool.provider!r}{known}"
        raise source.error([Fault(("pools", number, key), text, close)])


def _missing(pool: Pool, terms: dict[tuple[str, str], Term]) -> str:
    """The price that a pool lacks, in words; empty where it has what it needs."""
    if not any(option == "on_demand" and term.usd_per_hour > 0 for (option, _), term in terms.items()):
        return (
            f"pool {pool.name}: no on-demand price of {pool.instance_type} in {pool.provider}/{pool.region}; "
            "check the names with `planner catalog list`, or give 'prices' with 'on_demand'"
        )
    if pool.spot_share > 0 and not any(option == "spot" for option, _ in terms):
        return f"pool {pool.name}: 'spot_share' is set, but there is no spot price; add 'prices' with 'spot'"
    return ""


def _sorted(terms: dict[tuple[str, str], Term], family: str) -> PoolPrices:
    on_demand = [term for (option, _), term in terms.items() if option == "on_demand"]
    spot = next((term for (option, _), term in terms.items() if option == "spot"), None)
    committed = [
        term
        for key, term in sorted(terms.items())
        if key[0] in COMMIT_OPTIONS and term.all_in_usd_per_hour > 0
    ]
    return PoolPrices(on_demand[0], spot, tuple(committed), family)


def _from_catalog(catalog: Catalog, pool: Pool) -> tuple[dict[tuple[str, str], Term], str]:
    """Return the cheapest admitted offer per option and variant, and the machine's family."""
    from catalogs.offers.query import OfferQuery, query_offers

    query = OfferQuery(
        providers=(pool.provider,),
        regions=(f"{pool.provider}/{pool.region}",),
        instance_types=(str(pool.instance_type),),
        purchase_options=WANTED,
    )
    offers = query_offers(catalog, query).offers
    terms: dict[tuple[str, str], Term] = {}
    for row in range(offers.n_rows):  # cheapest first
        usd = float(offers["usd_per_hour"][row])
        key = (str(offers["purchase_option"][row]), str(offers["option_variant"][row]))
        if key in terms or not usd > 0:
            continue
        price = float(offers.number("price_per_hour")[row])
        upfront = float(np.nan_to_num(offers.number("upfront_per_instance")[row])) * (usd / price)
        source, as_of = str(offers["source"][row]), str(offers["as_of"][row])
        terms[key] = Term(*key, round(usd, MICRO), round(upfront, 2), source, as_of)
    family = str(offers["family"][0]) if offers.n_rows else ""
    return terms, family
