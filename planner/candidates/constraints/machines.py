"""What may be bought: purchase options, accelerators, instance types."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.base import Constraint, of_hardware, offer_fact
from planner.market.offers import match_names
from planner.performance.constants import load_software
from planner.plan.relaxation import Change

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Coded
    from planner.asked.job import Job
    from planner.candidates.constraints.base import Case
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Constraints, Filter
    from planner.market.offers import OfferSet

_GIB = {"min_memory_gib": "GiB each", "min_total_memory_gib": "GiB in all"}


class PurchaseOption(Constraint):
    """Only, or never, some ways to buy."""

    id = "purchase_option"
    words = "purchase option excluded"
    paths = ("constraints.purchase_options", "constraints.exclude_purchase_options")

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Offers bought otherwise."""
        if limits.purchase_options is None and not limits.exclude_purchase_options:
            return None
        removed = offer_set.offers.is_in("purchase_option", limits.exclude_purchase_options)
        if limits.purchase_options is not None:
            removed = removed | ~offer_set.offers.is_in("purchase_option", limits.purchase_options)
        return np.asarray(removed, dtype=np.bool_)

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Allow the candidate's."""
        return offer_fact(self.id, case, candidates, at, "purchase_option")


class Accelerator(Constraint):
    """Patterns over accelerators."""

    id = "accelerator"
    words = "accelerator excluded"
    paths = ("constraints.accelerators",)

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Types with another one."""
        return _refused(offer_set, offer_set.types.coded("accelerator"), limits.accelerators)

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Allow the candidate's."""
        kind = int(case.offer_set.type_of_offer[candidates.offer[at]])
        return Change(self.id, "excluded", f"allow {case.offer_set.types['accelerator'][kind]}")


class InstanceType(Constraint):
    """Patterns over instance types."""

    id = "instance_type"
    words = "instance type excluded"
    paths = ("constraints.instance_types",)

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Other types."""
        return _refused(offer_set, offer_set.types.coded("instance_type"), limits.instance_types)

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Allow the candidate's."""
        return offer_fact(self.id, case, candidates, at, "instance_type")


class SoftwareStack(Constraint):
    """What the code runs on; code for CUDA needs a port to anything else."""

    id = "software"
    words = "needs a port to other software (constraints.software)"
    short = "needs a port"
    paths = ("constraints.software",)
    is_offered = True

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Other software; unless it is set, what `allow` names or the user owns is asked for."""
        wanted = limits.software or ("cuda",)
        if "any" in wanted:
            return None
        vendors = offer_set.hardware.coded("vendor")
        other = np.asarray([load_software().get(vendor) not in wanted for vendor in vendors.values])
        removed = of_hardware(offer_set, other[vendors.codes])
        if limits.software is None:
            removed &= ~offer_set.offers.equals("purchase_option", "owned")
            for name, rule in (
                ("accelerator", limits.accelerators),
                ("instance_type", limits.instance_types),
            ):
                named = [pattern for pattern in rule.allow or () if pattern != "*"]
                removed &= ~match_names(offer_set.types.coded(name), named)[offer_set.type_of_offer]
        return np.asarray(removed, dtype=np.bool_)

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Port to the candidate's software."""
        offer_set = case.offer_set
        hardware = offer_set.hardware_of_type[offer_set.type_of_offer[candidates.offer[at]]]
        needed = load_software().get(str(offer_set.hardware["vendor"][hardware]), "any")
        return Change(self.id, ", ".join(case.limits.software or ("cuda",)), f"{needed} (needs a port)")


class LeastMemory(Constraint):
    """Memory per accelerator, and of all accelerators together."""

    id = "min_memory"
    words = "less accelerator memory than constraints ask"
    paths = ("constraints.min_memory_gib", "constraints.min_total_memory_gib")
    unit = "GiB"

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Accelerators with less."""
        if limits.min_memory_gib is None:
            return None
        small = offer_set.types["accelerator_memory_gib"] < limits.min_memory_gib
        return np.asarray(small[offer_set.type_of_offer], dtype=np.bool_)

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Clusters with less in all; workers of a fleet meet it together (`fleet.model.memory`)."""
        least = case.limits.min_total_memory_gib
        if least is None or case.workload.kind == "fleet":
            return None
        types, kind = case.offer_set.types, case.offer_set.type_of_offer[candidates.offer]
        # The memory of a share is the share's own.
        per_node = types["accelerator_memory_gib"] * np.maximum(types["accelerator_count"], 1.0)
        return np.asarray(per_node[kind] * candidates.nodes < least, dtype=np.bool_)

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Memory asked for and the candidate's: of each accelerator, and of all where that is too little, too."""
        asked = _too_little(case, candidates, at)
        before = ", ".join(f"{getattr(case.limits, key):g} {_GIB[key]}" for key in asked)
        return Change(self.id, before, ", ".join(f"{has:g} {_GIB[key]}" for key, has in asked.items()))

    def loosened(
        self, limits: Constraints, case: Case, candidates: Candidates, at: int
    ) -> Constraints | None:
        """With the candidate's memory."""
        return limits.model_copy(update=_too_little(case, candidates, at))


def _too_little(case: Case, candidates: Candidates, at: int) -> dict[str, float]:
    """Limits on memory that a candidate does not reach, by their keys, with what it has, GiB."""
    types, kind = case.offer_set.types, int(case.offer_set.type_of_offer[candidates.offer[at]])
    each = float(types["accelerator_memory_gib"][kind])
    whole = each * max(float(types["accelerator_count"][kind]), 1.0) * float(candidates.nodes[at])
    return {
        key: float(math.floor(has))
        for key, has in zip(_GIB, (each, whole), strict=True)
        if (least := getattr(case.limits, key)) is not None and has < least
    }


def _refused(offer_set: OfferSet, column: Coded, rule: Filter) -> Bools | None:
    if not rule.allow and not rule.deny:
        return None
    removed = np.zeros(len(column.codes), dtype=np.bool_)
    if rule.allow:
        removed |= ~match_names(column, rule.allow)
    if rule.deny:
        removed |= match_names(column, rule.deny)
    return np.asarray(removed[offer_set.type_of_offer], dtype=np.bool_)
