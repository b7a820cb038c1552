"""The workload, version 1: what must be trained, by when, for how much.

Attribute names are the YAML keys. All models are frozen and refuse unknown keys. Rules that join several
fields are in `checks.py`; they run on the whole `Workload`, from Python as well as from YAML.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationInfo, model_validator

from planner.workload.fields import (
    AnyFloat,
    Bool,
    Confidence,
    Count,
    Day,
    Deadline,
    Duration,
    MeasuredLine,
    Moment,
    Money,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    PurchaseOption,
    Ratio,
    Share,
    Size,
    Text,
)


class Section(BaseModel):
    """Base of all sections."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=(), defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_absent(cls, value: Any) -> Any:
        """Treat a key without a value (`constraints:`) as absent; unknown keys stay, to be refused."""
        if not isinstance(value, dict):
            return value
        return {key: item for key, item in value.items() if item is not None or key not in cls.model_fields}


class Model(Section):
    """The model: a preset, or explicit sizes; explicit fields beside a preset override it."""

    preset: Text | None = Field(None, description="Name of a known model, e.g. llama-3-8b or resnet-50.")
    family: Literal["transformer", "cnn", "vit", "diffusion"] | None = Field(
        None, description="Transformers give dimensions; the others forward FLOPs and activations per sample."
    )
    architecture: Literal["decoder", "encoder", "encoder_decoder"] | None = Field(
        None, description="Kind of transformer; default decoder."
    )
    params: Count | None = Field(None, description="Parameters; computed from the dimensions when absent.")
    active_params: Count | None = Field(
        None, description="Parameters used per token (mixture of experts); computed when absent."
    )
    layers: PositiveInt | None = Field(None, description="Transformer blocks (encoder and decoder together).")
    hidden: PositiveInt | None = Field(None, description="Model width.")
    heads: PositiveInt | None = Field(None, description="Attention heads.")
    kv_heads: PositiveInt | None = Field(None, description="Key/value heads; default = heads.")
    head_dim: PositiveInt | None = Field(None, description="Width of one head; default = hidden / heads.")
    ffn: PositiveInt | None = Field(
        None, description="Width of the feed-forward layer; default = 4 x hidden."
    )
    gated_mlp: Bool | None = Field(
        None, description="Three matrices in the feed-forward layer (SwiGLU); default false."
    )
    vocab: PositiveInt | None = Field(None, description="Vocabulary size in tokens.")
    tied_embeddings: Bool | None = Field(
        None, description="Input and output embeddings are one; default false."
    )
    experts: PositiveInt | None = Field(None, description="Experts per mixture-of-experts layer.")
    experts_per_token: PositiveInt | None = Field(None, description="Experts each token passes through.")
    shared_experts: NonNegativeInt | None = Field(None, description="Experts every token passes through.")
    moe_ffn: PositiveInt | None = Field(None, description="Feed-forward width of one expert; default = ffn.")
    dense_layers: NonNegativeInt | None = Field(None, description="Leading layers without experts.")
    image_size: PositiveInt | None = Field(None, description="Side of the square input image in pixels.")
    forward_flops_per_sample: Count | None = Field(
        None, description="FLOPs of one forward pass of one sample (2 x multiply-accumulates)."
    )
    activations_per_sample: Count | None = Field(
        None,
        description="Elements kept per sample for the backward pass (outputs of convolutions, matmuls).",
    )


class Task(Section):
    """For users who know only their data: a ladder of assumptions picks model and training."""

    type: Literal[
        "image_classification",
        "text_classification",
        "text_finetuning",
        "language_model_pretraining",
        "image_generation_finetuning",
    ] = Field(description="What is to be learned.")
    effort: Literal["small", "medium", "large"] = Field(
        "medium", description="Rung of the ladder to plan; the others are shown as sensitivity."
    )


