"""A fleet meets its deadline with the confidence asked, or is infeasible and says what would be enough."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.instances.drawn_workloads import draw_workload
from planner.errors import TimeLimitError
from planner.fleet.chance import Progress
from planner.fleet.luck import luck_at
from planner.judge.lines import verify_plan
from planner.plan.front_notes import verdict_lines
from planner.plan.report_choice import verdict
from planner.render.claims import best_plan
from tests.draws import share_of
from tests.planner.fleet.simulate_whole_runs import hours_up
from tests.planner.fleet.test_spine_fleet import POOL, exactly, finely, fleet
from tests.planner.real_catalog import compared
from tests.planner.spine_catalogs import loaded, make_catalog, plan_on

ROOMY = {"max_nodes": 20, "deadline": "11h"}


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.99])
def test_a_fleet_on_spot_meets_its_deadline_with_the_confidence_asked(confidence: float) -> None:
    job = fleet(6, {**ROOMY, "deadline_confidence": confidence})
    plan = exactly(POOL, job)
    assert plan.status == "planned"
    assert any(line.purchase_option == "spot" for line in plan.lines) == (confidence <= 0.9)
    assert plan.risk is not None and plan.risk.p_meet_deadline is not None
    assert confidence <= plan.risk.p_meet_deadline < 1
    if plan.launch is not None:
        assert plan.launch.p_meet_deadline == plan.risk.p_meet_deadline
        # nine times of ten it is done by P90, and that is in time
        assert (plan.launch.p90_hours <= 11.0) == (plan.risk.p_meet_deadline >= 0.9)
    assert verify_plan(plan.to_dict(), loaded(job).workload, make_catalog(POOL).offers) == []


def test_a_fleet_made_for_less_confidence_is_rejected() -> None:
    plan = exactly(POOL, fleet(6, {**ROOMY, "deadline_confidence": 0.8})).to_dict()
    surer = loaded(fleet(6, {**ROOMY, "deadline_confidence": 0.99})).workload
    faults = verify_plan(plan, surer, make_catalog(POOL).offers)
    assert any("P(deadline met)" in fault and "below 0.99" in fault for fault in faults)


def test_where_no_mix_is_sure_enough_the_answer_names_what_would_be() -> None:
    spot = [offer for offer in POOL if offer.purchase_option == "spot"]
    least = 7  # enough at the mean of spot, not surely enough
    plan = exactly(spot, fleet(6, {**ROOMY, "max_nodes": least, "deadline_confidence": 0.9}))
    assert plan.status == "infeasible"
    assert plan.proof is not None and "not proven" in plan.proof.note
    assert any("not proven" in line for line in verdict_lines(plan))
    told = {item.constraint: item for item in plan.relaxations}
    assert set(told) == {"confidence", "deadline"}
    assert told["confidence"].current == "0.9"
    enough = float(told["confidence"].needed)
    assert 0 < enough < 0.9
    limits = {"max_nodes": least, "deadline_confidence": 0.9, "deadline": told["deadline"].needed}
    assert exactly(spot, fleet(6, limits)).status == "planned"
    assert (
        exactly(spot, fleet(6, {**ROOMY, "max_nodes": least, "deadline_confidence": enough})).status
        == "planned"
    )


def test_work_is_spread_over_offers_where_one_is_never_sure_enough() -> None:
    """More workers of one offer do not even out the level of its hazards; more nodes never make the fleet dearer."""
    of_any_size = []
    for more in (1, 2, 3):
        asked = draw_workload(82300, kind="fleet")
        limits = {**asked["constraints"], "deadline": "40h"}
        plan = compared({**asked, "constraints": {**limits, "max_nodes": more * limits["max_nodes"] // 2}})
        assert plan.status == "planned"
        assert len(plan.lines) > 1
        of_any_size.append(plan.total_usd)
    assert of_any_size == sorted(of_any_size, reverse=True)


def test_a_search_that_was_cut_short_calls_nothing_infeasible() -> None:
    spot = [offer for offer in POOL if offer.purchase_option == "spot"]
    job = fleet(6, {**ROOMY, "max_nodes": 7, "deadline_confidence": 0.9})
    with pytest.raises(TimeLimitError, match=r"likely enough to meet its deadline .* raise --time-limit"):
        plan_on(make_catalog(spot), job, gap=0.0, time_limit_s=1e-6)


def test_the_headline_says_cheapest_only_of_what_is_proven_so() -> None:
    assert best_plan("Cheapest", "optimal", 0.0009) == "Cheapest feasible plan"
    assert best_plan("Cheapest", "feasible", 0.02) == "Feasible plan within 2.1 % of the cheapest"
    assert best_plan("Cheapest", "feasible", 1.0) == "Feasible plan"
    plan = exactly(POOL, finely(6, 40, ROOMY))
    assert plan.proof is not None and plan.proof.status == "feasible"
    assert verdict(plan).startswith("Feasible plan within ")


def test_chances_follow_the_normal_distribution_and_never_fall_with_time() -> None:
    """Without interruptions the speed alone decides; with them an early deadline is likelier met, a late one less."""
    line: dict[str, Any] = {"lead": np.array([1.0]), "most": np.array([np.inf]), "rate": np.array([100.0])}
    steady = Progress(**line, sigma=np.array([0.2]))
    assert steady.chance(11.0, 1000.0) == pytest.approx(0.5, abs=1e-4)
    assert steady.chance(11.0, 1000.0 * np.exp(-0.2 * 1.2815515655)) == pytest.approx(0.9, abs=1e-4)
    taken = Progress(
        **line, sigma=np.array([0.2]), luck=luck_at(*(np.array([x]) for x in (0.2, 1.0, 0.9, 1.0)))
    )
    chances = [taken.chance(hours, 1000.0) for hours in (5, 9, 11, 13, 20, 40)]
    assert chances == sorted(chances)
    assert 0.5 < taken.chance(14.0, 1000.0) < steady.chance(14.0, 1000.0)
    assert taken.chance(taken.hours_for(0.9, 1000.0), 1000.0) == pytest.approx(0.9, abs=1e-6)
    for hours in (9, 11, 14, 20):
        chance = taken.chance(hours, 1000.0)
        for level in (0.0, chance - 1e-4, chance - 1e-12, chance, chance + 1e-12, chance + 1e-4, 1.1):
            assert taken.reaches(level, hours, 1000.0) == (chance >= level)
    block = Progress(**{**line, "most": np.array([5.0])}, sigma=np.array([0.2]))
    assert block.hours_for(0.9, 1000.0) == np.inf


# machines, interruptions per hour, hours until one is back, log sd of their level, hours of work of each machine
FEW = [(1, 0.3, 4.0, 0.88, 3.0), (1, 1.39, 3.58, 0.4, 3.0), (1, 0.1, 1.0, 0.88, 10.0), (4, 0.3, 4.0, 0.88, 3.0),
       (12, 0.3, 4.0, 0.88, 5.0)]  # fmt: skip


@pytest.mark.parametrize(("machines", "rate", "wait", "frailty_sd", "each"), FEW)
def test_the_chance_of_few_machines_is_that_of_simulated_ones(
    machines: int, rate: float, wait: float, frailty_sd: float, each: float
) -> None:
    """From hardly longer than the work to many times as long; never before the work can be done."""
    one, work = np.asarray, machines * each
    progress = Progress(
        lead=one([0.0]), most=one([np.inf]), rate=one([float(machines)]), sigma=one([0.0]),
        count=one([float(machines)]), luck=luck_at(*(one([x]) for x in (rate, wait, frailty_sd, 1.0))),
    )  # fmt: skip
    assert progress.chance(0.99 * each, work) == 0.0
    for times in (1.05, 1.5, 2.5, 6.0):
        hours = round(each * times / 0.02) * 0.02
        up = hours_up(machines=machines, deadline=hours, rate=rate, wait=wait, frailty_sd=frailty_sd,
                      outcomes=2_000, seed=1)  # fmt: skip
        assert progress.chance(hours, work) == pytest.approx(float((up >= work).mean()), abs=0.04), hours


@pytest.mark.parametrize("run_units", [0.0, 50.0])
@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_hours_of_a_fleet_that_nothing_interrupts_are_those_of_its_chance(
    level: float, run_units: float
) -> None:
    """Found at the speed of that chance; just before, the chance is lower. Lines differ in speed, lead and length."""
    draw = np.random.default_rng(7)
    for _ in range(20):
        progress = Progress(
            lead=draw.uniform(0.0, 2.0, 3), most=np.array([np.inf, 6.0, np.inf]), rate=draw.uniform(40.0, 200.0, 3),
            sigma=draw.uniform(0.1, 0.4, 3),
            count=draw.integers(1, 4, 3).astype(float), run_units=run_units,
        )  # fmt: skip
        hours = progress.hours_for(level, 1000.0)
        assert progress.chance(hours * (1 + 1e-9), 1000.0) >= level - 1e-9
        assert progress.chance(hours * (1 - 1e-6), 1000.0) < level


def test_spot_is_waited_for_once_and_not_at_each_run() -> None:
    """The same work in ten times as many runs: a worker goes on from run to run on the machine that it has."""
    spot = [offer for offer in POOL if offer.purchase_option == "spot"]
    long, short = (finely(6, parts, {**ROOMY, "deadline_confidence": 0.8}) for parts in (10, 100))
    plans = [exactly(spot, one) for one in (long, short)]
    assert [plan.status for plan in plans] == ["planned", "planned"]
    long_hours, short_hours = (plan.hours for plan in plans)
    assert short_hours == pytest.approx(long_hours, rel=0.05)
    assert float(plans[1].total_usd) == pytest.approx(float(plans[0].total_usd), rel=0.05)
    assert verify_plan(plans[1].to_dict(), loaded(short).workload, make_catalog(spot).offers) == []


@pytest.mark.parametrize("level", [0.1, 0.9])
@pytest.mark.parametrize("seed", range(share_of(10)))
def test_hours_of_whole_runs_on_spot_are_found_among_the_steps_of_the_chance(
    level: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are the first moment with the chance; secants and halves alone look at up to 52 hours."""
    draw = np.random.default_rng(seed)
    levels = ((0.8, draw.uniform(0.0, 2.0, 3)), (0.2, np.array([0.0, 1.0, np.inf])))
    progress = Progress(
        lead=np.zeros(3), most=np.array([np.inf, 60.0, np.inf]), rate=draw.uniform(40.0, 200.0, 3),
        sigma=draw.uniform(0.1, 0.4, 3), levels=levels, count=draw.integers(1, 4, 3).astype(float), run_units=100.0,
        luck=luck_at(*(np.array(row) for row in ([0.2, 0.1, 0.3], [1.0, 4.0, 2.0], [0.9, 0.4, 0.9], [1.0] * 3))),
    )  # fmt: skip
    chance, looked_at = Progress.chance, []

    def counted(self: Progress, hours: float, work: float) -> float:
        looked_at.append(hours)
        return chance(self, hours, work)

    monkeypatch.setattr(Progress, "chance", counted)
    hours = progress.hours_for(level, 2_000.0)
    assert chance(progress, hours, 2_000.0) >= level - 1e-12
    assert chance(progress, hours * (1 - 2e-12), 2_000.0) < level
    assert len(looked_at) <= 32
