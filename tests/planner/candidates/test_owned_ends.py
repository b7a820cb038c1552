"""Commitments that end: no run on them outlasts them, and they are used wherever they last."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.judge.judge import judge_plan
from planner.judge.lines import verify_plan
from tests.planner.candidates.test_bought_in_parts import LISTED, OWNED, eight_nodes, hours_on
from tests.planner.judge.tampering import resum
from tests.planner.spine_catalogs import (
    A100X8,
    Offer,
    chosen,
    cost_of,
    loaded,
    make_catalog,
    not_dearer,
    plan_on,
)


def job_until(end: datetime | None, owned: int = 4) -> dict[str, Any]:
    """A job of eight machines, some of them owned until a moment."""
    job = eight_nodes(owned, purchase_options=["on_demand", "reserved_1y"])
    for one in job["commitments"]:
        one |= {} if end is None else {"expires": end.isoformat()}
    return job


@pytest.mark.parametrize("owned", [4, 8])
def test_a_commitment_is_used_by_what_ends_before_it_and_by_nothing_else(owned: int) -> None:
    catalog = make_catalog(LISTED)
    lasting = plan_on(catalog, job_until(None, owned))
    assert any(line.option_variant == "already_owned" for line in lasting.plan.lines)
    begin, hours = datetime.fromisoformat(lasting.plan.start), lasting.plan.hours
    cost = None
    for share in (0.0, 0.5, 0.999, 1.001, 3.0):
        job = job_until(begin + timedelta(hours=share * hours), owned)
        answer = plan_on(catalog, job)
        paid = [line for line in answer.plan.lines if line.option_variant == "already_owned"]
        assert not paid or answer.plan.hours <= share * hours
        assert verify_plan(answer.plan.to_dict(), loaded(job).workload, catalog.offers) == []
        assert not_dearer(cost_of(answer), cost)
        cost = cost_of(answer)
        if share > 1:
            assert chosen(answer) == chosen(lasting)
        short = loaded(job_until(begin + timedelta(hours=0.9 * hours), owned)).workload
        assert bool(paid) == any("to the end" in fault for fault in verify_plan(answer.plan.to_dict(), short))
    none = plan_on(catalog, eight_nodes(0, purchase_options=["on_demand"]))
    assert cost_of(none) == cost_of(plan_on(catalog, job_until(begin, owned)))


def test_the_plan_says_how_often_a_run_outlasts_its_commitment_and_why_one_is_not_used() -> None:
    catalog = make_catalog(LISTED)
    lasting = plan_on(catalog, job_until(None, 8)).plan
    assert not any("commitment" in text for text in lasting.warnings)
    begin, hours = datetime.fromisoformat(lasting.start), lasting.hours

    def said(share: float) -> str:
        plan = plan_on(catalog, job_until(begin + timedelta(hours=share * hours), 8)).plan
        return "; ".join(text for text in plan.warnings if "commitment" in text)

    chances = [
        int(found[1])
        for share in (1.001, 1.2)
        if (found := re.search(r"outlasts it \((\d+) %\)", said(share)))
    ]
    assert len(chances) == 2 and 50 >= chances[0] > chances[1] > 0
    assert not said(10)
    short = said(0.9)
    assert "alone do not suffice: a run takes" in short and "and the commitment ends" in short


@pytest.mark.parametrize("share", [1.001, 1.3])
def test_what_slow_runs_pay_after_the_end_is_in_the_cost_and_recomputed(share: float) -> None:
    """A job that may take nine hours chooses between owned machines that end and others by what both cost."""
    catalog = make_catalog(LISTED)
    for owned, hours in ((4, None), (8, None), (4, "9h")):
        lasting = plan_on(catalog, job_until(None, owned)).plan
        job = job_until(datetime.fromisoformat(lasting.start) + timedelta(hours=share * lasting.hours), owned)
        if hours is not None:
            job["constraints"] |= {
                "deadline": hours,
                "purchase_options": ["on_demand", "reserved_1y", "spot"],
            }
        given = loaded(job)
        plan = plan_on(catalog, job).plan
        after = [cost for line in plan.lines for cost in line.costs if cost.id == "after_end"]
        assert [float(cost.unit_price) for cost in after] == [1.1]
        assert hours is not None or sum(
            cost.amount_usd for cost in after
        ) + lasting.total_usd == pytest.approx(plan.total_usd)
        answer = plan.to_dict()
        assert judge_plan(answer, given.workload, given.sha256, catalog, Path()).faults == []
        cheaper = copy.deepcopy(answer)
        for line in cheaper["lines"]:
            line["costs"] = [cost for cost in line["costs"] if cost["id"] != "after_end"]
        assert judge_plan(cheaper, given.workload, given.sha256, catalog, Path()).faults


def test_of_equal_terms_the_part_that_ends_first_pays_for_it() -> None:
    """Two commitments that differ in their ends alone are one cluster: what is paid is for four of its eight."""
    catalog = make_catalog(LISTED)
    lasting = plan_on(catalog, job_until(None, 8)).plan
    end = datetime.fromisoformat(lasting.start) + timedelta(hours=1.1 * lasting.hours)
    paid = {}
    for until in (None, end):
        job = job_until(end, 4)
        job["commitments"] += job_until(until, 4)["commitments"]
        given = loaded(job)
        plan = plan_on(catalog, job).plan
        assert [line.nodes for line in plan.lines] == [4, 4]
        assert judge_plan(plan.to_dict(), given.workload, given.sha256, catalog, Path()).faults == []
        paid[until] = sum(
            cost.amount_usd for line in plan.lines for cost in line.costs if cost.id == "after_end"
        )
    assert paid[end] == pytest.approx(2 * paid[None]) and paid[None] > 0


def test_the_order_of_lines_hides_nothing_that_is_paid_after_an_end() -> None:
    """The smaller commitment ends first: listed first, its line is still not taken for one of the larger."""
    catalog = make_catalog(LISTED)
    lasting = plan_on(catalog, job_until(None, 8)).plan
    end = datetime.fromisoformat(lasting.start) + timedelta(hours=1.05 * lasting.hours)
    for larger in (4, 6):
        job = job_until(end, 2)
        job["commitments"] += job_until(None, larger)["commitments"]
        given = loaded(job)
        answer = plan_on(catalog, job).plan.to_dict()
        assert judge_plan(answer, given.workload, given.sha256, catalog, Path()).faults == []
        owned = [line for line in answer["lines"] if line["option_variant"] == "already_owned"]
        assert [line["nodes"] for line in owned] == [larger, 2]
        forged = answer | {"lines": [*reversed(owned), *answer["lines"][2:]]}
        for line in owned:
            line["costs"] = [cost for cost in line["costs"] if cost["id"] != "after_end"]
        resum(forged)
        faults = judge_plan(forged, given.workload, given.sha256, catalog, Path()).faults
        assert any(str(fault).startswith("total_usd:") for fault in faults)


def test_a_run_goes_on_where_on_demand_is_cheapest_and_that_counts_for_the_budget() -> None:
    """Of the zones of its region; what the mean run pays after the end is owed like all else."""
    catalog = make_catalog([replace(LISTED[0], zone="a"), replace(LISTED[0], zone="b", price_per_hour="0.9")])
    lasting = plan_on(catalog, job_until(None, 8)).plan
    job = job_until(datetime.fromisoformat(lasting.start) + timedelta(hours=1.1 * lasting.hours), 8)
    plan = plan_on(catalog, job).plan
    after = [cost for line in plan.lines for cost in line.costs if cost.id == "after_end"]
    assert [float(cost.unit_price) for cost in after] == [0.9]
    for budget, status in ((1.01, "planned"), (0.99, "infeasible")):
        limits = {**job["constraints"], "budget_usd": budget * float(plan.total_usd)}
        assert plan_on(catalog, {**job, "constraints": limits}).plan.status == status


def test_without_a_price_on_demand_a_run_goes_on_at_that_of_the_commitment() -> None:
    catalog = make_catalog(
        [replace(LISTED[0], purchase_option="reserved_1y", price_per_hour="0.7", term_hours=8760.0)]
    )
    lasting = plan_on(catalog, job_until(None, 8)).plan
    job = job_until(datetime.fromisoformat(lasting.start) + timedelta(hours=1.1 * lasting.hours), 8)
    after = [
        cost for line in plan_on(catalog, job).plan.lines for cost in line.costs if cost.id == "after_end"
    ]
    assert [(float(cost.unit_price), cost.quantity > 1) for cost in after] == [(0.7, True)]


def test_of_own_machines_that_stay_idle_the_size_that_is_soonest_done_is_named() -> None:
    """Six are too slow on average, eight only for the chance asked: the reader need not buy as many as six suggest."""
    catalog, soonest = make_catalog([*LISTED, Offer(A100X8, "us-east-1", "32")]), hours_on(8)
    limits = {"deadline": f"{1.1 * soonest:.4f}h", "deadline_confidence": 0.9}
    assert 1.1 * soonest < hours_on(6)
    plan = plan_on(catalog, eight_nodes(8, purchase_options=["on_demand", "reserved_1y"], **limits)).plan
    assert {line.instance_type for line in plan.lines} == {A100X8.instance_type}
    (said,) = [text for text in plan.warnings if "own machines" in text]
    assert f"a run takes {soonest:.2g} h on average, in time, but not with the required probability" in said


def test_two_commitments_of_one_kind_end_each_on_its_own_day() -> None:
    job = job_until(None)
    until = datetime.fromisoformat(plan_on(make_catalog(LISTED), job).plan.start) + timedelta(hours=1)
    job["commitments"] = [{**OWNED, "nodes": 3, "expires": until.isoformat()}, {**OWNED, "nodes": 2}]
    answer = plan_on(make_catalog(LISTED), job)
    assert sorted(line.nodes for line in answer.plan.lines) == [2, 6]
    assert verify_plan(answer.plan.to_dict(), loaded(job).workload) == []
