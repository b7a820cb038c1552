"""Candidates that were sized elsewhere: from jobs.yaml, or from a CSV file of any length, read in columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from planner.errors import InputError
from planner.inputs.faults import near
from planner.market.quota import INSTANCES, UNITS
from planner.portfolios.shared_limits import MICRO, MOST, Ints
from planner.portfolios.table import CandidateTable, Way, Ways, single_part
from solvers.problem.errors import ModelError

if TYPE_CHECKING:
    from catalogs.tariffs import Tariffs
    from planner.inputs.portfolio_schema import JobData, SharedCommitment, SizedCandidate

Floats = npt.NDArray[np.float64]
_TEXTS = ("provider", "region", "instance_type", "family", "purchase_option")
QUOTA_UNITS = "units"  # of a quota that a candidate draws on as it declares, where the quota names no unit
_NUMBERS = ("nodes", "hours", "cost_usd", "usd_per_hour", "quota_units")
_NEEDED = ("job", "provider", "region", "instance_type", "nodes", "hours")
GB = Decimal(10**9)
MOST_USD = 1e9


class SizedTable:
    """Sized candidates in columns; `rows_of` finds those of a job."""

    def __init__(self, texts: dict[str, list[str]], numbers: dict[str, Floats], jobs: Sequence[str]) -> None:
        """Take columns of equal length; `jobs` names the job of each row."""
        self.texts, self.numbers = texts, numbers
        order = (
            np.argsort(np.asarray(jobs, dtype=object), kind="stable") if len(jobs) else np.zeros(0, np.int64)
        )
        names = [jobs[at] for at in order.tolist()]
        self._rows: dict[str, Ints] = {}
        edges = [at for at, name in enumerate(names) if at == 0 or name != names[at - 1]] + [len(names)]
        for start, end in pairwise(edges):
            self._rows[names[start]] = order[start:end]

    @property
    def jobs(self) -> set[str]:
        """Names of the jobs that have candidates."""
        return set(self._rows)

    def rows_of(self, job: str) -> Ints:
        """Rows of `job`."""
        return self._rows.get(job, np.zeros(0, dtype=np.int64))


def sized_from_yaml(candidates: Sequence[tuple[str, SizedCandidate]]) -> SizedTable:
    """Sized candidates listed in the portfolio, each with its job's name."""
    texts = {name: [str(getattr(item, name)) for _, item in candidates] for name in _TEXTS}

    def number(name: str) -> Floats:
        values = [getattr(item, name) for _, item in candidates]
        return np.array([np.nan if value is None else float(value) for value in values])

    return SizedTable(texts, {name: number(name) for name in _NUMBERS}, [job for job, _ in candidates])


def sized_from_csv(file: Path, text: str) -> SizedTable:
    """Sized candidates of a CSV file.

    Raises:
        InputError: names the line.
    """
    reader = csv.reader(io.StringIO(text))
    header = next(reader, [])
    known = ("job", *_TEXTS, *_NUMBERS)
    for name in header:
        if name not in known:
            hint = f" (did you mean '{close}'?)" if (close := near(name, known)) else ""
            raise InputError(f"{file}:1: unknown column '{name}'{hint}; known: {', '.join(known)}")
    lacking = [name for name in _NEEDED if name not in header]
    if lacking:
        raise InputError(f"{file}:1: there is no column '{lacking[0]}'")
    rows = [row for row in reader if row]
    uneven = next((at for at, row in enumerate(rows) if len(row) != len(header)), None)
    if uneven is not None:
        raise InputError(f"{file}:{uneven + 2}: has {len(rows[uneven])} cells, the header has {len(header)}")
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}
    defaults = {"purchase_option": "on_demand"}
    texts = {name: columns.get(name, [defaults.get(name, "")] * len(rows)) for name in _TEXTS}
    numbers = {name: _numbers(file, name, columns.get(name), len(rows)) for name in _NUMBERS}
    _check(file, numbers)
    return SizedTable(texts, numbers, columns.get("job", []))


def _numbers(file: Path, name: str, cells: list[str] | None, count: int) -> Floats:
    if cells is None:
        return np.full(count, np.nan)
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        at = next(at for at, cell in enumerate(cells) if cell and not _is_number(cell))
        raise InputError(f"{file}:{at + 2}: {name}: is not a number: '{cells[at][:40]}'") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _check(file: Path, numbers: dict[str, Floats]) -> None:
    """Refuse what no candidate can be; NaN is a number that is missing."""
    nodes, hours = numbers["nodes"], numbers["hours"]
    cost, price, units = numbers["cost_usd"], numbers["usd_per_hour"], numbers["quota_units"]
    rules: list[tuple[Any, str]] = [
        (~(nodes >= 1) | (nodes % 1 != 0), "nodes: must be a whole number of at least 1"),
        (~(hours > 0) | ~np.isfinite(hours), "hours: must be above 0"),
        (np.isnan(cost) == np.isnan(price), "needs one of cost_usd and usd_per_hour"),
        ((cost < 0) | (price < 0), "cost_usd and usd_per_hour must not be below 0"),
        ((cost > MOST_USD) | (price * nodes * hours > MOST_USD), "a cost above 1e9 USD"),
        (
            (units < 1) | (units % 1 != 0) & ~np.isnan(units),
            "quota_units: must be a whole number of at least 1",
        ),
    ]
    for wrong, text in rules:
        if wrong.any():
            raise InputError(f"{file}:{int(np.argmax(wrong)) + 2}: {text}")


