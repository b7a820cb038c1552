"""What each way to keep the training data costs, and whether it keeps up; arrays of any one shape.

A way keeps the rule where it delivers what the steps read (so loading from it hides behind them, well within 20 % of a
step), within the limits of one machine and of the service, and where copies are on the nodes before the image is.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.market.pricing import HOURS_PER_MONTH
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats
    from catalogs.tariffs import StorageService


GB_PER_GIB = 2.0**30 / 1e9
SPARE = 1.25  # of a disk or volume: data x 1.25
FED = 0.9  # accelerators count as fed from this utilisation on (MLPerf Storage)
SMALL_OBJECT_GB = 2.0**20 / 1e9
SHARD_GB = 0.128  # of packed data: an object of the size that stores read at their full rate
_TIB = 1024.0
_LEAST = 1.0 - 1e-9  # of a least price, for rounding


@record(frozen=True, eq=False)
class Cell:
    """What candidates ask of storage.

    Attributes:
        nodes: instances; need_mb_s: what one of them reads while it trains.
        share_gb: data that one node holds where nodes hold copies; copied_gb: what all of them copy.
        data_gb: the whole set; read_gb: read in all.
        object_gb: of one object in the store.
        nvme_gb: local disk of a node, NaN unknown; local_read_mb_s, local_write_mb_s: its rates.
        fill_mb_s: most that a node copies from the object store; fill_s: until when copies must be there.
    """

    nodes: Floats
    need_mb_s: Floats
    share_gb: Floats
    copied_gb: Floats
    data_gb: float
    read_gb: float
    object_gb: float
    nvme_gb: Floats
    local_read_mb_s: Floats
    local_write_mb_s: Floats
    fill_mb_s: Floats
    fill_s: float

    @property
    def copied_in_s(self) -> Floats:
        """Seconds to copy a node's share from the object store onto its local disk."""
        rate = np.fmin(self.fill_mb_s, self.local_write_mb_s)
        return np.asarray(self.share_gb * 1e3 / np.maximum(rate, 1e-9))

    @property
    def least_volume_mb_s(self) -> Floats:
        """Throughput that a volume needs: to be filled in time, and to feed the steps."""
        return np.maximum(self.need_mb_s, self.share_gb * 1e3 / self.fill_s)


@record(frozen=True, eq=False)
class Way:
    """One way: what it costs once and per hour, USD, and what is bought of it.

    Attributes:
        keeps: whether it keeps the rule.
        reads: read requests in all.
        gib, mb_s: capacity and throughput to pay for, of all nodes together.
    """

    keeps: Bools
    reads: Floats
    usd: Floats
    usd_per_hour: Floats
    gib: Floats
    mb_s: Floats


def _none(cell: Cell) -> Floats:
    return np.zeros_like(cell.nodes)


def reads_of(gb: float, object_gb: float) -> float:
    """Requests that read so much data, one an object."""
    return float(math.ceil(round(gb / object_gb, 6)))


def _reads(gb: Floats, cell: Cell) -> Floats:
    return np.ceil(np.round(gb / cell.object_gb, 6))


def local(cell: Cell, usd_per_read: Floats | float) -> Way:
    """Copies on the local disks of the nodes."""
    fits = SPARE * cell.share_gb <= cell.nvme_gb  # False where the disk is unknown
    fast = (cell.local_read_mb_s >= cell.need_mb_s) & (cell.copied_in_s <= cell.fill_s)
    reads = _reads(cell.copied_gb, cell)
    return Way(fits & fast, reads, reads * usd_per_read, _none(cell), _none(cell), _none(cell))


def streamed(cell: Cell, usd_per_read: Floats | float, client: Floats | float, total: Floats | float) -> Way:
    """Read from the object store of the region while training."""
    keeps = cell.need_mb_s <= np.minimum(client, total / cell.nodes)
    reads = np.broadcast_to(_reads(np.asarray(cell.read_gb), cell), cell.nodes.shape)
    return Way(keeps, reads, reads * usd_per_read, _none(cell), _none(cell), _none(cell))


def packed(
    cell: Cell, usd_per_read: Floats | float, client: Floats | float, total: Floats | float,
    usd: float,
) -> Way:  # fmt: skip
    """The same of small files packed into shards first, which costs `usd` once."""
    way = streamed(replace(cell, object_gb=SHARD_GB), usd_per_read, client, total)
    return replace(way, usd=way.usd + usd)


def volumes(cell: Cell, usd_per_read: float, service: StorageService) -> Way | None:
    """A volume of block storage on every node; None where its price is unknown."""
    price, rate = service.value("usd_per_gib_month"), service.value("usd_per_mb_s_month")
    if price is None or rate is None:
        return None
    wanted, included = cell.least_volume_mb_s, service.value("included_mb_s") or 0.0
    most = service.value("volume_mb_s") or included
    keeps = (wanted <= most) & (cell.share_gb * 1e3 / cell.fill_s <= cell.fill_mb_s)
    gib = cell.nodes * np.ceil(np.round(SPARE * cell.share_gb / GB_PER_GIB, 6))
    paid = cell.nodes * np.maximum(np.ceil(np.round(wanted, 6)) - included, 0.0)
    reads = _reads(cell.copied_gb, cell)
    return Way(keeps, reads, reads * usd_per_read, (gib * price + paid * rate) / HOURS_PER_MONTH, gib, paid)


def least_usd_per_hour(service: StorageService) -> float:
    """What the smallest file system costs; 0 where that is unknown."""
    price, least = service.value("usd_per_gib_month"), service.value("min_gib")
    return 0.0 if price is None or least is None else least * price / HOURS_PER_MONTH * _LEAST


def file_system(cell: Cell, usd_per_read: float, service: StorageService, usable: float) -> Way | None:
    """A parallel file system that all nodes read, filled to `usable`; None where a figure of it is unknown."""
    price, per_tib, least = (service.value(name) for name in ("usd_per_gib_month", "mb_s_per_tib", "min_gib"))
    if price is None or per_tib is None or least is None:
        return None
    step = service.value("step_gib") or least
    whole = cell.nodes * cell.need_mb_s
    wanted = np.maximum(cell.data_gb / GB_PER_GIB / usable, whole / per_tib * _TIB)
    gib = np.where(wanted <= least, least, np.ceil(np.round(wanted / step, 6)) * step)
    keeps = cell.need_mb_s <= (service.value("client_mb_s") or np.inf)
    reads = np.broadcast_to(_reads(np.asarray(cell.data_gb), cell), cell.nodes.shape)
    return Way(keeps, reads, reads * usd_per_read, gib * price / HOURS_PER_MONTH, gib, _none(cell))
