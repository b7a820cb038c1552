"""Of offers that are the same to the question, a fleet uses the first ones."""

from __future__ import annotations

import numpy as np
import pytest

from planner.fleet.alike import first_of_alike
from planner.fleet.question import FleetInput
from planner.fleet.solve import solve_fleet

KEYS = ("a", "b", "c", "d")


def fleet(cost: tuple[float, ...], most: float = 9.0) -> FleetInput:
    return FleetInput(
        keys=KEYS, cost_usd=np.array(cost), throughput=np.full(4, 2.0), required_throughput=9.0,
        max_units=np.full(4, most),
    )  # fmt: skip


def test_workers_move_to_the_first_of_the_offers_alike_most_workers_first() -> None:
    counts, busy = first_of_alike(
        fleet((1.0, 1.0, 1.0, 2.0)), {"b": 1, "c": 3, "d": 2}, {"b": 0.5, "c": 3.0, "d": 2.0}
    )
    assert counts == {"a": 3, "b": 1, "d": 2}
    assert busy == {"a": 3.0, "b": 0.5, "d": 2.0}


def test_offers_that_differ_in_anything_stay() -> None:
    counts = {"b": 1, "d": 4}
    assert first_of_alike(fleet((1.0, 1.1, 1.2, 1.3)), counts, dict(counts)) == (counts, counts)


@pytest.mark.parametrize("most", [2.0, 9.0])
def test_an_answer_does_not_depend_on_which_of_them_the_solver_takes(most: float) -> None:
    found = solve_fleet(fleet((2.0, 1.0, 1.0, 1.0), most))
    assert sorted(found.counts) == list(KEYS[1 : 1 + len(found.counts)])
    assert list(found.counts.values()) == sorted(found.counts.values(), reverse=True)
