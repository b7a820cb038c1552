"""Mainland China and government clouds compete only where the workload asks for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.judge.lines import verify_plan
from tests.planner.spine_catalogs import A10, A10G, Offer, loaded, make_catalog, plan_on, work

HERE = Offer(A10G, "us-east-1", "1.0")
CHINA = Offer(A10, "cn-shanghai", "0.05")
GOV = Offer(replace(A10G, instance_type="g5.gov"), "us-gov-west-1", "0.05")
DATA = {"size": "1GB", "location": "alibaba/cn-beijing"}


@pytest.mark.parametrize(
    ("asked", "offer"),
    [
        ({"constraints": {"regions": ["*", "alibaba/cn-shanghai"]}}, CHINA),
        ({"constraints": {"residency": ["cn"]}}, CHINA),
        ({"data": DATA}, CHINA),
        ({"constraints": {"regions": ["us-gov-*", "us-east-1"]}}, GOV),
    ],
)
def test_what_is_asked_for_may_win(asked: dict[str, Any], offer: Offer) -> None:
    catalog = make_catalog([HERE, offer])
    plan = plan_on(catalog, work(**asked)).plan
    assert [line.region for line in plan.lines] == [offer.region]
    assert verify_plan(plan.to_dict(), loaded(work(**asked)).workload, catalog.offers) == []
    plain = loaded(work()).workload
    assert any("is not asked for" in fault for fault in verify_plan(plan.to_dict(), plain, catalog.offers))


@pytest.mark.parametrize("offer", [CHINA, GOV])
@pytest.mark.parametrize("asked", [{}, {"regions": ["*"]}, {"residency": ["us", "asia"]}])
def test_what_is_not_asked_for_is_named_beside_the_plan(offer: Offer, asked: dict[str, Any]) -> None:
    catalog = make_catalog([HERE, offer])
    plan = plan_on(catalog, work(constraints=asked)).plan
    assert [line.region for line in plan.lines] == ["us-east-1"]
    (hidden,) = plan.relaxations
    assert hidden.constraint == "partition"
    assert hidden.best is not None
    assert hidden.best.cost_usd < plan.total_usd
    assert hidden.needed.startswith(f"{offer.machine.provider}/{offer.region}, which needs ")


def test_alone_it_is_the_way_out_of_an_infeasible_question() -> None:
    plan = plan_on(make_catalog([CHINA]), work()).plan
    assert plan.status == "infeasible"
    assert [item.constraint for item in plan.relaxations] == ["partition"]


def test_the_users_own_machines_there_are_asked_for() -> None:
    plan = plan_on(make_catalog([HERE, replace(CHINA, purchase_option="owned")]), work()).plan
    assert [line.region for line in plan.lines] == ["cn-shanghai"]
