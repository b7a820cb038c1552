"""A mixed-integer linear program as a frozen value, and a thin block builder for it.

The model is

    minimise  c.x   subject to   row_lo <= A x <= row_hi,   lb <= x <= ub,   x_j integer where `integrality`.

Every column carries the *key* of what it stands for (any hashable; the caller's own id) so that answers
travel back by key, never by position. Names exist for people and LP files only: they use letters, digits,
`_` and `.`, because HiGHS renames all columns when it meets one bad name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from solvers.problem.errors import ModelError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
FloatLike = npt.ArrayLike

_UNSAFE = re.compile(r"[^A-Za-z0-9_.]")


@dataclass(frozen=True)
class Block:
    """A named index range of columns or rows; `tags` name its members (empty: numbered)."""

    name: str
    start: int
    stop: int
    tags: tuple[Hashable, ...] = ()

    @property
    def indices(self) -> slice:
        """The range as a slice."""
        return slice(self.start, self.stop)

    def __len__(self) -> int:
        return self.stop - self.start

    def names(self) -> Iterator[str]:
        """Yield a safe name per member; two tags that look alike after cleaning get their number appended."""
        if not self.tags:
            yield from (f"{self.name}.{number}" for number in range(len(self)))
            return
        seen: set[str] = set()
        for number, tag in enumerate(self.tags):
            text = f"{self.name}.{safe_name(tag)}"
            text = text if text not in seen else f"{text}..{number}"
            seen.add(text)
            yield text


def safe_name(tag: Hashable) -> str:
    """Return `tag` as text of letters, digits, `_` and `.` only (a tuple's parts are joined by `.`)."""
    text = ".".join(str(part) for part in tag) if isinstance(tag, tuple) else str(tag)
    return _UNSAFE.sub("_", text)


@dataclass(frozen=True, eq=False)
class Milp:
    """A mixed-integer linear program in compressed-column form. Treat every array as read-only.

    Attributes:
        c: objective coefficients, shape `(n_columns,)`.
        lb: lower bounds of the columns, shape `(n_columns,)`.
        ub: upper bounds of the columns, shape `(n_columns,)`.
        integrality: True where a column is integer, shape `(n_columns,)`.
        row_lo: lower sides of the rows, shape `(n_rows,)`.
        row_hi: upper sides of the rows, shape `(n_rows,)`.
        data: matrix entries, column by column, shape `(n_entries,)`.
        indices: the row of each entry, shape `(n_entries,)`.
        indptr: where each column starts in `data`, shape `(n_columns + 1,)`.
        column_keys: the caller's key of each column, length `n_columns`, unique.
        column_blocks: named ranges of columns, in order.
        row_blocks: named ranges of rows, in order.
        name: what the model is, for messages.
    """

    c: Floats
    lb: Floats
    ub: Floats
    integrality: Bools
    row_lo: Floats
    row_hi: Floats
    data: Floats
    indices: npt.NDArray[np.int32]
    indptr: npt.NDArray[np.int32]
    column_keys: tuple[Hashable, ...]
    column_blocks: tuple[Block, ...] = ()
    row_blocks: tuple[Block, ...] = ()
    name: str = "model"

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.c)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.row_lo)

    @property
    def n_integers(self) -> int:
        """Number of integer columns."""
        return int(np.count_nonzero(self.integrality))

    def column_names(self) -> list[str]:
        """Return the safe name of every column."""
        return [name for block in self.column_blocks for name in block.names()]

    def row_names(self) -> list[str]:
        """Return the safe name of every row."""
        return [name for block in self.row_blocks for name in block.names()]

    def row_block(self, name: str) -> Block | None:
        """Return the row block called `name`, None where the model has none."""
        return next((block for block in self.row_blocks if block.name == name), None)

    def column_of_entry(self) -> Ints:
        """Return the column of each matrix entry, shape `(n_entries,)`."""
        return np.repeat(np.arange(self.n_columns), np.diff(self.indptr))

    def activity(self, x: Floats) -> Floats:
        """Return A x, shape `(n_rows,)`, for `x` of shape `(n_columns,)`."""
        weights = self.data * np.repeat(x, np.diff(self.indptr))
        return np.bincount(self.indices, weights=weights, minlength=self.n_rows).astype(np.float64)

    def vector(self, values: Mapping[Hashable, float]) -> Floats:
        """Return `values` by column key as a vector, shape `(n_columns,)`; keys not given are 0.

        Raises:
            KeyError: a key that no column carries.
        """
        x = np.zeros(self.n_columns)
        for key, value in values.items():
            x[self.position[key]] = value
        return x

    @cached_property
    def position(self) -> dict[Hashable, int]:
        """Number of each column by its key."""
        return {key: number for number, key in enumerate(self.column_keys)}


