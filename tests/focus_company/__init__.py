"""A generated company and its bills in FOCUS 1.0 to 1.4, with every KPI known in advance."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np

from tests.focus_company.commitments import company_commitments
from tests.focus_company.datasets import write_commitments, write_invoices, write_periods
from tests.focus_company.extras import add_extras, add_tax
from tests.focus_company.ledger import Ledger
from tests.focus_company.runs import Run, add_runs, company_runs
from tests.focus_company.truth import MonthTruth, Truth, month_truths
from tests.focus_company.usage import add_usage
from tests.focus_company.versions import VERSIONS
from tests.focus_company.write import connect, write_files

__all__ = ["VERSIONS", "MonthTruth", "Truth", "make_company", "write_version"]


def month_list(count: int, last: date = date(2026, 10, 1)) -> tuple[date, ...]:
    """The `count` months that end with `last`."""
    first = last.year * 12 + last.month - count
    return tuple(date((first + i) // 12, (first + i) % 12 + 1, 1) for i in range(count))


def make_company(
    months: int | Sequence[date] = 3, seed: int = 7, rows_per_month: int = 4000, version: str = "1.4",
    out: Path | None = None, *, fmt: str = "parquet", as_of: date | None = None, more_runs: Sequence[Run] = (),
) -> Truth:  # fmt: skip
    """Make a company and, where `out` is given, its files.

    Args:
        months: how many, up to October 2026, or which (in order, without gaps).
        seed: the same seed gives the same files.
        rows_per_month: about that many (not below 5,000: all kinds of row stay).
        version: FOCUS version, `1.0` to `1.4`.
        out: folder for the files, one per billing month, and the other datasets of the version.
        fmt: `parquet`, `csv` or `csv.gz`.
        as_of: leave out what was not yet reported on that day (the truth stays that of the final bill).
        more_runs: training runs besides its own four.
    """
    chosen = month_list(months) if isinstance(months, int) else tuple(months)
    rng = np.random.default_rng(seed)
    ledger = Ledger()
    commitments, runs = company_commitments(chosen), (*company_runs(chosen), *more_runs)
    spike = None
    for index, month in enumerate(chosen):
        made = add_usage(ledger, month, index, len(chosen), rows_per_month, commitments, rng)
        spike = made or spike
        add_extras(ledger, month, index - len(chosen), index == 0)
        add_runs(ledger, month, runs)
    for month in chosen:
        add_tax(ledger, month)
    assert spike is not None
    resources = {
        b.facts["commitment"].id: int(b.resource.max()) + 1
        for b in ledger.blocks
        if b.facts.get("status") == "Used"
    }
    truth = Truth(
        chosen, version, (), (), month_truths(ledger), commitments, runs, spike, ledger, connect(ledger, seed),
        resources,
    )  # fmt: skip
    return truth if out is None else write_version(truth, version, out, fmt=fmt, as_of=as_of)


def write_version(
    truth: Truth, version: str, out: Path, *, fmt: str = "parquet", as_of: date | None = None
) -> Truth:
    """Write the same company in another version, format or as seen on another day."""
    from dataclasses import replace

    files = write_files(truth.connection, version, out, fmt=fmt, months=truth.months, as_of=as_of)
    datasets = []
    if version >= "1.3":
        datasets.append(write_commitments(out, version, truth.commitments, truth.resources))
    if version == "1.4":
        datasets += [write_invoices(out, truth.ledger), write_periods(out, truth.ledger)]
    return replace(truth, version=version, files=files, datasets=tuple(datasets))
