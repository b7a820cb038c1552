"""Spot prices that move while workers of a fleet run: what is charged, what the bound rests on, what is caught."""

from __future__ import annotations

from dataclasses import fields, replace
from decimal import Decimal
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.fleet.alone import fleets_of_one_offer
from planner.fleet.bill import bill_of
from planner.fleet.moving_price import at_full_hours, at_least, at_most
from planner.fleet.workers import Workers
from planner.judge.lines import verify_plan
from planner.market.model import Market
from planner.market.price_path import RUN_HOURS
from planner.plan.model import Plan
from tests.draws import draws
from tests.planner.fleet.test_spine_fleet import exactly, fleet
from tests.planner.fleet.test_spread import _planned as planned_with
from tests.planner.spine_catalogs import A10G, Offer, loaded, make_catalog, not_dearer

HOURS = np.linspace(1e-6, 1.0, 401)
# quoted today: the cheap zone is expected to rise towards the level of its type, the dear one to fall
ZONES = [
    Offer(
        A10G, "us-east-1", price, "spot", zone=f"us-east-1{zone}", basis="observed", interruption_band="<5%"
    )
    for zone, price in zip("abcd", ("0.30", "0.50", "0.52", "0.90"), strict=True)
]
ON_DEMAND = Offer(A10G, "us-east-1", "1.21")


def workers_of(**values: float) -> Workers:
    values = {"left_hours": np.inf} | values
    given = {item.name: np.asarray([values.get(item.name, 0.0)]) for item in fields(Workers)}
    whole = {name: given[name].astype(np.int64) for name in ("at", "rows", "nodes", "store")}
    return Workers(**{**given, **whole})


def market_of(usd_per_hour: float, growth: list[float]) -> Market:
    """A market of one spot offer whose price over that of the start is `growth` at `RUN_HOURS`."""

    def during(rows: Any, run_hours: Any) -> Any:
        return usd_per_hour * np.interp(run_hours, RUN_HOURS, growth)

    book = SimpleNamespace(path=SimpleNamespace(place=np.zeros(1, dtype=np.int64)))
    offers = SimpleNamespace(book=book, usd_per_hour=np.asarray([usd_per_hour]), usd_during=during)
    return cast("Market", SimpleNamespace(offer_set=offers))


growths = st.lists(st.floats(0.5, 2.0), min_size=5, max_size=5).map(lambda rest: [1.0, *rest])


@draws(200)
@given(
    growths, st.floats(0.1, 3000.0), st.floats(0.0, 2.0), st.floats(0.0, 48.0), st.floats(0.5, 1.0),
    st.floats(1.0, 3000.0), st.integers(1, 8),
)  # fmt: skip
def test_what_the_model_charges_is_never_above_what_any_hours_cost(
    growth: list[float],
    hours: float,
    fixed_hours: float,
    waiting: float,
    ratio: float,
    need: float,
    nodes: int,
) -> None:
    market, rate = market_of(2.0, growth), 2.0 * nodes
    lead = waiting + fixed_hours
    workers = workers_of(
        nodes=nodes, lead_hours=lead, fixed_hours=fixed_hours, hours_limit=hours, best_hours=hours, paid_ratio=ratio,
        units_per_hour=1.0, fixed_usd=rate * fixed_hours + 0.01, usd_per_hour=rate * ratio,
        start_fixed_usd=rate * fixed_hours + 0.01, start_usd_per_hour=rate * ratio,
    )  # fmt: skip
    least, most = at_least(workers, market, need), at_most(workers, market)
    worked = HOURS * min(hours, need)
    usd = 0.01 + rate * np.interp(lead + worked, RUN_HOURS, growth) * (fixed_hours + ratio * worked)
    charged = least.fixed_usd + least.usd_per_hour * worked
    assert (charged <= usd * (1 + 1e-9)).all()
    assert (most.fixed_usd + most.usd_per_hour * worked >= usd * (1 - 1e-9)).all()
    assert least.fixed_usd[0] >= 0 and least.usd_per_hour[0] >= 0
    # and the line meets the cost at the best hours: no larger bound of this form is lost there
    best = min(float(least.best_hours[0]), need)
    at_best = 0.01 + rate * np.interp(lead + best, RUN_HOURS, growth) * (fixed_hours + ratio * best)
    assert least.fixed_usd[0] + least.usd_per_hour[0] * best == pytest.approx(at_best, rel=1e-9)
    assert (usd / worked).min() >= at_best / best * (1 - 1e-9)