@dataclass
class MilpBuilder:
    """Collects blocks of columns, rows and entries, then freezes them into a `Milp`."""

    name: str = "model"
    _columns: list[tuple[Floats, Floats, Floats, Bools]] = field(default_factory=list)
    _keys: list[Hashable] = field(default_factory=list)
    _rows: list[tuple[Floats, Floats]] = field(default_factory=list)
    _entries: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)
    _column_blocks: list[Block] = field(default_factory=list)
    _row_blocks: list[Block] = field(default_factory=list)

    def add_columns(
        self,
        name: str,
        keys: Sequence[Hashable],
        *,
        cost: FloatLike = 0.0,
        lower: FloatLike = 0.0,
        upper: FloatLike = math.inf,
        integer: bool = False,
    ) -> Block:
        """Add one column per key; scalars are repeated. Returns the block, its indices are the columns."""
        count = len(keys)
        start = self._column_blocks[-1].stop if self._column_blocks else 0
        block = Block(name, start, start + count, tuple(keys))
        kinds = np.full(count, integer)
        self._columns.append((_spread(cost, count), _spread(lower, count), _spread(upper, count), kinds))
        self._keys.extend(keys)
        self._column_blocks.append(block)
        return block

    def add_rows(
        self,
        name: str,
        count: int,
        *,
        lower: FloatLike = -math.inf,
        upper: FloatLike = math.inf,
        tags: Sequence[Hashable] = (),
    ) -> Block:
        """Add `count` empty rows `lower <= . <= upper`; `tags` name them. Returns the block."""
        start = self._row_blocks[-1].stop if self._row_blocks else 0
        block = Block(name, start, start + count, tuple(tags))
        self._rows.append((_spread(lower, count), _spread(upper, count)))
        self._row_blocks.append(block)
        return block

    def add_entries(self, rows: npt.ArrayLike, columns: npt.ArrayLike, values: FloatLike) -> None:
        """Add entries at absolute row and column numbers; equal places are summed, zeros dropped."""
        row, column, value = _alike(np.asarray(rows), np.asarray(columns), np.asarray(values))
        self._entries.append((row.astype(np.int64), column.astype(np.int64), value.astype(np.float64)))

    def row_block(self, name: str) -> Block | None:
        """Return the row block called `name`, None where there is none yet."""
        return next((block for block in self._row_blocks if block.name == name), None)

    def build(self) -> Milp:
        """Freeze the model.

        Raises:
            ModelError: two columns share a key, a number is NaN, or a bound is crossed.
        """
        cost, lower, upper, kinds = _stack(self._columns, 4)
        row_lo, row_hi = _stack(self._rows, 2)
        rows, columns, values = _stack(self._entries, 3)
        nonzero = values != 0
        rows, columns, values = rows[nonzero], columns[nonzero], values[nonzero]
        data, indices, indptr = _compress(rows.astype(np.int64), columns.astype(np.int64), values, len(cost))
        problem = Milp(
            c=cost,
            lb=lower,
            ub=upper,
            integrality=kinds.astype(np.bool_),
            row_lo=row_lo,
            row_hi=row_hi,
            data=data,
            indices=indices,
            indptr=indptr,
            column_keys=tuple(self._keys),
            column_blocks=tuple(self._column_blocks),
            row_blocks=tuple(self._row_blocks),
            name=self.name,
        )
        check(problem)
        return problem


