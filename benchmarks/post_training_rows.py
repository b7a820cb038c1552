"""Measured fine-tuning rows as workload files: what the row states, and nothing more.

A row becomes the YAML that a user would write; what its source fixes for all of its rows (a recipe's optimizer, PEFT's
eager stack) stands in `SOURCES`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.accelerators import find_device, load_devices
from benchmarks.rows import Skip, number
from planner.inputs.load import LoadedWorkload, parse_workload
from planner.inputs.post_training import adapter_key, adapter_names
from planner.inputs.presets import find_preset
from planner.inputs.training_schema import Training
from planner.records import record

PRECISIONS = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
REINFORCED = ("grpo", "ppo", "dapo", "swe")


@record(frozen=True)
class Row:
    """One measured row.

    Attributes:
        key, source: its id and publisher.
        loaded: the workload.
        device: the accelerator's row, `count` of them in the job and `per_node` in a node.
        step_s: measured step time, None where not stated; `memory_gib`: measured peak.
        convention: how the peak was counted (reserved, active).
        parts: measured parts of a step in s.
    """

    key: str
    source: str
    loaded: LoadedWorkload
    device: dict[str, Any]
    count: int
    per_node: int
    step_s: float | None
    memory_gib: float | None
    convention: str
    parts: dict[str, float]

    @property
    def training(self) -> Training:
        """The workload's section."""
        training = self.loaded.workload.training
        assert training is not None
        return training


def source_of(row: dict[str, str]) -> str:
    """The publisher: what stands before the commit."""
    return row["source"].split("@")[0]


