"""The answer: a `Plan` and its parts, as frozen values that serialise to JSON with units in the key names.

Money is `Decimal` and written to JSON as decimal strings; times are floats in the unit named; unknown is None.
`fields.csv` beside this file documents every field and bounds its values; `planner schema plan` prints both.
"""

from __future__ import annotations

from dataclasses import field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

from planner.plan.brief import Choice, Folded, Summary
from planner.plan.carbon import Carbon
from planner.plan.ids import BEFORE_USE, CostId, TimePartId
from planner.plan.launch import Launch
from planner.plan.layout import Layout
from planner.plan.plain import plain
from planner.plan.profile import PROFILE_FIELDS, Profiled
from planner.plan.quote import Quote
from planner.plan.relaxation import Relaxation
from planner.plan.run import Goal, Recurring, Run
from planner.plan.storage import Loading, StorageChoice
from planner.plan.upgrade import SCHEMA_VERSION
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.model import Catalog

Origin = Literal["workload", "default", "catalog", "tariff", "derived", "model", "unknown"]


@record(frozen=True)
class CostLine:
    """One priced quantity: `amount_usd` = `quantity` x `unit_price` x `usd_per_currency`, exactly.

    `kind` groups the ids (`planner.market.pricing.KIND_OF`).
    """

    id: CostId
    kind: str
    label: str
    quantity: Decimal
    unit: str
    unit_price: Decimal
    currency: str
    usd_per_currency: Decimal
    amount_usd: Decimal
    basis: str
    source: str
    as_of: str
    flags: tuple[str, ...] = ()


@record(frozen=True)
class QuotaNeed:
    """What the account must allow; `status` is `not checked` unless the workload declares a limit.

    `needed` and `limit` count in `unit` (vCPU, GPU or instances): the declared limit's, else the quota's own.
    """

    name: str
    code: str
    scope: str
    unit: str
    needed: float
    limit: float | None
    status: str


@record(frozen=True)
class PlanLine:
    """One offer used: `nodes` instances for `billed_hours` each.

    `price_per_hour` is the price to expect when the run starts, in an 80 % interval; costs are at that price.
    `marginal_usd_per_hour` and `full_usd_per_hour`: of an own machine, without and with its purchase.
    """

    offer_id: str
    provider: str
    region: str
    zone: str
    instance_type: str
    accelerator: str
    accelerators_per_node: float
    purchase_option: str
    option_variant: str
    nodes: int
    billed_hours: Decimal
    price_per_hour: Decimal
    currency: str
    usd_per_currency: Decimal
    throughput_per_s: float
    costs: tuple[CostLine, ...]
    price_basis: str
    price_source: str
    price_as_of: str
    flags: tuple[str, ...]
    quota: QuotaNeed
    layout: Layout | None = None
    family: str = ""
    accelerator_memory_gib: float | None = None
    vcpus_per_node: float | None = None
    quoted_price_per_hour: Decimal | None = None
    price_p10_per_hour: Decimal | None = None
    price_p90_per_hour: Decimal | None = None
    price_kind: str = ""
    price_age_days: float | None = None
    marginal_usd_per_hour: Decimal | None = None
    full_usd_per_hour: Decimal | None = None

    derived: ClassVar[tuple[str, ...]] = ("cost_usd",)

    @property
    def cost_usd(self) -> Decimal:
        """Sum of the line's costs."""
        return sum((c.amount_usd for c in self.costs), Decimal(0))

    @property
    def accelerators(self) -> float:
        """Accelerators in all."""
        return self.nodes * self.accelerators_per_node


@record(frozen=True)
class TimePart:
    """A part of the elapsed time, in hours, and where its figure comes from."""

    id: TimePartId
    name: str
    hours: float
    origin: Origin
    note: str = ""


