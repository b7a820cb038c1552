"""AReaL: asynchronous reinforcement learning and fine-tuning by YAML (https://inclusionai.github.io/AReaL).

Generation and training have accelerators of their own, written as `sglang:d4p1t1+d4p1t1` or apart as the backends of
`rollout` and `actor` (d data, p pipeline, t tensor, c context, e expert parallel). In `sglang:d8|fsdp:d8` both take
turns on the same ones. Engines take new weights while they write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

from planner.trainer_files.formats.common import (
    ACCELERATORS,
    NODES,
    add_adapter,
    add_optimizer,
    add_recompute,
    add_targets,
    add_whole,
)
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_WITHOUT_EFFECT = (
    r"experiment_name|trial_name|seed|async_training|tokenizer_path|enable_offload|cluster|scheduler|gconfig|eval_gconfig",
    r"ref|sglang|vllm|valid_dataset|saver|recover|evaluator|stats_logger|perf_tracer|launcher|checkpointer|critic|agent.*",
    r"workflow.*|eval.*|log_.*|export_style|dump_.*|rollout|actor|model|train_dataset|total_train_steps",
)  # fmt: skip
_DEGREES = {"p": "pipeline_parallel", "t": "tensor_parallel", "c": "context_parallel", "e": "expert_parallel"}
_DIMENSION = re.compile(r"([dptce])([1-9]\d{0,5})(?!\d)")
_ENGINES, _TRAINERS = ("sglang", "vllm"), ("fsdp", "megatron", "archon")
# What AReaL takes where a file leaves a key out.
_AHEAD, _RANK, _UPDATES = 0, 32, 4


def recognises(document: Document) -> bool:
    """Whether the sections are AReaL's."""
    data = document.data
    trained = data.get("actor", data.get("model"))
    return (
        isinstance(trained, Mapping) and "path" in trained and isinstance(data.get("train_dataset"), Mapping)
        and ("total_train_epochs" in data or isinstance(data.get("gconfig"), Mapping))
    )  # fmt: skip


def read(document: Document) -> Reading:
    """Read a run."""
    keys, reading = Lookup(document), Reading(document.path, "AReaL")
    learns = "actor" if isinstance(document.data.get("actor"), Mapping) else "model"
    reading.hub_key, reading.hub_name = f"{learns}.path", keys.text(f"{learns}.path")
    generates, trains = _pools(keys, learns)
    _trainer(reading, keys, learns, trains)
    if learns == "actor" and keys.has("gconfig"):
        _rollouts(reading, keys, generates, trains)
    else:
        reading.add("training.objective", "sft", "the file generates nothing", assumed=True)
        add_whole(reading, keys, "training.global_batch", "train_dataset.batch_size")
        add_whole(reading, keys, "training.sequence_length", "train_dataset.max_length")
    epochs = keys.number("total_train_epochs")
    if keys.whole("total_train_steps"):
        add_whole(reading, keys, "training.steps", "total_train_steps")
    elif epochs:
        reading.add("training.epochs", float(epochs), "total_train_epochs")
    _accelerators(reading, keys, generates, trains)
    reading.unknown = keys.unknown(_WITHOUT_EFFECT)
    return reading


def _pools(keys: Lookup, learns: str) -> tuple[str, str]:
    """What generates and what trains, as AReaL writes them; empty where the file does not say."""
    mode = keys.text("allocation_mode")
    if mode:
        # `sglang:d4t1+d4`; without an engine the whole cluster trains
        first, both, second = mode.partition("|" if _shared(keys) else "+")
        return (first, second) if both else ("", first)
    return keys.text("rollout.backend"), keys.text(f"{learns}.backend")


def _shared(keys: Lookup) -> bool:
    """Whether both pools are the same accelerators; the bar of `attn:d4|ffn:e4` tells experts from attention."""
    mode = keys.text("allocation_mode")
    return "|" in mode and "+" not in mode and "attn" not in mode.partition("|")[0]


def _backend(text: str) -> str:
    """`sglang` of `sglang:d4`, `sglang[rollout]:d4` and, in older releases, `sglang.d4`; empty where none is named."""
    word = re.match(r"[a-z]*", text.strip())
    return word[0] if word and word[0] in (*_ENGINES, *_TRAINERS) else ""


def _dimensions(text: str) -> dict[str, int]:
    """Degrees of a pool; of `megatron:(attn:d2t4|ffn:d1e8)` those of attention, and of experts e alone."""
    attention, _, experts = text.partition("|")
    found = {name: int(number) for name, number in _DIMENSION.findall(attention.rpartition(":")[2])}
    own = {name: int(number) for name, number in _DIMENSION.findall(experts.rpartition(":")[2])}
    return found | ({"e": own["e"]} if "e" in own else {})


def _size(text: str) -> int:
    """Accelerators of a pool: expert parallelism divides data parallelism and adds none."""
    return prod(number for name, number in _dimensions(text).items() if name != "e")


