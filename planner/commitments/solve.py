"""Routes a commitment model to the closed form or to the decomposition, and makes its answer buyable."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from catalogs.tables.table import Floats
from planner.commitments.closed_form import is_separable, solve_separable
from planner.commitments.model import CommitModel, first_stage
from planner.commitments.recourse import Recourse
from planner.records import record
from solvers.problem.solution import Termination
from solvers.search.decompose import BendersResult, OutOfTimeError, Round, solve_benders

NO_USD = 1e-6  # what use costs by rounding where all of it is paid for already
CENT_TENTHS = 1000.0  # savings plans are sold in thousandths of a dollar per hour
Method = Literal["auto", "benders", "closed_form"]


@record(frozen=True, eq=False)
class Solved:
    """The best commitments known and what is proven of them.

    Attributes:
        status: `optimal` (at the gap asked for) or `feasible`.
        reason: why the search ended, such as `gap_reached`, `time_limit`, `interrupted`.
        x: units of each column, shape `(F,)`.
        recourse: what use costs in each scenario beyond them, shape `(S,)`.
        objective_usd: objective at x.
        bound_usd: no choice costs less.
        method: `benders` or `closed_form`.
        rounds: history of the decomposition.
        seconds: wall-clock seconds.
        benders: the decomposition's own result; None for the closed form.
    """

    status: str
    reason: str
    x: Floats
    recourse: Floats
    objective_usd: float
    bound_usd: float
    method: str
    rounds: tuple[Round, ...]
    seconds: float
    benders: BendersResult | None

    @property
    def gap_ratio(self) -> float:
        """(objective - bound) / objective; 0 where use costs nothing."""
        if abs(self.objective_usd) <= NO_USD:
            return 0.0
        return max(0.0, (self.objective_usd - self.bound_usd) / abs(self.objective_usd))


def solve_commit(
    model: CommitModel,
    *,
    gap: float = 1e-3,
    time_limit_s: float = math.inf,
    method: Method = "auto",
    start: Floats | None = None,
    progress: Callable[[Round], None] | None = None,
    recourse: Recourse | None = None,
) -> Solved:
    """Return the commitments of least objective.

    Args:
        model: the question.
        gap: relative gap at which the answer counts as optimal.
        time_limit_s: wall-clock limit; the best answer so far comes with its bound.
        start: a first point for the decomposition.
        method: `auto` takes the closed form where the pools separate.
        progress: called after each round.
        recourse: of the model, where it is known.
    """
    begun = time.perf_counter()
    stage, recourse = first_stage(model), recourse or Recourse(model)
    recourse = recourse.until(begun + time_limit_s, spare=1)  # what is sold has to be evaluated yet
    if not model.columns or (method != "benders" and is_separable(model)):
        x = solve_separable(model) if model.columns else np.zeros(0)
        costs = recourse.evaluate(x).value
        cost = stage.objective(x, costs)
        spent = time.perf_counter() - begun
        return Solved("optimal", "closed_form", x, costs, cost, cost, "closed_form", (), spent, None)
    benders_result = solve_benders(
        stage, recourse, gap=gap, time_limit_s=time_limit_s, start=start, progress=progress
    )
    x, costs = benders_result.x, benders_result.recourse
    if math.isfinite(benders_result.objective):
        sellable = np.where(stage.integer, x, np.floor(x * CENT_TENTHS + 1e-6) / CENT_TENTHS)
        if (sellable != x).any():
            x, costs = sellable, recourse.until(math.inf).evaluate(sellable).value
    else:  # interrupted before anything was evaluated: to buy nothing is always allowed
        x = np.zeros_like(benders_result.x)
        costs = recourse.until(math.inf).evaluate(x).value
    objective = stage.objective(x, costs)
    status = "optimal" if objective - benders_result.bound <= gap * abs(objective) + NO_USD else "feasible"
    return Solved(
        status,
        benders_result.termination.value,
        x,
        costs,
        objective,
        max(benders_result.bound, 0.0),
        "benders",
        benders_result.rounds,
        time.perf_counter() - begun,
        benders_result,
    )


def without_idle(
    model: CommitModel, solved: Solved, recourse: Recourse | None = None, deadline: float = math.inf
) -> Solved:
    """Return the solution without plans whose dollars do not lower the objective: what is left within the gap.

    Args:
        model: the question.
        solved: its solution; units of reservations stay.
        recourse: of the model, where it is known.
        deadline: of `time.perf_counter`, after which no more plans are looked at.
    """
    stage, recourse = first_stage(model), (recourse or Recourse(model)).until(deadline)
    best = solved
    for number in np.flatnonzero((solved.x > 0) & ~stage.integer):
        x = best.x.copy()
        x[number] = 0.0
        if time.perf_counter() + recourse.pace_s > deadline:
            break
        try:
            costs = recourse.evaluate(x).value
        except OutOfTimeError:
            break
        except KeyboardInterrupt:
            return replace(best, reason=Termination.INTERRUPTED.value)
        objective = stage.objective(x, costs)
        if objective <= best.objective_usd:
            best = replace(best, x=x, recourse=costs, objective_usd=objective)
    return best


def solve_bill(
    model: CommitModel,
    *,
    gap: float = 1e-3,
    time_limit_s: float = math.inf,
    progress: Callable[[Round], None] | None = None,
) -> tuple[CommitModel, Solved]:
    """Return purchases that cost no more than none in the mean of the scenarios, and the model that they solve.

    The dearest outcomes are those of high demand, in which commitments save, so a weight on them may buy what loses in
    the mean. Nobody asked for that who hands in a bill: the weight then counts for nothing.

    Args:
        model: the question.
        gap: relative gap at which an answer counts as optimal.
        time_limit_s: wall-clock limit.
        progress: called after each round.
    """
    begun, recourse = time.perf_counter(), Recourse(model)

    def best(one: CommitModel, limit_s: float) -> Solved:
        left = max(limit_s - (time.perf_counter() - begun), 0.0)
        found = solve_commit(one, gap=gap, time_limit_s=left, progress=progress, recourse=recourse)
        return without_idle(one, found, recourse, begun + time_limit_s)

    solved = best(model, time_limit_s)
    if not (model.risk_weight and solved.x.any()):
        return model, solved
    cost, chance = first_stage(model).cost, model.probability
    nothing = float(chance @ recourse.evaluate(np.zeros_like(solved.x)).value)
    if float(cost @ solved.x) + float(chance @ solved.recourse) <= nothing:
        return model, solved
    mean = replace(model, risk_weight=0.0)
    # whoever interrupts waits for no second search
    interrupted = solved.reason == Termination.INTERRUPTED.value
    again = best(mean, 0.0 if interrupted else time_limit_s)
    return mean, replace(again, reason=solved.reason) if interrupted else again
