"""The cost/time frontier: every point is what `optimize` answers for its deadline, and nothing is missing."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.solver_families.kernel import cheapest, cost_time_front, offer_bounds
from planner.asked.options import Options
from planner.job.frontier import Frontier, Point, frontier, thin
from planner.job.frontier_screen import fitting, frontier_screen
from planner.plan.brief import Summary
from solvers.search.pareto import dominated, pareto_front
from tests.draws import draws
from tests.planner.job.test_spine_laws import some_offers
from tests.planner.render.render_plans import alternative
from tests.planner.spine_catalogs import (
    A100X8,
    NOW,
    V100,
    Offer,
    bundled_tariffs,
    cost_of,
    loaded,
    make_catalog,
    plan_on,
    work,
)

SMALL = st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, 8.0, float("inf")])


def front_of(offers: Sequence[Offer], job: dict[str, Any]) -> Frontier:
    catalog = make_catalog(offers)
    with (
        mock.patch("planner.job.frontier.load_catalog", lambda *_args, **_flags: catalog),
        mock.patch("planner.candidates.prepare.load_tariffs", bundled_tariffs),
    ):
        return frontier(loaded(job), Options(NOW))


@given(st.lists(st.tuples(SMALL, SMALL), max_size=12))
def test_a_front_is_what_comparing_all_pairs_gives(points: list[tuple[float, float]]) -> None:
    first, second = np.asarray([p[0] for p in points]), np.asarray([p[1] for p in points])
    known = [p for p in points if np.isfinite(p).all()]
    brute = {p for p in known if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in known)}
    front = pareto_front(first, second)
    assert [(first[k], second[k]) for k in front] == sorted(brute)
    others = np.asarray([[x, y] for x in (-1.0, 0.0, 1.5, 4.0, 9.0) for y in (-1.0, 0.0, 2.5, 9.0)])
    beaten = dominated(first[front], second[front], others[:, 0], others[:, 1])
    assert beaten.tolist() == [any(q[0] <= x and q[1] <= y for q in known) for x, y in others.tolist()]


@given(st.integers(0, 10_000))
@draws(200)
def test_the_factored_answer_is_the_answer_of_the_whole_grid(seed: int) -> None:
    draw = np.random.default_rng(seed)
    hardware = draw.integers(0, 4, 7)
    price = draw.integers(1, 9, 7).astype(np.float64)
    nodes = np.arange(1, 6)
    hours = draw.integers(1, 50, (4, 5)).astype(np.float64)
    hours[draw.random((4, 5)) < 0.3] = np.inf
    grid = price[:, None] * (hours * nodes)[hardware]
    assert offer_bounds(price, hardware, hours * nodes).tolist() == grid.min(axis=1).tolist()
    if np.isfinite(grid).any():
        offer, at, cost = cheapest(price, hardware, hours * nodes)
        assert cost == grid.min() == grid[offer, at]
    offers, at_, times, costs = cost_time_front(price, hardware, hours, nodes)
    flat = pareto_front(hours[hardware].ravel(), grid.ravel())
    assert times.tolist() == hours[hardware].ravel()[flat].tolist()
    assert (
        costs.tolist()
        == grid.ravel()[flat].tolist()
        == [grid[o, k] for o, k in zip(offers, at_, strict=True)]
    )


def test_spot_that_no_deadline_admits_hides_no_other_point() -> None:
    # spot without a record is cheapest and soonest when nothing is asked; by a deadline it is no candidate
    steady = Offer(V100, "us-east-1", "0.2", capacity=2.0)
    limits = {"max_nodes": 4, "deadline_confidence": 0.6}
    alone = front_of([steady], work(constraints=limits))
    both = front_of([steady, Offer(A100X8, "us-east-1", "0.2", "spot")], work(constraints=limits))
    assert alone.points and both.points
    assert [point.best.cost_usd for point in both.points] == [point.best.cost_usd for point in alone.points]


@draws(30)
@given(some_offers(2, 6), st.sampled_from([0.6, 0.9]), st.data())
def test_each_point_is_the_plan_of_its_deadline(
    offers: list[Offer], sure: float, data: st.DataObject
) -> None:
    limits = {"max_nodes": 4, "deadline_confidence": sure}
    found = front_of(offers, work(constraints={**limits, "budget_usd": 1, "deadline": "1h"}))
    if not found.points:  # spot without a record or a fall-back is no candidate by a deadline
        assert all(offer.purchase_option == "spot" for offer in offers)
        return
    times = [point.deadline_hours for point in found.points]
    costs = [point.best.cost_usd for point in found.points]
    assert times == sorted(times) and costs == sorted(costs, reverse=True)
    at = data.draw(st.integers(0, len(times) - 1))
    # deadlines are whole seconds in a workload, and spot times are worked out to 0.1 %
    later = times[at] * 1.0015
    if at + 1 == len(times) or later < times[at + 1] * 0.998:
        answer = plan_on(
            make_catalog(offers), work(constraints={**limits, "deadline": f"{later * 3600:.0f}s"})
        )
        cost = cost_of(answer)
        if not in_turn(found.points[at]):
            assert cost == costs[at]
        else:  # between two asked deadlines: not better than at the later, not worse than at the earlier
            assert cost is not None and cost <= costs[at]
            assert at + 1 == len(costs) or cost >= costs[at + 1]
    sooner = times[at] * 0.998
    if sooner * 3600 >= 1 and not in_turn(found.points[at]):
        answer = plan_on(
            make_catalog(offers), work(constraints={**limits, "deadline": f"{sooner * 3600:.0f}s"})
        )
        cost = cost_of(answer)
        assert cost is None or cost > costs[at] or any(0.997 < t / times[at] < 1 for t in times[:at])


def in_turn(point: Point) -> bool:
    """Whether spot runs in several zones, or with a fall-back: such points are asked at chosen deadlines."""
    return "zones" in point.best.purchase_option or "else" in point.best.purchase_option


def test_a_fall_back_is_there_at_every_second() -> None:
    """What changes in time may end exactly at the deadline; rounding once dropped it at every other second."""
    from tests.planner.spine_catalogs import MACHINES

    machine = next(one for one in MACHINES if one.instance_type == "p4d.24xlarge")
    offers = [
        Offer(machine, "us-east-1", "0.24", "on_demand"),
        Offer(machine, "us-east-1", "0.2", "spot", interruption_band="5-10%"),
    ]
    costs = []
    for seconds in range(15_890, 15_922, 3):
        limits = {"max_nodes": 4, "deadline_confidence": 0.9, "deadline": f"{seconds}s"}
        costs.append(cost_of(plan_on(make_catalog(offers), work(constraints=limits))))
    assert None not in costs
    assert costs == sorted(costs, reverse=True)  # type: ignore[type-var]


def test_own_limits_are_marked_not_applied() -> None:
    point = front_of(
        [_offer()], work(constraints={"max_nodes": 2, "deadline": "1h", "budget_usd": 1})
    ).points[0]
    assert point.within_deadline is False and point.within_budget is False
    assert front_of([_offer()], work()).points[0].within_deadline is None


def _offer() -> Offer:
    from tests.planner.spine_catalogs import MACHINES, REGIONS

    machine = MACHINES[0]
    return Offer(machine, REGIONS[machine.provider][0], "3", "on_demand")


def test_thinning_keeps_both_ends_and_the_order() -> None:
    names = dict.fromkeys(
        ("label", "provider", "region", "zone", "instance_type", "accelerator", "purchase_option", "option_variant",
         "price_as_of"), "x",
    )  # fmt: skip

    points = [
        Point(float(k), Summary(**names, accelerators=1.0, nodes=1, hours=1.0, cost_usd=Decimal(100 - k),
                                delta_cost_usd=Decimal(0), delta_hours=0.0, flags=()), None, None)  # type: ignore[arg-type]
        for k in range(1, 40)
    ]  # fmt: skip
    few = thin(points, 5)
    assert len(few) == 5 and few[0] is points[0] and few[-1] is points[-1]
    assert [p.deadline_hours for p in few] == sorted(p.deadline_hours for p in few)
    assert thin(points, 39) == points


def test_the_same_machines_a_hair_later_in_another_region_are_one_point_of_the_screen() -> None:
    def point(deadline: float, usd: int, region: str, *, wished: bool = False, nodes: int = 4) -> Point:
        best = Summary(
            "", "aws", region, "", "g5.2xlarge", "a10g-24gb-pcie", float(nodes), "on_demand", "", nodes, deadline / 2,
            Decimal(usd), Decimal(0), 0.0, "2026-11-20",
        )  # fmt: skip
        return Point(deadline, best, None, None, wished)

    points = [point(9.0, 980, "a"), point(20.0, 550, "a"), point(20.1, 545, "b"), point(90.0, 400, "a")]
    assert fitting(points) == [points[0], points[1], points[3]]
    for other in (point(20.1, 545, "b", wished=True), point(20.1, 545, "b", nodes=8)):
        assert fitting([*points[:2], other, points[3]]) == [*points[:2], other, points[3]]
    last = [point(9.0, 980, "a"), point(20.0, 550, "a"), point(20.1, 545, "b")]
    assert fitting(last) == [last[0], last[2]]


def test_the_cheapest_is_named_by_the_first_deadline_that_costs_as_little() -> None:
    """A plan that is a cent cheaper a year later is no other plan to anybody."""
    front = [Point(at, alternative(cost_usd=Decimal(usd)), True, True)
             for at, usd in ((100.0, "900"), (200.0, "100.004"), (9000.0, "100.003"))]  # fmt: skip
    found = Frontier("w", 0.9, tuple(front), 9, "sizes", start="2026-11-20T00:00+00:00")
    screen = frontier_screen(found, fitting(front))
    row = next(str(words) for _, label, _, _, words in screen.verdict if label == "cheapest")
    assert "by Nov 28 08:00" in row
    assert fitting(front) == front[:2]


def test_of_deadlines_that_print_alike_the_cheapest_is_the_soonest() -> None:
    dear, cheap, later = (
        Point(at, alternative(cost_usd=Decimal(usd)), True, True)
        for at, usd in ((0.92804, "67"), (0.92968, "40"), (4.0, "9"))
    )
    screen = frontier_screen(
        Frontier("w", 0.9, (dear, cheap, later), 9, "sizes"), fitting((dear, cheap, later))
    )
    assert fitting((dear, cheap, later)) == [cheap, later]
    (soonest,) = (row[4] for row in screen.verdict if row[0] == "soonest")
    (kept,) = (row[4] for row in screen.verdict if row[0] == "kept")
    assert soonest.startswith("$40 by") and kept.endswith("the soonest costs $40")


def test_the_best_trade_is_a_row_of_its_own_or_named_in_that_of_an_end() -> None:
    def rows(*points: tuple[float, str]) -> dict[str, str]:
        front = [Point(hours, alternative(cost_usd=Decimal(usd)), True, True) for hours, usd in points]
        screen = frontier_screen(Frontier("w", 0.9, tuple(front), 9, "sizes"), front)
        return {str(label): words for _, label, _, _, words in screen.verdict}

    between = rows((5.0, "900"), (10.0, "120"), (200.0, "100"))
    assert between["best trade"].startswith("$120") and "best trade" not in "".join(between.values())
    at_the_end = rows((4.0, "360"), (12.0, "146"), (336.0, "102"))
    assert at_the_end["soonest"].endswith("; the best trade") and "best trade" not in at_the_end
    assert "best trade" not in at_the_end["cheapest"]


def test_the_best_trade_is_printed_by_the_deadline_that_is_typed_for_it() -> None:
    def said(hours: float) -> tuple[str, str]:
        front = [Point(at, alternative(cost_usd=Decimal(usd)), True, True)
                 for at, usd in ((5.0, 9000), (hours, 120), (2000.0, 100))]  # fmt: skip
        found = Frontier("w", 0.9, tuple(front), 9, "sizes", start="2026-11-20T00:00+00:00")
        screen = frontier_screen(found, front)
        row = next(str(words) for _, label, _, _, words in screen.verdict if label == "best trade")
        return row.partition(": ")[0], screen.following[0].rpartition("=")[2]

    assert said(18.0893) == (
        "$120 by Nov 20 18:06",
        "18h6m",
    )  # a plan by 19:00 costs less: not said of that one
    assert said(17.0) == ("$120 by Nov 20 17:00", "17h")
    assert said(0.4) == ("$120 by Nov 20 00:24", "24m")
    assert said(100.2) == ("$120 by Nov 24 05:00", "101h")
