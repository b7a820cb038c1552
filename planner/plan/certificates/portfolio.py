"""Checks the certificate of a portfolio: the plan in whole numbers, and the bound by prices and knapsacks.

All money is in whole micro-dollars. For any prices mu (one per job), lambda >= 0 (one per limit) and beta >= 0 (of the
budget, over `beta_scale`) every plan costs at least

    sum mu - sum lambda_g limit_g - ceil(beta budget) - sum_j max(0, best homeless gain of j) - sum_g knapsack_g

with gain_k = mu_j - objective_k - sum_g lambda_g units_kg - floor(beta cost_k) (Lagrangian relaxation of all rows but
the knapsack of each candidate's home limit; see docs/optimisation/portfolio.md). Candidates left out of the bound are
each shown to be in no plan, or replaceable by another one without loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from math import gcd
from typing import Any

from planner.plan.certificates.milp import gap_faults

MOST_STEPS = 50_000_000  # of all knapsacks together: more is no certificate that can be checked in its time


class Question:
    """The portfolio as read from a certificate; `draws[k]` are candidate k's (limit, units)."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        """Read `content`.

        Raises:
            ValueError: the arrays do not fit together, or a number is none.
        """
        self.counts = _whole(content["candidates_per_job"])
        self.cost = _whole(content["cost"])
        same = content["objective"] is None
        self.objective = self.cost if same else _whole(content["objective"])
        self.limit = _whole(content["limit"])
        budget = content["budget"]
        self.budget = None if budget is None else _whole([budget])[0]
        edges = [0, *accumulate(self.counts)]
        self.n = edges[-1]
        self.edges = edges
        if len(self.cost) != self.n or len(self.objective) != self.n:
            raise ValueError("costs do not match the candidates")
        self.job = [job for job, count in enumerate(self.counts) for _ in range(count)]
        limits, units = _whole(content["draw_limit"]), _whole(content["draw_units"])
        per = content["draws_per_candidate"]
        starts = [0, *accumulate([1] * self.n if per is None else _whole(per))]
        if len(starts) != self.n + 1 or starts[-1] != len(limits) or len(limits) != len(units):
            raise ValueError("draws do not match the candidates")
        if limits and max(limits) >= len(self.limit):
            raise ValueError("a draw on a limit that is not there")
        self.draws: list[tuple[tuple[int, int], ...]]
        if per is None:
            self.draws = [((limit, amount),) for limit, amount in zip(limits, units, strict=True)]
        else:
            pairs = list(zip(limits, units, strict=True))
            self.draws = [tuple(pairs[a:b]) for a, b in pairwise(starts)]


def check(certificate: Mapping[str, Any]) -> list[str]:
    """Return every fault of a `portfolio` certificate."""
    question = Question(certificate["question"])
    faults: list[str] = []
    if certificate["picks"] is not None:
        faults += _plan_faults(question, _whole(certificate["picks"]), certificate["objective"])
    elif certificate["objective"] is not None:
        faults.append("an objective is stated without a plan")
    if certificate["bound"] is not None:
        faults += _bound_faults(question, certificate)
    return faults + gap_faults(certificate)


def _whole(values: Sequence[Any]) -> list[int]:
    """`values` as they are, if they are whole numbers of at least 0."""
    out = list(values)
    if any(type(value) is not int for value in out) or (out and min(out) < 0):
        raise ValueError("a number is not a whole number of at least 0")
    return out


def _plan_faults(question: Question, picks: list[int], objective: Any) -> list[str]:
    if len(picks) != len(question.counts):
        return [f"the plan has {len(picks)} choices for {len(question.counts)} jobs"]
    faults = []
    used = [0] * len(question.limit)
    for job, pick in enumerate(picks):
        if not question.edges[job] <= pick < question.edges[job + 1]:
            return [f"the choice of job {job} is not one of its candidates"]
        for limit, units in question.draws[pick]:
            used[limit] += units
    for limit, (drawn, available) in enumerate(zip(used, question.limit, strict=True)):
        if drawn > available:
            faults.append(f"limit {limit}: {drawn} drawn of {available}")
    paid = sum(question.cost[pick] for pick in picks)
    if question.budget is not None and paid > question.budget:
        faults.append(f"the plan costs {paid} micro-dollars, the budget is {question.budget}")
    total = sum(question.objective[pick] for pick in picks)
    if total != objective:
        faults.append(f"the plan counts {total} micro-dollars, the certificate says {objective}")
    return faults


def _bound_faults(question: Question, certificate: Mapping[str, Any]) -> list[str]:
    candidates, faults = _kept(question, certificate["dominated"], certificate["dominators"])
    if faults:
        return faults
    prices = certificate["prices"]
    mu, lam = list(prices["mu"]), _whole(prices["lambda"])
    beta, scale = _whole([prices["beta"], prices["beta_scale"]])
    if any(type(value) is not int for value in mu) or not scale:
        return ["a price is not a whole number"]
    homes = list(certificate["homes"])
    if len(mu) != len(question.counts) or len(lam) != len(question.limit) or len(homes) != len(candidates):
        return ["prices or homes do not match the question"]
    bound = sum(mu) - sum(price * available for price, available in zip(lam, question.limit, strict=True))
    if beta:
        if question.budget is None:
            return ["the budget has a price, but there is none"]
        bound -= -(-beta * question.budget // scale)
    best = [0] * len(mu)
    members: dict[int, list[tuple[int, int, int]]] = {}
    priced = any(lam)
    for candidate, home in zip(candidates, homes, strict=True):
        job = question.job[candidate]
        gain = mu[job] - question.objective[candidate]
        if gain <= 0:
            continue
        if priced:
            gain -= sum(lam[limit] * units for limit, units in question.draws[candidate])
        if beta:
            gain -= beta * question.cost[candidate] // scale
        if gain <= 0:
            continue
        if home == -1:
            best[job] = max(best[job], gain)
            continue
        units = sum(units for limit, units in question.draws[candidate] if limit == home)
        if not units:
            return [f"candidate {candidate} is at home in a limit it does not draw on"]
        members.setdefault(home, []).append((job, units, gain))
    bound -= sum(best)
    steps = 0
    for limit, items in members.items():
        value, work = _knapsack(items, question.limit[limit], MOST_STEPS - steps)
        steps += work
        bound -= value
    if bound < certificate["bound"]:
        return [f"the prices prove {bound} micro-dollars, the certificate says {certificate['bound']}"]
    return []


def _kept(
    question: Question, dominated: Sequence[int], dominators: Sequence[int]
) -> tuple[list[int], list[str]]:
    """Candidates that the bound must count; every other is too large, too dear, or replaceable."""
    fits = [
        all(units <= question.limit[limit] for limit, units in draws) if draws else True
        for draws in question.draws
    ]
    if question.budget is not None:
        _drop_too_dear(question, fits)
    live = _live(question, fits)
    gone = set()
    if len(dominated) != len(dominators):
        return [], ["dominated candidates and their dominators do not match"]
    for loser, winner in zip(_whole(dominated), _whole(dominators), strict=True):
        if not (fits[loser] and fits[winner] and question.job[loser] == question.job[winner]):
            return [], [f"candidate {winner} cannot replace {loser}: not in any plan, or of another job"]
        if not _no_worse(question, winner, loser, live):
            return [], [f"candidate {winner} does not dominate {loser}"]
        gone.add(loser)
    return [at for at in range(question.n) if fits[at] and at not in gone], []


def _drop_too_dear(question: Question, fits: list[bool]) -> None:
    assert question.budget is not None
    least: list[int | None] = []
    for first, last in pairwise(question.edges):
        least.append(min((question.cost[at] for at in range(first, last) if fits[at]), default=None))
    room = question.budget - sum(cost for cost in least if cost is not None)
    for at in range(question.n):
        cheapest = least[question.job[at]]
        if fits[at] and cheapest is not None and question.cost[at] - cheapest > room:
            fits[at] = False


def _live(question: Question, fits: list[bool]) -> list[bool]:
    """Limits that some choice of fitting candidates exceeds."""
    most = [0] * len(question.limit)
    for first, last in pairwise(question.edges):
        largest: dict[int, int] = {}
        for at in range(first, last):
            if fits[at]:
                for limit, units in question.draws[at]:
                    if units > largest.get(limit, 0):
                        largest[limit] = units
        for limit, units in largest.items():
            most[limit] += units
    return [total > available for total, available in zip(most, question.limit, strict=True)]


def _no_worse(question: Question, winner: int, loser: int, live: list[bool]) -> bool:
    """No worse in anything, and before it in an order without circles."""
    if question.objective[winner] > question.objective[loser] or question.cost[winner] > question.cost[loser]:
        return False
    draws = {limit: units for limit, units in question.draws[loser] if live[limit]}
    drawn = 0
    for limit, units in question.draws[winner]:
        if live[limit]:
            if units > draws.get(limit, 0):
                return False
            drawn += units
    first = (question.objective[winner], question.cost[winner], drawn, winner)
    return first < (question.objective[loser], question.cost[loser], sum(draws.values()), loser)


def _knapsack(items: list[tuple[int, int, int]], limit: int, most_steps: int) -> tuple[int, int]:
    """Largest gain of at most one item per job within `limit`, and the steps it took."""
    by_job: dict[int, list[tuple[int, int]]] = {}
    for job, units, gain in items:
        by_job.setdefault(job, []).append((units, gain))
    if sum(max(units for units, _ in choices) for choices in by_job.values()) <= limit:
        return sum(max(gain for _, gain in choices) for choices in by_job.values()), 0
    unit = gcd(*(units for _, units, _ in items))
    size, steps = limit // unit + 1, 0
    table = [0]  # largest gain by units used; beyond its end it stays the same
    for choices in sorted(by_job.values(), key=lambda choices: max(choices)[0]):
        choices.sort(key=lambda item: (item[0], -item[1]))
        longer = min(size, len(table) + choices[-1][0] // unit)
        former = table = table + [table[-1]] * (longer - len(table))
        most = 0
        for units, gain in choices:
            if gain <= most:
                continue  # a lighter one gains as much
            most = gain
            steps += longer
            if steps > most_steps:
                raise ValueError("its knapsacks are too large to be checked")
            at = units // unit
            tail = [
                old if old > value + gain else value + gain
                for value, old in zip(former, table[at:], strict=False)
            ]
            table = table[:at] + tail
    return table[-1], steps


def set_of(certificate: Mapping[str, Any]) -> str:
    """Name the candidates that the bound is of."""
    counts = certificate["question"]["candidates_per_job"]
    return f"of the {sum(counts):,} candidates that it lists for {len(counts):,} jobs"
