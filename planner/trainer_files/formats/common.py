"""What the files of several tools state alike: optimizer, precision, sharding, adapters, the figures of the batch."""

from __future__ import annotations

import re
from typing import Any

from planner.trainer_files.arguments import CONFIGURATION, SLURM_GPUS, SLURM_NODES, VISIBLE
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Reading

MICRO_BATCH, ACCUMULATION = "batch.per_accelerator", "batch.accumulation"
ACCELERATORS, NODES = "batch.accelerators", "batch.nodes"
# of trainers that count optimizer updates: micro-batches, or responses, of one generation, and passes over it
GENERATION_STEPS, GENERATED, PASSES = "batch.generation_steps", "batch.generated", "batch.passes"

# degree of the layout -> Megatron's argument
MEGATRON_DEGREES = {
    "tensor_parallel": "tensor_model_parallel_size", "pipeline_parallel": "pipeline_model_parallel_size",
    "context_parallel": "context_parallel_size", "expert_parallel": "expert_model_parallel_size",
}  # fmt: skip
NOT_COMPILED = "torch_compile is not set: the framework without a compiler"
# name of an optimizer (a pattern over letters and digits) -> the workload's name, and what differs
_OPTIMIZERS: tuple[tuple[str, str, str], ...] = (
    (r".*(galore|apollo|qgalore).*", "adamw", "its projected states are counted as those of AdamW"),
    (r".*adafactor.*", "adafactor", ""),
    (r".*4bit.*", "adamw_8bit", "states of 4 bit are counted as 8 bit"),
    (r".*paged.*8bit.*", "paged_adamw_8bit", ""),
    (r".*8bit.*|adamw?bnb.*|.*fp8adam.*", "adamw_8bit", ""),
    (r".*paged.*lion.*", "lion", "paging to the host is not counted"),
    (r".*paged.*", "paged_adamw", ""),
    (r".*lion.*", "lion", ""),
    (r"(torch)?(fused)?sgd.*|lomo|adalomo", "sgd", ""),
    (r"adam|adamtorch.*|fusedadam|distributedfusedadam|cpuadam|deepspeedcpuadam", "adamw", ""),
    (r".*adamw.*|distributedfusedadam.*|.*adam", "adamw", ""),
)  # fmt: skip

_HOSTS = re.compile(
    r"[\w.-]+:\d+(,\d+)*(@[\w.-]+:\d+(,\d+)*)*"
)  # of deepspeed: `localhost:4,5`, `a:0,1@b:0,1`


def add_optimizer(reading: Reading, keys: Lookup, key: str) -> None:
    """Note the optimizer by the memory of its states."""
    name = keys.text(key)
    plain = re.sub(r"[^a-z0-9]", "", name.lower().rsplit(".", 1)[-1])
    if not plain or plain == "auto":
        return
    for pattern, canonical, difference in _OPTIMIZERS:
        if re.fullmatch(pattern, plain):
            reading.add("training.optimizer", canonical, f"{key} {name}")
            if difference:
                reading.warn(f"{key} {name}: {difference}")
            return
    reading.add(
        "training.optimizer", "adamw", f"{key} {name} is not modelled: AdamW is assumed", assumed=True
    )
    reading.warn(f"{key} {name} is not modelled: its memory is assumed to be AdamW's")


def add_whole(reading: Reading, keys: Lookup, target: str, *names: str, default: int | None = None) -> None:
    """Note the first of several keys that holds a whole number above zero, else what the tool takes by default."""
    for name in names:
        value = keys.whole(name)
        if value is not None:
            reading.add(target, value, name)
            return
    reading.add(target, default, f"the default of {names[0]}", assumed=True)


def add_flag(
    reading: Reading, keys: Lookup, target: str, name: str, on: Any, off: Any, absent: str, *, usual: bool = False
) -> None:  # fmt: skip
    """Note one of two values by a flag; `absent` says why the `usual` one is taken where the flag is not stated."""
    stated = keys.flag(name)
    chosen = usual if stated is None else stated
    reading.add(target, on if chosen else off, absent if stated is None else name, assumed=stated is None)


