"""Plans without what stands beside them, for searches of wrong choices.

A check that compares the choice alone reads neither alternatives nor what would give way where nothing fits; writing
these takes a third of a plan. So three of four seeds of such a search leave them out, and the fourth writes all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

from planner.candidates.engine import CandidateSearch
from planner.candidates.plan_parts.infeasible import infeasible_plan
from planner.job.assemble import _NOTHING_BESIDE
from planner.plan.model import Plan

WRITTEN_OUT = 4  # every so many seeds


@contextlib.contextmanager
def bare_plans(seed: int) -> Iterator[None]:
    """Plans of jobs inside the block are bare, unless the seed is one of those that are written out."""
    if seed % WRITTEN_OUT == 0:
        yield
        return

    def unexplained(search: CandidateSearch, _begin: float) -> tuple[Plan, CandidateSearch]:
        return infeasible_plan(search, (), 0.0), search

    with (
        mock.patch("planner.job.assemble._beside", lambda *_: _NOTHING_BESIDE),
        mock.patch("planner.job.answer._explain_empty", unexplained),
    ):
        yield
