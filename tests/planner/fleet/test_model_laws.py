"""Laws of the fleet and single models, compared on proven bounds (DESIGN, section 6).

Each law is a function of a seed, held on some seeds here; `python -m benchmarks.brute_force --family "fleet: laws"`
draws some of them for each of as many seeds as there is time for.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.fleet.greedy import greedy_mix
from planner.fleet.model.prepared import prepare
from planner.fleet.question import FleetInput, violations
from planner.fleet.relaxation import FleetWeights, explain_infeasible_fleet
from planner.fleet.search import FleetResult
from planner.fleet.solve import solve_fleet
from planner.job.model import SingleInput, build_single, solve_single
from solvers.problem.errors import ModelError
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status, Termination
from tests.draws import share_of
from tests.planner.fleet.fleet_cases import exactly, part_time, permuted, random_fleet, scaled, small_fleet
from tests.planner.fleet.relaxed import relaxed

EXACT = SolveOptions(gap=0.0, time_limit_s=math.inf, backend="auto")
SEEDS = range(3000, 3000 + share_of(20))
MONEY, UNITS, LONGER = (1e-6, 1e-3, 2.0, 1e3), (1e-6, 1e12), (1.001, 1.3, 7.0)  # factors
BOTH = pytest.mark.parametrize("hours", [False, True], ids=["full", "part-time"])


@functools.lru_cache(maxsize=100)
def question(seed: int, hours: bool) -> FleetInput:
    """A random fleet, of workers used in full or of workers that may stop early."""
    return part_time(small_fleet(seed), seed) if hours else small_fleet(seed)


def kept(fleet: FleetInput, result: FleetResult) -> bool:
    """Whether the answer meets every limit of `fleet`."""
    busy = fleet.units(result.busy) if fleet.part_time else None
    return not violations(fleet, fleet.units(result.counts), busy)


def solved(fleet: FleetInput, options: SolveOptions = EXACT) -> FleetResult:
    return solve_fleet(fleet, options)


@functools.lru_cache(maxsize=1000)
def optimum(seed: int, hours: bool) -> FleetResult:
    """The answer to `question`, which several laws compare with."""
    return solved(question(seed, hours), exactly(seed))


def not_worse(better: FleetResult, than: FleetResult) -> bool:
    """The proven bound of the larger question does not pass the cost of the smaller one's answer."""
    return not than.has_plan or (better.has_plan and better.bound_usd <= than.objective_usd * (1 + 1e-9))


def added(fleet: FleetInput, **values: object) -> FleetInput:
    """`fleet` with one more offer, a copy of the first one changed by `values`."""
    names = ["cost_usd", "throughput", "max_units", "region", "provider", "is_spot", "memory_gib"]
    names += ["capacity_group", "offer_group", "quota_group", "quota_units"]
    names += ["fixed_cost_usd"] if fleet.part_time else []
    arrays: dict[str, Any] = {
        name: np.append(getattr(fleet, name), [values.get(name, getattr(fleet, name)[0])]) for name in names
    }
    uses = tuple(use.only(np.append(np.arange(fleet.n_options), 0)) for use in fleet.uses)
    return replace(fleet, keys=(*fleet.keys, "added"), uses=uses, **arrays)


def check_another_offer(seed: int, hours: bool) -> None:
    """An offer more never raises the optimum."""
    if not optimum(seed, hours).has_plan:
        return  # nothing to be dearer than
    values = {"cost_usd": 0.75, "region": 1, **({"fixed_cost_usd": 0.125} if hours else {})}
    assert not_worse(solved(added(question(seed, hours), **values)), optimum(seed, hours)), seed


@BOTH
def test_adding_an_offer_never_raises_the_optimum(hours: bool) -> None:
    for seed in SEEDS:
        check_another_offer(seed, hours)


