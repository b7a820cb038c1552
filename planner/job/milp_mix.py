"""Mixed purchases as the MILP sees them: unit prices and limits per cluster, without the counts the planner chose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import distinct_values
from planner.candidates.bought_in_parts import unit_money
from planner.candidates.constraints.registry import BIT
from planner.candidates.model import MIXED
from planner.job.model_mix import MixInput
from planner.market.quota import draws_on

if TYPE_CHECKING:
    import numpy.typing as npt

    from catalogs.tables.table import Floats, Ints
    from planner.asked.model import Asked
    from planner.candidates.model import Candidates
    from planner.market.model import Market


def mix_input(candidates: Candidates) -> MixInput | None:
    """Describe the clusters bought in parts that meet every limit but those a split decides; None without any."""
    context = candidates.context
    if candidates.mixes is None:
        return None
    at = np.flatnonzero((candidates.kind == MIXED) & ((candidates.bits & ~BIT["budget"]) == 0))
    if not len(at):
        return None
    rows, nodes, _ = candidates.gang(at)
    spot = np.where(context.market.is_spot[rows], nodes, 0)
    money = context.market.costs.evaluate(
        rows,
        spot,
        candidates.paid_hours[at],
        candidates.hours[at],
        stored=candidates.stored(at),
        run_hours=candidates.hours[at],
    )
    by_cost = context.asked.workload.preferences.objective == "cost"
    choice, offer, unit, cash, most = _counts(candidates, at)
    limits = draws_on(
        context.asked.workload.constraints.quota, context.market.offer_set, context.market.tariffs
    )
    limit = [bound * (1 + 1e-9) for bound, _ in limits]
    fixed_use = [units[rows] * spot for _, units in limits]
    unit_use = [units[offer] for _, units in limits]
    budget = context.asked.workload.constraints.budget_usd
    if budget is not None:
        limit, fixed_use = [*limit, float(budget)], [*fixed_use, money.cash_usd]
        unit_use = [*unit_use, cash]
    return MixInput(
        fixed=money.cost_usd if by_cost else candidates.hours[at],
        need=candidates.nodes[at] - spot,
        choice=choice,
        unit=unit if by_cost else np.zeros(len(unit)),
        most=most,
        limit=np.asarray(limit),
        limit_fixed=np.asarray(fixed_use).reshape(len(limit), len(at)),
        limit_unit=np.asarray(unit_use).reshape(len(limit), len(choice)),
    )


def _counts(candidates: Candidates, at: Ints) -> tuple[Ints, Ints, Floats, Floats, Floats]:
    """One count per choice and steady offer that can serve it: choice, offer, unit cost, unit cash, most instances."""
    context = candidates.context
    mixes = candidates.mixes
    assert mixes is not None
    pool = mixes.pool[candidates.detail[at]]
    parts: list[tuple[npt.NDArray[Any], ...]] = []
    for number in distinct_values(pool).tolist():
        mine, offers = np.flatnonzero(pool == number), mixes.pools[number]
        paid = candidates.hours[at[mine]] - candidates.waiting_hours[at[mine]]
        hours, spread = candidates.hours[at[mine]], candidates.spread(at[mine])
        unit, cash = unit_money(context.market, offers, paid, hours, spread)
        size = candidates.nodes[at[mine]].astype(np.float64)
        most = np.minimum(context.market.offer_set.capacity[offers][None, :], size[:, None])
        if not _is_linear(context.asked, context.market, offers):
            own = candidates.detail[at[mine]]
            bought, count = mixes.offer[own], mixes.nodes[own]
            most = ((bought[:, :, None] == offers) * count[:, :, None]).sum(axis=1).astype(np.float64)
        each, column = np.nonzero(np.isfinite(unit))
        parts.append((mine[each], offers[column], unit[each, column], cash[each, column], most[each, column]))
    choice, offer, unit, cash, most = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return choice, offer, unit.astype(np.float64), cash.astype(np.float64), most.astype(np.float64)


def _is_linear(asked: Asked, market: Market, offers: Ints) -> bool:
    """Whether filling by unit cost is exact; else the model keeps to the planner's own counts.

    It is not where instances of one quota need different units of it.
    """
    needs = draws_on(asked.workload.constraints.quota, market.offer_set, market.tariffs)
    return all(len(distinct_values(units[offers][units[offers] > 0])) <= 1 for _, units in needs)
