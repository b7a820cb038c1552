"""Commitments that one of two compared months has and the other lacks: their use changes its price, not its amount."""

from __future__ import annotations

from typing import Any

from planner.finops.frames import records_of
from planner.finops.provider_days import UNNAMED
from planner.finops.review.inputs import Inputs, month_name
from planner.finops.review.parts import and_words, money, text
from planner.finops.review.sections.things import least_amount

_NAMED = 3


def turned_words(inputs: Inputs) -> str:
    """Which commitments ended or began between the months, and where a bridge has what they cover; else empty."""
    if inputs.before is None:
        return ""
    frame = inputs.ask("commitment_utilisation")
    frame = frame[~frame["provider"].fillna(UNNAMED).isin(inputs.left_out)]
    frame = frame.assign(cost=frame["used_cost"] + frame["unused_cost"])
    frame = frame[frame["cost"] > 0]
    there, here = inputs.of_month(frame, inputs.before), inputs.of_month(frame)
    before, now = month_name(inputs.before), month_name(inputs.month)
    ended = _named(inputs, there[~there["commitment_id"].isin(here["commitment_id"])], before)
    begun = _named(inputs, here[~here["commitment_id"].isin(there["commitment_id"])], now)
    turned = [
        f"{names} {how}"
        for names, how in ((ended, f"ended by {now}"), (begun, f"began after {before}"))
        if names
    ]
    if not turned:
        return ""
    return (
        f"Of commitments, {' and '.join(turned)}: use that is covered in one of the months only counts as less use or "
        "things that ended at its old price, and as more use or new things at its new one."
    )


def _named(inputs: Inputs, rows: Any, month: str) -> str:
    """`sp-1 of AWS (98,280 USD in July 2026)`: the dearest of those that are worth a line."""
    found = [row for row in records_of(rows) if row["cost"] >= least_amount(inputs)]
    found.sort(key=lambda row: (-row["cost"], str(row["commitment_id"])))
    named = [
        f"{text(row['commitment_name']) or text(row['commitment_id'])} of {text(row['provider']) or UNNAMED} "
        f"({money(row['cost'], inputs.bill.currency)} in {month})"
        for row in found[:_NAMED]
    ]
    more = [f"{len(found) - _NAMED} more"] if len(found) > _NAMED else []
    return and_words([*named, *more]) if named else ""
