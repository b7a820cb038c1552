"""Candidates worked out again under errors: the engine's figures without an error, and laws with one."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pytest

from planner.asked.options import Options
from planner.candidates.decisions import best_decisions
from planner.candidates.engine import CandidateSearch
from planner.candidates.model import IN_TURN, MIXED, SINGLE
from planner.candidates.reevaluate import Errors, reevaluate
from planner.inputs.load import load_workload
from planner.workloads.answer import optimize
from tests.conftest import ROOT

OPTIONS = Options(datetime(2026, 11, 20, tzinfo=UTC), as_of=date(2026, 11, 20))


@pytest.fixture(scope="module", params=["owned-top-up", "mixtral-eu"])
def found(request: pytest.FixtureRequest) -> CandidateSearch:
    answer = optimize(load_workload(ROOT / "examples" / f"{request.param}.yaml"), OPTIONS)
    assert answer.found is not None
    return answer.found


def some_of_every_kind(found: CandidateSearch) -> np.ndarray:
    made = found.candidates
    of_kind = [
        np.flatnonzero((made.kind == kind) & (made.bits == 0))[:40] for kind in (SINGLE, MIXED, IN_TURN)
    ]
    return np.concatenate([best_decisions(made, 20), *of_kind])


def test_without_an_error_they_are_the_candidates_themselves(found: CandidateSearch) -> None:
    made, at = found.candidates, some_of_every_kind(found)
    one = np.ones(len(at))
    again = reevaluate(made, at, Errors(one, one, one, known=False))
    np.testing.assert_allclose(again.cost_usd, made.cost_usd[at], rtol=1e-9)
    np.testing.assert_allclose(again.hours, made.hours[at], rtol=1e-9)
    np.testing.assert_allclose(again.cash_usd, made.cash_usd[at], rtol=1e-9)
    assert (again.paid_usd.sum(axis=1) <= again.cost_usd * (1 + 1e-9)).all()


def test_slower_work_and_more_interruptions_never_end_sooner(found: CandidateSearch) -> None:
    made, at = found.candidates, some_of_every_kind(found)
    one = np.ones(len(at))
    plain = reevaluate(made, at, Errors(one, one, one, known=True))
    for worse in (Errors(one * 1.2, one, one, known=True), Errors(one, one * 2, one, known=True)):
        assert (reevaluate(made, at, worse).hours >= plain.hours * (1 - 1e-6)).all()
