"""axolotl: values over its configuration, after `-m axolotl.cli.train c.yaml`; FSDP2, or DeepSpeed without splits."""

from __future__ import annotations

import json

from planner.export.files import ExportFile
from planner.export.frameworks.deepspeed import FILE, trainer_configuration
from planner.export.frameworks.model import Parallel, Part, cannot, from_variables, option_values, save_flags

NAME = "axolotl"
_DEGREES = {"tensor": "tensor_parallel_size", "context": "context_parallel_size", "micro_batch": "micro_batch_size",
            "grad_accumulation": "gradient_accumulation_steps"}  # fmt: skip
_HALF = ("bf16", "fp16")


def render(parallel: Parallel) -> Part:
    """Return values over its configuration.

    Raises:
        InputError: pipeline or expert parallelism, sequences split, selective recomputation, ZeRO-0 or 1 with other
            degrees, or a model without tokens.
    """
    for degree in ("pipeline", "expert"):
        if getattr(parallel, degree) > 1:
            raise cannot(
                NAME, f"it has no key for {degree} parallelism", "megatron, nemo and torchtitan have"
            )
    if parallel.sequence_length is None:
        raise cannot(NAME, "it trains models of tokens", "accelerate and deepspeed train others")
    if parallel.sequence_parallel:
        raise cannot(
            NAME, "its tensor parallelism does not split sequences", "megatron, nemo and torchtitan do"
        )
    split = parallel.tensor * parallel.context > 1
    if split and parallel.zero_stage < 2:
        raise cannot(
            NAME,
            f"ZeRO-{parallel.zero_stage} goes with no other degree there",
            "megatron and nemo combine them",
        )
    if parallel.recompute == "selective":
        raise cannot(NAME, "it recomputes everything or nothing", "megatron and nemo recompute selectively")
    words = [f"--{key}={getattr(parallel, name)}" for name, key in _DEGREES.items()]
    words += [f"--sequence_len={parallel.sequence_length}",
              *(f"--{key}=true" for key in _HALF if key == parallel.precision),
              f"--gradient_checkpointing={str(parallel.recompute == 'full').lower()}"]  # fmt: skip
    words += save_flags(
        NAME, parallel, "--output_dir={}", "--auto_resume_from_checkpoints=true", "--save_steps={}"
    )
    if not split:
        text = json.dumps(trainer_configuration(parallel), indent=2) + "\n"
        return Part((*words, f"--deepspeed={FILE}"), files=(ExportFile(FILE, text),))
    fsdp = {"auto_wrap_policy": "TRANSFORMER_BASED_WRAP", "reshard_after_forward": parallel.zero_stage == 3}
    words += ["--fsdp_version=2", f"--fsdp_config={fsdp}",
              f"--dp_shard_size={parallel.data}", "--dp_replicate_size=1"]  # fmt: skip
    return Part(tuple(words))


def parse(part: Part, nodes: int, gpus: int) -> Parallel:
    """Return the layout that the values state."""
    flags = option_values(part.args)
    values = {name: int(flags[key]) for name, key in _DEGREES.items()}
    data = nodes * gpus // (values["tensor"] * values["context"])
    if "deepspeed" in flags:
        zero = json.loads(part.file(FILE))["zero_optimization"]["stage"]
    else:
        zero = 3 if "True" in flags["fsdp_config"] else 2
        if int(flags["dp_shard_size"]) * int(flags["dp_replicate_size"]) != data:
            raise ValueError("shards and replicas are not what the world leaves")
    half = next((key for key in _HALF if key in flags), None)
    return from_variables(
        part, nodes, gpus, **values, data=data, zero_stage=zero, sequence_length=int(flags["sequence_len"]),
        recompute="full" if flags["gradient_checkpointing"] == "true" else "none",
        save_every=int(flags["save_steps"]) if "save_steps" in flags else None, save_to=flags.get("output_dir", ""),
        **({"precision": half} if half else {}),
    )  # fmt: skip
