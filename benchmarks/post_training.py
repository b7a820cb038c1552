"""Judge post-training: step time, peak memory and fits of measured rows, each predicted from a workload file.

The prediction is that of `planner estimate`: the row's YAML is read, resolved and estimated on the row's accelerators.

    python -m benchmarks.post_training --data measured.csv [--rows]
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.error_figures import errors
from benchmarks.post_training_rows import Row, read_row
from benchmarks.rows import Skip, read_csv
from catalogs.table import Table
from planner.asked.assumptions import Assumptions
from planner.asked.job import resolve_job
from planner.asked.model import Asked
from planner.estimation.answer import predict_on
from planner.performance.constants import load_constants
from planner.performance.layouts import explicit
from planner.performance.memory import needed_parts
from planner.performance.search_job import build_job
from planner.records import record

NAN = math.nan
ON = datetime(2026, 11, 20, tzinfo=UTC)
_LEVELS = {"none": 0, "selective": 1, "full": 2}


@record(frozen=True)
class Prediction:
    """What is predicted for a row; `memory_gib` as its source counts."""

    row: Row
    reason: str
    step_s: float
    low_s: float
    high_s: float
    memory_gib: float


def hardware_of(row: Row) -> Table:
    """The row's machine in the planner's columns; what the source does not state is unknown."""
    device = row.device
    linked = device["link_gb_per_s"] == device["link_gb_per_s"] and "pcie" not in str(device["accelerator"])
    single = row.per_node == 1
    values: dict[str, Any] = {
        **{name: device[name] for name in device},
        "accelerator_count": float(row.per_node), "accelerator_memory_gib": device["memory_gib"],
        "memory_gib": NAN, "vcpus": NAN, "intra_node": "single" if single else ("nvswitch" if linked else "pcie"),
        "intra_node_gb_per_s": NAN, "internode_gbps": 3200.0 if linked else 100.0,
        "rdma": "infiniband" if linked else "", "trainable": "true",
    }  # fmt: skip
    return Table({name: [value] for name, value in values.items()})


def predict(row: Row) -> Prediction:
    """Estimate one row."""
    job = resolve_job(row.loaded.workload, ON.date())
    asked = Asked(row.loaded.workload, row.loaded.sha256, job, Assumptions.__new__(Assumptions))
    hardware = hardware_of(row)
    nodes = row.count // row.per_node
    shape = predict_on(asked, hardware, job.training, [nodes])[0]
    if not shape["fits"]:
        return Prediction(row, shape["reason"], NAN, NAN, NAN, float(shape["memory_needed_gib"]))
    return Prediction(
        row, "", shape["step_time_s"], shape["step_time_low_s"], shape["step_time_high_s"],
        _counted(row, job, hardware, shape),
    )  # fmt: skip


def _counted(row: Row, job: Any, hardware: Table, shape: dict[str, Any]) -> float:
    """Predicted peak as the row's source counts it, without what lies outside the framework or its cache.

    Unknown where the source states no peak.
    """
    if row.memory_gib is None:
        return NAN
    chosen = {
        "nodes": shape["nodes"], "tp": shape["tp"], "pp": shape["pp"], "cp": shape["cp"], "zero": shape["zero_stage"],
        "micro_batch": shape["micro_batch"], "recompute": _LEVELS[shape["recompute"]], "ep": shape["ep"],
        "interleave": shape["interleave"], "sequence_parallel": int(shape["sequence_parallel"]),
    }  # fmt: skip
    made = build_job(job.model, job.training, hardware)
    layout = explicit(
        float(row.per_node), job.training, int(job.model.layers or 1), int(job.model.experts or 1), [chosen]
    )
    parts = {
        name: float(value[0]) for name, value in needed_parts(made.footprint, layout, made.constants).items()
    }
    total = sum(parts.values())
    waste = 1.0 + load_constants()[f"memory.fragmentation_ratio.{job.training.stack}"]
    counted = {"reserved": total - parts["runtime_gib"], "allocated": (total - parts["runtime_gib"]) / waste}
    return counted.get(row.convention, total)


def load(path: Path) -> tuple[list[Row], Counter[str]]:
    """Rows that a workload can state, and why others are left out."""
    rows, left_out = [], Counter[str]()
    for raw in read_csv(path):
        try:
            rows.append(read_row(raw))
        except Skip as reason:
            left_out[str(reason)] += 1
    return rows, left_out


def report(found: list[Prediction], kind: str) -> list[str]:
    """Figures of one kind of row: step time, interval, memory, fits; by source below."""
    groups: dict[str, list[Prediction]] = defaultdict(list)
    for item in found:
        groups[item.row.source].append(item)
    out = [f"{kind}: {len(found)} rows"]
    for name, part in [("all", found), *sorted(groups.items())]:
        timed = [p for p in part if p.row.step_s and not math.isnan(p.step_s)]
        sized = [p for p in part if p.row.memory_gib and not math.isnan(p.memory_gib)]
        time = errors(np.asarray([p.step_s for p in timed]), np.asarray([p.row.step_s for p in timed]))
        room = errors(
            np.asarray([p.memory_gib for p in sized]), np.asarray([p.row.memory_gib for p in sized])
        )
        held = [p.low_s <= (p.row.step_s or 0.0) <= p.high_s for p in timed]
        fits = sum(not p.reason for p in part)
        out.append(f"  {name:34} step {_words(time)}; in the 80 % interval {np.mean(held) if held else NAN:4.0%}; "
                   f"memory {_words(room)}; fits {fits} of {len(part)}")  # fmt: skip
    return out


def _words(score: dict[str, float]) -> str:
    if not score["n"]:
        return "no row"
    return (f"n {score['n']:3.0f} median {score['median']:5.1f} MAPE {score['mape']:5.1f} p90 {score['p90']:5.1f} "
            f"ratio {score['bias']:4.2f}")  # fmt: skip


def main() -> int:
    """Print the figures of one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="CSV with the columns of measured.csv")
    parser.add_argument("--rows", action="store_true", help="print each row")
    chosen = parser.parse_args()
    rows, left_out = load(chosen.data)
    found = [predict(row) for row in rows]
    reinforced = [item for item in found if item.row.training.rollouts is not None]
    tuned = [item for item in found if item.row.training.rollouts is None]
    for kind, part in (("fine-tuning", tuned), ("reinforcement learning", reinforced)):
        print("\n".join(report(part, kind)))
    for reason, count in left_out.items():
        print(f"left out: {count} x {reason}")
    if chosen.rows:
        for item in found:
            step, room = item.row.step_s or NAN, item.row.memory_gib or NAN
            time = f"step {item.step_s:8.3f} / {step:8.3f} = {item.step_s / step:5.2f}"
            memory = f"memory {item.memory_gib:6.1f} / {room:6.1f} = {item.memory_gib / room:5.2f}"
            print(f"{item.row.key[:60]:60} {time}  {memory} {item.reason}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