def test_full_hours_are_charged_at_their_own_price_and_best_ones_beside_them() -> None:
    market = market_of(1.0, [1.0, 1.3, 1.3, 1.3, 1.3, 1.3])
    workers = workers_of(
        nodes=1,
        hours_limit=144.0,
        best_hours=40.0,
        paid_ratio=1.0,
        start_fixed_usd=0.5,
        start_usd_per_hour=1.0,
    )
    charged = at_full_hours(workers, market)
    assert charged.hours_limit.tolist() == [144.0, 40.0]
    assert charged.usd_per_hour.tolist() == pytest.approx([1.3, 1.0 + 0.3 * 40 / 144])


def planned(deadline: str, offers: list[Offer] | None = None) -> Plan:
    job = fleet(900, {"max_nodes": 60, "deadline": deadline})
    return exactly(offers or [*ZONES, ON_DEMAND], job)


def test_a_fleet_pays_the_price_to_expect_over_the_hours_that_its_workers_run() -> None:
    plan = planned("40d")
    assert plan.status == "planned" and plan.proof is not None and plan.total_usd is not None
    assert plan.hours is not None and plan.launch is not None
    cheap = next(line for line in plan.lines if line.zone == "us-east-1a")
    assert cheap.quoted_price_per_hour == Decimal("0.30") < cheap.price_per_hour
    assert cheap.price_p10_per_hour is not None and cheap.price_p90_per_hour is not None
    assert cheap.price_p10_per_hour < cheap.price_per_hour < cheap.price_p90_per_hour
    compute = next(cost for cost in cheap.costs if cost.kind == "compute")
    assert compute.amount_usd == pytest.approx(compute.quantity * cheap.price_per_hour)
    assert plan.proof.bound_usd <= plan.total_usd
    # its spread is in the cost
    over = float(compute.amount_usd) * (float(cheap.price_p90_per_hour / cheap.price_per_hour) - 1)
    assert float(plan.launch.cost_p90_usd - plan.total_usd) >= over


def test_a_later_deadline_does_not_make_a_fleet_dearer_though_prices_rise() -> None:
    plans = [planned(deadline) for deadline in ("10d", "40d")]
    for sooner, later in pairwise(plans):
        assert sooner.total_usd is not None and later.total_usd is not None
        assert later.proof is not None
        assert not_dearer(later.total_usd, sooner.total_usd)
        assert later.proof.bound_usd <= sooner.total_usd


def test_workers_stop_sooner_where_that_is_cheaper_than_few_long_ones() -> None:
    """With 60 days at hand the cheap zone is used while it is cheap: more workers, and for less than the deadline."""
    plan = planned("60d", [ZONES[0], ZONES[1], ZONES[2]])
    assert plan.hours is not None and plan.hours < 0.5 * 60 * 24


def test_a_fleet_at_the_price_of_the_start_is_rejected() -> None:
    plan, catalog = planned("40d"), make_catalog([*ZONES, ON_DEMAND])
    workload = loaded(fleet(900, {"max_nodes": 60, "deadline": "40d"})).workload
    assert verify_plan(plan.to_dict(), workload, catalog.offers) == []
    at = next(at for at, line in enumerate(plan.lines) if line.zone == "us-east-1a")
    line = replace(plan.lines[at], price_per_hour=Decimal("0.30"))
    forged = replace(plan, lines=(*plan.lines[:at], line, *plan.lines[at + 1 :]))
    faults = verify_plan(forged.to_dict(), workload, catalog.offers)
    assert any("0.30 USD/h, expected is" in fault for fault in faults)


def test_one_offer_costs_its_bill_where_some_workers_do_one_run_more() -> None:
    """A line has one price, that in the middle of its mean run."""
    job = fleet(7, {"max_nodes": 3, "deadline": "60d"})
    job["training"] = {**job["training"], "samples": 300_000_000}
    plan, found, mix = planned_with(lambda: exactly(ZONES[:1], job))
    assert plan.status == "planned"
    few, most, _ = mix.shifts
    assert few[0] < most[0]
    one = fleets_of_one_offer(found, mix.limit_hours, mix.work)
    one = replace(one, count=mix.count.astype(float))
    assert one.cost_usd(found)[0] == pytest.approx(
        float(bill_of(found, one.mix(mix.limit_hours))[0]), rel=1e-9
    )
