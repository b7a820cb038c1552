"""Adapters, quantised weights, objectives, host memory: written where a workload has a key, named where it has none."""

from __future__ import annotations

from typing import Any

from planner.trainer_files.model import Fact
from planner.trainer_files.supported import supports

_OBJECTIVES = {
    "simpo": "orpo",
    "ipo": "dpo",
    "pt": "pretrain",
    "rm": "reward",
    "gspo": "grpo",
    "dapo": "grpo",
}
_GROUPS = {
    "attention": {
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "qkv_proj",
        "query_key_value",
        "linear_qkv",
        "linear_proj",
    },
    "mlp": {"gate_proj", "up_proj", "down_proj", "gate_up_proj", "linear_fc1", "linear_fc2"},
}
_EVERY = ("all", "all-linear", "all_linear", "linear")
_HOST = {
    "training.offload_optimizer": "training.memory.offload_optimizer",
    "training.offload_param": "training.memory.offload_weights",
    "training.offload_activations": "training.memory.offload_activations",
}


def settle_method(draft: dict[str, Fact], facts: dict[str, Fact], warnings: list[str]) -> None:
    """Add method, adapter, objective and host memory to the draft.

    Args:
        draft: facts of the workload; changed in place.
        facts: what the files state.
        warnings: what a workload cannot say is added.
    """
    if "training.method" in facts:
        _adapters(draft, facts, warnings)
    _objective(draft, facts, warnings)
    for source, target in _HOST.items():
        if source in facts and supports(target):
            draft[target] = Fact(target, True, facts[source].where)


def _adapters(draft: dict[str, Fact], facts: dict[str, Fact], warnings: list[str]) -> None:
    method = facts["training.method"]
    bits = facts.get("training.frozen_bits")
    if method.value == "lora" and bits is not None:
        method = _quantised(draft, bits, warnings)
    draft["training.method"] = method
    if method.value == "full":
        return
    rank, kind, targets = (facts.get(f"training.{name}") for name in ("lora_rank", "adapter", "lora_targets"))
    if rank is not None:
        draft["training.lora_rank"] = rank
    if kind is not None and supports("training.adapter.kind"):
        draft["training.adapter.kind"] = Fact("training.adapter.kind", kind.value, kind.where)
    elif kind is not None:
        warnings.append(f"{kind.where}: adapters of kind {kind.value} are counted as LoRA")
    if targets is not None:
        _targets(draft, targets, warnings)


def _quantised(draft: dict[str, Fact], bits: Fact, warnings: list[str]) -> Fact:
    key = "training.method"
    if not supports(key, "qlora"):
        warnings.append(
            f"{bits.where}: frozen weights of {bits.value} bit are counted as 16 bit: memory is predicted too high"
        )
        return Fact(key, "lora", bits.where)
    name = "int8" if bits.value == 8 else "nf4_double"
    if supports("training.quantization", name):
        assumed = bits.value != 8
        where = bits.where + (", scales quantised again" if assumed else "")
        draft["training.quantization"] = Fact("training.quantization", name, where, assumed)
    return Fact(key, "qlora", bits.where)


def _targets(draft: dict[str, Fact], targets: Fact, warnings: list[str]) -> None:
    """Adapted matrices by name; without a key for them, all but attention's are named."""
    names = _target_names(targets.value)
    if supports("training.adapter.targets"):
        draft["training.adapter.targets"] = Fact("training.adapter.targets", names, targets.where)
    elif not set(names) <= _GROUPS["attention"]:
        warnings.append(f"{targets.where}: adapters are counted on attention's four matrices alone")


def _target_names(value: Any) -> list[str]:
    listed = value if isinstance(value, list) else str(value).split(",")
    names = [str(name).strip() for name in listed if str(name).strip()]
    if any(name in _EVERY for name in names) or not names:
        return ["all_linear"]
    return names


def _objective(draft: dict[str, Fact], facts: dict[str, Fact], warnings: list[str]) -> None:
    stated = facts.get("training.objective")
    if stated is None:
        return
    name = str(stated.value).lower()
    known = _OBJECTIVES.get(name, name)
    if supports("training.objective", known) and supports("training.objective"):
        draft["training.objective"] = Fact("training.objective", known, stated.where, stated.assumed)
        if known != name:
            warnings.append(f"{stated.where} {name}: counted as {known}")
    elif known not in ("sft", "pretrain"):
        warnings.append(
            f"{stated.where} {name}: a workload cannot say so yet: reference models, pairs and generation are not "
            "counted, so time and memory are predicted too low"
        )
