"""What would be enough: how limits must change for a plan, or for a better one, in words and as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.plan.brief import Summary
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence


@record(frozen=True)
class Change:
    """How one limit must change; `limit` and `enough`: the two as numbers in its unit, None where it has none."""

    constraint: str
    current: str
    needed: str
    limit: float | None = None
    enough: float | None = None


@record(frozen=True)
class Relaxation:
    """The smallest change of one limit for a plan; `times`: needed / current of a far deadline, else None.

    `changes`: limit by limit; empty in answers saved before it was kept.
    """

    constraint: str
    current: str
    needed: str
    best: Summary | None
    note: str = ""
    times: float | None = None
    changes: tuple[Change, ...] = ()


def relaxation_of(changes: Sequence[Change], best: Summary | None, note: str = "") -> Relaxation:
    """The relaxation in which all of `changes` are made.

    Args:
        changes: of limits, of which one may have several (quotas).
        best: the best plan then, None where it is not known.
        note: what the limits mean.
    """
    return Relaxation(
        constraint=" and ".join(dict.fromkeys(change.constraint for change in changes)),
        current=" and ".join(change.current for change in changes),
        needed=" and ".join(change.needed for change in changes),
        best=best,
        note=note,
        changes=tuple(changes),
    )
