"""The bridge: exact for any two months, and right where the answer is plain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import planner.finops
from planner.finops.bridge import ABSURD, Bridge, sum_bridge
from planner.finops.engine.dialects import bind
from tests.draws import draws

QUERIES = Path(planner.finops.__file__).parent / "things" / "queries"
amount = st.one_of(st.just(0.0), st.floats(-1e6, 1e7, allow_nan=False).map(lambda x: round(x, 4)))
Row = tuple[float, float, float, float, bool, int]
things = st.lists(
    st.tuples(amount, amount, amount, amount, st.booleans(), st.integers(0, 3)), min_size=1, max_size=30
)


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def _text(name: str) -> str:
    sql = (QUERIES / f"{name}.sql").read_text(encoding="utf-8")
    return bind(sql, {"absurd": ABSURD} if name == "things" else {}).sql("duckdb")


THINGS, CHANGES = _text("things"), _text("changes")


def effects(rows: list[Row], engine: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """The table of things of given quantities and costs, in their order."""
    q0, e0, q1, e1, unit, group = zip(*rows, strict=True)
    price_volume = pd.DataFrame({
        "provider": "P", "service": [f"service {number}" for number in group], "region_id": "east",
        "sku_id": [f"sku {number:02}" for number in range(len(rows))], "pricing_category": "Standard",
        "pricing_unit": ["Hours" if has else None for has in unit], "charge_kind": "use", "product": "",
        "instance_type": "", "quantity": q1, "effective_cost": e1, "quantity_before": q0, "effective_cost_before": e0,
    })  # fmt: skip
    engine.register("price_volume", price_volume)
    engine.execute(f"CREATE OR REPLACE TEMP TABLE x_things AS {THINGS}")
    return engine.execute("FROM x_things ORDER BY sku_id").df()


def bridge(rows: list[Row], engine: duckdb.DuckDBPyConnection) -> Bridge:
    effects(rows, engine)
    return sums(engine)


def sums(engine: duckdb.DuckDBPyConnection) -> Bridge:
    return sum_bridge({name: values.astype(float) for name, values in engine.execute(CHANGES).fetchnumpy().items()
                       if values.dtype.kind in "fi"})  # fmt: skip


def by_hand(rows: list[Row]) -> dict[str, np.ndarray]:
    """Effects of each thing, (n,), by the formulas of `planner.finops.bridge`."""
    q0, e0, q1, e1 = (np.array(column, dtype=float) for column in list(zip(*rows, strict=True))[:4])
    has_unit, change = np.array([row[4] for row in rows]), e1 - e0
    both = has_unit & (q0 > 0) & (q1 > 0)
    price0, price1 = (np.divide(e, q, out=np.zeros_like(e), where=both) for e, q in ((e0, q0), (e1, q1)))
    volume = np.where(both, (q1 - q0) * (price0 + price1) / 2, 0.0)
    both &= np.abs(volume) <= ABSURD * np.maximum(np.abs(e0), np.abs(e1))
    # a refund states what it refunds as its quantity: it is nothing new
    new = ~both & has_unit & (q0 == 0) & (e0 == 0) & (q1 > 0) & (e1 >= 0)
    retired = ~both & has_unit & (q1 == 0) & (e1 == 0) & (q0 > 0) & (e0 >= 0)
    rest = ~(both | new | retired)
    return {"price": np.where(both, change - volume, 0.0), "volume": np.where(both, volume, 0.0),
            "new": new * change, "retired": retired * change, "other": rest * change}  # fmt: skip


@example([(0.0, 0.0, 1.0, -1.0, True, 0), (1.0, -1.0, 0.0, 0.0, True, 0)])  # two refunds
@draws(40)
@given(things)
def test_the_engine_works_out_each_effect_as_its_formula_says(
    engine: duckdb.DuckDBPyConnection, rows: list[Row]
) -> None:
    made, expected = effects(rows, engine), by_hand(rows)
    for name in ("price", "volume"):
        np.testing.assert_allclose(made[name], expected[name], rtol=1e-12, atol=1e-9)
    for name in ("new", "retired", "other"):
        np.testing.assert_array_equal(np.where(made["effect"] == name, made["change"], 0.0), expected[name])


@example([(0.0039, 138.6719, 120792.0, 0.0, True, 0)])  # thirty million times more, for nothing
@draws(40)
@given(things)
def test_the_effects_sum_to_the_change(engine: duckdb.DuckDBPyConnection, rows: list[Row]) -> None:
    made = bridge(rows, engine)
    scale = max(1.0, math.fsum(abs(x) for row in rows for x in row[1:4:2]))
    assert abs(math.fsum(value for _, value in made.steps) - made.change) <= 1e-9 * scale


@draws(40)
@given(things)
def test_swapping_the_months_turns_every_effect_round(
    engine: duckdb.DuckDBPyConnection, rows: list[Row]
) -> None:
    there, back = (
        bridge(rows, engine),
        bridge([(q1, e1, q0, e0, unit, group) for q0, e0, q1, e1, unit, group in rows], engine),
    )
    scale = max(1.0, math.fsum(abs(x) for row in rows for x in row[1:4:2]), *(abs(v) for _, v in there.steps))
    for name in ("price", "volume", "mix", "other"):
        assert getattr(there, name) == pytest.approx(-getattr(back, name), abs=1e-9 * scale)
    assert there.new == pytest.approx(-back.retired, abs=1e-9 * scale)


def test_a_price_rise_alone_is_all_price(engine: duckdb.DuckDBPyConnection) -> None:
    made = bridge([(10.0, 20.0, 10.0, 22.0, True, 0)], engine)
    assert dict(made.steps) == pytest.approx(
        {"price": 2.0, "volume": 0.0, "mix": 0.0, "new": 0.0, "retired": 0.0, "other": 0.0}
    )


def test_a_shift_to_the_dearer_thing_is_mix(engine: duckdb.DuckDBPyConnection) -> None:
    # 10 units move from the thing at 1 to the thing at 3: the same number of units, 20 more money
    made = bridge([(20.0, 20.0, 10.0, 10.0, True, 0), (20.0, 60.0, 30.0, 90.0, True, 0)], engine)
    assert made.volume == pytest.approx(0.0)
    assert made.mix == pytest.approx(20.0)
    assert made.price == pytest.approx(0.0)


def test_new_and_retired_things_and_credits_stand_apart(engine: duckdb.DuckDBPyConnection) -> None:
    made = bridge(
        [(0.0, 0.0, 5.0, 7.0, True, 0), (4.0, 9.0, 0.0, 0.0, True, 0), (0.0, -1.0, 0.0, -3.0, False, 1)],
        engine,
    )
    assert (made.new, made.retired, made.other) == (7.0, -9.0, -2.0)


def test_known_numbers_by_hand(engine: duckdb.DuckDBPyConnection) -> None:
    # volume (12-10)(2+2.5)/2 = 4.5, price (2.5-2)(10+12)/2 = 5.5
    made = bridge([(10.0, 20.0, 12.0, 30.0, True, 0)], engine)
    assert (made.volume, made.price) == (pytest.approx(4.5), pytest.approx(5.5))


def test_what_became_free_or_changed_its_unit_is_not_split(engine: duckdb.DuckDBPyConnection) -> None:
    made = bridge([(0.001, 100.0, 1e6, 0.0, True, 0), (10.0, 20.0, 11.0, 22.0, True, 0)], engine)
    assert (made.other, made.price, made.mix) == (-100.0, 0.0, 0.0)
    assert made.volume == pytest.approx(2.0)


def test_a_sku_that_is_priced_otherwise_is_mix_and_nothing_new(engine: duckdb.DuckDBPyConnection) -> None:
    """On demand in the one month, under a plan in the other: it was "things that ended" and "new things"."""
    effects(
        [(10.0, 30.0, 0.0, 0.0, True, 0), (0.0, 0.0, 10.0, 18.0, True, 0), (0.0, 0.0, 2.0, 6.0, True, 0)],
        engine,
    )
    engine.execute(
        "UPDATE x_things SET sku_id = 'sku 00', pricing_category = 'Committed' WHERE sku_id = 'sku 01'"
    )
    made = sums(engine)
    assert (made.price, made.retired, made.new) == (0.0, 0.0, 6.0)
    assert (made.volume, made.mix) == (pytest.approx(0.0), pytest.approx(-12.0))


def test_what_has_no_unit_is_in_no_mix(engine: duckdb.DuckDBPyConnection) -> None:
    made = bridge([(5.0, 50.0, 500.0, 70.0, False, 0), (10.0, 20.0, 10.0, 20.0, True, 0)], engine)
    assert (made.other, made.volume, made.mix) == (20.0, 0.0, 0.0)
