"""What to do now: the rest of the work asked of the candidate engine, against staying."""

from __future__ import annotations

from planner.records import record


@record(frozen=True)
class Way:
    """One way to go on.

    Attributes:
        action: stay | add nodes | change type | go on-demand.
        choice: machines and way to buy.
        usd: from now to the end, the change included; change_usd: of it, what the change costs.
        finish: ISO moment; p_meet: probability to be in time, None without a deadline.
        reason: why there is no such way; empty where there is.
    """

    action: str
    choice: str
    usd: float | None
    change_usd: float
    finish: str | None
    p_meet: float | None
    reason: str = ""


@record(frozen=True)
class Replan:
    """Ways to go on, and the one to take."""

    decision: str
    why: str
    ways: tuple[Way, ...]
    notes: tuple[str, ...] = ()