class Layout(Section):
    """Parts of the parallel layout to pin; what is absent stays the planner's choice."""

    tensor_parallel: PositiveInt | None = Field(None, description="Accelerators that split each layer.")
    pipeline_parallel: PositiveInt | None = Field(None, description="Pipeline stages.")
    context_parallel: PositiveInt | None = Field(None, description="Accelerators that split each sequence.")
    zero_stage: Annotated[int, Field(strict=True, ge=0, le=3)] | None = Field(
        None, description="ZeRO stage (3 = FSDP full shard)."
    )
    micro_batch: PositiveInt | None = Field(None, description="Samples per accelerator group and micro-step.")
    recompute: Literal["none", "selective", "full"] | None = Field(
        None, description="Activation recomputation."
    )
    expert_parallel: PositiveInt | None = Field(
        None, description="Accelerators that share a layer's experts."
    )
    interleave: PositiveInt | None = Field(
        None, description="Virtual pipeline stages per accelerator (1 = 1F1B)."
    )
    sequence_parallel: Annotated[bool, Field(strict=True)] | None = Field(
        None, description="Split norms and dropout along the sequence with tensor parallelism."
    )


def _layout_kind(value: Any) -> str:
    return "pinned" if isinstance(value, dict | Layout) else "auto"


LayoutChoice = Annotated[
    Annotated[Literal["auto"], Tag("auto")] | Annotated[Layout, Tag("pinned")], Discriminator(_layout_kind)
]


class TrainingMemory(Section):
    """Choices of the training code that change its memory but hardly its speed."""

    gradients: Literal["auto", "fp32", "half", "both"] = Field(
        "auto",
        description="Accumulated gradients of 16-bit training; both: 16-bit ones stay beside 32-bit sums.",
    )
    master: Literal["auto", "none"] = Field(
        "auto", description="none: 16-bit weights are updated in place, without a 32-bit copy."
    )
    loss: Literal["auto", "materialised", "fused", "tiled"] = Field(
        "auto", description="Logits kept in full, in one copy (fused cross entropy), or a piece at a time."
    )
    fp8_weights: Annotated[bool, Field(strict=True)] = Field(
        False, description="Weights are kept in 8 bit, without a 16-bit copy."
    )
    dropout: Annotated[bool, Field(strict=True)] | None = Field(
        None, description="Dropout masks are kept; default: where the feed-forward network has no gate."
    )


class Training(Section):
    """How long and how the model is trained; exactly one of tokens, samples, epochs, steps."""

    tokens: Count | None = Field(None, description="Tokens to train on.")
    samples: Count | None = Field(
        None, description="Samples (sequences, images) to train on, repeats counted."
    )
    epochs: PositiveFloat | None = Field(None, description="Passes over data.samples or data.tokens.")
    steps: Count | None = Field(None, description="Optimizer steps.")
    global_batch: Count = Field(description="Samples (sequences) per optimizer step over all accelerators.")
    sequence_length: Count | None = Field(
        None, description="Tokens per sequence; default: the preset's context."
    )
    precision: Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"] = Field(
        "bf16", description="Arithmetic of the matmuls; fp4 is NVFP4 or MXFP4."
    )
    optimizer: Literal["adamw", "adam", "sgd", "lion", "adafactor", "adamw_8bit"] = Field(
        "adamw", description="Decides the optimizer's memory."
    )
    method: Literal["full", "lora"] = Field("full", description="Train all weights or low-rank adapters.")
    lora_rank: PositiveInt = Field(16, description="Rank of the adapters (method lora).")
    stack: Literal["eager", "compiled", "tuned"] = Field(
        "compiled", description="Software class: framework as is, compiled/fused kernels, vendor-tuned."
    )
    layout: LayoutChoice = Field("auto", description="Parallel layout: auto, or parts of it pinned.")
    memory: TrainingMemory | None = Field(None, description="What the training code keeps in memory.")


class Data(Section):
    """The training set."""

    size: Size | None = Field(None, description="Stored size of the set.")
    samples: Count | None = Field(None, description="Samples in the set.")
    tokens: Count | None = Field(None, description="Tokens in the set.")
    sample_size: Size | None = Field(None, description="Mean stored size of one sample.")
    location: Text | None = Field(
        None,
        description="provider/region, onprem, or absent (with the user: no provider's egress).",
    )
    access: Literal["stage", "stream"] = Field(
        "stage", description="Copy to local disks first, or read while training."
    )
    decode_samples_per_s_per_core: PositiveFloat | None = Field(
        None, description="Samples one CPU core decodes per second; absent: decoding never limits."
    )
    egress_used_gb: NonNegativeFloat = Field(
        0.0, description="GB already sent out this month (transfer price tiers)."
    )


