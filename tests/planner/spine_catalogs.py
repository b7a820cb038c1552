"""Small catalogs and workloads for tests of the planning spine: real accelerators and tariffs, invented offers."""

from __future__ import annotations

import functools
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

from catalogs.tables.accelerators import load_accelerators
from catalogs.tables.model import Catalog, ProviderManifest
from catalogs.tables.table import Table
from catalogs.tariffs import DATA_DIRECTORY, StorageFee, StoragePrice, StorageService, Tariffs, TierCurve
from catalogs.tariffs.services import Figure
from planner.asked.options import Options
from planner.inputs.faults import Source
from planner.inputs.load import LoadedWorkload
from planner.inputs.schema import Workload
from planner.workloads.answer import Answer, optimize
from tests.few_remedies import FewRemedies

NOW = datetime(2026, 11, 20, tzinfo=UTC)
NAN = float("nan")


@dataclass(frozen=True)
class Machine:
    """An instance type; the defaults describe one small GPU machine."""

    provider: str
    instance_type: str
    family: str
    accelerator: str
    accelerator_count: float = 1.0
    accelerator_memory_gib: float = 22.5
    vcpus: float = 8.0
    memory_gib: float = 64.0
    arch: str = "x86_64"
    intra_node: str = "single"
    intra_node_gb_per_s: float = NAN
    link_domain_accelerators: float = NAN
    allocation_unit: float = NAN
    internode_gbps: float = 25.0
    rdma: str = ""
    local_nvme_gib: float = 500.0


@dataclass(frozen=True)
class Offer:
    """One way to buy `machine` in `region`."""

    machine: Machine
    region: str
    price_per_hour: str
    purchase_option: str = "on_demand"
    option_variant: str = ""
    zone: str = ""
    currency: str = "USD"
    upfront_per_instance: str = ""
    term_hours: float = NAN
    capacity: float = NAN
    basis: str = "list"
    interruption_band: str = ""
    flags: str = ""
    as_of: str = "2026-11-20"  # quoted on the day of planning: the quote is the price to expect

    @property
    def offer_id(self) -> str:
        """The id as plans print it."""
        parts = (
            self.machine.provider, self.region, self.zone, self.machine.instance_type, self.purchase_option,
            self.option_variant,
        )  # fmt: skip
        return "/".join(part or "-" for part in parts)


V100 = Machine("aws", "p3.2xlarge", "p3", "v100-16gb-sxm", accelerator_memory_gib=16.0, internode_gbps=10.0)
A10G = Machine("aws", "g5.2xlarge", "g5", "a10g-24gb-pcie")
A100X8 = Machine(
    "aws", "p4d.24xlarge", "p4d", "a100-40gb-sxm", 8.0, 39.5, 96.0, 1152.0, intra_node="nvswitch",
    intra_node_gb_per_s=600.0, internode_gbps=400.0, rdma="efa", local_nvme_gib=8000.0,
)  # fmt: skip
L4 = Machine("gcp", "g2-standard-8", "g2", "l4-24gb-pcie", internode_gbps=16.0)
A100 = Machine("gcp", "a2-highgpu-1g", "a2-highgpu", "a100-40gb-sxm", accelerator_memory_gib=39.5, vcpus=12.0)
T4 = Machine("azure", "Standard_NC8as_T4_v3", "NCasT4_v3", "t4-16gb-pcie", accelerator_memory_gib=15.0)
A10X2 = Machine(
    "azure", "Standard_NV72ads_A10_v5", "NVadsA10v5", "a10-24gb-pcie", 2.0, 22.5, 72.0, 880.0, intra_node="pcie",
    internode_gbps=80.0,
)  # fmt: skip
A10 = Machine("alibaba", "ecs.gn7i-c8g1.2xlarge", "gn7i", "a10-24gb-pcie", internode_gbps=16.0)
MACHINES = (V100, A10G, A100X8, L4, A100, T4, A10X2, A10)
# Two regions of each provider; storage is priced, so a place matters to the cost.
REGIONS = {
    "aws": ("us-east-1", "eu-west-1"),
    "gcp": ("us-central1", "europe-west4"),
    "azure": ("eastus", "westeurope"),
    "alibaba": ("ap-southeast-1", "eu-central-1"),
}


