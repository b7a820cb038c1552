"""One offer beside a mix: the answer where a mix saves next to nothing, else a choice; places that are few."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from planner.fleet import alone
from planner.fleet.greedy import greedy_mix
from planner.fleet.question import FleetInput, violations
from planner.judge.lines import verify_plan
from planner.plan.front_choices import choices
from planner.plan.model import Plan
from tests.planner.fleet.test_spine_fleet import exactly, fleet
from tests.planner.spine_catalogs import A10G, L4, Offer, loaded, make_catalog, plan_on


def _plan(second_price: str, **wishes: Any) -> Plan:
    """One of the cheapest machine can be had, and as many as are asked for of another."""
    offers = [Offer(A10G, "us-east-1", "1.00", capacity=1.0), Offer(L4, "us-central1", second_price)]
    return exactly(offers, fleet(runs=4, limits={"max_nodes": 12}, **wishes))


def _kinds(plan: Plan) -> dict[str, Any]:
    return {kind: choice for choice in plan.choices for kind in choice.kinds}


def test_a_mix_that_saves_much_is_the_answer_and_one_offer_is_a_choice() -> None:
    plan = _plan("2.00")
    assert len(plan.lines) == 2
    best = _kinds(plan)["one_offer"].best
    alone = exactly([Offer(L4, "us-central1", "2.00")], fleet(runs=4, limits={"max_nodes": 12}))
    assert best is not None
    assert best.cost_usd == pytest.approx(alone.total_usd, rel=Decimal("1e-3"))
    assert best.delta_cost_usd == best.cost_usd - plan.total_usd > 0
    assert _kinds(plan)["one_offer"] is _kinds(plan)["on_demand"]  # the same machines: one row of both kinds


def test_one_offer_that_breaks_a_share_is_no_choice() -> None:
    plan = _plan("2.00", max_share_per_region=0.9)
    assert len(plan.lines) == 2
    assert "one_offer" not in _kinds(plan)
    assert _kinds(plan)["on_demand"].kinds == ("on_demand", "limits_aside")
    assert "limits_aside" not in _kinds(_plan("2.00"))
    assert _shown(plan)[:2] == ["> cheapest", "  on-demand, limits aside"]


def _shown(plan: Plan) -> list[Any]:
    """The first column of the choices on the screen."""
    return [row[0] for row in choices(plan)[0].tables[0].rows]


def test_a_plan_that_is_its_own_baseline_has_one_row() -> None:
    plan = exactly([Offer(L4, "us-central1", "1.00")], fleet(runs=4, limits={"max_nodes": 12}))
    assert [choice.kinds for choice in plan.choices] == [("cheapest",), ("on_demand",)]
    assert _shown(plan) == ["> cheapest, on-demand"]


@pytest.mark.parametrize("runs", [5, 61])
def test_runs_that_do_not_divide_among_the_workers_are_done_whole(runs: int) -> None:
    """Some workers do one run more than the others: these end the fleet, and each is paid for its own."""
    job = fleet(runs=runs, limits={"max_nodes": 12, "deadline": "16h"})
    job["training"] = {**job["training"], "samples": job["training"]["samples"] * 5 // runs}
    plan = exactly([Offer(L4, "us-central1", "1.00")], job)
    each = runs / plan.lines[0].nodes
    assert plan.status == "planned" and each > 1.0 and each % 1 > 0
    course = (float(plan.lines[0].billed_hours) - _setup_hours(plan)) * plan.lines[0].nodes / runs
    (work,) = [part.hours for part in plan.timeline if part.id.value == "fleet_work"]
    assert work == pytest.approx(math.ceil(each) * course, rel=1e-3)
    assert verify_plan(plan.to_dict(), loaded(job).workload) == []


@pytest.mark.parametrize("share", ["0.5", "1", "1.5"])
def test_offers_beyond_the_budget_are_no_answer_however_many_workers_they_have(
    share: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left out before its chance is worked out is what the budget would refuse afterwards."""
    offers = [Offer(A10G, "us-east-1", "1.00"), Offer(L4, "us-central1", "2.00")]
    cheapest = exactly(offers, fleet(runs=4, limits={"max_nodes": 12})).total_usd

    def within() -> Plan:
        limits = {"max_nodes": 12, "budget_usd": float(cheapest * Decimal(share))}
        return exactly(offers, fleet(runs=4, limits=limits))

    quick = within()
    monkeypatch.setattr(alone, "_beyond_budget", lambda _, some: np.zeros(len(some.count), dtype=np.bool_))
    slow = within()
    assert (quick.status, quick.total_usd) == (slow.status, slow.total_usd)
    assert (quick.status == "planned") == (share != "0.5")
    assert quick.choices == slow.choices and quick.relaxations == slow.relaxations


def _setup_hours(plan: Plan) -> float:
    """Paid hours before and after the work of a worker."""
    return sum(part.hours for part in plan.timeline if part.id.value == "fleet_fixed")


def test_offers_within_the_gap_asked_are_one_offer() -> None:
    mixed = _plan("1.20")
    assert len(mixed.lines) == 2
    offers = [Offer(A10G, "us-east-1", "1.00", capacity=1.0), Offer(L4, "us-central1", "1.20")]
    job = fleet(runs=4, limits={"max_nodes": 12})
    saved = float(1 - mixed.total_usd / _kinds(mixed)["one_offer"].best.cost_usd)
    for gap, lines in ((saved * 1.2, 1), (saved * 0.8, 2)):
        planned = plan_on(make_catalog(offers), job, gap=gap)
        assert len(planned.plan.lines) == lines
        assert planned.plan.proof is not None
        assert planned.plan.proof.status == "optimal"
        assert verify_plan(planned.plan.to_dict(), loaded(job).workload, make_catalog(offers).offers) == []


def test_a_fleet_is_found_where_the_cheapest_work_is_too_slow() -> None:
    n = 40
    speed = np.r_[np.full(n, 1.0), np.full(2, 10.0)]
    asked = FleetInput(
        keys=tuple(range(n + 2)), cost_usd=np.r_[np.full(n, 1.0), np.full(2, 30.0)], throughput=speed,
        required_throughput=60.0, max_total_units=8, fixed_cost_usd=np.full(n + 2, 0.1),
    )  # fmt: skip
    found = greedy_mix(asked)
    assert found is not None
    assert violations(asked, asked.units(found[0]), asked.units(found[1])) == []
