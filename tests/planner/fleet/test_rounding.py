"""Work in whole runs: the division found is the cheapest of all that meet every limit, and none is missed."""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import replace

import numpy as np
import pytest

from planner.candidates.constraints.base import Use
from planner.fleet.mix import Mix
from planner.fleet.question import FleetInput, violations
from planner.fleet.rounding import build_whole_runs, cheapest_runs
from planner.fleet.whole_runs import in_runs, model_cost
from planner.fleet.workers import Workers
from solvers.problem.milp import Milp
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Solution, Status, Termination
from tests.lp_text import lp_text
from tests.planner.fleet.test_model_goldens import FOLDER

UNITS = 8.0  # of a run


def mix_of(
    count: np.ndarray, speed: np.ndarray, runs_limit: np.ndarray, done: np.ndarray, usd: np.ndarray
) -> Mix:
    """Lines of workers that do `speed` units an hour, and `done` runs together, perhaps in part."""
    n = len(count)
    figures = {name: np.zeros(n) for name in Workers.__dataclass_fields__} | {
        "at": np.arange(n), "rows": np.arange(n), "nodes": np.ones(n, dtype=np.int64), "units_per_hour": speed,
        "hours_limit": runs_limit * UNITS / speed, "runs_limit": runs_limit, "usd_per_hour": usd,
        "left_hours": np.full(n, np.inf),
    }  # fmt: skip
    hours = done * UNITS / speed / count
    return Mix(np.arange(n), Workers(**figures), count, hours, 100.0, float(done.sum() * UNITS), None)


