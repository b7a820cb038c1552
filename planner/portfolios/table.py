"""Candidates of all jobs in columns: how each is bought, what it draws, when it runs, what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from planner.market.quota import Machine
from planner.portfolios.shared_limits import Ints

if TYPE_CHECKING:
    from planner.inputs.portfolio_schema import SharedQuota

Floats = npt.NDArray[np.float64]
LEFT_OUT = -1  # the way of a job that is not run
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
        self._machines: list[Machine] = []
        self._codes: dict[Way, int] = {}

    def code(self, way: Way) -> int:
        """Number of `way`."""
        code = self._codes.setdefault(way, len(self.all))
        if code == len(self.all):
            self.all.append(way)
        return code

    def draws(self, quotas: Sequence[SharedQuota]) -> Floats:
        """Units that an instance of each way draws on each quota, 0 where it does not count; `(n_ways, n_quotas)`."""
        while len(self._machines) < len(self.all):
            self._machines.append(self.all[len(self._machines)].machine)
        return np.array([[machine.draw_on(quota) for quota in quotas] for machine in self._machines]).reshape(
            len(self.all), len(quotas)
        )


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """One row per candidate; every array has shape `(n_candidates,)`.

    Attributes:
        job: number of the job (copies of a job are jobs).
        way: number of the way to buy, `LEFT_OUT` for a job that is not run.
        nodes: instances.
        units: draw on each quota that the way counts against, in its unit; 0: by the way's own numbers.
        pool: commitment it draws on, -1 none.
        start_hours: start after the portfolio's.
        hours: elapsed hours from start to end.
        cost_micro_usd: whole expected cost, data transfer included.
        counted_micro_usd: what is minimised: cost, delay, lost value.
        late_hours: end after the job's deadline; only candidates at 0 are feasible.
    """

    job: Ints
    way: Ints
    nodes: Ints
    units: Ints
    pool: Ints
    start_hours: Floats
    hours: Floats
    cost_micro_usd: Ints
    counted_micro_usd: Ints
    late_hours: Floats

    def __len__(self) -> int:
        return len(self.job)

    def drawn(self, each: Floats) -> Ints:
        """Whole units that candidates draw on a quota of which an instance of way w draws `each[w]`."""
        per_instance = np.append(each, 0.0)[self.way]  # a job left out draws nothing
        drawn = np.where((self.units > 0) & (per_instance > 0), self.units, per_instance * self.nodes)
        return np.ceil(np.minimum(drawn, MOST_UNITS) - 1e-9).astype(np.int64)

    def take(self, at: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> CandidateTable:
        """Rows `at`."""
        return CandidateTable(**{field.name: getattr(self, field.name)[at] for field in fields(self)})

    def for_job(self, job: int) -> CandidateTable:
        """The same candidates for another job."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return CandidateTable(**{**columns, "job": np.full(len(self), job, dtype=np.int64)})


def concat_tables(parts: Sequence[CandidateTable]) -> CandidateTable:
    """Join tables and put them in the order of their jobs, then cost, then way."""
    joined = CandidateTable(
        **{
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(CandidateTable)
        }
    )
    order = np.lexsort(
        (joined.start_hours, joined.nodes, joined.way, joined.counted_micro_usd, joined.late_hours > 0, joined.job)
    )  # fmt: skip
    return joined.take(order)


def left_out(job: int, value_micro_usd: int) -> CandidateTable:
    """The candidate of not running `job`."""
    one, zero = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return CandidateTable(
        job * one, LEFT_OUT * one, zero, zero, -one, np.zeros(1), np.zeros(1), zero, value_micro_usd * one, np.zeros(1)
    )  # fmt: skip
