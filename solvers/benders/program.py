"""A two-stage program with a mean-risk objective, without its second stage; and CVaR of a list of outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from solvers.errors import ModelError
from solvers.problem import Bools, Floats


@dataclass(frozen=True, eq=False)
class TwoStage:
    """A two-stage program without its oracle. F columns, S scenarios, m rows.

    Attributes:
        cost: first-stage cost of one unit of each column, shape `(F,)`.
        upper: finite upper bounds, shape `(F,)`; the lower bounds are 0.
        integer: True where a column is whole, shape `(F,)`.
        probability: of each scenario, shape `(S,)`, summing to 1.
        risk_weight: w, the share of CVaR in the objective, 0..1.
        risk_level: a, CVaR is the mean of the worst `1 - a`, 0 <= a < 1.
        rows: further linear limits on x, shape `(m, F)`.
        row_hi: their upper sides, shape `(m,)`.
    """

    cost: Floats
    upper: Floats
    integer: Bools
    probability: Floats
    risk_weight: float = 0.0
    risk_level: float = 0.9
    rows: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    row_hi: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if not (np.isfinite(self.upper).all() and (self.upper >= 0).all()):
            raise ModelError("every first-stage column needs a finite upper bound of at least 0")
        if abs(float(self.probability.sum()) - 1) > 1e-9 or (self.probability < 0).any():
            raise ModelError("the scenarios' probabilities must be at least 0 and sum to 1")
        if not (0 <= self.risk_weight <= 1 and 0 <= self.risk_level < 1):
            raise ModelError("the weight of CVaR must be in 0..1, its level in 0 up to below 1")
        if len(self.row_hi) and (self.row_hi < 0).any():
            raise ModelError("x = 0 must satisfy every row")

    def objective(self, x: Floats, recourse: Floats) -> float:
        """Cost of `x` whose scenarios cost `recourse`, shape `(S,)`."""
        risk = cvar(recourse, self.probability, self.risk_level) if self.risk_weight else 0.0
        mean = float(self.probability @ recourse)
        return float(self.cost @ x) + (1 - self.risk_weight) * mean + self.risk_weight * risk


def cvar(cost: Floats, probability: Floats, level: float) -> float:
    """Mean of the worst `1 - level` of the outcomes, splitting the outcome on the edge.

    Args:
        cost: of each outcome, shape `(n,)`.
        probability: of each outcome, shape `(n,)`.
        level: 0 gives the mean, towards 1 the worst outcome.
    """
    return float(risk_weights(cost, probability, level) @ cost)


def risk_weights(cost: Floats, probability: Floats, level: float) -> Floats:
    """Return the worst weights `q <= p / (1 - level)`, summing to 1, shape `(n,)`."""
    order = np.argsort(-cost, kind="stable")
    cap = probability[order] / (1 - level)
    before = np.concatenate([[0.0], np.cumsum(cap)[:-1]])
    weights = np.zeros(len(cost))
    weights[order] = np.clip(1.0 - before, 0.0, cap)
    return weights
