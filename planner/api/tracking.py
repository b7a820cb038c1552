"""A running job: against its plan, and what limits it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from planner.plan.model import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.tracking.answer import Tracked
    from planner.tracking.diagnose import Diagnosis


def track(
    plan: str | Path | Plan,
    log: str | Path,
    *,
    kind: str = "auto",
    started: datetime | None = None,
    now: datetime | None = None,
    bill: str | Path | Sequence[str | Path] = (),
    run_tag: str | None = None,
    fail_late: float | None = None,
    fail_over: float | None = None,
) -> Tracked:
    """Compare a running job with its plan: on time or late, what it will cost, where the time went, why it is slow.

    Args:
        plan: a plan, or a file saved with `Plan.save`.
        log: progress as CSV or JSON lines, or a log that `planner calibrate` reads.
        kind: format of the log, `auto` to tell by its look.
        started: when the run began, for logs without moments.
        now: the present moment, by default that of the log's last row.
        bill: files of a bill that has the spend so far.
        run_tag: tag key that names a run in the bill; default `planner_run_id`, else `run_id`.
        fail_late: probability of being late above which the gate breaks (`Tracked.broken`); default: the plan's.
        fail_over: the same of going over the budget.

    Raises:
        InputError: a file is wrong, or plan and log do not fit together.
    """
    from planner.tracking.answer import Ask
    from planner.tracking.answer import track as compare
    from planner.tracking.bill import read_spent
    from planner.tracking.planned import load_planned, planned_of
    from planner.tracking.progress import read_progress

    planned = planned_of(plan, "plan") if isinstance(plan, Plan) else load_planned(Path(plan))
    paths = [bill] if isinstance(bill, str | Path) else list(bill)
    spent = read_spent(paths, planned.plan.run_id, run_tag) if paths else None
    return compare(planned, read_progress(Path(log), kind), Ask(started, now, fail_late, fail_over), spent)


def diagnose(log: str | Path, *, kind: str = "auto") -> Diagnosis:
    """Find what limits the steps of a run by its log alone.

    Args:
        log: progress as CSV or JSON lines, or a log that `planner calibrate` reads.
        kind: format of the log, `auto` to tell by its look.

    Raises:
        InputError: the log cannot be read, or has no speed in it.
    """
    from planner.tracking.diagnose import diagnose as find_bottleneck
    from planner.tracking.progress import read_progress

    return find_bottleneck(read_progress(Path(log), kind))
