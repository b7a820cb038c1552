"""What planned workloads will cost by day: saved plans of optimize, portfolio, schedule and commit."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catalogs.tables.table import Floats
from planner.errors import InputError
from planner.finops.read.tag_keys import known_spelling
from planner.inputs.load import decode, read_limited
from planner.plan.model import Plan
from planner.records import record

Days = NDArray[np.datetime64]
MAX_BYTES = 64 * 1024 * 1024
_YEAR_HOURS = 8760
_DAY = timedelta(days=1)
_NOTHING = 1e-9  # of a run on a day: rounding of the difference
_MONTH = timedelta(hours=_YEAR_HOURS / 12)


@record(frozen=True)
class PlannedCost:
    """Cost of one planned run, job or commitment, even over its time.

    Attributes:
        name: workload, job or commitment.
        run_id: the plan's, empty where it has none.
        start, end: UTC; equal for a payment at one moment.
        cost: in the plan's currency; below 0 what a commitment saves.
        source: file it comes from.
        scope: scope it belongs to; None: only the total.
        every, times: of a run that comes again, from one start to the next and how often; `start`, `end` and `cost`
            are those of the first.
        low, high: P10 and P90 of the cost of one run; None: taken as certain.
    """

    name: str
    run_id: str
    start: datetime
    end: datetime
    cost: float
    source: str
    scope: str | None = None
    every: timedelta | None = None
    times: int = 1
    low: float | None = None
    high: float | None = None

    @property
    def cheap(self) -> float:
        """P10 of the cost of one run; where P90 alone is known, as far below the expected cost as that is above."""
        if self.low is not None:
            return self.low
        return self.cost if self.high is None else max(2.0 * self.cost - self.high, 0.0)

    @property
    def dear(self) -> float:
        """P90 of the cost of one run."""
        return self.cost if self.high is None else self.high

    @property
    def month_cost(self) -> float | None:
        """What the runs cost in a mean month while they come again; None where there is one."""
        return None if self.every is None else self.cost * (_MONTH / self.every)

    def runs_until(self, moments: Sequence[datetime]) -> Floats:
        """How many runs are over at each moment, those under way in part, shape `(n,)`."""
        since = np.array([(one - self.start).total_seconds() for one in moments])
        length = (self.end - self.start).total_seconds()
        every = (self.every or self.end - self.start).total_seconds() or 1.0
        begun = np.clip(np.ceil(since / every), 0.0, self.times)
        if length <= 0:
            return begun
        over = np.clip(np.floor((since - length) / every) + 1.0, 0.0, begun)
        mean_start = every * (over + begun - 1.0) / 2.0  # of those under way
        return np.asarray(over + (begun - over) * (since - mean_start) / length, dtype=np.float64)


def load_plans(patterns: Sequence[str]) -> tuple[tuple[PlannedCost, ...], str]:
    """Read saved plans.

    Args:
        patterns: files or globs of `-o json` answers; `SCOPE=GLOB` says whose they are.

    Returns:
        The costs, and their currency (empty without plans).

    Raises:
        InputError: a file is missing or no plan; currencies differ.
    """
    found: list[PlannedCost] = []
    currencies: dict[str, str] = {}
    for pattern in patterns:
        scope, _, rest = pattern.rpartition("=")
        names = sorted(glob.glob(rest, recursive=True))  # noqa: PTH207 - a pattern may be absolute
        if not names:
            raise InputError(f"--plans {pattern}: no such file")
        for name in names:
            values = _read(Path(name))
            currencies.setdefault(str(values.get("currency", "USD")), name)
            found += _costs(values, name, scope or None)
    if len(currencies) > 1:
        shown = ", ".join(f"{currency} ({name})" for currency, name in sorted(currencies.items()))
        raise InputError(f"--plans: plans are in different currencies: {shown}; give those of one")
    return tuple(found), next(iter(currencies), "")


def daily_plan_cost(planned: Sequence[PlannedCost], days: Days) -> Floats:
    """Cost of the plans on each of the days, (n_days,); what lies outside them is left out."""
    out = np.zeros(len(days))
    for one in planned:
        out += one.cost * runs_by_day(one, days)
    return out


def runs_by_day(planned: PlannedCost, days: Days) -> Floats:
    """Runs of a plan that fall on each of the days, parts of runs as such, (n_days,)."""
    if not len(days):
        return np.zeros(0)
    bounds = [_midnight(day) for day in days.astype("datetime64[D]").tolist()]
    runs = planned.runs_until([begin + _DAY for begin in bounds]) - planned.runs_until(bounds)
    return np.where(runs > _NOTHING, runs, 0.0)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        values = json.loads(decode(read_limited(path, MAX_BYTES), str(path)))
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}:{error.lineno}: is not JSON: {error.msg}; save plans with -o json"
        ) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets without end
        raise InputError(f"{path}: is not a plan: {str(error)[:200]}; save plans with -o json") from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: is not a plan; save plans with -o json")
    return values


def _costs(values: Mapping[str, Any], source: str, scope: str | None) -> list[PlannedCost]:
    """Tell the kind of answer by what only it has."""
    if "workload" in values and "total_usd" in values:
        return _of_run(Plan.from_dict(values, source), source, scope)
    try:
        if values.get("kind") == "portfolio":
            rows = _of_jobs(values)
        elif "schedule" in values and "intervals" in values:
            rows = _of_schedule(values)
        elif "break_evens" in values and "plan" in values:
            rows = _of_commitments(values)
        else:
            raise InputError(f"{source}: is not an answer of planner optimize, portfolio, schedule or commit")
        return [PlannedCost(name, "", start, end, cost, source, scope) for name, start, end, cost in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{source}: the plan lacks or garbles {error}; save it again with -o json"
        ) from error


_Row = tuple[str, datetime, datetime, float]


def _of_run(plan: Plan, source: str, scope: str | None) -> list[PlannedCost]:
    """The cost of a plan over its hours; an infeasible answer costs nothing."""
    if not plan.lines:
        return []
    start = _moment(plan.start)
    end = start + timedelta(hours=plan.hours)
    cost, again = float(plan.total_usd), plan.recurrence
    every, times = (None, 1) if again is None else (timedelta(hours=again.every_hours), again.times)
    low, high = _interval(plan)
    return [PlannedCost(plan.workload, plan.run_id, start, end, cost, source, scope, every, times, low, high)]


def _interval(plan: Plan) -> tuple[float | None, float | None]:
    """P10 and P90 of a plan's cost; of one without spot P90 alone is known."""
    if plan.launch is not None:
        return float(plan.launch.cost_p10_usd), float(plan.launch.cost_p90_usd)
    return None, None if plan.risk is None else float(plan.risk.worst_cost_usd)


