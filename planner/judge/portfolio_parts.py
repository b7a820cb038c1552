"""What the check of a portfolio speaks of: draws on limits, runs in time, windows, and what a quota may be called."""

from __future__ import annotations

from fnmatch import fnmatchcase
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.judge.chance import chance_within
from planner.judge.frame import closeness
from planner.judge.quote import sure_hours, table_ratio

if TYPE_CHECKING:
    from catalogs.tariffs import Tariffs
    from planner.inputs.schema import QuotaLimit
    from planner.judge.bench import Bench, Candidate

MICRO_USD = 1e-6
UNITS = ("vCPU", "GPU", "instances")
SIZED_UNIT = "units"  # of a quota that names none, drawn on as a sized candidate declares
_TIE = 1e-7
_SPOT_RATIO = 2e-3  # stated hours of spot are found on a grid
_HALVINGS = 40
_LONG = 1e7  # hours
_LEAST_LATE = 0.01  # hours: how late a job is stated to
_ROUNDING = 1e-9  # hours: of the sum of a start and a length


class Draw(NamedTuple):
    """What a part of a job draws: instances of an offer, what its quotas may be called, its pool.

    `pool` is a commitment of the portfolio, which is `paid`, or after those a machine of a workload's file.
    """

    provider: str
    region: str
    instance_type: str
    purchase_option: str
    nodes: int
    names: dict[str, str]
    amounts: dict[str, float]
    declared: int | None
    pool: int | None
    paid: bool

    def counts(self, quota: QuotaLimit) -> bool:
        """Whether it counts against a quota."""
        return (
            quota.provider == self.provider
            and quota.quota in self.names
            and fnmatchcase(self.region, quota.region)
            and getattr(quota, "purchase_option", None) in (None, self.purchase_option)
        )

    def units(self, quota: QuotaLimit) -> float:
        """Units of a quota that it counts against."""
        if self.declared is not None:
            return float(self.declared)
        return self.amounts.get(self.unit(quota), inf) * self.nodes

    def unit(self, quota: QuotaLimit) -> str:
        """Unit of a quota that it counts against."""
        return quota.unit or self.names[quota.quota]


class Run(NamedTuple):
    """A job in time, in hours after the portfolio's start: where it is in the answer, its draws, how late it is."""

    path: str
    begin: float
    end: float
    together: bool
    draws: tuple[Draw, ...]
    late_hours: float | None


class Windows(NamedTuple):
    """Windows of time: starts in hours after the portfolio's, names, and what the answer must say."""

    starts: list[float]
    names: list[str]
    wanted: list[dict[str, Any]]

    def touched(self, run: Run, at: int) -> bool:
        """Whether a run is in a window; one that ends when it starts is not."""
        close = self.starts[at + 1] if at + 1 < len(self.starts) else inf
        return run.begin < close - _TIE and (not at or run.end > self.starts[at] + _ROUNDING)


def quota_names(
    tariffs: Tariffs, provider: str, family: str, accelerator: str, option: str
) -> dict[str, str]:
    """What a quota of such an instance may be called, each name with the quota's own unit."""
    rules = [tariffs.quota_rule(provider, family, accelerator, way) for way in (option, "on_demand", "spot")]
    own_unit = next((rule.unit for rule in rules if rule is not None), "instances")
    names = {accelerator.split("-")[0]: "GPU", accelerator: "GPU", family: own_unit}
    if rules[0] is not None:
        names |= {rules[0].name: own_unit, rules[0].code: own_unit}
    return {name: unit for name, unit in names.items() if name}


def hours_kept(candidate: Candidate, confidence: float) -> tuple[float, float]:
    """Hours from the start, no less than expected, and how far stated ones may be off; infinity: never so sure."""
    if candidate.had <= confidence:
        return inf, 0.0
    level = confidence / candidate.had
    if candidate.situation is None:
        sure = max(sure_hours(candidate, level, candidate.steps.sigma), candidate.hours)
        return sure, table_ratio(candidate) * sure
    before = candidate.waiting + candidate.steps.fixed
    course, pool = candidate.situation.course, candidate.situation.pool

    def is_sure(hours: float) -> bool:
        return chance_within(course, pool, hours - before, candidate.steps.sigma) >= level

    low, high = before, max(2.0 * candidate.hours, before)
    while not is_sure(high):
        if high > _LONG:
            return inf, 0.0
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if is_sure(middle) else (middle, high)
    sure = max(high, candidate.hours)
    return sure, _SPOT_RATIO * sure


def late_hours(bench: Bench, candidate: Candidate) -> tuple[float, float]:
    """Hours by which the deadline must be later for the confidence asked, and how far they may be off."""
    confidence = bench.workload.constraints.deadline_confidence
    room = bench.deadline_hours
    over = 0.0 if room == inf else max(candidate.hours - room, 0.0)
    unsure = candidate.p_meet is not None and candidate.p_meet < confidence - 1e-4
    if not unsure and over <= 1e-9 * candidate.hours:
        return 0.0, 0.0
    needed, slack = hours_kept(candidate, confidence)
    if needed == inf:
        return inf, 0.0
    return max(needed - room, _LEAST_LATE), slack + needed * closeness(candidate)
