"""Branching over the relaxation, the least-time dive, and one clock: what each of them claims is true."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.instances.pipeline import pipeline_instance
from catalogs.tables.table import Ints
from planner.pipelines.branch import SOON, TIME_TOLERANCE, Branching, Node
from planner.pipelines.local_search import LocalSearch, least, local_choice, shortest
from planner.pipelines.question import PipelineInput, cheapest_usd, follow, reduce
from planner.pipelines.solve import least_hours, solve_pipeline
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from solvers.search.search import Search
from tests.draws import share_of
from tests.planner.pipelines.test_model import CLOSE, every_choice, least_cost, small

NO_TIME = 1e-6
PER_BLOCK = share_of(25)


@pytest.mark.parametrize("block", range(8))
def test_branching_equals_enumeration(block: int) -> None:
    for seed in range(PER_BLOCK * block, PER_BLOCK * (block + 1)):
        pipe = small(seed)
        best = least_cost(pipe)
        result = solve_pipeline(pipe, SolveOptions(gap=0.0), method="milp", whole_below=0)
        if math.isinf(best):
            assert (result.status, result.course) == (Status.INFEASIBLE, None), seed
            continue
        assert result.course is not None, seed
        assert result.course.cost_usd == pytest.approx(best, rel=CLOSE), seed
        assert result.bound_usd <= best + CLOSE * max(best, 1.0), seed
        assert result.course.end_hours.max() <= pipe.deadline_hours * (1 + TIME_TOLERANCE)


def test_branching_closes_the_gap_that_one_model_closes() -> None:
    pipe = pipeline_instance(12, 40, 1, slack=0.3)  # the best choice is on the side looked at second
    options = SolveOptions(gap=1e-4, time_limit_s=60.0)
    branched = solve_pipeline(pipe, options, method="milp", whole_below=0)
    whole = solve_pipeline(pipe, options, method="milp", whole_below=10**9)
    assert branched.course is not None and whole.course is not None
    assert (branched.status, whole.status) == (Status.OPTIMAL, Status.OPTIMAL)
    assert branched.course.cost_usd == pytest.approx(whole.course.cost_usd, rel=2e-4)
    assert max(branched.bound_usd, whole.bound_usd) <= min(branched.course.cost_usd, whole.course.cost_usd)


def test_what_a_node_drops_no_cheaper_choice_has() -> None:
    """Every choice below the cutoff that is within the node is within what the node keeps."""
    checked = 0
    for seed in range(120):
        pipe, _ = reduce(small(seed))
        if len(np.unique(pipe.task)) < pipe.n_tasks:
            continue
        search: Search[Ints] = Search(SolveOptions(gap=0.0))
        branching = Branching(search, pipe, np.arange(len(pipe.keys)))
        node = branching.root()
        best = least_cost(pipe)
        if node is None or math.isinf(best):
            continue
        kept = np.flatnonzero(branching.left(node, best))
        assert least_cost(pipe.take(kept)) == pytest.approx(best, rel=CLOSE), seed
        assert node.bound <= best + CLOSE * best
        checked += 1
    assert checked > 60


@pytest.mark.parametrize("seed", range(4))
def test_a_part_of_the_model_bounds_what_the_candidates_alone_would(seed: int) -> None:
    """The relaxation of some candidates is the same by a part of the model of all and by a model of their own."""
    pipe, _ = reduce(pipeline_instance(12, 30, seed, slack=0.4))
    draw = np.random.default_rng(seed)
    allowed = (draw.random(len(pipe.keys)) < 0.5) | (pipe.place == 0)
    allowed[least(pipe, pipe.hours)] = True
    search: Search[Ints] = Search(SolveOptions())
    part = Branching(search, pipe, np.arange(len(pipe.keys))).part(allowed).root()
    alone = Branching(search, pipe, np.flatnonzero(allowed)).root()
    assert part is not None and alone is not None
    assert part.bound == pytest.approx(alone.bound, rel=1e-9)


def test_the_two_sides_of_a_split_part_one_task_and_lose_no_choice() -> None:
    pipe, _ = reduce(pipeline_instance(15, 40, 3, slack=0.3))
    branching = Branching(Search(SolveOptions()), pipe, np.arange(len(pipe.keys)))
    node = branching.root()
    assert isinstance(node, Node)
    split = branching._split(node)
    assert split is not None
    own = (pipe.task == split.task) & (node.x > 1e-6)
    assert (own & split.inside).any() and (own & ~split.inside).any()
    sides = branching._sides(node, node.allowed, split, math.inf)
    assert sides is not None and len(sides) == 2
    assert (sides[0].allowed | sides[1].allowed).all()
    (task,) = np.unique(pipe.task[~(sides[0].allowed & sides[1].allowed)])
    assert (sides[0].allowed ^ sides[1].allowed)[pipe.task == task].all()


@pytest.mark.parametrize("seed", range(6))
def test_what_could_stand_in_for_a_candidate_is_on_its_side(seed: int) -> None:
    """A task at several groups of places is decided by whole groups, one within a group by its hours."""
    pipe, _ = reduce(pipeline_instance(15, 40, seed, slack=0.3))
    branching = Branching(Search(SolveOptions()), pipe, np.arange(len(pipe.keys)))
    node = branching.root()
    assert isinstance(node, Node)
    split = branching._split(node)
    assert split is not None
    own = pipe.task == split.task
    inside, outside = own & split.inside, own & ~split.inside
    group, used = pipe.group[pipe.place], node.x > 1e-6
    if len(np.unique(group[own & used])) > 1:
        assert not set(group[inside].tolist()) & set(group[outside].tolist())
    else:
        assert pipe.hours[inside].max() < pipe.hours[outside].min()


@pytest.mark.parametrize("deadline_hours", [1e4, math.inf])
def test_a_task_that_is_mixed_has_candidates_on_both_sides(deadline_hours: float) -> None:
    """Else a split would leave a node as it is. Hours are alike at many places here."""
    alike = 0
    for seed in range(12):
        drawn = pipeline_instance(6, 40, seed, n_places=9)
        pipe, _ = reduce(
            replace(drawn, hours=np.where(drawn.hours > 4.0, 2.0, 1.0), deadline_hours=deadline_hours)
        )
        branching = Branching(Search(SolveOptions()), pipe, np.arange(len(pipe.keys)))
        draw = np.random.default_rng(seed)
        x, used = draw.random(len(pipe.keys)), draw.random(len(pipe.keys)) < 0.2
        inside = branching._inside(np.flatnonzero(used), x[used])
        for task in range(pipe.n_tasks):
            own = np.flatnonzero((pipe.task == task) & used)
            assert len(own) < 2 or 0 < inside[own].sum() < len(own), (seed, task)
            group = pipe.group[pipe.place[own]]
            alike += len(own) > 1 and len({*group.tolist()}) == len({*pipe.hours[own].tolist()}) == 1
    assert alike


@pytest.mark.parametrize("known", [True, False])
def test_rounding_in_vain_is_done_less_often_once_a_plan_is_known(
    known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounding finds nothing here; each node is rounded all the same until there is a plan."""
    pipe, _ = reduce(pipeline_instance(15, 40, 3, slack=0.3))
    search: Search[Ints] = Search(SolveOptions())
    if known:
        search.offer(np.zeros(pipe.n_tasks, dtype=np.int64), 1e9)
    rounded, branched = list[int](), list[int]()
    sides_of = Branching._sides

    def counted(branching: Branching, node: Node, *arguments: Any) -> list[Node] | None:
        branched.append(node.number)
        return sides_of(branching, node, *arguments)

    monkeypatch.setattr(Branching, "_sides", counted)
    monkeypatch.setattr(Branching, "_offer_whole", lambda _, node: None)
    monkeypatch.setattr(Branching, "round", lambda _, node: rounded.append(node.number))
    branching = Branching(search, pipe, np.arange(len(pipe.keys)))
    root = branching.root()
    assert root is not None
    branching.explore(root, gap=0.0, most=60)
    assert len(branched) >= 15
    if known:
        assert SOON <= len(rounded) < len(branched) - 3
    else:
        assert len(rounded) >= len(branched) - 1


