"""Bills opened once for all that is asked of them: opening is half of a review of a small bill."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import fields
from typing import Any
from unittest import mock

import planner.finops.cube  # noqa: F401 - it takes `open_bill` by name: the real one, not that of a test
from planner.finops.read import Bill, open_bill


class _LeftOpen(Bill):
    """A bill that its command does not close."""

    def close(self) -> None:
        """Leave it open for the next command."""


class OpenedBills:
    """`open_bill` with a memory: what was opened stays open until `close`."""

    def __init__(self) -> None:
        self._opened: dict[str, Bill] = {}

    def __call__(self, *args: Any, **given: Any) -> Bill:
        """The open bill of this question, which its command does not close."""
        key = repr((args, sorted((name, value) for name, value in given.items() if name != "progress")))
        if key not in self._opened:
            self._opened[key] = open_bill(*args, **given)
        bill = self._opened[key]
        return _LeftOpen(**{one.name: getattr(bill, one.name) for one in fields(bill)})

    def close(self) -> None:
        """Close all bills."""
        for bill in self._opened.values():
            bill.close()
        self._opened.clear()


@contextlib.contextmanager
def opened_once() -> Iterator[OpenedBills]:
    """Let commands within share open bills."""
    bills = OpenedBills()
    try:
        with mock.patch("planner.finops.read.open_bill", bills):
            yield bills
    finally:
        bills.close()
