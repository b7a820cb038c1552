"""The same question in other words: lower prices, pools that are halved, commitments that cannot pay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from catalogs.tables.table import Floats
from planner.commitments.model import CommitModel, Hours
from planner.commitments.solve import solve_commit
from tests.draws import share_of
from tests.planner.commitments.commit_cases import random_model

GAP = 1e-6
SLACK = 3e-6


def least(model: CommitModel) -> float:
    return solve_commit(model, gap=GAP).objective_usd


@pytest.mark.parametrize("seed", range(share_of(12)))
def test_a_price_drop_never_makes_the_answer_dearer(seed: int) -> None:
    model = random_model(seed)
    most = least(model) * (1 + SLACK) + 1e-6
    for number, column in enumerate(model.columns):
        cheaper = replace(column, cost_usd=0.8 * column.cost_usd, upfront_usd=0.8 * column.upfront_usd)
        columns = (*model.columns[:number], cheaper, *model.columns[number + 1 :])
        assert least(replace(model, columns=columns)) <= most
    assert least(replace(model, on_demand_usd=0.8 * model.on_demand_usd)) <= most


@pytest.mark.parametrize("seed", range(share_of(12)))
def test_a_pool_in_two_halves_costs_the_same_where_all_is_even(seed: int) -> None:
    """Twice the demand in one pool, or the demand in each of two that are alike: whole units cover both as well."""
    model = random_model(seed, plans=0)
    model = replace(model, upfront_limit_usd=np.inf)
    columns = tuple(
        replace(one, upper=2 * one.upper if one.pool == 0 else one.upper) for one in model.columns
    )

    def wider(hours: Hours, *, apart: bool) -> Hours:
        def own(part: Floats) -> Floats:
            first = part[:, :1] if apart else 2 * part[:, :1]
            return np.concatenate([first, part[:, 1:], *([first] if apart else [])], axis=1)

        usd = hours.spot_usd
        if usd is not None and apart:
            usd = np.concatenate([usd, usd[:, :1]], axis=1)
        cap = None if hours.spot_cap is None else own(hours.spot_cap)
        return replace(hours, demand=own(hours.demand), spot_cap=cap, spot_usd=usd)

    whole = replace(model, columns=columns, hours=tuple(wider(one, apart=False) for one in model.hours))
    pools = len(model.on_demand_usd)
    twins = [replace(one, key=("twin", one.key), pool=pools) for one in model.columns if one.pool == 0]
    halves = replace(
        model, on_demand_usd=np.append(model.on_demand_usd, model.on_demand_usd[0]),
        plan_rate_usd=np.zeros((0, pools + 1)), columns=(*model.columns, *twins),
        hours=tuple(wider(one, apart=True) for one in model.hours),
    )  # fmt: skip
    assert least(halves) == pytest.approx(least(whole), rel=SLACK, abs=1e-6)


@pytest.mark.parametrize("seed", range(share_of(12)))
def test_what_costs_more_than_on_demand_all_the_time_is_never_bought(seed: int) -> None:
    model = random_model(seed, plans=0)
    hours = max(
        sum(float(block.weight.sum()) for block in model.hours if block.scenario == scenario)
        for scenario in range(len(model.probability))
    )
    columns = tuple(
        replace(one, cost_usd=1.01 * hours * float(model.on_demand_usd[one.pool or 0]))
        for one in model.columns
    )
    assert not solve_commit(replace(model, columns=columns), gap=GAP).x.any()
