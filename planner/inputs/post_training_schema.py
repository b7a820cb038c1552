"""Fine-tuning, preference training, reinforcement learning and batch inference: sections of a workload.

Attribute names are the YAML keys.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from planner.inputs.fields import (
    Bool,
    Count,
    PositiveFloat,
    Ratio,
    SmallCount,
    SmallInt,
    Text,
    Version,
    Width,
)
from planner.inputs.section import Section

Objective = Literal[
    "pretrain", "sft", "dpo", "orpo", "kto", "reward", "ppo", "grpo", "distill", "contrastive"
]
ServingPrecision = Literal["bf16", "fp16", "fp8", "int8", "int4", "fp4", "mxfp4"]
_TARGETS = {"type": "string", "minLength": 1, "maxLength": 200}
Targets = Annotated[
    tuple[Text, ...],
    Field(min_length=1),
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [_TARGETS, {"type": "array", "items": _TARGETS}], "x-quantity": "targets"}),
]


class Lengths(Section):
    """Lengths of sequences, in tokens."""

    mean: PositiveFloat = Field(description="Mean length.")
    p95: PositiveFloat | None = Field(
        None, description="Length that 95 % do not exceed; default: 2 x mean, at most max."
    )
    max: Count | None = Field(
        None, description="Maximum, to which longer ones are cut; default: sequence_length, else 2 x p95."
    )


class Adapter(Section):
    """What methods lora and qlora train in addition to the frozen weights."""

    kind: Text = Field("lora", description="lora, dora, ia3, oft, ...; `planner schema adapters` lists them.")
    rank: SmallInt | None = Field(None, description="Rank; default 16. Same as training.lora_rank.")
    targets: Targets = Field(
        ("attention",),
        description="Adapted matrices: attention, mlp, all_linear, or names such as q_proj, v_proj, down_proj.",
    )


class Contrastive(Section):
    """For objective contrastive: the loss over all pairs of the global batch."""

    width: Width = Field(description="Width of the embeddings that are compared.")
    logits: Literal["rows", "full", "chunks"] = Field(
        "rows",
        description="What each accelerator holds: its own rows and columns (local loss), the whole matrix, or one block"
        " at a time as embeddings pass round (sigmoid loss of SigLIP).",
    )


class Evaluation(Section):
    """Evaluation in the run: a forward pass over some samples every so many steps."""

    every_steps: Count = Field(description="Optimizer steps between evaluations.")
    samples: Count = Field(description="Samples of one evaluation.")


class EarlyStop(Section):
    """A run that may end early, when a metric is reached."""

    mean_share: Ratio = Field(description="Mean share of the training that is done, 0.6 for 60 %.")
    p90_share: Ratio | None = Field(
        None, description="Share at which nine of ten such runs have stopped; default: 1, the whole training."
    )


class Teacher(Section):
    """For objective distill: the model whose outputs are learned; it runs forward only."""

    preset: Text | None = Field(None, description="Name of a known model.")
    params: Count | None = Field(None, description="Parameters, if it is not a preset.")
    active_params: Count | None = Field(None, description="Parameters used per token; default: params.")


# what generates rollouts and what answers requests have alike
_ENGINE_VERSION = Field(
    None,
    description='Release of the engine, "0.10.1" (vLLM, SGLang, TensorRT-LLM); default: newest measured.',
)
_ENGINE_YEAR = Field(
    None,
    description="Year of the engine's release, if its version is not given (vLLM since 0.8: 2025, since 0.14: 2026).",
)
_CUDA_GRAPHS = Field(
    True,
    description="Steps are replayed from CUDA graphs; false: eager mode (enforce_eager of vLLM and verl,"
    " disable_cuda_graph of SGLang).",
)


class Rollouts(Section):
    """For objectives ppo and grpo: the responses that each step generates; global_batch counts responses."""

    prompt_tokens: Lengths = Field(description="Lengths of prompts.")
    response_tokens: Lengths = Field(description="Lengths of responses; max is the limit of generation.")
    samples_per_prompt: SmallInt = Field(
        1, description="Responses to each prompt; global_batch is a multiple of it."
    )
    update_batch: Count | None = Field(
        None, description="Responses per optimizer update; default: global_batch, one update per step."
    )
    epochs: SmallInt = Field(1, description="Passes over the responses of a step.")
    old_logprobs: Literal["computed", "reused"] = Field(
        "computed",
        description="Log-probabilities of the policy that generated: computed by the trainer in a pass of their own, or"
        " reused from the engine (verl's bypass_mode) or from the one update of a step (NeMo RL's"
        " force_on_policy_ratio).",
    )
    engine: Text = Field(
        "vllm", description="Generation engine; `planner schema engines` lists those measured."
    )
    engine_version: Version | None = _ENGINE_VERSION
    engine_year: SmallInt | None = _ENGINE_YEAR
    precision: ServingPrecision = Field("bf16", description="Weights of generation.")
    tensor_parallel: SmallInt | None = Field(
        None, description="Accelerators of one engine; default: the fewest that hold the model well."
    )
    cuda_graphs: Bool = _CUDA_GRAPHS
    placement: Literal["colocated", "disaggregated"] = Field(
        "colocated",
        description="Generation alternates with training on the same accelerators, or has separate ones.",
    )
    generation_share: Annotated[float, Field(strict=True, gt=0, lt=1)] | None = Field(
        None,
        description="For placement disaggregated: share of the accelerators that generate; default: the best.",
    )
    steps_off_policy: SmallCount = Field(
        0, description="Steps by which generation may run ahead of training; 0: on policy."
    )
    in_flight_updates: bool | None = Field(
        None,
        description="With steps_off_policy: engines take new weights while they generate (NeMo RL's"
        " in_flight_weight_updates, verl's partial_rollout, AReaL). false: each update waits for the longest response."
        " Default: true.",
    )


class EngineChoice(Section):
    """What answers requests: the inference engine, its release and precisions."""

    engine: Text = Field(
        "vllm", description="Inference engine; `planner schema engines` lists those measured."
    )
    engine_version: Version | None = _ENGINE_VERSION
    engine_year: SmallInt | None = _ENGINE_YEAR
    precision: ServingPrecision = Field(
        "bf16",
        description="Precision of the weights. If absent in batch inference: that of the model's release, if lower"
        " (DeepSeek-V3, Kimi-K2, gpt-oss, quantization_config). mxfp4: experts in 4.25 bits, the rest and arithmetic"
        " in 16.",
    )
    kv_precision: Literal["bf16", "fp8"] = Field("bf16", description="Cached keys and values.")
    tensor_parallel: SmallInt | None = Field(
        None, description="Accelerators of one replica; default: the planner's choice."
    )
    max_concurrency: Width | None = Field(
        None, description="Maximum concurrent requests on one replica; default: the engine's limit."
    )
    cuda_graphs: Bool = _CUDA_GRAPHS
    shared_prefix: Bool = Field(
        False,
        description="Prompts share nearly all of their text, and the engine caches its keys and values: reading prompts"
        " takes no time.",
    )


class Inference(EngineChoice):
    """For kind inference: requests answered in bulk by a trained model; nothing is trained."""

    requests: Count | None = Field(None, description="Prompts to answer.")
    items: Count | None = Field(
        None, description="Images, texts or other samples (models without generation)."
    )
    input_tokens: Lengths | None = Field(None, description="Lengths of prompts.")
    output_tokens: Lengths | None = Field(None, description="Lengths of answers.")
    denoising_steps: SmallInt | None = Field(
        None,
        description="For models that generate images: steps per image; default: those of the model's usual pipeline.",
    )
    guidance: Bool | None = Field(
        None,
        description="For models that generate images: a second pass per step without the prompt; default as for steps.",
    )
