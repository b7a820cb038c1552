"""Commitments that seldom lose: less of the best purchases, so that few scenarios cost more than buying nothing.

The mean of the worst outcomes of a cost (CVaR) does not tell a loss: the dearest outcomes are those of high demand, in
which commitments save. So the chance of a loss, P(cost > (1 + limit) x cost of buying nothing), is counted itself, at
`price` times what buying nothing costs in expectation: with price 2 a purchase that raises the chance by one point
must save 2 % of that cost. The chance is neither convex nor continuous: each purchase is tried at shares of what is
best without the rule, one at a time until none helps, from the best common share and from none. The penalty is never
negative, so the bound on the objective without the rule stays a bound.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats
from planner.commitments.answer import Loss
from planner.commitments.model import CommitModel, first_stage
from planner.commitments.recourse import Recourse
from planner.commitments.solve import CENT_TENTHS, NO_USD, Solved
from solvers.problem.solution import Termination
from solvers.search.decompose import OutOfTimeError

if TYPE_CHECKING:
    from planner.inputs.commit_schema import Risk

SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.4, 0.2, 0.0)  # of a purchase that is best without the rule
REASON = METHOD = "avoid_loss"
ROUNDS = 6  # over all purchases
_CLOSE = 1e-9  # of what buying nothing costs: no loss but rounding


def avoid_loss(
    model: CommitModel, solved: Solved, risk: Risk, *, gap: float = 1e-3, deadline: float = math.inf
) -> tuple[Solved, Termination | None]:
    """Return the purchases of least objective and priced chance of a loss, and what ended the search early.

    Args:
        model: the question.
        solved: what is best without the rule.
        risk: its `loss_price` and `loss_limit`.
        gap: to the bound at which the answer counts as optimal all the same.
        deadline: of `time.perf_counter`.
    """
    search = _Search(model, solved, risk, deadline)
    ended = search.run()
    if np.array_equal(search.x, solved.x):
        return solved, ended
    objective = first_stage(model).objective(search.x, search.recourse)
    near = objective - solved.bound_usd <= gap * abs(objective) + NO_USD
    return replace(
        solved, status="optimal" if near else "feasible", reason=REASON, method=METHOD, x=search.x,
        recourse=search.recourse, objective_usd=objective,
    ), ended  # fmt: skip


def loss_of(model: CommitModel, solved: Solved, plain: Solved, risk: Risk) -> Loss:
    """Return how often a choice loses, and the one without the rule.

    Args:
        model: the question.
        solved: the choice.
        plain: the choice without the rule; the same where there is none.
        risk: what counts as a loss, and its price.
    """
    nothing = Recourse(model).evaluate(np.zeros_like(solved.x)).value if model.columns else solved.recourse
    cost = first_stage(model).cost
    costs, plain_costs = (float(cost @ one.x) + one.recourse for one in (solved, plain))
    chance, plain_chance = (
        chance_of_loss(model, one, nothing, risk.loss_limit) for one in (costs, plain_costs)
    )
    most = float(np.max((costs - nothing) / nothing)) if (nothing > NO_USD).all() else None
    expected = float(model.probability @ plain_costs)
    return Loss(risk.loss_limit, risk.loss_price, chance, plain_chance, expected, most)


def chance_of_loss(model: CommitModel, costs: Floats, nothing: Floats, limit: float) -> float:
    """Probability of the scenarios that cost more than `1 + limit` times what buying nothing costs there."""
    lost = costs > nothing * (1.0 + limit) + _CLOSE * float(model.probability @ nothing) + NO_USD
    return float(model.probability @ lost)


class _Search:
    """The best purchases so far, `x`, with what use costs beyond them in each scenario, `recourse`.

    None that loses more often than those without the rule: these are the best to a gap only.
    """

    def __init__(self, model: CommitModel, solved: Solved, risk: Risk, deadline: float) -> None:
        full = solved.x
        self._model, self._full, self._risk = model, full, risk
        self._stage, self._oracle = first_stage(model), Recourse(model, deadline)
        self._whole = self._stage.integer
        self._nothing = self._oracle.evaluate(np.zeros_like(full)).value
        self._usd = risk.loss_price * float(model.probability @ self._nothing)
        self._known: dict[bytes, float] = {}
        self.x, self.recourse, self._best, self._most = full, solved.recourse, math.inf, 1.0
        self._best = self._weigh(full, solved.recourse)
        self._most = self._chance(full, solved.recourse)

    def run(self) -> Termination | None:
        """Search; what ended it early."""
        bought = np.flatnonzero(self._full)
        try:
            shares = min((np.full(len(bought), share) for share in SHARES), key=self._value)
            for start in (shares, np.zeros(len(bought))):
                self._descend(start.copy())
        except OutOfTimeError:
            return Termination.TIME_LIMIT
        except KeyboardInterrupt:
            return Termination.INTERRUPTED
        return None

    def _descend(self, shares: Floats) -> None:
        best, moved, rounds = self._value(shares), True, 0
        while moved and rounds < ROUNDS:
            moved, rounds = False, rounds + 1
            for number in range(len(shares)):
                for share in SHARES:
                    trial = shares.copy()
                    trial[number] = share
                    value = self._value(trial)
                    if value < best - _CLOSE * abs(best):
                        best, shares, moved = value, trial, True

    def _value(self, shares: Floats) -> float:
        """Objective and priced chance of shares of the purchases, in USD."""
        key = shares.tobytes()
        if key in self._known:
            return self._known[key]
        x = self._full.copy()
        x[np.flatnonzero(self._full)] *= shares
        unit = np.where(self._whole, 1.0, CENT_TENTHS)
        x = np.where(x == self._full, x, np.floor(x * unit + 1e-6) / unit)
        recourse = self._oracle.evaluate(x).value
        value = self._known[key] = self._weigh(x, recourse)
        if value < self._best:
            self._best, self.x, self.recourse = value, x, recourse
        return value

    def _weigh(self, x: Floats, recourse: Floats) -> float:
        chance = self._chance(x, recourse)
        if chance > self._most + _CLOSE:
            return math.inf
        return self._stage.objective(x, recourse) + self._usd * chance

    def _chance(self, x: Floats, recourse: Floats) -> float:
        costs = float(self._stage.cost @ x) + recourse
        return chance_of_loss(self._model, costs, self._nothing, self._risk.loss_limit)
