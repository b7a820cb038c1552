"""The cost section: what is bought in several places at one price is one quantity, so each row can be recomputed."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from planner.plan.report_choice import costs
from tests.planner.render.render_plans import SPOT


def test_equal_things_of_two_zones_are_summed() -> None:
    (compute,) = (cost for cost in SPOT.lines[0].costs if cost.kind == "compute")
    compute = replace(compute, quantity=Decimal("4.25"), amount_usd=Decimal("4.25") * compute.unit_price)
    line = replace(SPOT.lines[0], costs=(compute,))
    (section,) = costs(replace(SPOT, lines=(line, line)), verbose=False)
    item, paid = section.tables[0].rows[0][1:3]
    assert (
        isinstance(item, str)
        and item.startswith(f"{compute.label}: 8.5 {compute.unit} at ")
        and ";" not in item
    )
    assert paid == (2 * compute.amount_usd, True)
