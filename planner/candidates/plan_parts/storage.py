"""Where the data, checkpoints and outputs of a chosen candidate lie, with what else was priced and why not."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, cast

from planner.market.pricing import HOURS_PER_MONTH
from planner.market.storage.options import GB_PER_GIB, SHARD_GB, SPARE, Cell, Way
from planner.market.storage.stores import BLOCK, FILE_SYSTEM, KINDS, LOCAL, NONE, OBJECT, PACKED, Named
from planner.plan.ids import CostId
from planner.plan.storage import StorageChoice, StorageWay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.asked.job import Job
    from planner.candidates.model import Candidates
    from planner.market.storage.stores import Place, Stores
    from planner.plan.model import CostLine, PlanLine
    from planner.plan.storage import StorageKind, StorageReason

    _Reason = tuple[StorageReason, dict[str, float]]

_DIGITS = 12  # decimals of a cost that is shown beside others


def storage_of(candidates: Candidates, at: int, lines: Sequence[PlanLine]) -> tuple[StorageChoice, ...]:
    """Describe the storage of candidate `at`.

    Args:
        candidates: all candidates.
        at: the chosen one.
        lines: its lines, with their costs.
    """
    job, stores = candidates.context.asked.job, candidates.context.market.stores
    row, hours = int(candidates.offer[at]), float(candidates.hours[at])
    data = [] if candidates.store[at] == NONE else [_data(candidates, at)]
    parts = [
        checkpoints_choice(job, stores, row, (1, hours), [cost for line in lines for cost in line.costs]),
        outputs_choice(job, stores, row),
    ]
    return (*data, *(part for part in parts if part is not None))


def data_kind(candidates: Candidates, at: int) -> StorageKind | None:
    """Kind of storage that the nodes of candidate `at` read the data from; None without data."""
    code = int(candidates.store[at])
    return None if code == NONE else cast("StorageKind", KINDS[min(code, FILE_SYSTEM)])


def _data(candidates: Candidates, at: int) -> StorageChoice:
    stores, row, hours = (
        candidates.context.market.stores,
        int(candidates.offer[at]),
        float(candidates.hours[at]),
    )
    step_s = float(candidates.shapes["step_time_s"][candidates.shape[at]])
    cell, every = stores.ways(row, int(candidates.nodes[at]), step_s)
    regions = len({int(candidates.context.market.region_of_offer[part.row]) for part in candidates.parts(at)})
    priced = [(one, usd_of(one.way, hours) * regions) for one in every]
    return data_choice(stores, row, cell, priced, int(candidates.store[at]))


def data_choice(
    stores: Stores, row: int, cell: Cell, priced: Sequence[tuple[Named, float]], code: int, line: int | None = None
) -> StorageChoice:  # fmt: skip
    """Describe where the training data lie.

    Args:
        stores: of the job.
        row: its leading offer.
        cell: what is asked of storage.
        priced: every way with its cost, USD.
        code: of the way taken.
        line: position of the plan line, where each has its own choice.
    """
    rest = sorted(
        (pair for pair in priced if pair[0].code != code), key=lambda pair: (round(pair[1], 9), pair[0].code)
    )
    keeping = [pair for pair in rest if bool(pair[0].way.keeps[0])]
    ways = {pair[0].code: _way(pair, cell, stores.limits_at(row), stores.place(row)) for pair in priced}
    runner = keeping[0][0].code if keeping else None
    others = tuple(ways[one.code] for one, _ in rest if one.code != runner)
    need, second = float(cell.need_mb_s[0]), None if runner is None else ways[runner]
    return StorageChoice("data", cell.data_gb / GB_PER_GIB, need, ways[code], second, others, line)


def usd_of(way: Way, hours: float) -> float:
    """USD of a way for `hours`."""
    monthly = float(way.usd_per_hour[0])
    return float(way.usd[0]) + (monthly * hours if monthly else 0.0)


def _way(
    pair: tuple[Named, float], cell: Cell, limits: tuple[float, float, float], place: Place
) -> StorageWay:
    named, usd = pair
    keeps, kind = bool(named.way.keeps[0]), cast("StorageKind", KINDS[min(named.code, FILE_SYSTEM)])
    why, figures = _fits(named, cell) if keeps else _refusal(named, cell, limits, place)
    return StorageWay(
        kind=kind, service=named.service, cost_usd=Decimal(repr(round(usd, _DIGITS))), keeps_rule=keeps,
        capacity_gib=float(named.way.gib[0]), throughput_mb_per_s=float(named.way.mb_s[0]), basis=_basis(named, place),
        reason=why, figures=figures,
    )  # fmt: skip


def _basis(named: Named, place: Place) -> str:
    """`derived` where a figure that is paid is of another place."""
    figures = [place.reads] if named.way.reads[0] else []
    service = place.block if named.code == BLOCK else None
    if named.code >= FILE_SYSTEM:
        service = place.file_systems[named.code - FILE_SYSTEM]
    if service is not None:
        figures.append(service.figure("usd_per_gib_month"))
    if named.code == BLOCK and service is not None and named.way.mb_s[0]:
        figures.append(service.figure("usd_per_mb_s_month"))
    return (
        "derived"
        if named.code == PACKED or any(figure is not None and figure.basis != "list" for figure in figures)
        else "list"
    )


def _fits(named: Named, cell: Cell) -> _Reason:
    """What a way that keeps the rule does."""
    if named.code == LOCAL:
        return "copied", _copied(cell)
    if named.code in (OBJECT, PACKED):
        size = SHARD_GB if named.code == PACKED else cell.object_gb
        figures = {"requests": float(named.way.reads[0]), "object_mb": size * 1e3}
        return ("packed" if named.code == PACKED else "streamed"), figures
    if named.code == BLOCK:
        return "volumes", {"share_gb": float(cell.share_gb[0]), "image_pull_s": cell.fill_s}
    return "shared", {}


def _copied(cell: Cell) -> dict[str, float]:
    return {
        "share_gb": float(cell.share_gb[0]), "copied_in_s": float(cell.copied_in_s[0]), "image_pull_s": cell.fill_s,
    }  # fmt: skip


def _rates(needed: float, given: float) -> dict[str, float]:
    return {"needed_mb_per_s": needed, "given_mb_per_s": given}


def _refusal(named: Named, cell: Cell, limits: tuple[float, float, float], place: Place) -> _Reason:
    """The limit that a way breaks."""
    need, nodes = float(cell.need_mb_s[0]), float(cell.nodes[0])
    if named.code == LOCAL:
        return _local_refusal(cell, need)
    if named.code in (OBJECT, PACKED):
        client, total = limits[1 if named.code == PACKED else 0], limits[2]
        if need > client:
            return "client_slow", _rates(need, client)
        return "store_slow", _rates(need * nodes, total)
    if named.code == BLOCK and place.block is not None:
        wanted, most = float(cell.least_volume_mb_s[0]), place.block.value("volume_mb_s") or 0.0
        late = {"image_pull_s": cell.fill_s}
        if wanted > most:
            return "volume_slow", _rates(wanted, most) | late
        return "volume_late", {"given_mb_per_s": float(cell.fill_mb_s[0])} | late
    service = place.file_systems[named.code - FILE_SYSTEM]
    return "client_slow", _rates(need, service.value("client_mb_s") or 0.0)


def _local_refusal(cell: Cell, need: float) -> _Reason:
    disk, room = float(cell.nvme_gb[0]), SPARE * float(cell.share_gb[0])
    if not disk >= 0:
        return "disk_unknown", {}
    if not disk:
        return "no_disk", {}
    if disk < room:
        return "disk_small", {"needed_gb": room, "given_gb": disk}
    if float(cell.local_read_mb_s[0]) < need:
        return "disk_slow", _rates(need, float(cell.local_read_mb_s[0]))
    return "copied_late", _copied(cell)


def checkpoints_choice(
    job: Job, stores: Stores, row: int, stay: tuple[int, float], costs: Sequence[CostLine], line: int | None = None
) -> StorageChoice | None:  # fmt: skip
    """Describe where checkpoints lie, None where there are none.

    Args:
        job: their size and number.
        stores: of the job.
        row: its leading offer.
        stay: runs side by side, and the hours over which their checkpoints are kept.
        costs: cost lines of the plan, or of the line.
        line: position of the plan line, where each has its own choice.
    """
    runs, hours = stay
    size = job.checkpoint_gib * job.checkpoints_kept * runs
    if not size:
        return None
    own = [cost for cost in costs if cost.id == CostId.CHECKPOINT_STORAGE]
    usd, place = sum((cost.amount_usd for cost in own), Decimal(0)), stores.place(row)
    chosen = StorageWay(
        "object", place.store.name if place.store else "object storage", usd, keeps_rule=True, capacity_gib=size,
        throughput_mb_per_s=0.0, basis=own[0].basis if own else "list", reason="outlives",
        figures={"kept": float(job.checkpoints_kept * runs)},
    )  # fmt: skip
    systems = _file_systems(place, size, hours)
    lost = StorageWay(
        "local_nvme", "local NVMe", Decimal(0), keeps_rule=False, capacity_gib=0.0, throughput_mb_per_s=0.0,
        basis="list", reason="ends_with_machine", figures={},
    )  # fmt: skip
    return StorageChoice(
        "checkpoints", size, 0.0, chosen, systems[0] if systems else None, (lost, *systems[1:]), line
    )


def _file_systems(place: Place, size: float, hours: float) -> list[StorageWay]:
    """File systems that could hold so many GiB, cheapest first."""
    storage_ways = []
    for service in place.file_systems:
        price, least = service.figure("usd_per_gib_month"), service.value("min_gib")
        if price is None or least is None:
            continue
        step = service.value("step_gib") or least
        gib = least if size <= least else -(-size // step) * step
        usd = Decimal(repr(round(gib * float(price.value) * hours / HOURS_PER_MONTH, _DIGITS)))
        storage_ways.append(
            StorageWay(
                "file_system", service.name, usd, keeps_rule=True, capacity_gib=gib, throughput_mb_per_s=0.0,
                basis=price.basis, reason="holds", figures={},
            )
        )  # fmt: skip
    return sorted(storage_ways, key=lambda way: (round(way.cost_usd, 9), way.service))


def outputs_choice(job: Job, stores: Stores, row: int, line: int | None = None) -> StorageChoice | None:
    """Describe where outputs lie, None where nothing is exported; arguments of `checkpoints_choice`."""
    if not job.export_gb:
        return None
    place = stores.place(row)
    name = place.store.name if place.store else "object storage"
    chosen = StorageWay(
        "object", name, Decimal(0), keeps_rule=True, capacity_gib=0.0, throughput_mb_per_s=0.0, basis="list",
        reason="exported", figures={},
    )  # fmt: skip
    return StorageChoice("outputs", job.export_gb / GB_PER_GIB, 0.0, chosen, None, (), line)
