"""Fleets on commitments that end: what slow workers pay after them, against enumeration, laws and forgeries."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.fleet.alone import fleets_of_one_offer
from planner.fleet.moving_price import at_full_hours, at_least
from planner.fleet.own_ends import in_lengths
from planner.fleet.workers import Workers, build_workers, in_whole_runs
from planner.judge.judge import judge_plan
from planner.plan.model import Plan
from tests.conftest import ROOT, Run
from tests.draws import draws
from tests.few_remedies import of_each
from tests.planner.fleet.test_spine_fleet import (
    BILLED,
    READS,
    SMALL,
    TRAINING,
    Worker,
    _worker,
    exactly,
    finely,
    fleet,
)
from tests.planner.fleet.test_spread import _planned as planned_with
from tests.planner.spine_catalogs import (
    A10G,
    L4,
    REGIONS,
    Offer,
    bought_on,
    cost_of,
    loaded,
    make_catalog,
    make_world,
    not_dearer,
    usd_per_currency,
)

START = datetime.fromisoformat("2026-11-20T00:00+00:00")
FIRM = Offer(A10G, "us-east-1", "1.10")
OFFERS = [FIRM, Offer(L4, "us-central1", "0.90")]
ONE_RUN = math.ceil(TRAINING["samples"] / TRAINING["global_batch"]) * 256 * 128  # type: ignore[operator]


def own(offer: Offer, nodes: int, hours: float | None) -> dict[str, Any]:
    """A commitment on the machines of an offer that ends so many hours after the start; None: it does not."""
    kind = offer.machine
    names = {"provider": kind.provider, "region": offer.region, "instance_type": kind.instance_type}
    ends = {} if hours is None else {"expires": (START + timedelta(hours=hours)).isoformat()}
    return {**names, "purchase_option": "reserved_1y", "nodes": nodes, **ends}


def with_own(job: dict[str, Any], *owned: dict[str, Any]) -> dict[str, Any]:
    return {**job, "commitments": list(owned)}


def after_of(plan: Plan) -> dict[int, Decimal]:
    """What is paid after ends, by line."""
    lines = {
        at: [cost for cost in line.costs if cost.id == "after_end"] for at, line in enumerate(plan.lines)
    }
    return {at: sum((cost.amount_usd for cost in costs), Decimal(0)) for at, costs in lines.items() if costs}


def judged(plan: Plan | dict[str, Any], job: dict[str, Any], offers: list[Offer]) -> list[str]:
    given = loaded(job)
    answer = plan.to_dict() if isinstance(plan, Plan) else plan
    faults = judge_plan(answer, given.workload, given.sha256, make_catalog(offers), Path()).faults
    return [str(fault) for fault in faults]


def _after_hours(worker: Worker, fixed: float, sigma: float, left: float, hours: float) -> float:
    """Mean hours in use beyond the end, which comes `left` hours after the first in use."""
    room = left - fixed
    if room <= 0:
        return hours * math.exp(sigma**2 / 2) - room
    d = math.log(room / hours) / sigma
    cdf = NormalDist().cdf
    return hours * math.exp(sigma**2 / 2) * cdf(sigma - d) - room * cdf(-d)


def _ways(
    worker: Worker, limit: float, waiting: float, end: float, after_usd: float, runs: int
) -> dict[tuple[int, int], float]:
    """Least cost of `n` workers of an offer that do `r` runs together, by (n, r); by trying every division."""
    slow = (limit - worker.lead) / worker.most
    sigma = math.log(slow) / NormalDist().inv_cdf(0.9)
    each: dict[int, float] = {}
    for number in range(1, runs + 1):
        hours = number * ONE_RUN / worker.units_per_hour
        if hours > worker.most or worker.lead + hours > end:
            break
        usd = worker.fixed_usd + worker.usd_per_hour * hours
        if math.isfinite(end):
            usd += after_usd * _after_hours(worker, worker.lead - waiting, sigma, end - waiting, hours)
        each[number] = usd
    least = {(0, 0): 0.0}
    for n in range(1, int(min(worker.offer.capacity, runs)) + 1):
        for r in range(1, runs + 1):
            found = [least[n - 1, r - k] + usd for k, usd in each.items() if (n - 1, r - k) in least]
            if found:
                least[n, r] = min(found)
    return least


def enumerated(
    job: dict[str, Any], offers: list[Offer], owned: list[tuple[Offer, float]]
) -> tuple[float, float] | None:
    """Least cost of all fleets, and what rounding and the data set may add; `owned`: of an offer, until an hour."""
    limit, runs = float(job["constraints"]["deadline"].removesuffix("h")), job["fleet"]["runs"]
    most, found = job["constraints"]["max_nodes"], {(0, 0): 0.0}
    pairs = [(_worker(job, one, limit), math.inf, 0.0) for one in offers]
    for one, end in owned:
        hourly = float(one.price_per_hour) * usd_per_currency(one.currency)
        free = Offer(one.machine, one.region, "0", currency=one.currency, capacity=one.capacity)
        pairs.append((_worker(job, free, limit), end, hourly))
    from planner.asked.assumptions import load_assumptions

    assume = load_assumptions()
    waiting = (
        assume.provision_s + assume.on_demand_acquire_s
    ) / 3600 + 20 * 8 / assume.user_upload_gbps / 3600
    for worker, end, after_usd in pairs:
        if worker.most <= 0:
            continue
        ways = _ways(worker, limit, waiting, end, after_usd, runs)
        joined: dict[tuple[int, int], float] = {}
        for (n, r), usd in found.items():
            for (m, k), more in ways.items():
                if n + m <= most and r + k <= runs:
                    joined[n + m, r + k] = min(joined.get((n + m, r + k), math.inf), usd + more)
        found = joined
    done = [usd for (_, r), usd in found.items() if r == runs]
    kept = sum({worker.place: worker.kept_usd for worker, _, _ in pairs}.values())
    seconds = most * max(worker.second_usd for worker, _, _ in pairs)
    return (min(done), READS + kept + seconds) if done else None


def drawn(seed: int) -> tuple[dict[str, Any], list[Offer], list[tuple[Offer, float]]]:
    rng = random.Random(seed)
    offers: dict[str, Offer] = {}
    for _ in range(rng.randint(1, 3)):
        machine = rng.choice(SMALL)
        one = Offer(
            machine, rng.choice(REGIONS[machine.provider]), str(rng.randint(30, 400) / 100),
            currency="CNY" if machine.provider == "alibaba" else "USD", capacity=float(rng.randint(1, 3)),
        )  # fmt: skip
        offers[one.offer_id] = one
    deadline = rng.choice([8, 14, 30])
    limits = {"max_nodes": rng.randint(3, 7), "deadline": f"{deadline}h"}
    owned = []
    for _ in range(rng.choice([1, 1, 2])):
        one = rng.choice([*offers.values()])
        end = rng.choice(
            [math.inf, round(rng.uniform(1.0, 1.3 * deadline), 2), round(rng.uniform(2.0, 9.0), 2)]
        )
        owned.append((Offer(one.machine, one.region, one.price_per_hour, currency=one.currency,
                            capacity=float(rng.randint(1, 3))), end))  # fmt: skip
    job = fleet(rng.randint(2, 7), limits)
    terms = [own(one, int(one.capacity), end if math.isfinite(end) else None) for one, end in owned]
    return with_own(job, *terms), [*offers.values()], owned


def check_own_ends(seed: int) -> bool:
    """The answer is that of every fleet of these machines; True where workers pay after an end."""
    job, offers, owned = drawn(seed)
    plan = exactly(offers, job)
    best = enumerated(job, offers, owned)
    if plan.status == "infeasible":
        assert best is None, seed
        return False
    assert best is not None, seed
    assert plan.total_usd is not None and plan.proof is not None
    cost, granules = best
    assert cost * (1 - 1e-6) - 1e-9 <= float(plan.total_usd) <= cost * (1 + 1e-6) + granules + 1e-9, seed
    assert plan.proof.bound_usd <= plan.total_usd
    assert float(plan.proof.bound_usd) <= cost * (1 + 1e-6) + READS + 1e-9, seed
    return bool(after_of(plan))


def test_small_fleets_equal_every_fleet() -> None:
    """The first seeds; `python -m benchmarks.brute_force --family "fleet: on commitments that end"` tries more."""
    assert sum(of_each(check_own_ends, range(25))) >= 5


def test_small_fleets_verify() -> None:
    paid = 0
    for seed in range(8):
        job, offers, _ = drawn(seed)
        plan = exactly(offers, job)
        if plan.status == "planned":
            assert judged(plan, job, offers) == [], seed
            paid += bool(after_of(plan))
    assert paid


TIGHT = fleet(8, {"max_nodes": 12, "deadline": "30h"})


@draws(8)
@given(st.lists(st.floats(-5.0, 40.0), min_size=2, max_size=2), st.integers(1, 4))
def test_an_earlier_end_never_costs_less_and_its_extremes_are_without_it_and_for_ever(
    ends: list[float], nodes: int
) -> None:
    """To a cent: what workers share of the copy of the data set the model knows in part only."""
    world, cent = make_world(OFFERS), Decimal(repr(READS))

    def cost(end: float | None) -> Decimal:
        found = cost_of(bought_on(world, with_own(TIGHT, own(FIRM, nodes, end)), gap=0.0))
        assert found is not None
        return found

    lasting, without = cost(None), cost_of(bought_on(world, TIGHT, gap=0.0))
    later, earlier = cost(max(ends)), cost(min(ends))
    assert not_dearer(lasting, later * BILLED + cent) and not_dearer(later, earlier * BILLED + cent)
    assert without is not None and not_dearer(earlier, without * BILLED + cent)
    assert cost(-1.0) == without
    assert abs(cost(2_000.0) - lasting) <= cent


def test_lines_pay_on_demand_for_the_mean_beyond_the_end_and_the_slow_end_of_the_cost_more() -> None:
    offers = [FIRM]
    plan = exactly(offers, with_own(TIGHT, own(FIRM, 8, 5.5)))
    (after,) = [cost for line in plan.lines for cost in line.costs if cost.id == "after_end"]
    assert (after.unit_price, after.kind) == (Decimal("1.10"), "after_end")
    assert plan.total_usd is not None
    assert after.amount_usd <= plan.total_usd <= after.amount_usd + Decimal("0.1")  # storage beside it
    (said,) = [text for text in plan.warnings if "owned commitment" in text]
    assert "a slow run outlasts it" in said and "instance-hours after it" in said
    assert "owned commitment" not in " ".join(
        exactly(offers, with_own(TIGHT, own(FIRM, 8, 2_000.0))).warnings
    )


def test_commitments_of_equal_terms_end_each_at_its_own_time() -> None:
    """Eight runs of some 3.5 h: one machine has time for one, the others for two; what is owned adds up."""
    hurried = fleet(8, {"max_nodes": 12, "deadline": "13h"})
    job = with_own(hurried, own(FIRM, 1, 5.5), own(FIRM, 2, 10.0), own(FIRM, 1, None))
    plan = exactly([FIRM], job)
    owned = [line for line in plan.lines if line.option_variant == "already_owned"]
    assert sorted(line.nodes for line in owned) == [1, 1, 2]
    assert len(after_of(plan)) == 2
    assert judged(plan, job, [FIRM]) == []
    both = exactly([FIRM], with_own(hurried, own(FIRM, 4, None)))
    half = exactly([FIRM], with_own(hurried, own(FIRM, 2, None), own(FIRM, 2, None)))
    assert sum(line.nodes for line in half.lines) == sum(line.nodes for line in both.lines) == 4
    shares = {**job, "fleet": {**job["fleet"], "max_share_per_offer": 0.5}}
    spread = exactly([FIRM, OFFERS[1]], shares)
    assert judged(spread, shares, [FIRM, OFFERS[1]]) == []


MEMORY = {"min_total_memory_gib": 48}
SEVERAL = {
    "hours that hardly reach an end": (5, 40, {"deadline": "60h"}, [(1, 49.97), (1, 93.54), (2, 77.49)]),
    "one that is there for its memory": (3, 1, {"deadline": "20h", **MEMORY}, [(2, None), (3, 10.43), (4, None)]),
    "a larger one that does not end": (4, 1, {"deadline": "60h", **MEMORY}, [(1, 10.74), (3, 93.19), (4, None)]),
}  # fmt: skip


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", SEVERAL)
def test_each_line_is_checked_against_a_commitment_that_may_be_its_own(name: str) -> None:
    """Of several of equal terms, whatever their sizes and ends, and the order of the lines."""
    runs, parts, limits, owned = SEVERAL[name]
    job = with_own(
        finely(runs, parts, {"max_nodes": 11, **limits}), *(own(FIRM, nodes, end) for nodes, end in owned)
    )
    plan = exactly(OFFERS, job)
    assert any(line.option_variant == "already_owned" for line in plan.lines)
    assert judged(plan, job, OFFERS) == []


def test_a_fleet_of_one_offer_uses_more_workers_where_that_pays_less_after_the_end() -> None:
    """Eight machines end long before one worker could do all; the fewest that are in time would pay after it."""
    job = with_own(finely(8, 40, {"max_nodes": 12, "deadline": "40h"}), own(FIRM, 8, 12.0))
    plan, found, _ = planned_with(lambda: exactly([FIRM], job))
    assert plan.total_usd is not None
    alone = fleets_of_one_offer(found, 40.0, 8 * ONE_RUN)
    least = alone.cost_usd(found).min()
    assert least == pytest.approx(float(plan.total_usd), rel=0.01)
    ending = np.isfinite(alone.workers.left_hours)
    assert sorted(alone.count[ending]) == [3, 8]


def _without_after(answer: dict[str, Any]) -> None:
    for line in answer["lines"]:
        line["costs"] = [cost for cost in line["costs"] if cost["id"] != "after_end"]


def _half(answer: dict[str, Any]) -> None:
    for line in answer["lines"]:
        for cost in line["costs"]:
            if cost["id"] == "after_end":
                cost["quantity"] = f"{Decimal(cost['quantity']) / 2:.9f}"


@pytest.mark.parametrize("forge", [_without_after, _half])
def test_less_after_the_end_is_rejected(forge: Callable[[dict[str, Any]], None]) -> None:
    job = with_own(TIGHT, own(FIRM, 2, 9.0))
    plan = exactly(OFFERS, job)
    assert after_of(plan) and judged(plan, job, OFFERS) == []
    forged = copy.deepcopy(plan.to_dict())
    forge(forged)
    assert judged(forged, job, OFFERS)


def test_an_answer_to_a_later_end_is_rejected() -> None:
    later = with_own(TIGHT, own(FIRM, 2, 20.0))
    plan = exactly(OFFERS, later).to_dict()
    sooner = with_own(TIGHT, own(FIRM, 2, 9.0))
    assert any("until its workers end" in fault for fault in judged(plan, sooner, OFFERS))


def workers_on(job: dict[str, Any]) -> tuple[Workers, Any]:
    """Every way to be a worker, and the market."""
    _, found, _ = planned_with(lambda: exactly([FIRM], job))
    candidates = found.candidates
    whole = build_workers(candidates, float(job["constraints"]["deadline"].removesuffix("h")))
    return whole, candidates.context.market


@pytest.mark.parametrize(("parts", "end"), [(1, 30.0), (40, 12.0)])
def test_prices_of_lengths_enclose_what_hours_cost(parts: int, end: float) -> None:
    """The first prices are never above what the hours cost, the second never below, however long a worker works."""
    job = finely(8, parts, {"max_nodes": 12, "deadline": "40h"})
    whole, market = workers_on(with_own(job, own(FIRM, 4, end)))
    units = 0.0 if parts == 1 else ONE_RUN / parts
    ends = whole.take(np.flatnonzero(np.isfinite(whole.left_hours)))
    least = at_least(in_whole_runs(ends, units), market, 1e15)
    most = at_full_hours(least, market, units)
    assert len(least.at) == len(most.at) > 5
    longest = float(least.hours_limit.max())
    step = longest / 200 if not units else units / float(least.units_per_hour[0])
    for hours in np.arange(step, longest * (1 + 1e-9), step):
        one = least.take(np.flatnonzero(least.hours_limit >= hours * (1 - 1e-9)))
        usd = one.price(market, np.full(len(one.at), hours)).worker_usd
        charged = (one.usd_per_hour - one.start_usd_per_hour) * hours
        shortest = int(np.argmin(one.hours_limit))
        assert charged[shortest] <= usd[shortest] * (1 + 1e-9) + 1e-9
        dear = most.take(np.flatnonzero(most.hours_limit >= hours * (1 - 1e-9)))
        charged = (dear.usd_per_hour - dear.start_usd_per_hour) * hours
        assert (charged >= usd * (1 - 1e-9) - 1e-9).all()
    assert (
        in_lengths(whole.take(np.flatnonzero(np.isinf(whole.left_hours))), market, 1e15).hours_limit.size == 1
    )


def test_the_commands_take_it(run_cli: Run, tmp_path: Path) -> None:
    """From the file to a checked answer, its reasons and what is started."""
    job = yaml.safe_load((ROOT / "examples" / "hpo-fleet.yaml").read_text(encoding="utf-8"))
    job["commitments"] = [{"provider": "aws", "region": "us-east-1", "instance_type": "g5.xlarge",
                           "purchase_option": "reserved_1y", "nodes": 8, "expires": "2026-11-21T18:00Z"}]  # fmt: skip
    path, out = tmp_path / "job.yaml", tmp_path / "answer.json"
    path.write_text(yaml.safe_dump(job), encoding="utf-8")
    asked = ("optimize", str(path), "--as-of", "2026-11-20")
    done = run_cli(*asked, "-o", "json", "--out", str(out))
    assert done.code == 0, done.stderr
    answer = json.loads(out.read_text(encoding="utf-8"))
    (line,) = [line for line in answer["lines"] if line["option_variant"] == "already_owned"]
    assert any(cost["kind"] == "after_end" for cost in line["costs"])
    assert run_cli("verify", str(out), "--workload", str(path)).code == 0
    assert "after a commitment ends" in run_cli(*asked, "--details", "all").unwrapped
    assert run_cli("explain", str(path), "--as-of", "2026-11-20").code == 0
    folder = tmp_path / "out"
    assert run_cli("export", str(out), "--to", "skypilot", "--out", str(folder)).code == 0