class SizedCandidates:
    """Makes candidate tables of sized candidates: pools, data transfer, start and deadline."""

    def __init__(
        self,
        commitments: tuple[SharedCommitment, ...],
        tariffs: Tariffs,
        ways: Ways,
        amounts: Callable[[str, str], dict[str, float]],
    ) -> None:
        """Take what all jobs share.

        Args:
            commitments: machines that jobs share.
            tariffs: transfer prices.
            ways: where the ways to buy are numbered.
            amounts: what an instance of a provider's type draws in each unit of quotas, as far as it is known; asked
                for candidates that give no quota_units.
        """
        self._tariffs, self._ways, self._amounts = tariffs, ways, amounts
        names = ("provider", "region", "instance_type", "purchase_option")
        self._pools = {
            tuple(getattr(item, name) for name in names): at for at, item in enumerate(commitments)
        }
        self._transfers: dict[tuple[str, str, int], float] = {}
        self._codes: dict[tuple[tuple[str, ...], bool], int] = {}
        self.unknown_transfers: set[str] = set()

    def build(
        self,
        source: SizedTable,
        rows: Ints,
        *,
        data: JobData | None,
        begin_hours: float,
        deadline_hours: float | None,
        delay_usd_per_hour: float,
    ) -> CandidateTable:
        """Candidates `rows` of a job that starts at `begin_hours` and must end by `deadline_hours`, as job 0."""
        texts, numbers = source.texts, {name: column[rows] for name, column in source.numbers.items()}
        at = rows.tolist()
        keys = [tuple(texts[name][row] for name in _TEXTS) for row in at]
        nodes, hours = numbers["nodes"].astype(np.int64), numbers["hours"]
        with np.errstate(over="ignore"):  # infinity is refused with the other numbers too large
            paid = numbers["usd_per_hour"] * nodes * hours
        cost = _micro(
            np.where(np.isnan(numbers["cost_usd"]), paid, numbers["cost_usd"]), "cost of a candidate"
        )
        if data is not None:
            moved = [self._transfer_usd(data, f"{key[0]}/{key[1]}") for key in keys]
            cost += _micro(np.array(moved), "transfer into a region")
        units = numbers["quota_units"]
        ways = [
            self._way(key, declared=declared)
            for key, declared in zip(keys, (~np.isnan(units)).tolist(), strict=True)
        ]
        end = begin_hours + hours
        late = np.zeros(len(rows)) if deadline_hours is None else np.maximum(end - deadline_hours, 0.0)
        return CandidateTable(
            job=np.zeros(len(rows), dtype=np.int64),
            **single_part(
                np.array(ways, dtype=np.int64), nodes, np.nan_to_num(units, nan=0.0).astype(np.int64),
                np.array([self._pools.get((*key[:3], key[4]), -1) for key in keys], dtype=np.int64),
            ),
            start_hours=np.full(len(rows), begin_hours), hours=hours, cost_micro_usd=cost,
            counted_micro_usd=cost + _micro(delay_usd_per_hour * end, "delay until a candidate ends"), late_hours=late,
            source=np.full(len(rows), -1), row=np.full(len(rows), -1),
        )  # fmt: skip

    def _way(self, key: tuple[str, ...], *, declared: bool) -> int:
        """Number of a way; without `declared` quota_units it draws by the type's own numbers, else one per instance."""
        if (key, declared) not in self._codes:
            provider, region, instance_type, family, option = key
            amounts = dict.fromkeys((QUOTA_UNITS, INSTANCES), 1.0)
            if declared:  # what it declares counts in whichever unit the quota has
                amounts |= dict.fromkeys(UNITS, 1.0)
            elif family:
                amounts |= self._amounts(provider, instance_type)
            names = ((family, QUOTA_UNITS),) if family else ()
            way = Way(provider, region, "", instance_type, option, "", names, tuple(amounts.items()))
            self._codes[key, declared] = self._ways.code(way)
        return self._codes[key, declared]

    def _transfer_usd(self, data: JobData, place: str) -> float:
        """USD for the data into `place`: once per region, whatever the number of candidates."""
        key = (data.location, place, data.size)
        if key not in self._transfers:
            source, target = data.location.partition("/"), place.partition("/")
            curve = self._tariffs.transfer_curve(source[0], source[2], target[0], target[2])
            if curve is None:
                self.unknown_transfers.add(f"{data.location} to {place}")
                curve = self._tariffs.dearest_internet_curve()
            self._transfers[key] = float(curve.cost_usd(curve.quantity(Decimal(data.size) / GB)))
        return self._transfers[key]


def _micro(usd: Floats, what: str) -> Ints:
    """`usd` in whole micro-dollars.

    Raises:
        ModelError: an amount is too large to be counted so.
    """
    if float(np.max(usd, initial=0.0)) * MICRO >= MOST:
        raise ModelError(f"portfolio: a {what} is {float(usd.max()):g} USD; check prices and hours")
    return np.rint(usd * MICRO).astype(np.int64)
