"""prime-rl: asynchronous reinforcement learning and fine-tuning by TOML (https://docs.primeintellect.ai/prime-rl).

Trainer and inference have nodes of their own; rollouts run through updates of the weights.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.trainer_files.formats.common import (
    ACCELERATORS,
    NODES,
    add_adapter,
    add_offload,
    add_optimizer,
    add_stack,
    add_targets,
    add_whole,
)
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_WITHOUT_EFFECT = (
    r"log|slurm|deployment|ckpt|weight_broadcast|wandb|model|trainer|orchestrator|inference|output_dir|clean|bench|dump_.*",
    r"data|optim|scheduler|val|eval|metrics|heartbeat|profile|monitor|env_vars|experimental|loss|name|project|clean_output_dir",
)  # fmt: skip
_DEGREES = {"tp": "tensor_parallel", "cp": "context_parallel", "ep": "expert_parallel"}
# What prime-rl takes where a file leaves a key out.
_EACH, _RANK, _AHEAD = 8, 16, 8


def recognises(document: Document) -> bool:
    """Whether the tables are prime-rl's: an orchestrator beside a trainer, or a fine-tuning of its own."""
    data = document.data
    model, samples = data.get("model"), data.get("data")
    if (
        document.syntax != "toml"
        or not isinstance(model, Mapping)
        or "name" not in model
        or "flavor" in model
    ):
        return False
    tunes = isinstance(samples, Mapping) and "batch_size" in samples
    return isinstance(data.get("orchestrator"), Mapping) or tunes


def read(document: Document) -> Reading:
    """Read a run."""
    keys, reading = Lookup(document), Reading(document.path, "prime-rl")
    reading.hub_key, reading.hub_name = "model.name", keys.text("model.name")
    learns = isinstance(document.data.get("orchestrator"), Mapping)
    trainer = "trainer." if learns else ""
    add_whole(reading, keys, "training.steps", "max_steps")
    add_whole(reading, keys, "training.sequence_length", "seq_len", "data.seq_len")
    train, generate, nodes = _pools(keys)
    if learns:
        _rollouts(reading, keys, train, generate)
    else:
        reading.add("training.objective", "sft", "no orchestrator")
        add_whole(reading, keys, "training.global_batch", "data.batch_size")
        packed = keys.text("data.pack_function")
        reading.add("training.packing", packed != "stack", "data.pack_function", assumed=not packed)
        generate = 0  # it evaluates alone
    if train and (generate or not learns):
        reading.add(ACCELERATORS, train + generate, "deployment")
        reading.add(NODES, nodes, "deployment")
    _trainer(reading, keys, f"{trainer}model.", f"{trainer}optim.type")
    reading.unknown = keys.unknown(_WITHOUT_EFFECT)
    return reading


def _pools(keys: Lookup) -> tuple[int, int, int | None]:
    """Accelerators that train and generate, 0 where not stated, and the nodes of both."""
    each = keys.whole("deployment.gpus_per_node") or _EACH
    train, replica = (keys.whole(f"deployment.num_{name}_nodes") for name in ("train", "infer"))
    if train:
        generate = (replica or 0) * (keys.whole("deployment.num_infer_replicas") or 1)
        return train * each, generate * each, train + generate
    chips = [keys.whole(f"deployment.num_{name}_gpus") or 0 for name in ("train", "infer")]
    return chips[0], chips[1], None


def _rollouts(reading: Reading, keys: Lookup, train: int, generate: int) -> None:
    reading.add("training.objective", "grpo", "orchestrator")
    reading.add("training.reference", "none", "prime-rl has no reference model", assumed=True)
    reading.add("rollouts.old_logprobs", "reused", "those of the engine", assumed=True)
    add_whole(reading, keys, "training.global_batch", "orchestrator.batch_size")
    add_whole(
        reading, keys, "rollouts.samples_per_prompt", "orchestrator.group_size", "orchestrator.rollouts_per_example"
    )  # fmt: skip
    add_whole(reading, keys, "rollouts.response_max", "orchestrator.train.sampling.max_completion_tokens",
              "orchestrator.sampling.max_tokens")  # fmt: skip
    reading.add("rollouts.engine", "vllm", "prime-rl's inference", assumed=True)
    add_whole(
        reading,
        keys,
        "rollouts.tensor_parallel",
        "inference.vllm.tensor_parallel_size",
        "inference.parallel.tp",
    )
    reading.add("rollouts.placement", "disaggregated", "trainer and inference", assumed=True)
    if train and generate:
        reading.add("rollouts.generation_share", round(generate / (train + generate), 6), "deployment")
    ahead = keys.first("orchestrator.max_off_policy_steps", "max_async_level")
    steps = (keys.whole(ahead) or 0) if ahead else _AHEAD
    text = ahead or f"{_AHEAD} where orchestrator.max_off_policy_steps is left out"
    reading.add("rollouts.steps_off_policy", steps, text, assumed=not ahead)
    if steps:
        reading.add("rollouts.in_flight_updates", True, "rollouts run through updates", assumed=True)


def _trainer(reading: Reading, keys: Lookup, model: str, optimizer: str) -> None:
    for short, name in _DEGREES.items():
        add_whole(reading, keys, f"training.layout.{name}", model + short)
    reading.add("training.layout.zero_stage", 3, "FSDP2, resharding after forward", assumed=True)
    compiled = keys.get(f"{model}compile") not in (None, False)
    add_stack(reading, compiled, f"{model}compile", f"no {model}compile")
    keeps = keys.get(f"{model}ac") in (None, False)
    reading.add("training.layout.recompute", "none" if keeps else "full", f"{model}ac", assumed=keeps)
    if keys.get(f"{model}ac_offloading") not in (None, False):
        add_offload(reading, f"{model}ac_offloading", "activations")
    for name, what in (("optim_cpu_offload", "optimizer"), ("fsdp_cpu_offload", "weights")):
        if keys.flag(model + name):
            add_offload(reading, model + name, what)
    if keys.has(f"{model}fused_lm_head_token_chunk_size"):
        reading.add("training.memory.loss", "tiled", f"{model}fused_lm_head_token_chunk_size")
    precision = "fp8" if keys.flag(f"{model}fp8") else "bf16"
    reading.add("training.precision", precision, f"{model}fp8" if precision == "fp8" else "prime-rl computes in bf16",
                assumed=precision != "fp8")  # fmt: skip
    add_optimizer(reading, keys, optimizer)
    if keys.get(f"{model}lora") is not None:
        add_adapter(
            reading, "lora", f"{model}lora", keys.whole(f"{model}lora.rank") or _RANK, f"{model}lora.rank"
        )
        add_targets(reading, keys, f"{model}lora.target_modules")
