"""The chance that a fleet is done by an hour: workers that come and go independently, at common levels of hazards.

At each speed, a beta distribution between nothing and what spot does if it is never taken back, with the mean and the
variance of alternating renewal processes in balance (Cox 1962; `FleetCourse`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import exp, expm1, inf, sqrt

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.judge.bench import Bench
from planner.judge.chance import normal, normal_point
from planner.judge.findings import Near
from planner.judge.fleet_workers import Worker, begins
from planner.judge.money import Charge
from planner.records import record

Levels = tuple[tuple[float, float, float], ...]
_SPEEDS, _LEVELS = 400, 7
_HALVINGS = 60
_LATEST = 1e6
_SHORT = 1e-6  # of all work; what dividing it among workers may be off by


@record(frozen=True)
class FleetCourse:
    """What lines do: most hours of work, units per hour up, log sd of the speed, luck of spot (`luck_levels`).

    `begins`: weights of the luck of what is waited for, with the hours before work of each line, infinite: never.
    """

    lines: tuple[tuple[float, float, float, Levels], ...]
    begins: tuple[tuple[float, tuple[float, ...]], ...]
    counts: tuple[int, ...] = ()
    run_units: float = 0.0

    def coming(self) -> FleetCourse:
        """The same given that all come."""
        available = [(weight, leads) for weight, leads in self.begins if max(leads) < inf]
        whole = sum(weight for weight, _ in available)
        return (
            replace(self, begins=tuple((weight / whole, leads) for weight, leads in available))
            if available
            else self
        )

    @lru_cache(maxsize=256)  # noqa: B019 - as `until`
    def done(self, at: float, work: float) -> float:
        """P(`work` is done `at` hours after the start)."""
        return sum(weight * self._done(at, work, leads) for weight, leads in self.begins)

    def _done(self, at: float, work: float, leads: tuple[float, ...]) -> float:
        hours = [min(max(at - lead, 0.0), line[0]) for lead, line in zip(leads, self.lines, strict=True)]
        units = [line[1] * each for line, each in zip(self.lines, hours, strict=True)]
        spot = [number for number, line in enumerate(self.lines) if line[3] and units[number]]
        if not spot:
            return self._steady(units, work)
        slow = [each * np.exp(-line[2] * _POINTS) for each, line in zip(units, self.lines, strict=True)]
        done = [self._in_runs(each, number) for number, each in enumerate(slow)]
        runs, each_run = round(work / self.run_units) if self.run_units else 0, self.run_units
        left = np.full(_SPEEDS, runs - 0.5 if each_run else work * (1.0 - _SHORT))
        for number in range(len(done)):
            left = left - (0.0 if number in spot else done[number])
        mean = variance = most = np.zeros(_SPEEDS)
        for number in spot:
            share, shared, own = share_up(self.lines[number][3], hours[number])
            whole, count = slow[number], self.counts[number]
            if each_run:
                one = whole / count / each_run
                middle, spread = _whole_parts(one, share, shared + own)
                common = shared / max(shared + own, 1e-300)
                mean = mean + count * middle
                variance = variance + spread * (count * (1.0 - common) + count**2 * common)
            else:
                mean = mean + whole * share
                variance = variance + whole**2 * (shared + own / count)
            most = most + done[number]
        return float(np.where(left <= 0, 1.0, _reach(left, mean, variance, most)).mean())

    def _in_runs(self, units: Floats, number: int) -> Floats:
        """What counts of what a line does: whole runs of each worker, where runs are stated."""
        if not self.run_units:
            return units
        return self.counts[number] * np.floor(units / self.counts[number] / self.run_units + _SHORT)

    def _steady(self, units: list[float], work: float) -> float:
        """P(`work` is done) where only the speed is unknown."""
        sigmas = [line[2] for line in self.lines]
        if not self.run_units:
            return normal(_slowest(list(zip(units, sigmas, strict=True)), work))
        counts = np.asarray(self.counts)
        each = np.asarray(units) / counts / self.run_units
        return normal(_slowest_runs(each, np.asarray(sigmas), counts, round(work / self.run_units)))

    @lru_cache(maxsize=256)  # noqa: B019 - courses are small, and an answer is often judged more than once
    def until(self, level: float, work: float) -> float:
        """Hours after which `work` is done with probability `level`."""
        low, high = 0.0, _LATEST
        if self.done(high, work) < level:
            return inf
        while high - low > 1e-7 * high:
            middle = (low + high) / 2.0
            low, high = (low, middle) if self.done(middle, work) >= level else (middle, high)
        return high


_POINTS = np.asarray([normal_point((number + 0.5) / _SPEEDS) for number in range(_SPEEDS)])


def course_of(
    bench: Bench, workers: Sequence[Worker], lines: Sequence[tuple[list[Charge], Fraction]]
) -> FleetCourse:
    """How a fleet gets on: each worker goes on until the work is done, or what was bought of it ends."""
    out = []
    for worker, (_, billed) in zip(workers, lines, strict=True):
        rule, most = worker.buy.offer.rule, inf
        if rule.block_hours or rule.whole_term:
            most = float(billed)
        elif rule.max_term_hours is not None:
            most = rule.max_term_hours
        most = (most - worker.run.steps.fixed) / worker.paid_ratio
        up = worker.paid_ratio if worker.buy.offer.is_spot else 1.0  # what is not paid it waits
        rate = worker.count * worker.units_per_hour / up
        out.append((most, rate, worker.run.steps.sigma, luck_levels(bench, worker)))
    counts = tuple(worker.count for worker in workers)
    return FleetCourse(tuple(out), begins(workers), counts, max(worker.run_units for worker in workers))


def chance_of(bench: Bench, course: FleetCourse, work: float) -> Near | None:
    """P(the fleet is done by the deadline), None without one."""
    return None if bench.deadline is None else Near(course.done(bench.deadline_hours, work), 1e-4, 1e-5)


def luck_levels(bench: Bench, worker: Worker) -> Levels:
    """Levels of the hazards of spot: weight, share of time up, and how fast that evens out, per hour; else nothing."""
    if not worker.buy.offer.is_spot:
        return ()
    pool = bench.capacity(worker.buy.offer, worker.buy.nodes)[0]
    sd, out = pool.frailty_sd, []
    for node, weight in _hermite() if sd else ((0.0, 1.0),):
        level = exp(sd * node / sqrt(2.0) - sd * sd / 2.0)  # of the rate and of the wait
        load = pool.rate * pool.wait * level * level
        pace = (pool.rate * level + 1.0 / (pool.wait * level)) / pool.dispersion
        out.append((weight, 1.0 / (1.0 + load), pace))
    return tuple(out)


@lru_cache(maxsize=1)
def _hermite() -> tuple[tuple[float, float], ...]:
    """Points and weights of a standard normal variable, from numpy."""
    from numpy.polynomial.hermite_e import hermegauss

    nodes, weights = hermegauss(_LEVELS)
    return tuple(zip(nodes.tolist(), (weights / weights.sum()).tolist(), strict=True))


def share_up(levels: Levels, hours: float) -> tuple[float, float, float]:
    """Mean share of `hours` that a worker is up; its variance that all of a line share, and that of one alone."""
    mean = sum(weight * up for weight, up, _ in levels)
    shared = sum(weight * (up - mean) ** 2 for weight, up, _ in levels)
    own = 0.0
    for weight, up, pace in levels:
        y = pace * hours
        part = 1.0 - y / 3.0 if y < 1e-3 else 2.0 * (y + expm1(-y)) / y**2
        own += weight * up * (1.0 - up) * part
    return mean, shared, own


def _reach(need: Floats, mean: Floats, variance: Floats, most: Floats) -> Floats:
    """P(a beta variable between 0 and `most` is `need` or more), by its mean and variance."""
    from scipy.special import betainc

    middle = np.clip(mean / np.maximum(most, 1e-100), 1e-12, 1.0 - 1e-12)
    widest = middle * (1.0 - middle)
    narrow = np.clip(variance / np.maximum(most, 1e-100) ** 2, 1e-12, widest * (1.0 - 1e-9))
    a, b = middle * (widest / narrow - 1.0), (1.0 - middle) * (widest / narrow - 1.0)
    inside = (need > 0.0) & (need <= most)
    chance = np.where(need > most, 0.0, np.ones_like(need))
    left = 1.0 - np.clip(need / np.maximum(most, 1e-100), 0.0, 1.0)
    return np.asarray(betainc(b, a, left, out=chance, where=inside))


def _whole_parts(tops: Floats, share: float, spread: float) -> tuple[Floats, Floats]:
    """Mean and variance of the whole part of a beta share of each top; any fraction is as likely of what is wide."""
    mean, variance, steps = share * tops, spread * tops * tops, np.arange(1.0, 10.0)
    means, variances = np.maximum(mean - 0.5, 0.0), variance + 1.0 / 12.0
    few = (tops <= 9.0) | (variance <= 0.49)
    if few.any():
        top, middle = tops[few], mean[few]
        low = np.where(top <= 9.0, 0.0, np.maximum(np.floor(middle) - 4.0, 0.0))
        columns = (middle[:, None], variance[few][:, None], top[:, None])
        reached = _reach(low[:, None] + steps - _SHORT, *columns)
        whole = reached.sum(axis=1)
        means[few] = low + whole
        variances[few] = np.maximum(reached @ (2.0 * steps - 1.0) - whole**2, 0.0)
    return means, variances


def _slowest_runs(each: Floats, sigmas: Floats, counts: Ints, runs: int) -> float:
    """Standard normal z of the slowest speed at which steady workers do so many whole runs."""
    low, high = -9.0, 9.0
    for _ in range(_HALVINGS):
        z = (low + high) / 2.0
        runs_done = (counts * np.floor(each * np.exp(-sigmas * z) + _SHORT)).sum()
        low, high = (z, high) if runs_done >= runs * (1.0 - _SHORT) else (low, z)
    return low


def _slowest(each: Sequence[tuple[float, float]], work: float) -> float:
    """Standard normal z of the slowest speed at which steady workers do `work`."""
    low, high = -9.0, 9.0
    for _ in range(_HALVINGS):
        z = (low + high) / 2.0
        enough = sum(units * exp(-sigma * z) for units, sigma in each) >= work * (1.0 - _SHORT)
        low, high = (z, high) if enough else (low, z)
    return low
