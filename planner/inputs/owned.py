"""Commitments that a workload owns: rules on them, and their ends as a later start sees them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from planner.inputs.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.inputs.schema import Workload

_COMMITMENTS = ("reserved", "savings_plan", "cud", "capacity_block", "subscription", "dedicated", "owned")
_LONGEST_HOURS = 1e6  # beyond a century nothing is planned


def has_ends(workload: Workload) -> bool:
    """Whether a commitment of the workload ends."""
    return any(owned.expires is not None for owned in workload.commitments)


def counted_from(workload: Workload, hours: float) -> Workload:
    """The workload with the ends of its commitments so many hours earlier: as a start so much later sees them."""
    from planner.inputs.checks import end_moment

    if not has_ends(workload) or hours <= 0:
        return workload
    sooner = timedelta(hours=min(hours, _LONGEST_HOURS))
    moved = tuple(
        owned
        if owned.expires is None
        else owned.model_copy(update={"expires": end_moment(owned.expires) - sooner})
        for owned in workload.commitments
    )
    return workload.model_copy(update={"commitments": moved})


def _are_commitments(workload: Workload) -> Iterator[Fault]:
    for index, owned in enumerate(workload.commitments):
        if not owned.purchase_option.startswith(_COMMITMENTS):
            text = f"'{owned.purchase_option}' is not a commitment; write reserved_1y, cud_3y, ..."
            yield Fault(("commitments", index, "purchase_option"), text)


RULES = ((("commitments",), _are_commitments),)
