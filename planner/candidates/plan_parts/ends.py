"""What ends before a slow run does, and own machines that no run on them alone would finish on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.registry import BIT, CONSTRAINTS
from planner.candidates.in_time import chance_in_time
from planner.candidates.model import SINGLE
from planner.candidates.plan_parts.summary import after_hours
from planner.market.ends import owned_hours
from planner.market.name_check import some_names
from planner.normal.arrays import normal_cdf
from planner.render.numbers import moment, percent, whole_percent
from planner.render.precision import dollars

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from catalogs.tables.table import Floats
    from planner.candidates.constraints.base import Constraint
    from planner.candidates.model import Candidates, Part

LEAST_CHANCE = 0.01  # of outlasting a commitment; less is not worth a line
_SHORT_OVERRUN_HOURS = 0.05
_DIGITS = 2
# Limits of a size, which another size keeps, what the workload itself excludes, and what other notes say.
_NOT_REASONS = frozenset(
    {
        "provider", "region", "residency", "purchase_option", "accelerator", "instance_type", "precision", "memory",
        "layout", "network", "max_nodes", "max_accelerators", "capacity", "allocation_unit",
    }
)  # fmt: skip


def end_warnings(candidates: Candidates, at: int) -> tuple[str, ...]:
    """What candidate `at` may outlive, and why own machines that it leaves idle do not suffice."""
    parts = candidates.parts(at)
    return (
        *_outlived_blocks(candidates, at, parts),
        *_outlived_own(candidates, at, parts),
        *_too_slow(candidates, parts),
    )


def _outlived_blocks(candidates: Candidates, at: int, parts: Sequence[Part]) -> Iterator[str]:
    """Blocks that end before the run may, how likely that is, and which length would do."""
    offers = candidates.context.market.offer_set
    fixed, sigma = candidates.fixed_hours[at], candidates.sigma[at]
    for part in parts:
        sold = np.asarray(sorted(offers.rules[int(offers.rule_of_offer[part.row])].block_hours))
        if not len(sold) or not sigma > 0.0 or not np.isnan(offers.owned_share[part.row]):
            continue
        late = normal_cdf(-np.log(np.maximum(sold - fixed, 1e-12) / (part.paid_hours - fixed)) / sigma)
        bought = min(int(np.searchsorted(sold, part.paid_hours)), len(sold) - 1)
        more = part.billed_hours - sold[bought]
        if more < _SHORT_OVERRUN_HOURS:
            continue
        yield (
            f"the run outlives its block of {sold[bought]:,.0f} h with {whole_percent(late[bought])}: "
            f"{_rounded(more):,g} h of extension on average are in the cost, but whether the block can be extended "
            f"is known only then{_longer(candidates, at, part, sold[bought:], late[bought:])}"
        )


def _longer(candidates: Candidates, at: int, part: Part, sold: Floats, late: Floats) -> str:
    """The shortest block that is long enough, and what it costs beyond the plan; "" where that one is bought.

    A longer block costs more on average by those of its hours that the run would not have had to buy.

    Args:
        candidates: all of them.
        at: the one planned.
        part: of it, bought as a block.
        sold: lengths in hours from that of the block bought on, shape `(n,)`.
        late: chance that the run outlives each, of the same shape.
    """
    confidence = candidates.context.asked.workload.constraints.deadline_confidence
    enough = np.flatnonzero(late <= 1.0 - confidence)
    if not len(enough) or not enough[0]:
        return ""
    unneeded = float((np.diff(sold) * (1.0 - late[:-1]))[: enough[0]].sum())
    offers, hours = candidates.context.market.offer_set, candidates.hours[[at]]
    each = float(offers.usd_during(np.asarray([part.row]), hours)[0]) * part.nodes
    return (
        f"; {sold[enough[0]]:,.0f} h, for {dollars(_rounded(each * unneeded), 0)} more on average, would hold "
        f"{100 * confidence:.3g} % of runs"
    )


def _outlived_own(candidates: Candidates, at: int, parts: Sequence[Part]) -> Iterator[str]:
    """Commitments of the plan that end before a slow run does."""
    offers, start = candidates.context.market.offer_set, candidates.context.dates.start
    left = owned_hours(offers, np.asarray([part.row for part in parts], dtype=np.int64), start)
    for part, hours in zip(parts, left.tolist(), strict=True):
        late = 1.0 - chance_in_time(candidates, np.asarray([at]), hours)[0] if np.isfinite(hours) else 0.0
        if late >= LEAST_CHANCE:
            yield outlasts(candidates, part.row, late, after_hours(candidates, at, part))


def outlasts(candidates: Candidates, row: int, late: float, after_hours: float) -> str:
    """That slow runs outlast a commitment of the user: how likely, and what of it is in the cost; instance-hours."""
    ends = moment(candidates.context.market.offer_set.own_ends[row].isoformat())
    cost = (
        f"{_rounded(after_hours):,g} instance-hours after it, the mean over all runs, are in the cost"
        if after_hours else "what is paid after it is not in the cost, for no price is known"
    )  # fmt: skip
    return (
        f"the owned commitment on {_type(candidates, row)} ends {ends}: a slow run outlasts it "
        f"({percent(late, 0)}); {cost}"
    )


def _too_slow(candidates: Candidates, parts: Sequence[Part]) -> Iterator[str]:
    """Own machines that the plan leaves idle, where they alone would do the job were it not for one limit."""
    offers, used = candidates.context.market.offer_set, {part.row for part in parts}
    own = np.flatnonzero((offers.owned_share == 0.0) | offers.offers.equals("purchase_option", "owned"))
    single = candidates.kind == SINGLE
    names: dict[str, set[str]] = {}
    for row in own.tolist():
        mine = np.flatnonzero(single & (candidates.offer == row))
        bits = candidates.bits[mine]
        if row in used or not len(mine) or not bits.all():
            continue
        alone = {
            item: float(candidates.hours[mine[bits == BIT[item.id]]].min())
            for item in CONSTRAINTS
            if item.id not in _NOT_REASONS and (bits == BIT[item.id]).any()
        }
        if alone:  # the size that is soonest done: others are slower still
            soonest = min(alone, key=lambda item: alone[item])
            why = _why(candidates, row, soonest, alone[soonest])
            names.setdefault(why, set()).add(_type(candidates, row))
    for why, of in names.items():
        yield f"own machines {some_names(of)} alone do not suffice: {why}"


def _why(candidates: Candidates, row: int, item: Constraint, hours: float) -> str:
    """Why runs on own machines of offer `row`, the shortest of so many hours, are not feasible."""
    ends = candidates.context.market.offer_set.own_ends.get(row)
    takes = f"a run takes {_rounded(hours):,g} h"
    if item.id == "ended" and ends is not None:
        return f"{takes}, and the commitment ends {moment(ends.isoformat())}"
    late = {
        "deadline": "too long for the deadline",
        "confidence": "in time, but not with the required probability",
    }
    return f"{takes} on average, {late[item.id]}" if item.id in late else item.words


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _type(candidates: Candidates, row: int) -> str:
    offers = candidates.context.market.offer_set
    return str(offers.types["instance_type"][offers.type_of_offer[row]])
