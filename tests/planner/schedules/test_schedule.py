"""Schedules against enumeration of every way to run, their laws, and what is said where nothing fits."""

from __future__ import annotations

import functools
import itertools
import math
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.instances.schedule import schedule_instance
from planner.schedules import relaxation
from planner.schedules.answer import money
from planner.schedules.model import build_schedule
from planner.schedules.question import ScheduleInput, evaluate, most_work
from planner.schedules.relaxation import apply_remedy, explain_schedule
from planner.schedules.solve import ScheduleResult, solve_schedule
from solvers.problem.errors import ModelError
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Solution, Status, Termination
from tests.draws import draws
from tests.lp_text import lp_text

EXACT = SolveOptions(gap=0.0, backend="auto")
SCIPY = SolveOptions(gap=0.0)  # a second model by the backend that is always there
GOLDEN = Path(__file__).parents[2] / "fixtures" / "lp" / "schedule.lp"
MOST = 2
PER_BLOCK = 12  # `python -m benchmarks.brute_force --family schedule` draws more
PER_JOB = ("work", "speed", "first", "last", "min_nodes", "max_nodes", "one_region", "copy_usd",
           "keep_usd_per_hour", "ready")  # fmt: skip
SEEDS = st.integers(10_000, 20_000)


def small(seed: int, *, jobs: int | None = None) -> ScheduleInput:
    """One job over up to 4 hours, or two over 2; 2 pools in 1 or 2 regions, up to 2 nodes in each."""
    draw = np.random.default_rng(seed)
    n_jobs = jobs or int(draw.choice([1, 1, 1, 2]))
    n_hours = 2 if n_jobs == 2 else int(draw.integers(2, 5))
    n_regions = int(draw.integers(1, 3))
    first = draw.integers(0, 2, n_jobs)
    min_nodes = draw.integers(1, 3, n_jobs)
    speed = draw.integers(0, 4, (n_jobs, 2))
    return ScheduleInput(
        pools=("p", "q"), regions=tuple(f"c/r{k}" for k in range(n_regions)),
        region=np.asarray([0, n_regions - 1], dtype=np.int64),
        usd_per_hour=draw.integers(1, 20, (n_hours, 2)).astype(np.float64),
        available=draw.integers(0, MOST + 1, (n_hours, 2)).astype(np.float64),
        offered=draw.random((n_hours, 2)) < 0.9,
        startup_hours=draw.choice([0.0, 0.25, 1.0], 2), startup_usd=draw.choice([0.0, 3.0], 2),
        jobs=tuple(f"j{k}" for k in range(n_jobs)), work=draw.integers(1, 12, n_jobs).astype(np.float64),
        speed=speed.astype(np.float64), first=first.astype(np.int64),
        last=np.asarray([int(draw.integers(f + 1, n_hours + 1)) for f in first], dtype=np.int64),
        min_nodes=min_nodes.astype(np.int64),
        max_nodes=np.asarray([int(draw.integers(low, 5)) for low in min_nodes], dtype=np.int64),
        one_region=draw.random(n_jobs) < 0.5, copy_usd=draw.choice([0.0, 6.0, 15.0], (n_jobs, n_regions)),
        keep_usd_per_hour=draw.choice([0.0, 0.5, 4.0], (n_jobs, n_regions)),
        ready=draw.integers(0, 2, (n_jobs, n_regions)).astype(np.int64),
    )  # fmt: skip


@functools.cache
def nodes_of_every_way(n_jobs: int, n_hours: int) -> np.ndarray:
    """Up to `MOST` nodes of two pools in every hour of every job, in every way, shape (N, J, T, 2)."""
    cells = itertools.product(range(MOST + 1), repeat=n_jobs * n_hours * 2)
    ways = np.asarray(list(cells), dtype=np.float64).reshape(-1, n_jobs, n_hours, 2)
    ways.flags.writeable = False
    return ways


