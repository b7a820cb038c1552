"""Cloud Billing SKUs: which SKU prices which part of which machine, by the rules of gcp_skus.csv.

The Cloud Billing Catalog has no link from a machine type to its SKUs; the only join is the SKU's description.
A rule fits when the *whole* description fits its pattern and the category says the same: a prefix alone would
take `... attached to DWS Defined Duration VMs` (flex-start) or the 80 GB card for the 40 GB one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

from catalogs.providers.base import FetchLog, SchemaChanged, require
from catalogs.providers.row_reader import RowReader
from catalogs.tables.columns import bundled_rows

PROVIDER = "gcp"
BILLING_API = "cloudbilling.services.skus.list"
UNUSED = "unused"
WATCH = "watch"
# One hour of a monthly price: Google bills months of 730 hours (365 x 24 / 12).
HOURS_PER_MONTH = Decimal(730)
# GB to GiB: RAM SKUs of some newer series are per GB.
GB_PER_GIB = Decimal(2**30) / Decimal(10**9)
_MOST_PER_UNIT = Decimal(10**6)
_NANO = Decimal("1e-9")
# Renamed SKUs overlap with their successors; their prices differ by rounding.
_TWIN_TOLERANCE = Decimal("0.01")


@dataclass(frozen=True)
class SkuRule:
    """One row of gcp_skus.csv.

    Attributes:
        component: `cpu`, `ram`, `gpu`, `local_ssd`; `unused` (known, never a price of ours); `watch` (worth a
            report when no other rule fits).
        series: machine series, accelerator type or, for `unused` and `watch`, the reason.
        option: purchase option.
        description: pattern of the whole description: `{place}` any place, `{any}` any text or none,
            `{series}` one digit and letters, `[...]` optional text.
        resource_family: allowed values joined by `|`.
        resource_group: allowed values joined by `|`.
        usage_type: allowed values joined by `|`.
        unit: allowed usage units joined by `|`.
        evidence: `read` in a source, or `assumed` by analogy.
        source: where.
        as_of: when.
    """

    component: str
    series: str
    option: str
    description: str
    resource_family: str
    resource_group: str
    usage_type: str
    unit: str
    evidence: str
    source: str
    as_of: str

    @property
    def part(self) -> tuple[str, str, str]:
        """(component, series, option)."""
        return self.component, self.series, self.option


@dataclass(frozen=True)
class Sku:
    """One SKU of the catalog.

    Attributes:
        sku_id: id such as `9A32-36B2-7FBC`.
        description: Google's own words.
        category: (resource family, resource group, usage type).
        regions: regions it holds for.
        unit: usage unit such as `h` or `GiBy.mo`.
        price: price of one unit; None where it is tiered or absent.
        currency: ISO 4217 code.
    """

    sku_id: str
    description: str
    category: tuple[str, str, str]
    regions: tuple[str, ...]
    unit: str
    price: Decimal | None
    currency: str


def pattern_of(text: str) -> re.Pattern[str]:
    """Turn a description pattern of gcp_skus.csv into a regular expression for the whole text."""
    out = re.escape(text)
    for word, expression in (("{place}", ".+"), ("{any}", ".*"), ("{series}", r"\d\w*")):
        out = out.replace(re.escape(word), expression)
    return re.compile(out.replace(r"\[", "(?:").replace(r"\]", ")?"))


@cache
def load_sku_rules() -> tuple[tuple[SkuRule, re.Pattern[str]], ...]:
    """Read gcp_skus.csv: each rule with its compiled pattern."""
    return tuple((SkuRule(**row), pattern_of(row["description"])) for row in bundled_rows("gcp_skus.csv"))


@cache
def _split_rules() -> tuple[tuple[tuple[SkuRule, re.Pattern[str]], ...], ...]:
    """Rules that price something, those known and unused, those worth watching."""
    rules = load_sku_rules()
    kinds = (UNUSED, WATCH)
    pricing = tuple(pair for pair in rules if pair[0].component not in kinds)
    return (pricing, *(tuple(pair for pair in rules if pair[0].component == kind) for kind in kinds))


def parse_skus(payload: Any, reader: RowReader | None = None) -> list[Sku]:
    """Read one page of `services/6F81-5844-456A/skus`.

    Args:
        payload: the page.
        reader: counts SKUs over the pages, and is told of those that cannot be read.

    Raises:
        SchemaChanged: when the page has no list of SKUs.
    """
    listed = require(payload, "skus", provider=PROVIDER, api=BILLING_API)
    if not isinstance(listed, list):
        raise _changed("skus")
    reader = reader or sku_reader(FetchLog())
    return reader.read(listed, _sku, lambda item: f"{item['skuId']} {item.get('description', '')}".strip())


def sku_reader(log: FetchLog) -> RowReader:
    """A reader of SKUs."""
    return RowReader("sku", log, {"provider": PROVIDER, "region": "", "api": BILLING_API})


def _sku(item: Any) -> Sku:
    category = item["category"]
    price, unit, currency = _price(item.get("pricingInfo") or ())
    return Sku(
        sku_id=str(item["skuId"]),
        description=" ".join(str(item["description"]).split()),
        category=(category["resourceFamily"], category["resourceGroup"], category["usageType"]),
        regions=_texts(item["serviceRegions"]),
        unit=unit,
        price=price,
        currency=currency,
    )


def _price(infos: Sequence[Mapping[str, Any]]) -> tuple[Decimal | None, str, str]:
    """The price in force: of the newest entry, and only where there is one rate from the first unit on.

    Licences and SKUs about to be sold have no price information or no rate: a price that is absent, no fault.
    """
    if not infos:
        return None, "", ""
    newest = max(infos, key=lambda info: str(info.get("effectiveTime", "")))
    expression = newest.get("pricingExpression") or {}
    unit, rates = str(expression.get("usageUnit") or ""), list(expression.get("tieredRates") or [])
    if len(rates) != 1 or rates[0].get("startUsageAmount", 0) != 0:
        return None, unit, ""
    money = rates[0]["unitPrice"]
    amount = Decimal(str(money.get("units") or 0)) + Decimal(int(money.get("nanos") or 0)) * _NANO
    return amount, unit, str(money["currencyCode"])


def _changed(where: str) -> SchemaChanged:
    return SchemaChanged(
        "the billing catalog has another form than this version knows; update the planner",
        where=where,
        provider=PROVIDER,
        api=BILLING_API,
    )


@dataclass(frozen=True)
class SkuNote:
    """A SKU that prices nothing here, and why."""

    sku_id: str
    description: str
    reason: str


@dataclass
class RateBook:
    """Prices per part and region, and the SKUs that were not understood.

    Attributes:
        rates: (component, series, option, region) to price per hour and unit (core, GiB, accelerator).
        currency: the one currency of all prices: that of most SKUs.
        understood: SKUs that price a part.
        unused: reason to number of SKUs known and left aside.
        notes: SKUs that name an accelerator or its host and fit no rule, have no usable price, or contradict
            another SKU of the same part and region.
    """

    rates: dict[tuple[str, str, str, str], Decimal] = field(default_factory=dict)
    currency: str = ""
    understood: int = 0
    unused: dict[str, int] = field(default_factory=dict)
    notes: list[SkuNote] = field(default_factory=list)
    _clashes: set[tuple[str, str, str, str]] = field(default_factory=set, repr=False)

    def rate(self, component: str, series: str, option: str, region: str) -> Decimal | None:
        """Price of one core, GiB or accelerator for one hour; None unknown."""
        return self.rates.get((component, series, option, region))


def build_rate_book(skus: Iterable[Sku]) -> RateBook:
    """Sort SKUs into a rate book; each is used, known and unused, noted, or of no concern."""
    once = {
        sku.sku_id: sku for sku in reversed(list(skus))
    }  # a page may be served twice: its first form counts
    usual = Counter(sku.currency for sku in once.values() if sku.currency).most_common(1)
    book = RateBook(currency=usual[0][0] if usual else "")
    for sku in reversed(once.values()):
        _enter(book, sku)
    return book


def _enter(book: RateBook, sku: Sku) -> None:
    pricing, unused, watch = _split_rules()
    fits = [rule for rule, pattern in pricing if pattern.fullmatch(sku.description)]
    if not fits:
        matching = next((rule for rule, pattern in unused if pattern.fullmatch(sku.description)), None)
        watched = any(pattern.fullmatch(sku.description) for _, pattern in watch)
        if not watched and sku.category[1] not in ("GPU", "TPU"):
            return
        if matching:
            book.unused[matching.series] = book.unused.get(matching.series, 0) + 1
        else:
            _note(book, sku, "no rule fits its description")
        return
    rule = fits[0]
    reason = _misfit(rule, sku, book.currency)
    if reason:
        _note(book, sku, reason)
        return
    assert sku.price is not None
    book.currency = sku.currency
    book.understood += 1
    price = _per_hour(sku.price, sku.unit)
    for region in sku.regions:
        _store(book, (*rule.part, region), price, sku)


def _misfit(rule: SkuRule, sku: Sku, currency: str) -> str:
    """Why a SKU whose description fits still has no usable price; "" where it has."""
    expected = (rule.resource_family, rule.resource_group, rule.usage_type)
    for name, allowed, actual in zip(
        ("resource family", "resource group", "usage type"), expected, sku.category, strict=True
    ):
        if actual not in allowed.split("|"):
            return f"{name} is {actual!r}, expected {allowed}"
    if sku.price is None:
        return "its price is tiered or absent"
    if sku.unit not in rule.unit.split("|"):
        return f"its unit is {sku.unit!r}, expected {rule.unit}"
    if not sku.price.is_finite() or sku.price > _MOST_PER_UNIT:
        return "its price is not a number"
    if sku.price <= 0:
        return "its price is zero"
    if currency and sku.currency != currency:
        return f"its currency is {sku.currency}, others are {currency}"
    return ""


def _per_hour(price: Decimal, unit: str) -> Decimal:
    if unit.endswith(".mo"):
        price = price / HOURS_PER_MONTH
    return price * GB_PER_GIB if unit.startswith("GBy") else price


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("serviceRegions: no list of texts")
    return tuple(values)


def _store(book: RateBook, key: tuple[str, str, str, str], price: Decimal, sku: Sku) -> None:
    """Keep a rate. Of twins that hardly differ the dearer stays; two different ones are refused, both of them."""
    if key in book._clashes:
        return
    earlier = book.rates.get(key)
    if earlier is None or earlier == price:
        book.rates[key] = price
        return
    twin = f"another SKU has {earlier}/h for the same part in {key[3]}, this one {price}/h"
    if abs(price - earlier) <= _TWIN_TOLERANCE * max(price, earlier):
        book.rates[key] = max(price, earlier)
        _note(book, sku, f"{twin}: the higher one is kept")
        return
    del book.rates[key]
    book._clashes.add(key)
    _note(book, sku, twin)


def _note(book: RateBook, sku: Sku, reason: str) -> None:
    book.notes.append(SkuNote(sku.sku_id, sku.description, reason))
