"""The sections on storage and loading: where things lie, what else was priced and why not, and who feeds whom."""

from __future__ import annotations

from planner.plan.model import Plan, PlanLine
from planner.plan.storage import Loading, StorageChoice, StorageWay
from planner.plan.storage_words import reason_of
from planner.render.model import Column, Section, Unit, Value, facts, table_section
from planner.render.numbers import number, percent, usd
from planner.render.words import is_derived

KINDS = {
    "object": "object storage", "local_nvme": "local NVMe", "block": "block storage", "file_system": "file system",
}  # fmt: skip
_CONTENTS = {"data": "training data", "checkpoints": "checkpoints", "outputs": "outputs"}
_CONTENTS_OF_INFERENCE = {"data": "requests", "checkpoints": "records of progress", "outputs": "results"}
_RULE = (
    "Cheapest option that feeds the steps within the limits of a node and of the service (loading then hides behind "
    "the step, at most 20 % of it), with copies on the nodes when their image is there"
)
_OF_FLEETS = (
    "Chosen as if the fleet consisted of one offer; costs are those of a line's workers, without other lines"
)


def storage(plan: Plan, verbose: bool) -> list[Section]:
    """Return where the plan's data, checkpoints and outputs lie, with the next cheapest way of each."""
    if not plan.storage:
        return []
    rows: list[tuple[Value, ...]] = []
    for choice in plan.storage:
        where = "" if choice.line is None else f", {_workers(plan.lines[choice.line])}"
        rows += _rows(choice, where, inference=plan.kind == "inference", verbose=verbose)
    columns = (
        Column("content", "content", "text"), Column("storage", "storage", "text"),
        Column("role", "choice", "text"), Column("cost_usd", "cost", "usd_marked"), Column("reason", "why", "text"),
    )  # fmt: skip
    hidden = sum(len(choice.refused) for choice in plan.storage)
    notes = [_RULE]
    if any(choice.line is not None for choice in plan.storage):
        notes.append(_OF_FLEETS)
    if hidden and not verbose:
        notes.append(f"{hidden} more options priced: add -v")
    return [table_section("storage", "Storage", columns, rows, notes, detail=True)]


def _workers(line: PlanLine) -> str:
    return f"{line.instance_type} {line.purchase_option} in {line.zone or line.region}"


def _rows(choice: StorageChoice, where: str, *, inference: bool, verbose: bool) -> list[tuple[Value, ...]]:
    names = _CONTENTS_OF_INFERENCE if inference else _CONTENTS
    head = f"{names[choice.content]}, {number(choice.size_gib, 4)} GiB{where}"
    rows = [_row(choice, head, "chosen", choice.chosen)]
    if choice.runner_up is not None:
        rows.append(_row(choice, "", "runner-up", choice.runner_up))
    others = choice.refused if verbose else ()
    return rows + [_row(choice, "", "more expensive" if way.keeps_rule else "unfit", way) for way in others]


def _row(choice: StorageChoice, head: str, role: str, way: StorageWay) -> tuple[Value, ...]:
    bought = f" of {number(way.capacity_gib, 6)} GiB" if way.capacity_gib and way.kind != "object" else ""
    name = KINDS[way.kind] if way.kind == "local_nvme" else f"{KINDS[way.kind]}: {way.service}{bought}"
    return (head, name, role, (way.cost_usd, is_derived(way.basis)), reason_of(choice, way))


def loading(plan: Plan) -> list[Section]:
    """Return whether the CPU cores decode as fast as the accelerators take samples, and what would help."""
    item = plan.loading
    if item is None:
        return []
    unit = plan.performance.unit if plan.performance else "samples"
    rows: list[tuple[str, str, Value, Unit, str]] = [
        ("loader", "loader", item.is_bound, "text", _loader(item))
    ]
    for at, remedy in enumerate(item.remedies):
        effect = "effect unknown"
        if remedy.throughput_per_s is not None and remedy.cost_usd is not None:
            effect = f"{number(remedy.throughput_per_s, 4)} {unit}/s, {usd(remedy.cost_usd)} in all"
        words = f"{remedy.name}: {effect if item.in_speed else 'keeps the speed above'} ({remedy.note})"
        rows.append((f"remedy_{at + 1}", "remedy", remedy.name, "text", words))
    return [facts("loading", "Loading", rows, detail=True)]


def _loader(item: Loading) -> str:
    use = f"an accelerator takes {number(item.samples_per_s_per_accelerator, 4)} {item.encoded}s/s"
    if item.decode_samples_per_s_per_core is None:
        return f"{use}; how many a core decodes is not measured: not in the speed, give decode_samples_per_s_per_core"
    needed, cores = item.cores_needed_per_accelerator, item.cores_per_accelerator
    rate = f"{number(item.decode_samples_per_s_per_core, 4)} a core ({item.source})"
    if needed is None or cores is None:
        return f"{use}; {rate}; cores of this type unknown"
    load = f"{use}, which {number(needed, 3)} cores decode at {rate}; here are {number(cores, 3)}"
    if not item.is_bound:
        return f"{load}: enough"
    if item.in_speed:
        return f"{load}: loader-bound, {percent(item.exposed_ratio)} of the step waits (in speed and cost)"
    fed = cores / needed
    return (
        f"{load}: if the samples are compressed, the cores feed {percent(fed)} of that; not in speed and cost: set "
        f"data.encoded: {item.encoded}"
    )
