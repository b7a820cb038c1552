"""A limit on emissions: kgCO2e of the electricity of the finished job, by location."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.carbon import GRAMS_PER_KG, draw_in, machines_of
from planner.candidates.constraints.base import Constraint, Use, round_up
from planner.candidates.footprint import operational_kg
from planner.plan.relaxation import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from catalogs.tables.table import Bools, Floats, Ints
    from planner.asked.job import Job
    from planner.candidates.carbon import Machines
    from planner.candidates.constraints.base import Case
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Constraints
    from planner.market.offers import OfferSet

_SLIP = 1e-9  # of sums in another order
_DIGITS = 4  # of kilograms in words


class UnknownCarbon(Constraint):
    """What emits nobody knows how much, where emissions are limited or least."""

    id = "unknown_carbon"
    words = "emissions are unknown: no figure of the region's grid, or of the accelerator's power"
    short = "emissions unknown"
    is_fact = True

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Offers without a grid or a power figure, under a limit."""
        if limits.max_kgco2e is None:
            return None
        machines = _machines(offer_set)
        return np.isnan(machines.grid) | np.isnan(machines.accelerator_w)

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Candidates with such a part, under a limit or where least emissions are asked for."""
        wanted = case.limits.max_kgco2e is not None or case.workload.preferences.objective == "carbon"
        return np.isnan(operational_kg(candidates)) if wanted else None


class Carbon(Constraint):
    """Most kgCO2e of the electricity; a fleet keeps it with all its workers together."""

    id = "carbon"
    words = "emits more than constraints.max_kgco2e"
    short = "above the workload's limit on emissions"
    paths = ("constraints.max_kgco2e",)
    unit = "kgCO2e"
    is_measured = True

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Candidates that emit more."""
        limit = case.limits.max_kgco2e
        if limit is None or case.workload.kind == "fleet":
            return None
        return np.asarray(operational_kg(candidates) > limit * (1.0 + _SLIP), dtype=np.bool_)

    def distance(self, case: Case, candidates: Candidates, at: Ints) -> tuple[Ints, Floats] | None:
        """Kilograms emitted."""
        kg = operational_kg(candidates.take(at))
        known = ~np.isnan(kg)
        return at[known], kg[known]

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Kilograms allowed and emitted."""
        kg = float(operational_kg(candidates.take(np.asarray([at])))[0])
        enough = round_up(kg, 10.0 ** (floor(log10(kg)) - _DIGITS + 1)) if kg > 0 else 0.0
        limit = case.limits.max_kgco2e or 0.0
        return Change(self.id, f"{_words(limit)} kgCO2e", f"{_words(enough)} kgCO2e", limit, enough)

    def fleet_uses(self, case: Case, rows: Ints, nodes: Ints, hours: Floats, setup: Floats) -> Iterator[Use]:
        """One row: workers count as at work in all their paid hours of work, and begin and end once."""
        limit = case.limits.max_kgco2e
        if limit is None:
            return
        offers = case.offer_set
        machines = _machines(offers).take(rows)
        family = case.job.model.family.value
        work, idle = (np.full(len(rows), draw_in(phase, family)) for phase in ("compute", "setup"))
        kg_per_kwh = nodes * machines.grid / GRAMS_PER_KG
        yield Use(
            self.id, "kgCO2e", setup * machines.kwh_per_hour(idle) * kg_per_kwh, limit,
            hours * machines.kwh_per_hour(work) * kg_per_kwh,
        )  # fmt: skip


def _machines(offer_set: OfferSet) -> Machines:
    return machines_of(offer_set.types, offer_set.type_of_offer, offer_set.offers, offer_set.own_sites)


def _words(kg: float) -> str:
    """Kilograms with a few digits, never in powers of ten."""
    return f"{kg:,.0f}" if kg >= 10.0 ** (_DIGITS - 1) else f"{kg:.{_DIGITS}g}"
