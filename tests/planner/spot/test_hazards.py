"""Spell hazards by age: counting, shrinkage, fallbacks, gangs, and the file they are kept in."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.spot.generate import CALM, generate_traces
from planner.spot.hazards import HazardModel, fit_hazards, load_hazards, make_table, mean_spell_hours
from planner.spot.hazards_cells import (
    AGE_EDGES_HOURS,
    N_AGES,
    age_bucket,
    cell_of,
    count_spells,
    spell_age_ticks,
)
from planner.spot.policy.job import SpotZone
from planner.spot.trace import ZoneTrace

START = datetime(2026, 1, 1, tzinfo=UTC)


def zone(
    name: str = "us-west-2a", type_: str = "p3.2xlarge", gang: int = 1, provider: str = "aws"
) -> SpotZone:
    region = name[:-2] if provider == "gcp" else name[:-1]
    return SpotZone(name, region, type_, 1.0, provider, gang)


def trace(up: np.ndarray, name: str = "us-west-2a", type_: str = "p3.2xlarge", gang: int = 1) -> ZoneTrace:
    return ZoneTrace("aws", name[:-1], name, type_, gang, START, 0.1, up, np.full(len(up), np.nan))


def test_ages_count_the_present_tick_and_start_anew_with_every_spell() -> None:
    up = np.asarray([1, 1, 1, 0, 0, 1], dtype=bool)
    assert spell_age_ticks(up).tolist() == [1, 2, 3, 1, 2, 1]


def test_buckets_lie_between_the_ticks_of_a_tenth_of_an_hour() -> None:
    ages = np.arange(1, 2000) * 0.1
    assert (age_bucket(ages + 1e-7) == age_bucket(ages - 1e-7)).all()
    assert age_bucket(0.1) == 0
    assert age_bucket(1e6) == N_AGES - 1


@given(st.lists(st.booleans(), min_size=2, max_size=200))
def test_counts_are_the_hours_and_ends_of_the_record(seen: list[bool]) -> None:
    up = np.asarray(seen)
    up_hours, downs, down_hours, ups = count_spells(up, 0.1)
    assert downs.sum() == (up[:-1] & ~up[1:]).sum()
    assert ups.sum() == (~up[:-1] & up[1:]).sum()
    # every tick but the last is an exposure; a spell's last tick counts half
    ends = downs.sum() + ups.sum()
    assert up_hours.sum() + down_hours.sum() == pytest.approx(0.1 * (len(up) - 1) - 0.05 * ends)


@pytest.mark.parametrize("hazard", [0.05, 0.5, 4.0])
def test_a_constant_hazard_has_the_mean_of_an_exponential(hazard: float) -> None:
    assert mean_spell_hours(np.full(N_AGES, hazard)) == pytest.approx(1.0 / hazard)


def test_a_fit_to_generated_days_gives_the_hazards_back() -> None:
    table = load_hazards().table_for(zone("us-east-1c"))
    made = generate_traces(
        [zone("us-east-1c")], {"us-east-1c": table}, 8000, seed=3, weather=CALM, frailty=False
    )
    cell = cell_of(made[0])
    for ends, hours, truth in (
        (cell.downs, cell.up_hours, table.down_per_hour),
        (cell.ups, cell.down_hours, table.up_per_hour),
    ):
        # three standard errors of a Poisson count, in every bucket
        expected = hours * truth
        assert (np.abs(ends - expected) <= 3.5 * np.sqrt(expected) + 1.0).all()


def test_a_fitted_zone_keeps_its_own_level_and_a_new_one_takes_the_region_s() -> None:
    rng = np.random.default_rng(1)
    calm = np.repeat(rng.random(400) < 0.9, 12)
    wild = np.repeat(rng.random(1600) < 0.3, 3)
    model = fit_hazards([trace(calm, "us-west-2a"), trace(wild, "us-east-1a")])
    a, b = (model.table_for(zone(name)).availability_ratio for name in ("us-west-2a", "us-east-1a"))
    assert a > b + 0.2
    near_a, near_b = (model.table_for(zone(name)).availability_ratio for name in ("us-west-2z", "us-east-1z"))
    assert b < near_b < near_a < a, "shrunk between its region and everything"


def test_the_less_is_known_the_wider_the_frailty() -> None:
    model = load_hazards()
    known, region, family, provider, nothing = (
        model.table_for(one)
        for one in (
            zone(),
            zone("us-west-2z"),
            zone("us-west-2a", "p3.24xlarge"),
            zone("us-west-2a", "p5.48xlarge"),
            zone("nowhere-1a", "nd96", provider="azure"),
        )
    )
    for table, words in (
        (known, "zone us-west-2a"),
        (region, "region us-west-2"),
        (family, "family p3"),
        (provider, "prior of aws"),
        (nothing, "mean of everything"),
    ):
        assert words in table.source
    assert known.frailty_sd_down < region.frailty_sd_down < family.frailty_sd_down
    assert nothing.availability_ratio < known.availability_ratio
    assert nothing.hours_seen == 0.0 < known.hours_seen


def test_a_gang_between_two_that_were_seen_lies_between_them() -> None:
    model = load_hazards()
    low, middle, high = (
        model.table_for(zone("us-east5-a", "a3-highgpu-1g", gang, "gcp")) for gang in (8, 12, 16)
    )
    assert "x12 from x8 and x16" in middle.source
    for name in ("down_per_hour", "up_per_hour"):
        ends = np.sort([getattr(low, name), getattr(high, name)], axis=0)
        assert (getattr(middle, name) >= ends[0] - 1e-12).all()
        assert (getattr(middle, name) <= ends[1] + 1e-12).all()
    assert (
        model.table_for(zone("us-east5-a", "a3-highgpu-1g", 64, "gcp")).availability_ratio
        < high.availability_ratio
    )


def test_a_gang_far_from_those_seen_is_known_less_well() -> None:
    model = load_hazards()
    seen, beyond, farther = (
        model.table_for(SpotZone("us-west-2a", "us-west-2", "p2.8xlarge", 1.0, "aws", gang))
        for gang in (1, 8, 64)
    )
    for side in ("down", "up"):
        sds = [getattr(table, f"frailty_sd_{side}") ** 2 for table in (seen, beyond, farther)]
        step = (model.scales[side].gang_exponent_sd * np.log(8)) ** 2
        assert sds[1] - sds[0] == pytest.approx(step) and sds[2] - sds[0] == pytest.approx(4 * step)


def test_sixteen_are_scarcer_than_one() -> None:
    model = load_hazards()
    one, gang = (model.table_for(zone("europe-west1-c", "a3-highgpu-1g", g, "gcp")) for g in (1, 16))
    assert gang.availability_ratio < one.availability_ratio - 0.3


def test_a_trace_s_own_names_are_understood() -> None:
    model = load_hazards()
    plain = model.table_for(zone("us-west-2a"))
    assert (
        model.table_for(SpotZone("us-west-2a_v100_1", "us-west-2", "p3.2xlarge", 1.0)).source == plain.source
    )
    named = SpotZone("us-west1-b", "us-west1", "a3-highgpu-1g x16", 1.0, "gcp", 16)
    assert "a3-highgpu-1g x16, zone us-west1-b" in model.table_for(named).source


def test_a_model_is_the_same_after_saving(tmp_path: Path) -> None:
    model = load_hazards()
    model.save(tmp_path / "h.csv")
    again = HazardModel.load(tmp_path / "h.csv")
    assert len(again.cells) == len(model.cells)
    for one in (zone(), zone("us-west1-b", "a3-highgpu-1g", 16, "gcp")):
        np.testing.assert_allclose(
            again.table_for(one).down_per_hour, model.table_for(one).down_per_hour, rtol=1e-9
        )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("up_hours", "hours"), "there is no column 'up_hours'"),
        ((",p3.2xlarge,1,0,", ",p3.2xlarge,one,0,"), "row"),
        ((",0.15,", ",0.15,-"), "not negative"),
    ],
)
def test_a_broken_file_is_told(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    path = tmp_path / "h.csv"
    load_hazards().save(path)
    path.write_text(path.read_text().replace(*change, 1 if change[0] == "up_hours" else -1))
    with pytest.raises(InputError, match=words):
        HazardModel.load(path)


def test_given_tables_stand_above_counts() -> None:
    flat = make_table(np.full(N_AGES, 0.5), np.full(N_AGES, 0.5), (0.1, 0.1), 1.0, "mine")
    model = load_hazards().with_tables({"us-west-2a": flat})
    assert model.table_for(zone()).source == "mine"
    assert load_hazards().table_for(zone()).source != "mine"


def test_whether_a_family_was_recorded_is_known_without_its_table() -> None:
    """A plan asks it of every pool on offer, and tables are worked out where there is a record only."""
    model = load_hazards()
    types = {kind for _, kind in model._pools} | {"p3.other", "p4d.24xlarge x4", "g5", "unheard.of"}
    zones = [
        SpotZone("us-east-2a", "us-east-2", kind, 0.0, provider, gang=2)
        for kind in sorted(types)
        for provider in ("", "aws", "gcp", "nobody")
    ]
    given = model.with_tables({"us-east-2a": model.table_for(zones[0])})
    for one in (model, given, HazardModel((), model.scales, {})):
        assert [one.knows_family(zone) for zone in zones] == [one.table_for(zone).of_family for zone in zones]
    assert 0 < sum(model.knows_family(zone) for zone in zones) < len(zones)


def test_nothing_at_all_still_answers() -> None:
    table = fit_hazards([]).table_for(zone())
    assert "assumed" in table.source
    assert 0.0 < table.availability_ratio < 1.0
    assert len(AGE_EDGES_HOURS) == N_AGES