def every_way(q: ScheduleInput) -> tuple[np.ndarray, np.ndarray]:
    """Cost (inf: breaks a limit, work apart) and work of every way to run, shapes (N,) and (N, J).

    Written from the definitions for itself; nothing of the model is used.
    """
    n_jobs, n_hours = len(q.jobs), q.n_hours
    n = nodes_of_every_way(n_jobs, n_hours)
    cost = (n * q.usd_per_hour).sum(axis=(1, 2, 3))
    bad = (n.sum(axis=1) > np.where(q.offered, q.available, 0)).any(axis=(1, 2))
    for j in range(n_jobs):
        before = np.zeros_like(n[:, 0, 0])
        for t in range(n_hours):
            now = n[:, j, t]
            cost += (np.maximum(now - before, 0) * (q.startup_hours * q.usd_per_hour[t] + q.startup_usd)).sum(
                axis=1
            )
            total = now.sum(axis=1)
            bad |= (total > 0) & ((total < q.min_nodes[j]) | (total > q.max_nodes[j]))
            if not q.first[j] <= t < q.last[j]:
                bad |= total > 0
            for o in range(2):
                if q.speed[j, o] == 0 or t < q.ready[j, q.region[o]]:
                    bad |= now[:, o] > 0
            if q.one_region[j] and q.region[0] != q.region[1]:
                bad |= (now > 0).all(axis=1)
            before = now
        for r in range(len(q.regions)):
            there = (n[:, j][:, :, q.region == r] > 0).any(axis=2)
            last_use = np.where(there, np.arange(1, n_hours + 1), 0).max(axis=1)
            kept = last_use - q.first[j]
            cost += np.where(last_use > 0, q.copy_usd[j, r] + q.keep_usd_per_hour[j, r] * kept, 0.0)
    return np.where(bad, np.inf, cost), (n * q.speed[:, None, :]).sum(axis=(2, 3))


def least(q: ScheduleInput) -> float:
    return least_of(q, *every_way(q))


def least_of(q: ScheduleInput, cost: np.ndarray, work: np.ndarray) -> float:
    """The least cost of the ways that do all of the work."""
    return float(np.where((work >= q.work).all(axis=1), cost, np.inf).min())


def usd(result: ScheduleResult) -> float:
    return result.usd if result.nodes else math.inf


def cheapest(q: ScheduleInput) -> float:
    return usd(solve_schedule(q, EXACT))


def check_schedule(seed: int) -> None:
    """The model equals enumeration; where nothing fits, what is missing at best is the enumeration's too."""
    q = small(seed)
    result, (cost, work) = solve_schedule(q, EXACT), every_way(q)
    assert usd(result) == pytest.approx(least_of(q, cost, work), abs=1e-6), seed
    if seed % 2:  # the way of large models, copies first
        other = solve_schedule(q, SCIPY, whole_below=0)
        assert other.status is result.status and usd(other) == pytest.approx(usd(result), abs=1e-6), seed
        loose = solve_schedule(q, SolveOptions(gap=0.3), whole_below=0)
        assert loose.status is result.status and usd(loose) >= usd(result) - 1e-6, seed
        assert not loose.nodes or loose.bound_usd <= result.usd + 1e-5, seed
    if result.nodes:
        assert result.evaluation is not None and not result.evaluation.faults
        assert result.bound_usd == pytest.approx(result.usd, rel=1e-5, abs=1e-5)
    else:
        assert result.status is Status.INFEASIBLE
        missing = explain_schedule(q, EXACT).missing
        short = (np.maximum(q.work - work, 0.0) / q.work).sum(axis=1)
        assert missing is not None
        assert (missing / q.work).sum() == pytest.approx(short[np.isfinite(cost)].min(), abs=2e-4), seed


@pytest.mark.parametrize("block", range(8))
def test_schedules_equal_enumeration(block: int) -> None:
    for seed in range(PER_BLOCK * block, PER_BLOCK * (block + 1)):
        check_schedule(seed)


@given(SEEDS, st.sampled_from([1e-6, 1e-3, 2.0, 1e3]))
@draws(40)
def test_units_and_doubled_prices(seed: int, scale: float) -> None:
    q = small(seed)
    best = cheapest(q)
    dearer = replace(q, usd_per_hour=q.usd_per_hour * scale, startup_usd=q.startup_usd * scale,
                     copy_usd=q.copy_usd * scale, keep_usd_per_hour=q.keep_usd_per_hour * scale)  # fmt: skip
    assert cheapest(dearer) == pytest.approx(best * scale, rel=1e-6)
    assert cheapest(replace(q, work=q.work * scale, speed=q.speed * scale)) == pytest.approx(best, rel=1e-6)


