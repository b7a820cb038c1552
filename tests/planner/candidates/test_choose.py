"""The order of candidates: by cost or hours to 12 digits, then what breaks ties."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.choose import best_of, rank

costs = st.sampled_from([0.0, 1.0, 1.0 + 1e-14, 1.0 + 1e-11, 2.0, 3.0, 1e9, np.inf])
rows = st.tuples(costs, costs, st.booleans(), st.integers(1, 2), st.integers(0, 5))


def made(given_rows: list[tuple[float, float, bool, int, int]]) -> Any:
    """Candidates of offers of their own, as far as their order asks."""
    cost, hours, spot, nodes, name = (np.asarray(column) for column in zip(*given_rows, strict=True))
    market = SimpleNamespace(id_rank=name, is_spot=spot)
    return SimpleNamespace(
        context=SimpleNamespace(market=market), offer=np.arange(len(cost)), nodes=nodes,
        cost_usd=cost, hours=hours,
    )  # fmt: skip


def digits(value: float) -> float:
    mantissa, exponent = np.frexp(value)
    return float(np.ldexp(np.round(mantissa * 2.0**40), exponent - 40))


@given(st.lists(rows, min_size=1, max_size=30), st.sampled_from(["cost", "time"]))
def test_the_order_is_that_of_all_keys_and_the_best_is_its_first(
    given_rows: list[tuple[float, float, bool, int, int]], objective: str
) -> None:
    candidates, positions = made(given_rows), np.arange(len(given_rows))

    def key(at: int) -> tuple[float, float, bool, int, int, int]:
        cost, hours, spot, nodes, name = given_rows[at]
        first, second = (cost, hours) if objective == "cost" else (hours, cost)
        return digits(first), digits(second), spot, nodes, name, at

    wanted = sorted(range(len(given_rows)), key=key)
    assert rank(candidates, positions, objective).tolist() == wanted
    assert best_of(candidates, positions, objective) == wanted[0]