def test_a_plan_exists_at_once_and_its_bound_is_at_least_the_cheapest_ways() -> None:
    pipe = replace(pipeline_instance(20, 2_000, 0, n_places=100), deadline_hours=60.0)
    result = solve_pipeline(pipe, SolveOptions(time_limit_s=NO_TIME))
    assert result.status is Status.FEASIBLE
    assert result.course is not None
    assert result.course.end_hours.max() <= 60.0
    assert result.bound_usd >= math.fsum(cheapest_usd(reduce(pipe)[0])) * (1 - 1e-12) > 0


def _far_apart(deadline_hours: float) -> PipelineInput:
    """Two tasks of an hour each at places 5 h apart: 7 h in all, which windows without moves take for 2."""
    return PipelineInput(
        ("a", "b"), ("a0", "b0"), np.array([0, 1]), np.array([0, 1]), np.array([3.0, 4.0]), np.ones(2),
        np.array([0, 1]), np.array([0]), np.array([1]), np.full((1, 2, 2), 2.0), np.full((1, 2, 2), 5.0),
        deadline_hours,
    )  # fmt: skip


def test_infeasible_is_proven_and_no_time_is_not_a_proof() -> None:
    for deadline, status in ((1.9, Status.INFEASIBLE), (6.9, Status.NO_SOLUTION), (7.0, Status.FEASIBLE)):
        hurried = solve_pipeline(_far_apart(deadline), SolveOptions(time_limit_s=NO_TIME), method="milp")
        assert hurried.status is status, deadline
        assert (hurried.course is None) == (deadline < 7.0)
    assert solve_pipeline(_far_apart(6.9), method="milp").status is Status.INFEASIBLE
    assert solve_pipeline(_far_apart(6.9)).status is Status.INFEASIBLE
    said = solve_pipeline(_far_apart(6.9), SolveOptions(time_limit_s=NO_TIME), method="milp")
    assert "no plan found within" in said.message
    assert said.bound_usd == 7.0


