"""The answer to a commitment question as values: what to buy, what it saves, what is at risk, and what is proven."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from planner.records import record
from planner.render.presentable import Presentable
from planner.version import __version__

SCHEMA_VERSION = 1


@record(frozen=True)
class Level:
    """One portfolio: a multiple of the recommended one, or the recommended one under other demand.

    Attributes:
        share: multiple of the recommended commitments, or of the demand.
        committed_usd: what the commitments of today cost over the horizon.
        planned_usd: what those cost that are planned for later; they are decided then, and not owed yet.
        expected_usd: expected cost, all commitments included, as if those planned were bought whatever comes.
        worst_usd: mean of the worst outcomes (CVaR at the question's level), commitments included.
        without_usd: expected cost without new commitments.
        coverage_ratio: demand covered by commitments, owned ones included, of all demand, at on-demand prices.
        utilisation_ratio: new commitments used, of those paid for, at their own prices; None without any.
    """

    share: float
    committed_usd: float
    planned_usd: float
    expected_usd: float
    worst_usd: float
    without_usd: float
    coverage_ratio: float
    utilisation_ratio: float | None

    @property
    def savings_usd(self) -> float:
        """What the commitments save against none; negative where they lose."""
        return self.without_usd - self.expected_usd


@record(frozen=True)
class Regret:
    """Cost beyond what perfect foresight would have cost, over the scenarios."""

    mean_usd: float
    p90_usd: float
    worst_usd: float
    mean_ratio: float
    scenarios: int


@record(frozen=True)
class Loss:
    """How often the purchases cost more than buying nothing, over the scenarios.

    Attributes:
        limit_ratio: a loss is this much more than buying nothing costs in the same scenario.
        price: what the chance of a loss counts, in multiples of the expected cost of buying nothing; 0: not weighed.
        chance_ratio: probability of the scenarios with a loss.
        plain_chance_ratio, plain_expected_usd: the same and the expected cost of what is best at price 0.
        worst_ratio: most that is lost in a scenario, of what buying nothing costs there; negative where each saves;
            None where a scenario has no use to pay for.
    """

    limit_ratio: float
    price: float
    chance_ratio: float
    plain_chance_ratio: float
    plain_expected_usd: float
    worst_ratio: float | None


@record(frozen=True)
class BreakEven:
    """From how much use on a commitment pays, against on-demand and against spot.

    Attributes:
        option: purchase option; `variant` its variant.
        pool: the pool.
        on_demand_usd_per_hour: the alternative.
        all_in_usd_per_hour: the commitment, upfront spread over the term.
        hours_per_year: hours of use per year from which it pays; above 8,760: never.
        spot_hours_per_year: the same against spot; None where there is no spot price.
    """

    option: str
    variant: str
    pool: str
    on_demand_usd_per_hour: float
    all_in_usd_per_hour: float
    hours_per_year: float
    spot_hours_per_year: float | None


@record(frozen=True)
class Line:
    """One commitment to buy.

    Attributes:
        option: purchase option; `variant` its variant.
        provider: who sells it.
        serves: pools it covers.
        units: how many, in `unit` (`instance`, `USD/h`).
        usd_per_hour: due per hour for all units.
        upfront_usd: due at once for all units.
        total_usd: over the whole term.
        begins, expires: first and last day.
        now: whether it is bought at the start; else it is planned for later.
        utilisation_ratio: expected use of what is paid, within the horizon.
        source: of the price; `as_of` its date.
    """

    option: str
    variant: str
    provider: str
    serves: tuple[str, ...]
    units: Decimal
    unit: str
    usd_per_hour: Decimal
    upfront_usd: Decimal
    total_usd: Decimal
    begins: date
    expires: date
    now: bool
    utilisation_ratio: float | None
    source: str
    as_of: str


@record(frozen=True)
class Expiring:
    """A commitment owned today that ends within the horizon.

    Attributes:
        used_ratio: how much of it is used until it ends, in expectation; None where not known (plans).
        renewed_units: new units the plan buys now for the same pool or plan.
        later_units: units that it plans there for the day after the end.
    """

    option: str
    serves: str
    units: float
    unit: str
    expires: date
    days_left: int
    used_ratio: float | None
    renewed_units: float
    later_units: float


@record(frozen=True)
class Source:
    """A catalog in use."""

    provider: str
    sha256: str
    oldest_as_of: str
    newest_as_of: str


@record(frozen=True)
class File:
    """A file that the question names, as written there, with the hash of its bytes."""

    file: str
    sha256: str


@record(frozen=True)
class BillAsked:
    """How a bill was asked, for whoever asks it again.

    Attributes:
        currency: of the rows that count; None: the bill has one.
        seed: of the scenarios.
        expires: stated ends of its commitments, `ID=DATE` each.
    """

    currency: str | None
    seed: int
    expires: tuple[str, ...]


@record(frozen=True)
class CommitAnswer(Presentable):
    """Everything a reader needs.

    Attributes:
        sha256: of the question's file, or of the question that was made of a bill; `files` are those of use that it
            names, or of the bill.
        bill: how the bill was asked; None of a question of a file.
        not_evaluated: levels, falls and regret that the time limit left no room for.
    """

    REPORT = "planner.commitments.report:commit_report"
    __repr__ = Presentable.__repr__

    name: str
    sha256: str
    files: tuple[File, ...]
    bill: BillAsked | None
    status: str
    reason: str
    start: date
    years: int
    scenarios: int
    rows: int
    risk_weight: float
    risk_level: float
    lines: tuple[Line, ...]
    objective_usd: float
    bound_usd: float
    gap_ratio: float
    gap_asked_ratio: float
    plan: Level
    nothing: Level
    levels: tuple[Level, ...]
    falls: tuple[Level, ...]
    regret: Regret | None
    loss: Loss
    not_evaluated: tuple[str, ...]
    break_evens: tuple[BreakEven, ...]
    expiring: tuple[Expiring, ...]
    method: str
    rounds: int
    seconds: float
    catalog: tuple[Source, ...]
    notes: tuple[str, ...]

    def values(self) -> dict[str, Any]:
        """Return the answer as values of JSON."""
        head = {"schema_version": SCHEMA_VERSION, "planner_version": __version__, "currency": "USD"}
        values: dict[str, Any] = _plain(self)
        return head | values


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        out = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return out | {"savings_usd": round(value.savings_usd, 2)} if isinstance(value, Level) else out
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return round(float(value), 6) if math.isfinite(value) else None  # numpy keeps its own floats
    return value
