"""Where the data, checkpoints and outputs of a plan lie, what else was priced, and whether the loader keeps up."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from planner.records import record

# Why a way is taken or not, as an id; its figures are beside it and its words in `planner.plan.storage_words`.
StorageReason = Literal[
    "copied", "streamed", "packed", "volumes", "shared", "disk_unknown", "no_disk", "disk_small", "disk_slow",
    "copied_late", "client_slow", "store_slow", "volume_slow", "volume_late", "outlives", "holds", "ends_with_machine",
    "exported",
]  # fmt: skip
Content = Literal["data", "checkpoints", "outputs"]
StorageKind = Literal["object", "local_nvme", "block", "file_system"]


@record(frozen=True)
class StorageWay:
    """One way to keep something; `cost_usd` is of this storage alone, for the plan's hours.

    `capacity_gib` and `throughput_mb_per_s` are paid for by the month, 0 where nothing is. `basis` is `list`, or
    `derived` where a price is of another region or provider. `figures` are those of `reason`, units in their names.
    """

    kind: StorageKind
    service: str
    cost_usd: Decimal
    keeps_rule: bool
    capacity_gib: float
    throughput_mb_per_s: float
    basis: str
    reason: StorageReason
    figures: dict[str, float]


@record(frozen=True)
class StorageChoice:
    """Where one thing lies: the cheapest way that keeps the rule; `runner_up` is the next one that does.

    `line`: position of the plan line whose workers it is of; None where all lines are of one job.
    """

    content: Content
    size_gib: float
    read_mb_per_s: float
    chosen: StorageWay
    runner_up: StorageWay | None
    refused: tuple[StorageWay, ...]
    line: int | None = None


@record(frozen=True)
class Remedy:
    """What makes loading faster, and what the plan would then be: its throughput and cost; None where unknown."""

    name: str
    throughput_per_s: float | None
    cost_usd: Decimal | None
    note: str


@record(frozen=True)
class Loading:
    """Decoding samples on the CPU cores of a node beside what its accelerators take.

    `encoded` is what the samples are, `image` where it is likely and not said. `exposed_ratio` is the part of a step
    that waits for the loader; `in_speed`: whether decoding is in the plan's speed and cost.
    """

    encoded: str
    samples_per_s_per_accelerator: float
    decode_samples_per_s_per_core: float | None
    cores_per_accelerator: float | None
    cores_needed_per_accelerator: float | None
    exposed_ratio: float
    in_speed: bool
    is_bound: bool
    source: str
    remedies: tuple[Remedy, ...]
