"""Energy and emissions of a fleet: its workers count as at work in all their paid hours of work."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from planner.candidates.carbon import GRAMS_PER_KG, HIGH, LOW, MID, Machines, draw_in
from planner.candidates.plan_parts.carbon import carbon_line, sum_of_lines
from planner.normal import Z80

if TYPE_CHECKING:
    from catalogs.tables.table import Floats
    from planner.candidates.model import Candidates
    from planner.fleet.mix import Mix
    from planner.fleet.workers import Workers
    from planner.plan.carbon import Carbon


def carbon_of(candidates: Candidates, mix: Mix, *, in_order: bool = False) -> Carbon:
    """Energy and emissions of the workers chosen, in the order of the plan's lines.

    The interval is that of power, speed and grids.

    Args:
        candidates: candidates of one run each.
        mix: the workers chosen.
        in_order: the plan's lines are in the order of the mix; else in that of their names.
    """
    context = candidates.context
    market, workers = context.market, mix.workers
    family = context.asked.job.model.family.value
    machines, nodes = context.power.take(workers.rows), workers.nodes * mix.count
    worked = mix.hours * workers.paid_ratio
    energies = [
        nodes * worker_kwh(machines, worked, workers.fixed_hours, family, level) for level in (LOW, MID, HIGH)
    ]
    by_name = np.argsort(market.id_rank[workers.rows], kind="stable")
    order = (np.arange(len(by_name)) if in_order else by_name).tolist()
    lines = tuple(
        carbon_line(
            market, int(workers.rows[at]), int(nodes[at]), float(workers.fixed_hours[at] + worked[at]),
            float(energies[MID][at]),
        )
        for at in order
    )  # fmt: skip
    low, middle, high = (float(kwh.sum()) for kwh in energies)
    slow = float((energies[MID] * np.exp(candidates.sigma[workers.at] * Z80)).sum())
    spread = math.hypot(math.log(high / low) / 2.0, math.log(slow / middle)) if low > 0 else 0.0
    return sum_of_lines(lines, spread, context.asked.workload.constraints.max_kgco2e)


def footprint_of_workers(candidates: Candidates, workers: Workers, hours: float, count: float) -> Footprint:
    """What `count` workers of one kind draw and emit in `hours` of work each; None where unknown.

    Args:
        candidates: candidates.
        workers: the kind of worker, one row.
        hours: of work.
        count: workers.
    """
    context = candidates.context
    machines, family = context.power.take(workers.rows), context.asked.job.model.family.value
    each = worker_kwh(machines, hours * workers.paid_ratio, workers.fixed_hours, family)
    kwh = float((workers.nodes * count * each)[0])
    kg = kwh * float(machines.grid[0]) / GRAMS_PER_KG
    return Footprint(None if math.isnan(kwh) else kwh, None if math.isnan(kg) else kg)


class Footprint(NamedTuple):
    """Expected energy in kWh and emissions in kgCO2e, by the names that summaries give them."""

    energy_kwh: float | None
    operational_kgco2e: float | None


def worker_kwh(machines: Machines, worked: Floats, setup: Floats, family: str, level: int = MID) -> Floats:
    """Energy of one instance of each worker in kWh: its paid hours of work and those of its setup."""
    work, idle = (np.full(len(worked), draw_in(phase, family, level)) for phase in ("compute", "setup"))
    return worked * machines.kwh_per_hour(work, level) + setup * machines.kwh_per_hour(idle, level)
