"""Was the budget kept, and will it be?"""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.finops.review.inputs import Inputs
from planner.finops.review.model import Figure, Table
from planner.finops.review.parts import and_words, figure, money, percent, ratio, table

_NAMED = 5  # budgets that a sentence names


def checked_budgets(inputs: Inputs) -> Any:
    """Every budget in the period in which the month ends, or what is known of it; None without budgets."""
    if inputs.budgets is None:
        return None
    if "budgets" not in inputs.answers:
        from planner.finops.budget.answer import check_budgets

        inputs.answers["budgets"] = check_budgets(
            inputs.budgets, scopes_of(inputs), currency=inputs.bill.currency, day=inputs.last_day,
            drop_days=0 if inputs.is_complete else None,
        )  # fmt: skip
    return inputs.answers["budgets"]


def scopes_of(inputs: Inputs) -> Any:
    """Daily cost up to the month's end by dimension and scope of the budgets; asked for once."""
    if "budget_scopes" not in inputs.answers:
        from planner.finops.budget.answer import dimensions
        from planner.finops.forecast.bill import daily_of_bill
        from planner.finops.forecast.daily import carried_on

        end, last = np.datetime64(inputs.end), np.datetime64(inputs.last_day)
        scopes = {}
        for by in dimensions(inputs.budgets):
            found = daily_of_bill(inputs.bill, by, inputs.budgets.file.cost, exact_tags=inputs.exact_tags)
            scopes[by] = {name: carried_on(one, last, before=end) for name, one in found.items()}
        inputs.answers["budget_scopes"] = scopes
    return inputs.answers["budget_scopes"]


def budget_table(inputs: Inputs) -> Table | None:
    """Budgets against actual and expected cost."""
    answer = checked_budgets(inputs)
    if answer is None:
        return None
    held = inputs.gate.status("budget_variance_money")
    rows = [
        (line.name, line.scope, line.period.label, line.amount, line.actual, line.landing,
         line.landing - line.amount, ratio(line.landing - line.amount, line.amount), line.p_over, line.status)
        for line in answer.lines
    ]  # fmt: skip
    note = "Variance: expected cost of the period minus the budget; above 0 is over."
    if held[0] != "ok":
        note += f" {held[0].capitalize()}: {held[1]}."
    return table(
        "budgets", "Budgets", [("name", "Budget", "text"), ("scope", "Scope", "text"), ("period", "Period", "text"),
        ("amount", "Budget amount", "money"), ("actual", "Spent", "money"), ("landing", "Expected", "money"),
        ("variance", "Variance", "money"), ("variance_ratio", "Variance", "ratio"),
        ("p_over", "Chance of going over", "ratio"), ("status", "Status", "text")], rows, note,
    )  # fmt: skip


def budget_figures(inputs: Inputs) -> list[Figure]:
    """The total's budget as figures."""
    line = total_budget(inputs)
    if line is None:
        return []
    gap = line.landing - line.amount
    return [
        figure(
            inputs, "budget_amount_money", f"Budget {line.name}, {line.period.label}", line.amount, "money"
        ),
        figure(inputs, "budget_variance_money", "Expected minus budget", gap, "money"),
        figure(inputs, "budget_variance_ratio", "Variance", ratio(gap, line.amount), "ratio"),
        figure(inputs, "budget_p_over_ratio", "Chance of going over", line.p_over, "ratio"),
    ]


def total_budget(inputs: Inputs) -> Any:
    """The first budget of the whole bill."""
    answer = checked_budgets(inputs)
    return (
        next((line for line in answer.lines if line.scope == "total"), None) if answer is not None else None
    )


def budget_words(inputs: Inputs) -> list[str]:
    """One sentence on all budgets."""
    answer = checked_budgets(inputs)
    if answer is None or not answer.lines:
        return []
    bad = [line.name for line in answer.lines if line.exceeded]
    if not bad:
        return [f"All {len(answer.lines)} budgets are expected to be met."]
    names = and_words([*bad[:_NAMED], *([f"{len(bad) - _NAMED} more"] if len(bad) > _NAMED else [])])
    if len(answer.lines) == 1:
        return [f"The budget {names} is over or likely to be."]
    are = "is" if len(bad) == 1 else "are"
    return [f"{len(bad)} of {len(answer.lines)} budgets {are} over or likely to be: {names}."]


def verdict_words(inputs: Inputs) -> str:
    """The total's budget for the verdict, if there is one for this month."""
    line = total_budget(inputs)
    if line is None or not _is_of_the_month(inputs, line):
        return ""
    size, chance = _against(inputs, line)
    return f"expected to end {size}{chance}" if chance else size


def verdict_sentences(inputs: Inputs) -> list[str]:
    """What the verdict says of budgets of longer periods, and of the others that are over or likely to be."""
    answer, said = checked_budgets(inputs), []
    if answer is None or inputs.gate.status("budget_variance_money")[0] == "withheld":
        return []
    line = total_budget(inputs)
    if line is not None and not _is_of_the_month(inputs, line):
        size, chance = _against(inputs, line)
        said.append(f"{line.period.label} {'is expected to end' if chance else 'ended'} {size}{chance}.")
    others = any(one.exceeded for one in answer.lines if one is not line)
    return [*said, *(budget_words(inputs) if others else ())]


def _is_of_the_month(inputs: Inputs, line: Any) -> bool:
    return bool(line.period.start == inputs.month and line.period.end == inputs.end)


def _against(inputs: Inputs, line: Any) -> tuple[str, str]:
    """`58.6 % under its budget of 1,700,000 USD` and ` (0 % likely to go over)`; empty where the period has ended."""
    gap = line.landing - line.amount
    size = f"{percent(abs(ratio(gap, line.amount)))} {'over' if gap > 0 else 'under'} its budget"
    chance = f" ({percent(line.p_over, 0)} likely to go over)" if line.days_left else ""
    return f"{size} of {money(line.amount, inputs.bill.currency)}", chance
