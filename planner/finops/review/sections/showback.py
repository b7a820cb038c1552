"""Whose cost is it by your own rules?"""

from __future__ import annotations

from planner.finops.review.inputs import Inputs
from planner.finops.review.model import Section, Table
from planner.finops.review.parts import figure, money, percent, share, table, withheld
from planner.finops.showback.divide import ALLOCATED, DIRECT, UNUSED, Divided, cents_of, divide
from planner.finops.showback.statement import check_usage, gpu_hours_by_team, month_rows

TITLE = "Whose cost is it by your rules?"
TOP = 20


def build(inputs: Inputs) -> Section | None:
    """Cost by team with what was shared; None without rules."""
    file = inputs.beside.showback
    if file is None:
        return None
    check_usage(file, inputs.beside.usage)
    status, reason = inputs.gate.status("showback_assigned_ratio")
    if status == "withheld":
        return withheld("showback", TITLE, reason)
    rows = month_rows(inputs.bill, inputs.month)
    found = divide(
        rows,
        file,
        gpu_hours_by_team(file, inputs.beside.usage, inputs.month, inputs.end),
        exact_tags=inputs.exact_tags,
    )
    whole = cents_of(rows, file.cost) / 100
    free = found.of(file.unassigned) / 100
    shared = sum(one.cents for one in found.lines if one.kind.startswith("shared: ")) / 100
    figures = (
        figure(
            inputs,
            "showback_assigned_ratio",
            "Cost that a rule gives to a team",
            share(whole - free, whole),
            "ratio",
            lacking="credits and refunds leave no shares",
        ),
        figure(inputs, "showback_shared_money", "Shared cost that was split", shared, "money"),
        figure(
            inputs,
            "showback_unused_money",
            "Unused commitments that were split",
            found.of(None, UNUSED) / 100,
            "money",
        ),
        figure(
            inputs, "showback_difference_money", "Teams' sum less the bill", found.of() / 100 - whole, "money"
        ),
    )
    assigned, currency = share(whole - free, whole), inputs.bill.currency
    tax = inputs.spend(inputs.month, column=f"{file.cost}_cost", tax=True)
    bill = f"{money(whole, currency)}{' with tax' if round(tax, 2) else ''}"  # spend is without it elsewhere
    said = f"{percent(assigned)} of {bill} belongs to a team by the rules of {file.name}."
    if assigned != assigned or free < 0:
        said = (
            f"{money(whole - free, currency)} belongs to teams by the rules of {file.name}, {money(free, currency)} of "
            f"the bill's {bill} to none."
        )
    return Section("showback", TITLE, (said, *found.remarks), figures, (_teams(found),), (), status, reason)


def _teams(divided: Divided) -> Table:
    whole = divided.of()
    rows = [
        (team, divided.of(team) / 100, share(divided.of(team), whole), divided.of(team, DIRECT) / 100,
         sum(one.cents for one in divided.lines if one.team == team and one.kind.startswith("shared: ")) / 100,
         divided.of(team, UNUSED) / 100, divided.of(team, ALLOCATED) / 100)
        for team in divided.teams
    ]  # fmt: skip
    return table(
        "showback", "Cost by team and kind", [("team", "Team", "text"), ("cost", "Cost", "money"),
        ("share", "Share", "ratio"), ("own", "Own", "money"), ("shared", "Shared", "money"),
        ("unused", "Unused commitments", "money"),
        ("allocated", "Split by provider", "money")], rows[:TOP],
        "A team's statement: --statement TEAM."
        + (f" {len(rows) - TOP:,} more teams are not listed." if len(rows) > TOP else ""),
    )  # fmt: skip
