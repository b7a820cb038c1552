"""Verification accepts what the planner made and rejects what was changed afterwards."""

from __future__ import annotations

import copy
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from planner.inputs.schema import Workload
from planner.judge.limits import check_limits
from planner.judge.lines import verify_plan
from tests.draws import draws
from tests.planner.job.test_spine_laws import a_job, some_offers
from tests.planner.judge.tampering import resum
from tests.planner.spine_catalogs import (
    A10,
    A10G,
    A100X8,
    L4,
    NAN,
    V100,
    Offer,
    loaded,
    make_catalog,
    make_world,
    plan_on,
    work,
)

Json = dict[str, Any]
Tamper = Callable[[Json], None]
LIMITS = {"max_nodes": 4, "deadline": "16h", "budget_usd": 100}
OFFERS = (
    Offer(A10G, "us-east-1", "1.10"),
    Offer(A10G, "eu-west-1", "1.25"),
    Offer(L4, "us-central1", "1.90"),
    Offer(A10, "ap-southeast-1", "21.5", currency="CNY", flags="system_disk_separate"),
)


@draws(40)
@given(some_offers(), a_job())
def test_every_plan_verifies(offers: list[Offer], job: Json) -> None:
    catalog = make_world(offers)
    answer = plan_on(catalog, job)
    assert verify_plan(answer.plan.to_dict(), loaded(job).workload, catalog.offers) == []
    assert verify_plan(answer.plan.to_dict()) == []


@pytest.fixture(scope="module")
def made() -> tuple[Json, Workload, Any]:
    """A plan with compute, storage and transfer lines, its workload and its offers."""
    job = work(constraints=LIMITS, data={"size": "300GB", "location": "gcp/us-central1"})
    job["assumptions"] = {"cross_cloud_staging_gbps": 400.0}
    offers = [
        Offer(A10G, "us-east-1", "1.10"),
        Offer(L4, "us-central1", "900"),
        Offer(A10G, "eu-west-1", "1.25"),
    ]
    catalog = make_catalog(offers)
    plan = plan_on(catalog, job).plan.to_dict()
    assert plan["status"] == "planned"
    assert {"compute", "data_storage", "checkpoint_storage", "data_transfer"} <= {
        cost["kind"] for cost in plan["lines"][0]["costs"]
    }
    return plan, loaded(job).workload, catalog.offers


def _cost(plan: Json, kind: str = "compute") -> Json:
    cost: Json = next(cost for cost in plan["lines"][0]["costs"] if cost["kind"] == kind)
    return cost


def _amount(plan: Json) -> None:
    _cost(plan)["amount_usd"] = "0.01"


def _quantity(plan: Json) -> None:
    _cost(plan)["quantity"] = "1"


def _unit_price(plan: Json) -> None:
    _cost(plan)["unit_price"] = "0.01"


def _negative(plan: Json) -> None:
    _cost(plan)["quantity"] = "-1"
    resum(plan)


def _total(plan: Json) -> None:
    plan["total_usd"] = "1.00"


def _line_total(plan: Json) -> None:
    plan["lines"][0]["cost_usd"] = "1.00"


def _fewer_hours(plan: Json) -> None:
    _cost(plan)["quantity"] = str(Decimal(_cost(plan)["quantity"]) / 2)
    resum(plan)


def _nodes(plan: Json) -> None:
    plan["lines"][0]["nodes"] += 1


def _too_many_nodes(plan: Json) -> None:
    line = plan["lines"][0]
    line["nodes"] = 5
    _cost(plan)["quantity"] = str(Decimal(line["billed_hours"]) * 5)
    resum(plan)


def _list_price(plan: Json) -> None:
    plan["lines"][0]["price_per_hour"] = "0.55"


def _both_prices(plan: Json) -> None:
    plan["lines"][0]["price_per_hour"] = _cost(plan)["unit_price"] = "0.55"
    resum(plan)


def _cheaper_compute(plan: Json) -> None:
    _cost(plan)["unit_price"] = "0.55"
    resum(plan)


def _other_rate(plan: Json) -> None:
    _cost(plan)["usd_per_currency"] = "0.5"
    resum(plan)


