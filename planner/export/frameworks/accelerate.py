"""Accelerate: options of `accelerate launch`, which starts torchrun itself; FSDP2 or DeepSpeed below it."""

from __future__ import annotations

from planner.export.frameworks.model import Parallel, Part, cannot, from_variables, option_values

NAME = "accelerate"
_DEGREES = {"tensor": "parallelism_config_tp_size", "context": "parallelism_config_cp_size"}
_SHARDS, _REPLICAS = "parallelism_config_dp_shard_size", "parallelism_config_dp_replicate_size"
_MIXED = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "fp32": "no"}


def render(parallel: Parallel) -> Part:
    """Return options of the launcher.

    Raises:
        InputError: pipeline or expert parallelism, ZeRO-0 or 1 beside other degrees, sequences split, or a precision.
    """
    for degree in ("pipeline", "expert"):
        if getattr(parallel, degree) > 1:
            raise cannot(
                NAME, f"it has no option for {degree} parallelism", "megatron, nemo and torchtitan have"
            )
    if parallel.sequence_parallel:
        raise cannot(
            NAME, "its tensor parallelism does not split sequences", "megatron, nemo and torchtitan do"
        )
    if parallel.precision not in _MIXED:
        raise cannot(NAME, f"it has no option for {parallel.precision}", f"it has {', '.join(_MIXED)}")
    words = [f"--mixed_precision={_MIXED[parallel.precision]}",
             f"--gradient_accumulation_steps={parallel.grad_accumulation}"]  # fmt: skip
    if parallel.zero_stage in (0, 1) and parallel.tensor * parallel.context > 1:
        raise cannot(
            NAME,
            f"ZeRO-{parallel.zero_stage} goes with no other degree there",
            "megatron and nemo combine them",
        )
    if parallel.zero_stage == 1:
        words += ["--use_deepspeed", "--zero_stage=1"]
    elif parallel.zero_stage:
        # without a policy the whole model is one unit, and each accelerator gathers all of it
        wrap = "SIZE_BASED_WRAP" if parallel.sequence_length is None else "TRANSFORMER_BASED_WRAP"
        words += ["--use_fsdp", "--fsdp_version=2", f"--fsdp_auto_wrap_policy={wrap}",
                  f"--fsdp_reshard_after_forward={str(parallel.zero_stage == 3).lower()}",
                  f"--fsdp_activation_checkpointing={str(parallel.recompute == 'full').lower()}",
                  "--fsdp_state_dict_type=SHARDED_STATE_DICT", "--use_parallelism_config",
                  *(f"--{key}={getattr(parallel, name)}" for name, key in _DEGREES.items()),
                  f"--{_SHARDS}={parallel.data}", f"--{_REPLICAS}=1"]  # fmt: skip
    own = ["micro-batch", "length", "checkpoints"]
    if parallel.recompute == "selective" or (parallel.recompute == "full" and parallel.zero_stage < 2):
        own.append("recomputation")
    notes = (f"the program sets {', '.join(own[:-1])} and {own[-1]}: PLANNER_* says the plan's",)
    return Part(launch=tuple(words), launcher="accelerate", notes=notes)


def parse(part: Part, nodes: int, gpus: int) -> Parallel:
    """Return the layout that the options state; what the program itself sets is read from the variables."""
    flags = option_values(part.launch)
    degrees = {name: int(flags.get(key, 1)) for name, key in _DEGREES.items()}
    data = nodes * gpus // (degrees["tensor"] * degrees["context"])
    zero = int(flags.get("zero_stage", 0))
    if "use_fsdp" in flags:
        zero = 3 if flags["fsdp_reshard_after_forward"] == "true" else 2
        if int(flags[_SHARDS]) * int(flags[_REPLICAS]) != data:
            raise ValueError("shards and replicas are not what the world leaves")
    precision = next(key for key, value in _MIXED.items() if value == flags["mixed_precision"])
    return from_variables(
        part, nodes, gpus, **degrees, data=data, zero_stage=zero, precision=precision,
        grad_accumulation=int(flags["gradient_accumulation_steps"]),
    )  # fmt: skip
