"""Evidence of users: own logs and traces stand above the public record; bands, prices and scores move the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from catalogs.tariffs import load_tariffs
from planner.errors import InputError
from planner.spot.generate import CALM, generate_traces
from planner.spot.hazards import load_hazards, make_table
from planner.spot.hazards_cells import N_AGES
from planner.spot.hazards_evidence import (
    model_from_files,
    read_preemption_log,
    table_from_prior,
    with_mean,
)
from planner.spot.policy.job import SpotZone
from tests.planner.spot.csv_log import csv_log_text

KNOWN = SpotZone("us-west-2a", "us-west-2", "p3.2xlarge", 0.9, "aws")
NEW = tuple(SpotZone(f"eu-west-1{c}", "eu-west-1", "p3.2xlarge", 0.9, "aws") for c in "ab")


def log(tmp_path: Path, *rows: str) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["start,end,reason,zone,instance_type", *rows]) + "\n")
    return path


def test_a_preemption_log_counts_ends_waits_and_runs_that_finished(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        "2026-11-01T00:00,2026-11-01T02:00,preempted,us-west-2a,p3.2xlarge",
        "2026-11-01T03:00,2026-11-01T08:00,finished,us-west-2a,p3.2xlarge",
        "2026-11-03T00:00,2026-11-03T00:30,Preempted,us-west-2a,p3.2xlarge",
    )
    (cell,) = read_preemption_log(path)
    assert cell.up_hours.sum() == pytest.approx(7.5)
    assert cell.downs.sum() == 2.0
    # one hour from the first preemption to the next start; nothing is known after the last one
    assert (cell.down_hours.sum(), cell.ups.sum()) == (pytest.approx(1.0), 1.0)
    assert (cell.provider, cell.region, cell.as_of) == ("aws", "us-west-2", "2026-11-01")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("2026-11-01T00:00,2026-10-01T00:00,preempted,us-west-2a,p3.2xlarge", "row 2"),
        ("yesterday,2026-10-01T00:00,preempted,us-west-2a,p3.2xlarge", "row 2"),
        ("2026-11-01T00:00,2026-11-02T00:00,preempted,,p3.2xlarge", "row 2"),
    ],
)
def test_a_broken_log_is_told(tmp_path: Path, row: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_preemption_log(log(tmp_path, row))


def test_many_preemptions_of_one_s_own_make_a_zone_riskier(tmp_path: Path) -> None:
    rows = [
        f"2026-11-{day:02}T{hour:02}:00,2026-11-{day:02}T{hour:02}:20,preempted,us-west-2a,p3.2xlarge"
        for day in range(1, 21)
        for hour in range(0, 24, 2)
    ]
    model = model_from_files([log(tmp_path, *rows)])
    assert model.table_for(KNOWN).mean_up_hours < 0.5 * load_hazards().table_for(KNOWN).mean_up_hours


def test_own_traces_of_a_hundred_hours_stand_alone(tmp_path: Path) -> None:
    scarce = make_table(np.full(N_AGES, 2.0), np.full(N_AGES, 0.2), (0.0, 0.0), 1.0, "scarce")
    for hours, mixed in ((40, True), (400, False)):
        made = generate_traces([KNOWN], {KNOWN.name: scarce}, hours, weather=CALM)
        (tmp_path / "own.csv").write_text(csv_log_text(made), encoding="utf-8")
        model = model_from_files([tmp_path / "own.csv"])
        table = model.table_for(KNOWN)
        assert (table.hours_seen > hours + 1) == mixed
        assert table.availability_ratio < load_hazards().table_for(KNOWN).availability_ratio
        assert model.table_for(NEW[0]).hours_seen > 0, "other zones keep the public record"


def test_a_band_has_the_rate_and_wait_of_the_tariff_table() -> None:
    tariffs = load_tariffs()
    tables = []
    for band in ("<5%", ">20%"):
        prior = tariffs.interruption_prior("aws", "g5", "a10g-24gb", band)
        table = table_from_prior(prior, 4)
        assert 1.0 / table.mean_up_hours == pytest.approx(prior.gang_rate_per_hour(4), rel=1e-3)
        assert table.mean_down_hours == pytest.approx(prior.gang_wait_hours(4), rel=1e-3)
        assert prior.basis in table.source
        tables.append(table)
    assert tables[0].mean_up_hours > tables[1].mean_up_hours
    assert tables[0].frailty_sd_down > load_hazards().table_for(KNOWN).frailty_sd_down


@pytest.mark.parametrize("mean", [0.05, 1.0, 40.0])
def test_a_shape_is_moved_to_a_mean(mean: float) -> None:
    table = load_hazards().table_for(KNOWN)
    moved = make_table(with_mean(table.down_per_hour, mean), table.up_per_hour, (0.0, 0.0), 0.0, "")
    assert moved.mean_up_hours == pytest.approx(mean, rel=1e-6)
