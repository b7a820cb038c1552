"""Candidates of all jobs in columns: how each is bought, what it draws, when it runs, what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from planner.portfolios.shared_limits import Ints

if TYPE_CHECKING:
    from planner.inputs.portfolio_schema import SharedQuota

Floats = npt.NDArray[np.float64]
LEFT_OUT = -1  # the way of a job that is not run


@dataclass(frozen=True)
class Way:
    """One way to buy: an offer without its price, and the quota it counts against."""

    provider: str
    region: str
    zone: str
    instance_type: str
    purchase_option: str
    option_variant: str
    family: str
    quota: str = ""
    quota_code: str = ""

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
        self._codes: dict[Way, int] = {}

    def code(self, way: Way) -> int:
        """Number of `way`."""
        code = self._codes.setdefault(way, len(self.all))
        if code == len(self.all):
            self.all.append(way)
        return code

    def draws(self, quotas: Sequence[SharedQuota]) -> Ints:
        """Number of the set of quotas that each way counts against, 0 where there is none; shape `(n_ways,)`."""
        seen: dict[tuple[tuple[int, str], ...], int] = {(): 0}
        keys = [
            tuple((at, way.region) for at, quota in enumerate(quotas) if covers(quota, way))
            for way in self.all
        ]
        return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)


def covers(quota: SharedQuota, way: Way) -> bool:
    """Whether `way` counts against `quota`."""
    return (
        quota.provider == way.provider
        and fnmatchcase(way.region, quota.region)
        and quota.quota in (way.family, way.quota, way.quota_code, "*")
        and (quota.purchase_option is None or quota.purchase_option == way.purchase_option)
    )


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """One row per candidate; every array has shape `(n_candidates,)`.

    Attributes:
        job: number of the job (copies of a job are jobs).
        way: number of the way to buy, `LEFT_OUT` for a job that is not run.
        nodes: instances.
        units: draw on the way's quota.
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
