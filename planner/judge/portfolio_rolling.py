"""The answer of `planner portfolio --rolling`: jobs after they arrive, runs one after another, limits at all times.

Recomputed from the runs alone, with nothing of the code that planned them. Not recomputed, and said so: what a
candidate that is a workload takes and costs, what a run draws on quotas (that it stays within them is), and which
choice was best.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction
from math import floor, inf
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.inputs.checks import end_moment, start_moment
from planner.judge.findings import STATED, Findings, Moment, Near
from planner.judge.portfolio import sources
from planner.judge.portfolio_parts import MICRO_USD

if TYPE_CHECKING:
    from datetime import datetime

    from planner.inputs.portfolio_schema import PortfolioJob
    from planner.judge.document import Node
    from planner.judge.portfolio_jobs import PortfolioMemory

_TIE = 1e-6  # hours
_MINUTE = 1.0 / 60.0


def check(findings: Findings, memory: PortfolioMemory) -> None:
    """Compare a rolling plan with what its runs say."""
    answer, loaded = findings.answer, memory.loaded
    created = answer["created_at"].moment()
    origin = memory.origin(created)
    names, jobs = memory.copies, list(answer["jobs"])
    if [node["job"].value for node in jobs] != [name for name, _ in names]:
        findings.stop("jobs: not every job of the portfolio once, in its order")
        return
    expected_jobs = [
        _job(findings, memory, node, entry, origin) for node, (_, entry) in zip(jobs, names, strict=True)
    ]
    limits = list(answer["limits"])
    peaks = _peaks(findings, jobs, [node["limit"].text() for node in limits])
    _commitments(findings, memory, limits, origin)
    submitted = max((job["submitted_hours"].value for job in expected_jobs), default=0.0)
    findings.expect(
        answer,
        {
            "schema_version": 1, "planner_version": STATED, "kind": "portfolio_rolling",
            "name": loaded.portfolio.name, "sha256": loaded.sha256, "currency": "USD",
            "created_at": created.isoformat(timespec="minutes"), "start": Moment(origin), "catalog": sources(memory),
            "every_hours": STATED, "jobs": expected_jobs, "notes": STATED, "seconds": STATED,
            "totals": _sums(jobs) | _owned(memory, jobs, submitted, origin),
            "teams": [
                {"team": team, **{key: value for key, value in _sums(_of(jobs, team)).items() if key in _TEAM}}
                for team in sorted({node["team"].value for node in jobs}, key=lambda one: one or "")
            ],
            "limits": [
                {**dict.fromkeys(("limit", "kind", "team", "unit", "available"), STATED), "peak": peaks[at]}
                for at in range(len(limits))
            ],
        },
    )  # fmt: skip
    for at, node in enumerate(limits):
        over = peaks[at] > node["available"].count()
        findings.require(not over, node["peak"].path, "more than there is at some time")


_TEAM = ("jobs", "late", "never", "late_hours", "bought_usd", "owned_node_hours", "preemptions")


def _job(
    findings: Findings, memory: PortfolioMemory, node: Node, entry: int, origin: datetime
) -> dict[str, Any]:
    """What a job's fields must be, by the file and its runs."""
    job, stints = memory.loaded.jobs[entry], list(node["stints"])
    submitted, deadline = _dates(memory, job, entry, origin)
    end = _course(findings, memory, node, stints, entry, submitted)
    begin = stints[0]["begin_hours"].number() if stints else None
    late = None if end is None and deadline is not None else max((end or 0.0) - (deadline or end or 0.0), 0.0)
    state = "never started" if end is None else "late" if (late or 0.0) > _MINUTE else "in time"

    def moment(hours: float | None) -> Any:
        return None if hours is None else Moment(origin + timedelta(hours=hours))

    return {
        "job": node["job"].value, "team": job.team, "priority": job.priority, "status": state,
        "submitted_hours": Near(submitted), "submitted": moment(submitted),
        "deadline_hours": None if deadline is None else Near(deadline), "deadline": moment(deadline),
        "start_hours": None if begin is None else Near(begin), "start": moment(begin),
        "end_hours": None if end is None else Near(end), "end": moment(end),
        "late_hours": None if late is None else Near(late, slack=_TIE),
        "preemptions": sum(stint["preempted"].flag() for stint in stints),
        "cost_usd": Near(sum((stint["cost_usd"].money() for stint in stints), Fraction(0)), 0.0, MICRO_USD),
        "stints": [_stint(findings, memory, stint, entry, origin) for stint in stints],
    }  # fmt: skip


