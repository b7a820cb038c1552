"""EasyR1, SkyRL, slime, RL2, ROLL, alpaca-lora and mlx-lm by a table of their keys.

Which key of which trainer states what, and what it takes where a file leaves a key out, are rows of
data/trainers_by_table.csv. Batches of prompts become batches of responses, as a workload counts them.
"""

from __future__ import annotations

import re
from functools import cache
from math import prod
from typing import Any

from planner.bundled import bundled_rows
from planner.records import record
from planner.trainer_files.formats.common import ACCELERATORS, ACCUMULATION, MICRO_BATCH, NODES, Reader
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_RANGE = re.compile(r"range\(([0-9]{1,6}(?:\s*,\s*[0-9]{1,6}){0,2})\)")
_LIST = re.compile(r"\[([0-9\s,]*)\]")
_MOST = 100_000
# names of losses, estimators and programs -> objectives
_OBJECTIVES = {"gae": "ppo", "sft_loss": "sft", "policy_loss": "grpo", "rm": "reward", "dpo": "dpo"}
_SPLITTING = tuple(f"training.layout.{name}_parallel" for name in ("tensor", "pipeline", "context"))
_PROGRAMS = ("sft", "dpo", "rm")
_WHOLE = (
    "rollouts.epochs", "rollouts.tensor_parallel", "training.steps", "training.global_batch",
    "training.sequence_length", MICRO_BATCH, ACCUMULATION, "training.layout.tensor_parallel",
    "training.layout.pipeline_parallel", "training.layout.context_parallel", "training.layout.expert_parallel",
)  # fmt: skip


@record(frozen=True)
class _Row:
    """Keys that state a fact, the first that is given counts, and what a trainer takes where none is."""

    keys: tuple[str, ...]
    default: str


@cache
def _tables() -> dict[str, dict[str, list[_Row]]]:
    """Rows of the table by trainer and fact."""
    tables: dict[str, dict[str, list[_Row]]] = {}
    for row in bundled_rows("trainers_by_table.csv"):
        keys = tuple(key for key in row["keys"].split(";") if key)
        tables.setdefault(row["trainer"], {}).setdefault(row["fact"], []).append(_Row(keys, row["default"]))
    return tables


class _Stated:
    """What a file of one trainer states, by fact."""

    def __init__(self, keys: Lookup, rows: dict[str, list[_Row]]) -> None:
        self.keys = keys
        self.rows = rows

    def keys_of(self, fact: str) -> list[str]:
        """All keys that can state a fact."""
        return [key for row in self.rows.get(fact, ()) for key in row.keys]

    def key(self, fact: str) -> str:
        """The key that states a fact, empty where none does."""
        return self.keys.first(*self.keys_of(fact))

    def default(self, fact: str) -> str:
        """What the trainer takes by itself, empty where that is not known."""
        return next((row.default for row in self.rows.get(fact, ())), "")

    def where(self, fact: str) -> str:
        """The key, or whose default it is."""
        first = next(iter(self.keys_of(fact)), "")
        return self.key(fact) or (f"the default of {first}" if first else "as the trainer has it")

    def text(self, fact: str) -> str:
        return (self.keys.text(self.key(fact)) if self.key(fact) else "") or self.default(fact)

    def whole(self, fact: str) -> int | None:
        key, default = self.key(fact), self.default(fact)
        return self.keys.whole(key) if key else int(default) if default else None

    def flag(self, fact: str) -> bool:
        """Whether any key of a fact switches it on: true, or a number above zero."""
        keys = [key for key in self.keys_of(fact) if self.keys.has(key)]
        if not keys:
            return self.default(fact) not in ("", "false", "0")
        return any(_is_on(self.keys, key) for key in keys)

    def add(self, reader: Reader, target: str, value: Any, fact: str) -> None:
        reader.add(target, value, self.where(fact), assumed=not self.key(fact))


def _is_on(keys: Lookup, key: str) -> bool:
    flag = keys.flag(key)
    return flag if flag is not None else bool(keys.number(key))


def recognises(document: Document) -> bool:
    """Whether the keys are those of one of these trainers."""
    return bool(_trainer(document))


def _trainer(document: Document) -> str:
    keys = Lookup(document)
    for name, rows in _tables().items():
        signs = (key.split("+") for row in rows["sign"] for key in row.keys)
        if any(all(keys.get(part) is not None for part in sign) for sign in signs):
            return name
    return ""


