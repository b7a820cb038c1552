"""Pairs of pools: what is left out is never among the cheapest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.pipelines import pool_pairs
from planner.pipelines.pool_pairs import Points, Terms, find_pairs

COUNT = 5
QUOTAS = np.asarray([6.0, 5.0])


def points(rng: np.random.Generator, size: int, places: int) -> Points:
    held = rng.uniform(1.0, 1.3, size)
    return Points(
        at=np.arange(size), step_s=rng.lognormal(3.0, 1.0, size), stretch=held * rng.uniform(1.0, 2.0, size), held=held,
        before_hours=rng.uniform(0.1, 1.0, size), fixed_usd=rng.uniform(0.0, 5.0, size),
        usd_per_hour=rng.lognormal(2.0, 1.0, size), sure=rng.uniform(1.0, 1.5, size),
        nodes=rng.integers(1, 9, size), accelerators=rng.integers(1, 65, size).astype(float),
        place=rng.integers(0, places, size), rate=rng.choice([np.nan, 1e10, 5e10], size),
        copies=rng.integers(1, 9, size).astype(float), chip=rng.integers(0, 4, size),
        uses=rng.integers(0, 5, (size, 2)).astype(float), offer=rng.integers(0, 6, size),
        most_nodes=rng.choice([np.inf, 8.0], size),
    )  # fmt: skip


@given(
    st.integers(0, 10**6), st.booleans(), st.sampled_from([np.inf, 40.0, 10.0]), st.booleans(), st.booleans()
)
def test_the_cheapest_pairs_are_those_of_a_full_search(
    seed: int, ahead: bool, deadline: float, one_chip: bool, one_region: bool
) -> None:
    rng = np.random.default_rng(seed)
    trainers, rollouts = points(rng, 40, 3), points(rng, 30, 3)
    moved = np.full((3, 3), np.inf) if one_region else rng.uniform(0.0, 50.0, (3, 3))
    np.fill_diagonal(moved, 0.0)
    gbps = np.where(np.eye(3) > 0, np.inf, 40.0)
    terms = Terms(0.2, ahead, 1.6e10, moved, gbps, 12.0, 80.0, deadline, QUOTAS, one_chip)
    every = np.sort(pool_pairs._costs(trainers, rollouts, terms).ravel())
    every = every[np.isfinite(every)][:COUNT]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool_pairs, "_FIRST", (6,))
        found = find_pairs(trainers, rollouts, terms, COUNT)
    assert found.usd == pytest.approx(every)
    alike = trainers.place[found.trainer] == rollouts.place[found.rollouts]
    assert not one_region or alike.all()
    together = trainers.uses[found.trainer] + rollouts.uses[found.rollouts]
    assert (together[alike] <= QUOTAS).all()
    own = trainers.offer[found.trainer] == rollouts.offer[found.rollouts]
    nodes = trainers.nodes[found.trainer] + rollouts.nodes[found.rollouts]
    assert (nodes <= trainers.most_nodes[found.trainer])[own].all()
    assert not one_chip or (trainers.chip[found.trainer] == rollouts.chip[found.rollouts]).all()


def test_no_pools_are_no_pairs() -> None:
    rng = np.random.default_rng(1)
    none, some = points(rng, 0, 1), points(rng, 3, 1)
    terms = Terms(0.2, True, 1e9, np.zeros((1, 1)), np.full((1, 1), np.inf), 9.0, 99.0, np.inf, QUOTAS)
    assert find_pairs(none, some, terms, COUNT).compared == 0
    assert find_pairs(some, none, terms, COUNT).compared == 0
