"""Values of a workload made complete, with their origin: model, training, moments."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from planner.errors import InputError
from planner.inputs.post_training import PostTraining
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.training_schema import Layout, TrainingMemory

Stack = Literal["eager", "fused", "compiled", "tuned", "tinygrad"]
Origin = Literal["workload", "default", "derived"]


class Assumed(NamedTuple):
    """A value the plan rests on, as text with its unit, and whether the user gave it."""

    key: str
    value: str
    unit: str
    origin: Origin
    note: str = ""


@record(frozen=True)
class ResolvedTables:
    """Embedding tables: the fields of `planner.performance.spec.TableSpec` by name."""

    rows: float
    width: int
    tables: int
    lookups: float
    row_bytes: float
    state_bytes: float


@record(frozen=True)
class ResolvedModel:
    """A complete model: the fields of `planner.performance.spec.ModelSpec` by name, and origin.

    `context_length` is the published context of a preset in tokens; `assumptions` tells the sizes' origin; `trains` and
    `learned_params` what learns, `last_layers` how many of the layers where only these do. Of a model given by parts
    these are the sizes of the first, and `parts` the others.
    """

    name: str
    family: Literal["transformer", "cnn", "vit", "diffusion"]
    params: int
    active_params: int | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    kv_width: int | None = None
    ffn: int | None = None
    gated_mlp: bool = False
    stepwise_gelu: bool = False
    vocab: int | None = None
    tied_embeddings: bool = False
    architecture: Literal["decoder", "encoder", "encoder_decoder"] = "decoder"
    experts: int | None = None
    experts_per_token: int | None = None
    shared_experts: int = 0
    moe_ffn: int | None = None
    dense_layers: int = 0
    attention_window: int | None = None
    windowed_layers: int | None = None
    attention_ratio: float = 1.0
    predicted_share: float | None = None
    image_size: int | None = None
    forward_flops_per_sample: int | None = None
    activations_per_sample: int | None = None
    flops_within: float = 1.0
    context_length: int | None = None
    source: str = ""
    as_of: str = ""
    note: str = ""
    assumptions: tuple[Assumed, ...] = ()
    trains: Literal["all", "through", "none"] = "all"
    learned_params: float = 0.0
    last_layers: int | None = None
    parts: tuple[ResolvedPart, ...] = ()
    tables: ResolvedTables | None = None


@record(frozen=True)
class ResolvedPart:
    """A network beside the model: `tokens` of each of its runs (None: the job's), `per_sample` of them."""

    model: ResolvedModel
    tokens: int | None
    per_sample: float

    @property
    def trains(self) -> Literal["all", "through", "none"]:
        """What of it learns."""
        return self.model.trains

    @property
    def learned_params(self) -> float:
        """Parameters that learn where not all do."""
        return self.model.learned_params


PHASES = "training.phases"  # key of the schedule among the assumptions of a plan
_SCHEDULE = re.compile(r"[0-9]+( x [0-9]+){1,2}(, [0-9]+( x [0-9]+){1,2})*")


@record(frozen=True)
class ResolvedPhase:
    """A stretch of a run: its share of the steps, batch, length, and FLOPs per sample over those of the model."""

    step_share: float
    global_batch: int
    sequence_length: int
    flops_ratio: float


def phases_noted(value: str) -> tuple[tuple[int, ...], ...]:
    """Steps, samples per step and, of text, tokens per sample of each phase, by the value of the assumption PHASES.

    Raises:
        InputError: it is no such schedule.
    """
    if value and not _SCHEDULE.fullmatch(value):
        raise InputError(f"assumption {PHASES}: {value!r} is no list of steps x samples x tokens")
    return tuple(tuple(int(part) for part in one.split(" x ")) for one in value.split(", ") if one)


@record(frozen=True)
class ResolvedTraining:
    """The amount of work of one run and how it is done.

    Attributes:
        unit: what throughput counts, tokens or samples.
        total_samples: samples (sequences) of one run, repeats counted.
        total_steps: optimizer steps of one run (the last may be partial).
        total_tokens: tokens of one run; None for models without tokens.
        sequence_length: tokens per sample; 1 for models without tokens.
        global_batch: samples per optimizer step.
        bytes_per_sample: bytes the loader delivers per sample; None unknown.
        data_bytes: bytes of the whole set that must be where the training runs; None unknown.
        lora_rank: None when all weights are trained.
        layout: None when the planner chooses all of it.
        memory: None when the software stack decides all of it.
        attention: the attention kernel as given; `software_date` the day of the software's release, by default that
            of the run, None today's (older software had other kernels).
        channels_last: memory layout of convolutions, None what the software has by default.
        open_choices: what the user left to a default that moves the step time.
        post: objective, adapters, lengths, rollouts or requests; its own defaults for pre-training.
        tokens_per_sample: tokens of a sample that carry content, 1 for models without tokens.
        evaluated: samples evaluated in the run for each one trained on.
        phases: stretches of the run, none where it has one.
        runs: independent runs (1 unless a fleet).
        stop_log_sd: of a run that stops early, standard deviation of the logarithm of its work; totals are its mean.
    """

    unit: Literal["tokens", "samples"]
    total_samples: int
    total_steps: int
    total_tokens: int | None
    sequence_length: int
    global_batch: int
    bytes_per_sample: float | None
    data_bytes: int | None
    precision: Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"]
    optimizer: str
    lora_rank: int | None
    stack: Stack
    attention: Literal["auto", "materialised", "fused", "flash", "native"]
    software_date: date | None
    open_choices: tuple[str, ...]
    channels_last: bool | None
    layout: Layout | None
    memory: TrainingMemory | None
    decode_samples_per_s_per_core: float | None
    runs: int
    assumptions: tuple[Assumed, ...]
    post: PostTraining = PostTraining()
    tokens_per_sample: float = 1.0
    evaluated: float = 0.0
    phases: tuple[ResolvedPhase, ...] = ()
    stop_log_sd: float = 0.0

    @property
    def samples_per_step(self) -> float:
        """Mean samples of an optimizer step."""
        if not self.phases:
            return float(self.global_batch)
        return sum(phase.step_share * phase.global_batch for phase in self.phases)

    @property
    def units_per_step(self) -> float:
        """Mean tokens or samples of an optimizer step."""
        if self.phases and self.unit == "tokens":
            each = (p.step_share * p.global_batch * p.sequence_length for p in self.phases)
            return sum(each) * self.tokens_per_sample / self.sequence_length
        return self.samples_per_step * self.tokens_per_sample

    @property
    def total_units(self) -> int:
        """Return the work of one run in `unit`."""
        return (
            self.total_tokens
            if self.unit == "tokens" and self.total_tokens is not None
            else self.total_samples
        )


@record(frozen=True)
class ResolvedTimes:
    """Moments in UTC; no deadline: None."""

    start: datetime
    deadline: datetime | None
    assumptions: tuple[Assumed, ...]
