"""Candidates of one task that is a workload: those of `planner optimize`, at the times that the task may have.

What a task costs depends on the time it has: ways to run in turn have a price at each deadline, and all others a time
they keep with `deadline_confidence`. So the engine is asked at some durations, the longest being all the time that the
other tasks can leave, and per region the best way of each is a candidate that takes that long; so is the whole front of
steady capacity. `at` asks again, once a plan says how much time the task has.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import changes
from planner.candidates.engine import Engine
from planner.candidates.finish import sure_hours, unhindered_hours
from planner.candidates.model import IN_TURN
from planner.candidates.plan_parts.bought import Source
from planner.candidates.prepare import prepare, unlimited
from planner.candidates.starts import chance_had
from planner.candidates.wanted import Scope, Wanted
from planner.inputs.bounds import MOST_HOURS
from planner.inputs.checks import end_moment
from planner.pipelines.way import Offered
from solvers.search.pareto import pareto_front

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from catalogs.tables.model import Catalog
    from catalogs.tables.table import Floats, Ints
    from planner.asked.options import Options
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.pipeline_schema import PipelineTask
    from planner.inputs.schema import Workload


DURATIONS = 12  # at which ways to run in turn are asked for, beside those that a plan then gives
_SAME = 1e-9  # of two durations


class WorkloadTask:
    """A task that is a workload.

    Attributes:
        asked: durations asked for so far, hours.
        compared: candidates that keep the longest of them.
        confidence: with which a way's duration is kept.
        has_ends: whether a commitment of the workload ends; last_end_hours: of the pipeline, when the last one does.
        own_from_hours: of the pipeline, from which on the ends of commitments count: no start after it is priced.
    """

    def __init__(
        self,
        task: PipelineTask,
        loaded: LoadedWorkload,
        options: Options,
        catalog: Catalog,
        start: datetime,
        *,
        alone: bool,
        own_from_hours: float = 0.0,
        own_alone: bool = False,
    ) -> None:
        """Prepare the engine.

        Deadline and budget of the workload are the pipeline's business. A task that reads from others has its data
        there: what its workload says of the data's place is set aside, its transfer is the edge's.

        Args:
            task: the task.
            loaded: its workload.
            options: flags of `planner optimize`.
            catalog: what can be bought.
            start: of the pipeline.
            alone: no other task reads of it, nor it of others, so that its place does not matter.
            own_from_hours: as the attribute.
            own_alone: of the machines of commitments that end alone.

        Raises:
            InputError: the workload names something unknown.
        """
        section_view = unlimited(loaded.workload).model_copy(update={"start": start, "earliest_start": None})
        self._given = (task, loaded, options, catalog, start)
        ends = [end_moment(own.expires) for own in section_view.commitments if own.expires is not None]
        self.has_ends, self.own_from_hours = bool(ends), own_from_hours
        self.last_end_hours = max(((end - start).total_seconds() / 3600.0 for end in ends), default=0.0)
        section_view = _counted_from(section_view, own_from_hours)
        context = prepare(loaded, section_view, catalog, options)
        if task.reads:
            context = context.with_job(data_gb=0.0, read_gb=0.0)
        self._name, self._engine = task.name, Engine(context)
        if own_alone:
            offers = context.market.offer_set
            types = np.zeros(offers.types.n_rows, dtype=np.bool_)
            types[offers.type_of_offer[[*offers.own_ends]]] = True
            self._engine = self._engine.of_types(types)
        self._wanted = Wanted(Scope.BEST) if alone else Wanted(Scope.PLACES, one_region=True)
        self._alone = alone
        self._places = (
            np.zeros_like(context.market.region_of_offer) if alone else context.market.region_of_offer
        )
        self.confidence = section_view.constraints.deadline_confidence
        self.asked: list[float] = []
        self.compared = 0
        self._count = 0
        self._place_of: dict[int, str] = {}  # `provider/region` of the market's regions

    def counted_from(self, own_from_hours: float, *, own_alone: bool = False) -> WorkloadTask:
        """The same task where the ends of commitments count from a later hour; `own_alone`: of their machines alone."""
        return WorkloadTask(
            *self._given, alone=self._alone, own_from_hours=own_from_hours, own_alone=own_alone
        )

    @cached_property
    def _free(self) -> CandidateSearch:
        """Candidates where time does not matter."""
        return self._engine.at(None, self._wanted)

    def least_hours(self) -> float:
        """A time that no candidate beats, infinity where there is none.

        Nothing waits or is taken away: spot in several zones, built where a deadline asks for it, waits less.
        """
        candidates = self._free.candidates
        hours = unhindered_hours(candidates, np.flatnonzero(candidates.bits == 0), self.confidence)
        return float(hours.min(initial=np.inf))

    def front(self, least: float, most: float) -> list[Offered]:
        """Candidates for all durations from `least` to `most` hours; infinity: time does not matter."""
        free = self._free
        if np.isinf(most):
            self.compared = int((free.candidates.bits == 0).sum())
            return self._ways(free, self._cheapest(free), None)
        if most < least:
            return self._steady(free, most)
        if self._alone:  # nothing waits for it: it may take all the time there is
            return self.at(most)
        out = self._steady(free, most)
        durations = [most, *np.exp(np.linspace(np.log(most), np.log(least), DURATIONS)).tolist()[1:]]
        for number, hours in enumerate(durations):
            ways = self.at(hours)
            if not ways:  # nor is anything done sooner
                self.asked += durations[number + 1 :]
                break
            out += ways
        return out

    def at(self, hours: float) -> list[Offered]:
        """Per region the best way that is done within `hours`; nothing where that was asked before."""
        if any(abs(hours - other) <= _SAME * hours for other in self.asked):
            return []
        self.asked.append(hours)
        found = self._engine.at_hours(hours, self._wanted)
        self.compared = max(self.compared, int((found.candidates.bits == 0).sum()))
        return self._ways(found, self._cheapest(found), hours)

    def _cheapest(self, search: CandidateSearch) -> Ints:
        """The cheapest candidate of every region."""
        candidates = search.candidates
        at = self._certain(candidates)
        place = self._places[candidates.offer[at]]
        rank = search.context.market.id_rank[candidates.offer[at]]
        order = np.lexsort((rank, candidates.nodes[at], candidates.hours[at], candidates.cost_usd[at], place))
        first = changes(place[order])
        return at[order[first]]

    def _certain(self, candidates: Candidates) -> Ints:
        """Candidates that keep some time with the confidence asked: of others, capacity fails to come too often."""
        at = np.flatnonzero(candidates.bits == 0)
        return at[chance_had(candidates, at) > self.confidence]

    def _steady(self, search: CandidateSearch, most: float) -> list[Offered]:
        """Per region the candidates that no other one there beats in sure hours and cost, none of them on spot."""
        candidates, context = search.candidates, search.context
        at = self._certain(candidates)
        at = at[~context.market.is_spot[candidates.offer[at]]]
        hours = sure_hours(candidates, at, self.confidence)
        at, hours = at[hours <= most], hours[hours <= most]
        kept: list[Ints] = []
        place = self._places[candidates.offer[at]]
        for code in np.flatnonzero(np.bincount(place)).tolist():  # `unique` would import masked arrays
            inside = np.flatnonzero(place == code)
            kept.append(inside[pareto_front(hours[inside], candidates.cost_usd[at[inside]])])
        chosen = np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)
        return self._ways(search, at[chosen], None)

    def _ways(self, search: CandidateSearch, at: Ints, limit: float | None) -> list[Offered]:
        """Candidates `at` as ways that take as long as they surely need, at most `limit`."""
        hours = self._sure(search.candidates, at, limit)
        source = Source(search.context, search.candidates.take(at))
        offers, market = search.context.market.offer_set.offers, search.context.market
        columns = source.made.offer.tolist(), hours.tolist(), source.made.cost_usd.tolist()
        out = []
        for row, (offer, sure, cost) in enumerate(zip(*columns, strict=True)):
            self._count += 1
            region = int(market.region_of_offer[offer])
            if region not in self._place_of:
                self._place_of[region] = f"{offers['provider'][offer]}/{offers['region'][offer]}"
            own_from = self.own_from_hours if self._is_on_ends(source, row) else None
            place = self._place_of[region]
            out.append(
                Offered(self._name, self._count, place, sure, cost, source, row, own_from_hours=own_from)
            )
        return out

    def _is_on_ends(self, source: Source, row: int) -> bool:
        """Whether a part of a candidate is a commitment that ends."""
        ends = source.context.market.offer_set.own_ends
        return self.has_ends and any(part.row in ends for part in source.made.parts(row))

    def _sure(self, candidates: Candidates, at: Ints, limit: float | None) -> Floats:
        hours = np.full(len(at), np.inf if limit is None else limit)
        # what runs in turn changes so as to end by its deadline; all others may end sooner
        other = np.flatnonzero(candidates.kind[at] != IN_TURN)
        hours[other] = np.minimum(hours[other], sure_hours(candidates, at[other], self.confidence))
        return hours


def _counted_from(workload: Workload, hours: float) -> Workload:
    """The workload with the ends of its commitments so many hours earlier: as a start so much later sees them."""
    if hours <= 0:
        return workload
    sooner = timedelta(hours=min(hours, MOST_HOURS))
    moved = tuple(
        owned
        if owned.expires is None
        else owned.model_copy(update={"expires": end_moment(owned.expires) - sooner})
        for owned in workload.commitments
    )
    return workload.model_copy(update={"commitments": moved})


def slack_hours(
    least: Sequence[float],
    source: Sequence[int],
    target: Sequence[int],
    sequence: Sequence[int],
    limit: float,
) -> list[float]:
    """The most time each task can have: the deadline less the least time of the others on its longest path.

    Args:
        least: least hours of each task.
        source: task whose output each edge carries.
        target: task that reads it.
        sequence: the tasks, each after those it reads from.
        limit: the deadline, hours.
    """
    count = len(least)
    before, after = earliest_hours(least, source, target, sequence), [0.0] * count
    for task in reversed(sequence):
        out = [v for u, v in zip(source, target, strict=True) if u == task]
        after[task] = max((after[v] + least[v] for v in out), default=0.0)
    return [limit - before[task] - after[task] for task in range(count)]


def earliest_hours(
    least: Sequence[float], source: Sequence[int], target: Sequence[int], sequence: Sequence[int]
) -> list[float]:
    """Hours before which no task starts: the least time of those on its longest path; arguments as `slack_hours`."""
    before = [0.0] * len(least)
    for task in sequence:
        into = [u for u, v in zip(source, target, strict=True) if v == task]
        before[task] = max((before[u] + least[u] for u in into), default=0.0)
    return before
