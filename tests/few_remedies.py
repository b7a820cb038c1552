"""What would make a question answerable, worked out for some seeds of a search alone.

An enumeration says whether there is a plan and what it costs. Of a seed without one it compares nothing of what the
planner then proposes, which is a third of its time on jobs; so the proposals are made for one seed in five, where they
still must not fail. Their own tests: `tests/planner/job/test_other_limits.py` and `test_later_deadline.py`,
`tests/planner/fleet/test_limits.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from planner.fleet import answer as fleet_answer
from planner.job import answer as job_answer

EVERY = 5


class FewRemedies:
    """Leaves remedies out while `asked` is False."""

    def __init__(self) -> None:
        """Ask for all."""
        self.asked = True

    def begin(self, seed: int) -> None:
        """Decide for a seed."""
        self.asked = seed % EVERY == 0

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Stand before the planner's own functions."""
        of_job, of_fleet = job_answer._explain_empty, fleet_answer._reasons

        def job(search: Any, begin: float) -> Any:
            if self.asked:
                return of_job(search, begin)
            return job_answer.infeasible_plan(search, (), 0.0), search

        def fleet(*asked: Any) -> Any:
            return of_fleet(*asked) if self.asked else []

        with (
            mock.patch.object(job_answer, "_explain_empty", job),
            mock.patch.object(fleet_answer, "_reasons", fleet),
        ):
            yield
