"""Pairs of pools by a deadline: what the lower bound leaves out is never cheaper, and both pools share the room."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from catalogs.store.load import load_catalog
from planner.asked.options import Options
from planner.inputs.load import load_workload
from planner.pipelines import pools_by_deadline
from planner.pipelines.pools import PoolsQuestion
from planner.pipelines.pools_by_deadline import ByDeadline, Timed
from tests.cli.test_pools import WORKLOAD

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
pytestmark = pytest.mark.catalog("small")


def search(folder: Path, ahead: int, deadline: str) -> ByDeadline:
    path = folder / "grpo.yaml"
    few = WORKLOAD.replace("AHEAD", str(ahead)).replace("max_nodes: 8", "max_nodes: 2")
    path.write_text(f"{few}  deadline: {deadline}\n", encoding="utf-8")
    question = PoolsQuestion(load_workload(path), load_catalog(None), Options(now=NOON))
    assert question.by_deadline is not None
    return question.by_deadline


def test_what_the_bound_leaves_out_costs_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = search(tmp_path, 0, "3d")
    monkeypatch.setattr(pools_by_deadline, "_PRICED", 10**6)
    monkeypatch.setattr(pools_by_deadline, "_LOOKED_AT", 10**5)
    found = pairs.cheapest(np.inf)
    assert found.pair is not None and found.bound_usd <= found.pair.cost_usd
    every = [(least, pairs._priced(rows)) for least, rows in pairs._by_bound(one_chip=False)[0]]
    priced = [(least, pair) for least, pair in every if pair is not None]
    assert len(priced) > 5
    assert found.pair.cost_usd == min(pair.cost_usd for _, pair in priced)
    assert all(least <= pair.cost_usd for least, pair in priced)
    for _, pair in priced:
        assert_both_are_in_time(pairs, pair)


def assert_both_are_in_time(pairs: ByDeadline, pair: Timed) -> None:
    """Each pool's own room for outages and errors of its speed adds up to what the deadline leaves."""
    work = pairs.terms.hours_per_step_s * pair.step_s
    room = pairs.terms.deadline_hours - work
    for pool, other in zip(pair.pools, pair.pools[::-1], strict=True):
        assert pool.paced_s == pytest.approx(pair.step_s * other.stretch)
        own = pool.deadline_hours - work * other.stretch
        assert own <= room / 2.0 * (1 + 1e-9)
        assert pool.deadline_hours <= pairs.terms.deadline_hours


def test_a_better_pair_that_is_known_ends_the_search(tmp_path: Path) -> None:
    pairs = search(tmp_path, 0, "3d")
    found = pairs.cheapest(np.inf)
    assert found.pair is not None
    less = pairs.cheapest(found.pair.cost_usd / 3.0)
    assert less.pair is None and less.bound_usd <= found.pair.cost_usd / 3.0


def test_pools_of_one_type_are_no_cheaper(tmp_path: Path) -> None:
    pairs = search(tmp_path, 1, "3d")
    any_type, one = pairs.cheapest(np.inf).pair, pairs.cheapest(np.inf, one_chip=True).pair
    assert any_type is not None and one is not None
    assert any_type.cost_usd <= one.cost_usd
    market = pairs.sides[0].found.context.market
    chips = {market.accelerator_of_offer[p.search.candidates.offer[p.at]] for p in one.pools}
    assert len(chips) == 1