@given(SEEDS)
@draws(30)
def test_order_of_pools_and_jobs_does_not_matter(seed: int) -> None:
    q = small(seed)
    turned = replace(q, pools=q.pools[::-1], region=q.region[::-1], usd_per_hour=q.usd_per_hour[:, ::-1],
                     available=q.available[:, ::-1], offered=q.offered[:, ::-1], startup_usd=q.startup_usd[::-1],
                     startup_hours=q.startup_hours[::-1], speed=q.speed[::-1, ::-1], jobs=q.jobs[::-1],
                     work=q.work[::-1], first=q.first[::-1], last=q.last[::-1], min_nodes=q.min_nodes[::-1],
                     max_nodes=q.max_nodes[::-1], one_region=q.one_region[::-1], copy_usd=q.copy_usd[::-1],
                     keep_usd_per_hour=q.keep_usd_per_hour[::-1], ready=q.ready[::-1])  # fmt: skip
    assert cheapest(turned) == pytest.approx(cheapest(q), rel=1e-6)


@given(
    SEEDS,
    st.sampled_from(["last", "first", "available", "max_nodes", "min_nodes", "one_region", "ready", "work"]),
)
@draws(60)
def test_a_wider_limit_never_costs_more(seed: int, limit: str) -> None:
    q = small(seed)
    free = replace(q, keep_usd_per_hour=np.zeros_like(q.keep_usd_per_hour)) if limit == "first" else q
    wider = {
        "last": replace(free, last=np.minimum(q.last + 1, q.n_hours)),
        "first": replace(free, first=np.zeros_like(q.first)),
        "available": replace(free, available=q.available + 1),
        "max_nodes": replace(free, max_nodes=q.max_nodes + 1),
        "min_nodes": replace(free, min_nodes=np.ones_like(q.min_nodes)),
        "one_region": replace(free, one_region=np.zeros_like(q.one_region)),
        "ready": replace(free, ready=np.zeros_like(q.ready)),
        "work": replace(free, work=q.work * 0.75),
    }[limit]
    assert cheapest(wider) <= cheapest(free) * (1 + 1e-6) + 1e-6


def test_remedies_help_and_nothing_less_does() -> None:
    told = 0
    for seed in range(30_000, 30_080):
        q = small(seed)
        if cheapest(q) < math.inf:
            continue
        for remedy in explain_schedule(q, EXACT).remedies:
            told += 1
            assert cheapest(apply_remedy(q, remedy)) < math.inf, (seed, remedy)
            if remedy.amount > 1:
                less = replace(remedy, amount=remedy.amount - 1)
                assert cheapest(apply_remedy(q, less)) == math.inf, (seed, remedy)
    assert told > 20


