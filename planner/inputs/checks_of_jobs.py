"""Rules on jobs and tasks that are planned together: sizes of data, deadlines, starts and costs of sized candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from planner.inputs.checks import end_moment, start_moment
from planner.inputs.faults import Fault
from planner.inputs.purchase_options import COMMIT_OPTIONS

if TYPE_CHECKING:
    from planner.inputs.faults import Path
    from planner.inputs.portfolio_schema import Portfolio, PortfolioJob, SizedCandidate

PAID_ALREADY = frozenset({"owned", *COMMIT_OPTIONS})  # there are as many as were bought
ONE_PRICE = "needs either cost_usd or usd_per_hour"
NO_PRICE = "a price of 0 is none: only what is paid already (owned, reserved, ...) costs nothing more"
_LEAST_DATA = 1_000  # bytes: less is a number whose unit was forgotten


def tiny_data(place: Path, size: int) -> Iterator[Fault]:
    """A size of data that is moved between tasks or regions, which nobody would state in so few bytes."""
    if size < _LEAST_DATA:
        yield Fault(
            place, f"is {size:,} bytes: a number without a unit counts bytes; write '{size}GB' or '{size}TB'"
        )


def over_before(
    place: Path, limit: timedelta | date | datetime | None, start: date | datetime | None
) -> Iterator[Fault]:
    """A deadline that is a date no later than the start."""
    if (
        limit is None
        or start is None
        or isinstance(limit, timedelta)
        or end_moment(limit) > start_moment(start)
    ):
        return
    yield Fault(place, f"{limit.isoformat()} is not after the start, {start.isoformat()}")


def is_over(portfolio: Portfolio, job: PortfolioJob) -> bool:
    """Whether the deadline of a job has passed when it may start; a length of time counts from its submission."""
    limit, given = job.deadline, job.submitted
    if job.earliest_start is None or limit is None:
        return False
    begin = start_moment(job.earliest_start)
    if not isinstance(limit, timedelta):
        return begin >= end_moment(limit)
    if portfolio.start is None:
        return False
    origin = start_moment(portfolio.start)
    if given is not None:
        origin = max(origin, origin + given if isinstance(given, timedelta) else start_moment(given))
    return begin >= origin + limit


def cost_faults(path: tuple[str | int, ...], candidates: Sequence[SizedCandidate]) -> Iterator[Fault]:
    """Yield a fault per candidate at `path` without one price, or with a price of 0 for what is not paid already."""
    for number, item in enumerate(candidates):
        if (item.cost_usd is None) == (item.usd_per_hour is None):
            yield Fault((*path, number), ONE_PRICE)
            continue
        field = "cost_usd" if item.cost_usd is not None else "usd_per_hour"
        if getattr(item, field) == 0 and item.purchase_option not in PAID_ALREADY:
            yield Fault((*path, number, field), NO_PRICE)
