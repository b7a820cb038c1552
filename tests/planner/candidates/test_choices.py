"""Choices are decisions that buyers weigh: each row is the best of its kinds, and nothing is named twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from planner.candidates.choices import WEIGHED, weigh_choices
from planner.candidates.choose import choose
from planner.candidates.decisions import HAIR_RATIO, LEAST_HOURS, best_of
from planner.judge.judge import judge_plan
from planner.workloads.answer import Answer
from tests.draws import draws
from tests.planner.job.test_spine_laws import a_job, some_offers
from tests.planner.spine_catalogs import A10G, L4, Offer, loaded, make_catalog, make_world, plan_on, work

BULK = {"training": {"samples": 2_000_000, "global_batch": 512, "sequence_length": 128, "precision": "fp16"}}
LIMITS = {"max_nodes": 4, "deadline": "90d", "deadline_confidence": 0.6}


def answer_on(offers: list[Offer], **changes: Any) -> Answer:
    return plan_on(make_catalog(offers), work(**{"constraints": LIMITS, **BULK, **changes}))


def kinds_of(answer: Answer) -> list[tuple[str, ...]]:
    return [choice.kinds for choice in answer.plan.choices]


@draws(25)
@given(some_offers(), a_job())
def test_each_row_is_the_best_of_its_kinds(offers: list[Offer], job: dict[str, Any]) -> None:
    answer = plan_on(make_world(offers), job)
    if answer.found is None or answer.plan.status != "planned":
        assert answer.plan.choices == ()
        return
    made = answer.found.candidates
    objective = made.context.asked.workload.preferences.objective
    best = choose(made, objective)
    assert best is not None
    rows = weigh_choices(made, best.winner)
    assert rows[0].at == best.winner
    assert all(
        (choice.p_meet_deadline is None) == (answer.plan.deadline is None) for choice in answer.plan.choices
    )
    assert answer.plan.risk is not None
    assert answer.plan.choices[0].p_meet_deadline == answer.plan.risk.p_meet_deadline
    names = [name for row in rows for name in row.kinds]
    assert len(set(names)) == len(names)
    value = made.cost_usd if objective == "cost" else made.hours
    assert all(made.bits[row.at] == 0 for row in rows)
    assert (np.diff([value[row.at] for row in rows]) >= -1e-9 * value[rows[0].at]).all()
    for name, kind in WEIGHED:
        own = best_of(made, kind)
        row = next((row for row in rows if name in row.kinds), None)
        if own is None:
            assert row is None
        elif row is not None:
            assert kind.member(made)[row.at]
            assert value[row.at] <= value[own] * (1 + HAIR_RATIO) / (1 - HAIR_RATIO)


def test_the_knee_is_where_a_percent_of_time_costs_a_percent_of_money() -> None:
    dear = Offer(L4, "us-central1", "3.0")
    answer = answer_on([Offer(A10G, "us-east-1", "1.0"), dear])
    assert answer.found is not None
    made = answer.found.candidates
    sooner = next((row for row in weigh_choices(made, _winner(answer)) if "sooner" in row.kinds), None)
    assert sooner is not None
    feasible = np.flatnonzero(made.bits == 0)
    product = made.cost_usd * made.hours
    assert product[sooner.at] == product[feasible].min()
    assert made.hours[sooner.at] < made.hours[_winner(answer)] * (1 - HAIR_RATIO)


@pytest.mark.parametrize(("samples", "is_worth_a_row"), [(2_000_000, True), (200_000, False)])
def test_a_row_for_minutes_is_not_worth_reading(samples: int, is_worth_a_row: bool) -> None:
    """The same offers and ratios of time: a tenth of the work ends sooner by minutes."""
    short = {**BULK["training"], "samples": samples}
    answer = answer_on([Offer(A10G, "us-east-1", "1.0"), Offer(L4, "us-central1", "3.0")], training=short)
    assert answer.found is not None
    made, winner = answer.found.candidates, _winner(answer)
    hours = made.hours[made.bits == 0]
    assert hours.min() < made.hours[winner] * (1 - HAIR_RATIO)
    assert bool(made.hours[winner] - hours.min() >= LEAST_HOURS) is is_worth_a_row
    assert any("sooner" in kinds for kinds in kinds_of(answer)) is is_worth_a_row
    listed = [one for one in answer.plan.alternatives if one.brings == ("size",)]
    assert bool(listed) is is_worth_a_row


def test_what_is_dear_and_fast_does_not_move_the_knee() -> None:
    few = [Offer(A10G, "us-east-1", "1.0"), Offer(L4, "us-central1", "3.0")]
    knee = [choice.best for choice in answer_on(few).plan.choices if "sooner" in choice.kinds]
    more = [*few, Offer(A10G, "us-west-2", "900.0")]
    assert [choice.best for choice in answer_on(more).plan.choices if "sooner" in choice.kinds] == knee


def test_another_provider_is_named_where_there_is_one() -> None:
    both = [Offer(A10G, "us-east-1", "1.0"), Offer(L4, "us-central1", "9.0")]
    assert any("provider" in kinds for kinds in kinds_of(answer_on(both)))
    assert not any("provider" in kinds for kinds in kinds_of(answer_on(both[:1])))


def test_the_plan_is_named_with_all_that_it_is_the_best_for() -> None:
    answer = answer_on([Offer(A10G, "us-east-1", "1.0")])
    assert kinds_of(answer)[0] == ("cheapest", "firm", "on_demand")
    assert answer.plan.choices[0].best is None


A_YEAR = Offer(A10G, "us-east-1", "0.6", purchase_option="reserved_1y", term_hours=8760.0)


def test_a_year_is_no_choice_for_a_job_of_hours() -> None:
    """It promises what on-demand promises, and is owed for a year: the cheapest firm way is the choice."""
    job = work(constraints=LIMITS, **BULK)
    catalog = make_catalog([Offer(A10G, "us-east-1", "1.0"), A_YEAR])
    plan = plan_on(catalog, job).plan
    assert any(item.purchase_option == "reserved_1y" for item in plan.alternatives)
    assert not any("reserved" in choice.kinds for choice in plan.choices)
    own = loaded(job)
    assert judge_plan(plan.to_dict(), own.workload, own.sha256, catalog, Path()).finish() == []


def test_a_year_of_another_provider_is_no_choice_either() -> None:
    job = work(constraints=LIMITS, **BULK)
    elsewhere = Offer(L4, "us-central1", "9.0", purchase_option="reserved_1y", term_hours=8760.0)
    catalog = make_catalog([Offer(A10G, "us-east-1", "1.0"), elsewhere])
    plan = plan_on(catalog, job).plan
    assert not any("provider" in choice.kinds for choice in plan.choices)
    own = loaded(job)
    assert judge_plan(plan.to_dict(), own.workload, own.sha256, catalog, Path()).finish() == []


def test_a_year_is_a_choice_where_it_is_the_best_firm_way_and_says_what_is_owed() -> None:
    job = work(constraints={**LIMITS, "purchase_options": ["reserved_1y"]}, **BULK)
    catalog = make_catalog([Offer(A10G, "us-east-1", "1.0"), A_YEAR])
    plan = plan_on(catalog, job).plan
    assert plan.choices[0].kinds == ("cheapest", "reserved", "firm")
    (said,) = [text for text in plan.warnings if "whole term" in text]
    assert "8,760 h is owed, used or not, and is in the cost; this run takes" in said
    own = loaded(job)
    assert judge_plan(plan.to_dict(), own.workload, own.sha256, catalog, Path()).finish() == []


def test_the_share_of_a_year_that_a_job_pays_is_said() -> None:
    job = work(
        constraints={**LIMITS, "purchase_options": ["reserved_1y"]}, prices={"commitment_share": 0.25}, **BULK
    )
    plan = plan_on(make_catalog([A_YEAR]), job).plan
    assert any("counts by 25 % (prices.commitment_share)" in text for text in plan.warnings)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda choice: choice["kinds"].__setitem__(0, "owned"), "is not owned"),
        (lambda choice: choice["best"].__setitem__("cost_usd", "1.00"), "cost_usd"),
        (lambda choice: choice.__setitem__("finish_expected", "2027-01-01T00:00+00:00"), "finish_expected"),
        (lambda choice: choice.__setitem__("p_meet_deadline", 0.42), "p_meet_deadline"),
    ],
)
def test_a_tampered_choice_does_not_verify(change: Any, said: str) -> None:
    job = work(constraints=LIMITS, **BULK)
    catalog = make_catalog([Offer(A10G, "us-east-1", "1.0"), Offer(L4, "us-central1", "9.0")])
    plan = plan_on(catalog, job).plan.to_dict()
    own = loaded(job)
    asked = own.workload, own.sha256, catalog, Path()
    assert judge_plan(plan, *asked).finish() == []
    (other,) = [choice for choice in plan["choices"] if "provider" in choice["kinds"]]
    change(other)
    faults = judge_plan(plan, *asked).finish()
    assert any(fault.startswith("choices") and said in fault for fault in faults), faults


def _winner(answer: Answer) -> int:
    assert answer.found is not None
    choice = choose(answer.found.candidates, "cost")
    assert choice is not None
    return choice.winner
