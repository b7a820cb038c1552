"""Runs that nobody divides: whole numbers in plans, and the chance of their deadline against simulated queues."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaincinv

import planner
from catalogs.store.load import load_catalog
from planner.fleet.chance import Progress
from planner.fleet.luck import luck_at, whole_part
from planner.fleet.whole_runs import whole_share
from planner.inputs.load import load_workload
from planner.judge.judge import judge_plan
from planner.judge.lines import verify_plan
from planner.plan.model import Plan
from tests.conftest import ROOT
from tests.draws import draws
from tests.planner.fleet.simulate_whole_runs import share_in_time
from tests.planner.fleet.test_spine_fleet import POOL, _random_fleet, exactly, fleet
from tests.planner.spine_catalogs import A10G, Offer, loaded, make_catalog, plan_on

Case = dict[str, Any]
CASES: dict[str, Case] = {
    "one run each, just in time": {"machines": 6, "runs": 6, "hours": 4.0, "deadline": 6.0, "wait": 1.0},
    "one run each, with time": {"machines": 6, "runs": 6, "hours": 4.0, "deadline": 8.0, "wait": 1.0},
    "last run alone": {"machines": 3, "runs": 10, "hours": 2.0, "deadline": 9.5, "wait": 0.5},
    "many runs": {"machines": 10, "runs": 24, "hours": 2.0, "deadline": 8.0, "wait": 1.0},
}
LUCK: Case = {"rate": 0.1, "sigma": 0.15, "frailty_sd": 0.5}


def chance(case: Case, *, whole: bool) -> float:
    machines, one = case["machines"], np.asarray
    progress = Progress(
        lead=one([0.0]), most=one([np.inf]), rate=one([machines / case["hours"]]), sigma=one([case["sigma"]]),
        count=one([float(machines)]), run_units=1.0 if whole else 0.0,
        luck=luck_at(one([case["rate"]]), one([case["wait"]]), one([case["frailty_sd"]]), one([1.0])),
    )  # fmt: skip
    return progress.chance(case["deadline"], float(case["runs"]))


@pytest.mark.parametrize("name", CASES)
def test_the_chance_of_whole_runs_is_that_of_a_simulated_queue(name: str) -> None:
    """Within 0.1; taken as work that divides, fleets with few runs are called in time up to 0.33 too often."""
    case = CASES[name] | LUCK
    simulated = share_in_time(**case, outcomes=2000, seed=3)
    assert chance(case, whole=True) == pytest.approx(simulated, abs=0.1)
    if case["runs"] <= 10:
        assert abs(chance(case, whole=True) - simulated) < abs(chance(case, whole=False) - simulated)


@draws(50)
@given(st.floats(0.2, 30), st.floats(0.05, 0.95), st.floats(0.001, 0.95))
def test_moments_of_whole_parts_are_those_of_a_beta_variable(most: float, share: float, part: float) -> None:
    """Exact where few whole numbers matter; else any fraction is taken as likely, which is rough where the ends are."""
    spread = part * share * (1 - share)
    size = share * (1 - share) / spread - 1
    ends = (share * size, (1 - share) * size)
    whole = np.floor(most * betaincinv(*ends, (np.arange(10_000) + 0.5) / 10_000) + 1e-6)
    one = np.asarray
    found, variance = whole_part(one([most]), one([most * share]), one([most**2 * spread]))
    mean, square = (0.08, 0.3) if min(ends) >= 1 else (0.5, 0.6)
    if most <= 9 or spread * most**2 <= 0.49:
        mean, square = 0.005, 0.02
    assert found[0] == pytest.approx(whole.mean(), abs=mean)
    assert variance[0] == pytest.approx(whole.var(), rel=square, abs=0.02)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.97])
def test_where_the_ends_are_likely_whole_parts_are_right_over_the_speeds(share: float) -> None:
    """At one speed up to half a run is missed: the fraction of what an undisturbed worker does counts for all."""
    tops, spread = np.linspace(12.0, 20.0, 321)[:-1], 0.8 * share * (1 - share)
    size = share * (1 - share) / spread - 1
    drawn = np.random.default_rng(2).beta(share * size, (1 - share) * size, (20_000, 1))
    whole = np.floor(drawn * tops + 1e-6)
    mean, variance = whole_part(tops, tops * share, tops**2 * spread)
    assert mean.mean() == pytest.approx(whole.mean(), abs=0.15)
    assert variance.mean() == pytest.approx(whole.var(axis=0).mean(), rel=0.1)


def runs_of(plan: Plan, runs: int) -> list[float]:
    whole = sum(line.throughput_per_s for line in plan.lines)
    return [line.throughput_per_s / whole * runs for line in plan.lines]


@pytest.mark.parametrize(
    ("wish", "runs"),
    [(wish, runs) for wish, several in (
        ({}, (1, 5, 13)), ({"max_spot_share": 0.5}, (1, 2, 7, 29)), ({"max_share_per_offer": 0.4}, (2, 5, 7, 29)),
    ) for runs in several],
)  # fmt: skip
def test_every_line_does_whole_runs_and_the_judge_agrees(wish: dict[str, float], runs: int) -> None:
    job = fleet(runs, {"max_nodes": 20, "deadline": "30h", "deadline_confidence": 0.8}, **wish)
    plan = plan_on(make_catalog(POOL), job).plan
    if plan.status == "infeasible":
        assert (
            wish and runs * max(wish.values()) < 2
        )  # no whole run is so small a share, or two places are too few
        return
    if runs > 1:
        assert all(abs(done - round(done)) < 1e-6 for done in runs_of(plan, runs))
    for name, most in wish.items():
        lines = [line for line in plan.lines if name != "max_spot_share" or line.purchase_option == "spot"]
        done = [line.throughput_per_s * plan.hours * 3600 for line in lines]
        whole = sum(line.throughput_per_s * plan.hours * 3600 for line in plan.lines)
        part = sum(done) if name == "max_spot_share" else max(done)
        assert part <= most * whole * (1 + 1e-9)
    assert verify_plan(plan.to_dict(), loaded(job).workload, make_catalog(POOL).offers) == []


def test_that_no_division_was_found_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.fleet.rounds.in_runs", lambda *_: None)
    monkeypatch.setattr("planner.fleet.answer.cheapest_sure", lambda *_: None)
    plan = plan_on(make_catalog(POOL), fleet(5, {"max_nodes": 20, "deadline": "30h"})).plan
    assert plan.status == "infeasible"
    assert plan.proof is not None
    assert "not proven" in plan.proof.note


def test_parts_of_runs_are_rejected() -> None:
    job = fleet(7, {"max_nodes": 20, "deadline": "30h", "deadline_confidence": 0.8}, max_spot_share=0.5)
    made = exactly(POOL, job).to_dict()
    assert len(made["lines"]) > 1
    one = sum(line["throughput_per_s"] for line in made["lines"]) / 7
    made["lines"][0]["throughput_per_s"] -= one / 2
    made["lines"][1]["throughput_per_s"] += one / 2
    assert any("no worker can do part of one" in fault for fault in _faults(made, job))


def _faults(made: dict[str, Any], job: dict[str, Any]) -> list[str]:
    workload = loaded(job)
    verdict = judge_plan(made, workload.workload, workload.sha256, make_catalog(POOL), workload.path.parent)
    return [str(fault) for fault in verdict.faults]


def test_a_share_is_that_of_whole_runs() -> None:
    assert [whole_share(0.5, runs) for runs in (1, 2, 3, 5)] == [0.5, 0.5, 1 / 3, 0.4]
    assert whole_share(None, 5) is None


def test_more_runs_cost_more_and_more_offers_no_more_in_any_order() -> None:
    planned = 0
    for seed in range(60, 72):
        job, offers = _random_fleet(seed)
        plan = exactly(offers, job)
        if plan.status != "planned":
            continue
        planned += 1
        twice = exactly(offers, {**job, "fleet": {**job["fleet"], "runs": job["fleet"]["runs"] * 2}})
        assert twice.status == "infeasible" or twice.total_usd > plan.total_usd
        wider = exactly([*offers, Offer(A10G, "eu-west-1", "2.0", capacity=3.0)], job)
        assert wider.status == "planned"
        assert float(wider.total_usd) <= float(plan.total_usd) * 1.0005 + 0.02  # bills are rounded up
        assert exactly(offers[::-1], job).total_usd == plan.total_usd
    assert planned >= 4


def test_one_offer_answers_where_no_mix_that_was_tried_is_sure(tmp_path: Path) -> None:
    job: dict[str, Any] = {
        "version": 1, "kind": "fleet", "name": "seeds", "fleet": {"runs": 9, "nodes_per_run": 1},
        "model": {
            "family": "transformer", "architecture": "decoder", "layers": 24, "hidden": 1024, "heads": 16,
            "vocab": 50304,
        },
        "training": {"tokens": 3e11, "global_batch": 1024, "sequence_length": 2048, "precision": "fp16"},
        "data": {"tokens": 3e11, "location": "aws/us-east-1"},
        "constraints": {"deadline": "168h", "max_nodes": 18, "purchase_options": ["on_demand"]},
    }  # fmt: skip
    costs = []
    for providers in (
        ["aws"],
        ["aws", "lambda"],
    ):  # of aws alone the cheapest is one offer, of both several are near
        path = tmp_path / "seeds.json"
        path.write_text(json.dumps({**job, "constraints": {**job["constraints"], "providers": providers}}))
        plan = planner.optimize(path, as_of="2026-11-22")
        assert plan.status == "planned"
        costs.append(plan.total_usd)
    assert costs[1] <= costs[0]


def test_an_hour_whose_chance_is_the_level_is_a_quantile_for_the_judge(tmp_path: Path) -> None:
    """Whole runs make small steps of the chance: here two hours that differ by 0.02 % have 90 %."""
    job = yaml.safe_load((ROOT / "examples" / "hpo-fleet.yaml").read_text(encoding="utf-8"))
    limits = {
        "deadline": "24h",
        "max_nodes": 12,
        "residency": ["eu"],
        "min_throughput": {"samples_per_s": 1e-3},
    }
    path = tmp_path / "fleet.yaml"
    path.write_text(yaml.safe_dump({**job, "fleet": {"runs": 12}, "spot": {}, "constraints": limits}))
    made, workload = planner.optimize(path, as_of="2026-11-28").to_dict(), load_workload(path, cache=False)
    assert made["launch"]["strategy"] == "spot_in_fleet"
    catalog = load_catalog(None, as_of=date(2026, 11, 28))

    def faults() -> list[str]:
        verdict = judge_plan(made, workload.workload, workload.sha256, catalog, path.parent)
        return [str(fault) for fault in verdict.faults]

    assert faults() == []
    made["launch"]["p90_hours"] *= 1.005
    made["risk"]["worst_hours"] *= 1.005
    assert any("p90_hours" in fault for fault in faults())
