"""The flat sheet of a workbook: one row per month and kind of spend, to pivot."""

from __future__ import annotations

from planner.finops.review.inputs import Inputs
from planner.finops.review.model import Table
from planner.finops.review.parts import table, text


def spend_lines(inputs: Inputs) -> Table:
    """Spend of at most 13 months up to the reviewed one, by month, place, product, team and kind of charge."""
    names = ("provider", "account", "region", "service", "product", "team", "charge_category")
    frame = inputs.ask("spend_lines")
    rows = [
        (month, *map(text, keys), float(effective), float(billed))
        for month, *keys, effective, billed in frame[
            ["x_month", *names, "effective_cost", "billed_cost"]
        ].itertuples(index=False)
    ]
    return table(
        "lines", "Data", [("month", "Month", "date"), ("provider", "Provider", "text"), ("account", "Account", "text"),
        ("region", "Region", "text"), ("service", "Service", "text"), ("product", "Product", "text"),
        ("team", inputs.tags[0], "text"), ("charge_category", "Charge category", "text"), ("cost", "Cost", "money"),
        ("billed", "Billed", "money")], rows,
    )  # fmt: skip
