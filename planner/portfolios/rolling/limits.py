"""What jobs share at every moment: owned instances, quotas of the account, and the part of each that a team may use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Ints
from planner.inputs.checks import start_moment
from planner.portfolios.job_times import end_hours, hours_after
from planner.portfolios.shared_limits import CAPACITY, QUOTA

if TYPE_CHECKING:
    from planner.inputs.portfolio_schema import Portfolio, SharedCommitment, SharedQuota
    from planner.portfolios.table import CandidateTable, Ways


@dataclass(frozen=True)
class RollingLimit:
    """One limit.

    Attributes:
        amount: most that is in use at once.
        team: whose jobs count against it, None all.
        number: of the commitment or own machine, or of the quota.
        region: of a quota, each region has its own.
    """

    label: str
    kind: int
    unit: str
    amount: int
    team: str | None
    number: int
    region: str = ""


class Limits:
    """All limits; those of quotas are added as regions appear.

    Attributes:
        all: the limits; positions never change.
        pools: owned instances: commitments of the file, then machines of workloads' files.
        usd_per_node_hour: of each pool, 0 where it is not stated.
        end_hours: when each pool expires, infinity where it does not.
        carried: until when (hours) carried-over work holds how much of the limits.
    """

    def __init__(
        self,
        portfolio: Portfolio,
        shared_commitments: tuple[SharedCommitment, ...],
        ways: Ways,
        start: datetime,
    ) -> None:
        """Take the commitments, quotas and teams of a portfolio."""
        self._ways = ways
        self.pools = (*portfolio.commitments, *shared_commitments)
        self.usd_per_node_hour = tuple(float(pool.usd_per_node_hour or 0) for pool in self.pools)
        self.end_hours = tuple(end_hours(pool, start) for pool in self.pools)
        self.all: list[RollingLimit] = []
        self._at: dict[tuple[str | None, int, int, str], int] = {}
        self.carried: list[tuple[float, dict[int, int]]] = []
        for number, pool in enumerate(self.pools):
            whole = int(pool.nodes * (1.0 if pool.share is None else float(pool.share)) + 1e-9)
            label = f"{pool.provider}/{pool.region} {pool.instance_type} ({pool.purchase_option})"
            at = self._add(RollingLimit(label, CAPACITY, "nodes", whole, None, number))
            for name, team in portfolio.teams.items():
                amount = int(whole * float(team.share) + 1e-9)
                if amount < whole:
                    self._add(RollingLimit(f"{name}: {label}", CAPACITY, "nodes", amount, name, number))
            if pool.busy_nodes:
                until = (
                    math.inf if pool.busy_until is None else hours_after(start_moment(pool.busy_until), start)
                )
                self.carried.append((until, {at: min(pool.busy_nodes, whole)}))
        self._quotas: list[tuple[str | None, tuple[SharedQuota, ...]]] = [(None, portfolio.quota)]
        self._quotas += [(name, team.quota) for name, team in portfolio.teams.items() if team.quota]

    @property
    def amounts(self) -> Ints:
        """Most in use of each, shape `(n_limits,)`."""
        return np.array([limit.amount for limit in self.all], dtype=np.int64)

    def draws(self, table: CandidateTable, team: str | None) -> list[dict[int, int]]:
        """What each of a job's ways draws on which limit, as whole units above 0."""
        out: list[dict[int, int]] = [{} for _ in range(len(table))]
        for number in range(len(self.pools)):
            drawn = table.drawn_of_pool(number)
            for name in (None, team) if team is not None else (None,):
                self._note(out, drawn, self._at.get((name, CAPACITY, number, "")))
        for name, quotas in self._quotas:
            if name is None or name == team:
                self._draw_quotas(out, table, name, quotas)
        return out

    def _draw_quotas(
        self,
        out: list[dict[int, int]],
        table: CandidateTable,
        team: str | None,
        quotas: Sequence[SharedQuota],
    ) -> None:
        regions = np.array([way.region for way in self._ways.all], dtype=object)
        for number, quota in enumerate(quotas):
            each = np.array([way.machine.draw_on(quota) for way in self._ways.all])
            for region in sorted(set(regions[each > 0].tolist())):
                drawn = table.drawn(np.where(regions == region, each, 0.0))
                if not drawn.any():
                    continue
                key = (team, QUOTA, number, region)
                if key not in self._at:
                    first = next(
                        way for way in self._ways.all if way.region == region and way.machine.draw_on(quota)
                    )
                    label = f"{team + ': ' if team else ''}{quota.provider}/{region} {quota.quota}"
                    label += f" ({quota.purchase_option})" if quota.purchase_option else ""
                    unit = first.machine.unit_on(quota)
                    self._add(RollingLimit(label, QUOTA, unit, int(quota.limit), team, number, region))
                self._note(out, drawn, self._at[key])

    def _note(self, out: list[dict[int, int]], drawn: Ints, limit: int | None) -> None:
        if limit is not None:
            for at in np.flatnonzero(drawn).tolist():
                out[at][limit] = int(drawn[at])

    def _add(self, limit: RollingLimit) -> int:
        self._at[limit.team, limit.kind, limit.number, limit.region] = len(self.all)
        self.all.append(limit)
        return len(self.all) - 1
