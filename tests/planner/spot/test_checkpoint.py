"""Checkpoint intervals on spells drawn with a constant hazard: the exact form, and how little Young's rule loses."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.spot_checkpoint import kept_ratio, spread, up_spells, useful_ratio
from planner.spot.generate import CALM, generate_traces
from planner.spot.hazards import make_table
from planner.spot.hazards_cells import N_AGES
from planner.spot.policy.job import SpotZone
from planner.spot.renewal import young_interval_hours

SPELLS = np.random.default_rng(0).exponential(3.0, 20_000)


@pytest.mark.parametrize("minutes", [1.0, 3.0, 10.0])
@pytest.mark.parametrize("restart", [0.0, 0.2, 0.4])
def test_the_exact_form_is_the_share_that_is_kept(minutes: float, restart: float) -> None:
    write = minutes / 60.0
    for interval in (0.3, 1.0, 3.0):
        said = float(useful_ratio(interval, write, restart, 3.0))
        kept = float(kept_ratio(SPELLS, interval, write, restart)[0])
        assert kept == pytest.approx(said, abs=0.01)


@pytest.mark.parametrize("minutes", [1.0, 3.0, 10.0])
def test_young_loses_little_against_the_best_interval(minutes: float) -> None:
    write, grid = minutes / 60.0, np.geomspace(0.05, 12.0, 60)
    kept = kept_ratio(SPELLS, [float(young_interval_hours(write, 3.0)), *grid], write, 0.2)
    assert kept[0] >= 0.98 * kept.max()
    assert kept_ratio(SPELLS, 6.0, write, 0.2)[0] < 0.9 * kept[0]


def test_up_spells_of_a_generated_zone_have_the_table_s_mean() -> None:
    table = make_table(np.full(N_AGES, 0.5), np.full(N_AGES, 1.0), (0.0, 0.0), 0.0, "flat")
    zone = SpotZone("us-west-2a", "us-west-2", "p3.2xlarge", 1.0)
    (made,) = generate_traces([zone], {zone.name: table}, 3000.0, weather=CALM)
    spells = up_spells(made)
    assert spells.mean() == pytest.approx(2.0, rel=0.1)
    assert spread(spells, 0.1).mean() == pytest.approx(spells.mean(), rel=0.01)
