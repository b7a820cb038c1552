"""The search for wrong answers: every family runs, and a disagreement is reported and fails."""

from __future__ import annotations

import pytest

from benchmarks import brute_force


def test_every_family_runs() -> None:
    families = [brute_force.Family(name, 0) for name in brute_force.CHECKS]
    assert not list(brute_force.search(families, 1, 60.0))
    assert all(family.next_seed == 1 and not family.wrong for family in families)


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
