"""Candidates of all tasks of a pipeline as one `PipelineInput`."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.assumptions import load_assumptions
from planner.candidates.finish import sure_hours
from planner.candidates.grid import build_candidates
from planner.candidates.limits import mark_offers
from planner.candidates.search import estimate_all
from planner.inputs.checks import end_moment
from planner.job.answer import prepare, with_checkpoint
from planner.job.frontier import unlimited
from planner.job.summary import lines_of
from planner.market.pricing import total_usd
from planner.pipelines.moves import GB, Moves, build_moves
from planner.pipelines.question import PipelineInput
from planner.portfolios.candidates import NODE_COUNTS
from planner.records import record
from solvers.pareto import pareto_front

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from catalogs.model import Catalog
    from catalogs.tariffs import Tariffs
    from planner.candidates.context import Context
    from planner.candidates.grid import Candidates
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.pipeline_load import LoadedPipeline
    from planner.inputs.pipeline_schema import PipelineTask
    from planner.job.answer import Options

    Ints = npt.NDArray[np.int64]


@record(frozen=True)
class Way:
    """One way to run a task.

    Attributes:
        number: of its task, to tell ways apart.
        hours: planned: kept with the workload's deadline_confidence; expected_hours: on average.
        cost_usd: expected cost, transfers between tasks apart.
        price_as_of: date of the price; empty for a candidate sized elsewhere.
    """

    task: str
    number: int
    provider: str
    region: str
    zone: str
    instance_type: str
    purchase_option: str
    option_variant: str
    nodes: int
    hours: float
    expected_hours: float
    cost_usd: Decimal
    price_as_of: str

    @property
    def place(self) -> str:
        """`provider/region`."""
        return f"{self.provider}/{self.region}"


@record(frozen=True, eq=False)
class Gathered:
    """The question with what its numbers mean.

    Attributes:
        pipe: the question; candidates carry `Way` as keys.
        moves: tariffs between places.
        sizes_gb: what each edge moves.
        compared: feasible candidates per task before the front of each place was taken.
    """

    pipe: PipelineInput
    moves: Moves
    sizes_gb: tuple[float, ...]
    compared: tuple[int, ...]


def gather(
    loaded: LoadedPipeline, options: Options, catalog: Catalog, tariffs: Tariffs, start: datetime
) -> Gathered:
    """Build the question of a pipeline.

    Args:
        loaded: the file.
        options: flags of `planner optimize` (moment, prices).
        catalog: what can be bought.
        tariffs: transfer prices.
        start: when the first task may start.

    Raises:
        InputError: a workload names something unknown.
    """
    pipeline = loaded.pipeline
    ways: list[Way] = []
    compared: list[int] = []
    for task, workload in zip(pipeline.tasks, loaded.workloads, strict=True):
        if workload is None:
            own = list(_sized(task))
            compared.append(len(own))
        else:
            own, count = _planned(task, workload, options, catalog, start)
            compared.append(count)
        ways += own
    names = [task.name for task in pipeline.tasks]
    reads = [(names.index(part.task), at, float(part.size) / GB)
             for at, task in enumerate(pipeline.tasks) for part in task.reads]  # fmt: skip
    places = tuple(dict.fromkeys(way.place for way in ways))
    moves = build_moves(places, tariffs, load_assumptions({}))
    sizes = tuple(size for *_, size in reads)
    limit = _deadline_hours(pipeline.deadline, start)
    pipe = PipelineInput(
        tasks=tuple(names), keys=tuple(ways), task=_ints([names.index(way.task) for way in ways]),
        place=_ints([places.index(way.place) for way in ways]),
        cost_usd=np.asarray([float(way.cost_usd) for way in ways], dtype=np.float64),
        hours=np.asarray([way.hours for way in ways], dtype=np.float64), group=moves.group,
        source=_ints([source for source, *_ in reads]), target=_ints([target for _, target, _ in reads]),
        move_usd=moves.usd(sizes), move_hours=moves.hours(sizes), deadline_hours=limit,
    )  # fmt: skip
    return Gathered(pipe, moves, sizes, tuple(compared))


def _ints(values: list[int]) -> Ints:
    return np.asarray(values, dtype=np.int64)


def _deadline_hours(deadline: date | timedelta | None, start: datetime) -> float:
    if deadline is None:
        return float("inf")
    length = deadline if isinstance(deadline, timedelta) else end_moment(deadline) - start
    return length.total_seconds() / 3600.0


def _sized(task: PipelineTask) -> Iterator[Way]:
    for number, item in enumerate(task.candidates):
        cost = item.cost_usd
        if cost is None:
            assert item.usd_per_hour is not None
            cost = item.usd_per_hour * item.nodes * Decimal(repr(item.hours))
        yield Way(
            task.name, number, item.provider, item.region, "", item.instance_type, item.purchase_option, "", item.nodes,
            item.hours, item.hours, Decimal(cost), "",
        )  # fmt: skip


def _planned(
    task: PipelineTask, loaded: LoadedWorkload, options: Options, catalog: Catalog, start: datetime
) -> tuple[list[Way], int]:
    """Ways of a workload: the same candidates as `planner optimize`, per region the front of cost and expected hours.

    Deadline and budget of the workload are the pipeline's business. A task that reads from others has its data there:
    what its workload says of the data's place is set aside, its transfer is the edge's.
    """
    own = unlimited(loaded.workload).model_copy(update={"start": start, "earliest_start": None})
    context = prepare(loaded, own, catalog, options)
    limits = own.constraints
    shapes = estimate_all(context, [count for count in NODE_COUNTS if count <= limits.max_nodes])
    context = with_checkpoint(context, shapes)
    if task.reads:
        context = replace(context, job=replace(context.job, data_gb=0.0, read_gb=0.0))
    made = build_candidates(context, mark_offers(context.offer_set, limits, context.job.model.family), shapes)
    feasible = np.flatnonzero(made.bits == 0)
    kept = _fronts(context, made, feasible)
    hours = sure_hours(context, made, kept, limits.deadline_confidence)
    ways = [
        _way(context, made, task.name, int(at), float(sure)) for at, sure in zip(kept, hours, strict=True)
    ]
    return ways, len(feasible)


def _fronts(context: Context, made: Candidates, at: Ints) -> Ints:
    """Per region the candidates that no other one there beats in expected hours and cost."""
    offers = context.offer_set.offers
    region, provider = offers.coded("region"), offers.coded("provider")
    place = provider.codes.astype(np.int64) * (len(region.values) + 1) + region.codes
    kept: list[Ints] = []
    own = place[made.offer[at]]
    for code in np.unique(own).tolist():
        inside = at[own == code]
        kept.append(inside[pareto_front(made.hours[inside], made.cost_usd[inside])])
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)


def _way(context: Context, made: Candidates, task: str, at: int, hours: float) -> Way:
    row = int(made.offer[at])
    offers = context.offer_set.offers
    words = {name: str(offers[name][row]) for name in ("provider", "region", "zone", "instance_type",
                                                       "purchase_option", "option_variant")}  # fmt: skip
    return Way(
        task=task, number=at, **words, nodes=int(made.nodes[at]), hours=hours, expected_hours=float(made.hours[at]),
        cost_usd=total_usd(lines_of(context, made, at)), price_as_of=str(offers["as_of"][row]),
    )  # fmt: skip