RELAXATIONS: dict[str, object] = {
    "required_throughput": lambda fleet: fleet.required_throughput / 2,
    "max_spot_share": lambda fleet: None,
    "max_share_per_region": lambda fleet: None,
    "max_share_per_offer": lambda fleet: None,
    "max_share_per_provider": lambda fleet: None,
    "max_regions": lambda fleet: None,
    "min_total_memory_gib": lambda fleet: None,
    "max_total_units": lambda fleet: None,
    "budget_usd": lambda fleet: None,
    "quota_limit": lambda fleet: fleet.quota_limit * 2,
    "capacity_limit": lambda fleet: fleet.capacity_limit + 1,
    "max_units": lambda fleet: fleet.max_units + 1,
    "uses": lambda fleet: (),
}


def check_relaxed(seed: int, hours: bool, limit: str) -> bool:
    """A wider limit never raises the optimum; whether that was compared: the question has the limit, and a plan."""
    change, fleet = RELAXATIONS[limit], question(seed, hours)
    assert callable(change)
    looser = change(fleet)
    if looser is getattr(fleet, limit) or not optimum(seed, hours).has_plan:
        return False
    assert not_worse(solved(replace(fleet, **{limit: looser})), optimum(seed, hours)), seed
    return True


@BOTH
@pytest.mark.parametrize("limit", RELAXATIONS)
def test_relaxing_a_limit_never_raises_the_optimum(limit: str, hours: bool) -> None:
    compared = (seed for seed in range(4000, 4800) if check_relaxed(seed, hours, limit))
    assert len(list(itertools.islice(compared, 4))) == 4


def check_money(seed: int, hours: bool, factor: float) -> None:
    """Dollars, thousands or millions of dollars: the same fleet."""
    plain, other = optimum(seed, hours), solved(scaled(question(seed, hours), factor))
    assert plain.status is other.status, seed
    if plain.has_plan:
        assert other.objective_usd == pytest.approx(plain.objective_usd * factor, rel=1e-9)


@BOTH
@pytest.mark.parametrize("factor", MONEY)
def test_scaling_prices_scales_the_cost(factor: float, hours: bool) -> None:
    for seed in range(5000, 5000 + share_of(8)):
        check_money(seed, hours, factor)


def check_unit_of_work(seed: int, hours: bool, factor: float) -> None:
    """Samples/s or FLOP/s: the same cost."""
    fleet = question(seed, hours)
    other = replace(
        fleet, throughput=fleet.throughput * factor, required_throughput=fleet.required_throughput * factor
    )
    one, two = optimum(seed, hours), solved(other)
    assert one.status is two.status
    if one.has_plan:
        assert one.objective_usd == pytest.approx(two.objective_usd, rel=1e-9)


@BOTH
@pytest.mark.parametrize("factor", UNITS)
def test_throughput_unit_does_not_matter(factor: float, hours: bool) -> None:
    for seed in range(5100, 5100 + share_of(8)):
        check_unit_of_work(seed, hours, factor)


def check_order(seed: int, hours: bool) -> None:
    """The order of offers changes nothing."""
    fleet = question(seed, hours)
    order = np.random.default_rng(seed).permutation(fleet.n_options)
    one, two = optimum(seed, hours), solved(permuted(fleet, order))
    assert one.status is two.status
    if one.has_plan:
        assert one.objective_usd == pytest.approx(two.objective_usd, rel=1e-12)


@BOTH
def test_order_of_offers_changes_nothing(hours: bool) -> None:
    for seed in SEEDS:
        check_order(seed, hours)


def longer(fleet: FleetInput, factor: float) -> FleetInput:
    """Workers may work `factor` times as long, at the same price per hour; the same fixed cost."""
    assert fleet.fixed_cost_usd is not None
    cost = fleet.fixed_cost_usd + (fleet.cost_usd - fleet.fixed_cost_usd) * factor
    uses = tuple(
        use if use.per_busy is None else replace(use, per_busy=use.per_busy * factor) for use in fleet.uses
    )
    return replace(fleet, cost_usd=cost, throughput=fleet.throughput * factor, uses=uses)


def check_later_deadline(seed: int, factor: float) -> None:
    """More time never raises the optimum."""
    if not optimum(seed, True).has_plan:
        return  # nothing to be dearer than
    assert not_worse(solved(longer(question(seed, True), factor)), optimum(seed, True)), seed