def drawn(seed: int) -> tuple[Mix, FleetInput]:
    """Up to four lines whose work divides at random, under random shares and a limit on what workers use."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 5))
    count, runs_limit = draw.integers(1, 4, n), draw.integers(1, 4, n).astype(float)
    speed, usd = draw.choice([1.0, 2.0, 3.0], n), draw.integers(1, 9, n) / 2
    runs = int(draw.integers(1, max(2, int(count @ runs_limit) + 1)))
    part = count * runs_limit
    done = part * runs / part.sum()
    mix = mix_of(count, speed, runs_limit, done, usd)
    fixed = draw.choice([0.0, 0.5, 2.0], n)
    limits = {
        name: float(draw.choice([0.4, 0.5, 0.7])) if draw.random() < 0.4 else None
        for name in (
            "max_spot_share",
            "max_share_per_region",
            "max_share_per_provider",
            "max_share_per_offer",
        )
    }
    per_worker, per_busy = draw.integers(0, 3, n).astype(float), draw.integers(0, 4, n).astype(float)
    use = Use(
        "carbon",
        "",
        per_worker,
        float(per_worker @ count + per_busy @ count) * draw.uniform(0.3, 1.0),
        per_busy,
    )
    question = FleetInput(
        keys=tuple(range(n)), cost_usd=fixed + usd * mix.workers.hours_limit, fixed_cost_usd=fixed,
        throughput=runs_limit * UNITS, required_throughput=runs * UNITS, max_units=count.astype(float),
        region=draw.integers(0, 3, n), provider=draw.integers(0, 2, n), is_spot=draw.random(n) < 0.5,
        uses=(use,) if draw.random() < 0.4 else (), **limits,
    )  # fmt: skip
    return mix, question


def least(mix: Mix, question: FleetInput, *, keep_idle: bool = False) -> float:
    """The least cost of whole runs of each line that meet every limit, by trying all; infinite: there are none."""
    runs, limit = round(mix.work / UNITS), mix.workers.runs_limit
    best = math.inf
    for done in itertools.product(*(range(int(most) + 1) for most in mix.count * limit)):
        if sum(done) != runs:
            continue
        units = mix.count.astype(float) if keep_idle else np.ceil(np.asarray(done) / limit)
        busy = np.asarray(done) / limit
        if not violations(question, units, busy):
            best = min(best, question.cost_of(units, busy))
    return best


@pytest.mark.parametrize("block", range(4))
def test_whole_runs_are_the_cheapest_of_all(block: int) -> None:
    possible = 0
    for seed in range(block * 40, block * 40 + 40):
        mix, question = drawn(seed)
        best = least(mix, question)
        runs, rounded = cheapest_runs(mix, question, UNITS, keep_idle=False), in_runs(mix, question, UNITS)
        assert (rounded is None) == (runs is None) == math.isinf(best), seed
        if runs is None or rounded is None:
            continue
        possible += 1
        busy = runs / mix.workers.runs_limit
        assert question.cost_of(np.ceil(busy), busy) == pytest.approx(best), seed
        assert model_cost(rounded, question) >= best - 1e-9, seed
        assert (rounded.units / UNITS).sum() == pytest.approx(round(mix.work / UNITS)), seed
    assert 8 <= possible <= 32  # both answers are exercised


def test_hours_in_reserve_hide_no_division() -> None:
    """A reserve of a fifth may ask for more workers than limits allow; whole runs there are as there are without it."""
    possible = spread = 0
    for seed in range(300, 380):
        mix, question = drawn(seed)
        workers = replace(mix.workers, hours_limit=mix.workers.hours_limit * 0.8)
        uses = tuple(
            replace(use, per_busy=use.per_busy * 0.8) for use in question.uses if use.per_busy is not None
        )
        question = replace(question, throughput=question.throughput * 0.8, uses=uses)
        rounded = in_runs(replace(mix, workers=workers), question, UNITS)
        limit, runs = mix.workers.runs_limit, round(mix.work / UNITS)
        ways = (
            np.asarray(done)
            for done in itertools.product(*(range(int(most) + 1) for most in mix.count * limit))
            if sum(done) == runs
        )
        keeps = any(
            {one.limit_name for one in violations(question, np.ceil(done / limit), done / limit / 0.8)}
            <= {"hours"}
            for done in ways
        )
        assert (rounded is not None) == keeps, seed
        possible += keeps
        spread += rounded is not None and bool((rounded.hours <= rounded.workers.hours_limit).all())
    assert 16 <= possible <= 64 and spread  # both answers are exercised, and reserves kept where limits allow


def test_workers_kept_for_their_memory_use_what_idle_ones_use() -> None:
    possible = 0
    for seed in range(200, 240):
        mix, question = drawn(seed)
        runs, best = cheapest_runs(mix, question, UNITS, keep_idle=True), least(mix, question, keep_idle=True)
        assert (runs is None) == math.isinf(best), seed
        if runs is not None:
            possible += 1
            cost = question.cost_of(mix.count.astype(float), runs / mix.workers.runs_limit)
            assert cost == pytest.approx(best), seed
    assert 8 <= possible <= 32


def test_golden() -> None:
    """The mathematics, readable; `UPDATE_GOLDENS=1` rewrites it."""
    mix, question = drawn(2)
    question = replace(question, max_share_per_region=0.7)
    text = lp_text(build_whole_runs(mix, question, UNITS, keep_idle=False))
    path = FOLDER / "fleet_whole_runs.lp"
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_one_division_that_keeps_all_shares_is_found_among_thousands() -> None:
    """Half a run is left on each of 16 lines: 12,870 ways to round, of which shares of regions allow few."""
    n = 16
    usd = np.arange(1.0, n + 1)
    mix = mix_of(np.ones(n, dtype=np.int64), np.ones(n), np.full(n, 2.0), np.full(n, 1.5), usd)
    question = FleetInput(
        keys=tuple(range(n)), cost_usd=usd * mix.workers.hours_limit, fixed_cost_usd=np.zeros(n),
        throughput=np.full(n, 2.0 * UNITS), required_throughput=24 * UNITS,
        region=np.arange(n) // 2, provider=np.arange(n) % 2,
        max_share_per_region=3 / 24, max_share_per_provider=0.5,
    )  # fmt: skip
    rounded = in_runs(mix, question, UNITS)
    assert rounded is not None
    runs = rounded.units / UNITS
    assert np.bincount(question.region[rounded.numbers], weights=runs).tolist() == [3.0] * 8
    assert np.bincount(question.provider[rounded.numbers], weights=runs).tolist() == [12.0, 12.0]


def test_the_integer_program_keeps_the_time_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[SolveOptions] = []

    def none_in_time(problem: Milp, options: SolveOptions) -> Solution:
        given.append(options)
        return Solution(Status.NO_SOLUTION, Termination.TIME_LIMIT)

    monkeypatch.setattr("planner.fleet.rounding.solve", none_in_time)
    mix, question = drawn(0)
    assert cheapest_runs(mix, question, UNITS, 0.25, keep_idle=False) is None
    assert [options.time_limit_s for options in given] == [0.25]
