"""Spot in several zones, and spot with on-demand to fall back on, written apart after docs/spot/launch.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, inf, log, sqrt

from planner.judge.capacity_waits import unit_quadrature
from planner.judge.chance import (
    Capacity,
    Course,
    Elapsed,
    chance_within,
    means,
    model_chance,
    normal,
    normal_point,
    steady_chance,
)
from planner.records import record

_STEPS = 24
_SPEEDS, _LUCK, _SHARES = 9, 41, 24
_MEAN_SPEEDS = 3
_LONGEST_HOURS = 1e6

# The engine reads chances off a table of the normal distribution, linearly between its points (within 3e-6); the judge
# has them exact.
CHANCE_SLACK = 3e-6


@record(frozen=True)
class Union:
    """Zones seen as one: their capacity, the share of up-time of each, changes of region per interruption."""

    pool: Capacity
    shares: tuple[float, ...]
    moves: float


def unite(
    capacities: Sequence[Capacity],
    regions: Sequence[str],
    near: float,
    far: float,
    lines: Sequence[str | None],
) -> Union:
    """See zones, cheapest first, as one pool.

    A run takes the first zone that is up. After a spell in zone i another zone j is down with
    1 - a_j + c a_j; the zone of the next spell follows the Markov chain of these chances.

    Args:
        capacities: capacity of each zone at its mean level.
        regions: region of each zone.
        near: correlation of being down within a region.
        far: across regions.
        lines: the line of a table that each zone is known from alone, None with a record: one line is one error.
    """
    zones = [pool.level(-1.0) for pool in capacities]
    count = len(zones)
    up = [1.0 / (1.0 + zone.rate * zone.wait) for zone in zones]
    linked = [[near if a == b else far for b in regions] for a in regions]
    waits = sum(1.0 / zone.wait for zone in zones)
    step, none_up = [], []
    for gone in range(count):
        down = [1.0 if j == gone else 1.0 - up[j] + linked[gone][j] * up[j] for j in range(count)]
        before, row = 1.0, []
        for chance in down:
            row.append(before * (1.0 - chance))
            before *= chance
        none_up.append(before)
        step.append([row[j] + before * (1.0 / zones[j].wait) / waits for j in range(count)])
    spell = [1.0 / count] * count
    for _ in range(_STEPS):
        spell = [sum(spell[i] * step[i][j] for i in range(count)) for j in range(count)]
    length = [share / zone.rate for share, zone in zip(spell, zones, strict=True)]
    rate = 1.0 / sum(length)
    shares = [hours * rate for hours in length]
    first = sum(1.0 / zone.first_wait for zone in zones)
    pause = [1.0 / (1.0 / zone.wait + first - 1.0 / zone.first_wait) for zone in zones]
    wait = sum(s * n * p for s, n, p in zip(spell, none_up, pause, strict=True))
    square = sum(s * n * p * p for s, n, p in zip(spell, none_up, pause, strict=True)) / max(
        wait * wait, 1e-300
    )
    moves = sum(spell[i] * step[i][j] for i in range(count) for j in range(count) if regions[i] != regions[j])
    link = far if count > 1 else 1.0
    spread = sqrt(_common_error(shares, link, lines))
    rest = 1.0 - up[0]
    for j in range(1, count):
        rest *= 1.0 - up[j] + linked[0][j] * up[j]
    load = rate * wait
    pool = Capacity(
        rate=rate,
        wait=wait,
        first_wait=rest / first * (1.0 + load) / max(load, 1e-300),
        frailty_sd=sum(s * z.frailty_sd for s, z in zip(shares, zones, strict=True)) * spread,
        dispersion=sum(s * z.dispersion for s, z in zip(shares, zones, strict=True)) * square,
    )
    return Union(pool.level(1.0), tuple(shares), moves)


def _common_error(shares: Sequence[float], link: float, lines: Sequence[str | None]) -> float:
    """Variance of the mean level of zones over that of one; zones of one line of a table share its error whole."""
    total = 0.0
    for i, one in enumerate(shares):
        for j, other in enumerate(shares):
            alike = i == j or (lines[i] is not None and lines[i] == lines[j])
            total += one * other * (1.0 if alike else link)
    return total


@record(frozen=True)
class InTurn:
    """Expected course of a run on spot, then perhaps on on-demand; hours paid, chances, share of the work moved.

    `p_change` is the model's own, behind the hours; `p_needed` the calibrated chance.
    """

    elapsed: float
    spot: float
    on_demand: float
    interruptions: float
    lost: float
    p_change: float
    p_meet: float | None
    p_alone: float | None
    p_needed: float
    share: float


@record(frozen=True)
class Situation:
    """What a run in turn needs to know, hours: `room` from the first request to the deadline (infinity: none).

    `later`: more of it for work that takes twice as long as predicted, and in proportion.
    """

    course: Course
    pool: Capacity
    fixed: float
    steady: float
    sigma: float
    room: float
    acquire: float  # left to the fall-back from asking for it to having it; `mean`: expected
    mean: float
    had: float  # probability that the fall-back comes within it
    export: float
    fallback: bool
    # hours by level of what is asked for, where they may differ
    waits: Callable[[float], float] | None = None
    later: float = 0.0
    link: float = 0.0  # how far spot and the fall-back are scarce at once

    def with_fallback(self, in_time: float, alone: float) -> float:
        """P(in time) where the fall-back in use is with `in_time` and spot alone with `alone`."""
        if in_time <= 0.0:
            return 0.0
        late, never = min(max(1.0 - alone / in_time, 0.0), 1.0), 1.0 - self.had
        apart = late * never
        return in_time * (1.0 - (1.0 - self.link) * apart - self.link * min(late, never))

    def chance_within(self, hours: float, more: float = 0.0) -> float:
        """P(spot ends within `hours` for work as fast as predicted, `more` of them left)."""
        return chance_within(self.course, self.pool, hours - self.later, self.sigma, more - self.later)


def run(now: Situation) -> InTurn:
    """Expect the course: the change comes when waits and losses exceed what can be afforded."""
    free = means(now.course, now.pool)
    alone = None if now.room == inf else now.chance_within(max(now.room, 0.0))
    if not now.fallback or alone is None:  # without a deadline nothing is ever changed for
        return InTurn(
            free.elapsed, now.course.floor + free.lost + now.fixed, 0.0, free.interruptions, free.lost, 0.0, alone,
            alone, 0.0, 0.0,
        )  # fmt: skip
    change_hours = now.course.restart + now.acquire
    slack = now.room - change_hours - now.steady
    share, change, wasted = _mean_left(now, slack)
    lost = min(free.lost * (1.0 - share), wasted)
    left = max(now.room - change_hours, 0.0)
    in_time = steady_chance(now.steady - now.later, left - now.later, now.sigma)
    done = now.course.floor * (1.0 - share)
    return InTurn(
        elapsed=done + wasted + share * now.steady + change * (now.course.restart + now.mean),
        spot=done + lost + now.fixed - change * now.export,
        on_demand=share * now.steady + change * (now.course.restart + now.export),
        interruptions=free.interruptions * (1.0 - share),
        lost=lost + change * now.course.restart,
        p_change=change,
        p_meet=max(alone, now.with_fallback(in_time, alone)),
        p_alone=alone,
        p_needed=1.0 - now.chance_within(left, now.steady - now.course.floor),
        share=share,
    )


def _kept(course: Course, pool: Capacity, shares: Sequence[float], slack: float) -> list[float]:
    """P(no change before each share of the work is done), never rising with the share."""
    kept: list[float] = []
    for share in shares:
        part = Elapsed(course.slower(share), pool)
        kept.append(0.0 if slack < 0 else part.within(part.floor + slack))
    for at in range(len(kept) - 2, -1, -1):
        kept[at] = max(kept[at], kept[at + 1])
    return kept


def _mean_left(now: Situation, slack: float) -> tuple[float, float, float]:
    """`_work_left` in the mean over the error of the work, log-normal with mean 1; the slowest never begin on spot."""
    slack_loss = now.steady - now.later
    slowest = max(1.0 + slack / slack_loss, 0.0)
    if now.sigma > 0:
        edge = log(slowest) / now.sigma + now.sigma / 2.0 if slowest > 0 else -inf
    else:
        edge = inf if slowest >= 1.0 else -inf
    some, of_work = normal(edge), normal(edge - now.sigma)
    points = unit_quadrature(_MEAN_SPEEDS)
    factors = [
        exp(now.sigma * normal_point(level * some) - now.sigma * now.sigma / 2.0) for level, _ in points
    ]
    mean = sum(weight * factor for (_, weight), factor in zip(points, factors, strict=True))
    share, change, wasted = 1.0 - of_work, 1.0 - some, 0.0
    for (_, weight), factor in zip(points, factors, strict=True):
        left = _work_left(now.course.slower(factor), now.pool, slack + slack_loss * (1.0 - factor))
        share += weight * of_work * factor / mean * left[0]
        change += weight * some * left[1]
        wasted += weight * some * left[2]
    return share, change, wasted


def _work_left(course: Course, pool: Capacity, slack: float) -> tuple[float, float, float]:
    """Share of the work that on-demand does, chance that it is needed, waits and losses on spot before."""
    points = unit_quadrature(2)
    kept = _kept(course, pool, [*(node for node, _ in points), 1.0], slack)
    change = 1.0 - kept[-1]
    done = sum(weight * value for (_, weight), value in zip(points, kept, strict=False))
    whole = Elapsed(course, pool)
    wasted = whole.excess_within(whole.floor + slack) + (max(slack, 0.0) * change if change > 0 else 0.0)
    return min(max(1.0 - done, 0.0), change), change, wasted


@record(frozen=True)
class Outcome:
    """One of equally likely outcomes, hours: elapsed from asking for capacity to the last step, and paid."""

    elapsed: float
    spot: float
    on_demand: float


def wait_level(number: int) -> float:
    """Level of the wait of outcome `number`: multiples of the golden ratio."""
    return ((number + 0.5) * (sqrt(5.0) - 1.0) / 2.0) % 1.0


def outcomes(now: Situation) -> list[Outcome]:
    """Outcomes over nine speeds and forty-one quantiles of luck."""
    out = []
    for speed in range(_SPEEDS):
        slower = exp(now.sigma * normal_point((speed + 0.5) / _SPEEDS))
        course = now.course.slower(slower)
        whole = Elapsed(course, now.pool)
        steady = now.steady * slower
        slack = now.room - now.course.restart - now.acquire - now.later - (now.steady - now.later) * slower
        shares = [number / _SHARES for number in range(1, _SHARES + 1)]
        kept = _kept(course, now.pool, shares, slack) if now.fallback else []
        for number in range(_LUCK):
            level = model_chance((number + 0.5) / _LUCK)  # equally likely by the calibrated chances
            elapsed, paid = (min(hours, _LONGEST_HOURS) for hours in whole.at(level))
            if not now.fallback or not (elapsed - whole.floor > slack or slack < 0):
                out.append(Outcome(elapsed, paid, 0.0))
                continue
            share = _done_before(level, kept, shares)
            before, excess, left = whole.floor * share, max(slack, 0.0), steady * (1.0 - share)
            late = 0.0 if now.waits is None else now.waits(wait_level(len(out))) - now.acquire
            out.append(
                Outcome(
                    before + excess + left + now.course.restart + now.acquire + late,
                    before + excess * whole.paid_share if share > 0 else 0.0,
                    left + now.course.restart,
                )
            )
    return out


def _done_before(level: float, kept: Sequence[float], shares: Sequence[float]) -> float:
    """Share of the work done when the chance of no change falls to `level`."""
    xs, ys = [*reversed(kept), 1.0], [*reversed(shares), 0.0]
    if level <= xs[0]:
        return ys[0]
    for at in range(1, len(xs)):
        if level <= xs[at]:
            gap = xs[at] - xs[at - 1]
            return ys[at] if gap <= 0 else ys[at - 1] + (ys[at] - ys[at - 1]) * (level - xs[at - 1]) / gap
    return ys[-1]


def spread(values: Sequence[float]) -> tuple[float, float]:
    """P10 and P90 of equally likely values."""
    return quantile(values, 0.1), quantile(values, 0.9)


def quantile(values: Sequence[float], level: float) -> float:
    """A quantile of equally likely values, straight between their middles."""
    ordered = sorted(values)
    place = min(max(level * len(ordered) - 0.5, 0.0), len(ordered) - 1.0)
    low = min(int(place), len(ordered) - 2)
    share = place - low
    return ordered[low] * (1.0 - share) + ordered[low + 1] * share
