"""Azure Retail Prices: which item is a price of a Linux machine by the hour, and the rows made of them.

One list holds Linux and Windows, spot and the old Low Priority, dev/test rates, cloud services, and reservations
priced for their whole term although the unit says "1 Hour".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from catalogs.offers.flags import join_flags
from catalogs.providers.azure_types import PROVIDER, Row, Size
from catalogs.providers.base import FetchLog, SchemaChanged, require
from catalogs.providers.row_reader import RowReader
from catalogs.tables.model import PurchaseOption
from catalogs.tables.normalize import decimal_text, number_of

RETAIL_API = "Retail Prices API"
API_VERSION = "2023-01-01-preview"  # the first with savings plans
OPTIONS = ("on_demand", "spot", "reserved_1y", "reserved_3y", "savings_plan_1y", "savings_plan_3y")
# Spot at this share of on-demand is an administered floor: 527 of 803 bundled GPU prices sit exactly there.
FLOOR_RATIO = Decimal("0.1848")
_FLOOR_TOLERANCE = Decimal("0.00005")
_PLACES = Decimal("1e-9")
_TWIN_TOLERANCE = Decimal("0.01")
_HOUR = "1 Hour"
_TERMS = {"1 Year": "1y", "3 Years": "3y", "3 Year": "3y"}
_GOVERNMENT = ("usgov", "usdod")
_REQUIRED = ("armSkuName", "armRegionName", "retailPrice", "type", "productName", "unitOfMeasure")
# (what it is, fields, words): items that are never a price of ours. A product may be called "... Srs Win".
_LEFT_ASIDE = (
    ("Windows", ("productName", "skuName", "meterName"), ("windows", "win")),
    (
        "licences",
        ("productName",),
        ("license", "licenses", "red hat", "rhel", "suse", "sles", "sql", "ubuntu pro"),
    ),
    ("cloud services", ("productName",), ("cloudservices", "cloud services")),
    ("dedicated host", ("productName",), ("dedicated host",)),
    ("Low Priority", ("skuName", "meterName"), ("low priority",)),
    ("expired", ("skuName", "meterName", "productName"), ("expired",)),
    ("promotional", ("skuName", "meterName", "productName"), ("promo", "promotion", "promotional")),
)
_SERVICE = "Virtual Machines"  # others charge for the same sizes under the same names


@dataclass(frozen=True)
class RetailPrice:
    """One price of one size in one region.

    Attributes:
        region: region id.
        size: size as the item spells it.
        option: purchase option.
        per_hour: price of one machine for one hour.
        currency: ISO 4217 code.
        since: when it came into force, ISO date.
        until: last day of it, ISO date; "" where none is stated.
    """

    region: str
    size: str
    option: str
    per_hour: Decimal
    currency: str
    since: str
    until: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """(region, size in lower case, option)."""
        return self.region, self.size.lower(), self.option


@dataclass(frozen=True)
class RetailPage:
    """One page of the list.

    Attributes:
        prices: what is a price of ours.
        left_aside: reason to number of items.
        odd: (item, reason) not understood or without a field.
        next_link: where the next page is, "" none.
        items: items of the page.
        n_refused: items that could not be read.
    """

    prices: tuple[RetailPrice, ...]
    left_aside: Mapping[str, int]
    odd: tuple[tuple[str, str], ...]
    next_link: str
    items: int
    n_refused: int = 0


def parse_retail_page(payload: Any, region: str = "") -> RetailPage:
    """Read one page.

    Raises:
        SchemaChanged: when the envelope lacks a field that every one has.
    """
    items = require(payload, "Items", provider=PROVIDER, region=region, api=RETAIL_API)
    if not isinstance(items, list):
        raise _changed("Items", region)
    prices: list[RetailPrice] = []
    aside: dict[str, int] = {}
    odd = FetchLog()
    reader = RowReader("price", odd)
    for reason, strange, item, item_prices in reader.read(
        items, lambda item: _read(item, region, odd), _item_name
    ):
        if not reason:
            prices += item_prices
        elif strange:
            odd.skip("price", _item_name(item), reason)
        else:
            aside[reason] = aside.get(reason, 0) + 1
    notes = tuple((note.name, note.reason) for note in odd.not_understood)
    return RetailPage(
        tuple(prices), aside, notes, str(payload.get("NextPageLink") or ""), len(items), reader.n_refused
    )


def _item_name(item: Mapping[str, Any]) -> str:
    meter = item.get("skuName") or item.get("meterName") or item.get("productName") or ""
    return f"{item['armSkuName']} in {item['armRegionName']}: {meter}"


def _read(
    item: Mapping[str, Any], region: str, odd: FetchLog
) -> tuple[str, bool, Mapping[str, Any], list[RetailPrice]]:
    """Why an item is not a price of ours ("" where it is one), whether that is strange, and its prices."""
    for name in _REQUIRED:
        if item.get(name) is None:
            raise _changed(name, region)
    if not isinstance(item["productName"], str) or not item["productName"].strip():
        raise _changed("productName", region)  # without it Windows is not told from Linux
    reason, strange = _no_price(item)
    return reason, strange, item, [] if reason else _prices(item, region, odd)


def _says(item: Mapping[str, Any], fields: Sequence[str], words: Sequence[str]) -> bool:
    texts = [f" {' '.join(str(item.get(field) or '').lower().split())} " for field in fields]
    return any(f" {word} " in text for text in texts for word in words)


def _no_price(item: Mapping[str, Any]) -> tuple[str, bool]:
    """Why an item is not a price of ours ("" where it is one), and whether that is strange."""
    for reason, fields, words in _LEFT_ASIDE:
        if _says(item, fields, words):
            return reason, False
    if (item.get("serviceName") or _SERVICE) != _SERVICE:
        return "another service", False
    if not str(item["armSkuName"]).strip() or not item["armRegionName"]:
        return "not bound to a size and region", False
    if item["type"] == "DevTestConsumption":
        return "dev/test", False
    if item.get("isPrimaryMeterRegion") is False:
        return "not the primary meter of its region", False
    if item["type"] not in ("Consumption", "Reservation"):
        return f"price type {item['type']!r} is not known", True
    if item["unitOfMeasure"] != _HOUR:
        return f"its unit is {item['unitOfMeasure']!r}, expected {_HOUR!r}", True
    if number_of(item.get("tierMinimumUnits") or 0) != 0:
        return "its price is tiered", True
    if item["type"] == "Reservation" and item.get("reservationTerm") not in _TERMS:
        return f"reservation of {item.get('reservationTerm')!r}", item.get("reservationTerm") != "5 Years"
    return "", False


def _prices(item: Mapping[str, Any], region: str, odd: FetchLog) -> list[RetailPrice]:
    """The price of an item, and those of the savings plans it carries.

    A reservation's price is for its whole term: / 8,760 h or 26,280 h, to nine decimals.
    """
    amount = _amount(item["retailPrice"], "retailPrice", region)
    if item["type"] == "Reservation":
        option = PurchaseOption(f"reserved_{_TERMS[item['reservationTerm']]}")
        hourly = (amount / Decimal(str(option.term_hours))).quantize(_PLACES)
        return [_price(item, option.value, hourly)]
    names = f"{item.get('skuName') or ''} {item.get('meterName') or ''}".lower().split()
    if "spot" in names:
        return [_price(item, "spot", amount)]

    def plan_price(plan: Mapping[str, Any]) -> RetailPrice:
        term = _TERMS.get(str(plan.get("term")))
        if term is None:
            raise _changed("savingsPlan.term", region)
        value = plan.get("retailPrice", plan.get("unitPrice"))
        return _price(item, f"savings_plan_{term}", _amount(value, "savingsPlan.retailPrice", region))

    name = f"savings plan of {_item_name(item)}"
    plan_prices = RowReader("price", odd).read(item.get("savingsPlan") or (), plan_price, lambda _: name)
    return [_price(item, "on_demand", amount), *plan_prices]


def _price(item: Mapping[str, Any], option: str, per_hour: Decimal) -> RetailPrice:
    return RetailPrice(
        region=str(item["armRegionName"]).lower(),
        size=str(item["armSkuName"]).strip(),
        option=option,
        per_hour=per_hour,
        currency=str(item.get("currencyCode") or "USD"),
        since=str(item.get("effectiveStartDate") or "")[:10],
        until=str(item.get("effectiveEndDate") or "")[:10],
    )


def _amount(value: Any, where: str, region: str) -> Decimal:
    """The amount as published: the shortest text of the JSON number is what was written there."""
    try:
        amount = number_of(value)
    except ValueError:
        raise _changed(where, region) from None
    if amount < 0:
        raise _changed(where, region)
    return amount


def _changed(where: str, region: str) -> SchemaChanged:
    return SchemaChanged(
        "the price list has another form than this version knows; update the planner",
        where=where,
        provider=PROVIDER,
        region=region,
        api=RETAIL_API,
    )


def in_force(prices: Iterable[RetailPrice], as_of: str, log: FetchLog) -> list[RetailPrice]:
    """One price per (region, size, option): the newest that is in force at `as_of` and is not zero.

    Of twins of the same day that hardly differ the dearer counts; two different ones are refused, both of them.
    """
    groups: dict[tuple[str, str, str], list[RetailPrice]] = {}
    for price in prices:
        if price.since <= as_of and (not price.until or as_of <= price.until):
            groups.setdefault(price.key, []).append(price)
    out = []
    for key, group in sorted(groups.items()):
        priced = [price for price in group if price.per_hour > 0]
        if not priced:
            log.skip("price", " ".join(key), "the price is zero")
            continue
        newest = max(price.since for price in priced)
        last = sorted((price for price in priced if price.since == newest), key=lambda one: one.per_hour)
        low, high = last[0].per_hour, last[-1].per_hour
        if high - low <= _TWIN_TOLERANCE * high:
            out.append(last[-1])
            continue
        amounts = ", ".join(str(amount) for amount in sorted({price.per_hour for price in last}))
        log.skip("price", " ".join(key), f"{len(last)} prices of the same day: {amounts}")
    return out


def offer_rows(
    prices: Sequence[RetailPrice],
    types: Iterable[str],
    sizes: Sequence[Size],
    options: AbstractSet[str],
    as_of: str,
    log: FetchLog,
    eviction: Mapping[tuple[str, str], str] | None = None,
) -> list[Row]:
    """Rows of `offers`.

    Args:
        prices: one per key; see `in_force`.
        types: known instance types.
        sizes: what the subscription sees; a size it may not use in a region has capacity 0 there.
        options: purchase options wanted.
        as_of: ISO date of the answers.
        log: is told of sizes that are not known.
        eviction: eviction band in percent per hour by (region, size in lower case).
    """
    bands = eviction or {}
    names = {name.lower(): name for name in types}
    # A size may be listed more than once; one entry that is open is enough.
    usable = {(size.region, size.name.lower()) for size in sizes if not size.restriction}
    places_of = {(size.region, size.name.lower()): size.restriction for size in sizes}
    closed = {key: reason for key, reason in places_of.items() if key not in usable}
    listed = {price.key[:2]: price.per_hour for price in prices if price.option == "on_demand"}
    unknown: set[str] = set()
    rows = []
    for price in prices:
        name = names.get(price.size.lower())
        if name is None:
            unknown.add(price.size)
        elif price.option in options:
            reason = closed.get((price.region, price.size.lower()), "")
            row = _row(price, name, listed.get(price.key[:2]), "0" if reason else "", as_of)
            if price.option == "spot" and price.key[:2] in bands:
                row["source"] += f"; evicted {bands[price.key[:2]]} % per hour (Resource Graph)"
            rows.append(row)
    for size in sorted(unknown):
        log.skip("instance_type", size, "priced, but not among the machines with a known accelerator")
    places = sorted({f"{region} ({reason})" for (region, _), reason in closed.items()})
    if places:
        log.remark(f"some sizes are closed to the subscription in {', '.join(places)}: capacity 0")
    return rows


def _row(price: RetailPrice, name: str, on_demand: Decimal | None, capacity: str, as_of: str) -> Row:
    option = PurchaseOption(price.option)
    term = option.term_hours
    return {
        "provider": PROVIDER,
        "region": price.region,
        "zone": "",  # Azure has no price per zone
        "instance_type": name,
        "purchase_option": option.value,
        "option_variant": "",
        "price_per_hour": decimal_text(price.per_hour, _PLACES),
        "currency": price.currency,
        "term_hours": decimal_text(str(term)) if term > 0 else "",
        "capacity": capacity,
        "basis": "observed" if option is PurchaseOption.SPOT else "list",
        "flags": join_flags(_flags(price, on_demand)),
        "source": f"{RETAIL_API} {API_VERSION}",
        "as_of": as_of,
    }


def _flags(price: RetailPrice, on_demand: Decimal | None) -> tuple[str, ...]:
    flags = ["restricted_region"] if price.region.startswith(_GOVERNMENT) else []
    if price.option == "spot" and on_demand:
        if price.per_hour >= on_demand:
            flags.append("spot_equals_on_demand")
        elif abs(price.per_hour / on_demand - FLOOR_RATIO) <= _FLOOR_TOLERANCE:
            flags.append("administered_floor")
    return tuple(flags)
