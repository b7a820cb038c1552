"""From a YAML file to budgets, or to one error that lists every fault with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.inputs.documents import Document, load_document
from planner.inputs.faults import Fault, near
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.budget_schema import Budget, BudgetFile

DIMENSIONS = (
    "total", "service", "project", "sub_account", "account", "provider", "region", "category", "scope",
)  # fmt: skip
_CURRENCY = re.compile(r"[A-Z]{3}")


@record(frozen=True)
class LoadedBudgets:
    """Valid budgets and their file."""

    file: BudgetFile
    document: Document

    def error(self, faults: Iterable[Fault]) -> InputError:
        """Return the error for faults found later, with their places in the file."""
        return self.document.source.error(faults)


def load_budgets(path: Path) -> LoadedBudgets:
    """Load and validate a budgets file.

    Raises:
        InputError: lists all faults in the order of their lines.
    """
    from planner.inputs.budget_schema import BudgetFile

    return LoadedBudgets(*load_document(path, BudgetFile, _faults))


def _faults(file: BudgetFile) -> Iterator[Fault]:
    if not _CURRENCY.fullmatch(file.currency):
        yield Fault(
            ("currency",), f"{file.currency!r} is not a currency code; write three capitals like USD or EUR"
        )
    if file.fiscal_start is not None and file.fiscal_weeks is not None:
        yield Fault(("fiscal_weeks",), "excludes 'fiscal_start': its first day says the start")
    names = [budget.name for budget in file.budgets]
    for at, budget in enumerate(file.budgets):
        yield from _budget_faults(at, budget)
        if budget.name in names[:at]:
            yield Fault(
                ("budgets", at, "name"),
                f"a budget '{budget.name}' is already listed above; names must differ",
            )
        for other in file.budgets[:at]:
            if _overlap(budget, other):
                yield Fault(
                    ("budgets", at, "scope" if budget.scope else "name"),
                    f"overlaps with {other.name!r}: the same scope and kind of period; give them different "
                    "'starts' and 'ends', or join them",
                )


def _budget_faults(at: int, budget: Budget) -> Iterator[Fault]:
    path = ("budgets", at)
    kind, _, key = budget.by.partition(":")
    if kind == "tag":
        if not key:
            yield Fault((*path, "by"), "name the tag's key: tag:team")
    elif budget.by not in DIMENSIONS:
        text = f"is none of {', '.join(DIMENSIONS)}, tag:KEY"
        yield Fault((*path, "by"), text, near(budget.by, DIMENSIONS))
    if budget.by == "total" and budget.scope is not None:
        yield Fault((*path, "scope"), "needs 'by': what it is a value of, e.g. service or tag:team")
    if budget.by != "total" and budget.scope is None:
        yield Fault((*path, "by"), "needs 'scope': which value of it")
    if budget.starts is not None and budget.ends is not None and budget.ends < budget.starts:
        yield Fault((*path, "ends"), f"is before the start, {budget.starts}")


def _overlap(one: Budget, other: Budget) -> bool:
    if (one.by, one.scope, one.period) != (other.by, other.scope, other.period):
        return False
    first = max(one.starts or date.min, other.starts or date.min)
    return first <= min(one.ends or date.max, other.ends or date.max)
