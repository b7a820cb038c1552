"""Spot: price history per zone with its weekly mean and variance, and the Spot Advisor's data file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from catalogs.providers.aws_rows import Price, Row, amount, changed, field, listed, word
from catalogs.providers.row_reader import RowReader, read_rows
from catalogs.tables.model import PurchaseOption
from catalogs.tables.normalize import decimal_text

API = "ec2:DescribeSpotPriceHistory"
ADVISOR_API = "spot advisor data file"
ADVISOR_URL = "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"
SOURCE = API
PRODUCT = "Linux/UNIX"
WINDOW = timedelta(days=7)
_BANDS = ("<5%", "5-10%", "10-15%", "15-20%", ">20%")
_PLACES = Decimal("1e-6")


@dataclass(frozen=True)
class Quote:
    """One spot price: it holds from `at` until the next quote of its type and zone."""

    instance_type: str
    zone: str
    price: Decimal
    at: datetime


@dataclass(frozen=True)
class Advice:
    """What the Spot Advisor says of a type in a region.

    Attributes:
        band: share of machines reclaimed in the past month.
        savings_ratio: mean saving against on-demand in the past month, 0..1.
    """

    band: str
    savings_ratio: Decimal


def parse_spot_history(
    payload: Mapping[str, Any], zones: Mapping[str, str], region: str, reader: RowReader | None = None
) -> list[Quote]:
    """Quotes of a DescribeSpotPriceHistory answer.

    Args:
        payload: the answer.
        zones: zone name to zone id, for answers without the id.
        region: region asked.
        reader: is told of quotes that cannot be read; without it the first one is an error.

    Raises:
        SchemaChanged: naming the required field that is missing, or a zone without an id.
    """

    def quote(item: Mapping[str, Any]) -> Quote | None:
        if field(item, "ProductDescription", API, region) != PRODUCT:
            return None
        zone = item.get("AvailabilityZoneId") or zones.get(word(item, "AvailabilityZone", API, region))
        if not zone or not isinstance(zone, str):
            raise changed(API, f"AvailabilityZoneId (zone {item.get('AvailabilityZone')} has no id)", region)
        price = amount(field(item, "SpotPrice", API, region), "SpotPrice", API, region)
        at = _moment(field(item, "Timestamp", API, region), region)
        return Quote(word(item, "InstanceType", API, region), zone, price, at)

    items = listed(payload, "SpotPriceHistory", API, region)
    quotes = read_rows(reader, items, quote, lambda i: f"{i['InstanceType']} in {i['AvailabilityZone']}")
    return [price_quote for price_quote in quotes if price_quote is not None]


def _moment(value: Any, region: str) -> datetime:
    """A moment as the SDK gives it, or as a saved answer spells it; without a zone it is UTC."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise changed(API, "Timestamp", region) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def spot_rows(
    quotes: Iterable[Quote],
    region: str,
    now: datetime,
    advice: Mapping[tuple[str, str], Advice],
    on_demand: Mapping[tuple[str, str], Decimal],
) -> list[Row]:
    """Offers of a region: per type and zone the last quote, with the week's mean and variance in the source.

    Args:
        quotes: quotes of the past week, and the one before it.
        region: region id.
        now: end of the week.
        advice: by (region, instance type).
        on_demand: price per hour by (region, instance type), to flag spot without a discount.
    """
    series: dict[tuple[str, str], set[Quote]] = {}
    for quote in quotes:
        series.setdefault((quote.instance_type, quote.zone), set()).add(quote)
    rows = []
    for (name, zone), zone_quotes in sorted(series.items()):
        ordered = sorted(zone_quotes, key=lambda quote: (quote.at, quote.price))
        last = ordered[-1]
        if last.price <= 0:
            continue
        mean, variance = weekly(ordered, now)
        text = f"7-day mean {decimal_text(mean, _PLACES)} variance {decimal_text(variance, _PLACES)}"
        advised = advice.get((region, name))
        base = on_demand.get((region, name))
        price = Price(
            region=region,
            instance_type=name,
            zone=zone,
            option=PurchaseOption.SPOT,
            variant="",
            per_hour=last.price,
            basis="observed",
            band=advised.band if advised else "",
            flags="spot_equals_on_demand" if base is not None and last.price >= base else "",
            source=f"{SOURCE}; {text}",
            as_of=now.date().isoformat(),
        )
        rows.append(price.row())
    return rows


