"""The precision of a training that states none: bf16, and fp16 where no machine that may compete has bf16.

Cards before Ampere (V100, T4, P100) multiply in fp16 but not in bf16. Whoever allows or owns only such cards means
fp16, as their launch scripts do; beside cards with bf16 the default stays, since fp16 needs its losses scaled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import distinct_values
from planner.candidates.limits import mark_offers
from planner.inputs.view import with_defaults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Ints, Table
    from planner.asked.job import Job
    from planner.inputs.schema import Workload
    from planner.market.offers import OfferSet


def is_open(workload: Workload) -> bool:
    """Whether the precision of a training is left to the default; what also generates answers keeps bf16."""
    training = workload.training
    return training is not None and "precision" not in training.model_fields_set and training.rollouts is None


def as_admitted(workload: Workload, job: Job, offer_set: OfferSet) -> Workload:
    """The workload with fp16 as its default where no admitted offer has bf16 and one has fp16, else as it is.

    Args:
        workload: as stated.
        job: made of it.
        offer_set: what can be bought; filters that need no size, time or price decide what is admitted.
    """
    if not is_open(workload):
        return workload
    admitted = np.flatnonzero(mark_offers(offer_set, workload.constraints, job) == 0)
    return on_hardware(
        workload,
        offer_set.hardware,
        distinct_values(offer_set.hardware_of_type[offer_set.type_of_offer[admitted]]),
    )


def on_hardware(workload: Workload, hardware: Table, rows: Ints | Sequence[int]) -> Workload:
    """The workload as it runs on some rows of the hardware table: fp16 is its default where all lack bf16."""
    if not is_open(workload):
        return workload
    bf16, fp16 = (
        hardware.number(f"{name}_tflops")[np.asarray(rows, dtype=np.int64)] for name in ("bf16", "fp16")
    )
    if (bf16 > 0).any() or not (fp16 > 0).any():
        return workload
    changed: dict[str, Any] = {"training": with_defaults(workload.training, {"precision": "fp16"})}
    return workload.model_copy(update=changed)
