"""KPIs that have no rows over a small bill, because no charge is of the kind that they are made from.

To plan a query over a few rows costs more than to read them, and most bills have no capacity reservations, contracts or
GPUs. A KPI may state in its header what it is made from (`made_of`): a dataset, or a condition on charges. One
statement asks a bill that is held in memory for all of these conditions; where none of its charges meets one, the
KPI's rows are those of its first empty answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from planner.finops.engine.duckdb import DuckDbEngine
from planner.finops.read.columns import COST, focus_columns

if TYPE_CHECKING:
    import pandas as pd

    from planner.finops.engine.base import Engine
    from planner.finops.read import Bill

NEVER = "FALSE"
_EMPTY: dict[tuple[str, str], pd.DataFrame] = {}


def expect_rowless(bill: Bill, made_of: Mapping[str, str]) -> None:
    """Tell the engine of a held bill which KPIs have no rows; its charges must not change afterwards.

    Args:
        bill: an open bill.
        made_of: KPI -> what it is made from; those that do not state it are left out.
    """
    engine = bill.engine
    if isinstance(engine, DuckDbEngine) and engine.held:
        there = {COST, *(source.dataset for source in bill.sources)}
        lacking = focus_columns().keys() - there
        conditions = {name: text for name, text in made_of.items() if text not in focus_columns()}
        engine.rowless = _lacking_charges(engine, conditions).union(
            name for name, text in made_of.items() if text in lacking
        )


def _lacking_charges(engine: DuckDbEngine, conditions: Mapping[str, str]) -> frozenset[str]:
    texts = list(dict.fromkeys(conditions.values()))
    asked = (f"COALESCE(BOOL_OR({text}), FALSE)" for text in texts)
    (row,) = engine.rows(" ".join(("SELECT", ", ".join(asked), "FROM focus")))
    there = {text for text, holds in zip(texts, row, strict=True) if holds}
    return frozenset(name for name, text in conditions.items() if text not in there)


def has_no_rows(engine: Engine, name: str, where: str = "") -> bool:
    """Whether a KPI is known to have no rows that meet a condition."""
    return where == NEVER or (isinstance(engine, DuckDbEngine) and name in engine.rowless)


def rows_or_none(
    engine: Engine, name: str, ask: Callable[[], pd.DataFrame], *, rowless: bool
) -> pd.DataFrame:
    """The rows of a KPI; of one without rows those of its first empty answer, whose columns have the same types.

    Args:
        engine: that is asked.
        name: of the KPI.
        ask: asks the engine.
        rowless: the KPI is known to have no rows.
    """
    if not rowless:
        return ask()
    key = engine.name, name
    if key not in _EMPTY:
        found = ask()
        if len(found):
            return found
        _EMPTY[key] = found
    return _EMPTY[key].copy()
