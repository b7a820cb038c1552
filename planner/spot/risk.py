"""Interruption figures of every offer, and what records say of its pool."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints, distinct
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tariffs import InterruptionPrior, Tariffs
    from planner.market.offers import OfferSet
    from planner.spot.distribution import SpotPool
    from planner.spot.hazards import HazardModel, HazardTable
    from planner.spot.policy.job import SpotZone
    from planner.spot.pools import Pool

    _Fields = tuple[SpotPool, Ints, tuple[str, ...], Floats]


@record(frozen=True)
class OfferRisk:
    """Interruption figures per offer, each of shape `(n_offers,)`; `prior_of_offer` is -1 where nothing interrupts."""

    rate_per_hour: Floats
    gang_exponent: Floats
    mean_wait_hours: Floats
    wait_exponent: Floats
    notice_hours: Floats
    priors: tuple[InterruptionPrior, ...]
    prior_of_offer: Ints

    @cached_property
    def is_recorded(self) -> Bools:
        """Whether a recorded family is behind each of `priors`; a last entry, False, for what nothing interrupts."""
        return np.asarray([*(prior.basis == "measured" for prior in self.priors), False], dtype=np.bool_)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """What each of `priors` rests on."""
        return tuple(f"{prior.basis}: {prior.source} ({prior.as_of})" for prior in self.priors)


@record(frozen=True, eq=False)
class SpotRisk:
    """What is known of interruptions. `hazards`: of the user's own records of spot capacity; None without any."""

    offer_set: OfferSet
    tariffs: Tariffs
    hazards: HazardModel | None = None

    @cached_property
    def figures(self) -> OfferRisk:
        """Interruption figures of every offer; only spot is interrupted."""
        return self.offer_set.once(("risk", self.tariffs), lambda: _risk(self.offer_set, self.tariffs))

    def alike(self, pool_of_offer: Ints) -> Ints:
        """Code of what is known of each offer's interruptions: equal for offers of one pool and one line of the table.

        Args:
            pool_of_offer: code of the pool of each offer, shape `(n_offers,)`.
        """

        def codes() -> Ints:
            prior = self.figures.prior_of_offer + 1
            return distinct(pool_of_offer * (int(prior.max(initial=0)) + 1) + prior)[2]

        return self.offer_set.once(("alike", self.tariffs), codes)

    def recorded_pool(self, row: int) -> Pool | None:
        """What records say of the spot pool of offer `row`: the user's own if there are any, else the bundled ones."""
        if row not in self._recorded:
            from planner.spot.pools import find_pool, pool_of

            place, each = self._spot_place(row), self._accelerators(row)
            self._recorded[row] = (
                find_pool(*place, each) if self._model is None else pool_of(self._model, *place, each)
            )
        return self._recorded[row]

    def spot_zone(self, row: int) -> SpotZone:
        """The place of spot offer `row` as hazards know it."""
        from planner.spot.pools import spot_zone

        return spot_zone(*self._spot_place(row), self._accelerators(row))

    def own_table(self, row: int, nodes: int) -> HazardTable | None:
        """Hazards by age of `nodes` instances of spot offer `row` where the user's own records say them, else None."""
        if self._model is None:
            return None
        table = self._model.table_for(replace(self.spot_zone(row), gang=nodes))
        return table if table.of_family else None

    def _accelerators(self, row: int) -> float:
        """Accelerators of one instance of offer `row`."""
        return float(self.offer_set.types["accelerator_count"][self.offer_set.type_of_offer[row]])

    @cached_property
    def _model(self) -> HazardModel | None:
        """The user's own hazards, with the sizes of all instance types of the catalog."""
        if self.hazards is None:
            return None
        types = self.offer_set.types
        sizes = zip(types["instance_type"].tolist(), types["accelerator_count"].tolist(), strict=True)
        return self.hazards.with_accelerators({str(kind): round(count) for kind, count in sizes})

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
    def gangs(self) -> dict[tuple[object, ...], list[tuple[Ints, _Fields]]]:
        """Sets of gangs asked for last, ascending, with the fields of `GangRisk` of each, by what decides them."""
        return self._known("gangs")

    @cached_property
    def _recorded(self) -> dict[int, Pool | None]:
        return self._known("recorded")

    def _known(self, what: str) -> dict[Any, Any]:
        """Answers of one kind, put in as they are asked for: of public records, by all questions about these offers."""
        return {} if self.hazards is not None else self.offer_set.once((what, self.tariffs), dict)


def _risk(offer_set: OfferSet, tariffs: Tariffs) -> OfferRisk:
    offers, types = offer_set.offers, offer_set.types
    spot = np.flatnonzero(offers.equals("purchase_option", "spot"))
    family, accelerator = (
        types.coded(name).codes[offer_set.type_of_offer] for name in ("family", "accelerator")
    )
    provider, band = (offers.coded(name).codes for name in ("provider", "interruption_band"))
    joint = np.zeros(len(spot), dtype=np.int64)
    for codes in (provider, family, accelerator, band):
        joint = joint * (int(codes.max(initial=0)) + 2) + codes[spot] + 1
    _, first, own = distinct(joint)
    order = np.argsort(first, kind="stable")  # in the order of the offers
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    prior_of = np.full(offers.n_rows, -1, dtype=np.int64)
    prior_of[spot] = rank[own]
    lines = spot[first[order]]
    keys = zip(
        offers["provider"][lines], types["family"][offer_set.type_of_offer[lines]],
        types["accelerator"][offer_set.type_of_offer[lines]], offers["interruption_band"][lines], strict=True,
    )  # fmt: skip
    priors = tuple(tariffs.interruption_prior(*key) for key in keys)

    def spread(name: str) -> Floats:
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
