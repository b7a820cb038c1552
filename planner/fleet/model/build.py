"""The fleet: an integer mix of offers that together do the work in time, at least cost.

    minimise   sum_o (fixed_o x_o + v_o b_o) + sum_r region_cost_r y_r
    subject to the constraint families of `families.py`
               0 <= x_o <= u_o, whole;  0 <= b_o <= x_o;  y_r binary

Where workers are used in full (no `fixed_cost_usd`), b_o is x_o and fixed_o their whole cost.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from catalogs.tables.table import Ints
from planner.fleet.model.families import FAMILIES
from planner.fleet.model.prepared import Busy, FleetModel, Prepared, Switch, Total, prepare
from planner.fleet.question import FleetInput
from solvers.problem.milp import Milp, MilpBuilder
from solvers.problem.solution import Solution

HAIR = 1e-5  # of the requirement; the most that a solver's division of work is mended by


def build_fleet(fleet: FleetInput, *, prepared: Prepared | None = None, links: Ints | None = None) -> Milp:
    """Build the model of `fleet`.

    Args:
        fleet: the question.
        prepared: its prepared form where the caller has one (a known cost cap tightens the model).
        links: numbers of the kept offers whose own switch rows are wanted (see `regions`).

    Returns:
        The model; columns carry the offers' keys (`Switch` for opened regions, `Total` for the throughput).
    """
    offers = prepared or prepare(fleet)
    builder = MilpBuilder("fleet")
    x = builder.add_columns("x", offers.keys, cost=offers.usd("worker_usd"), upper=offers.upper, integer=True)
    busy = x
    if fleet.part_time:
        keys = [Busy(key) for key in offers.keys]
        busy = builder.add_columns("b", keys, cost=offers.usd("busy_usd"), upper=offers.upper)
    model = FleetModel(builder, offers, x, busy, np.zeros(0, dtype=np.int64) if links is None else links)
    for family in FAMILIES:
        family.add(model)
    return builder.build()


def solution_to_counts(solution: Solution) -> dict[Hashable, int]:
    """Return workers per offer key from a solution of `build_fleet`, offers used only."""
    return {
        key: round(value)
        for key, value in solution.x.items()
        if not isinstance(key, (Switch, Total, Busy)) and round(value) > 0
    }


def solution_to_busy(fleet: FleetInput, solution: Solution) -> dict[Hashable, float]:
    """Return the work per offer key (in workers used in full) from a solution of `build_fleet`, offers used only.

    A solver divides work to its own tolerance: each share is held to its workers, and where the work falls short by
    a hair all are raised in proportion.
    """
    known = set(fleet.keys)
    counts = {key: count for key, count in solution_to_counts(solution).items() if key in known}
    if not fleet.part_time:
        return {key: float(count) for key, count in counts.items()}
    busy = {key: min(max(solution.x.get(Busy(key), 0.0), 0.0), float(count)) for key, count in counts.items()}
    return raised(fleet, counts, busy)


def raised(
    fleet: FleetInput, counts: Mapping[Hashable, int], busy: dict[Hashable, float]
) -> dict[Hashable, float]:
    """Return `busy` with what is missing by a hair made up by workers with time left."""
    done = fleet.units(busy)
    room = fleet.units(counts) - done
    missing = fleet.required_throughput - float(done @ fleet.throughput)
    if not 0 < missing <= HAIR * fleet.required_throughput:
        return busy
    part = room * fleet.throughput * (done > 0)
    if float(part.sum()) < missing:
        return busy
    # in proportion to the work first (that moves no share), the rest where there is room
    more = np.minimum(done * missing / float(done @ fleet.throughput), room)
    left = missing - float(more @ fleet.throughput)
    if left > 0:
        spare = (room - more) * (done > 0)
        more += spare * min(1.0, left / max(float(spare @ fleet.throughput), 1e-300))
    return {key: value + float(more[fleet.keys.index(key)]) for key, value in busy.items()}
