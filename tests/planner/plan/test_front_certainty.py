"""Ends and probabilities on the screen do not contradict each other, and warnings say what the hours rest on."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from planner.plan.diff import diff_plans
from planner.plan.diff_report import diff_report
from planner.plan.front import front
from planner.plan.front_choices import choices
from planner.plan.front_notes import before_you_buy
from planner.plan.launch import Launch
from planner.plan.model import Plan
from planner.plan.outcome import outcome_of
from planner.workloads.whatif import WhatIf
from planner.workloads.whatif_report import whatif_report
from tests.planner.plan.test_front import LIMITS, OFFERS, TRAINING, rows_of
from tests.planner.render.render_plans import SPOT
from tests.planner.spine_catalogs import make_catalog, plan_on, work

DEADLINE = datetime.fromisoformat("2026-11-27T17:35:00+00:00")


def on_spot(**changes: object) -> Plan:
    assert isinstance(SPOT.launch, Launch)
    return replace(SPOT, deadline=DEADLINE.isoformat(), launch=replace(SPOT.launch, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("half_hours", "late_minutes", "beyond"), [(2.0, -5, False), (20.0, -4, False), (2.0, 40, True)]
)
def test_an_end_before_the_deadline_does_not_read_as_one_after_it(
    half_hours: float, late_minutes: int, beyond: bool
) -> None:
    late = DEADLINE + timedelta(minutes=late_minutes)
    plan = on_spot(
        p10_hours=SPOT.hours - half_hours, p90_hours=SPOT.hours + half_hours, finish_p90=late.isoformat()
    )
    said = rows_of(plan)["done"].split("; in time")[0].split(" to ")[1]
    shown = datetime.strptime(f"2026 {said} +0000", "%Y %b %d %H:%M %z")
    assert (shown > DEADLINE) == beyond


def test_the_end_of_a_plan_of_one_price_has_its_interval() -> None:
    plan = plan_on(make_catalog(OFFERS), work(constraints=LIMITS, training=TRAINING)).plan
    assert plan.risk is not None and plan.launch is None
    block = replace(
        plan, risk=replace(plan.risk, worst_cost_usd=plan.total_usd, worst_hours=plan.hours * 1.3)
    )
    rows = rows_of(block)
    assert "90 %: by " in rows["done"] and "at most" not in rows["cost"]


@pytest.mark.parametrize(
    ("asked", "chance", "said"),
    [(0.9, 0.9995, ">99 %"), (0.999, 0.9995, ">99.9 %"), (0.999, 0.995, ">99 %"), (0.9, 0.95, "95 %")],
)
def test_a_chance_above_a_high_one_that_was_asked_says_so(asked: float, chance: float, said: str) -> None:
    limits = {**LIMITS, "deadline_confidence": asked}
    plan = plan_on(make_catalog(OFFERS), work(constraints=limits, training=TRAINING)).plan
    assert plan.risk is not None
    plan = replace(plan, risk=replace(plan.risk, p_meet_deadline=chance))
    assert f"in time with {said}" in rows_of(plan)["done"]


def test_a_bound_on_the_chance_is_one_in_all_tables() -> None:
    whole = plan_on(make_catalog(OFFERS), work(constraints=LIMITS, training=TRAINING)).plan
    in_parts = replace(
        whole, launch=replace(on_spot().launch, strategy="fallback_in_fleet"),  # type: ignore[type-var]
        lines=whole.lines * 3, choices=(replace(whole.choices[0], p_meet_deadline=0.914), *whole.choices[1:]),
    )  # fmt: skip
    assert "at least" in str(front(in_parts)[0])
    first, *others = choices(in_parts)[0].tables[0].rows
    assert first[4] == ">=91 %" and not any(isinstance(row[4], str) and row[4] for row in others)
    assert in_parts.risk is not None
    in_parts = replace(in_parts, risk=replace(in_parts.risk, p_meet_deadline=0.914))
    as_it_is, surer = outcome_of(in_parts, "as the file says"), outcome_of(whole, "firm")
    scenarios = whatif_report(WhatIf("w", as_it_is, (surer,))).sections[0].tables[0].rows
    assert [row[4] for row in scenarios] == [">=91 %", surer.p_meet_deadline]
    plans, changed = (
        section.tables[0].rows for section in diff_report(diff_plans(in_parts, whole, "a", "b")).sections[:2]
    )
    assert [row[4] for row in plans] == [">=91 %", surer.p_meet_deadline]
    assert [row[2] for row in changed if row[1] == "in time"] == [">=91 %"]


@pytest.mark.parametrize(
    ("hours", "fits", "said"),
    [
        (1.0, True, ", save every 60 min and on warning"),
        (6.0, True, ", save every 6 h and on warning"),
        (6.0, False, ", save every 6 h"),
        (500.0, True, ", save on warning"),
        (500.0, False, "; it ends before a checkpoint is due (500 h)"),
    ],
)
def test_a_plan_that_counts_on_saving_at_the_warning_says_so(hours: float, fits: bool, said: str) -> None:
    assert SPOT.launch is not None
    saves = replace(SPOT.launch.checkpoints, interval_hours=hours, notice_s=120.0, fits_in_notice=fits)
    (section,) = before_you_buy(on_spot(checkpoints=saves))
    assert f"resume automatically{said}'" in str(section)
