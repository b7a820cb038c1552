"""What is said of machines that were bought ahead: of capacity blocks, and of reservations without effective cost."""

from __future__ import annotations

import math

from planner.finops.bought_ahead import undivided
from planner.finops.review.inputs import Inputs, month_name
from planner.finops.review.parts import money
from planner.finops.review.sections.things import least_amount

_NIL = 0.005  # of money: below a cent
_NAMED = 3
_TWO_WAYS = "GPU cost follows the use of capacity blocks; spend, showback and forecasts follow their charges"


def left_gpu_hours(inputs: Inputs) -> float:
    """GPU-hours of the month's capacity blocks that nobody used and no charge names as unused."""
    month = f"{inputs.month:%Y-%m}"
    return math.fsum(
        share.hours
        for share in inputs.ahead()
        if share.month == month and share.state == "left" and share.has_gpus and not share.commitment
    )


def ahead_words(inputs: Inputs, runs_cost: float) -> tuple[str, ...]:
    """What runs bear of it, what is left, and what other months bear.

    Args:
        inputs: of the review.
        runs_cost: what the month's runs bear of what was bought ahead.
    """
    if inputs.gate.status("gpu_cost_money")[0] == "withheld":
        return ()
    month, currency = f"{inputs.month:%Y-%m}", inputs.bill.currency
    blocks = [share for share in inputs.ahead() if share.month == month and not share.commitment]
    left = math.fsum(share.cost for share in blocks if share.state != "used")
    charged = math.fsum(
        float(row["effective_cost"])
        for row in inputs.ahead_rows()
        if row["x_month"] == month and not row["commitment_id"]
    )
    said = []
    if runs_cost >= _NIL:
        borne = f"{money(runs_cost, currency)} of the cost of runs is their share of what was bought ahead"
        said.append(f"{borne} (capacity blocks, reservations), by hours of use.")
        if left >= _NIL:
            unused = f"{money(left, currency)} of capacity blocks of {month_name(inputs.month)} was not used"
            said.append(f"{unused} by {inputs.use_days()[-1]}: no run is charged for it.")
    if (more := math.fsum(share.cost for share in blocks) - charged) >= _NIL:
        others = f"{money(more, currency)} of capacity blocks that were charged in other months"
        said.append(f"{_TWO_WAYS}: GPU cost has {others}.")
    elif more <= -_NIL:
        others = f"{money(-more, currency)} is for use in other months"
        said.append(f"{_TWO_WAYS}: of those charged in the month, {others}.")
    if names := undivided(inputs.ahead_rows()):
        others = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        said.append(
            f"The share of runs in {', '.join(names[:_NAMED])}{others} is not known: the bill states neither the "
            "EffectiveCost of its use nor how much of it was bought (CommitmentDiscountQuantity)."
        )
    return tuple(said)


def bought_words(inputs: Inputs) -> str:
    """That purchases of one of the two months, each charged once, look like new or ended use; empty without."""
    assert inputs.before is not None
    months = (inputs.before, inputs.month)
    rows = [row for row in inputs.ahead_rows() if row["charge_category"] == "Purchase"]
    before, now = (
        math.fsum(float(row["effective_cost"]) for row in rows if row["x_month"] == f"{month:%Y-%m}")
        for month in months
    )
    if abs(now - before) < least_amount(inputs):
        return ""
    one, other = (
        f"{money(cost, inputs.bill.currency)} in {month_name(month)}"
        for cost, month in zip((before, now), months, strict=True)
    )
    return f"What was bought ahead (capacity blocks, reservations) counts in the month of its charge: {one}, {other}."
