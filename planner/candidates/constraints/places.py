"""Where may be bought: providers, regions, residency, partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.model import places_of
from catalogs.tables.partitions import not_asked, partition_of
from catalogs.tables.regions import own_site_in, regions_in
from planner.candidates.constraints.base import Constraint, offer_fact
from planner.market.offers import match_globs
from planner.plan.relaxation import Change

if TYPE_CHECKING:
    from catalogs.tables.table import Bools
    from planner.asked.job import Job
    from planner.candidates.constraints.base import Case
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Constraints
    from planner.market.offers import OfferSet


class Provider(Constraint):
    """Only some providers."""

    id = "provider"
    words = "provider not in constraints.providers"
    paths = ("constraints.providers",)

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Offers of other providers."""
        return None if limits.providers is None else ~offer_set.offers.is_in("provider", limits.providers)

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Allow the candidate's."""
        return offer_fact(self.id, case, candidates, at, "provider")


class Region(Constraint):
    """Only some regions."""

    id = "region"
    words = "region not in constraints.regions"
    paths = ("constraints.regions",)

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Offers elsewhere."""
        return None if limits.regions is None else ~match_globs(places_of(offer_set.offers), limits.regions)

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Allow the candidate's."""
        return offer_fact(self.id, case, candidates, at, "region")


class Residency(Constraint):
    """Only regions of some groups."""

    id = "residency"
    words = "region outside constraints.residency"
    paths = ("constraints.residency",)

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Offers outside the groups."""
        if limits.residency is None:
            return None
        places = places_of(offer_set.offers)
        wanted = {
            f"{provider}/{region}" for group in limits.residency for provider, region in regions_in(group)
        }
        wanted |= {place for place in places.values if own_site_in(place, limits.residency)}
        return ~match_globs(places, tuple(wanted))

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Allow the candidate's region."""
        return offer_fact(self.id, case, candidates, at, "region")


class Partition(Constraint):
    """Places that need an account, or rules on data, of their own, unless the workload names them."""

    id = "partition"
    words = "needs a separate account, access or data rules (constraints.regions or residency must name it)"
    short = "in a separate partition"
    paths = ("constraints.regions", "constraints.residency")
    is_offered = True

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Offers there; what the user owns is asked for, and so is the partition in which the data lie."""
        asked = (limits.regions or (), limits.residency or (), job.location or "")
        removed = offer_set.once(("partition", *asked), lambda: not_asked(offer_set.offers, *asked))
        owned = ~np.isnan(offer_set.owned_share) | offer_set.offers.equals("purchase_option", "owned")
        return np.asarray(removed & ~owned, dtype=np.bool_)

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Name the candidate's region, and have what it needs."""
        offers, row = case.offer_set.offers, int(candidates.offer[at])
        place = f"{offers['provider'][row]}/{offers['region'][row]}"
        partition = partition_of(place)
        needs = partition.needs if partition else "nothing"
        return Change(self.id, "not requested", f"{place}, which needs {needs}")
