"""The workload, version 1: what must be trained, by when, for how much.

Attribute names are the YAML keys. All models are frozen and refuse unknown keys. What is trained is in
`training_schema.py`. Rules that join several fields are in `checks.py`; they run on the whole `Workload`, from Python
as well as from YAML.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.inputs.fields import (
    MAX_ITEMS,
    AnyFloat,
    Bool,
    Confidence,
    Day,
    Deadline,
    Duration,
    Hours,
    MeasuredLine,
    Moment,
    Money,
    NodeCount,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    QuotaUnit,
    Ratio,
    Share,
    Size,
    SmallInt,
    Software,
    Text,
    Texts,
)
from planner.inputs.post_training_schema import Inference
from planner.inputs.purchase_options import PurchaseOption
from planner.inputs.section import Section
from planner.inputs.training_schema import Checkpoint, Data, Model, Task, Training


class Throughput(Section):
    """A minimum speed; give one of the two."""

    tokens_per_s: PositiveFloat | None = Field(None, description="Tokens per second.")
    samples_per_s: PositiveFloat | None = Field(None, description="Samples per second.")


class Filter(Section):
    """Shell-style patterns; `deny` wins over `allow`."""

    allow: Texts | None = Field(None, description="Only these.")
    deny: Texts = Field((), description="Never these.")


class QuotaLimit(Section):
    """A limit of the account."""

    provider: Text = Field(description="Provider id.")
    region: Text = Field("*", description="Region, or * for each region.")
    quota: Text = Field(
        description="Quota name or code, an instance family, an accelerator or its family (h100)."
    )
    unit: QuotaUnit | None = Field(
        None, description="What the limit counts, by the numbers of each type; default: the quota's unit."
    )
    limit: NonNegativeFloat = Field(description="Maximum that may be used at once.")


class ObtainableLimit(Section):
    """What the user can obtain at once; takes precedence over the planner's assumption."""

    accelerator: Text = Field(description="Accelerator ids as a pattern, or a family (h100).")
    purchase_option: Literal["spot", "on_demand"] = Field(description="How it is bought.")
    accelerators: PositiveInt = Field(description="Maximum at once, in one zone or region.")
    provider: Text | None = Field(None, description="Provider id; absent: any.")
    region: Text = Field("*", description="Region pattern.")


class StartWait(Section):
    """How long the user waits for capacity; takes precedence over the planner's assumption."""

    accelerator: Text = Field("*", description="Accelerator ids as a pattern, or a family (h100).")
    purchase_option: Text = Field(description="How it is bought; a pattern, e.g. on_demand or *.")
    hours: Hours = Field(description="From request to availability, at any size.")
    never_ratio: Share = Field(0.0, description="Probability that capacity never becomes available, 0..1.")
    provider: Text | None = Field(None, description="Provider id; absent: any.")
    region: Text = Field("*", description="Region pattern.")


class SeenWait(Section):
    """One past request for capacity: it adjusts what the planner assumes about waits."""

    accelerator: Text = Field("*", description="Accelerator ids as a pattern, or a family (h100).")
    purchase_option: Text = Field(description="Purchase option, e.g. on_demand.")
    accelerators: PositiveInt = Field(description="How many were requested at once.")
    waited_hours: NonNegativeFloat = Field(
        description="Until capacity was obtained, given up, or last checked."
    )
    came: Bool = Field(True, description="Whether capacity was obtained.")
    provider: Text | None = Field(None, description="Provider id; absent: any.")
    region: Text = Field("*", description="Region pattern.")


