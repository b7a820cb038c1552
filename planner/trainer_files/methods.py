"""Adapters, quantised weights, objectives and host memory, as the keys of a workload."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.errors import InputError
from planner.inputs.checks_post_training import ANY_FAMILY, engine_names
from planner.inputs.post_training import Objective, adapter_key, adapter_names, load_objectives
from planner.inputs.presets import find_preset
from planner.trainer_files.hub import bits_of_hub_name, preset_of_hub_name
from planner.trainer_files.model import Blank, Fact

_ROLLOUTS, _LENGTHS_OF = "training.rollouts", "lengths of prompts and responses in tokens"
# names of objectives in trainers -> those of a workload
_OBJECTIVES = {
    "simpo": "orpo", "ipo": "dpo", "pt": "pretrain", "rm": "reward", "gspo": "grpo", "dapo": "grpo", "gdpo": "grpo",
    "ebft": "grpo", "rloo": "grpo", "remax": "grpo", "reinforce_plus_plus": "grpo", "gpg": "grpo", "opo": "grpo",
    "cispo": "grpo", "reinforce": "grpo", "grpo_passk": "grpo", "reinforce_plus_plus_baseline": "grpo",
}  # fmt: skip
_EVERY = ("all", "all-linear", "all_linear", "linear")
_EXPRESSION = re.compile(r"[\\^$|()?*+]")
# names of matrices inside a regular expression, as code bases have them
_MATRIX = re.compile(
    r"(?<![A-Za-z0-9])(\w+_proj|w[123qkvo]|wqkv|query_key_value|qkv|c_attn|c_fc|fc[12]|dense\w*|linear_\w+)(?![A-Za-z0-9_])"
)
_ALTERNATIVES = re.compile(r"\((?:\?:)?([a-z_]+(?:\|[a-z_]+)*)\)(_proj)")
_USUAL_SAMPLE = 500  # tokens, in an example
_STAGE = "training.layout.zero_stage"
_WEIGHTS = "training.memory.offload_weights"


def settle_method(
    draft: dict[str, Fact],
    facts: dict[str, Fact],
    base: str,
    warnings: list[str],
    blanks: list[Blank],
    *,
    per_sample: bool,
) -> None:
    """Add method, adapter, objective and host memory to the draft.

    Args:
        draft: facts of the workload; changed in place.
        base: name of the model that is trained on, which may tell how its weights are stored.
        facts: what the files state.
        warnings: what a workload cannot say is added.
        blanks: what an objective needs beyond the files is added.
        per_sample: the model is no language model: it sees images or recordings.

    Raises:
        InputError: the objective is one of language models, and the model is none.
    """
    if "training.method" in facts:
        _adapters(draft, facts, bits_of_hub_name(base))
    _objective(draft, facts, warnings, blanks, per_sample=per_sample)
    if _WEIGHTS in draft and (_STAGE not in draft or draft[_STAGE].value != 3):
        warnings.append(
            f"{draft.pop(_WEIGHTS).where}: weights are kept in host memory with ZeRO stage 3 alone"
        )


def _adapters(draft: dict[str, Fact], facts: dict[str, Fact], stored_bits: int | None) -> None:
    method, bits = facts["training.method"], facts.get("training.frozen_bits")
    if bits is None and stored_bits is not None:
        bits = Fact("training.frozen_bits", stored_bits, "by the name of the model", assumed=True)
    quantised = method.value == "lora" and bits is not None
    draft["training.method"] = (
        Fact("training.method", "qlora", bits.where, bits.assumed) if quantised and bits else method
    )
    if method.value == "full":
        return
    if quantised and bits is not None:
        nested = "" if bits.value == 8 else ", scales quantised again"
        key = "training.quantization"
        draft[key] = facts.get(key) or Fact(
            key, "int8" if bits.value == 8 else "nf4_double", bits.where + nested, bool(nested)
        )
    rank, kind, targets = (facts.get(f"training.{name}") for name in ("lora_rank", "adapter", "lora_targets"))
    if rank is not None:
        draft["training.lora_rank"] = rank
    if kind is not None:
        key, name = "training.adapter.kind", adapter_key(str(kind.value))
        is_known = name in adapter_names()
        where = kind.where if is_known else f"{kind.where}; {kind.value} is not known"
        draft[key] = Fact(key, name if is_known else "other", where, not is_known)
    if targets is not None:
        key = "training.adapter.targets"
        draft[key] = Fact(key, _target_names(targets.value), targets.where)


def _target_names(value: Any) -> list[str]:
    """Matrices by name; of a regular expression those that it names, of a path its last part."""
    if isinstance(value, str) and _EXPRESSION.search(value):
        written_out = _ALTERNATIVES.sub(_each, value)
        found = list(dict.fromkeys(_MATRIX.findall(written_out)))
        return found or [value]
    listed = value if isinstance(value, list) else value.split(",") if isinstance(value, str) else []
    parts = (str(name).strip().strip("'\"[]") for name in listed if isinstance(name, str))
    names = list(dict.fromkeys(name.rpartition(".")[2] or name for name in parts if name))
    return ["all_linear"] if not names or any(name in _EVERY for name in names) else names


def _each(group: re.Match[str]) -> str:
    """`(q|k|v)_proj` as `q_proj|k_proj|v_proj`."""
    return "|".join(f"{name}{group[2]}" for name in group[1].split("|"))


def objective_of(draft: Mapping[str, Fact]) -> Objective:
    """The objective of a draft; where it is not known, which the workload's own checks say, training on sequences."""
    stated = draft.get("training.objective")
    known = load_objectives()
    return known.get("" if stated is None else str(stated.value), known["pretrain"])


