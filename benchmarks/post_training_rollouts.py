"""Measured steps of reinforcement learning as the rollouts of a workload."""

from __future__ import annotations

import re
from typing import Any

from benchmarks.rows import Skip, number

# NeMo RL's recipes train on mathematics: short prompts (OpenMathInstruct-2); verl's rows state their own limits.
PROMPT_TOKENS = 150.0
# Releases of vLLM in those of NeMo RL (NVIDIA-NeMo/RL issue 1539, pull requests 2196 and 2384).
ENGINE_OF_RELEASE = {"v0.5": "0.11.2", "v0.6": "0.17.1"}


def rollout_training(row: dict[str, str]) -> dict[str, Any]:
    """The training section of a row.

    Raises:
        Skip: the row does not state its rollouts or lengths.
    """
    stated = re.search(r"rollout samples per step ([0-9,]+)", row["note"])
    mean, longest = number(row, "mean_tokens_per_sample"), number(row, "max_sequence")
    if stated is None or mean is None or longest is None:
        raise Skip("rollouts of a step or their lengths not stated")
    samples, update = int(stated[1].replace(",", "")), int(number(row, "global_batch") or 0)
    prompt = min(PROMPT_TOKENS, 0.5 * mean)
    off = re.match(r"([0-9]+)-step", row["policy"])
    rollouts: dict[str, Any] = {
        "prompt_tokens": {"mean": prompt}, "engine": "vllm",
        "response_tokens": {"mean": mean - prompt, "max": int(longest - prompt)},
        "samples_per_prompt": 16 if samples % 16 == 0 else 1,
        "precision": "fp8" if row["precision"] == "fp8" else "bf16",
    }  # fmt: skip
    if update and samples % update == 0:
        rollouts["update_batch"] = update
    if off:
        rollouts |= {"placement": "disaggregated", "steps_off_policy": int(off[1]), "generation_share": 0.5}
    release = re.search(r"\((v[0-9.]+)\)", row["source"])
    if release is not None and release[1] in ENGINE_OF_RELEASE:
        rollouts["engine_version"] = ENGINE_OF_RELEASE[release[1]]
    degrees = _degrees(row["generation_gpus_layout"])
    if degrees:
        rollouts["tensor_parallel"] = degrees["TP"]
    return {
        "objective": "ppo" if row["objective"] == "ppo" else "grpo", "global_batch": samples, "rollouts": rollouts,
        "sequence_length": int(longest), "stack": "tuned", "layout": _layout(row),
    }  # fmt: skip


def _degrees(text: str) -> dict[str, int]:
    """`[TP,CP]=[1,2]` as a mapping; parts that are not numbers are left out."""
    found = re.match(r"\[([A-Z,]+)\]=\[([^\]]*)\]", text)
    if not found:
        return {}
    names, values = found[1].split(","), found[2].split(",")
    return {name: int(value) for name, value in zip(names, values, strict=False) if value.strip().isdigit()}


def _layout(row: dict[str, str]) -> dict[str, int]:
    keys = {
        "TP": "tensor_parallel",
        "PP": "pipeline_parallel",
        "CP": "context_parallel",
        "EP": "expert_parallel",
    }
    return {keys[name]: value for name, value in _degrees(row["layout"]).items() if name in keys}
