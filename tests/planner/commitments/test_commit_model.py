"""The decomposition against the extensive form, the greedy second stage against LPs, and the laws of the model."""

from __future__ import annotations

import contextlib
import functools
import math
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.instances.commit import make_commit
from benchmarks.instances.commit_extensive import build_extensive
from catalogs.tables.table import Floats
from planner.commitments.closed_form import is_separable, solve_separable
from planner.commitments.model import CommitColumn, CommitModel, Hours, first_stage
from planner.commitments.recourse import Recourse, _Chunk
from planner.commitments.solve import Solved, solve_bill, solve_commit
from planner.commitments.use import use_of
from solvers.backends.registry import get_backend
from solvers.execution.solve import solve
from solvers.problem.errors import ModelError
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from solvers.search.decompose import BendersResult, OutOfTimeError, solve_benders
from tests.draws import draws, share_of
from tests.planner.commitments.commit_cases import at_once, random_model

CLOSE = 1e-6
BATCHES = range(6)
# of six batches: 48 questions in the thorough profile; `python -m benchmarks.brute_force` draws more
PER_BATCH = share_of(8)


def benders(model: CommitModel, gap: float = 1e-7) -> BendersResult:
    return solve_benders(first_stage(model), Recourse(model), gap=gap)


@functools.lru_cache(maxsize=100)
def optimum(seed: int, gap: float = 1e-7, later: bool = False) -> BendersResult:
    """The answer to a random question, which several laws compare with."""
    return benders(random_model(seed, later=later), gap)


def extensive(model: CommitModel) -> float:
    options = SolveOptions(gap=1e-9, time_limit_s=math.inf, isolate=False, core_columns=0)
    found = solve(build_extensive(model), options)
    assert found.status is Status.OPTIMAL
    return found.objective


def points(model: CommitModel, seed: int) -> Floats:
    draw = np.random.default_rng(seed)
    rows = [[draw.choice([0.0, c.upper, draw.uniform(0, c.upper)]) for c in model.columns] for _ in range(4)]
    return np.array(rows)


def check_extensive(seed: int, *, later: bool = False) -> None:
    """The decomposition's optimum is that of the question written out."""
    found, truth = optimum(seed, later=later), extensive(random_model(seed, later=later))
    assert found.status is Status.OPTIMAL, seed
    assert found.objective == pytest.approx(truth, rel=CLOSE, abs=1e-7), seed
    assert found.bound <= truth * (1 + 1e-8) + 1e-8, seed


@pytest.mark.parametrize("batch", BATCHES)
def test_the_decomposition_agrees_with_the_extensive_form(batch: int) -> None:
    for seed in range(batch * PER_BATCH, (batch + 1) * PER_BATCH):
        check_extensive(seed)


@pytest.mark.parametrize("seed", (11864, 36059))
def test_a_trifle_beside_whole_columns_that_fill_a_row_does_not_keep_the_optimum_away(seed: int) -> None:
    """The solver's 1e-14 of a continuous column broke the row in every round; the search ended 1.4 % above."""
    check_extensive(seed)


def check_second_stage(seed: int, *, later: bool = False) -> None:
    """The greedy second stage costs what a linear program says."""
    model = replace(random_model(seed, whole=False, later=later), risk_weight=0.0)
    model = replace(model, columns=tuple(replace(c, cost_usd=0.0, upfront_usd=0.0) for c in model.columns))
    recourse = Recourse(model)
    fixed = build_extensive(model)
    for x in points(model, seed)[:2]:
        bounds = np.array(fixed.lb), np.array(fixed.ub)
        bounds[0][: len(x)] = bounds[1][: len(x)] = x
        truth = get_backend("auto").relax(replace(fixed, lb=bounds[0], ub=bounds[1]), math.inf).objective
        assert float(model.probability @ recourse.evaluate(x).value) == pytest.approx(
            truth, rel=1e-9, abs=1e-8
        )


@pytest.mark.parametrize("seed", range(share_of(16)))
def test_the_greedy_second_stage_costs_what_the_linear_program_says(seed: int) -> None:
    check_second_stage(seed)


