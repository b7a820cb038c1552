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

    from planner.candidates.model import Candidates
    from planner.market.storage.stores import Place
    from planner.plan.model import PlanLine
    from planner.plan.storage import StorageKind

_DIGITS = 12  # decimals of a cost that is shown beside others


def storage_of(made: Candidates, at: int, lines: Sequence[PlanLine]) -> tuple[StorageChoice, ...]:
    """Describe the storage of candidate `at`.

    Args:
        made: all candidates.
        at: the chosen one.
        lines: its lines, with their costs.
    """
    if made.context.asked.workload.kind == "fleet":
        return ()
    parts = [_checkpoints(made, at, lines), _outputs(made, at)]
    data = [] if made.store[at] == NONE else [_data(made, at)]
    return (*data, *(part for part in parts if part is not None))


def _data(made: Candidates, at: int) -> StorageChoice:
    stores, row, hours = made.context.market.stores, int(made.offer[at]), float(made.hours[at])
    step_s = float(made.shapes["step_time_s"][made.shape[at]])
    cell, every = stores.ways(row, int(made.nodes[at]), step_s)
    regions = len({int(made.context.market.region_of_offer[part.row]) for part in made.parts(at)})
    code, place = int(made.store[at]), stores.place(row)
    priced = [(one, _usd(one.way, hours) * regions) for one in every]
    mine = next(pair for pair in priced if pair[0].code == code)
    rest = sorted(
        (pair for pair in priced if pair[0].code != code), key=lambda pair: (round(pair[1], 9), pair[0].code)
    )
    keeping = [pair for pair in rest if bool(pair[0].way.keeps[0])]
    ways = {pair[0].code: _way(pair, cell, stores.limits_at(row), place, mine) for pair in priced}
    runner = keeping[0][0].code if keeping else None
    others = tuple(ways[one.code] for one, _ in rest if one.code != runner)
    need = float(cell.need_mb_s[0])
    return StorageChoice(
        "data", cell.data_gb / GB_PER_GIB, need, ways[code], None if runner is None else ways[runner], others
    )


def _usd(way: Way, hours: float) -> float:
    monthly = float(way.usd_per_hour[0])
    return float(way.usd[0]) + (monthly * hours if monthly else 0.0)


def _way(
    pair: tuple[Named, float],
    cell: Cell,
    limits: tuple[float, float, float],
    place: Place,
    chosen: tuple[Named, float],
) -> StorageWay:
    named, usd = pair
    keeps, kind = bool(named.way.keeps[0]), cast("StorageKind", KINDS[min(named.code, FILE_SYSTEM)])
    why = _fits(named, cell) if keeps else _refusal(named, cell, limits, place)
    if named.code != chosen[0].code and keeps:
        why += f"; {_more(usd - chosen[1])}"
    if named.code == chosen[0].code and not keeps:
        why = f"no known way keeps up: {why}"
    return StorageWay(
        kind=kind, service=named.service, cost_usd=Decimal(repr(round(usd, _DIGITS))), keeps_rule=keeps,
        capacity_gib=float(named.way.gib[0]), throughput_mb_per_s=float(named.way.mb_s[0]), basis=_basis(named, place),
        reason=why,
    )  # fmt: skip


def _more(usd: float) -> str:
    return f"{usd:,.2f} USD more" if usd >= 0.005 else "not cheaper"


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


def _fits(named: Named, cell: Cell) -> str:
    """What a way that keeps the rule does."""
    need, share = float(cell.need_mb_s[0]), float(cell.share_gb[0])
    part = "its part" if share < cell.data_gb else "a copy"
    if named.code == LOCAL:
        return (
            f"each node takes {part} ({share:,.4g} GB) once, in {float(cell.copied_in_s[0]):,.0f} s, "
            f"while its image is pulled ({cell.fill_s:,.0f} s)"
        )
    if named.code in (OBJECT, PACKED):
        size = SHARD_GB if named.code == PACKED else cell.object_gb
        first = "packed into shards once, then " if named.code == PACKED else ""
        many = f"{float(named.way.reads[0]):,.0f} requests for objects of {size * 1e3:,.3g} MB"
        return f"{first}streamed: a node reads {_rate(need)} MB/s; {many}"
    if named.code == BLOCK:
        return f"a volume of each node with {part}, filled while its image is pulled ({cell.fill_s:,.0f} s)"
    return f"one file system of {float(named.way.gib[0]):,.0f} GiB for all nodes, which read {_rate(need)} MB/s each"


def _rate(mb_s: float) -> str:
    return f"{mb_s:,.0f}" if mb_s >= 10.0 else f"{mb_s:.2g}"