def weekly(ordered: Sequence[Quote], now: datetime) -> tuple[Decimal, Decimal]:
    """Time-weighted mean (per hour) and variance of a price that holds from each quote to the next.

    Args:
        ordered: quotes of one type and zone by time; the first may be older than the week.
        now: end of the week.
    """
    start = now - WINDOW
    ends = [*(quote.at for quote in ordered[1:]), now]
    spans = [
        (quote.price, Decimal(max((end - max(quote.at, start)).total_seconds(), 0.0)))
        for quote, end in zip(ordered, ends, strict=True)
    ]
    total = sum((weight for _, weight in spans), Decimal(0))
    if total <= 0:
        return ordered[-1].price, Decimal(0)
    mean = sum((price * weight for price, weight in spans), Decimal(0)) / total
    variance = sum(((price - mean) ** 2 * weight for price, weight in spans), Decimal(0)) / total
    return mean, variance


def parse_advisor(
    payload: Any, regions: Collection[str], reader: RowReader | None = None
) -> dict[tuple[str, str], Advice]:
    """Bands and savings of the Spot Advisor's data file, by (region, instance type), for Linux.

    The file states the band as an index into `ranges`; a range no band of the catalog fits costs its machines.

    Raises:
        SchemaChanged: naming the field that is missing or not as known.
    """
    by_region = field(payload, "spot_advisor", ADVISOR_API)
    bands = _bands(payload, reader)
    advice = {}
    for region in regions:
        entries = (by_region.get(region) or {}).get("Linux") or {}
        if not isinstance(entries, Mapping):
            raise changed(ADVISOR_API, f"spot_advisor.{region}.Linux", region)
        for name, advised in read_rows(
            reader, entries.items(), partial(_advice, bands, region), lambda item: item[0]
        ):
            advice[region, name] = advised
    return advice


def _advice(bands: Mapping[int, str], region: str, item: tuple[str, Any]) -> tuple[str, Advice]:
    name, entry = item
    where = f"spot_advisor.{region}.Linux"
    index, percent = field(entry, "r", f"{ADVISOR_API} {where}"), field(entry, "s", ADVISOR_API)
    if index not in bands:
        raise changed(ADVISOR_API, f"{where}.{name}.r", region)
    return name, Advice(bands[index], amount(percent, f"{where}.{name}.s", ADVISOR_API, region) / 100)


def _bands(payload: Mapping[str, Any], reader: RowReader | None) -> dict[int, str]:
    """Bands by their index; a range that no band of the catalog fits costs the machines in it."""

    def band(item: Mapping[str, Any]) -> tuple[int, str]:
        index, label = field(item, "index", ADVISOR_API), field(item, "label", ADVISOR_API)
        if label not in _BANDS or not isinstance(index, int):
            raise changed(ADVISOR_API, "ranges.label")
        return index, label

    ranges = listed(payload, "ranges", ADVISOR_API)
    return dict(read_rows(reader, ranges, band, lambda item: f"range {item['label']}"))


def derived_spot_rows(on_demand: Iterable[Row], advice: Mapping[tuple[str, str], Advice]) -> list[Row]:
    """Spot offers where no account can be asked: on-demand times one less the advised savings, so `derived`.

    Args:
        on_demand: rows of on-demand offers.
        advice: by (region, instance type).
    """
    rows = []
    for row in on_demand:
        advised = advice.get((row["region"], row["instance_type"]))
        if advised is None or not 0 < advised.savings_ratio < 1:
            continue
        price = Price(
            region=row["region"],
            instance_type=row["instance_type"],
            option=PurchaseOption.SPOT,
            variant="",
            per_hour=Decimal(row["price_per_hour"]) * (1 - advised.savings_ratio),
            currency=row["currency"],
            basis="derived",
            band=advised.band,
            source=f"on-demand x (1 - {advised.savings_ratio} of the {ADVISOR_API}); on-demand: {row['source']}",
            as_of=row["as_of"],
        )
        rows.append(price.row())
    return rows
