"""How certain the amount of an action is: what it rests on, and what would make it another one."""

from __future__ import annotations

from typing import Literal

from planner.finops.review.inputs import Inputs
from planner.finops.review.parts import percent
from planner.records import record

Level = Literal["high", "medium", "low", ""]
MOST_DAYS = 0.9  # of the month's days that must have been seen
STEADY = 0.7  # of the use that must be there on nine days of ten


@record(frozen=True)
class Confidence:
    """A level and its grounds; both empty where there is no amount to be sure of.

    `high`: nothing speaks against the amount; `medium`: one thing does; `low`: several do.
    """

    level: Level = ""
    why: str = ""


def confidence(
    inputs: Inputs,
    *,
    service: tuple[str, str] | None = None,
    days: int | None = None,
    doubts: tuple[str, ...] = (),
) -> Confidence:
    """How certain an amount worked out from the month is.

    Args:
        inputs: has the gate and the days.
        service: provider and service whose use must be steady for the amount to come again; None: it need not be.
        days: on which the thing was seen; by default days of the month with use.
        doubts: what else speaks against the amount.
    """
    month_days = inputs.days_of(inputs.month)
    seen = min(days if days is not None else round(inputs.gate.days), month_days)
    against = [] if seen >= MOST_DAYS * month_days else [f"seen on {seen} of {month_days} days"]
    grounds = [] if against else [f"seen on {seen} of {month_days} days"]
    steady = None if service is None else steady_share(inputs, *service)
    if steady is not None:
        said = f"{percent(steady, 0)} of the service's use is there on nine days of ten"
        (grounds if steady >= STEADY else against).append(said)
    if inputs.gate.status("esr_contract_ratio")[0] != "ok":
        against.append("contracted prices are not all known")
    against += doubts
    level: Level = "low" if len(against) > 1 else "medium" if against else "high"
    return Confidence(level, f"{level}: {'; '.join(against or grounds)}")


def steady_share(inputs: Inputs, provider: str, service: str) -> float | None:
    """The part of the month's use of a service that is there on nine days of ten; None without use at a cost.

    Days of the month without a charge cost nothing; of a month that is not over the days so far count.
    """
    if "steady" not in inputs.answers:
        inputs.answers["steady"] = _steady_shares(inputs)
    found: dict[tuple[str, str], float] = inputs.answers["steady"]
    return found.get((provider, service))


def _steady_shares(inputs: Inputs) -> dict[tuple[str, str], float]:
    """Shares of the services with use at a cost, by provider and service."""
    import numpy as np

    frame = inputs.daily
    days = frame["day"].to_numpy().astype("datetime64[D]")
    own = frame[
        (days >= np.datetime64(inputs.month)) & (days <= np.datetime64(inputs.last_day))
        & (frame["charge_category"] == "Usage")
    ]  # fmt: skip
    sums = own.groupby(["provider", "service", "day"])["effective_cost"].sum()
    out = {}
    for key, costs in sums.groupby(level=["provider", "service"]):
        total = float(costs.sum())
        if total <= 0:
            continue
        cost = np.zeros((inputs.last_day - inputs.month).days + 1)
        cost[: len(costs)] = costs.to_numpy(dtype=float)
        out[key] = max(0.0, min(1.0, float(np.quantile(cost, 0.1)) * len(cost) / total))
    return out
