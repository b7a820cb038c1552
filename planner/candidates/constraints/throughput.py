"""A floor on speed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.base import Constraint
from planner.plan.relaxation import Change

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.asked.job import Job
    from planner.candidates.constraints.base import Case
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Constraints


class LeastThroughput(Constraint):
    """Tokens or samples per second; a fleet meets it with all its workers together."""

    id = "throughput"
    words = "below constraints.min_throughput"
    paths = ("constraints.min_throughput",)
    unit = "tokens or samples per second"
    is_measured = True

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Slower candidates."""
        if case.limits.min_throughput is None or case.workload.kind == "fleet":
            return None
        step = np.asarray(candidates.shapes["step_time_s"], dtype=np.float64)[candidates.shape]
        return np.asarray(
            throughput_floor(case.limits, case.job) > case.job.units_per_step / step, dtype=np.bool_
        )

    def distance(self, case: Case, candidates: Candidates, at: Ints) -> tuple[Ints, Floats] | None:
        """Hours of work: the fastest is nearest."""
        return at, candidates.work_hours[at]

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """The speed asked for and the candidate's, in the unit of the workload, rounded down so that it is enough."""
        floor = case.limits.min_throughput
        assert floor is not None
        asked, unit = (floor.tokens_per_s, "tokens/s") if floor.tokens_per_s is not None else (
            floor.samples_per_s, "samples/s"
        )  # fmt: skip
        assert asked is not None
        step = float(candidates.shapes["step_time_s"][candidates.shape[at]])
        speed = asked * case.job.units_per_step / step / throughput_floor(case.limits, case.job)
        digit = 10.0 ** (math.floor(math.log10(speed)) - 2)
        enough = float(f"{math.floor(speed / digit) * digit:.12g}")
        return Change(self.id, f"{asked:,.12g} {unit}", f"{enough:,.12g} {unit}", asked, enough)

    def loosened(
        self, limits: Constraints, case: Case, candidates: Candidates, at: int
    ) -> Constraints | None:
        """With the candidate's speed in the unit of the workload."""
        assert limits.min_throughput is not None
        enough = self.change(case, candidates, at).enough
        per_s = {name: enough for name, given in limits.min_throughput if given is not None}
        return limits.model_copy(update={"min_throughput": limits.min_throughput.model_copy(update=per_s)})


def throughput_floor(limits: Constraints, job: Job) -> float:
    """`constraints.min_throughput` in the job's own unit per second."""
    floor = limits.min_throughput
    assert floor is not None
    tokens, length = job.unit == "tokens", job.units_per_step / job.training.global_batch
    if floor.tokens_per_s is not None:
        return floor.tokens_per_s if tokens else floor.tokens_per_s / length
    assert floor.samples_per_s is not None
    return floor.samples_per_s * length if tokens else floor.samples_per_s
