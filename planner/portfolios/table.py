"""Candidates of all jobs in columns: how each is bought, what it draws, when it runs, what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.market.quota import Machine

if TYPE_CHECKING:
    from planner.inputs.portfolio_schema import SharedQuota

LEFT_OUT = -1  # the way of a job that is not run
_PER_PART = {
    "way": -1,
    "nodes": 0,
    "units": 0,
    "pool": -1,
}  # columns with one value per part, and that of none
MOST_UNITS = 2.0**53  # a limit above it never binds


@dataclass(frozen=True)
class Way:
    """One way to buy: an offer without its price.

    Attributes:
        names, amounts: quotas that an instance counts against and what it draws in each unit, as in
            `planner.market.quota.Machine`; in pairs.
    """

    provider: str
    region: str
    zone: str
    instance_type: str
    purchase_option: str
    option_variant: str
    names: tuple[tuple[str, str], ...] = ()
    amounts: tuple[tuple[str, float], ...] = ()

    @property
    def machine(self) -> Machine:
        """An instance as quotas see it."""
        return Machine(self.provider, self.region, self.purchase_option, dict(self.names), dict(self.amounts))

    @property
    def offer_id(self) -> str:
        """The offer's id, as in plans."""
        parts = (
            self.provider, self.region, self.zone, self.instance_type, self.purchase_option, self.option_variant
        )  # fmt: skip
        return "/".join(part or "-" for part in parts)


class Ways:
    """All ways seen, each with a number."""

    def __init__(self) -> None:
        """Start empty."""
        self.all: list[Way] = []
        self._quotas: Sequence[SharedQuota] = ()
        self._draws: list[list[float]] = []  # on those quotas, of the first ways
        self._codes: dict[Way, int] = {}

    def code(self, way: Way) -> int:
        """Number of `way`."""
        code = self._codes.setdefault(way, len(self.all))
        if code == len(self.all):
            self.all.append(way)
        return code

    def draws(self, quotas: Sequence[SharedQuota]) -> Floats:
        """Units that an instance of each way draws on each quota, 0 where it does not count; `(n_ways, n_quotas)`."""
        if self._quotas is not quotas:
            self._quotas, self._draws = quotas, []
        none, limited = [0.0] * len(quotas), {quota.provider for quota in quotas}
        for way in self.all[len(self._draws) :]:
            machine = way.machine if way.provider in limited else None
            self._draws.append(none if machine is None else [machine.draw_on(quota) for quota in quotas])
        return np.array(self._draws).reshape(len(self.all), len(quotas))


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """One row per candidate; every array has shape `(n_candidates,)` unless said.

    Attributes:
        job: number of the job (copies of a job are jobs).
        way: number of the way to buy of each part, -1 where there is none, shape `(n_candidates, most_parts)`; all
            are `LEFT_OUT` for a job that is not run.
        nodes: instances of each part; units: draw on each quota that its way counts against, in the quota's unit, 0:
            by the way's own numbers; pool: commitment it draws on, -1 none; of the same shape.
        together: whether the parts run side by side, so that their draws on one quota add up; else one after another.
        start_hours: start after the portfolio's.
        hours: elapsed hours from start to end.
        cost_micro_usd: whole expected cost, data transfer included.
        counted_micro_usd: what is minimised: cost, delay, lost value.
        late_hours: end after the job's deadline; only candidates at 0 are feasible.
        source, row: where it is described in full (`portfolios.candidates.Source`), -1 for one sized elsewhere.
    """

    job: Ints
    way: Ints
    nodes: Ints
    units: Ints
    pool: Ints
    together: Bools
    start_hours: Floats
    hours: Floats
    cost_micro_usd: Ints
    counted_micro_usd: Ints
    late_hours: Floats
    source: Ints
    row: Ints

    def __len__(self) -> int:
        return len(self.job)

    def part_draws(self, each: Floats) -> Floats:
        """Units that each part draws on a quota of which an instance of way w draws `each[w]`, `(n, most_parts)`."""
        per_instance = np.append(each, 0.0)[self.way]  # no part, and a job left out, draws nothing
        drawn = np.where((self.units > 0) & (per_instance > 0), self.units, per_instance * self.nodes)
        return np.minimum(drawn, MOST_UNITS)

    def drawn(self, each: Floats) -> Ints:
        """Whole units that candidates draw on a quota of which an instance of way w draws `each[w]`."""
        return self._at_once(self.part_draws(each))

    def drawn_of_pool(self, number: int) -> Ints:
        """Nodes that candidates draw on commitment `number`."""
        return self._at_once(np.where(self.pool == number, self.nodes, 0))

    def _at_once(self, draws: Floats | Ints) -> Ints:
        """Draws of all parts in use at one time, whole."""
        used = np.where(self.together, draws.sum(axis=1), draws.max(axis=1, initial=0))
        whole: Ints = np.ceil(np.minimum(used, MOST_UNITS) - 1e-9).astype(np.int64)
        return whole

    def take(self, at: Ints | Bools) -> CandidateTable:
        """Rows `at`."""
        return CandidateTable(**{field.name: getattr(self, field.name)[at] for field in fields(self)})

    def with_source(self, source: Ints, row: Ints) -> CandidateTable:
        """The same with where each candidate is described in full."""
        return replace(self, source=source, row=row)

    @property
    def left_out(self) -> Bools:
        """Whether a row stands for not running its job."""
        return np.asarray((self.way == LEFT_OUT).all(axis=1))

    def for_job(self, job: int) -> CandidateTable:
        """The same candidates for another job."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return CandidateTable(**{**columns, "job": np.full(len(self), job, dtype=np.int64)})


def concat_tables(parts: Sequence[CandidateTable]) -> CandidateTable:
    """Join tables and put them in the order of their jobs, then cost, then way."""
    width = max((part.way.shape[1] for part in parts), default=1)
    columns: dict[str, Any] = {}
    for field in fields(CandidateTable):
        values = [getattr(part, field.name) for part in parts]
        if field.name in _PER_PART:
            empty = _PER_PART[field.name]
            short = ((0, width - value.shape[1]) for value in values)
            values = [
                np.pad(value, ((0, 0), more), constant_values=empty) if more[1] else value
                for value, more in zip(values, short, strict=True)
            ]
        columns[field.name] = np.concatenate(values)
    joined = CandidateTable(**columns)
    order = np.lexsort(
        (joined.start_hours, *reversed(joined.nodes.T), *reversed(joined.way.T), joined.counted_micro_usd,
         joined.late_hours > 0, joined.job)
    )  # fmt: skip
    return joined.take(order)


def left_out(jobs: Ints, values_micro_usd: Ints) -> CandidateTable:
    """The candidates of not running `jobs`, one each."""
    zeros, none = np.zeros(len(jobs), dtype=np.int64), np.full(len(jobs), -1)
    return CandidateTable(
        job=jobs, **single_part(np.full(len(jobs), LEFT_OUT), zeros, zeros, none), start_hours=np.zeros(len(jobs)),
        hours=np.zeros(len(jobs)), cost_micro_usd=zeros, counted_micro_usd=values_micro_usd,
        late_hours=np.zeros(len(jobs)), source=none, row=none,
    )  # fmt: skip


def single_part(way: Ints, nodes: Ints, units: Ints, pool: Ints) -> dict[str, Any]:
    """Columns of candidates of one part each, every argument of shape `(n_candidates,)`."""
    columns = {"way": way, "nodes": nodes, "units": units, "pool": pool}
    parts: dict[str, Any] = {name: column[:, None] for name, column in columns.items()}
    return parts | {"together": np.zeros(len(way), dtype=np.bool_)}