def read_row(row: dict[str, str]) -> Row:
    """Turn a row into a workload.

    Raises:
        Skip: the row lacks what a workload must state; the message is the reason.
    """
    device = find_device(load_devices(), _accelerator(row["accelerator"]))
    if device is None:
        raise Skip(f"accelerator {row['accelerator'] or 'not stated'}")
    preset = find_preset(row["model"])
    if preset is None:
        raise Skip(f"model {row['model'] or 'not stated'}")
    count, nodes = int(number(row, "accelerators") or 1), int(number(row, "nodes") or 1)
    training = _training(row, preset.sequence_length)
    text = json.dumps({"version": 1, "name": "row", "model": {"preset": preset.name}, "training": training})
    loaded = parse_workload(text, Path(f"{row['id']}.yaml"))
    parts = {name: number(row, f"{name}_s") for name in ("generation", "logprob", "update")}
    return Row(
        row["id"], source_of(row), loaded, device, count, max(1, count // nodes), _step_s(row, training),
        number(row, "peak_memory_gib"), _convention(row), {k: v for k, v in parts.items() if v is not None},
    )  # fmt: skip


def _accelerator(name: str) -> str:
    """The name as the measured rows of pre-training write it: `H100 80GB` is the SXM card."""
    bare = name.replace("NVIDIA ", "").replace("H100 80GB", "H100-SXM")
    bare = bare.replace("80GB", "SXM-80").replace("40GB", "SXM-40")
    return bare.replace(" ", "-") if "SXM" in bare else bare


def _training(row: dict[str, str], context: int | None) -> dict[str, Any]:
    precision = PRECISIONS.get(row["precision"], row["precision"] or "bf16")
    out: dict[str, Any] = {"steps": 1000, "precision": precision}
    if row["objective"] in REINFORCED:
        from benchmarks.post_training_rollouts import rollout_training

        return {**out, **rollout_training(row)}
    micro = int(number(row, "micro_batch") or 1)
    batch = int(number(row, "global_batch") or micro * int(number(row, "accelerators") or 1))
    length = int(number(row, "max_sequence") or context or 0)
    out |= {"global_batch": batch, "sequence_length": length, "objective": "sft"}
    mean = number(row, "mean_tokens_per_sample") or _mean_tokens(row, batch)
    if row["packed"] != "True" and mean is None and row["objective"] == "sft":
        raise Skip("lengths of sequences not stated")
    if row["packed"] != "True" and mean is not None and mean < length:
        out["lengths"] = {"mean": mean}
        # the source's loader sorts by length within buckets of batches
        out["group_by_length"] = row["source"].startswith("huggingface/peft")
    out["stack"] = "compiled" if row["compile"] == "True" else "eager"
    out["layout"] = {"micro_batch": micro}
    if row["recompute"]:
        out["layout"]["recompute"] = row["recompute"]
    if number(row, "accelerators") == 1:
        out["layout"]["zero_stage"] = 0
    out["memory"] = {"master": "none", "gradients": "half"}
    out |= _method(row) | _optimizer(row, out)
    return out


def _mean_tokens(row: dict[str, str], batch: int) -> float | None:
    """Tokens of a sample from the rate of real tokens and the step time, where the source states both."""
    rate, step = number(row, "tokens_per_s"), number(row, "step_time_s")
    return rate * step / batch if rate and step else None


def _method(row: dict[str, str]) -> dict[str, Any]:
    if row["method"] == "full":
        return {"method": "full"}
    kind = adapter_key(row["adapter"] or "lora")
    kind = _variant(row["id"], kind)
    adapter: dict[str, Any] = {"kind": kind if kind in adapter_names() else "other"}
    rank = number(row, "rank")
    if rank:
        adapter["rank"] = int(rank)
    if row["targets"]:
        adapter["targets"] = row["targets"].split("+")
    elif row["source"].startswith("meta-pytorch"):
        adapter |= {"targets": ["q_proj", "v_proj", "o_proj", "mlp"], "rank": 8}
    quantization = {"": {}, "nf4": {"quantization": "nf4_double"}, "int8": {"quantization": "int8"}}
    return {
        "method": "qlora" if row["quantization"] else "lora", "adapter": adapter,
        **quantization.get(row["quantization"], {"quantization": "nf4_double"}),
    }  # fmt: skip


def _variant(key: str, kind: str) -> str:
    """The source names variants of LoRA in the experiment's name alone."""
    words = key.lower().replace("/", "-").split("-")
    return next(
        (word for word in words if kind == "lora" and word in ("dora", "rslora", "mica", "lorafa")), kind
    ).replace("lorafa", "lora_fa")


def _optimizer(row: dict[str, str], training: dict[str, Any]) -> dict[str, Any]:
    """Optimizer and memory options that the row, or the recipe its source names, states."""
    memory = dict(training["memory"])
    layout = dict(training["layout"])
    name = row["optimizer"].lower()
    optimizer = "adamw_8bit" if "8bit" in name else "adamw"
    note, key = row["note"], row["id"]
    if "chunked" in key or "chunked" in note or key.split("3B-")[-1] in _LATE_RUNGS:
        memory["loss"] = "tiled"
    if (
        "optimizer step in backward" in note
        or "optimizer in backward" in key
        or "activation offloading" in key
    ):
        memory["optimizer_in_backward"] = True
    if "activations offloaded" in note or "activation offloading" in key:
        memory["offload_activations"] = True
    if "CPU offload" in note:
        memory |= {"offload_optimizer": True, "offload_weights": True}
    if row["source"].startswith("meta-pytorch") and not name:
        memory["loss"] = "tiled"
        if row["method"] != "full" or row["accelerators"] != "1":
            layout.setdefault("recompute", "full")
        if row["accelerators"] != "1":
            layout |= {"zero_stage": 3, "tensor_parallel": 1, "pipeline_parallel": 1}
        if row["method"] == "full" and row["accelerators"] == "1":
            optimizer = "paged_adamw_8bit"
            memory["optimizer_in_backward"] = True
    return {"optimizer": optimizer, "memory": memory, "layout": layout}


# torchtune's ladder adds one lever after another; each rung keeps those before it.
_LATE_RUNGS = ("optimizer in backward", "activation offloading", "8-bit adamw", "lora")


def _step_s(row: dict[str, str], training: dict[str, Any]) -> float | None:
    stated = number(row, "step_time_s")
    if stated:
        return stated
    rate = number(row, "tokens_per_s")
    if rate is None and number(row, "tokens_per_s_per_gpu"):
        rate = (number(row, "tokens_per_s_per_gpu") or 0.0) * (number(row, "accelerators") or 1.0)
    if not rate or "lengths" in training or (row["packed"] != "True" and row["objective"] == "sft"):
        return None
    return float(training["global_batch"] * training["sequence_length"] / rate)


def _convention(row: dict[str, str]) -> str:
    if row["source"].startswith("huggingface/peft"):
        return "reserved"
    return "allocated" if row["source"].startswith("meta-pytorch") else "device"
