"""What a commitment answer may say: nothing is weighed without a price, and what costs more does not save."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from planner.commitments.advise import advise
from planner.commitments.answer import CommitAnswer
from planner.commitments.report import commit_report
from planner.render import render_answer
from tests.planner.commitments.test_commit_input import loaded, question


def answered(folder: Path, *allowed: str) -> CommitAnswer:
    asked = question(
        pools=[
            {"name": "a", "provider": "x", "region": "r", "prices": {"on_demand": 10.0}},
            {"name": "b", "provider": "x", "region": "r", "prices": {"on_demand": 3.0, "reserved_1y": 2.0}},
        ],
        horizon_years=1, options={"allow": allowed},
    )  # fmt: skip
    return advise(loaded(asked, folder), None, with_regret=False).answer


def shown(answer: CommitAnswer) -> str:
    return " ".join(render_answer(commit_report(answer), "table").split())


def test_a_pool_without_a_price_of_a_commitment_is_named(tmp_path: Path) -> None:
    answer = answered(tmp_path, "reserved_1y")
    assert "no commitment is weighed for a: the catalog has no price" in shown(answer)
    assert "on-demand and existing commitments cost least" in shown(answer)


def test_on_demand_is_not_called_cheapest_where_no_commitment_has_a_price(tmp_path: Path) -> None:
    answer = answered(tmp_path, "cud_3y")
    assert "none that is allowed has a known price, so none was weighed" in shown(answer)
    assert "cost least" not in shown(answer) and "no commitment is weighed for a, b:" in shown(answer)
    whole = render_answer(commit_report(answer, details=("all",)), "table")
    assert "no commitment on sale lowers it" not in whole


def test_a_plan_that_costs_more_in_expectation_says_what_for(tmp_path: Path) -> None:
    asked = question(
        demand={"planned": [{"pool": "b", "instances": 5, "start": "2027-01-01", "end": "2029-12-31"}]}
    )
    answer = advise(loaded(asked, tmp_path), None, with_regret=False).answer
    assert answer.lines and "saves $" in shown(answer)
    dearer = replace(answer, plan=replace(answer.plan, expected_usd=answer.nothing.expected_usd * 1.01))
    assert "(1 %) more, the price of less in the worst scenarios" in shown(dearer)
    assert "-$" not in shown(dearer) and "saves $" not in shown(dearer).split(" IF IT FALLS ")[0]


def test_nothing_is_not_called_cheapest_where_time_ended_first(tmp_path: Path) -> None:
    asked = question(
        demand={"planned": [{"pool": "b", "instances": 5, "start": "2027-01-01", "end": "2029-12-31"}]},
        risk={"weight": 0.5},
    )
    answer = advise(loaded(asked, tmp_path), None, with_regret=False, time_limit_s=0.0).answer
    assert (answer.lines, answer.status) == ((), "feasible")
    for text in (shown(answer), render_answer(commit_report(answer, details=("all",)), "table")):
        assert "the search ended before it found one that lowers the cost" in " ".join(text.split())
        assert "cost least" not in text and "lowers it" not in text
    assert "how far from the best is not known" in shown(answer) and "proven to" not in shown(answer)
