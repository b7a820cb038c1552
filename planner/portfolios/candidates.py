"""Candidates of jobs that are workloads: the same estimate, offers and filters as `planner optimize`.

What does not depend on the job is done once: shapes per (model, training, offers), and everything per (workload, start,
deadline). Candidates that only miss the deadline are kept too, marked late, for the question what would have to give
way.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.candidates.grid import build_candidates
from planner.candidates.search import estimate_all
from planner.job.answer import prepare, with_checkpoint
from planner.market.offers import mark_offers
from planner.market.quota import machine_of
from planner.plan.filters import BIT, FilterReport, count_filters
from planner.portfolios.shared_limits import MICRO, Ints
from planner.portfolios.table import CandidateTable, Way, Ways

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.model import Catalog
    from catalogs.table import Table
    from planner.candidates.context import Context
    from planner.candidates.grid import Candidates
    from planner.inputs.load import LoadedWorkload
    from planner.inputs.portfolio_schema import Portfolio
    from planner.job.answer import Options
    from planner.market.quota import Machine

NODE_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
LOOK_BACK = 16  # rivals compared per candidate; more would find little and is never wrong
_LATE = BIT["deadline"] | BIT["confidence"]


class WorkloadCandidates:
    """Builds candidates of workloads and remembers what they share."""

    def __init__(self, catalog: Catalog, options: Options, portfolio: Portfolio, ways: Ways) -> None:
        """Take what all jobs share.

        Args:
            catalog: what can be bought.
            options: moment and other flags of `optimize`.
            portfolio: its commitments are offered to every job, its quotas tell which candidates compete.
            ways: where the ways to buy are numbered.
        """
        self._catalog, self._options, self._portfolio, self._ways = catalog, options, portfolio, ways
        self._shapes: dict[tuple[str, ...], Table] = {}
        self._quota: dict[tuple[str, ...], Machine] = {}
        self._regions: dict[str, int] = {}
        self.contexts: list[Context] = []

    def build(
        self,
        loaded: LoadedWorkload,
        start: datetime,
        deadline: datetime | timedelta | None,
        origin: datetime,
        delay_usd_per_hour: float,
    ) -> tuple[CandidateTable, FilterReport]:
        """Candidates of one workload that starts at `start`, as job 0, and what was filtered.

        Args:
            loaded: the workload.
            start: when it starts.
            deadline: the job's own deadline (a length counts from `origin`); None: the workload's.
            origin: the portfolio's start.
            delay_usd_per_hour: what an hour until its end counts.
        """
        context = self._context(loaded, start, deadline, origin)
        made = build_candidates(
            context,
            mark_offers(context.offer_set, context.workload.constraints, context.job.model.family),
            self._estimate(context),
        )
        report = count_filters(made.all_bits())
        at = np.flatnonzero((made.bits & ~_LATE) == 0)
        begin = (start - origin).total_seconds() / 3600.0
        return self._table(context, made, at, begin, delay_usd_per_hour), report

    def _context(
        self, loaded: LoadedWorkload, start: datetime, deadline: datetime | timedelta | None, origin: datetime
    ) -> Context:
        workload = loaded.workload
        update: dict[str, Any] = {
            "start": start,
            "earliest_start": None,
            "commitments": self._portfolio.commitments,
        }
        if deadline is not None:
            moment = origin + deadline if isinstance(deadline, timedelta) else deadline
            update["constraints"] = workload.constraints.model_copy(update={"deadline": moment})
        context = prepare(loaded, workload.model_copy(update=update), self._catalog, self._options)
        context = with_checkpoint(context, self._estimate(context))
        self.contexts.append(context)
        return context

    def _estimate(self, context: Context) -> Table:
        """Shapes of all hardware; jobs of the same model and training on the same offers share them."""
        job, workload = context.job, context.workload
        most = workload.constraints.max_nodes
        key = (repr(job.model), repr(job.training), repr(workload.prices), str(most))
        if key not in self._shapes:
            counts = [count for count in NODE_COUNTS if count <= most]
            self._shapes[key] = estimate_all(context, counts)
        return self._shapes[key]

    def _table(
        self, context: Context, made: Candidates, at: Ints, begin: float, delay_usd_per_hour: float
    ) -> CandidateTable:
        rows, nodes = made.offer[at], made.nodes[at]
        offer_rows, inverse = np.unique(rows, return_inverse=True)
        codes = self._ways_of(context, offer_rows)
        owned = np.flatnonzero(~np.isnan(context.offer_set.owned_share))
        pool_of = np.full(context.offer_set.offers.n_rows, -1, dtype=np.int64)
        pool_of[owned] = np.arange(len(owned))
        hours, cost = made.hours[at], made.cost_usd[at]
        late = (made.bits[at] & _LATE) != 0
        limit = context.deadline_hours
        over = np.zeros(len(at)) if limit is None else np.maximum(hours - limit, 0.0)
        # one that only lacks confidence is late by what its interval adds; count it as a quarter of an hour at least
        over = np.where(late, np.maximum(over, 0.25), 0.0)
        paid = np.rint(cost * MICRO).astype(np.int64)
        table = CandidateTable(
            job=np.zeros(len(at), dtype=np.int64), way=codes[inverse], nodes=nodes.astype(np.int64),
            units=np.zeros(len(at), dtype=np.int64), pool=pool_of[rows],
            start_hours=np.full(len(at), begin), hours=hours, cost_micro_usd=paid,
            counted_micro_usd=paid + np.rint(delay_usd_per_hour * (begin + hours) * MICRO).astype(np.int64),
            late_hours=over,
        )  # fmt: skip
        drawn = [table.drawn(each) for each in self._ways.draws(self._portfolio.quota).T]
        region_of_way = np.array(
            [self._regions.setdefault(way.region, len(self._regions)) for way in self._ways.all]
        )
        return table.take(
            _worth_keeping(table, drawn, region_of_way[table.way], timed=len(self._portfolio.windows) > 1)
        )

    def _ways_of(self, context: Context, rows: Ints) -> Ints:
        """Ways of offers, shape `(n_rows,)`."""
        offers = context.offer_set.offers
        names = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
        columns = [offers[name][rows] for name in names]
        codes = np.zeros(len(rows), dtype=np.int64)
        for position, row in enumerate(rows.tolist()):
            provider, region, zone, kind, option, variant = (str(column[position]) for column in columns)
            short = (provider, kind, option)
            if short not in self._quota:
                self._quota[short] = machine_of(context.offer_set, context.tariffs, row)
            machine = self._quota[short]
            called, amounts = tuple(machine.names.items()), tuple(machine.amounts.items())
            way = Way(provider, region, zone, kind, option, variant, called, amounts)
            codes[position] = self._ways.code(way)
        return codes


def _worth_keeping(table: CandidateTable, drawn: Sequence[Ints], region: Ints, *, timed: bool) -> Ints:
    """Drop what another candidate on the same limits at the same time replaces without loss.

    Both stand for one job and start together, so the rival that ends no later touches no window more; it must cost no
    more, count no more, and draw no more of each quota of its region and of the commitment.

    Args:
        table: candidates of one job and start.
        drawn: units that candidates draw of each quota, each of shape `(n_candidates,)`.
        region: code of each candidate's region.
        timed: whether there are windows, so that it matters how long a candidate runs.
    """
    bound = np.zeros(len(table), dtype=np.bool_)
    for use in drawn:
        bound |= use > 0
    # what draws on no quota competes wherever it is
    group = np.where(bound, region + 1, 0) * (int(table.pool.max(initial=-1)) + 2) + table.pool + 1
    nodes = np.where(table.pool >= 0, table.nodes, 0)
    hours = table.hours if timed else np.zeros(len(table))
    units = sum(drawn, start=np.zeros(len(table), dtype=np.int64))
    order = np.lexsort(
        (hours, nodes, units, table.cost_micro_usd, table.counted_micro_usd, table.late_hours, group)
    )
    less = [
        values[order] for values in (table.late_hours, nodes, hours, *(use for use in drawn if use.any()))
    ]
    less += [table.cost_micro_usd[order], table.counted_micro_usd[order]]
    group = group[order]
    kept = np.ones(len(order), dtype=np.bool_)
    for back in range(1, LOOK_BACK + 1):
        no_worse = group[:-back] == group[back:]
        for values in less:
            no_worse &= values[:-back] <= values[back:]
        kept[back:] &= ~no_worse
    return np.sort(order[kept])