@pytest.mark.parametrize("seed", [30_005, 30_066])
def test_where_time_ends_remedies_help_though_less_may_do(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock passes the limit after so many readings, wherever the search is then."""
    q, options = small(seed), replace(EXACT, time_limit_s=1.0)
    least, larger, late = explain_schedule(q, EXACT).remedies, 0, 0
    for readings in range(1, 60):
        moments = iter([0.0] * readings + [10.0] * 1_000)
        clock = SimpleNamespace(perf_counter=moments.__next__)
        monkeypatch.setattr(relaxation, "time", clock)
        found = explain_schedule(q, options)
        assert not found.in_time or found.remedies == least
        late += not found.in_time
        for remedy in found.remedies:
            assert cheapest(apply_remedy(q, remedy)) < math.inf, (readings, remedy)
            larger += remedy not in least
    assert 5 < late < 59 and larger > 0


def test_a_time_limit_ends_with_a_schedule() -> None:
    """No time for any solver: a schedule, and no claim that it is the cheapest."""
    q = schedule_instance(48, 6, 1, one_region=True)
    for whole_below in (0, 10**9):
        result = solve_schedule(q, SolveOptions(time_limit_s=1e-9), whole_below=whole_below)
        assert result.status is Status.FEASIBLE and result.nodes and result.gap == 1 and result.bound_usd == 0


def test_an_interruption_ends_with_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a bound is sought: no traceback, no further solving."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("solvers.search.search.relax", interrupt)
    q = schedule_instance(24, 6, 1, one_region=True)
    result = solve_schedule(q, EXACT, whole_below=0)
    assert result.status is Status.FEASIBLE and result.nodes


def test_a_false_claim_that_nothing_fits_is_the_solvers_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Solution(Status.INFEASIBLE, Termination.INFEASIBLE, bound=math.inf)
    monkeypatch.setattr("solvers.search.search.solve", lambda *_: empty)
    with pytest.raises(ModelError, match="one is known: its fault"):
        solve_schedule(schedule_instance(24, 6, 1, one_region=True))


@pytest.mark.parametrize("one_region", [False, True])
def test_a_day_over_six_pools(one_region: bool) -> None:
    q = schedule_instance(24, 6, 3, one_region=one_region)
    result = solve_schedule(q, SolveOptions(gap=1e-3, backend="auto"))
    assert result.status is Status.OPTIMAL and 0 <= result.gap <= 1e-3
    assert (most_work(q) >= q.work).all()


def test_the_evaluation_by_hand() -> None:
    """2 nodes for 2 hours at 3 and 5, a third joins: 3 starts; the copy is kept for 2 hours."""
    q = replace(
        small(1, jobs=1), usd_per_hour=np.array([[3.0, 1.0], [5.0, 1.0]]), available=np.full((2, 2), 9.0),
        offered=np.ones((2, 2), dtype=np.bool_), startup_hours=np.array([0.5, 0.0]), startup_usd=np.array([1.0, 0.0]),
        regions=("c/r",), region=np.zeros(2, dtype=np.int64), work=np.array([5.0]), speed=np.array([[1.0, 0.0]]),
        first=np.array([0]), last=np.array([2]), min_nodes=np.array([1]), max_nodes=np.array([9]),
        copy_usd=np.array([[7.0]]), keep_usd_per_hour=np.array([[0.1]]), ready=np.array([[0]]),
    )  # fmt: skip
    found = evaluate(q, {(0, 0, 0): 2, (0, 1, 0): 3})
    assert found.costs.nodes == 21 and found.costs.starts == Fraction("2") * Fraction("2.5") + Fraction("3.5")
    assert found.costs.copies == 7 and found.costs.storage == Fraction("0.2") and found.work == (Fraction(5),)
    assert not found.faults
    assert evaluate(q, {(0, 0, 0): 4}).faults == ("j0 does 4.0 of 5.0",)
    assert any("cannot run" in fault for fault in evaluate(q, {(0, 0, 1): 1}).faults)
    assert any("more than available" in fault for fault in evaluate(q, {(0, 0, 0): 10}).faults)


def test_bad_shapes_are_refused() -> None:
    with pytest.raises(ModelError, match="work has shape"):
        replace(small(1), work=np.ones(9))
    with pytest.raises(ModelError, match="leaves the forecast"):
        replace(small(1), last=small(1).last + 9)
    with pytest.raises(ModelError, match="below 0"):
        replace(small(1), copy_usd=small(1).copy_usd - 99)
    with pytest.raises(ModelError, match="whole"):
        replace(small(1), available=small(1).available + 0.5)


def test_golden() -> None:
    """`UPDATE_GOLDENS=1` rewrites it."""
    one = schedule_instance(2, 3, 1, one_region=True, regions=2, most=4)
    twice = {name: np.concatenate([getattr(one, name)] * 2) for name in PER_JOB}
    q = ScheduleInput(**{**vars(one), **twice, "jobs": ("gang", "loose")})
    q = replace(q, one_region=np.array([True, False]), min_nodes=np.array([2, 1]), max_nodes=np.array([3, 5]))
    text = lp_text(build_schedule(q))
    if os.environ.get("UPDATE_GOLDENS"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_money_is_written_in_plain_digits_and_exact() -> None:
    assert [str(money(Fraction(value))) for value in (1000, 0, "20.50", "0.41080256")] == [
        "1000", "0", "20.5", "0.41080256",
    ]  # fmt: skip