def test_least_hours_are_known_without_any_time() -> None:
    for seed in range(40):
        pipe = small(seed)
        hours, bound = least_hours(pipe, SolveOptions(time_limit_s=NO_TIME))
        truth = min(end for _, end in every_choice(pipe))
        assert bound <= truth + 1e-9 <= hours + 2e-9, seed


def test_the_dive_and_the_changes_keep_what_they_promise() -> None:
    for seed in range(120):
        pipe, _ = reduce(small(seed))
        if len(np.unique(pipe.task)) < pipe.n_tasks:
            continue
        chosen = local_choice(pipe)
        if chosen is not None:
            assert follow(pipe, chosen).end_hours.max(initial=0.0) <= pipe.deadline_hours
        elif pipe.timed:
            quickest = follow(pipe, shortest(pipe)).end_hours.max()
            assert quickest > pipe.deadline_hours
        start = least(pipe, pipe.cost_usd)
        search = LocalSearch(pipe, start)
        kept = search.kept
        search.improve(thrifty=False)
        assert follow(pipe, search.chosen).cost_usd <= follow(pipe, start).cost_usd + 1e-9
        assert search.kept or not kept


def test_a_choice_changed_task_by_task_is_known_as_well_as_one_looked_at_afresh() -> None:
    """Costs and slack after many changes are those of the choice they lead to."""
    for seed in range(20):
        pipe, _ = reduce(pipeline_instance(9, 12, seed, slack=0.3 if seed % 4 else None, n_places=4))
        draw = np.random.default_rng(seed)
        changed = LocalSearch(pipe, least(pipe, pipe.cost_usd))
        for _ in range(30):
            task = int(draw.integers(pipe.n_tasks))
            changed.change(task, int(draw.choice(changed.candidates(task))))
        afresh = LocalSearch(pipe, changed.chosen)
        assert changed.kept == afresh.kept
        for task in range(pipe.n_tasks):
            for one, other in zip(changed.options(task), afresh.options(task), strict=True):
                assert (one == other).all(), (seed, task)
        cost = changed.options(0)[0][np.searchsorted(changed.candidates(0), changed.chosen[0])]
        course = follow(pipe, changed.chosen)
        of_task = course.move_usd[(pipe.source == 0) | (pipe.target == 0)].sum()
        assert cost == pytest.approx(pipe.cost_usd[changed.chosen[0]] + of_task)


