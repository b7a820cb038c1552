"""The search for wrong answers: every family runs, and a disagreement is reported and fails."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import brute_force
from benchmarks.seed_record import Tried, joined, load_record, save_record
from planner.fleet.chance import Progress
from planner.fleet.luck import Luck
from tests.remembered_chances import remembered_chance


def test_every_family_runs() -> None:
    """With what stands beside its answers, as seed 0, and without."""
    families = [brute_force.Family(name, [(0, 2)]) for name in brute_force.CHECKS]
    assert not list(brute_force.search(families, 60.0))
    assert all(family.tried.ranges == ((0, 2),) and not family.wrong for family in families)


def test_a_disagreement_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(seed: int) -> None:
        assert seed % 3, "costs 2, not 1"

    monkeypatch.setattr("tests.planner.schedules.test_schedule.check_schedule", wrong)
    monkeypatch.setattr("sys.argv", ["brute_force", "--seeds", "5", "--family", "schedule"])
    assert brute_force.main() == 1
    out = capsys.readouterr().out
    assert "schedule: seed 3: AssertionError: costs 2, not 1" in out
    assert out.splitlines()[-1].split() == ["all", "5", "2", "0.0"]


def test_a_time_limit_that_may_have_passed_is_no_disagreement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A seed that fails as late as a time limit is not recorded, so that it is asked again, and does not fail."""
    now = [0.0]

    def late(seed: int) -> None:
        now[0] += 61.0 if seed == 1 else 0.2
        assert seed % 2 == 0, "dearer than the bound"

    monkeypatch.setattr("tests.planner.schedules.test_schedule.check_schedule", late)
    monkeypatch.setattr("benchmarks.brute_force.time.monotonic", lambda: now[0])
    monkeypatch.setattr(brute_force, "RECORD", tmp_path / "seeds.json")
    monkeypatch.setattr("sys.argv", ["brute_force", "--seeds", "3", "--family", "schedule", "--record"])
    assert brute_force.main() == 0
    known = load_record(brute_force.RECORD)["schedule"]
    assert (known.ranges, known.wrong) == (((0, 1), (2, 3)), ())
    assert (
        "schedule: seed 1: AssertionError: dearer than the bound (not told: 61 s" in capsys.readouterr().out
    )
    monkeypatch.setattr("sys.argv", ["brute_force", "--seeds", "4", "--family", "schedule", "--record"])
    assert brute_force.main() == 1  # and a seed that fails in time is a disagreement
    assert load_record(brute_force.RECORD)["schedule"].wrong == (3,)


def test_a_seed_that_works_long_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is slow and wrong on an idle machine would be left out of every run."""
    now = [0.0]

    def slow(seed: int) -> None:
        now[0] += 61.0
        assert seed, "dearer than the bound"

    monkeypatch.setattr("tests.planner.schedules.test_schedule.check_schedule", slow)
    monkeypatch.setattr("benchmarks.brute_force.time.monotonic", lambda: now[0])
    monkeypatch.setattr("benchmarks.brute_force.time.process_time", lambda: now[0])
    monkeypatch.setattr("sys.argv", ["brute_force", "--seeds", "2", "--family", "schedule"])
    assert brute_force.main() == 1
    assert "not told" not in capsys.readouterr().out


def test_seeds_that_are_not_told_count_to_the_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]

    def late(seed: int) -> None:
        now[0] += 61.0
        raise AssertionError

    monkeypatch.setattr("tests.planner.schedules.test_schedule.check_schedule", late)
    monkeypatch.setattr("benchmarks.brute_force.time.monotonic", lambda: now[0])
    monkeypatch.setattr("benchmarks.brute_force.time.process_time", lambda: now[0] / 4)
    monkeypatch.setattr(
        "sys.argv", ["brute_force", "--seeds", "99", "--family", "schedule", "--cpu-limit", "20"]
    )
    assert brute_force.main() == 0
    assert capsys.readouterr().out.count("not told") == 2


def test_a_signal_ends_the_search_after_the_seed_that_is_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A check that is interrupted would be recorded as a disagreement."""

    def check(seed: int) -> None:
        if seed == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        assert seed <= 2

    monkeypatch.setattr("tests.planner.schedules.test_schedule.check_schedule", check)
    monkeypatch.setattr(brute_force, "RECORD", tmp_path / "seeds.json")
    monkeypatch.setattr("sys.argv", ["brute_force", "--seeds", "10", "--family", "schedule", "--record"])
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert brute_force.main() == 0
    assert load_record(brute_force.RECORD)["schedule"].ranges == ((0, 3),)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_recorded_seeds_are_left_out_and_add_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []
    monkeypatch.setattr("tests.planner.schedules.test_schedule.check_schedule", asked.append)
    monkeypatch.setattr(brute_force, "RECORD", tmp_path / "seeds.json")
    save_record(brute_force.RECORD, {"schedule": Tried(((3, 5), (8, 30)), (4,), 1.5)})
    words = ["brute_force", "--seeds", "10", "--start", "1", "--family", "schedule", "--record"]
    monkeypatch.setattr("sys.argv", words)
    assert brute_force.main() == 0  # what was wrong before is no disagreement of this run
    assert asked == [1, 2, 5, 6, 7]
    known = load_record(brute_force.RECORD)
    assert known["schedule"].ranges == ((1, 30),) and known["schedule"].wrong == (4,)
    assert {*known} == {"schedule"}  # of others nothing is known
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "29", "1", "1.5"]


@pytest.mark.parametrize(
    ("ranges", "one"),
    [
        ([(5, 9), (0, 3), (3, 4)], ((0, 4), (5, 9))),
        ([(0, 10), (2, 4)], ((0, 10),)),
        ([(2, 2)], ()),
    ],
)
def test_ranges_are_joined(ranges: list[tuple[int, int]], one: tuple[tuple[int, int], ...]) -> None:
    assert joined(ranges) == one
    asked = {seed for first, end in Tried(one).missing(0, 12) for seed in range(first, end)}
    assert asked == {seed for seed in range(12) if not any(a <= seed < b for a, b in ranges)}


def test_a_remembered_chance_is_that_of_the_same_fleet() -> None:
    """Asked again it is the same; any other rate, luck, number of workers or hours is another question."""
    luck = Luck(np.ones(1), np.full((1, 1), 0.7), np.full((1, 1), 0.5))
    one = np.ones(1)
    fleet = Progress(one, 1e6 * one, 2.0 * one, 0.1 * one, count=2.0 * one, luck=luck)
    others = (
        fleet, replace(fleet, rate=3.0 * one), replace(fleet, luck=replace(luck, up=np.full((1, 1), 0.9))),
        replace(fleet, luck=None), replace(fleet, count=8.0 * one), replace(fleet, run_units=1.0),
        replace(fleet, levels=((0.5, one), (0.5, 4.0 * one))),
    )  # fmt: skip
    remembered = remembered_chance()
    for _ in range(2):
        found = [remembered(other, hours, 9.0) for other in others for hours in (6.0, 8.0)]
        assert found == [other.chance(hours, 9.0) for other in others for hours in (6.0, 8.0)]
    assert len(set(found)) == len(found)
