"""Values that `PoolInduction` solved, looked up for many runs at once.

All tables lie one below the other, so values of several actions are found in one go: numpy takes longer for a call than
for the few hundred runs of a tick.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Bools, Floats, Ints
from planner.spot.policy.induction import MISS

TABLES = ("start", "run", "wait", "keep", "begin")
SOLVED = ("slack_at", "work_at", *TABLES)
"""What is kept of a solved pool, under the names of `PoolInduction`."""


class PoolValues:
    """The tables, of shape `(rows, slacks, works)` each; see `PoolInduction`."""

    def __init__(self, solved: Mapping[str, npt.NDArray[Any]]) -> None:
        self.slack, self.work = _Axis(solved["slack_at"]), _Axis(solved["work_at"])
        rows = np.cumsum([0, *(len(solved[name]) for name in TABLES)])
        self._first = dict(zip(TABLES, (rows[:-1] * self.slack.size * self.work.size).tolist(), strict=True))
        self.flat = np.concatenate([solved[name].reshape(-1) for name in TABLES])
        self.beside = np.asarray([0, self.work.size])[:, None, None, None]
        """To the next point of slack, for arrays of shape `(2, n_tables, n, k)`."""

    def first(self, names: tuple[str, ...]) -> Ints:
        """Where tables begin, shape `(n_tables, 1, 1)`."""
        return np.asarray([self._first[name] for name in names])[:, None, None]


class _Axis:
    """Of each whole number up to the last grid point: the grid point at or below, and how far on to the next."""

    def __init__(self, grid: Ints) -> None:
        at = np.arange(int(grid[-1]) + 1)
        self.size = len(grid)
        self.low: Ints = np.minimum(grid.searchsorted(at, side="right") - 1, self.size - 2)
        self.part: Floats = (at - grid[self.low]) / (grid[self.low + 1] - grid[self.low])


class Corner:
    """Where on the grid of slack and work runs are, shape `(n,)` each.

    Attributes:
        tables: whose grid it is.
        lost: whether no slack is left.
        first: number of the grid point at or below.
        slack_part, work_part: how far on to the next.
    """

    __slots__ = ("first", "lost", "slack_part", "tables", "work_part")

    def __init__(
        self,
        tables: PoolValues,
        lost: Bools,
        first: Ints,
        slack_part: Floats,
        work_part: Floats,
    ) -> None:
        self.tables, self.lost, self.first = tables, lost, first
        self.slack_part, self.work_part = slack_part, work_part

    @staticmethod
    def at(tables: PoolValues, work: Ints, slack: Ints) -> Corner:
        """Of runs with so much work and slack, ticks."""
        slacks, works = tables.slack, tables.work
        return Corner(
            tables,
            slack < 0,
            slacks.low.take(slack, mode="clip") * works.size + works.low.take(work, mode="clip"),
            slacks.part.take(slack, mode="clip"),
            works.part.take(work, mode="clip"),
        )

    def take(self, at: Ints) -> Corner:
        """Some of the runs."""
        return Corner(self.tables, self.lost[at], self.first[at], self.slack_part[at], self.work_part[at])

    def values(self, names: tuple[str, ...], row: Ints) -> Floats:
        """Values between the corners of the grid, as they would be on a straight line both ways.

        Args:
            names: of tables.
            row: of the tables, shape `(n, k)`.

        Returns:
            Shape `(n_tables, n, k)`.
        """
        tables = self.tables
        at = (
            tables.first(names)
            + (row * (tables.slack.size * tables.work.size) + self.first[:, None])
            + tables.beside
        )
        fw, fs = self.work_part[:, None], self.slack_part[:, None]
        near, far = (1 - fw) * tables.flat.take(at) + fw * tables.flat.take(at + 1)
        return np.where(self.lost[:, None], MISS, (1 - fs) * near + fs * far)


class Market:
    """Zones as runs find them: those that are up with the transfer to each, or a dry spell where none is.

    Args:
        corner: where the runs are.
        row: of each zone at its age, shape `(n, n_zones)`.
        dry_row: of a dry spell, shape `(n,)`.
        up: whether zones are up, shape `(n, n_zones)`.
        transfer: cost of going to each, on-demand ticks, shape `(n, n_zones)`.
    """

    def __init__(self, corner: Corner, row: Ints, dry_row: Ints, up: Bools, transfer: Floats) -> None:
        any_up: Bools = np.asarray(up.any(axis=1))
        self._wet, self._dry = any_up.nonzero()[0], (~any_up).nonzero()[0]
        self._up, self._transfer = up[self._wet], transfer[self._wet]
        self._row, self._dry_row = row[self._wet], dry_row[self._dry][:, None]
        self._of_wet, self._of_dry = corner.take(self._wet), corner.take(self._dry)
        self._shape = up.shape

    def best(self, *names: str) -> Floats:
        """Value with the best zone that is up, or in a dry spell, shape `(n_names, n)`."""
        return self._joined(self._of_zones(names), names)

    def by_zone_and_best(self, name: str, *names: str) -> tuple[Floats, Floats]:
        """Of one table the value of each zone that is up, else infinite, shape `(n, n_zones)`; of others `best`."""
        of_zones = self._of_zones((name, *names))
        value = np.full(self._shape, np.inf)
        value[self._wet] = of_zones[0]
        return value, self._joined(of_zones[1:], names)

    def _of_zones(self, names: tuple[str, ...]) -> Floats:
        """With the transfer to each zone, shape `(n_names, n_wet, n_zones)`."""
        return np.where(self._up, self._of_wet.values(names, self._row) + self._transfer, np.inf)

    def _joined(self, of_zones: Floats, names: tuple[str, ...]) -> Floats:
        value = np.empty((len(names), self._shape[0]))
        value[:, self._wet] = of_zones.min(axis=2)
        value[:, self._dry] = self._of_dry.values(names, self._dry_row)[..., 0]
        return value
