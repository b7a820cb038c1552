"""The grid and the overhead that a user states of their own machines (docs/carbon.md)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from catalogs.tariffs.carbon import Grid, Overhead, Site, load_carbon

STATED = "stated"
_SOURCE = "stated in the file of the machine"


def stated_site(
    values: Mapping[str, tuple[str, int]], texts: Mapping[str, str], numbers: Mapping[str, Decimal]
) -> tuple[Site | None, list[tuple[int, str]]]:
    """Where the machine draws its electricity; None where the file states neither grid nor PUE.

    What is not stated is that of the machine's provider and region, as for any offer.

    Args:
        values: fields as written, with their lines.
        texts: checked texts, with defaults.
        numbers: checked numbers, with defaults.
    """
    tables = load_carbon()
    provider, region = texts.get("provider", ""), texts.get("region", "")
    place, figure = values.get("grid", ("", 0)), values.get("grid_gco2e_per_kwh", ("", 0))
    if place[0] and figure[0]:
        return None, [(place[1], "grid: give either grid or grid_gco2e_per_kwh, not both")]
    grid: Grid | None = tables.grid(provider, region)
    if place[0]:
        grid = tables.grid_of(place[0])
        if grid is None:
            return None, [(place[1], f"grid: {place[0]!r} has no figure; {_remedy()}")]
    elif figure[0] and "grid_gco2e_per_kwh" in numbers:
        grid = tables.stated_grid(float(numbers["grid_gco2e_per_kwh"]), _SOURCE)
    overhead = tables.overhead(provider)
    if values.get("pue", ("", 0))[0] and "pue" in numbers:
        pue = float(numbers["pue"])
        overhead = Overhead(pue, pue, pue, STATED, _SOURCE)
    elif not (place[0] or figure[0]):
        return None, []
    return Site(grid, overhead), []


def _remedy() -> str:
    return (
        "name a region of the bundled data (gcp/europe-west3), a country that has a national mean "
        f"({', '.join(load_carbon().countries)}), or state grid_gco2e_per_kwh"
    )
