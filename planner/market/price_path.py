"""Expected spot prices in the middle of runs, for every length of a run.

A run pays what its place costs from its start to its end. The price to expect is that of the middle of the run, so the
horizon grows by half of the hours from the start to the end. Prices are worked out for the halves of `HALF_DAYS` and
are straight between them: hours follow from no price, so one table serves all candidates at once.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.market.expected_price import PriceTerms


HALF_DAYS = (0.0, 3.0, 10.0, 30.0, 90.0, 365.0)  # half lengths of runs; longer ones count as the last
RUN_HOURS = tuple(days * 48.0 for days in HALF_DAYS)  # of whole runs; prices are straight between them
_HOURS = np.asarray(RUN_HOURS)
_STEPS = np.diff(_HOURS)
NAMES = ("expected_ratio", "p10_ratio", "p90_ratio")


@record(frozen=True, eq=False)
class PricePath:
    """Spot offers whose price moves over a run.

    Attributes:
        n_offers: of the whole table.
        parts: offers with the terms of their prices, in the order of the terms.
        horizon_days: from each quote to the start of the run, shape `(n_offers,)`.
        usd_per_hour: the quotes, shape `(n_offers,)`.
    """

    n_offers: int
    parts: tuple[tuple[Ints, PriceTerms], ...]
    horizon_days: Floats
    usd_per_hour: Floats

    @cached_property
    def place(self) -> Ints:
        """Row of each offer in `expected`, -1 for those that are not here, shape `(n_offers,)`."""
        out = np.full(self.n_offers, -1, dtype=np.int64)
        at = np.concatenate([rows for rows, _ in self.parts])
        out[at] = np.arange(len(at))
        return out

    @cached_property
    def expected(self) -> Floats:
        """Expected prices over the quote at each of `HALF_DAYS`, shape `(n, n_halves)`."""
        return np.concatenate([self._expected(rows, terms) for rows, terms in self.parts])

    def _expected(self, rows: Ints, terms: PriceTerms) -> Floats:
        horizon, usd = self.horizon_days[rows], self.usd_per_hour[rows]
        one, own = terms.alike(horizon)  # zones of a region often share a quote: worked out once
        mean = terms.mean(np.repeat(one, len(HALF_DAYS)), _halves(horizon[one]))
        return np.asarray((mean / np.repeat(usd[one], len(HALF_DAYS))).reshape(-1, len(HALF_DAYS))[own])

    @cached_property
    def _bounds(self) -> dict[int, Floats]:
        return {}

    def _bounds_of(self, row: int) -> Floats:
        """The 80 % interval of one offer over the quote at each of `HALF_DAYS`, shape `(2, n_halves)`.

        Of an offer that is bought; the search asks for expected prices alone.
        """
        if row not in self._bounds:
            place, terms = self._terms_of(row)
            later = terms.expect(np.repeat(place, len(HALF_DAYS)), _halves(self.horizon_days[[row]]))
            self._bounds[row] = np.stack([later.p10, later.p90]) / self.usd_per_hour[row]
        return self._bounds[row]

    def _terms_of(self, row: int) -> tuple[Ints, PriceTerms]:
        rows, terms = next(one for one in self.parts if row in one[0])
        return np.flatnonzero(rows == row), terms

    def _values(self, name: str, row: int) -> Floats:
        """A price of one offer over the quote at each of `HALF_DAYS`, shape `(n_halves,)`."""
        if name == NAMES[0]:
            return np.asarray(self.expected[self.place[row]])
        return np.asarray(self._bounds_of(row)[NAMES.index(name) - 1])

    def ratios(self, name: str, rows: Ints, run_hours: Floats) -> Floats:
        """Prices over the quote of `rows`, all of which are here, in the middle of runs, shape `(n,)`.

        Args:
            name: one of `NAMES`; the bounds are worked out offer by offer.
            rows: offers.
            run_hours: from the start to the end of each run.
        """
        # without `clip`, which takes longer than the rest where runs are few
        at = _HOURS.searchsorted(run_hours, side="right") - 1
        at = np.minimum(np.maximum(at, 0), len(_HOURS) - 2)
        part = np.minimum(np.maximum((run_hours - _HOURS.take(at)) / _STEPS.take(at), 0.0), 1.0)
        if name == NAMES[0]:
            values = self.expected.ravel()
            at += self.place.take(rows) * len(_HOURS)
        else:
            values = np.asarray([self._values(name, row) for row in rows.tolist()]).ravel()
            at += np.arange(len(rows)) * len(_HOURS)
        return np.asarray(values.take(at) * (1.0 - part) + values.take(at + 1) * part, dtype=np.float64)

    def ratio(self, name: str, row: int, run_hours: float) -> float:
        """`ratios` of one offer, without arrays of one."""
        values = self._values(name, row)
        at = min(max(bisect_right(RUN_HOURS, run_hours) - 1, 0), len(RUN_HOURS) - 2)
        part = (run_hours - RUN_HOURS[at]) / (RUN_HOURS[at + 1] - RUN_HOURS[at])
        part = min(max(part, 0.0), 1.0)
        return float(values[at]) * (1.0 - part) + float(values[at + 1]) * part

    def quantile(self, row: int, level: Floats, run_hours: float) -> Floats:
        """Price of `row`, which is here, over the quote that is not exceeded with each of the probabilities `level`.

        In the middle of a run of `run_hours`; shape `(n,)`, as `level`.
        """
        at = min(max(bisect_right(RUN_HOURS, run_hours) - 1, 0), len(RUN_HOURS) - 2)
        part = min(max((run_hours - RUN_HOURS[at]) / (RUN_HOURS[at + 1] - RUN_HOURS[at]), 0.0), 1.0)
        (place, terms), start = self._terms_of(row), float(self.horizon_days[row])
        usd = np.zeros(len(level))
        for share, half in ((1.0 - part, HALF_DAYS[at]), (part, HALF_DAYS[at + 1])):
            if share > 0:
                usd += share * terms.at_level(place, np.asarray([start + half]), level)
        return usd / float(self.usd_per_hour[row])

    def cheapest_hours(self, rows: Ints, run_hours: Floats) -> Floats:
        """Length from `run_hours` on at which a run of `rows`, all of which are here, expects the least price."""
        later = np.where(run_hours[:, None] < _HOURS, self.expected[self.place[rows]], np.inf)
        best = later.argmin(axis=1)
        now = self.ratios("expected_ratio", rows, run_hours)
        return np.where(later[np.arange(len(rows)), best] < now, _HOURS[best], run_hours)

    @cached_property
    def least_growth(self) -> Floats:
        """Least that each offer's expected price can be over that of the start, shape `(n_offers,)`."""
        out, expected = np.ones(self.n_offers), self.expected
        own = self.place >= 0
        out[own] = (expected.min(axis=1) / expected[:, 0])[self.place[own]]
        return out


def _halves(horizon_days: Floats) -> Floats:
    """Horizons of the middle of runs of all lengths, those of one start side by side, shape `(n * n_halves,)`."""
    return np.asarray((horizon_days[:, None] + np.asarray(HALF_DAYS)).ravel())
