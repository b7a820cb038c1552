"""The performance model, asked once per question in a test session.

Most tests ask what is bought, and thousands of their instances ask how fast the same few models run on the same few
machines. `estimate_shapes` is a pure function of the model, the training and each hardware row by itself, so the
answer of one test serves the next. Tests of the performance model import the function itself; the judge asks anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from catalogs.tables.table import Table
from planner.performance.constants import Constants
from planner.performance.search import estimate_shapes
from planner.performance.spec import ModelSpec, TrainingSpec

_MOST_QUESTIONS = 1000  # random models would fill the memory


class RememberedShapes:
    """`estimate_shapes` with a memory: per model, training and node counts a table that grows by new hardware."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[dict[str, int], Table]] = {}

    def __call__(
        self,
        model: ModelSpec,
        training: TrainingSpec,
        hardware: Table,
        node_counts: Sequence[int],
        *,
        constants: Constants | None = None,
        keep: bool = True,
    ) -> Table:
        """The rows of `estimate_shapes`: hardware-major, `hardware_row` pointing into `hardware`; `keep` is ignored."""
        counts = [int(count) for count in node_counts]
        ask = partial(estimate_shapes, model, training, constants=constants)
        if not hardware.n_rows or not counts:
            return ask(hardware, counts)
        rows = [repr(values) for values in zip(*(hardware[name].tolist() for name in hardware), strict=True)]
        at, table = self._table(
            repr((list(hardware), model, training, counts, constants)), rows, ask, hardware, counts
        )
        first = np.asarray([at[row] for row in rows], dtype=np.int64) * len(counts)
        found = table.take((first[:, None] + np.arange(len(counts))).ravel())
        return found.with_columns(hardware_row=np.repeat(np.arange(len(rows), dtype=np.int64), len(counts)))

    def _table(
        self,
        key: str,
        rows: list[str],
        ask: Callable[[Table, list[int]], Table],
        hardware: Table,
        counts: list[int],
    ) -> tuple[dict[str, int], Table]:
        """Positions of hardware in the table of a question, and the table; what is not known yet is estimated."""
        if len(self._known) > _MOST_QUESTIONS:
            self._known.clear()
        at, table = self._known.get(key, ({}, None))
        new = {row: position for position, row in enumerate(rows) if row not in at}
        if new:
            picked = hardware.take(np.asarray(list(new.values()), dtype=np.int64))
            estimated = ask(picked, counts)
            table = estimated if table is None else Table.concat([table, estimated])
            at |= {row: len(at) + position for position, row in enumerate(new)}
            self._known[key] = (at, table)
        assert table is not None
        return at, table