class Checkpoint(Section):
    """What is saved so that training can resume."""

    size: Size | None = Field(None, description="Size of one checkpoint; default: from the model.")
    interval: Duration | None = Field(
        None, description="Time between checkpoints; default: chosen by the planner."
    )
    restart_time: Duration | None = Field(
        None, description="Time from an interruption's end to training again."
    )
    keep: PositiveInt = Field(2, description="Checkpoints kept in storage.")
    export: Bool = Field(True, description="Copy the final model back to data.location or the user.")


class Throughput(Section):
    """A floor on speed; one of the two."""

    tokens_per_s: PositiveFloat | None = Field(None, description="Tokens per second.")
    samples_per_s: PositiveFloat | None = Field(None, description="Samples per second.")


class Filter(Section):
    """Shell-style patterns; `deny` wins over `allow`."""

    allow: tuple[Text, ...] | None = Field(None, description="Only these.")
    deny: tuple[Text, ...] = Field((), description="Never these.")


class QuotaLimit(Section):
    """What the account may use."""

    provider: Text = Field(description="Provider id.")
    region: Text = Field("*", description="Region, or * for each region.")
    quota: Text = Field(description="Quota name or code, or an instance family.")
    unit: Text | None = Field(None, description="vCPU, GPU or instances; default: the quota's own unit.")
    limit: NonNegativeFloat = Field(description="Most that may be used at once.")


class Constraints(Section):
    """What a plan must satisfy."""

    deadline: Deadline | None = Field(None, description="Time from start, or a date (its end counts).")
    budget_usd: Money | None = Field(
        None, description="Most US dollars to pay, tested against cash obligations."
    )
    min_throughput: Throughput | None = Field(None, description="Lowest acceptable speed.")
    min_memory_gib: PositiveFloat | None = Field(None, description="Memory per accelerator in GiB.")
    min_total_memory_gib: PositiveFloat | None = Field(None, description="Accelerator memory in all in GiB.")
    max_nodes: PositiveInt = Field(128, description="Most instances.")
    max_accelerators: PositiveInt | None = Field(None, description="Most accelerators.")
    providers: tuple[Text, ...] | None = Field(None, description="Only these providers.")
    regions: tuple[Text, ...] | None = Field(
        None, description="Patterns over provider/region, or over the region alone where there is no slash."
    )
    residency: tuple[Text, ...] | None = Field(None, description="Region groups where data may be, e.g. eu.")
    purchase_options: tuple[PurchaseOption, ...] | None = Field(
        None, description="Only these purchase options."
    )
    exclude_purchase_options: tuple[PurchaseOption, ...] = Field(
        (), description="Never these purchase options."
    )
    accelerators: Filter = Field(Filter.model_construct(), description="Patterns over accelerator ids.")
    instance_types: Filter = Field(Filter.model_construct(), description="Patterns over instance types.")
    quota: tuple[QuotaLimit, ...] = Field((), description="Account limits.")
    deadline_confidence: Confidence = Field(
        0.9, description="Probability with which the deadline must be met."
    )
    include_fractional: Bool = Field(False, description="Consider fractional accelerators (vGPU).")
    include_arm64: Bool = Field(False, description="Consider hosts with arm64 processors.")
    allow_flagged: Bool = Field(False, description="Consider offers refused for a flag.")
    allow_derived: Bool = Field(False, description="Add commitments whose price is derived from a ratio.")
    allow_unmeasured: Bool = Field(
        False, description="Consider chips whose software was never measured on this kind of model."
    )


class Preferences(Section):
    """What is best among the plans that satisfy the constraints."""

    objective: Literal["cost", "time"] = Field("cost", description="Cheapest, or fastest within the budget.")
    max_results: PositiveInt = Field(5, description="Ranked alternatives to show.")
    prefer_regions: tuple[Text, ...] = Field((), description="Patterns; break ties in this order.")


class Overlay(Section):
    """A customer's own price: the offers it matches change by `change`."""

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
    """Prices beside the catalog."""

    overlays: tuple[Overlay, ...] = Field((), description="Discounts and surcharges, applied in order.")
    offers: tuple[Text, ...] = Field(
        (), description="Files of own machines or offers, relative to this file."
    )
    commitment_share: Ratio | None = Field(
        None,
        description="Part of a new commitment's term that this work pays, other work the rest; default all.",
    )


