"""What a log says of a run, and what tracking makes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from catalogs.tables.table import Bools, Floats
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping


# Figures beside progress: what each is, by the names that columns of it have.
MEASURES: dict[str, tuple[str, ...]] = {
    "step_s": ("step_seconds", "step_time_s", "step_time", "seconds_per_step"),
    "loader_s": ("loader_seconds", "loader_s", "data_seconds", "data_time", "data_loading_seconds"),
    "checkpoint_s": ("checkpoint_seconds", "checkpoint_s", "checkpoint", "save_seconds"),
    "network_s": ("network_seconds", "network_s", "comm_seconds", "network", "communication_seconds"),
    "gpu_busy": ("gpu_busy", "gpu_util", "gpu_utilization", "gpu_utilisation", "gpu_active"),
    "cpu_busy": ("cpu_busy", "cpu_util", "cpu_utilization", "cpu_utilisation"),
    "memory_used": ("gpu_memory_used", "memory_used", "gpu_memory_ratio"),
    "clock_mhz": ("sm_clock_mhz", "gpu_clock_mhz", "sm_clock", "clock_mhz"),
    "throttled": ("throttled", "throttled_ratio", "throttle"),
}


@record(frozen=True, eq=False)
class Rows:
    """Rows as written: figures by column, NaN where they say nothing; `hosts` empty without names of hosts."""

    source: str
    kind: str
    values: Mapping[str, list[float]]
    hosts: list[str]
    absolute: bool
    notes: tuple[str, ...] = ()


@record(frozen=True, eq=False)
class Progress:
    """The rows of a log in order of time, one per logged step; unknown figures are NaN.

    Attributes:
        source: name of the file or server; kind: the format.
        seconds: moment of each row, shape `(n,)`: POSIX seconds where `absolute`, else seconds since some start.
        absolute: whether `seconds` are moments of the calendar.
        step: steps finished at each row, shape `(n,)`.
        tokens, samples: done so far at each row; of a model without tokens, a column named tokens counts samples.
        nodes: instances in use.
        measures: further figures per row by name (`MEASURES`), each of shape `(n,)`.
        hosts: median seconds per step of each host, where rows name hosts.
        notes: what was left out or mended while reading.
    """

    source: str
    kind: str
    seconds: Floats
    absolute: bool
    step: Floats
    tokens: Floats
    nodes: Floats
    measures: Mapping[str, Floats]
    hosts: Mapping[str, float]
    notes: tuple[str, ...] = ()
    samples: Floats | None = None

    @property
    def n_rows(self) -> int:
        """Rows."""
        return len(self.seconds)

    def moment(self, seconds: float) -> datetime | None:
        """A moment of the calendar, None where the log has none."""
        return datetime.fromtimestamp(seconds, UTC) if self.absolute else None


@record(frozen=True, eq=False)
class Intervals:
    """What happened between one row and the next; arrays of shape `(n_rows - 1,)`.

    Attributes:
        seconds: length; steps: new steps in it (0 where the run fell back).
        fell_back: whether the run went back to an earlier step: a restart from a checkpoint.
        gap: whether it is far longer than its steps need: the run stood still in it.
        repeated: share of its steps that had been done before.
        step_s: seconds per step as logged steps take them, gaps and restarts not counted.
    """

    seconds: Floats
    steps: Floats
    fell_back: Bools
    gap: Bools
    repeated: Floats
    step_s: float

    @property
    def working(self) -> Bools:
        """Intervals in which steps follow steps."""
        return ~self.fell_back & ~self.gap & (self.steps > 0)


@record(frozen=True)
class Speed:
    """Seconds per step from now on.

    Attributes:
        step_s: mean, checkpoints and evaluations between steps included.
        log_sd: standard deviation of its logarithm.
        steps: logged steps behind it; effective: independent ones among them, by their autocorrelation.
        measured_s: as logged, without the plan's prior; None where the log has too few steps. What a short log lacks,
            checkpoints and evaluations, is the plan's.
        planned_s: the plan's for the same, with what runs take beside their steps where the log is long enough to have
            it; planned_least_s: without, which a run may be spared. None without a plan.
    """

    step_s: float
    log_sd: float
    steps: int
    effective: float
    measured_s: float | None
    planned_s: float | None
    planned_least_s: float | None = None


@record(frozen=True)
class Split:
    """Where the hours since the first logged row went; the parts add up to `hours`.

    Attributes:
        compute: steps that count, without what they wait for data and checkpoints.
        checkpoint: steps standing still while a checkpoint is written; lost: steps done twice.
        waiting: no progress: capacity, restarts, stalls; loader: steps waiting for data.
        known: which of the parts were logged; the others are inferred from the times of steps, or not known.
    """

    hours: float
    compute: float
    checkpoint: float
    lost: float
    waiting: float
    loader: float
    known: tuple[str, ...]

    @property
    def goodput_ratio(self) -> float | None:
        """Share of the time that is steps which count."""
        return self.compute / self.hours if self.hours > 0 else None


@record(frozen=True)
class Cause:
    """A reason for slowness.

    Attributes:
        key: loader | gpu_idle | network | throttling | checkpoint | straggler | compute | drift.
        title: in a few words; evidence: the figures; remedy: what to do.
        share: of the time per step that goes with it if it is mended; None where that is not known.
        value, limit: the figure and the threshold it passes; None where it has none.
        sure: whether it was logged, not inferred.
    """

    key: str
    title: str
    evidence: str
    remedy: str
    share: float | None
    value: float | None = None
    limit: float | None = None
    sure: bool = True


@record(frozen=True)
class Way:
    """One way to go on.

    Attributes:
        action: stay | add nodes | change type | go on-demand.
        choice: machines and way to buy.
        usd: from now to the end, the change included; change_usd: of it, what the change costs.
        finish: ISO moment; p_meet: probability to be in time, None without a deadline.
        reason: why there is no such way; empty where there is.
        price_as_of: date of its oldest price; empty where none is asked for.
    """

    action: str
    choice: str
    usd: float | None
    change_usd: float
    finish: str | None
    p_meet: float | None
    reason: str = ""
    price_as_of: str = ""


@record(frozen=True)
class Advised:
    """What to do with a run on spot right now, by the policy of `planner advise`.

    `action` is its word (stay, wait, switch to on-demand, ...), `p_finish` the chance to be in time with it, `usd` the
    cost from now on, `slack_hours` the time until on-demand must start, `supposed` what the log does not say. None:
    not worked out.
    """

    action: str
    why: str
    p_finish: float | None
    usd: float | None
    slack_hours: float | None
    supposed: str


@record(frozen=True)
class Replan:
    """Ways to go on, and the one to take; `advised` of plans on spot that on-demand takes over."""

    decision: str
    why: str
    ways: tuple[Way, ...]
    notes: tuple[str, ...] = ()
    advised: Advised | None = None