class Constraints(Section):
    """What a plan must satisfy."""

    deadline: Deadline | None = Field(None, description="Time from start, or a date (its end counts).")
    budget_usd: Money | None = Field(
        None, description="Maximum cost in US dollars, compared with cash obligations."
    )
    max_kgco2e: PositiveFloat | None = Field(
        None,
        description="Maximum kgCO2e of the electricity, by location; regions without a known grid are excluded.",
    )
    min_throughput: Throughput | None = Field(None, description="Lowest acceptable speed.")
    min_memory_gib: PositiveFloat | None = Field(None, description="Memory per accelerator in GiB.")
    min_total_memory_gib: PositiveFloat | None = Field(None, description="Total accelerator memory in GiB.")
    max_nodes: NodeCount = Field(128, description="Maximum number of instances.")
    max_accelerators: PositiveInt | None = Field(None, description="Maximum number of accelerators.")
    providers: Texts | None = Field(None, description="Only these providers.")
    regions: Texts | None = Field(
        None,
        description="Patterns over provider/region, or over the region if they have no slash. Mainland China and"
        " government clouds, which need separate accounts, are considered only if named: [*, cn-*].",
    )
    residency: Texts | None = Field(
        None, description="Region groups where data may be, e.g. eu; cn names mainland China."
    )
    purchase_options: tuple[PurchaseOption, ...] | None = Field(
        None, description="Only these purchase options."
    )
    exclude_purchase_options: tuple[PurchaseOption, ...] = Field(
        (), description="Never these purchase options."
    )
    accelerators: Filter = Field(Filter.model_construct(), description="Patterns over accelerator ids.")
    instance_types: Filter = Field(Filter.model_construct(), description="Patterns over instance types.")
    software: Software | None = Field(
        None,
        description="Software that the code runs on; default: cuda, and that of accelerators in `allow` or owned ones."
        " Anything else needs a port.",
    )
    quota: tuple[QuotaLimit, ...] = Field((), max_length=MAX_ITEMS, description="Account limits.")
    obtainable: tuple[ObtainableLimit, ...] = Field(
        (),
        max_length=MAX_ITEMS,
        description="Accelerators obtainable on spot or on demand, if you know better than the assumption.",
    )
    waiting: tuple[StartWait, ...] = Field(
        (),
        max_length=MAX_ITEMS,
        description="How long it takes to obtain capacity, if you know better than the assumption.",
    )
    waited: tuple[SeenWait, ...] = Field(
        (), max_length=MAX_ITEMS, description="Your past requests for capacity, which adjust the assumptions."
    )
    waiting_records: Texts = Field(
        (), description="CSV files of such requests, relative to this file; see docs/spot/obtainable.md."
    )
    deadline_confidence: Confidence = Field(
        0.9, description="Probability with which the deadline must be met."
    )
    include_fractional: Bool = Field(False, description="Consider fractional accelerators (vGPU).")
    include_arm64: Bool = Field(
        False,
        description="Consider hosts with arm64 processors also where `allow` does not name them (gb200*, gh200*).",
    )
    allow_flagged: Bool = Field(False, description="Consider offers that a flag refuses.")
    allow_derived: Bool = Field(
        False, description="Consider spot and commitments whose price is derived from a ratio, never quoted."
    )
    allow_unmeasured: Bool = Field(
        False, description="Consider chips whose software was never measured on this kind of model."
    )


class Preferences(Section):
    """What to optimise among the plans that satisfy the constraints."""

    objective: Literal["cost", "time", "carbon"] = Field(
        "cost", description="Cheapest, fastest within the budget, or least kgCO2e of the electricity."
    )
    max_results: SmallInt = Field(5, description="Ranked alternatives to show.")
    prefer_regions: Texts = Field((), description="Patterns; break ties in this order.")
    prices: Literal["expected", "quoted", "firm"] = Field(
        "expected",
        description="Compare spot by the price expected when the run starts, by its quote, or use only firm prices "
        "(on-demand, reservations, blocks, owned).",
    )