def _dates(
    memory: PortfolioMemory, job: PortfolioJob, entry: int, origin: datetime
) -> tuple[float, float | None]:
    """When a job is there, and by when it must have ended; hours after the portfolio's start."""

    def after(moment: datetime) -> float:
        return (moment - origin).total_seconds() / 3600.0

    sent = job.submitted
    arrival = 0.0 if sent is None else sent / timedelta(hours=1) if isinstance(sent, timedelta) else after(
        start_moment(sent)
    )  # fmt: skip
    arrival = max(arrival, 0.0)
    first = arrival if job.earliest_start is None else max(arrival, after(start_moment(job.earliest_start)))
    limit, origin_of_limit, loaded = job.deadline, arrival, memory.loaded.workloads[entry]
    if limit is None and loaded is not None:
        limit, origin_of_limit = loaded.workload.constraints.deadline, first
    if limit is None:
        return first, None
    if isinstance(limit, timedelta):
        return first, origin_of_limit + limit / timedelta(hours=1)
    return first, after(end_moment(limit))


def _course(
    findings: Findings, memory: PortfolioMemory, node: Node, stints: list[Node], entry: int, submitted: float
) -> float | None:
    """Follow a job from run to run; return when it is done, None where it never is."""
    job, saved, free = memory.loaded.jobs[entry], 0.0, submitted
    for number, stint in enumerate(stints):
        begin, end = stint["begin_hours"].number(), stint["end_hours"].number()
        early = "before the job arrives, or before its last run ends"
        findings.require(begin >= free - _TIE, stint["begin_hours"].path, early)
        findings.require(end >= begin, stint["end_hours"].path, "before its begin")
        whole, last = stint["whole_hours"].number(), number == len(stints) - 1
        worked = end - begin - (job.restart_hours if number else 0.0)
        free = end
        if stint["preempted"].flag():
            owned = stint["owned"].flag()
            findings.require(owned, stint["preempted"].path, "only runs on owned instances are preempted")
            saved_hours = max(floor(worked / job.checkpoint_hours + 1e-9), 0) * job.checkpoint_hours
            findings.expect(stint["lost_hours"], Near(max(worked, 0.0) - saved_hours, slack=_TIE))
            saved += saved_hours / whole
            if last:
                return None
            continue
        findings.expect(stint["lost_hours"], Near(0.0))
        findings.require(last, stint["preempted"].path, "the job is done, and runs again")
        is_done = abs(max(1.0 - saved, 0.0) * whole - worked) <= _TIE * max(whole, 1.0)
        findings.require(is_done, stint["end_hours"].path, "not when the rest of the work is done")
        findings.saw(stint["lost_hours"])
    if not stints:
        findings.saw(node["stints"])
    return free if stints else None


