"""One golden LP file per family of the portfolio: the mathematics, readable. `UPDATE_GOLDENS=1 pytest ...` rewrites."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.portfolios.elastic import ElasticWeights, build_elastic, reduce_elastic
from planner.portfolios.model.families import PORTFOLIO_FAMILIES, build_portfolio
from planner.portfolios.reduce import reduce_portfolio
from planner.portfolios.shared_limits import CAPACITY, QUOTA, PortfolioInput
from solvers.problem.milp import Milp
from tests.lp_text import lp_text

FOLDER = Path(__file__).parents[2] / "fixtures" / "lp" / "portfolio"


def array(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


JOB = array(0, 0, 0, 1, 1, 1, 2, 2)
COST = array(900, 950, 1400, 500, 620, 700, 300, 820) * 1_000_000
PLAIN = PortfolioInput(3, JOB, COST, COST)
# a quota that jobs 0 and 1 share in both windows, a pool of owned machines that 0 and 2 share
ENTRIES = ((0, 0, 96), (0, 1, 96), (1, 2, 4), (3, 0, 96), (4, 0, 48), (6, 2, 2))
SHARED = replace(
    PLAIN,
    entry_candidate=array(*(entry[0] for entry in ENTRIES)),
    entry_limit=array(*(entry[1] for entry in ENTRIES)),
    entry_units=array(*(entry[2] for entry in ENTRIES)),
    limit=array(144, 96, 5),
    limit_kind=array(QUOTA, QUOTA, CAPACITY),
)


def model(family: str) -> Milp:
    if family == "choice":
        return build_portfolio(reduce_portfolio(PLAIN, drop_dominated=False))
    if family == "budget":
        return build_portfolio(reduce_portfolio(replace(PLAIN, budget=1_900_000_000), drop_dominated=False))
    if family == "elastic":
        late = array(0, 0, 500, 0, 0, 800, 0, 250) * 1_000_000
        question = replace(SHARED, objective=late, limit=array(40, 96, 1), budget=1_500_000_000)
        return build_elastic(reduce_elastic(question), ElasticWeights())
    keep = QUOTA if family == "quota" else CAPACITY
    inside = SHARED.limit_kind[SHARED.entry_limit] == keep
    question = (
        replace(
            SHARED, entry_candidate=SHARED.entry_candidate[inside], entry_limit=SHARED.entry_limit[inside],
            entry_units=SHARED.entry_units[inside],
        )
    )  # fmt: skip
    return build_portfolio(reduce_portfolio(question, drop_dominated=False))


@pytest.mark.parametrize("family", ["choice", "quota", "capacity", "budget", "elastic"])
def test_golden(family: str) -> None:
    path = FOLDER / f"{family}.lp"
    text = lp_text(model(family))
    if os.environ.get("UPDATE_GOLDENS"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_family_has_its_golden() -> None:
    assert {path.stem for path in FOLDER.glob("*.lp")} == {*PORTFOLIO_FAMILIES, "elastic"}
