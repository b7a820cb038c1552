"""The public bulk price list, which needs no account: CSV files of gigabytes, read row by row.

Memory holds one line and the prices wanted. The file's first lines are its own metadata; the header is the
line that begins with SKU. A fee at the start and a price per hour of one term stand in two rows.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

from catalogs.providers import aws_rows
from catalogs.providers.aws_rows import (
    Listing,
    Row,
    amount,
    changed,
    is_fee,
    is_hourly,
    option_of_term,
    reservation,
)
from catalogs.providers.base import FetchLog
from catalogs.providers.row_reader import RowReader
from catalogs.tables.model import PurchaseOption

API = "bulk price list"
HOST = "https://pricing.us-east-1.amazonaws.com"
REGION_INDEX = "/offers/v1.0/aws/AmazonEC2/current/region_index.json"
SOURCE = "AWS bulk price list AmazonEC2"
_METADATA_LINES = 20
_NEEDED = (
    "SKU", "OfferTermCode", "TermType", "Unit", "PricePerUnit", "Currency", "LeaseContractLength", "PurchaseOption",
    "OfferingClass", "Instance Type", "Tenancy", "Operating System", "CapacityStatus", "Pre Installed S/W",
    "Location Type", "Region Code",
)  # fmt: skip
_USUAL = {
    "Tenancy": "Shared",
    "Operating System": "Linux",
    "CapacityStatus": "Used",
    "Pre Installed S/W": "NA",
    "Location Type": "AWS Region",
}
_OPTIONAL = ("MarketOption", "GPU", "vCPU")


@dataclass
class _Term:
    """Amounts of one term of one product, gathered from its rows."""

    currency: str
    option: tuple[PurchaseOption, str]
    hourly: Decimal = Decimal(0)
    upfront: Decimal = Decimal(0)


@dataclass
class BulkPrices:
    """What one file holds.

    Attributes:
        rows: offers of the types and options wanted.
        lines: rows read.
        with_gpu: instance types with GPUs in the file, wanted or not.
    """

    rows: list[Row] = field(default_factory=list)
    lines: int = 0
    with_gpu: set[str] = field(default_factory=set)


def parse_region_index(payload: Any, regions: Collection[str] | None) -> dict[str, str]:
    """Region to path of its CSV file, from region_index.json; all regions where `regions` is None.

    A region whose entry has no path has no file.

    Raises:
        SchemaChanged: when no region has a path.
    """
    listed: Mapping[str, Any] = aws_rows.field(payload, "regions", API)
    entries = {name: entry for name, entry in listed.items() if isinstance(entry, Mapping)}
    paths = {
        name: path
        for name, entry in entries.items()
        if isinstance(path := entry.get("currentVersionUrl"), str)
    }
    if listed and not paths:
        raise changed(API, "currentVersionUrl")
    wanted = paths if regions is None else regions
    return {region: f"{paths[region].removesuffix('.json')}.csv" for region in wanted if region in paths}


def parse_bulk_csv(
    lines: Iterable[str],
    region: str,
    as_of: str,
    types: Collection[str],
    options: Collection[str],
    log: FetchLog | None = None,
) -> BulkPrices:
    """Read a region's file, line by line.

    Args:
        lines: text of the file; a truncated last line is an error.
        region: region of the file.
        as_of: ISO date of the answer.
        types: instance types wanted.
        options: purchase options wanted.
        log: is told of rows that cannot be read.

    Raises:
        SchemaChanged: when a column is missing, or the last row has too few cells: the file was cut.
    """
    reader = csv.reader(lines)
    at = _columns(reader, region)
    result = BulkPrices()
    terms: dict[tuple[str, str], _Term] = {}
    last = max(at.values())
    name_at, sku_at, term_at = at["Instance Type"], at["SKU"], at["OfferTermCode"]
    checks = [(at[column], value) for column, value in _USUAL.items()]
    selected = frozenset(types)
    names: dict[tuple[str, str], str] = {}
    rows = RowReader("price", log or FetchLog(), {"provider": "aws", "region": region, "api": API})
    cut, refused = False, set[tuple[str, str]]()
    for cells in reader:
        result.lines += 1
        cut = len(cells) <= last
        if cut:
            rows.log.skip("price", f"{region}/row {result.lines}", "has too few cells")
            continue
        name = cells[name_at]
        if not name or any(cells[position] != value for position, value in checks):
            continue
        if "GPU" in at and cells[at["GPU"]] not in ("", "0", "NA"):
            result.with_gpu.add(name)
        option = _option(cells, at, region) if name in selected else None
        if option is None or option[0].value not in options:
            continue
        key = (cells[sku_at], cells[term_at])
        term = terms.get(key) or _Term(cells[at["Currency"]], option)
        add = partial(_add, term, at=at, region=region)
        accepted = rows.read([cells], add, lambda row: row[sku_at])
        if not accepted:
            refused.add(key)  # the rest of a term without one of its amounts would be too cheap
        for one in accepted:
            terms[key], names[key] = one, name
    if cut:
        raise changed(API, f"row {result.lines} (cut short)", region)
    whole = {key: term for key, term in terms.items() if key not in refused}
    result.rows = _rows(whole, names, region, as_of)
    return result


def _columns(reader: Iterator[list[str]], region: str) -> dict[str, int]:
    for _, cells in zip(range(_METADATA_LINES), reader, strict=False):
        if cells and cells[0] == "SKU":
            at = {name: cells.index(name) for name in (*_NEEDED, *_OPTIONAL) if name in cells}
            missing = [name for name in _NEEDED if name not in at]
            if missing:
                raise changed(API, f"column {missing[0]!r}", region)
            return at
    raise changed(API, "header line that begins with SKU", region)


def _option(cells: Sequence[str], at: Mapping[str, int], region: str) -> tuple[PurchaseOption, str] | None:
    if cells[at["Region Code"]] != region or not is_usual_market(cells, at):
        return None
    if cells[at["TermType"]] == "OnDemand":
        return PurchaseOption.ON_DEMAND, ""
    words = (cells[at[name]] for name in ("LeaseContractLength", "PurchaseOption", "OfferingClass"))
    return option_of_term(*words)


def is_usual_market(cells: Sequence[str], at: Mapping[str, int]) -> bool:
    """Whether a row is not a Capacity Block: the list has those at a price of 0."""
    return "MarketOption" not in at or cells[at["MarketOption"]] in ("", "OnDemand")


def _add(term: _Term, cells: Sequence[str], at: Mapping[str, int], region: str) -> _Term:
    value = amount(cells[at["PricePerUnit"]], "PricePerUnit", API, region)
    unit = cells[at["Unit"]]
    if is_hourly(unit):
        term.hourly = value
    elif is_fee(unit):
        term.upfront = value
    else:
        raise changed(API, f"Unit {unit!r}", region)
    return term


def _rows(
    terms: Mapping[tuple[str, str], _Term], names: Mapping[tuple[str, str], str], region: str, as_of: str
) -> list[Row]:
    rows = []
    for key, term in terms.items():
        listing = Listing(region, names[key], SOURCE, as_of, term.currency)
        if term.option[0] is PurchaseOption.ON_DEMAND:
            price = listing.price(term.option, term.hourly) if term.hourly > 0 else None
        else:
            price = reservation(listing, term.option, term.hourly, term.upfront)
        if price is not None:
            rows.append(price.row())
    return rows
