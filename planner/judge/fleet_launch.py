"""The section `launch` of a fleet with spot: sums of many workers that come and go independently.

The chance to be done by an hour: over the speeds, the normal distribution function of the work done by then less the
work asked, over its standard deviation (`_Course`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import exp, hypot, inf, sqrt
from typing import Any

import numpy as np

from planner.judge import frame
from planner.judge.bench import Bench
from planner.judge.chance import normal, normal_point
from planner.judge.document import Node
from planner.judge.findings import Exactly, IfStated, Near
from planner.judge.fleet_workers import Worker, begins, runs_of
from planner.judge.launch_figures import checkpoints, place
from planner.judge.money import Charge, total
from planner.records import record

_SPEEDS = 400
_HALVINGS = 60
_LATEST = 1e6
_SHORT = 1e-6  # of all work; what dividing it among workers may be off by
_RATIO = 1e-6
SUMMED = "hours are summed over workers; the finish is that of all work at this size of the fleet"


def launch_of(
    bench: Bench, plan: Node, workers: Sequence[Worker], lines: Sequence[tuple[list[Charge], Fraction]], period: float,
    work: float,
) -> dict[str, Any] | None:  # fmt: skip
    """The section `launch`: sums of many workers, taken as normal (Cox 1962, alternating renewal process)."""
    spot = [worker for worker in workers if worker.buy.offer.is_spot]
    if not spot:
        return None
    usd_var, cheaper, dearer = 0.0, 0.0, 0.0
    for worker, (charges, _) in zip(workers, lines, strict=True):
        if worker.buy.offer.is_spot:
            bought = total([c for c in charges if c.kind in ("compute", "upfront", "system_disk")])
            usd_var += (float(bought) * _spread(*_luck(bench, worker), worker.hours)) ** 2
            rent, quote = float(total([c for c in charges if c.kind == "compute"])), worker.buy.offer.quote
            cheaper += rent * (1.0 - quote.p10 / quote.expected)
            dearer += rent * (quote.p90 / quote.expected - 1.0)
    z = normal_point(0.9)
    course = course_of(bench, workers, lines)
    coming = course.coming()
    early, late = min(coming.until(0.1, work), period), max(coming.until(0.9, work), period)
    low, high = (Fraction(round(hypot(z * sqrt(usd_var), prices), 2)) for prices in (cheaper, dearer))
    whole = plan["total_usd"].money()
    first = max(spot, key=lambda w: w.count * w.paid)
    done = chance_of(bench, course, work)
    told = plan["launch"]
    saved = checkpoints(bench, first.run)
    return {
        "strategy": "spot_in_fleet", "p_meet_deadline": done, "p_meet_spot_only_ratio": None,
        "p_on_demand_needed_ratio": 0.0, "expected_cost_usd": Exactly(whole),
        "cost_p10_usd": Near(max(whole - low, Fraction(0)), 1e-5, 0.011),
        "cost_p90_usd": Near(whole + high, 1e-5, 0.011),
        "expected_hours": Exactly(plan["hours"].money()), "p10_hours": Near(early, 1e-5), "p90_hours": Near(late, 1e-5),
        "finish_p10": frame.finish(bench, told["p10_hours"].number()),
        "finish_p90": frame.finish(bench, told["p90_hours"].number()),
        "expected_interruptions": Near(sum(w.run.interruptions * runs_of(w) for w in spot), _RATIO),
        "spot_hours": Near(sum(w.count * w.paid for w in spot), _RATIO),
        "on_demand_hours": Near(sum(w.count * w.paid for w in workers if not w.buy.offer.is_spot), _RATIO, 1e-8),
        "waiting_hours": Near(sum(w.count * w.hours * (1.0 - w.paid_ratio) for w in spot), _RATIO, 1e-7),
        "lost_hours": Near(sum(w.run.lost * runs_of(w) for w in spot), _RATIO),
        "on_demand_acquire_s": Near(bench.work.figures["on_demand_acquire_s"]), "checkpoints": saved,
        "places": [
            place(bench, w.buy.offer, w.buy.nodes, Near(w.count * w.paid, _RATIO))
            | {"records": None, "hazards": IfStated(None)}
            for at, w in enumerate(spot)
        ], "why": [],
        "notes": [SUMMED], "replay": None, "first_wait_hours": 0.0,
        "p_on_demand_had_ratio": None,
    }  # fmt: skip


@record(frozen=True)
class _Course:
    """What lines do: most hours of work, units per hour, log sd of the speed, luck of spot (`_luck`).

    `begins`: weights of the luck of what is waited for, with the hours before work of each line, infinite: never.
    """

    lines: tuple[tuple[float, float, float, tuple[float, float]], ...]
    begins: tuple[tuple[float, tuple[float, ...]], ...]

    def coming(self) -> _Course:
        """The same given that all come."""
        there = [(weight, leads) for weight, leads in self.begins if max(leads) < inf]
        whole = sum(weight for weight, _ in there)
        return (
            _Course(self.lines, tuple((weight / whole, leads) for weight, leads in there)) if there else self
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
) -> _Course:
    """How a fleet gets on: each worker goes on until the work is done, or what was bought of it ends."""
    out = []
    for worker, (_, billed) in zip(workers, lines, strict=True):
        rule, most = worker.buy.offer.rule, inf
        if rule.block_hours or rule.whole_term:
            most = float(billed)
        elif rule.max_term_hours is not None:
            most = rule.max_term_hours
        most = (most - worker.run.steps.fixed) / worker.paid_ratio
        rate = worker.count * worker.units_per_hour * worker.caution
        out.append((most, rate, worker.run.steps.sigma, _luck(bench, worker)))
    return _Course(tuple(out), begins(workers))


def chance_of(bench: Bench, course: _Course, work: float) -> Near | None:
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