def _trainer(reading: Reading, keys: Lookup, learns: str, trains: str) -> None:
    section = f"{learns}."
    kind = _backend(trains) or "fsdp"
    source = "allocation_mode" if keys.text("allocation_mode") else f"{section}backend"
    degrees = _dimensions(trains)
    for letter, name in _DEGREES.items():
        if degrees.get(letter, 1) > 1:
            reading.add(f"training.layout.{name}", degrees[letter], f"{source} {trains}")
    tuned = kind == "megatron"
    text = "Megatron's fused kernels" if tuned else "the model runs as Transformers has it"
    reading.add("training.stack", "tuned" if tuned else "eager", text, assumed=True)
    stage = "Megatron's distributed optimizer" if tuned else "FSDP, resharding after forward"
    reading.add("training.layout.zero_stage", 1 if tuned else 3, stage, assumed=True)
    add_recompute(reading, keys, f"{section}gradient_checkpointing", f"{section}gradient_checkpointing")
    short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}.get(keys.text(f"{section}dtype"))
    reading.add("training.precision", short, f"{section}dtype")
    add_optimizer(reading, keys, f"{section}optimizer.type")
    if keys.flag(f"{section}use_lora"):
        rank = keys.whole(f"{section}lora_rank") or _RANK
        add_adapter(reading, "lora", f"{section}use_lora", rank, f"{section}lora_rank")
        add_targets(reading, keys, f"{section}target_modules")


def _rollouts(reading: Reading, keys: Lookup, generates: str, trains: str) -> None:
    """`train_dataset.batch_size` prompts a step, `gconfig.n_samples` responses to each."""
    critic = keys.has("critic")
    reading.add("training.objective", "ppo" if critic else "grpo", "critic" if critic else "no critic")
    samples, prompts = keys.whole("gconfig.n_samples") or 1, keys.whole("train_dataset.batch_size")
    reading.add("rollouts.samples_per_prompt", samples, "gconfig.n_samples")
    if prompts:
        step, said = prompts * samples, keys.whole("actor.ppo_n_minibatches")
        parts = said or _UPDATES
        reading.add("training.global_batch", step, "train_dataset.batch_size x gconfig.n_samples")
        if step % parts == 0:
            text = f"a step / {parts} of actor.ppo_n_minibatches"
            reading.add("rollouts.update_batch", step // parts, text, assumed=said is None)
    add_whole(reading, keys, "rollouts.response_max", "gconfig.max_new_tokens")
    add_whole(reading, keys, "rollouts.prompt_max", "train_dataset.max_length")
    longest = [keys.whole(name) for name in ("train_dataset.max_length", "gconfig.max_new_tokens")]
    if longest[1]:
        text = "train_dataset.max_length + gconfig.max_new_tokens" if longest[0] else "gconfig.max_new_tokens"
        reading.add("training.sequence_length", sum(number or 0 for number in longest), text)
    engine = _backend(generates)
    reading.add(
        "rollouts.engine", engine if engine in _ENGINES else None, f"{engine} of the pool that generates"
    )
    reading.add("rollouts.tensor_parallel", _dimensions(generates).get("t"), "the pool that generates")
    if keys.flag("actor.recompute_logprob") is False:
        reading.add("rollouts.old_logprobs", "reused", "actor.recompute_logprob false")
    if keys.number("actor.kl_ctl") == 0:
        reading.add("training.reference", "none", "actor.kl_ctl 0")
    if keys.flag("enable_offload") or _shared(keys) or not generates:
        return
    both = _size(generates) + _size(trains)
    reading.add("rollouts.placement", "disaggregated", "two pools")
    if _dimensions(generates) and _dimensions(trains):
        reading.add("rollouts.generation_share", round(_size(generates) / both, 6), f"{generates} of {both}")
    ahead = keys.whole("rollout.max_head_offpolicyness") or _AHEAD
    reading.add("rollouts.steps_off_policy", ahead, "rollout.max_head_offpolicyness")
    if ahead:
        reading.add(
            "rollouts.in_flight_updates", True, "AReaL interrupts generation for new weights", assumed=True
        )


def _accelerators(reading: Reading, keys: Lookup, generates: str, trains: str) -> None:
    nodes, each = keys.whole("cluster.n_nodes"), keys.whole("cluster.n_gpus_per_node")
    sizes = [_size(text) for text in (generates, trains) if _dimensions(text)]
    if sizes and (trains == "" or _dimensions(trains)):
        count = max(sizes) if _shared(keys) else sum(sizes)
        reading.add(ACCELERATORS, count, "the pools" if generates else "the degrees of the backend")
    elif nodes and each:
        reading.add(ACCELERATORS, nodes * each, "cluster.n_nodes x n_gpus_per_node")
    reading.add(NODES, nodes, "cluster.n_nodes")
