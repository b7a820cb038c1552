"""Facts of machines, prices and models that remove candidates; no relaxation moves most of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.offers.flags import admit_offers
from planner.candidates.constraints.base import Constraint, of_hardware
from planner.market.offers import match_names, unit_of_offer
from planner.market.starts import ALREADY_OWNED
from planner.performance.evidence import load_evidence
from planner.plan.relaxation import Change

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Ints
    from planner.asked.job import Job
    from planner.candidates.constraints.base import Case
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Constraints
    from planner.market.offers import OfferSet


class PriceRefused(Constraint):
    """Prices that no plan may use."""

    id = "price_refused"
    words = "the price has a refusing flag (`--allow-flagged` allows it)"
    paths = ("constraints.allow_flagged",)
    is_fact = True

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Flagged, negative or unknown prices; a retired machine that the workload names is admitted."""
        offers, flagged = offer_set.offers, limits.allow_flagged
        admitted = offer_set.once(
            ("admitted", flagged), lambda: admit_offers(offers, allow_flagged=flagged).mask
        )
        named = [name for name in limits.instance_types.allow or () if not set("*?[") & set(name)]
        if named:
            sold_before = offer_set.once(
                "sold_before",
                lambda: admit_offers(offers, allow_flagged=False, tolerated=frozenset({"retired"})).mask,
            )
            admitted = admitted | (sold_before & match_names(offers.coded("instance_type"), named))
        return ~admitted | ~(offer_set.usd_per_hour >= 0)


class FirmPrice(Constraint):
    """Prices that may change until the run starts, where only firm ones are asked for."""

    id = "firm_price"
    words = "the price is not firm until the run starts (preferences.prices)"
    paths = ("preferences.prices",)

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Spot, of whatever provider."""
        return offer_set.offers.equals("purchase_option", "spot") if offer_set.firm_only else None


class DerivedPrice(Constraint):
    """Spot that nobody quoted: a published ratio times a list price, or the cap of one."""

    id = "derived_price"
    words = "the spot price is derived from a ratio, never quoted (constraints.allow_derived)"
    paths = ("constraints.allow_derived",)
    is_offered = True

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Spot without a quote of its own."""
        if limits.allow_derived:
            return None
        offers = offer_set.offers
        return np.asarray(offers.equals("purchase_option", "spot") & offers.equals("basis", "derived"))

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Allow such prices, or have one quoted."""
        return Change(self.id, "excluded", "a quote (catalog refresh), or constraints.allow_derived")


class InferenceOnly(Constraint):
    """Accelerators that cannot train."""

    id = "inference_only"
    words = "the accelerator cannot train"
    is_fact = True
    is_of_training = True
    reasons = ("not_trainable",)

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """By the accelerator table."""
        return of_hardware(offer_set, ~np.asarray(offer_set.hardware["trainable"], dtype=np.bool_))


class UnknownPeak(Constraint):
    """Accelerators of unknown speed or memory."""

    id = "unknown_peak"
    words = "no sourced peak for this accelerator: listed, never a candidate"
    is_fact = True
    reasons = ("unknown_memory",)

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """No peak at 16 or 32 bits."""
        table = offer_set.hardware
        peak = np.fmax(table["fp16_tflops"], np.fmax(table["bf16_tflops"], table["fp32_tflops"]))
        return of_hardware(offer_set, np.isnan(peak))


class Unmeasured(Constraint):
    """Accelerators whose software nobody measured on this kind of model."""

    id = "unmeasured"
    words = "no measured run of this kind of model on the vendor's software (constraints.allow_unmeasured)"
    paths = ("constraints.allow_unmeasured",)

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """By evidence.csv."""
        if limits.allow_unmeasured:
            return None
        vendors = offer_set.hardware.coded("vendor")
        known = np.asarray([(vendor, job.model.family) in load_evidence() for vendor in vendors.values])
        return of_hardware(offer_set, ~known[vendors.codes])


class Precision(Constraint):
    """Accelerators that cannot compute in the precision asked."""

    id = "precision"
    words = "the accelerator does not support the required precision"
    is_fact = True
    reasons = ("no_peak_for_precision",)


class Fractional(Constraint):
    """Parts of an accelerator."""

    id = "fractional"
    words = "a fraction of an accelerator (vGPU)"
    paths = ("constraints.include_fractional",)

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Types with less than one."""
        if limits.include_fractional:
            return None
        return np.asarray((offer_set.types["accelerator_count"] < 1)[offer_set.type_of_offer], dtype=np.bool_)


class Arm64(Constraint):
    """Hosts with arm64 processors."""

    id = "arm64"
    words = "arm64 host (set constraints.include_arm64)"
    paths = ("constraints.include_arm64",)

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """By the type's architecture; what the user owns, or names and is sold with no other host, is asked for."""
        if limits.include_arm64:
            return None
        arm = offer_set.types.equals("arch", "arm64")
        own = offer_set.offers.equals("purchase_option", "owned")
        own |= offer_set.offers.equals("option_variant", ALREADY_OWNED)
        removed = arm[offer_set.type_of_offer] & ~own
        for name, rule in (("accelerator", limits.accelerators), ("instance_type", limits.instance_types)):
            for pattern in rule.allow or ():
                named = match_names(offer_set.types.coded(name), [pattern])
                if not (named & ~arm).any():
                    removed &= ~named[offer_set.type_of_offer]
        return np.asarray(removed, dtype=np.bool_)


class Memory(Constraint):
    """The model does not fit."""

    id = "memory"
    words = "the model does not fit in accelerator memory with any layout"
    short = "short of memory"
    is_fact = True
    reasons = ("out_of_memory",)


class NoLayout(Constraint):
    """Batch and layers do not divide among so many accelerators."""

    id = "layout"
    words = "no parallel layout divides batch and layers at this size"
    is_fact = True
    reasons = ("batch_not_divisible", "layout_not_possible")


class Network(Constraint):
    """Several nodes without a known network."""

    id = "network"
    words = "node-to-node network unknown: one node only"
    is_fact = True
    reasons = ("unknown_link",)


class Capacity(Constraint):
    """More than there is of an offer."""

    id = "capacity"
    words = "more nodes than the offer, block or commitment holds"
    short = "above what an offer holds"
    paths = ("commitments",)
    unit = "nodes"
    is_fact = True
    of_each_part = True

    def cells(self, offer_set: OfferSet, limits: Constraints, rows: Ints, nodes: Ints) -> Bools | None:
        """Clusters larger than the offer."""
        return np.asarray(nodes > offer_set.capacity[rows], dtype=np.bool_)


class AllocationUnit(Constraint):
    """Racks in parts, where machines are sold in units alone."""

    id = "allocation_unit"
    words = "no whole number of the units that these machines are sold in"
    short = "no whole units"
    is_fact = True

    def cells(self, offer_set: OfferSet, limits: Constraints, rows: Ints, nodes: Ints) -> Bools | None:
        """Clusters that are no multiple of the unit; machines that the user has are there one by one."""
        units = unit_of_offer(offer_set)[rows]
        return np.asarray(nodes % units != 0, dtype=np.bool_)


class NoDiscount(Constraint):
    """Spot that costs no less than on-demand; marked where its on-demand partner is known (`ways.partners`)."""

    id = "no_discount"
    words = (
        "spot at or above the on-demand price of its type and region is not a discount"
        " (checked for those that pass all other filters)"
    )
    is_fact = True
