"""Rows of the bill as arrays: a line holds what its rows share, a block the figures of each row."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np

from catalogs.tables.table import Floats, Ints


def next_month(month: date) -> date:
    """First day of the month after."""
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def days_in(month: date) -> int:
    """Days of a month."""
    return (next_month(month) - month).days


@dataclass(frozen=True)
class Block:
    """Rows of one line.

    Attributes:
        fields: FOCUS columns that are the same in every row.
        month: month of the charge period; billing_month of the invoice.
        day: (n,) day of the month from 0; span_days: length of the charge period.
        resource: (n,) number of the resource, -1: none.
        quantity: (n,) pricing quantity, NaN: none.
        listed, contracted, effective, billed: (n,) costs, NaN: unknown.
        tag: (n,) number of the tag set.
        facts: what the truth needs and the bill does not say (`commitment`, `eligible`, `gpus`, ...).
    """

    fields: dict[str, Any]
    month: date
    billing_month: date
    day: Ints
    resource: Ints
    quantity: Floats
    listed: Floats
    contracted: Floats
    effective: Floats
    billed: Floats
    tag: Ints
    span_days: int = 1
    facts: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.day)


@dataclass
class Ledger:
    """All rows so far, and the tag sets they point at (None: no tags)."""

    blocks: list[Block] = field(default_factory=list)
    tags: list[dict[str, str] | None] = field(default_factory=lambda: [None, {}])
    _numbers: dict[tuple[tuple[str, str], ...], int] = field(default_factory=dict)

    def tag(self, **values: str) -> int:
        """The number of a tag set."""
        key = tuple(sorted(values.items()))
        if key not in self._numbers:
            self._numbers[key] = len(self.tags)
            self.tags.append(dict(values))
        return self._numbers[key]

    def add(
        self, fields: dict[str, Any], month: date, *, day: Any, quantity: Any, listed: Any, contracted: Any,
        effective: Any, billed: Any, resource: Any = -1, tag: Any = 0, billing_month: date | None = None,
        span_days: int = 1, **facts: Any,
    ) -> Block:  # fmt: skip
        """Add rows; scalars are repeated."""
        arrays = np.broadcast_arrays(day, resource, tag, quantity, listed, contracted, effective, billed)
        days, resources, tags = (np.ascontiguousarray(a, dtype=np.int64).ravel() for a in arrays[:3])
        q, k, c, e, b = (np.ascontiguousarray(a, dtype=float).ravel() for a in arrays[3:])
        block = Block(
            fields, month, billing_month or month, days, resources, q, k, c, e, b, tags, span_days, facts
        )
        self.blocks.append(block)
        return block
