"""Everything one planning run works on, in four parts: what is asked, when, the market, and the risk of spot.

A function takes the parts that it needs; candidates carry the run that they belong to.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.market.costs import CostModel
from planner.market.offers import places_of, preference_rank
from planner.records import record

if TYPE_CHECKING:
    import numpy.typing as npt

    from catalogs.model import Catalog
    from catalogs.tariffs import InterruptionPrior, Tariffs, TierCurve
    from planner.calibration.correction import Correction
    from planner.candidates.assumptions import Assumptions
    from planner.candidates.job_spec import Job
    from planner.inputs.schema import Workload
    from planner.market.offers import OfferSet
    from planner.spot.hazards import HazardModel
    from planner.spot.policy.job import SpotZone
    from planner.spot.pools import Pool

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]


@record(frozen=True)
class OfferRisk:
    """Interruption figures per offer, each of shape `(n_offers,)`; `prior_of_offer` is -1 where nothing interrupts."""

    rate_per_hour: FloatArray
    gang_exponent: FloatArray
    mean_wait_hours: FloatArray
    wait_exponent: FloatArray
    notice_hours: FloatArray
    priors: tuple[InterruptionPrior, ...]
    prior_of_offer: IntArray


@record(frozen=True, eq=False)
class Asked:
    """What must be done: the workload, the job made of it, and the assumptions where it says nothing."""

    workload: Workload
    sha256: str
    job: Job
    assumptions: Assumptions
    calibration: Correction | None = None

    @property
    def restart_hours(self) -> float:
        """Hours from the end of an interruption to training again."""
        given = self.job.restart_hours
        return self.assumptions.restart_time_s / 3600.0 if given is None else given


@record(frozen=True)
class Dates:
    """The moment planned at, the start, and the deadline if there is one."""

    now: datetime
    start: datetime
    deadline: datetime | None

    @property
    def deadline_hours(self) -> float | None:
        """Hours from start to deadline."""
        return None if self.deadline is None else (self.deadline - self.start).total_seconds() / 3600.0


@record(frozen=True, eq=False)
class Market:
    """What can be bought and what it costs `asked`: offers, tariffs, and codes by which offers are compared."""

    catalog: Catalog
    offer_set: OfferSet
    tariffs: Tariffs
    asked: Asked

    @cached_property
    def costs(self) -> CostModel:
        """Prices candidates of this job."""
        share = self.asked.workload.prices.commitment_share
        return CostModel(self.offer_set, self.asked.job, self.tariffs, share)

    @cached_property
    def curves_between(self) -> dict[frozenset[int], tuple[TierCurve, bool]]:
        """Dearest transfer prices within sets of regions (by `region_of_offer`) asked for so far, and if known."""
        return {}

    @cached_property
    def pool_of_offer(self) -> IntArray:
        """Code of (instance type, region, zone) per offer: what interruptions differ in."""
        codes, _ = self.offer_set.offers.distinct_keys("provider", "region", "zone", "instance_type")
        return codes.astype(np.int64)

    @cached_property
    def region_of_offer(self) -> IntArray:
        """Code of (provider, region) per offer."""
        codes, _ = self.offer_set.offers.distinct_keys("provider", "region")
        return codes.astype(np.int64)

    @cached_property
    def is_spot(self) -> npt.NDArray[np.bool_]:
        """Mask of offers that may be interrupted."""
        return self.offer_set.offers.equals("purchase_option", "spot")

    def family_of(self, row: int) -> str:
        """Instance family of an offer."""
        return str(self.offer_set.types["family"][self.offer_set.type_of_offer[row]])

    def vendor_of(self, accelerator: str) -> str:
        """Vendor of an accelerator."""
        table = self.catalog.accelerators
        return str(table.take(table.equals("accelerator", accelerator))["vendor"][0])

    @cached_property
    def id_rank(self) -> IntArray:
        """Rank of each offer for ties: preferred regions first, then its id in lexical order."""
        offers = self.offer_set.offers
        names = ("option_variant", "purchase_option", "instance_type", "zone", "region", "provider")
        wishes = preference_rank(places_of(offers), self.asked.workload.preferences.prefer_regions)
        order = np.lexsort([*(_lexical(offers.coded(name)) for name in names), wishes])
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return rank

    @cached_property
    def option_of_offer(self) -> IntArray:
        """Code of the purchase option per offer; a commitment that is already paid for is an option of its own."""
        codes = self.offer_set.offers.coded("purchase_option").codes.astype(np.int64)
        return codes * 2 + ~np.isnan(self.offer_set.owned_share)

    @cached_property
    def accelerator_of_offer(self) -> IntArray:
        """Code of the accelerator per offer."""
        codes = self.offer_set.types.coded("accelerator").codes.astype(np.int64)
        return np.asarray(codes[self.offer_set.type_of_offer], dtype=np.int64)

    @cached_property
    def provider_of_offer(self) -> IntArray:
        """Code of the provider per offer."""
        return self.offer_set.offers.coded("provider").codes.astype(np.int64)


@record(frozen=True, eq=False)
class SpotRisk:
    """What is known of interruptions. `hazards`: of the user's own records of spot capacity; None without any."""

    offer_set: OfferSet
    tariffs: Tariffs
    hazards: HazardModel | None = None

    @cached_property
    def figures(self) -> OfferRisk:
        """Interruption figures of every offer; only spot is interrupted."""
        return _risk(self.offer_set, self.tariffs)

    def recorded_pool(self, row: int) -> Pool | None:
        """What records say of the spot pool of offer `row`: the user's own if there are any, else the bundled ones."""
        if row not in self._recorded:
            from planner.spot.pools import find_pool, pool_of

            self._recorded[row] = (
                find_pool(*self._spot_place(row))
                if self.hazards is None
                else pool_of(self.hazards, *self._spot_place(row))
            )
        return self._recorded[row]

    def spot_zone(self, row: int) -> SpotZone:
        """The place of spot offer `row` as hazards know it."""
        from planner.spot.pools import spot_zone

        return spot_zone(*self._spot_place(row))

    def _spot_place(self, row: int) -> tuple[str, str, str, str]:
        """Provider, instance type, region and zone."""
        offers = self.offer_set.offers
        return (
            str(offers["provider"][row]),
            str(offers["instance_type"][row]),
            str(offers["region"][row]),
            str(offers["zone"][row]),
        )

    @cached_property
    def _recorded(self) -> dict[int, Pool | None]:
        return {}


