"""Options of a command line that are not in the workload file."""

from __future__ import annotations

from datetime import UTC, date, datetime

from planner.records import record


@record(frozen=True)
class Options:
    """Flags of `planner optimize` that are not part of the workload.

    Attributes:
        now: the moment planned at (`--as-of`, default the present).
        as_of: prices as known on this day; None = the newest.
        solver: `enumerate`; `milp` for the same question through a MILP backend; `both`: the MILP must agree.
        backend: MILP backend name; `auto`: the fastest one installed, scipy beside an enumeration.
        gap: relative gap at which a MILP may stop.
        time_limit_s: most seconds of solving.
        live_quota: read the account's quotas and plan within them.
        live_prices: of prices asked for just before: a warning for each provider whose prices are not of today.
        max_age_days: refuse an answer that rests on an older price; None = never.
        calibrated: correct predictions with the user's own measurements.
        replays: futures on which a plan with spot is replayed; 0 none.
        quote: level at which the plan's cost and end are bounded, 0.5 to 0.999; None: no bound is asked for.
        brief: of a single job describe the plan alone, without what stands beside it (alternatives, choices, filters,
            storage): for questions that show one row of it. Choice, cost, risk and savings stay the same; its proof
            counts the candidates that were looked at, as those that cannot be the best are not.
    """

    now: datetime
    as_of: date | None = None
    solver: str = "enumerate"
    backend: str = "auto"
    gap: float = 1e-3
    time_limit_s: float = 30.0
    live_quota: bool = False
    live_prices: tuple[str, ...] = ()
    max_age_days: int | None = None
    calibrated: bool = True
    replays: int = 0
    quote: float | None = None
    brief: bool = False


def options_at(moment: datetime | None) -> Options:
    """The options of a question asked at a moment with the prices known on its day; None: now, with the newest."""
    return Options(moment or utc_now(), as_of=moment and moment.date())


def utc_now() -> datetime:
    """The present moment in UTC, to the minute."""
    return datetime.now(UTC).replace(second=0, microsecond=0)
