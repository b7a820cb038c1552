"""No framework: the layout as environment variables `PLANNER_*`, for programs of one's own."""

from __future__ import annotations

from planner.export.frameworks.model import Parallel, Part

_FIELDS = {
    "PLANNER_NODES": "nodes", "PLANNER_GPUS_PER_NODE": "gpus", "PLANNER_TENSOR_PARALLEL": "tensor",
    "PLANNER_PIPELINE_PARALLEL": "pipeline", "PLANNER_CONTEXT_PARALLEL": "context", "PLANNER_EXPERT_PARALLEL": "expert",
    "PLANNER_DATA_PARALLEL": "data", "PLANNER_ZERO_STAGE": "zero_stage", "PLANNER_MICRO_BATCH": "micro_batch",
    "PLANNER_GRAD_ACCUMULATION": "grad_accumulation", "PLANNER_VIRTUAL_STAGES": "interleave",
}  # fmt: skip


def render(parallel: Parallel) -> Part:
    """Return the layout as variables."""
    numbers = {key: str(getattr(parallel, name)) for key, name in _FIELDS.items()}
    return Part(
        env=numbers | {
            "PLANNER_GLOBAL_BATCH": str(parallel.global_batch),
            "PLANNER_SEQUENCE_LENGTH": "" if parallel.sequence_length is None else str(parallel.sequence_length),
            "PLANNER_PRECISION": parallel.precision, "PLANNER_RECOMPUTE": parallel.recompute,
            "PLANNER_SEQUENCE_PARALLEL": str(int(parallel.sequence_parallel)),
        }
    )  # fmt: skip


def parse(part: Part, nodes: int, gpus: int) -> Parallel:
    """Return the layout that the variables state; `nodes` and `gpus` are in them too."""
    env = part.env
    numbers = {name: int(env[key]) for key, name in _FIELDS.items()}
    if (numbers["nodes"], numbers["gpus"]) != (nodes, gpus):
        raise ValueError(f"variables of {numbers['nodes']} x {numbers['gpus']}, started on {nodes} x {gpus}")
    length = env["PLANNER_SEQUENCE_LENGTH"]
    return Parallel(
        **numbers, sequence_length=int(length) if length else None, precision=env["PLANNER_PRECISION"],
        recompute=env["PLANNER_RECOMPUTE"], sequence_parallel=env["PLANNER_SEQUENCE_PARALLEL"] == "1",
    )  # fmt: skip
