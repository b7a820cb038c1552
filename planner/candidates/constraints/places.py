"""Where may be bought: providers, regions, residency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalogs.tables.regions import regions_in
from planner.candidates.constraints.base import Constraint, offer_fact
from planner.market.offers import match_globs, places_of

if TYPE_CHECKING:
    from planner.candidates.constraints.base import Bools, Case
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Constraints
    from planner.market.offers import OfferSet


class Provider(Constraint):
    """Only some providers."""

    id = "provider"
    words = "provider not in constraints.providers"
    paths = ("constraints.providers",)

    def offers(self, offer_set: OfferSet, limits: Constraints, family: str) -> Bools | None:
        """Offers of other providers."""
        return None if limits.providers is None else ~offer_set.offers.is_in("provider", limits.providers)

    def change(self, case: Case, candidates: Candidates, at: int) -> tuple[str, str]:
        """Allow the candidate's."""
        return offer_fact(case, candidates, at, "provider")


class Region(Constraint):
    """Only some regions."""

    id = "region"
    words = "region not in constraints.regions"
    paths = ("constraints.regions",)

    def offers(self, offer_set: OfferSet, limits: Constraints, family: str) -> Bools | None:
        """Offers elsewhere."""
        return None if limits.regions is None else ~match_globs(places_of(offer_set.offers), limits.regions)

    def change(self, case: Case, candidates: Candidates, at: int) -> tuple[str, str]:
        """Allow the candidate's."""
        return offer_fact(case, candidates, at, "region")


class Residency(Constraint):
    """Only regions of some groups."""

    id = "residency"
    words = "region outside constraints.residency"
    paths = ("constraints.residency",)

    def offers(self, offer_set: OfferSet, limits: Constraints, family: str) -> Bools | None:
        """Offers outside the groups."""
        if limits.residency is None:
            return None
        wanted = {
            f"{provider}/{region}" for group in limits.residency for provider, region in regions_in(group)
        }
        return ~match_globs(places_of(offer_set.offers), tuple(wanted))

    def change(self, case: Case, candidates: Candidates, at: int) -> tuple[str, str]:
        """Allow the candidate's region."""
        return offer_fact(case, candidates, at, "region")
