"""The scorer's interface: dictionaries in, dictionaries out, from any folder and with nothing but numpy beside us."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.spot_policy import make_policy

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
