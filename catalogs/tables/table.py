"""A small immutable table: named 1-D numpy columns of equal length.

The catalog travels through the planner as `Table`, so that the everyday command needs numpy but not pandas.
Text columns are dictionary-coded (`Coded`): a code per row and the list of distinct texts. A missing text is
`""`, a missing number is NaN; missing is never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_SMALL, _EACH = 1 << 11, 8  # so many flags, and as many per value, are set in less time than a sort takes


@dataclass(frozen=True, eq=False)
class Coded:
    """A dictionary-coded text column.

    Attributes:
        codes: int32 index into `values` per row, shape `(n_rows,)`.
        values: the distinct texts.
        parsed: the distinct texts as numbers, where they are decimals that were parsed before.
    """

    codes: npt.NDArray[np.int32]
    values: tuple[str, ...]
    parsed: Floats | None = None

    @classmethod
    def encode(cls, texts: Iterable[str]) -> Coded:
        """Code `texts` (one per row) in order of first appearance."""
        rows = tuple(texts)
        index = {text: code for code, text in enumerate(dict.fromkeys(rows))}
        codes = np.fromiter(map(index.__getitem__, rows), dtype=np.int32, count=len(rows))
        return cls(codes, tuple(index))

    def decode(self) -> Array:
        """Return the texts as an object array, shape `(n_rows,)`."""
        return np.asarray((*self.values, ""), dtype=object)[self.codes]

    def take(self, at: Array) -> Coded:
        """Return the rows at integer positions `at`."""
        return Coded(self.codes[at], self.values, self.parsed)

    def numbers(self) -> Floats:
        """Return each row's text as a number, `""` as NaN, shape `(n_rows,)`.

        Raises:
            ValueError: when a text is not a number.
        """
        if self.parsed is not None:
            return np.append(self.parsed, np.nan)[self.codes]
        used = np.zeros(len(self.values) + 1, dtype=np.bool_)
        used[self.codes] = True  # few rows may be left of many texts
        parsed = np.full(len(used), np.nan)
        for at in np.flatnonzero(used[:-1]).tolist():
            text = self.values[at]
            parsed[at] = float(text) if text else np.nan
        return parsed[self.codes]

    def __len__(self) -> int:
        return len(self.codes)


class Table(Mapping[str, Array]):
    """An immutable mapping of column name to a 1-D array; every column has the same length."""

    __slots__ = ("_codes_by_key", "_columns", "_decoded", "_length", "_numbers")

    def __init__(
        self, columns: Mapping[str, Array | Coded | Sequence[Any]], *, length: int | None = None
    ) -> None:
        """Take `columns`; sequences of str become `Coded`, other sequences numpy arrays.

        Raises:
            ValueError: when column lengths differ or a column is not 1-D.
        """
        typed = {name: _column(value) for name, value in columns.items()}
        lengths = {len(column) for column in typed.values()}
        if length is not None:
            lengths.add(length)
        if len(lengths) > 1:
            sizes = {name: len(column) for name, column in typed.items()}
            raise ValueError(f"columns differ in length: {sizes}")
        self._columns: dict[str, Array | Coded] = typed
        self._decoded: dict[str, Array] = {}
        self._numbers: dict[str, Floats] = {}
        self._codes_by_key: dict[tuple[str, ...], tuple[Ints, Ints]] = {}
        self._length = lengths.pop() if lengths else 0

    @classmethod
    def _of(cls, columns: dict[str, Array | Coded], length: int) -> Table:
        """A table of columns that are known to be sound; they are frozen."""
        table = cls({}, length=length)
        table._columns = columns
        for column in columns.values():
            if not isinstance(column, Coded):
                column.setflags(write=False)
        return table

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._length

    def __getitem__(self, name: str) -> Array:
        """Return one column, texts decoded to an object array (read-only)."""
        column = self._columns[name]
        if not isinstance(column, Coded):
            return column
        if name not in self._decoded:
            self._decoded[name] = column.decode()
        return self._decoded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """Number of columns, as for any mapping; `n_rows` counts rows."""
        return len(self._columns)

    def column(self, name: str) -> Array | Coded:
        """Return one column as stored."""
        return self._columns[name]

    def coded(self, name: str) -> Coded:
        """Return a text column as codes and distinct texts.

        Raises:
            TypeError: when the column is not text.
        """
        column = self._columns[name]
        if isinstance(column, Coded):
            return column
        if not len(column):
            return Coded.encode(())  # an empty sequence says nothing of its type
        raise TypeError(f"column {name!r} is not text")

    def number(self, name: str) -> Floats:
        """Return a column as float64; decimal texts are parsed once per table, `""` is NaN (read-only)."""
        column = self._columns[name]
        if not isinstance(column, Coded):
            return np.asarray(column, dtype=np.float64)
        if name not in self._numbers:
            self._numbers[name] = column.numbers()
            self._numbers[name].setflags(write=False)
        return self._numbers[name]

    def is_in(self, name: str, values: Iterable[str]) -> Bools:
        """Mask of rows whose text column `name` is one of `values`, shape `(n_rows,)`."""
        column = self.coded(name)
        allowed = frozenset(values)
        hit = np.asarray([text in allowed for text in (*column.values, "")], dtype=np.bool_)
        return np.asarray(hit[column.codes], dtype=np.bool_)

    def equals(self, name: str, value: str) -> Bools:
        """Mask of rows whose text column `name` equals `value`, shape `(n_rows,)`."""
        column = self.coded(name)
        if value and value in column.values:  # compared by its code, not text by text
            return np.asarray(column.codes == column.values.index(value), dtype=np.bool_)
        return self.is_in(name, (value,))

    def take(self, index: npt.ArrayLike) -> Table:
        """Return the rows at integer positions `index` (or where a boolean mask is true), in that order."""
        at = np.asarray(index)
        if at.dtype == np.bool_:
            at = np.flatnonzero(at)
        at = at.astype(np.int64, copy=False)
        columns: dict[str, Array | Coded] = {}
        for name, column in self._columns.items():
            columns[name] = column.take(at)
        return Table._of(columns, len(at))

    def with_columns(self, **columns: Array | Coded | Sequence[Any]) -> Table:
        """Return a table with `columns` added or replaced."""
        if not self._columns:
            return Table(columns)
        added = Table(columns, length=self._length)
        return Table._of({**self._columns, **added._columns}, self._length)

    def select(self, names: Iterable[str]) -> Table:
        """Return a table of only the columns `names`, in that order."""
        return Table._of({name: self._columns[name] for name in names}, self._length)

    def keys_of(self, *names: str) -> list[tuple[str, ...]]:
        """Return the key of each row as a tuple of the text columns `names`."""
        return list(zip(*(self[name] for name in names), strict=True))

    def lookup(self, other: Table, on: Sequence[str]) -> Ints:
        """For each row here, the row of `other` with the same key `on`; -1 where there is none.

        Raises:
            ValueError: when the key is not unique in `other`.
        """
        where: dict[tuple[str, ...], int] = {}
        for position, key in enumerate(other.keys_of(*on)):
            if where.setdefault(key, position) != position:
                raise ValueError(f"key {key} is not unique in the table joined to")
        codes, keys = self.distinct_keys(*on)
        return np.asarray([where.get(key, -1) for key in keys], dtype=np.int64)[codes]

    def distinct_keys(self, *names: str) -> tuple[Ints, list[tuple[str, ...]]]:
        """Return the code of each row's key over the text columns `names`, and the distinct keys."""
        codes, first = self._keyed(names)
        return codes, self.select(names).take(first).keys_of(*names)

    def key_codes(self, *names: str) -> Ints:
        """Return the code of each row's key over the text columns `names`, without the keys (read-only)."""
        return self._keyed(names)[0]

    def _keyed(self, names: tuple[str, ...]) -> tuple[Ints, Ints]:
        """Code of each row's key, and the first row of each key: worked out once."""
        if names not in self._codes_by_key:
            joint, size = np.zeros(self._length, dtype=np.int64), 1
            for name in names:
                column = self.coded(name)
                joint = joint * (len(column.values) + 1) + column.codes
                size *= len(column.values) + 1
            if size <= _SMALL + _EACH * self._length and joint.min(initial=0) >= 0:
                first, codes = _distinct_small(joint, size)
            else:
                _, first, codes = distinct(joint)
            codes.setflags(write=False)
            self._codes_by_key[names] = codes, first
        return self._codes_by_key[names]

    def row(self, position: int) -> dict[str, Any]:
        """Return one row as a dict of Python values."""
        out: dict[str, Any] = {}
        for name in self._columns:
            value = self[name][position]
            out[name] = value.item() if isinstance(value, np.generic) else value
        return out

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows as dicts of Python values (for small tables and tests)."""
        return [self.row(position) for position in range(self._length)]

    @staticmethod
    def concat(tables: Sequence[Table]) -> Table:
        """Stack tables that have the same columns.

        Raises:
            ValueError: when columns differ or no table is given.
        """
        if not tables:
            raise ValueError("nothing to stack")
        names = list(tables[0])
        if any(set(table) != set(names) for table in tables):
            raise ValueError("tables to stack have different columns")
        stacked: dict[str, Array | Coded] = {}
        for name in names:
            columns = [table.column(name) for table in tables]
            stacked[name] = _stack(columns)
        return Table(stacked, length=sum(table.n_rows for table in tables))

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame (imports pandas: edges, notebooks and finops only)."""
        import pandas as pd

        return pd.DataFrame({name: self[name] for name in self._columns})

    def __repr__(self) -> str:
        return f"Table({self._length} rows: {', '.join(self._columns)})"


