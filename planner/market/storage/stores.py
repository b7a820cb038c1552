"""Chooses, for every candidate at once, where its nodes read the training data: the cheapest way that keeps the rule.

Copies on local disks and streams from the object store cost requests alone and are worked out for all candidates
together. Volumes and file systems are looked at place by place, only where they could be cheaper or are needed.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from planner.inputs.loading import loading_rates
from planner.market.pricing import HOURS_PER_MONTH
from planner.market.storage import options
from planner.market.storage.options import GB_PER_GIB, Cell, Way
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from catalogs.tables.table import Floats, Ints
    from catalogs.tariffs import Figure, StorageService, Tariffs
    from planner.asked.model import Asked
    from planner.inputs.loading import LoadingRate
    from planner.market.offers import OfferSet


# Codes of the ways, in the order in which equally cheap ones are preferred; the file systems of a place follow.
NONE, LOCAL, OBJECT, PACKED, BLOCK, FILE_SYSTEM = -1, 0, 1, 2, 3, 4
KINDS = {LOCAL: "local_nvme", OBJECT: "object", PACKED: "object", BLOCK: "block", FILE_SYSTEM: "file_system"}
LOCAL_DISK, SHARDS = "local NVMe", "packed into shards"
_STORE_LIMITS = ("small_client_mb_s", "client_mb_s", "total_mb_s")
_NEAR, _LEAST = 1e-9, 1e-9
ALIKE_USD = 0.01  # copies on local disks win where they cost no more than this above the cheapest way
# USD a month that nothing in the table is below: of a file system, a GiB and a MB/s of a volume; and the most MB/s that
# come with one. A test compares them with the table.
_LEAST_FILE_SYSTEM, _LEAST_VOLUME, _LEAST_MB_S, _MOST_INCLUDED = 160.0, 0.07, 0.035, 150.0


@record(frozen=True, eq=False)
class Stored:
    """What was chosen, shape `(n,)`: a code of the way, and what it costs once and per hour, USD."""

    code: Ints
    usd: Floats
    usd_per_hour: Floats

    def cost(self, hours: Floats) -> Floats:
        """USD for data kept for `hours`."""
        monthly = self.usd_per_hour > 0  # the hours of what cannot run are infinite
        return np.asarray(self.usd + self.usd_per_hour * np.where(monthly, hours, 0.0))


@record(frozen=True, eq=False)
class Place:
    """Services of one region by kind, and what a read request of its object store costs."""

    store: StorageService | None
    block: StorageService | None
    file_systems: tuple[StorageService, ...]
    reads: Figure | None

    @cached_property
    def usd_per_read(self) -> float:
        """USD per request."""
        return 0.0 if self.reads is None else float(self.reads.value) / 1000.0

    @cached_property
    def store_mb_s(self) -> dict[str, float | None]:
        """Most MB/s of the object store by name of the limit, None unknown."""
        return {name: None if self.store is None else self.store.value(name) for name in _STORE_LIMITS}


@lru_cache(maxsize=2048)
def _services_at(tariffs: Tariffs, provider: str, region: str) -> Place:
    """Services of a region: of the tariffs alone, so that jobs planned one after another share them."""
    storage_services = tariffs.storage_services(provider, region)
    store = next((s for s in storage_services if s.kind == "object"), None)
    reads = None if store is None else store.figure("usd_per_1000_reads")
    return Place(
        store, next((s for s in storage_services if s.kind == "block"), None),
        tuple(s for s in storage_services if s.kind == "file_system"), reads or tariffs.dearest_reads,
    )  # fmt: skip


@record(frozen=True, eq=False)
class Gangs:
    """Workers of a fleet that read the same data: how many there are, and the most of all work that one of them does.

    Attributes:
        workers: whole number, shape `(n,)`.
        part: 0..1, shape `(n,)`.
    """

    workers: Floats
    part: Floats


@record(frozen=True, eq=False)
class Named:
    """One way with its code and service."""

    code: int
    service: str
    way: Way


class Stores:
    """Chooses storage for one job on one offer set."""

    def __init__(self, offer_set: OfferSet, asked: Asked, tariffs: Tariffs) -> None:
        """Index the places of the offers; their services are looked up when they are needed.

        Args:
            offer_set: what can be bought.
            asked: the job, its assumptions, and what the workload says of storage.
            tariffs: prices and limits of services.
        """
        self._offers, self._asked, self._tariffs = offer_set, asked, tariffs
        self._place_of_offer, self._keys = offer_set.offers.distinct_keys("provider", "region")
        self._places: dict[int, Place] = {}
        job, wish = asked.job, asked.workload.storage
        self.active = bool(job.data_gb)
        self.object_gb = object_gb(asked)
        wished = tuple(code for code, kind in KINDS.items() if wish.data in ("auto", kind))
        self._allowed = (OBJECT,) if job.stream else wished

    def place(self, row: int) -> Place:
        """Services at offer `row`."""
        return self._place(int(self._place_of_offer[row]))

    def _place(self, at: int) -> Place:
        if at not in self._places:
            provider, region = self._keys[at]
            self._places[at] = _services_at(self._tariffs, provider, region)
        return self._places[at]

    @property
    def has_small_files(self) -> bool:
        """Whether the objects are too small to be read at the store's full rate."""
        return self.object_gb < options.SMALL_OBJECT_GB

    @cached_property
    def packing(self) -> tuple[float, LoadingRate]:
        """Machine-hours to pack the data into shards, and the price of one."""
        rates = loading_rates()
        return (self._asked.job.data_gb or 0.0) / (rates["pack_gb_per_hour"].value or 1.0), rates[
            "pack_usd_per_hour"
        ]

    @property
    def packing_usd(self) -> float:
        """USD to pack the data into shards."""
        hours, price = self.packing
        return hours * (price.value or 0.0)

    @cached_property
    def _limits(self) -> tuple[Floats, ...]:
        """Per place: USD per read, most MB/s of one machine of small files and of shards, most MB/s of the store."""
        key = ("store_limits", self._tariffs, self.has_small_files, *self._assumed_limits)
        return self._offers.once(key, self._limits_of_places)

    def _limits_of_places(self) -> tuple[Floats, ...]:
        rows = [(p.usd_per_read, *self._store_limits(p)) for p in map(self._place, range(len(self._keys)))]
        return tuple(np.asarray(rows, dtype=np.float64).reshape(-1, 4).T)

    def _store_limits(self, place: Place) -> tuple[float, float, float]:
        """Most MB/s of a machine, as the data are and in shards, and of the store; unknown: the assumed ones."""
        named = ("small_client_mb_s" if self.has_small_files else "client_mb_s", "client_mb_s", "total_mb_s")
        known = [place.store_mb_s[name] for name in named]
        per_node, total = self._assumed_limits
        own, shards, whole = (
            1e3 * assumed if value is None else value
            for value, assumed in zip(known, (per_node, per_node, total), strict=True)
        )
        return own, shards, whole

    @property
    def _assumed_limits(self) -> tuple[float, float]:
        """Most GB/s that one machine reads, and all together, where the store says nothing."""
        assume = self._asked.assumptions
        return assume.object_store_read_gb_per_s_per_node, assume.object_store_read_gb_per_s_total

    def limits_at(self, row: int) -> tuple[float, float, float]:
        """Most MB/s of one machine, as the data are and in shards, and of the whole object store at offer `row`."""
        return self._store_limits(self.place(row))

    def cell(
        self, rows: Ints, nodes: npt.NDArray[np.generic], step_s: Floats, gangs: Gangs | None = None
    ) -> Cell:
        """What candidates ask of storage; arguments of one shape.

        Args:
            rows: offer.
            nodes: instances of one run.
            step_s: its step time.
            gangs: workers of a fleet beside each other, None for one job.
        """
        job, assume, disk = self._asked.job, self._asked.assumptions, self._asked.disk
        each = nodes.astype(np.float64)
        count = each if gangs is None else each * gangs.workers
        part = 1.0 if gangs is None else gangs.part
        gb = job.data_gb or 0.0
        nvme = self._nvme_gb[rows]
        known = self._tariffs.storage_figures
        read, write = (float(known[f"{what}_mb_s_per_tb"].value) * nvme / 1e3 for what in ("read", "write"))
        if disk is not None:
            read = np.full_like(nvme, disk.read_mb_s)
            write = write if disk.write_mb_s is None else np.full_like(nvme, disk.write_mb_s)
        step_mb = job.training.global_batch * (job.training.bytes_per_sample or 0.0) / 1e6
        total = assume.object_store_read_gb_per_s_total * 1e3
        return Cell(
            nodes=count, need_mb_s=step_mb / (each * step_s) / options.FED,
            share_gb=np.full_like(count, gb) if self.repeats else gb * part / each,
            copied_gb=count * gb if self.repeats else np.full_like(count, gb), data_gb=gb, read_gb=self._read_gb,
            object_gb=self.object_gb, nvme_gb=nvme, local_read_mb_s=read, local_write_mb_s=write,
            fill_mb_s=np.minimum(assume.object_store_read_gb_per_s_per_node * 1e3, total / count),
            fill_s=max(assume.image_pull_s, 1.0),
        )  # fmt: skip

    @cached_property
    def _nvme_gb(self) -> Floats:
        """Local disk per offer, GB, NaN unknown."""
        gib = self._offers.types.number("local_nvme_gib")[self._offers.type_of_offer]
        return np.asarray(gib, dtype=np.float64) * GB_PER_GIB

    def choose(
        self, rows: Ints, nodes: npt.NDArray[np.generic], step_s: Floats, hours: Floats,
        gangs: Gangs | None = None,
    ) -> Stored:  # fmt: skip
        """Choose for each candidate the cheapest way that keeps the rule; the object store where none does.

        Args:
            rows: offer, shape `(n,)`.
            nodes: instances of one run.
            step_s: step time.
            hours: elapsed hours, over which data are kept.
            gangs: workers of a fleet beside each other; None for one job, and for one run of a fleet: nothing.
        """
        n = len(rows)
        none = Stored(np.full(n, NONE, dtype=np.int64), np.zeros(n), np.zeros(n))
        if not self.active or (gangs is None and self._asked.workload.kind == "fleet"):
            return none
        cell, place = self.cell(rows, nodes, step_s, gangs), self._place_of_offer[rows]
        usd_per_read, client, shards, total = (column[place] for column in self._limits)
        far = options.streamed(cell, usd_per_read, client, total)
        fast = [(LOCAL, options.local(cell, usd_per_read)), (OBJECT, far)]
        if self.has_small_files:
            fast.append((PACKED, options.packed(cell, usd_per_read, shards, total, self.packing_usd)))
        best = np.full(n, np.inf)
        out = Stored(np.full(n, OBJECT, dtype=np.int64), far.usd.copy(), np.zeros(n))
        for code, way in fast:
            if code in self._allowed:
                _take(out, best, np.arange(n), code, way, way.usd)
        more = tuple(code for code in (BLOCK, FILE_SYSTEM) if code in self._allowed)
        if more:
            at = np.flatnonzero(best > _floor(cell, hours))
            at = at[best[at] > _close_floor(_rows(cell, at), hours[at], usd_per_read[at])]
            self._choose_more(out, best, at, rows, cell, hours, more)
        if LOCAL in self._allowed:  # what hardly costs more and depends on nothing while it runs
            way = fast[0][1]
            at = np.flatnonzero(way.keeps & (way.usd <= best + ALIKE_USD))
            out.code[at], out.usd[at], out.usd_per_hour[at] = LOCAL, way.usd[at], 0.0
        return out

    def _choose_more(
        self, out: Stored, best: Floats, at: Ints, rows: Ints, cell: Cell, hours: Floats,
        allowed: Sequence[int],
    ) -> None:  # fmt: skip
        """Look at volumes and file systems of candidates `at`, place by place."""
        place = self._place_of_offer[rows[at]]
        order = np.argsort(place, kind="stable")
        edges = np.flatnonzero(np.diff(place[order])) + 1
        for mine in np.split(at[order], edges) if len(at) else ():
            here = self.place(int(rows[mine[0]]))
            small = _rows(cell, mine)
            most = float((best[mine] / hours[mine]).max())
            for named in self._bought(here, small, most):
                if min(named.code, FILE_SYSTEM) in allowed:
                    _take(
                        out,
                        best,
                        mine,
                        named.code,
                        named.way,
                        named.way.usd + named.way.usd_per_hour * hours[mine],
                    )

    def bought(self, row: int, cell: Cell, code: int) -> Named:
        """One way that is bought by the month, at offer `row`."""
        return next(one for one in self._bought(self.place(row), cell) if one.code == code)

    def _bought(self, place: Place, cell: Cell, most: float = np.inf) -> list[Named]:
        """Ways that are bought by the month, with known prices; no file system above `most` USD per hour."""
        named_values, usable = [], float(self._tariffs.storage_figures["usable_ratio"].value)
        if place.block is not None:
            way = options.volumes(cell, place.usd_per_read, place.block)
            named_values += [] if way is None else [Named(BLOCK, place.block.name, way)]
        for number, service in enumerate(place.file_systems):
            if options.least_usd_per_hour(service) > most:
                continue
            way = options.file_system(cell, place.usd_per_read, service, usable)
            named_values += [] if way is None else [Named(FILE_SYSTEM + number, service.name, way)]
        return named_values

    def ways(
        self, row: int, nodes: int, step_s: float, gangs: Gangs | None = None
    ) -> tuple[Cell, list[Named]]:
        """Every way at one candidate, those that do not keep the rule too."""
        cell = self.cell(np.asarray([row]), np.asarray([nodes]), np.asarray([step_s]), gangs)
        place = self.place(row)
        usd, name = place.usd_per_read, place.store.name if place.store else "object storage"
        own, shards, total = self._store_limits(place)
        named = [
            Named(LOCAL, LOCAL_DISK, options.local(cell, usd)),
            Named(OBJECT, name, options.streamed(cell, usd, own, total)),
        ]
        if self.has_small_files:
            way = options.packed(cell, usd, shards, total, self.packing_usd)
            named.append(Named(PACKED, f"{name}, {SHARDS}", way))
        return cell, [*named, *self._bought(place, cell)]

    def requests(self, nodes: int, code: int) -> float:
        """Read requests of the whole run, on `nodes` instances in all."""
        if code in (OBJECT, PACKED):
            return options.reads_of(self._read_gb, options.SHARD_GB if code == PACKED else self.object_gb)
        copies = nodes if code in (LOCAL, BLOCK) and self.repeats else 1
        return options.reads_of(copies * (self._asked.job.data_gb or 0.0), self.object_gb)

    @property
    def _read_gb(self) -> float:
        """Data read in all runs together."""
        job = self._asked.job
        return (job.data_gb or 0.0) if job.read_gb is None else job.read_gb

    @property
    def repeats(self) -> bool:
        """Whether the set is read more than once, so that every node needs all of it."""
        job = self._asked.job
        return job.read_gb is None or self._read_gb > (job.data_gb or 0.0) * (1.0 + 1e-9)

    def monthly(self, row: int, nodes: int, step_s: float, code: int) -> Named:
        """A way that is bought by the month, at one candidate."""
        return self.bought(row, self.cell(np.asarray([row]), np.asarray([nodes]), np.asarray([step_s])), code)