@record(frozen=True)
class Performance:
    """Predicted speed of the plan; `unit` is tokens or samples; low/high bound an 80 % interval.

    `memory_fits_ratio` is the chance that the layout fits, by the error of the memory model; None: unknown.
    """

    unit: str
    throughput_per_s: float
    throughput_low_per_s: float
    throughput_high_per_s: float
    step_time_s: float | None
    mfu: float | None
    memory_needed_gib: float | None
    memory_available_gib: float | None
    limited_by: str
    breakdown_s: dict[str, float] = field(default_factory=dict)
    memory_fits_ratio: float | None = None

    derived: ClassVar[tuple[str, ...]] = ("memory_headroom_gib",)

    @property
    def memory_headroom_gib(self) -> float | None:
        """Free accelerator memory per device in GiB, None where unknown."""
        available, needed = self.memory_available_gib, self.memory_needed_gib
        return None if available is None or needed is None else available - needed


@record(frozen=True)
class Risk:
    """What interruptions may do; figures are for the whole job."""

    p_meet_deadline: float | None
    expected_interruptions: float
    expected_lost_hours: float
    expected_hours: float
    worst_hours: float
    expected_cost_usd: Decimal
    worst_cost_usd: Decimal
    basis: str


@record(frozen=True)
class Savings:
    """Difference to the baseline; negative means the plan costs more."""

    baseline: Summary | None
    saved_usd: Decimal | None
    saved_ratio: float | None
    note: str


@record(frozen=True)
class CashMonth:
    """What falls due in one calendar month (`YYYY-MM`)."""

    month: str
    amount_usd: Decimal


@record(frozen=True)
class Assumption:
    """A value the plan rests on that the workload did not give, or gave explicitly."""

    key: str
    value: str
    unit: str
    origin: Origin
    note: str = ""


@record(frozen=True)
class FilterCount:
    """How many candidates one filter removes: in all, and alone (no other filter removes them)."""

    name: str
    description: str
    removed: int
    removed_only_by_this: int


@record(frozen=True)
class FilterPair:
    """Candidates removed by exactly these two filters together and no other."""

    first: str
    second: str
    removed: int


@record(frozen=True)
class Proof:
    """How the choice was proven.

    `gap_ratio` = (objective - bound) / objective, as the solver claims it; `gap_exact_ratio`: to the bound proven in
    exact arithmetic (None: nothing was; `optimize --certificate`). `gap_asked_ratio`: at which the search may stop.
    `fallback_left_out`: spot with a fall-back, or in several zones, was not compared: it needs a deadline.
    """

    method: str
    status: str
    solver: str
    objective_usd: Decimal
    bound_usd: Decimal
    gap_ratio: float
    candidates: int
    offers: int
    shapes: int
    seconds: float
    near_ties: int = 0
    fallback_left_out: bool = False
    verified: bool = False
    note: str = ""
    gap_exact_ratio: float | None = None
    gap_asked_ratio: float | None = None


@record(frozen=True)
class Sensitivity:
    """The best plan under another named assumption (None where nothing fits)."""

    name: str
    note: str
    best: Summary | None


@record(frozen=True)
class CatalogSource:
    """Provenance of one provider's prices."""

    provider: str
    oldest_as_of: str
    newest_as_of: str
    sha256: str
    offers: int


def sources_of(catalog: Catalog) -> tuple[CatalogSource, ...]:
    """Dates and hashes of the price snapshots of a catalog."""
    return tuple(
        CatalogSource(m.provider, m.oldest_as_of, m.newest_as_of, m.sha256, m.n_offers)
        for m in catalog.manifests
    )


