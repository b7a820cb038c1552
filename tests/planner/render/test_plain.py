"""Plain JSON values of answers."""

from __future__ import annotations

from decimal import Decimal

import pytest

from planner.render.plain import plain_value


@pytest.mark.parametrize(
    ("amount", "text"),
    [("0E-12", "0.000000000000"), ("1E+3", "1000"), ("0.05", "0.05"), ("-2.5E-7", "-0.00000025")],
)
def test_amounts_are_written_without_exponents(amount: str, text: str) -> None:
    assert plain_value({"usd": [Decimal(amount)]}) == {"usd": [text]}
