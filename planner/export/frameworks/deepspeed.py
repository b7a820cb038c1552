"""DeepSpeed: its JSON configuration beside the script; pipelines and experts are code there, not configuration."""

from __future__ import annotations

import json
from typing import Any

from planner.export.files import ExportFile
from planner.export.frameworks.model import Parallel, Part, cannot, from_variables

NAME = "deepspeed"
FILE = "deepspeed.json"
_PRECISION = {"bf16": "bf16", "fp16": "fp16"}
NOTE = "DeepSpeed recomputes only if the program requests it: PLANNER_RECOMPUTE says what the plan assumes"


def refuse(name: str, parallel: Parallel) -> None:
    """Refuse what a JSON of DeepSpeed has no key for.

    Raises:
        InputError: names the degree and what can.
    """
    for degree in ("pipeline", "context", "expert"):
        if getattr(parallel, degree) > 1:
            raise cannot(
                name,
                f"{degree} parallelism is not a key of its configuration",
                "megatron and nemo have flags for it",
            )
    if parallel.sequence_parallel:
        raise cannot(
            name, "its tensor parallelism does not split sequences", "megatron, nemo and torchtitan do"
        )


def configuration(parallel: Parallel) -> dict[str, Any]:
    """The JSON of a layout."""
    out: dict[str, Any] = {
        "train_batch_size": parallel.global_batch, "train_micro_batch_size_per_gpu": parallel.micro_batch,
        "gradient_accumulation_steps": parallel.grad_accumulation, "zero_optimization": {"stage": parallel.zero_stage},
    }  # fmt: skip
    if parallel.tensor > 1:
        out["tensor_parallel"] = {"autotp_size": parallel.tensor}
    if parallel.precision in _PRECISION:
        out[_PRECISION[parallel.precision]] = {"enabled": True}
    return out


def trainer_configuration(parallel: Parallel) -> dict[str, Any]:
    """The JSON of a layout for Hugging Face's Trainer, which leaves clipping and 16-bit weights of ZeRO-3 to it."""
    out = configuration(parallel)
    out["gradient_clipping"] = "auto"  # the trainer's max_grad_norm; without it, none
    if parallel.zero_stage == 3:
        out["zero_optimization"]["stage3_gather_16bit_weights_on_model_save"] = True
    return out


def render(parallel: Parallel) -> Part:
    """Return the arguments and the JSON.

    Raises:
        InputError: pipeline, context, expert or sequence parallelism.
    """
    refuse(NAME, parallel)
    text = json.dumps(configuration(parallel), indent=2) + "\n"
    return Part(("--deepspeed", "--deepspeed_config", FILE), files=(ExportFile(FILE, text),), notes=(NOTE,))


def read_configuration(part: Part, nodes: int, gpus: int, **more: Any) -> Parallel:
    """The layout that the JSON states; data parallelism is what tensor parallelism leaves of the world."""
    stated = json.loads(part.file(FILE))
    tensor = stated.get("tensor_parallel", {}).get("autotp_size", 1)
    data, micro, steps = (
        nodes * gpus // tensor, stated["train_micro_batch_size_per_gpu"], stated["gradient_accumulation_steps"],
    )  # fmt: skip
    if stated["train_batch_size"] != data * micro * steps:
        raise ValueError(
            f"train_batch_size {stated['train_batch_size']}, {data} x {micro} x {steps} by the rest"
        )
    half = next((key for key, name in _PRECISION.items() if name in stated), None)
    return from_variables(
        part, nodes, gpus, tensor=tensor, data=data, zero_stage=stated["zero_optimization"]["stage"], micro_batch=micro,
        grad_accumulation=steps, **({"precision": half} if half else {}), **more,
    )  # fmt: skip


def parse(part: Part, nodes: int, gpus: int) -> Parallel:
    """Return the layout that the JSON states."""
    return read_configuration(part, nodes, gpus)
