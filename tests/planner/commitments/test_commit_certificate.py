"""Certificates of commitment answers: they hold, they are tight, and a change of any part is noticed."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.instances.commit import make_commit
from planner.commitments.certificate import build_certificate, write_certificate
from planner.commitments.model import CommitModel
from planner.commitments.solve import solve_commit
from planner.errors import InputError
from planner.plan.certificates import check_certificate
from tests.planner.commitments.commit_cases import random_model

Content = dict[str, Any]


def certified(model: CommitModel, gap: float = 1e-7) -> Content:
    content: Content = json.loads(json.dumps(build_certificate(model, solve_commit(model, gap=gap))))
    return content


@pytest.fixture(scope="module")
def sound() -> Content:
    """A question with two plans, spot, risk and an upfront limit."""
    model = make_commit(4, pools=3, scenarios=4, hours=30, two_rates=True)
    columns = tuple(replace(column, upfront_usd=100.0) for column in model.columns)
    return certified(replace(model, columns=columns, upfront_limit_usd=4000.0), gap=1e-3)


@pytest.mark.parametrize("seed", range(10))
def test_the_exact_figures_are_the_solver_s(seed: int) -> None:
    model = random_model(seed)
    solved = solve_commit(model, gap=1e-7)
    content = json.loads(json.dumps(build_certificate(model, solved)))
    assert check_certificate(content) == []
    assert content["objective"] == pytest.approx(solved.objective_usd, rel=1e-7, abs=1e-7)
    relaxed = replace(model, columns=tuple(replace(column, whole=False) for column in model.columns))
    lowest = solve_commit(relaxed, gap=1e-8, method="benders").bound_usd
    assert content["bound"] == pytest.approx(lowest, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_prices_a_billion_apart_are_no_obstacle(seed: int) -> None:
    model = make_commit(seed, pools=4, scenarios=4, hours=30)
    factor = np.array([1e-4, 1.0, 1e5, 30.0]).round(6)
    columns = tuple(
        c if c.pool is None else replace(c, cost_usd=c.cost_usd * factor[c.pool]) for c in model.columns
    )
    rate = (model.plan_rate_usd * factor).round(6)
    columns = tuple(replace(c, upper=c.upper * 1e5) if c.plan is not None else c for c in columns)
    hours = tuple(
        replace(block, spot_usd=None if block.spot_usd is None else (block.spot_usd * factor).round(6))
        for block in model.hours
    )
    on_demand = (model.on_demand_usd * factor).round(6)
    model = replace(model, on_demand_usd=on_demand, plan_rate_usd=rate, columns=columns, hours=hours)
    solved = solve_commit(model, gap=1e-5)
    assert solved.status == "optimal"
    content = build_certificate(model, solved)
    assert check_certificate(content) == []
    assert content["gap_ratio"] < 1e-4  # what whole units cost included


def test_a_realistic_certificate_holds(sound: Content) -> None:
    assert check_certificate(sound) == []
    assert sound["gap_ratio"] < 5e-3
    assert sound["upfront_multiplier"] > 0


def _column(content: Content, name: str, change: Callable[[float], float], *, at: int = 0) -> None:
    content["model"]["columns"][at][name] = change(content["model"]["columns"][at][name])


def _dearer(content: Content) -> None:
    _column(content, "cost_usd", lambda usd: usd + 1000, at=int(np.argmax(content["point"])))


def _less_demand(content: Content) -> None:
    for block in content["model"]["hours"]:
        block["demand_milli"] = [[max(0, units - 1000) for units in row] for row in block["demand_milli"]]


def _free_spot(content: Content) -> None:
    for block in content["model"]["hours"]:
        block["spot_micro_usd"] = [[0 for _ in row] for row in block["spot_micro_usd"]]


def _heavy_cut(content: Content) -> None:
    content["cuts"][0]["multiplier"] *= 2


def _wrong_price(content: Content) -> None:
    for cut in content["cuts"]:
        cut["prices"] = [[[value // 2 for value in row] for row in block] for block in cut["prices"]]


def _negative_price(content: Content) -> None:
    content["cuts"][0]["prices"][0][0][0] = -5


def _heavy_risk(content: Content) -> None:
    content["risk"][0] += 2 ** content["bits"]


TAMPERED: dict[str, Callable[[Content], object]] = {
    "a higher bound": lambda c: c.update(bound=c["bound"] + 1, gap_ratio=1 - (c["bound"] + 1) / c["objective"]),
    "a lower cost": lambda c: c.update(objective=c["objective"] - 1),
    "a smaller gap": lambda c: c.update(gap_ratio=0.0),
    "a dearer column": _dearer,
    "less demand": _less_demand,
    "spot for nothing": _free_spot,
    "a cut that weighs more": _heavy_cut,
    "other plan prices": _wrong_price,
    "a negative plan price": _negative_price,
    "scenarios that weigh more": _heavy_risk,
    "half a machine": lambda c: c["point"].__setitem__(0, 0.5),
    "more than may be bought": lambda c: c["point"].__setitem__(0, 1e6),
    "less than nothing": lambda c: c["point"].__setitem__(0, -1.0),
    "a negative multiplier": lambda c: c.update(upfront_multiplier=-1),
    "a tighter limit": lambda c: c["model"].update(upfront_limit_usd=10.0),
    "a pool that is not there": lambda c: c["model"]["columns"][0].update(pool=-1),
    "a block without rows": lambda c: c["model"]["hours"][0].update(demand_milli=[]),
    "a fraction of a dollar": lambda c: c["model"]["on_demand_micro_usd"].__setitem__(0, 1.5),
    "no columns": lambda c: c["model"].update(columns=[]),
    "no cuts": lambda c: c.update(cuts=[]),
    "a scenario too few": lambda c: c["model"]["probability"].pop(),
}  # fmt: skip


@pytest.mark.parametrize("what", TAMPERED)
def test_a_change_is_noticed(sound: Content, what: str) -> None:
    content = copy.deepcopy(sound)
    TAMPERED[what](content)
    assert content != sound
    assert check_certificate(content)


def test_the_checker_imports_no_solver(sound: Content, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(sound))
    code = (
        "import sys, json; from planner.plan.certificates import check_certificate as check;"
        f"assert check(json.load(open({str(tmp_path / 'c.json')!r}))) == [];"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('solvers', 'numpy', 'scipy', 'highspy')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_numbers_too_fine_for_a_certificate_are_refused(tmp_path: Path) -> None:
    model = make_commit(1, pools=2, scenarios=1, hours=5)
    model = replace(model, on_demand_usd=model.on_demand_usd + 1e-8)
    with pytest.raises(InputError, match="a price is not a whole number of 1/1000000"):
        write_certificate(tmp_path / "c.json", model, solve_commit(model))
    assert not list(tmp_path.iterdir())
