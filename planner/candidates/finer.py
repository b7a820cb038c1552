"""Shapes of hardware at the sizes between the coarse ones: each hardware row is estimated once, whoever asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Table
from planner.candidates.sizes import estimate_hardware

if TYPE_CHECKING:
    from catalogs.tables.table import Ints
    from planner.asked.model import Asked
    from planner.market.model import Market


class FinerShapes:
    """Shapes at some node counts of the hardware that is looked at more closely, for all questions of one job."""

    def __init__(self, asked: Asked, market: Market, counts: tuple[int, ...]) -> None:
        """Take the job, the hardware and the node counts; nothing is estimated yet."""
        self.asked, self.market, self.counts = asked, market, counts
        self._known = np.zeros(0, dtype=np.int64)  # hardware rows, in the order of `_shapes`
        self._expected = self._known
        self._shapes: Table | None = None

    def expect(self, hardware: Ints) -> None:
        """Note rows that will be asked for one by one, to estimate them together with the first."""
        self._expected = np.union1d(self._expected, hardware)

    def of(self, hardware: Ints) -> Table:
        """Shapes of some hardware rows, in their order: those of `estimate_hardware`."""
        if not np.isin(hardware, self._known).all():
            self._estimate(hardware)
        assert self._shapes is not None
        if np.array_equal(hardware, self._known):
            return self._shapes
        order = np.argsort(self._known)
        position = order[np.searchsorted(self._known, hardware, sorter=order)]
        width = len(self.counts)
        return self._shapes.take((position[:, None] * width + np.arange(width)).ravel())

    def _estimate(self, hardware: Ints) -> None:
        missing = hardware[~np.isin(hardware, self._known)]
        if np.isin(missing, self._expected).any():
            missing = np.setdiff1d(np.union1d(missing, self._expected), self._known)
        new = estimate_hardware(self.asked, self.market, missing, self.counts)
        self._shapes = new if self._shapes is None else Table.concat([self._shapes, new])
        self._known = np.append(self._known, missing)