def distinct(values: npt.NDArray[Any]) -> tuple[Array, Ints, Ints]:
    """Return sorted distinct values, the first position of each, and each row's position among them.

    Like `numpy.unique`, which costs 15 ms at its first call (it imports numpy.ma) and sorts what need not be sorted.
    """
    if values.dtype.kind in "iu" and len(values) and values.min() >= 0:
        size = int(values.max()) + 1
        if size <= _SMALL + _EACH * len(values):
            first, codes = _distinct_small(values, size)
            return values[first], first, codes
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = changes(ordered)
    codes = np.empty(len(values), dtype=np.int64)
    group = np.zeros(len(values), dtype=np.int64)
    group[starts[1:]] = 1
    codes[order] = np.cumsum(group)
    return ordered[starts], order[starts].astype(np.int64), codes


def count_distinct(values: npt.NDArray[Any]) -> tuple[Array, Ints]:
    """Return sorted distinct values and how often each occurs: a tenth of the time of `distinct`."""
    ordered = np.sort(values)
    starts = changes(ordered)
    return ordered[starts], np.diff(np.append(starts, len(values))).astype(np.int64)


def distinct_values(values: npt.NDArray[Any]) -> Array:
    """Return sorted distinct values: `numpy.unique` without its import of numpy.ma."""
    ordered = np.sort(values)
    return ordered[changes(ordered)]


