"""From candidates and declared limits to the question: which candidate draws how much of what, in which window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.inputs.checks import end_moment
from planner.portfolios.shared_limits import CAPACITY, MICRO, QUOTA, PortfolioInput
from planner.portfolios.table import MOST_UNITS, CandidateTable, Way, Ways

if TYPE_CHECKING:
    from datetime import date

    from planner.inputs.portfolio_schema import Portfolio, SharedCommitment, SharedQuota

_TIE = 1e-9  # hours: who ends when a window begins, but for rounding, is not in it


@dataclass(frozen=True)
class Limit:
    """One shared limit as people read it; `number` is that of the quota or commitment in the file."""

    label: str
    kind: int
    unit: str
    window: str
    amount: int
    number: int


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows in hours after the portfolio's start; the first covers the start, the last has no end."""

    names: tuple[str, ...]
    starts: Floats

    @property
    def ends(self) -> Floats:
        """End of each window."""
        return np.append(self.starts[1:], np.inf)

    def touched(self, table: CandidateTable) -> list[Bools]:
        """Per window, whether each candidate runs in it."""
        start, end = table.start_hours, table.start_hours + table.hours - _TIE
        return [
            (start < close) & (end > begin if at else np.ones(len(table), dtype=np.bool_))
            for at, (begin, close) in enumerate(zip(self.starts.tolist(), self.ends.tolist(), strict=True))
        ]


@dataclass(frozen=True, eq=False)
class Question:
    """The portfolio in whole numbers, with the limits' labels."""

    table: CandidateTable
    numbers: PortfolioInput
    limits: tuple[Limit, ...]


def build_question(
    portfolio: Portfolio,
    shared_commitments: tuple[SharedCommitment, ...],
    table: CandidateTable,
    ways: Ways,
    n_jobs: int,
    windows: Windows,
    busy_hours: Sequence[float],
    end_hours: Sequence[float],
) -> Question:
    """Write the shared limits as entries of the candidates.

    Args:
        portfolio: limits and budget.
        shared_commitments: machines of the workloads' files, pools after the portfolio's commitments.
        table: candidates in the order of their jobs.
        ways: what the table's numbers mean.
        n_jobs: number of jobs.
        windows: time windows.
        busy_hours: per commitment and own machine, until when its `busy_nodes` are taken.
        end_hours: per commitment and own machine, when it expires; infinity where it does not.
    """
    entries, draws = _Entries(table, windows), ways.draws(portfolio.quota)
    for at, quota in enumerate(portfolio.quota):
        entries.add_quota(at, quota, ways.all, draws[:, at])
    pools = (*portfolio.commitments, *shared_commitments)
    for number, (commitment, until, end) in enumerate(zip(pools, busy_hours, end_hours, strict=True)):
        entries.add_commitment(number, commitment, until, end)
    budget = None if portfolio.budget_usd is None else int(portfolio.budget_usd * MICRO)
    numbers = PortfolioInput(
        n_jobs, table.job, table.cost_micro_usd, table.counted_micro_usd, entries.joined(0), entries.joined(1),
        entries.joined(2), np.array([min(limit.amount, int(MOST_UNITS)) for limit in entries.limits], dtype=np.int64),
        np.array([limit.kind for limit in entries.limits], dtype=np.int64), budget,
    )  # fmt: skip
    return Question(table, numbers, tuple(entries.limits))


def in_time(question: Question) -> Question:
    """The same without the candidates that end late."""
    return restricted(question, question.table.late_hours <= 0)


def restricted(question: Question, keep: Bools) -> Question:
    """The same with the candidates `keep`, shape `(n_candidates,)`, alone."""
    numbers, position = question.numbers, np.cumsum(keep) - 1
    inside = keep[numbers.entry_candidate]
    return Question(
        question.table.take(keep),
        replace(
            numbers, job=numbers.job[keep], cost=numbers.cost[keep], objective=numbers.objective[keep],
            entry_candidate=position[numbers.entry_candidate[inside]], entry_limit=numbers.entry_limit[inside],
            entry_units=numbers.entry_units[inside],
        ),
        question.limits,
    )  # fmt: skip


def expired(label: str, expires: date | datetime) -> str:
    """What a limit on runs that end after a commitment does is called; moments in UTC, as all of an answer."""
    moment = f"{end_moment(expires):%Y-%m-%d %H:%M}" if isinstance(expires, datetime) else str(expires)
    return f"{label} after {moment}"


class _Entries:
    """Collects limits and what draws on them."""

    def __init__(self, table: CandidateTable, windows: Windows) -> None:
        self._table, self._windows = table, windows
        self._touched = windows.touched(table)
        self._parts: list[tuple[Ints, Ints, Ints]] = []
        self.limits: list[Limit] = []

    def joined(self, column: int) -> Ints:
        parts = [part[column] for part in self._parts]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def add_quota(self, number: int, quota: SharedQuota, ways: Sequence[Way], each: Floats) -> None:
        """One limit per region that matches and per window.

        Args:
            number: of the quota.
            quota: the limit.
            ways: what the table's numbers mean.
            each: units that an instance of each way draws, shape `(n_ways,)`.
        """
        regions: dict[str, list[int]] = {}
        for code in np.flatnonzero(each > 0).tolist():
            regions.setdefault(ways[code].region, []).append(code)
        for region, codes in sorted(regions.items()):
            inside = np.isin(np.arange(len(each)), codes)
            draw = self._table.drawn(np.where(inside, each, 0.0))
            label = f"{quota.provider}/{region} {quota.quota}"
            label += f" ({quota.purchase_option})" if quota.purchase_option else ""
            unit = ways[codes[0]].machine.unit_on(quota)
            for window, name in enumerate(self._windows.names):
                if quota.window is None or quota.window == name:
                    limit = Limit(label, QUOTA, unit, name, int(quota.limit), number)
                    self._add(limit, draw, self._touched[window])

    def add_commitment(
        self, number: int, commitment: SharedCommitment, busy_hours: float, end_hours: float
    ) -> None:
        """One limit per window; nodes that are busy when a window starts are not there in it.

        One that expires has another limit, of none, on which every run draws that ends later.
        """
        share = 1.0 if commitment.share is None else float(commitment.share)
        whole = int(commitment.nodes * share + 1e-9)
        label = f"{commitment.provider}/{commitment.region} {commitment.instance_type} ({commitment.purchase_option})"
        draw = self._table.drawn_of_pool(number)
        for window, start in enumerate(self._windows.starts.tolist()):
            free = max(whole - (commitment.busy_nodes if start < busy_hours else 0), 0)
            limit = Limit(label, CAPACITY, "nodes", self._windows.names[window], free, number)
            self._add(limit, draw, self._touched[window])
        if commitment.expires is not None:
            gone = Limit(expired(label, commitment.expires), CAPACITY, "nodes", "", 0, number)
            self._add(gone, draw, self._table.start_hours + self._table.hours > end_hours + _TIE)

    def _add(self, limit: Limit, draw: Ints, touched: Bools) -> None:
        at = np.flatnonzero((draw > 0) & touched)
        self._parts.append((at, np.full(len(at), len(self.limits), dtype=np.int64), draw[at]))
        self.limits.append(limit)
