"""What advice keeps from one question to the next saves time and changes no answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.advice import hazards, kept
from planner.spot.policy import survival
from tests.conftest import Run
from tests.planner.advice.plans import state_values, write

TWO = [
    {"name": "us-east-2a", "available": True, "since": 1.5},
    {"name": "us-east-2b", "available": False, "since": 3},
]
STATES: list[dict[str, Any]] = [
    {},
    {"done_hours": 7.5, "now": 11},
    {"mode": "spot", "zone": "us-east-2a"},
    {"mode": "on_demand", "restart_left_hours": 0.1},
    {"now": 10, "zones": [{"name": "us-east-2a", "available": False, "since": 2}]},
    {"zones": TWO},
    {"zones": TWO, "mode": "spot", "zone": "us-east-2a", "now": 11},
    {"zones": [{**TWO[0], "history": [{"available": False, "hours": 5}]}]},
]


def _decisions(run_cli: Run, folder: Path) -> list[Any]:
    found = []
    for number, changes in enumerate(STATES):
        place = folder / str(number)
        place.mkdir(exist_ok=True)
        plan, state = write(place, state=state_values(**changes))
        result = run_cli("advise", plan, "--state", state, "--futures", "0", "-o", "json")
        assert result.code == 0, result.stderr
        found.append(json.loads(result.stdout))
    return found


def test_looked_up_solved_anew_and_damaged_copies_decide_alike(
    tmp_path: Path, run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(cache))
    anew = _decisions(run_cli, tmp_path)
    copies = sorted(cache.glob("spot-*"))
    assert {path.name.split("-")[1] for path in copies} == {"policy", "hazards"}
    with monkeypatch.context() as nothing_is_solved:
        for owner, name in ((survival, "Induction"), (survival, "PoolInduction"), (hazards, "as_planned")):
            nothing_is_solved.delattr(owner, name)
        assert _decisions(run_cli, tmp_path) == anew
    for path in copies:
        path.write_bytes(path.read_bytes()[:-40] + b"x" * 40)
    assert _decisions(run_cli, tmp_path) == anew
    monkeypatch.setenv(
        "PLANNER_CACHE_DIR", str(tmp_path / "0" / "plan.json")
    )  # no folder: nothing can be kept
    assert _decisions(run_cli, tmp_path) == anew


def test_other_rules_use_no_older_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path))
    assert kept.kept_values("key", lambda: [0.1, 2]) == [0.1, 2]
    assert kept.kept_values("key", lambda: [3]) == [0.1, 2]
    assert kept.kept_values("other", lambda: [3]) == [3]
    monkeypatch.setattr(kept, "_rules", lambda: b"a later version")
    assert kept.kept_values("key", lambda: [3]) == [3]


def test_the_oldest_copies_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path))
    for number in range(kept.MOST_COPIES + 3):
        kept.kept_values(number, lambda: 1)
    assert len(list(tmp_path.iterdir())) == kept.MOST_COPIES
