"""What a choice by its worst outcomes claims to be."""

from __future__ import annotations

import numpy as np
import pytest

from planner.plan.robust import Outcome, Robust, Terms


def _robust(bound_usd: float, *, partial: bool = False) -> Robust:
    outcome, usd = Outcome(90.0, 110.0, 100.0), np.full(50, 90.0)
    terms = Terms(level=0.9, weight=0.5, scenarios=50, seed=1)
    return Robust(
        terms, outcome, outcome, outcome, outcome, usd, usd, bound_usd, 640, 700, 0, "highspy", 1.0, partial=partial
    )  # fmt: skip


@pytest.mark.parametrize(
    ("bound", "claim"),
    [
        (99.95, "Least of 50 % expected cost and 50 % worst outcomes of the 640 candidates considered, proven"),
        (96.0, "At most 4.2 % above the least of 50 % expected cost and 50 % worst outcomes"),
        (20.0, "The least of 50 % expected cost and 50 % worst outcomes of the 640 candidates considered is not known"),
    ],
)  # fmt: skip
def test_only_a_choice_within_the_gap_asked_for_is_called_the_least(bound: float, claim: str) -> None:
    assert _robust(bound).claim(1e-3).startswith(claim)


@pytest.mark.parametrize(
    ("bound", "partial", "said"),
    [
        (99.95, False, "the choice with the lowest expected cost is also the robust one"),
        (99.95, True, "no better choice than that of least expected cost was found, but there may be one"),
        (60.0, False, "no better choice than that of least expected cost was found, but there may be one"),
    ],
)
def test_the_choice_by_expected_cost_is_called_robust_only_where_all_others_were_looked_at(
    bound: float, partial: bool, said: str
) -> None:
    assert _robust(bound, partial=partial).sentence("job", 1e-3).endswith(said)
