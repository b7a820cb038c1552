"""The currency of a bill, or that it names none: one code for programs, words for people."""

from __future__ import annotations

UNKNOWN_CURRENCY = "XXX"
"""ISO 4217: no currency."""
NOT_STATED = "no currency stated"


def currency_words(code: str) -> str:
    """`USD`, or that none is stated."""
    return NOT_STATED if code == UNKNOWN_CURRENCY else code


def with_currency(amount: str, code: str) -> str:
    """`12,346 USD`; the bare amount where no currency is stated."""
    return amount if code == UNKNOWN_CURRENCY else f"{amount} {code}"