class Overlay(Section):
    """A customer's price: matching offers change by `change`."""

    provider: Text | None = Field(None, description="Provider id; absent: any.")
    region: Text | None = Field(None, description="Region pattern.")
    family: Text | None = Field(None, description="Instance family.")
    instance_type: Text | None = Field(None, description="Instance type pattern.")
    purchase_option: PurchaseOption | None = Field(None, description="Purchase option.")
    change: Annotated[str, Field(pattern=r"^([+-][0-9]+(\.[0-9]+)?%?|[0-9]+(\.[0-9]+)?)$")] = Field(
        description="Quoted: '-12%', '+0.40' (per hour) or '3.20' (the price per hour)."
    )
    note: str = Field("", description="Why.")


class Prices(Section):
    """Prices in addition to the catalog."""

    overlays: tuple[Overlay, ...] = Field(
        (), max_length=MAX_ITEMS, description="Discounts and surcharges, applied in order."
    )
    offers: Texts = Field(
        (), description="Files of machines that you own, or of other offers, relative to this file."
    )
    commitment_share: Ratio | None = Field(
        None,
        description="Part of a new commitment's term that this work pays (other work pays the rest); default: all.",
    )


class Baseline(Section):
    """The user's current cluster, with which the plan is compared."""

    provider: Text = Field(description="Provider id.")
    region: Text = Field(description="Region.")
    instance_type: Text = Field(description="Instance type.")
    nodes: NodeCount = Field(description="Instances.")
    purchase_option: PurchaseOption = Field("on_demand", description="How it is bought.")
    price_per_hour_usd: Money | None = Field(
        None, description="Price per instance and hour; default: the catalog's."
    )


class OwnedCommitment(Section):
    """A commitment that the user already pays: no extra cost up to its capacity."""

    provider: Text = Field(description="Provider id.")
    region: Text = Field(description="Region.")
    instance_type: Text = Field(description="Instance type.")
    purchase_option: PurchaseOption = Field(description="reserved_1y, cud_3y, ...")
    nodes: NodeCount = Field(description="Instances owned.")
    share: Ratio | None = Field(None, description="Share of them this workload may use; default all.")
    expires: Moment | None = Field(
        None, description="Last day it covers, or a moment: no run on it ends later; absent: it does not end."
    )
    note: str = Field("", description="Remark shown on the plan.")


class Fleet(Section):
    """Divisible work: independent runs spread over a mix of offers."""

    runs: PositiveInt = Field(1, description="Independent runs; the work is runs x training.")
    nodes_per_run: NodeCount = Field(1, description="Instances one run needs.")
    mean_share: Ratio | None = Field(
        None,
        description="Mean share of `training` that a run does if bad runs stop early (ASHA, early stopping);"
        " default: all of it.",
    )
    max_regions: SmallInt | None = Field(None, description="Maximum number of regions.")
    max_share_per_region: Ratio | None = Field(
        None, description="Maximum share of the throughput from one region."
    )
    max_spot_share: Share | None = Field(None, description="Maximum share of the throughput from spot.")
    max_share_per_offer: Ratio | None = Field(
        None, description="Maximum share of the throughput from one offer."
    )


class Recurrence(Section):
    """A recurring run; the plan is for one of them."""

    every: Duration = Field(description="Time from one start to the next, e.g. 1w.")
    times: SmallInt = Field(description="How many runs.")


class Spot(Section):
    """How spot may be used."""

    fallback: Literal["on_demand", "none"] = Field(
        "on_demand", description="What to use if spot alone would miss the deadline."
    )
    zones: Literal["any", "single"] = Field(
        "any", description="Whether a run may continue in another zone or region where spot is available."
    )
    evidence: Texts = Field(
        (),
        description="Your files, relative to this file: availability records, preemption logs, spot prices, "
        "placement scores.",
    )


class Storage(Section):
    """From where nodes read the training data; default: the cheapest option that is fast enough for the steps."""

    data: Literal["auto", "object", "local_nvme", "block", "file_system"] = Field(
        "auto",
        description="Consider only this kind of storage for the data: streamed from object storage, copied to local"
        " NVMe, on a volume of each node, or on a parallel file system.",
    )
    object_size: Size | None = Field(
        None,
        description="Size of one object in the store; default: one sample of images, audio or video, else shards of"
        " 128 MB.",
    )
    fio: Text | None = Field(
        None,
        description="Result of fio (JSON), next to this file: the measured speed of a machine's local disk.",
    )


