"""The chance that a fleet with spot is done by its deadline, and what spot workers keep in reserve for it.

At a speed slower by e^(-sigma z) the work that the fleet does until t is the sum of what each worker does:

    P(done by t) = integral of phi(z) P(S(z, t) >= W) dz

with S what is done at that speed, W the work asked. Workers come and go independently, but those of one offer share the
level of its hazards (`planner.fleet.luck`), and all share the error of the predicted speed. Where runs are stated,
nobody divides one: what counts is the whole part of what each worker does, and half a run is added to S as sums of
whole numbers are. Machines that are not spot may come sooner or later, or never: that is averaged over their luck
(`planner.fleet.waits`). Runs are independent, so a worker that is done with its share takes runs of those that are
late: until the deadline, or the end of its block.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.candidates.starts import waits_of
from planner.fleet.luck import at_least, luck_of_lines, whole_part
from planner.fleet.question import WORK_TOLERANCE
from planner.fleet.waits import levels_of
from planner.normal.arrays import normal_quantile_by_table
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.fleet.luck import Luck
    from planner.fleet.mix import Mix
    from planner.fleet.waits import Levels
    from planner.fleet.workers import Workers


SPEEDS = 400  # quantiles of the speed that the chance is averaged over
MOST_HOURS = 1e6  # nothing takes longer
_ROUNDS = 60  # of bisection: more than the digits of a number
_HOURS_ERROR, _CHANCE_ERROR = 1e-12, 1e-13  # relative, of the hours sought; of the chance that they have
_COARSE = 6  # rounds after which the steps of whole runs are few
_BESIDE = 4e-13  # relative, before and behind a step: both lie within the error of the hours


@record(frozen=True, eq=False)
class Progress:
    """The work that a mix does until a given hour, arrays of shape `(n_lines,)`.

    Attributes:
        lead: hours before the work begins; most: hours of work that can be paid, infinite where it is sold by the hour.
        rate: units per hour of all workers of a line while they are up, at the middle of the prediction.
        sigma: log sd of the speed.
        levels: of luck with the wait, weight and hours before the work begins; empty: `lead` is certain.
        count: workers; run_units: of a run that nobody divides, 0 where work divides freely.
        luck: how spot comes and goes; None: nothing is taken back.
    """

    lead: Floats
    most: Floats
    rate: Floats
    sigma: Floats
    levels: Levels = ()
    count: Floats | None = None
    run_units: float = 0.0
    luck: Luck | None = None

    def coming(self) -> Progress:
        """The same given that all workers come."""
        there = [(weight, lead) for weight, lead in self.levels if np.isfinite(lead).all()]
        whole = sum(weight for weight, _ in there)
        return (
            replace(self, levels=tuple((weight / whole, lead) for weight, lead in there)) if there else self
        )

    def chance(self, at_hours: float, work: float) -> float:
        """P(`work` units are done `at_hours` after the start)."""
        levels = self.levels or ((1.0, self.lead),)
        hours = np.minimum(np.maximum(at_hours - np.stack([lead for _, lead in levels]), 0.0), self.most)
        lucky = np.zeros(len(self.rate), dtype=np.bool_) if self.luck is None else self.luck.is_lucky
        of_spot: dict[bytes, tuple[Floats, Floats, Floats]] = {}
        weights, on_spot = np.asarray([weight for weight, _ in levels]), (lucky & (hours > 0)).any(axis=1)
        slowest = self._slowest(self.rate * hours[~on_spot], work)
        parts = [
            weight * 0.5 * math.erfc(-z / math.sqrt(2.0))
            for weight, z in zip(weights[~on_spot].tolist(), slowest.tolist(), strict=True)
        ]
        for weight, own in zip(weights[on_spot].tolist(), hours[on_spot], strict=True):
            key = own[lucky].tobytes()  # spot does not wait beforehand: its work is the same at most levels
            if key not in of_spot:
                of_spot[key] = self._on_spot(own, np.flatnonzero(lucky))
            parts.append(weight * self._beside(own, np.flatnonzero(~lucky), of_spot[key], work))
        return math.fsum(parts)

    def reaches(self, level: float, at_hours: float, work: float) -> bool:
        """Whether `chance` is at least `level`."""
        return self.chance(at_hours, work) >= level

    def _on_spot(self, hours: Floats, lines: Ints) -> tuple[Floats, Floats, Floats]:
        """Mean, variance and most of what spot does in `hours`, in units or whole runs, at each speed."""
        assert self.luck is not None
        luck, hours = self.luck.take(lines), hours[lines]
        own, level = luck.own_variance(hours), luck.level_variance
        most = self.rate[lines] * hours * self._slower(lines)
        if not self.run_units:
            count = 1.0 if self.count is None else self.count[lines]
            variance = most**2 * (own / count + level)
            return (most * luck.mean).sum(axis=1), variance.sum(axis=1), most.sum(axis=1)
        assert self.count is not None
        count = self.count[lines]
        one = most / count / self.run_units
        mean, variance = whole_part(one, one * luck.mean, one**2 * (own + level))
        shared = level / np.maximum(own + level, 1e-300)
        variance = variance * (count * (1.0 - shared) + count**2 * shared)
        whole = count * np.floor(one + WORK_TOLERANCE)
        return (count * mean).sum(axis=1), variance.sum(axis=1), whole.sum(axis=1)

    def _beside(self, hours: Floats, lines: Ints, spot: tuple[Floats, Floats, Floats], work: float) -> float:
        """The chance that spot does what the others leave of the work."""
        done = self.rate[lines] * hours[lines] * self._slower(lines)
        if not self.run_units:
            need = work * (1.0 - WORK_TOLERANCE) - done.sum(axis=1)
            return float(at_least(need, *spot).mean())
        assert self.count is not None
        one = self.count[lines] * self.run_units
        runs = (self.count[lines] * np.floor(done / one + WORK_TOLERANCE)).sum(axis=1)
        left = round(work / self.run_units) - runs
        return float(np.where(left <= 0, 1.0, at_least(left - 0.5, *spot)).mean())

    def _slower(self, lines: Ints) -> Floats:
        """Speeds that are as likely as each other, over the predicted one, shape `(SPEEDS, len(lines))`."""
        return np.exp(-self.sigma[lines] * _speeds()[:, None])

    def _slowest(self, done: Floats, work: float) -> Floats:
        """Standard normal z of the slowest speed at which `done` without interruptions is `work`.

        Args:
            done: units that each line does at the predicted speed, shape `(n, n_lines)`.
            work: units asked.
        """
        low, high = np.full(len(done), -9.0), np.full(len(done), 9.0)
        if not len(done):
            return low
        for _ in range(_ROUNDS):
            middle = (low + high) / 2.0
            enough = self._is_done(done * np.exp(-self.sigma * middle[:, None]), work)
            low, high = np.where(enough, middle, low), np.where(enough, high, middle)
        return low

    def _is_done(self, done: Floats, work: float) -> Bools:
        """Whether `done`, by all workers of each line, is `work`; of stated runs a worker's whole ones count.

        Args:
            done: units, shape `(..., n_lines)`.
            work: units asked.
        """
        if self.run_units:
            assert self.count is not None
            one = self.count * self.run_units
            done = one * np.floor(done / one + WORK_TOLERANCE)
        return np.asarray(done.sum(axis=-1) >= work * (1.0 - WORK_TOLERANCE), dtype=np.bool_)

    def hours_for(self, level: float, work: float, most_hours: float = MOST_HOURS) -> float:
        """Hours after the start at which `work` is done with probability `level`; infinite where it never is."""
        most = self.chance(most_hours, work)
        if most < level:
            return math.inf
        if len(self.levels) <= 1 and self.luck is None:
            return self._at_one_speed(NormalDist().inv_cdf(level), work, most_hours)
        low, high = (0.0, self.chance(0.0, work)), (most_hours, most)
        middle = min(float(np.max(self.lead)) + work / float(self.rate.sum()), most_hours)
        while middle < most_hours:
            looked_at = (middle, self.chance(middle, work))
            if looked_at[1] >= level:
                high = looked_at
                break
            low, middle = looked_at, 2.0 * middle
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

    def _crossing(
        self, level: float, work: float, begin: tuple[float, float], end: tuple[float, float]
    ) -> float:
        """Hours between two, each with its chance, where that is `level`: secants (Illinois), each third time the half.

        Where runs are whole the chance is a staircase and what is sought is mostly one of its steps, which no secant
        finds: once the hours are near, they are looked for among the steps.
        """
        (low, below), (high, above) = ((hours, chance - level) for hours, chance in (begin, end))
        if below >= 0:
            return low
        was_enough, steps = None, np.empty(0)
        for at in range(_ROUNDS):
            if high - low <= _HOURS_ERROR * high:
                break
            part = 0.5 if at % 3 == 2 else -below / (above - below) if above > below else 0.5
            middle = low + (high - low) * part
            if at == _COARSE:
                steps = self._steps(low, high)
            if at >= _COARSE and len(steps):
                steps, middle = _at_a_step(steps, low, middle, high)
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

    def _steps(self, low: float, high: float) -> Floats:
        """Hours between `low` and `high` at which a worker, at one of the speeds, ends another whole run; in order."""
        if not self.run_units or self.count is None:
            return np.empty(0)
        lines = np.flatnonzero(self.rate > 0)
        a_run = self.count[lines] * self.run_units / (self.rate[lines] * self._slower(lines))
        found = []
        for leads in np.unique(np.stack([lead for _, lead in self.levels] or [self.lead])[:, lines], axis=0):
            comes = np.isfinite(leads)
            lead, each = leads[comes], a_run[:, comes]
            first, last = (np.floor((hours - lead) / each + WORK_TOLERANCE) for hours in (low, high))
            for number in range(1, int(np.max(last - first, initial=0.0)) + 1):
                hours = lead + (first + number - WORK_TOLERANCE) * each
                found.append(hours[(hours > low) & (hours < high)])
        return distinct_values(np.concatenate(found)) if found else np.empty(0)


def _at_a_step(steps: Floats, low: float, middle: float, high: float) -> tuple[Floats, float]:
    """The steps left between `low` and `high`, and hours to look at: beside the step that is next to `middle`."""
    steps = steps[(steps > low) & (steps < high)]
    if not len(steps):
        return steps, middle
    step = float(steps[np.argmin(np.abs(steps - middle))])
    beside = (step * (1.0 + _BESIDE), step * (1.0 - _BESIDE))
    return steps, next((hours for hours in beside if low < hours < high), middle)


@cache
def _speeds() -> Floats:
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
    spot = candidates.context.market.is_spot[workers.rows]
    return Progress(
        lead=workers.lead_hours,
        most=_most_hours(candidates, mix),
        rate=mix.count * workers.units_per_hour / np.where(spot, workers.paid_ratio, 1.0),
        sigma=candidates.sigma[workers.at],
        levels=levels_of(candidates, workers) if known is None else known.levels,
        count=mix.count.astype(np.float64),
        run_units=mix.run_units,
        luck=luck_of_lines(candidates, workers) if known is None else known.luck,
    )


def luck_of(candidates: Candidates, workers: Workers) -> tuple[Floats, Floats]:
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


def _most_hours(candidates: Candidates, mix: Mix) -> Floats:
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
