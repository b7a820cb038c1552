"""Policies: never late, never dearer than on-demand for nothing, and the survival policy is what its equations say."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.spot.hazards import HazardTable, age_bucket, load_hazards
from planner.spot.policy.chain import SpellChain
from planner.spot.policy.induction import FRESH_MASK, STAY_ON_DEMAND, Induction, Problem, Restart
from planner.spot.policy.job import Action, JobState, SpotJob, ZoneState
from planner.spot.policy.registry import POLICIES, make_policy
from planner.spot.policy.survival import SurvivalPolicy, one_zone_chain
from planner.spot.policy.view import IDLE, ON_DEMAND, SPOT, ArrayPolicy
from tests.draws import draws
from tests.planner.spot.reference_replay import replay
from tests.planner.spot.test_replay import job, tables

PROMISING = [name for name in POLICIES if name != "spot_only"]


def jobs() -> dict[str, SpotJob]:
    return {
        "one zone": job(),
        "tight": job(deadline_hours=2.2),
        "three zones": job(3),
        "three zones, tight": job(3, deadline_hours=2.2),
        "broken restart": job(2, restart_hours=0.07),
        "long restart": job(restart_hours=0.7, deadline_hours=5.0),
        "ten minutes": job(tick_hours=1 / 6, restart_hours=0.02, work_hours=4.0, deadline_hours=4.4),
        "ten minutes, long restart": job(
            2, tick_hours=1 / 6, restart_hours=0.4, work_hours=3.0, deadline_hours=5.0
        ),
        "on-demand comes late": job(2, on_demand_acquire_hours=0.35, deadline_hours=4.05),
        "work between ticks": job(work_hours=1.234, deadline_hours=2.71),
    }


@cache
def made(name: str, which: str) -> ArrayPolicy:
    this = jobs()[which]
    return make_policy(name, this, tables(this))  # type: ignore[arg-type]


@draws(10)
@given(st.data())
@pytest.mark.parametrize("which", jobs())
@pytest.mark.parametrize("name", PROMISING)
def test_no_deadline_is_missed_whatever_spot_does(name: str, which: str, data: st.DataObject) -> None:
    this = jobs()[which]
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    change = data.draw(st.sampled_from([0.02, 0.1, 0.4, 0.9]))
    ticks = int(this.deadline_hours / this.tick_hours + 1e-6)
    flips = rng.random((len(this.zones), ticks)) < change
    seen = (np.cumsum(flips, axis=1) + rng.integers(0, 2, (len(this.zones), 1))) % 2 == 0
    assert replay(this, made(name, which), seen).finished


class Adversary:
    """Takes spot away at the worst moment: as soon as the policy has started it, or runs low on slack."""

    def __init__(self, policy: ArrayPolicy, this: SpotJob, spare_ticks: float, ticks_up: int) -> None:
        self.policy, self.job, self.spare, self.ticks_up = policy, this, spare_ticks, ticks_up
        self.since, self.gone = 0, False

    def decide(self, state: JobState) -> Action:
        view = self.policy.view
        slack = view.deadline_hours - state.elapsed_hours - (self.job.work_hours - state.done_hours)
        if (
            slack <= view.on_demand_start_hours + self.spare * self.job.tick_hours
            or self.since >= self.ticks_up
        ):
            self.gone = True
        zones = tuple(ZoneState(z.name, not self.gone, z.usd_per_hour, z.since_hours) for z in state.zones)
        mode, zone, left = state.mode, state.zone, state.restart_left_hours
        if self.gone and mode == "spot":
            mode, zone, left = "idle", None, 0.0
        seen = JobState(
            state.elapsed_hours, state.done_hours, mode, zone, left, state.checkpoint_region, zones
        )
        action = self.policy.decide(seen)
        self.since += action.mode == "spot"
        return action


@pytest.mark.parametrize("which", jobs())
@pytest.mark.parametrize("name", PROMISING)
def test_an_adversary_cannot_make_it_late(name: str, which: str) -> None:
    this = jobs()[which]
    everything = np.ones((len(this.zones), int(this.deadline_hours / this.tick_hours + 1e-6)), dtype=bool)
    late = [
        (spare_ticks, ticks_up)
        for spare_ticks in (0.0, 0.5, 1.0, 2.0)
        for ticks_up in (0, 1, 3, 10**6)
        if not replay(this, Adversary(made(name, which), this, spare_ticks, ticks_up), everything).finished
    ]
    assert late == []


@pytest.mark.parametrize("name", PROMISING)
@pytest.mark.parametrize("count", [1, 3])
def test_a_deadline_out_of_reach_is_worked_at_from_launch(name: str, count: int) -> None:
    this = job(count, deadline_hours=1.0)
    result = replay(this, make_policy(name, this, tables(this)), np.zeros((count, 10), bool))  # type: ignore[arg-type]
    assert result.on_demand_hours == pytest.approx(1.0)


@pytest.mark.parametrize("usd_per_hour", [4.0, 5.0])
def test_spot_that_saves_nothing_is_left_alone(usd_per_hour: float) -> None:
    this = job(2)
    prices = np.full((2, 40), usd_per_hour)
    result = replay(this, SurvivalPolicy(this, tables(this)), np.ones((2, 40), bool), prices)  # type: ignore[arg-type]
    assert result.spot_hours == 0.0
    assert result.on_demand_hours == pytest.approx(2.2)


@pytest.mark.parametrize("usd_per_hour", [4.0, 5.0, float("nan"), float("inf")])
@pytest.mark.parametrize("count", [1, 2])
def test_nobody_waits_for_spot_that_saves_nothing_or_has_no_price(usd_per_hour: float, count: int) -> None:
    this = job(count)
    zones = tuple(replace(zone, usd_per_hour=usd_per_hour) for zone in this.zones)
    this = replace(this, zones=zones)
    result = replay(this, SurvivalPolicy(this, tables(this)), np.zeros((count, 40), bool))  # type: ignore[arg-type]
    assert result.finish_hours == pytest.approx(2.2)


def test_a_zone_without_a_price_is_not_started_and_others_are() -> None:
    this = job(2)
    first, second = this.zones
    this = replace(this, zones=(replace(first, usd_per_hour=float("nan")), second))
    prices = np.array([[float("nan")] * 40, [second.usd_per_hour] * 40])
    result = replay(this, SurvivalPolicy(this, tables(this)), np.ones((2, 40), bool), prices)  # type: ignore[arg-type]
    assert result.finished
    assert result.spot_hours == pytest.approx(2.2)


def test_a_run_on_spot_without_slack_goes_on_while_it_makes_progress() -> None:
    this = job(deadline_hours=2.2)
    result = replay(this, SurvivalPolicy(this, tables(this)), np.ones((1, 22), bool))  # type: ignore[arg-type]
    assert result.finished
    assert result.on_demand_hours == pytest.approx(2.2)  # a spot start could not be recovered at launch


def test_without_restart_cost_spot_is_taken_down_to_the_last_tick() -> None:
    """Zero restart: nothing is lost by trying, so the survival policy takes all the spot there is, as greedy does."""
    this = job(restart_hours=0.0, work_hours=1.0, deadline_hours=3.0)
    rng = np.random.default_rng(3)
    for _ in range(20):
        seen = rng.random((1, 30)) < 0.5
        survival = replay(this, SurvivalPolicy(this, tables(this)), seen)  # type: ignore[arg-type]
        greedy = replay(this, make_policy("greedy", this, {}), seen)
        assert survival.cost_usd <= greedy.cost_usd + 1e-9


def table(down: float, back: float) -> HazardTable:
    like = load_hazards().table_for(job().zones[0])
    flat = np.ones(len(like.age_edges_hours))
    return HazardTable(like.age_edges_hours, down * flat, back * flat, 0.0, 0.0, 0.5, 0.0, "given")


def brute_force(
    chain: SpellChain, left: int, work: int, restart: int, price: float
) -> dict[tuple[str, int], float]:
    """Expected cost by plain recursion over modes and stages, for whole-tick restarts."""
    half = len(chain.leave_up)

    @cache
    def best(left: int, work: int, mode: str, wait: int, stage: int) -> float:
        if work == 0:
            return 0.0
        if left == 0:
            return 1e6
        return min(options(left, work, mode, wait, stage).values())

    def options(left: int, work: int, mode: str, wait: int, stage: int) -> dict[str, float]:
        found = {"wait": onward(left, work, "idle", 0, stage)}
        if stage < half:
            found["spot"] = run(left, work, "spot", restart, stage)
            if mode == "spot":
                found["stay"] = run(left, work, "spot", wait, stage)
        found["on_demand"] = run(left, work, "on_demand", restart, stage)
        if mode == "on_demand":
            found["keep"] = run(left, work, "on_demand", wait, stage)
        return found

    def run(left: int, work: int, mode: str, wait: int, stage: int) -> float:
        cost = price if mode == "spot" else 1.0
        return cost + onward(left, work - (wait == 0), mode, max(wait - 1, 0), stage)

    def onward(left: int, work: int, mode: str, wait: int, stage: int) -> float:
        if work == 0:
            return 0.0
        total = 0.0
        for then, chance in enumerate(chain.step[stage]):
            if chance:
                lost = mode == "spot" and then >= half
                total += chance * best(left - 1, work, "idle" if lost else mode, 0 if lost else wait, then)
        return total

    return {
        (name, stage): cost
        for stage in range(2 * half)
        for name, cost in options(left, work, "on_demand", 0, stage).items()
    }


@pytest.mark.parametrize("restart", [0, 1, 2])
def test_the_induction_is_the_expectation_by_brute_force(restart: int) -> None:
    given = table(2.0, 3.0)
    chain = SpellChain(given.age_edges_hours, given.down_per_hour, given.up_per_hour, 0.1)
    start = Restart(restart * 0.1, 0.1, 1)
    problem = Problem(chain, 3, 5, 1, start, start, 0.0, 0.3)
    codes = Induction(problem).codes
    code_of = {"wait": IDLE, "spot": SPOT, "on_demand": ON_DEMAND}
    for left, work in ((4, 2), (5, 3), (6, 2), (7, 3)):
        costs = brute_force(chain, left, work, restart, 0.3)
        for stage in range(2 * len(chain.leave_up)):
            fresh = {name: costs[name, stage] for name in code_of if (name, stage) in costs}
            code = int(codes[stage, left - work, work])
            chosen = next(name for name, number in code_of.items() if number == code & FRESH_MASK)
            assert fresh[chosen] == pytest.approx(min(fresh.values()), abs=1e-3)
            if abs(costs["keep", stage] - min(fresh.values())) > 1e-3:
                assert bool(code & STAY_ON_DEMAND) == (costs["keep", stage] < min(fresh.values()))


@pytest.mark.parametrize("tick_hours", [0.1, 1 / 6, 0.2, 1.0])
def test_in_one_zone_every_age_leaves_with_the_hazard_of_its_bucket(tick_hours: float) -> None:
    given = load_hazards().table_for(job().zones[0])
    chain = one_zone_chain(job(), given, tick_hours)
    ages = np.asarray(np.arange(1, round(60 / tick_hours)) * tick_hours, dtype=np.float64)
    stage, bucket = chain.stage(ages), age_bucket(ages)
    for leave, hazard in ((chain.leave_up, given.down_per_hour), (chain.leave_down, given.up_per_hour)):
        per_hour = -np.log1p(-leave[stage]) / tick_hours
        ratio = per_hour / hazard[bucket]
        assert ratio == pytest.approx(ratio[0])  # no stage straddles two buckets
    assert (np.diff(stage) >= 0).all()


def test_long_jobs_are_planned_on_a_coarser_tick_and_stay_safe() -> None:
    this = job(work_hours=200.0, deadline_hours=300.0)
    policy = SurvivalPolicy(this, tables(this))  # type: ignore[arg-type]
    assert policy.grid.tick_hours > this.tick_hours
    assert replay(this, policy, np.zeros((1, 3000), bool)).finished
    assert replay(this, policy, np.ones((1, 3000), bool)).on_demand_hours == 0.0


def test_it_waits_with_slack_and_does_not_without() -> None:
    this = job(work_hours=2.0, deadline_hours=20.0)
    policy = SurvivalPolicy(this, {"z0": table(0.2, 0.5)})
    down = (ZoneState("z0", False, 1.0, 0.1),)
    assert policy.decide(JobState(0.0, 0.0, "idle", None, 0.0, None, down)).mode == "idle"
    assert policy.decide(JobState(17.8, 0.0, "idle", None, 0.0, None, down)).mode == "on_demand"


def test_it_prefers_the_zone_that_lasts_at_equal_prices() -> None:
    this = job(2, restart_hours=0.4)
    policy = SurvivalPolicy(this, {"z0": table(4.0, 1.0), "z1": table(0.05, 1.0)})
    seen = tuple(ZoneState(name, True, 1.0, 0.5) for name in ("z0", "z1"))
    assert policy.decide(JobState(0.0, 0.0, "idle", None, 0.0, None, seen)) == Action("spot", "z1")


@pytest.mark.parametrize("egress_usd", [0.5, 2.0])
def test_on_demand_is_no_way_round_a_transfer(egress_usd: float) -> None:
    # two poor zones beside the checkpoint, a good one behind a transfer: on-demand is no stop on the way to the good
    # zone that saves the transfer, tick after tick, while spot is up and slack is plenty
    this = job(3, work_hours=6.0, deadline_hours=12.0, restart_hours=0.1, egress_usd=egress_usd)
    places = zip(this.zones, ("a", "a", "b"), (1.65, 1.6, 1.2), strict=True)
    this = replace(this, zones=tuple(replace(z, region=r, usd_per_hour=usd) for z, r, usd in places))
    known = {"z0": table(0.8, 0.3), "z1": table(0.8, 0.3), "z2": table(0.27, 0.37)}
    up = np.ones((3, 120), dtype=bool)
    up[2, :30] = False
    assert replay(this, SurvivalPolicy(this, known), up).on_demand_hours == 0.0
