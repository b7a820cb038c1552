"""The answer of `planner schedule`: hours, nodes, work and every cost recomputed from the question and its forecast."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

from planner.inputs.checks import start_moment
from planner.judge.findings import STATED, Exactly, Findings, Near, Timestamp
from planner.judge.money import in_unit, tiers
from planner.judge.work import assumption_rows
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tariffs import TierCurve
    from planner.inputs.schedule_load import LoadedSchedule
    from planner.inputs.schedule_schema import ScheduleJob, SchedulePool
    from planner.judge.document import Node

GB, GIB = 10**9, 2**30
WORK_SLACK = 1e-9  # of a job's work; sums of hours in floating point
_CENTS = 1e-9


@record(frozen=True)
class Run:
    """Nodes of a job on a pool, for hours in a row."""

    job: int
    pool: int
    begin: int
    end: int
    nodes: int


def check(findings: Findings, loaded: LoadedSchedule) -> None:
    """Compare a schedule with what is recomputed."""
    answer, schedule = findings.answer, loaded.schedule
    jobs = {job.name: at for at, job in enumerate(schedule.jobs)}
    pools = {pool.name: at for at, pool in enumerate(schedule.pools)}
    runs = [_run(node, jobs, pools, loaded.n_hours) for node in answer["intervals"]]
    nodes = _nodes(findings, runs)
    starts = _starts(nodes)
    order = [(run.job, run.begin, schedule.pools[run.pool].name) for run in runs]
    findings.require(order == sorted(order), "intervals", "not by job, hour and pool")
    copies = _copies(loaded, nodes)
    _limits(findings, loaded, nodes, copies)
    parts = {
        "nodes": sum((n * _price(loaded, hour, pool) for (_, hour, pool), n in nodes.items()), Fraction(0)),
        "starts": sum((n * _start(loaded, hour, pool) for (_, hour, pool), n in starts.items()), Fraction(0)),
        "copies": sum((copy["transfer_usd"] for copy in copies), Fraction(0)),
        "storage": sum((copy["storage_usd"] for copy in copies), Fraction(0)),
    }
    nothing: dict[str, Any] = {"missing_work_at_best": [], "ways_out": []}
    findings.expect(
        answer,
        {
            **nothing, "schedule": schedule.name, "status": "planned", "start": Timestamp(start_moment(schedule.start)),
            "sha256": hashlib.sha256(loaded.document.data).hexdigest(), "forecast_hours": loaded.n_hours,
            "work_unit": schedule.work_unit, "currency": "USD", "schema_version": 1, "planner_version": STATED,
            "total_usd": Near(sum(parts.values(), Fraction(0)), slack=_CENTS),
            "cost_parts_usd": {name: Near(usd, slack=_CENTS) for name, usd in parts.items()},
            "intervals": [_interval(loaded, run, starts) for run in runs],
            "copies": [_shown(copy) for copy in copies],
            "jobs": [_job(loaded, at, nodes, starts, copies) for at in range(len(schedule.jobs))],
            "proof": _proof(answer),
        },
    )  # fmt: skip


def _run(node: Node, jobs: dict[str, int], pools: dict[str, int], hours: int) -> Run:
    job, pool = node["job"].text(), node["pool"].text()
    if job not in jobs:
        node["job"].fail(f"a job of the question: {', '.join(jobs)}")
    if pool not in pools:
        node["pool"].fail(f"a pool of the question: {', '.join(pools)}")
    begin, end, nodes = (node[name].count() for name in ("start_hour", "end_hour", "nodes"))
    if not begin < end <= hours:
        node["end_hour"].fail(f"an hour after {begin}, at most {hours}")
    if nodes < 1:
        node["nodes"].fail("a positive number of nodes")
    return Run(jobs[job], pools[pool], begin, end, nodes)


def _nodes(findings: Findings, runs: list[Run]) -> dict[tuple[int, int, int], int]:
    """Nodes by job, hour and pool; hours in a row with the same nodes are one interval."""
    out: dict[tuple[int, int, int], int] = {}
    for at, run in enumerate(runs):
        for hour in range(run.begin, run.end):
            findings.require(
                (run.job, hour, run.pool) not in out, f"intervals[{at}]", f"hour {hour} is there twice"
            )
            out[run.job, hour, run.pool] = run.nodes
    for at, run in enumerate(runs):
        same = out.get((run.job, run.end, run.pool)) == run.nodes
        findings.require(not same, f"intervals[{at}]", "two intervals that are one")
    return out


def _starts(nodes: dict[tuple[int, int, int], int]) -> dict[tuple[int, int, int], int]:
    """Nodes that start in an hour: those that were not there the hour before."""
    started = {
        (job, hour, pool): count - nodes.get((job, hour - 1, pool), 0)
        for (job, hour, pool), count in nodes.items()
    }
    return {key: count for key, count in started.items() if count > 0}


def _price(loaded: LoadedSchedule, hour: int, pool: int) -> Fraction:
    usd, _ = loaded.forecast.get((hour, pool), (0.0, 0))
    return Fraction(repr(usd))


def _start(loaded: LoadedSchedule, hour: int, pool: int) -> Fraction:
    """What the start of one node costs."""
    forecast = loaded.schedule.pools[pool]
    return Fraction(repr(forecast.startup_hours)) * _price(loaded, hour, pool) + Fraction(
        repr(forecast.startup_usd)
    )


def _speed(job: ScheduleJob, pool: SchedulePool) -> float:
    return job.work_per_node_hour.get(pool.name, pool.work_per_node_hour)


def _interval(loaded: LoadedSchedule, run: Run, starts: dict[tuple[int, int, int], int]) -> dict[str, Any]:
    pool, job = loaded.schedule.pools[run.pool], loaded.schedule.jobs[run.job]
    begun = starts.get((run.job, run.begin, run.pool), 0)
    usd = sum((run.nodes * _price(loaded, hour, run.pool) for hour in range(run.begin, run.end)), Fraction(0))
    start = start_moment(loaded.schedule.start)
    return {
        "job": job.name, "pool": pool.name, "provider": pool.provider, "region": pool.region,
        "instance_type": pool.instance_type or "", "purchase_option": pool.purchase_option,
        "from": Timestamp(start + timedelta(hours=run.begin)), "until": Timestamp(start + timedelta(hours=run.end)),
        "start_hour": run.begin, "end_hour": run.end, "nodes": run.nodes, "nodes_started": begun,
        "work": Near(run.nodes * _speed(job, pool) * (run.end - run.begin)),
        "cost_usd": Near(usd + begun * _start(loaded, run.begin, run.pool), slack=_CENTS),
    }  # fmt: skip


def _regions_used(loaded: LoadedSchedule, nodes: dict[tuple[int, int, int], int], job: int) -> dict[str, int]:
    """Regions that a job runs in, with the hour after its last one there; in the order of the pools."""
    order = list(dict.fromkeys(f"{pool.provider}/{pool.region}" for pool in loaded.schedule.pools))
    last: dict[str, int] = {}
    for owner, hour, pool in nodes:
        if owner == job:
            forecast = loaded.schedule.pools[pool]
            name = f"{forecast.provider}/{forecast.region}"
            last[name] = max(last.get(name, 0), hour + 1)
    return {name: last[name] for name in order if name in last}


def _copies(loaded: LoadedSchedule, nodes: dict[tuple[int, int, int], int]) -> list[dict[str, Any]]:
    """Copies of data that the runs need: brought once, kept from the window's begin to the last use."""
    from catalogs.tariffs import load_tariffs

    tariffs, out = load_tariffs(), []
    figures = {row["key"]: float(row["value"]) for row in assumption_rows()}
    for at, job in enumerate(loaded.schedule.jobs):
        if job.data is None:
            continue
        first = loaded.windows[at][0]
        for name, last in _regions_used(loaded, nodes, at).items():
            if name == job.data.location:
                continue
            source, target = job.data.location.split("/", 1), name.split("/", 1)
            listed = tariffs.transfer_curve(source[0], source[1], target[0], target[1])
            curve = tariffs.dearest_internet_curve() if listed is None else listed
            stored = tariffs.storage_price(target[0], target[1])
            gbps = figures[
                "inter_region_staging_gbps" if source[0] == target[0] else "cross_cloud_staging_gbps"
            ]
            size_gb = Fraction(job.data.size) / GB
            month = (
                Fraction(stored.usd_per_gib_month) * Fraction(job.data.size) / GIB / 730
                if stored
                else Fraction(0)
            )
            out.append(
                {
                    "job": job.name, "region": name, "size_gb": size_gb, "kept_hours": last - first,
                    "transfer_usd": Fraction(round(moved_usd(curve, size_gb) * 10**6), 10**6),
                    "storage_usd": Fraction(round(month * 10**9), 10**9) * (last - first),
                    "ready_hour": first + ceil(float(size_gb) * 8.0 / gbps / 3600.0),
                    "transfer_basis": "derived" if listed is None else "list",
                    "storage_basis": stored.basis if stored else "unknown", "price_as_of": curve.as_of,
                }
            )  # fmt: skip
    return out


