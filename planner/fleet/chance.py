"""The chance that a fleet with spot is done by its deadline, and what spot workers keep in reserve for it.

Workers come and go independently, but those of one offer share the level of its hazards, and all share the error of
the predicted speed. Over h hours a worker is up for a h hours in the mean, a = 1 / (1 + L w), with variance
h 2 L w^2 k / (1 + L w)^3 (alternating renewal process, Cox 1962; k: `dispersion`), and a frailty of log-sd s moves a by
a (1 - a) s. At a speed slower by e^(-sigma z) the work of the whole fleet is a sum of many such, taken as normal:

    P(done by t) = integral of phi(z) Phi((S(z, t) - W) / D(z, t)) dz

with S the mean work until t, D its standard deviation over interruptions, W the work asked. Where runs are stated,
nobody divides one: what counts is the whole part of what each worker does, S and D its mean and deviation, and half a
run is added to S as sums of whole numbers are. Machines that are not spot
may come sooner or later, or never: that is averaged over their luck (`planner.fleet.waits`). Runs are independent, so a
worker that is done with its share takes runs of those that are late: until the deadline, or the end of its block.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import accumulate
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.starts import waits_of
from planner.fleet.question import WORK_TOLERANCE
from planner.fleet.waits import levels_of
from planner.normal.arrays import normal_cdf_by_table, normal_quantile_by_table
from planner.records import record

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.fleet.mix import Mix
    from planner.fleet.waits import Levels
    from planner.fleet.workers import Workers

    FloatArray = npt.NDArray[np.float64]

SPEEDS = 400  # quantiles of the speed that the chance is averaged over
MOST_HOURS = 1e6  # nothing takes longer
_EACH_SIDE, _WIDE = 4, 0.7  # whole numbers looked at on each side of a mean, for a deviation of up to 0.7
_ROUNDS = 60  # of bisection: more than the digits of a number
_HOURS_ERROR, _CHANCE_ERROR = 1e-12, 1e-13  # relative, of the hours sought; of the chance that they have
_TABLE_ERROR = 1e-5  # of `normal_cdf_by_table`, three times what its table is off


@record(frozen=True, eq=False)
class Progress:
    """The work that a mix does until a given hour, arrays of shape `(n_lines,)`.

    Attributes:
        lead: hours before the work begins; most: hours of work that can be paid, infinite where it is sold by the hour.
        rate: units per hour of all workers of a line, at the middle of the prediction and at spot's mean goodput.
        count: workers; run_units: of a run that nobody divides, 0 where work divides freely.
        sigma: log sd of the speed.
        alone: sd of one line's relative work times the root of its hours; level: sd that hours do not lessen.
        levels: of luck with the wait, weight and hours before the work begins; empty: `lead` is certain.
    """

    lead: FloatArray
    most: FloatArray
    rate: FloatArray
    sigma: FloatArray
    alone: FloatArray
    level: FloatArray
    levels: Levels = ()
    count: FloatArray | None = None
    run_units: float = 0.0

    def coming(self) -> Progress:
        """The same given that all workers come."""
        there = [(weight, lead) for weight, lead in self.levels if np.isfinite(lead).all()]
        whole = sum(weight for weight, _ in there)
        return (
            replace(self, levels=tuple((weight / whole, lead) for weight, lead in there)) if there else self
        )

    def spread(self, hours: FloatArray) -> FloatArray:
        """Relative sd of each line's work over `hours`."""
        return np.sqrt(self.alone**2 / np.maximum(hours, 1e-9) + self.level**2)

    def chance(self, at_hours: float, work: float) -> float:
        """P(`work` units are done `at_hours` after the start)."""
        # exact, not from the table: hours are sought by this chance, to more digits than the table has
        return math.fsum(
            weight * math.fsum(0.5 * math.erfc(z / math.sqrt(2.0)) for z in short.tolist()) / len(short)
            for weight, short in self._each(at_hours, work)
        )

    def reaches(self, level: float, at_hours: float, work: float) -> bool:
        """Whether `chance` is at least `level`; worked out exactly only where the table cannot tell."""
        near = self._near(at_hours, work) - level
        return near > 0 if abs(near) > _TABLE_ERROR else self.chance(at_hours, work) >= level

    def _each(self, at_hours: float, work: float) -> list[tuple[float, FloatArray]]:
        """Weight of each level of luck, and the standard normal z that is needed there.

        At each of equally likely speeds, or at all of them together where nothing is interrupted.
        """
        if self.run_units:
            return self._each_of_runs(at_hours, round(work / self.run_units))
        levels = self.levels or ((1.0, self.lead),)
        begin = np.stack([lead for _, lead in levels])
        hours = np.minimum(np.maximum(at_hours - begin, 0.0), self.most)
        done, spread = self.rate * hours, self.spread(hours)
        noisy = np.flatnonzero((done * spread).any(axis=1))
        slower = np.exp(-self.sigma * _speeds()[:, None])
        each = done[noisy][:, None, :] * slower
        sd = np.sqrt(((each * spread[noisy][:, None, :]) ** 2).sum(axis=2))
        found = (work - each.sum(axis=2)) / np.maximum(sd, 1e-9 * work)
        of_noise = dict(zip(noisy.tolist(), found, strict=True))
        return [
            (weight, of_noise[at] if at in of_noise else np.asarray([-self._slowest(done[at], work)]))
            for at, (weight, _) in enumerate(levels)
        ]

    def _each_of_runs(self, at_hours: float, runs: int) -> list[tuple[float, FloatArray]]:
        """The same where whole runs count; a worker that is done with its share takes others."""
        assert self.count is not None
        levels, slower = self.levels or ((1.0, self.lead),), np.exp(-self.sigma * _speeds()[:, None])
        out = []
        for weight, lead in levels:
            hours = np.minimum(np.maximum(at_hours - lead, 0.0), self.most)
            each = self.rate / self.count / self.run_units * hours
            alone = self.alone * np.sqrt(self.count / np.maximum(hours, 1e-9))
            if not (each * np.hypot(alone, self.level)).any():
                short = np.asarray([-self._slowest(self.rate * hours, runs * self.run_units)])
            else:
                mean, variance = moments_of_whole(each * slower, each * slower * alone)
                level = (each * slower * self.count * self.level) ** 2
                sd = np.sqrt((self.count * variance + level).sum(axis=1))
                short = (runs - 0.5 - (self.count * mean).sum(axis=1)) / np.maximum(sd, 1e-6)
            out.append((weight, short))
        return out

    def _near(self, at_hours: float, work: float) -> float:
        """`chance` from the table of the normal distribution, off by `_TABLE_ERROR` at most."""
        each = self._each(at_hours, work)
        chances = np.split(normal_cdf_by_table(-np.concatenate([short for _, short in each])), _ends(each))
        return sum(weight * float(own.mean()) for (weight, _), own in zip(each, chances, strict=True))

    def _slowest(self, done: FloatArray, work: float) -> float:
        """Standard normal z of the slowest speed at which `done` without interruptions is `work`."""
        low, high = -9.0, 9.0
        for _ in range(_ROUNDS):
            middle = (low + high) / 2.0
            enough = self._is_done(done * np.exp(-self.sigma * middle), work)
            low, high = (middle, high) if enough else (low, middle)
        return low

    def _is_done(self, done: FloatArray, work: float) -> bool:
        """Whether `done`, by all workers of each line, is `work`; of stated runs a worker's whole ones count."""
        if self.run_units:
            assert self.count is not None
            one = self.count * self.run_units
            done = one * np.floor(done / one + WORK_TOLERANCE)
        return float(done.sum()) >= work * (1.0 - WORK_TOLERANCE)

    def hours_for(self, level: float, work: float, most_hours: float = MOST_HOURS) -> float:
        """Hours after the start at which `work` is done with probability `level`; infinite where it never is."""
        low, high = 0.0, most_hours
        if self.chance(high, work) < level:
            return math.inf
        if len(self.levels) <= 1 and not (self.alone.any() or self.level.any()):
            return self._at_one_speed(NormalDist().inv_cdf(level), work, high)
        for _ in range(_ROUNDS):
            middle = (low + high) / 2.0
            near = self._near(middle, work) - level
            if abs(near) <= _TABLE_ERROR:
                break
            low, high = (low, middle) if near > 0 else (middle, high)
        return self._crossing(level, work, low, high)

    def _at_one_speed(self, z: float, work: float, high: float) -> float:
        """The same where only the speed is unknown: the hours of the work at the slowest speed of that chance."""
        lead = self.levels[0][1] if self.levels else self.lead
        low, rate = 0.0, self.rate * np.exp(-self.sigma * z)
        for _ in range(_ROUNDS):
            if high - low <= _HOURS_ERROR * high:
                break
            middle = (low + high) / 2.0
            done = rate * np.minimum(np.maximum(middle - lead, 0.0), self.most)
            enough = self._is_done(done, work)
            low, high = (low, middle) if enough else (middle, high)
        return high

    def _crossing(self, level: float, work: float, low: float, high: float) -> float:
        """Hours from `low` to `high` where the chance reaches `level`: secants (Illinois), each third time the half."""
        below, above = (self.chance(hours, work) - level for hours in (low, high))
        if below >= 0:
            return low
        was_enough = None
        for at in range(_ROUNDS):
            if high - low <= _HOURS_ERROR * high:
                break
            part = 0.5 if at % 3 == 2 else -below / (above - below) if above > below else 0.5
            middle = low + (high - low) * part
            over = self.chance(middle, work) - level
            enough = over >= 0
            if enough:  # whoever is kept twice in a row counts half
                below = below / 2.0 if was_enough is True else below
                high, above = middle, over
            else:
                above = above / 2.0 if was_enough is False else above
                low, below = middle, over
            was_enough = enough
            if abs(over) <= _CHANCE_ERROR:
                return middle
        return high


