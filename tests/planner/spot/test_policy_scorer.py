"""The scorer's interface: dictionaries in, dictionaries out, from any folder and with nothing but numpy beside us."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.spot_policy import make_policy, plan
from planner.spot.policy.registry import POLICIES

FILE = Path(__file__).parents[3] / "benchmarks" / "spot_policy.py"


def job(*prices: float | None) -> dict[str, Any]:
    zones = [
        {"name": f"z{n}", "region": f"r{n}", "itype": "p3.2xlarge", "set": "any", "requested": 1}
        | ({} if price is None else {"price": price})
        for n, price in enumerate(prices)
    ]
    return {
        "work_h": 2.0,
        "deadline_h": 4.0,
        "restart_h": 0.2,
        "od_price": 3.0,
        "egress_usd": 0.1,
        "tick_h": 0.1,
        "utc_hour": 3.0,
        "zones": zones,
        "history": {zone["name"]: [1, 1, 0] for zone in zones},
    }


def state(*zones: tuple[bool, float], t_h: float = 0.0, mode: str = "idle") -> dict[str, Any]:
    seen = [
        {"name": f"z{n}", "region": f"r{n}", "available": up, "price": price, "since_h": 5.0}
        for n, (up, price) in enumerate(zones)
    ]
    return {
        "t_h": t_h,
        "done_h": 0.0,
        "mode": mode,
        "zone": None,
        "restart_left_h": 0.0,
        "region": None,
        "zones": seen,
    }


def test_it_takes_spot_waits_and_falls_back() -> None:
    decide = make_policy(job(0.9))
    assert decide(state((True, 0.9))) == {"mode": "spot", "zone": "z0"}
    assert decide(state((False, 0.9), t_h=1.8)) == {"mode": "od"}
    assert decide(state((False, 0.9), t_h=2.5, mode="od")) == {"mode": "od"}


def test_of_two_zones_it_takes_the_one_that_is_up() -> None:
    assert make_policy(job(0.9, 0.9))(state((False, 0.9), (True, 0.9))) == {"mode": "spot", "zone": "z1"}


def test_prices_may_be_seen_first_in_the_first_state() -> None:
    assert make_policy(job(None))(state((True, 0.9))) == {"mode": "spot", "zone": "z0"}
    assert make_policy(job(None))(state((True, 3.0)))["mode"] != "spot"


@pytest.mark.parametrize("name", ["uniform_progress", "on_demand"])
def test_another_policy_is_chosen_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPOT_POLICY", name)
    assert make_policy(job(0.9))(state((False, 0.9), t_h=1.0)) == {"mode": "od"}


def test_it_loads_as_a_file_from_anywhere_without_the_heavy_libraries(tmp_path: Path) -> None:
    code = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('policy', {str(FILE)!r})\n"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)\n"
        f"module.make_policy({job(0.9)!r})\n"
        "heavy = {'pandas', 'scipy', 'duckdb', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


UNKNOWN = float("nan")


@pytest.mark.parametrize("price", [0.9, 0.0, 5.0, UNKNOWN])
@pytest.mark.parametrize("zones", [1, 2])
def test_on_demand_for_nothing_is_taken_at_once_and_costs_nothing(price: float, zones: int) -> None:
    free = job(*[price] * zones) | {"od_price": 0.0}
    assert make_policy(free)(state(*[(True, price)] * zones)) == {"mode": "od"}
    told = plan(free)
    assert (told["cost_ratio"], told["cost_ratio_p10"], told["cost_ratio_p90"]) == (0.0, 0.0, 0.0)
    assert 0.0 <= told["p_meet_spot_only"] <= 1.0


def test_spot_for_nothing_is_taken_and_costs_nothing() -> None:
    assert make_policy(job(0.0))(state((True, 0.0))) == {"mode": "spot", "zone": "z0"}
    told = plan(job(0.0))
    assert told["cost_ratio_p10"] == 0.0
    assert told["cost_ratio"] <= 1.1


@pytest.mark.parametrize("price", [3.0, 5.0, UNKNOWN, -1.0])
def test_spot_that_saves_nothing_costs_what_on_demand_costs(price: float) -> None:
    assert make_policy(job(price))(state((True, price))) == {"mode": "od"}
    told = plan(job(price))
    assert told["cost_ratio"] == told["cost_ratio_p90"] == pytest.approx(1.1)  # one restart of 0.2 h in 2 h


def test_a_zone_without_a_price_does_not_blur_the_cost_of_the_other() -> None:
    told = plan(job(0.9, UNKNOWN))
    assert 0.3 <= told["cost_ratio_p10"] <= told["cost_ratio"] <= told["cost_ratio_p90"] < 1.3


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "on_demand"])
@pytest.mark.parametrize("zones", [1, 2])
def test_a_hole_in_the_prices_is_no_reason_to_leave(
    name: str, zones: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPOT_POLICY", name)
    runs = {"mode": "spot", "zone": "z0", "region": "r0", "done_h": 0.1}
    seen = state((True, UNKNOWN), *[(True, 0.9)] * (zones - 1), t_h=0.3) | runs
    assert make_policy(job(*[0.9] * zones))(seen) == {"mode": "spot", "zone": "z0"}


@pytest.mark.parametrize("name", ["uniform_progress", "greedy", "margin", "spot_only"])
def test_a_zone_whose_price_was_never_known_comes_last(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPOT_POLICY", name)
    decide = make_policy(job(UNKNOWN, 0.9))
    assert decide(state((True, UNKNOWN), (True, 0.9))) == {"mode": "spot", "zone": "z1"}
