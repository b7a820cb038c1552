"""The one line that everybody reads."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Sequence
from datetime import date

from planner.finops.bill_days import long_charges
from planner.finops.provider_days import LEAST_SHARE, going_on, missing_words, share_there
from planner.finops.quality import EVERY_FIGURE
from planner.finops.review.inputs import Inputs, month_64, month_end, month_name
from planner.finops.review.parts import and_words, money, percent
from planner.finops.review.sections import budgets, earlier
from planner.finops.review.sections.forecast import EFFECTIVE, Outlook, known_money, outlook, range_words
from planner.render.currency import NOT_STATED, UNKNOWN_CURRENCY

LEAST_CREDIT_RATIO = 0.1  # of the cost before credits
_TAKEN_OFF = {"Credit": "credits", "Adjustment": "adjustments"}
_LINES = 200  # characters of two lines at a terminal, or of a page
_DAYS = frozenset(("complete", "complete_providers"))
_TIMES = 9.0  # from ten times on a percentage says less than how many times
_READABLE = EVERY_FIGURE | {"effective_zero", "effective_zero_rows", "negative_effective"}


def verdict(inputs: Inputs) -> str:
    """Spend against the month before, the budget and the forecast."""
    currency = inputs.bill.currency
    unsaid = f" ({NOT_STATED})" if currency == UNKNOWN_CURRENCY else ""
    status, reason = inputs.gate.status("spend_money")
    if status == "withheld":
        return f"What {month_name(inputs.month)} cost is unknown: {reason}."
    if inputs.gate.status(EFFECTIVE)[0] == "withheld":
        status, reason = inputs.gate.status("billed_money")
        if status == "withheld":
            return f"What {month_name(inputs.month)} cost is unknown: {reason}."
        billed = money(inputs.spend(inputs.month, column="billed_cost"), currency)
        said = f"{month_name(inputs.month)} was billed {billed}{unsaid} without tax"
        return f"{said}; its effective cost cannot be trusted."
    spent = inputs.spend(inputs.month)
    so_far = "" if inputs.is_complete else f" up to {inputs.last_day:%-d %B}"
    if (first := inputs.begins_late(inputs.month)) is not None:
        so_far = f" from {first:%-d %B}, where the bill begins,{so_far}"
    said = f"{month_name(inputs.month)} cost {money(spent, currency)}{unsaid}{so_far} without tax"
    said += _credited(inputs, spent)
    whole = _line(inputs, said, against(inputs, spent))
    # why a change is to be read with care fills two lines alone: the data's quality has it
    return whole if len(whole) <= _LINES else _line(inputs, said, against(inputs, spent, is_brief=True))


def _line(inputs: Inputs, said: str, change: str) -> str:
    """What was spent with its change, the budget and the forecasts."""
    parts = [change, budgets.verdict_words(inputs), earlier.verdict_words(inputs)]
    parts = [part for part in parts if part]
    joint = ", and " if inputs.left_out else " and "  # "whose bill ends on ..." is set off by a comma
    tail = joint.join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    out = " ".join([f"{said}{', ' if tail else ''}{tail}.", *budgets.verdict_sentences(inputs)])
    ahead = outlook(inputs)
    if isinstance(ahead, Outlook):
        expected = known_money(ahead.month_end, ahead.month_end.landing, inputs.bill.currency)
        out += f" {ahead.name} is expected at {expected} ({range_words(ahead)})."
    return out


def _credited(inputs: Inputs, spent: float) -> str:
    """`, after 29,760 USD of credits`, where they took off a tenth or more: they may not come again; else empty."""
    daily = inputs.daily
    own = daily[daily["day"].to_numpy().astype("datetime64[M]") == month_64(inputs.month)]
    sums = {
        name: -float(own.loc[own["charge_category"] == name, "effective_cost"].sum()) for name in _TAKEN_OFF
    }
    taken = {name: off for name, off in sums.items() if off > 0}
    off = sum(taken.values())
    if off <= 0 or off < LEAST_CREDIT_RATIO * (spent + off):
        return ""
    return f", after {money(off, inputs.bill.currency)} of {and_words([_TAKEN_OFF[name] for name in taken])}"


def against(inputs: Inputs, spent: float, *, known: str = "", is_brief: bool = False) -> str:
    """`18.4 % more than September 2026`, per day where one of the months lacks days; empty where there is none.

    A provider whose bill begins or ends within the month compared with is in neither side, and that is said. What is
    `known`, since it is said beside it, is not said again; a brief one leaves other reasons for care than days to
    the data's quality.
    """
    if inputs.before is None:
        return ""
    if not inputs.is_complete:
        return ""  # a part of a month is not a month to compare with; the forecast says where it lands
    without = inputs.left_out
    spent = inputs.spend(inputs.month, without=without) if without else spent
    before = inputs.spend(inputs.before, without=without)
    # a percentage of or to what is no cost says nothing
    if before <= 0 or spent < 0 or not inputs.gate.days:
        return (
            f"against {money(before, inputs.bill.currency)} in {month_name(inputs.before)}{_without(inputs)}"
        )
    name, gate = month_name(inputs.before), inputs.gate
    assert gate.before is not None
    going = (going_on(gate.before.providers), going_on(gate.providers))
    lacks = any((share_there(one) or 1.0) < 1.0 for one in going)
    status, reason = gate.status(
        "spend_change_ratio", but=("complete_providers",) if without and not lacks else ()
    )
    share = share_there(going_on(gate.providers))
    if share is not None and share < LEAST_SHARE:
        return f"not comparable with {name} ({missing_words(gate.providers)})"
    if any(check.status == "withheld" for check in gate.before.failed(frozenset(("complete_providers",)))):
        return f"not comparable with {name} ({missing_words(gate.before.providers)})"
    if gate.days != inputs.days_of(inputs.month) or gate.before.days != inputs.days_of(inputs.before):
        own = _daily_cost(inputs, inputs.month, spent, gate.days)
        return _per_day(inputs, own, _daily_cost(inputs, inputs.before, before, gate.before.days))
    if status == "withheld":
        return f"not comparable with {name} ({reason})"
    change = spent / before - 1
    name += _without(inputs)
    said = f"{_moved(change)} than {name}{_with_all(inputs)}"
    if change >= _TIMES:
        said = f"{spent / before:,.0f} times the {money(before, inputs.bill.currency)} of {name}"
    reasons = reason.split("; ") if status != "ok" else []
    unsaid = [one for one in reasons if one not in known.split("; ")]
    if unsaid or inputs.account_gaps():
        return f"{said} (with care{_care(inputs, unsaid, is_brief=is_brief)})"
    return said if without else f"{said}{_calendar(inputs, change, before, spent)}"


def _care(inputs: Inputs, reasons: Sequence[str], *, is_brief: bool) -> str:
    """Why a change is to be read with care; a brief one has days that are missing alone."""
    gates = [gate for gate in (inputs.gate, inputs.gate.before) if gate is not None]
    of_days = [one for gate in gates for check in gate.failed(_DAYS) for one in check.reason.split("; ")]
    kept = [one for one in reasons if not is_brief or any(reason in one for reason in of_days)]
    words = "; ".join(filter(None, (*kept, inputs.account_gaps())))
    return f": {words}" if words else ""


def _moved(change: float) -> str:
    return f"{percent(abs(change))} {'more' if change >= 0 else 'less'}"


def _with_all(inputs: Inputs) -> str:
    """`, 4.0 % less with it`, where what is left out may be new, or have ended, and lack no file; else empty."""
    assert inputs.before is not None
    before = inputs.spend(inputs.before)
    if before <= 0 or not any(one.doubt for one in inputs.gate.left_out):
        return ""
    change = inputs.spend(inputs.month) / before - 1
    return f", {_moved(change)} with {'it' if len(inputs.left_out) == 1 else 'them'}"


def _calendar(inputs: Inputs, change: float, before: float, spent: float) -> str:
    """` (0.1 % more per day)` where most of a change comes from the months' numbers of days; else empty."""
    assert inputs.before is not None
    days, days_before = inputs.days_of(inputs.month), inputs.days_of(inputs.before)
    if days == days_before or change >= _TIMES:
        return ""
    own = _daily_cost(inputs, inputs.month, spent, days)
    other = _daily_cost(inputs, inputs.before, before, days_before)
    per_day = own / other - 1 if other > 0 else change
    if abs(per_day) >= abs(change) / 2:
        return ""
    size = percent(abs(per_day))
    side = "more" if per_day > 0 else "less"
    return " (as much per day)" if size == percent(0.0) else f" ({size} {side} per day)"


