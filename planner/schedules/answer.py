"""`planner schedule`: from a loaded question to the answer."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.asked.assumptions import load_assumptions
from planner.inputs.checks import start_moment
from planner.pipelines.moves import GB, build_moves, curve_usd
from planner.records import record
from planner.render.presentable import Presentable
from planner.schedules.question import ScheduleInput
from planner.schedules.relaxation import Explanation, Remedy, apply_remedy, explain_schedule
from planner.schedules.solve import ScheduleResult, solve_schedule
from solvers.problem.solution import Status
from solvers.search.search import Clock

if TYPE_CHECKING:
    from catalogs.tariffs import Tariffs
    from planner.inputs.schedule_load import LoadedSchedule
    from planner.inputs.schedule_schema import SchedulePool
    from planner.pipelines.moves import Moves
    from solvers.problem.options import SolveOptions

GIB = 2**30
MONEY_DIGITS = 12
WHY_SHARE = 0.8  # of the time limit, at most, until it is known what helps where nothing fits
ANY_NUMBER = 1_000_000_000  # of nodes, where a job sets no limit


@record(frozen=True)
class Interval:
    """Hours in a row with the same nodes of a pool; hours count from the start, `end_hour` is the first without."""

    job: str
    pool: SchedulePool
    start_hour: int
    end_hour: int
    nodes: int
    started: int
    usd: Decimal
    work: float

    @property
    def hours(self) -> int:
        """Length."""
        return self.end_hour - self.start_hour


@record(frozen=True)
class Copy:
    """Data of a job at a region where it runs; a `derived` price stands in for one that is not known (else `list`)."""

    job: str
    region: str
    size_gb: float
    transfer_usd: Decimal
    storage_usd: Decimal
    kept_hours: int
    ready_hour: int
    transfer_basis: str
    storage_basis: str
    price_as_of: str


@record(frozen=True)
class JobLine:
    """One job: work done of what is needed, its cost, when its last hour ends."""

    name: str
    work: float
    done: float
    usd: Decimal
    end_hour: int
    deadline_hour: int


@record(frozen=True)
class WayOut:
    """A remedy and what the cheapest plan with it costs (None: not found in time)."""

    remedy: Remedy
    usd: float | None


@record(frozen=True, eq=False)
class ScheduleAnswer(Presentable):
    """The answer; `intervals` are empty where nothing fits.

    `sha256` is the question's, `gap_asked` the gap at which the search may stop. Where nothing fits, `missing` holds
    each job with what it lacks at best and its work; empty where that is not known.
    """

    REPORT = "planner.schedules.report:schedule_report"
    __repr__ = Presentable.__repr__

    name: str
    start: datetime
    work_unit: str
    n_hours: int
    intervals: tuple[Interval, ...]
    copies: tuple[Copy, ...]
    jobs: tuple[JobLine, ...]
    parts_usd: dict[str, Decimal]
    total_usd: Decimal | None
    result: ScheduleResult
    explanation: Explanation | None
    missing: tuple[tuple[str, float, float], ...]
    ways_out: tuple[WayOut, ...]
    sha256: str = ""
    gap_asked: float = 0.0


def plan_schedule(
    loaded: LoadedSchedule, options: SolveOptions, *, tariffs: Tariffs | None = None
) -> ScheduleAnswer:
    """Plan when and where the jobs run.

    Args:
        loaded: the question.
        options: gap, time limit, backend; where nothing fits, the explanation has what is left.
        tariffs: prices of transfer and storage; default the bundled ones.
    """
    from catalogs.tariffs import load_tariffs

    tariffs = load_tariffs() if tariffs is None else tariffs
    question, moves = gather(loaded, tariffs)
    clock = Clock(options.time_limit_s)
    result = solve_schedule(question, replace(options, time_limit_s=clock.for_next_s()))
    schedule = loaded.schedule
    explanation: Explanation | None = None
    ways: tuple[WayOut, ...] = ()
    if result.status is Status.INFEASIBLE:
        explanation, ways = _explain(question, options, clock)
    missing: tuple[tuple[str, float, float], ...] = ()
    if explanation is not None and explanation.missing is not None:
        missing = tuple(zip(question.jobs, explanation.missing.tolist(), question.work.tolist(), strict=True))
    evaluation = result.evaluation
    parts: dict[str, Decimal] = {}
    if evaluation is not None:
        parts = {
            name: money(getattr(evaluation.costs, name)) for name in ("nodes", "starts", "copies", "storage")
        }
    return ScheduleAnswer(
        name=schedule.name, start=start_moment(schedule.start), work_unit=schedule.work_unit, n_hours=question.n_hours,
        intervals=_intervals(loaded, question, result), copies=_copies(loaded, question, result, moves, tariffs),
        jobs=_jobs(question, result), parts_usd=parts, total_usd=sum(parts.values(), Decimal(0)) if parts else None,
        result=result, explanation=explanation, missing=missing, ways_out=ways,
        sha256=hashlib.sha256(loaded.document.data).hexdigest(), gap_asked=options.gap,
    )  # fmt: skip


def money(value: Fraction) -> Decimal:
    """Dollars as a decimal, exact where `MONEY_DIGITS` decimals suffice; 1000 is not written 1E+3."""
    dollars = (Decimal(value.numerator) / Decimal(value.denominator)).quantize(
        Decimal(1).scaleb(-MONEY_DIGITS)
    )
    return Decimal(f"{dollars.normalize():f}")


def gather(loaded: LoadedSchedule, tariffs: Tariffs) -> tuple[ScheduleInput, Moves]:
    """Build the question; the tariffs between its places come along for the answer."""
    schedule = loaded.schedule
    place = [f"{pool.provider}/{pool.region}" for pool in schedule.pools]
    regions = tuple(dict.fromkeys(place))
    sources = [job.data.location for job in schedule.jobs if job.data is not None]
    moves = build_moves(tuple(dict.fromkeys([*regions, *sources])), tariffs, load_assumptions({}))
    copy, keep, ready = _data(loaded, regions, moves, tariffs)
    speed = [
        [job.work_per_node_hour.get(pool.name, pool.work_per_node_hour) for pool in schedule.pools]
        for job in schedule.jobs
    ]
    jobs = schedule.jobs
    price, available, offered = _forecast(loaded)
    question = ScheduleInput(
        pools=tuple(pool.name for pool in schedule.pools), regions=regions,
        region=_ints([regions.index(name) for name in place]), usd_per_hour=price,
        available=available, offered=offered,
        startup_hours=_floats([pool.startup_hours for pool in schedule.pools]),
        startup_usd=_floats([pool.startup_usd for pool in schedule.pools]), jobs=tuple(job.name for job in jobs),
        work=_floats([job.work for job in jobs]), speed=np.asarray(speed, dtype=np.float64),
        first=_ints([first for first, _ in loaded.windows]), last=_ints([last for _, last in loaded.windows]),
        min_nodes=_ints([job.min_nodes for job in jobs]),
        max_nodes=_ints([job.max_nodes or ANY_NUMBER for job in jobs]),
        one_region=np.asarray([job.one_region for job in jobs]), copy_usd=copy, keep_usd_per_hour=keep, ready=ready,
    )  # fmt: skip
    return question, moves


def _forecast(loaded: LoadedSchedule) -> tuple[Floats, Floats, Bools]:
    """Prices, nodes and what is offered, shape (T, P) each."""
    shape = (loaded.n_hours, len(loaded.schedule.pools))
    price, available, offered = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    for place, (usd, nodes) in loaded.forecast.items():
        price[place], available[place], offered[place] = usd, nodes, True
    return price, available, offered


def _ints(values: list[int]) -> Ints:
    return np.asarray(values, dtype=np.int64)


def _floats(values: list[float]) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _data(
    loaded: LoadedSchedule, regions: tuple[str, ...], moves: Moves, tariffs: Tariffs
) -> tuple[Floats, Floats, Ints]:
    """What copies cost once and per hour, and the hour in which each is there; shape (J, R)."""
    shape = (len(loaded.schedule.jobs), len(regions))
    copy, keep = np.zeros(shape), np.zeros(shape)
    ready = np.repeat(_ints([first for first, _ in loaded.windows])[:, None], len(regions), axis=1)
    for at, job in enumerate(loaded.schedule.jobs):
        if job.data is None:
            continue
        size_gb, source = float(job.data.size) / GB, moves.places.index(job.data.location)
        hours = moves.hours([size_gb])[0]
        for r, name in enumerate(regions):
            if name == job.data.location:
                continue
            target = moves.places.index(name)
            copy[at, r] = float(curve_usd(moves.tariff(source, target)[0], size_gb))
            price = tariffs.storage_price(*name.split("/", 1))
            keep[at, r] = float(price.cost_usd(Decimal(job.data.size) / GIB, Decimal(1))) if price else 0.0
            ready[at, r] += math.ceil(hours[moves.group[source], moves.group[target]])
    return np.round(copy, 6), np.round(keep, 9), ready


def _intervals(
    loaded: LoadedSchedule, question: ScheduleInput, result: ScheduleResult
) -> tuple[Interval, ...]:
    """Hours in a row with the same count, joined; a start cost belongs to the interval that it opens."""
    evaluation = result.evaluation
    out: list[Interval] = []
    if evaluation is None:
        return ()
    pools = loaded.schedule.pools
    for (job, hour, pool), count in sorted(
        result.nodes.items(), key=lambda item: (item[0][0], item[0][2], item[0][1])
    ):
        begun = evaluation.starts.get((job, hour, pool), 0)
        price = Decimal(repr(float(question.usd_per_hour[hour, pool])))
        start = Decimal(repr(float(question.startup_hours[pool]))) * price
        start += Decimal(repr(float(question.startup_usd[pool])))
        cost = count * price + begun * start
        work = count * float(question.speed[job, pool])
        last = out[-1] if out else None
        name = question.jobs[job]
        if (
            last is not None and (last.job, last.pool, last.end_hour, last.nodes) == (name, pools[pool], hour, count)
        ):  # fmt: skip
            out[-1] = replace(last, end_hour=hour + 1, usd=last.usd + cost, work=last.work + work)
        else:
            out.append(Interval(name, pools[pool], hour, hour + 1, count, begun, cost, work))
    return tuple(sorted(out, key=lambda one: (question.jobs.index(one.job), one.start_hour, one.pool.name)))


def _copies(
    loaded: LoadedSchedule, question: ScheduleInput, result: ScheduleResult, moves: Moves, tariffs: Tariffs
) -> tuple[Copy, ...]:
    evaluation = result.evaluation
    out = []
    for (at, region), hours in sorted(evaluation.kept_hours.items()) if evaluation is not None else ():
        job, name = loaded.schedule.jobs[at], question.regions[region]
        if job.data is None or name == job.data.location:
            continue
        curve, is_listed = moves.tariff(moves.places.index(job.data.location), moves.places.index(name))
        stored = tariffs.storage_price(*name.split("/", 1))
        out.append(Copy(
            job.name, name, float(job.data.size) / GB, Decimal(repr(float(question.copy_usd[at, region]))),
            hours * Decimal(repr(float(question.keep_usd_per_hour[at, region]))), hours,
            int(question.ready[at, region]), "list" if is_listed else "derived",
            stored.basis if stored else "unknown", curve.as_of,
        ))  # fmt: skip
    return tuple(out)


def _jobs(question: ScheduleInput, result: ScheduleResult) -> tuple[JobLine, ...]:
    evaluation = result.evaluation
    if evaluation is None:
        return ()
    ends = [
        max((hour + 1 for job, hour, _ in result.nodes if job == at), default=0)
        for at in range(len(question.jobs))
    ]
    return tuple(
        JobLine(name, float(question.work[at]), float(evaluation.work[at]), money(evaluation.by_job[at].total),
                ends[at], int(question.last[at]))
        for at, name in enumerate(question.jobs)
    )  # fmt: skip


def _explain(
    question: ScheduleInput, options: SolveOptions, clock: Clock
) -> tuple[Explanation, tuple[WayOut, ...]]:
    """What is missing, and per kind of remedy the smallest with the cost of the plan that it allows."""
    explanation = explain_schedule(question, replace(options, time_limit_s=clock.for_next_s(WHY_SHARE)))
    if explanation.missing is not None and not explanation.missing.any():
        raise AssertionError("schedule: the solver says infeasible, yet all work can be done: its fault")
    ways = []
    for kind in dict.fromkeys(remedy.kind for remedy in explanation.remedies):
        remedy = next(item for item in explanation.remedies if item.kind == kind)
        left = replace(options, gap=max(options.gap, 1e-3), time_limit_s=clock.for_next_s())
        solved = solve_schedule(apply_remedy(question, remedy), left)
        ways.append(WayOut(remedy, None if math.isnan(solved.usd) else solved.usd))
    return explanation, tuple(ways)
