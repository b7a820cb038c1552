"""Plans of older schema versions brought to the present one, as JSON values.

Version 1 named the parts of the time line and the costs by labels alone; version 2 adds their ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.inputs.faults import Fault
from planner.plan.ids import CostId, TimePartId

OLDEST_VERSION, SCHEMA_VERSION = 1, 2
_TIME_PARTS = {
    "data into the region": TimePartId.DATA_STAGING,
    "waiting for capacity": TimePartId.CAPACITY,
    "provisioning": TimePartId.PROVISIONING,
    "image pull": TimePartId.IMAGE_PULL,
    "data to the nodes": TimePartId.DATA_TO_NODES,
    "compile and warm-up": TimePartId.WARM_UP,
    "training steps": TimePartId.TRAINING_STEPS,
    "evaluation": TimePartId.EVALUATION,
    "beside the steps": TimePartId.BESIDE_STEPS,
    "checkpoints": TimePartId.CHECKPOINTS,
    "interruptions": TimePartId.INTERRUPTIONS,
    "final export": TimePartId.FINAL_EXPORT,
    "data and provisioning": TimePartId.FLEET_LEAD,
    "image, warm-up, export": TimePartId.FLEET_FIXED,
    "work": TimePartId.FLEET_WORK,
}
_COST_KINDS = {
    "compute": CostId.COMPUTE,
    "upfront": CostId.UPFRONT,
    "system_disk": CostId.SYSTEM_DISK,
    "data_storage": CostId.DATASET_STORAGE,
    "checkpoint_storage": CostId.CHECKPOINT_STORAGE,
}
# the beginnings of labels that share a kind with the copy of the data set
_STORED = {
    "data read from object storage": CostId.DATASET_READS,
    "data packed into shards": CostId.DATASET_PACKING,
    "data on volumes of ": CostId.DATASET_VOLUMES,
    "data on the file system ": CostId.DATASET_FILE_SYSTEM,
}
_TRANSFERS = {
    "data set into the region": CostId.DATASET_TRANSFER,
    "data set streamed into the region": CostId.DATASET_STREAM,
    "checkpoints carried between regions": CostId.CHECKPOINT_TRANSFER,
    "final model out of the region": CostId.MODEL_EXPORT,
}


def upgrade(values: dict[str, Any], faults: list[Fault]) -> dict[str, Any]:
    """Return the plan in the present version; what is undetermined is added to `faults`, what is malformed is left."""
    if values.get("schema_version") != 1:
        return values
    timeline = _each(values.get("timeline"), lambda part, at: _time_part(part, at, faults))
    lines = _each(values.get("lines"), lambda line, at: _line(line, at, faults))
    return {**values, "schema_version": SCHEMA_VERSION, "timeline": timeline, "lines": lines}


def _each(items: Any, change: Any) -> Any:
    if not isinstance(items, list):
        return items
    return [change(item, at) if isinstance(item, dict) else item for at, item in enumerate(items)]


def _time_part(part: Mapping[str, Any], at: int, faults: list[Fault]) -> dict[str, Any]:
    name = part.get("name")
    part_id = _TIME_PARTS.get(name) if isinstance(name, str) else None
    if part_id is None:
        faults.append(Fault(("timeline", at, "name"), f"version 1 of the plan has no part called {name!r}"))
    return {**part, "id": part_id}


def _line(line: Mapping[str, Any], number: int, faults: list[Fault]) -> dict[str, Any]:
    def cost(item: Mapping[str, Any], at: int) -> dict[str, Any]:
        kind, label = item.get("kind"), item.get("label")
        stored = next((one for start, one in _STORED.items() if str(label).startswith(start)), None)
        line_id = stored or _COST_KINDS.get(str(kind)) or _TRANSFERS.get(str(label))
        if line_id is None:
            path = ("lines", number, "costs", at, "label")
            faults.append(Fault(path, f"version 1 of the plan has no cost {kind!r} called {label!r}"))
        return {**item, "id": line_id}

    return {**line, "costs": _each(line.get("costs"), cost)}
