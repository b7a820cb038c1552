"""Candidates of jobs that are workloads: those of `planner optimize`, from the same engine.

What does not depend on the job is computed once: shapes per (model, training, offers), prices per workload, whenever it
starts.
Candidates that only miss the deadline are kept too, marked late, for the question what would have to give way.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints, Table, distinct
from planner.candidates.constraints.registry import BIT
from planner.candidates.engine import Engine
from planner.candidates.filters import FilterReport, count_filters
from planner.candidates.finish import sure_hours
from planner.candidates.model import IN_TURN, MIXED
from planner.candidates.plan_parts.bought import Source
from planner.candidates.prepare import prepare
from planner.candidates.wanted import COVERED_RATIO, Scope, Wanted
from planner.inputs.faults import FaultError
from planner.inputs.resolve import resolve_times
from planner.market.quota import machine_of, quota_units
from planner.portfolios.own_machines import pools_of
from planner.portfolios.shared_limits import MICRO
from planner.portfolios.table import CandidateTable, Way, Ways

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.model import Catalog
    from planner.asked.options import Options
    from planner.candidates.context import Context
    from planner.candidates.model import Candidates
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.portfolio_schema import Portfolio, SharedCommitment
    from planner.inputs.schema import Workload
    from planner.market.model import Market
    from planner.portfolios.sequencing import Later

# candidates of a job and start that others replace at less expected cost, kept where risk counts
MOST_FOR_RISK = 300
LOOK_BACK = 16  # rivals compared per candidate; more would find little and is never wrong
MOST_ENGINES = 12  # kept at once: each holds some ten thousand priced candidates
_LATE = BIT["deadline"] | BIT["confidence"]
_SOME = 0.25  # hours by which candidates count as late, at least, until it matters how late they are
_LEAST = 0.01  # hours: how late a deadline is stated to
# on-demand serves as cheaply as such spot does, but it may be on-demand that the jobs lack; ends are limits of all jobs
_SHARED = _LATE | BIT["no_discount"] | BIT["ended"]


@dataclass(frozen=True, eq=False)
class Built:
    """Candidates of one workload and start.

    Attributes:
        table: the candidates, as job 0.
        report: what was filtered.
        whole_usd: no candidate of at most this cost is missing, of those that `optimize` searches.
    """

    table: CandidateTable
    report: FilterReport
    whole_usd: float


class WorkloadCandidates:
    """Builds candidates of workloads and remembers what they share.

    Attributes:
        sources: where candidates are described in full.
        for_risk: keep candidates too that others replace at less expected cost: they may be surer.
        times_late: work out by how much later a deadline late candidates would keep with the confidence asked, instead
            of only that they are late.
    """

    def __init__(
        self,
        catalog: Catalog,
        options: Options,
        portfolio: Portfolio,
        ways: Ways,
        shared_commitments: tuple[SharedCommitment, ...],
    ) -> None:
        """Take what all jobs share.

        Args:
            catalog: what can be bought.
            options: moment and other flags of `optimize`.
            portfolio: its commitments are offered to every job, its quotas tell which candidates compete.
            ways: where the ways to buy are numbered.
            shared_commitments: machines of the workloads' files, which jobs share too.
        """
        self._own = shared_commitments
        self._catalog, self._options, self._portfolio, self._ways = catalog, options, portfolio, ways
        self._shapes: dict[tuple[str, ...], Table] = {}
        self._quota: dict[
            tuple[str, ...], tuple[tuple[tuple[str, str], ...], tuple[tuple[str, float], ...]]
        ] = {}  # names and amounts of a `Way`
        self._regions: dict[str, int] = {}
        self._region: list[int] = []  # of the first ways
        self._engines: OrderedDict[tuple[str, date], Engine] = OrderedDict()
        self._narrowed: WeakKeyDictionary[Engine, Engine] = WeakKeyDictionary()  # to scarce types
        self._codes: dict[int, Ints] = {}  # of the ways of an offer set that a source keeps, -1 not asked yet
        self._pools: dict[int, Ints] = {}  # of the offers of an offer set that a source keeps
        self._drawing: dict[tuple[object, ...], Bools] = {}  # by such an offer set and what is scarce
        self.sources: list[Source] = []
        self.for_risk = False
        self.times_late = False

    @property
    def contexts(self) -> list[Context]:
        """Runs of the workloads so far."""
        return [source.context for source in self.sources]

    def build(
        self,
        loaded: LoadedWorkload,
        start: datetime,
        deadline: datetime | timedelta | None,
        origin: datetime,
        delay_usd_per_hour: float,
        up_to_usd: float = -np.inf,
        *,
        scarce: Later | None = None,
    ) -> Built:
        """Candidates of one workload that starts at `start`.

        Args:
            loaded: the workload.
            start: when it starts.
            deadline: the job's own deadline (a length counts from `origin`); None: the workload's.
            origin: the portfolio's start.
            delay_usd_per_hour: what an hour until its end counts.
            up_to_usd: every candidate of at most this cost is needed, beside those that `optimize` works out.
            scarce: only candidates in time of instance types that draw on what is scarce are needed; None: all.
        """
        workload = self._workload(loaded, start, deadline, origin)
        try:
            times = resolve_times(workload, self._options.now)
        except FaultError as error:
            raise loaded.error(error.faults) from None
        engine = self._engine(loaded, workload, times.start, scarce)
        wanted = Wanted(Scope.SHOWN, up_to=up_to_usd)
        found = engine.at(times.deadline, wanted, start=times.start)
        candidates = found.candidates
        report = count_filters(candidates.all_bits())
        allowed = _SHARED if scarce is None else _SHARED & ~_LATE
        at = np.flatnonzero((candidates.bits & ~allowed) == 0)
        late = self._late_hours(candidates, at)
        at, late = at[np.isfinite(late)], late[np.isfinite(late)]
        begin = (start - origin).total_seconds() / 3600.0
        table = self._table(found.context, candidates, at, late, begin, delay_usd_per_hour)
        kept = self._worth_keeping(table)
        source = Source(found.context, candidates.take(at[kept]))
        self.sources.append(source)
        number = np.full(len(kept), len(self.sources) - 1, dtype=np.int64)
        table = table.take(kept).with_source(number, np.arange(len(kept)))
        in_time = candidates.cost_usd[candidates.bits == 0]
        least = float(in_time.min()) if len(in_time) else np.inf
        return Built(table, report, max(least, up_to_usd) * COVERED_RATIO)

    def _workload(
        self, loaded: LoadedWorkload, start: datetime, deadline: datetime | timedelta | None, origin: datetime
    ) -> Workload:
        """The workload as a job of the portfolio."""
        workload = loaded.workload
        # jobs are chosen by cost and delay together, so candidates are compared by cost
        update: dict[str, Any] = {
            "start": start,
            "earliest_start": None,
            "commitments": self._portfolio.commitments,
            "preferences": workload.preferences.model_copy(update={"objective": "cost"}),
        }
        if deadline is not None:
            moment = origin + deadline if isinstance(deadline, timedelta) else deadline
            update["constraints"] = workload.constraints.model_copy(update={"deadline": moment})
        return workload.model_copy(update=update)

    def _engine(
        self, loaded: LoadedWorkload, workload: Workload, start: datetime, scarce: Later | None = None
    ) -> Engine:
        """The engine of a workload file and the day it starts, by which prices to expect move.

        Jobs of the same model and training on the same offers share shapes.
        """
        if scarce is not None:
            return self._narrow(self._engine(loaded, workload, start), scarce)
        key = loaded.sha256, start.date()
        if key in self._engines:
            self._engines.move_to_end(key)
            return self._engines[key]
        context = prepare(loaded, workload, self._catalog, self._options)
        job = context.asked.job
        most = str(workload.constraints.max_nodes)
        shared = (repr(job.model), repr(job.training), repr(workload.prices), most)
        engine = Engine(context, shapes=self._shapes.get(shared))
        self._shapes[shared] = engine.shapes
        self._engines[key] = engine
        if len(self._engines) > MOST_ENGINES:
            self._engines.popitem(last=False)
        return engine

    def _narrow(self, engine: Engine, scarce: Later) -> Engine:
        """The engine of the instance types that draw on what is scarce."""
        if engine not in self._narrowed:
            self._narrowed[engine] = engine.of_types(self._scarce_types(engine.context.market, scarce))
        return self._narrowed[engine]

    def _scarce_types(self, market: Market, scarce: Later) -> Bools:
        """Whether offers of each instance type draw on what is scarce, shape `(n_types,)`."""
        offer_set = market.offer_set
        key = id(offer_set), scarce.pools, scarce.quotas
        if key not in self._drawing:
            pool = self._pools_of(market)
            drawing = np.isin(pool, scarce.pools) & (pool >= 0)
            for number in scarce.quotas:
                drawing |= quota_units(offer_set, market.tariffs, self._portfolio.quota[number]) > 0
            types = np.zeros(offer_set.types.n_rows, dtype=np.bool_)
            types[offer_set.type_of_offer[drawing]] = True
            self._drawing[key] = types
        return self._drawing[key]

    def _late_hours(self, candidates: Candidates, at: Ints) -> Floats:
        """Hours by which the deadline must be later for each of the candidates `at`; 0: none."""
        context = candidates.context
        late, limit = (candidates.bits[at] & _LATE) != 0, context.dates.deadline_hours
        out = np.zeros(len(at))
        if limit is None or not late.any():
            return out
        if self.times_late:
            level = context.asked.workload.constraints.deadline_confidence
            out[late] = np.maximum(sure_hours(candidates, at[late], level) - limit, _LEAST)
        else:
            out[late] = np.maximum(candidates.hours[at[late]] - limit, _SOME)
        return out

    def _table(
        self,
        context: Context,
        candidates: Candidates,
        at: Ints,
        late_hours: Floats,
        begin: float,
        delay_usd_per_hour: float,
    ) -> CandidateTable:
        offer, nodes = _purchases(candidates, at)
        bought = offer >= 0
        offer_rows, inverse = distinct(offer[bought])[::2]
        way = np.full(offer.shape, -1, dtype=np.int64)
        way[bought] = self._ways_of(context.market, offer_rows)[inverse]
        pool_of = self._pools_of(context.market)
        hours, cost = candidates.hours[at], candidates.cost_usd[at]
        paid = np.rint(cost * MICRO).astype(np.int64)
        return CandidateTable(
            job=np.zeros(len(at), dtype=np.int64), way=way, nodes=np.where(bought, nodes, 0), units=np.zeros_like(way),
            pool=np.where(bought, pool_of[offer], -1), together=candidates.kind[at] == MIXED,
            start_hours=np.full(len(at), begin), hours=hours, cost_micro_usd=paid,
            counted_micro_usd=paid + np.rint(delay_usd_per_hour * (begin + hours) * MICRO).astype(np.int64),
            late_hours=late_hours, source=np.full(len(at), -1), row=np.full(len(at), -1),
        )  # fmt: skip

    def _pools_of(self, market: Market) -> Ints:
        """The pool that each offer draws on, -1 none."""
        key = id(market.offer_set)
        if key not in self._pools:
            self._pools[key] = pools_of(market.offer_set, self._own, len(self._portfolio.commitments))
        return self._pools[key]

    def _ways_of(self, market: Market, rows: Ints) -> Ints:
        """Ways of offers, shape `(n_rows,)`."""
        offers = market.offer_set.offers
        known = self._codes.setdefault(id(market.offer_set), np.full(offers.n_rows, -1))
        names = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
        columns = [offers[name] for name in names]
        for row in rows[known[rows] < 0].tolist():
            provider, region, zone, kind, option, variant = [str(column[row]) for column in columns]
            short = (provider, kind, option)
            if short not in self._quota:
                machine = machine_of(market.offer_set, market.tariffs, row)
                self._quota[short] = tuple(machine.names.items()), tuple(machine.amounts.items())
            way = Way(provider, region, zone, kind, option, variant, *self._quota[short])
            known[row] = self._ways.code(way)
        return known[rows]

    def _worth_keeping(self, table: CandidateTable) -> Ints:
        """Candidates that no other on the same limits at the same time replaces without loss."""
        draws = [table.part_draws(each) for each in self._ways.draws(self._portfolio.quota).T]
        new = self._ways.all[len(self._region) :]
        self._region += [self._regions.setdefault(way.region, len(self._regions)) for way in new]
        region = np.array(self._region)
        timed = len(self._portfolio.windows) > 1 or any(own.expires for own in self._portfolio.commitments)
        kept = _worth_keeping(table, draws, region[table.way], timed=timed)
        if not self.for_risk:
            return kept
        in_time = np.flatnonzero(table.late_hours <= 0)
        cheapest = in_time[np.argsort(table.counted_micro_usd[in_time], kind="stable")[:MOST_FOR_RISK]]
        return np.union1d(kept, cheapest)


def _purchases(candidates: Candidates, at: Ints) -> tuple[Ints, Ints]:
    """Offer (-1 none) and instances of each part of the candidates `at`, each of shape `(n, most_parts)`."""
    tables = [table for table in (candidates.mixes, candidates.turns) if table is not None]
    width = max([1, *(table.offer.shape[1] for table in tables)])
    offer = np.full((len(at), width), -1, dtype=np.int64)
    nodes = np.zeros((len(at), width), dtype=np.int64)
    offer[:, 0], nodes[:, 0] = candidates.offer[at], candidates.nodes[at]
    for kind, table in ((MIXED, candidates.mixes), (IN_TURN, candidates.turns)):
        mine = np.flatnonzero(candidates.kind[at] == kind)
        if table is None or not len(mine):
            continue
        own, some = candidates.detail[at[mine]], slice(0, table.offer.shape[1])
        offer[mine, some] = table.offer[own]
        nodes[mine, some] = table.nodes[own] if kind == MIXED else candidates.nodes[at[mine], None]  # type: ignore[union-attr]
    return offer, nodes


def _worth_keeping(table: CandidateTable, draws: Sequence[Floats], region: Ints, *, timed: bool) -> Ints:
    """Drop what another candidate on the same limits at the same time replaces without loss.

    Both stand for one job and start together, so the rival that ends no later touches no window more; it must cost no
    more, count no more, and draw no more of each quota of its regions and of the commitments.

    Args:
        table: candidates of one job and start.
        draws: units that each part draws of each quota, each of shape `(n_candidates, most_parts)`.
        region: code of each part's region, of the same shape.
        timed: whether there are windows or commitments expire, so that it matters how long a candidate runs.
    """
    bound = np.zeros(table.way.shape, dtype=np.bool_)
    for use in draws:
        bound |= use > 0
    # what draws on no quota competes wherever it is
    group = table.together.astype(np.int64)
    for column in (*np.where(bound, region + 1, 0).T, *(table.pool.T + 1)):
        group = distinct(group * (int(column.max(initial=0)) + 1) + column)[2]
    nodes = np.where(table.pool >= 0, table.nodes, 0)
    hours = table.hours if timed else np.zeros(len(table))
    less = [table.late_hours, table.counted_micro_usd, table.cost_micro_usd]
    less += [column for use in (*draws, nodes) for column in use.T if column.any()] + [hours]
    order = np.lexsort((*reversed(less), group))
    less, group = [values[order] for values in less], group[order]
    kept = np.ones(len(order), dtype=np.bool_)
    for back in range(1, LOOK_BACK + 1):
        no_worse = group[:-back] == group[back:]
        for values in less:
            no_worse &= values[:-back] <= values[back:]
        kept[back:] &= ~no_worse
    return np.sort(order[kept])
