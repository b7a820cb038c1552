"""All constraints, in the order of reports, and the filter bits that follow from it.

First what the hardware cannot do, then what the user's file excludes, then the limits that a relaxation can move.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from planner.candidates.constraints import (
    budget,
    carbon,
    deadline,
    facts,
    machines,
    obtainable,
    places,
    quota,
    size,
    term,
    throughput,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.candidates.constraints.base import Constraint

CONSTRAINTS: list[Constraint] = [
    facts.PriceRefused(),
    facts.FirmPrice(),
    facts.DerivedPrice(),
    facts.InferenceOnly(),
    facts.UnknownPeak(),
    facts.Unmeasured(),
    facts.Precision(),
    facts.Fractional(),
    facts.Arm64(),
    carbon.UnknownCarbon(),
    places.Provider(),
    places.Region(),
    places.Residency(),
    places.Partition(),
    machines.PurchaseOption(),
    machines.Accelerator(),
    machines.InstanceType(),
    machines.SoftwareStack(),
    machines.LeastMemory(),
    facts.Memory(),
    facts.NoLayout(),
    facts.Network(),
    size.MaxNodes(),
    size.MaxAccelerators(),
    facts.Capacity(),
    facts.AllocationUnit(),
    obtainable.Obtainable(),
    term.Longest(),
    term.Term(),
    term.Ended(),
    quota.Quota(),
    throughput.LeastThroughput(),
    carbon.Carbon(),
    deadline.Deadline(),
    deadline.Unrecorded(),
    deadline.Confidence(),
    facts.NoDiscount(),
    budget.Budget(),
]
# A constraint's bit is its place in the list: one word per candidate tells all that remove it.
BIT: dict[str, int] = {item.id: 1 << place for place, item in enumerate(CONSTRAINTS)}
SHAPE_FILTERS: dict[str, str] = {reason: item.id for item in CONSTRAINTS for reason in item.reasons}


def constraint(name: str) -> Constraint:
    """The constraint called `name`."""
    return next(item for item in CONSTRAINTS if item.id == name)


@contextmanager
def registered(item: Constraint) -> Iterator[None]:
    """Add a constraint for a while, behind all others."""
    CONSTRAINTS.append(item)
    BIT[item.id] = 1 << (len(CONSTRAINTS) - 1)
    try:
        yield
    finally:
        CONSTRAINTS.remove(item)
        del BIT[item.id]
