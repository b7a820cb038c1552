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
from planner.judge.findings import STATED, Findings, Near, Timestamp
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
    limits = list(answer["limits"])
    known = _Known(
        origin,
        list(_pools(memory, origin)),
        _draws(findings, jobs, [node["limit"].text() for node in limits]),
    )
    expected_jobs = [
        _job(findings, memory, node, entry, known) for node, (_, entry) in zip(jobs, names, strict=True)
    ]
    peaks = _peaks(jobs, known, len(limits))
    _commitments(findings, known.pools, limits)
    submitted = max((job["submitted_hours"].value for job in expected_jobs), default=0.0)
    findings.expect(
        answer,
        {
            "schema_version": 1, "planner_version": STATED, "kind": "portfolio_rolling",
            "name": loaded.portfolio.name, "sha256": loaded.sha256, "currency": "USD",
            "created_at": created.isoformat(timespec="minutes"), "start": Timestamp(origin), "catalog": sources(memory),
            "every_hours": STATED, "jobs": expected_jobs, "notes": STATED, "seconds": STATED,
            "totals": _sums(jobs) | _owned(jobs, submitted, known),
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


class _Limit(NamedTuple):
    """Owned instances that all jobs, or those of a team, may hold: the row in `limits`, its name and how many."""

    row: int
    label: str
    amount: int


class _Pool(NamedTuple):
    """What is owned: its place, USD of an instance an hour, when it expires, and its limits by team (None: all).

    `busy`: instances that work carried over holds, and until when (hours).
    """

    place: tuple[str, ...]
    usd_per_hour: float
    end_hours: float
    limits: dict[str | None, _Limit]
    busy: tuple[int, float]


class _Known(NamedTuple):
    """The portfolio's start, what is owned, and what the run at a path holds of which row in `limits`."""

    origin: datetime
    pools: list[_Pool]
    draws: dict[str, dict[int, int]]


def _job(
    findings: Findings, memory: PortfolioMemory, node: Node, entry: int, known: _Known
) -> dict[str, Any]:
    """What a job's fields must be, by the file and its runs."""
    origin = known.origin
    job, stints = memory.loaded.jobs[entry], list(node["stints"])
    submitted, deadline = _dates(memory, job, entry, origin)
    end = _course(findings, memory, node, stints, entry, submitted)
    begin = stints[0]["begin_hours"].number() if stints else None
    late = None if end is None and deadline is not None else max((end or 0.0) - (deadline or end or 0.0), 0.0)
    state = "never started" if end is None else "late" if (late or 0.0) > _MINUTE else "in time"

    def moment(hours: float | None) -> Any:
        return None if hours is None else Timestamp(origin + timedelta(hours=hours))

    return {
        "job": node["job"].value, "team": job.team, "priority": job.priority, "status": state,
        "submitted_hours": Near(submitted), "submitted": moment(submitted),
        "deadline_hours": None if deadline is None else Near(deadline), "deadline": moment(deadline),
        "start_hours": None if begin is None else Near(begin), "start": moment(begin),
        "end_hours": None if end is None else Near(end), "end": moment(end),
        "late_hours": None if late is None else Near(late, slack=_TIE),
        "preemptions": sum(stint["preempted"].flag() for stint in stints),
        "cost_usd": Near(sum((stint["cost_usd"].money() for stint in stints), Fraction(0)), 0.0, MICRO_USD),
        "stints": [_stint(findings, memory, stint, entry, known) for stint in stints],
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
    findings: Findings, memory: PortfolioMemory, stint: Node, entry: int, known: _Known
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
        owned = any(_is_of(pool.place, stint) for pool in known.pools)
        findings.expect(stint["owned"], owned)
        findings.saw(*(stint[key] for key in (*keys, "whole_hours", "whole_cost_usd")))
    findings.saw(*(stint[key] for key in ("begin_hours", "end_hours", "preempted")))
    hours = stint["end_hours"].money() - stint["begin_hours"].money()
    cost = stint["whole_cost_usd"].money() * hours / (stint["whole_hours"].money() or 1)
    findings.expect(stint["cost_usd"], Near(cost, 1e-9, 2 * MICRO_USD))
    _owned_draws(findings, stint, memory.loaded.jobs[entry].team, known)
    return dict.fromkeys(stint.keys(), STATED)


def _owned_draws(findings: Findings, stint: Node, team: str | None, known: _Known) -> None:
    """A run of one part on a commitment holds all its instances of it, and of its team's part; none ends after it."""
    draws = known.draws[stint.path]
    for pool in known.pools:
        whole = pool.limits[None]
        in_time = whole.row not in draws or stint["end_hours"].number() <= pool.end_hours + _TIE
        findings.require(in_time, stint["end_hours"].path, f"after {whole.label} expires")
    own = [pool for pool in known.pools if _is_of(pool.place, stint)]
    if not own or not stint["owned"].flag() or stint["parts"].count() != 1:
        return
    of_run = next((pool for pool in own if pool.limits[None].row in draws), own[0])  # of those of equal terms
    for limit in (of_run.limits[None], of_run.limits.get(team)):
        holds_all = limit is None or draws.get(limit.row) == stint["nodes"].count()
        findings.require(
            holds_all, stint["draws"].path, f"does not hold its instances of {limit and limit.label}"
        )


def _pools(memory: PortfolioMemory, origin: datetime) -> Iterator[_Pool]:
    """All that is owned, in the order of its limits; it expires so many hours after the portfolio's start."""
    row = 0
    for place, amount, usd_per_hour, end_hours, busy in _owned_places(memory, origin):
        label = f"{place[0]}/{place[1]} {place[2]} ({place[3]})"
        limits: dict[str | None, _Limit] = {None: _Limit(row, label, amount)}
        for name, team in memory.loaded.portfolio.teams.items():
            part = int(amount * float(team.share) + 1e-9)
            if part < amount:
                limits[name] = _Limit(row + len(limits), f"{name}: {label}", part)
        row += len(limits)
        yield _Pool(place, usd_per_hour, end_hours, limits, busy)


def _owned_places(
    memory: PortfolioMemory, origin: datetime
) -> Iterator[tuple[tuple[str, ...], int, float, float, tuple[int, float]]]:
    """Commitments of the file, then machines of workloads' files: as `_Pool` has them, with the instances."""
    for pool in memory.loaded.portfolio.commitments:
        place = (pool.provider, pool.region, pool.instance_type, str(pool.purchase_option))
        whole = int(pool.nodes * (1.0 if pool.share is None else float(pool.share)) + 1e-9)
        end = inf if pool.expires is None else (end_moment(pool.expires) - origin) / timedelta(hours=1)
        until = pool.busy_until
        free = inf if until is None else (start_moment(until) - origin) / timedelta(hours=1)
        yield place, whole, float(pool.usd_per_node_hour or 0), end, (min(pool.busy_nodes, whole), free)
    for key, count in memory.own:
        yield key, count, 0.0, inf, (0, inf)


def _is_of(place: tuple[str, ...], stint: Node) -> bool:
    """Whether a run says that it is on owned instances at a place."""
    names = ("provider", "region", "instance_type", "purchase_option")
    return place == tuple(stint[name].value for name in names)


def _commitments(findings: Findings, pools: list[_Pool], limits: list[Node]) -> None:
    """Commitments, and the part of each that a team may hold, come first and are as large as the file says."""
    for pool in pools:
        for row, label, amount in pool.limits.values():
            if row >= len(limits):
                findings.fault("limits", f"{label} is missing")
                continue
            findings.expect(limits[row]["limit"], label)
            findings.expect(limits[row]["available"], amount)


def _draws(findings: Findings, jobs: list[Node], labels: list[str]) -> dict[str, dict[int, int]]:
    """What each run, by its path, holds of which row in `limits`.

    Answers of version 0.2.0 name a limit without its row: the first of that name is meant.
    """
    rows = {label: row for row, label in reversed(list(enumerate(labels)))}
    out: dict[str, dict[int, int]] = {}
    for stint in (stint for job in jobs for stint in job["stints"]):
        held = out.setdefault(stint.path, {})
        for draw in stint["draws"]:
            name = draw["limit"].text()
            row = draw["row"].count() if "row" in draw else rows.get(name, len(labels))
            findings.require(labels[row : row + 1] == [name], draw["limit"].path, "not one of the limits")
            held[row] = held.get(row, 0) + draw["units"].count()
    return out


def _peaks(jobs: list[Node], known: _Known, rows: int) -> list[int]:
    """Most that runs and work carried over hold of each limit; what starts when another ends follows it."""
    moves: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for pool in known.pools:
        nodes, until = pool.busy
        moves[pool.limits[None].row] += [(-inf, nodes), (max(until, 0.0), -nodes)]
    for stint in (stint for job in jobs for stint in job["stints"]):
        for row, units in known.draws[stint.path].items():
            moves[row] += [(stint["end_hours"].number(), -units), (stint["begin_hours"].number(), units)]
    out = []
    for row in range(rows):
        in_use = peak = 0
        for _, units in sorted(moves[row]):
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


def _owned(jobs: list[Node], period: float, known: _Known) -> dict[str, Any]:
    """Cost and use of what is owned: all of it until the last submission or its own end, then what is in use."""
    stints = [stint for node in jobs for stint in node["stints"]]
    usd, owned_hours = 0.0, 0.0
    for pool in known.pools:
        whole = pool.limits[None].amount * max(min(period, pool.end_hours), 0.0)
        owned_hours += whole
        of_pool = [stint for stint in stints if pool.limits[None].row in known.draws[stint.path]]
        usd += pool.usd_per_hour * (whole + sum(_node_hours(stint, since=period) for stint in of_pool))
    bought = sum((float(stint["cost_usd"].money()) for stint in stints), 0.0)
    used_hours = sum(_node_hours(stint, until=period) for stint in stints)
    return {
        "owned_usd": Near(usd, 1e-9, 0.01), "cost_usd": Near(usd + bought, 1e-9, 0.01),
        "period_hours": Near(period), "plans": STATED, "lost_node_hours": STATED,
        "utilisation_ratio": Near(used_hours / owned_hours, 1e-6) if owned_hours else None,
    }  # fmt: skip
