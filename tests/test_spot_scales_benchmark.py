"""The spread of the gang exponent is that of the zones, whatever the noise of their counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.fit_spot_scales import exponent_spread
from planner.spot.hazards import load_hazards
from planner.spot.hazards_cells import N_AGES, HazardCell

SHAPE = np.full(N_AGES, 0.5)
MODEL = next(cell for cell in load_hazards().cells if not cell.never_up)


def cells(exponents: np.ndarray, hours: float, rng: np.random.Generator) -> list[HazardCell]:
    """Zones at gangs 1, 4 and 16 whose hazard of leaving up is 0.5 gang^exponent, seen for `hours` at each."""
    out = []
    for zone, exponent in enumerate(exponents):
        for gang in (1, 4, 16):
            ends = np.zeros(N_AGES)
            ends[0] = rng.poisson(0.5 * hours * gang**exponent)
            seen = np.zeros(N_AGES)
            seen[0] = hours
            out.append(replace(MODEL, zone=str(zone), gang=gang, downs=ends, up_hours=seen))
    return out


@pytest.mark.parametrize("sd", [0.0, 0.2])
def test_the_spread_of_drawn_zones_is_found(sd: float) -> None:
    rng = np.random.default_rng(1)
    exponents = 0.15 + sd * rng.standard_normal(400)
    mean, spread, n = exponent_spread(cells(exponents, 200.0, rng), SHAPE, up=True)
    assert n == 400
    assert mean == pytest.approx(0.15, abs=0.03)
    assert spread == pytest.approx(sd, abs=0.03)


def test_zones_seen_at_one_gang_say_nothing_of_it() -> None:
    rng = np.random.default_rng(2)
    found = cells(np.asarray([0.1, 0.3]), 200.0, rng)
    lonely = [replace(found[0], zone="alone"), replace(found[3], zone="too")]
    assert exponent_spread([*found, *lonely], SHAPE, up=True) == exponent_spread(found, SHAPE, up=True)
