"""Price List Query API (GetProducts): on-demand prices, and reservations of one and three years."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any

from catalogs.providers.aws_rows import (
    PROVIDER,
    Listing,
    Price,
    Row,
    amount,
    changed,
    field,
    is_fee,
    is_hourly,
    listed,
    option_of_term,
    reservation,
)
from catalogs.providers.row_reader import RowReader, read_rows
from catalogs.tables.columns import bundled_rows
from catalogs.tables.model import PurchaseOption

API = "pricing:GetProducts"
SOURCE = API
# Linux without extra software, on shared hardware, for running machines: one price per type and region.
FILTERS: Mapping[str, str] = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "locationType": "AWS Region",
}
# Local and Wavelength zones carry prices of their own under the parent's name in old lists.
_USUAL_MARKET = ("", "OnDemand")
# Operations with a suffix bill for an operating system or a database besides: `RunInstances:0010`.
_USUAL_OPERATION = ("", "RunInstances")


def filters(**more: str) -> list[dict[str, str]]:
    """Filters of a query: the usual machine, and e.g. `instanceType` or `regionCode`."""
    criteria = {**FILTERS, **more}
    return [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in criteria.items()]


def parse_price_list(
    payload: Mapping[str, Any],
    as_of: str,
    regions: Collection[str],
    options: Collection[str],
    reader: RowReader | None = None,
) -> list[Row]:
    """Offers of a GetProducts answer, whose elements are JSON texts.

    Args:
        payload: the answer.
        as_of: ISO date of the answer.
        regions: regions wanted; others are left out.
        options: purchase options wanted.
        reader: is told of products that cannot be read; without it the first one is an error.

    Raises:
        SchemaChanged: naming the required field that is missing, or the element that is not JSON.
    """

    def product(text: Any) -> list[Row]:
        try:
            item = json.loads(text) if isinstance(text, str) else text
        except (ValueError, RecursionError):
            raise changed(API, "PriceList element (not JSON)") from None
        prices = _prices(item, as_of, regions, reader)
        return [price.row() for price in prices if price.option.value in options]

    rows_per_product = read_rows(reader, listed(payload, "PriceList", API), product, _sku)
    return [row for rows in rows_per_product for row in rows]


def _sku(text: Any) -> str:
    """The SKU of an element, or its instance type."""
    item = json.loads(text) if isinstance(text, str) else text
    product = item["product"]
    return str(product.get("sku") or product["attributes"]["instanceType"])


def _prices(item: Any, as_of: str, regions: Collection[str], reader: RowReader | None) -> list[Price]:
    attributes = field(item, "product.attributes", API)
    name = field(attributes, "instanceType", f"{API} product.attributes")
    region = attributes.get("regionCode") or _region_at().get(_location(attributes), "")
    if not region:
        raise changed(API, "product.attributes.regionCode")
    if region not in regions or not _usual(attributes):
        return []
    terms = field(item, "terms", API)
    listing = Listing(region, name, SOURCE, as_of)
    reserved = _terms(terms, "Reserved").items()
    named = f"{item['product'].get('sku') or name} by reservation"
    offers = read_rows(
        reader, reserved, lambda term: _reserved(term[1], listing), lambda term: f"{named} {term[0]}"
    )
    return [
        *_on_demand(_terms(terms, "OnDemand").values(), listing),
        *(price for price in offers if price is not None),
    ]


def _location(attributes: Mapping[str, Any]) -> str:
    return str(attributes.get("location") or "").replace("EU (", "Europe (")


@cache
def _region_at() -> dict[str, str]:
    """Region by its location in words: answers before 2021 state no code."""
    rows = [row for row in bundled_rows("regions.csv") if row["provider"] == PROVIDER and row["location"]]
    return {row["location"]: row["region"] for row in rows}


def _terms(terms: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    listed_terms = terms.get(kind) or {}
    if not isinstance(listed_terms, Mapping):
        raise changed(API, f"terms.{kind}")
    return listed_terms


def _usual(attributes: Mapping[str, str]) -> bool:
    """Whether a product is the usual machine: the server filters too, but a filter it ignores must not cost."""
    same = all(attributes.get(name, value) == value for name, value in FILTERS.items())
    market, operation = attributes.get("marketoption", ""), attributes.get("operation", "")
    return same and market in _USUAL_MARKET and operation in _USUAL_OPERATION


def _on_demand(terms: Iterable[Mapping[str, Any]], listing: Listing) -> list[Price]:
    """The price in force: a list may hold earlier and announced ones beside it."""
    since = [(str(term.get("effectiveDate") or "")[:10], term) for term in terms]
    past = [(day, term) for day, term in since if day <= listing.as_of]
    newest = max((day for day, _ in past), default="")
    out = []
    for day, term in past:
        if day == newest:
            currency, hourly, _ = _amounts(term, listing.region)
            if hourly > 0:
                out.append(replace(listing, currency=currency).price((PurchaseOption.ON_DEMAND, ""), hourly))
    return out


def _reserved(term: Mapping[str, Any], listing: Listing) -> Price | None:
    words = field(term, "termAttributes", f"{API} terms.Reserved", listing.region)
    option = option_of_term(
        words.get("LeaseContractLength", ""), words.get("PurchaseOption", ""), words.get("OfferingClass", "")
    )
    if option is None:
        return None
    currency, hourly, upfront = _amounts(term, listing.region)
    return reservation(replace(listing, currency=currency), option, hourly, upfront)


def _amounts(term: Mapping[str, Any], region: str) -> tuple[str, Decimal, Decimal]:
    """Currency, price per hour and fee at the start of a term."""
    currency, hourly, upfront = "", Decimal(0), Decimal(0)
    for dimension in field(term, "priceDimensions", f"{API} terms", region).values():
        prices = field(dimension, "pricePerUnit", f"{API} terms.priceDimensions", region)
        if not prices:
            raise changed(API, "terms.priceDimensions.pricePerUnit", region)
        charged = [pair for pair in prices.items() if str(pair[1] or "").strip("0.")]
        own, text = next(iter(charged or prices.items()))
        value = amount(text, "terms.priceDimensions.pricePerUnit", API, region)
        currency = own if value or not currency else currency  # an amount of 0 may be in another
        unit = field(dimension, "unit", f"{API} terms.priceDimensions", region)
        if is_hourly(unit):
            hourly = value
        elif is_fee(unit):
            upfront = value
        else:
            raise changed(API, f"terms.priceDimensions.unit {unit!r}", region)
    return currency or "USD", hourly, upfront