def changes(values: npt.NDArray[Any]) -> Ints:
    """Return the positions of values unlike the one before, the first value among them."""
    unlike = np.ones(len(values), dtype=np.bool_)
    unlike[1:] = values[1:] != values[:-1]
    return np.asarray(unlike.nonzero()[0], dtype=np.int64)


def _distinct_small(values: Ints, size: int) -> tuple[Ints, Ints]:
    """First position of each distinct value and each row's number, for values below `size`: no sorting."""
    first = np.full(size, -1, dtype=np.int64)
    first[values[::-1]] = np.arange(len(values) - 1, -1, -1, dtype=np.int64)
    present = first >= 0
    number = np.cumsum(present) - 1
    return first[present], number[values]


def _column(value: Array | Coded | Sequence[Any]) -> Array | Coded:
    if isinstance(value, Coded):
        return value
    array = np.asarray(value)
    if array.ndim != 1:
        raise ValueError(f"a column has shape {array.shape}, expected one dimension")
    if array.dtype.kind in "UO" and (array.size == 0 or all(isinstance(item, str) for item in array)):
        return Coded.encode(str(item) for item in array)
    frozen = array.view()
    frozen.setflags(write=False)
    return frozen


def _stack(columns: Sequence[Array | Coded]) -> Array | Coded:
    if all(isinstance(column, Coded) for column in columns):
        index: dict[str, int] = {}
        codes: list[npt.NDArray[np.int32]] = []
        parsed: dict[int, float] = {}
        for column in columns:
            assert isinstance(column, Coded)
            joint = [index.setdefault(text, len(index)) for text in column.values]
            codes.append(np.asarray([*joint, -1], dtype=np.int32)[column.codes])
            if column.parsed is not None:
                parsed.update(zip(joint, column.parsed.tolist(), strict=True))
        numbers = np.asarray([parsed[at] for at in range(len(index))]) if len(parsed) == len(index) else None
        return Coded(np.concatenate(codes), tuple(index), numbers)
    return np.concatenate([np.asarray(column) for column in columns])
