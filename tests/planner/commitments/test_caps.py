"""`max_instances` and `max_usd_per_hour` hold at every moment, over all options and first days together."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from planner.commitments.advise import Work
from planner.commitments.certificate import build_certificate
from planner.inputs.commit_schema import CommitQuestion
from planner.plan.certificates import check_certificate
from tests.draws import share_of
from tests.planner.commitments.test_begins import answered, as_json, ending, faults, random_question
from tests.planner.commitments.test_commit_model import extensive

END, YEAR = 90 * 24, 8760  # hours until 31 March


def most_at_once(work: Work, pool: str | None) -> float:
    """The most units for a pool, or dollars of plans, that are in force on a day."""
    lines = [
        line
        for line in work.answer.lines
        if (line.unit == "USD/h" if pool is None else line.serves == (pool,) and line.unit != "USD/h")
    ]
    days = [line.begins for line in lines]
    return max(
        (float(sum(o.units for o in lines if o.begins <= day <= o.expires)) for day in days), default=0
    )


@pytest.mark.parametrize("most", [3, 5, 8])
def test_now_and_later_share_a_limit(most: int) -> None:
    """Every number now and for later, of ten machines of which six are covered until March."""
    asked = ending(options={"max_instances": {"a": most}})
    work = answered(asked)
    best = min(
        6.0 * (now * YEAR + later * (YEAR - END))
        + 10.0 * (max(4 - now, 0) * END + max(10 - now - later, 0) * (YEAR - END))
        for now, later in product(range(most + 1), repeat=2)
        if now + later <= most
    )
    assert work.solved.objective_usd == pytest.approx(best)
    assert most_at_once(work, "a") == most
    answer = as_json(work)
    assert faults(asked, answer) == []
    above = ending(options={"max_instances": {"a": most - 1}})
    assert any("at a time" in fault for fault in faults(above, answer))


def test_a_limit_is_free_again_when_a_term_ends() -> None:
    work = answered(ending(commitments=[], horizon_years=2, options={"max_instances": {"a": 5}}))
    assert [(line.units, f"{line.begins}") for line in work.answer.lines] == [
        (5, "2027-01-01"),
        (5, "2028-01-01"),
    ]


def test_all_options_of_a_pool_share_its_limit() -> None:
    pool = {"name": "a", "provider": "x", "region": "r"}
    prices = {"on_demand": 10.0, "reserved_1y": 6.0, "reserved_3y": 5.0}
    asked = ending(
        pools=[pool | {"prices": prices}],
        commitments=[],
        horizon_years=3,
        options={"max_instances": {"a": 5}},
    )
    work = answered(asked)
    assert most_at_once(work, "a") == 5
    assert faults(asked, as_json(work)) == []


def test_dollars_of_all_plans_share_theirs() -> None:
    """Those of two sellers, and those that begin later."""
    prices = {"on_demand": 10.0, "savings_plan_1y": 6.0}
    pools = [{"name": name, "provider": name, "region": "r", "prices": prices} for name in "ab"]
    use = [{"pool": name, "instances": 10, "start": "2027-01-01", "end": "2027-12-31"} for name in "ab"]
    own = {
        "purchase_option": "savings_plan_1y",
        "provider": "a",
        "usd_per_hour": 36.0,
        "expires": "2027-03-31",
    }
    asked = ending(
        pools=pools, demand={"planned": use}, commitments=[own], options={"max_usd_per_hour": 100.0}
    )
    work = answered(asked)
    assert most_at_once(work, None) == pytest.approx(100.0, abs=2e-3)
    assert faults(asked, as_json(work)) == []


def capped(seed: int) -> CommitQuestion:
    """A random question with limits on some pools and on plans."""
    draw, asked = np.random.default_rng([seed, 1]), random_question(seed)
    options: dict[str, Any] = {
        "max_instances": {
            pool.name: float(draw.integers(1, 6)) for pool in asked.pools if draw.random() < 0.7
        }
    }
    if draw.random() < 0.6:
        options["max_usd_per_hour"] = float(round(draw.uniform(1, 12), 2))
    return asked.model_copy(update={"options": asked.options.model_copy(update=options)})


def check_capped(seed: int) -> None:
    asked = capped(seed)
    work = answered(asked)
    model, found = work.built.model, work.solved
    for pool, most in asked.options.max_instances.items():
        assert most_at_once(work, pool) <= most, seed
    assert most_at_once(work, None) <= (asked.options.max_usd_per_hour or np.inf) + 1e-9, seed
    assert faults(asked, as_json(work)) == [], seed
    truth = extensive(model)
    near = 1e-6 * abs(truth) + 1e-6
    cents = (
        0.001 * 8760 * asked.horizon_years * len(model.columns)
    )  # plans are sold in thousandths of a dollar
    assert found.bound_usd <= truth + near and truth - near <= found.objective_usd <= truth + near + cents, (
        seed
    )
    proof = build_certificate(model, found)
    assert check_certificate(proof) == [], seed
    if not model.caps:
        return
    relaxed = replace(model, columns=tuple(replace(column, whole=False) for column in model.columns))
    assert proof["bound"] == pytest.approx(extensive(relaxed), rel=1e-6, abs=1e-4), seed
    for number, cap in enumerate(proof["model"]["caps"]):
        bought = sum(proof["point"][column] for column in cap["columns"])
        if bought > 0:
            proof["model"]["caps"][number] = {**cap, "most": bought / 2}
            assert check_certificate(proof), seed
            proof["model"]["caps"][number] = cap
    proof["cap_multipliers"] = [-1] * len(model.caps)
    assert check_certificate(proof), seed


@pytest.mark.parametrize("seed", range(share_of(30)))
def test_limits_hold_and_the_best_choice_within_them_is_proven(seed: int) -> None:
    check_capped(seed)
