"""Laws of fleets in two parts: what allows more never costs more."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.tables.table import Ints
from planner.fleet import parts
from tests.draws import draws, share_of
from tests.planner.fleet.test_fallback import PAIR, planned
from tests.planner.fleet.test_parts import FIRM, drawn, half_on_spot, in_parts
from tests.planner.spine_catalogs import make_catalog, not_dearer, plan_on


def check_larger_share(seed: int) -> bool:
    """A larger share of the runs never costs more; whether the smaller one has a plan."""
    job, offers = drawn(seed)
    limits = job["fleet"]
    catalog, rng = make_catalog(offers), random.Random(seed)
    shares = [
        name for name in ("max_spot_share", "max_share_per_offer", "max_share_per_region") if name in limits
    ]
    if not shares:
        return False
    before = plan_on(catalog, job, gap=0.0).plan
    if before.status == "infeasible":
        return False
    share = rng.choice([0.5 * (1.0 + limits[shares[0]]), 1.0])
    wider = {**job, "fleet": {**limits, shares[0]: share}}
    assert not_dearer(plan_on(catalog, wider, gap=0.0).plan.total_usd, before.total_usd), seed
    return True


def test_a_larger_share_never_costs_more() -> None:
    """`benchmarks.brute_force` draws hundreds."""
    count = share_of(60)
    assert sum(check_larger_share(seed) for seed in range(count)) >= count / 5


def test_fewer_runs_than_may_fall_back_do_where_that_costs_less() -> None:
    """The last runs leave little slack: two of four on spot with a fall-back and two on-demand cost a seventh less."""
    job, offers = drawn(701)
    job["fleet"] = {**job["fleet"], "max_share_per_region": 1.0}
    plan = planned(offers, job)
    assert in_parts(plan) and plan.total_usd < Decimal("19.51")


@draws(8)
@given(seed=st.integers(0, 10_000))
def test_one_more_machine_never_costs_more(seed: int) -> None:
    job, offers = drawn(seed)
    before = planned(offers, job)
    if not in_parts(before):
        return
    wider = json.loads(json.dumps(job))
    wider["constraints"]["max_nodes"] += 1
    assert not_dearer(planned(offers, wider).total_usd, before.total_usd)


def test_the_answer_is_never_dearer_than_without_fall_backs() -> None:
    job = half_on_spot()
    without = planned([*PAIR, FIRM], {**job, "spot": {"fallback": "none"}, "constraints": {
        **job["constraints"], "exclude_purchase_options": ["spot"]}})  # fmt: skip
    assert planned([*PAIR, FIRM], job).total_usd < without.total_usd


def test_of_many_runs_divisions_are_spread_and_none_is_worked_out_beyond_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[list[int]] = []
    run = parts._Search.run

    def see(search: parts._Search, runs: Ints) -> parts.CheapestParts:
        seen.append(runs.tolist())
        return run(search, runs)

    monkeypatch.setattr(parts._Search, "run", see)
    job = half_on_spot(runs=400)
    job["constraints"] = {"max_nodes": 400, "deadline": "60h"}
    assert in_parts(planned(PAIR, job))
    runs = seen[0]  # a second question is for fewer machines
    assert (runs[0], runs[-1], len(runs)) == (1, 200, parts.MOST_DIVISIONS)
    assert {after - before for before, after in pairwise(runs)} <= {6, 7}
    monkeypatch.setattr(parts, "MOST_JUDGED", 0)
    monkeypatch.setattr(parts, "fleets_of", None)  # which would be an error to call
    plan = planned(PAIR, job)
    assert not in_parts(plan) and plan.proof is not None
    assert "the probability was not worked out" in plan.proof.note