def add_recompute(reading: Reading, keys: Lookup, name: str, absent: str, *, usual: bool = False) -> None:
    """Note by a flag whether all activations are computed again; `absent`, `usual`: as for `add_flag`."""
    add_flag(reading, keys, "training.layout.recompute", name, "full", "none", absent, usual=usual)


def add_stack(reading: Reading, compiled: bool, source: str, otherwise: str) -> None:
    """Note whether the model is compiled: `source` says so, `otherwise` why it is assumed not to be."""
    kind, text = ("compiled", source) if compiled else ("eager", otherwise)
    reading.add("training.stack", kind, text, assumed=not compiled)


def add_targets(reading: Reading, keys: Lookup, *names: str) -> None:
    """Note the matrices that have adapters, by the first of several keys that is given."""
    if name := keys.first(*names):
        reading.add("training.lora_targets", keys.get(name), name)


def add_stage(reading: Reading, keys: Lookup, name: str) -> None:
    """Note the ZeRO stage, where it is one."""
    stage = keys.number(name)
    if stage in (0, 1, 2, 3):
        reading.add("training.layout.zero_stage", int(stage), name)


def add_generations(reading: Reading, keys: Lookup, section: str = "") -> None:
    """Note the responses of one generation, by what and how often they are learned from, as TRL counts them."""
    add_whole(reading, keys, "rollouts.response_max", f"{section}max_completion_length")
    add_whole(reading, keys, "rollouts.samples_per_prompt", f"{section}num_generations")
    add_whole(reading, keys, GENERATION_STEPS, f"{section}steps_per_generation")
    add_whole(reading, keys, GENERATED, f"{section}generation_batch_size")
    add_whole(reading, keys, PASSES, f"{section}num_iterations")
    if keys.flag(f"{section}use_vllm"):
        reading.add("rollouts.engine", "vllm", f"{section}use_vllm")
    placement = {"server": "disaggregated", "colocate": "colocated"}.get(keys.text(f"{section}vllm_mode"))
    reading.add("rollouts.placement", placement, f"{section}vllm_mode")
    add_whole(reading, keys, "rollouts.tensor_parallel", f"{section}vllm_tensor_parallel_size")
    if keys.has(f"{section}beta") and keys.number(f"{section}beta") == 0:
        reading.add("training.reference", "none", f"{section}beta 0")


def add_length(
    reading: Reading, keys: Lookup, *, steps: str, epochs: str, default_epochs: float | None
) -> None:
    """Note how long training runs: steps count before epochs, as in the Trainer of Hugging Face."""
    count = keys.whole(steps)
    keys.seen.add(epochs)
    if count is not None:
        reading.add("training.steps", count, steps)
        return
    passes = keys.number(epochs)
    if passes is not None and passes > 0:
        reading.add("training.epochs", float(passes), epochs)
    elif default_epochs is not None:
        reading.add("training.epochs", default_epochs, f"the default of {epochs}", assumed=True)


def add_trainer_precision(reading: Reading, keys: Lookup) -> None:
    """Note the arithmetic from the flags of the Trainer of Hugging Face."""
    if keys.flag("fp8"):
        reading.add("training.precision", "fp8", "fp8")
        keys.seen.update(("bf16", "fp16"))  # what it computes in beside fp8
    elif keys.flag("bf16") or keys.text("bf16") == "full":
        reading.add("training.precision", "bf16", "bf16")
    elif keys.flag("bfloat16") or keys.flag("pure_bf16"):
        reading.add("training.precision", "bf16", keys.first("pure_bf16", "bfloat16"))
    elif left := next((name for name in ("bf16", "bfloat16") if keys.text(name) == "auto"), ""):
        note = f"{left}: auto, on accelerators that have it"
        reading.add("training.precision", "bf16", note, assumed=True)
    elif keys.flag("fp16") or keys.flag("float16"):
        reading.add("training.precision", "fp16", keys.first("fp16", "float16"))