def _stint(
    findings: Findings, memory: PortfolioMemory, stint: Node, entry: int, origin: datetime
) -> dict[str, Any]:
    """What a run's fields must be; its candidate is one of the file, or is said not to be recomputed."""
    if memory.loaded.workloads[entry] is None:
        keys = ("provider", "region", "instance_type", "purchase_option", "nodes")
        whole = stint["whole_hours"].number()
        same = [
            candidate for candidate in memory.sized[entry]
            if all(getattr(candidate, key) == stint[key].value for key in keys) and abs(candidate.hours - whole) <= _TIE
        ]  # fmt: skip
        path = stint["instance_type"].path
        findings.require(bool(same), path, "no candidate of the file has these machines and hours")
        usd = stint["whole_cost_usd"].money()
        dearer = not same or usd >= min(candidate.usd for candidate in same) - Fraction(1, 10**6)
        findings.require(dearer, stint["whole_cost_usd"].path, "less than the candidate costs")
        owned = any(_is_of(pool.place, stint) for pool in _pools(memory, origin))
        findings.expect(stint["owned"], owned)
        findings.saw(*(stint[key] for key in (*keys, "whole_hours", "whole_cost_usd")))
    findings.saw(*(stint[key] for key in ("begin_hours", "end_hours", "preempted")))
    hours = stint["end_hours"].money() - stint["begin_hours"].money()
    cost = stint["whole_cost_usd"].money() * hours / (stint["whole_hours"].money() or 1)
    findings.expect(stint["cost_usd"], Near(cost, 1e-9, 2 * MICRO_USD))
    _owned_draws(findings, memory, stint, memory.loaded.jobs[entry].team, origin)
    return dict.fromkeys(stint.keys(), STATED)


def _owned_draws(
    findings: Findings, memory: PortfolioMemory, stint: Node, team: str | None, origin: datetime
) -> None:
    """A run of one part on a commitment holds all its instances of it, and of its team's part; none ends after it."""
    draws = {draw["limit"].text(): draw["units"].count() for draw in stint["draws"]}
    for pool in _pools(memory, origin):
        in_time = pool.label not in draws or stint["end_hours"].number() <= pool.end_hours + _TIE
        findings.require(in_time, stint["end_hours"].path, f"after {pool.label} expires")
    if not stint["owned"].flag() or stint["parts"].count() != 1:
        return
    for pool in _pools(memory, origin):
        if not _is_of(pool.place, stint):
            continue
        within = team is not None and int(pool.amount * _share(memory, team) + 1e-9) < pool.amount
        labels = [pool.label, f"{team}: {pool.label}"] if within else [pool.label]
        for name in labels:
            holds_all = draws.get(name) == stint["nodes"].count()
            findings.require(holds_all, stint["draws"].path, f"does not hold its instances of {name}")


class _Pool(NamedTuple):
    """What is owned: its place, what limits call it, its instances, USD of one an hour, and when it expires."""

    place: tuple[str, ...]
    label: str
    amount: int
    usd_per_hour: float
    end_hours: float


def _pools(memory: PortfolioMemory, origin: datetime) -> Iterator[_Pool]:
    """All that is owned; it expires so many hours after the portfolio's start."""
    for pool in memory.loaded.portfolio.commitments:
        place = (pool.provider, pool.region, pool.instance_type, str(pool.purchase_option))
        whole = int(pool.nodes * (1.0 if pool.share is None else float(pool.share)) + 1e-9)
        end = inf if pool.expires is None else (end_moment(pool.expires) - origin) / timedelta(hours=1)
        yield _Pool(place, _label(place), whole, float(pool.usd_per_node_hour or 0), end)
    for key, count in memory.own:
        yield _Pool(key, _label(key), count, 0.0, inf)


def _label(place: tuple[str, ...]) -> str:
    return f"{place[0]}/{place[1]} {place[2]} ({place[3]})"


def _is_of(place: tuple[str, ...], stint: Node) -> bool:
    """Whether a run says that it is on owned instances at a place."""
    names = ("provider", "region", "instance_type", "purchase_option")
    return place == tuple(stint[name].value for name in names)


def _share(memory: PortfolioMemory, team: str) -> float:
    return float(memory.loaded.portfolio.teams[team].share)


