"""A fleet on more accelerators than were ever recorded at once says what costs nearly the same on fewer."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from planner.asked.model import Asked
from planner.asked.options import Options
from planner.errors import PlannerError, TimeLimitError
from planner.fleet.fewer_at_once import with_fewer_at_once
from planner.plan.model import Plan
from tests.planner.fleet.test_spine_fleet import fleet
from tests.planner.spine_catalogs import A100X8, NOW, Offer, make_catalog, plan_on

OFFERS = [Offer(A100X8, "us-east-1", "20")]


def planned(nodes: int, *, times: str = "1", stated: int | None = None) -> tuple[list[str], list[int]]:
    """Notes beside a fleet of so many nodes of 8, where fewer cost `times` as much; and what was asked for."""
    known = (
        [{"accelerator": "a100", "purchase_option": "on_demand", "accelerators": stated}] if stated else []
    )
    answer = plan_on(make_catalog(OFFERS), fleet(6, {"obtainable": known} if known else {}))
    plan = replace(
        answer.plan, warnings=(), lines=tuple(replace(line, nodes=nodes) for line in answer.plan.lines)
    )
    asked: list[int] = []

    def ask(changed: Asked, options: Options) -> Plan:
        asked.append(changed.workload.constraints.max_nodes)
        assert options.time_limit_s <= 30.0
        lines = tuple(replace(line, nodes=asked[-1]) for line in plan.lines)
        return replace(plan, lines=lines, total_usd=plan.total_usd * Decimal(times), hours=plan.hours + 5.0)

    noted = with_fewer_at_once(plan, answer.context.market.asked, Options(NOW, time_limit_s=30.0), ask)
    return list(noted.warnings), asked


def test_fewer_nodes_that_cost_nearly_the_same_are_named_with_the_limit_that_asks_for_them() -> None:
    [note], asked = planned(4, times="1.02")
    assert asked == [2]
    assert note.startswith("fewer at once: 2 x p4d.24xlarge on_demand, aws/us-east-1, for $")
    assert note.endswith(" more, ends 5 h later (constraints.max_nodes: 2)")


@pytest.mark.parametrize(("nodes", "times", "stated"), [(2, "1", None), (4, "1.1", None), (4, "1", 64)])
def test_nothing_is_said_of_few_of_what_costs_much_more_or_where_the_user_says_what_is_to_be_had(
    nodes: int, times: str, stated: int | None
) -> None:
    notes, asked = planned(nodes, times=times, stated=stated)
    assert not notes and asked == ([2] if times != "1" else [])


def test_a_question_that_takes_too_long_is_not_answered() -> None:
    answer = plan_on(make_catalog(OFFERS), fleet(6))
    wide = replace(answer.plan, lines=tuple(replace(line, nodes=4) for line in answer.plan.lines))

    def ask(_changed: Asked, _options: Options) -> Plan:
        raise TimeLimitError("too long")

    assert with_fewer_at_once(wide, answer.context.market.asked, Options(NOW), ask) is wide


def test_a_solver_that_fails_at_it_is_a_note_and_leaves_the_plan() -> None:
    answer = plan_on(make_catalog(OFFERS), fleet(6))
    wide = replace(answer.plan, lines=tuple(replace(line, nodes=4) for line in answer.plan.lines))

    def ask(_changed: Asked, _options: Options) -> Plan:
        raise PlannerError("solver fault: say so")

    noted = with_fewer_at_once(wide, answer.context.market.asked, Options(NOW), ask)
    assert replace(noted, warnings=wide.warnings) == wide
    assert noted.warnings[-1] == "fewer at once: not known: solver fault: say so"
