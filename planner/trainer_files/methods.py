"""Adapters, quantised weights, objectives and host memory, as the keys of a workload."""

from __future__ import annotations

from typing import Any

from planner.inputs.post_training import adapter_key, adapter_names, load_objectives
from planner.trainer_files.model import Blank, Fact

# names of objectives in trainers -> those of a workload
_OBJECTIVES = {
    "simpo": "orpo", "ipo": "dpo", "pt": "pretrain", "rm": "reward", "gspo": "grpo", "dapo": "grpo", "gdpo": "grpo",
    "ebft": "grpo",
}  # fmt: skip
_EVERY = ("all", "all-linear", "all_linear", "linear")
_STAGE = "training.layout.zero_stage"
_WEIGHTS = "training.memory.offload_weights"


def settle_method(
    draft: dict[str, Fact], facts: dict[str, Fact], warnings: list[str], blanks: list[Blank]
) -> None:
    """Add method, adapter, objective and host memory to the draft.

    Args:
        draft: facts of the workload; changed in place.
        facts: what the files state.
        warnings: what a workload cannot say is added.
        blanks: what an objective needs beyond the files is added.
    """
    if "training.method" in facts:
        _adapters(draft, facts)
    _objective(draft, facts, warnings, blanks)
    if _WEIGHTS in draft and (_STAGE not in draft or draft[_STAGE].value != 3):
        warnings.append(
            f"{draft.pop(_WEIGHTS).where}: weights are kept in host memory with ZeRO stage 3 alone"
        )


def _adapters(draft: dict[str, Fact], facts: dict[str, Fact]) -> None:
    method, bits = facts["training.method"], facts.get("training.frozen_bits")
    quantised = method.value == "lora" and bits is not None
    draft["training.method"] = Fact("training.method", "qlora", bits.where) if quantised and bits else method
    if method.value == "full":
        return
    if quantised and bits is not None:
        nested = "" if bits.value == 8 else ", scales quantised again"
        key = "training.quantization"
        draft[key] = Fact(key, "int8" if bits.value == 8 else "nf4_double", bits.where + nested, bool(nested))
    rank, kind, targets = (facts.get(f"training.{name}") for name in ("lora_rank", "adapter", "lora_targets"))
    if rank is not None:
        draft["training.lora_rank"] = rank
    if kind is not None:
        key, name = "training.adapter.kind", adapter_key(str(kind.value))
        known = name in adapter_names()
        where = kind.where if known else f"{kind.where}; {kind.value} is not known"
        draft[key] = Fact(key, name if known else "other", where, not known)
    if targets is not None:
        key = "training.adapter.targets"
        draft[key] = Fact(key, _target_names(targets.value), targets.where)


def _target_names(value: Any) -> list[str]:
    listed = value if isinstance(value, list) else str(value).split(",")
    names = [str(name).strip() for name in listed if str(name).strip()]
    return ["all_linear"] if not names or any(name in _EVERY for name in names) else names


def _objective(
    draft: dict[str, Fact], facts: dict[str, Fact], warnings: list[str], blanks: list[Blank]
) -> None:
    stated = facts.get("training.objective")
    if stated is None:
        return
    key, name = "training.objective", str(stated.value).lower()
    known = _OBJECTIVES.get(name, name)
    objective = load_objectives().get(known)
    if objective is None:
        warnings.append(f"{stated.where} {name}: is not modelled; training on the sequences alone is counted")
        return
    draft[key] = Fact(key, known, stated.where, stated.assumed)
    if known != name:
        warnings.append(f"{stated.where} {name}: counted as {known}")
    if objective.teacher:
        blanks.append(
            Blank("training.teacher", "{preset: llama-3.1-70b}", "the model whose outputs are learned")
        )
    if objective.rollouts:
        blanks.append(
            Blank("training.rollouts", _rollouts(facts), "lengths of prompts and responses in tokens")
        )


def _rollouts(facts: dict[str, Fact]) -> str:
    """An example with what the files state of generation."""
    longest, samples = facts.get("rollouts.response_max"), facts.get("rollouts.samples_per_prompt")
    response = (
        "{mean: 1000}" if longest is None else f"{{mean: {max(1, longest.value // 2)}, max: {longest.value}}}"
    )
    group = f", samples_per_prompt: {samples.value}" if samples is not None else ""
    stated = {name: facts.get(f"rollouts.{name}") for name in ("placement", "steps_off_policy")}
    others = "".join(f", {name}: {fact.value}" for name, fact in stated.items() if fact is not None)
    return f"{{prompt_tokens: {{mean: 200}}, response_tokens: {response}{group}{others}}}"
