"""Laws of spot with a fall-back, on random catalogs and on the estimator itself."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.ways.build import set_cells, spot_candidates, work_floor
from planner.candidates.ways.fallback import fallback, mean_fallback, unit_quadrature
from planner.candidates.ways.outcomes import Task, possible_outcomes
from planner.candidates.ways.partners import on_demand_partners
from planner.normal.arrays import normal_quantile_by_table
from planner.spot.distribution import SpotPool, describe_elapsed, scaled_job
from planner.spot.moments import split_job
from planner.spot.work_error import meet_probability
from planner.spot.zones import subsets, unite, unite_alike
from tests.draws import draws
from tests.planner.candidates.ways.cases import A10G, AWAY, HOME, V100, answer, on_demand, spot
from tests.planner.spine_catalogs import Offer, bought_on, cost_of, make_world, not_dearer, plan_on, work

LAW = draws(15)


@st.composite
def some_places(draw: st.DrawFn) -> list[Offer]:
    """On-demand and spot of two types in two regions, spot in up to three zones each."""
    out = []
    for machine in draw(st.sampled_from([[V100], [A10G], [V100, A10G]])):
        for region in draw(st.sampled_from([[HOME], [HOME, AWAY]])):
            if draw(st.booleans()):
                out.append(Offer(machine, region, str(draw(st.integers(100, 400)) / 100)))
            for zone in draw(st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True)):
                price = str(draw(st.integers(30, 320)) / 100)
                out.append(Offer(machine, region, price, "spot", zone=zone))
    return out or [Offer(V100, HOME, "3")]


def job(deadline: float, confidence: float = 0.9, **changes: Any) -> dict[str, Any]:
    limits = {"max_nodes": 2, "deadline": f"{deadline:g}h", "deadline_confidence": confidence}
    return work(constraints=limits, **changes)


DEADLINES = st.sampled_from([9.0, 12.0, 16.0, 22.0, 30.0, 50.0])


@LAW
@given(some_places(), DEADLINES, st.floats(1.05, 2.0))
def test_a_later_deadline_never_costs_more(offers: list[Offer], deadline: float, times: float) -> None:
    before = cost_of(bought_on(make_world(offers), job(deadline)))
    assert not_dearer(cost_of(bought_on(make_world(offers), job(deadline * times))), before)


@LAW
@given(some_places(), DEADLINES, st.sampled_from([(0.5, 0.8), (0.8, 0.9), (0.9, 0.99)]))
def test_more_confidence_never_costs_less(
    offers: list[Offer], deadline: float, levels: tuple[float, float]
) -> None:
    low, high = (cost_of(bought_on(make_world(offers), job(deadline, level))) for level in levels)
    assert not_dearer(low, high)


@LAW
@given(some_places(), DEADLINES, st.integers(0, 20))
def test_one_more_place_never_costs_more(offers: list[Offer], deadline: float, drop: int) -> None:
    """At given prices: a quote more tells of the level of its type, which others are expected to approach."""
    fewer = [offer for number, offer in enumerate(offers) if number != drop % len(offers)]
    if fewer:
        quoted = job(deadline, preferences={"prices": "quoted"})
        before = cost_of(bought_on(make_world(fewer), quoted))
        assert not_dearer(cost_of(bought_on(make_world(offers), quoted)), before)


def test_two_zones_fall_back_on_another_region_where_that_is_cheaper() -> None:
    zones = [Offer(V100, HOME, "0.3", "spot", zone=zone) for zone in "ab"]
    away = [*zones, Offer(V100, AWAY, "1")]
    before = cost_of(plan_on(make_world(away), job(12.0)))
    assert not_dearer(cost_of(plan_on(make_world([*away, Offer(V100, HOME, "1.01")]), job(12.0))), before)


@LAW
@given(some_places(), DEADLINES)
def test_a_fall_back_never_costs_more_than_without(offers: list[Offer], deadline: float) -> None:
    catalog = make_world(offers)
    without = cost_of(bought_on(catalog, job(deadline, spot={"fallback": "none", "zones": "single"})))
    single = cost_of(bought_on(catalog, job(deadline, spot={"zones": "single"})))
    assert not_dearer(single, without)
    assert not_dearer(cost_of(bought_on(catalog, job(deadline))), single)


@LAW
@given(some_places(), DEADLINES, st.sampled_from([0.0, 0.05, 0.2]))
def test_on_demand_is_needed_at_least_as_often_as_spot_alone_is_late(
    offers: list[Offer], deadline: float, never: float
) -> None:
    asked = job(deadline, 0.75)
    asked["constraints"]["waiting"] = [{"purchase_option": "on_demand", "hours": 1, "never_ratio": never}]
    made = plan_on(make_world(offers), asked).plan
    if made.launch is None or made.launch.strategy != "spot_with_fallback":
        return
    meet, alone = made.launch.p_meet_deadline, made.launch.p_meet_spot_only_ratio
    assert meet is not None and alone is not None
    assert made.launch.p_on_demand_needed_ratio >= 1 - alone - 1e-12
    assert alone <= meet <= 1 - never * (1 - alone) + 1e-12  # on-demand that never comes saves nobody


@LAW
@given(some_places(), DEADLINES)
def test_spot_is_never_chosen_at_the_price_of_on_demand(offers: list[Offer], deadline: float) -> None:
    listed = {(o.machine, o.region): o.price_per_hour for o in offers if o.purchase_option == "on_demand"}
    equal = [replace(o, price_per_hour=listed.get((o.machine, o.region), "1000")) for o in offers]
    plan = bought_on(make_world(equal), job(deadline)).plan
    if listed and plan.status == "planned":
        assert {line.purchase_option for line in plan.lines} == {"on_demand"}


POOLS = st.builds(
    lambda rate, wait, first, sd, spread: SpotPool(*(np.asarray([v]) for v in (rate, wait, wait * first, sd, spread))),
    st.floats(0.01, 2.0), st.floats(0.05, 8.0), st.floats(1.0, 8.0), st.floats(0.0, 0.8), st.floats(1.0, 12.0),
)  # fmt: skip


def one_job(hours: float, restart: float = 0.2) -> Any:
    return split_job(*(np.asarray([v]) for v in (hours, 0.5, 0.01, restart, 0.001)))


@given(POOLS, st.floats(1.0, 200.0), st.lists(st.floats(0.0, 400.0), min_size=2, max_size=6))
def test_more_slack_never_means_more_on_demand(pool: SpotPool, hours: float, slack: list[float]) -> None:
    made = [fallback(one_job(hours), pool, np.asarray([value])) for value in sorted(slack)]
    share, change = ([float(getattr(m, name)[0]) for m in made] for name in ("work_share", "p_change"))
    assert all(0 <= value <= 1 for value in (*share, *change))
    assert np.all(np.diff(share) <= 1e-9) and np.all(np.diff(change) <= 1e-9)
    assert share[0] <= change[0] + 1e-9  # on-demand does work only where it is needed
    wasted = [float(m.wasted_hours[0]) for m in made]
    assert all(0 <= value <= most + 1e-9 for value, most in zip(wasted, sorted(slack), strict=True))


@given(
    POOLS,
    st.floats(1.0, 200.0),
    st.floats(0.0, 400.0),
    st.floats(0.0, 8.0),
    st.just(0.0) | st.floats(0.01, 0.5),
)
def test_time_to_keep_for_on_demand_never_makes_spot_alone_likelier(
    pool: SpotPool, hours: float, room: float, change: float, sigma: float
) -> None:
    one, sd, none = one_job(hours), np.asarray([sigma]), np.zeros(1)
    alone = meet_probability(one, pool, np.asarray([room]), sd, none)
    kept = meet_probability(one, pool, np.asarray([max(room - change, 0.0)]), sd, 0.02 * one.floor_hours)
    assert 0 <= kept[0] <= alone[0] + 1e-12 <= 1 + 2e-12


@given(POOLS, st.floats(1.0, 100.0), st.floats(0.0, 400.0))
def test_the_excess_within_a_bound_is_no_more_than_the_bound_where_it_is_kept(
    pool: SpotPool, hours: float, bound: float
) -> None:
    elapsed = describe_elapsed(one_job(hours), pool)
    latest = elapsed.floor + np.asarray([bound])
    found = float(elapsed.excess_within(latest)[0])
    assert 0 <= found <= bound * float(elapsed.moved_cdf(latest)[0]) + 1e-12


def test_the_excess_within_a_bound_is_the_integral_of_its_distribution() -> None:
    rng, off = np.random.default_rng(1), []
    for _ in range(200):
        rate, wait, sd, spread, hours = rng.uniform((0.01, 0.05, 0.0, 1.0, 1.0), (2.0, 8.0, 0.8, 12.0, 100.0))
        pool = SpotPool(*(np.asarray([v]) for v in (rate, wait, wait * rng.uniform(1.0, 8.0), sd, spread)))
        elapsed = describe_elapsed(one_job(hours), pool)
        bound = float(np.exp(rng.uniform(np.log(0.1), np.log(400.0))))
        reached = elapsed.cdf(elapsed.floor + np.linspace(0.0, bound, 2001))
        expected = bound * (reached[-1] - (reached[1:] + reached[:-1]).mean() / 2.0)
        off.append(abs(float(elapsed.excess_within(elapsed.floor + bound)[0]) - expected) / bound)
    assert np.quantile(off, 0.5) < 0.01
    assert np.quantile(off, 0.9) < 0.06


def test_without_slack_all_is_on_demand_and_without_interruptions_nothing() -> None:
    calm = SpotPool(*(np.asarray([v]) for v in (0.0, 1.0, 1.0, 0.3, 5.0)))
    assert fallback(one_job(10.0), calm, np.asarray([0.5])).work_share[0] == pytest.approx(0.0, abs=1e-9)
    busy = SpotPool(*(np.asarray([v]) for v in (0.5, 2.0, 5.0, 0.3, 5.0)))
    assert fallback(one_job(10.0), busy, np.asarray([-0.1])).work_share[0] == pytest.approx(1.0)


SPREADS = st.just(0.0) | st.floats(0.05, 0.6)


def mean_of(pool: SpotPool, hours: float, slack: float, sigma: float) -> Any:
    return mean_fallback(one_job(hours), pool, *(np.asarray([v]) for v in (slack, 1.02 * hours, sigma)))


@given(POOLS, st.floats(1.0, 200.0), SPREADS, st.lists(st.floats(-20.0, 400.0), min_size=2, max_size=6))
def test_more_slack_never_means_more_on_demand_whatever_the_speed(
    pool: SpotPool, hours: float, sigma: float, slack: list[float]
) -> None:
    made = [mean_of(pool, hours, value, sigma) for value in sorted(slack)]
    share, change = ([float(getattr(m, name)[0]) for m in made] for name in ("work_share", "p_change"))
    assert all(-1e-9 <= value <= 1 + 1e-9 for value in (*share, *change))
    assert np.all(np.diff(share) <= 2e-3) and np.all(np.diff(change) <= 2e-3)  # the error of the quadrature


def test_the_mean_over_speeds_is_that_of_many_speeds() -> None:
    rng, off = np.random.default_rng(2), []
    levels = (np.arange(400) + 0.5) / 400
    for _ in range(60):
        low, high = (0.01, 0.05, 0.0, 1.0, 2.0, 0.1), (2.0, 8.0, 0.8, 12.0, 100.0, 0.5)
        rate, wait, sd, spread, hours, sigma = rng.uniform(low, high)
        one = np.asarray([rate, wait, wait * rng.uniform(1.0, 8.0), sd, spread])
        slack = hours * rng.uniform(-0.1, 1.5)
        slower = np.exp(sigma * normal_quantile_by_table(levels))
        slower /= slower.mean()
        left = fallback(
            scaled_job(one_job(hours), slower),
            SpotPool(*np.repeat(one[:, None], len(levels), axis=1)),
            slack + 1.02 * hours * (1.0 - slower),
        )
        made = mean_of(SpotPool(*one[:, None]), hours, slack, sigma)
        off.append(
            (
                float(made.work_share[0]) - float((slower * left.work_share).mean()),
                float(made.p_change[0]) - float(left.p_change.mean()),
                float(made.wasted_hours[0]) / hours - float(left.wasted_hours.mean()) / hours,
            )
        )
    assert np.max(np.abs(off), axis=0) == pytest.approx(np.zeros(3), abs=0.03)
    assert np.abs(np.mean(off, axis=0)) == pytest.approx(np.zeros(3), abs=0.01)


def test_a_speed_that_may_be_slow_costs_on_demand_that_the_prediction_does_not() -> None:
    """A calm pool never interrupts: at the predicted speed nothing is left to on-demand, of slow runs all is."""
    calm = SpotPool(*(np.asarray([v]) for v in (0.0, 1.0, 1.0, 0.3, 5.0)))
    assert float(mean_of(calm, 10.0, 2.0, 0.0).work_share[0]) == pytest.approx(0.0, abs=1e-9)
    slow = mean_of(calm, 10.0, 2.0, 0.3)
    edge = np.log(1.0 + 2.0 / 10.2) / 0.3 + 0.15
    assert float(slow.p_change[0]) == pytest.approx(1.0 - NormalDist().cdf(edge), abs=1e-4)
    assert float(slow.work_share[0]) == pytest.approx(1.0 - NormalDist().cdf(edge - 0.3), abs=1e-4)


@given(POOLS, st.floats(2.0, 100.0), st.floats(1.05, 3.0))
def test_outcomes_keep_the_deadline_where_on_demand_can(pool: SpotPool, hours: float, ratio: float) -> None:
    steady = hours * 1.02
    room = steady * ratio + 0.3
    task = Task(hours, 0.5, 0.01, 0.2, 0.001, steady, 0.0, room, 0.05, has_fallback=True)
    made = possible_outcomes(task, pool)
    assert np.all(made.elapsed <= room + 1e-6)
    assert np.all((made.spot >= 0) & (made.on_demand >= 0))
    assert np.all(made.spot + made.on_demand >= hours * 0.999)


@given(st.lists(st.tuples(st.floats(0.05, 2.0), st.floats(0.1, 5.0)), min_size=2, max_size=3), st.booleans())
def test_a_union_is_up_more_than_its_zones(zones: list[tuple[float, float]], apart: bool) -> None:
    rate, wait = (np.asarray([column]) for column in zip(*zones, strict=True))
    pool = SpotPool(rate, wait, wait * 5.0, np.full_like(rate, 0.4), np.full_like(rate, 8.0))
    region = np.arange(len(zones))[None, :] if apart else np.zeros((1, len(zones)), dtype=np.int64)
    union = unite(pool, region, (0.43, 0.14))
    assert union.shares.sum() == pytest.approx(1.0)
    up = 1.0 / (1.0 + rate * wait)
    down = float(1.0 - 1.0 / (1.0 + union.pool.rate * union.pool.wait)[0])
    assert down <= float((1.0 - up).max()) + 1e-9
    assert union.pool.rate[0] <= rate.max() + 1e-9
    assert (union.moves[0] > 0) == apart
    linked = unite(pool, region, (0.9, 0.9))
    assert linked.pool.wait[0] >= union.pool.wait[0] - 1e-12  # what fails together helps less


def test_sets_of_alike_zones_are_united_as_each_by_itself() -> None:
    rng = np.random.default_rng(7)
    kinds = SpotPool(
        *(rng.uniform(0.2, 2.0, 3) for _ in range(5))
    )  # three kinds of nine zones in three regions
    zones, region, evidence = kinds.take(np.arange(9) % 3), np.arange(9) // 3, np.asarray([0, -1, 0] * 3)
    members = np.asarray([own for own in subsets(9, 3) if len(own) == 3])
    apart = unite(zones.take(members), region[members], (0.43, 0.14), evidence[members])
    union = unite_alike(zones, members, region[members], (0.43, 0.14), evidence)
    for name in SpotPool.__dataclass_fields__:
        assert getattr(union.pool, name).tolist() == getattr(apart.pool, name).tolist()
    assert union.shares.tolist() == apart.shares.tolist()
    assert union.moves.tolist() == apart.moves.tolist()


def test_a_zone_too_dear_alone_is_still_worth_its_share_of_a_set() -> None:
    made = answer([on_demand(), spot("0.50", "use1-az1"), spot("1.50", "use1-az2")], 40.0)
    assert made.found is not None
    context, candidates = made.context, made.found.candidates
    at = spot_candidates(candidates)
    alone = context.market.offer_set.usd_per_hour[candidates.offer[at]] * candidates.work_hours[at]
    partner = on_demand_partners(context.market, np.zeros(len(context.market.is_spot), dtype=np.int64))
    for best, found in ((alone.min() * 0.9, False), (alone.mean(), True), (alone.max() * 1.2, True)):
        useful = work_floor(candidates, at) <= best
        cells = set_cells(candidates, at, (partner, np.full_like(partner, -1)), useful, one_region=False)
        assert (cells is not None) == found


def test_one_zone_seen_as_a_union_is_itself() -> None:
    one = SpotPool(*(np.asarray([[v]]) for v in (0.4, 2.0, 9.0, 0.5, 7.0)))
    union = unite(one, np.zeros((1, 1), dtype=np.int64), (0.43, 0.14))
    values = [
        float(getattr(union.pool, name)[0])
        for name in ("rate", "wait", "first_wait", "dispersion", "frailty_sd")
    ]
    assert values == pytest.approx([0.4, 2.0, 9.0, 7.0, 0.5])


def test_subsets_and_quadrature() -> None:
    assert subsets(3, 3) == [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
    nodes, weights = unit_quadrature(5)
    assert weights.sum() == pytest.approx(1.0)
    assert weights @ nodes**9 == pytest.approx(0.1)
