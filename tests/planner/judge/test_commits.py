"""The judge's own arithmetic of commitments, use of hours and histories, against that which made the answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from planner.commitments.history import read_history
from planner.commitments.recourse import Recourse
from planner.inputs.commit_schema import Pool
from planner.judge.commits.demand import read_use
from planner.judge.commits.use import Hours, Market, use_of
from tests.planner.commitments.commit_cases import random_model

POOLS = (
    Pool(name="a", provider="aws", region="us-east-1", instance_type="p4d.24xlarge"),
    Pool(name="b", provider="aws", region="us-east-1", usage={"SkuId": "B"}),
)


@pytest.mark.parametrize("coarse", [False, True])
def test_the_use_costs_what_the_planner_says(coarse: bool) -> None:
    """Two plans of different rates, spot, owned plans, and ties where prices are coarse."""
    compared = 0
    for seed in range(60):
        model = random_model(seed, coarse=coarse)
        draw = np.random.default_rng(seed)
        x = np.array([draw.integers(0, int(one.upper) + 1) for one in model.columns], dtype=np.float64)
        cost = np.zeros(len(model.probability))
        for block in model.hours:
            pools = len(model.on_demand_usd)
            spot = np.full(pools, np.inf) if block.spot_usd is None else block.spot_usd[0]
            if block.spot_usd is not None and (block.spot_usd != spot).any():
                break  # a question has one spot price per pool
            most = np.zeros_like(block.demand) if block.spot_cap is None else block.spot_cap
            units, dollars = model.coverage(x, block.period)
            owned = 0.0 if block.owned_plan_usd is None else block.owned_plan_usd
            room = np.zeros((len(block.demand), model.n_plans)) + owned + dollars
            market = Market(model.on_demand_usd, spot, model.plan_rate_usd.reshape(-1, pools))
            use = use_of(market, Hours(block.demand, most, room), units)
            cost[block.scenario] += block.weight @ use.cost
            assert (use.spent <= room + 1e-9).all()
        else:
            assert cost == pytest.approx(Recourse(model).evaluate(x).value, abs=1e-7)
            compared += 1
    assert compared > 20


BILL = """ChargeCategory,ChargePeriodStart,ChargePeriodEnd,ConsumedQuantity,ConsumedUnit,RegionId,SkuId,\
SkuPriceDetails,CommitmentDiscountStatus,ProviderName,BilledCost,BillingCurrency
Usage,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,3,Hours,us-east-1,x,P4D,,AWS,1,USD
Usage,2026-01-01T00:30:00Z,2026-01-01T02:30:00Z,4,Hours,us-east-1,x,P4D,Used,AWS,1,USD
Usage,2026-01-01T01:00:00Z,2026-01-01T02:00:00Z,9,Hours,us-east-1,x,P4D,Unused,AWS,1,USD
Usage,2026-01-01T02:00:00Z,2026-01-01T03:00:00Z,5,Hours,us-east-1,B,,,AWS,1,USD
Purchase,2026-01-01T02:00:00Z,2026-01-01T03:00:00Z,7,Hours,us-east-1,B,,,AWS,1,USD
Usage,2026-01-01T02:00:00Z,2026-01-01T03:00:00Z,5,Hours,us-east-1,other,,,AWS,1,USD
""".replace("P4D", '"{""InstanceType"": ""p4d.24xlarge""}"')
TABLE = "hour,pool,instances\n2026-01-01T05:00Z,a,2\n2026-01-01T03:00+00:00,b,1.5\n\n2026-01-01T06:00Z,b,4\n"


@pytest.mark.parametrize("text", [BILL, TABLE, "hour,pool,instances\n7,a,2\n9,b,1\n"])
def test_a_history_is_read_as_the_planner_reads_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "use.csv"
    path.write_text(text, encoding="utf-8")
    made, (start, demand) = read_history(path, POOLS), read_use(path, POOLS, "auto")
    assert made.demand.sum() > 0
    np.testing.assert_allclose(demand, made.demand)
    assert start.hour == made.start.hour or "hours are numbers" in str(made.notes)