@pytest.mark.parametrize("factor", LONGER)
def test_a_later_deadline_never_raises_the_optimum(factor: float) -> None:
    for seed in SEEDS:
        check_later_deadline(seed, factor)


def test_work_at_no_fixed_cost_needs_whole_workers_only_where_they_are_limited() -> None:
    fleet = FleetInput(
        ("slow", "fast"),
        np.array([1.0, 4.0]),
        np.array([1.0, 2.0]),
        2.5,
        np.array([0.0, 0.0]),
        max_units=np.array([2.0, 9.0]),
    )
    result = solved(fleet)
    assert result.busy == pytest.approx({"slow": 2.0, "fast": 0.25})
    assert dict(result.counts) == {"slow": 2, "fast": 1}
    assert result.objective_usd == pytest.approx(3.0)


def test_duplicates_of_an_offer_share_one_capacity() -> None:
    base = FleetInput(
        ("zone-a",),
        np.array([1.0]),
        np.array([10.0]),
        30.0,
        capacity_group=np.array([0]),
        capacity_limit=np.array([2.0]),
    )
    assert solved(base).status is Status.INFEASIBLE
    double = replace(
        base,
        keys=("zone-a", "zone-b"),
        cost_usd=np.array([1.0, 1.0]),
        throughput=np.array([10.0, 10.0]),
        max_units=np.array([np.inf, np.inf]),
        region=np.zeros(2, dtype=np.int64),
        provider=np.zeros(2, dtype=np.int64),
        is_spot=np.zeros(2, dtype=np.bool_),
        memory_gib=np.zeros(2),
        capacity_group=np.zeros(2, dtype=np.int64),
        offer_group=np.full(2, -1),
        quota_group=np.full(2, -1),
        quota_units=np.ones(2),
    )
    assert solved(double).status is Status.INFEASIBLE
    half = replace(double, required_throughput=20.0)
    result = solved(half)
    assert result.objective_usd == pytest.approx(2.0)
    assert result.dropped == {"dominated": 1}


def check_dominated(seed: int, hours: bool) -> None:
    """A dominated offer is never chosen, and dropping it changes nothing."""
    fleet = question(seed, hours)
    if int(fleet.capacity_group[0]) < 0:
        return
    unlimited = fleet.max_units.copy()
    unlimited[0] = np.inf
    fleet = replace(fleet, max_units=unlimited)
    one, two = solved(fleet), solved(added(fleet, cost_usd=fleet.cost_usd[0] + 0.25))
    assert "added" not in two.counts
    assert one.status is two.status
    if one.has_plan:
        assert one.objective_usd == pytest.approx(two.objective_usd, rel=1e-12)


@BOTH
def test_dominated_offer_is_never_chosen_and_dropping_it_changes_nothing(hours: bool) -> None:
    for seed in SEEDS:
        check_dominated(seed, hours)


def check_greedy(seed: int, hours: bool) -> bool:
    """The fleet that the search starts from meets every limit and costs the bound or more; whether there is one."""
    fleet = question(seed, hours)
    mix = greedy_mix(fleet)
    if not mix:
        return False
    units, busy = (fleet.units(part) for part in mix)
    assert not violations(fleet, units, busy), seed
    assert fleet.cost_of(units, busy) >= optimum(seed, hours).bound_usd * (1 - 1e-9)
    return True


@BOTH
def test_greedy_fleet_keeps_every_limit(hours: bool) -> None:
    assert sum(check_greedy(seed, hours) for seed in range(3000, 3000 + share_of(75))) >= share_of(15)


def check_alike(seed: int, hours: bool, factors: tuple[float, float]) -> None:
    """Other money, another unit of work and another order of offers, all at once: the same fleet."""
    fleet = question(seed, hours)
    money, unit = factors
    other = replace(
        scaled(fleet, money),
        throughput=fleet.throughput * unit,
        required_throughput=fleet.required_throughput * unit,
    )
    one = optimum(seed, hours)
    two = solved(permuted(other, np.random.default_rng(seed).permutation(fleet.n_options)))
    assert one.status is two.status, seed
    if one.has_plan:
        assert two.objective_usd == pytest.approx(one.objective_usd * money, rel=1e-9), seed