def _of_jobs(values: Mapping[str, Any]) -> Iterator[_Row]:
    for job in values["jobs"]:
        if job["status"] == "planned":
            yield str(job["job"]), _moment(job["start"]), _moment(job["end"]), float(job["cost_usd"])


def _of_schedule(values: Mapping[str, Any]) -> Iterator[_Row]:
    name = str(values["schedule"])
    for one in values["intervals"]:
        yield f"{name}: {one['job']}", _moment(one["from"]), _moment(one["until"]), float(one["cost_usd"])
    start = _moment(values["start"])
    for one in values["copies"]:
        cost = float(one["transfer_usd"]) + float(one["storage_usd"])
        yield f"{name}: data of {one['job']}", start, start + timedelta(hours=float(one["kept_hours"])), cost


def _of_commitments(values: Mapping[str, Any]) -> Iterator[_Row]:
    """What the plan saves against buying nothing, from its first commitment on."""
    start, years = _moment(values["start"]), float(values["years"])
    end = start + timedelta(hours=years * _YEAR_HOURS)
    yield f"{values['name']}: commitments", start, end, -float(values["plan"]["savings_usd"])


def _moment(text: str) -> datetime:
    if len(text) <= 10:
        return _midnight(date.fromisoformat(text))
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def as_known(planned: PlannedCost, scopes: Iterable[str]) -> PlannedCost:
    """A cost to come, with its scope as the costs spell that value of the tag."""
    if planned.scope is None:
        return planned
    return replace(planned, scope=known_spelling(planned.scope, scopes))
