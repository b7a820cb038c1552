"""`benchmarks.spot_forecast` scores jobs of every kind, with models that know what a user's model knows."""

from __future__ import annotations

import pytest

from benchmarks.spot_forecast import every_nth, model_of
from planner.spot.hazards import load_hazards
from planner.spot.policy.job import SpotZone

JOBS = [
    {"kind": kind, "work_h": work, "deadline_h": work * slack, "restart_h": 0.2}
    for kind in ("single", "multi")
    for _ in range(20)
    for work in (12, 48)
    for slack in (1.25, 1.5, 2.0)
]


@pytest.mark.parametrize("every", [1, 5, 7])
def test_jobs_of_every_length_and_deadline_are_picked(every: int) -> None:
    picked = every_nth(JOBS, every)
    assert len(picked) == -(-len(JOBS) // every)
    assert len({(job["kind"], job["work_h"], job["deadline_h"]) for job in picked}) == 12


@pytest.mark.parametrize(("every", "kinds"), [(2, 3), (3, 2), (6, 1)])
def test_a_step_that_always_meets_the_same_jobs_is_refused(every: int, kinds: int) -> None:
    with pytest.raises(ValueError, match=f"--every {every} picks jobs with {kinds} of the 6 lengths"):
        every_nth(JOBS, every)


def test_a_model_without_a_type_compares_its_sizes_by_accelerators_as_the_bundled_one_does() -> None:
    bundled = load_hazards()
    eights = model_of([cell for cell in bundled.cells if cell.instance_type == "p3.16xlarge"])
    assert eights.accelerators == bundled.accelerators
    ones, same = (
        eights.table_for(SpotZone("us-west-2a", "us-west-2", type_, 1.0, "aws", gang))
        for type_, gang in (("p3.2xlarge", 16), ("p3.16xlarge", 2))
    )
    assert ones.availability_ratio == pytest.approx(same.availability_ratio)
