"""What a fleet is said to cost on average and in eight of ten cases is what simulated fleets cost."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from planner.asked.options import Options
from planner.candidates.engine import CandidateSearch
from planner.fleet import plan as fleet_plan
from planner.fleet.mix import Mix
from planner.fleet.spread import Spread, spread_of
from planner.inputs.load import load_workload
from planner.plan.model import Plan
from planner.workloads.answer import optimize
from tests.planner.fleet.simulate_fleet import Line, costs
from tests.planner.fleet.test_spine_fleet import POOL, exactly, fleet
from tests.planner.spine_catalogs import NOW, V100, Offer
from tests.planner.spot.simulate_spot import Case

EXAMPLES = Path(__file__).parents[3] / "examples"
STORED = ("data_storage", "checkpoint_storage")
OUTCOMES = 300


def _planned(ask: Callable[[], Plan]) -> tuple[Plan, CandidateSearch, Mix]:
    """A plan with the mix behind it: the last of its total, for another may have been planned beside it."""
    seen: dict[Decimal, tuple[CandidateSearch, Mix]] = {}

    def noted(found: CandidateSearch, mix: Mix, total: Decimal) -> Spread:
        seen[total] = found, mix
        return spread_of(found, mix, total)

    with mock.patch.object(fleet_plan, "spread_of", noted):
        plan = ask()
    assert plan.total_usd is not None
    return plan, *seen[plan.total_usd]


def _example(name: str) -> Plan:
    return optimize(load_workload(EXAMPLES / f"{name}.yaml"), Options(NOW)).plan


def _lines(plan: Plan, found: CandidateSearch, mix: Mix) -> list[Line]:
    """The facts of each line: its runs, its offer's hazards and prices, and what its other cost lines say."""
    made, workers, out = found.candidates, mix.workers, []
    context = made.context
    order = np.argsort(context.market.id_rank[workers.rows], kind="stable").tolist()
    for at, line in zip(order, plan.lines, strict=True):
        here = workers.at[[at]]
        rows, nodes, work = made.gang(here)
        write, is_spot = made.write_hours[here], line.purchase_option == "spot"
        pool = context.gang_risk(rows, nodes).pool
        case = Case(
            work=float(work[0]), rate=float(pool.rate[0]) if is_spot else 0.0, wait=float(pool.wait[0]),
            interval=float(made.interval_hours[here[0]]), write=float(write[0]),
            restart=float(context.asked.restart_hours(write)[0]),
            notice=float(context.spot.figures.notice_hours[rows[0]]),
        )  # fmt: skip
        units = line.throughput_per_s * plan.hours * 3600.0
        other = {True: 0.0, False: 0.0}
        for cost in line.costs:
            if cost.kind not in ("compute", "system_disk"):
                other[cost.kind in STORED and "GiB-month" in cost.unit] += float(cost.amount_usd)
        compute = sum(
            float(cost.amount_usd) for cost in line.costs if cost.kind in ("compute", "system_disk")
        )
        hourly = compute / float(line.billed_hours) / int(mix.count[at])
        quoted = (line.price_per_hour, line.price_p10_per_hour, line.price_p90_per_hour)
        low, high = (float(end / quoted[0]) if is_spot and end is not None else 1.0 for end in quoted[1:])
        rule = context.market.offer_set.rules[context.market.offer_set.rule_of_offer[rows[0]]]
        stay = float(workers.lead_hours[at] + mix.hours[at])
        out.append(
            Line(
                runs=units / context.asked.job.total_units, workers=int(mix.count[at]), case=case,
                sigma=float(made.sigma[here[0]]), frailty_sd=float(pool.frailty_sd[0]) if is_spot else 0.0,
                fixed_hours=float(workers.fixed_hours[at]),
                granule_hours=(rule.billing_granularity_s or 1.0) / 3600.0,
                usd_per_hour=(hourly, hourly * low, hourly * high), once_usd=other[False],
                usd_per_day=other[True] * 24.0 / stay, stay_hours=stay,
            )
        )  # fmt: skip
    return out


def _on_demand(job: dict[str, Any]) -> dict[str, Any]:
    return {**job, "constraints": {**job["constraints"], "purchase_options": ["on_demand"]}}


ROOMY = {"max_nodes": 20, "deadline": "30h"}
CASES: dict[str, Callable[[], Plan]] = {
    "spot": lambda: exactly(POOL, fleet(24, ROOMY)),
    "half on spot": lambda: exactly(POOL, fleet(24, ROOMY, max_spot_share=0.5)),
    "on-demand": lambda: exactly(POOL, _on_demand(fleet(24, ROOMY))),
    "spot, sized for the mean": lambda: exactly(POOL, fleet(24, {**ROOMY, "deadline_confidence": 0.5})),
    "hpo-fleet": lambda: _example("hpo-fleet"),
    "embed-images-fleet": lambda: _example("embed-images-fleet"),
}


@pytest.mark.catalog("small")
@pytest.mark.parametrize("name", CASES)
def test_the_cost_is_that_of_simulated_fleets(name: str) -> None:
    plan, found, mix = _planned(CASES[name])
    lines = _lines(plan, found, mix)
    total = float(plan.total_usd)
    mean = costs(lines, OUTCOMES, seed=1, mean_speed=True).mean()
    assert total == pytest.approx(mean, rel=0.03)
    low, high = np.quantile(costs(lines, OUTCOMES, seed=2), [0.1, 0.9])
    assert plan.risk is not None
    assert float(plan.risk.worst_cost_usd) == pytest.approx(high, rel=0.07)
    if plan.launch is not None:
        assert float(plan.launch.cost_p10_usd) == pytest.approx(low, rel=0.07)
        assert plan.launch.cost_p90_usd == plan.risk.worst_cost_usd
    if name != "on-demand":
        assert any(line.purchase_option == "spot" for line in plan.lines)


def test_a_block_stays_paid_however_fast_the_work_is() -> None:
    block = Offer(V100, "us-east-1", "0.10", "capacity_block", capacity=2.0)
    plan, found, mix = _planned(lambda: exactly([block], fleet(6, {"max_nodes": 20, "deadline": "60h"})))
    paid = sum(cost.amount_usd for line in plan.lines for cost in line.costs if cost.kind == "compute")
    spread = spread_of(found, mix, plan.total_usd)
    assert paid <= spread.p10_usd <= plan.total_usd <= spread.p90_usd
    assert float(plan.lines[0].billed_hours) in (24.0, 48.0, 72.0)
