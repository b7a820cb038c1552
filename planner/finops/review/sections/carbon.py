"""What did GPU use emit? An estimate from GPU-hours by accelerator and region, at an assumed draw."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from catalogs.tables.accelerators import load_accelerators
from planner.finops.review.inputs import Inputs
from planner.finops.review.model import Figure, Section, Table
from planner.finops.review.parts import figure, flagged, percent, ratio, table, withheld
from planner.finops.review.sections.units import gpu_sums
from planner.finops.units.names import provider_id
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tariffs.carbon import MaximumPower

TITLE = "What did GPU use emit?"
TOP = 20
_ESTIMATED = "estimated: paid hours at the draw of matrix work, yearly mean grids"


@record(frozen=True)
class Emitted:
    """GPU-hours of one accelerator in one region, with kWh and kgCO2e as low, middle, high; None where unknown."""

    provider: str
    region: str
    accelerator: str
    hours: float
    kwh: tuple[float, float, float] | None
    kg: tuple[float, float, float] | None
    basis: str


def build(inputs: Inputs) -> Section | None:
    """Energy and emissions of GPU-hours, and the share not mapped; None where none names a known accelerator."""
    found = _uses(inputs)
    hours = sum(one.hours for one in found)
    if all(one.kwh is None for one in found):
        return None
    status, reason = inputs.gate.status("carbon_kgco2e")
    if status == "withheld":
        return withheld("carbon", TITLE, reason)
    mapped = [one for one in found if one.kg is not None]
    figures = tuple(_figures(inputs, found, mapped, hours))
    tables = tuple(one for one in (_table(mapped),) if one.rows)
    return Section("carbon", TITLE, _sentences(found, mapped, hours), figures, tables)


def estimate(provider: str, region: str, chip: str, hours: float) -> Emitted:
    """What GPU-hours draw and emit.

    Args:
        provider: the catalogue's id of the provider, empty where unknown.
        region: as the bill names it.
        chip: an accelerator id, or a chip that several ids begin with; empty where unknown.
        hours: paid GPU-hours.
    """
    from catalogs.tariffs.carbon import load_carbon

    tables = load_carbon()
    power, grid, overhead = _power(chip), tables.grid(provider, region), tables.overhead(provider)
    if power is None:
        return Emitted(provider, region, chip, hours, None, None, "")
    figures = {name: draw.levels for name, draw in tables.draws.items()}
    kwh = [
        hours * pue / 1000.0 * (
            power.watts * figures["compute"][level] * (1.0 + figures["overhead_ratio"][level])
            + figures["vcpus_per_accelerator"][level] * figures["host_w_per_vcpu"][level]
        )
        for level, pue in enumerate((overhead.low, overhead.pue, overhead.high))
    ]  # fmt: skip
    energy = (kwh[0], kwh[1], kwh[2])
    if grid is None:
        return Emitted(provider, region, chip, hours, energy, None, "")
    per_kwh = grid.gco2e_per_kwh / 1000.0
    kg = (
        kwh[0] * per_kwh / grid.spread_ratio,
        kwh[1] * per_kwh,
        kwh[2] * per_kwh * grid.spread_ratio,
    )
    return Emitted(provider, region, chip, hours, energy, kg, f"{grid.basis}, {grid.year}")


def _power(chip: str) -> MaximumPower | None:
    """Rated power of an accelerator; of a chip without its form the highest of its forms."""
    from catalogs.tariffs.carbon import load_carbon

    exact = load_carbon().maximum_power(chip)
    if exact is not None or not chip:
        return exact
    alike = [str(name) for name in load_accelerators()["accelerator"] if str(name).startswith(f"{chip}-")]
    known = [power for name in alike if (power := load_carbon().maximum_power(name)) is not None]
    return max(known, key=lambda power: power.watts) if known else None


def _uses(inputs: Inputs) -> list[Emitted]:
    """GPU-hours of the month by accelerator and region, the most emitting first, then the unmapped."""
    sums: dict[tuple[str, str, str], float] = defaultdict(float)
    for (provider, region, chip), hours in gpu_sums(inputs).places.items():
        sums[provider_id(provider), region, chip] += hours
    emissions = [estimate(*key, hours) for key, hours in sums.items() if hours > 0]
    return sorted(
        emissions,
        key=lambda one: (-(one.kg or (0.0, 0.0, 0.0))[1], one.provider, one.region, one.accelerator),
    )


def _figures(inputs: Inputs, emissions: list[Emitted], mapped: list[Emitted], hours: float) -> list[Figure]:
    kwh = [one.kwh for one in emissions if one.kwh is not None]
    kg = [one.kg for one in mapped if one.kg is not None]
    lacking = "no GPU-hour of the month names an accelerator and a region whose power and grid are known"
    share = ratio(sum(one.hours for one in mapped), hours)
    mapped_share = figure(inputs, "carbon_mapped_ratio", "GPU-hours that are mapped", share, "ratio")
    values = [
        ("carbon_energy_kwh", "Energy, kWh", sum(one[1] for one in kwh) if kwh else None),
        ("carbon_kgco2e", "Emissions, kgCO2e", sum(one[1] for one in kg) if kg else None),
        ("carbon_low_kgco2e", "Emissions, low", sum(one[0] for one in kg) if kg else None),
        ("carbon_high_kgco2e", "Emissions, high", sum(one[2] for one in kg) if kg else None),
    ]
    figures = [
        flagged(figure(inputs, key, label, value, "quantity", lacking=lacking), _ESTIMATED)
        for key, label, value in values
    ]
    return [*figures, mapped_share]


def _table(mapped: list[Emitted]) -> Table:
    rows = [
        (one.provider, one.region, one.accelerator, one.hours, *((one.kwh or (None, None))[1:2]),
         *((one.kg or (None, None))[1:2]), one.basis.replace("_", " "))
        for one in mapped[:TOP]
    ]  # fmt: skip
    return table(
        "carbon_places", "Estimated energy and emissions by accelerator and region",
        [("provider", "Provider", "text"), ("region", "Region", "text"), ("accelerator", "Accelerator", "text"),
         ("hours", "GPU-hours", "hours"), ("kwh", "kWh", "quantity"), ("kgco2e", "kgCO2e", "quantity"),
         ("grid", "Grid", "text")], rows,
        f"{len(mapped) - TOP:,} more are not listed." if len(mapped) > TOP else "",
    )  # fmt: skip


def _sentences(emissions: list[Emitted], mapped: list[Emitted], hours: float) -> tuple[str, ...]:
    """The estimate with its interval, what it rests on, and what is left out with its share."""
    said = []
    if mapped:
        low, middle, high = (sum(one.kg[at] for one in mapped if one.kg) for at in range(3))
        said.append(
            f"Estimated {middle:,.0f} kgCO2e ({low:,.0f} to {high:,.0f}) of the electricity: paid GPU-hours at the "
            "draw of matrix work, yearly mean grids by location, no embodied carbon (docs/carbon.md)."
        )
    left = [one for one in emissions if one.kg is None]
    for named, unmapped in (
        ("accelerator of known power", [one for one in left if one.kwh is None]),
        ("region of a known grid", [one for one in left if one.kwh is not None]),
    ):
        if unmapped:
            share = percent(ratio(sum(one.hours for one in unmapped), hours))
            said.append(f"{share} of the GPU-hours name no {named}: emissions leave them out.")
    return tuple(said)
