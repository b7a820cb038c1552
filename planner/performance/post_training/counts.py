"""What post-training adds to the counts of a job, as columns of `planner.performance.work.Work`.

sequences           sequences of a sample (a pair has two)
length_width        standard deviation of the log of their length, 0 where all are equally long
longest             tokens of the longest
adapter_bytes       bytes that adapters read and write per token and layer, besides the layer's own
adapter_saved_bytes bytes they keep per token and layer for the backward pass
adapter_built_bytes bytes moved per layer and pass to build updates as large as the adapted matrices
adapted             adapted matrices that a token meets in a layer
adapter_ratio       step time over that of LoRA on the same matrices
frozen_bytes        bytes per frozen weight of a layer, 0 where none is frozen
dequantised         1 where frozen weights are quantised and written out in 16 bit before each use
forward_passes      forward passes without learning (reference, teacher, old policy) over one of the learner
other_params        parameters of other resident models over the learner's
learners            models that learn (2 with a critic)
updates, epochs     optimizer updates of a step, and passes over its samples
tuned               1 for anything but pre-training
reinforced          1 where answers are generated in the step
pair_width          width of embeddings that are compared over the global batch, 0 where none are
pair_logits         position in `PAIR_LOGITS` of what each accelerator holds of their products
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.performance.post_training.adapters import adapted_matrices, load_adapters
from planner.performance.post_training.lengths import log_width

if TYPE_CHECKING:
    from planner.performance.spec import ModelSpec, TrainingSpec

COUNTS = (
    "sequences", "length_width", "longest", "adapter_bytes", "adapter_saved_bytes", "adapter_built_bytes",
    "adapted", "adapter_ratio", "frozen_bytes", "dequantised", "forward_passes", "other_params", "learners", "tuned",
    "reinforced", "updates", "epochs", "pair_width", "pair_logits",
)  # fmt: skip
# Matrices of a plain block of attention: queries, keys, values, output and two of its feed-forward network.
BLOCK_MATRICES = 6.0
PAIR_LOGITS = ("rows", "full", "chunks")
# Batches of like length keep a tenth of the spread: buckets of 20 batches (PEFT's and the Trainer's default is 50).
_GROUPED = 0.1
# Bits per weight: nf4 has a 32-bit scale per block of 64 weights, double quantisation 8 bits and a 32-bit scale per 256
# of these (Dettmers et al. 2023, arXiv 2305.14314, section 3); int8 has one scale per row (arXiv 2208.07339).
_BASE_BYTES = {"half": 2.0, "int8": 1.0, "nf4": 4.5 / 8.0, "nf4_double": 4.127 / 8.0}


def post_training_counts(model: ModelSpec, training: TrainingSpec) -> dict[str, float]:
    """The columns of one job."""
    tuning = training.tuning
    lengths = tuning.spread
    other, passes = _others(model, training)
    return {
        "sequences": float(tuning.sequences),
        "length_width": 0.0
        if lengths is None
        else log_width(lengths) * (_GROUPED if tuning.grouped else 1.0),
        "longest": float(training.sequence_length),
        **_adapters(model, training),
        "forward_passes": passes,
        "other_params": other,
        "learners": 2.0 if tuning.critic else 1.0,
        # measured of transformers alone
        "tuned": float(tuning.is_tuning and model.family.value == "transformer"),
        "reinforced": float(tuning.rollouts is not None),
        **_updates(training),
        **_pairs(training),
    }


def _pairs(training: TrainingSpec) -> dict[str, float]:
    pairs = training.tuning.contrastive
    if pairs is None:
        return {"pair_width": 0.0, "pair_logits": 0.0}
    return {"pair_width": float(pairs.width), "pair_logits": float(PAIR_LOGITS.index(pairs.logits))}


def _adapters(model: ModelSpec, training: TrainingSpec) -> dict[str, float]:
    tuning = training.tuning
    if not training.lora_rank or not model.hidden:
        names = (
            "adapter_bytes", "adapter_saved_bytes", "adapter_built_bytes", "adapted", "frozen_bytes", "dequantised",
        )  # fmt: skip
        counts = {**dict.fromkeys(names, 0.0), "adapter_ratio": 1.0}
        # A network whose layers are not known has adapters on all of its linear layers, as trainers of images set them.
        return {**counts, "adapted": BLOCK_MATRICES if training.lora_rank else 0.0}
    cost = load_adapters()[tuning.adapter or "lora"]
    # eager PEFT casts inputs to the adapters' 32 bit
    saved = cost.saved_bytes * (1.0 if training.stack == "eager" else 0.5)
    # of experts' matrices each token meets only those of its experts
    seen = float((model.experts_per_token or 0) + model.shared_experts)
    every = adapted_matrices(model, tuning.targets)
    matrices = [(a, b, min(n, seen) if n > 1 else n) for a, b, n in every]
    return {
        "adapter_bytes": sum(2.0 * n * (inputs + outputs) for inputs, outputs, n in matrices),
        "adapter_saved_bytes": saved * sum(n * inputs for inputs, _, n in matrices),
        "adapter_built_bytes": cost.weight_bytes * sum(inputs * outputs * n for inputs, outputs, n in every),
        "adapted": float(sum(n for _, _, n in matrices)),
        "adapter_ratio": cost.step_ratio,
        "frozen_bytes": _BASE_BYTES[tuning.base],
        "dequantised": 0.0 if tuning.base == "half" else 1.0,
    }


def _updates(training: TrainingSpec) -> dict[str, float]:
    rollouts = training.tuning.rollouts
    if rollouts is None:
        return {"updates": 1.0, "epochs": 1.0}
    each = training.global_batch / training.update_batch
    return {"updates": each * rollouts.epochs, "epochs": float(rollouts.epochs)}


def _others(model: ModelSpec, training: TrainingSpec) -> tuple[float, float]:
    """Parameters of resident other models, and their forward passes per sample, both relative to the learner's."""
    tuning = training.tuning
    resident = 1.0 if tuning.reference in ("resident", "copied") else 0.0
    passes = 1.0 + tuning.mismatched if tuning.reference in ("resident", "adapters_off") else 0.0
    passes += tuning.mismatched  # the learner's own
    # the policy that generated gives the log-probabilities that an update is measured against
    passes += 1.0 if tuning.rollouts is not None and tuning.rollouts.old_logprobs else 0.0
    if tuning.teacher_params is not None:
        active = tuning.teacher_active_params or tuning.teacher_params
        resident += tuning.teacher_params / model.params
        passes += active / (model.active_params or model.params)
    return resident, passes
