"""Quotas of the jobs' own files: each binds its job, and what several such jobs draw together is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from catalogs.tables.table import Floats, Ints
    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.inputs.schema import QuotaLimit
    from planner.portfolios.gather import Gathered
    from planner.portfolios.table import CandidateTable, Way


def beyond_own_quotas(loaded: LoadedPortfolio, gathered: Gathered, picks: Ints) -> Iterator[str]:
    """Yield where jobs that run at the same time draw more than the quota which the file of each declares.

    Args:
        loaded: the portfolio with the workloads of its jobs.
        gathered: its candidates.
        picks: those chosen, one per job, by position.
    """
    declared: dict[QuotaLimit, list[int]] = {}
    for job, entry in enumerate(gathered.kinds):
        workload = loaded.workloads[entry]
        for quota in () if workload is None else dict.fromkeys(workload.workload.constraints.quota):
            declared.setdefault(quota, []).append(job)
    for quota, jobs in declared.items():
        if len(jobs) == 1:
            continue
        chosen = gathered.question.table.take(picks[np.isin(gathered.question.table.job[picks], jobs)])
        for region in sorted({way.region for way in gathered.ways if way.machine.draws_on(quota)}):
            most, unit = _most_at_once(chosen, gathered.ways, quota, region)
            if most > quota.limit:
                yield (
                    f"{quota.provider}/{region} {quota.quota}: the files of {len(jobs)} jobs declare "
                    f"{quota.limit:,.12g} {unit}, which apply to each job separately; together they use "
                    f"{most:,.12g} at once: list it under the portfolio's quota"
                )


def _most_at_once(
    table: CandidateTable, ways: Sequence[Way], quota: QuotaLimit, region: str
) -> tuple[float, str]:
    """Most that candidates draw on a quota in one region at any moment, by expected hours, and in which unit."""
    inside = [way.machine if way.region == region else None for way in ways]
    each = np.asarray([0.0 if machine is None else machine.draw_on(quota) for machine in inside])
    draws = table.drawn(each)
    units = [machine.unit_on(quota) for machine in inside if machine is not None and machine.draws_on(quota)]
    return most_at_once(draws, table.start_hours, table.start_hours + table.hours), units[0]


def most_at_once(draws: Ints | Floats, starts: Floats, ends: Floats) -> float:
    """The largest sum of draws from a start (included) to an end (not included), at any moment."""
    used = np.flatnonzero(draws > 0)
    draws, starts, ends = draws[used], starts[used], ends[used]
    begun, over = np.argsort(starts), np.argsort(ends)
    moments = starts[begun]
    taken = np.cumsum(draws[begun])[np.searchsorted(moments, moments, side="right") - 1]
    given_back = np.r_[0.0, np.cumsum(draws[over])][np.searchsorted(ends[over], moments, side="right")]
    return float((taken - given_back).max(initial=0.0))