def add_shard(reading: Reading, strategy: str, source: str) -> None:
    """Note the ZeRO stage of a sharding strategy of FSDP."""
    plain = re.sub(r"[^a-z0-9]", "", strategy.lower())
    stage = {
        "fullshard": 3, "1": 3, "shardgradop": 2, "2": 2, "noshard": 0, "3": 0, "hybridshard": 3, "4": 3,
        "hybridshardzero2": 2, "5": 2,
    }.get(plain)  # fmt: skip
    reading.add("training.layout.zero_stage", stage, f"{source} {strategy}")
    if plain.startswith("hybrid"):
        warn_of_groups(reading, f"{source} {strategy}")


def warn_of_groups(reading: Reading, source: str) -> None:
    """Note that only groups of accelerators share weights (hybrid sharding)."""
    reading.warn(f"{source}: sharding within groups is not modelled; full sharding is taken")


def add_fsdp2(reading: Reading, reshard: bool | None, source: str) -> None:
    """Note the stage of the second version of FSDP: parameters stay gathered after forward, or not."""
    if reshard is None:
        reading.add(
            "training.layout.zero_stage", 3, f"{source}, resharding after forward by default", assumed=True
        )
    else:
        reading.add("training.layout.zero_stage", 3 if reshard else 2, source)


def add_adapter(reading: Reading, kind: str, source: str, rank: int | None, rank_key: str) -> None:
    """Note adapters, and their kind where it is not LoRA."""
    reading.add("training.method", "lora", source)
    if rank is not None:
        reading.add("training.lora_rank", rank, rank_key)
    if kind not in ("lora", "qlora", ""):
        reading.add("training.adapter", kind, source)


def add_offload(reading: Reading, source: str, *what: str) -> None:
    """Note what is kept in host memory: `optimizer`, `weights`, `activations`."""
    for name in what:
        reading.add(f"training.memory.offload_{name}", True, source)


def add_launcher(reading: Reading, keys: Lookup) -> None:
    """Note the accelerators that a launcher on the same command line starts, else those of Slurm, and its own file.

    Launchers are torchrun, deepspeed and accelerate.
    """
    own = keys.text(CONFIGURATION)
    if own.endswith((".yaml", ".yml", ".json")) and not keys.text("config").endswith(own):
        reading.files["accelerate"] = own
    hosts = keys.text("include")
    if _HOSTS.fullmatch(hosts):
        count = hosts.count("@") + 1
        reading.add(ACCELERATORS, hosts.count(",") + count, f"include {hosts}")
        reading.add(NODES, count, "include")
        return
    total = keys.get("num_processes")
    if _is_count(total):
        reading.add(ACCELERATORS, int(total), "num_processes")
        return
    for each, machines in (("nproc_per_node", "nnodes"), ("num_gpus", "num_nodes")):
        number, nodes = keys.get(each), keys.get(machines)
        if nodes is None and machines == "nnodes":
            nodes = keys.get(SLURM_NODES)
        if _is_count(number) and (nodes is None or _is_count(nodes)):
            count = int(nodes or 1)
            reading.add(ACCELERATORS, int(number) * count, f"{each} x {machines}" if nodes else each)
            reading.add(NODES, count, machines)
            return
    visible = keys.get(VISIBLE)
    if _is_count(visible):
        reading.add(ACCELERATORS, int(visible), "CUDA_VISIBLE_DEVICES", assumed=True)
        return
    given, nodes = keys.get(SLURM_GPUS), keys.get(SLURM_NODES)
    if _is_count(given) and _is_count(nodes):
        reading.add(ACCELERATORS, int(given) * int(nodes), "#SBATCH")
        reading.add(NODES, int(nodes), "#SBATCH")


def _is_count(value: object) -> bool:
    word = str(value)
    return word.isascii() and word.isdigit() and len(word) < 8 and int(word) > 0


def add_attention(reading: Reading, keys: Lookup, *names: str) -> None:
    """Note attention whose scores go through memory, as Transformers' `eager` computes it."""
    key = next((name for name in names if keys.text(name).lower() == "eager"), "")
    reading.add("training.attention", "materialised" if key else None, f"{key} eager")


def add_eager(reading: Reading, keys: Lookup, *names: str) -> None:
    """Note that the engine of rollouts launches every kernel from the host."""
    key = keys.first(*names)
    if key and keys.flag(key):
        reading.add("rollouts.cuda_graphs", False, key)
