"""Pools on commitments of the user: which of equal terms each is on, and how closely the hours after it are known."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from planner.judge.ends import alike_of

if TYPE_CHECKING:
    from datetime import datetime

    from planner.inputs.schema import Workload
    from planner.judge.purchases import Bought, Buy


def pairs_on(first: Buy, second: Buy, workload: Workload, start: datetime) -> list[tuple[int, int]]:
    """The commitments of equal terms that two pools may be on at once; none where they buy different offers."""
    if first.offer.offer_id != second.offer.offer_id:
        return []
    alike = alike_of(first.offer, workload, start)
    return [
        (a, b) for (a, held, _), (b, other, _) in product(alike, repeat=2)
        if first.nodes + (second.nodes if a == b else 0) <= held and second.nodes <= other
    ]  # fmt: skip


def known_after(part: Bought, ratio: float) -> Bought:
    """A purchase whose hours after the end of what the user owns are known as closely as the hours of the run.

    They are few, and change by an hour at most for each hour of the run.
    """
    slack = ratio * float(part.hours) * part.nodes
    charges = [replace(one, slack=slack) if one.id == "after_end" else one for one in part.charges]
    return replace(part, charges=tuple(charges))
