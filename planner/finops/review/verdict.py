"""The one line that everybody reads."""

from __future__ import annotations

from planner.finops.review.inputs import Inputs, month_name
from planner.finops.review.parts import money, percent
from planner.finops.review.sections import budgets, earlier
from planner.finops.review.sections.forecast import EFFECTIVE, Outlook, outlook, range_words
from planner.render.currency import NOT_STATED, UNKNOWN_CURRENCY


def verdict(inputs: Inputs) -> str:
    """Spend against the month before, the budget and the forecast."""
    currency = inputs.bill.currency
    unsaid = f" ({NOT_STATED})" if currency == UNKNOWN_CURRENCY else ""
    status, reason = inputs.gate.status("spend_money")
    if status == "withheld":
        return f"What {month_name(inputs.month)} cost cannot be told: {reason}."
    if inputs.gate.status(EFFECTIVE)[0] == "withheld":
        status, reason = inputs.gate.status("billed_money")
        if status == "withheld":
            return f"What {month_name(inputs.month)} cost cannot be told: {reason}."
        billed = money(inputs.spend(inputs.month, column="billed_cost"), currency)
        said = f"{month_name(inputs.month)} was billed {billed}{unsaid} without tax"
        return f"{said}; its effective cost cannot be trusted."
    spent = inputs.spend(inputs.month)
    so_far = "" if inputs.is_complete else f" up to {inputs.last_day:%-d %B}"
    said = f"{month_name(inputs.month)} cost {money(spent, currency)}{unsaid}{so_far} without tax"
    parts = [_against(inputs, spent), budgets.verdict_words(inputs), earlier.verdict_words(inputs)]
    parts = [part for part in parts if part]
    tail = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    out = f"{said}{', ' if tail else ''}{tail}."
    ahead = outlook(inputs)
    if isinstance(ahead, Outlook):
        out += (
            f" {ahead.name} is expected at {money(ahead.month_end.landing, currency)} ({range_words(ahead)})."
        )
    return out


def _against(inputs: Inputs, spent: float) -> str:
    if inputs.before is None:
        return ""
    if not inputs.is_complete:
        return ""  # a part of a month is no month to compare with; the forecast says where it lands
    before = inputs.spend(inputs.before)
    if before <= 0:
        return f"against {money(before, inputs.bill.currency)} in {month_name(inputs.before)}"
    change = spent / before - 1
    return f"{percent(abs(change))} {'more' if change >= 0 else 'less'} than {month_name(inputs.before)}"
