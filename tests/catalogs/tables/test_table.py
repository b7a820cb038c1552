"""Laws of Table: what goes in comes out, in the order asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.tables import rows as rows_module
from catalogs.tables.rows import distinct_rows, greatest, least, some, whole
from catalogs.tables.table import Coded, Table, count_distinct, distinct

texts = st.lists(st.text(max_size=4), max_size=30)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    words = draw(texts)
    one = st.floats(allow_nan=False, width=32)
    numbers = draw(st.lists(one, min_size=len(words), max_size=len(words)))
    return Table({"word": words, "number": np.asarray(numbers, dtype=np.float64)}, length=len(words))


@given(texts)
def test_coding_is_lossless(words: list[str]) -> None:
    coded = Coded.encode(words)
    assert list(coded.decode()) == words
    assert len(set(coded.values)) == len(coded.values)


@given(tables(), st.data())
def test_take_keeps_rows_whole(table: Table, data: st.DataObject) -> None:
    at = data.draw(st.lists(st.integers(0, table.n_rows - 1), max_size=10)) if table.n_rows else []
    taken = table.take(np.asarray(at, dtype=np.int64))
    assert taken.rows() == [table.row(i) for i in at]


@given(tables())
def test_stacking_parts_gives_the_whole(table: Table) -> None:
    half = table.n_rows // 2
    parts = [table.take(range(half)), table.take(range(half, table.n_rows))]
    assert Table.concat(parts).rows() == table.rows()


@given(tables(), st.text(max_size=4))
def test_masks_agree_with_the_texts(table: Table, word: str) -> None:
    assert list(table.equals("word", word)) == [text == word for text in table["word"]]


@given(tables())
def test_lookup_finds_the_same_key(table: Table) -> None:
    distinct = Table({"word": sorted(set(table["word"]))}, length=len(set(table["word"])))
    at = table.lookup(distinct, ("word",))
    assert [distinct["word"][i] for i in at] == list(table["word"])


def test_lookup_refuses_a_key_that_stands_twice() -> None:
    with pytest.raises(ValueError, match="not unique"):
        Table({"k": ["a"]}).lookup(Table({"k": ["a", "a"]}), ("k",))


def test_missing_price_is_nan_not_zero() -> None:
    numbers = Table({"price": ["1.5", ""]}).number("price")
    assert numbers[0] == 1.5
    assert np.isnan(numbers[1])


def test_columns_cannot_be_changed() -> None:
    table = Table({"n": np.asarray([1.0, 2.0])})
    with pytest.raises(ValueError, match="read-only"):
        table["n"][0] = 5.0


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        Table({"a": ["x"], "b": ["x", "y"]})


def test_to_frame_gives_the_same_rows() -> None:
    table = Table({"a": ["x", "y"], "n": np.asarray([1.0, 2.0])})
    assert table.to_frame().to_dict("records") == table.rows()


@given(st.lists(st.integers(-5, 5), max_size=40) | st.lists(st.integers(0, 70_000), max_size=40))
def test_distinct_values_are_those_of_numpy(values: list[int]) -> None:
    array = np.asarray(values, dtype=np.int64)
    wanted = np.unique(array, return_index=True, return_inverse=True, return_counts=True)
    for found, same in zip((*distinct(array), count_distinct(array)[1]), wanted, strict=True):
        assert found.tolist() == same.tolist()
    assert count_distinct(array)[0].tolist() == wanted[0].tolist()


odd_numbers = st.sampled_from([0.0, -0.0, 1.0, np.nextafter(1.0, 2.0), np.inf, -np.inf, np.nan, 5e-324])


@given(st.lists(st.tuples(odd_numbers, st.integers(0, 1)), max_size=40))
def test_distinct_rows_are_told_apart_by_every_bit(rows: list[tuple[float, int]]) -> None:
    number = np.asarray([row[0] for row in rows], dtype=np.float64)
    flag = np.asarray([row[1] for row in rows], dtype=np.int64)
    first, own = distinct_rows(number, flag)
    keys = [(value.tobytes(), int(code)) for value, code in zip(number, flag, strict=True)]
    assert [keys[at] for at in first[own].tolist()] == keys
    assert len(first) == len(set(keys))


def test_rows_that_share_a_hash_are_not_taken_for_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "_ODD", np.uint64(0))
    first, own = distinct_rows(np.asarray([1.0, 2.0, 1.0]))
    assert first[own].tolist() == [0, 1, 2]


@given(st.lists(st.tuples(odd_numbers, odd_numbers, odd_numbers), min_size=1, max_size=20), st.integers(1, 3))
def test_short_rows_are_reduced_as_numpy_does(rows: list[tuple[float, float, float]], width: int) -> None:
    values = np.asarray(rows)[:, :width]
    given = values.copy()
    assert np.array_equal(greatest(values), values.max(axis=1), equal_nan=True)
    assert np.array_equal(least(values), values.min(axis=1), equal_nan=True)
    for found, wanted in (
        (whole(values > 0), (values > 0).all(axis=1)),
        (some(values > 0), (values > 0).any(axis=1)),
    ):
        assert found.tolist() == wanted.tolist()
    assert np.array_equal(values, given, equal_nan=True)


def test_codes_of_keys_are_those_of_the_distinct_keys() -> None:
    table = Table({"provider": ["b", "a", "b", "b"], "region": ["x", "x", "y", "x"]})
    codes, keys = table.distinct_keys("provider", "region")
    assert [keys[code] for code in codes] == [("b", "x"), ("a", "x"), ("b", "y"), ("b", "x")]
    assert table.key_codes("provider", "region").tolist() == codes.tolist()
    assert table.key_codes("provider").tolist() == table.distinct_keys("provider")[0].tolist()
    changed = table.with_columns(region=["x", "x", "x", "x"])
    assert len(set(changed.key_codes("provider", "region").tolist())) == 2