def make_catalog(offers: Iterable[Offer], machines: Iterable[Machine] = ()) -> Catalog:
    """A catalog of `offers`, of their machines and of `machines` that nobody sells."""
    sold = tuple(offers)
    kinds = tuple(dict.fromkeys([*(offer.machine for offer in sold), *machines]))
    types = _table(
        [{**vars(kind), "accelerator_name": kind.accelerator, "status": "current", "source": "test",
          "as_of": "2026-11-01", "note": ""} for kind in kinds]
    )  # fmt: skip
    rows = [
        {**{k: v for k, v in vars(offer).items() if k != "machine"}, "provider": offer.machine.provider,
         "instance_type": offer.machine.instance_type, "source": "test"}
        for offer in sold
    ]  # fmt: skip
    manifests = tuple(
        ProviderManifest(name, "2026-11-01", "2026-11-01", "0" * 64, len(sold), len(kinds), 1, ("test",))
        for name in dict.fromkeys(kind.provider for kind in kinds)
    )
    return Catalog(types, _table(rows), load_accelerators(), manifests)


def make_world(offers: Iterable[Offer]) -> Catalog:
    """A catalog that knows every machine and place used here, though only `offers` can be used for training."""
    chips = {name: Machine(name, f"{name}-inference", "inference", "inf2-32gb") for name in REGIONS}
    idle = [Offer(chips[name], region, "1000") for name, regions in REGIONS.items() for region in regions]
    return make_catalog([*offers, *idle], MACHINES)


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table({name: [row[name] for row in rows] for name in rows[0]})


def work(**changes: Any) -> dict[str, Any]:
    """Sections of a small workload: BERT-base on 20 GB, nothing exported; `constraints=...` and so on replace."""
    base: dict[str, Any] = {
        "version": 1,
        "name": "test",
        "model": {"preset": "bert-base"},
        "training": {"samples": 20_000_000, "global_batch": 256, "sequence_length": 128, "precision": "fp16"},
        "data": {"size": "20GB"},
        "checkpoint": {"export": False, "size": "1GB", "interval": "30m"},
        # waits and failures to get capacity have tests of their own (test_starts.py)
        "constraints": {"max_nodes": 8, "waiting": [{"purchase_option": "*", "hours": 0}]},
    }
    constraints = {**base["constraints"], **changes.pop("constraints", {})}
    return {**base, **changes, "constraints": constraints}


