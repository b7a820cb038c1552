"""The quotas to ask for: what runs together adds up, what runs in turn does not, own machines need none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.plan.model import Plan, QuotaNeed
from planner.plan.report_quotas import quotas
from planner.render.model import Table, Value
from tests.planner.render.render_plans import FLEET, SPOT

NEED = QuotaNeed(
    "GPU instances (all)", "L-1", "account x region", "vCPU", 48.0, 100.0, "within the declared limit"
)


def _table(plan: Plan) -> Table:
    (section,) = quotas(plan)
    return section.tables[0]


def _asked(plan: Plan, *needs: QuotaNeed, option: str = "spot") -> Plan:
    """The plan with lines in one region that differ in their quota alone."""
    first = replace(plan.lines[0], purchase_option=option)
    return replace(plan, lines=tuple(replace(first, quota=need) for need in needs))


def _row(table: Table, at: int = 0) -> dict[str, Value]:
    return dict(zip((column.key for column in table.columns), table.rows[at], strict=True))


@pytest.mark.parametrize(
    ("amounts", "needed", "status"),
    [((48.0, 40.0), 88.0, "within the declared limit"), ((48.0, 60.0), 108.0, "above the limit")],
)
def test_lines_that_run_together_add_up(amounts: tuple[float, float], needed: float, status: str) -> None:
    plan = _asked(FLEET, *(replace(NEED, needed=amount) for amount in amounts))
    table = _table(replace(plan, launch=None))
    assert len(table.rows) == 1
    row = _row(table)
    assert (row["needed"], row["limit"], row["status"]) == ((needed, "vCPU"), 100.0, status)


def test_of_lines_in_turn_the_largest_counts() -> None:
    assert SPOT.launch is not None and SPOT.launch.in_turn
    table = _table(_asked(SPOT, replace(NEED, needed=48.0), replace(NEED, needed=60.0)))
    assert _row(table)["needed"] == (60.0, "vCPU") and any("one after another" in note for note in table.note)


def test_what_is_not_known_takes_no_column_and_a_name_is_whole() -> None:
    table = _table(_asked(FLEET, replace(NEED, code="", limit=None, needed=1.0, unit="instances")))
    row = _row(table)
    assert row.keys() == {"name", "region", "needed", "status"}
    assert (row["name"], row["needed"]) == (NEED.name, (1.0, "instance"))


def test_own_machines_need_none() -> None:
    assert quotas(_asked(FLEET, NEED, option="owned")) == []
