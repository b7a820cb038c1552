"""Figures of a set of commitments: what it is used for, what it saves, what is at risk. Ratios are ratios of sums."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from catalogs.tables.table import Floats
from planner.commitments.answer import BreakEven, Level, Regret
from planner.commitments.build import Built
from planner.commitments.model import CommitModel, first_stage
from planner.commitments.prices import HOURS_PER_YEAR
from planner.commitments.recourse import Recourse
from planner.commitments.solve import solve_commit
from planner.commitments.use import Use, use_of
from solvers.problem.solution import Termination
from solvers.search.master import cvar

FOREGONE = 1e-3  # gap to which the perfect-foresight cost of a scenario is found


def break_evens(built: Built) -> tuple[BreakEven, ...]:
    """Return the break-even of every committed price, pool by pool."""
    out = []
    for name, price in zip(built.model.pools, built.prices, strict=True):
        for term in price.committed:
            rate, list_usd = term.all_in_usd_per_hour, price.on_demand.usd_per_hour
            spot = None if price.spot is None else HOURS_PER_YEAR * rate / price.spot.usd_per_hour
            hours = HOURS_PER_YEAR * rate / list_usd
            out.append(BreakEven(term.option, term.variant, name, list_usd, rate, hours, spot))
    return tuple(out)


def level_of(
    built: Built,
    x: Floats,
    share: float,
    without_usd: float | None = None,
    recourse: Recourse | None = None,
) -> Level:
    """Return the figures of `x`.

    Args:
        built: the model.
        x: units of each column.
        share: a label.
        without_usd: expected cost without new commitments, where it is known already.
        recourse: of the model, where it is known.
    """
    model = built.model
    recourse = recourse or Recourse(model)
    uses = use_of(model, x, recourse)
    costs = np.zeros(len(model.probability))
    for use in uses:
        np.add.at(costs, use.scenario, use.weight * use.cost_usd)
    usd = first_stage(model).cost * x
    now = np.array([item.now for item in built.buyable], dtype=np.bool_)
    committed, planned = float(usd[now].sum()), float(usd[~now].sum())
    expected = committed + planned + float(model.probability @ costs)
    if without_usd is None:
        without = recourse.evaluate(np.zeros_like(x)).value if x.any() else costs
        without_usd = float(model.probability @ without)
    used, paid = utilisation_by_column(built, x, uses)
    return Level(
        share,
        committed,
        planned,
        expected,
        committed + planned + cvar(costs, model.probability, model.risk_level),
        without_usd,
        _coverage(built, uses),
        float(used.sum() / paid.sum()) if paid.sum() > 0 else None,
        round(without_usd - expected, 2),
    )


def _coverage(built: Built, uses: Sequence[Use]) -> float:
    model = built.model
    covered = total = 0.0
    for use in uses:
        gross = np.concatenate([built.gross[number] for number in use.blocks])
        owned = np.minimum(gross, built.owned[use.period])
        covered += float(use.time @ ((owned + use.reserved + use.planned) @ model.on_demand_usd))
        total += float(use.time @ (gross @ model.on_demand_usd))
    return covered / total if total else 0.0


def utilisation_by_column(built: Built, x: Floats, uses: Sequence[Use]) -> tuple[Floats, Floats]:
    """Return expected used and paid USD of each column over its hours in the horizon, each `(F,)`.

    Columns that serve the same pool or plan share its use in proportion to what they give.
    """
    model = built.model
    used, paid = np.zeros(len(x)), np.zeros(len(x))
    per_hour = np.array([_usd_per_hour(built, number) for number in range(len(x))])
    for use in uses:
        units, plans = model.coverage(x, use.period)
        reserved = use.time @ use.reserved
        spent = use.time @ np.maximum(
            use.spent - use.owned, 0.0
        )  # owned plans first: they are paid for anyway
        for number, column in enumerate(model.columns):
            if not x[number] or not column.is_active(use.period):
                continue
            paid[number] += per_hour[number] * x[number] * float(use.time.sum())
            if column.pool is not None:
                used[number] += per_hour[number] * x[number] * reserved[column.pool] / units[column.pool]
            elif column.plan is not None:
                used[number] += per_hour[number] * x[number] * spent[column.plan] / plans[column.plan]
    return used, paid


def _usd_per_hour(built: Built, number: int) -> float:
    """All-in price of one unit of a column per hour."""
    item = built.buyable[number]
    hours = ((item.expires - item.begins).days + 1) * 24
    return item.usd_per_hour + item.upfront_usd / hours


def scaled(model: CommitModel, x: Floats, share: float) -> Floats:
    """Return a multiple of `x`, reservations in whole units."""
    whole = np.array([column.whole for column in model.columns], dtype=np.bool_)
    return np.asarray(np.where(whole, np.rint(x * share), x * share))


def regret_of(
    model: CommitModel, x: Floats, recourse: Floats, time_limit_s: float
) -> tuple[Regret | None, bool]:
    """Return the regret against perfect foresight: each scenario solved alone, then compared with what `x` costs there.

    Scenarios that the clock or Ctrl-C does not allow are left out and the number says so; None without any. With it:
    whether Ctrl-C ended it.
    """
    stage = first_stage(model)
    begun = time.perf_counter()
    found, chances, best, interrupted = [], [], [], False
    for scenario in range(len(model.probability)):
        left = time_limit_s - (time.perf_counter() - begun)
        if left <= 0:
            break
        try:
            cheapest = solve_commit(_alone(model, scenario), gap=FOREGONE, time_limit_s=left, start=x)
            interrupted = cheapest.reason == Termination.INTERRUPTED.value
        except KeyboardInterrupt:
            interrupted = True
        if interrupted:
            break
        if cheapest.status != "optimal":  # its best is not known
            continue
        found.append(float(stage.cost @ x + recourse[scenario]) - cheapest.objective_usd)
        best.append(cheapest.objective_usd)
        chances.append(float(model.probability[scenario]))
    if not found:
        return None, interrupted
    weight = np.array(chances) / sum(chances)
    regrets = np.maximum(np.array(found), 0.0)  # the scenario's own optimum is known to a gap only
    order = np.argsort(regrets)
    at = int(np.searchsorted(np.cumsum(weight[order]), 0.9 - 1e-12))
    mean = float(weight @ regrets)
    return Regret(
        mean, float(regrets[order][min(at, len(order) - 1)]), float(regrets.max()),
        mean / float(weight @ np.array(best)) if any(best) else 0.0, len(found),
    ), interrupted  # fmt: skip


def _alone(model: CommitModel, scenario: int) -> CommitModel:
    """The scenario as if it were certain; fractions of a unit are allowed, which can only make it cheaper."""
    hours = tuple(replace(block, scenario=0) for block in model.hours if block.scenario == scenario)
    columns = tuple(replace(column, whole=False) for column in model.columns)
    return replace(model, hours=hours, columns=columns, probability=np.ones(1), risk_weight=0.0)