def cuts_at(model: CommitModel, places: Floats) -> tuple[Floats, Floats, Floats]:
    """Costs at n points, `(n, S)`, and intercepts `(n, S)` and slopes `(n, S, F)` of the cuts there: asked at once."""
    joined, x = at_once(model, places)
    cut, (count, columns) = Recourse(joined).evaluate(x), places.shape
    every = cut.slope.reshape(count, -1, count, columns)
    assert not every[~np.eye(count, dtype=np.bool_)[:, None, :].repeat(every.shape[1], axis=1)].any()
    slope = every[np.arange(count), :, np.arange(count)]
    return cut.value.reshape(count, -1), cut.intercept.reshape(count, -1), slope


def check_cuts(seed: int, *, later: bool = False) -> None:
    """A cut touches the cost at its point and exceeds it nowhere."""
    model = random_model(seed, later=later)
    places = points(model, seed)
    costs, heights, slopes = cuts_at(model, places)
    for number, cost in enumerate(costs):
        cut = heights[number] + places @ slopes[number].T
        assert (np.abs(cut[number] - cost) <= 1e-9 * np.maximum(cost, 1.0)).all()
        assert (cut <= costs + 1e-8 * (1 + costs)).all()


@given(seed=st.integers(0, 10**6))
@draws(50)
def test_a_cut_touches_at_its_point_and_exceeds_the_cost_nowhere(seed: int) -> None:
    check_cuts(seed)


def check_use(seed: int, *, later: bool = False) -> None:
    """The use can be done and costs what the dual says, which proves both (weak duality)."""
    for coarse in (False, True):
        check_use_of(random_model(seed, coarse=coarse, later=later), seed)


def check_use_of(model: CommitModel, seed: int) -> None:
    recourse, places = Recourse(model), points(model, seed)
    alone = recourse.evaluate(places[0]).value  # of one period, or of buying nothing, it has ways of its own
    for x, costs in zip(places, [alone, *cuts_at(model, places[1:])[0]], strict=True):
        cost = 0.0
        for use in use_of(model, x, recourse):
            units, plans = model.coverage(x, use.period)
            demand = np.concatenate([model.hours[number].demand for number in use.blocks])
            served = use.reserved + use.planned + use.spot + use.on_demand
            assert (np.abs(served - demand) <= np.maximum(1e-6 * demand, 1e-9)).all()
            assert min(part.min(initial=0) for part in (use.planned, use.spot, use.on_demand)) >= -1e-9
            assert (use.reserved <= units + 1e-9).all()
            assert (use.spent <= use.owned + plans + 1e-9).all()
            cost += float(use.time @ use.cost_usd)
        assert cost == pytest.approx(float(model.probability @ costs), rel=1e-9, abs=1e-9)


@given(seed=st.integers(0, 10**6))
@example(
    seed=1587
)  # both plans cover everything, but only if each pool goes to the plan that serves it for least
@example(seed=8165)
@draws(50)
def test_the_use_can_be_done_and_costs_what_the_dual_says(seed: int) -> None:
    check_use(seed)


def check_later(seed: int) -> None:
    """All of this where some columns begin in later periods."""
    for check in (check_extensive, check_second_stage, check_cuts, check_use):
        check(seed, later=True)


@pytest.mark.parametrize("seed", range(share_of(16)))
def test_what_begins_later_keeps_these_laws(seed: int) -> None:
    check_later(seed)


def test_plans_that_a_pool_may_share_are_both_filled() -> None:
    """One hour, on-demand 4 each: pool c may go to either plan, a and b to one each; all dollars of both plans count.

    Plan 1 asks 2 for a and c, plan 2 asks 2 for b and c; 8 dollars each, for 5 c and 4 of a and b: 8 of 13 units are
    covered, so that 5 are left on demand.
    """
    rate = np.array([[2.0, np.inf, 2.0], [np.inf, 2.0, 2.0]])
    demand = np.array([[4.0, 4.0, 5.0]])
    columns = tuple(CommitColumn(("plan", k), 1.0, 8.0, plan=k) for k in range(2))
    usd = np.array([4.0, 4.0, 5.0])
    model = CommitModel(usd, rate, columns, (Hours(0, 0, np.ones(1), demand),), np.ones(1))
    for order in ([0, 1], [1, 0]):
        turned = replace(model, plan_rate_usd=rate[order])
        (use,) = use_of(turned, np.full(2, 8.0))
        assert use.on_demand[0].sum() == pytest.approx(5.0)
        assert use.cost_usd == pytest.approx([20.0])
        assert use.spent[0] == pytest.approx([8.0, 8.0])