def check_laws(seed: int) -> None:
    """Laws on one question: of workers used in full or, every second seed, of workers that may stop early.

    One limit is drawn to be relaxed, one later deadline, and one way to say the same: a seed costs a tenth of what all
    limits and factors would, so ten times as many questions are asked.
    """
    hours, draw = bool(seed % 2), np.random.default_rng([seed, 2])
    check_another_offer(seed, hours)
    compared = any(
        check_relaxed(seed, hours, limit) for limit in draw.permutation(list(RELAXATIONS)).tolist()
    )
    assert compared or not optimum(seed, hours).has_plan, seed
    check_alike(seed, hours, (float(draw.choice(MONEY)), float(draw.choice(UNITS))))
    check_dominated(seed, hours)
    check_greedy(seed, hours)
    if hours:
        check_later_deadline(seed, float(draw.choice(LONGER)))


def test_prefilters_are_counted() -> None:
    fleet = FleetInput(
        ("a", "b", "c", "d"),
        np.array([1.0, 1.0, 1.0, 99.0]),
        np.array([5.0, 5.0, 0.0, 5.0]),
        5.0,
        max_units=np.array([9.0, 0.0, 9.0, 9.0]),
        is_spot=np.array([False, False, False, False]),
        budget_usd=50.0,
    )
    assert prepare(fleet).dropped == {"no_throughput": 1, "no_capacity": 1, "too_dear": 1}


@BOTH
def test_infeasible_is_explained_and_the_relaxation_is_feasible(hours: bool) -> None:
    explained = 0
    for seed in range(7000, 7000 + share_of(80)):
        fleet = question(seed, hours)
        if solved(fleet).status is not Status.INFEASIBLE:
            continue
        explanation = explain_infeasible_fleet(fleet)
        if not explanation.relaxations:
            assert explanation.status is Status.INFEASIBLE
            continue
        explained += 1
        assert not explanation.solver_fault
        result = solved(relaxed(fleet, explanation))
        assert result.has_plan, seed
        assert kept(relaxed(fleet, explanation), result)
    assert explained >= share_of(20)


def test_a_whole_term_beside_a_cent_is_no_fault() -> None:
    """No fleet is known that would rule the term out, and its cost is 1e10 times that of a worker's fixed hours."""
    fleet = FleetInput(
        ("spot", "term"),
        np.array([1.0, 2e6]),
        np.array([1.0, 1.0]),
        5.0,
        np.array([2e-4, 2e6]),
        max_units=np.array([2.0, 2.0]),
        budget_usd=None,
    )
    assert solved(fleet).status is Status.INFEASIBLE
    assert [item.limit_name for item in explain_infeasible_fleet(fleet).relaxations] == [
        "required_throughput"
    ]
    possible = solved(replace(fleet, required_throughput=1.5))
    assert possible.objective_usd == pytest.approx(1.5001, rel=1e-9)


def test_explanation_of_a_feasible_question_is_a_solver_fault() -> None:
    fleet = FleetInput(("a",), np.array([1.0]), np.array([5.0]), 5.0, quota_limit=np.array([3.0]))
    assert explain_infeasible_fleet(fleet).solver_fault


def test_weights_decide_which_limit_gives_way() -> None:
    fleet = FleetInput(
        ("a",),
        np.array([10.0]),
        np.array([5.0]),
        10.0,
        quota_group=np.array([0]),
        quota_units=np.array([8.0]),
        quota_limit=np.array([8.0]),
        quota_names=("L-1",),
    )
    dear = explain_infeasible_fleet(fleet, FleetWeights(quota=1000.0))
    assert [item.limit_name for item in dear.relaxations] == ["required_throughput"]
    cheap = explain_infeasible_fleet(fleet, FleetWeights(quota=0.01))
    assert [(item.limit_name, item.member, item.used, item.limit) for item in cheap.relaxations] == [
        ("quota_limit", "L-1", 16.0, 8.0)
    ]


