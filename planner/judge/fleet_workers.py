"""Workers of a fleet: what each delivers and is paid for, per hour of work and in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, exp, floor, inf, log
from statistics import NormalDist

from planner.judge.bench import Bench, Candidate
from planner.judge.capacity_waits import unit_quadrature
from planner.judge.chance import normal
from planner.judge.ends import hours_after
from planner.judge.money import rounded
from planner.judge.purchases import Buy
from planner.records import record

POINTS = 12  # of the luck with a wait, between two chances to come at all
_SLACK, _SPAN = 1e-5, 3.0  # of the chance, more than what is asked; logarithms of hours that are searched

_BLOCK_HAIR = 1e-9  # of its hours
RUN_HAIR = 1e-5  # what dividing runs among lines may be off by


@record(frozen=True)
class Worker:
    """One line: `count` workers of `each` instances that work `hours` each, and the run of one of them.

    Hours and units per hour are those of the predicted speed; a slow run takes `caution` times the hours. Where runs
    are stated, nobody divides one of `run_units`: `hours` are those in the mean, and some workers do one run more.
    """

    buy: Buy
    count: int
    run: Candidate
    hours: float
    units_per_hour: float
    caution: float
    paid_ratio: float
    run_units: float = 0.0
    until: float = inf  # hours from the start until what the user owns ends

    @property
    def runs(self) -> float:
        """Runs that all of them do, if they are stated; else 0."""
        return self.units / self.run_units if self.run_units else 0.0

    @property
    def shifts(self) -> tuple[tuple[int, float], ...]:
        """Workers, and the hours that each of these works: those with the fewest runs, and those with one more."""
        if not self.run_units:
            return ((self.count, self.hours),)
        few, more = divmod(round(self.runs), self.count)
        each = self.run_units / self.units_per_hour
        return tuple(pair for pair in ((self.count - more, few * each), (more, (few + 1) * each)) if pair[0])

    @property
    def longest(self) -> float:
        """Hours of work of the worker that works longest."""
        return max(hours for _, hours in self.shifts)

    @property
    def end(self) -> float:
        """Hours from the start until the last of them ends."""
        return self.lead + self.longest

    @property
    def lead(self) -> float:
        """Hours before its work begins."""
        return self.run.waiting + self.run.steps.fixed

    @property
    def course(self) -> float:
        """Expected hours of one run of a worker that goes on from run to run."""
        return _course(self.run)

    @property
    def paid(self) -> float:
        """Hours paid per worker, in the mean."""
        return self.paid_of(self.hours)

    def paid_of(self, hours: float) -> float:
        """Hours paid of one that works `hours`."""
        return self.run.steps.fixed + hours * self.paid_ratio

    def bought_of(self, hours: float) -> float:
        """Hours that a block or a term must hold for one that works `hours`: those of a slow run."""
        return self.paid_of(hours * self.caution)

    @property
    def slow_end(self) -> float:
        """Hours from the start to the end of slow runs."""
        return self.lead + self.longest * self.caution

    @property
    def after(self) -> Fraction:
        """Instance-hours of all of them after the end of what the user owns, the mean over runs."""
        if self.until == inf:
            return Fraction(0)
        steps, left = self.run.steps, self.until - self.run.waiting
        each = [(count, hours_after(left, steps.fixed, hours, steps.sigma)) for count, hours in self.shifts]
        return rounded(self.buy.nodes * sum((count * hours for count, hours in each), Fraction(0)))

    @property
    def units(self) -> float:
        """Work of all of them."""
        return self.count * self.units_per_hour * self.hours


def worker_of(bench: Bench, buy: Buy, count: int) -> Worker:
    """A line's workers, their hours of work not known yet."""
    run = bench.candidate([buy], in_turn=False)
    z = NormalDist().inv_cdf(bench.workload.constraints.deadline_confidence)
    caution = exp(max(z, 0.0) * run.steps.sigma)
    course = _course(run)
    units = bench.work.steps * bench.work.units_per_step / course
    ratio = (run.parts[0].paid_hours - run.steps.fixed) / course
    fleet = bench.workload.fleet
    of_run = bench.work.steps * bench.work.units_per_step if fleet is not None and fleet.runs > 1 else 0.0
    return Worker(buy, count, run, 0.0, units, caution, ratio, of_run)


def _course(run: Candidate) -> float:
    """Hours of a run, without those before it: the wait for spot at launch is the worker's and not each run's."""
    before = 0.0
    if run.situation is not None:
        pool = run.situation.pool
        for sign in (-1.0, 1.0):  # of the frailty, as in `means`
            load = pool.wait * pool.rate * exp(pool.frailty_sd * sign - pool.frailty_sd**2 / 2.0)
            before += 0.5 * pool.first_wait * load / (1.0 + load)
    return run.hours - run.waiting - run.steps.fixed - before


