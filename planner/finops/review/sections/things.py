"""Everything bought in both months, summed once by the engine; names are looked up for what the page shows alone."""

from __future__ import annotations

from typing import Any

from planner.finops.frames import in_order
from planner.finops.review.inputs import Inputs
from planner.finops.things.ask import ask_things, keep_names, keep_things

TOP = 10  # movers
CHEAPER_RATIO = 0.02  # a region that is cheaper by less is not worth a move
MATERIAL_RATIO = 0.0005  # of the month's cost; smaller actions are not worth a line


def least_amount(inputs: Inputs) -> float:
    """The smallest amount worth a line of its own, in the bill's currency."""
    return max(MATERIAL_RATIO * inputs.spend(inputs.month), 0.01)


def things(inputs: Inputs, query: str, **values: Any) -> Any:
    """Rows of a query over everything bought in both months, in order; the engine sums that up once."""
    if "things" not in inputs.answers:
        keep_things(inputs.bill.engine, inputs.parameters)
        inputs.answers["things"] = True
    return in_order(ask_things(inputs.bill.engine, query, {**inputs.parameters, **values}))


def named_things(inputs: Inputs, query: str) -> Any:
    """The movers, or the uses that are cheaper elsewhere, with the names of their things.

    Args:
        inputs: has the bill.
        query: `movers` or `cheaper`.
    """
    if "things" not in inputs.answers:
        keep_things(inputs.bill.engine, inputs.parameters)
        inputs.answers["things"] = True
    if "things_named" not in inputs.answers:
        shown = {"top": TOP, "least": least_amount(inputs), "least_ratio": CHEAPER_RATIO}
        keep_names(inputs.bill.engine, {**inputs.parameters, **shown})
        inputs.answers["things_named"] = True
    return in_order(ask_things(inputs.bill.engine, f"{query}_named"))