@record(frozen=True, eq=False)
class Context:
    """One planning run. Instances are built by `planner.job.answer`; nothing here reads a file."""

    asked: Asked
    dates: Dates
    market: Market
    spot: SpotRisk

    def with_deadline(self, deadline: datetime | None) -> Context:
        """The same run with another deadline; market and risk, and what was worked out of them, are shared."""
        return replace(self, dates=replace(self.dates, deadline=deadline))

    def with_asked(self, asked: Asked, offer_set: OfferSet | None = None) -> Context:
        """The same run with something else asked, which prices depend on, and with other offers if given."""
        offers = self.market.offer_set if offer_set is None else offer_set
        market = replace(self.market, asked=asked, offer_set=offers)
        spot = self.spot if offer_set is None else replace(self.spot, offer_set=offers)
        return replace(self, asked=asked, market=market, spot=spot)

    def with_job(self, **changes: Any) -> Context:
        """The same run with fields of its job changed."""
        return self.with_asked(replace(self.asked, job=replace(self.asked.job, **changes)))


def _lexical(column: object) -> IntArray:
    from catalogs.table import Coded

    assert isinstance(column, Coded)
    order = np.argsort(np.asarray(column.values))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[column.codes]


def _risk(offer_set: OfferSet, tariffs: Tariffs) -> OfferRisk:
    offers, types = offer_set.offers, offer_set.types
    spot = np.flatnonzero(offers.equals("purchase_option", "spot"))
    family = types["family"][offer_set.type_of_offer]
    accelerator = types["accelerator"][offer_set.type_of_offer]
    provider, band = offers["provider"], offers["interruption_band"]
    keys: dict[tuple[str, ...], int] = {}
    prior_of = np.full(offers.n_rows, -1, dtype=np.int64)
    for row in spot.tolist():
        key = (provider[row], family[row], accelerator[row], band[row])
        prior_of[row] = keys.setdefault(key, len(keys))
    priors = tuple(tariffs.interruption_prior(*key) for key in keys)

    def spread(name: str) -> FloatArray:
        values = np.asarray([*(float(getattr(prior, name)) for prior in priors), 0.0], dtype=np.float64)
        return np.asarray(values[prior_of], dtype=np.float64)

    notices = [(rule.notice_s or 0.0) / 3600.0 for rule in offer_set.rules]
    return OfferRisk(
        rate_per_hour=spread("rate_per_hour"),
        gang_exponent=spread("gang_exponent"),
        mean_wait_hours=spread("mean_wait_hours"),
        wait_exponent=spread("wait_exponent"),
        notice_hours=np.where(prior_of >= 0, np.asarray(notices)[offer_set.rule_of_offer], 0.0),
        priors=priors,
        prior_of_offer=prior_of,
    )
