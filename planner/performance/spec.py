"""What the performance model needs to know of a model and of its training: plain values, no prices, no providers."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from planner.performance.memory_options import MemoryOptions
from planner.performance.post_training.spec import Tuning
from planner.records import record


class ModelFamily(StrEnum):
    """How a model's work is counted: by its transformer dimensions or by FLOPs and activations per sample."""

    TRANSFORMER = "transformer"
    CNN = "cnn"
    VIT = "vit"
    DIFFUSION = "diffusion"


Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"]
# eager: every operator launched by the framework; fused: hand-fused kernels without a graph compiler
# (Megatron-DeepSpeed); compiled: a graph compiler (torch.compile, XLA) around flash attention; tuned: a vendor recipe;
# tinygrad: a young framework that generates its kernels.
StackClass = Literal["eager", "fused", "compiled", "tuned", "tinygrad"]
# materialised: separate kernels pass the scores through memory; fused: one kernel scales, masks and normalises them;
# flash: they never leave the chip; native: as flash, in the kernel written for the accelerator's generation where there
# is one (`kernels.NATIVE`); auto: by accelerator generation (`kernels.default_attention`).
AttentionKernel = Literal["auto", "materialised", "fused", "flash", "native"]
# grouped: one product per expert in one launch, of sizes that the host knows; native: in 8 bit, kernels written for the
# accelerator's generation where there are some, of sizes that stay on the device (`kernels.default_experts`).
ExpertKernels = Literal["grouped", "native"]
Recompute = Literal["none", "selective", "full"]
# all: every weight learns; through: hardly any does (adapters, biases, a prompt), yet gradients pass back through the
# network; none: forward pass only.
Trains = Literal["all", "through", "none"]

# Where the time of a step goes.
COMPONENTS = (
    "compute_s", "memory_bound_s", "tp_comm_s", "pp_comm_s", "bubble_s", "dp_comm_s", "optimizer_s",
    "data_loading_s", "fixed_s", "other_models_s", "offload_s", "generation_s", "refit_s", "evaluation_s",
)  # fmt: skip


_VISION = frozenset(("cnn", "vit", "diffusion"))


@record(frozen=True)
class ModelSpec:
    """Sizes of a model. Lengths are in tokens, widths in elements; counts are per model.

    Transformers (decoder, encoder or both) give dimensions; CNN, ViT and diffusion models give
    `forward_flops_per_sample` (2 x multiply-accumulates) and `activations_per_sample` (elements kept for backward).
    A ViT may give both. With `stepwise_gelu`, eager code computes GELU operator by operator and keeps what each one
    gives. `kv_width` is what generation caches per token and layer (latent attention: its latent).
    `attention_ratio` is the score work relative to plain attention (relative positions, recurrent memory: above 1;
    hybrids, whose other layers keep a state instead of scores: their share of attention layers); `attention_window`
    tokens are what a token sees in `windowed_layers` of the layers (by default all). `predicted_share` of the tokens
    reach the output layer of the vocabulary (0 for classifiers and span heads; by default all, or the masked ones of an
    encoder). `None` means not applicable or unknown, never zero. `flops_within` is the factor within which FLOPs given
    by hand are believed to be right (80 %). `parts` are the networks that run beside this one for each sample.
    """

    name: str
    family: ModelFamily
    params: float
    active_params: float | None = None
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
    image_size: int | None = None
    forward_flops_per_sample: float | None = None
    activations_per_sample: float | None = None
    attention_ratio: float = 1.0
    attention_window: int | None = None
    windowed_layers: int | None = None
    predicted_share: float | None = None
    flops_within: float = 1.0
    parts: tuple[PartSpec, ...] = ()
    tables: TableSpec | None = None

    @property
    def reads_files(self) -> bool:
        """Whether its samples are files of their own, as images are; a recommender reads rows of tables."""
        return self.family.value in _VISION and self.tables is None


@record(frozen=True)
class TableSpec:
    """Embedding tables, divided evenly among all accelerators beside a dense network that each of them has.

    Attributes:
        rows: of all tables.
        width: elements of a row.
        tables: how many; each gives a sample one vector, the sum of the rows read.
        lookups: rows that a sample reads from all tables.
        row_bytes, state_bytes: of a row, and of what its optimizer keeps beside it.
    """

    rows: float
    width: int
    tables: int
    lookups: float
    row_bytes: float
    state_bytes: float

    @property
    def params(self) -> float:
        """Elements of all rows."""
        return self.rows * self.width

    @property
    def all_bytes(self) -> float:
        """Bytes of all rows with their states."""
        return self.rows * (self.row_bytes + self.state_bytes)


