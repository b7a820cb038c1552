"""How long a run may be, and how long an offer may be used: capacity blocks, flex-start and other options that end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.base import Constraint
from planner.inputs.bounds import MOST_HOURS

if TYPE_CHECKING:
    from catalogs.tariffs import OptionRule
    from planner.candidates.constraints.base import Bools, Case, Floats, Ints
    from planner.candidates.model import Candidates
    from planner.market.offers import OfferSet


class Longest(Constraint):
    """A run that outlasts every deadline that may be asked: no price, machine or calendar is known so far ahead."""

    id = "longest"
    words = "takes longer than a century, the longest run that is planned"
    short = "longer than a century"
    unit = "hours"
    is_fact = True

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Candidates expected to take longer, or to be paid for longer."""
        return (candidates.hours > MOST_HOURS) | (candidates.paid_hours > MOST_HOURS)


class Term(Constraint):
    """Longer than the purchase option allows, or without a price for the length."""

    id = "term"
    words = "longer than the purchase option allows"
    unit = "hours"
    is_fact = True

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Candidates that outlast their offer."""
        return (candidates.paid_hours > longest_hours(case.offer_set, candidates.offer)) | ~np.isfinite(
            candidates.cost_usd
        )


def longest_hours(offer_set: OfferSet, rows: Ints) -> Floats:
    """Longest use of offers in hours, infinity where nothing ends it."""
    longest = np.asarray([_longest(rule) for rule in offer_set.rules])
    return np.asarray(longest[offer_set.rule_of_offer[rows]], dtype=np.float64)


def _longest(rule: OptionRule) -> float:
    """Longest use in hours: the run limit of an option that ends, infinity for terms that renew."""
    return np.inf if rule.whole_term or rule.max_term_hours is None else rule.max_term_hours