def _floor(cell: Cell, hours: Floats) -> Floats:
    """USD that no volumes and no file system cost less than: capacity alone."""
    gib = cell.share_gb * cell.nodes / GB_PER_GIB
    return np.asarray(np.minimum(_LEAST_FILE_SYSTEM, _LEAST_VOLUME * gib) * hours / HOURS_PER_MONTH)


def _close_floor(cell: Cell, hours: Floats, usd_per_read: Floats) -> Floats:
    """The same with requests, room to spare and provisioned throughput."""
    reads = cell.copied_gb / cell.object_gb * usd_per_read
    mb_s = np.maximum(cell.least_volume_mb_s - _MOST_INCLUDED, 0.0)
    volume = cell.nodes * (options.SPARE * cell.share_gb / GB_PER_GIB * _LEAST_VOLUME + mb_s * _LEAST_MB_S)
    months = hours / HOURS_PER_MONTH
    system = _LEAST_FILE_SYSTEM * months + cell.data_gb / cell.object_gb * usd_per_read
    return np.asarray(np.minimum(volume * months + reads, system))


def object_gb(asked: Asked) -> float:
    """GB of one object: as the workload says, one sample of images, audio or video, else shards of packed data."""
    given, job = asked.workload.storage.object_size, asked.job
    if given is not None:
        return given / 1e9
    encoded = asked.workload.data.encoded is not None or job.model.reads_files
    size = job.training.bytes_per_sample
    return size / 1e9 if encoded and size else options.SHARD_GB


def _take(out: Stored, best: Floats, at: Ints, code: int, way: Way, usd: Floats) -> None:
    """Take a way where it keeps the rule and is cheaper than what was taken before; equal ones change nothing."""
    cheaper = way.keeps & (usd < best[at] * (1.0 - _NEAR) - np.where(np.isfinite(best[at]), _LEAST, 0.0))
    hit = at[cheaper]
    best[hit], out.code[hit] = usd[cheaper], code
    out.usd[hit], out.usd_per_hour[hit] = way.usd[cheaper], way.usd_per_hour[cheaper]


def _rows(cell: Cell, at: Ints) -> Cell:
    names = (
        "nodes",
        "need_mb_s",
        "share_gb",
        "copied_gb",
        "nvme_gb",
        "local_read_mb_s",
        "local_write_mb_s",
        "fill_mb_s",
    )
    return replace(cell, **{name: getattr(cell, name)[at] for name in names})
