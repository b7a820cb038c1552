"""Owned commitments that end: what replaces them is planned for then, not bought now and paid twice."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.commitments.advise import Work, advise
from planner.commitments.build import build_model, horizon_years
from planner.commitments.certificate import build_certificate
from planner.commitments.prices import pool_prices
from planner.commitments.report import commit_report
from planner.commitments.scenarios import draw_futures
from planner.commitments.solve import solve_commit
from planner.inputs.commit_schema import CommitQuestion
from planner.judge.commits.figures import CommitMemory
from planner.judge.document import MalformedError
from planner.judge.judge import judge_commit
from planner.plan.certificates import check_certificate, summary
from planner.render import render_answer
from tests.draws import share_of
from tests.planner.commitments.test_commit_input import loaded, question
from tests.planner.commitments.test_commit_model import extensive

START = question().start


def owned(instances: int, expires: str) -> dict[str, Any]:
    return {"purchase_option": "reserved_1y", "pool": "a", "instances": instances, "expires": expires}


def ending(*, told: bool = True, **changes: Any) -> CommitQuestion:
    """Ten machines all year, six of them under a reservation that ends on 31 March where it is `told`."""
    base: dict[str, Any] = {
        "pools": [
            {"name": "a", "provider": "x", "region": "r", "prices": {"on_demand": 10.0, "reserved_1y": 6.0}}
        ],
        "demand": {"planned": [{"pool": "a", "instances": 10, "start": "2027-01-01", "end": "2029-12-31"}]},
        "commitments": [owned(6, "2027-03-31" if told else "2028-12-31")], "horizon_years": 1,
    }  # fmt: skip
    return question(**base | changes)


def answered(asked: CommitQuestion, folder: Path = Path()) -> Work:
    return advise(loaded(asked, folder), None, gap=1e-7, time_limit_s=math.inf, with_regret=False)


def least_usd(asked: CommitQuestion) -> float:
    """The objective of the answer, without the figures beside it."""
    prices = pool_prices(None, asked.pools, "commit.yaml", None)
    years = horizon_years(asked, prices)
    model = build_model(asked, prices, draw_futures(asked, None, years), years).model
    return solve_commit(model, gap=1e-7).objective_usd


def faults(asked: CommitQuestion, answer: dict[str, Any]) -> list[str]:
    try:
        return list(judge_commit(answer, CommitMemory(loaded(asked, Path()), None)).faults)
    except MalformedError as error:
        return [str(error)]


def as_json(work: Work) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(render_answer(commit_report(work.answer), "json"))
    return content


def test_a_replacement_is_planned_for_the_day_after_the_end() -> None:
    work = answered(ending())
    answer = work.answer
    assert [(line.units, f"{line.begins}", line.now) for line in answer.lines] == [
        (4, "2027-01-01", True),
        (6, "2027-04-01", False),
    ]
    assert answer.plan.committed_usd == pytest.approx(4 * 6.0 * 8760)  # paid for sure: today's alone
    assert answer.plan.planned_usd == pytest.approx(6 * 6.0 * (8760 - 90 * 24))
    assert answer.plan.expected_usd == pytest.approx(answer.plan.committed_usd + answer.plan.planned_usd)
    (own,) = answer.expiring
    assert (own.renewed_units, own.later_units) == (4, 6)


def test_to_know_an_end_buys_no_more_now() -> None:
    """Whoever does not state the end is told to buy four; whoever does, too, and not the other six at once."""
    now = [
        [(line.serves, line.units) for line in answered(ending(told=told)).answer.lines if line.now]
        for told in (False, True)
    ]
    assert now[0] == now[1]


def test_without_renewals_all_is_decided_now() -> None:
    work = answered(ending(options={"renewals": False}))
    assert [(line.units, line.now) for line in work.answer.lines] == [(10, True)]
    assert work.solved.objective_usd > answered(ending()).solved.objective_usd


def test_each_end_is_told_what_is_planned_for_the_day_after() -> None:
    two = [owned(2, "2027-03-31"), owned(4, "2027-09-30")]
    for years in (1, 3):  # in three years each is planned for again
        ends = answered(ending(commitments=two, horizon_years=years)).answer.expiring
        assert [(own.renewed_units, own.later_units) for own in ends] == [(4, 2), (4, 4)]


def test_each_term_is_planned_again_when_it_ends() -> None:
    lines = answered(ending(horizon_years=2)).answer.lines
    assert [(line.units, f"{line.begins}", f"{line.expires}") for line in lines] == [
        (4, "2027-01-01", "2027-12-31"),
        (6, "2027-04-01", "2028-03-31"),
        (4, "2028-01-01", "2028-12-31"),
        (6, "2028-04-01", "2029-03-31"),
    ]


def test_only_what_may_replace_what_ends_begins_then() -> None:
    """A reservation of its pool and a plan of its seller may; a reservation of another pool may not."""
    prices = {"on_demand": 10.0, "reserved_1y": 6.0}
    pools = [{"name": name, "provider": "x", "region": "r", "prices": prices} for name in "ab"]
    first = {"a": "2027-01-01", "b": "2027-04-01"}  # whoever could would reserve b from April on
    use = [{"pool": name, "instances": 10, "start": first[name], "end": "2027-12-31"} for name in "ab"]
    asked = ending(pools=pools, demand={"planned": use})
    answer = as_json(answered(asked))
    begins = {(line["serves"][0], line["begins"]) for line in answer["lines"]}
    assert begins == {("a", "2027-01-01"), ("a", "2027-04-01"), ("b", "2027-01-01")}
    next(line for line in answer["lines"] if line["serves"] == ["b"])["begins"] = "2027-04-01"
    assert "2027-04-01" in faults(asked, answer)[0]

    plan = {"purchase_option": "savings_plan_1y", "provider": "x", "usd_per_hour": 36.0}
    pool = {
        "name": "a",
        "provider": "x",
        "region": "r",
        "prices": {"on_demand": 10.0, "savings_plan_1y": 6.0},
    }
    lines = answered(ending(pools=[pool], commitments=[plan | {"expires": "2027-03-31"}])).answer.lines
    assert [(round(line.units, 2), line.now) for line in lines] == [(24, True), (36, False)]


def test_limits_are_of_what_is_paid_at_the_start_and_of_what_is_in_force_at_a_time() -> None:
    prices = {"on_demand": 10.0, "reserved_1y": 2.0}
    pool = {
        "name": "a",
        "provider": "x",
        "region": "r",
        "prices": prices,
        "upfront_usd": {"reserved_1y": 30000},
    }
    for limits, bought in (
        ({"upfront_limit_usd": 1e5}, [(3, True), (7, False)]),
        ({"max_instances": {"a": 5}}, [(4, True), (1, False)]),
    ):
        asked = ending(pools=[pool], options=limits)
        work = answered(asked)
        assert [(line.units, line.now) for line in work.answer.lines] == bought
        assert faults(asked, as_json(work)) == []


def test_nothing_now_and_something_later_is_said_so() -> None:
    """Nothing pays as long as all that is used is owned, and nothing is owed; the figures count what is planned."""
    answer = answered(ending(commitments=[owned(10, "2027-06-30")])).answer
    table = " ".join(render_answer(commit_report(answer), "table").split())
    assert "no commitment now: on-demand and existing commitments cost least until 2027-07-01" in table
    assert "LATER nothing yet: ask again on 2027-07-01" in table
    assert "of a). The figures below count it as bought" in table
    assert "OWED nothing is owed yet, $265,000 is planned for later; covers 100 % of demand" in table


def test_dollars_an_hour_of_what_is_decided_later_have_two_digits() -> None:
    prices = {"on_demand": 10.0, "savings_plan_1y": 6.003}
    pool = {"name": "a", "provider": "x", "region": "r", "prices": prices}
    plan = {"purchase_option": "savings_plan_1y", "provider": "x", "usd_per_hour": 36.018}
    answer = answered(ending(pools=[pool], commitments=[plan | {"expires": "2027-03-31"}])).answer
    table = " ".join(render_answer(commit_report(answer), "table").split())
    assert "you would then buy 36 USD/h savings_plan_1y of a)" in table
    assert float(answer.lines[1].units) == pytest.approx(36.018, abs=1e-3)


def test_days_beyond_the_second_are_counted() -> None:
    table = render_answer(commit_report(answered(ending(horizon_years=2)).answer), "table")
    assert "1 more day: --details later" in " ".join(table.split())


def test_every_format_tells_now_from_later() -> None:
    answer = answered(ending()).answer
    table = " ".join(render_answer(commit_report(answer), "table").split())
    assert "BUY 1 commitment from 2027-01-01: $24 per hour" in table
    asked_again = "ask again on 2027-04-01, when reserved_1y of a ends (as things stand, you would then buy 6"
    assert f"{asked_again} reserved_1y" in table and "is planned for later; covers" in table
    whole = " ".join(render_answer(commit_report(answer, details=("all",)), "table").split())
    assert "not bought now, and nothing of it is owed" in whole
    assert "Planned for later" in render_answer(commit_report(answer), "html")
    rows = list(csv.DictReader(io.StringIO(render_answer(commit_report(answer), "csv"))))
    assert [(row["begins"], row["now"]) for row in rows] == [("2027-01-01", "true"), ("2027-04-01", "false")]


def test_the_certificate_and_the_judge_tell_them_apart() -> None:
    asked = ending()
    work = answered(asked)
    proof, answer = build_certificate(work.built.model, work.solved), as_json(work)
    assert (check_certificate(proof), faults(asked, answer)) == ([], [])
    assert "(of this one 237,600.00 is planned for later)" in summary(proof)
    later = next(column for column in proof["model"]["columns"] if not column["now"])
    later["now"] = True
    assert check_certificate(proof)
    for change in ({"now": True}, {"begins": "2027-04-02"}, {"begins": "2027-01-01"}):
        changed = json.loads(json.dumps(answer))
        changed["lines"][1].update(change)
        assert faults(asked, changed), change
    for part, name in ((answer["expiring"][0], "later_units"), (answer["levels"][0], "planned_usd")):
        kept = part.pop(name)
        assert faults(asked, answer), name
        part[name] = kept
    owed = json.loads(json.dumps(answer))
    owed["plan"]["committed_usd"] += owed["plan"]["planned_usd"]
    owed["plan"]["planned_usd"] = 0.0
    assert faults(asked, owed)


def test_an_answer_of_an_earlier_version_holds_whole() -> None:
    """It put what is planned for later among what is committed."""
    asked = question()  # three years: one-year terms are renewed
    answer = as_json(answered(asked))
    assert not answer["plan"]["planned_usd"] and faults(asked, answer) == []
    for level in (answer["plan"], answer["nothing"], *answer["levels"], *answer["falls"]):
        level["committed_usd"] += level.pop("planned_usd")
    for own in answer["expiring"]:
        own["renewed_units"] += own.pop("later_units")
    assert faults(asked, answer) == []


def random_question(seed: int) -> CommitQuestion:
    """Pools whose owned reservations, plans and use end some day, in one to three years."""
    draw = np.random.default_rng(seed)
    years, count = int(draw.integers(1, 4)), int(draw.integers(1, 4))
    has_plan = draw.random() < 0.6

    def day(of_years: int = years) -> str:
        return f"{START + timedelta(days=int(draw.integers(0, 365 * of_years)))}"

    pools, planned, commitments = [], [], []
    for number in range(count):
        usd = round(float(draw.uniform(1, 9)), 2)
        prices = {"on_demand": usd, "reserved_1y": round(usd * draw.uniform(0.5, 0.9), 3)}
        prices |= {"reserved_3y": round(usd * draw.uniform(0.3, 0.7), 3)} if draw.random() < 0.4 else {}
        prices |= {"savings_plan_1y": round(usd * draw.uniform(0.6, 0.95), 3)} if has_plan else {}
        spot = draw.random() < 0.3
        prices |= {"spot": round(usd * 0.4, 3)} if spot else {}
        upfront = {"reserved_1y": int(draw.integers(1, 900))} if draw.random() < 0.3 else {}
        pools.append({
            "name": f"p{number}", "provider": "x", "region": "r", "prices": prices, "upfront_usd": upfront,
            "spot_share": 0.3 if spot else 0.0,
        })  # fmt: skip
        for _ in range(int(draw.integers(1, 4))):
            first, last = sorted((day(), day()))
            part = {"instances": int(draw.integers(1, 6)), "probability": float(draw.choice([1.0, 0.5]))}
            planned.append({"pool": f"p{number}", "start": first, "end": last} | part)
        for _ in range(int(draw.integers(0, 3))):
            own = {
                "purchase_option": "reserved_1y",
                "pool": f"p{number}",
                "instances": int(draw.integers(1, 4)),
            }
            commitments.append(own | {"expires": day(4)})
    if has_plan and draw.random() < 0.6:
        plan = {"purchase_option": "savings_plan_1y", "provider": "x", "usd_per_hour": 2.5}
        commitments.append(plan | {"expires": day()})
    return question(
        pools=pools, demand={"planned": planned}, commitments=commitments, horizon_years=years,
        tail_value=float(draw.choice([0.0, 0.5, 1.0])) if draw.random() < 0.5 else None,
        scenarios={"count": int(draw.integers(1, 4)), "hours_per_year": int(draw.integers(24, 40))},
        risk={"weight": float(draw.choice([0.0, 0.3]))},
        options={"upfront_limit_usd": 2000.0} if draw.random() < 0.2 else {},
    )  # fmt: skip


def check_ends(seed: int) -> None:
    """The judge recomputes the answer, its proof holds, and it is that of the question written out.

    To plan for later never costs more than to decide all now.
    """
    asked = random_question(seed)
    work = answered(asked)
    assert faults(asked, as_json(work)) == [], seed
    assert check_certificate(build_certificate(work.built.model, work.solved)) == [], seed
    found, truth = work.solved, extensive(work.built.model)
    near = 1e-6 * abs(truth) + 1e-6
    assert found.bound_usd <= truth + near, seed
    # plans are sold in thousandths of a dollar
    assert found.objective_usd <= truth + near + 0.001 * 8760 * asked.horizon_years * len(
        work.built.buyable
    ), seed
    options = asked.options.model_copy(update={"renewals": False})
    now = least_usd(asked.model_copy(update={"options": options}))
    assert found.bound_usd <= now + near, seed


@pytest.mark.parametrize("seed", [507, 16952, 17293])
def test_questions_of_few_hours_are_verified(seed: int) -> None:
    """No hour is drawn before the first purchase begins; what is owned pays for all use, but for rounding."""
    check_ends(seed)


@pytest.mark.parametrize("seed", range(share_of(24)))
def test_what_replaces_what_is_owned_is_verified(seed: int) -> None:
    check_ends(seed)
