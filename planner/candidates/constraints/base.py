"""What a constraint is: one class that says where it is set, what it removes, how it gives way and how it reads.

A constraint overrides what it has; the defaults remove nothing. Adding one: a file here, its line in `registry.py`, its
key in `planner/inputs/schema.py`, its check in the judge (docs/CONTRIBUTING.md has the list, kept true by a test).
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
    """What constraints look at beside the candidates.

    Attributes:
        workload: its `constraints` and `fleet` hold the limits.
        job: the work, resolved.
        offer_set: what can be bought.
        tariffs: quota rules and prices.
        deadline_hours: from the start, None without a deadline.
        chance: probability that the candidates at some positions meet the deadline, shape `(len(at),)`.
        finish: hours within which they end with a probability, shape `(len(at),)`.
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
    """A limit on something that workers use: no more than `limit` of it in all.

    Attributes:
        limit_name: the constraint.
        member: which of its limits, for messages.
        per_worker: what one worker uses however short its use, shape `(n_options,)`.
        limit: most of all workers together, in the same unit.
        per_busy: what the work of one worker used in full uses beside, of the same shape; None: nothing.
    """

    limit_name: str
    member: str
    per_worker: Floats
    limit: float
    per_busy: Floats | None = None

    @property
    def in_full(self) -> Floats:
        """What a worker used in full uses, shape `(n_options,)`."""
        return self.per_worker if self.per_busy is None else self.per_worker + self.per_busy

    def of(self, units: Floats, done: Floats) -> float:
        """What workers use that do the work `done` (in workers used in full)."""
        return float(self.per_worker @ units) + (
            0.0 if self.per_busy is None else float(self.per_busy @ done)
        )

    def only(self, numbers: Ints) -> Use:
        """The same over some offers."""
        busy = None if self.per_busy is None else self.per_busy[numbers]
        return replace(self, per_worker=self.per_worker[numbers], per_busy=busy)


class Constraint:
    """One limit of the user's, or one fact of a machine or price, that removes candidates.

    Attributes:
        id: name of the filter, in plans, bits and relaxations.
        words: what it means to the user.
        short: the same about one job in a portfolio's report.
        paths: keys of the workload that set it; empty for facts.
        unit: of its limit, empty where it has none.
        is_fact: of the machine or price: no relaxation can move it.
        is_of_training: what answers requests may break it.
        is_measured: its relaxation is a number; such come first.
        is_offered: what it removes is named beside a plan where it is better.
        needs_deadline: it is judged for each deadline, after all that does not depend on it.
        is_of_any_deadline: it removes the same at each deadline.
        of_each_part: a cluster bought in parts keeps it part by part, as those that choose the parts see to.
        reasons: words of the performance model for shapes that it removes.
        moves_too: constraints that give way with it.
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
        """Offers removed whatever the size, shape `(n_offers,)`; `job`: its model and where its data lie."""
        return None

    def cells(self, offer_set: OfferSet, limits: Constraints, rows: Ints, nodes: Ints) -> Bools | None:
        """Pairs of offer and node count removed before anything is timed, shape `(len(rows),)`."""
        return None

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Timed and priced candidates removed, shape `(n_candidates,)`."""
        return None

    def unsure(self, case: Case, candidates: Candidates, at: Ints) -> Bools | None:
        """Of candidates that were not judged, as another limit removes them: which this one removes too."""
        return None

    def distance(self, case: Case, candidates: Candidates, at: Ints) -> tuple[Ints, Floats] | None:
        """Candidates to move the limit for, and how far each would move it (the least is nearest)."""
        return None

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """The limit as it is and as candidate `at` needs it."""
        for path in self.paths:
            if path.rpartition(".")[2].startswith(("include_", "allow_")):
                return Change(self.id, "not admitted", f"{path}: true")
        return Change(self.id, "too strict", "what the plan beside it needs")

    def loosened(
        self, limits: Constraints, case: Case, candidates: Candidates, at: int
    ) -> Constraints | None:
        """`limits` with this one as candidate `at` needs it; None where it is no number of theirs.

        Args:
            limits: those of the workload, of which others may be loosened already.
            case: the limits as they are.
            candidates: of which one is looked at.
            at: its position.
        """
        key = self.paths[0].rpartition(".")[2] if self.paths else ""
        given, enough = getattr(limits, key, None), self.change(case, candidates, at).enough
        if enough is None or isinstance(given, bool) or not isinstance(given, (int, float)):
            return None
        return limits.model_copy(update={key: type(given)(enough)})

    def fleet_uses(self, case: Case, rows: Ints, nodes: Ints, hours: Floats, setup: Floats) -> Iterable[Use]:
        """Rows of the fleet model.

        Args:
            case: limits and offers.
            rows: offer of each way to be a worker, shape `(n_options,)`.
            nodes: instances of a worker, of the same shape.
            hours: paid hours of work of a worker used in full, of the same shape.
            setup: paid hours before and after its work, of the same shape.
        """
        return ()


def round_up(value: float, step: float = 0.1) -> float:
    """`value` to the next step above, so that what is shown is enough."""
    from math import ceil

    return float(f"{ceil(value / step - 1e-9) * step:.12g}")


def offer_fact(name: str, case: Case, candidates: Candidates, at: int, column: str) -> Change:
    """The change of a limit `name` on what may be bought: allow what the candidate is."""
    return Change(name, "excluded", f"allow {case.offer_set.offers[column][int(candidates.offer[at])]}")


def of_hardware(offer_set: OfferSet, mask: Bools) -> Bools:
    """A mask of hardware rows as one of offers."""
    return np.asarray(mask[offer_set.hardware_of_type][offer_set.type_of_offer], dtype=np.bool_)
