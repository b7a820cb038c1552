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


@pytest.mark.parametrize(
    ("spared", "more", "nodes", "said"),
    [
        (0.4, 1.02, 7, "nearly as cheap: 7 x "), (0.4, 1.02, None, ""), (0.1, 1.02, 7, ""), (0.4, 1.05, 7, ""),
    ],
)  # fmt: skip
def test_a_decision_that_costs_as_much_and_ends_much_sooner_is_named(
    plan: Plan, spared: float, more: float, nodes: int | None, said: str
) -> None:
    """Nobody buys the slower of two clusters for a saving that prices are not known to."""
    first = plan.lines[0]
    slow = replace(plan, hours=100.0, choices=plan.choices[:1])
    listed = next(choice.best for choice in plan.choices if choice.best is not None)
    other = replace(
        listed, instance_type=first.instance_type, region=first.region, provider=first.provider, parts=(),
        purchase_option=first.purchase_option, option_variant=first.option_variant, nodes=nodes or first.nodes,
        hours=100.0 * (1 - spared), cost_usd=plan.total_usd * Decimal(str(more)),
    )  # fmt: skip
    zones = replace(other, nodes=first.nodes, hours=other.hours - 1.0)  # reads as the plan does
    notes = choices(replace(slow, alternatives=(other, zones)))[0].tables[0].note
    words = next((note for note in notes if note.startswith("nearly as cheap")), "")
    assert words.startswith(said) and bool(words) == bool(said)
    assert not said or "ends 40 h sooner for $" in words


@pytest.mark.parametrize(
    ("objective", "later", "part", "is_listed", "said"),
    [
        ("time", 0.05, 0.125, False, "nearly as soon: 3 x "), ("time", 0.05, 0.125, True, "cheaper: "),
        ("time", 0.2, 0.125, False, ""), ("time", 0.05, 0.9, False, ""), ("cost", 0.05, 0.125, False, ""),
    ],
)  # fmt: skip
def test_a_decision_that_ends_as_soon_and_costs_much_less_is_named(
    plan: Plan, objective: str, later: float, part: float, is_listed: bool, said: str
) -> None:
    """Nobody pays thousands for three minutes that hours are not known to."""
    fast = replace(plan, objective=objective, hours=2.0, choices=plan.choices[:1], alternatives=())
    other = next(choice for choice in plan.choices if choice.best is not None)
    assert other.best is not None
    best = replace(
        other.best, nodes=3, parts=(), hours=2.0 + later, cost_usd=plan.total_usd * Decimal(str(part))
    )
    cheaper = replace(other, best=best, kinds=("cheaper",))
    made = replace(fast, **{"choices": (*fast.choices, cheaper)} if is_listed else {"alternatives": (best,)})
    notes = [note for note in choices(made)[0].tables[0].note if " later for $" in note]
    assert bool(notes) == bool(said)
    assert not said or (notes[0].startswith(said) and ": ends 3 min later for $" in notes[0])


def test_ends_that_plans_are_chosen_by_are_told_apart_by_the_hour_where_that_does(plan: Plan) -> None:
    """Not by the minute, which nobody knows of a run of days."""
    other = next(choice for choice in plan.choices if choice.best is not None)
    assert other.best is not None and plan.risk is not None
    ends = ("2026-12-01T09:23+00:00", "2026-12-01T23:04+00:00")
    days = replace(plan, objective="time", hours=100.0, risk=replace(plan.risk, worst_hours=150.0))
    several = tuple(
        replace(other, finish_expected=end, best=replace(other.best, hours=100.0 + at))
        for at, end in enumerate(ends)
    )
    rows = choices(replace(days, choices=(plan.choices[0], *several)))[0].tables[0].rows
    assert [row[3] for row in rows[1:]] == ["Dec 1 09:00", "Dec 1 23:00"]
