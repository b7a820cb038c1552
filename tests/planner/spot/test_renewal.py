"""The renewal model of spot runs against its laws and against simulation."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.spot_checkpoint import useful_ratio
from planner.normal.arrays import normal_cdf_by_table
from planner.spot.distribution import SPREAD_POINTS, SpotPool, describe_elapsed, scaled_job
from planner.spot.meet import calibration
from planner.spot.moments import compute_moments, split_job
from planner.spot.renewal import FRAILTY_SD, p_meet_deadline, spot_outcome, young_interval_hours
from tests.draws import draws
from tests.planner.spot.simulate_spot import Case, simulate

CASES = [
    Case(48, 0.24, 1.3, 1.0, 0.05, 0.2, 0.008),
    Case(48, 0.05, 1.3, 1.5, 0.05, 0.2, 0.008),
    Case(12, 0.24, 2.0, 0.5, 0.02, 0.2, 0.033),  # the warning saves the work
    Case(100, 0.02, 4.0, 3.0, 0.10, 0.3, 0.0),
    Case(200, 0.5, 1.0, 0.5, 0.05, 0.2, 0.1),
    Case(24, 0.8, 0.3, 0.5, 0.17, 0.4, 0.0),
]

positive = st.floats(0.01, 10)
cases = st.builds(
    Case,
    work=st.floats(0.1, 500),
    rate=st.floats(0, 3),
    wait=st.floats(0, 20),
    interval=st.floats(0.05, 20),
    write=st.floats(0, 0.5),
    restart=st.floats(0, 1),
    notice=st.floats(0, 0.2),
)


def quantile(case: Case, level: float) -> tuple[float, float]:
    """Elapsed and paid hours of one run that are not exceeded with probability `level`."""
    one = {name: np.asarray([float(value)]) for name, value in vars(case).items()}
    job = split_job(one["work"], one["interval"], one["write"], one["restart"], one["notice"])
    pool = SpotPool(one["rate"], one["wait"], one["wait"], np.asarray([FRAILTY_SD]), np.ones(1))
    elapsed, paid = describe_elapsed(job, pool).quantile(level)
    return float(elapsed[0]), float(paid[0])


def test_the_normal_distribution_of_many_numbers_is_that_of_each_one() -> None:
    grid = np.linspace(-8.0, 8.0, 2001)
    edges = [np.inf, -np.inf, np.nan, 0.0, -0.0, 8.5, -8.5]
    many = np.concatenate([grid, np.nextafter(grid, 9.0), np.nextafter(grid, -9.0), edges])
    each = np.asarray([float(normal_cdf_by_table(np.asarray([value]))[0]) for value in many.tolist()])
    assert normal_cdf_by_table(many) == pytest.approx(each, abs=1e-15, nan_ok=True)
    assert normal_cdf_by_table(many.reshape(2, -1)).shape == (2, len(many) // 2)
    assert np.diff(normal_cdf_by_table(np.sort(many[:-7]))).min() >= 0.0


@pytest.mark.parametrize("case", CASES)
def test_means_agree_with_simulation(case: Case) -> None:
    elapsed, paid, count = simulate(case, 3000, seed=11, frailty_sd=0.0)
    outcome = spot_outcome(case.work, **case.arguments(), frailty_sd=0.0)
    assert outcome.expected_elapsed_hours[0] == pytest.approx(elapsed.mean(), rel=0.02)
    assert outcome.expected_paid_hours[0] == pytest.approx(paid.mean(), rel=0.02)
    assert outcome.expected_interruptions[0] == pytest.approx(count.mean(), rel=0.04)


@pytest.mark.parametrize("case", CASES)
def test_means_probability_and_p90_with_frailty_agree_with_simulation(case: Case) -> None:
    elapsed, paid, _ = simulate(case, 6000, seed=12, frailty_sd=0.35)
    outcome = spot_outcome(case.work, **case.arguments())
    assert outcome.expected_elapsed_hours[0] == pytest.approx(elapsed.mean(), rel=0.02)
    assert outcome.expected_paid_hours[0] == pytest.approx(paid.mean(), rel=0.02)
    deadlines = np.quantile(elapsed, [0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 0.97])
    chance = p_meet_deadline(case.work, **case.arguments(), deadline_hours=deadlines)
    simulated = [(elapsed <= deadline).mean() for deadline in deadlines]
    said = calibration("renewal")
    assert np.abs(said.invert(chance) - simulated).max() <= 0.03
    p90 = float(said.invert(0.9))  # what is called 90 % is this of the model itself
    late, _ = quantile(case, p90)
    assert (elapsed <= late).mean() == pytest.approx(p90, abs=0.03)


def test_uncertain_work_agrees_with_simulation() -> None:
    case = CASES[1]
    speeds = [NormalDist().inv_cdf((number + 0.5) / 24) for number in range(24)]
    elapsed = np.stack(
        [
            simulate(
                Case(case.work * float(np.exp(0.15 * z)), *list(vars(case).values())[1:]), 400, seed, 0.35
            )[0]
            for seed, z in enumerate(speeds)
        ]
    )
    deadlines = np.quantile(elapsed, [0.1, 0.3, 0.5, 0.7, 0.9])
    made = p_meet_deadline(case.work, **case.arguments(), deadline_hours=deadlines, work_log_sd=0.15)
    # the luck at each speed is calibrated, then averaged over the speeds
    shares = (elapsed[:, :, None] <= deadlines).mean(axis=1)
    assert np.abs(made - calibration("renewal").apply(shares).mean(axis=0)).max() <= 0.04


@given(cases)
def test_without_interruptions_the_run_is_deterministic(case: Case) -> None:
    calm = {**case.arguments(), "rate_per_hour": 0.0}
    whole = max(int(np.ceil(case.work / case.interval - 1e-9)) - 1, 0)
    hours = case.work + whole * case.write
    outcome = spot_outcome(case.work, **calm)
    assert outcome.expected_elapsed_hours == pytest.approx(hours, rel=1e-9)
    assert outcome.expected_paid_hours == pytest.approx(hours, rel=1e-9)
    assert quantile(replace(case, rate=0.0), 0.9)[0] == pytest.approx(hours, rel=1e-9)
    assert not outcome.expected_interruptions.any()
    chance = p_meet_deadline(case.work, **calm, deadline_hours=[hours * 0.999, hours, hours * 1.1])
    assert chance.tolist() == [0.0, 1.0, 1.0]


@given(cases, st.lists(st.floats(0.01, 5000), min_size=2, max_size=8), st.sampled_from([0.0, 0.2]))
def test_a_later_deadline_is_never_less_likely_met(case: Case, deadlines: list[float], sd: float) -> None:
    ordered = np.sort(np.asarray([*deadlines, np.inf]))
    made = p_meet_deadline(case.work, **case.arguments(), deadline_hours=ordered, work_log_sd=sd)
    assert np.all(np.diff(made) >= -1e-12)
    assert np.all((made >= 0) & (made <= 1))
    assert made[-1] == 1.0


@given(cases)
def test_hours_are_ordered_and_never_nan(case: Case) -> None:
    outcome = spot_outcome(case.work, **case.arguments())
    for values in vars(outcome).values():
        assert not np.isnan(values).any()
    assert outcome.expected_paid_hours >= case.work * (1 - 1e-9)
    assert outcome.expected_elapsed_hours >= outcome.expected_paid_hours * (1 - 1e-9)
    elapsed, paid = quantile(case, 0.9)
    assert elapsed >= paid * (1 - 1e-9)


@given(cases, st.floats(1.01, 4))
def test_more_interruptions_never_help(case: Case, more: float) -> None:
    calm = spot_outcome(case.work, **case.arguments())
    rough = spot_outcome(case.work, **{**case.arguments(), "rate_per_hour": case.rate * more})
    assert rough.expected_elapsed_hours >= calm.expected_elapsed_hours * (1 - 1e-9)
    assert rough.expected_paid_hours >= calm.expected_paid_hours * (1 - 1e-9)


@given(cases, st.integers(1, 64))
def test_a_gang_between_one_node_and_independent_nodes(case: Case, nodes: int) -> None:
    made = [
        spot_outcome(
            case.work, **{**case.arguments(), "nodes": nodes, "gang_exponent": e}
        ).expected_elapsed_hours[0]
        for e in (0.0, 0.45, 1.0)
    ]
    assert made[0] <= made[1] * (1 + 1e-9)
    assert made[1] <= made[2] * (1 + 1e-9)


@draws(50)
@given(st.floats(0.05, 5), st.floats(0.001, 0.2), st.floats(0, 0.5), st.floats(0.5, 100))
def test_paid_hours_follow_dalys_form(tau: float, delta: float, restart: float, mtbf: float) -> None:
    # Many whole segments, no saving notice, no frailty: work / paid tends to the published useful share.
    work = 1000 * tau
    arguments = Case(work, 1 / mtbf, 0.0, tau, delta, restart, 0.0).arguments()
    paid = spot_outcome(work, **arguments, frailty_sd=0.0).expected_paid_hours[0]
    assert work / paid == pytest.approx(float(useful_ratio(tau, delta, restart, mtbf)), rel=2e-3)


def test_young_interval() -> None:
    assert young_interval_hours(0.05, 10.0) == pytest.approx(1.0)
    assert young_interval_hours([0.05, 0.05], [10.0, np.inf]).tolist() == [1.0, np.inf]


def test_young_interval_is_nearly_the_best() -> None:
    taus = np.geomspace(0.05, 20, 400)
    for delta, mtbf in ((1 / 60, 4.0), (0.05, 4.0), (1 / 6, 8.0)):
        shares = useful_ratio(taus, delta, 0.2, mtbf)
        young = useful_ratio(young_interval_hours(delta, mtbf), delta, 0.2, mtbf)
        assert young >= shares.max() * 0.98


def test_hopeless_runs_are_infinite_not_wrong() -> None:
    case = Case(10_000, 2.0, 1.0, np.inf, 0.1, 0.2, 0.0)
    assert spot_outcome(case.work, **case.arguments()).expected_elapsed_hours[0] == np.inf
    assert p_meet_deadline(case.work, **case.arguments(), deadline_hours=1e6)[0] == 0.0
    assert quantile(case, 0.9) == (np.inf, np.inf)


def test_waits_too_short_to_matter_do_no_harm() -> None:
    case = Case(1.0, 1.0, 1e-288, 1.0, 0.0, 0.0, 0.0)
    assert quantile(case, 0.9)[0] == pytest.approx(1.0)
    assert p_meet_deadline(case.work, **case.arguments(), deadline_hours=2.0)[0] == 1.0


@pytest.mark.parametrize(
    ("name", "value"),
    [("rate_per_hour", -1), ("nodes", 0), ("checkpoint_interval_hours", 0), ("mean_wait_hours", np.inf)],
)
def test_impossible_arguments_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name if name != "nodes" else "nodes"):
        spot_outcome(10.0, **{**CASES[0].arguments(), name: value})


@pytest.mark.parametrize("scales", [None, (0.5, 1.0, 3.0)])
@pytest.mark.parametrize("notice", [(0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0.0, 1.0, 0.0)])
def test_frailties_in_one_call_give_what_each_gives(
    monkeypatch: pytest.MonkeyPatch, scales: tuple[float, ...] | None, notice: tuple[float, ...]
) -> None:
    work, interval = np.asarray([2.0, 48.0, 300.0]), np.asarray([0.5, np.inf, 2.0])
    job = split_job(work, interval, np.full(3, 0.05), np.full(3, 0.2), np.asarray(notice))
    if scales is not None:
        job = scaled_job(job, np.asarray(scales)[:, None])
    wait, dispersion = np.asarray([0.5, 3.0, 10.0]), np.asarray([1.0, 2.0, 3.0])
    pool = SpotPool(np.asarray([0.01, 0.3, 5.0]), wait, wait, np.asarray([FRAILTY_SD, 0.0, 0.8]), dispersion)
    together = describe_elapsed(job, pool)
    calls = []
    monkeypatch.setattr("planner.spot.distribution.MOST_STACKED", 0)
    monkeypatch.setattr(
        "planner.spot.distribution.compute_moments",
        lambda *given, **named: calls.append(given) or compute_moments(*given, **named),
    )
    alone = describe_elapsed(job, pool)
    assert len(calls) == SPREAD_POINTS
    for name in ("floor", "still", "mean", "variance", "paid_share", "skew"):
        assert np.array_equal(getattr(alone, name), getattr(together, name), equal_nan=True), name


@pytest.mark.parametrize("seed", range(3))
def test_whether_a_chance_is_reached_is_told_as_by_the_chance_itself(seed: int) -> None:
    n, random = 4_000, np.random.default_rng(seed)
    given = {
        "rate_per_hour": random.uniform(0.0, 0.5, n), "nodes": np.ones(n), "gang_exponent": np.ones(n),
        "mean_wait_hours": random.uniform(0.0, 8.0, n), "checkpoint_interval_hours": random.uniform(0.2, 3.0, n),
        "checkpoint_write_hours": random.uniform(0.0, 0.1, n), "restart_hours": random.uniform(0.0, 0.3, n),
        "notice_hours": random.choice([0.0, 0.1], n), "work_log_sd": random.choice([0.0, 0.05, 0.3], n),
    }  # fmt: skip
    work = random.uniform(1.0, 60.0, n)
    deadline = np.where(random.uniform(size=n) < 0.01, np.inf, work * random.uniform(0.8, 3.0, n))
    chance = p_meet_deadline(work, deadline_hours=deadline, **given)
    exact = random.uniform(size=n) < 0.1  # asked for is the chance itself
    needed = np.where(exact, chance, random.uniform(-0.1, 1.1, n))
    bound = p_meet_deadline(work, deadline_hours=deadline, **given, needed=needed)
    assert ((bound >= needed) == (chance >= needed)).all()
    assert (bound[exact] == chance[exact]).all()
    assert np.count_nonzero(bound != chance) > 0
    assert np.where(bound >= needed, bound <= chance + 1e-12, bound >= chance - 1e-12).all()
