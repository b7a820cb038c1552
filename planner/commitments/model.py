"""Commitments under uncertain demand: the model.

Buying is decided now, use later. Columns x_j of the first stage are reservations (whole instances of one pool) or
savings plans (dollars per hour of plan rate, spread over every pool the plan covers). In hour n of scenario s with
demand d_np, for pools p and plans k:

    minimise    sum_p od_p a_np + spot_np b_np                        a on demand, b spot
    subject to  a_np + b_np + sum_k u_nkp >= d_np - sum_{j of p} x_j  u covered by plan k
                sum_p rate_kp u_nkp <= owned_nk + sum_{j of k} capacity_j x_j
                b_np <= cap_np,    all at least 0

and the whole is  min cost.x + (1 - w) E[Q_s(x)] + w CVaR_a[Q_s(x)],  Q_s(x) = sum over the hours of s, each weighted by
the hours it stands for. What is owned today is sunk: owned reservations are taken off the demand before.
`planner.commitments.recourse` solves the second stage without a solver.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from catalogs.tables.table import Floats
from solvers.search.master import TwoStage


@dataclass(frozen=True)
class CommitColumn:
    """Something that may be bought now.

    Attributes:
        key: the caller's id.
        cost_usd: cost of one unit over the horizon, upfront included.
        upper: most units (instances, or USD per hour).
        pool: the pool a reservation serves; None for a savings plan.
        plan: the plan whose capacity it adds to; None for a reservation.
        capacity: USD per hour of plan rate that one unit gives (1 but for plans whose rates are a multiple).
        upfront_usd: due at once per unit.
        periods: periods of the horizon in which it is active; empty: all.
        whole: must be bought in whole units.
    """

    key: Hashable
    cost_usd: float
    upper: float
    pool: int | None = None
    plan: int | None = None
    capacity: float = 1.0
    upfront_usd: float = 0.0
    periods: tuple[int, ...] = ()
    whole: bool = False

    def __post_init__(self) -> None:
        if (self.pool is None) == (self.plan is None):
            raise ValueError(f"column {self.key!r} must serve either a pool or a plan")

    def is_active(self, period: int) -> bool:
        """Whether it covers use in `period`."""
        return not self.periods or period in self.periods


@dataclass(frozen=True)
class Cap:
    """At most so many units of some columns together; `columns` are their numbers."""

    columns: tuple[int, ...]
    most: float


@dataclass(frozen=True, eq=False)
class Hours:
    """Hours of one scenario within one period, n rows.

    Attributes:
        scenario: its number.
        period: its number.
        weight: hours each row stands for, shape `(n,)`.
        demand: instances wanted beyond owned reservations, shape `(n, P)`.
        spot_cap: instances that spot can give, shape `(n, P)`; None: no spot.
        spot_usd: USD per spot instance-hour, shape `(n, P)`, or `(1, P)` where it is the same in every hour.
        owned_plan_usd: plan rate per hour already committed, shape `(n, K)`; None: none.
    """

    scenario: int
    period: int
    weight: Floats
    demand: Floats
    spot_cap: Floats | None = None
    spot_usd: Floats | None = None
    owned_plan_usd: Floats | None = None


@dataclass(frozen=True, eq=False)
class CommitModel:
    """A commitment question in numbers. P pools, K plans, F columns, S scenarios.

    Attributes:
        on_demand_usd: USD per instance-hour, shape `(P,)`.
        plan_rate_usd: plan rate per instance-hour, shape `(K, P)`; inf where a plan does not cover the pool.
        columns: what may be bought.
        hours: blocks of hours; every scenario has at least one.
        probability: of each scenario, shape `(S,)`.
        risk_weight: share of CVaR in the objective.
        risk_level: CVaR is the mean of the worst `1 - risk_level`.
        upfront_limit_usd: most to pay at once; inf: no limit.
        caps: limits on columns together.
    """

    on_demand_usd: Floats
    plan_rate_usd: Floats
    columns: tuple[CommitColumn, ...]
    hours: tuple[Hours, ...]
    probability: Floats
    risk_weight: float = 0.0
    risk_level: float = 0.9
    upfront_limit_usd: float = np.inf
    pools: tuple[str, ...] = field(default=())
    caps: tuple[Cap, ...] = ()

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together: numpy would stretch or drop them in silence.

        Raises:
            ValueError: names what does not fit.
        """
        pools, plans = len(self.on_demand_usd), len(self.plan_rate_usd)
        if self.plan_rate_usd.shape != (plans, pools):
            raise ValueError(f"plan rates have shape {self.plan_rate_usd.shape}, not ({plans}, {pools})")
        for column in self.columns:
            if not (column.pool in range(pools) if column.plan is None else column.plan in range(plans)):
                raise ValueError(f"column {column.key!r} serves a pool or plan that is not there")
        if {block.scenario for block in self.hours} != set(range(len(self.probability))):
            raise ValueError("every scenario needs hours and a probability")
        for block in self.hours:
            rows = len(block.weight)
            parts = ((block.demand, pools), (block.spot_cap, pools), (block.owned_plan_usd, plans))
            if any(part is not None and part.shape != (rows, width) for part, width in parts):
                raise ValueError(f"hours of scenario {block.scenario}: arrays of different lengths")
            if block.spot_usd is not None and block.spot_usd.shape not in ((1, pools), (rows, pools)):
                raise ValueError(
                    f"hours of scenario {block.scenario}: spot prices of shape {block.spot_usd.shape}"
                )

    @property
    def n_plans(self) -> int:
        """Number of plans."""
        return len(self.plan_rate_usd)

    def coverage(self, x: Floats, period: int) -> tuple[Floats, Floats]:
        """Return reserved instances, shape `(P,)`, and plan rate per hour, shape `(K,)`, that `x` gives in `period`."""
        reserved, plans = np.zeros(len(self.on_demand_usd)), np.zeros(self.n_plans)
        for column, units in zip(self.columns, x, strict=True):
            if not column.is_active(period):
                continue
            if column.pool is not None:
                reserved[column.pool] += units
            elif column.plan is not None:
                plans[column.plan] += column.capacity * units
        return reserved, plans


def first_stage(model: CommitModel) -> TwoStage:
    """Return the first stage as the decomposition knows it: the upfront limit is its first row, caps are the others."""
    upfront = np.array([[column.upfront_usd for column in model.columns]], dtype=np.float64)
    limited = bool(np.isfinite(model.upfront_limit_usd) and upfront.any())
    capped = np.zeros((len(model.caps), len(model.columns)))
    for row, cap in zip(capped, model.caps, strict=True):
        row[list(cap.columns)] = 1.0
    return TwoStage(
        cost=np.array([column.cost_usd for column in model.columns], dtype=np.float64),
        upper=np.array([column.upper for column in model.columns], dtype=np.float64),
        integer=np.array([column.whole for column in model.columns], dtype=np.bool_),
        probability=model.probability,
        risk_weight=model.risk_weight,
        risk_level=model.risk_level,
        rows=np.concatenate([upfront[: int(limited)], capped]),
        row_hi=np.array([model.upfront_limit_usd] * limited + [cap.most for cap in model.caps]),
    )