def test_a_trade_between_two_tasks_never_costs_more_and_keeps_the_deadline() -> None:
    """From local optima, at any of which no single change saves."""
    traded = 0
    for seed in range(120):
        drawn = small(seed) if seed % 2 else pipeline_instance(9, 15, seed, slack=0.4, n_places=3)
        pipe, _ = reduce(drawn)
        chosen = local_choice(pipe) if len(np.unique(pipe.task)) == pipe.n_tasks else None
        if chosen is None:
            continue
        search = LocalSearch(pipe, chosen)
        search.trade()
        before, after = follow(pipe, chosen), follow(pipe, search.chosen)
        assert (pipe.task[search.chosen] == np.arange(pipe.n_tasks)).all()
        assert after.end_hours.max(initial=0.0) <= pipe.deadline_hours, seed
        assert after.cost_usd <= before.cost_usd, seed
        traded += after.cost_usd < before.cost_usd
    assert traded > 5


def test_two_tasks_trade_time_where_neither_can_change_alone() -> None:
    """A chain of two, each slow and cheap or fast and dear: the wrong one of them is fast."""
    pipe = PipelineInput(
        ("a", "b"), ("a slow", "a fast", "b slow", "b fast"), np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64),
        np.array([1.0, 9.0, 1.0, 3.0]), np.array([2.0, 1.0, 2.0, 1.0]), np.array([0]), np.array([0]), np.array([1]),
        np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), 3.0,
    )  # fmt: skip
    search = LocalSearch(pipe, np.array([1, 2]))
    search.improve(thrifty=False)
    assert search.chosen.tolist() == [1, 2]
    search.trade()
    assert search.chosen.tolist() == [0, 3]
    without = LocalSearch(replace(pipe, deadline_hours=math.inf), np.array([1, 2]))
    without.trade()  # without a deadline no time is traded
    assert without.chosen.tolist() == [1, 2]


def test_small_and_large_money_in_one_pipeline() -> None:
    """Half a thousandth of a dollar beside a million: the choice is exact in both."""
    for whole_below in (0, 10**6):
        pipe = PipelineInput(
            ("tiny", "huge", "both"), tuple("abcdef"), np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 0, 1]),
            np.array([0.0005, 0.0007, 1e6, 1.5e6, 0.02, 0.01]), np.array([2.0, 1.0, 9.0, 8.0, 1.0, 1.0]),
            np.array([0, 1]), np.array([0, 1, 0]), np.array([1, 2, 2]), np.full((3, 2, 2), 3e-4),
            np.full((3, 2, 2), 1e-9), 30.0,
        )  # fmt: skip
        result = solve_pipeline(pipe, SolveOptions(gap=1e-4), method="milp", whole_below=whole_below)
        assert result.status is Status.OPTIMAL
        assert result.course is not None
        assert result.course.cost_usd == pytest.approx(least_cost(pipe), abs=1e-9)
        assert result.bound_usd <= result.course.cost_usd
