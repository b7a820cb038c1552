"""Mainland China, government clouds and regions of restricted access compete only where the workload asks for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.judge.lines import verify_plan
from tests.conftest import CliResult
from tests.planner.spine_catalogs import A10, A10G, T4, Offer, loaded, make_catalog, plan_on, work

HERE = Offer(A10G, "us-east-1", "1.0")
CHINA = Offer(A10, "cn-shanghai", "0.05")
GOV = Offer(replace(A10G, instance_type="g5.gov"), "us-gov-west-1", "0.05")
RESTRICTED = Offer(T4, "norwaywest", "0.05")
DATA = {"size": "1GB", "location": "alibaba/cn-beijing"}


@pytest.mark.parametrize(
    ("asked", "offer"),
    [
        ({"constraints": {"regions": ["*", "alibaba/cn-shanghai"]}}, CHINA),
        ({"constraints": {"residency": ["cn"]}}, CHINA),
        ({"data": DATA}, CHINA),
        ({"constraints": {"regions": ["us-gov-*", "us-east-1"]}}, GOV),
        ({"constraints": {"regions": ["*", "norwaywest"]}}, RESTRICTED),
    ],
)
def test_what_is_asked_for_may_win(asked: dict[str, Any], offer: Offer) -> None:
    catalog = make_catalog([HERE, offer])
    plan = plan_on(catalog, work(**asked)).plan
    assert [line.region for line in plan.lines] == [offer.region]
    assert verify_plan(plan.to_dict(), loaded(work(**asked)).workload, catalog.offers) == []
    plain = loaded(work()).workload
    assert any("is not requested" in fault for fault in verify_plan(plan.to_dict(), plain, catalog.offers))


@pytest.mark.parametrize("offer", [CHINA, GOV, RESTRICTED])
@pytest.mark.parametrize("asked", [{}, {"regions": ["*"]}, {"residency": ["us", "asia", "europe"]}])
def test_what_is_not_asked_for_is_named_beside_the_plan(offer: Offer, asked: dict[str, Any]) -> None:
    catalog = make_catalog([HERE, offer])
    plan = plan_on(catalog, work(constraints=asked)).plan
    assert [line.region for line in plan.lines] == ["us-east-1"]
    (hidden,) = plan.relaxations
    assert hidden.constraint == "partition"
    assert hidden.best is not None
    assert hidden.best.cost_usd < plan.total_usd
    assert hidden.needed.startswith(f"{offer.machine.provider}/{offer.region}, which needs ")


def test_spot_there_is_named_with_its_fall_back(run_cli: Callable[..., CliResult], tmp_path: Path) -> None:
    job = {
        **work(training={"samples": 30_000_000, "sequence_length": 128, "global_batch": 256, "precision": "fp16"}),
        "model": {"preset": "bert-large"},
        "constraints": {"deadline": "4d", "max_nodes": 8, "providers": ["alibaba"]},
    }  # fmt: skip
    path, saved = tmp_path / "job.yaml", tmp_path / "plan.json"
    path.write_text(json.dumps(job))
    day = ("--as-of", "2026-11-20")
    assert run_cli("optimize", path, *day, "-o", "json", "--out", saved).code == 0
    plan = json.loads(saved.read_text())
    (hidden,) = [one for one in plan["relaxations"] if one["constraint"] == "partition"]
    bought = {part["purchase_option"] for part in hidden["best"]["parts"]}
    assert bought == {"spot", "on_demand"}
    assert all(part["region"].startswith("cn-") for part in hidden["best"]["parts"])
    verdict = run_cli("verify", saved, "--workload", path)
    assert verdict.code == 0, verdict.stdout
    job["constraints"]["regions"] = ["*", "cn-*"]
    path.write_text(json.dumps(job))
    free = json.loads(run_cli("optimize", path, *day, "-o", "json").stdout)
    assert float(free["total_usd"]) <= float(hidden["best"]["cost_usd"]) < float(plan["total_usd"])
    job["spot"] = {"zones": "single"}  # as what is hidden is priced
    path.write_text(json.dumps(job))
    single = json.loads(run_cli("optimize", path, *day, "-o", "json").stdout)
    assert float(single["total_usd"]) == pytest.approx(float(hidden["best"]["cost_usd"]), rel=0.01)


def test_alone_it_is_the_way_out_of_an_infeasible_question() -> None:
    plan = plan_on(make_catalog([CHINA]), work()).plan
    assert plan.status == "infeasible"
    assert [item.constraint for item in plan.relaxations] == ["partition"]


def test_the_users_own_machines_there_are_asked_for() -> None:
    plan = plan_on(make_catalog([HERE, replace(CHINA, purchase_option="owned")]), work()).plan
    assert [line.region for line in plan.lines] == ["cn-shanghai"]
