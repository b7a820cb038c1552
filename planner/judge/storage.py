"""Where the nodes of a job read its data from, chosen and priced anew: one purchase at a time, in plain numbers.

Of the ways that feed the steps within every limit, with copies on the nodes while the image is pulled, the cheapest
holds; of equal ones the first in the order of `KINDS`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import ceil, inf, isnan
from typing import TYPE_CHECKING

from planner.inputs.loading import loading_rates
from planner.judge.money import HOURS_PER_MONTH, Charge, rounded
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tariffs import Figure, StorageService
    from planner.inputs.fio import DiskRates
    from planner.inputs.schema import Workload
    from planner.judge.goods import Goods, Offer
    from planner.judge.work import Work

KINDS = ("local_nvme", "object", "block", "file_system")
GB_PER_GIB = 2.0**30 / 1e9
_SPARE, _FED = 1.25, 0.9
_ALIKE = 0.01  # copies on local disks may cost so much more than the cheapest way, USD
_SHARD_GB, _SMALL_GB = 0.128, 2.0**20 / 1e9


@record(frozen=True)
class Monthly:
    """What is paid by the month: a quantity at the price of one figure."""

    id: str
    amount: float
    unit: str
    price: Figure


@record(frozen=True)
class Option:
    """One way to keep the data; `why` is the id of how it keeps the rule, or of the limit it breaks, with figures."""

    kind: str
    service: str
    keeps: bool
    reads: int
    monthly: tuple[Monthly, ...]
    gib: float
    mb_s: float
    why: tuple[str, dict[str, float]]
    packing_hours: float = 0.0  # of a machine that packs small files into shards

    def usd(self, per_read: float, hours: float) -> float:
        """What it costs for `hours`."""
        months = sum(part.amount * float(part.price.value) for part in self.monthly) * hours / HOURS_PER_MONTH
        return self.reads * per_read + self.packing_hours * _rate("pack_usd_per_hour") + months


@record(frozen=True)
class Need:
    """What one node asks of storage: data it holds, what it reads, and how fast it can copy.

    `nodes`: of all runs beside each other; `copied_gb`: what all of them copy.
    """

    nodes: int
    mb_s: float
    share_gb: float
    copied_gb: float
    fill_s: float
    fill_mb_s: float


class Storage:
    """Storage of one job, wherever it runs."""

    def __init__(self, goods: Goods, work: Work, workload: Workload) -> None:
        """Take what can be bought and the job."""
        self.goods, self.work, self.workload = goods, work, workload

    @property
    def active(self) -> bool:
        """Whether there are data to be read."""
        return bool(self.work.data_gb)

    @property
    def repeats(self) -> bool:
        """Whether the set is read more than once, so that every node needs all of it."""
        work = self.work
        return work.read_gb is None or work.read_gb > (work.data_gb or 0.0) * (1.0 + 1e-9)

    @cached_property
    def object_gb(self) -> float:
        """GB of one object of the store."""
        if self.workload.storage.object_size is not None:
            return self.workload.storage.object_size / 1e9
        size = self.work.training.bytes_per_sample
        model = self.work.model
        images = model.family.value in ("cnn", "vit", "diffusion") and model.tables is None
        files = self.workload.data.encoded or images
        return size / 1e9 if files and size else _SHARD_GB

    @cached_property
    def disk(self) -> DiskRates | None:
        """The user's own measurement of a local disk."""
        from planner.inputs.fio import read_fio

        name = self.workload.storage.fio
        return None if name is None else read_fio(self.goods.folder / name)

    def need(self, nodes: int, step_s: float, gangs: tuple[int, float] = (1, 1.0)) -> Need:
        """What one of `nodes` asks for; `gangs`: runs beside each other, and the most of all work that one does."""
        work, figures = self.work, self.work.figures
        gb, whole = work.data_gb or 0.0, nodes * gangs[0]
        step_mb = work.training.global_batch * (work.training.bytes_per_sample or 0.0) / 1e6
        rate = "object_store_read_gb_per_s"
        fill = min(figures[f"{rate}_per_node"], figures[f"{rate}_total"] / whole) * 1e3
        share = gb if self.repeats else gb * gangs[1] / nodes
        copied, seconds = whole * gb if self.repeats else gb, max(figures["image_pull_s"], 1.0)
        return Need(whole, step_mb / nodes / step_s / _FED, share, copied, seconds, fill)

    def per_read(self, offer: Offer) -> Figure | None:
        """Price of 1,000 requests where the offer is."""
        store = self._store(offer)
        local_price = None if store is None else store.figure("usd_per_1000_reads")
        return local_price or self.goods.tariffs.dearest_reads

    def _store(self, offer: Offer) -> StorageService | None:
        storage_services = self.goods.tariffs.storage_services(*offer.place)
        return next((service for service in storage_services if service.kind == "object"), None)

    def store_name(self, offer: Offer) -> str:
        """The object store where the offer is."""
        store = self._store(offer)
        return store.name if store else "object storage"

    def basis(self, offer: Offer, option: Option) -> str:
        """`derived` where a figure that is paid is of another place, or assumed."""
        read = self.per_read(offer)
        figures = [part.price for part in option.monthly] + (
            [read] if option.reads and read is not None else []
        )
        other = bool(option.packing_hours) or any(figure.basis != "list" for figure in figures)
        return "derived" if other else "list"

    def file_systems(
        self, offer: Offer, size: float, hours: float
    ) -> list[tuple[StorageService, float, float, str]]:
        """File systems that could hold so many GiB for `hours`: service, USD, capacity and basis."""
        out = []
        for service in self.goods.tariffs.storage_services(*offer.place):
            price, least = service.figure("usd_per_gib_month"), service.value("min_gib")
            if service.kind == "file_system" and price is not None and least is not None:
                step = service.value("step_gib") or least
                gib = least if size <= least else ceil(size / step) * step
                out.append((service, gib * float(price.value) * hours / HOURS_PER_MONTH, gib, price.basis))
        return out

    def options(self, offer: Offer, need: Need) -> list[Option]:
        """Every way with a known price, in the order in which equal ones are preferred."""
        storage_services = self.goods.tariffs.storage_services(*offer.place)
        first = next((option for option in storage_services if option.kind == "block"), None)
        bought = [] if first is None else [self._volumes(need, first)]
        bought += [
            self.file_system(need, option) for option in storage_services if option.kind == "file_system"
        ]
        streams = [self._stream(offer, need, packed=False)]
        if self.object_gb < _SMALL_GB:
            streams.append(self._stream(offer, need, packed=True))
        return [self._local(offer, need), *streams, *(option for option in bought if option is not None)]

    def choice(self, offer: Offer, nodes: int, step_s: float, hours: float) -> Option | None:
        """What one job reads its data from; None without data, and for a run of a fleet."""
        if not self.active or self.workload.kind == "fleet":
            return None
        return self.best(offer, self.need(nodes, step_s), hours)

    def best(self, offer: Offer, need: Need, hours: float) -> Option:
        """The cheapest way that keeps the rule; the object store where none does."""
        every = self.options(offer, need)
        wish = "object" if self.work.stream else self.workload.storage.data
        figure, best, least = self.per_read(offer), None, inf
        price = 0.0 if figure is None else float(figure.value) / 1000.0
        for option in every:
            usd = option.usd(price, hours)
            near = least - 1e-9 * (1.0 + least) if least < inf else inf
            forced = self.work.stream and option.packing_hours
            if option.keeps and not forced and wish in ("auto", option.kind) and usd < near:
                best, least = option, usd
        local = every[0]
        if (
            best is not None
            and local.keeps
            and wish in ("auto", local.kind)
            and local.usd(price, hours) <= least + _ALIKE
        ):
            return local
        return best or every[1]

    def charges(self, offer: Offer, option: Option | None, hours: float) -> list[Charge]:
        """What a way costs in one region, for `hours`."""
        if option is None:
            return []
        out = self.read_charges(offer, option.reads)
        if option.packing_hours:
            out.append(packing(option))
        return out + self.monthly_charges(option, hours)

    def read_charges(self, offer: Offer, reads: float) -> list[Charge]:
        """What so many read requests cost."""
        figure = self.per_read(offer)
        if not reads or figure is None:
            return []
        thousand = rounded(reads / 1000.0)
        names = ("dataset_reads", "data read from object storage")
        return [_charge(*names, thousand, "1,000 requests", figure)]

    def monthly_charges(self, option: Option, hours: float) -> list[Charge]:
        """What a way costs by the month, for `hours`."""
        where = "volumes of" if option.kind == "block" else "the file system"
        label = f"data on {where} {option.service}"
        return [
            _charge(part.id, label, rounded(part.amount * (hours / HOURS_PER_MONTH)), part.unit, part.price)
            for part in option.monthly
        ]

    def _reads(self, gb: float) -> int:
        return ceil(round(gb / self.object_gb, 6))

    def _local(self, offer: Offer, need: Need) -> Option:
        gb = float(offer.kind["local_nvme_gib"]) * GB_PER_GIB
        known = self.goods.tariffs.storage_figures
        read, write = (float(known[f"{way}_mb_s_per_tb"].value) * gb / 1e3 for way in ("read", "write"))
        if self.disk is not None:
            read, write = self.disk.read_mb_s, self.disk.write_mb_s or write
        rate = need.fill_mb_s if isnan(write) else min(write, need.fill_mb_s)
        seconds, room = need.share_gb * 1e3 / max(rate, 1e-9), _SPARE * need.share_gb
        copied = {"share_gb": need.share_gb, "copied_in_s": seconds, "image_pull_s": need.fill_s}
        breaks: list[tuple[bool, str, dict[str, float]]] = [
            (isnan(gb), "disk_unknown", {}),
            (gb == 0.0, "no_disk", {}),
            (gb < room, "disk_small", {"needed_gb": room, "given_gb": gb}),
            (read < need.mb_s, "disk_slow", _rates(need.mb_s, read)),
            (need.share_gb * 1e3 > rate * need.fill_s, "copied_late", copied),
        ]
        broken = next(((name, figures) for hit, name, figures in breaks if hit), None)
        reads, why = self._reads(need.copied_gb), broken or ("copied", copied)
        return Option("local_nvme", "local NVMe", broken is None, reads, (), 0.0, 0.0, why)

    def _stream(self, offer: Offer, need: Need, *, packed: bool) -> Option:
        store, figures = self._store(offer), self.work.figures
        name = "client_mb_s" if packed or self.object_gb >= _SMALL_GB else "small_client_mb_s"
        client, total = (None if store is None else store.value(key) for key in (name, "total_mb_s"))
        if client is None:
            client = figures["object_store_read_gb_per_s_per_node"] * 1e3
        if total is None:
            total = figures["object_store_read_gb_per_s_total"] * 1e3
        gb = (self.work.data_gb or 0.0) if self.work.read_gb is None else self.work.read_gb
        keeps = need.mb_s <= min(client, total / need.nodes)
        called, size = store.name if store else "object storage", _SHARD_GB if packed else self.object_gb
        reads = ceil(round(gb / size, 6))
        why = ("packed" if packed else "streamed", {"requests": float(reads), "object_mb": size * 1e3})
        if need.mb_s > client:
            why = ("client_slow", _rates(need.mb_s, client))
        elif not keeps:
            why = ("store_slow", _rates(need.mb_s * need.nodes, total))
        if not packed:
            return Option("object", called, keeps, reads, (), 0.0, 0.0, why)
        hours = (self.work.data_gb or 0.0) / _rate("pack_gb_per_hour")
        return Option("object", f"{called}, packed into shards", keeps, reads, (), 0.0, 0.0, why, hours)

    def _volumes(self, need: Need, service: StorageService) -> Option | None:
        price, rate = service.figure("usd_per_gib_month"), service.figure("usd_per_mb_s_month")
        if price is None or rate is None:
            return None
        fill = need.share_gb * 1e3 / need.fill_s
        mb_s, included = max(need.mb_s, fill), service.value("included_mb_s") or 0.0
        most = service.value("volume_mb_s") or included
        gib = need.nodes * float(ceil(round(_SPARE * need.share_gb / GB_PER_GIB, 6)))
        more = need.nodes * max(ceil(round(mb_s, 6)) - included, 0.0)
        parts = [Monthly("dataset_volumes", gib, "GiB-month", price)]
        parts += [Monthly("dataset_volumes", more, "MB/s-month", rate)] if more else []
        reads, late = self._reads(need.copied_gb), {"image_pull_s": need.fill_s}
        why = ("volumes", {"share_gb": need.share_gb} | late)
        if mb_s > most:
            why = ("volume_slow", _rates(mb_s, most) | late)
        elif fill > need.fill_mb_s:
            why = ("volume_late", {"given_mb_per_s": need.fill_mb_s} | late)
        return Option("block", service.name, why[0] == "volumes", reads, tuple(parts), gib, more, why)

    def file_system(self, need: Need, service: StorageService) -> Option | None:
        """One file system for all nodes; None where a figure of it is unknown."""
        price, usable = (
            service.figure("usd_per_gib_month"),
            self.goods.tariffs.storage_figures["usable_ratio"],
        )
        per_tib, least = service.value("mb_s_per_tib"), service.value("min_gib")
        if price is None or per_tib is None or least is None:
            return None
        data_gib = (self.work.data_gb or 0.0) / GB_PER_GIB / float(usable.value)
        needed_gib = max(data_gib, need.nodes * need.mb_s / per_tib * 1024.0)
        step = service.value("step_gib") or least
        gib = least if needed_gib <= least else ceil(round(needed_gib / step, 6)) * step
        client = service.value("client_mb_s")
        parts = (Monthly("dataset_file_system", gib, "GiB-month", price),)
        keeps = client is None or need.mb_s <= client
        why: tuple[str, dict[str, float]] = ("shared", {})
        if not keeps:
            why = ("client_slow", _rates(need.mb_s, client or 0.0))
        reads = self._reads(self.work.data_gb or 0.0)
        return Option("file_system", service.name, keeps, reads, parts, gib, 0.0, why)


def packing(option: Option) -> Charge:
    """What it costs to pack the data into shards once."""
    price = loading_rates()["pack_usd_per_hour"]
    hours, usd = rounded(option.packing_hours), Fraction(str(price.value))
    label, source = "data packed into shards", ("derived", price.source, price.as_of, ("assumed_price",))
    return Charge("dataset_packing", label, hours, "machine-hour", usd, "USD", Fraction(1), *source)


def _rates(needed: float, given: float) -> dict[str, float]:
    return {"needed_mb_per_s": needed, "given_mb_per_s": given}


def _rate(key: str) -> float:
    value = loading_rates()[key].value
    assert value is not None
    return value


def _charge(name: str, label: str, quantity: Fraction, unit: str, price: Figure) -> Charge:
    flags = () if price.basis == "list" else ("price_of_another_place",)
    source = (price.basis, price.source, price.as_of, flags)
    return Charge(name, label, quantity, unit, Fraction(price.value), "USD", Fraction(1), *source)
