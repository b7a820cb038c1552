"""Workers of a fleet: what each delivers and is paid for, per hour of work and in all."""

from __future__ import annotations

from math import exp, inf
from statistics import NormalDist

from planner.judge.bench import Bench, Buy, Candidate
from planner.records import record


@record(frozen=True)
class Worker:
    """One line: `count` workers of `each` instances that work `hours` each, and the run of one of them."""

    buy: Buy
    count: int
    run: Candidate
    hours: float
    units_per_hour: float
    caution: float
    paid_ratio: float

    @property
    def lead(self) -> float:
        """Hours before its work begins."""
        return self.run.waiting + self.run.steps.fixed

    @property
    def course(self) -> float:
        """Expected hours of one run."""
        return self.run.hours - self.lead

    @property
    def paid(self) -> float:
        """Hours paid per worker."""
        return self.run.steps.fixed + self.hours * self.paid_ratio

    @property
    def units(self) -> float:
        """Work of all of them at the cautious end."""
        return self.count * self.units_per_hour * self.hours


def worker_of(bench: Bench, buy: Buy, count: int) -> Worker:
    """A line's workers, their hours of work not known yet."""
    run = bench.candidate([buy], in_turn=False)
    lead = run.waiting + run.steps.fixed
    z = NormalDist().inv_cdf(bench.workload.constraints.deadline_confidence)
    caution = exp(max(z, 0.0) * run.steps.sigma)
    course = run.hours - lead
    units = bench.work.steps * bench.work.units_per_step / (course * caution)
    ratio = (run.parts[0].paid_hours - run.steps.fixed) / course
    return Worker(buy, count, run, 0.0, units, caution, ratio)


def with_hours(worker: Worker, hours: float) -> Worker:
    """The same workers, each of `hours` of work, at the prices in the middle of their run."""
    buy = Buy(worker.buy.offer.during(worker.lead + hours), worker.buy.nodes)
    return Worker(
        buy, worker.count, worker.run, hours, worker.units_per_hour, worker.caution, worker.paid_ratio
    )


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