@record(frozen=True)
class PartSpec:
    """A network that runs beside the model, data-parallel on the same accelerators.

    Attributes:
        model: its sizes.
        trains: what of it learns.
        tokens: tokens of one of its runs, 1 for models counted per sample; None: the sequences of the job.
        per_sample: how often it runs for each sample of the job.
        learned_params: parameters that learn where not all do.
    """

    model: ModelSpec
    trains: Trains = "all"
    tokens: int | None = None
    per_sample: float = 1.0
    learned_params: float = 0.0


@record(frozen=True)
class LayoutPin:
    """Parts of the parallel layout the user fixed; `None` leaves the choice to the search."""

    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    context_parallel: int | None = None
    zero_stage: int | None = None
    micro_batch: int | None = None
    recompute: Recompute | None = None
    expert_parallel: int | None = None
    interleave: int | None = None
    sequence_parallel: bool | None = None


@record(frozen=True)
class TrainingSpec:
    """How the model is trained. `global_batch` is in samples (sequences) per optimizer step.

    `sequence_length` is in tokens (1 for models counted per sample); `bytes_per_sample` is what the data loader must
    deliver per sample, None when unknown. `attention` is the kernel (see `AttentionKernel`), `expert_kernels` those of
    mixtures of experts. `open_choices` names what
    the user left open and a default stands in for (`stack`, `attention`): it widens the interval. `allow_fp16_fallback`
    lets a bf16 job run in fp16 on devices without bf16. `channels_last` is the memory layout of convolutions, None what
    the stack has by default: only eager PyTorch keeps channels outermost. `tuning` is what post-training adds. `trains`
    says what of the model learns, `learned_params` how many parameters where it is not all and there are no adapters.
    `evaluated` samples run forward for each sample trained on. `phases` are those of the run, where it has several.
    """

    global_batch: int
    sequence_length: int
    precision: Precision
    optimizer: str = "adamw"
    lora_rank: int | None = None
    stack: StackClass = "compiled"
    layout: LayoutPin = LayoutPin()
    bytes_per_sample: float | None = None
    decode_samples_per_s_per_core: float | None = None
    attention: AttentionKernel = "flash"
    expert_kernels: ExpertKernels = "grouped"
    open_choices: tuple[str, ...] = ()
    allow_fp16_fallback: bool = False
    channels_last: bool | None = None
    memory: MemoryOptions = MemoryOptions()
    tuning: Tuning = Tuning()
    trains: Trains = "all"
    learned_params: float = 0.0
    evaluated: float = 0.0
    phases: tuple[Phase, ...] = ()

    @property
    def update_batch(self) -> int:
        """Samples of one optimizer update: the global batch, but where a step of rollouts updates several times."""
        rollouts = self.tuning.rollouts
        return (rollouts and rollouts.update_batch) or self.global_batch

    @property
    def updates(self) -> int:
        """Optimizer updates of one pass over the batch of a step: 1, but where a step of rollouts has several."""
        return self.global_batch // self.update_batch

    @property
    def updates_and_passes(self) -> tuple[int, int] | None:
        """Optimizer updates of one pass over the batch of a step of rollouts, and its passes; None without rollouts."""
        rollouts = self.tuning.rollouts
        return None if rollouts is None else (self.updates, rollouts.epochs)


@record(frozen=True)
class Phase:
    """A stretch of a run: its share of the optimizer steps, batch, length, and FLOPs per sample over the model's."""

    step_share: float
    global_batch: int
    sequence_length: int
    flops_ratio: float = 1.0


TOKEN_BYTES = 4.0  # text of a token
ITEM_BYTES = 4096.0  # assumption: labels or an embedding of 2,048 half-precision numbers


def answer_bytes(training: TrainingSpec) -> float:
    """Bytes that one answered request leaves."""
    requests = training.tuning.requests or training.tuning.rollouts
    if requests is None or requests.answers is None:
        return ITEM_BYTES
    return TOKEN_BYTES * requests.answers.mean
