"""A running job: against its plan, and what limits it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from planner.asked.calls import question
from planner.errors import InputError
from planner.plan.model import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.tracking.answer import Tracked
    from planner.tracking.bill import Spent
    from planner.tracking.diagnose import Diagnosis
    from planner.tracking.model import Progress
    from planner.tracking.planned import Planned


@question
def track(
    plan: str | Path | Plan,
    log: str | Path | None = None,
    *,
    prometheus: str | None = None,
    selector: str | None = None,
    metrics: Mapping[str, str] | None = None,
    token_env: str | None = None,
    kind: str = "auto",
    started: datetime | None = None,
    now: datetime | None = None,
    bill: str | Path | Sequence[str | Path] = (),
    run_tag: str | None = None,
    fail_late: float | None = None,
    fail_over: float | None = None,
    workload: str | Path | None = None,
) -> Tracked:
    """Compare a running job with its plan: finish, cost, where the time went, why it is slow.

    Args:
        plan: a plan, or a file saved with `Plan.save`.
        log: progress as CSV or JSON lines, or a log that `planner calibrate` reads.
        prometheus: instead of a log: address of a Prometheus server.
        selector: labels of the run's metrics; default `planner_run_id` of the plan.
        metrics: queries by quantity, such as `{"step": "max(my_step)"}`, instead of the default ones.
        token_env: environment variable that holds a bearer token, default PLANNER_PROMETHEUS_TOKEN.
        kind: format of the log; `auto`: recognised by its content.
        started: when the run began, for logs without timestamps.
        now: current time, by default that of the log's last row.
        bill: files of a bill with the spend so far.
        run_tag: tag key that names a run in the bill; default `planner_run_id`, else `run_id`.
        fail_late: probability of being late above which the gate breaks (`Tracked.broken`); default: the plan's.
        fail_over: the same for exceeding the budget.
        workload: the workload of the plan: with it, `Tracked.replan` recommends what to do now.

    Raises:
        InputError: a file is wrong, or plan and log do not fit together.
    """
    from planner.tracking.answer import Ask
    from planner.tracking.answer import track as compare
    from planner.tracking.planned import load_planned, planned_of

    planned = planned_of(plan, "plan") if isinstance(plan, Plan) else load_planned(Path(plan))
    server = (prometheus, selector, metrics, token_env)
    progress = _progress(planned, log, kind, server, started, now)
    ask = Ask(started, now, fail_late, fail_over)
    tracked = compare(planned, progress, ask, _spent(planned, bill, run_tag))
    if workload is None:
        return tracked
    from planner.tracking.replan import replan, workload_of

    return replan(tracked, workload_of(tracked, None, Path(workload)))


def _spent(planned: Planned, bill: str | Path | Sequence[str | Path], run_tag: str | None) -> Spent | None:
    from planner.tracking.bill import read_spent

    paths = [bill] if isinstance(bill, str | Path) else list(bill)
    return read_spent(paths, planned.plan.run_id, run_tag) if paths else None


def _progress(
    planned: Planned, log: str | Path | None, kind: str,
    server: tuple[str | None, str | None, Mapping[str, str] | None, str | None],
    started: datetime | None, now: datetime | None,
) -> Progress:  # fmt: skip
    url, selector, metrics, token_env = server
    if log is not None and url is None:
        from planner.tracking.progress import read_progress

        return read_progress(Path(log), kind)
    if log is not None or url is None:
        raise InputError("track: give a log or the address of a Prometheus server, one of the two")
    from planner.tracking.metrics import read_run

    return read_run(
        url, planned, started=started, now=now, selector=selector, own=metrics, token_env=token_env
    )


@question
def diagnose(log: str | Path, *, kind: str = "auto") -> Diagnosis:
    """Find what limits the steps of a run by its log alone.

    Args:
        log: progress as CSV or JSON lines, or a log that `planner calibrate` reads.
        kind: format of the log; `auto`: recognised by its content.

    Raises:
        InputError: the log cannot be read, or has no speed in it.
    """
    from planner.tracking.diagnose import diagnose as find_bottleneck
    from planner.tracking.progress import read_progress

    return find_bottleneck(read_progress(Path(log), kind))
