"""Launches of every kind that a plan can be, made by hand: cheap, and with figures that a reader can check."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from planner.export.view import Checkpoints, Launch, Limits, Pool, Training
from planner.plan.layout import Layout
from planner.plan.run import Run

RUN = Run(
    image="ghcr.io/example/train:1.4.2", command="train.py --config llama3-8b.toml", setup="pip install -e .",
    env={"HF_HUB_OFFLINE": "1"}, secrets=("WANDB_API_KEY",), data="s3://example-data/tokens",
    data_location="aws/us-east-1", checkpoints="/mnt/checkpoints", outputs="s3://example-data/models",
    team="research", tags={"cost-center": "1234"},
)  # fmt: skip
_AWS = Pool(
    provider="aws", region="us-east-1", zone="use1-az6", instance_type="p5.48xlarge", family="p5", nodes=4,
    accelerator="h100-80gb-sxm", vendor="nvidia", generation="hopper", gpus=8, vcpus=192,
    option="spot", variant="", price_per_hour=Decimal("20.5"), currency="USD", usd_per_currency=Decimal(1),
    price_as_of="2026-07", price_basis="observed", hours=100.0, cost_usd=Decimal("8300.00"), spot_hours=100.0,
    quota_name="All P5 Spot Instance Requests",
)  # fmt: skip
_ON_DEMAND = replace(
    _AWS, option="on_demand", zone="use1-az2", price_per_hour=Decimal("55.04"), price_basis="list", hours=2.0,
    cost_usd=Decimal("440.32"), spot_hours=None, quota_name="Running On-Demand P instances",
)  # fmt: skip
_GCP = replace(
    _AWS, provider="gcp", region="us-east4", zone="us-east4-b", instance_type="a3-megagpu-8g", family="a3-mega",
    vcpus=208, quota_name="PREEMPTIBLE_NVIDIA_H100_MEGA_GPUS",
)  # fmt: skip
_AZURE = replace(
    _ON_DEMAND, provider="azure", region="eastus", zone="", instance_type="Standard_ND96isr_H100_v5", family="NDv5",
    vcpus=96, quota_name="Standard NDSH100v5Family vCPUs",
)  # fmt: skip
_SMALL = replace(
    _ON_DEMAND, instance_type="g6.xlarge", family="g6", nodes=3, accelerator="l4-24gb-pcie", generation="ada", gpus=1,
    vcpus=4, price_per_hour=Decimal("0.8048"), cost_usd=Decimal("48.29"), hours=20.0,
)  # fmt: skip
LAYOUT = Layout(
    tensor_parallel=1, pipeline_parallel=1, context_parallel=1, data_parallel=32, zero_stage=3, micro_batch=2,
    grad_accumulation=8, recompute="none",
)  # fmt: skip


def launch(**changes: Any) -> Launch:
    """A gang of 4 p5.48xlarge on spot in one zone."""
    base = Launch(
        run_id="run-0123456789ab", name="llama-3-8b-pretrain", kind="training", created_at="2026-11-20T00:00+00:00",
        planner_version="0.1.0", way="one", pools=(_AWS,), nodes=4, layout=LAYOUT, run=RUN,
        training=Training("llama-3-8b", "bf16", "adamw", 512, 8192, "tokens", 200e9, 47684),
        checkpoints=Checkpoints(1800.0, 104.7, 28.1, 120.0),
        limits=Limits(
            start="2026-11-20T00:00+00:00", deadline="2026-12-11T00:00+00:00", hours=110.0,
            hours_p90=180.0, cost_usd=Decimal("8740.32"), cost_p90_usd=Decimal("11000"), budget_usd=Decimal(20000),
            step_time_s=8.1, throughput_per_s=517_000.0, mfu=0.45, interruptions=5.0,
        ),
        warnings=(),
    )  # fmt: skip
    return replace(base, **changes)


_SHARDED = replace(LAYOUT, tensor_parallel=8, pipeline_parallel=2, data_parallel=2, zero_stage=1, micro_batch=1,
                   grad_accumulation=256, recompute="full", interleave=2, sequence_parallel=True)  # fmt: skip
LAUNCHES = {
    "one": launch(),
    "in_turn": launch(way="in_turn", pools=(_AWS, replace(_AWS, region="us-east-2", zone="use2-az3"), _ON_DEMAND)),
    "together": launch(
        way="together", layout=_SHARDED,
        pools=(replace(_AWS, nodes=3), replace(_ON_DEMAND, nodes=1, zone=_AWS.zone)),
    ),
    "gcp": launch(pools=(_GCP,)),
    "azure": launch(pools=(_AZURE,), run=Run(), layout=_SHARDED),
    "single_gpu": launch(
        pools=(replace(_SMALL, nodes=1),), nodes=1,
        layout=replace(LAYOUT, data_parallel=1, zero_stage=0, micro_batch=64),
    ),
    "workers": launch(
        way="workers", kind="fleet", pools=(replace(_SMALL, option="spot", spot_hours=20.0), replace(_SMALL, nodes=2)),
        nodes=1, layout=None, run=replace(RUN, runs=64, nodes_per_run=1),
        checkpoints=Checkpoints(None, None, None, None),
    ),
}  # fmt: skip
"""Every kind of launch, by the name of its golden."""
