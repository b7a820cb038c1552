"""LLaMA-Factory: values `key=value` over its YAML, after `src/train.py c.yaml`; DeepSpeed shards."""

from __future__ import annotations

import json

from planner.export.files import ExportFile
from planner.export.frameworks.deepspeed import FILE, read_configuration, refuse, trainer_configuration
from planner.export.frameworks.model import Parallel, Part, cannot, option_values, save_flags

NAME = "llama-factory"
_HALF = ("bf16", "fp16")


def render(parallel: Parallel) -> Part:
    """Return values over its YAML, and the JSON of DeepSpeed.

    Raises:
        InputError: parallelism other than of data and tensors, selective recomputation, or a model without tokens.
    """
    refuse(NAME, parallel)
    if parallel.sequence_length is None:
        raise cannot(NAME, "it trains models of tokens", "accelerate and deepspeed train others")
    if parallel.recompute == "selective":
        raise cannot(NAME, "it recomputes everything or nothing", "megatron and nemo recompute selectively")
    words = [
        f"per_device_train_batch_size={parallel.micro_batch}",
        f"gradient_accumulation_steps={parallel.grad_accumulation}",
        f"cutoff_len={parallel.sequence_length}", *(f"{key}=true" for key in _HALF if key == parallel.precision),
        f"disable_gradient_checkpointing={str(parallel.recompute == 'none').lower()}", f"deepspeed={FILE}",
        "overwrite_output_dir=false",  # else a run that starts again does so from its first step
        *save_flags(NAME, parallel, "output_dir={}", "save_strategy=steps", "save_steps={}"),
    ]  # fmt: skip
    return Part(
        tuple(words), files=(ExportFile(FILE, json.dumps(trainer_configuration(parallel), indent=2) + "\n"),)
    )


def parse(part: Part, nodes: int, gpus: int) -> Parallel:
    """Return the layout that values and JSON state, which must agree."""
    flags = option_values(part.args)
    parallel = read_configuration(
        part, nodes, gpus, sequence_length=int(flags["cutoff_len"]),
        recompute="none" if flags["disable_gradient_checkpointing"] == "true" else "full",
        save_every=int(flags["save_steps"]) if "save_steps" in flags else None, save_to=flags.get("output_dir", ""),
    )  # fmt: skip
    stated = int(flags["per_device_train_batch_size"]), int(flags["gradient_accumulation_steps"])
    if stated != (parallel.micro_batch, parallel.grad_accumulation):
        raise ValueError(
            f"{stated} over the YAML, {parallel.micro_batch}, {parallel.grad_accumulation} in the JSON"
        )
    return parallel