def read(document: Document) -> Reading:
    """Read a run.

    Raises:
        InputError: a value cannot be; names file and key.
    """
    rows = _tables()[_trainer(document)]
    reader = Reader(document, rows["title"][0].default)
    stated = _Stated(reader, rows)
    reader.hub_key, reader.hub_name = stated.key("hub"), stated.text("hub")
    objective = stated.text("objective")
    program = next((word for word in document.programs if word in _PROGRAMS), "")
    reader.add("training.objective", _OBJECTIVES.get(program or objective, program or objective),
               program or stated.where("objective"), assumed=not program and not stated.key("objective"))  # fmt: skip
    for fact in _WHOLE:
        if fact in rows:
            stated.add(reader, fact, stated.whole(fact), fact)
    if "training.steps" not in reader.facts and stated.key("training.epochs"):
        passes = reader.number(stated.key("training.epochs"))
        reader.add("training.epochs", float(passes) if passes else None, stated.where("training.epochs"))
    elif "training.steps" not in reader.facts and stated.default("training.epochs"):
        stated.add(reader, "training.epochs", float(stated.default("training.epochs")), "training.epochs")
    if reader.facts["training.objective"].value not in ("sft", "dpo", "reward"):
        _rollouts(reader, stated)
    elif "prompts" in rows:  # slime counts the samples of its fine-tuning as prompts
        stated.add(
            reader,
            "training.global_batch",
            stated.whole("update_samples") or stated.whole("prompts"),
            "prompts",
        )
    _accelerators(reader, stated)
    _trainer_itself(reader, stated)
    return reader


def _rollouts(reader: Reader, stated: _Stated) -> None:
    samples, prompts = stated.whole("samples") or 1, stated.whole("prompts")
    stated.add(reader, "rollouts.samples_per_prompt", samples, "samples")
    if prompts is not None:
        text = f"{stated.where('prompts')} x {stated.where('samples')}"
        reader.add("training.global_batch", prompts * samples, text, assumed=not stated.key("prompts"))
        _updates(reader, stated, prompts, samples)
    else:
        names = " or ".join(stated.keys_of("prompts")[:2])
        reader.warn(f"{names} is not stated: the prompts of a step, and with them its cost, are assumed")
    prompt, response = stated.whole("prompt_max"), stated.whole("response_max")
    stated.add(reader, "rollouts.prompt_max", prompt, "prompt_max")
    stated.add(reader, "rollouts.response_max", response, "response_max")
    if response is not None:
        names = " + ".join(
            stated.where(fact) for fact in ("prompt_max", "response_max") if stated.whole(fact)
        )
        text = names if prompt else f"{names}, to which the longest prompt comes"
        reader.add("training.sequence_length", response + (prompt or 0), text, assumed=not prompt)
    engine = stated.text("rollouts.engine")
    stated.add(reader, "rollouts.engine", engine or None, "rollouts.engine")
    if stated.flag("eager"):
        reader.add("rollouts.cuda_graphs", False, stated.where("eager"))
    kept = "reference" not in stated.rows or stated.flag("reference")
    if not kept or stated.flag("no_reference"):
        fact = "no_reference" if kept else "reference"
        reader.add("training.reference", "none", stated.where(fact), assumed=not stated.key(fact))