def test_many_pools_under_one_plan() -> None:
    """Beyond 128 pools, each on spot and on demand, the order of uses no longer fits into a byte."""
    pools = 150
    usd = np.linspace(1.0, 9.0, pools)
    demand = np.ones((1, pools))
    spot = (np.zeros((1, pools)), usd[None, :] / 2)
    block = Hours(0, 0, np.ones(1), demand, *spot)
    column = CommitColumn("plan", 1.0, 90.0, plan=0)
    rate = np.full((1, pools), 1.0)
    model = CommitModel(usd, rate, (column,), (block,), np.ones(1))
    # 10 plan dollars cover the 10 dearest units
    assert Recourse(model).evaluate(np.array([10.0])).value == pytest.approx([usd[:-10].sum()])
    (use,) = use_of(model, np.array([10.0]))
    assert use.cost_usd == pytest.approx([usd[:-10].sum()])


def check_closed_form(seed: int) -> None:
    """The closed form agrees with the decomposition."""
    model = replace(random_model(seed, plans=0), risk_weight=0.0, upfront_limit_usd=np.inf)
    first = {column.pool: column for column in reversed(model.columns)}
    model = replace(model, columns=tuple(first.values()))
    assert is_separable(model)
    x = solve_separable(model)
    cost = first_stage(model).objective(x, Recourse(model).evaluate(x).value)
    assert cost == pytest.approx(benders(model, 1e-9).objective, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("seed", range(share_of(16)))
def test_the_closed_form_agrees_with_the_decomposition(seed: int) -> None:
    check_closed_form(seed)


def test_one_pool_without_spot_is_the_critical_quantile() -> None:
    """Buy while the share of hours that use a further unit is above price / on-demand price."""
    demand = np.arange(1.0, 101.0)[:, None]
    hours = Hours(0, 0, np.full(100, 87.6), demand)
    column = CommitColumn("r", 0.605 * 8760 * 2.0, 200.0, pool=0, whole=True)
    model = CommitModel(np.array([2.0]), np.zeros((0, 1)), (column,), (hours,), np.ones(1))
    # 61 of 100 hours use unit 40, 60 use unit 41, and a unit pays from 60.5 on
    assert solve_separable(model) == pytest.approx([40.0])
    assert solve_commit(model).method == "closed_form"
    assert solve_commit(model, method="benders", gap=1e-9).x == pytest.approx([40.0])


def test_an_interrupted_search_begins_no_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first found loses in the mean, so that it is not proposed; nor is the user kept waiting."""
    model = replace(random_model(1, pools=1, plans=0), risk_weight=0.5)
    assert model.columns
    x = np.full(len(model.columns), 1e3)
    dear = Solved(
        "feasible", "interrupted", x, Recourse(model).evaluate(x).value, 0.0, 0.0, "benders", (), 0.0, None
    )
    limits: list[float] = []

    def searched(asked: CommitModel, *, time_limit_s: float, **_: object) -> Solved:
        limits.append(time_limit_s)
        nothing = np.zeros_like(x)
        costs = Recourse(asked).evaluate(nothing).value
        return dear if len(limits) == 1 else replace(dear, x=nothing, recourse=costs, reason="time_limit")

    monkeypatch.setattr("planner.commitments.solve.solve_commit", searched)
    used, solved = solve_bill(model, time_limit_s=60.0)
    assert 30.0 < limits[0] <= 60.0
    assert limits[1:] == [0.0]
    assert (used.risk_weight, solved.reason, solved.x.any()) == (0.0, "interrupted", False)


def test_late_purchases_are_evaluated_no_more_often_than_they_must(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without time, what nothing costs is looked at once, however often it is asked for, and nothing else is."""
    model = replace(random_model(3, pools=2, plans=1), risk_weight=0.5)
    solve, cost, evaluated = _Chunk.solve, _Chunk.cost_of_nothing, list[bool]()

    def solved_in_full(chunk: _Chunk, reserved: np.ndarray, plans: np.ndarray) -> tuple[np.ndarray, ...]:
        evaluated.append(bool(reserved.any() or plans.any()))
        return solve(chunk, reserved, plans)

    def cost_alone(chunk: _Chunk) -> np.ndarray:
        evaluated.append(False)
        return cost(chunk)

    monkeypatch.setattr(_Chunk, "solve", solved_in_full)
    monkeypatch.setattr(_Chunk, "cost_of_nothing", cost_alone)
    nothing, solved = np.zeros(len(model.columns)), solve_bill(model, time_limit_s=0.0)[1]
    chunks = len(Recourse(model)._chunks)
    assert evaluated == [False] * chunks
    assert not solved.x.any()
    assert solved.recourse == pytest.approx(Recourse(model).evaluate(nothing).value)


def test_an_oracle_leaves_time_for_the_evaluations_asked_for() -> None:
    model = random_model(3, pools=2, plans=1)
    x = np.ones(len(model.columns))
    recourse = Recourse(model)
    late = recourse.until(0.0)
    first = late.evaluate(x).value
    with pytest.raises(OutOfTimeError):
        late.evaluate(2 * x)
    assert recourse.pace_s > 0
    for spare, is_late in ((0, False), (10**12, True)):
        other = recourse.until(time.perf_counter() + 60.0, spare=spare)
        assert other.evaluate(x).value == pytest.approx(first)
        with pytest.raises(OutOfTimeError) if is_late else contextlib.nullcontext():
            other.evaluate(2 * x)


def test_joined_models_are_not_separable() -> None:
    with pytest.raises(ValueError, match="separate"):
        solve_separable(make_commit(0, pools=2, scenarios=1, hours=5))


class TestLaws:
    """Laws, on proven optima of small questions."""

    @pytest.mark.parametrize(("seed", "unit"), [(seed, (1e-3, 2.0, 1e3, 1e6)[seed % 4]) for seed in range(8)])
    def test_the_unit_of_money_does_not_matter(self, seed: int, unit: float) -> None:
        model = random_model(seed)
        truth = optimum(seed, 1e-8).objective
        assert benders(_priced(model, unit), 1e-8).objective == pytest.approx(truth * unit, rel=CLOSE)

    @pytest.mark.parametrize("seed", range(8))
    def test_the_order_of_pools_hours_and_scenarios_does_not_matter(self, seed: int) -> None:
        model = random_model(seed)
        assert benders(_shuffled(model, seed), 1e-8).objective == pytest.approx(
            optimum(seed, 1e-8).objective, rel=CLOSE, abs=1e-7
        )

    @pytest.mark.parametrize("seed", range(6))
    def test_one_more_offer_never_costs_more(self, seed: int) -> None:
        model = random_model(seed)
        more = CommitColumn("more", 0.5 * model.columns[0].cost_usd + 1, 5.0, pool=0, whole=True)
        wider = replace(model, columns=(*model.columns, more))
        assert benders(wider).bound <= optimum(seed).objective * (1 + 1e-9) + 1e-9

    @pytest.mark.parametrize("seed", range(6))
    def test_a_looser_limit_never_costs_more(self, seed: int) -> None:
        model = replace(random_model(seed), upfront_limit_usd=2.0)
        loose = replace(model, upfront_limit_usd=6.0)
        tight = replace(model, columns=tuple(replace(c, upper=np.floor(c.upper / 2)) for c in model.columns))
        middle = benders(model)
        assert benders(loose).bound <= middle.objective * (1 + 1e-9) + 1e-9
        assert middle.bound <= benders(tight).objective * (1 + 1e-9) + 1e-9

    @pytest.mark.parametrize("seed", range(6))
    def test_more_weight_on_risk_never_raises_the_risk(self, seed: int) -> None:
        model = random_model(seed)
        calm, careful = (benders(replace(model, risk_weight=w, risk_level=0.5), 1e-9) for w in (0.0, 1.0))
        stage = first_stage(replace(model, risk_weight=1.0, risk_level=0.5))
        risks = [stage.objective(found.x, found.recourse) for found in (calm, careful)]
        assert risks[1] <= risks[0] * (1 + 1e-7) + 1e-9

    def test_blocks_of_hours_may_be_split(self) -> None:
        model = make_commit(3, pools=3, scenarios=3, hours=40)
        halves = [
            replace(
                block, weight=block.weight[part], demand=block.demand[part],
                spot_cap=None if block.spot_cap is None else block.spot_cap[part],
                spot_usd=None if block.spot_usd is None else block.spot_usd[part],
            )
            for block in model.hours for part in (slice(0, 25), slice(25, None))
        ]  # fmt: skip
        x = np.array([column.upper / 3 for column in model.columns])
        split = Recourse(replace(model, hours=tuple(halves))).evaluate(x)
        assert split.value == pytest.approx(Recourse(model).evaluate(x).value, rel=1e-12)


def test_three_plans_of_different_rates_over_one_pool_are_refused() -> None:
    model = make_commit(1, pools=2, scenarios=1, hours=4)
    rates = np.array([[1.0, 2.0], [1.1, 2.5], [1.2, 2.1]])
    with pytest.raises(ModelError, match="3 savings plans"):
        Recourse(replace(model, plan_rate_usd=rates))


@pytest.mark.parametrize("two_rates", [False, True])
@pytest.mark.parametrize("seed", [11, 12])
def test_the_realistic_question_agrees_with_its_extensive_form(seed: int, two_rates: bool) -> None:
    model = make_commit(seed, pools=4, scenarios=5, hours=60, two_rates=two_rates)
    assert benders(model, 1e-5).objective == pytest.approx(extensive(model), rel=2e-5)


def _priced(model: CommitModel, unit: float) -> CommitModel:
    """The same question in another unit of money: plans are then bought in that unit per hour as well."""
    columns = tuple(
        replace(
            column,
            cost_usd=column.cost_usd * (unit if column.plan is None else 1.0),
            upper=column.upper * (1.0 if column.plan is None else unit),
            upfront_usd=column.upfront_usd * (unit if column.plan is None else 1.0),
        )
        for column in model.columns
    )
    hours = tuple(
        replace(
            block,
            spot_usd=None if block.spot_usd is None else block.spot_usd * unit,
            owned_plan_usd=None if block.owned_plan_usd is None else block.owned_plan_usd * unit,
        )
        for block in model.hours
    )
    return replace(
        model, on_demand_usd=model.on_demand_usd * unit, plan_rate_usd=model.plan_rate_usd * unit, columns=columns,
        hours=hours, upfront_limit_usd=model.upfront_limit_usd * unit,
    )  # fmt: skip


def _shuffled(model: CommitModel, seed: int) -> CommitModel:
    draw = np.random.default_rng(seed)
    pools = draw.permutation(len(model.on_demand_usd))
    scenarios = draw.permutation(len(model.probability))  # new number of each
    place = np.argsort(pools)
    hours = []
    for block in model.hours:
        rows = draw.permutation(len(block.weight))
        usd = block.spot_usd
        if usd is not None:
            usd = usd[rows if len(usd) > 1 else np.zeros(1, dtype=int)][:, pools]
        hours.append(
            Hours(
                int(scenarios[block.scenario]),
                block.period,
                block.weight[rows],
                block.demand[rows][:, pools],
                None if block.spot_cap is None else block.spot_cap[rows][:, pools],
                usd,
                None if block.owned_plan_usd is None else block.owned_plan_usd[rows],
            )
        )
    probability = np.empty_like(model.probability)
    probability[scenarios] = model.probability
    columns = [c if c.pool is None else replace(c, pool=int(place[c.pool])) for c in model.columns]
    return replace(
        model, on_demand_usd=model.on_demand_usd[pools], plan_rate_usd=model.plan_rate_usd[:, pools],
        columns=tuple(columns[i] for i in draw.permutation(len(columns))),
        hours=tuple(hours[i] for i in draw.permutation(len(hours))), probability=probability,
    )  # fmt: skip