def test_bad_questions_are_refused_by_name() -> None:
    with pytest.raises(ModelError, match="throughput has shape"):
        FleetInput(("a",), np.array([1.0]), np.array([1.0, 2.0]), 1.0)
    with pytest.raises(ModelError, match="cost_usd must be finite"):
        FleetInput(("a",), np.array([np.nan]), np.array([1.0]), 1.0)
    with pytest.raises(ModelError, match="max_spot_share"):
        FleetInput(("a",), np.array([1.0]), np.array([1.0]), 1.0, max_spot_share=50.0)
    with pytest.raises(ModelError, match="required_throughput"):
        FleetInput(("a",), np.array([1.0]), np.array([1.0]), 0.0)
    with pytest.raises(ModelError, match="fixed_cost_usd"):
        FleetInput(("a",), np.array([1.0]), np.array([1.0]), 1.0, np.array([2.0]))
    with pytest.raises(ModelError, match="keys repeat"):
        FleetInput(("a", "a"), np.array([1.0, 1.0]), np.array([1.0, 1.0]), 1.0)


def test_time_limit_without_time_still_gives_the_greedy_fleet() -> None:
    fleet = next(item for item in map(random_fleet, range(6000, 6100)) if (greedy_mix(item) or ({},))[0])
    result = solve_fleet(fleet, SolveOptions(gap=0.0, time_limit_s=1e-6))
    assert result.status is Status.FEASIBLE
    assert result.termination is Termination.TIME_LIMIT
    assert result.counts


def test_single_laws() -> None:
    random = np.random.default_rng(1)
    keys = tuple(range(60))
    cost, hours = random.uniform(1, 1e5, 60), random.uniform(1, 50, 60)
    job = SingleInput(keys, cost, hours)
    best = solve_single(job)
    assert best.key == int(np.argmin(cost))
    fewer = solve_single(SingleInput(keys[:30], cost[:30], hours[:30]))
    assert best.bound_usd <= fewer.objective_usd
    million = solve_single(SingleInput(keys, cost * 1e-6, hours))
    assert million.key == best.key
    with pytest.raises(ModelError, match="at least one candidate"):
        build_single(SingleInput((), np.zeros(0), np.zeros(0)))


def test_hopelessly_dear_candidates_do_not_spoil_the_numbers() -> None:
    result = solve_single(SingleInput(("a", "b"), np.array([1e-3, 1e12]), np.array([1.0, 1.0])))
    assert (result.key, result.status) == ("a", Status.OPTIMAL)


@pytest.mark.parametrize(
    ("hours", "late"), [(False, []), (True, ["probing"])], ids=["full-proven_soon", "part-time-probed"]
)
def test_staged_search_on_a_question_of_many_offers(
    hours: bool, late: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All stages run, each plan is cheaper and each bound higher than the one before; backends agree."""
    from benchmarks.instances.fleet import fleet_instance

    # no proof is so small: then each region is opened in turn
    monkeypatch.setattr("planner.fleet.solve.SOON_COLUMNS", 0 if late else 10_000)

    fleet = fleet_instance(400, 1, hours=hours)
    result = solve_fleet(fleet, SolveOptions(gap=1e-3, core_columns=100))
    assert result.status is Status.OPTIMAL
    assert result.gap <= 1e-3
    assert [stage for stage, *_ in result.stages] == ["greedy", "relaxation", "restricted", *late, "proof"]
    costs, bounds = [row[2] for row in result.stages], [row[3] for row in result.stages]
    assert costs == sorted(costs, reverse=True)
    assert bounds == sorted(bounds)
    assert kept(fleet, result)
    auto = solve_fleet(fleet, SolveOptions(gap=1e-3, backend="auto"))
    assert auto.bound_usd <= result.objective_usd * (1 + 1e-9)
    assert result.bound_usd <= auto.objective_usd * (1 + 1e-9)
