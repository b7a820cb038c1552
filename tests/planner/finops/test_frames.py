"""Rows of answers are those of pandas, in one order however few they are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.finops import frames

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
    few = frames.in_order(frame)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "_FEW_ROWS", 0)
        pd.testing.assert_frame_equal(few, frames.in_order(frame))


@given(ROWS)
@settings(max_examples=60, deadline=None)
def test_rows_and_records_are_those_of_pandas(rows: list[tuple[object, ...]]) -> None:
    frame = pd.DataFrame(rows, columns=["name", "day", "kind of it", "number", "flag"])
    frame["name"] = frame["name"].astype("str")
    frame["day"] = pd.to_datetime(frame["day"])
    frame["share"] = pd.Series([np.float64(n) for n in range(len(rows))], dtype=object)
    for own in (frame, frame[["number"]], frame.set_index("number")):
        # pairs of a type and a text: missing values equal nothing, not even themselves
        assert _shown(frames.rows_of(own)) == _shown(own.itertuples(index=False))
        ours, theirs = frames.records_of(own), own.to_dict("records")
        assert [[*one] for one in ours] == [[*one] for one in theirs]
        assert _shown(one.values() for one in ours) == _shown(one.values() for one in theirs)
    named = list(frames.rows_of(frame[["name", "number"]]))
    assert [one.number for one in named] == frame["number"].tolist()


def _shown(rows: Iterable[Iterable[object]]) -> list[list[tuple[type, str]]]:
    return [[(type(cell), repr(cell)) for cell in row] for row in rows]
