"""Speed of the layout search: `python -m benchmarks.layout_search [--nodes 128] [--json OUT]`.

A 70B model (and others) on every machine of the bundled catalog at every node count up to the limit. CPU time of the
process after imports and after the catalog is read; "first" builds the grids of layouts, "again" finds them cached.
The share left out by lower bounds and the cost per layout evaluated one by one are printed beside it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from catalogs.store.load import load_catalog
from catalogs.tables.table import Table
from planner.market.machines import build_hardware
from planner.performance.layouts import Layouts
from planner.performance.layouts_grid import build_bounds, grid
from planner.performance.search import estimate_layouts, estimate_shapes, search_job
from planner.performance.search_job import build_job, distinct_devices
from planner.performance.spec import ModelFamily, ModelSpec, TrainingSpec

SIZE = 100_000  # layouts estimated one by one
LLAMA_70B = ModelSpec(
    "llama-3-70b", ModelFamily.TRANSFORMER, 70.6e9, layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28672,
    vocab=128256, gated_mlp=True,
)  # fmt: skip
MIXTRAL = ModelSpec(
    "mixtral-8x7b", ModelFamily.TRANSFORMER, 46.7e9, active_params=12.9e9, layers=32, hidden=4096, heads=32, kv_heads=8,
    vocab=32000, gated_mlp=True, experts=8, experts_per_token=2, moe_ffn=14336,
)  # fmt: skip
JOBS = {
    "70B, batch 1024 x 8192": (LLAMA_70B, TrainingSpec(1024, 8192, "bf16")),
    "70B, batch 1920 x 4096": (LLAMA_70B, TrainingSpec(1920, 4096, "bf16")),
    "70B, 1920 x 4096, interleaved": (LLAMA_70B, TrainingSpec(1920, 4096, "bf16", stack="tuned")),
    "70B LoRA, batch 64 x 4096": (LLAMA_70B, TrainingSpec(64, 4096, "bf16", lora_rank=16)),
    "Mixtral, batch 1920 x 4096": (MIXTRAL, TrainingSpec(1920, 4096, "bf16")),
}


def machines() -> Table:
    """Distinct hardware of the bundled catalog."""
    return build_hardware(load_catalog().instance_types)[0]


def cpu_s(work: Callable[[], Any]) -> float:
    """CPU time of one call, s."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def measure(
    model: ModelSpec, training: TrainingSpec, hardware: Table, nodes: Sequence[int]
) -> dict[str, float]:
    """CPU seconds of the search, and how much of it was evaluated."""
    grid.cache_clear()
    first = cpu_s(lambda: estimate_shapes(model, training, hardware, nodes))
    again = min(cpu_s(lambda: estimate_shapes(model, training, hardware, nodes)) for _ in range(3))
    full = min(
        cpu_s(lambda: estimate_shapes(model, training, hardware, nodes, prune=False)) for _ in range(2)
    )
    table = estimate_shapes(model, training, hardware, nodes)
    cells = int(table["fits"].sum())
    job = build_job(model, training, hardware)
    job = replace(job, devices=job.devices.take(distinct_devices((job.devices,), False)[0]))
    _, found = search_job(job, np.asarray(nodes))
    return {
        "first_s": first, "again_s": again, "without_bounds_s": full, "machines": hardware.n_rows,
        "cells_that_fit": cells, "layouts_that_fit": found.fitting, "evaluated": found.evaluated,
    }  # fmt: skip


def per_layout_us(hardware: Table) -> float:
    """Microseconds of CPU per (machine, nodes, layout) of `estimate_layouts` with all its columns."""
    model, training = JOBS["70B, batch 1920 x 4096"]
    job = build_job(model, training, hardware)
    runs = np.flatnonzero(job.devices.reason == "")
    made = grid((8,), tuple(range(1, 129)), build_bounds(model, training, False)).layout
    rows = np.arange(SIZE) % made.n_rows
    layout = made.take(rows)
    device = runs[np.arange(SIZE) % len(runs)]
    columns = {**layout.__dict__, "hardware": device}
    spent = min(
        cpu_s(lambda: estimate_layouts(model, training, hardware, Layouts(**columns))) for _ in range(3)
    )
    return spent / SIZE * 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=128, help="search 1 to this many nodes")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    chosen = parser.parse_args(arguments)
    hardware, nodes = machines(), range(1, chosen.nodes + 1)
    print(f"{hardware.n_rows} machines x {chosen.nodes} node counts, CPU seconds")
    print(
        f"{'job':32} {'first':>7} {'again':>7} {'no bounds':>9} {'fitting':>10} {'evaluated':>10} {'us/layout':>9}"
    )
    out: dict[str, Any] = {}
    for name, (model, training) in JOBS.items():
        made = out[name] = measure(model, training, hardware, nodes)
        print(
            f"{name:32} {made['first_s']:7.3f} {made['again_s']:7.3f} {made['without_bounds_s']:9.3f}"
            f" {made['layouts_that_fit']:10,.0f} {made['evaluated']:10,.0f}"
            f" {made['again_s'] / made['layouts_that_fit'] * 1e6:9.2f}"
        )
    out["us_per_given_layout"] = per_layout_us(hardware)
    print(f"layouts given one by one, all columns: {out['us_per_given_layout']:.2f} us each")
    if chosen.json:
        chosen.json.write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
