"""Cost lines of the data of a fleet, and the ways that each of its lines could have taken."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.market.storage import options
from planner.market.storage.lines import monthly_lines, packing_line, read_lines
from planner.market.storage.stores import BLOCK, FILE_SYSTEM, NONE, OBJECT, PACKED, Gangs

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.candidates.model import Candidates
    from planner.fleet.mix import Mix
    from planner.market.storage.stores import Named
    from planner.plan.model import CostLine


class Lines:
    """Cost lines of a mix's data, line by line: what a place shares is on its first line that uses it."""

    def __init__(self, candidates: Candidates, mix: Mix) -> None:
        """Take the workers chosen."""
        self._made, self._mix = candidates, mix
        self._stores = candidates.context.market.stores
        self._place = candidates.context.market.region_of_offer[mix.workers.rows]
        self._charged: set[tuple[int, int]] = set()

    def of(self, at: int) -> list[CostLine]:
        """Cost lines of line `at` of the mix; ask for each once, in the order of the plan."""
        stores, workers, code = self._stores, self._mix.workers, int(self._mix.workers.store[at])
        if code == NONE:
            return []
        row, place = int(workers.rows[at]), int(self._place[at])
        first = (place, code) not in self._charged
        self._charged.add((place, code))
        nodes = int(workers.nodes[at]) * int(self._mix.count[at])
        reads = stores.requests(nodes, code)
        if code >= FILE_SYSTEM:
            same = (self._place == place) & (workers.store == code)
            named = shared_system(self._made, self._mix, np.flatnonzero(same), code)
            hours = float(self._mix.ends_hours[same].max())
            return (
                [*read_lines(stores, row, reads), *monthly_lines(stores, row, named, hours)] if first else []
            )
        if code in (OBJECT, PACKED) or not stores.repeats:
            reads *= work_share(self._mix, at)
        out = read_lines(stores, row, reads)
        if code == PACKED and first:
            out.append(packing_line(stores))
        if code == BLOCK:
            named = ways_of(self._made, self._mix, at)[code]
            out += monthly_lines(stores, row, named, float(stay_hours(self._mix)[at]))
        return out


def work_share(mix: Mix, at: int) -> float:
    """Share of the work of the whole fleet that line `at` does, 0..1."""
    return float(mix.units[at] / mix.units.sum()) * mix.part


def stay_hours(mix: Mix) -> Floats:
    """Hours from the start until each line's workers end, in the mean of them, shape `(n_lines,)`."""
    return np.asarray(mix.workers.lead_hours + mix.hours, dtype=np.float64)


def ways_of(candidates: Candidates, mix: Mix, at: int) -> dict[int, Named]:
    """Every way by code at the workers that line `at` has, those of other lines left out."""
    return _ways(candidates, mix, at, float(mix.count[at]))[1]


def asked_of(candidates: Candidates, mix: Mix, at: int) -> tuple[options.Cell, dict[int, Named]]:
    """What a fleet of line `at`'s offer alone asks of storage, and every way by code: by these the way is chosen."""
    return _ways(candidates, mix, at, float(mix.workers.gang_workers[at]))


def _ways(candidates: Candidates, mix: Mix, at: int, count: float) -> tuple[options.Cell, dict[int, Named]]:
    workers, stores = mix.workers, candidates.context.market.stores
    gangs = Gangs(np.asarray([count]), mix.workers.gang_part[[at]])
    step_s = float(candidates.shapes["step_time_s"][candidates.shape[workers.at[at]]])
    cell, ways = stores.ways(int(workers.rows[at]), int(workers.nodes[at]), step_s, gangs)
    return cell, {one.code: one for one in ways}


def shared_system(candidates: Candidates, mix: Mix, lines: Ints, code: int) -> Named:
    """The file system that workers of a place share: for the data, and for what all of them read."""
    stores, first = candidates.context.market.stores, int(lines[0])
    cells = [_ways(candidates, mix, at, float(mix.count[at]))[0] for at in lines.tolist()]
    whole = np.asarray([sum(float(cell.nodes[0] * cell.need_mb_s[0]) for cell in cells)])
    cell = replace(cells[0], nodes=np.ones(1), need_mb_s=whole)
    return stores.bought(int(mix.workers.rows[first]), cell, code)