# No NUL: neither a shell nor a container can take one.
Script = Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"^[^\x00]+$")]
Value = Annotated[str, Field(max_length=4_000, pattern=r"^[^\x00]*$")]
Word = Annotated[str, Field(min_length=1, max_length=400, pattern=r"^[^\s\x00]+$")]
VariableName = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Run(Section):
    """What runs on each node. It does not change the plan: `planner export` writes it into launch files."""

    image: Word | None = Field(None, description="Container image with its tag or digest.")
    command: Script | None = Field(
        None,
        description="The training program and its arguments, without a launcher: train.py --config c.toml.",
    )
    setup: Script | None = Field(None, description="Shell lines that run once on each node before it.")
    env: dict[str, Value] = Field({}, description="Environment variables, as quoted texts.")
    secrets: tuple[VariableName, ...] = Field(
        (),
        description="Names of environment variables that hold secrets; values are never written to a file.",
    )
    data: Word | None = Field(
        None, description="Where the training set is read: an address or a mounted path."
    )
    checkpoints: Word | None = Field(
        None, description="Where checkpoints are written: an address, or a path that every node mounts."
    )
    outputs: Word | None = Field(
        None, description="Where the final model goes: an address or a mounted path."
    )


class Workload(Section):
    """One training job (`kind: training`), divisible work (`kind: fleet`), or answers in bulk (`kind: inference`)."""

    # `planner.inputs.load.validate` also applies the rules that join its sections (`planner.inputs.checks`).

    version: Literal[1] = Field(description="Version of this format.")
    kind: Literal["training", "fleet", "inference"] = Field(
        "training", description="One synchronous job, divisible work, or batch inference."
    )
    name: Text = Field(description="Name shown on the plan.")
    description: str = Field("", description="Free text.")
    model: Model | None = Field(None, description="Model to train (omit only with task).")
    task: Task | None = Field(None, description="Replaces model and training if you know only the data.")
    training: Training | None = Field(None, description="How to train it (omit only with task or inference).")
    inference: Inference | None = Field(None, description="Requests to answer (kind inference).")
    data: Data = Field(Data.model_construct(), description="The training set.")
    checkpoint: Checkpoint = Field(Checkpoint.model_construct(), description="Checkpoints.")
    start: Moment | None = Field(None, description="When training may start; default now.")
    earliest_start: Day | None = Field(None, description="Day before which nothing may run.")
    constraints: Constraints = Field(Constraints.model_construct(), description="What a plan must satisfy.")
    preferences: Preferences = Field(Preferences.model_construct(), description="What to optimise.")
    prices: Prices = Field(Prices.model_construct(), description="Prices in addition to the catalog.")
    baseline: Baseline | None = Field(None, description="Your current cluster, to compare with.")
    fleet: Fleet | None = Field(None, description="How the work divides (kind fleet).")
    recurrence: Recurrence | None = Field(None, description="Recurring runs, with their total cost.")
    commitments: tuple[OwnedCommitment, ...] = Field(
        (), max_length=MAX_ITEMS, description="Commitments that you already pay."
    )
    spot: Spot = Field(Spot.model_construct(), description="How spot may be used.")
    run: Run = Field(Run.model_construct(), description="What `planner export` starts on the machines.")
    team: Text | None = Field(
        None, description="Team that pays: a tag on every machine that `planner export` starts."
    )
    tags: dict[str, Value] = Field({}, description="Further tags for cost allocation.")
    storage: Storage = Field(Storage.model_construct(), description="Where nodes read the data from.")
    measured: MeasuredLine | None = Field(
        None, description="Your measured throughput with this training, on instances or accelerators."
    )
    assumptions: dict[str, AnyFloat] = Field({}, description="Overrides of the planner's assumptions by key.")