def loaded(sections: Mapping[str, Any], folder: Path = Path()) -> LoadedWorkload:
    """A loaded workload without a file."""
    text = json.dumps(sections, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()
    path = folder / "test.yaml"
    return LoadedWorkload(Workload.model_validate(dict(sections)), digest, path, Source(str(path), text))


@functools.cache
def bundled_tariffs() -> Tariffs:
    """The bundled tariffs, read once for all tests."""
    return Tariffs(DATA_DIRECTORY)


class ScaledTariffs(Tariffs):
    """The bundled tariffs with every price (not the rules) times a factor."""

    def __init__(self, factor: Decimal) -> None:
        super().__init__(DATA_DIRECTORY)
        self.factor = factor

    def storage_price(self, provider: str, region: str, kind: str = "object") -> StoragePrice | None:
        price = super().storage_price(provider, region, kind)
        return price and replace(price, usd_per_gib_month=price.usd_per_gib_month * self.factor)

    def storage_services(self, provider: str, region: str) -> tuple[StorageService, ...]:
        return tuple(
            StorageService(one.provider, one.name, one.kind, region, self._priced(one))
            for one in super().storage_services(provider, region)
        )

    @property
    def dearest_reads(self) -> Figure | None:  # type: ignore[override]
        known = super().dearest_reads
        return known and replace(known, value=known.value * self.factor)

    def _priced(self, service: StorageService) -> dict[str, list[dict[str, str]]]:
        """The service's rows with the figures of the region, prices times the factor."""
        measures = (
            "client_mb_s",
            "small_client_mb_s",
            "total_mb_s",
            "volume_mb_s",
            "included_mb_s",
            "mb_s_per_tib",
        )
        prices = ("usd_per_gib_month", "usd_per_1000_reads", "usd_per_mb_s_month")
        out: dict[str, list[dict[str, str]]] = {}
        for measure in (*measures, *prices, "min_gib", "step_gib"):
            known = service.figure(measure)
            if known is not None:
                value = known.value * (self.factor if measure in prices else 1)
                texts = {
                    "confidence": known.confidence,
                    "note": known.note,
                    "source": known.source,
                    "as_of": known.as_of,
                }
                out[measure] = [{"region": service.region, "value": str(value), "reference": "yes", **texts}]
        return out

    def system_disk_fee(self, provider: str, region: str) -> StorageFee | None:
        fee = super().system_disk_fee(provider, region)
        return fee and replace(fee, price_per_hour=fee.price_per_hour * self.factor)

    def transfer_curve(
        self,
        src_provider: str | None,
        src_region: str | None,
        dst_provider: str | None,
        dst_region: str | None,
    ) -> TierCurve | None:
        curve = super().transfer_curve(src_provider, src_region, dst_provider, dst_region)
        return curve and self._scaled(curve)

    def dearest_internet_curve(self) -> TierCurve:
        return self._scaled(super().dearest_internet_curve())

    def _scaled(self, curve: TierCurve) -> TierCurve:
        return replace(curve, usd_per_gb=tuple(price * self.factor for price in curve.usd_per_gb))


def plan_on(
    catalog: Catalog,
    sections: Mapping[str, Any],
    *,
    tariffs: Tariffs | None = None,
    folder: Path = Path(),
    **options: Any,
) -> Answer:
    """Plan a workload on a catalog in memory, through the same function as `planner optimize`."""
    flags = Options(options.pop("now", NOW), **options)
    chosen = tariffs or bundled_tariffs()
    with (
        mock.patch("planner.workloads.answer.load_catalog", lambda *_args, **_flags: catalog),
        mock.patch("planner.candidates.prepare.load_tariffs", lambda: chosen),
    ):
        return optimize(loaded(sections, folder), flags)


_REMEDIES = FewRemedies()


def bought_on(catalog: Catalog, sections: Mapping[str, Any], **options: Any) -> Answer:
    """The same, for what is bought and its cost: what stands beside that is worked out for one workload in five."""
    _REMEDIES.begin(zlib.crc32(repr(sections).encode()))  # by the workload: a failure repeats
    with _REMEDIES.in_place():
        return plan_on(catalog, sections, **options)


def cost_of(answer: Answer) -> Decimal | None:
    """The plan's total, None where there is no plan."""
    return answer.plan.total_usd if answer.plan.status == "planned" else None


def chosen(answer: Answer) -> list[tuple[str, int]]:
    """Offer id and nodes of each line."""
    return [(line.offer_id, line.nodes) for line in answer.plan.lines]


def not_dearer(new: Decimal | None, old: Decimal | None) -> bool:
    """Whether the optimum did not rise (None = infeasible = infinitely dear), to the precision of quantities."""
    return old is None or (new is not None and new <= old * (1 + Decimal("1e-9")) + Decimal("1e-9"))


def usd_per_currency(currency: str, on: date = date(2026, 11, 20)) -> float:
    """The exchange rate in force."""
    return float(bundled_tariffs().usd_per(currency, on).rate)
