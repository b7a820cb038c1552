"""Energy and emissions of a plan: a part of it (`planner.plan.model`), by units in the key names."""

from __future__ import annotations

from planner.records import record


@record(frozen=True)
class CarbonLine:
    """One line of the plan in use: hours per instance, power of an instance, its data centre and its grid."""

    offer_id: str
    nodes: int
    hours_in_use: float
    node_w: float | None
    pue_ratio: float
    pue_basis: str
    grid_gco2e_per_kwh: float | None
    grid_year: int | None
    grid_basis: str
    energy_kwh: float | None
    operational_kgco2e: float | None
    embodied_kgco2e: float | None


@record(frozen=True)
class Carbon:
    """What the run draws and emits, expected and in an 80 % interval; None where unknown.

    `operational_kgco2e` is of the electricity, by location; limits, objectives and fronts count it alone.
    `embodied_kgco2e` is the share of making the machines, beside it: known for few types. `unknown` names what is.
    """

    energy_kwh: float | None
    energy_low_kwh: float | None
    energy_high_kwh: float | None
    operational_kgco2e: float | None
    operational_low_kgco2e: float | None
    operational_high_kgco2e: float | None
    embodied_kgco2e: float | None
    limit_kgco2e: float | None
    lines: tuple[CarbonLine, ...]
    unknown: tuple[str, ...] = ()
