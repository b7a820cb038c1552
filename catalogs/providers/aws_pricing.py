"""Price List Query API (GetProducts): on-demand prices, and reservations of one and three years."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from catalogs.providers.aws_rows import (
    Listing,
    Price,
    Row,
    amount,
    changed,
    field,
    is_hourly,
    listed,
    option_of_term,
    reservation,
)
from catalogs.providers.row_reader import RowReader, read_rows
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
        except ValueError:
            raise changed(API, "PriceList element (not JSON)") from None
        return [price.row() for price in _prices(item, as_of, regions) if price.option.value in options]

    rows_per_product = read_rows(reader, listed(payload, "PriceList", API), product, _sku)
    return [row for rows in rows_per_product for row in rows]


def _sku(text: Any) -> str:
    """The SKU of an element, or its instance type."""
    item = json.loads(text) if isinstance(text, str) else text
    product = item["product"]
    return str(product.get("sku") or product["attributes"]["instanceType"])


def _prices(item: Any, as_of: str, regions: Collection[str]) -> list[Price]:
    attributes = field(item, "product.attributes", API)
    name = field(attributes, "instanceType", f"{API} product.attributes")
    region = field(attributes, "regionCode", f"{API} product.attributes")
    if region not in regions or not _usual(attributes):
        return []
    terms = field(item, "terms", API)
    listing = Listing(region, name, SOURCE, as_of)
    return _on_demand(terms.get("OnDemand", {}), listing) + _reserved(terms.get("Reserved", {}), listing)


def _usual(attributes: Mapping[str, str]) -> bool:
    """Whether a product is the usual machine: the server filters too, but a filter it ignores must not cost."""
    same = all(attributes.get(name, value) == value for name, value in FILTERS.items())
    return same and attributes.get("marketoption", "") in _USUAL_MARKET


def _on_demand(terms: Mapping[str, Any], listing: Listing) -> list[Price]:
    out = []
    for term in terms.values():
        currency, hourly, _ = _amounts(term, listing.region)
        if hourly > 0:
            out.append(replace(listing, currency=currency).price((PurchaseOption.ON_DEMAND, ""), hourly))
    return out


def _reserved(terms: Mapping[str, Any], listing: Listing) -> list[Price]:
    out = []
    for term in terms.values():
        words = field(term, "termAttributes", f"{API} terms.Reserved", listing.region)
        option = option_of_term(
            words.get("LeaseContractLength", ""),
            words.get("PurchaseOption", ""),
            words.get("OfferingClass", ""),
        )
        if option is None:
            continue
        currency, hourly, upfront = _amounts(term, listing.region)
        price = reservation(replace(listing, currency=currency), option, hourly, upfront)
        if price is not None:
            out.append(price)
    return out


def _amounts(term: Mapping[str, Any], region: str) -> tuple[str, Decimal, Decimal]:
    """Currency, price per hour and fee at the start of a term."""
    currency, hourly, upfront = "USD", Decimal(0), Decimal(0)
    for dimension in field(term, "priceDimensions", f"{API} terms", region).values():
        prices = field(dimension, "pricePerUnit", f"{API} terms.priceDimensions", region)
        if not prices:
            raise changed(API, "terms.priceDimensions.pricePerUnit", region)
        currency, text = next(iter(prices.items()))
        value = amount(text, "terms.priceDimensions.pricePerUnit", API, region)
        if is_hourly(field(dimension, "unit", f"{API} terms.priceDimensions", region)):
            hourly = value
        else:
            upfront = value
    return currency, hourly, upfront
