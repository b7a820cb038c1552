"""Where one limit is in the way, the answer says how it must change, in the limit's own unit, and that is enough."""

from __future__ import annotations

import re
from typing import Any

import pytest

from planner.plan.model import Plan
from tests.planner.spine_catalogs import A100X8, Offer, make_catalog, plan_on, work


def planned(**limits: Any) -> Plan:
    catalog = make_catalog([Offer(A100X8, "us-east-1", "20.0")])
    return plan_on(catalog, work(constraints={"deadline": "30d", "max_nodes": 1} | limits)).plan


def number(text: str) -> float:
    found = re.match(r"[0-9.,e+]+", text)
    assert found is not None, text
    return float(found.group().replace(",", ""))


def change(constraint: str, **limits: Any) -> tuple[str, str]:
    plan = planned(**limits)
    assert plan.status == "infeasible"
    ((current, needed),) = [
        (one.current, one.needed) for one in plan.relaxations if one.constraint == constraint
    ]
    return current, needed


def test_the_speed_that_can_be_reached_is_named() -> None:
    current, needed = change("throughput", min_throughput={"samples_per_s": 1e7})
    assert current == "10,000,000 samples/s" and "e+" not in needed and needed.endswith(" samples/s")
    assert planned(min_throughput={"samples_per_s": number(needed)}).status == "planned"
    assert planned(min_throughput={"samples_per_s": 1.02 * number(needed)}).status == "infeasible"


@pytest.mark.parametrize(
    ("limit", "words"), [("min_memory_gib", "GiB each"), ("min_total_memory_gib", "GiB in all")]
)
def test_the_memory_that_there_is_is_named(limit: str, words: str) -> None:
    current, needed = change("min_memory", **{limit: 4000})
    assert current == f"4000 {words}" and needed.endswith(words)
    assert planned(**{limit: number(needed)}).status == "planned"
    assert planned(**{limit: number(needed) + 1}).status == "infeasible"


@pytest.mark.parametrize(("unit", "limit"), [("GPU", 3), ("vCPU", 10)])
def test_the_quota_that_is_needed_is_named(unit: str, limit: float) -> None:
    quota = {"provider": "aws", "quota": "a100", "unit": unit}
    current, needed = change("quota", quota=[quota | {"limit": limit}])
    assert current == f"{limit:g} {unit} of a100"
    assert planned(quota=[quota | {"limit": number(needed)}]).status == "planned"
    assert planned(quota=[quota | {"limit": number(needed) - 1}]).status == "infeasible"