def _region(plan: Json) -> None:
    plan["lines"][0]["region"] = "eu-west-1"


def _nowhere(plan: Json) -> None:
    plan["lines"][0]["region"] = "atlantis-1"


def _provider(plan: Json) -> None:
    plan["lines"][0]["provider"] = "gcp"


def _instance_type(plan: Json) -> None:
    plan["lines"][0]["instance_type"] = "p4d.24xlarge"


def _option(plan: Json) -> None:
    plan["lines"][0]["purchase_option"] = "spot"


def _offer_id(plan: Json) -> None:
    plan["lines"][0]["offer_id"] = "aws/us-east-1/-/p5.48xlarge/on_demand/-"


def _drop_transfer(plan: Json) -> None:
    line = plan["lines"][0]
    line["costs"] = [cost for cost in line["costs"] if cost["kind"] != "data_transfer"]


def _drop_compute(plan: Json) -> None:
    line = plan["lines"][0]
    line["costs"] = [cost for cost in line["costs"] if cost["kind"] != "compute"]
    resum(plan)


def _no_lines(plan: Json) -> None:
    plan["lines"] = []
    plan["total_usd"] = "0"
    plan["cash"] = []


def _longer(plan: Json) -> None:
    plan["hours"] *= 2


def _timeline(plan: Json) -> None:
    plan["timeline"].pop()


def _fewer_steps(plan: Json) -> None:
    for part in plan["timeline"]:
        if part["id"] == "training_steps":
            plan["hours"] -= part["hours"] / 2
            part["hours"] /= 2


def _slower(plan: Json) -> None:
    plan["performance"]["throughput_per_s"] /= 2


def _finish(plan: Json) -> None:
    plan["finish_expected"] = "2026-11-20T01:00+00:00"


def _deadline_passed(plan: Json) -> None:
    plan["deadline"] = "2026-11-20T02:00+00:00"


def _later_deadline(plan: Json) -> None:
    plan["deadline"] = "2027-11-20T12:00+00:00"


def _no_deadline(plan: Json) -> None:
    plan["deadline"] = None


def _unlikely(plan: Json) -> None:
    plan["risk"]["p_meet_deadline"] = 0.3


def _cash(plan: Json) -> None:
    plan["cash"][0]["amount_usd"] = "0.01"


def _no_cash(plan: Json) -> None:
    plan["cash"] = []


def _headroom(plan: Json) -> None:
    plan["performance"]["memory_headroom_gib"] = -1.0


def _layout(plan: Json) -> None:
    plan["lines"][0]["layout"]["data_parallel"] += 6


def _missing_key(plan: Json) -> None:
    del plan["lines"][0]["costs"]


def _not_a_number(plan: Json) -> None:
    plan["total_usd"] = "many"


def _not_a_list(plan: Json) -> None:
    plan["lines"] = 7


def _infinite(plan: Json) -> None:
    plan["hours"] = float("nan")


TAMPERS: tuple[Tamper, ...] = (
    _amount, _quantity, _unit_price, _negative, _total, _line_total, _fewer_hours, _nodes, _too_many_nodes,
    _list_price, _both_prices, _cheaper_compute, _other_rate, _region, _nowhere, _provider, _instance_type, _option,
    _offer_id, _drop_transfer, _drop_compute, _no_lines, _longer, _timeline, _fewer_steps, _slower, _finish,
    _deadline_passed, _later_deadline, _no_deadline, _unlikely, _cash, _no_cash, _headroom, _layout, _missing_key,
    _not_a_number, _not_a_list, _infinite,
)  # fmt: skip


@pytest.mark.parametrize("tamper", TAMPERS, ids=lambda tamper: tamper.__name__.lstrip("_"))
def test_a_changed_plan_is_rejected(made: tuple[Json, Workload, Any], tamper: Tamper) -> None:
    plan, workload, offers = made
    forged = copy.deepcopy(plan)
    tamper(forged)
    faults = verify_plan(forged, workload, offers)
    assert faults
    assert all(faults)
    assert verify_plan(plan, workload, offers) == []


