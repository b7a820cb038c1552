"""torchtitan: overrides of its configuration, after `-m torchtitan.train --module ... --config ...`.

FSDP2 is its data parallelism: all sharded (ZeRO-3), parameters kept after the forward pass (ZeRO-2), or replicas.
Tensor parallelism splits sequences too. Recomputation is a class of the configuration, not a flag.
"""

from __future__ import annotations

from planner.export.frameworks.model import Parallel, Part, cannot, from_variables, option_values

NAME = "torchtitan"
_DEGREES = {
    "tensor": "parallelism.tensor_parallel_degree", "pipeline": "parallelism.pipeline_parallel_degree",
    "context": "parallelism.context_parallel_degree", "expert": "parallelism.expert_parallel_degree",
}  # fmt: skip
_SHARDS, _REPLICAS = "parallelism.data_parallel_shard_degree", "parallelism.data_parallel_replicate_degree"
_RESHARD = "parallelism.fsdp_reshard_after_forward"
_SCHEDULE = "parallelism.pipeline_parallel_schedule"
_SCHEDULES = {1: "1F1B", 2: "Interleaved1F1B"}
_MICRO, _STEP = "training.num_tokens_per_microbatch_per_dp_rank", "training.num_tokens_per_train_step"
_LENGTH = "training.max_context_length"


def render(parallel: Parallel) -> Part:
    """Return overrides of its configuration.

    Raises:
        InputError: ZeRO-1, a model without tokens, over two virtual stages, or tensor without sequence parallelism.
    """
    if parallel.zero_stage == 1:
        raise cannot(
            NAME, "it has no ZeRO-1: FSDP2 shards gradients too", "megatron, nemo and deepspeed have it"
        )
    if parallel.sequence_length is None:
        raise cannot(
            NAME, "it counts batches in tokens, and this model has none", "accelerate and deepspeed do not"
        )
    if parallel.interleave not in _SCHEDULES:
        raise cannot(
            NAME, "its interleaved schedule has two virtual stages by flags", "megatron and nemo take any"
        )
    if (parallel.tensor > 1) is not parallel.sequence_parallel:
        raise cannot(
            NAME, "it splits sequences exactly where it splits tensors", "megatron and nemo let you choose"
        )
    shards = parallel.data if parallel.zero_stage else 1
    flags: dict[str, object] = {key: getattr(parallel, name) for name, key in _DEGREES.items()}
    flags |= {_SHARDS: shards, _REPLICAS: parallel.data // shards}
    if parallel.zero_stage:
        flags[_RESHARD] = "always" if parallel.zero_stage == 3 else "never"
    if parallel.pipeline > 1:
        flags |= {
            _SCHEDULE: _SCHEDULES[parallel.interleave],
            "parallelism.num_pp_microbatches": parallel.grad_accumulation,
        }
    flags |= {
        _MICRO: parallel.micro_batch * parallel.sequence_length, _LENGTH: parallel.sequence_length,
        _STEP: parallel.global_batch * parallel.sequence_length,
    }  # fmt: skip
    return Part(
        tuple(f"--{key}={value}" for key, value in flags.items()),
        notes=(
            "precision, recomputation and checkpoints are in torchtitan's own config: PLANNER_* says them",
        ),
    )


def parse(part: Part, nodes: int, gpus: int) -> Parallel:
    """Return the layout that the flags state; data parallelism is what the degrees leave of the world."""
    flags = option_values(part.args)
    degrees = {name: int(flags[key]) for name, key in _DEGREES.items()}
    data = nodes * gpus // (degrees["tensor"] * degrees["pipeline"] * degrees["context"])
    shards, replicas = int(flags[_SHARDS]), int(flags[_REPLICAS])
    if shards * replicas != data:
        raise ValueError(f"{shards} shards x {replicas} replicas, the world leaves {data}")
    length, micro, step = (int(flags[key]) for key in (_LENGTH, _MICRO, _STEP))
    zero = {"always": 3, "never": 2}[flags[_RESHARD]] if _RESHARD in flags else 0
    return from_variables(
        part, nodes, gpus, **degrees, data=data, zero_stage=zero, micro_batch=micro // length, sequence_length=length,
        grad_accumulation=step // (micro * data), sequence_parallel=degrees["tensor"] > 1,
        interleave=2 if flags.get(_SCHEDULE) == "Interleaved1F1B" else 1,
    )  # fmt: skip
