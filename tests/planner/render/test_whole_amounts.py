"""Amounts of money side by side: whole units beside whole units, and no unit price without its cents."""

from __future__ import annotations

import pytest

from planner.render.document import Facts, Grid, section_blocks
from planner.render.model import Column, Figure, Section, Table
from planner.render.whole_amounts import figure_texts

AMOUNT = Column("amount", "Amount", "money")


@pytest.mark.parametrize(
    ("currency", "texts"),
    [
        ("USD", ["196,875 USD", "5,412 USD", "-12 USD", "0 USD", "0.50 USD"]),
        ("KWD", ["196,875 KWD", "5,412 KWD", "-12 KWD", "0 KWD", "0.500 KWD"]),
        ("JPY", ["196,875 JPY", "5,412 JPY", "-12 JPY", "0 JPY", "0 JPY"]),
    ],
)
def test_figures_beside_a_large_one_have_no_cents(currency: str, texts: list[str]) -> None:
    amounts = (196875.2, 5412.34, -12.2, 0.0, 0.5)
    figures = [Figure(str(amount), "", amount, "money") for amount in amounts]
    assert figure_texts(figures, currency) == texts


def test_figures_keep_cents_where_all_are_small_and_prices_always() -> None:
    price = Figure("p", "", 2.15, "money_per_hour")
    assert figure_texts([Figure("a", "", 512.3, "money"), price], "USD") == ["512.30 USD", "2.15 USD/h"]
    assert figure_texts([Figure("a", "", 51230.3, "money"), price], "USD") == ["51,230 USD", "2.15 USD/h"]


def test_amounts_beside_a_figure_in_words_are_whole_too() -> None:
    figures = (
        Figure("a", "Spent", 51230.3, "money"),
        Figure("b", "Once", 12.5, "money"),
        Figure("c", "Next", 1.0, "money", words="about 3"),
    )
    (block,) = section_blocks(Section("s", "S", (), figures), "USD")
    assert isinstance(block, Facts)
    assert [text for _, text in block.rows] == ["51,230 USD", "12 USD", "about 3"]


def test_the_rows_above_a_large_sum_are_whole_as_it_is() -> None:
    """Where not all rows are shown, the sum had its own digits."""
    rows = (*(((1234.5,),) * 20), (24690.0,))
    table = Table("t", "T", (AMOUNT,), rows, (), 3, True)
    (block,) = section_blocks(Section("s", "S", tables=(table,)), "USD")
    assert isinstance(block, Grid)
    assert block.rows == (("1,234",), ("1,234",), ("24,690",))
