"""What a fleet breaks is named by the workload's key, and what is named is enough."""

from __future__ import annotations

from typing import Any

import pytest

from tests.planner.fleet.test_spine_fleet import exactly, fleet
from tests.planner.spine_catalogs import A10G, L4, Offer

OFFERS = [
    Offer(A10G, "us-east-1", "1.00", capacity=2.0),
    Offer(L4, "us-central1", "0.80", capacity=1.0),
]
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "budget": ({"budget_usd": 8}, {}),
    "max_nodes": ({"max_nodes": 2}, {}),
    "max_regions": ({}, {"max_regions": 1}),
    "max_share_per_region": ({}, {"max_share_per_region": 0.5}),
    "max_share_per_offer": ({}, {"max_share_per_offer": 0.5}),
}


def _asked(name: str, enough: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The case with the limit that the answer calls enough."""
    limits, wishes = (dict(part) for part in CASES[name])
    number = enough.removesuffix("%").replace("$", "").replace(",", "")
    value = float(number) / 100 if enough.endswith("%") else int(number) if "." not in number else number
    key = {"budget": "budget_usd"}.get(name, name)
    (limits if key in limits else wishes)[key] = value
    return limits, wishes


@pytest.mark.parametrize("name", CASES)
def test_a_fleet_names_the_key_that_gives_way_and_what_is_enough(name: str) -> None:
    limits, wishes = CASES[name]
    tight = exactly(OFFERS, fleet(6, {"deadline": "16h", **limits}, **wishes))
    assert tight.status == "infeasible"
    (relaxation,) = tight.relaxations
    assert relaxation.constraint == name
    assert name in relaxation.note or "constraints" in relaxation.note
    before_whole = "if runs could be split; whole runs may need more: "
    assert relaxation.note.startswith(before_whole) != (name == "budget")  # which a plan in whole runs needs
    limits, wishes = _asked(name, relaxation.needed)
    assert exactly(OFFERS, fleet(6, {"deadline": "16h", **limits}, **wishes)).status == "planned"


def test_a_share_is_named_as_stated_not_as_the_whole_runs_that_it_comes_to() -> None:
    (relaxation,) = exactly(OFFERS, fleet(6, {"deadline": "16h"}, max_share_per_offer=0.55)).relaxations
    assert relaxation.current == "55%" and relaxation.changes[0].limit == 0.55


def test_runs_that_are_too_many_for_the_deadline_are_counted_as_runs() -> None:
    (relaxation,) = exactly(OFFERS, fleet(60, {"deadline": "16h"})).relaxations
    assert relaxation.constraint == "deadline" and relaxation.current == "60 runs in time"
    assert 1 <= int(relaxation.needed.split()[0]) < 60


@pytest.mark.parametrize("runs", [3, 4, 5, 6])
@pytest.mark.parametrize("shares", [{}, {"max_spot_share": 0.5}, {"max_regions": 1}])
def test_the_budget_named_is_enough_for_whole_runs(runs: int, shares: dict[str, Any]) -> None:
    """Runs take hours on machines that differ in price: what they would cost if they were split may not do."""
    offers = [
        Offer(A10G, "us-east-1", "1.00", capacity=3.0),
        Offer(L4, "us-central1", "0.80", capacity=3.0),
        Offer(A10G, "us-west-2", "0.40", "spot", capacity=4.0),
    ]

    def asked(budget: object) -> Any:
        return exactly(offers, fleet(runs, {"deadline": "16h", "budget_usd": budget}, **shares))

    (relaxation,) = asked(3.4).relaxations  # enough for one run
    assert relaxation.constraint == "budget"
    enough = relaxation.needed.removeprefix("$").replace(",", "")
    assert asked(enough).status == "planned"


@pytest.mark.parametrize(
    ("prices", "capacities", "runs", "budget"),
    [
        (("0.86", "1.92", "0.38"), (4.0, 2.0, 3.0), 5, 7.63),
        (("0.72", "1.36", "0.35"), (4.0, 2.0, 2.0), 4, 3.52),
        (("2.01", "1.88", "0.28"), (2.0, 4.0, 4.0), 3, 2.81),
        (("0.63", "1.15", "0.30"), (2.0, 4.0, 3.0), 5, 5.87),
    ],
)
def test_a_fleet_known_to_be_sure_enough_is_found_with_the_budget_named_for_it(
    prices: tuple[str, str, str], capacities: tuple[float, float, float], runs: int, budget: float
) -> None:
    """Split runs would cost less, and with that budget, or this one, the cheapest mix at spot's mean is not sure."""
    machines = (A10G, "us-east-1", "on_demand"), (L4, "us-central1", "on_demand"), (A10G, "us-west-2", "spot")
    offers = [
        Offer(machine, region, price, option, capacity=capacity)
        for (machine, region, option), price, capacity in zip(machines, prices, capacities, strict=True)
    ]

    def asked(usd: object) -> Any:
        return exactly(offers, fleet(runs, {"deadline": "30h", "budget_usd": usd}))

    (relaxation,) = asked(budget).relaxations
    assert relaxation.constraint == "budget"
    assert "if runs could be split" not in relaxation.note
    plan = asked(relaxation.needed.removeprefix("$"))
    assert plan.status == "planned"
    assert plan.risk.p_meet_deadline >= 0.9


def test_work_that_no_fleet_does_in_time_is_the_deadlines() -> None:
    plan = exactly(OFFERS, fleet(200))
    (relaxation,) = plan.relaxations
    assert relaxation.constraint == "deadline"
    assert "%" in relaxation.needed


def test_where_no_worker_can_be_only_one_run_is_promised() -> None:
    plan = exactly(OFFERS, fleet(4, {"budget_usd": 1}))
    (relaxation,) = plan.relaxations
    assert relaxation.constraint == "budget"
    assert relaxation.best is None
    assert "one run" in relaxation.note


def test_an_idle_worker_asks_for_no_region() -> None:
    """Two workers in one region do 98 % of the work: only the deadline gives way, not the regions too."""
    job = fleet(1, {"deadline": "10.1h"}, max_regions=1)  # work that divides freely
    job["training"] = {**job["training"], "samples": job["training"]["samples"] * 4}
    plan = exactly(OFFERS, job)
    assert [item.constraint for item in plan.relaxations] == ["deadline"]
