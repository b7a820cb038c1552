"""Where the data, checkpoints and outputs of a fleet lie, line by line, with what else was priced and why not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.plan_parts.storage import (
    checkpoints_choice,
    data_choice,
    outputs_choice,
    usd_of,
)
from planner.fleet.stored import asked_of, stay_hours, ways_of, work_share
from planner.market.storage.stores import BLOCK, FILE_SYSTEM, LOCAL, NONE, OBJECT, PACKED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.candidates.model import Candidates
    from planner.fleet.mix import Mix
    from planner.market.storage.stores import Named
    from planner.plan.model import PlanLine
    from planner.plan.storage import StorageChoice


def storage_of(candidates: Candidates, mix: Mix, lines: Sequence[PlanLine]) -> tuple[StorageChoice, ...]:
    """Describe the storage of each line of a fleet.

    Args:
        candidates: candidates of one run each.
        mix: the workers chosen.
        lines: the lines of the plan, with their costs.
    """
    market, job, workers = candidates.context.market, candidates.context.asked.job, mix.workers
    out: list[StorageChoice | None] = []
    order = np.argsort(market.id_rank[workers.rows], kind="stable").tolist()
    for number, (at, line) in enumerate(zip(order, lines, strict=True)):
        row, stay = int(workers.rows[at]), float(stay_hours(mix)[at])
        if int(workers.store[at]) != NONE:
            out.append(_data(candidates, mix, at, number))
        kept = (int(mix.count[at]), stay)
        out.append(checkpoints_choice(job, market.stores, row, kept, line.costs, number))
        out.append(outputs_choice(job, market.stores, row, number))
    return tuple(choice for choice in out if choice is not None)


def _data(candidates: Candidates, mix: Mix, at: int, number: int) -> StorageChoice:
    """The ways judged for a fleet of the offer alone, priced for the workers of the line."""
    cell, every = asked_of(candidates, mix, at)
    here, stores = ways_of(candidates, mix, at), candidates.context.market.stores
    share = work_share(mix, at)
    priced = [
        (_bought(one, here[code], share), _usd(candidates, mix, at, here[code]))
        for code, one in every.items()
    ]
    return data_choice(stores, int(mix.workers.rows[at]), cell, priced, int(mix.workers.store[at]), number)


def _bought(judged: Named, here: Named, share: float) -> Named:
    """A way that keeps the rule or not as `judged`, of the sizes that are bought `here`, for a share of the work."""
    reads = here.way.reads * (share if here.code in (OBJECT, PACKED) else 1.0)
    return replace(judged, way=replace(judged.way, gib=here.way.gib, mb_s=here.way.mb_s, reads=reads))


def _usd(candidates: Candidates, mix: Mix, at: int, named: Named) -> float:
    """What the workers of a line pay for a way, were they alone at their place."""
    stores = candidates.context.market.stores
    hours = mix.ends_hours if named.code >= FILE_SYSTEM else stay_hours(mix)
    usd = usd_of(named.way, float(hours[at]))
    copied = named.code in (LOCAL, BLOCK)
    if named.code >= FILE_SYSTEM or (copied and stores.repeats):
        return usd
    packing = stores.packing_usd if named.code == PACKED else 0.0
    once = float(named.way.usd[0]) - packing
    return usd - once * (1.0 - work_share(mix, at))
