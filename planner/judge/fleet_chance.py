"""The chance that a fleet is done by an hour: many workers that come and go independently.

Over the speeds, the normal distribution function of the work done by then less the work asked, over its standard
deviation (`FleetCourse`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import exp, inf, sqrt

import numpy as np
import numpy.typing as npt

from planner.judge.bench import Bench
from planner.judge.chance import normal, normal_point
from planner.judge.findings import Near
from planner.judge.fleet_workers import Worker, begins
from planner.judge.money import Charge
from planner.records import record

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_SPEEDS = 400
_HALVINGS = 60
_LATEST = 1e6
_SHORT = 1e-6  # of all work; what dividing it among workers may be off by


@record(frozen=True)
class FleetCourse:
    """What lines do: most hours of work, units per hour, log sd of the speed, luck of spot (`_luck`).

    `begins`: weights of the luck of what is waited for, with the hours before work of each line, infinite: never.
    """

    lines: tuple[tuple[float, float, float, tuple[float, float]], ...]
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
        each = []
        for lead, (most, rate, sigma, luck) in zip(leads, self.lines, strict=True):
            hours = min(max(at - lead, 0.0), most)
            each.append((rate * hours, sigma, _spread(*luck, hours)))
        if self.run_units:
            return self._runs_done([units for units, _, _ in each], at, leads, round(work / self.run_units))
        if not any(units * spread for units, _, spread in each):
            return normal(_slowest([(units, sigma) for units, sigma, _ in each], work))
        units, sigmas, spreads = (np.asarray(column)[:, None] for column in zip(*each, strict=True))
        slow = units * np.exp(-sigmas * _POINTS)  # by line and speed
        sd = np.sqrt(((slow * spreads) ** 2).sum(axis=0))
        scores = (slow.sum(axis=0) - work) / np.maximum(sd, 1e-9 * work)
        return sum(normal(score) for score in scores.tolist()) / _SPEEDS

    def _runs_done(self, units: list[float], at: float, leads: tuple[float, ...], runs: int) -> float:
        """P(so many whole runs are done): the whole part of what each worker does, the level of a line in all of it."""
        counts = np.asarray(self.counts)[:, None]
        each = np.asarray(units)[:, None] / counts / self.run_units
        luck = np.asarray([line[3] for line in self.lines])
        hours = np.asarray([
            min(max(at - lead, 1e-9), line[0]) for lead, line in zip(leads, self.lines, strict=True)
        ])  # fmt: skip
        own_sigma = luck[:, 0] * np.sqrt(counts[:, 0] / np.maximum(hours, 1e-9))
        sigmas = np.asarray([line[2] for line in self.lines])[:, None]
        if not (each[:, 0] * (own_sigma + luck[:, 1])).any():
            return normal(_slowest_runs(each[:, 0], sigmas[:, 0], counts[:, 0], runs))
        slow = each * np.exp(-sigmas * _POINTS)
        total = variance = np.zeros(_SPEEDS)
        for line, count in enumerate(self.counts):
            mean, spread = _whole_parts(slow[line], slow[line] * own_sigma[line])
            total = total + count * mean
            variance = variance + count * spread + (count * slow[line] * luck[line, 1]) ** 2
        scores = (total + 0.5 - runs) / np.maximum(np.sqrt(variance), 1e-6)
        return sum(normal(score) for score in scores.tolist()) / _SPEEDS

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
        rate = worker.count * worker.units_per_hour
        out.append((most, rate, worker.run.steps.sigma, _luck(bench, worker)))
    counts = tuple(worker.count for worker in workers)
    return FleetCourse(tuple(out), begins(workers), counts, max(worker.run_units for worker in workers))


def chance_of(bench: Bench, course: FleetCourse, work: float) -> Near | None:
    """P(the fleet is done by the deadline), None without one."""
    return None if bench.deadline is None else Near(course.done(bench.deadline_hours, work), 1e-4, 1e-5)


def _luck(bench: Bench, worker: Worker) -> tuple[float, float]:
    """Relative sd of the work of a line: times the root of its hours, and what hours do not lessen (Cox 1962)."""
    if not worker.buy.offer.is_spot:
        return 0.0, 0.0
    pool = bench.capacity(worker.buy.offer, worker.buy.nodes)[0]
    load = pool.rate * pool.wait
    up = 1.0 / (1.0 + load)
    alone = sqrt(2.0 * load * pool.wait * pool.dispersion * up / worker.count)
    return alone, (1.0 - up) * pool.frailty_sd


def _spread(alone: float, level: float, hours: float) -> float:
    return sqrt(alone * alone / max(hours, 1e-9) + level * level)


def _whole_parts(means: Floats, deviations: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the whole parts of normal numbers; any fraction is as likely where one spreads over 0.7."""
    whole, variance = np.floor(means + _SHORT), np.zeros_like(means)
    for at, (mean, sd) in enumerate(zip(means.tolist(), deviations.tolist(), strict=True)):
        if sd > 0.7:
            whole[at], variance[at] = max(mean - 0.5, 0.0), sd * sd + 1.0 / 12.0
        elif sd > 0.0:
            low = max(int(whole[at]) - 4, 0)
            reached = [normal((mean + _SHORT - low - k) / max(sd, 1e-9)) for k in range(1, 10)]
            whole[at] = low + sum(reached)
            squares = sum((2 * k - 1) * part for k, part in enumerate(reached, 1))
            variance[at] = max(squares - sum(reached) ** 2, 0.0)
    return whole, variance


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
