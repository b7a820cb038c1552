"""The bridge: exact for any two months, and right where the answer is plain."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planner.finops.bridge import Bridge, split_effects, sum_bridge

amount = st.one_of(st.just(0.0), st.floats(-1e6, 1e7, allow_nan=False).map(lambda x: round(x, 4)))
things = st.lists(
    st.tuples(amount, amount, amount, amount, st.booleans(), st.integers(0, 3)), min_size=1, max_size=30
)


def bridge(rows: list[tuple[float, float, float, float, bool, int]]) -> Bridge:
    q0, e0, q1, e1, unit, group = (np.array(column) for column in zip(*rows, strict=True))
    effects = split_effects(q0, e0, q1, e1, unit.astype(bool))
    return sum_bridge(q0, e0, q1, e1, effects, group)


@example([(0.0039, 138.6719, 120792.0, 0.0, True, 0)])  # thirty million times more, for nothing
@given(things)
def test_the_effects_sum_to_the_change(rows: list[tuple[float, float, float, float, bool, int]]) -> None:
    made = bridge(rows)
    scale = max(1.0, math.fsum(abs(x) for row in rows for x in row[1:4:2]))
    assert abs(math.fsum(value for _, value in made.steps) - made.change) <= 1e-9 * scale


@given(things)
def test_swapping_the_months_turns_every_effect_round(
    rows: list[tuple[float, float, float, float, bool, int]],
) -> None:
    there, back = (
        bridge(rows),
        bridge([(q1, e1, q0, e0, unit, group) for q0, e0, q1, e1, unit, group in rows]),
    )
    scale = max(1.0, math.fsum(abs(x) for row in rows for x in row[1:4:2]), *(abs(v) for _, v in there.steps))
    for name in ("price", "volume", "mix", "other"):
        assert getattr(there, name) == pytest.approx(-getattr(back, name), abs=1e-9 * scale)
    assert there.new == pytest.approx(-back.retired, abs=1e-9 * scale)


def test_a_price_rise_alone_is_all_price() -> None:
    made = bridge([(10.0, 20.0, 10.0, 22.0, True, 0)])
    assert dict(made.steps) == pytest.approx(
        {"price": 2.0, "volume": 0.0, "mix": 0.0, "new": 0.0, "retired": 0.0, "other": 0.0}
    )


def test_a_shift_to_the_dearer_thing_is_mix() -> None:
    # 10 units move from the thing at 1 to the thing at 3: the same number of units, 20 more money
    made = bridge([(20.0, 20.0, 10.0, 10.0, True, 0), (20.0, 60.0, 30.0, 90.0, True, 0)])
    assert made.volume == pytest.approx(0.0)
    assert made.mix == pytest.approx(20.0)
    assert made.price == pytest.approx(0.0)


def test_new_and_retired_things_and_credits_stand_apart() -> None:
    made = bridge(
        [(0.0, 0.0, 5.0, 7.0, True, 0), (4.0, 9.0, 0.0, 0.0, True, 0), (0.0, -1.0, 0.0, -3.0, False, 1)]
    )
    assert (made.new, made.retired, made.other) == (7.0, -9.0, -2.0)


def test_known_numbers_by_hand() -> None:
    # volume (12-10)(2+2.5)/2 = 4.5, price (2.5-2)(10+12)/2 = 5.5
    made = bridge([(10.0, 20.0, 12.0, 30.0, True, 0)])
    assert (made.volume, made.price) == (pytest.approx(4.5), pytest.approx(5.5))


def test_what_became_free_or_changed_its_unit_is_not_split() -> None:
    made = bridge([(0.001, 100.0, 1e6, 0.0, True, 0), (10.0, 20.0, 11.0, 22.0, True, 0)])
    assert (made.other, made.price, made.mix) == (-100.0, 0.0, 0.0)
    assert made.volume == pytest.approx(2.0)


def test_what_has_no_unit_is_in_no_mix() -> None:
    made = bridge([(5.0, 50.0, 500.0, 70.0, False, 0), (10.0, 20.0, 10.0, 20.0, True, 0)])
    assert (made.other, made.volume, made.mix) == (20.0, 0.0, 0.0)
