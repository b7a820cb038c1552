"""Adapters: which matrices of a layer they change, their parameters, and what each kind costs over LoRA.

Costs by kind are measured where data/adapters.csv says so; kinds never measured take the median of their class. Classes
of `DENSE` build a matrix as large as the adapted one before each pass, whatever the number of tokens: their cost is
memory traffic per adapted weight. That of others grows with the tokens and is a ratio on the step.
"""

from __future__ import annotations

from functools import cache

from planner.bundled import bundled_rows
from planner.performance.spec import ModelSpec, TrainingSpec
from planner.records import record

# Names that code bases give to the matrices of a layer; unknown names count as one hidden x hidden matrix.
_NAMES = {
    "q": ("q_proj", "q", "query", "wq", "to_q", "add_q_proj"), "k": ("k_proj", "k", "key", "wk", "to_k", "add_k_proj"),
    "v": ("v_proj", "v", "value", "wv", "to_v", "add_v_proj"),
    "o": ("o_proj", "out_proj", "wo", "dense", "linear_proj", "to_out", "to_out.0", "to_add_out"),
    "qkv": ("query_key_value", "qkv_proj", "qkv", "c_attn", "wqkv", "attn_qkv", "linear_qkv"),
    "gate": ("gate_proj", "w1"), "up": ("up_proj", "w3", "fc1", "dense_h_to_4h", "c_fc", "linear_in"),
    "down": ("down_proj", "w2", "fc2", "dense_4h_to_h", "linear_out", "linear_fc2"),
    "gate_up": ("gate_up_proj", "linear_fc1"),
    "qkv_mlp": ("to_qkv_mlp_proj",),
}  # fmt: skip
_ALIASES = {alias: name for name, aliases in _NAMES.items() for alias in aliases}
_GROUPS = {"attention": ("q", "k", "v", "o"), "mlp": ("gate", "up", "down")}
_GROUPS["all_linear"] = (*_GROUPS["attention"], *_GROUPS["mlp"])
# Updates that are as large as the matrix: products with it (DoRA, HiRA, LoKr), transforms (FourierFT, WaveFT), and
# chains of rotations that are multiplied out (BOFT, HRA).
DENSE = frozenset(("weight_product", "dense_update", "large_operator"))
_ELSEWHERE = frozenset(("embed_tokens", "lm_head", "model.embed_tokens", "wte", "embeddings"))


@record(frozen=True)
class AdapterCost:
    """A row of data/adapters.csv.

    Attributes:
        kind, family: name and class (low_rank, rotation, ...).
        step_ratio: step time over that of LoRA on the same matrices, beside `weight_bytes`.
        weight_bytes: bytes moved per element of an adapted matrix and pass, to build its update.
        saved_bytes: bytes kept per token and element of an adapted matrix's input for the backward pass.
        spread: half width in log of the 80 % interval of `step_ratio`.
        rows: measured rows behind it.
    """

    kind: str
    family: str
    step_ratio: float
    weight_bytes: float
    saved_bytes: float
    spread: float
    rows: int


@cache
def load_adapters() -> dict[str, AdapterCost]:
    """Read adapters.csv."""
    return {
        row["adapter"]: AdapterCost(
            row["adapter"], row["class"], float(row["step_ratio"]), float(row["weight_bytes"]),
            float(row["saved_bytes"]), float(row["spread"]), int(row["rows"]),
        )
        for row in bundled_rows("adapters.csv")
    }  # fmt: skip


def adapter_spread(training: TrainingSpec) -> float:
    """Half width in log of the 80 % interval that the adapters' kind adds; 0 where all weights learn, or with LoRA."""
    kind = training.tuning.adapter or "lora"
    return load_adapters()[kind].spread if training.lora_rank and kind != "lora" else 0.0


def adapted_matrices(model: ModelSpec, targets: tuple[str, ...]) -> list[tuple[float, float, float]]:
    """(inputs, outputs, copies) of each adapted matrix of a layer, in elements; copies are experts."""
    assert model.hidden is not None
    hidden, heads = float(model.hidden), float(model.heads or max(1, model.hidden // 64))
    head = float(model.head_dim or hidden / heads)
    wide, narrow = heads * head, float(model.kv_heads or heads) * head
    ffn, copies = float(model.ffn or 4 * hidden), 1.0
    if model.experts:
        ffn, copies = float(model.moe_ffn or ffn), float(model.experts + model.shared_experts)
    sizes = {
        "q": (hidden, wide, 1.0), "k": (hidden, narrow, 1.0), "v": (hidden, narrow, 1.0), "o": (wide, hidden, 1.0),
        "qkv": (hidden, wide + 2 * narrow, 1.0), "gate": (hidden, ffn, copies), "up": (hidden, ffn, copies),
        "down": (ffn, hidden, copies), "gate_up": (hidden, 2 * ffn, copies),
        "qkv_mlp": (hidden, wide + 2 * narrow + 2 * ffn, copies),
    }  # fmt: skip
    if not model.gated_mlp:
        del sizes["gate"]
    names: list[str] = []
    for target in targets:
        names += _GROUPS.get(target) or [_ALIASES.get(target, target)]
    known = dict.fromkeys(names)
    return [
        sizes.get(name, (hidden, hidden, 1.0))
        for name in known
        if name not in _ELSEWHERE and (name in sizes or name != "gate")
    ]


def adapter_params(model: ModelSpec, rank: int, kind: str, targets: tuple[str, ...]) -> float:
    """Trained parameters of adapters in all layers; low-rank products count rank x (inputs + outputs)."""
    if not (model.layers and model.hidden):
        return 0.01 * model.params
    family = load_adapters()[kind].family
    per_layer = 0.0
    for inputs, outputs, copies in adapted_matrices(model, targets):
        each = {
            "scaling": outputs, "prompt": inputs, "rotation": 0.5 * rank * inputs, "dense_update": 10.0 * rank,
        }.get(family, rank * (inputs + outputs))  # fmt: skip
        per_layer += copies * each
    return float(model.layers * per_layer)


def adapted(training: TrainingSpec) -> bool:
    """Whether the weights are frozen: adapters learn, or little else, or nothing."""
    return training.lora_rank is not None or training.trains != "all"


def forward_passes(training: TrainingSpec) -> float:
    """FLOPs of forward and backward over those of the forward pass: gradients of activations, then of weights."""
    if training.trains == "none":
        return 1.0
    return 2.0 if adapted(training) else 3.0


def learned_params(model: ModelSpec, training: TrainingSpec) -> float:
    """Parameters that learn."""
    if training.trains != "all":
        return training.learned_params
    return lora_params(model, training) if training.lora_rank else model.params


def lora_params(model: ModelSpec, training: TrainingSpec) -> float:
    """Parameters of the adapters, 0 where all weights learn; by default low-rank ones on the attention projections."""
    if training.lora_rank is None:
        return 0.0
    tuning = training.tuning
    return adapter_params(model, training.lora_rank, tuning.adapter or "lora", tuning.targets)
