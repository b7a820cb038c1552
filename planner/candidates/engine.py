"""The one engine: whoever asks for candidates of a job asks here, and gets the same sizes, ways, filters and prices.

`build` answers for one deadline. An `Engine` answers for many: what does not depend on the deadline (shapes, prices,
clusters bought in parts) is computed once; limits of time and ways to run in turn are worked out at each.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import distinct_values
from planner.candidates.constraints.registry import BIT
from planner.candidates.finer import FinerShapes
from planner.candidates.grid import build_candidates
from planner.candidates.limits import mark_best, mark_deadline, mark_offers, recorded
from planner.candidates.model import concat_candidates
from planner.candidates.sizes import (
    coarse_node_counts,
    estimate_all,
    estimate_for,
    estimate_hardware,
    hardware_beside_front,
    hardware_of_offer,
    hopeful_hardware,
    unit_node_counts,
    with_checkpoint,
)
from planner.candidates.wanted import Scope, Wanted, value_of
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Bools, Floats, Ints, Table
    from planner.asked.model import Asked
    from planner.candidates.context import Context
    from planner.candidates.model import Candidates
    from planner.candidates.ways.partners import Partners
    from planner.market.model import Market


LISTED = Wanted()
_MICROS_PER_HOUR = 3.6e9


@record(frozen=True, eq=False)
class CandidateSearch:
    """All candidates that a question needs.

    Attributes:
        context: the run they are of: its deadline is the one asked for, its checkpoint is sized.
        offer_bits: filter bits per offer.
        node_counts: sizes looked at for all hardware; `refined_hardware`: hardware looked at in all sizes between.
        wanted: what was asked for.
    """

    context: Context
    candidates: Candidates
    offer_bits: Ints
    node_counts: tuple[int, ...]
    refined_hardware: int
    wanted: Wanted = LISTED


def build(context: Context, wanted: Wanted = LISTED, *, max_nodes: int | None = None) -> CandidateSearch:
    """Build the candidates of a job at its own deadline.

    Args:
        context: the planning run.
        wanted: what the question needs beside the best candidate.
        max_nodes: look at sizes up to this many nodes, default the workload's limit.
    """
    return Engine(context, max_nodes=max_nodes).at(context.dates.deadline, wanted)


class Engine:
    """Candidates of one job at any deadline."""

    def __init__(
        self,
        context: Context,
        *,
        max_nodes: int | None = None,
        sizes: Sequence[int] | None = None,
        shapes: Table | None = None,
        offer_bits: Ints | None = None,
        admitted_only: bool = False,
        among: Bools | None = None,
        finer: FinerShapes | None = None,
    ) -> None:
        """Estimate and price what does not depend on the deadline.

        Args:
            context: the planning run; its deadline is not used.
            max_nodes: look at sizes up to this many nodes, default the workload's limit.
            sizes: look at these numbers of nodes alone.
            shapes: of all hardware at `coarse_node_counts`, where another run of the same job estimated them.
            offer_bits: filter bits per offer, where they are known.
            admitted_only: leave out, uncounted, candidates of offers that a limit removes.
            among: look at these offers alone, shape `(n_offers,)`; no other may keep the limits.
            finer: shapes at sizes between, where another run of the same job asks for them too; taken if of the same.
        """
        limit = max_nodes or context.asked.workload.constraints.max_nodes
        self.counts = coarse_node_counts(limit) if sizes is None else tuple(sizes)
        self._between = () if sizes is not None else _sizes_between(self.counts)
        if finer is None or finer.counts != self._between:
            finer = FinerShapes(context.asked, context.market, self._between)
        self.finer = finer
        self.shapes = estimate_all(context.asked, context.market, self.counts) if shapes is None else shapes
        self.context = with_checkpoint(context.with_deadline(None), self.shapes)
        self.offer_bits = bits_of(context.asked, context.market) if offer_bits is None else offer_bits
        looked_at = self.offer_bits == 0 if admitted_only else among
        self._offers = None if looked_at is None else np.flatnonzero(looked_at)
        self._units = {} if sizes is not None else self._unit_sizes(limit)
        self._steady: dict[tuple[bytes, bool, bool], Candidates] = {}
        self._at_start: dict[datetime, Engine] = {}
        self._limits: dict[str, Any] = {
            "max_nodes": max_nodes, "sizes": sizes, "admitted_only": admitted_only, "among": among,
        }  # fmt: skip
        self._partners: Partners | None = None

    def _unit_sizes(self, limit: int) -> dict[int, tuple[int, ...]]:
        """Whole units of racks between the coarse sizes, by hardware row."""
        wanted = unit_node_counts(self.context.market, limit)
        return {row: tuple(sorted(set(counts) - set(self.counts))) for row, counts in wanted.items()}

    @cached_property
    def coarse(self) -> Candidates:
        """Candidates of one offer each at the sizes looked at for all hardware, and racks in whole units."""
        return concat_candidates(
            [self.priced(self._own_shapes, self._offers), *(self.priced(*one) for one in self.units())]
        )

    @property
    def _own_shapes(self) -> Table:
        """The shapes, only of hardware that is looked at."""
        if self._offers is None or not len(self._offers):
            return self.shapes
        looked_at = np.zeros(self.context.market.offer_set.hardware.n_rows, dtype=np.bool_)
        looked_at[hardware_of_offer(self.context.market)[self._offers]] = True
        return self.shapes.take(looked_at[self.shapes["hardware_row"]])

    def priced(self, shapes: Table, offers: Ints | None = None) -> Candidates:
        """Candidates of one offer each at some shapes."""
        return build_candidates(self.context, self.offer_bits, shapes, offers)

    def units(self) -> list[tuple[Table, Ints]]:
        """Shapes of racks in whole units, with the offers of each rack."""
        context, parts = self.context, []
        hardware = hardware_of_offer(context.market)
        offers = np.arange(len(hardware)) if self._offers is None else self._offers
        for row, counts in self._units.items():
            own = offers[hardware[offers] == row]
            if counts and len(own):
                parts.append(
                    (estimate_hardware(context.asked, context.market, np.asarray([row]), counts), own)
                )
        return parts

    def at_hours(self, hours: float, wanted: Wanted = LISTED) -> CandidateSearch:
        """Candidates at a deadline so many hours after the start (never a microsecond earlier)."""
        return self.at(deadline_after(self.context.dates.start, hours), wanted)

    def at(
        self, deadline: datetime | None, wanted: Wanted = LISTED, *, start: datetime | None = None
    ) -> CandidateSearch:
        """Candidates at a deadline.

        Args:
            deadline: when the job must be done, None: no matter when.
            wanted: what the question needs beside the best candidate.
            start: another start than the run's; only the hours up to the deadline depend on it.
        """
        if start is not None and start != self.context.dates.start and self._depends_on_start:
            return self._starting(start).at(deadline, wanted)
        context = self.context.with_deadline(deadline, start)
        leaders = self.leaders(context, wanted)
        candidates = self.steady(
            leaders, in_parts=wanted.in_parts and not wanted.one_offer, by_deadline=deadline is not None
        )
        candidates = replace(
            candidates, context=context, bits=candidates.bits.copy(), p_meet=candidates.p_meet.copy()
        )
        mark_deadline(candidates, is_recorded=True)
        if not wanted.one_offer and (context.market.is_spot & (self.offer_bits == 0)).any():
            from planner.candidates.ways.build import add_turns
            from planner.candidates.ways.partners import Partners

            if self._partners is None:
                self._partners = Partners(context.market, self.offer_bits)
            candidates = add_turns(candidates, self.offer_bits, wanted, self._partners)
        return CandidateSearch(context, candidates, self.offer_bits, self.counts, len(leaders), wanted)

    @property
    def _depends_on_start(self) -> bool:
        """Whether waits or limits change: an admitted offer has a calendar, or what is owned ends."""
        own_ends = self.context.market.offer_set.own_ends
        return bool(own_ends) or bool((self.context.starts.has_calendar & (self.offer_bits == 0)).any())

    def of_types(self, types: Bools) -> Engine:
        """The same question of the offers of some instance types alone; those of others are not counted.

        Every way to run buys one type, so the ways of these types are the same.

        Args:
            types: which, shape `(n_types,)`.
        """
        elsewhere = ~types[self.context.market.offer_set.type_of_offer]
        bits = np.where(elsewhere, self.offer_bits | BIT["instance_type"], self.offer_bits)
        limits = {**self._limits, "admitted_only": True}
        return Engine(self.context, **limits, shapes=self.shapes, offer_bits=bits, finer=self.finer)

    def _starting(self, start: datetime) -> Engine:
        """The same question asked at another start."""
        if start not in self._at_start:
            context = self.context.with_deadline(None, start)
            self._at_start[start] = Engine(
                context, **self._limits, shapes=self.shapes, offer_bits=self.offer_bits, finer=self.finer
            )
        return self._at_start[start]

    @cached_property
    def recorded(self) -> Candidates:
        """Coarse candidates, those marked that no deadline admits for lack of a record."""
        return recorded(self.coarse)

    @cached_property
    def _ranked(self) -> tuple[Floats, Ints]:
        """What `recorded` candidates are compared by, and their positions from the best on."""
        value = value_of(self.recorded)
        return value, np.argsort(value, kind="stable")

    def leaders(self, context: Context, wanted: Wanted) -> Ints:
        """Hardware that is looked at in all sizes between the coarse ones."""
        if not self.has_sizes_between:
            return np.zeros(0, dtype=np.int64)
        if context.dates.deadline_hours is None:
            coarse = replace(self.coarse, context=context)
        else:
            bits, p_meet = self.recorded.bits.copy(), self.recorded.p_meet.copy()
            coarse = replace(self.recorded, context=context, bits=bits, p_meet=p_meet)
        if wanted.scope is Scope.CARBON_FRONT:
            mark_deadline(coarse, is_recorded=True)
            return hardware_beside_front(coarse, self.offer_bits)
        if context.dates.deadline_hours is not None:
            mark_best(coarse, *self._ranked)
        return hopeful_hardware(coarse, self.offer_bits, wanted.up_to)

    @property
    def has_sizes_between(self) -> bool:
        """Whether there are sizes between those looked at for all hardware."""
        return bool(self._between)

    def between(self, leaders: Ints) -> tuple[Table, Ints]:
        """Shapes of leading hardware at all sizes between the coarse ones, with its admitted offers."""
        context = self.context
        mask = np.zeros(context.market.offer_set.hardware.n_rows, dtype=np.bool_)
        mask[leaders] = True
        offers = np.flatnonzero(mask[hardware_of_offer(context.market)] & (self.offer_bits == 0))
        shapes = self.finer.of(leaders)
        for row, counts in self._units.items():  # those are there already
            shapes = shapes.take(~((shapes["hardware_row"] == row) & np.isin(shapes["nodes"], counts)))
        return shapes, offers

    def steady(self, leaders: Ints, *, in_parts: bool = True, by_deadline: bool = False) -> Candidates:
        """Candidates that do not run in turn, of all coarse sizes and of all sizes of the leaders: built once.

        Args:
            leaders: hardware that is looked at in all sizes between the coarse ones.
            in_parts: clusters bought in parts, too.
            by_deadline: those are marked that no deadline admits for lack of a record.
        """
        key = leaders.tobytes(), in_parts, by_deadline
        if key not in self._steady:
            if by_deadline:
                candidates = self.steady(leaders, in_parts=in_parts)
                candidates = self.recorded if candidates is self.coarse else recorded(candidates)
            elif in_parts:
                candidates = self._with_mixes(self.steady(leaders, in_parts=False))
            elif len(leaders):
                candidates = concat_candidates([self.coarse, self.priced(*self.between(leaders))])
            else:
                candidates = self.coarse
            self._steady[key] = candidates
        return self._steady[key]

    @property
    def is_scarce(self) -> bool:
        """Whether clusters may be bought in parts."""
        return is_scarce(self.context.market, self.offer_bits, self.counts[-1])

    def _with_mixes(self, candidates: Candidates) -> Candidates:
        """Add clusters bought in parts where an admitted offer holds fewer than the largest cluster."""
        if not self.is_scarce:
            return candidates
        from planner.candidates.bought_in_parts import add_mixes

        return add_mixes(candidates, self.offer_bits, self.counts[-1])


def bits_of(asked: Asked, market: Market) -> Ints:
    """Filter bits of what depends on offers and their types alone, shape `(n_offers,)`."""
    return mark_offers(market.offer_set, asked.workload.constraints, asked.job)


def is_scarce(market: Market, offer_bits: Ints, most: int) -> bool:
    """Whether an admitted offer holds fewer than `most` instances: then clusters may be bought in parts, too."""
    scarce = market.offer_set.offers["capacity"] < most  # NaN: unlimited
    return bool((scarce & (offer_bits == 0)).any())


def candidates_of(
    search: CandidateSearch, offers: Ints, sizes: Sequence[int], shapes: Table | None = None
) -> Candidates:
    """Candidates of some offers at given sizes, of one offer each, under the limits of `search`; also excluded ones.

    Args:
        search: the run's candidates.
        offers: rows of offers.
        sizes: numbers of nodes.
        shapes: theirs, where they are known: `known_shape`, if `search` is of the job as it is asked for.
    """
    context = search.candidates.context
    if shapes is None:
        shapes = estimate_for(context.asked, context.market, offers, sizes)
    return build_candidates(context, search.offer_bits, shapes, offers)


def known_shape(search: CandidateSearch, offers: Ints, sizes: Sequence[int]) -> Table | None:
    """The shape of offers of one hardware at one size, where the search has estimated it; else None."""
    shapes, hardware = (
        search.candidates.shapes,
        distinct_values(hardware_of_offer(search.context.market)[offers]),
    )
    if len(hardware) != 1 or len(sizes) != 1:
        return None
    at = np.flatnonzero((shapes["hardware_row"] == hardware[0]) & (shapes["nodes"] == sizes[0]))
    return shapes.take(at[:1]) if len(at) else None


def _sizes_between(counts: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(set(range(1, counts[-1] + 1)) - set(counts)))


def deadline_after(start: datetime, hours: float) -> datetime:
    """The moment `hours` after `start`, rounded up to a microsecond."""
    return start + timedelta(microseconds=math.ceil(hours * _MICROS_PER_HOUR - 1e-4))
