"""Names of purchase options in input files, without pydantic: also for rules on files that are read without it."""

from __future__ import annotations

from typing import Literal, get_args

PurchaseOption = Literal[
    "on_demand",
    "spot",
    "reserved_1y",
    "reserved_3y",
    "savings_plan_1y",
    "savings_plan_3y",
    "cud_1y",
    "cud_3y",
    "capacity_block",
    "flex_start",
    "future_reservation",
    "subscription",
    "dedicated",
    "owned",
]

CommitOption = Literal["reserved_1y", "reserved_3y", "savings_plan_1y", "savings_plan_3y", "cud_1y", "cud_3y"]
COMMIT_OPTIONS: tuple[CommitOption, ...] = get_args(CommitOption)
"""Options that are owed for a fixed term; a test compares them with the rules of purchase options."""