def _commitments(findings: Findings, memory: PortfolioMemory, limits: list[Node], origin: datetime) -> None:
    """Commitments, and the part of each that a team may hold, are as large as the file says."""
    stated = {node["limit"].text(): node["available"] for node in limits}
    for _, label, amount, _, _ in _pools(memory, origin):
        expected = {label: amount} | {
            f"{name}: {label}": int(amount * float(team.share) + 1e-9)
            for name, team in memory.loaded.portfolio.teams.items()
            if int(amount * float(team.share) + 1e-9) < amount
        }
        for name, units in expected.items():
            if name in stated:
                findings.expect(stated[name], units)
            else:
                findings.fault("limits", f"{name} is missing")


def _peaks(findings: Findings, jobs: list[Node], labels: list[str]) -> list[int]:
    """Most that runs hold of each limit at any time; what starts when another ends follows it."""
    moves: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for job in jobs:
        for stint in job["stints"]:
            for draw in stint["draws"]:
                units, name = draw["units"].count(), draw["limit"].text()
                findings.require(name in labels, draw["limit"].path, "not one of the limits")
                moves[name] += [(stint["end_hours"].number(), -units), (stint["begin_hours"].number(), units)]
    out = []
    for name in labels:
        in_use = peak = 0
        for _, units in sorted(moves[name]):
            in_use += units
            peak = max(peak, in_use)
        out.append(peak)
    return out


def _of(jobs: list[Node], team: str | None) -> list[Node]:
    return [node for node in jobs if node["team"].value == team]


def _sums(jobs: list[Node]) -> dict[str, Any]:
    stints = [stint for node in jobs for stint in node["stints"]]
    late = [node["late_hours"].number() for node in jobs if not node["end_hours"].is_null]
    return {
        "jobs": len(jobs),
        "late": sum(node["status"].value == "late" for node in jobs)
        + sum(node["end_hours"].is_null and not node["deadline_hours"].is_null for node in jobs),
        "never": sum(node["end_hours"].is_null for node in jobs),
        "late_hours": Near(sum(late), slack=_TIE * max(len(jobs), 1)),
        "bought_usd": Near(sum((run["cost_usd"].money() for run in stints), Fraction(0)), 1e-9, MICRO_USD),
        "owned_node_hours": Near(sum(_node_hours(stint) for stint in stints), slack=_TIE * max(len(stints), 1)),
        "preemptions": sum(stint["preempted"].flag() for stint in stints),
    }  # fmt: skip


def _node_hours(stint: Node, until: float = float("inf"), since: float = 0.0) -> float:
    """Owned instance-hours of a run between two moments; the draws on commitments are its instances."""
    hours = min(stint["end_hours"].number(), until) - max(stint["begin_hours"].number(), since)
    return stint["nodes"].count() * max(hours, 0.0) if stint["owned"].flag() else 0.0


def _owned(memory: PortfolioMemory, jobs: list[Node], period: float, origin: datetime) -> dict[str, Any]:
    """Cost and use of what is owned: all of it until the last submission or its own end, then what is in use."""
    stints = [stint for node in jobs for stint in node["stints"]]
    usd, owned_hours = 0.0, 0.0
    for _, label, amount, price, end in _pools(memory, origin):
        whole = amount * max(min(period, end), 0.0)
        owned_hours += whole
        of_pool = [stint for stint in stints if any(draw["limit"].value == label for draw in stint["draws"])]
        usd += price * (whole + sum(_node_hours(stint, since=period) for stint in of_pool))
    bought = sum((float(stint["cost_usd"].money()) for stint in stints), 0.0)
    used_hours = sum(_node_hours(stint, until=period) for stint in stints)
    return {
        "owned_usd": Near(usd, 1e-9, 0.01), "cost_usd": Near(usd + bought, 1e-9, 0.01),
        "period_hours": Near(period), "plans": STATED, "lost_node_hours": STATED,
        "utilisation_ratio": Near(used_hours / owned_hours, 1e-6) if owned_hours else None,
    }  # fmt: skip