def moments_of_whole(mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the whole part of normal numbers, none of which is below 0.

    From the chances to reach each whole number near the mean; where a number spreads over more it is as likely to have
    any fraction: 1/2 less, and 1/12 more.
    """
    whole = np.floor(mean + WORK_TOLERANCE)
    out = np.where(sd > 0, np.maximum(mean - 0.5, 0.0), whole)
    variance = np.where(sd > 0, sd**2 + 1.0 / 12.0, 0.0)
    near = (sd > 0) & (sd <= _WIDE)
    if near.any():
        middle, spread = mean[near], np.maximum(sd[near], 1e-9)
        base = np.maximum(whole[near] - _EACH_SIDE, 0.0)
        steps = np.arange(1, 2 * _EACH_SIDE + 2)
        reached = normal_cdf_by_table((middle - base - steps[:, None] + WORK_TOLERANCE) / spread)
        over = reached.sum(axis=0)
        out[near] = base + over
        variance[near] = np.maximum((2 * steps - 1) @ reached - over**2, 0.0)
    return out, variance


def _ends(each: list[tuple[float, FloatArray]]) -> list[int]:
    """Where the values of the levels end, one behind the other, but for the last."""
    return list(accumulate(len(short) for _, short in each[:-1]))


@cache
def _speeds() -> FloatArray:
    """Standard normal z of speeds that are as likely as each other, shape `(SPEEDS,)`."""
    return np.asarray([NormalDist().inv_cdf((at + 0.5) / SPEEDS) for at in range(SPEEDS)])


def progress_of(search: CandidateSearch, mix: Mix, known: Progress | None = None) -> Progress:
    """How the workers of a mix get on.

    Args:
        search: the candidates behind them.
        mix: the workers.
        known: of a mix of the same workers in other numbers, whose luck is the same.
    """
    workers, candidates = mix.workers, search.candidates
    alone, level = luck_of(candidates, workers)
    return Progress(
        lead=workers.lead_hours,
        most=_most_hours(candidates, mix),
        rate=mix.count * workers.units_per_hour,
        sigma=candidates.sigma[workers.at],
        alone=alone / np.sqrt(mix.count),
        level=level,
        levels=levels_of(candidates, workers) if known is None else known.levels,
        count=mix.count.astype(np.float64),
        run_units=mix.run_units,
    )


def luck_of(candidates: Candidates, workers: Workers) -> tuple[FloatArray, FloatArray]:
    """Relative sd of one worker's hours: times the root of its hours, and what hours do not lessen; 0 but for spot."""
    context = candidates.context
    alone, level = np.zeros(len(workers.rows)), np.zeros(len(workers.rows))
    at = np.flatnonzero(context.market.is_spot[workers.rows])
    if len(at):
        pool = context.gang_risk(workers.rows[at], workers.nodes[at]).pool
        load = pool.rate * pool.wait
        up = 1.0 / (1.0 + load)
        alone[at] = np.sqrt(2.0 * load * pool.wait * pool.dispersion * up)
        level[at] = (1.0 - up) * pool.frailty_sd
    return alone, level


def _most_hours(candidates: Candidates, mix: Mix) -> FloatArray:
    """Hours of work that each line's purchase holds; infinite where it is paid as it goes."""
    market, workers = candidates.context.market, mix.workers
    rules = [market.offer_set.rules[code] for code in market.offer_set.rule_of_offer[workers.rows].tolist()]
    most = np.full(len(workers.rows), np.inf)
    held = [at for at, rule in enumerate(rules) if rule.block_hours or rule.whole_term]
    if held:
        most[held] = mix.price(market).billed_hours[held]
    for at, rule in enumerate(rules):
        if at not in held and rule.max_term_hours is not None:
            most[at] = rule.max_term_hours
    return np.asarray((most - workers.fixed_hours) / workers.paid_ratio, dtype=np.float64)


def with_reserve(
    candidates: Candidates, workers: Workers, share: float, crowd: float, offers: int = 1
) -> Workers:
    """Workers whose hours leave time for bad luck: a share of what the confidence asks of a line on its own.

    Only the hours to be planned shrink: what a worker delivers and costs per hour stays.

    Args:
        candidates: the candidates behind them.
        workers: ways to be a worker.
        share: 0 plans at the mean; 1 leaves each line of `crowd` workers the time to be sure by itself.
        crowd: workers over whom chance evens out.
        offers: over which the level of hazards evens out.
    """
    if share <= 0:
        return workers
    alone, level = luck_of(candidates, workers)
    slow = np.maximum(workers.hours_limit * workers.caution, 1e-9)
    sd = np.sqrt(alone**2 / (slow * crowd) + level**2 / offers)
    confidence = candidates.context.asked.workload.constraints.deadline_confidence
    z = max(float(normal_quantile_by_table(np.asarray([confidence]))[0]), 0.0)
    waits = waits_of(candidates, workers.at)
    late = np.where(waits.has_spread, waits.at_level(confidence) - waits.at_level(0.5), 0.0)
    less = share * (z * sd + late / slow)
    kept = replace(workers, hours_limit=workers.hours_limit * np.maximum(1.0 - less, 0.0))
    return kept.take(np.flatnonzero(kept.hours_limit > 0))