def _updates(reader: Reader, stated: _Stated, prompts: int, samples: int) -> None:
    """Note the responses of one update, which trainers state in prompts, in responses or as a number of updates."""
    each, own, count = (stated.whole(fact) for fact in ("update_prompts", "update_samples", "updates"))
    update = own or (each * samples if each else prompts * samples // count if count else None)
    fact = "update_samples" if own else "update_prompts" if each else "updates"
    if update is not None:
        _add_update(reader, stated, update, prompts * samples, fact)


def _add_update(reader: Reader, stated: _Stated, update: int, responses: int, fact: str) -> None:
    """Note the responses of one update, unless it takes all; name those that are no whole share of a step's."""
    if update == responses:
        return
    if update > responses or responses % update:
        reader.warn(f"{stated.where(fact)}: {update} does not divide {responses} responses: left out")
        return
    stated.add(reader, "rollouts.update_batch", update, fact)


def _accelerators(reader: Reader, stated: _Stated) -> None:
    """Note the accelerators: those that train, and with pools of their own those that generate."""
    if "training" in stated.rows:
        _mapped(reader, stated)
        return
    if "each" not in stated.rows:
        reader.add_launcher()
        return
    each, nodes = stated.whole("each") or 1, stated.whole("nodes") or 1
    generating = 0
    if reader.facts["training.objective"].value != "sft" and "colocated" in stated.rows:
        engines = (stated.whole("engines") or 0) * (stated.whole("rollouts.tensor_parallel") or 1)
        generating = 0 if stated.flag("colocated") else stated.whole("generating") or engines
    text = f"{stated.where('each')} x {stated.where('nodes')}"
    reader.add(ACCELERATORS, each * nodes + generating, text, assumed=not stated.key("each"))
    if not generating:
        stated.add(reader, NODES, nodes, "nodes")
        return
    _apart(reader, stated, generating, each * nodes, stated.where("colocated"))


def _mapped(reader: Reader, stated: _Stated) -> None:
    """Note the accelerators by lists of their numbers, which two roles may share, and the batch that they update."""
    train, generate = (_numbers(stated.keys.get(stated.key(fact))) for fact in ("training", "generating"))
    if not train:
        return
    reader.add(ACCELERATORS, len(train | generate), f"{stated.where('training')} and others" if generate else
               stated.where("training"))  # fmt: skip
    micro, times = (stated.whole(fact) for fact in ("update_each", "update_times"))
    split = prod(reader.facts[name].value for name in _SPLITTING if name in reader.facts)
    responses = reader.facts.get("training.global_batch")
    if micro is not None and responses is not None:
        update = micro * (times or 1) * max(1, len(train) // split)
        _add_update(reader, stated, update, responses.value, "update_each")
    if generate and not train & generate:
        _apart(reader, stated, len(generate), len(train), stated.where("generating"))
    for key in stated.keys_of("others"):
        alone = _numbers(stated.keys.get(key)) - train - generate
        if alone:
            reader.warn(f"{key}: accelerators of its own ({len(alone)}) are not counted")


def _numbers(value: Any) -> set[int]:
    """Numbers of accelerators: a list, or Python text such as `list(range(0,8)) + [12, 13]`."""
    text = re.sub(r"\(\s+|\s+\)", lambda edge: edge[0].strip(), str(value))
    found = {
        int(word) for words in _LIST.findall(text) for word in words.split(",") if word.strip().isdigit()
    }
    for bounds in _RANGE.findall(text):
        first, *others = (int(word) for word in bounds.split(","))
        step = others[1] if len(others) == 2 else 1
        if step:
            found.update(range(first, others[0], step) if others else range(first))
    return {number for number in found if number < _MOST}


def _apart(reader: Reader, stated: _Stated, generating: int, training: int, text: str) -> None:
    reader.add("rollouts.placement", "disaggregated", text)
    reader.add("rollouts.generation_share", round(generating / (generating + training), 6), text)
    stale = stated.whole("staleness")
    if stale:
        stated.add(reader, "rollouts.steps_off_policy", stale, "staleness")


def _adapted(reader: Reader, stated: _Stated) -> None:
    """Note the matrices that have adapters, and in how many bits the frozen weights are stored."""
    if "targets" in stated.rows:
        usual = stated.default("targets")
        given = stated.keys.get(stated.key("targets")) or (usual.split(";") if usual else None)
        stated.add(reader, "training.lora_targets", given, "targets")
    stated.add(reader, "training.frozen_bits", stated.whole("frozen_bits"), "frozen_bits")


def _deepspeed(reader: Reader, stated: _Stated) -> None:
    """Note the stage of ZeRO, and what is kept in host memory, by the name of DeepSpeed's section."""
    key = next(iter(stated.keys_of("deepspeed")), "")
    name = stated.keys.reference(key)
    stage = re.search(r"zero([0-3])", name)
    if stage is None:
        reader.add(
            "training.layout.zero_stage", 3, "DeepSpeed, whose stage the file does not state", assumed=True
        )
        return
    reader.add("training.layout.zero_stage", int(stage[1]), f"{key} {name}")
    if "offload" in name:
        reader.add_offload(f"{key} {name}", "optimizer")


def _trainer_itself(reader: Reader, stated: _Stated) -> None:
    """Note how the trainer divides and recomputes the model."""
    megatron = "megatron" in stated.text("strategy")
    stage = re.search(r"zero([0-3])", stated.text("strategy"))
    if megatron:
        reader.add("training.layout.zero_stage", 1, "Megatron's distributed optimizer", assumed=True)
    elif stage is not None:
        stated.add(reader, "training.layout.zero_stage", int(stage[1]), "strategy")
    elif "deepspeed" in stated.text("strategy"):
        _deepspeed(reader, stated)
    else:
        reader.add("training.layout.zero_stage", 3, "FSDP, resharding after forward", assumed=True)
    text = "Megatron's fused kernels" if megatron else "the model runs as Transformers has it"
    reader.add("training.stack", "tuned" if megatron else "eager", text, assumed=True)
    own = stated.default("precision")
    reader.add("training.precision", own or "bf16", f"it computes in {own or 'bf16'}", assumed=True)
    word = stated.text("recompute")
    kept = word if word in ("full", "selective", "none") else "full" if stated.flag("recompute") else "none"
    stated.add(reader, "training.layout.recompute", kept, "recompute")
    rank, kind = stated.whole("training.lora_rank"), stated.text("adapter") or "lora"
    if rank is not None and kind not in ("full", "none"):
        source = stated.where("adapter" if stated.text("adapter") else "training.lora_rank")
        reader.add_adapter(kind, source, rank, stated.where("training.lora_rank"))
        _adapted(reader, stated)
    if stated.flag("offload"):
        reader.add_offload(stated.where("offload"), "optimizer", "weights")