def moved_usd(curve: TierCurve, size_gb: Fraction) -> Fraction:
    """Cost of moving data; what a month has free is the account's, and used by others."""
    free = next((edge for edge, price in zip(curve.edges_gb, curve.usd_per_gb, strict=True) if price), 0)
    used = float(Fraction(free) / in_unit(curve, Fraction(1)))
    return sum((quantity * price for quantity, price in tiers(curve, float(size_gb), used)), Fraction(0))


def _shown(copy: dict[str, Any]) -> dict[str, Any]:
    provider, _, region = copy["region"].partition("/")
    amounts = {name: Near(copy[name], slack=2e-6) for name in ("transfer_usd", "storage_usd")}
    return {**copy, **amounts, "size_gb": Near(copy["size_gb"]), "provider": provider, "region": region}


def _job(
    loaded: LoadedSchedule, at: int, nodes: dict[tuple[int, int, int], int], starts: dict[tuple[int, int, int], int],
    copies: list[dict[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    job, pools = loaded.schedule.jobs[at], loaded.schedule.pools
    job_nodes = [(hour, pool, count) for (who, hour, pool), count in nodes.items() if who == at]
    usd = sum((count * _price(loaded, hour, pool) for hour, pool, count in job_nodes), Fraction(0))
    usd += sum(
        (n * _start(loaded, hour, pool) for (who, hour, pool), n in starts.items() if who == at), Fraction(0)
    )
    usd += sum((c["transfer_usd"] + c["storage_usd"] for c in copies if c["job"] == job.name), Fraction(0))
    return {
        "job": job.name, "work": Near(job.work), "cost_usd": Near(usd, slack=_CENTS),
        "work_done": Near(sum(count * _speed(job, pools[pool]) for _, pool, count in job_nodes)),
        "end_hour": max((hour + 1 for hour, _, _ in job_nodes), default=0), "deadline_hour": loaded.windows[at][1],
    }  # fmt: skip


def _limits(
    findings: Findings,
    loaded: LoadedSchedule,
    nodes: dict[tuple[int, int, int], int],
    copies: list[dict[str, Any]],
) -> None:
    """Work is done, within windows, on nodes that the forecast offers, with data there, as many as allowed."""
    in_use: dict[tuple[int, int], int] = {}
    for (_, hour, pool), count in nodes.items():
        in_use[hour, pool] = in_use.get((hour, pool), 0) + count
    for place, count in in_use.items():
        _, available = loaded.forecast.get(place, (0.0, 0))
        text = f"hour {place[0]}: {count} nodes of {loaded.schedule.pools[place[1]].name}, the forecast has {available}"
        findings.require(count <= available, "intervals", text)
    ready = {(copy["job"], copy["region"]): copy["ready_hour"] for copy in copies}
    for at, job in enumerate(loaded.schedule.jobs):
        for text in _job_faults(loaded, at, nodes, ready):
            findings.fault("jobs", f"{job.name}: {text}")


def _job_faults(
    loaded: LoadedSchedule, at: int, nodes: dict[tuple[int, int, int], int], ready: dict[tuple[str, str], int]
) -> Iterator[str]:
    job, pools, (first, last) = loaded.schedule.jobs[at], loaded.schedule.pools, loaded.windows[at]
    hours: dict[int, list[tuple[int, int]]] = {}
    work_done = 0.0
    for (who, hour, pool), count in nodes.items():
        if who != at:
            continue
        hours.setdefault(hour, []).append((pool, count))
        work_done += count * _speed(job, pools[pool])
        name = f"{pools[pool].provider}/{pools[pool].region}"
        if not first <= hour < last:
            yield f"runs in hour {hour}, outside {first} to {last}"
        if hour < ready.get((job.name, name), first):
            yield f"runs in hour {hour} in {name} before its data is there"
        if not _speed(job, pools[pool]) > 0:
            yield f"cannot run on {pools[pool].name}"
    if work_done < job.work * (1 - WORK_SLACK):
        yield f"{work_done:.10g} of {job.work:.10g} {loaded.schedule.work_unit} done"
    for hour, used in hours.items():
        count = sum(number for _, number in used)
        if not job.min_nodes <= count <= (job.max_nodes or count):
            yield f"hour {hour}: {count} nodes, {job.min_nodes} to {job.max_nodes or 'any number'} allowed"
        if job.one_region and len({(pools[pool].provider, pools[pool].region) for pool, _ in used}) > 1:
            yield f"hour {hour}: in two regions"


def _proof(answer: Node) -> dict[str, Any]:
    """The bound is the solver's; the gap and the status follow from it."""
    node, total = answer["proof"], answer["total_usd"].money()
    bound, gap_asked = node["bound_usd"].money(), node["gap_asked_ratio"].number()
    most = total * (1 + Fraction(1, 10**9))  # no bound is above what the answer costs
    gap = max(0.0, float((total - bound) / total)) if total else 0.0
    return {
        "bound_usd": Exactly(min(bound, most)),
        "gap_ratio": Near(gap, 1e-6, 1e-9), "gap_asked_ratio": STATED, "solver": STATED,
        "status": "optimal" if gap <= gap_asked * (1 + 1e-6) + 1e-9 else "feasible", "seconds": STATED,
    }  # fmt: skip
