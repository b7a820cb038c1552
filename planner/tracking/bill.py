"""What a run has cost by its bill: the charges that carry its run id, the join of `planner review`.

Use of what was bought ahead, such as a capacity block, costs its share of the purchase.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.records import record


@record(frozen=True)
class Spent:
    """What a bill has for a run: `usd` until `through`; `node_hours` of its machines."""

    usd: float
    through: datetime
    node_hours: float
    tag: str


def read_spent(
    paths: Sequence[str | Path], run_id: str, run_tag: str | None = None, currency: str | None = None
) -> Spent:
    """Read the cost of a run.

    Args:
        paths: files of the bill, FOCUS or a cloud's own export.
        run_id: the plan's.
        run_tag: tag key; None: `planner_run_id`, else `run_id`.
        currency: ISO 4217 code of rows to take.

    Raises:
        InputError: the bill cannot be read, is not in USD, or no charge carries the run id.
    """
    from planner.finops.read import open_bill
    from planner.finops.read.tag_keys import RUN_TAGS, tag_keys
    from planner.render.currency import UNKNOWN_CURRENCY

    with open_bill(paths, currency=currency) as bill:
        if bill.currency not in ("USD", UNKNOWN_CURRENCY):
            raise InputError(f"--bill: is in {bill.currency} and plans are in USD: they cannot be compared")
        if bill.currency == UNKNOWN_CURRENCY and currency is None:
            raise InputError("--bill: names no currency; if it is in US dollars, add --currency USD")
        tags, keys = RUN_TAGS if run_tag is None else (run_tag,), tag_keys(bill)
        for tag in map(keys.spelled, tags):
            row = _run_row(bill, run_id, keys.spellings(tag))
            if row is not None:
                through = datetime.fromisoformat(str(row["last_end"])[:19]).replace(tzinfo=UTC)
                return Spent(float(row["effective_cost"]), through, float(row["node_hours"]), tag)
    raise InputError(
        f"--bill: no charge carries the run id {run_id} in the tag {' or '.join(tags)}: tag the machines with it, or "
        "name the tag with --run-tag"
    )


def _run_row(bill: Any, run_id: str, spellings: Sequence[str]) -> dict[str, Any] | None:
    """The row of the run in the bill's costs by run, None where there is none."""
    from planner.finops.bought_ahead import divide_ahead, with_shares
    from planner.finops.kpis import query_kpi
    from planner.finops.use_cases.library import like_tags, tag_paths

    parameters = {"run_tag": tag_paths(spellings), "like_tag": like_tags(spellings)}
    ahead: Any = query_kpi(bill.engine, "bought_ahead", parameters).to_dict("records")
    frame = with_shares(query_kpi(bill.engine, "run_cost", parameters), divide_ahead(ahead))
    rows: Any = frame.to_dict("records")
    return next((row for row in rows if row["run_id"] == run_id), None)
