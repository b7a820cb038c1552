"""An estimate and its parts, as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.plan.ids import TimePartId
from planner.plan.labels import time_label
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.market.machines import Machine
    from planner.performance.search_explain import LayoutReport
    from planner.plan.layout import Layout

# A loader that keeps pace hides behind the step; beyond these marks it is felt (MLPerf Storage asks 70 to 90 %).
MAX_LOADING_RATIO = 0.2
MIN_BUSY_RATIO = 0.7


@record(frozen=True)
class Interval:
    """A prediction with its 80 % interval."""

    value: float
    low: float
    high: float

    def inverse(self, amount: float) -> Interval:
        """Return amount / self, the ends exchanged."""
        return Interval(amount / self.value, amount / self.high, amount / self.low)


@record(frozen=True)
class RunTotals:
    """One whole run of the workload on a cluster.

    Attributes:
        flops: model FLOPs of all steps.
        accelerators: in the cluster.
        step_hours: hours of training steps alone, at the predicted speed.
        evaluation_hours, beside_hours, stop_hours, startup_hours: of evaluation, of what runs take beside their steps,
            of stops and checkpoints, and from launch to the first step.
        wall_hours: hours from launch to end: the sum of these.
        goodput: share of the steps in the wall time: of a typical site, of a first large run, of a hardened site.
        stops: unplanned stops to expect.
        checkpoint_interval_hours: best time between checkpoints.
        stops_early: whether these are the mean of a run that may stop early.
    """

    flops: float
    accelerators: int
    step_hours: float
    evaluation_hours: float
    beside_hours: float
    stop_hours: float
    startup_hours: float
    wall_hours: Interval
    goodput: Interval
    stops: float
    checkpoint_interval_hours: float
    stops_early: bool = False

    @property
    def parts(self) -> tuple[tuple[str, float], ...]:
        """Names and hours of what the wall hours are made of, as the time of a plan has them; they add up."""
        return (
            (time_label(TimePartId.TRAINING_STEPS, inference=False), self.step_hours),
            (time_label(TimePartId.EVALUATION, inference=False), self.evaluation_hours),
            (time_label(TimePartId.BESIDE_STEPS, inference=False), self.beside_hours),
            ("checkpoints and interruptions", self.stop_hours),
            ("start-up", self.startup_hours),
        )

    @property
    def accelerator_hours(self) -> Interval:
        """Wall hours times accelerators."""
        wall, count = self.wall_hours, self.accelerators
        return Interval(wall.value * count, wall.low * count, wall.high * count)


@record(frozen=True)
class Answered:
    """Batch inference on a cluster.

    Attributes:
        amount: requests or items in all; `what` they are; `batch` of them are done between two saves of progress.
        rate: of them per second on the whole cluster.
        output_tokens_per_s: tokens of answers per second; None where the model writes none.
        hours: all of them at that rate, without start-up and interruptions.
        engine: as data/engines.csv writes it; `evidence`: the measured rows behind it, in words.
        kv_precision: of cached keys and values, empty where there are none.
    """

    amount: int
    what: str
    batch: int
    rate: Interval
    output_tokens_per_s: Interval | None
    hours: Interval
    engine: str
    evidence: str
    kv_precision: str


@record(frozen=True)
class Priced:
    """An offer of a cluster's instances, at its quote.

    `option` is `on_demand`, `owned` or `spot`; `usd_per_hour` of one instance, `nodes` those that are paid: more than
    the cluster where instances are sold in units. `basis`, `as_of` and `source` are the catalog's.
    """

    option: str
    provider: str
    region: str
    zone: str
    usd_per_hour: float
    nodes: int
    basis: str
    as_of: str
    source: str

    @property
    def cluster_usd_per_hour(self) -> float:
        """US dollars per hour of all instances."""
        return self.usd_per_hour * self.nodes


@record(frozen=True)
class Prices:
    """The cheapest offers of a cluster within the workload's places and options; None: there is none.

    `steady` is on demand or the user's own; `spot` may be taken back.
    """

    steady: Priced | None
    spot: Priced | None


@record(frozen=True)
class Loading:
    """Reading and decoding one batch against the step; `seconds` None where the size of a sample is unknown."""

    seconds: float | None
    share_ratio: float | None
    busy_ratio: float | None

    @property
    def passes(self) -> bool | None:
        """Whether the rule "loading below 20 % of the step, accelerators busy above 70 %" holds; None unknown."""
        if self.share_ratio is None or self.busy_ratio is None:
            return None
        return self.share_ratio < MAX_LOADING_RATIO and self.busy_ratio > MIN_BUSY_RATIO


@record(frozen=True)
class Memory:
    """Memory of the fullest accelerator in GiB.

    Attributes:
        needed_gib: by the layout, or by the most frugal one where none fits.
        usable_gib: what a framework can allocate.
        allowed_gib: the greatest predicted need that a plan may have: the prediction is uncertain, so it is less.
        parts: by name; empty where nothing fits.
        oom_ratio: probability of running out of memory; None unknown.
    """

    needed_gib: float
    usable_gib: float
    allowed_gib: float
    parts: Mapping[str, float]
    oom_ratio: float | None

    @property
    def free_gib(self) -> float:
        """What is left of the usable memory; negative where it does not fit."""
        return self.usable_gib - self.needed_gib


@record(frozen=True)
class Host:
    """What the host needs and has, GiB per node; None unknown."""

    checkpoint_gib: float
    memory_gib: float | None
    nvme_gib: float | None
    data_gib: float | None
    needed_gib: float | None = None


@record(frozen=True)
class Remedy:
    """What would fit: a layout on this cluster (`dropped` pins released), or more nodes."""

    layout: Layout
    nodes: int
    dropped: tuple[str, ...]
    throughput_per_s: float


@record(frozen=True)
class Estimate:
    """The prediction for one machine and node count.

    Where it does not fit (`reason` not empty), `layout`, `step_s` and what follows from them are None, and `remedy` is
    the nearest layout that fits; `others` tells what the other layouts lost by. `learned_factor` is the model's learned
    correction of the step time, `run` the totals of a whole training run, `answered` those of batch inference, `doubts`
    says why the interval is wide (empty where it is not), `calibration` the sentence about the user's own measurements,
    empty without any, `prices` what the cluster costs, None where nobody asked.
    """

    machine: Machine
    nodes: int
    unit: str
    units_per_step: float
    precision: str
    stack: str
    reason: str
    layout: Layout | None
    step_s: Interval | None
    mfu: float | None
    hfu: float | None
    breakdown_s: Mapping[str, float]
    limited_by: str
    memory: Memory
    loading: Loading | None
    host: Host
    learned_factor: float
    calibration: str
    remedy: Remedy | None
    others: LayoutReport | None
    run: RunTotals | None = None
    doubts: tuple[str, ...] = ()
    answered: Answered | None = None
    is_inference: bool = False
    prices: Prices | None = None

    @property
    def accelerators(self) -> int:
        """Accelerators of the cluster, fractions of one counted as one."""
        return self.nodes * max(1, int(self.machine.accelerators))

    @property
    def throughput_per_s(self) -> Interval | None:
        """Tokens or samples per second of the whole cluster."""
        return None if self.step_s is None else self.step_s.inverse(self.units_per_step)
