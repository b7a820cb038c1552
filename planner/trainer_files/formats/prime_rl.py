"""prime-rl: asynchronous reinforcement learning and fine-tuning by TOML (https://docs.primeintellect.ai/prime-rl).

Trainer and inference have nodes of their own; rollouts run through updates of the weights.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.trainer_files.formats.common import ACCELERATORS, NODES, Reader
from planner.trainer_files.keys import Lookup
from planner.trainer_files.model import Document, Reading

_WITHOUT_EFFECT = (
    r"log|slurm|deployment|ckpt|weight_broadcast|wandb|model|trainer|orchestrator|inference|output_dir|clean|bench|dump_.*",
    r"data|optim|scheduler|val|eval|metrics|heartbeat|profile|monitor|env_vars|experimental|loss|name|project|clean_output_dir",
)
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
    reader = Reader(document, "prime-rl")
    reader.hub_key, reader.hub_name = "model.name", reader.text("model.name")
    learns = isinstance(document.data.get("orchestrator"), Mapping)
    trainer = "trainer." if learns else ""
    reader.add_whole("training.steps", "max_steps")
    reader.add_whole("training.sequence_length", "seq_len", "data.seq_len")
    train, generate, nodes = _pools(reader)
    if learns:
        _rollouts(reader, train, generate)
    else:
        reader.add("training.objective", "sft", "no orchestrator")
        reader.add_whole("training.global_batch", "data.batch_size")
        packed = reader.text("data.pack_function")
        reader.add("training.packing", packed != "stack", "data.pack_function", assumed=not packed)
        generate = 0  # it evaluates alone
    if train and (generate or not learns):
        reader.add(ACCELERATORS, train + generate, "deployment")
        reader.add(NODES, nodes, "deployment")
    _trainer(reader, f"{trainer}model.", f"{trainer}optim.type")
    reader.name_unknown(_WITHOUT_EFFECT)
    return reader


def _pools(keys: Lookup) -> tuple[int, int, int | None]:
    """Accelerators that train and generate, 0 where not stated, and the nodes of both."""
    each = keys.whole("deployment.gpus_per_node") or _EACH
    train, replica = (keys.whole(f"deployment.num_{name}_nodes") for name in ("train", "infer"))
    if train:
        generate = (replica or 0) * (keys.whole("deployment.num_infer_replicas") or 1)
        return train * each, generate * each, train + generate
    chips = [keys.whole(f"deployment.num_{name}_gpus") or 0 for name in ("train", "infer")]
    return chips[0], chips[1], None


def _rollouts(reader: Reader, train: int, generate: int) -> None:
    reader.add("training.objective", "grpo", "orchestrator")
    reader.add("training.reference", "none", "prime-rl has no reference model", assumed=True)
    reader.add("rollouts.old_logprobs", "reused", "those of the engine", assumed=True)
    reader.add_whole("training.global_batch", "orchestrator.batch_size")
    reader.add_whole(
        "rollouts.samples_per_prompt", "orchestrator.group_size", "orchestrator.rollouts_per_example"
    )
    reader.add_whole("rollouts.response_max", "orchestrator.train.sampling.max_completion_tokens",
                     "orchestrator.sampling.max_tokens")  # fmt: skip
    reader.add("rollouts.engine", "vllm", "prime-rl's inference", assumed=True)
    reader.add_whole(
        "rollouts.tensor_parallel", "inference.vllm.tensor_parallel_size", "inference.parallel.tp"
    )
    reader.add("rollouts.placement", "disaggregated", "trainer and inference", assumed=True)
    if train and generate:
        reader.add("rollouts.generation_share", round(generate / (train + generate), 6), "deployment")
    ahead = reader.first("orchestrator.max_off_policy_steps", "max_async_level")
    steps = (reader.whole(ahead) or 0) if ahead else _AHEAD
    text = ahead or f"{_AHEAD} where orchestrator.max_off_policy_steps is left out"
    reader.add("rollouts.steps_off_policy", steps, text, assumed=not ahead)
    if steps:
        reader.add("rollouts.in_flight_updates", True, "rollouts run through updates", assumed=True)


def _trainer(reader: Reader, model: str, optimizer: str) -> None:
    for short, name in _DEGREES.items():
        reader.add_whole(f"training.layout.{name}", model + short)
    reader.add("training.layout.zero_stage", 3, "FSDP2, resharding after forward", assumed=True)
    compiled = reader.get(f"{model}compile") not in (None, False)
    reader.add_stack(compiled, f"{model}compile", f"no {model}compile")
    keeps = reader.get(f"{model}ac") in (None, False)
    reader.add("training.layout.recompute", "none" if keeps else "full", f"{model}ac", assumed=keeps)
    if reader.get(f"{model}ac_offloading") not in (None, False):
        reader.add_offload(f"{model}ac_offloading", "activations")
    for name, what in (("optim_cpu_offload", "optimizer"), ("fsdp_cpu_offload", "weights")):
        if reader.flag(model + name):
            reader.add_offload(model + name, what)
    if reader.has(f"{model}fused_lm_head_token_chunk_size"):
        reader.add("training.memory.loss", "tiled", f"{model}fused_lm_head_token_chunk_size")
    precision = "fp8" if reader.flag(f"{model}fp8") else "bf16"
    reader.add("training.precision", precision, f"{model}fp8" if precision == "fp8" else "prime-rl computes in bf16",
               assumed=precision != "fp8")  # fmt: skip
    reader.add_optimizer(optimizer)
    if reader.get(f"{model}lora") is not None:
        reader.add_adapter(
            "lora", f"{model}lora", reader.whole(f"{model}lora.rank") or _RANK, f"{model}lora.rank"
        )
        reader.add_targets(f"{model}lora.target_modules")
