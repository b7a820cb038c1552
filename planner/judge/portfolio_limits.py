"""What the jobs of a portfolio draw on shared quotas and commitments, window by window, against what there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from planner.inputs.checks import end_moment, start_moment
from planner.judge.findings import STATED, Findings, Near
from planner.judge.portfolio_parts import Draw, Run, Windows

if TYPE_CHECKING:
    from planner.inputs.portfolio_schema import SharedQuota
    from planner.judge.document import Node
    from planner.judge.portfolio_jobs import PortfolioMemory

_SECOND = 1.0 / 3600.0
_TIE = 1e-7


def windows_of(findings: Findings, memory: PortfolioMemory, created: datetime) -> tuple[Windows, bool]:
    """The windows, and whether the answer made them so that jobs may follow each other."""
    file_windows, nodes = memory.loaded.portfolio.windows, list(findings.answer["windows"])
    if file_windows:
        starts = [memory.hours(start_moment(window.start), created) for window in file_windows]
        names = [window.name for window in file_windows]
    elif len(nodes) <= 1:
        starts, names = [0.0], [""]
    else:
        starts = [node["start_hours"].number() for node in nodes]
        for at, hours in enumerate(starts):
            path = nodes[at]["start_hours"].path
            seconds = hours / _SECOND
            findings.require(abs(seconds - round(seconds)) < 1e-4, path, "not a whole second")
            later = hours == 0 if at == 0 else starts[at - 1] < hours <= 1e6
            findings.require(later, path, "the first at 0 and each later than the one before")
        origin = memory.origin(created)
        moments = [origin + timedelta(hours=min(max(hours, 0.0), 1e6)) for hours in starts]
        names = [f"{moment:%Y-%m-%d %H:%M}" for moment in moments]
    expected = [
        {"window": name, "start_hours": Near(hours)} for name, hours in zip(names, starts, strict=True)
    ]
    return Windows(starts, names, expected), not file_windows and len(nodes) > 1


def limit_rows(plan: Node) -> list[dict[str, Any]]:
    """The fields of limits; their values are compared one by one."""
    names = ("limit", "kind", "window", "unit", "used", "available", "raised")
    return [dict.fromkeys(names, STATED) for _ in plan["limits"]]


def check_limits(
    findings: Findings,
    memory: PortfolioMemory,
    plan: Node,
    runs: Sequence[Run],
    windows: Windows,
    *,
    relaxed: bool,
) -> dict[int, int]:
    """Compare every limit of a plan with what the runs draw; return by how much each is raised, by position."""
    rows = list(plan["limits"])
    findings.saw(*rows)
    if not rows:
        findings.saw(plan["limits"])
    left = rows
    for quota in memory.loaded.portfolio.quota:
        left = _check_quota(findings, quota, runs, windows, left)
    for number in range(len(memory.loaded.portfolio.commitments)):
        left = _check_commitment(findings, memory, number, runs, windows, left)
    for at, (key, count) in enumerate(memory.own, len(memory.loaded.portfolio.commitments)):
        label = f"{key[0]}/{key[1]} {key[2]} ({key[3]})"
        left = _check_pool(findings, label, at, [count] * len(windows.names), runs, windows, left)
    for row in left:
        findings.fault(row.path, "not a limit that the jobs draw on")
    paths = [row["kind"].text() for row in rows]
    findings.require(
        paths == sorted(paths, reverse=True), plan["limits"].path, "not quotas, then commitments"
    )
    raised = {}
    for at, row in enumerate(rows):
        more = row["raised"].count()
        if more:
            raised[at] = more
        findings.require(relaxed or not more, row["raised"].path, "raised, though everything fits")
        over = row["used"].count() > row["available"].count() + more
        findings.require(not over, row["used"].path, "more than there is")
    return raised


def _check_quota(
    findings: Findings, quota: SharedQuota, runs: Sequence[Run], windows: Windows, left: list[Node]
) -> list[Node]:
    """One row per region and window in which it is drawn on or raised; returns the rows that are not of this quota."""
    option = f" ({quota.purchase_option})" if quota.purchase_option else ""
    regions = {_region(row["limit"].text(), quota, option) for row in left if row["raised"].count()}
    raised = {region for region in regions if region is not None}
    draws = [draw for run in runs for draw in run.draws if draw.counts(quota)]
    for region in sorted({draw.region for draw in draws} | raised):
        label = f"{quota.provider}/{region} {quota.quota}{option}"
        units = {draw.unit(quota) for draw in draws if draw.region == region}
        for at, window in enumerate(windows.names):
            if quota.window not in (None, window):
                continue
            used = _used(findings, label, runs, windows, at, partial(_of_quota, quota, region))
            row = left[0] if left and _names(left[0], label, window) else None
            if row is None or not (used or row["raised"].count()):
                findings.require(not used, "limits", f"{label}: drawn on, but not listed")
                continue
            left = left[1:]
            findings.saw(row["limit"], row["window"])
            findings.require(
                not units or row["unit"].text() in units, row["unit"].path, "not the unit of this quota"
            )
            findings.expect(row["kind"], "quota")
            findings.expect(row["available"], int(quota.limit))
            findings.expect(row["used"], used)
    return left


def _names(row: Node, label: str, window: str) -> bool:
    """Whether a row is of this limit and window."""
    return bool(row["limit"].value == label and row["window"].value == window)


def _of_quota(quota: SharedQuota, region: str, draw: Draw) -> float:
    """Units that a part draws of a quota in a region."""
    return draw.units(quota) if draw.region == region and draw.counts(quota) else 0.0


def _of_pool(number: int, draw: Draw) -> float:
    """Nodes that a part draws of a commitment."""
    return float(draw.nodes) if draw.pool == number else 0.0


def _region(label: str, quota: SharedQuota, option: str) -> str | None:
    """The region that the label of a quota's row names, None where it is of another limit."""
    before, after = f"{quota.provider}/", f" {quota.quota}{option}"
    if not (label.startswith(before) and label.endswith(after)):
        return None
    region = label[len(before) : len(label) - len(after)]
    return region if fnmatchcase(region, quota.region) else None


