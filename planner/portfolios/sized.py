"""Candidates that were sized elsewhere: from jobs.yaml, or from a CSV file of any length, read in columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.errors import InputError
from planner.files.tables import comma_hint, csv_rows
from planner.inputs.checks_of_jobs import NO_PRICE, ONE_PRICE, PAID_ALREADY
from planner.inputs.faults import near, need_columns
from planner.inputs.purchase_options import PurchaseOption
from planner.market.place_names import misspelt_places
from planner.market.quota import INSTANCES, UNITS
from planner.portfolios.shared_limits import MICRO, MOST
from planner.portfolios.table import CandidateTable, Way, Ways, single_part
from solvers.problem.errors import ModelError

if TYPE_CHECKING:
    from catalogs.tariffs import Tariffs
    from planner.inputs.portfolio_schema import JobData, SharedCommitment, SizedCandidate

_TEXTS = ("provider", "region", "instance_type", "family", "purchase_option")
QUOTA_UNITS = "units"  # of a quota that a candidate draws on as it declares, where the quota names no unit
_NUMBERS = ("nodes", "hours", "cost_usd", "usd_per_hour", "quota_units")
_NEEDED = ("job", "provider", "region", "instance_type", "nodes", "hours")
GB = Decimal(10**9)
MOST_USD = 1e9


class SizedTable:
    """Sized candidates in columns; `rows_of` finds those of a job.

    Attributes:
        numbers: columns of numbers, NaN where a cell is empty.
        key: what each row buys, a position in `keys`.
        keys: the texts, and whether the row declares its quota_units.
        way: of each key, the number of its way, -1 where it has none yet.
        pools: of each key, the numbers of the commitments of its terms, -1 behind them, shape `(n_keys, most)`.
    """

    def __init__(self, texts: dict[str, list[str]], numbers: dict[str, Floats], jobs: Sequence[str]) -> None:
        """Take columns of equal length; `jobs` names the job of each row."""
        self.numbers = numbers
        codes: dict[tuple[tuple[str, ...], bool], int] = {}
        declared = (~np.isnan(numbers["quota_units"])).tolist()
        bought = zip(zip(*(texts[name] for name in _TEXTS), strict=True), declared, strict=True)
        self.key = np.array([codes.setdefault(one, len(codes)) for one in bought], dtype=np.int64)
        self.keys = list(codes)
        self.way, self.pools = np.full(len(codes), -1), np.full((len(codes), 1), -1)
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
    reader = csv_rows(text, file).reader
    header = next(reader, [])
    known = ("job", *_TEXTS, *_NUMBERS)
    for name in header:
        if name not in known:
            hint = f" (did you mean '{close}'?)" if (close := near(name, known)) else ""
            raise InputError(f"{file}:1: unknown column {name!r}{hint}; known: {', '.join(known)}")
    need_columns(file, header, _NEEDED)
    rows = [row for row in reader if row]
    uneven = next((at for at, row in enumerate(rows) if len(row) != len(header)), None)
    if uneven is not None:
        raise InputError(f"{file}:{uneven + 2}: has {len(rows[uneven])} cells, the header has {len(header)}")
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}
    defaults = {"purchase_option": "on_demand"}
    texts = {name: columns.get(name, [defaults.get(name, "")] * len(rows)) for name in _TEXTS}
    numbers = {name: _numbers(file, name, columns.get(name), len(rows)) for name in _NUMBERS}
    _check_names(file, texts)
    _check(file, numbers, np.isin(texts["purchase_option"], list(PAID_ALREADY)))
    return SizedTable(texts, numbers, columns.get("job", []))


def _check_names(file: Path, texts: dict[str, list[str]]) -> None:
    """Refuse places that are misspelt, and purchase options that do not exist, with the line of the first."""
    options = texts["purchase_option"]
    for option in dict.fromkeys(options):
        if option in get_args(PurchaseOption):
            continue
        hint = f" (did you mean '{close}'?)" if (close := near(option, get_args(PurchaseOption))) else ""
        line = options.index(option) + 2
        raise InputError(f"{file}:{line}: purchase_option: there is no {option[:40]!r}{hint}")
    places = list(zip(texts["provider"], texts["region"], strict=True))
    for place, (field, text, meant) in misspelt_places(places).items():
        raise InputError(f"{file}:{places.index(place) + 2}: {field}: {text} (did you mean '{meant}'?)")


def _numbers(file: Path, name: str, cells: list[str] | None, count: int) -> Floats:
    if cells is None:
        return np.full(count, np.nan)
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        at = next(at for at, cell in enumerate(cells) if cell and not _is_number(cell))
        raise InputError(
            f"{file}:{at + 2}: {name}: is not a number: {cells[at][:40]!r}{comma_hint(cells[at])}"
        ) from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _check(file: Path, numbers: dict[str, Floats], paid: Bools) -> None:
    """Refuse what no candidate can be; NaN is a number that is missing, `paid` is bought already, shape `(n_rows,)`."""
    nodes, hours = numbers["nodes"], numbers["hours"]
    cost, price, units = numbers["cost_usd"], numbers["usd_per_hour"], numbers["quota_units"]
    with np.errstate(invalid="ignore", over="ignore"):  # of infinite numbers, which the rules refuse
        whole_nodes, whole_units, total = nodes % 1 == 0, units % 1 == 0, price * nodes * hours
    rules: list[tuple[Any, str]] = [
        (~(nodes >= 1) | ~whole_nodes, "nodes: must be a whole number of at least 1"),
        (~(hours > 0) | ~np.isfinite(hours), "hours: must be above 0"),
        (np.isnan(cost) == np.isnan(price), ONE_PRICE),
        ((cost < 0) | (price < 0), "cost_usd and usd_per_hour must not be below 0"),
        (((cost == 0) | (price == 0)) & ~paid, NO_PRICE),
        ((cost > MOST_USD) | (total > MOST_USD), "a cost above 1e9 USD"),
        (
            (units < 1) | ~whole_units & ~np.isnan(units),
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
        self._pools: dict[tuple[str, ...], list[int]] = {}
        for at, item in enumerate(commitments):
            self._pools.setdefault(tuple(getattr(item, name) for name in names), []).append(at)
        self._most_alike = max(map(len, self._pools.values()), default=1)
        self._transfers: dict[tuple[str, str, int], float] = {}
        self._codes: dict[tuple[tuple[str, ...], bool], int] = {}
        self.unknown_transfers: set[str] = set()

    def number_ways(self, source: SizedTable, rows: Ints) -> None:
        """Give numbers to the ways of candidates `rows` that have none, in their order."""
        if source.pools.shape[1] < self._most_alike:
            source.pools = np.full((len(source.keys), self._most_alike), -1)
        for key in source.key[rows].tolist():
            if source.way[key] < 0:
                parts, declared = source.keys[key]
                source.way[key] = self._way(parts, declared=declared)
                pools = self._pools.get((*parts[:3], parts[4]), [])
                source.pools[key, : len(pools)] = pools

    def build(
        self,
        source: SizedTable,
        rows: Ints,
        *,
        job: Ints,
        data: Sequence[JobData | None] | None,
        begin_hours: Floats,
        deadline_hours: Floats,
        delay_usd_per_hour: Floats,
    ) -> CandidateTable:
        """Candidates `rows`, whose ways have numbers; all else is of each candidate's job, of shape `(n_rows,)`.

        One on a commitment is a candidate on each of those of equal terms.

        Args:
            source: where the rows are.
            rows: of the source.
            job: number of the job.
            data: what the job reads; None where none reads any.
            begin_hours: when it starts.
            deadline_hours: when it must have ended, infinity without a deadline.
            delay_usd_per_hour: what an hour until its end counts.
        """
        numbers = {name: column[rows] for name, column in source.numbers.items()}
        nodes, hours = numbers["nodes"].astype(np.int64), numbers["hours"]
        with np.errstate(over="ignore"):  # infinity is refused with the other numbers too large
            paid = numbers["usd_per_hour"] * nodes * hours
        cost = _micro(
            np.where(np.isnan(numbers["cost_usd"]), paid, numbers["cost_usd"]), "cost of a candidate"
        )
        key = source.key[rows]
        at, slot = np.nonzero((source.pools[key] >= 0) | (np.arange(source.pools.shape[1]) == 0))
        if data is not None:
            places = [f"{source.keys[at][0][0]}/{source.keys[at][0][1]}" for at in key.tolist()]
            moved = [
                0.0 if one is None else self._transfer_usd(one, place)
                for one, place in zip(data, places, strict=True)
            ]
            cost += _micro(np.array(moved), "transfer into a region")
        units = np.nan_to_num(numbers["quota_units"], nan=0.0).astype(np.int64)
        end = begin_hours + hours
        counted = cost + _micro(delay_usd_per_hour * end, "delay until a candidate ends")
        late, none = np.maximum(end - deadline_hours, 0.0), np.full(len(at), -1)
        return CandidateTable(
            job=job[at],
            **single_part(source.way[key][at], nodes[at], units[at], source.pools[key[at], slot]),
            start_hours=begin_hours[at], hours=hours[at], cost_micro_usd=cost[at], counted_micro_usd=counted[at],
            late_hours=late[at], source=none, row=none.copy(),
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
