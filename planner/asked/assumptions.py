"""Assumptions behind billed time: named figures with unit, origin and source, overridable one by one.

They stand in `planner/data/assumptions.csv`. `origin` says how far to trust each: `read` or `measured` (a
figure someone published or we measured), `definition`, `assumed` (our default, reasoned in `note`, not a
fact) or `workload` (the user set it). A row with a
`kind` of workload replaces the row of any kind for workloads of that kind.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from planner.bundled import bundled_rows
from planner.inputs.faults import Fault, FaultError, near
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.load import LoadedWorkload


@record(frozen=True)
class Assumption:
    """One figure; `low` and `high` bound what an override may say."""

    key: str
    value: float
    unit: str
    low: float
    high: float
    origin: str
    source: str
    as_of: str
    note: str


class Assumptions:
    """All figures; read a value as `assumptions.restart_time_s` or `assumptions["restart_time_s"]`."""

    __slots__ = ("__dict__", "_by_key")

    def __init__(self, items: Mapping[str, Assumption]) -> None:
        """Take the figures by key."""
        self._by_key = dict(items)
        self.__dict__.update({key: item.value for key, item in items.items()})  # found without a call

    def __getattr__(self, key: str) -> float:
        """Refuse an unknown value.

        Raises:
            AttributeError: there is no such assumption.
        """
        raise AttributeError(f"no assumption is called {key!r}")

    def __getitem__(self, key: str) -> float:
        """Return the value of `key`; KeyError if it is unknown."""
        return self._by_key[key].value

    def item(self, key: str) -> Assumption:
        """Return the figure `key` with its unit, origin and source; KeyError if it is unknown."""
        return self._by_key[key]

    @property
    def work_ratio(self) -> float:
        """Hours at work over those of the steps: the steps, evaluation, and what a run spends beside both."""
        return 1.0 + self.evaluation_share_ratio + self.beside_steps_ratio

    @property
    def beside_by_default(self) -> float:
        """`beside_steps_ratio` where the workload leaves it to the planner, else 0: who states it need not be told."""
        item = self.item("beside_steps_ratio")
        return 0.0 if item.origin == "workload" else item.value

    def __iter__(self) -> Iterator[Assumption]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def rows(self) -> list[tuple[str, float, str, str, str]]:
        """Return (key, value, unit, origin, note) of every figure, for printing."""
        return [(item.key, item.value, item.unit, item.origin, item.note) for item in self]


def load_assumptions(overrides: Mapping[str, float] | None = None, kind: str = "training") -> Assumptions:
    """Load the figures of a kind of workload and put the user's `overrides` over them.

    Args:
        overrides: value per key, in the key's own unit.
        kind: of the workload; rows of the data file that name it replace those of any kind.

    Raises:
        InputError: one or more overrides name no assumption or are out of range; every fault is listed.
    """
    items = {item.key: item for item in _read(kind)}
    faults: list[Fault] = []
    for key, value in (overrides or {}).items():
        fault = _fault(items, key, value)
        if fault is not None:
            faults.append(fault)
        else:
            note = f"default {items[key].value:g}"
            items[key] = replace(
                items[key], value=float(value), origin="workload", source="workload", note=note
            )
    if faults:
        raise FaultError(*faults)
    return Assumptions(items)


class Beside(NamedTuple):
    """What hours of `jobs` of `of` jobs have beside their steps, over these, as they leave it to the planner."""

    ratio: float = 0.0
    jobs: int = 0
    of: int = 0

    def whose(self, kind: str) -> str:
        """Whose hours these are, where not all: some state it themselves, or were sized elsewhere.

        Args:
            kind: what the jobs are called.
        """
        return "" if self.jobs == self.of else f"{self.jobs:,} of {self.of:,} {kind}"


def beside_by_default(
    workloads: Iterable[LoadedWorkload | None], counts: Iterable[int] = itertools.repeat(1)
) -> Beside:
    """`beside_steps_ratio` of the workloads that leave it to the planner.

    Args:
        workloads: of each entry of a file; None: sized elsewhere, with hours that are the user's.
        counts: equal jobs of each entry.
    """
    ratio, jobs, of = 0.0, 0, 0
    for loaded, count in zip(workloads, counts, strict=False):
        of += count
        if loaded is None:
            continue
        own = load_assumptions(loaded.workload.assumptions, loaded.workload.kind).beside_by_default
        if own:  # one figure for all of a kind
            ratio, jobs = own, jobs + count
    return Beside(ratio, jobs, of)


def _fault(items: Mapping[str, Assumption], key: str, value: float) -> Fault | None:
    path = ("assumptions", key)
    if key not in items:
        hint = near(key, items)
        listing = "" if hint else f"; known: {', '.join(sorted(items))}"
        return Fault(path, f"no such assumption{listing}", hint, at_key=True)
    item = items[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return Fault(path, f"expected a number of {item.unit}, got {value!r}")
    if not item.low <= value <= item.high:
        return Fault(path, f"{value:g} {item.unit} is outside {item.low:g} to {item.high:g}")
    return None


@cache
def _read(kind: str) -> tuple[Assumption, ...]:
    rows = {row["key"]: row for row in bundled_rows("assumptions.csv") if row["kind"] in ("", kind)}
    return tuple(
        Assumption(
            key=row["key"],
            value=float(row["value"]),
            unit=row["unit"],
            low=float(row["low"]),
            high=float(row["high"]),
            origin=row["origin"],
            source=row["source"],
            as_of=row["as_of"],
            note=row["note"],
        )
        for row in rows.values()
    )
