"""Where the workers of a fleet read the data from, and what that costs each of them and each place.

The way of an offer is the cheapest that keeps the rule if the fleet were of that offer alone: as many workers as do all
of the work in time, each with an equal part of it. Copies on disks and volumes are each worker's, requests of streams
follow the work done, and workers of one place share the copy of the data set in its object store, a file system and the
packing of small files: these are paid once a place, until its last worker ends.

The model charges a place the least that any of its workers shares, and a worker an equal part of the rest, as if there
were the most workers allowed: never more than the plan then costs, and all of it where one worker is allowed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.market.pricing import HOURS_PER_MONTH
from planner.market.storage.stores import BLOCK, FILE_SYSTEM, LOCAL, OBJECT, PACKED, Gangs
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.asked.model import Asked
    from planner.candidates.model import Candidates
    from planner.market.model import Market


@record(frozen=True, eq=False)
class Kept:
    """What workers pay for the data, shape `(n_workers,)`.

    Attributes:
        code: of the way (`planner.market.storage.stores`); workers: of a fleet of the offer alone; part: most of all
            work that one worker does, 0..1.
        once_usd: once a worker; shared_usd: once a place; usd_per_unit: per token or sample; usd_per_hour: while the
            worker is there.
        alone_usd, alone_usd_per_hour: of the whole fleet of the offer alone, once and per hour that it is there.
    """

    code: Ints
    workers: Floats
    part: Floats
    once_usd: Floats
    shared_usd: Floats
    usd_per_unit: Floats
    usd_per_hour: Floats
    alone_usd: Floats
    alone_usd_per_hour: Floats

    def take(self, numbers: Ints) -> Kept:
        """Those of the workers `numbers`."""
        return Kept(*(getattr(self, name)[numbers] for name in self.__dataclass_fields__))

    def of_part(self, work: float, part: float | Floats) -> Kept:
        """The same of fleets that do `part` of all `work` and share nothing with others: requests follow the work."""
        return replace(self, alone_usd=self.alone_usd - self.usd_per_unit * work * (1.0 - part))


def kept_by(
    candidates: Candidates,
    at: Ints,
    units_per_hour: Floats,
    most_hours: Floats,
    most_workers: float,
) -> Kept:
    """Choose the way of each worker.

    Args:
        candidates: candidates of one run each.
        at: which of them are workers, shape `(n_workers,)`.
        units_per_hour: what one does, of the same shape.
        most_hours: from the begin of its work to the end of all work.
        most_workers: that may be used together.
    """
    market, work = candidates.context.market, work_units(candidates.context.asked)
    stores, rows, nodes, need_hours = (
        market.stores,
        candidates.offer[at],
        candidates.nodes[at],
        work / units_per_hour,
    )
    workers = np.maximum(np.ceil(need_hours / most_hours - 1e-9), 1.0)
    part = np.minimum(most_hours / need_hours, 1.0)
    lead = candidates.waiting_hours[at] + candidates.fixed_hours[at]
    step_s = candidates.shapes["step_time_s"][candidates.shape[at]]
    fleet = stores.choose(rows, nodes, step_s, lead + need_hours / workers, Gangs(workers, part))
    code, zero = fleet.code, np.zeros(len(at))
    each = np.isin(code, (LOCAL, BLOCK)) & stores.repeats  # else each copies its part of what is read once
    follows = np.isin(code, (LOCAL, OBJECT, PACKED, BLOCK)) & ~each
    packing = np.where(code == PACKED, stores.packing_usd, 0.0) if stores.active else zero
    monthly = fleet.usd_per_hour / workers / np.where(code >= FILE_SYSTEM, most_workers, 1.0)
    return Kept(
        code=code, workers=workers, part=part,
        once_usd=np.where(each, fleet.usd / workers, 0.0),
        shared_usd=np.where(code >= FILE_SYSTEM, fleet.usd, packing),
        usd_per_unit=np.where(follows, fleet.usd - packing, 0.0) / work,
        usd_per_hour=monthly, alone_usd=fleet.usd, alone_usd_per_hour=fleet.usd_per_hour,
    )  # fmt: skip


def kept_usd(kept: Kept, count: Floats, stay_hours: Floats, last_hours: Floats, *, repeats: bool) -> Floats:
    """What fleets of one offer each pay for their data, shape `(n_workers,)`.

    Volumes and copies are of each worker, a file system is of all until the last ends.

    Args:
        kept: what workers pay.
        count: workers of each fleet.
        stay_hours: from the start to the end of a worker, in the mean.
        last_hours: to the end of the last.
        repeats: whether the data are read more than once.
    """
    times = count / kept.workers
    copies = np.isin(kept.code, (LOCAL, BLOCK)) & repeats
    hours = np.where(
        kept.code == BLOCK, times * stay_hours, np.where(kept.code >= FILE_SYSTEM, last_hours, stay_hours)
    )
    return np.asarray(kept.alone_usd * np.where(copies, times, 1.0) + kept.alone_usd_per_hour * hours)


def work_units(asked: Asked) -> float:
    """Tokens or samples of all runs together."""
    fleet = asked.workload.fleet
    return asked.job.total_units * (1 if fleet is None else fleet.runs)


def copy_rate(market: Market, rows: Ints) -> Floats:
    """USD per hour of the copy of the data set that a place keeps, shape `(n,)`."""
    none, month = np.zeros(len(rows)), np.full(len(rows), HOURS_PER_MONTH)
    kept = market.costs.copy_usd(rows, month) - market.costs.copy_usd(rows, none)
    return np.asarray(kept / HOURS_PER_MONTH)
