"""What is trained and how: model, task, layout, training, data and checkpoint of a workload.

Attribute names are the YAML keys.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from planner.inputs.fields import (
    Bool,
    Confidence,
    Count,
    Day,
    Duration,
    NonNegativeFloat,
    PositiveFloat,
    Ratio,
    Size,
    SmallCount,
    SmallInt,
    Text,
    Width,
)
from planner.inputs.post_training_schema import (
    Adapter,
    Contrastive,
    EarlyStop,
    Evaluation,
    Lengths,
    Objective,
    Rollouts,
    ServingPrecision,
    Teacher,
)
from planner.inputs.section import Section


class EmbeddingTables(Section):
    """Tables divided among all accelerators, next to a dense network that each accelerator has."""

    rows: Count = Field(description="Rows of all tables together.")
    width: Width = Field(description="Elements of a row.")
    tables: SmallInt = Field(description="Tables, each of which gives a sample one vector.")
    lookups_per_sample: PositiveFloat | None = Field(
        None, description="Rows that a sample reads from all tables; default: one of each table."
    )
    precision: Literal["fp32", "fp16", "bf16"] = Field("fp32", description="Stored precision of the tables.")
    optimizer: Literal["sgd", "rowwise_adagrad", "adagrad", "adam"] = Field(
        "sgd", description="Determines the state stored with each row; only rows that were read are updated."
    )


class Network(Section):
    """A network: a preset or explicit sizes; explicit fields beside a preset override it."""

    preset: Text | None = Field(None, description="Name of a known model, e.g. llama-3-8b or resnet-50.")
    name: Text | None = Field(
        None,
        description="Published name of a model given by sizes (resnet50d, yolov5s): its operators are looked up by it.",
    )
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
    layers: SmallInt | None = Field(None, description="Transformer blocks (encoder and decoder together).")
    hidden: Width | None = Field(None, description="Model width.")
    heads: SmallInt | None = Field(None, description="Attention heads.")
    kv_heads: SmallInt | None = Field(None, description="Key/value heads; default = heads.")
    head_dim: Width | None = Field(None, description="Width of one head; default = hidden / heads.")
    kv_width: Width | None = Field(
        None,
        description="Elements cached per token and layer when answering; default: 2 x kv_heads x head_dim.",
    )
    ffn: Width | None = Field(None, description="Width of the feed-forward layer; default = 4 x hidden.")
    gated_mlp: Bool | None = Field(
        None, description="Three matrices in the feed-forward layer (SwiGLU); default false."
    )
    stepwise_gelu: Bool | None = Field(None, description="GELU in several kernels (gelu_new); default false.")
    vocab: Width | None = Field(None, description="Vocabulary size in tokens.")
    tied_embeddings: Bool | None = Field(
        None, description="Input and output embeddings are shared; default false."
    )
    experts: SmallInt | None = Field(None, description="Experts per mixture-of-experts layer.")
    experts_per_token: SmallInt | None = Field(None, description="Experts each token passes through.")
    shared_experts: SmallCount | None = Field(None, description="Experts every token passes through.")
    moe_ffn: Width | None = Field(None, description="Feed-forward width of one expert; default = ffn.")
    dense_layers: SmallCount | None = Field(None, description="Leading layers without experts.")
    attention_window: Width | None = Field(
        None, description="Tokens to which a token attends (sliding window); default: all before it."
    )
    windowed_layers: SmallCount | None = Field(
        None, description="Layers with that window; the others see all. Default: every layer."
    )
    attention_ratio: PositiveFloat | None = Field(
        None,
        description="Score work relative to plain attention: the share of attention layers of a hybrid (below 1), or"
        " above 1 for relative positions and recurrent memory; default 1.",
    )
    predicted_share: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None,
        description="Share of the tokens that reach the vocabulary's output layer; 0 for classifiers and span heads."
        " Default: 1; encoders 0.15 (masked language models); 0 with objectives reward and contrastive, and for"
        " encoders with sft.",
    )
    image_size: Width | None = Field(None, description="Side of the square input image in pixels.")
    forward_flops_per_sample: Count | None = Field(
        None, description="FLOPs of one forward pass of one sample (2 x multiply-accumulates)."
    )
    activations_per_sample: Count | None = Field(
        None, description="Elements kept per sample for the backward pass (outputs of convolutions, matmuls)."
    )
    flops_within: Annotated[float, Field(strict=True, ge=1, le=10)] | None = Field(
        None,
        description="Factor by which the given FLOPs and activations may be off, e.g. 1.5: widens the interval.",
    )
    trainable: Literal["all", "head", "through", "none"] = Field(
        "all",
        description="What is trained: all; the output layer on frozen features (head); nearly nothing, while gradients"
        " pass through to trained parts (a prompt, biases, earlier parts); none: frozen, forward pass only.",
    )
    last_layers: SmallInt | None = Field(
        None, description="For transformers: train only these last layers and the output layer."
    )


class Part(Network):
    """One network of a model with several, as a preset or with explicit sizes."""

    tokens: Count | None = Field(
        None, description="For transformers: tokens of one of its runs; default: training.sequence_length."
    )
    per_sample: NonNegativeFloat = Field(
        1.0,
        description="How often it runs for each sample (a packed sequence with packing), e.g. 8 for eight crops, frames"
        " or tiles; 0: never, such as a frozen image encoder where all samples are text.",
    )


class Model(Network):
    """The model: a preset, its config.json, explicit sizes (they override the others), or a list of parts."""

    config: Text | None = Field(
        None, description="Instead of a preset: the model's config.json, next to this file; never downloaded."
    )
    stored_precision: ServingPrecision | None = Field(
        None, description="By the quantization_config of `config`: the default of inference.precision."
    )
    parts: tuple[Part, ...] | None = Field(
        None,
        description="Several networks instead of one: towers, encoders, frozen models. `training` describes the first;"
        " the others run for every sample on the same accelerators.",
    )
    embedding_tables: EmbeddingTables | None = Field(
        None,
        description="For recommenders: tables next to the dense network that the other keys describe (its params too).",
    )


class Task(Section):
    """For users who know only their data: model and training are assumed at one of three levels."""

    type: Literal[
        "image_classification",
        "text_classification",
        "text_finetuning",
        "language_model_pretraining",
        "image_generation_finetuning",
    ] = Field(description="What to learn.")
    effort: Literal["small", "medium", "large"] = Field(
        "medium", description="Level to plan; the others are shown as sensitivities."
    )


class Layout(Section):
    """Parts of the parallel layout to pin; the planner chooses the others."""

    tensor_parallel: SmallInt | None = Field(None, description="Accelerators that split each layer.")
    pipeline_parallel: SmallInt | None = Field(None, description="Pipeline stages.")
    context_parallel: SmallInt | None = Field(None, description="Accelerators that split each sequence.")
    zero_stage: Annotated[int, Field(strict=True, ge=0, le=3)] | None = Field(
        None, description="ZeRO stage (3 = FSDP full shard)."
    )
    micro_batch: Width | None = Field(None, description="Samples per accelerator group and micro-step.")
    recompute: Literal["none", "selective", "full"] | None = Field(
        None, description="Activation recomputation."
    )
    expert_parallel: SmallInt | None = Field(None, description="Accelerators that share a layer's experts.")
    interleave: SmallInt | None = Field(
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
    """Options of the training code that change its memory but hardly its speed."""

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
        False, description="Weights are stored in 8 bit, without a 16-bit copy."
    )
    dropout: Annotated[bool, Field(strict=True)] | None = Field(
        None, description="Dropout masks are kept; default: where the feed-forward network has no gate."
    )
    offload_optimizer: Bool = Field(False, description="Optimizer states are in host memory, updated there.")
    offload_weights: Bool = Field(False, description="Weights are also in host memory (ZeRO-3 only).")
    offload_activations: Bool = Field(
        False, description="What recomputation keeps of each layer is in host memory."
    )
    optimizer_in_backward: Bool = Field(
        False, description="Each gradient is applied and freed at once; needs one micro-batch per step."
    )
    confidence: Confidence | None = Field(
        None,
        description="Minimum probability that a layout fits into accelerator memory, given the model's error;"
        " default 0.95.",
    )


class Phase(Section):
    """A phase of the run; omitted keys are as in `training`."""

    share: Ratio = Field(
        description="Share of the amount of work (tokens or samples); all shares add up to 1."
    )
    global_batch: Count | None = Field(None, description="Samples per optimizer step.")
    sequence_length: Count | None = Field(None, description="Tokens per sequence.")
    image_size: Width | None = Field(None, description="Side of the input image of the first network.")


class Training(Section):
    """How long and how the model is trained; exactly one of tokens, samples, epochs, steps."""

    tokens: Count | None = Field(None, description="Tokens to train on.")
    samples: Count | None = Field(
        None, description="Samples (sequences, images) to train on, including repetitions."
    )
    epochs: PositiveFloat | None = Field(
        None, description="Passes over data.samples or data.tokens; of prompts with rollouts."
    )
    steps: Count | None = Field(None, description="Optimizer steps.")
    global_batch: Count = Field(description="Samples (sequences) per optimizer step over all accelerators.")
    sequence_length: Count | None = Field(
        None,
        description="Tokens per sequence; default: the longest of lengths or rollouts, else the preset's context, up to"
        " 8,192. Encoder-decoders: of either side; if they differ, the mean of the two.",
    )
    lengths: Lengths | None = Field(
        None, description="Lengths of the samples in tokens; default: all are sequence_length long."
    )
    packing: Bool | None = Field(
        None,
        description="Several samples fill one sequence of sequence_length, and global_batch and steps count sequences."
        " Default: false if lengths is given, else true.",
    )
    group_by_length: Bool = Field(
        False, description="Sequences of similar length share a batch, which reduces padding."
    )
    precision: Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"] = Field(
        "bf16", description="Arithmetic of the matmuls (fp16 where no machine has bf16); fp4: NVFP4 or MXFP4."
    )
    optimizer: Literal[
        "adamw", "adam", "sgd", "lion", "adafactor", "adamw_8bit", "paged_adamw", "paged_adamw_8bit"
    ] = Field(
        "adamw", description="Sets the optimizer's memory; paged states move to the host when it is short."
    )
    objective: Objective = Field(
        "pretrain",
        description="What is optimised; a sample of dpo, orpo and reward is a pair of sequences, one of contrastive a"
        " pair of sequences, or one run of each tower.",
    )
    method: Literal["full", "lora", "qlora"] = Field(
        "full", description="Train all weights, or adapters with frozen 16-bit (lora) or quantised weights."
    )
    lora_rank: SmallInt = Field(16, description="Rank of the adapters (methods lora and qlora).")
    adapter: Adapter | None = Field(None, description="The adapters (methods lora and qlora).")
    quantization: Literal["nf4", "nf4_double", "int8"] | None = Field(
        None,
        description="Frozen weights of method qlora; default nf4_double (4 bits, scales quantised again).",
    )
    reference: Literal["resident", "precomputed", "adapters_off", "none"] | None = Field(
        None,
        description="Reference model of dpo, kto, ppo and grpo: in memory, its log-probabilities computed beforehand, "
        "or the model without its adapters; default: adapters_off with adapters, else resident.",
    )
    teacher: Teacher | None = Field(None, description="The teacher (objective distill).")
    rollouts: Rollouts | None = Field(None, description="What is generated (objectives ppo and grpo).")
    contrastive: Contrastive | None = Field(None, description="The pairs (objective contrastive).")
    phases: tuple[Phase, ...] | None = Field(
        None,
        description="Schedule of batch, length or resolution: times add up, memory is that of the largest phase. Needs"
        " tokens, samples or epochs.",
    )
    evaluation: Evaluation | None = Field(None, description="Evaluation in the run; default: none.")
    early_stop: EarlyStop | None = Field(
        None,
        description="The run may end early: its mean share is planned, the spread of the end widens every interval.",
    )
    stack: Literal["eager", "fused", "compiled", "tuned", "tinygrad"] = Field(
        "compiled",
        description="Software class: framework as is; hand-fused kernels (Megatron-DeepSpeed); graph compiler"
        " (torch.compile, XLA); vendor recipe; tinygrad. If absent: compiled (LoRA of images: eager), less certain.",
    )
    attention: Literal["auto", "materialised", "fused", "flash", "native"] = Field(
        "auto",
        description="Attention kernel: scores through memory, the same with a fused softmax, flash, or flash written"
        " for the accelerator's generation (Hopper: FlashAttention-3, Blackwell: 4). auto: flash on accelerators from"
        " Ampere on; older ones, and runs that start before June 2022, without it.",
    )
    software_date: Day | None = Field(
        None,
        description="Day of the training software's release, e.g. 2026-06-01: attention before June 2022 and experts in"
        " 8 bit on Blackwell before June 2026 were slower. Default: the day the run starts.",
    )
    channels_last: Bool | None = Field(
        None,
        description="Memory layout of convolutions (NHWC); default: as the software class has it; eager keeps NCHW, "
        "and so do compilers for grouped convolutions (RegNet).",
    )
    layout: LayoutChoice = Field("auto", description="Parallel layout: auto, or parts of it pinned.")
    memory: TrainingMemory | None = Field(None, description="Memory options of the training code.")


class Data(Section):
    """The training set."""

    size: Size | None = Field(None, description="Stored size of the set.")
    samples: Count | None = Field(None, description="Samples in the set.")
    tokens: Count | None = Field(None, description="Tokens in the set.")
    sample_size: Size | None = Field(None, description="Mean stored size of one sample.")
    location: Text | None = Field(
        None,
        description="provider/region, onprem, or absent (at the user's site: no provider charges egress).",
    )
    access: Literal["stage", "stream"] = Field(
        "stage",
        description="Copy into the region first (see storage for where nodes read it), or read from where it lies"
        " while training.",
    )
    encoded: Literal["image", "audio", "video"] | None = Field(
        None,
        description="Samples are compressed images, audio or video that CPU cores decode, which can limit the speed"
        " (images: at a measured rate unless decode_samples_per_s_per_core is given).",
    )
    decode_samples_per_s_per_core: PositiveFloat | None = Field(
        None,
        description="Samples one CPU core decodes per second; absent: decoding never limits, unless `encoded` says"
        " that samples are images.",
    )
    egress_used_gb: NonNegativeFloat = Field(
        0.0, description="GB already sent out this month (transfer price tiers)."
    )


class Checkpoint(Section):
    """What is saved so that training can resume."""

    size: Size | None = Field(None, description="Size of one checkpoint; default: from the model.")
    initial: Size | None = Field(
        None, description="Size of the checkpoint that the run starts from; copied with the data."
    )
    interval: Duration | None = Field(
        None, description="Time between checkpoints; default: chosen by the planner."
    )
    restart_time: Duration | None = Field(
        None, description="Time from the end of an interruption until training continues."
    )
    keep: SmallInt = Field(2, description="Checkpoints kept in storage.")
    export: Bool = Field(True, description="Copy the final model back to data.location or the user.")
    merge_adapters: Bool = Field(
        False, description="For LoRA: export the whole model with merged adapters, not only the adapters."
    )
