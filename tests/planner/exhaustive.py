"""An exhaustive judge: every choice of a small question, worked out from the question's own figures in plain Python.

Nothing of the models, evaluations or solvers is used: only the fields of the questions, and what their documentation
says of them. Whether machines can share a load (serving) is asked of `scipy.optimize.linprog` itself.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator

from scipy.optimize import linprog

from planner.commitments.model import CommitColumn, CommitModel
from planner.pipelines.question import PipelineInput
from planner.portfolios.shared_limits import PortfolioInput
from planner.serving.question import ServingInput


def least_portfolio(question: PortfolioInput) -> int | None:
    """Least objective over one candidate per job within all limits and the budget; None: there is none."""
    draws: dict[int, list[tuple[int, int]]] = defaultdict(list)
    entries = zip(question.entry_candidate, question.entry_limit, question.entry_units, strict=True)
    for candidate, limit, units in entries:
        draws[int(candidate)].append((int(limit), int(units)))
    choices = [
        [at for at, job in enumerate(question.job.tolist()) if job == number]
        for number in range(question.n_jobs)
    ]
    best: int | None = None
    for chosen in itertools.product(*choices):
        used: dict[int, int] = defaultdict(int)
        for candidate in chosen:
            for limit, units in draws[candidate]:
                used[limit] += units
        if any(units > int(question.limit[limit]) for limit, units in used.items()):
            continue
        if question.budget is not None and sum(int(question.cost[at]) for at in chosen) > question.budget:
            continue
        objective = sum(int(question.objective[at]) for at in chosen)
        best = objective if best is None else min(best, objective)
    return best


def pipelines_of(pipe: PipelineInput) -> Iterator[tuple[float, float]]:
    """(cost, end of the last task) of every choice of one candidate per task; within one place nothing is moved."""
    reads = list(zip(pipe.source.tolist(), pipe.target.tolist(), strict=True))
    tasks = range(len(pipe.tasks))
    options = [[at for at, own in enumerate(pipe.task.tolist()) if own == task] for task in tasks]
    for chosen in itertools.product(*options):
        place = [int(pipe.place[at]) for at in chosen]
        moved = [
            (edge, int(pipe.group[place[source]]), int(pipe.group[place[target]]))
            if place[source] != place[target]
            else None
            for edge, (source, target) in enumerate(reads)
        ]
        waits = [0.0 if pair is None else float(pipe.move_hours[pair]) for pair in moved]
        ends = [float(pipe.hours[at]) for at in chosen]
        for _ in tasks:  # as often as the longest path has tasks
            for task in tasks:
                after = [
                    ends[source] + wait
                    for (source, target), wait in zip(reads, waits, strict=True)
                    if target == task
                ]
                ends[task] = max(after, default=0.0) + float(pipe.hours[chosen[task]])
        usd = sum(float(pipe.move_usd[pair]) for pair in moved if pair is not None)
        yield usd + sum(float(pipe.cost_usd[at]) for at in chosen), max(ends)


def least_pipeline(pipe: PipelineInput) -> float:
    """Least cost of a choice whose last task ends by the deadline; infinite: there is none."""
    return min((cost for cost, end in pipelines_of(pipe) if end <= pipe.deadline_hours), default=math.inf)


def least_serving(question: ServingInput) -> float:
    """Least USD per hour over all counts of machines that can carry the load with its headroom; infinite: none can."""
    kinds, buckets = range(len(question.keys)), range(len(question.buckets))
    share = [
        [
            question.speed[kind][bucket] * (1.0 - question.headroom) / question.rate[bucket]
            for bucket in buckets
        ]
        for kind in kinds
    ]  # of a bucket that one machine of a kind serves

    def carries(counts: tuple[int, ...]) -> bool:
        pairs = [(kind, bucket) for kind in kinds for bucket in buckets if share[kind][bucket] > 0]
        # each bucket by all machines alone; all buckets, each machine where it serves the most of one
        alone = (sum(counts[kind] * share[kind][bucket] for kind in kinds) for bucket in buckets)
        most = sum(counts[kind] * max(share[kind]) for kind in kinds)
        if min(alone) < 1.0 - 1e-9 or most < len(buckets) - 1e-9:
            return False
        # time of machines given to (kind, bucket): no more than there are, enough of each bucket
        within = [[1.0 if kind == own else 0.0 for own, _ in pairs] for kind in kinds]
        enough = [
            [-share[kind][bucket] if bucket == one else 0.0 for kind, bucket in pairs] for one in buckets
        ]
        limits = [*map(float, counts), *(-1.0 for _ in buckets)]
        return bool(linprog([0.0] * len(pairs), within + enough, limits).status == 0)

    fleets = itertools.product(*(range(int(limit) + 1) for limit in question.limit))
    priced = (
        (sum(count * float(usd) for count, usd in zip(counts, question.usd_per_hour, strict=True)), counts)
        for counts in fleets
        if sum(counts) <= question.max_nodes
    )
    return next((usd for usd, counts in sorted(priced) if carries(counts)), math.inf)


def least_commitment(model: CommitModel) -> float:
    """Least expected cost and tail of every number of whole reservations; of questions without savings plans."""
    assert not len(model.plan_rate_usd) and all(column.whole for column in model.columns)
    scenarios, pools = range(len(model.probability)), range(len(model.on_demand_usd))
    columns_of = [[at for at, column in enumerate(model.columns) if column.pool == pool] for pool in pools]
    used: dict[
        tuple[int, tuple[int, ...]], list[float]
    ] = {}  # by pool and its reservations: no pool helps another

    def use_usd(pool: int, bought: tuple[int, ...]) -> list[float]:
        units = tuple(bought[at] for at in columns_of[pool])
        if (pool, units) not in used:
            pairs = [(model.columns[at], bought[at]) for at in columns_of[pool]]
            used[pool, units] = [_use_usd(model, pool, pairs, scenario) for scenario in scenarios]
        return used[pool, units]

    best = math.inf
    for bought in itertools.product(*(range(int(column.upper) + 1) for column in model.columns)):
        pairs = list(zip(model.columns, bought, strict=True))
        if sum(column.upfront_usd * units for column, units in pairs) > model.upfront_limit_usd:
            continue
        fixed = sum(column.cost_usd * units for column, units in pairs)
        if fixed >= best:
            continue
        costs = [sum(each) for each in zip(*(use_usd(pool, bought) for pool in pools), strict=True)]
        mean = sum(float(p) * usd for p, usd in zip(model.probability, costs, strict=True))
        tail = _tail_mean(costs, model.probability.tolist(), 1.0 - model.risk_level)
        best = min(best, fixed + (1.0 - model.risk_weight) * mean + model.risk_weight * tail)
    return best


def _use_usd(model: CommitModel, pool: int, pairs: list[tuple[CommitColumn, int]], scenario: int) -> float:
    """What spot and on-demand of a pool cost in a scenario beside what is reserved there."""
    usd, on_demand = 0.0, float(model.on_demand_usd[pool])
    for block in (block for block in model.hours if block.scenario == scenario):
        reserved = sum(
            units for column, units in pairs if not column.periods or block.period in column.periods
        )
        for row, weight in enumerate(block.weight.tolist()):
            short = max(float(block.demand[row, pool]) - reserved, 0.0)
            if block.spot_cap is not None and block.spot_usd is not None:
                price = float(block.spot_usd[row if len(block.spot_usd) > 1 else 0, pool])
                spot = min(short, float(block.spot_cap[row, pool])) if price < on_demand else 0.0
                usd, short = usd + weight * spot * price, short - spot
            usd += weight * short * on_demand
    return usd


def _tail_mean(costs: list[float], chances: list[float], share: float) -> float:
    """Mean of the worst `share` of outcomes (conditional value at risk)."""
    left, total = share, 0.0
    for usd, chance in sorted(zip(costs, chances, strict=True), reverse=True):
        taken = min(chance, left)
        total, left = total + taken * usd, left - taken
    return total / share
