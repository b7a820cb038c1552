"""What is dropped by what a candidate costs with all around it: nothing that a choice below the limit has, and much."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from benchmarks.instances.pipeline import pipeline_instance
from catalogs.tables.table import Floats, Ints
from planner.pipelines import marginals
from planner.pipelines.branch import SAFE, Branching
from planner.pipelines.local_search import local_choice
from planner.pipelines.question import PipelineInput, follow, reduce
from solvers.problem.options import SolveOptions
from solvers.search.search import Search
from tests.draws import share_of
from tests.planner.pipelines.test_model import small

PER_BLOCK = share_of(30)


def cheapest_with(pipe: PipelineInput) -> Floats:
    """The cost of the cheapest choice in time that has each candidate, inf without one."""
    options = [np.flatnonzero(pipe.task == task).tolist() for task in range(pipe.n_tasks)]
    cost = np.full(len(pipe.keys), math.inf)
    for choice in itertools.product(*options):
        course = follow(pipe, np.asarray(choice))
        if course.end_hours.max() <= pipe.deadline_hours:
            cost[list(choice)] = np.minimum(cost[list(choice)], course.cost_usd)
    return cost


def branching_over(pipe: PipelineInput, backend: str = "auto") -> Branching:
    search: Search[Ints] = Search(SolveOptions(gap=0.0, backend=backend))
    return Branching(search, pipe, np.arange(len(pipe.keys)))


@pytest.mark.parametrize("block", range(4))
def test_no_candidate_of_a_choice_below_the_cutoff_is_dropped(block: int) -> None:
    """By either backend, in the whole model and in a part of it; detours over third groups are among the instances."""
    checked = 0
    for seed in range(PER_BLOCK * block, PER_BLOCK * (block + 1)):
        pipe, _ = reduce(small(seed))
        if len(np.unique(pipe.task)) < pipe.n_tasks:
            continue
        cost = cheapest_with(pipe)
        whole = branching_over(pipe, ("highspy", "scipy")[seed % 2])
        root = whole.root()
        assert root is not None
        if math.isinf(cost.min()) or math.isinf(root.bound):
            continue
        for share in (1.0, 1.1, 1.4):
            cutoff = float(cost.min()) * share
            kept = whole.left(root, cutoff)
            assert kept[cost <= cutoff].all(), (seed, share)
            part = whole.part(kept)
            node = part.root()
            assert node is not None
            again = part.left(node, cutoff)
            assert again[cost[kept] <= cutoff].all(), (seed, share)
            checked += 1
    assert checked > PER_BLOCK


@pytest.mark.parametrize("shape", ["chain", "fork", "join"])
def test_the_least_sum_along_a_tree_is_that_of_all_choices(shape: str) -> None:
    """With several tasks beside one, too."""
    for seed in range(5):
        pipe = pipeline_instance(6, 3, seed, shape=shape)
        draw = np.random.default_rng(seed)
        own, cost = draw.random((6, 3)), draw.random((len(pipe.source), 3, 3))
        least = np.full((6, 3), np.inf)
        for at in map(np.asarray, itertools.product(range(3), repeat=6)):
            total = own[range(6), at].sum()
            total += cost[range(len(cost)), at[pipe.source], at[pipe.target]].sum()
            least[range(6), at] = np.minimum(least[range(6), at], total)
        assert marginals._Trees(pipe, draw.random(len(cost))).least(own, cost) == pytest.approx(least)


def test_far_more_is_dropped_than_reduced_costs_alone_drop() -> None:
    pipe, _ = reduce(pipeline_instance(30, 100, 1, slack=0.5))
    branching = branching_over(pipe)
    node = branching.root()
    assert node is not None and node.relaxation is not None and node.relaxation.reduced_costs is not None
    room = 0.003 * node.bound
    alone = node.relaxation.reduced_costs[: len(pipe.keys)] <= room
    kept = branching.left(node, node.bound + room)
    assert not (
        kept & ~alone & (node.relaxation.reduced_costs[: len(pipe.keys)] > room + SAFE * node.bound)
    ).any()
    assert kept.sum() < 0.6 * alone.sum()
    assert kept[node.x > 1e-6].all()


def test_what_is_too_large_to_look_at_is_priced_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, _ = reduce(pipeline_instance(30, 100, 1, slack=0.5))
    branching = branching_over(pipe)
    node = branching.root()
    assert node is not None and node.relaxation is not None and node.relaxation.reduced_costs is not None
    cutoff = 1.003 * node.bound
    looked_at = branching.left(node, cutoff)
    monkeypatch.setattr(marginals, "MOST_PAIRS", 1)
    alone = branching.left(node, cutoff)
    dear = node.relaxation.reduced_costs[: len(pipe.keys)] > cutoff * (1 + SAFE) - node.bound
    assert (alone == ~dear).all() and looked_at.sum() < alone.sum()


def test_the_nearest_candidates_are_those_that_the_relaxation_uses_and_few_others() -> None:
    """Every task has one, a larger number holds a smaller one, and a good plan is among a tenth of all."""
    pipe, _ = reduce(pipeline_instance(30, 100, 1, slack=0.5))
    choice = local_choice(pipe)
    assert choice is not None
    search: Search[Ints] = Search(SolveOptions(gap=0.0))
    branching = Branching(search, pipe, np.arange(len(pipe.keys)))
    node = branching.root()
    assert node is not None
    assert not branching.nearest(node, 100).any()  # no plan says what is near
    search.offer(choice, follow(pipe, choice).cost_usd)
    few, more = branching.nearest(node, 100), branching.nearest(node, 200)
    assert branching.complete(few) and few[node.x > 1e-6].all() and (more | ~few).all()
    assert few.sum() < 0.1 * len(few) and more.sum() >= 200
    part = branching.part(few)
    root = part.root()
    assert root is not None
    part.explore(root, gap=1e-3, most=100)
    assert search.cost < follow(pipe, choice).cost_usd and search.cost <= 1.005 * node.bound
