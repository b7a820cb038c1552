"""Cost of reinforcement learning on one cluster, and on two pools of one type of accelerator, over that on two pools.

Each job is planned by `planner pools` on the bundled catalog, generation one step ahead. Above 1 the two pools are
cheaper. Systems on several types of accelerators claim up to 1.46 against two pools of one type at equal throughput
(AReaL-Hex, arXiv 2511.00796). `--faster 8` plans each job once more with a deadline of an eighth of the hours of its
cheapest single cluster: as published runs, it then takes many machines.

    python -m benchmarks.pools [--first 0] [--n 30] [--faster 8]
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import UTC, date, datetime
from itertools import product
from pathlib import Path

import numpy as np
import yaml

from planner.asked.options import Options
from planner.inputs.load import load_workload
from planner.pipelines.pools import plan_pools
from planner.pipelines.pools_model import Pools

DAY = date(2026, 11, 20)
MODELS = ("qwen2.5-7b", "llama-3.1-8b", "qwen2.5-14b", "qwen2.5-32b", "llama-3.1-70b")
# mean, 95th percentile and limit of responses, and responses of a step
LENGTHS = ((500, 1_200, 2_048, 1_024), (2_000, 5_000, 8_192, 1_024), (6_000, 16_000, 32_768, 512))
OPTIONS = (["on_demand"], ["on_demand", "spot"])


def job(
    model: str, lengths: tuple[int, int, int, int], options: list[str], hours: float | None = None
) -> str:
    """A workload file; `hours` is its deadline."""
    mean, p95, limit, batch = lengths
    return yaml.safe_dump(
        {
            "version": 1, "name": f"{model}, {mean} tokens, {'+'.join(options)}", "model": {"preset": model},
            "training": {
                "objective": "grpo", "steps": 300, "global_batch": batch,
                "rollouts": {
                    "prompt_tokens": {"mean": 300, "max": 1_024},
                    "response_tokens": {"mean": mean, "p95": p95, "max": limit}, "samples_per_prompt": 16,
                    "placement": "disaggregated", "steps_off_policy": 1,
                },
            },
            "data": {"samples": 20_000, "location": "aws/us-east-1"}, "constraints": {
                "purchase_options": options, **({} if hours is None else {"deadline": f"{hours:.3f}h"}),
            },
        }
    )  # fmt: skip


def plan(text: str) -> Pools:
    """Plan the pools of a workload file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.yaml"
        path.write_text(text, encoding="utf-8")
        now = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC)
        return plan_pools(load_workload(path), Options(now, as_of=DAY))


def main() -> None:
    """Print the ratio of each job and their spread."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--first", type=int, default=0)
    reader.add_argument("--n", type=int, default=30)
    reader.add_argument("--faster", type=float, default=0.0)
    given = reader.parse_args()
    every = list(product(MODELS, LENGTHS, OPTIONS))[given.first : given.first + given.n]
    ratios: list[float] = []
    alike: list[float] = []
    for model, lengths, options in every:
        found = plan(job(model, lengths, options))
        if given.faster and found.same_ways is not None:
            found = plan(job(model, lengths, options, found.same_ways.hours / given.faster))
        one = found.same_ways or found.colocated  # by a deadline, both are bought in every way
        if not found.pools or one is None:
            print(f"{found.workload:45} {found.reason or 'no single cluster'}", flush=True)
            continue
        ratios.append(float(one.cost_usd / found.cost_usd))
        assert found.one_chip is not None
        alike.append(float(found.one_chip.cost_usd / found.cost_usd))
        a, b = (f"{p.accelerators:.0f} {p.accelerator} {p.bought.how}" for p in found.pools)
        gap = float(1 - found.bound_usd / found.cost_usd)
        print(
            f"{found.workload:45} {ratios[-1]:5.2f} {alike[-1]:5.2f}  two pools ${found.cost_usd:,.0f} (gap {gap:.2%}):"
            f" {a} | {b}; one ${one.cost_usd:,.0f}: {one.nodes} x {one.instance_type}; refit"
            f" {found.refit_s / found.step_s:.0%} of the step",
            flush=True,
        )
    for name, values in (("one cluster", ratios), ("two pools of one accelerator", alike)):
        if not values:
            print(f"no job has a pair to compare with {name}")
            continue
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
        wins = sum(value > 1 + 1e-9 for value in values)
        spread = f"{low:.2f} to {high:.2f} (P10-P90), greatest {max(values):.2f}, above 1 on {wins}"
        print(f"{len(values)} jobs, {name}: ratio {middle:.2f} in the median, {spread}")


if __name__ == "__main__":
    main()
