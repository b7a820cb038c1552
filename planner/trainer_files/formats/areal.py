"""AReaL: asynchronous reinforcement learning and fine-tuning by YAML (https://inclusionai.github.io/AReaL).

Generation and training have accelerators of their own, written as `sglang:d4p1t1+d4p1t1` or apart as the backends of
`rollout` and `actor` (d data, p pipeline, t tensor, c context, e expert parallel). In `sglang:d8|fsdp:d8` both take
turns on the same ones. Engines take new weights while they write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

from planner.trainer_files.formats.common import ACCELERATORS, NODES, Reader
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_WITHOUT_EFFECT = (
    r"experiment_name|trial_name|seed|async_training|tokenizer_path|enable_offload|cluster|scheduler|gconfig|eval_gconfig",
    r"ref|sglang|vllm|valid_dataset|saver|recover|evaluator|stats_logger|perf_tracer|launcher|checkpointer|critic|agent.*",
    r"workflow.*|eval.*|log_.*|export_style|dump_.*|rollout|actor|model|train_dataset|total_train_steps",
)
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
    reader = Reader(document, "AReaL")
    learns = "actor" if isinstance(document.data.get("actor"), Mapping) else "model"
    reader.hub_key, reader.hub_name = f"{learns}.path", reader.text(f"{learns}.path")
    generates, trains = _pools(reader, learns)
    _trainer(reader, learns, trains)
    if learns == "actor" and reader.has("gconfig"):
        _rollouts(reader, generates, trains)
    else:
        reader.add("training.objective", "sft", "the file generates nothing", assumed=True)
        reader.add_whole("training.global_batch", "train_dataset.batch_size")
        reader.add_whole("training.sequence_length", "train_dataset.max_length")
    epochs = reader.number("total_train_epochs")
    if reader.whole("total_train_steps"):
        reader.add_whole("training.steps", "total_train_steps")
    elif epochs:
        reader.add("training.epochs", float(epochs), "total_train_epochs")
    _accelerators(reader, generates, trains)
    reader.name_unknown(_WITHOUT_EFFECT)
    return reader


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


def _trainer(reader: Reader, learns: str, trains: str) -> None:
    section = f"{learns}."
    kind = _backend(trains) or "fsdp"
    source = "allocation_mode" if reader.text("allocation_mode") else f"{section}backend"
    degrees = _dimensions(trains)
    for letter, name in _DEGREES.items():
        if degrees.get(letter, 1) > 1:
            reader.add(f"training.layout.{name}", degrees[letter], f"{source} {trains}")
    tuned = kind == "megatron"
    text = "Megatron's fused kernels" if tuned else "the model runs as Transformers has it"
    reader.add("training.stack", "tuned" if tuned else "eager", text, assumed=True)
    stage = "Megatron's distributed optimizer" if tuned else "FSDP, resharding after forward"
    reader.add("training.layout.zero_stage", 1 if tuned else 3, stage, assumed=True)
    reader.add_recompute(f"{section}gradient_checkpointing", f"{section}gradient_checkpointing")
    short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}.get(reader.text(f"{section}dtype"))
    reader.add("training.precision", short, f"{section}dtype")
    reader.add_optimizer(f"{section}optimizer.type")
    if reader.flag(f"{section}use_lora"):
        rank = reader.whole(f"{section}lora_rank") or _RANK
        reader.add_adapter("lora", f"{section}use_lora", rank, f"{section}lora_rank")
        reader.add_targets(f"{section}target_modules")


def _rollouts(reader: Reader, generates: str, trains: str) -> None:
    """`train_dataset.batch_size` prompts a step, `gconfig.n_samples` responses to each."""
    critic = reader.has("critic")
    reader.add("training.objective", "ppo" if critic else "grpo", "critic" if critic else "no critic")
    samples, prompts = reader.whole("gconfig.n_samples") or 1, reader.whole("train_dataset.batch_size")
    reader.add("rollouts.samples_per_prompt", samples, "gconfig.n_samples")
    if prompts:
        step, said = prompts * samples, reader.whole("actor.ppo_n_minibatches")
        parts = said or _UPDATES
        reader.add("training.global_batch", step, "train_dataset.batch_size x gconfig.n_samples")
        if step % parts == 0:
            text = f"a step / {parts} of actor.ppo_n_minibatches"
            reader.add("rollouts.update_batch", step // parts, text, assumed=said is None)
    reader.add_whole("rollouts.response_max", "gconfig.max_new_tokens")
    reader.add_whole("rollouts.prompt_max", "train_dataset.max_length")
    longest = [reader.whole(name) for name in ("train_dataset.max_length", "gconfig.max_new_tokens")]
    if longest[1]:
        text = "train_dataset.max_length + gconfig.max_new_tokens" if longest[0] else "gconfig.max_new_tokens"
        reader.add("training.sequence_length", sum(number or 0 for number in longest), text)
    engine = _backend(generates)
    reader.add(
        "rollouts.engine", engine if engine in _ENGINES else None, f"{engine} of the pool that generates"
    )
    reader.add("rollouts.tensor_parallel", _dimensions(generates).get("t"), "the pool that generates")
    if reader.flag("actor.recompute_logprob") is False:
        reader.add("rollouts.old_logprobs", "reused", "actor.recompute_logprob false")
    if reader.number("actor.kl_ctl") == 0:
        reader.add("training.reference", "none", "actor.kl_ctl 0")
    if reader.flag("enable_offload") or _shared(reader) or not generates:
        return
    both = _size(generates) + _size(trains)
    reader.add("rollouts.placement", "disaggregated", "two pools")
    if _dimensions(generates) and _dimensions(trains):
        reader.add("rollouts.generation_share", round(_size(generates) / both, 6), f"{generates} of {both}")
    ahead = reader.whole("rollout.max_head_offpolicyness") or _AHEAD
    reader.add("rollouts.steps_off_policy", ahead, "rollout.max_head_offpolicyness")
    if ahead:
        reader.add(
            "rollouts.in_flight_updates", True, "AReaL interrupts generation for new weights", assumed=True
        )


def _accelerators(reader: Reader, generates: str, trains: str) -> None:
    nodes, each = reader.whole("cluster.n_nodes"), reader.whole("cluster.n_gpus_per_node")
    sizes = [_size(text) for text in (generates, trains) if _dimensions(text)]
    if sizes and (trains == "" or _dimensions(trains)):
        count = max(sizes) if _shared(reader) else sum(sizes)
        reader.add(ACCELERATORS, count, "the pools" if generates else "the degrees of the backend")
    elif nodes and each:
        reader.add(ACCELERATORS, nodes * each, "cluster.n_nodes x n_gpus_per_node")
    reader.add(NODES, nodes, "cluster.n_nodes")
