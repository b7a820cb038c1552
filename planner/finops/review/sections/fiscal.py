"""How does the fiscal year run?"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.finops.counted_twice import twice_by_month
from planner.finops.review.inputs import Inputs, month_name
from planner.finops.review.model import Section, Table, Unit
from planner.finops.review.parts import table, withheld
from planner.finops.review.sections.bridge import LABELS, split
from planner.finops.review.sections.budgets import checked_budgets, scopes_of

if TYPE_CHECKING:
    from planner.finops.budget.fiscal import FiscalYear

TITLE = "How does the fiscal year run?"
_UNITS: dict[Unit, Unit] = {"money_short": "money"}  # programs read full amounts in the review's schema


def build(inputs: Inputs) -> Section | None:
    """Budgets against actual by month of the fiscal year, and what explains the month's variance; None if not asked."""
    first_month = inputs.beside.fiscal_start
    if first_month is None or inputs.budgets is None:
        return None
    status, reason = inputs.gate.status("budget_variance_money")
    if status == "withheld":
        return withheld("fiscal_year", TITLE, reason)
    from planner.finops.budget.fiscal import fiscal_year
    from planner.finops.budget.fiscal_report import fiscal_section

    last = checked_budgets(inputs).last_day
    twice = twice_by_month(inputs.bill.findings)
    year = fiscal_year(inputs.budgets, scopes_of(inputs), first_month, last, twice=twice)
    section = fiscal_section(year, inputs.bill.currency)
    said = (f"{section.title}.", *section.sentences)
    tables = tuple(
        replace(
            one,
            columns=tuple(
                replace(column, unit=_UNITS.get(column.unit, column.unit)) for column in one.columns
            ),
        )
        for one in section.tables
    )
    return replace(
        section, key="fiscal_year", title=TITLE, sentences=said, tables=(*tables, *_explained(inputs, year)),
        status=status, reason=reason,
    )  # fmt: skip


def _explained(inputs: Inputs, year: FiscalYear) -> tuple[Table, ...]:
    """The month's variance of the first budget of everything, by price, volume and the rest of the bridge."""
    is_withheld = inputs.gate.status("bridge_change_money")[0] == "withheld"
    if inputs.before is None or is_withheld or inputs.left_out:
        return ()
    totals = [one for one in year.budgets if one.scope == "total"]
    own = [month for one in totals[:1] for month in one.months if month.period.start == inputs.month]
    if not own or own[0].state != "actual" or own[0].budget is None or own[0].actual is None:
        return ()
    gap, bridge = own[0].actual - own[0].budget, split(inputs).bridge
    parts = [(f"{month_name(inputs.before)} against this budget", bridge.before - own[0].budget)]
    parts += [(LABELS[name], value) for name, value in bridge.steps]
    rest = gap - math.fsum(value for _, value in parts)
    parts += [("Tax, and other cost than the bridge's", rest)] if abs(rest) >= 0.005 else []
    rows = [*parts, (f"{month_name(inputs.month)} over budget", gap)]
    columns = [("part", "Part", "text"), ("variance", "Over budget", "money")]
    note = "The parts add up to the last row; price to credits are those of the bridge from the month before."
    return (table("fiscal_explained", f"Variance of {totals[0].name}, explained", columns, rows, note),)