def with_hours(worker: Worker, hours: float) -> Worker:
    """The same workers, each of `hours` of work, at the prices in the middle of their run."""
    buy = Buy(worker.buy.offer.during(worker.lead + hours), worker.buy.nodes)
    return replace(worker, buy=buy, hours=hours)


def slowed(worker: Worker, z: float) -> Worker:
    """The same work at a speed known to err by `z` standard deviations; what was bought stays bought."""
    times = exp(z * worker.run.steps.sigma)
    other = replace(
        worker, units_per_hour=worker.units_per_hour / times, caution=max(worker.caution / times, 1.0),
        run=replace(worker.run, steps=replace(worker.run.steps, sigma=0.0)),
    )  # fmt: skip
    return with_hours(other, worker.hours * times)


def fewest(worker: Worker, work: float, hours: float) -> int:
    """Workers that do all work in `hours` each, of stated runs whole ones."""
    if not worker.run_units:
        return ceil(work / (worker.units_per_hour * hours))
    each = floor(hours * worker.units_per_hour / worker.run_units + RUN_HAIR)
    return ceil(round(work / worker.run_units) / each) if each else 0


def billed_hours(bench: Bench, worker: Worker) -> Fraction:
    """Billed hours of one worker, in the mean."""
    offer, hours = worker.buy.offer, Fraction(0)
    # hours come from a throughput: those of a whole block or term are not a hair more than it
    whole = bool(offer.rule.block_hours) or offer.rule.whole_term
    for number, each in worker.shifts:
        paid = worker.bought_of(each) * (1.0 - _BLOCK_HAIR) if whole else worker.paid_of(each)
        hours += number * (bench.prices.billed_hours(offer, paid, expected=False) or Fraction(0))
    return hours / worker.count


def runs_of(worker: Worker) -> float:
    """Runs that the workers of a line do."""
    return worker.count * worker.hours / worker.course


def limit_hours(bench: Bench, work: float) -> float:
    """Hours there are: to the deadline, and no more than the least throughput would take."""
    floor = bench.workload.constraints.min_throughput
    hours = [bench.deadline_hours]
    if floor is not None:
        length = bench.work.units_per_step / bench.work.training.global_batch
        per_s = floor.samples_per_s * length if floor.samples_per_s is not None else floor.tokens_per_s or 0.0
        if floor.samples_per_s is None and bench.work.unit != "tokens":
            per_s /= length
        hours.append(work / per_s / 3600.0)
    least = min(hours)
    return bench.work.figures["fleet_horizon_hours"] if least == inf else least


def begins(workers: Sequence[Worker]) -> tuple[tuple[float, tuple[float, ...]], ...]:
    """Weights of the luck of all that is waited for, with the hours before the work of each line; infinite: never.

    At a level of luck a line waits that quantile of its wait, and never comes above the chance that it comes at all.
    """
    laws = [worker.run.waits for worker in workers]
    had = [1.0 if law is None else law.had for law in laws]
    if min(had) >= 1.0 and all(law is None or law.are_certain for law in laws):
        return ((1.0, tuple(worker.lead for worker in workers)),)
    out, low = [], 0.0
    for high in sorted({*had, 1.0}):
        moved = any(
            law is not None and not law.are_certain and h >= high for law, h in zip(laws, had, strict=True)
        )
        for node, weight in unit_quadrature(POINTS) if moved else ((0.5, 1.0),):
            luck = low + (high - low) * node
            leads = (_begin(w, luck / h) if h >= high else inf for w, h in zip(workers, had, strict=True))
            out.append((weight * (high - low), tuple(leads)))
        low = high
    return tuple(out)


def _begin(worker: Worker, level: float) -> float:
    """Hours before the work of a line at a level of its wait."""
    law = worker.run.waits
    return worker.lead if law is None else worker.lead - law.mean + law.at(level)


def sure_hours(bench: Bench, worker: Worker, most: float) -> float:
    """Hours of work, `most` at the longest, with which a line is in time by itself with the confidence asked."""
    law = worker.run.waits
    if bench.deadline is None or law is None or (law.are_certain and law.had >= 1.0):
        return most
    confidence, sigma = bench.workload.constraints.deadline_confidence, worker.run.steps.sigma
    confidence = min(confidence + _SLACK, (1.0 + confidence) / 2.0)
    points = [(_begin(worker, node), weight) for node, weight in unit_quadrature(POINTS)]

    def is_sure(hours: float) -> bool:
        scores = [
            (log(max(bench.deadline_hours - begin, 1e-300) / hours), weight) for begin, weight in points
        ]
        in_time = [w * (normal(score / sigma) if sigma >= 1e-9 else float(score >= 0)) for score, w in scores]
        return law.had * sum(in_time) >= confidence

    low, high = most * exp(-_SPAN), most
    if is_sure(high) or not is_sure(low):
        return high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if is_sure(middle) else (low, middle)
    return low
