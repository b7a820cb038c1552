"""What the hours and the cost of a fleet may come to, recomputed from its lines: speed, interruptions and prices."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import exp, hypot, isfinite, log, sqrt

from planner.judge.bench import Bench
from planner.judge.chance import Capacity, Course, elapsed_variance, paid_hours
from planner.judge.document import Node
from planner.judge.findings import Near
from planner.judge.fleet_chance import FleetCourse
from planner.judge.fleet_workers import Worker, runs_of, slowed
from planner.judge.money import Charge, total
from planner.judge.prices import Z80
from planner.records import record

_CHANCE, _STEP = 1e-4, 1e-2  # of a level of the chance; of hours that have it
Lines = Sequence[tuple[list[Charge], Fraction]]


@record(frozen=True)
class Spread:
    """P10 and P90 of hours and of cost."""

    hours: tuple[float, float]
    usd: tuple[Near, Near]


def spread_of(
    bench: Bench, plan: Node, workers: Sequence[Worker], lines: Lines, done: tuple[FleetCourse, float],
    bills: tuple[Fraction, Fraction],
) -> Spread:  # fmt: skip
    """Both intervals.

    Args:
        bench: what is known.
        plan: the answer.
        workers: of each line.
        lines: their charges.
        done: how the fleet gets on where all come, and the work.
        bills: of the fleet at the fast and at the slow end of the speed.
    """
    (coming, work), period = done, plan["hours"].number()
    launch = plan["launch"]
    late = hours_of(coming, 0.9, work, launch)
    if not isfinite(late):
        late = max(slow.end for slow in (slowed(worker, Z80) for worker in workers))
    whole, luck = plan["total_usd"].money(), Z80 * _luck(bench, workers, lines)
    cheaper, dearer = _prices(workers, lines)
    low = _below(float(whole), (max(float(whole - bills[0]), 0.0), luck, cheaper))
    high = hypot(max(float(bills[1] - whole), 0.0), luck, dearer)
    ends = (max(whole - Fraction(round(low, 2)), Fraction(0)), whole + Fraction(round(high, 2)))
    return Spread(
        (min(hours_of(coming, 0.1, work, launch), period), max(late, period)),
        (Near(ends[0], 1e-5, 0.011), Near(ends[1], 1e-5, 0.011)),
    )


def _below(whole: float, distances: Sequence[float]) -> float:
    """What causes take off the cost together that alone take off `distances`, as shares of what the others leave."""
    if any(distance >= whole for distance in distances):
        return whole
    logs = [log(whole / (whole - distance)) for distance in distances]
    return whole * (1.0 - exp(-hypot(*logs)))


def hours_of(coming: FleetCourse, level: float, work: float, launch: Node) -> float:
    """Hours after which `work` is done with probability `level`: those stated, where their chance is that.

    Whole runs make small steps of the chance, so that more than one hour may have it.
    """
    hours = coming.until(level, work)
    if launch.is_null or not isfinite(hours):
        return hours
    stated = launch["p90_hours" if level > 0.5 else "p10_hours"].number()
    near = (
        stated > 0
        and abs(coming.done(stated, work) - level) <= _CHANCE
        and abs(stated / hours - 1.0) <= _STEP
    )
    return stated if near else hours


def _luck(bench: Bench, workers: Sequence[Worker], lines: Lines) -> float:
    """Standard deviation in USD of work done again, restarts and notices: runs are independent but for the hazards."""
    variance = 0.0
    for worker, (charges, billed) in zip(workers, lines, strict=True):
        if worker.buy.offer.is_spot:
            assert worker.run.situation is not None
            pool, runs = bench.capacity(worker.buy.offer, worker.buy.nodes)[0], runs_of(worker)
            alone, shared = _paid_variances(worker.run.situation.course, pool)
            bought = total([c for c in charges if c.kind in ("compute", "upfront", "system_disk")])
            rate = float(bought / worker.count / billed)
            variance += rate * rate * (runs * alone + runs * runs * shared)
    return sqrt(variance)


def _paid_variances(course: Course, pool: Capacity) -> tuple[float, float]:
    """Variance of the paid hours of a run: by its own luck, and by the frailty of its hazards, at three points."""
    points = ((-sqrt(3.0), 1 / 6), (0.0, 2 / 3), (sqrt(3.0), 1 / 6)) if pool.frailty_sd else ((0.0, 1.0),)
    alone = mean = square = 0.0
    for node, weight in points:
        rate = pool.rate * exp(pool.frailty_sd * node - pool.frailty_sd**2 / 2.0)
        paid = paid_hours(course, rate)
        alone += weight * elapsed_variance(course, rate, 0.0) * pool.dispersion
        mean += weight * paid
        square += weight * paid * paid
    return alone, max(square - mean * mean, 0.0)


def _prices(workers: Sequence[Worker], lines: Lines) -> tuple[float, float]:
    """USD to P10 and P90 by the prices of spot, which move together."""
    cheaper = dearer = 0.0
    for worker, (charges, _) in zip(workers, lines, strict=True):
        if worker.buy.offer.is_spot:
            rent, quote = float(total([c for c in charges if c.kind == "compute"])), worker.buy.offer.quote
            cheaper += rent * (1.0 - quote.p10 / quote.expected)
            dearer += rent * (quote.p90 / quote.expected - 1.0)
    return cheaper, dearer
