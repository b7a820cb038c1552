"""Drawn workloads on the bundled catalog: models, amounts of work, data and limits as users write them.

The same seed gives the same workload. Laws of whole answers and the law of the one engine are held on them: in the
suite on some, by `python -m benchmarks.laws` on thousands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator

Sections = dict[str, Any]


class Kind(NamedTuple):
    """A model and how it is trained: preset, sections of training, FLOPs of forward and backward a unit."""

    preset: str
    training: Sections
    unit: str
    flops: float


_TEXT = {"sequence_length": 2048, "precision": "bf16"}
KINDS = (
    Kind("bert-base", {"sequence_length": 128, "precision": "fp16"}, "samples", 8.5e10),
    Kind("resnet-50", {"precision": "fp16", "optimizer": "sgd"}, "samples", 2.5e10),
    Kind("qwen3-0.6b", _TEXT, "tokens", 3.6e9),
    Kind("qwen2.5-1.5b", _TEXT, "tokens", 9e9),
    Kind("llama-3-8b", _TEXT, "tokens", 4.8e10),
    Kind("mistral-7b", {**_TEXT, "method": "lora", "lora_rank": 16}, "tokens", 4.3e10),
    Kind("llama-3.1-70b", {**_TEXT, "method": "lora", "lora_rank": 16}, "tokens", 4.2e11),
    Kind("mixtral-8x7b", _TEXT, "tokens", 7.8e10),
)
PLACES = (
    "aws/us-*", "aws/eu-*", "gcp/us-*", "gcp/europe-*", "azure/*us*", "azure/*europe*", "alibaba/*", "lambda/*",
    "aws/us-east-1", "gcp/us-central1",
)  # fmt: skip
LOCATIONS = ("aws/us-east-1", "gcp/us-central1", "gcp/europe-west4", "azure/eastus", "onprem")
OWNED = {
    "provider": "aws", "region": "us-east-1", "instance_type": "p4d.24xlarge", "nodes": 2,
    "purchase_option": "reserved_1y",
}  # fmt: skip
WAYS = (["on_demand"], ["on_demand", "spot"], ["spot"], ["on_demand", "reserved_1y", "capacity_block"])


def draw_workload(seed: int, *, kind: str = "training") -> Sections:
    """Sections of a workload file.

    Args:
        seed: of the draw.
        kind: `training`, one synchronous job, or `fleet`, whose samples any number of workers share.
    """
    draw = np.random.default_rng((seed, len(kind)))
    model = KINDS[int(draw.integers(len(KINDS)))]
    # from a few hours of one accelerator to a week of a hundred: 2e18 to 2e22 FLOPs
    amount = 10.0 ** draw.uniform(18.3, 22.3 if kind == "training" else 20.5) / model.flops
    training = {
        **model.training,
        "global_batch": int(draw.choice([64, 128, 256, 512])),
        model.unit: round(amount),
    }
    sections: Sections = {
        "version": 1, "kind": kind, "name": f"drawn-{seed}", "model": {"preset": model.preset}, "training": training,
        "data": _data(draw), "constraints": _limits(draw),
    }  # fmt: skip
    if kind == "fleet":
        sections["fleet"] = {"runs": int(draw.integers(1, 6))}
        sections["constraints"]["max_nodes"] = int(draw.integers(8, 64))
        return sections
    if draw.random() < 0.5:
        sections["checkpoint"] = {
            "export": bool(draw.random() < 0.5),
            "interval": str(draw.choice(["20m", "1h"])),
        }
    if draw.random() < 0.2:
        sections["spot"] = {"fallback": "none"} if draw.random() < 0.5 else {"zones": "single"}
    if draw.random() < 0.15:
        sections["commitments"] = [OWNED]
        sections["constraints"].pop("purchase_options", None)
    return sections


def _data(draw: Generator) -> Sections:
    data: Sections = {"size": f"{10.0 ** draw.uniform(0.5, 3.7):.0f}GB"}
    if draw.random() < 0.7:
        data["location"] = str(draw.choice(LOCATIONS))
    if draw.random() < 0.3:
        data["access"] = "stage"
    return data


def _limits(draw: Generator) -> Sections:
    limits: Sections = {"max_nodes": int(draw.choice([1, 2, 4, 8, 16, 32]))}
    if draw.random() < 0.85:
        places = draw.choice(PLACES, size=int(draw.integers(1, 4)), replace=False)
        limits["regions"] = sorted(str(place) for place in places)
    if draw.random() < 0.75:
        limits["deadline"] = f"{10.0 ** draw.uniform(0.6, 2.7):.1f}h"
        limits["deadline_confidence"] = float(draw.choice([0.5, 0.9, 0.95]))
    if draw.random() < 0.35:
        limits["budget_usd"] = round(10.0 ** draw.uniform(1.0, 4.5))
    if draw.random() < 0.4:
        limits["purchase_options"] = list(WAYS[int(draw.integers(len(WAYS)))])
    if draw.random() < 0.2:
        limits["quota"] = [
            {"provider": "aws", "quota": "p5", "unit": "vCPU", "limit": int(draw.choice([192, 768]))}
        ]
    return limits
