"""Least carbon and the front of cost and carbon: one job, `optimize` and `frontier` agree; brute force; tampering."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.candidates.engine import Engine
from planner.candidates.footprint import operational_kg
from planner.candidates.wanted import Scope, Wanted
from planner.job.frontier_carbon import carbon_frontier, find_carbon_frontier
from planner.job.frontier_carbon_report import carbon_report
from planner.render import render_answer
from planner.workloads.answer import Answer
from tests.conftest import CliResult
from tests.planner.spine_catalogs import A10G, L4, Offer, make_catalog, plan_on, work

Run = Callable[..., CliResult]
BERT = "examples/bert-large.yaml"
ON = ("--as-of", "2026-11-20")
REGIONS = ("us-east-1", "eu-north-1", "us-west-2", "ap-south-1", "ap-southeast-6")


def offers(seed: int) -> list[Offer]:
    random = np.random.default_rng(seed)
    found = []
    for region in REGIONS:
        price = f"{random.uniform(0.6, 1.6):.3f}"
        found.append(Offer(A10G, region, price))
        if random.random() < 0.6:
            spot = f"{float(price) * random.uniform(0.3, 0.9):.3f}"
            found.append(Offer(A10G, region, spot, "spot", interruption_band="<5%"))
    return [*found, Offer(L4, "us-central1", f"{random.uniform(0.4, 1.2):.3f}")]


def job(**sections: Any) -> dict[str, Any]:
    limits = {"max_nodes": 6, "deadline": "12d", **sections.pop("constraints", {})}
    return work(constraints=limits, **sections)


def front(seed: int) -> tuple[Any, Answer]:
    answer = plan_on(make_catalog(offers(seed)), job())
    engine = Engine(answer.context)
    return find_carbon_frontier(engine, answer.context.asked.workload, answer.context.dates.deadline), answer


@pytest.mark.parametrize("seed", range(2))
def test_ends_and_points_are_what_optimize_finds(seed: int) -> None:
    found, _ = front(seed)
    catalog = make_catalog(offers(seed))
    least = plan_on(catalog, job(preferences={"objective": "carbon"})).plan
    assert least.carbon is not None and least.objective == "carbon"
    first, last = found.points[0].best, found.points[-1].best
    assert least.carbon.operational_kgco2e == pytest.approx(first.operational_kgco2e, rel=1e-12)
    assert float(least.total_usd) == pytest.approx(float(first.cost_usd), rel=1e-9)
    # a limit that nothing of known emissions breaks: the cheapest of these
    cheapest = plan_on(catalog, job(constraints={"max_kgco2e": 1e9})).plan
    assert float(cheapest.total_usd) == pytest.approx(float(last.cost_usd), rel=1e-9)
    for point in found.points[:3]:
        kept = plan_on(catalog, job(constraints={"max_kgco2e": point.best.operational_kgco2e})).plan
        assert float(kept.total_usd) == pytest.approx(float(point.best.cost_usd), rel=1e-9)
    assert plan_on(
        catalog, job(constraints={"max_kgco2e": (first.operational_kgco2e or 0) * 0.999})
    ).plan.status == "infeasible"  # fmt: skip


@pytest.mark.parametrize("seed", range(2, 5))
def test_the_front_is_that_of_all_candidates(seed: int) -> None:
    """Against every candidate of an engine that leaves nothing out, each compared with each."""
    found, answer = front(seed)
    everything = Engine(answer.context).at(
        answer.context.dates.deadline, Wanted(Scope.CARBON_FRONT, up_to=np.inf)
    )
    listed = Engine(answer.context).at(answer.context.dates.deadline, Wanted(up_to=np.inf)).candidates
    for made in (everything.candidates, listed):
        kg = operational_kg(made)
        at = np.flatnonzero((made.bits == 0) & ~np.isnan(kg))
        cost, kg = made.cost_usd[at], kg[at]
        beaten = [
            bool(((cost < c * (1 - 1e-9)) & (kg <= k * (1 + 1e-9))).any())
            for c, k in zip(cost, kg, strict=True)
        ]
        left = sorted({(round(k, 6), round(c, 4)) for c, k, b in zip(cost, kg, beaten, strict=True) if not b})
        points = {
            (round(p.best.operational_kgco2e, 6), round(float(p.best.cost_usd), 4)) for p in found.points
        }
        assert {c for _, c in points} <= {c for _, c in left}
        for k, c in left:  # ties in cost stand once, at the least emissions
            assert any(pk <= k + 1e-6 and pc <= c + 1e-3 for pk, pc in points), (k, c)
    rises = [p.best.operational_kgco2e for p in found.points]
    falls = [p.best.cost_usd for p in found.points]
    assert rises == sorted(rises) and falls == sorted(falls, reverse=True)


def test_unknown_emissions_are_left_out_and_named() -> None:
    cheap = [Offer(A10G, "ap-southeast-6", "0.1"), Offer(A10G, "us-east-1", "1.0")]
    answer = plan_on(make_catalog(cheap), job())
    found = find_carbon_frontier(
        Engine(answer.context), answer.context.asked.workload, answer.context.dates.deadline
    )
    assert {point.best.region for point in found.points} == {"us-east-1"}
    assert found.unknown > 0 and found.cheaper_unknown is not None
    text = render_answer(carbon_report(found), "table")
    assert "cheaper, with unknown emissions" in text and "ap-southeast-6" in text
    assert (
        plan_on(make_catalog(cheap), job(preferences={"objective": "carbon"})).plan.lines[0].region
        == "us-east-1"
    )


def test_the_answer_verifies_and_tampering_is_found(run_cli: Run, tmp_path: Path) -> None:
    target = tmp_path / "front.json"
    done = run_cli("frontier", BERT, *ON, "--against", "carbon", "-o", "json", "--out", str(target))
    assert done.code == 0
    answer = json.loads(target.read_text(encoding="utf-8"))
    assert answer["against"] == "carbon" and len(answer["points"]) > 2
    assert run_cli("verify", str(target), "--workload", BERT).code == 0
    for change in (
        lambda a: a["points"][0].update(operational_kgco2e=a["points"][0]["operational_kgco2e"] * 0.9),
        lambda a: a["points"][1].update(energy_kwh=1.0),
        lambda a: a["points"].reverse(),
        lambda a: a["points"][0].update(p_meet_deadline=0.5),
        lambda a: a.update(limit_kgco2e=5.0),
        lambda a: a["points"][0].update(within_limit=True),
    ):
        other = copy.deepcopy(answer)
        change(other)
        target.write_text(json.dumps(other), encoding="utf-8")
        assert run_cli("verify", str(target), "--workload", BERT).code == 5
    refused = run_cli("frontier", BERT, *ON, "--against", "carbon", "--deadline", "5d")
    assert refused.code == 2 and "constraints.deadline" in refused.stderr


def test_a_plan_of_least_carbon_verifies_and_tampering_is_found(run_cli: Run, tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    options = ("--workload", BERT, "--objective", "carbon")
    assert (
        run_cli("optimize", BERT, *ON, "--objective", "carbon", "-o", "json", "--out", str(target)).code == 0
    )
    answer = json.loads(target.read_text(encoding="utf-8"))
    assert answer["choices"][0]["kinds"][0] == "least_carbon"
    assert run_cli("verify", str(target), *options).code == 0
    for change in (
        lambda a: a["carbon"].update(operational_kgco2e=0.1),
        lambda a: a["carbon"].update(embodied_kgco2e=1.0),
        lambda a: a["carbon"].update(unknown=[]),
        lambda a: a["carbon"]["lines"][0].update(grid_gco2e_per_kwh=1.0),
        lambda a: a["carbon"]["lines"][0].update(node_w=10.0),
        lambda a: a["alternatives"][0].update(energy_kwh=None),
    ):
        other = copy.deepcopy(answer)
        change(other)
        target.write_text(json.dumps(other), encoding="utf-8")
        assert run_cli("verify", str(target), *options).code == 5
    refused = run_cli("optimize", BERT, *ON, "--objective", "carbon", "--solver", "milp")
    assert refused.code == 2 and "enumerate" in refused.stderr


def test_a_fleet_has_no_such_front() -> None:
    from planner.asked.options import Options
    from planner.errors import InputError
    from planner.inputs.load import load_workload
    from tests.planner.spine_catalogs import NOW

    with pytest.raises(InputError, match="max_kgco2e"):
        carbon_frontier(load_workload(Path("examples/hpo-fleet.yaml")), Options(NOW))
