"""What one training job keeps in device memory: bytes per parameter, per token and per logit, before any layout.

Activations per token and layer follow Korthikanti et al. 2022 (arXiv 2205.05198, section 4), written out for grouped
queries, gated MLPs, RMSNorm, experts and frozen weights; states per parameter follow Megatron-LM's README table and the
ZeRO paper (arXiv 1910.02054, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, get_args

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.performance.memory_options import MemoryOptions
from planner.performance.parts import training_of
from planner.performance.spec import ModelSpec, PartSpec, StackClass, TableSpec, TrainingSpec
from planner.performance.work import OPTIMIZER_STATE_BYTES, PRECISION_GROUP, Work, is_sampled, stack_work
from planner.records import record

LOGITS = ("materialised", "fused", "tiled")
SAMPLED_FAMILIES = ("cnn", "vit", "diffusion")
STACKS = get_args(StackClass)


@record(frozen=True)
class Footprint:
    """One row per job (or one for all layouts), arrays of shape `(1,)` or `(n,)`.

    Attributes:
        work: sizes shared with the time model.
        weight_bytes, grad_bytes, opt_bytes: bytes per parameter below ZeRO-3; `opt_bytes` is sharded from ZeRO-1 on.
        shard_bytes: weights that ZeRO-3 keeps per parameter (32 bit, its own master copy) and `shard_opt_bytes` the
            rest of its states.
        step_bytes: bytes per parameter that the optimizer's step writes beside its states, gone when it ends.
        act_shared_bytes, act_split_bytes: saved activation bytes per token and layer, not split / split by tp.
        act_routed_bytes: those of tokens sent to experts, split by tp, were all experts equally busy.
        score_bytes: bytes of materialised attention scores per token and layer.
        input_bytes: bytes per token of a layer's input, all that full recompute keeps.
        loss, family, stack: positions in `LOGITS`, `SAMPLED_FAMILIES` (-1 for transformers) and `STACKS`.
        blocks: of attention, recomputed one by one, of models counted per sample; 1 where they are not known.
        many_groups: 1 when the framework sets up communication for several kinds of parallelism.
        shard_ranks: the most ranks that share one copy of sharded states.
        offload_*: 1 when that part lives in host memory.
        in_backward: 1 when each gradient is applied and freed at once.
        paged: 1 when states that do not fit move to the host and back.
        beside: the same of each network that runs beside the model.
        tables: embedding tables beside it.
    """

    work: Work
    weight_bytes: Floats
    grad_bytes: Floats
    opt_bytes: Floats
    shard_bytes: Floats
    shard_opt_bytes: Floats
    step_bytes: Floats
    act_shared_bytes: Floats
    act_split_bytes: Floats
    act_routed_bytes: Floats
    score_bytes: Floats
    input_bytes: Floats
    loss: Floats
    family: Floats
    blocks: Floats
    stack: Floats
    many_groups: Floats
    shard_ranks: Floats
    offload_optimizer: Floats
    offload_weights: Floats
    offload_activations: Floats
    in_backward: Floats
    paged: Floats
    beside: tuple[Beside, ...] = ()
    tables: TableSpec | None = None

    @property
    def sampled(self) -> bool:
        """True when the jobs are counted per sample (all of them are, or none)."""
        return bool(self.family[0] >= 0)

    def take(self, index: Ints) -> Footprint:
        """Rows `index` of arrays with more than one row; single values stay as they are."""
        picked: dict[str, Any] = {"work": self.work.take(index)}
        for field in fields(self)[1:-2]:
            value = getattr(self, field.name)
            picked[field.name] = value if value.shape[0] == 1 else value[index]
        return Footprint(**picked, beside=self.beside, tables=self.tables)


@record(frozen=True)
class Beside:
    """A network that runs beside the model, and what it keeps."""

    part: PartSpec
    footprint: Footprint


def build_footprint(model: ModelSpec, training: TrainingSpec, work: Work | None = None) -> Footprint:
    """One job; `work` saves building it twice.

    Raises:
        ValueError: when a size that the family needs is missing; the message names it.
    """
    footprint = stack_footprints([(model, training)], work)
    beside = tuple(
        Beside(part, stack_footprints([(part.model, training_of(part, training))])) for part in model.parts
    )
    return replace(footprint, beside=beside, tables=model.tables) if beside or model.tables else footprint


def stack_footprints(jobs: Sequence[tuple[ModelSpec, TrainingSpec]], work: Work | None = None) -> Footprint:
    """Stack many jobs, shape `(n_jobs,)` per field."""
    work = work or stack_work(jobs)
    rows = [_row(model, training, _pick(work, n)) for n, (model, training) in enumerate(jobs)]
    names = [field.name for field in fields(Footprint)[1:-2]]
    columns: dict[str, Any] = {
        name: np.asarray([row[name] for row in rows], dtype=np.float64) for name in names
    }
    return Footprint(work=work, **columns)


_PICKED = (
    "hidden", "heads", "longest", "attn_width", "kv_width", "routed", "materialised", "lora", "adapter_saved_bytes",
)  # fmt: skip


def _pick(work: Work, position: int) -> dict[str, float]:
    values = {}
    for name in _PICKED:
        column = getattr(work, name)
        values[name] = float(column[position if len(column) > 1 else 0])
    return values


def _row(model: ModelSpec, training: TrainingSpec, sizes: dict[str, float]) -> dict[str, float]:
    options = training.memory
    sampled = is_sampled(model)
    loss = options.loss
    if loss == "auto":
        loss = "fused" if training.stack == "tuned" else "materialised"
    return {
        **state_bytes_per_param(training),
        **(dict.fromkeys(_ACTIVATIONS, 0.0) if sampled else _activations(model, training, sizes)),
        "loss": float(LOGITS.index(loss)),
        "family": float(SAMPLED_FAMILIES.index(model.family.value)) if sampled else -1.0,
        "blocks": float(model.layers or 1) if sampled and model.heads else 1.0,
        "stack": float(STACKS.index(training.stack)),
        "many_groups": float(not sampled and _many_groups(training)),
        "shard_ranks": float(options.shard_ranks or np.inf),
        # Paged states move to the host when memory is short: a layout may count on it.
        "offload_optimizer": float(options.offload_optimizer or training.optimizer.startswith("paged")),
        "offload_weights": float(options.offload_weights),
        "offload_activations": float(options.offload_activations),
        "in_backward": float(options.optimizer_in_backward),
        "paged": float(training.optimizer.startswith("paged")),
    }


def _many_groups(training: TrainingSpec) -> bool:
    """Megatron-LM and its kin set up channels for every kind of parallelism; recipes of fine-tuning do in tuned stacks.

    Compiled code counts as the same code does uncompiled: what Megatron-LM holds was measured of nothing else.
    """
    wanted = training.memory.groups
    if wanted != "auto":
        return wanted == "many"
    return training.stack == "tuned" or (training.stack == "fused" and not training.tuning.is_tuning)


def state_bytes_per_param(training: TrainingSpec) -> dict[str, float]:
    """Bytes per trained parameter of weights, gradients and optimizer states.

    Megatron-LM README: fp16 with fp16 gradients 20, bf16 with fp32 gradients 18, fp32 16 bytes. ZeRO-3 shards all
    16 bytes: FSDP keeps 32-bit weights that are their own master copy and 32-bit gradients, DeepSpeed 16-bit ones
    beside the master copy; 16-bit weights are gathered layer by layer.
    """
    options: MemoryOptions = training.memory
    states = OPTIMIZER_STATE_BYTES.get(training.optimizer.lower(), 8.0)
    group = PRECISION_GROUP[training.precision]
    half = group in ("half", "fp8")
    small_grads = options.gradients == "half" or (
        options.gradients == "auto" and training.precision == "fp16"
    )
    weight = (1.0 if options.fp8_weights else 2.0) if half else 4.0
    grad = 2.0 if half and small_grads else 4.0
    if half and options.gradients == "both":
        grad = 6.0
    if half and options.master == "none":
        # Moments of 32 bit shrink to 16; those of 8 bit stay.
        opt = states / 2.0 if states >= 4.0 else states
        shard, shard_opt = weight, opt
    elif half:
        # 16-bit gradients are copied to 32 bit for the update.
        scaled = 4.0 if small_grads and training.stack != "eager" else 0.0
        opt = 4.0 + states + scaled
        shard, shard_opt = (weight, 4.0 + states) if training.precision == "fp16" else (4.0, states)
    else:
        opt, shard, shard_opt = states, 4.0, states
    # PyTorch updates all tensors at once (torch.optim.AdamW, foreach) and keeps one copy of the size of the weights
    # while it does; compiled and tuned recipes ask for a fused kernel.
    at_once = training.stack == "eager" and training.optimizer.lower() in ("adam", "adamw")
    own = weight if half and options.master == "none" else 4.0
    return {
        "weight_bytes": weight, "grad_bytes": grad, "opt_bytes": opt, "shard_bytes": shard,
        "shard_opt_bytes": shard_opt, "step_bytes": own if at_once else 0.0,
    }  # fmt: skip


_ACTIVATIONS = ("act_shared_bytes", "act_split_bytes", "act_routed_bytes", "score_bytes", "input_bytes")


def _activations(model: ModelSpec, training: TrainingSpec, sizes: dict[str, float]) -> dict[str, float]:
    """Saved bytes per token and layer.

    Korthikanti's 34 h splits into 10 h outside the tensor-parallel parts (two norms 4, inputs of attention and MLP 4,
    dropout masks 2) and 24 h inside (queries, keys, values, attention output 8; MLP 16). Gated MLPs keep gate, up and
    product (6 ffn), an eager stack also the activated gate (8 ffn). Linear layers with frozen weights keep no input.
    """
    scale = 1.0 if PRECISION_GROUP[training.precision] in ("half", "fp8") else 2.0
    hidden, eager = sizes["hidden"], training.stack == "eager"
    dropout = not model.gated_mlp if training.memory.dropout is None else training.memory.dropout
    frozen = sizes["lora"] > 0
    inputs = 2.0 * hidden if frozen else 4.0 * hidden
    norms = 4.0 * hidden
    # RMSNorm written out in a framework without fusion computes, and keeps, its input in 32 bit.
    upcast = 8.0 * hidden if eager and model.gated_mlp else 0.0
    masks = 2.0 * hidden if dropout else 0.0
    attention = 4.0 * sizes["attn_width"] + 4.0 * sizes["kv_width"]
    # A GELU of several operators keeps the hyperbolic tangent, 1 + it, and half the input beside the input in eager
    # code (NewGELUActivation of HF Transformers); one kernel keeps the input alone.
    written_out = 6.0 if eager and model.stepwise_gelu else 0.0
    plain = (2.0 if frozen else 4.0) + written_out
    kept = (4.0 if frozen else 6.0) + (2.0 if eager else 0.0) if model.gated_mlp else plain
    routed = sizes["routed"]
    ffn = float(model.ffn or 4 * hidden)
    width = float(model.moe_ffn or ffn) if model.experts else ffn
    # Every token is copied to its experts and back; shared experts see each token once.
    mlp = kept * width * (model.shared_experts if model.experts else 1.0)
    experts = (kept * width + 4.0 * hidden) * routed
    # Softmax output, and with dropout its mask and result.
    scores = (5.0 if dropout else 2.0) * sizes["heads"] * sizes["longest"] * (sizes["materialised"] > 0)
    return {
        "act_shared_bytes": scale * (inputs + norms + masks) + upcast,
        "act_split_bytes": scale * (attention + mlp) + sizes["adapter_saved_bytes"],
        "act_routed_bytes": scale * experts,
        "score_bytes": scale * scores,
        "input_bytes": scale * 2.0 * hidden,
    }
