"""Ctrl-C after the search: what was found is shown, with the figures that are known by then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.commitments import advise as advising
from planner.commitments import avoid_loss, figures
from planner.commitments.advise import advise
from planner.commitments.answer import CommitAnswer
from planner.commitments.model import first_stage
from planner.commitments.recourse import Recourse
from planner.commitments.solve import solve_commit, without_idle
from tests.planner.commitments.commit_cases import random_model
from tests.planner.commitments.test_commit_input import loaded, question
from tests.planner.commitments.test_commit_words import shown

PLANNED = {"planned": [{"pool": "b", "instances": 5, "start": "2027-01-01", "end": "2029-12-31"}]}


def answered(folder: Path, **more: Any) -> CommitAnswer:
    return advise(loaded(question(demand=PLANNED, **more), folder), None).answer


def interrupts(function: Callable[..., Any], at: int) -> Callable[..., Any]:
    """The function, whose call number `at` ends by Ctrl-C."""
    calls = iter(range(1, 1_000_000))

    def called(*given: Any, **named: Any) -> Any:
        if next(calls) == at:
            raise KeyboardInterrupt
        return function(*given, **named)

    return called


@pytest.mark.parametrize(
    ("module", "name", "at", "lacks"),
    [
        (figures, "solve_commit", 1, {"regret"}),  # solved alone
        (figures, "solve_commit", 3, {"regret"}),
        (advising, "level_of", 1, {"regret", "falls 0.8"}),  # what buying nothing costs
        (advising, "level_of", 2, {"regret", "falls 0.8"}),  # the plan
        (advising, "level_of", 3, {"regret", "falls 0.8"}),  # the first fall
        (advising, "level_of", 5, set()),  # a share of the plan
    ],
)
def test_the_plan_that_was_found_is_shown(
    module: Any, name: str, at: int, lacks: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = answered(tmp_path)
    assert whole.lines and not whole.not_evaluated
    monkeypatch.setattr(module, name, interrupts(getattr(module, name), at))
    answer = answered(tmp_path)
    assert (answer.lines, answer.plan.expected_usd) == (whole.lines, whole.plan.expected_usd)
    assert {*lacks, "levels 0.25"} <= {*answer.not_evaluated}
    assert "interrupted before: " in shown(answer) and "time limit" not in shown(answer)


def test_the_search_for_purchases_that_rarely_lose_ends_with_the_best_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(avoid_loss._Search, "_descend", interrupts(avoid_loss._Search._descend, 1))
    answer = answered(tmp_path, risk={"loss_price": 1.5})
    assert answer.lines and "Ctrl-C ended the search for purchases that rarely lose" in shown(answer)


@pytest.mark.parametrize("name", ["avoid_loss", "loss_of", "_assemble"])
def test_ctrl_c_between_the_stages_loses_no_plan(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advising, name, interrupts(getattr(advising, name), 1))
    answer = answered(tmp_path, risk={"loss_price": 1.5})
    assert answer.lines
    assert ("Ctrl-C ended the search" in shown(answer)) is (name == "avoid_loss")


def test_ctrl_c_while_idle_plans_are_dropped_keeps_what_the_search_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = random_model(7)
    solved = solve_commit(model)
    x = np.where(first_stage(model).integer, solved.x, 1.0)
    monkeypatch.setattr(Recourse, "evaluate", interrupts(Recourse.evaluate, 1))
    kept = without_idle(model, replace(solved, x=x))
    assert (kept.x == x).all() and kept.reason == "interrupted"
