"""Megatron-LM: arguments of its training scripts. Data parallelism is what the degrees leave of the world."""

from __future__ import annotations

from planner.export.frameworks.model import Parallel, Part, cannot, from_variables, option_values, save_flags
from planner.export.frameworks.stages import layers_of_stages, refuse_what_it_asserts, uneven_stages

NAME = "megatron"
DEGREES = {
    "tensor": "tensor-model-parallel-size", "pipeline": "pipeline-model-parallel-size",
    "context": "context-parallel-size", "expert": "expert-model-parallel-size", "micro_batch": "micro-batch-size",
}  # fmt: skip
FSDP_FORMAT = "fsdp_dtensor"  # the only format of checkpoints of its FSDP
_VIRTUAL, _STAGES = "num-virtual-stages-per-pipeline-rank", "pipeline-model-parallel-layout"
_QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"
SHARDING = {2: "optim_grads", 3: "optim_grads_params"}
_PRECISION: dict[str, tuple[str, ...]] = {
    "bf16": ("--bf16",), "fp16": ("--fp16",), "fp32": (), "fp8": ("--bf16", "--fp8-format=hybrid"),
}  # fmt: skip
_RECOMPUTE: dict[str, tuple[str, ...]] = {
    "none": (),
    "selective": ("--recompute-granularity=selective",),
    "full": ("--recompute-granularity=full", "--recompute-method=uniform", "--recompute-num-layers=1"),
}


def render(parallel: Parallel) -> Part:
    """Return its arguments.

    Raises:
        InputError: a model without tokens, a precision that it has no argument for, or a layout that it stops at.
    """
    if parallel.sequence_length is None:
        raise cannot(NAME, "it trains models of tokens", "accelerate and deepspeed train others")
    if parallel.precision not in _PRECISION:
        raise cannot(NAME, f"it has no argument for {parallel.precision}", f"it has {', '.join(_PRECISION)}")
    refuse_what_it_asserts(NAME, parallel)
    words = [f"--{key}={getattr(parallel, name)}" for name, key in DEGREES.items()]
    words += [f"--global-batch-size={parallel.global_batch}", f"--seq-length={parallel.sequence_length}"]
    if stages := uneven_stages(parallel):
        words.append(f"--{_STAGES}={stages}")
    elif parallel.interleave > 1:
        words.append(f"--{_VIRTUAL}={parallel.interleave}")
    if parallel.sequence_parallel:
        words.append("--sequence-parallel")
    if parallel.zero_stage:
        words.append("--use-distributed-optimizer")
    if parallel.zero_stage > 1:
        words += ["--use-megatron-fsdp", f"--data-parallel-sharding-strategy={SHARDING[parallel.zero_stage]}",
                  "--no-gradient-accumulation-fusion", f"--ckpt-format={FSDP_FORMAT}"]  # fmt: skip
    words += [*_PRECISION[parallel.precision], *_RECOMPUTE[parallel.recompute]]
    words += save_flags(NAME, parallel, "--save={}", "--load={}", "--save-interval={}", scheme="msc")
    return Part((*words, "--exit-signal-handler"), env=_connections(parallel))


def _connections(parallel: Parallel) -> dict[str, str]:
    """What it asserts of the queues to a device: several with its FSDP, one with tensor or context parallelism."""
    if parallel.zero_stage > 1:
        return {_QUEUES: "8"}  # CUDA's default; images may set 1
    return {_QUEUES: "1"} if parallel.tensor * parallel.context > 1 else {}


def parse(part: Part, nodes: int, gpus: int) -> Parallel:
    """Return the layout that the arguments state."""
    flags = option_values(part.args)
    degrees = {name: int(flags[key]) for name, key in DEGREES.items()}
    data = nodes * gpus // (degrees["tensor"] * degrees["pipeline"] * degrees["context"])
    strategy = flags.get("data-parallel-sharding-strategy", "")
    zero = {value: key for key, value in SHARDING.items()}.get(
        strategy, int("use-distributed-optimizer" in flags)
    )
    arguments = set(part.args)
    precision = next(key for key, words in reversed(_PRECISION.items()) if set(words) <= arguments)
    if precision == "fp32":
        precision = next((key for key in ("bf16", "fp16") if f"--{key}" in arguments), "fp32")
    recompute = flags.get("recompute-granularity", "none")
    turns = int(flags.get(_VIRTUAL, 1))
    if _STAGES in flags:
        turns = len(layers_of_stages(flags[_STAGES])) // degrees["pipeline"]
    return from_variables(
        part, nodes, gpus, **degrees, data=data, zero_stage=zero, sequence_length=int(flags["seq-length"]),
        grad_accumulation=int(flags["global-batch-size"]) // (data * degrees["micro_batch"]), precision=precision,
        recompute=recompute, interleave=turns,
        sequence_parallel="sequence-parallel" in flags,
        save_every=int(flags["save-interval"]) if "save-interval" in flags else None, save_to=flags.get("save", ""),
    )  # fmt: skip