def _check_commitment(
    findings: Findings,
    memory: PortfolioMemory,
    number: int,
    runs: Sequence[Run],
    windows: Windows,
    left: list[Node],
) -> list[Node]:
    """One limit per window; nodes that are busy when it starts are not there in it."""
    owned = memory.loaded.portfolio.commitments[number]
    whole = int(owned.nodes * (1.0 if owned.share is None else float(owned.share)) + 1e-9)
    until = inf
    if owned.busy_until is not None:
        created = findings.answer["created_at"].moment()
        until = memory.hours(start_moment(owned.busy_until), created)
    label = f"{owned.provider}/{owned.region} {owned.instance_type} ({owned.purchase_option})"
    free = [max(whole - (owned.busy_nodes if start < until - _TIE else 0), 0) for start in windows.starts]
    left = _check_pool(findings, label, number, free, runs, windows, left)
    if owned.expires is None:
        return left
    created = findings.answer["created_at"].moment()
    gone = memory.hours(end_moment(owned.expires), created)
    later = [run for run in runs if run.end > gone + _TIE]
    said = owned.expires if type(owned.expires) is date else f"{end_moment(owned.expires):%Y-%m-%d %H:%M}"
    label = f"{label} after {said}"
    return _check_pool(findings, label, number, [0], later, Windows([0.0], [""], []), left)


def _check_pool(
    findings: Findings, label: str, number: int, free: Sequence[int], runs: Sequence[Run], windows: Windows,
    left: list[Node],
) -> list[Node]:  # fmt: skip
    """One row per window with what is free in it; returns the rows of other limits."""
    for at, name in enumerate(windows.names):
        if not left:
            findings.fault("limits", f"{label}: a window is missing")
            break
        row, left = left[0], left[1:]
        for field, value in (("limit", label), ("kind", "commitment"), ("window", name), ("unit", "nodes")):
            findings.expect(row[field], value)
        findings.expect(row["available"], free[at])
        findings.expect(row["used"], _used(findings, label, runs, windows, at, partial(_of_pool, number)))
    return left


def _used(
    findings: Findings,
    label: str,
    runs: Sequence[Run],
    windows: Windows,
    at: int,
    of_draw: Callable[[Draw], float],
) -> int:
    """What runs draw in a window: parts side by side add up, of parts in turn the largest counts."""
    whole = 0
    for run in runs:
        if not windows.touched(run, at):
            continue
        parts = [of_draw(draw) for draw in run.draws]
        used = sum(parts) if run.together else max(parts, default=0)
        if used == inf:
            findings.fault(run.path, f"what it draws on {label} is not known")
        else:
            whole += ceil(used - 1e-9)
    return whole
