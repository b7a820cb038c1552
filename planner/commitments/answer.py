"""The answer to a commitment question as values: what to buy, what it saves, what is at risk, and what is proven.

`fields.csv` beside this file documents every field; `planner schema commit-answer` prints it.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from planner.records import record
from planner.render.presentable import Presentable
from planner.version import __version__

SCHEMA_VERSION = 1
TABLE = Path(__file__).parent / "fields.csv"


@record(frozen=True)
class Level:
    """One portfolio: a multiple of the recommended one, or the recommended one under other demand."""

    share: float
    committed_usd: float
    planned_usd: float
    expected_usd: float
    worst_usd: float
    without_usd: float
    coverage_ratio: float
    utilisation_ratio: float | None
    savings_usd: float


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
    """How often the purchases cost more than buying nothing, over the scenarios."""

    limit_ratio: float
    price: float
    chance_ratio: float
    plain_chance_ratio: float
    plain_expected_usd: float
    worst_ratio: float | None


@record(frozen=True)
class BreakEven:
    """From how much use on a commitment pays, against on-demand and against spot."""

    option: str
    variant: str
    pool: str
    on_demand_usd_per_hour: float
    all_in_usd_per_hour: float
    hours_per_year: float
    spot_hours_per_year: float | None


@record(frozen=True)
class Line:
    """One commitment to buy."""

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
    """A commitment owned today that ends within the horizon."""

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
    """How a bill was asked, for whoever asks it again; `mapping` as of `--map`: `cost=BilledCost`."""

    currency: str | None
    seed: int
    expires: tuple[str, ...]
    mapping: tuple[str, ...] = ()


@record(frozen=True)
class CommitAnswer(Presentable):
    """Everything a reader needs."""

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


def commit_answer_schema() -> dict[str, Any]:
    """The JSON Schema of an answer of the present version."""
    from planner.plan.json_schema import answer_schema

    head: dict[str, dict[str, Any]] = {
        "schema_version": {"const": SCHEMA_VERSION},
        "planner_version": {"type": "string"},
        "currency": {"const": "USD"},
    }
    file, title = f"commit-answer.v{SCHEMA_VERSION}.json", "An answer of `planner commit -o json`"
    return answer_schema(CommitAnswer, TABLE, file, title, head)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return round(float(value), 6) if math.isfinite(value) else None  # numpy keeps its own floats
    return value