def _refusal(named: Named, cell: Cell, limits: tuple[float, float, float], place: Place) -> str:
    """The limit that a way breaks."""
    need, share, nodes = float(cell.need_mb_s[0]), float(cell.share_gb[0]), float(cell.nodes[0])
    if named.code == LOCAL:
        return _local_refusal(cell, need, share)
    if named.code in (OBJECT, PACKED):
        client, total = limits[1 if named.code == PACKED else 0], limits[2]
        if need > client:
            return f"a node reads {need:,.0f} MB/s, one client gets {client:,.0f}"
        return f"{nodes:,.0f} nodes read {need * nodes:,.0f} MB/s, the store gives {total:,.0f}"
    if named.code == BLOCK and place.block is not None:
        wanted, most = float(cell.least_volume_mb_s[0]), place.block.value("volume_mb_s") or 0.0
        if wanted > most:
            why = f"to be filled in {cell.fill_s:,.0f} s and to feed the steps"
            return f"needs {wanted:,.0f} MB/s {why}, a volume gives {most:,.0f}"
        return (
            f"a node copies {float(cell.fill_mb_s[0]):,.0f} MB/s at most: not filled in {cell.fill_s:,.0f} s"
        )
    return f"a node reads {need:,.0f} MB/s, more than one client of it gets"


def _local_refusal(cell: Cell, need: float, share: float) -> str:
    disk, copied = float(cell.nvme_gb[0]), float(cell.copied_in_s[0])
    if not disk >= 0:
        return "local disk of this type unknown"
    if not disk:
        return "no local disk"
    if disk < SPARE * share:
        return f"needs {SPARE * share:,.0f} GB of local disk, a node has {disk:,.0f}"
    if float(cell.local_read_mb_s[0]) < need:
        return f"a node reads {need:,.0f} MB/s, its disk gives {float(cell.local_read_mb_s[0]):,.0f}"
    waits = f"its image is there after {cell.fill_s:,.0f}: nodes would wait"
    return f"copying {share:,.0f} GB to a node takes {copied:,.0f} s, {waits}"


def _checkpoints(made: Candidates, at: int, lines: Sequence[PlanLine]) -> StorageChoice | None:
    job, stores, row = made.context.asked.job, made.context.market.stores, int(made.offer[at])
    size = job.checkpoint_gib * job.checkpoints_kept
    if not size:
        return None
    own = [cost for line in lines for cost in line.costs if cost.id == CostId.CHECKPOINT_STORAGE]
    usd = sum((cost.amount_usd for cost in own), Decimal(0))
    place = stores.place(row)
    name = place.store.name if place.store else "object storage"
    basis = own[0].basis if own else "list"
    reason = f"outlives the machines; {job.checkpoints_kept} kept"
    chosen = StorageWay(
        "object",
        name,
        usd,
        keeps_rule=True,
        capacity_gib=size,
        throughput_mb_per_s=0.0,
        basis=basis,
        reason=reason,
    )
    systems = _file_systems(place, size, float(made.hours[at]), usd)
    lost = StorageWay(
        "local_nvme", "local NVMe", Decimal(0), keeps_rule=False, capacity_gib=0.0, throughput_mb_per_s=0.0,
        basis="list",
        reason="gone with the machine: a restart would begin anew",
    )  # fmt: skip
    return StorageChoice(
        "checkpoints", size, 0.0, chosen, systems[0] if systems else None, (lost, *systems[1:])
    )


def _file_systems(place: Place, size: float, hours: float, beside: Decimal) -> list[StorageWay]:
    """File systems that could hold so many GiB, cheapest first."""
    found = []
    for service in place.file_systems:
        price, least = service.figure("usd_per_gib_month"), service.value("min_gib")
        if price is None or least is None:
            continue
        step = service.value("step_gib") or least
        gib = least if size <= least else -(-size // step) * step
        usd = Decimal(repr(round(gib * float(price.value) * hours / HOURS_PER_MONTH, _DIGITS)))
        found.append(
            StorageWay(
                "file_system", service.name, usd, keeps_rule=True, capacity_gib=gib, throughput_mb_per_s=0.0,
                basis=price.basis, reason=_more(float(usd - beside)),
            )
        )  # fmt: skip
    return sorted(found, key=lambda way: (round(way.cost_usd, 9), way.service))


def _outputs(made: Candidates, at: int) -> StorageChoice | None:
    job = made.context.asked.job
    if not job.export_gb:
        return None
    place = made.context.market.stores.place(int(made.offer[at]))
    name = place.store.name if place.store else "object storage"
    chosen = StorageWay(
        "object", name, Decimal(0), keeps_rule=True, capacity_gib=0.0, throughput_mb_per_s=0.0, basis="list",
        reason="written at the end and copied out; the copy is in the cost of transfer, what is kept afterwards is not",
    )  # fmt: skip
    return StorageChoice("outputs", job.export_gb / GB_PER_GIB, 0.0, chosen, None, ())
