"""Budgets, version 1: how much a team, project, service or everything may cost per period."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.inputs.fields import Day, Money, Share, Text
from planner.inputs.section import Section


class Budget(Section):
    """How much one scope may cost in each period."""

    name: Text = Field(description="Name, unique.")
    by: Text = Field(
        "total",
        description="What the scope is a value of: total, service, project, sub_account, account, provider, region, "
        "category, tag:KEY; scope for a CSV file of daily costs.",
    )
    scope: Text | None = Field(None, description="The value, e.g. the team's name; left out for total.")
    period: Literal["month", "quarter", "year"] = Field("month", description="Length of a period.")
    amount: Money = Field(description="Amount per period, in the currency of the file.")
    amounts: dict[str, Money] = Field(
        {}, description="Amounts of single periods instead, by their label: 2026-11, 2026-Q4, FY2027 P01."
    )
    starts: Day | None = Field(None, description="First day from which it holds; default always.")
    ends: Day | None = Field(None, description="Last day on which it holds; default always.")
    max_p_over: Share | None = Field(
        None, description="Gate: highest probability of going over; default the file's."
    )


class BudgetFile(Section):
    """Budgets and the gate."""

    version: Literal[1] = Field(description="Version of this format.")
    kind: Literal["budget"] = Field(description="Kind of file.")
    name: Text = Field("budgets", description="Name shown in the answer.")
    description: str = Field("", description="Free text.")
    currency: Text = Field(
        "USD", description="Currency of all amounts, ISO 4217; the bill's must be the same."
    )
    cost: Literal["effective", "billed"] = Field(
        "effective",
        description="Which cost of the bill counts: commitments spread over their use, or invoices.",
    )
    fiscal_start: Text | None = Field(None, description="Month in which the fiscal year begins, e.g. '02'.")
    fiscal_weeks: Text | None = Field(
        None, description="Weeks of a quarter's periods and a first day of a year, e.g. 4-4-5@2026-02-01."
    )
    max_p_over: Share = Field(
        0.5, description="Gate: highest probability of going over a budget; above it the exit code is 5."
    )
    budgets: tuple[Budget, ...] = Field(min_length=1, description="The budgets.")
