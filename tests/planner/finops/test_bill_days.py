"""Rows of answers are in one order, however few they are."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.finops import bill_days

TEXTS = st.none() | st.text(alphabet="aB-ß0", max_size=2)
ROWS = st.lists(
    st.tuples(TEXTS, st.none() | st.dates(), TEXTS, st.integers(0, 3), st.none() | st.booleans()), max_size=12
)


@given(ROWS)
@settings(max_examples=60, deadline=None)
def test_few_rows_are_in_the_order_of_many(rows: list[tuple[object, ...]]) -> None:
    frame = pd.DataFrame(rows, columns=["name", "day", "kind", "number", "flag"])
    frame["name"] = frame["name"].astype("str")
    frame["day"] = pd.to_datetime(frame["day"])
    few = bill_days.in_order(frame)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bill_days, "_FEW_ROWS", 0)
        pd.testing.assert_frame_equal(few, bill_days.in_order(frame))