@record(frozen=True)
class Plan(Profiled):
    """The whole answer for one workload. `status` is `planned` or `infeasible`.

    `on_known_prices`: the best plan on observed or firm prices only, where the plan rests on others.
    """

    REPORT = "planner.plan.report:plan_answer"
    __repr__ = Profiled.__repr__

    status: Literal["planned", "infeasible"]
    workload: str
    workload_sha256: str
    kind: str
    created_at: str
    planner_version: str
    start: str
    deadline: str | None
    finish_expected: str | None
    objective: str
    lines: tuple[PlanLine, ...]
    total_usd: Decimal
    hours: float
    timeline: tuple[TimePart, ...]
    performance: Performance | None
    risk: Risk | None
    savings: Savings | None
    cash: tuple[CashMonth, ...]
    alternatives: tuple[Summary, ...]
    assumptions: tuple[Assumption, ...]
    filters: tuple[FilterCount, ...]
    filter_pairs: tuple[FilterPair, ...]
    relaxations: tuple[Relaxation, ...]
    unknown_options: tuple[str, ...]
    proof: Proof | None
    catalog: tuple[CatalogSource, ...]
    warnings: tuple[str, ...]
    excluded: tuple[str, ...]
    sensitivity: tuple[Sensitivity, ...] = ()
    on_known_prices: Summary | None = None
    confidence: Literal["normal", "low"] = "normal"
    n_results: int = 0
    n_feasible: int = 0
    launch: Launch | None = None
    folded: tuple[Folded, ...] = ()
    currency: str = "USD"
    schema_version: int = SCHEMA_VERSION
    goal: Goal | None = None
    choices: tuple[Choice, ...] = ()
    run: Run | None = None
    checkpoint_interval_hours: float | None = None
    carbon: Carbon | None = None
    storage: tuple[StorageChoice, ...] = ()
    loading: Loading | None = None
    quote: Quote | None = None
    recurrence: Recurring | None = None
    phase_layouts: tuple[Layout, ...] | None = None
    phase_step_times_s: tuple[float, ...] | None = None
    stated_run_id: str = ""
    derived: ClassVar[tuple[str, ...]] = ("run_id", "starts_in_hours", *PROFILE_FIELDS)
    unsaved: ClassVar[tuple[str, ...]] = ("stated_run_id",)
    left_out: ClassVar[tuple[str, ...]] = (  # of files, where None
        "quote", "recurrence", "phase_layouts", "phase_step_times_s",
    )  # fmt: skip

    @property
    def run_id(self) -> str:
        """Name of the run, put on its machines as the tag `planner_run_id`: same workload, choice and prices, same id.

        A file may state another one, `stated_run_id`: whoever saved it tagged the machines with that.
        """
        import hashlib
        import json

        if self.stated_run_id:
            return self.stated_run_id
        choice = [(line.offer_id, line.nodes, plain(line.layout)) for line in self.lines]
        prices = [(source.provider, source.sha256) for source in self.catalog]
        text = json.dumps((self.workload_sha256, choice, prices), sort_keys=True).encode()
        return f"run-{hashlib.sha256(text).hexdigest()[:12]}"

    @property
    def starts_in_hours(self) -> float | None:
        """Expected hours from the start to the first instance in use: data, capacity, provisioning; None: no plan."""
        if not (self.lines or self.timeline):
            return None
        before = sum(part.hours for part in self.timeline if part.id in BEFORE_USE)
        return before + (0.0 if self.launch is None else self.launch.first_wait_hours)

    @property
    def side_by_side(self) -> bool:
        """Whether it is a fleet whose lines are used at once; else each machine is on one line at a time, or alone."""
        return self.kind == "fleet" and (self.launch is None or not self.launch.in_turn)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; Decimals become decimal strings, derived values are added."""
        return cast("dict[str, Any]", plain(self))

    @classmethod
    def from_dict(cls, values: object, name: str = "plan") -> Self:
        """Read what `to_dict` or the JSON of a plan gives; `Plan.from_dict(plan.to_dict()) == plan`.

        Args:
            values: parsed JSON of this or an older schema version.
            name: of the file, for messages.

        Raises:
            InputError: lists every fault with its path in the JSON, and the remedy.
        """
        from planner.plan.read import read_plan

        return read_plan(cls, values, name)
