"""The generated company's bill, opened once, and its three monthly reviews."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path

import pytest

from planner.finops.plan_vs_actual import load_plans
from planner.finops.read import Bill, open_bill
from planner.finops.review.answer import review_bill
from planner.finops.review.model import Figure, Review
from planner.finops.utilisation import load_utilisation
from planner.inputs.budget_load import load_budgets
from tests.focus_company import Truth
from tests.focus_company.plans import write_plans, write_utilisation
from tests.focus_company.shared import small_company

CREATED = datetime(2026, 11, 2, 6, 30, tzinfo=UTC)
BUDGETS = """
version: 1
kind: budget
name: company
budgets:
  - {name: all, amount: 170000}
  - {name: payments, by: 'tag:team', scope: payments, amount: 20000}
"""


@pytest.fixture(scope="session")
def company() -> Truth:
    return small_company()


@pytest.fixture(scope="session")
def bill(company: Truth) -> Iterator[Bill]:
    with open_bill([*company.files, *company.datasets]) as opened:
        yield opened


class Reviews:
    """Reviews by month, made when asked for; `full` has everything the user can give beside the bill."""

    def __init__(self, bill: Bill, company: Truth, folder: Path) -> None:
        self.bill = bill
        self.plans = load_plans(write_plans(folder / "plans", company.runs))
        self.busy = load_utilisation(write_utilisation(folder / "busy.csv", company.runs))
        path = folder / "budgets.yaml"
        path.write_text(BUDGETS)
        self.budgets = load_budgets(path)
        self.plain = cache(self._plain)
        self.full = cache(self._full)

    def _plain(self, month: date) -> Review:
        return review_bill(self.bill, month=month, forecast=False, created=CREATED)

    def _full(self, month: date) -> Review:
        return review_bill(
            self.bill, month=month, plans=self.plans, utilisation=self.busy, budgets=self.budgets, created=CREATED
        )  # fmt: skip


@pytest.fixture(scope="session")
def reviews(bill: Bill, company: Truth, tmp_path_factory: pytest.TempPathFactory) -> Reviews:
    return Reviews(bill, company, tmp_path_factory.mktemp("beside"))


def figures(review: Review) -> dict[str, Figure]:
    """All figures by key; keys must not repeat."""
    found = [figure for section in review.sections for figure in section.figures]
    out = {figure.key: figure for figure in found}
    assert len(out) == len(found)
    return out


def value(review: Review, key: str) -> float:
    """A figure's number."""
    found = figures(review)[key].value
    assert isinstance(found, int | float), key
    return float(found)
