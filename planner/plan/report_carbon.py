"""Energy and emissions of a plan as a section: sums with intervals, and each line with its grid."""

from __future__ import annotations

from planner.plan.carbon import Carbon, CarbonLine
from planner.plan.model import Plan
from planner.render.model import Column, Section, Unit, Value, facts, table_section
from planner.render.numbers import number
from planner.render.precision import figure, known_places
from planner.render.words import place

_LEFT_OUT = (
    "yearly means by location, of the electricity alone; not marginal, not market-based (docs/carbon.md)"
)


def carbon(plan: Plan) -> list[Section]:
    """Return what the run draws and emits, and where its figures come from."""
    footprint = plan.carbon
    if footprint is None:
        return []
    rows: list[tuple[str, str, Value, Unit, str]] = [
        ("energy", "energy", footprint.energy_kwh, "number", _interval(_energy(footprint), "kWh")),
        ("emissions", "emissions", footprint.operational_kgco2e, "number", emissions(footprint)),
    ]
    if footprint.embodied_kgco2e is not None:
        text = f"{number(footprint.embodied_kgco2e)} kgCO2e of making the machines, beside the emissions"
        rows.append(("embodied", "embodied", footprint.embodied_kgco2e, "number", text))
    sums = facts("carbon", "Energy and carbon", rows, detail=True)
    columns = (
        Column("offer", "line", "text"), Column("hours", "h in use", "hours"), Column("node_w", "W per node", "count"),
        Column("pue", "PUE", "text"), Column("grid", "gCO2e/kWh", "text"), Column("energy", "kWh", "count"),
        Column("kg", "kgCO2e", "number"),
    )  # fmt: skip
    lines: list[tuple[Value, ...]] = [
        (
            _place(line.offer_id), line.hours_in_use, None if line.node_w is None else round(line.node_w),
            f"{line.pue_ratio:g} {line.pue_basis}",
            _grid(line),
            None if line.energy_kwh is None else round(line.energy_kwh), line.operational_kgco2e,
        )
        for line in footprint.lines
    ]  # fmt: skip
    notes = (_LEFT_OUT, *footprint.unknown)
    table = table_section("carbon_lines", "Energy and carbon by line", columns, lines, notes, detail=True)
    return [sums, table]


def _grid(line: CarbonLine) -> str:
    if line.grid_gco2e_per_kwh is None:
        return "unknown"
    year = "" if line.grid_year is None else f", {line.grid_year}"
    return f"{number(line.grid_gco2e_per_kwh, 3)} ({line.grid_basis.replace('_', ' ')}{year})"


def _place(offer_id: str) -> str:
    provider, region, zone, machine, bought, *_ = offer_id.split("/")
    return f"{machine} {bought}, {place(provider, region, zone.strip('-'))}"


def _energy(carbon: Carbon) -> tuple[float | None, float | None, float | None]:
    return carbon.energy_kwh, carbon.energy_low_kwh, carbon.energy_high_kwh


def emissions(carbon: Carbon) -> str:
    """Return expected emissions of the electricity with their interval, and the limit where there is one."""
    values = (carbon.operational_kgco2e, carbon.operational_low_kgco2e, carbon.operational_high_kgco2e)
    limit = "" if carbon.limit_kgco2e is None else f"; limit {number(carbon.limit_kgco2e)}"
    return _interval(values, "kgCO2e") + limit


def _interval(values: tuple[float | None, float | None, float | None], unit: str) -> str:
    middle, low, high = values
    if middle is None or low is None or high is None:
        return "unknown"
    places = known_places(middle, (high - low) / 2.0)
    return f"{figure(middle, places)} {unit} (80 %: {figure(low, places)} to {figure(high, places)})"
