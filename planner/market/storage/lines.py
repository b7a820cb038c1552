"""Cost lines of the way chosen for one candidate, exactly."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from planner.market.pricing import HOURS_PER_MONTH, PriceTag, price_line
from planner.market.storage.stores import BLOCK, FILE_SYSTEM, NONE, PACKED, SHARDS
from planner.plan.ids import CostId

if TYPE_CHECKING:
    from catalogs.tariffs import Figure
    from planner.market.storage.stores import Named, Stores
    from planner.plan.model import CostLine

USD = Decimal(1)
_READS = "data read from object storage"


def store_lines(
    stores: Stores, row: int, nodes: int, step_s: float, hours: float, code: int
) -> list[CostLine]:
    """Cost lines of a way in one region.

    Args:
        stores: of the job.
        row: offer.
        nodes: instances.
        step_s: step time.
        hours: elapsed hours, over which data are kept.
        code: of the way.
    """
    if code == NONE:
        return []
    out = read_lines(stores, row, stores.requests(nodes, code))
    if code == PACKED:
        out.append(packing_line(stores))
    if code >= BLOCK:
        out += monthly_lines(stores, row, stores.monthly(row, nodes, step_s, code), hours)
    return out


def read_lines(stores: Stores, row: int, reads: float) -> list[CostLine]:
    """The cost line of so many read requests, where there are any and their price is known."""
    place = stores.place(row)
    if not reads or place.reads is None:
        return []
    return [price_line(CostId.DATASET_READS, _READS, reads / 1000.0, "1,000 requests", _tag(place.reads))]


def packing_line(stores: Stores) -> CostLine:
    """The cost line of packing the data into shards once."""
    hours, price = stores.packing
    usd = Decimal(repr(price.value))
    tag = PriceTag(usd, "USD", USD, "derived", price.source, price.as_of, ("assumed_price",))
    return price_line(CostId.DATASET_PACKING, f"data {SHARDS}", hours, "machine-hour", tag)


def monthly_lines(stores: Stores, row: int, named: Named, hours: float) -> list[CostLine]:
    """What is paid by the month for `hours`: capacity, and provisioned throughput of volumes."""
    place, code, months = stores.place(row), named.code, hours / HOURS_PER_MONTH
    where = "volumes of" if code == BLOCK else "the file system"
    label, out = f"data on {where} {named.service}", []
    service = place.block if code == BLOCK else place.file_systems[code - FILE_SYSTEM]
    cost_id = CostId.DATASET_VOLUMES if code == BLOCK else CostId.DATASET_FILE_SYSTEM
    bought = (
        ("usd_per_gib_month", named.way.gib, "GiB-month"),
        ("usd_per_mb_s_month", named.way.mb_s, "MB/s-month"),
    )
    for measure, amount, unit in bought:
        figure = None if service is None else service.figure(measure)
        if figure is not None and amount[0]:
            out.append(price_line(cost_id, label, float(amount[0]) * months, unit, _tag(figure)))
    return out


def _tag(figure: Figure) -> PriceTag:
    flags = () if figure.basis == "list" else ("price_of_another_place",)
    return PriceTag(figure.value, "USD", USD, figure.basis, figure.source, figure.as_of, flags)