class Baseline(Section):
    """What the plan is compared with: the user's present cluster."""

    provider: Text = Field(description="Provider id.")
    region: Text = Field(description="Region.")
    instance_type: Text = Field(description="Instance type.")
    nodes: PositiveInt = Field(description="Instances.")
    purchase_option: PurchaseOption = Field("on_demand", description="How it is bought.")
    price_per_hour_usd: Money | None = Field(
        None, description="Price per instance and hour; default: the catalog's."
    )


class OwnedCommitment(Section):
    """A commitment the user already pays: no extra cost up to its capacity."""

    provider: Text = Field(description="Provider id.")
    region: Text = Field(description="Region.")
    instance_type: Text = Field(description="Instance type.")
    purchase_option: PurchaseOption = Field(description="reserved_1y, cud_3y, ...")
    nodes: PositiveInt = Field(description="Instances owned.")
    share: Ratio | None = Field(None, description="Share of them this workload may use; default all.")
    note: str = Field("", description="Remark shown on the plan.")


class Fleet(Section):
    """Divisible work: independent runs spread over a mix of offers."""

    runs: PositiveInt = Field(1, description="Independent runs; the work is runs x training.")
    nodes_per_run: PositiveInt = Field(1, description="Instances one run needs.")
    max_regions: PositiveInt | None = Field(None, description="Most regions used.")
    max_share_per_region: Ratio | None = Field(None, description="Most of the throughput from one region.")
    max_spot_share: Share | None = Field(None, description="Most of the throughput from spot.")
    max_share_per_offer: Ratio | None = Field(None, description="Most of the throughput from one offer.")


class Spot(Section):
    """How spot may be used; what it costs and whether it is in time is the planner's to say."""

    fallback: Literal["on_demand", "none"] = Field(
        "on_demand", description="What runs when spot alone would miss the deadline."
    )
    zones: Literal["any", "single"] = Field(
        "any", description="Whether a run may go on in another zone or region where spot is to be had."
    )
    evidence: tuple[Text, ...] = Field(
        (), description="Files of your own availability records or preemption logs, relative to this file."
    )


class Workload(Section):
    """One training job (`kind: training`) or divisible work (`kind: fleet`)."""

    version: Literal[1] = Field(description="Version of this format.")
    kind: Literal["training", "fleet"] = Field(
        "training", description="One synchronous job, or divisible work."
    )
    name: Text = Field(description="Name shown on the plan.")
    description: str = Field("", description="Remark.")
    model: Model | None = Field(None, description="What is trained (absent only with task).")
    task: Task | None = Field(None, description="Instead of model and training, when only the data is known.")
    training: Training | None = Field(None, description="How it is trained (absent only with task).")
    data: Data = Field(Data.model_construct(), description="The training set.")
    checkpoint: Checkpoint = Field(Checkpoint.model_construct(), description="What is saved.")
    start: Moment | None = Field(None, description="When training may start; default now.")
    earliest_start: Day | None = Field(None, description="Day before which nothing may run.")
    constraints: Constraints = Field(Constraints.model_construct(), description="What a plan must satisfy.")
    preferences: Preferences = Field(Preferences.model_construct(), description="What is best.")
    prices: Prices = Field(Prices.model_construct(), description="Prices beside the catalog.")
    baseline: Baseline | None = Field(None, description="Present cluster to compare with.")
    fleet: Fleet | None = Field(None, description="How the work divides (kind fleet).")
    commitments: tuple[OwnedCommitment, ...] = Field((), description="Commitments already paid.")
    spot: Spot = Field(Spot.model_construct(), description="How spot may be used.")
    measured: MeasuredLine | None = Field(
        None, description="Your own throughput with this training, on instances or accelerators."
    )
    assumptions: dict[str, AnyFloat] = Field({}, description="Overrides of the planner's assumptions by key.")

    @model_validator(mode="after")
    def _run_checks(self, info: ValidationInfo) -> Self:
        """Apply the rules that join fields, unless the caller applies them itself to know their places."""
        if isinstance(info.context, dict) and info.context.get("checks") is False:
            return self
        from planner.workload.checks import find_faults
        from planner.workload.faults import format_path

        faults = find_faults(self)
        if faults:
            raise ValueError("; ".join(f"{format_path(fault.path)}: {fault.message}" for fault in faults))
        return self