# A stricter workload than the plan was made for; each must be noticed.
STRICTER: dict[str, Json] = {
    "budget": {"budget_usd": 1},
    "max_nodes": {"max_nodes": 1},
    "max_kgco2e": {"max_kgco2e": 0.001},
    "max_accelerators": {"max_accelerators": 1},
    "deadline": {"deadline": "2h"},
    "deadline_confidence": {"deadline": "14h", "deadline_confidence": 0.999999},
    "providers": {"providers": ["gcp"]},
    "regions": {"regions": ["eu-*"]},
    "residency": {"residency": ["eu"]},
    "purchase_options": {"purchase_options": ["spot"]},
    "exclude_purchase_options": {"exclude_purchase_options": ["on_demand"]},
    "accelerators": {"accelerators": {"deny": ["a10g*"]}},
    "instance_types": {"instance_types": {"allow": ["g6*"]}},
    "software": {"software": ["rocm"]},
    "obtainable": {
        "obtainable": [{"accelerator": "a10g*", "purchase_option": "on_demand", "accelerators": 1}]
    },
    "min_throughput": {"min_throughput": {"tokens_per_s": 1e9}},
    "min_memory_gib": {"min_memory_gib": 80.0},
    "min_total_memory_gib": {"min_total_memory_gib": 800.0},
    "quota": {"quota": [{"provider": "aws", "quota": "L-DB2E81BA", "limit": 8}]},
}


@pytest.mark.parametrize("limit", STRICTER)
def test_a_plan_for_looser_limits_is_rejected(limit: str) -> None:
    catalog = make_catalog([Offer(A10G, "us-east-1", "1.10")])
    plan = plan_on(catalog, work(constraints={"max_nodes": 4, "deadline": "14h"})).plan.to_dict()
    assert plan["lines"][0]["nodes"] > 1
    strict = work(constraints={"max_nodes": 4, "deadline": "14h", **STRICTER[limit]})
    assert verify_plan(plan, loaded(strict).workload, catalog.offers)


def test_a_plan_for_less_work_is_rejected() -> None:
    catalog = make_catalog(OFFERS)
    small = work(
        training={"samples": 10_000_000, "global_batch": 256, "sequence_length": 128, "precision": "fp16"}
    )
    plan = plan_on(catalog, small).plan.to_dict()
    assert verify_plan(plan, loaded(small).workload) == []
    assert any("of" in fault for fault in verify_plan(plan, loaded(work()).workload))


def test_a_plan_that_goes_on_for_more_than_a_century_is_rejected() -> None:
    catalog = make_catalog(OFFERS)
    plan = plan_on(catalog, work()).plan.to_dict()
    assert check_limits(plan, loaded(work()).workload) == []
    longer = {**plan, "hours": 876_601.0}
    assert check_limits(longer, loaded(work()).workload) == ["takes 876601 hours, more than a century"]


def test_an_infeasible_answer_has_no_lines() -> None:
    catalog = make_catalog(OFFERS)
    empty = plan_on(catalog, work(constraints={"budget_usd": "0.01"})).plan.to_dict()
    assert verify_plan(empty, None, catalog.offers) == []
    full = plan_on(catalog, work()).plan.to_dict()
    assert verify_plan({**empty, "lines": full["lines"]}) != []


def test_prices_changed_by_the_user_or_shared_by_a_commitment_verify() -> None:
    reserved = Offer(
        A100X8, "us-east-1", "0.02", "reserved_1y", term_hours=8760.0, upfront_per_instance="120"
    )
    catalog = make_catalog([reserved, Offer(V100, "us-east-1", "3.0", capacity=NAN)])
    jobs = (
        work(prices={"overlays": [{"provider": "aws", "change": "-12.5%"}]}),
        work(prices={"commitment_share": 0.013}),
        work(commitments=[{"provider": "aws", "region": "us-east-1", "instance_type": "p4d.24xlarge",
                           "purchase_option": "reserved_1y", "nodes": 2}]),
    )  # fmt: skip
    for job in jobs:
        plan = plan_on(catalog, job).plan
        assert plan.status == "planned"
        assert verify_plan(plan.to_dict(), loaded(job).workload, None) == []
