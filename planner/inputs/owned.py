"""Commitments that a workload owns: rules on them, and their ends, which not every question can plan with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.inputs.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.inputs.schema import Workload

_COMMITMENTS = ("reserved", "savings_plan", "cud", "capacity_block", "subscription", "dedicated", "owned")
_OF_ONE_RUN = (
    "is for runs from one start: {who}; leave `expires` out if it lasts until all is done, else leave out the "
    "commitment{other}"
)


def ending(workload: Workload, who: str, other: str = "") -> Iterator[Fault]:
    """Yield a fault for each commitment that ends, where its end cannot be planned with.

    Args:
        workload: the workload.
        who: why it cannot, such as `tasks of a pipeline start later`.
        other: what else to do, with its comma.
    """
    for index, owned in enumerate(workload.commitments):
        if owned.expires is not None:
            yield Fault(("commitments", index, "expires"), _OF_ONE_RUN.format(who=who, other=other))


def _are_commitments(workload: Workload) -> Iterator[Fault]:
    for index, owned in enumerate(workload.commitments):
        if not owned.purchase_option.startswith(_COMMITMENTS):
            text = f"'{owned.purchase_option}' is not a commitment; write reserved_1y, cud_3y, ..."
            yield Fault(("commitments", index, "purchase_option"), text)


RULES = ((("commitments",), _are_commitments),)
