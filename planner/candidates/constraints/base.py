"""Base class of constraints: the keys that set it, the candidates it removes, its relaxation and its description.

Subclasses override the methods that apply; the defaults remove nothing. A new one needs a file here, its line in
`registry.py`, its key in `planner/inputs/schema.py` and its check in the judge (docs/CONTRIBUTING.md has the list, kept
true by a test).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from planner.plan.relaxation import Change
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from catalogs.tables.table import Bools, Floats, Ints
    from catalogs.tariffs import Tariffs
    from planner.asked.job import Job
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Constraints, Workload
    from planner.market.offers import OfferSet


@record(frozen=True, eq=False)
class Case:
    """Everything that constraints need to know besides the candidates.

    Attributes:
        workload: its `constraints` and `fleet` hold the limits.
        job: the work, resolved.
        offer_set: what can be bought.
        tariffs: quota rules and prices.
        deadline_hours: from the start, None without a deadline.
        chance: probability that the candidates at the given positions meet the deadline, shape `(len(at),)`.
        finish: hours within which they end with the given probability, shape `(len(at),)`.
    """

    workload: Workload
    job: Job
    offer_set: OfferSet
    tariffs: Tariffs
    deadline_hours: float | None
    chance: Callable[[Candidates, Ints], Floats]
    finish: Callable[[Candidates, Ints, float], Floats]

    @property
    def limits(self) -> Constraints:
        """The workload's limits."""
        return self.workload.constraints


@record(frozen=True, eq=False)
class Use:
    """A resource limit of a fleet: a row `per_worker @ workers + per_busy @ work <= limit`.

    Attributes:
        limit_name: the constraint.
        member: which of its limits, for messages.
        per_worker: use of one worker, however short, shape `(n_options,)`.
        limit: most that all workers together may use, in the same unit.
        per_busy: additional use of a fully used worker, of the same shape; None: none.
    """

    limit_name: str
    member: str
    per_worker: Floats
    limit: float
    per_busy: Floats | None = None

    @property
    def in_full(self) -> Floats:
        """Use of a fully used worker, shape `(n_options,)`."""
        return self.per_worker if self.per_busy is None else self.per_worker + self.per_busy

    def of(self, units: Floats, done: Floats) -> float:
        """Use of `units` workers that do the work `done` (in fully used workers)."""
        return float(self.per_worker @ units) + (
            0.0 if self.per_busy is None else float(self.per_busy @ done)
        )

    def only(self, numbers: Ints) -> Use:
        """The same over some offers."""
        busy = None if self.per_busy is None else self.per_busy[numbers]
        return replace(self, per_worker=self.per_worker[numbers], per_busy=busy)


class Constraint:
    """A limit set by the user, or a fact about a machine or price, that removes candidates.

    Attributes:
        id: name of the filter in plans, bits and relaxations.
        words: its meaning, for users.
        short: its meaning for one job, in a portfolio's report.
        paths: keys of the workload that set it; empty for facts.
        unit: unit of its limit; empty without one.
        is_fact: a fact about the machine or price, which no relaxation can change.
        is_of_training: does not apply to inference.
        is_measured: its relaxation is a number; such relaxations are listed first.
        is_offered: better candidates that it removes are named beside a plan.
        needs_deadline: evaluated anew for each deadline, after the constraints that do not depend on it.
        is_of_any_deadline: removes the same candidates at every deadline.
        of_each_part: enforced for each part of a cluster bought in parts, where the parts are chosen.
        reasons: reasons of the performance model for the shapes that it removes.
        moves_too: constraints that are relaxed together with it.
    """

    id: ClassVar[str]
    words: ClassVar[str]
    short: ClassVar[str] = ""
    paths: ClassVar[tuple[str, ...]] = ()
    unit: ClassVar[str] = ""
    is_fact: ClassVar[bool] = False
    is_of_training: ClassVar[bool] = False
    is_measured: ClassVar[bool] = False
    is_offered: ClassVar[bool] = False
    of_each_part: ClassVar[bool] = False
    needs_deadline: ClassVar[bool] = False
    is_of_any_deadline: ClassVar[bool] = False
    reasons: ClassVar[tuple[str, ...]] = ()
    moves_too: ClassVar[tuple[str, ...]] = ()

    def offers(self, offer_set: OfferSet, limits: Constraints, job: Job) -> Bools | None:
        """Mask of offers removed at any size, shape `(n_offers,)`; `job` gives the model and the place of its data."""
        return None

    def cells(self, offer_set: OfferSet, limits: Constraints, rows: Ints, nodes: Ints) -> Bools | None:
        """Mask of pairs of offer and node count removed before anything is timed, shape `(len(rows),)`."""
        return None

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Mask of timed and priced candidates removed, shape `(n_candidates,)`."""
        return None

    def unsure(self, case: Case, candidates: Candidates, at: Ints) -> Bools | None:
        """Mask over candidates at `at`, removed by another limit and not evaluated here: those it would remove too."""
        return None

    def distance(self, case: Case, candidates: Candidates, at: Ints) -> tuple[Ints, Floats] | None:
        """Positions of candidates to relax the limit for, and how far each needs it relaxed (least first choice)."""
        return None

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """The limit as set, and the least relaxed one that admits candidate `at`."""
        for path in self.paths:
            if path.rpartition(".")[2].startswith(("include_", "allow_")):
                return Change(self.id, "not admitted", f"{path}: true")
        return Change(self.id, "too strict", "what the plan beside it needs")

    def loosened(
        self, limits: Constraints, case: Case, candidates: Candidates, at: int
    ) -> Constraints | None:
        """`limits` with this one relaxed so far that it admits candidate `at`; None if it is not a number.

        Args:
            limits: those of the workload, others of which may be relaxed already.
            case: the limits as set.
            candidates: all candidates.
            at: position of the candidate.
        """
        key = self.paths[0].rpartition(".")[2] if self.paths else ""
        given, enough = getattr(limits, key, None), self.change(case, candidates, at).enough
        if enough is None or isinstance(given, bool) or not isinstance(given, (int, float)):
            return None
        return limits.model_copy(update={key: type(given)(enough)})

    def fleet_uses(self, case: Case, rows: Ints, nodes: Ints, hours: Floats, setup: Floats) -> Iterable[Use]:
        """The constraint's rows in the fleet model.

        Args:
            case: limits and offers.
            rows: offer of each kind of worker, shape `(n_options,)`.
            nodes: instances per worker, of the same shape.
            hours: paid hours of work of a fully used worker, of the same shape.
            setup: paid hours before and after its work, of the same shape.
        """
        return ()


def round_up(value: float, step: float = 0.1) -> float:
    """Round up to a multiple of `step`, so that the limit shown is sufficient."""
    from math import ceil

    return float(f"{ceil(value / step - 1e-9) * step:.12g}")


def offer_fact(name: str, case: Case, candidates: Candidates, at: int, column: str) -> Change:
    """The relaxation of a limit `name` on offers: allow the candidate's value of `column`."""
    return Change(name, "excluded", f"allow {case.offer_set.offers[column][int(candidates.offer[at])]}")


def of_hardware(offer_set: OfferSet, mask: Bools) -> Bools:
    """Expand a mask over rows of hardware to one over offers, shape `(n_offers,)`."""
    return np.asarray(mask[offer_set.hardware_of_type][offer_set.type_of_offer], dtype=np.bool_)
