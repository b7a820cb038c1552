"""Amounts that are read beside one another: without cents where the largest has none."""

from __future__ import annotations

from collections.abc import Sequence

from planner.render.model import Figure
from planner.render.units import WITHHELD, figure_text, number_of, show, tidy

_LEAST_WHOLE = 0.5  # of an amount: no more than this reads as nothing without its cents


def amount_texts(unit: str, currency: str, values: Sequence[float]) -> dict[float, str]:
    """Texts of some amounts.

    Args:
        unit: of them, one of `planner.render.units.UNITS`.
        currency: ISO 4217 of money.
        values: finite numbers.

    Returns:
        Each value with its unit: `5,412 USD` beside `196,875 USD`.
    """
    whole = unit == "money" and bool(values) and "." not in show(max(values, key=abs), unit, currency)
    return {value: _text(value, unit, currency, whole=whole) for value in values}


def figure_texts(figures: Sequence[Figure], currency: str) -> list[str]:
    """What each of the figures of one list says, as `figure_text` of one alone, by order.

    Args:
        figures: of a section.
        currency: ISO 4217 of their money.
    """
    amounts = [_amount(figure) for figure in figures]
    texts = amount_texts("money", currency, [amount for amount in amounts if amount is not None])
    return [
        figure_text(figure, currency) if amount is None else texts[amount]
        for figure, amount in zip(figures, amounts, strict=True)
    ]


def _amount(figure: Figure) -> float | None:
    """Its value where it is money and shown as such."""
    is_shown = figure.unit == "money" and figure.status != WITHHELD and not tidy(figure.words)
    return number_of(figure.value) if is_shown else None


def _text(value: float, unit: str, currency: str, *, whole: bool) -> str:
    text = show(value, unit, currency)
    if not whole or "." not in text or 0.0 < abs(value) <= _LEAST_WHOLE:
        return text
    return show(float(round(value)), unit, currency).replace(".000", "").replace(".00", "")
