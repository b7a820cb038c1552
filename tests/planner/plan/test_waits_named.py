"""A wait for machines is named where it is most of the time, and what would spare it for next to nothing."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from planner.plan.front import front
from planner.plan.front_choices import choices
from planner.plan.model import Plan
from planner.plan.outcome import choice_words
from planner.render.words import option
from tests.planner.plan.test_front import LIMITS, OFFERS, TRAINING
from tests.planner.spine_catalogs import make_catalog, plan_on, work


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_on(make_catalog(OFFERS), work(constraints=LIMITS, training=TRAINING)).plan


def waiting(plan: Plan, wait: float, hours: float) -> Plan:
    """The plan with so many hours before its machines are there, of so many in all."""
    first, *rest = plan.timeline
    timeline = (replace(first, id="data_staging", hours=wait), *(replace(part, hours=0.0) for part in rest))
    return replace(plan, timeline=timeline, hours=hours)


@pytest.mark.parametrize(
    ("wait", "hours", "said"),
    [
        (8.12, 100, "starts in about 8 h"), (247.0, 600, "starts in about 250 h"),
        (3.4, 5, "starts in about 3 h"), (3.4, 50, ""), (2.1, 2.5, ""),
    ],
)  # fmt: skip
def test_a_wait_is_named_if_it_is_long_or_most_of_the_time(
    plan: Plan, wait: float, hours: float, said: str
) -> None:
    done = next(row.words for row in front(waiting(plan, wait, hours))[0].figures if row.label == "done")
    assert ("starts in about" in done) == bool(said) and said in done


@pytest.mark.parametrize(
    ("objective", "spared", "more", "said"),
    [
        ("cost", 9.0, "2.00", "spares 9 h for $2"),
        ("cost", 9.0, "20.00", ""),  # more than an hour is worth
        ("cost", 3.0, "0.50", ""),  # still waits
        ("cost", 9.0, "-0.01", ""),  # cheaper than the best plan: it breaks a limit
        ("time", 9.0, "2.00", ""),
    ],
)
def test_what_spares_a_wait_for_next_to_nothing_is_named(
    plan: Plan, objective: str, spared: float, more: str, said: str
) -> None:
    late = replace(waiting(plan, 10.0, 12.0), objective=objective)
    other = next(choice for choice in late.choices if choice.best is not None)
    assert other.best is not None
    best = replace(other.best, hours=12.0 - spared, cost_usd=late.total_usd + Decimal(more))
    (section,) = choices(replace(late, choices=(late.choices[0], replace(other, best=best))))
    notes = str(section)
    assert ("spares " in notes) == bool(said) and said in notes


def test_own_machines_are_called_what_they_are(plan: Plan) -> None:
    own = replace(plan.lines[0], purchase_option="reserved_1y", option_variant="already_owned")
    assert "reserved_1y (already paid)" in choice_words(replace(plan, lines=(own,)))
    assert (
        option("1 reserved_1y (already_owned) + 2 on_demand", "")
        == "1 reserved_1y (already paid) + 2 on_demand"
    )
    assert option("owned", "marginal") == "owned (running costs)"
    assert option("reserved_1y", "standard.no_upfront") == "reserved_1y (standard.no_upfront)"
