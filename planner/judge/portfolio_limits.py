"""What the jobs of a portfolio draw on shared quotas and commitments, window by window, against what there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from math import ceil, inf
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.inputs.checks import start_moment
from planner.judge.findings import STATED, Findings, Near
from planner.judge.portfolio_parts import SIZED_UNIT, Draw, Run, Windows, quota_names

if TYPE_CHECKING:
    from catalogs.table import Table
    from planner.inputs.portfolio_schema import SharedQuota
    from planner.judge.document import Node
    from planner.judge.portfolio_jobs import PortfolioMemory

_SECOND = 1.0 / 3600.0
_TIE = 1e-7


class Region(NamedTuple):
    """A region in which something counts against a quota: in which units, and whether that is a candidate for sure."""

    units: set[str]
    sure: bool


def windows_of(findings: Findings, memory: PortfolioMemory, created: datetime) -> tuple[Windows, bool]:
    """The windows, and whether the answer made them so that jobs may follow each other."""
    given, nodes = memory.loaded.portfolio.windows, list(findings.answer["windows"])
    if given:
        starts = [memory.hours(start_moment(window.start), created) for window in given]
        names = [window.name for window in given]
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
    wanted = [{"window": name, "start_hours": Near(hours)} for name, hours in zip(names, starts, strict=True)]
    return Windows(starts, names, wanted), not given and len(nodes) > 1


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
    left = list(enumerate(rows))
    for number, quota in enumerate(memory.loaded.portfolio.quota):
        left = _check_quota(findings, memory, (number, quota), runs, windows, left)
    for number in range(len(memory.loaded.portfolio.commitments)):
        left = _check_commitment(findings, memory, number, runs, windows, left)
    for _, row in left:
        findings.fault(row.path, "not a limit of the portfolio")
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


Rows = list[tuple[int, "Node"]]


def _check_quota(
    findings: Findings, memory: PortfolioMemory, quota: tuple[int, SharedQuota], runs: Sequence[Run], windows: Windows,
    left: Rows,
) -> Rows:  # fmt: skip
    """One limit per region that has candidates and per window; returns the rows that are not of this quota."""
    number, told = quota
    known = regions_of(memory, number, told, findings.answer["created_at"].moment())
    drawn = {draw.region for run in runs for draw in run.draws if draw.counts(told)}
    needed = drawn | {region for region, one in known.items() if one.sure}
    option = f" ({told.purchase_option})" if told.purchase_option else ""
    at_windows = [at for at, name in enumerate(windows.names) if told.window in (None, name)]
    shown: list[str] = []
    while left:
        region = _region(left[0][1]["limit"].text(), told, option)
        if region is None or region not in known or (shown and region <= shown[-1]):
            break
        if left[0][1]["available"].value != int(told.limit):
            break
        shown.append(region)
        for at in at_windows:
            if not left:
                findings.fault("limits", f"{told.quota} in {region}: a window is missing")
                break
            _, row = left.pop(0)
            findings.expect(row["limit"], f"{told.provider}/{region} {told.quota}{option}")
            findings.expect(row["kind"], "quota")
            findings.expect(row["window"], windows.names[at])
            findings.require(
                row["unit"].text() in known[region].units, row["unit"].path, "not the unit of this quota"
            )
            findings.expect(row["available"], int(told.limit))
            _check_use(findings, row, runs, windows, at, partial(_of_quota, told, region))
    for region in sorted(needed - set(shown)):
        findings.fault("limits", f"{told.quota} in {region}: missing")
    return left


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
    left: Rows,
) -> Rows:
    """One limit per window; nodes that are busy when it starts are not there in it."""
    owned = memory.loaded.portfolio.commitments[number]
    whole = int(owned.nodes * (1.0 if owned.share is None else float(owned.share)) + 1e-9)
    until = inf
    if owned.busy_until is not None:
        created = findings.answer["created_at"].moment()
        until = memory.hours(start_moment(owned.busy_until), created)
    label = f"{owned.provider}/{owned.region} {owned.instance_type} ({owned.purchase_option})"
    for at, name in enumerate(windows.names):
        if not left:
            findings.fault("limits", f"{label}: a window is missing")
            break
        _, row = left.pop(0)
        busy = owned.busy_nodes if windows.starts[at] < until - _TIE else 0
        for field, value in (("limit", label), ("kind", "commitment"), ("window", name), ("unit", "nodes")):
            findings.expect(row[field], value)
        findings.expect(row["available"], max(whole - busy, 0))
        _check_use(findings, row, runs, windows, at, partial(_of_pool, number))
    return left


def _check_use(
    findings: Findings,
    row: Node,
    runs: Sequence[Run],
    windows: Windows,
    at: int,
    of_draw: Callable[[Draw], float],
) -> None:
    """What runs draw in a window: parts side by side add up, of parts in turn the largest counts."""
    whole = 0
    for run in runs:
        if not windows.touched(run, at):
            continue
        parts = [of_draw(draw) for draw in run.draws]
        used = sum(parts) if run.together else max(parts, default=0)
        if used == inf:
            findings.fault(run.path, f"what it draws on {row['limit'].value} is not known")
        else:
            whole += ceil(used - 1e-9)
    findings.expect(row["used"], whole)


def regions_of(
    memory: PortfolioMemory, number: int, quota: SharedQuota, created: datetime
) -> dict[str, Region]:
    """Regions in which something counts against a quota; kept with the question."""
    key = f"quota {number}"
    if key not in memory.kept:
        found = _sized_regions(memory, quota)
        if any(workload is not None for workload in memory.loaded.workloads):
            for offers, types in memory.tables(created):
                _add_offers(found, quota, offers, types)
        memory.kept[key] = found
    kept: dict[str, Region] = memory.kept[key]
    return kept


def _sized_regions(memory: PortfolioMemory, quota: SharedQuota) -> dict[str, Region]:
    out: dict[str, Region] = {}
    for one in (one for candidates in memory.sized for one in candidates):
        inside = one.provider == quota.provider and fnmatchcase(one.region, quota.region)
        if one.family == quota.quota and inside and quota.purchase_option in (None, one.purchase_option):
            out[one.region] = Region({quota.unit or SIZED_UNIT}, True)
    return out


def _add_offers(found: dict[str, Region], quota: SharedQuota, offers: Table, types: Table) -> None:
    """Add regions in which an offer counts against a quota; only the search knows whether it is a candidate."""
    from catalogs.tariffs import load_tariffs

    tariffs = load_tariffs()
    kinds = types.take(types.equals("provider", quota.provider))
    machines = {
        kind: (family, accelerator)
        for kind, family, accelerator in kinds.distinct_keys("instance_type", "family", "accelerator")[1]
    }
    sold = offers.take(offers.equals("provider", quota.provider))
    units: dict[tuple[str, str], str | None] = {}
    for region, kind, option in sold.distinct_keys("region", "instance_type", "purchase_option")[1]:
        if kind not in machines or not fnmatchcase(region, quota.region):
            continue
        if quota.purchase_option not in (None, option):
            continue
        if (kind, option) not in units:
            names = quota_names(tariffs, quota.provider, *machines[kind], option)
            units[kind, option] = names.get(quota.quota)
        unit = units[kind, option]
        if unit is not None:
            found.setdefault(region, Region(set(), False)).units.add(quota.unit or unit)
