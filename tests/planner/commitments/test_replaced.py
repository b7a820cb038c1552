"""Owned commitments that end may be replaced by those of the other kind: reservations for a plan, and the reverse."""

from __future__ import annotations

from itertools import product

import pytest

from planner.commitments.report import commit_report
from planner.inputs.commit_schema import CommitQuestion
from planner.render import render_answer
from tests.planner.commitments.test_begins import answered, as_json, ending, faults

END, YEAR = 90 * 24, 8760  # hours until 31 March


def mixed(plan_usd: float, reserved_usd: float, *, owns_plan: bool) -> CommitQuestion:
    """Ten machines at 10 USD an hour on demand, six of them covered by what is owned until 31 March."""
    prices = {"on_demand": 10.0, "savings_plan_1y": plan_usd, "reserved_1y": reserved_usd}
    own = (
        {"purchase_option": "savings_plan_1y", "provider": "x", "usd_per_hour": 6 * plan_usd}
        if owns_plan
        else {"purchase_option": "reserved_1y", "pool": "a", "instances": 6}
    )
    pool = {"name": "a", "provider": "x", "region": "r", "prices": prices}
    return ending(pools=[pool], commitments=[own | {"expires": "2027-03-31"}])


@pytest.mark.parametrize(
    ("plan_usd", "reserved_usd", "owns_plan", "options"),
    [
        (8.0, 6.0, True, ["reserved_1y", "reserved_1y"]),
        (6.0, 8.0, False, ["savings_plan_1y", "savings_plan_1y"]),
        (6.0, 8.0, True, ["savings_plan_1y", "savings_plan_1y"]),
    ],
)
def test_the_cheaper_kind_replaces_what_ends(
    plan_usd: float, reserved_usd: float, owns_plan: bool, options: list[str]
) -> None:
    asked = mixed(plan_usd, reserved_usd, owns_plan=owns_plan)
    work = answered(asked)
    assert [(line.option, line.now) for line in work.answer.lines] == list(
        zip(options, (True, False), strict=True)
    )
    cheap = min(plan_usd, reserved_usd)
    rest = YEAR - END
    best = min(
        cheap * (now * YEAR + later * rest) + 10.0 * (max(4 - now, 0) * END + max(10 - now - later, 0) * rest)
        for now, later in product(range(11), range(11))
    )
    # plans are sold in thousandths of a dollar
    assert best - 1e-6 <= work.solved.objective_usd <= best + 2 * 0.001 * YEAR
    assert faults(asked, as_json(work)) == []
    same = owns_plan == (options[1] == "savings_plan_1y")
    text = render_answer(commit_report(work.answer, details=("expiring",)), "table")
    assert ("in place of a plan" in " ".join(text.split())) is not same


def test_a_reservation_waits_for_plans_of_its_own_provider_alone() -> None:
    prices = {"on_demand": 10.0, "savings_plan_1y": 8.0, "reserved_1y": 6.0}
    pools = [
        {"name": "a", "provider": "x", "region": "r", "prices": prices},
        {"name": "b", "provider": "y", "region": "r", "prices": prices},
    ]
    own = {
        "purchase_option": "savings_plan_1y",
        "provider": "x",
        "usd_per_hour": 48.0,
        "expires": "2027-03-31",
    }
    use = [
        {"pool": name, "instances": 10, "start": first, "end": "2027-12-31"}
        for name, first in (("a", "2027-01-01"), ("b", "2027-04-01"))
    ]
    asked = ending(pools=pools, commitments=[own], demand={"planned": use})
    answer = as_json(answered(asked))
    begins = {(line["serves"][0], line["begins"]) for line in answer["lines"]}
    assert begins == {("a", "2027-01-01"), ("a", "2027-04-01"), ("b", "2027-01-01")}
    next(line for line in answer["lines"] if line["serves"] == ["b"])["begins"] = "2027-04-01"
    assert "2027-04-01" in faults(asked, answer)[0]
