"""`planner pipeline`: from a loaded pipeline to the answer. Every step is a function a notebook can call."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from catalogs.store.load import load_catalog
from catalogs.tariffs import load_tariffs
from planner.asked.assumptions import Beside, beside_by_default
from planner.candidates.plan_parts.spread import spread_of, together
from planner.candidates.prepare import check_ages
from planner.errors import InfeasibleError, PlannerError
from planner.inputs.bounds import MOST_HOURS
from planner.inputs.checks import start_moment
from planner.inputs.pipeline_load import data_set_aside
from planner.market.place_names import unlisted_names
from planner.pipelines.draws import declared_limits, shared_quotas
from planner.pipelines.gather import Gathered, Gatherer
from planner.pipelines.moves import curve_usd
from planner.pipelines.own_ends import keeping_starts, until_starts_hold
from planner.pipelines.priced import priced, worth_pricing
from planner.pipelines.question import TIE_HOURS, latest_ends
from planner.pipelines.robust import choose_robust
from planner.pipelines.shared import in_order, solve_shared
from planner.pipelines.solve import PipelineResult, least_hours, not_found
from planner.pipelines.way import Offered
from planner.plan.model import sources_of
from planner.plan.robust import Robust, Terms
from planner.records import record
from planner.render.presentable import Presentable
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from solvers.search.search import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from catalogs.tables.model import Catalog
    from planner.asked.options import Options
    from planner.inputs.pipeline_load import LoadedPipeline
    from planner.pipelines.question import PipelineInput
    from planner.pipelines.shared import SharedQuota
    from planner.pipelines.way import Way
    from planner.plan.model import CatalogSource

MOST_ROUNDS = 4  # of planning again with the time that tasks then have
_CHEAPER_RATIO = 1e-9
LOCAL_TIME_SHARE = 0.05  # of the time left, at most, for a plan that tells which candidates to price
PLAIN_SHARE = 0.6  # of the time limit, at most, for the plan by expected cost where one with risk follows


@record(frozen=True)
class Stage:
    """A task as planned, hours from the pipeline's start.

    Attributes:
        waits_for: tasks whose shared quota it takes over.
        own_from_hours: where it runs on a commitment that ends, the start for which it is priced, its own or later.
    """

    way: Way
    start_hours: float
    end_hours: float
    critical: bool
    waits_for: tuple[str, ...] = ()
    own_from_hours: float | None = None


@record(frozen=True)
class Transfer:
    """Data between two tasks: `basis` is list, derived where the price is unknown, or empty where nothing moves."""

    source: str
    target: str
    size_gb: float
    cost_usd: Decimal
    hours: float
    basis: str
    price_as_of: str


@record(frozen=True)
class PipelineAnswer(Presentable):
    """The answer.

    Attributes:
        stages: by start; empty where nothing fits.
        deadline_hours: the pipeline's, None without one.
        least_hours: where no choice meets the deadline: the least time known in which all can be done, else None.
        least_hours_bound: no choice ends sooner; None where `least_hours` is.
        over_budget_usd: what the best plan costs above the budget, None when within it (or without one).
        empty_tasks: tasks that no candidate fits at all.
        shared: quotas on which several tasks may draw at once.
        sha256, created_at, sources: of the file, of the run, the price snapshots; gap_asked: where the search may stop.
        compared: feasible candidates per task; durations: at how many durations its ways were asked for.
        between_usd: P10 and P90 of the cost, None where no task is a workload: others have no interval.
        confidence: least probability with which a task that is a workload keeps its planned hours; None without one.
        robust: what the choice with risk costs and gives; None where none was asked for, or nothing fits.
        set_aside: tasks that read from others though their workload says where its data lies: that is not moved.
        notes: on names of candidates that the catalog does not have, and on limits of workloads that do not apply.
        beside: what hours of trainings have beside the steps by default.
    """

    REPORT = "planner.pipelines.report:pipeline_report"
    __repr__ = Presentable.__repr__

    name: str
    start: datetime
    stages: tuple[Stage, ...]
    transfers: tuple[Transfer, ...]
    total_usd: Decimal | None
    deadline_hours: float | None
    budget_usd: Decimal | None
    least_hours: float | None
    least_hours_bound: float | None
    over_budget_usd: Decimal | None
    empty_tasks: tuple[str, ...]
    compared: dict[str, int]
    durations: dict[str, int]
    result: PipelineResult
    seconds: float
    sha256: str = ""
    created_at: str = ""
    sources: tuple[CatalogSource, ...] = ()
    gap_asked: float = 0.0
    shared: tuple[str, ...] = ()
    between_usd: tuple[Decimal, Decimal] | None = None
    confidence: float | None = None
    robust: Robust | None = None
    set_aside: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    beside: Beside = Beside()

    @property
    def end_hours(self) -> float:
        """When the last task ends."""
        return max((stage.end_hours for stage in self.stages), default=math.nan)

    @property
    def undecided(self) -> bool:
        """Whether the search ended without a plan within the limits and without a proof that there is none."""
        if self.over_budget_usd is None or self.budget_usd is None:
            return self.result.status in (Status.NO_SOLUTION, Status.ERROR)
        return self.result.status is Status.FEASIBLE and self.result.bound_usd <= float(self.budget_usd)

    @property
    def feasible(self) -> bool:
        """Whether there is a plan within deadline and budget."""
        return bool(self.stages) and self.over_budget_usd is None


def plan_pipeline(
    loaded: LoadedPipeline,
    options: Options,
    *,
    catalog: Catalog | None = None,
    catalog_dir: Path | None = None,
    robust_level: float | None = None,
) -> PipelineAnswer:
    """Plan a pipeline.

    Args:
        loaded: the file.
        options: flags of `planner optimize`; gap, time limit and backend are those of the MILP.
        catalog: what can be bought; by default the snapshot in `catalog_dir`, or the bundled one.
        catalog_dir: snapshot directory.
        robust_level: level of the worst outcomes that count too, in place of the file's `risk`.

    Raises:
        InputError: a workload names something unknown.
        CatalogError: the catalog cannot be used.
        InfeasibleError: the tasks of a pipeline without a deadline go on for more than a century.
    """
    begin = time.perf_counter()
    catalog = load_catalog(catalog_dir, as_of=options.as_of) if catalog is None else catalog
    start = start_moment(loaded.pipeline.start or options.now)
    gatherer = Gatherer(loaded, options, catalog, load_tariffs(), start)
    terms = Terms.of(loaded.pipeline.risk, robust_level)
    asking = Asking.of(loaded, catalog, options, terms)

    gathered, result = until_starts_hold(
        gatherer, lambda one: _with_time_as_planned(gatherer, one, asking.solve(one), asking), options.gap,
        asking.within_starts, lambda: asking.clock.left_s(asking.share),
    )  # fmt: skip
    result, robust = asking.robust(gathered, result, terms)
    pipe = gathered.pipe
    empty = tuple(name for at, name in enumerate(pipe.tasks) if not (pipe.task == at).any())
    stages, transfers = _told(gathered, result)
    _refuse_a_century(stages)
    total = _total(stages, transfers)
    _check(total, result)
    least = bound = None
    if result.status is Status.INFEASIBLE and not empty and pipe.timed and not result.conflict:
        least, bound = least_hours(pipe, asking.left(1.0))
    budget = loaded.pipeline.budget_usd
    over = total - budget if stages and budget is not None and total > budget else None
    check_ages([(s.way.instance_type, s.way.price_as_of) for s in stages if s.way.price_as_of], options)
    return PipelineAnswer(
        name=loaded.pipeline.name, start=start, stages=stages, transfers=transfers,
        total_usd=total if stages else None, deadline_hours=pipe.deadline_hours if pipe.timed else None,
        budget_usd=budget, least_hours=least, least_hours_bound=bound, over_budget_usd=over, empty_tasks=empty,
        compared=dict(zip(pipe.tasks, gathered.compared, strict=True)),
        durations=dict(zip(pipe.tasks, gathered.durations, strict=True)), result=result,
        seconds=time.perf_counter() - begin, sha256=loaded.sha256,
        created_at=options.now.isoformat(timespec="minutes"), sources=sources_of(catalog), gap_asked=options.gap,
        shared=asking.shared_names(gathered), between_usd=_between(stages, total),
        confidence=min((one.workload.constraints.deadline_confidence for one in loaded.workloads if one is not None),
                       default=None), robust=robust, set_aside=data_set_aside(loaded),
        notes=(*_limits_left_out(loaded), *_unlisted(loaded)), beside=beside_by_default(loaded.workloads),
    )  # fmt: skip


def _total(stages: Sequence[Stage], transfers: Sequence[Transfer]) -> Decimal:
    return sum((stage.way.cost_usd for stage in stages), sum((one.cost_usd for one in transfers), Decimal(0)))


def _limits_left_out(loaded: LoadedPipeline) -> Iterator[str]:
    """Notes that deadlines or budgets of workload files do not apply, where the pipeline has none in their place."""
    pairs = [*zip(loaded.pipeline.tasks, loaded.workloads, strict=True)]
    for key in ("deadline", "budget_usd"):
        if getattr(loaded.pipeline, key) is not None:
            continue
        names = [
            task.name for task, one in pairs if one and getattr(one.workload.constraints, key) is not None
        ]
        if names:
            whose = "its workload's" if len(names) == 1 else "their workloads'"
            yield f"{', '.join(names)}: {whose} {key} does not apply here: state the pipeline's own {key}"


def _unlisted(loaded: LoadedPipeline) -> tuple[str, ...]:
    listed = [item for task in loaded.pipeline.tasks for item in task.candidates]
    return unlisted_names((item.provider, item.instance_type, item.purchase_option) for item in listed)


def _refuse_a_century(stages: Sequence[Stage]) -> None:
    last = max(stages, key=lambda stage: stage.end_hours, default=None)
    if last is not None and last.end_hours > MOST_HOURS:
        raise InfeasibleError(
            f"the cheapest plan ends after {last.end_hours / 8_766:,.0f} years, and plans are limited to a century: "
            "give the pipeline a deadline, or check the amount of work"
        )


def _between(stages: Sequence[Stage], total: Decimal) -> tuple[Decimal, Decimal] | None:
    """P10 and P90 of the cost of all stages and transfers."""
    known = [(way, way.source) for way in (stage.way for stage in stages) if way.source is not None]
    if not known:
        return None
    spreads = [spread_of(source, way.row, way.cost_usd) for way, source in known]
    return together(spreads, total - sum((way.cost_usd for way, _ in known), Decimal(0)))


@record(frozen=True)
class Asking:
    """How the candidates gathered are solved: within the quotas that tasks share, and on one clock.

    Until `share` of the time limit has passed; what comes after may take the rest.
    """

    loaded: LoadedPipeline
    catalog: Catalog
    solving: SolveOptions
    method: Literal["auto", "milp"]
    clock: Clock
    share: float = 1.0

    @classmethod
    def of(cls, loaded: LoadedPipeline, catalog: Catalog, options: Options, terms: Terms | None) -> Asking:
        """With the gap, time limit, backend and method that `options` name; `terms` follow the plain plan."""
        solving = SolveOptions(gap=options.gap, time_limit_s=options.time_limit_s, backend=options.backend)
        share = PLAIN_SHARE if terms is not None and terms.averse else 1.0
        method: Literal["auto", "milp"] = "milp" if options.solver == "milp" else "auto"
        return cls(loaded, catalog, solving, method, Clock(solving.time_limit_s), share)

    def left(self, share: float) -> SolveOptions:
        """The options of the next solve, which ends when this share of the time limit has passed."""
        return replace(self.solving, time_limit_s=self.clock.for_next_s(share))

    def _quotas(self, pipe: PipelineInput) -> tuple[SharedQuota, ...]:
        if not (limits := declared_limits(self.loaded)):
            return ()
        ways = [key.way for key in pipe.keys if isinstance(key, Offered)]
        return shared_quotas(ways, limits, self.catalog.instance_types, load_tariffs())

    def shared_names(self, gathered: Gathered) -> tuple[str, ...]:
        """Place and name of each quota that tasks share."""
        return tuple(quota.name for quota in self._quotas(gathered.pipe))

    def robust(
        self, gathered: Gathered, result: PipelineResult, terms: Terms | None
    ) -> tuple[PipelineResult, Robust | None]:
        """The choice with risk in place of the plain one, where it is asked for and there is a plan."""
        if terms is None or result.course is None:
            return result, None
        pipe = priced(keeping_starts(gathered.pipe))
        chosen, made = choose_robust(pipe, self._quotas(pipe), result, terms, self.left(1.0))
        return (chosen, made) if made.confirmed else (result, made.as_plain())

    def within_starts(self, pipe: PipelineInput) -> PipelineResult | None:
        """The best choice that keeps the latest starts of a question, within the time left; None without any."""
        if self.clock.left_s(self.share) <= 0:
            return None
        return solve_shared(pipe, self._quotas(pipe), self.left(self.share))

    def solve(self, gathered: Gathered) -> PipelineResult:
        """The best choice within the time left."""
        limit_s = self.clock.for_next_s(self.share)
        began, quotas = time.perf_counter(), self._quotas(gathered.pipe)
        if quotas:  # a plan known may exceed them
            pipe, before = priced(gathered.pipe), dict[str, int]()
        else:
            pipe, before = worth_pricing(gathered.pipe, LOCAL_TIME_SHARE * limit_s)
        before_s = time.perf_counter() - began
        result = solve_shared(pipe, quotas, self.left(self.share), method=self.method)
        dropped = {
            name: before.get(name, 0) + result.dropped.get(name, 0) for name in (*before, *result.dropped)
        }
        # by the limit that was asked for, not by what was left of it
        ended = result.status is Status.NO_SOLUTION
        message = not_found(self.solving.time_limit_s) if ended else result.message
        return replace(result, dropped=dropped, seconds=result.seconds + before_s, message=message)


def _with_time_as_planned(
    gatherer: Gatherer, gathered: Gathered, result: PipelineResult, asking: Asking
) -> tuple[Gathered, PipelineResult]:
    """Ask for ways at the time that each task has in the plan, and plan again while that makes it cheaper."""
    for _ in range(MOST_ROUNDS):
        if result.course is None or not gathered.pipe.timed or asking.clock.left_s(asking.share) <= 0:
            break
        pipe = in_order(gathered.pipe, result.orders)
        ends = latest_ends(pipe, result.course, pipe.deadline_hours)
        more = gatherer.more((ends - result.course.start_hours).tolist())
        if more is None:
            break
        other = asking.solve(more)
        if other.course is None:
            break
        cheaper = other.course.cost_usd < result.course.cost_usd * (1.0 - _CHEAPER_RATIO)
        if other.course.cost_usd <= result.course.cost_usd:
            gathered, result = more, other
        if not cheaper:
            break
    return gathered, result


def _told(gathered: Gathered, result: PipelineResult) -> tuple[tuple[Stage, ...], tuple[Transfer, ...]]:
    """The choice in words: tasks by start, and all data between them."""
    if result.course is None:
        return (), ()
    pipe, course = gathered.pipe, result.course
    critical = _critical(gathered, result)
    stages = []
    for at, name in enumerate(pipe.tasks):
        offered = result.chosen[name]
        assert isinstance(offered, Offered)
        way = offered.way
        waits = tuple(pipe.tasks[before] for before, after in result.orders if after == at)
        start, end = float(course.start_hours[at]), float(course.end_hours[at])
        stages.append(Stage(way, start, end, bool(critical[at]), waits, offered.own_from_hours))
    transfers = []
    for edge, (u, v) in enumerate(zip(pipe.source.tolist(), pipe.target.tolist(), strict=True)):
        source, target = stages[u].way, stages[v].way
        size = gathered.sizes_gb[edge]
        if source.place == target.place:
            transfers.append(Transfer(source.task, target.task, size, Decimal(0), 0.0, "", ""))
            continue
        places = gathered.moves.places
        curve, known = gathered.moves.tariff(places.index(source.place), places.index(target.place))
        transfers.append(Transfer(
            source.task, target.task, size, curve_usd(curve, size), float(course.move_hours[edge]),
            "list" if known else "derived", curve.as_of,
        ))  # fmt: skip
    return tuple(sorted(stages, key=lambda stage: (stage.start_hours, stage.way.task))), tuple(transfers)


def _critical(gathered: Gathered, result: PipelineResult) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tasks that, if they took longer, would end the pipeline later."""
    course = result.course
    assert course is not None
    latest = latest_ends(in_order(gathered.pipe, result.orders), course, float(course.end_hours.max()))
    return np.asarray(course.end_hours >= latest - TIE_HOURS)


def _check(total: Decimal, result: PipelineResult) -> None:
    """Hold the plan's exact total against the solver's objective: a difference is a fault, never a plan."""
    if result.course is None:
        return
    if abs(float(total) - result.course.cost_usd) > 1e-9 * max(1.0, abs(float(total))):
        raise PlannerError(f"the pipeline's lines cost {total}, its objective was {result.course.cost_usd}")
