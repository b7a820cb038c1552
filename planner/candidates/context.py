"""Everything one planning run works on, in four parts: what is asked, when, the market, and the risk of spot.

A function takes the parts that it needs; candidates carry the run that they belong to.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from planner.candidates.carbon import Machines, machines_of
from planner.market.obtainable import largest_requests
from planner.market.starts import Starts, starts_of
from planner.records import record
from planner.spot.evidence import gang_risk

if TYPE_CHECKING:
    from datetime import datetime

    from catalogs.tables.table import Floats, Ints
    from planner.asked.model import Asked, Dates
    from planner.market.model import Market
    from planner.market.offers import OfferSet
    from planner.spot.evidence import GangRisk
    from planner.spot.risk import SpotRisk


@record(frozen=True, eq=False)
class OwnDeadlines:
    """Deadlines of each row of the shapes, as pools of many sizes and paces have, shape `(n_shapes,)`.

    Attributes:
        hours: from the start; the run's own deadline is at least the latest of them.
        later_hours: as of `Context`.
    """

    hours: Floats
    later_hours: Floats


@record(frozen=True, eq=False)
class Context:
    """One planning run. Instances are built by `planner.candidates.prepare`; nothing here reads a file.

    `beside`: machines of each offer that another run asks for at the same time, shape `(n_offers,)`; None: none.
    `later_hours`: work that takes x times as long as predicted has (x - 1) times so many hours more to its deadline,
    as a pool that shares its deadline with another has; less than the work itself takes.
    `own`: deadlines of each row of the shapes, in place of the run's and `later_hours`; None: of none.
    """

    asked: Asked
    dates: Dates
    market: Market
    spot: SpotRisk
    beside: Floats | None = None
    later_hours: float = 0.0
    own: OwnDeadlines | None = None

    @cached_property
    def starts(self) -> Starts:
        """How long each offer's capacity takes to come from the run's start on."""
        return self._alone if self.beside is None else replace(self._alone, beside=self.beside)

    @property
    def _alone(self) -> Starts:
        """The same where nobody else asks."""
        limits, offers, dates = self.asked.workload.constraints, self.market.offer_set, self.dates
        known = (limits.obtainable, limits.waiting, limits.waited)  # beside what the table says
        return offers.once(
            ("starts", dates.start, dates.now, *known),
            lambda: starts_of(
                offers,
                limits.waiting,
                largest_requests(offers, limits.obtainable),
                dates.start,
                limits.waited,
                dates.now,
            ),
        )

    @cached_property
    def power(self) -> Machines:
        """What the machines of each offer draw, and their grids."""
        offers = self.market.offer_set
        return offers.once(
            "power", lambda: machines_of(offers.types, offers.type_of_offer, offers.offers, offers.own_sites)
        )

    def with_deadline(self, deadline: datetime | None, start: datetime | None = None) -> Context:
        """The same run with another deadline; market and risk, and what was worked out of them, are shared.

        Args:
            deadline: when the job must be done.
            start: another start; None keeps the run's.
        """
        other = replace(self, dates=replace(self.dates, deadline=deadline, start=start or self.dates.start))
        if other.dates.start == self.dates.start and "starts" in vars(self):
            vars(other)["starts"] = self.starts
        return other

    def with_asked(self, asked: Asked, offer_set: OfferSet | None = None) -> Context:
        """The same run with something else asked, which prices depend on, and with other offers if given."""
        offers = self.market.offer_set if offer_set is None else offer_set
        market = replace(self.market, asked=asked, offer_set=offers)
        spot = self.spot if offer_set is None else replace(self.spot, offer_set=offers)
        return replace(self, asked=asked, market=market, spot=spot)

    def with_job(self, **changes: Any) -> Context:
        """The same run with fields of its job changed."""
        return self.with_asked(replace(self.asked, job=replace(self.asked.job, **changes)))

    def gang_risk(self, rows: Ints, nodes: Ints, *, once: bool = False) -> GangRisk:
        """Interruptions of `nodes` instances of each offer, arrays of one shape (see `planner.spot.evidence`)."""
        return gang_risk(self.asked, self.market, self.spot, rows, nodes, once=once)
