"""What a notebook shows of a part: what is said of a row stands under it, and nothing is said twice."""

from __future__ import annotations

import re

from planner.render.model import Chart, Column, Figure, Section, Table
from planner.render.notebook import show


def words(html: str) -> list[str]:
    return [text for text in re.split(r"<[^>]+>", html) if text.strip()]


def test_what_is_said_of_a_row_stands_under_it() -> None:
    """A cell each made rows of eleven columns, of which the reason was ten words high."""
    columns = (
        Column("what", "Action", "text"),
        Column("why", "Why", "text", place="below"),
        Column("id", "Id", "text", place="data"),
    )
    rows = (("Delete disk", "nobody reads it", "d-1"), ("Move", "", "m-1"))
    html = show(Table("actions", "Actions", columns, rows), "USD")._repr_html_()
    assert words(html) == ["Actions", "Action", "Delete disk", "Why: nobody reads it", "Move"]
    assert html.count("<tr") == 4


def test_figures_that_a_waterfall_draws_are_not_listed() -> None:
    chart = Chart("bridge", "Bridge", "bridge", ("Before", "Price", "After"), (("cost", (1.0, 2.0, 3.0)),), "money", "",
                  drawn_only=True)  # fmt: skip
    figures = (
        Figure("price", "Price", 2.0, "money", "flagged", "days are missing"),
        Figure("change", "Change", 2.0, "money"),
        Figure("identity", "Beyond the parts", 0.0, "money", checked=True),
    )
    section = Section(
        "bridge", "Why?", figures=figures, charts=(chart,), status="flagged", reason="days are missing"
    )
    table = show(section, "USD")._repr_html_().split("<table")[1].split("</table>")[0]
    assert words(f"<table{table}")[:3] == ["figure", "value", "Change"] and "Price" not in table
    alone = Section(
        "bridge", "Why?", figures=figures, charts=(chart,)
    )  # only the price is flagged: that is said
    assert "days are missing" in show(alone, "USD")._repr_html_()