def generates(facts: dict[str, Fact]) -> bool:
    """Whether the objective of the files learns from responses that it generates."""
    stated = facts.get("training.objective")
    name = "" if stated is None else str(stated.value).lower()
    objective = load_objectives().get(_OBJECTIVES.get(name, name))
    return objective is not None and objective.rollouts


def _objective(
    draft: dict[str, Fact],
    facts: dict[str, Fact],
    warnings: list[str],
    blanks: list[Blank],
    *,
    per_sample: bool,
) -> None:
    stated = facts.get("training.objective")
    if stated is None:
        return
    key, name = "training.objective", str(stated.value).lower()
    canonical = _OBJECTIVES.get(name, name)
    objective = load_objectives().get(canonical)
    if objective is None:
        warnings.append(f"{stated.where} {name}: is not modelled; training on the sequences alone is counted")
        return
    if per_sample and canonical not in ANY_FAMILY:
        raise InputError(f"{stated.where}: {canonical} is modelled for transformers, not for this model")
    draft[key] = Fact(key, canonical, stated.where, stated.assumed)
    if canonical != name:
        warnings.append(f"{stated.where} {name}: counted as {canonical}")
    teacher = facts.get("training.teacher")
    preset = preset_of_hub_name(str(teacher.value)) if teacher is not None else None
    if objective.teacher and teacher is not None and preset is not None:
        where = f"{teacher.where} {teacher.value}, matched by name"
        draft["training.teacher.preset"] = Fact("training.teacher.preset", preset.name, where)
    elif objective.teacher:
        blanks.append(
            Blank("training.teacher", "{preset: llama-3.1-70b}", "the model whose outputs are learned")
        )
    if canonical == "contrastive":
        _pairs(draft, facts, blanks)
    if "training.reference" in facts and objective.reference:
        draft["training.reference"] = facts["training.reference"]
    if objective.rollouts:
        blanks.append(Blank(_ROLLOUTS, _rollouts(facts), _LENGTHS_OF))


def ask_for_rollouts(draft: dict[str, Fact], blanks: list[Blank]) -> None:
    """Ask how long responses are where an objective that generates them is stated beside the files."""
    known = any(key.startswith(_ROLLOUTS) for key in (*draft, *(blank.key for blank in blanks)))
    if generates(draft) and not known:
        blanks.append(Blank(_ROLLOUTS, _rollouts({}), _LENGTHS_OF))


def _pairs(draft: dict[str, Fact], facts: dict[str, Fact], blanks: list[Blank]) -> None:
    """Add how pairs are compared: by embeddings of the stated width, else of the model's own."""
    key, stored = "training.contrastive.width", facts.get("training.contrastive.logits")
    preset_fact = draft.get("model.preset")
    preset = find_preset(preset_fact.value) if preset_fact is not None else None
    own = draft["model.hidden"].value if "model.hidden" in draft else None
    width = own or (preset.values.get("hidden") if preset is not None else None)
    if key not in facts and width is None:
        example = "{width: 768" + (f", logits: {stored.value}" if stored is not None else "") + "}"
        blanks.append(Blank("training.contrastive", example, "width of the embeddings that are compared"))
        return
    if stored is not None:
        draft[stored.key] = stored
    draft[key] = facts.get(key) or Fact(key, width, "the width of the model", assumed=True)


def settle_packing(draft: dict[str, Fact], packing: Fact | None, blanks: list[Blank]) -> None:
    """Add whether samples are packed, and ask for their lengths where the work or the padding follows from them.

    Args:
        draft: facts of the workload, the objective and the length of training among them; changed in place.
        packing: what the files state; None: nothing.
        blanks: what is to be given is added.
    """
    objective = objective_of(draft)
    if packing is None or objective.rollouts:
        return
    packed = packing.value and objective.sequences == 1  # pairs are not
    if objective.sequences == 1:
        draft.setdefault("training.packing", packing)
    if any(key.startswith("training.lengths") for key in draft):
        return
    if not packed or not {"training.steps", "training.tokens"} & draft.keys():
        most = draft["training.sequence_length"].value
        text = f"tokens of a sample; without it each counts as {most:,}"
        blanks.append(Blank("training.lengths", f"{{mean: {max(1, min(_USUAL_SAMPLE, most // 2))}}}", text))


def _rollouts(facts: dict[str, Fact]) -> str:
    """An example with what the files state of generation; the lengths in it are half the longest, or usual ones."""
    stated = {key.partition(".")[2]: fact.value for key, fact in facts.items() if key.startswith("rollouts.")}
    parts = [
        f"{name}_tokens: {_lengths(stated.pop(f'{name}_max', None), usual)}"
        for name, usual in (("prompt", 200), ("response", 1000))
    ]
    if stated.get("engine") not in (None, *engine_names()):
        del stated["engine"]
    return "{" + ", ".join([*parts, *(f"{name}: {_written(value)}" for name, value in stated.items())]) + "}"


def _written(value: Any) -> str:
    """As YAML has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lengths(longest: int | None, usual: int) -> str:
    return f"{{mean: {usual}}}" if longest is None else f"{{mean: {max(1, longest // 2)}, max: {longest}}}"
