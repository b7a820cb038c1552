"""Records of pools that were never up, and gangs counted in accelerators."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from planner.spot.hazards import HazardModel, load_hazards
from planner.spot.hazards_cells import AGE_EDGES_HOURS, HazardCell
from planner.spot.hazards_evidence import model_from_files, with_own
from planner.spot.hazards_posterior import Belief, Count, closed_share, outlasts, zone_level
from planner.spot.policy.job import SpotZone

PLACE = SpotZone("us-west-2a", "us-west-2", "p3.2xlarge", 1.0, "aws", 4)


def never_up(hours: float, *, up_hours: float = 0.0) -> HazardCell:
    """A record of `hours` without capacity, behind one spell of `up_hours`."""
    width = np.append(np.diff(AGE_EDGES_HOURS), np.inf)
    down = np.clip(hours - AGE_EDGES_HOURS, 0.0, width)
    up, ends = np.zeros(len(width)), np.zeros(len(width))
    if up_hours:
        up[0], ends[0] = up_hours, 1.0
    return HazardCell(
        "aws",
        "us-west-2",
        "us-west-2a",
        "p3.2xlarge",
        4,
        up,
        ends,
        down,
        np.zeros(len(width)),
        "own",
        "2026-11",
    )


def with_record(cell: HazardCell) -> HazardModel:
    return with_own(load_hazards(), [cell])


def test_the_longer_a_pool_was_never_up_the_less_is_expected_of_it() -> None:
    said = [with_record(never_up(h)).table_for(PLACE).availability_ratio for h in (110.0, 240.0, 720.0)]
    assert said == sorted(said, reverse=True)
    assert said[-1] < 0.01, "66 % before the likelihood was exact"
    assert with_record(never_up(720.0)).table_for(PLACE).observed_ratio == 0.0


def test_a_pool_that_was_up_once_is_not_closed() -> None:
    key = ("aws", "p3.2xlarge", "4", "us-west-2", "us-west-2a")
    assert with_record(never_up(720.0)).sides["up"].closed[key] > 0.9
    seen = with_record(never_up(720.0, up_hours=1.0))
    assert key not in seen.sides["up"].closed
    once = seen.table_for(PLACE)
    assert once.availability_ratio > with_record(never_up(720.0)).table_for(PLACE).availability_ratio


def test_a_size_that_was_never_up_says_nothing_of_other_sizes_in_its_zone() -> None:
    whole = load_hazards()
    without = replace(whole, cells=tuple(c for c in whole.cells if c.instance_type != "p2.8xlarge"))

    def share(model: HazardModel, kind: str, zone: str) -> float:
        return model.table_for(SpotZone(zone, "us-west-2", kind, 1.0, "aws")).availability_ratio

    assert share(without, "p2.xlarge", "us-west-2b") < 0.01, "never up in 575 h"
    judged = share(without, "p2.8xlarge", "us-west-2b")
    assert judged == share(without, "p2.8xlarge", "us-west-2d") > 0.3, (
        "as a zone of the region without a record"
    )
    assert judged != share(without, "p2.8xlarge", "us-west-2a"), (
        "a zone that was up is a record of other sizes too"
    )


def test_a_zone_with_too_few_for_a_gang_is_a_record_of_other_sizes() -> None:
    model = load_hazards()
    scarce = {(c.region, c.zone) for c in model.cells if c.instance_type == "a3-highgpu-1g" and c.never_up}
    assert scarce, "up at smaller gangs"
    for region, zone in scarce:
        place = SpotZone(zone, region, "a3-highgpu-8g", 1.0, "gcp", 2, accelerators=8)
        assert model.table_for(place).availability_ratio < 0.05


def test_spells_met_at_a_random_moment_outlast_by_the_equilibrium_chance() -> None:
    shape = np.linspace(1.0, 0.1, len(AGE_EDGES_HOURS))
    t = np.linspace(0.0, 300.0, 600_001)
    hazard = shape[np.searchsorted(AGE_EDGES_HOURS, t, side="right") - 1] * np.exp(-0.5)
    survival = np.exp(-np.concatenate(([0.0], np.cumsum(hazard[:-1] * np.diff(t)))))
    for hours in (0.1, 2.0, 30.0):
        ahead = survival[t >= hours].sum() / survival.sum()
        assert outlasts(shape, np.asarray([-0.5]), hours)[0] == pytest.approx(ahead, rel=2e-3)


def test_many_ends_say_what_the_normal_form_says_and_few_say_more() -> None:
    shape, prior, drift = np.ones(len(AGE_EDGES_HOURS)), Belief(0.0, 0.36), 0.35
    many, _ = zone_level(prior, [Count(600.0, 300.0)], shape, drift)
    precision = 1.0 / (1.0 / 600.5 + drift**2)
    normal = np.log(600.5 / 300.5) * precision / (precision + 1.0 / 0.36)
    assert many.mean == pytest.approx(normal, abs=0.05)
    none, _ = zone_level(prior, [Count(0.0, 40.0)], shape, drift)
    assert none.mean < -1.0 < np.log(0.5 / 40.5) * 0.36 / (0.36 + 2.0 + drift**2), (
        "too little of no end at all"
    )


def test_a_closed_pool_is_believed_by_the_odds_and_opens_in_the_end() -> None:
    assert closed_share(0.1, 1.0, 0.0, 10.0) == pytest.approx(0.1), "what open pools show too says nothing"
    assert closed_share(0.1, 1e-3, 0.0, 10.0) == pytest.approx(0.1 / (0.1 + 0.9e-3))
    assert closed_share(0.1, 1e-3, 0.01, 1000.0) < closed_share(0.1, 1e-3, 0.0, 1000.0)


def test_a_probe_log_that_never_saw_capacity_rules(tmp_path: Path) -> None:
    start = datetime(2026, 10, 1, tzinfo=UTC)
    rows = [
        f"{(start + timedelta(hours=h)).isoformat()},aws,us-west-2,us-west-2a,p3.2xlarge,4,0"
        for h in range(721)
    ]
    header = "time,provider,region,zone,instance_type,gang,available"
    (tmp_path / "log.csv").write_text("\n".join([header, *rows]), encoding="utf-8")
    table = model_from_files([tmp_path / "log.csv"]).table_for(PLACE)
    assert table.observed_ratio == 0.0
    assert table.availability_ratio < 0.01


def test_gangs_of_other_sizes_are_judged_by_their_accelerators() -> None:
    model = load_hazards()

    def table(kind: str, gang: int, accelerators: int) -> tuple[float, float | None]:
        place = SpotZone("us-central1-b", "us-central1", kind, 1.0, "gcp", gang, accelerators=accelerators)
        found = model.table_for(place)
        return found.availability_ratio, found.observed_ratio

    sixteen = table("a3-highgpu-1g", 16, 1)
    assert table("a3-highgpu-8g", 2, 8) == pytest.approx(sixteen)
    assert table("a3-highgpu-4g", 4, 4) == pytest.approx(sixteen)
    assert table("a3-highgpu-8g", 4, 8)[0] < sixteen[0], "32 are scarcer than 16"
    assert table("a3-highgpu-8g", 2, 0)[0] > sixteen[0] + 0.1, "unknown sizes count as instances"
