"""Ids of the parts of a plan. Code compares ids; the label beside an id is for people and may change or carry figures.

Every id says in its docstring (`TimePartId.WARM_UP.__doc__`) what the part is; `planner schema plan` prints them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

WAITED = "constraints.waited"  # key of the assumption that names the user's requests for capacity


class PartId(StrEnum):
    """An id with its meaning as its docstring."""

    def __new__(cls, value: str, meaning: str) -> Self:
        """Make the member `value` and document it with `meaning`."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.__doc__ = meaning
        return member


class TimePartId(PartId):
    """Parts of a plan's elapsed time."""

    DATA_STAGING = (
        "data_staging",
        "The data set is copied into the region before the cluster starts; not billed.",
    )
    CAPACITY = (
        "capacity",
        "Waiting for requested capacity or for the start of a block; the data set is copied meanwhile; not billed.",
    )
    PROVISIONING = "provisioning", "The instances are requested and started; not billed."
    IMAGE_PULL = "image_pull", "The container image is pulled onto the nodes."
    DATA_TO_NODES = "data_to_nodes", "The data set is read from object storage onto the nodes."
    WARM_UP = "warm_up", "Kernels are compiled and the first steps run slower."
    TRAINING_STEPS = "training_steps", "Optimizer steps, or answering the requests of batch inference."
    EVALUATION = "evaluation", "Evaluation runs between the steps."
    BESIDE_STEPS = (
        "beside_steps",
        "Data stalls, slow hosts, lower clocks and replays, as far as published runs took longer than their steps.",
    )
    CHECKPOINTS = "checkpoints", "Checkpoints are written while the steps wait."
    INTERRUPTIONS = "interruptions", "Expected waits for capacity, restarts, and work done twice."
    FINAL_EXPORT = (
        "final_export",
        "The last checkpoint is written and the model, or the rest of the results, is exported.",
    )
    FLEET_LEAD = "fleet_lead", "Data staging and provisioning of the fleet worker that ends last; not billed."
    FLEET_FIXED = "fleet_fixed", "Image, warm-up and export of the fleet worker that ends last."
    FLEET_WORK = (
        "fleet_work",
        "Work of the fleet worker that ends last, evaluation and interruptions included.",
    )


# parts during which no instance is in use yet
BEFORE_USE = frozenset(
    (TimePartId.DATA_STAGING, TimePartId.CAPACITY, TimePartId.PROVISIONING, TimePartId.FLEET_LEAD)
)


class CostId(PartId):
    """Priced quantities of a plan line. The tiers of one tariff are several cost lines with the same id."""

    COMPUTE = "compute", "Instance-hours of the line's offer."
    AFTER_END = "after_end", "Instance-hours after the end of an owned commitment: their mean over all runs."
    UPFRONT = "upfront", "The part of a commitment that is paid at its start."
    SYSTEM_DISK = "system_disk", "The default system disk, where the provider bills it beside the instance."
    DATASET_STORAGE = "dataset_storage", "The copy of the data set in object storage of the region."
    DATASET_READS = (
        "dataset_reads",
        "Requests by which the nodes read the data set from object storage: once into copies, or while training.",
    )
    DATASET_PACKING = (
        "dataset_packing",
        "Small files of the data set packed into shards once, on one CPU machine.",
    )
    DATASET_VOLUMES = (
        "dataset_volumes",
        "A volume with the data set on every node, and its provisioned throughput.",
    )
    DATASET_FILE_SYSTEM = (
        "dataset_file_system",
        "The parallel file system from which the nodes read the data set.",
    )
    CHECKPOINT_STORAGE = "checkpoint_storage", "The checkpoints kept in object storage."
    DATASET_TRANSFER = "dataset_transfer", "The data set copied into the region once."
    DATASET_STREAM = (
        "dataset_stream",
        "The data set read across regions during the run, as often as the run reads it.",
    )
    CHECKPOINT_TRANSFER = (
        "checkpoint_transfer",
        "Checkpoints carried from region to region as spot capacity moves.",
    )
    MODEL_EXPORT = (
        "model_export",
        "The final model, or the results of batch inference, copied out of the region.",
    )


# Work that checkpoints keep: what `checkpoints.interval_hours` counts.
AT_WORK = frozenset((TimePartId.TRAINING_STEPS, TimePartId.EVALUATION, TimePartId.BESIDE_STEPS))
# What a run must do wherever it runs: the hours of work that a spot policy schedules.
RUN_WORK = AT_WORK | {TimePartId.CHECKPOINTS, TimePartId.FINAL_EXPORT}
# What keeps data, checkpoints and the disks of machines, and reads them.
STORAGE = frozenset(
    (
        *(CostId.SYSTEM_DISK, CostId.DATASET_STORAGE, CostId.DATASET_READS, CostId.DATASET_PACKING),
        *(CostId.DATASET_VOLUMES, CostId.DATASET_FILE_SYSTEM, CostId.CHECKPOINT_STORAGE),
    )
)
