"""Labels of the parts of a plan: those of training, and those of batch inference where they differ."""

from __future__ import annotations

from planner.plan.ids import CostId, TimePartId

_TIMES = {
    TimePartId.DATA_STAGING: "data into the region",
    TimePartId.CAPACITY: "waiting for capacity",
    TimePartId.PROVISIONING: "provisioning",
    TimePartId.IMAGE_PULL: "image pull",
    TimePartId.DATA_TO_NODES: "data to the nodes",
    TimePartId.WARM_UP: "compile and warm-up",
    TimePartId.TRAINING_STEPS: "training steps",
    TimePartId.EVALUATION: "evaluation",
    TimePartId.BESIDE_STEPS: "beside the steps",
    TimePartId.CHECKPOINTS: "checkpoints",
    TimePartId.INTERRUPTIONS: "interruptions",
    TimePartId.FINAL_EXPORT: "final export",
}
_TIMES_OF_INFERENCE = {
    TimePartId.DATA_STAGING: "requests into the region",
    TimePartId.DATA_TO_NODES: "requests to the nodes",
    TimePartId.WARM_UP: "model load and warm-up",
    TimePartId.TRAINING_STEPS: "answering requests",
    TimePartId.CHECKPOINTS: "saving progress",
    TimePartId.FINAL_EXPORT: "export of results",
}
_COSTS = {
    CostId.DATASET_STORAGE: "data set in object storage",
    CostId.CHECKPOINT_STORAGE: "checkpoints in object storage",
    CostId.DATASET_TRANSFER: "data set into the region",
    CostId.DATASET_STREAM: "data set streamed into the region",
    CostId.CHECKPOINT_TRANSFER: "checkpoints carried between regions",
    CostId.MODEL_EXPORT: "final model out of the region",
}
_COSTS_OF_INFERENCE = {
    CostId.DATASET_STORAGE: "requests in object storage",
    CostId.CHECKPOINT_STORAGE: "records of progress in object storage",
    CostId.DATASET_TRANSFER: "requests into the region",
    CostId.DATASET_STREAM: "requests streamed into the region",
    CostId.CHECKPOINT_TRANSFER: "records of progress carried between regions",
    CostId.MODEL_EXPORT: "results out of the region",
}


def time_label(part: TimePartId, *, inference: bool) -> str:
    """Name a part of the elapsed time; `inference`: requests are answered, nothing is trained."""
    return (_TIMES | _TIMES_OF_INFERENCE if inference else _TIMES)[part]


def cost_label(cost: CostId, *, inference: bool) -> str:
    """Name a cost of storage or transfer; checkpoints in storage follow their number."""
    return (_COSTS_OF_INFERENCE if inference else _COSTS)[cost]
