"""Purchases that seldom lose: what they minimise, what the rule costs, and that a bent answer is found out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from catalogs.tables.table import Floats
from planner.commitments.avoid_loss import SHARES, avoid_loss, chance_of_loss, loss_of
from planner.commitments.model import CommitColumn, CommitModel, Hours, first_stage
from planner.commitments.recourse import Recourse
from planner.commitments.solve import solve_commit
from planner.inputs.commit_schema import Risk
from solvers.problem.solution import Termination
from tests.cli.test_commit import PLANS, write
from tests.conftest import CliResult
from tests.draws import share_of
from tests.planner.commitments.commit_cases import random_model

Run = Callable[..., CliResult]
RISK = Risk(weight=0.3, level=0.9, loss_price=2.0)


def weighed(model: CommitModel, x: Floats, risk: Risk) -> float:
    """Objective with the priced chance of a loss."""
    oracle, stage = Recourse(model), first_stage(model)
    recourse, nothing = oracle.evaluate(x).value, oracle.evaluate(np.zeros_like(x)).value
    chance = chance_of_loss(model, float(stage.cost @ x) + recourse, nothing, risk.loss_limit)
    return stage.objective(x, recourse) + risk.loss_price * chance * float(model.probability @ nothing)


@pytest.mark.parametrize("seed", range(share_of(40)))
def test_no_single_share_of_a_purchase_is_better(seed: int) -> None:
    model = random_model(seed)
    plain = solve_commit(model, gap=1e-6)
    found, ended = avoid_loss(model, plain, RISK)
    best = weighed(model, found.x, RISK)
    assert ended is None
    assert best <= min(weighed(model, plain.x, RISK), weighed(model, np.zeros_like(plain.x), RISK)) + 1e-9
    integer = first_stage(model).integer
    for number in np.flatnonzero(plain.x):
        for share in SHARES:
            trial = found.x.copy()
            amount = plain.x[number] * share
            trial[number] = np.floor(amount + 1e-6) if integer[number] else np.floor(amount * 1000) / 1000
            assert best <= weighed(model, trial, RISK) * (1 + 1e-6) + 1e-6
    assert found.bound_usd <= found.objective_usd + 1e-9
    before, after = loss_of(model, plain, plain, RISK), loss_of(model, found, plain, RISK)
    assert after.chance_ratio <= before.chance_ratio + 1e-9
    assert after.plain_chance_ratio == before.chance_ratio


def two_futures(chance: float) -> CommitModel:
    """Ten machines at $10 an hour that go on, or end after a tenth of the year; reserved at $6."""
    hours = (
        Hours(0, 0, np.array([8760.0]), np.array([[10.0]])),
        Hours(1, 0, np.array([876.0, 7884.0]), np.array([[10.0], [0.0]])),
    )
    columns = (CommitColumn("reserved", 8760 * 6.0, 20.0, pool=0, whole=True),)
    prices = np.array([10.0]), np.zeros((0, 1))
    return CommitModel(*prices, columns, hours, np.array([1 - chance, chance]))


@pytest.mark.parametrize(("chance", "units"), [(0.1, 10), (0.25, 0)])
def test_a_loss_must_be_worth_its_price(chance: float, units: int) -> None:
    """Ten reservations save 34 % where the end has a chance of 10 %, 23 % where 25 %: at 2 they must save twice it."""
    model = two_futures(chance)
    plain = solve_commit(model)
    assert plain.x[0] == 10
    found, _ = avoid_loss(model, plain, RISK)
    assert found.x[0] == units
    assert loss_of(model, found, plain, RISK).plain_chance_ratio == pytest.approx(chance)
    free, _ = avoid_loss(model, plain, replace_price(0.0))
    assert free.x[0] == 10
    dear, _ = avoid_loss(model, plain, replace_price(1e6))
    assert loss_of(model, dear, plain, replace_price(1e6)).chance_ratio == 0


def replace_price(price: float) -> Risk:
    return RISK.model_copy(update={"loss_price": price})


@pytest.mark.parametrize("seed", range(0, 20, 4))
def test_money_in_other_units_buys_the_same(seed: int) -> None:
    model = random_model(seed, plans=0)
    columns = tuple(
        replace(one, cost_usd=one.cost_usd * 64, upfront_usd=one.upfront_usd * 64) for one in model.columns
    )
    hours = tuple(replace(h, spot_usd=None if h.spot_usd is None else h.spot_usd * 64) for h in model.hours)
    dear = replace(
        model, on_demand_usd=model.on_demand_usd * 64, columns=columns, hours=hours,
        upfront_limit_usd=model.upfront_limit_usd * 64,
    )  # fmt: skip
    found = [avoid_loss(one, solve_commit(one, gap=1e-6), RISK)[0] for one in (model, dear)]
    assert weighed(dear, found[1].x, RISK) == pytest.approx(64 * weighed(model, found[0].x, RISK), rel=1e-5)


def test_a_search_without_time_buys_nothing_worse() -> None:
    model = two_futures(0.1)
    plain = solve_commit(model)
    found, ended = avoid_loss(model, plain, RISK, deadline=0.0)
    assert ended is Termination.TIME_LIMIT and found.x[0] == 10
    assert weighed(model, found.x, RISK) <= weighed(model, np.zeros(1), RISK)


def test_an_answer_says_what_the_rule_costs_and_is_verified(tmp_path: Path, run_cli: Run) -> None:
    use = "hour,pool,instances\n" + "".join(
        f"{hour},{pool},{(units if hour < 1200 else 0)}\n"
        for hour in range(1680) for pool, units in (("a", 9), ("b", 3))
    )  # fmt: skip
    scenarios = {"count": 30, "hours_per_year": 60, "growth": {"low": 0.3, "likely": 1.0, "high": 1.0}}
    asked = {"pools": PLANS, "scenarios": scenarios, "commitments": []}
    risk = {"weight": 0.2, "level": 0.8, "loss_price": 0.2}
    answers = []
    for given in ({**risk, "loss_price": 0.0}, risk):
        path = write(tmp_path, risk=given, **asked)
        (tmp_path / "usage.csv").write_text(use)
        found = run_cli("commit", path, "-o", "json", "--no-regret")
        assert found.code == 0, found.stderr
        answers.append(json.loads(found.stdout))
    free, ruled = (answer["loss"] for answer in answers)
    assert free["chance_ratio"] == free["plain_chance_ratio"] == ruled["plain_chance_ratio"] > 0
    assert ruled["chance_ratio"] < free["chance_ratio"]
    assert ruled["plain_expected_usd"] == pytest.approx(answers[0]["plan"]["expected_usd"], rel=1e-9)
    assert answers[1]["objective_usd"] > answers[0]["objective_usd"] >= answers[1]["bound_usd"]
    assert "instead of" in run_cli("commit", path, "--no-regret").unwrapped
    saved = tmp_path / "answer.json"
    saved.write_text(json.dumps(answers[1]))
    checked = run_cli("verify", saved, "--workload", path)
    assert checked.code == 0, checked.stdout + checked.stderr
    for key, value in (
        ("chance_ratio", 0.9),
        ("plain_chance_ratio", 0.0),
        ("worst_ratio", 0.0),
        ("price", 3.0),
    ):
        bent = json.loads(json.dumps(answers[1]))
        bent["loss"][key] = value
        saved.write_text(json.dumps(bent))
        assert run_cli("verify", saved, "--workload", path).code == 5, key
    del bent["loss"]
    saved.write_text(json.dumps(bent))
    assert run_cli("verify", saved, "--workload", path).code == 0  # saved before there was such a field
