"""Offers laid out in rows, one for each group: sums along all rows at once in place of a loop over the groups."""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats, Ints, changes
from planner.records import record

_NOTHING = np.zeros(1)


@record(frozen=True, eq=False)
class Rows:
    """Members of groups in an order of their own.

    Attributes:
        group: of each row, ascending, shape `(n_rows,)`.
        member: number of each member, -1 behind the last one of a row, shape `(n_rows, most)`.
        size: members of each row, shape `(n_rows,)`.
    """

    group: Ints
    member: Ints
    size: Ints

    def of(self, values: Floats) -> Floats:
        """Values of the members, 0 behind the last one, shape `(n_rows, most)`."""
        return np.concatenate([values, _NOTHING])[self.member]

    def below(self, sums: Floats, limit: Floats) -> Ints:
        """Members whose running sums, shape `(n_rows, most)`, are at most the limit of their row."""
        within = (sums <= limit[:, None]) & (self.member >= 0)
        return np.asarray(within.sum(axis=1), dtype=np.int64)


def in_rows(group: Ints, order: Ints) -> Rows:
    """Lay out the numbers in `order` by the `group` of each number, both of shape `(n,)`."""
    order = order[np.argsort(group[order], kind="stable")]
    own = group[order]
    first = changes(own)
    size = np.diff(np.append(first, len(own)))
    row = np.repeat(np.arange(len(first)), size)
    member = np.full((len(first), int(size.max(initial=0))), -1)
    member[row, np.arange(len(own)) - first[row]] = order
    return Rows(own[first], member, size)


def before(sums: Floats, count: Ints) -> Floats:
    """Sum of the first `count` members of each row, given the running sums: 0 of none."""
    return np.asarray(np.where(count > 0, sums[np.arange(len(sums)), np.maximum(count, 1) - 1], 0.0))