def _daily_cost(inputs: Inputs, month: date, spent: float, days: float) -> float:
    """What a day with use cost, with a day's part of the month's fees; 0 of a month without such a day."""
    key = f"long charges {month}"
    if key not in inputs.answers:
        inputs.answers[key] = long_charges(inputs.bill, month, month_end(month), without=inputs.left_out)
    fees, per_day = inputs.answers[key]
    return (spent - fees) / days + per_day if days else 0.0


def _per_day(inputs: Inputs, per_day: float, before_per_day: float) -> str:
    """Months that lack days compared by what a day with use cost; nothing where costs of one of them cannot be read."""
    before, gate = inputs.before, inputs.gate
    assert before is not None and gate.before is not None
    unreadable = [*gate.failed(_READABLE), *gate.before.failed(_READABLE)]
    if any(check.status == "withheld" for check in unreadable) or before_per_day <= 0:
        reasons = "; ".join(check.reason for check in unreadable) or "no day of it has use"
        return f"not comparable with {month_name(before)} ({reasons})"
    change = per_day / before_per_day - 1
    first = inputs.begins_late(before)
    why = f"the bill begins on {first:%-d %B}" if first is not None else _days(gate.before.days, before)
    if gate.days != inputs.days_of(inputs.month):
        why = f"{_days(gate.days, inputs.month)}; {why}"
    side = "more" if change >= 0 else "less"
    return f"{percent(abs(change))} {side} per day than {month_name(before)}{_without(inputs)} ({why})"


def _without(inputs: Inputs) -> str:
    """` without Azure, whose bill begins on 15 September`; empty where both months have all providers."""
    late = [one.clause for one in inputs.gate.left_out]
    return f" without {and_words(late, ', and ')}" if late else ""


def _days(there: float, month: date) -> str:
    return f"{there:.0f} of {monthrange(month.year, month.month)[1]} days of {month:%B} have use"
