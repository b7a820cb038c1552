"""The blocks that the portfolio's constraint families share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.portfolios.reduce import Reduced
from planner.portfolios.shared_limits import MICRO
from solvers.problem.milp import Block, MilpBuilder

# Beside the dearest candidate; less than that is counted as nothing, for a solver cannot hold both in one row. The
# bound stays below, and plans are priced exactly afterwards.
NEGLIGIBLE = 1e-8


@dataclass(eq=False)
class PortfolioModel:
    """A model under construction.

    Attributes:
        builder: collects the blocks.
        reduced: the candidates kept and the limits that can bind.
        x: one binary per kept candidate; its key is the candidate's number in the question.
    """

    builder: MilpBuilder
    reduced: Reduced
    x: Block

    def limit_rows(self, name: str, kind: int) -> None:
        """Add `sum of units drawn <= limit` for the limits of one kind that can bind."""
        reduced = self.reduced
        wanted = np.flatnonzero(reduced.source.limit_kind[reduced.live] == kind)
        numbers = reduced.live[wanted]
        rows = self.builder.add_rows(
            name, len(wanted), upper=reduced.source.limit[numbers].astype(np.float64), tags=numbers.tolist()
        )
        row_of = np.full(len(reduced.live), -1, dtype=np.int64)
        row_of[wanted] = np.arange(rows.start, rows.stop)
        row = row_of[reduced.entry_row]
        inside = row >= 0
        columns = self.x.start + reduced.entry_at[inside]
        self.builder.add_entries(row[inside], columns, reduced.entry_units[inside].astype(np.float64))


def in_usd(micro_usd: Ints) -> Floats:
    """Micro-dollars as dollars, what is negligible beside the largest as 0."""
    usd = micro_usd / MICRO
    return np.where(usd < NEGLIGIBLE * float(np.max(usd, initial=0.0)), 0.0, usd)
