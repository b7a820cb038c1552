"""Branch and bound over switches finds what a solver finds in the whole model, and claims no more than is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers.execution.solve import solve
from solvers.problem.milp import Milp, MilpBuilder
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Solution
from solvers.search import switches as module
from solvers.search.search import Search
from solvers.search.switches import Branching, Switched

PLACES, EACH = 6, 4


def places(seed: int) -> Switched:
    """Whole machines in places that cost something to open, at most three of them, for a load."""
    random = np.random.default_rng(seed)
    builder = MilpBuilder("places")
    count = PLACES * EACH
    x = builder.add_columns(
        "x",
        list(range(count)),
        cost=random.uniform(3, 9, count),
        upper=random.integers(1, 5, count),
        integer=True,
    )
    y = builder.add_columns(
        "y", [("y", at) for at in range(PLACES)], cost=random.uniform(1, 6, PLACES), upper=1.0, integer=True
    )
    place, columns = np.repeat(np.arange(PLACES), EACH), np.arange(x.start, x.stop)
    rows = builder.add_rows("open", PLACES, upper=0.0)
    builder.add_entries(rows.start + place, columns, 1.0)
    builder.add_entries(np.arange(rows.start, rows.stop), np.arange(y.start, y.stop), -float(EACH * 5))
    load = builder.add_rows("load", 1, lower=float(random.uniform(20, 40)))
    builder.add_entries(load.start, columns, random.uniform(1, 4, count))
    most = builder.add_rows("places", 1, upper=3.0)
    builder.add_entries(most.start, np.arange(y.start, y.stop), 1.0)
    needs = np.concatenate([place, np.full(PLACES, -1)])
    return Switched(builder.build(), np.arange(y.start, y.stop), needs)


def searched(
    model: Switched, options: SolveOptions, most_nodes: int = 1_000
) -> tuple[Search[Solution], float, bool, int]:
    """The search after it; its bound; whether it ended; relaxations taken."""
    search: Search[Solution] = Search(options)
    branching = Branching(search, model, lambda found: search.offer(found, found.objective) and None, 0.9)
    bound, ended = branching.run(most_nodes)
    return search, bound, ended, branching._count


@pytest.mark.parametrize("backend", ["scipy", "highspy"])
def test_the_optimum_is_that_of_the_whole_model(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW", 3)
    options, nodes = SolveOptions(gap=1e-4, backend=backend), []
    for seed in range(12 if backend == "highspy" else 4):  # HiGHS by way of SciPy takes three times as long
        model = places(seed)
        whole = solve(model.problem, replace(options, gap=0.0))
        search, bound, ended, count = searched(model, options)
        assert ended, seed
        assert search.cost == pytest.approx(whole.objective, rel=1e-4), seed
        assert bound <= whole.objective * (1 + 1e-9), seed
        assert bound >= search.cost * (1 - 1e-4), seed
        nodes.append(count)
    assert max(nodes) > 10  # the switches were branched over


def test_a_search_that_is_stopped_claims_no_more_than_it_has_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW", 3)
    stopped = 0
    for seed in range(8):
        model = places(seed)
        optimum = solve(model.problem, SolveOptions(gap=0.0)).objective
        for most in (1, 3, 7):
            search, bound, ended, _ = searched(model, SolveOptions(gap=1e-4), most)
            assert bound <= optimum * (1 + 1e-9), (seed, most)
            assert not ended or search.cost <= optimum * (1 + 1e-4), (seed, most)
            stopped += not ended
        _, bound, ended, _ = searched(model, SolveOptions(gap=1e-4, time_limit_s=1e-9))
        assert (bound, ended) == (-np.inf, False)
    assert stopped > 8


def test_without_a_point_below_the_cutoff_the_cutoff_is_proven() -> None:
    model = places(0)
    optimum = solve(model.problem, SolveOptions(gap=0.0)).objective
    search: Search[str] = Search(SolveOptions(gap=1e-4))
    search.offer("known", optimum)
    bound, ended = Branching(search, model, lambda _found: pytest.fail("a cheaper one"), 0.9).run(1_000)
    assert ended
    assert bound == pytest.approx(optimum * (1 - 0.9e-4))


def test_a_closed_switch_takes_its_columns_out_of_the_model() -> None:
    model = places(1)
    upper = model.problem.ub.copy()
    upper[model.switches[[0, 4]]] = 0.0
    upper = model.closed(upper)
    left = model.under(upper)
    assert left.problem.n_columns == (PLACES - 2) * (EACH + 1)
    assert left.problem.column_keys == tuple(
        key for key, most in zip(model.problem.column_keys, upper, strict=True) if most
    )
    keys = [left.problem.column_keys[at] for at in left.switches]
    assert keys == [("y", at) for at in (1, 2, 3, 5)]
    for column, needed in enumerate(left.needs):
        key = left.problem.column_keys[column]
        assert needed == (-1 if isinstance(key, tuple) else [1, 2, 3, 5].index(key // EACH))
    milp: Milp = left.problem
    assert (
        solve(milp, SolveOptions(gap=0.0)).objective >= solve(model.problem, SolveOptions(gap=0.0)).objective
    )


@pytest.mark.parametrize("backend", ["scipy", "highspy"])
def test_a_node_in_which_every_place_is_closed_has_no_point(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one place its switch off leaves no column at all; the load still asks for some."""
    monkeypatch.setattr(module, "FEW", 1)
    monkeypatch.setattr(f"{__name__}.PLACES", 1)
    for seed in range(6):
        model = places(seed)
        sides = np.where(model.problem.row_lo > 0, 6.0, model.problem.row_lo)
        model = replace(model, problem=replace(model.problem, row_lo=sides))
        optimum = solve(model.problem, SolveOptions(gap=0.0)).objective
        search, bound, ended, count = searched(model, SolveOptions(gap=1e-4, backend=backend))
        assert ended and count > 1, seed
        assert search.cost == pytest.approx(optimum, rel=1e-4), seed
        assert bound <= optimum * (1 + 1e-9), seed


def test_what_is_left_of_a_node_leaves_others_the_time_they_were_promised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given, asked = [], Search.solve

    def watched(
        search: Search[Solution], problem: Milp, limit_s: float, **changes: object
    ) -> Solution | None:
        given.append(limit_s)
        return asked(search, problem, limit_s, **changes)

    monkeypatch.setattr(Search, "solve", watched)
    search: Search[Solution] = Search(SolveOptions(gap=1e-4, time_limit_s=100.0))
    branching = Branching(search, places(0), lambda found: search.offer(found, found.objective) and None, 0.9)
    _, ended = branching.run(1_000, leave_s=40.0)
    assert ended and given and max(given) <= 60.0
