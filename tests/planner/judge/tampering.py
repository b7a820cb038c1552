"""Which changed leaves a judge lets pass, found with few calls: many are changed at once, and each must be named."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from benchmarks.forgeries import is_number, same_moment, scaled, steps
from benchmarks.instances.answers import Saved
from benchmarks.malformed import broken
from planner.errors import InputError
from planner.judge.document import leaves
from planner.judge.findings import general, is_stated

Change = tuple[str, Any]
TOGETHER = 40  # leaves changed at once


def changes_of(saved: Saved, texts: dict[str, list[str]], *, one_per_field: bool = False) -> list[Change]:
    """Another value of the same type for every leaf that is not stated, or one per field, in random order."""
    found = [
        (path, other(value, texts.get(general(path), [])))
        for path, value in leaves(saved.answer)
        if not is_stated(path, saved.stated)
    ]
    random.Random(saved.name).shuffle(found)
    fields = {general(path): (path, value) for path, value in found}
    return list(fields.values()) if one_per_field else found


def other(value: Any, texts: Sequence[str]) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if is_number(value):
        return scaled(value, 1.001)
    if isinstance(value, str):
        others = (text for text in texts if text != value and not same_moment(text, value))
        return next(others, f"{value}x")
    return [1] if isinstance(value, list) else {"x": 1} if isinstance(value, dict) else 1


def uncaught(saved: Saved, changes: Sequence[Change]) -> list[str]:
    """Leaves that no fault names; one that is not named beside others is changed alone before it counts."""
    out: list[str] = []
    for begin in range(0, len(changes), TOGETHER):
        out += _uncaught(saved, changes[begin : begin + TOGETHER])
    return out


def _uncaught(saved: Saved, changes: Sequence[Change]) -> list[str]:
    forged = saved.answer
    for path, value in changes:
        forged = broken(forged, steps(path), value)
    try:
        faults = saved.judge(forged)
    except InputError as error:
        faults = [str(error)]
    if len(changes) == 1:
        return [] if faults else [changes[0][0]]
    named = {fault.partition(": ")[0].removeprefix("$.") for fault in faults}
    # `flags[0]` is inside of `flags`, which was changed
    named |= {name[:at] for name in named for at, letter in enumerate(name) if letter in ".["}
    left = [change for change in changes if change[0].removeprefix("$.") not in named]
    if len(left) < len(changes):
        return _uncaught(saved, left) if left else []
    half = (len(left) + 1) // 2
    return [path for part in (left[:half], left[half:]) if part for path in _uncaught(saved, part)]


def resum(plan: dict[str, Any]) -> None:
    """Make all sums of a changed plan agree again, as a careful forger would."""
    for line in plan["lines"]:
        for cost in line["costs"]:
            product = (
                Decimal(cost["quantity"]) * Decimal(cost["unit_price"]) * Decimal(cost["usd_per_currency"])
            )
            cost["amount_usd"] = str(product.quantize(Decimal("1e-12")))
        line["cost_usd"] = str(sum((Decimal(cost["amount_usd"]) for cost in line["costs"]), Decimal(0)))
    plan["total_usd"] = str(sum((Decimal(line["cost_usd"]) for line in plan["lines"]), Decimal(0)))
    plan["cash"] = [{**plan["cash"][0], "amount_usd": plan["total_usd"]}]