def with_rows(problem: Milp, coefficients: Floats, lower: Floats, block: str = "") -> Milp:
    """Return the model with rows `coefficients @ x >= lower` behind its own.

    Args:
        problem: the model, with a block of rows at least.
        coefficients: of the new rows, shape `(k, n_columns)`; zeros are no entries.
        lower: their lower sides, shape `(k,)`.
        block: name of the new rows' block; by default they join the last one.
    """
    column, row = np.nonzero(coefficients.T)
    behind = problem.indptr[column + 1]  # rows ascend within a column
    count = np.bincount(column, minlength=problem.n_columns)
    places = behind + np.arange(len(behind))
    known = np.ones(len(problem.data) + len(places), dtype=np.bool_)
    known[places] = False
    data, indices = np.empty(len(known)), np.empty(len(known), dtype=np.int32)
    data[known], data[places] = problem.data, coefficients[row, column]
    indices[known], indices[places] = problem.indices, problem.n_rows + row
    *others, last = problem.row_blocks
    if block and block != last.name:
        others, last = list(problem.row_blocks), Block(block, problem.n_rows, problem.n_rows)
    return replace(
        problem,
        row_lo=np.append(problem.row_lo, lower),
        row_hi=np.append(problem.row_hi, np.full(len(lower), np.inf)),
        data=data,
        indices=indices,
        indptr=(problem.indptr + np.append(0, np.cumsum(count))).astype(np.int32),
        row_blocks=(*others, replace(last, stop=last.stop + len(lower))),
    )


def check(problem: Milp) -> None:
    """Refuse a model that no solver may see: repeated keys, NaN, infinite costs, crossed bounds.

    Raises:
        ModelError: names the block and the column or row at fault.
    """
    if len(set(problem.column_keys)) != problem.n_columns:
        raise ModelError(f"{problem.name}: two columns carry the same key; keys must be unique")
    if not (np.isfinite(problem.c).all() and np.isfinite(problem.data).all()):
        raise ModelError(f"{problem.name}: a cost or a coefficient is not a finite number")
    sides = (problem.lb, problem.ub, problem.row_lo, problem.row_hi)
    if any(np.isnan(side).any() for side in sides):
        raise ModelError(f"{problem.name}: a bound is NaN; unknown limits must be left out")
    if (problem.lb > problem.ub).any():
        names = problem.column_names()
        at = int(np.argmax(problem.lb > problem.ub))
        raise ModelError(f"{problem.name}: column {names[at]} has its lower bound above its upper bound")
    if (problem.row_lo > problem.row_hi).any():
        at = int(np.argmax(problem.row_lo > problem.row_hi))
        raise ModelError(
            f"{problem.name}: row {problem.row_names()[at]} has its lower side above its upper side"
        )


def _spread(value: FloatLike, count: int) -> Floats:
    return np.full(count, value, dtype=np.float64)


def _alike(*parts: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Arrays of one dimension and one length, scalars repeated."""
    if all(part.ndim < 2 for part in parts):
        lengths = {len(part) for part in parts if part.ndim}
        if len(lengths) < 2:
            count = next(iter(lengths), 1)
            return [part if part.ndim else np.full(count, part) for part in parts]
    return [part.ravel() for part in np.broadcast_arrays(*parts)]


def _stack(parts: Sequence[tuple[npt.NDArray[Any], ...]], width: int) -> list[npt.NDArray[Any]]:
    if not parts:
        return [np.zeros(0) for _ in range(width)]
    return [np.concatenate([part[number] for part in parts]) for number in range(width)]


def _compress(
    rows: Ints, columns: Ints, values: Floats, n_columns: int
) -> tuple[Floats, npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Turn coordinate entries into compressed columns, summing entries at the same place."""
    order = np.argsort(columns * (int(rows.max(initial=0)) + 1) + rows, kind="stable")
    rows, columns, values = rows[order], columns[order], values[order]
    if len(rows):
        first = np.ones(len(rows), dtype=np.bool_)
        first[1:] = (np.diff(rows) != 0) | (np.diff(columns) != 0)
        if not first.all():
            values = np.add.reduceat(values, np.flatnonzero(first))
            rows, columns = rows[first], columns[first]
    indptr = np.zeros(n_columns + 1, dtype=np.int32)
    np.cumsum(np.bincount(columns, minlength=n_columns), out=indptr[1:])
    return values.astype(np.float64), rows.astype(np.int32), indptr
