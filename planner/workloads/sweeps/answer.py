"""A sweep: its cells planned on an engine, or taken from an earlier run, and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.engines.executors import Engine
from planner.engines.resume import parts_of, resumed
from planner.records import record
from planner.render.presentable import Presentable
from planner.workloads.sweeps.cells import FAILED, PLANNED, REFUSED, lost_row, run_cell

if TYPE_CHECKING:
    from planner.workloads.sweeps.question import Cells

Row = Mapping[str, Any]
OnDone = Callable[[int, int], None]
FLEET = "fleet"
TIMINGS = ("seconds", "cpu_seconds", "warm", "worker")
COLUMNS: dict[str, str] = {
    "file": "text", "workload": "text", "scenario": "text", "as_of": "date", "kind": "text", "status": "text",
    "plan_id": "text", "choice": "text", "provider": "text", "region": "text", "instance_type": "text",
    "accelerator": "text", "purchase_option": "text", "nodes": "integer", "total_usd": "money", "hours": "number",
    "finish": "text", "p_meet_deadline": "number", "baseline_usd": "money", "saved_ratio": "number",
    "price_as_of": "text", "price_basis": "text", "needs": "text", "message": "text", "workload_sha256": "text",
    "catalog_sha256": "text", "planner_version": "text",
}  # fmt: skip
"""Columns of the results and what they hold; docs/sweep.md says what they mean."""


@record(frozen=True)
class Spent:
    """What planning the cells of a kind took on workers that had planned before.

    Attributes:
        kind: `jobs` or `fleets`.
        cells: measured; 0: none, and the times are 0.
        median_s, p90_s: CPU seconds of a cell.
    """

    kind: str
    cells: int
    median_s: float
    p90_s: float


@record(frozen=True)
class Sweep(Presentable):
    """The answer.

    Attributes:
        rows: one a cell, by file, day and scenario; the keys are `COLUMNS`, what does not apply is absent.
        spent: of the cells that this run computed, jobs and fleets apart.
        computed, kept: cells computed now, and taken from earlier runs.
        skipped: files of folders that are no workloads.
    """

    REPORT = "planner.workloads.sweeps.report:sweep_report"
    __repr__ = Presentable.__repr__

    rows: tuple[Row, ...]
    spent: tuple[Spent, ...]
    computed: int
    kept: int
    skipped: int = 0

    def counts(self) -> dict[str, int]:
        """Cells by status."""
        found: dict[str, int] = {}
        for row in self.rows:
            found[row["status"]] = found.get(row["status"], 0) + 1
        return found

    @property
    def failed(self) -> bool:
        """Whether a cell met a defect of the planner, or its workers died."""
        return any(row["status"] == FAILED for row in self.rows)

    @property
    def refused(self) -> bool:
        """Whether a cell's workload names something that the catalog of its day does not know, or the like."""
        return any(row["status"] == REFUSED for row in self.rows)

    @property
    def total_usd(self) -> Decimal:
        """Sum over the plans."""
        return sum((Decimal(row["total_usd"]) for row in self.rows if row["status"] == PLANNED), Decimal(0))


def sweep(cells: Cells, engine: Engine, folder: Path, *, on_done: OnDone | None = None) -> Sweep:
    """Plan every cell that has no result yet.

    Args:
        cells: what is asked.
        engine: who computes.
        folder: of the results of this run and earlier ones.
        on_done: told how many cells have a result, and how many there are.

    Raises:
        InputError: the folder cannot be used, or a worker is not like this process. Results so far are kept.
    """
    with parts_of(folder) as parts:
        known = frozenset(cells) & parts.read().keys()
        found = resumed(run_cell, cells, engine, parts, on_lost=lost_row, on_done=on_done)
    fresh = [row for key, row in found.items() if key not in known]
    return Sweep(_in_order(found.values()), _spent(fresh), len(fresh), len(known), cells.skipped)


def _in_order(rows: Sequence[Row] | Any) -> tuple[Row, ...]:
    """Rows by file, day and scenario, without what differs between equal runs."""
    bare = [{key: value for key, value in row.items() if key not in TIMINGS} for row in rows]
    return tuple(sorted(bare, key=lambda row: (row["file"], row["as_of"], row["scenario"])))


def _spent(rows: Sequence[Row]) -> tuple[Spent, ...]:
    time_lost = []
    for kind in ("jobs", "fleets"):
        seconds = sorted(
            row["cpu_seconds"]
            for row in rows
            if row.get("warm") and (row["kind"] == FLEET) == (kind == "fleets")
        )
        time_lost.append(Spent(kind, len(seconds), _quantile(seconds, 0.5), _quantile(seconds, 0.9)))
    return tuple(time_lost)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Nearest rank; 0 of nothing."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
