"""Energy and emissions of the chosen candidate, line by line, with their interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.model import PurchaseOption
from catalogs.tariffs.carbon import load_carbon
from planner.candidates.carbon import HIGH, LOW, MID, WATTS_PER_KW, embodied_kg_per_hour
from planner.candidates.footprint import of_parts
from planner.normal import Z80
from planner.plan.carbon import Carbon, CarbonLine

if TYPE_CHECKING:
    from planner.candidates.model import Candidates, Part
    from planner.market.model import Market


def carbon_of(candidates: Candidates, at: int) -> Carbon:
    """Energy and emissions of candidate `at`, in its expected hours in use."""
    parts = candidates.parts(at)
    levels = [_energies(candidates, at, parts, level) for level in (LOW, MID, HIGH)]
    lines = tuple(
        carbon_line(candidates.context.market, part.row, part.nodes, part.paid_hours, kwh)
        for part, kwh in zip(parts, levels[MID], strict=True)
    )
    limit = candidates.context.asked.workload.constraints.max_kgco2e
    spread = math.log(sum(levels[HIGH]) / sum(levels[LOW])) / 2.0 if sum(levels[LOW]) > 0 else 0.0
    return sum_of_lines(lines, math.hypot(spread, float(candidates.sigma[at]) * Z80), limit)


def _energies(candidates: Candidates, at: int, parts: Sequence[Part], level: int) -> list[float]:
    """Energy of each part in kWh."""
    rows, nodes = (np.asarray([[getattr(part, name) for part in parts]]) for name in ("row", "nodes"))
    paid = np.asarray([[part.paid_hours for part in parts]])
    found: list[float] = of_parts(candidates, np.asarray([at]), rows, nodes, paid, level)[0][0].tolist()
    return found


def carbon_line(market: Market, row: int, nodes: int, hours: float, kwh: float) -> CarbonLine:
    """What `nodes` instances of an offer draw and emit in `hours` of use each.

    Args:
        market: the offers.
        row: the offer.
        nodes: instances.
        hours: in use, per instance.
        kwh: energy of all of them; NaN where unknown.
    """
    offers, kind = market.offer_set.offers, int(market.offer_set.type_of_offer[row])
    provider, machine = str(offers["provider"][row]), str(offers["instance_type"][row])
    grid, overhead = market.offer_set.site(row)
    known = not math.isnan(kwh)
    accelerators = float(market.offer_set.types["accelerator_count"][kind])
    embodied = embodied_kg_per_hour(provider, machine, accelerators)
    used = nodes * hours
    return CarbonLine(
        offer_id=market.offer_set.offer_id(row), nodes=nodes, hours_in_use=hours,
        node_w=kwh / used / overhead.pue * WATTS_PER_KW if known and used > 0 else None,
        pue_ratio=overhead.pue, pue_basis=overhead.confidence,
        grid_gco2e_per_kwh=None if grid is None else grid.gco2e_per_kwh,
        grid_year=None if grid is None else grid.year,
        grid_basis="unknown" if grid is None else grid.basis,
        energy_kwh=kwh if known else None,
        operational_kgco2e=kwh * grid.gco2e_per_kwh / 1000.0 if known and grid is not None else None,
        embodied_kgco2e=None if embodied is None else embodied * used,
    )  # fmt: skip


def sum_of_lines(lines: tuple[CarbonLine, ...], spread: float, limit: float | None) -> Carbon:
    """The lines together.

    Args:
        lines: of the plan.
        spread: half of the energy's 80 % interval, in the logarithm.
        limit: `constraints.max_kgco2e`.
    """
    energy = _sum([line.energy_kwh for line in lines])
    emitted = _sum([line.operational_kgco2e for line in lines])
    grid = 0.0
    if emitted:
        of_lines = [
            (line.operational_kgco2e or 0.0, load_carbon().spread_ratio(line.grid_basis)) for line in lines
        ]
        grid = math.log(sum(kg * ratio for kg, ratio in of_lines) / emitted)
    both = math.hypot(spread, grid)
    return Carbon(
        energy_kwh=energy, energy_low_kwh=_times(energy, -spread), energy_high_kwh=_times(energy, spread),
        operational_kgco2e=emitted, operational_low_kgco2e=_times(emitted, -both),
        operational_high_kgco2e=_times(emitted, both), embodied_kgco2e=_sum([line.embodied_kgco2e for line in lines]),
        limit_kgco2e=limit, lines=lines, unknown=_unknown(lines),
    )  # fmt: skip


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _times(value: float | None, log_ratio: float) -> float | None:
    return None if value is None else value * math.exp(log_ratio)


def _unknown(lines: tuple[CarbonLine, ...]) -> tuple[str, ...]:
    """What is not known of the lines, each once."""
    out: list[str] = []
    for line in lines:
        provider, region, _, machine, bought = line.offer_id.split("/")[:5]
        if line.grid_gco2e_per_kwh is None:
            missing = (
                "no figure published"
                if bought != PurchaseOption.OWNED.value
                else "not stated: grid, grid_gco2e_per_kwh of the machine"
            )
            out.append(f"grid intensity of {provider}/{region}: {missing}")
        if line.node_w is None and line.hours_in_use > 0:
            out.append(f"power of the accelerators of {machine}: no figure published")
        if line.embodied_kgco2e is None:
            out.append(f"embodied carbon of {provider} {machine}: no figure published, left out")
    return tuple(dict.fromkeys(out))
