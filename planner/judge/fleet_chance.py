"""The chance that a fleet is done by an hour: many workers that come and go independently.

Over the speeds, the normal distribution function of the work done by then less the work asked, over its standard
deviation (`FleetCourse`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import exp, inf, sqrt

import numpy as np

from planner.judge.bench import Bench
from planner.judge.chance import normal, normal_point
from planner.judge.findings import Near
from planner.judge.fleet_workers import Worker, begins
from planner.judge.money import Charge
from planner.records import record

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

    def coming(self) -> FleetCourse:
        """The same given that all come."""
        there = [(weight, leads) for weight, leads in self.begins if max(leads) < inf]
        whole = sum(weight for weight, _ in there)
        return (
            FleetCourse(self.lines, tuple((weight / whole, leads) for weight, leads in there))
            if there
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
        if not any(units * spread for units, _, spread in each):
            return normal(_slowest([(units, sigma) for units, sigma, _ in each], work))
        units, sigmas, spreads = (np.asarray(column)[:, None] for column in zip(*each, strict=True))
        slow = units * np.exp(-sigmas * _POINTS)  # by line and speed
        sd = np.sqrt(((slow * spreads) ** 2).sum(axis=0))
        scores = (slow.sum(axis=0) - work) / np.maximum(sd, 1e-9 * work)
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
    return FleetCourse(tuple(out), begins(workers))


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


def _slowest(each: Sequence[tuple[float, float]], work: float) -> float:
    """Standard normal z of the slowest speed at which steady workers do `work`."""
    low, high = -9.0, 9.0
    for _ in range(_HALVINGS):
        z = (low + high) / 2.0
        enough = sum(units * exp(-sigma * z) for units, sigma in each) >= work * (1.0 - _SHORT)
        low, high = (z, high) if enough else (low, z)
    return low
