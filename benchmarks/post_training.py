"""Judge post-training: step time, peak memory and fits of measured rows, each predicted from a workload file.

The prediction is that of `planner estimate`: the row's YAML is read, resolved and estimated on the row's accelerators.

    python -m benchmarks.post_training --data measured.csv [--rows] [--left-out]

`--left-out` fits every constant of post-training anew without the rows of a group, and predicts them with these.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.error_figures import errors
from benchmarks.post_training_rows import Row, read_row
from benchmarks.rows import Skip, read_csv
from catalogs.tables.table import Table
from planner.asked.job import Job, resolve_job
from planner.estimation.predict import predict_shapes
from planner.performance.constants import Constants, load_constants
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


def predict(row: Row, constants: Constants | None = None) -> Prediction:
    """Estimate one row as `planner estimate` does.

    Args:
        row: the measured row.
        constants: the model's constants, the bundled ones by default.
    """
    job, hardware, shape = shape_of(row, constants)
    if not shape["fits"]:
        return Prediction(row, shape["reason"], NAN, NAN, NAN, float(shape["memory_needed_gib"]))
    return Prediction(
        row, "", shape["step_time_s"], shape["step_time_low_s"], shape["step_time_high_s"],
        counted_gib(row, job, hardware, shape, constants or load_constants()),
    )  # fmt: skip


def job_of(row: Row) -> tuple[Job, Table]:
    """The row's job and its machine."""
    return resolve_job(row.loaded.workload, ON.date()), hardware_of(row)


def shape_of(row: Row, constants: Constants | None = None) -> tuple[Any, Table, dict[str, Any]]:
    """The row's job, its machine, and the columns of `planner.performance.search.estimate_shapes`."""
    job, hardware = job_of(row)
    nodes = [row.count // row.per_node]
    return job, hardware, predict_shapes(job.model, job.training, hardware, nodes, constants=constants).row(0)


def counted_gib(row: Row, job: Any, hardware: Table, shape: dict[str, Any], constants: Constants) -> float:
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
    made = build_job(job.model, job.training, hardware, constants)
    layout = explicit(
        float(row.per_node), job.training, int(job.model.layers or 1), int(job.model.experts or 1), [chosen]
    )
    parts = {
        name: float(value[0]) for name, value in needed_parts(made.footprint, layout, made.constants).items()
    }
    total = sum(parts.values())
    waste = 1.0 + constants.of_stack("memory.fragmentation_ratio", job.training.stack)
    counted = {"reserved": total - parts["runtime_gib"], "allocated": (total - parts["runtime_gib"]) / waste}
    return counted.get(row.convention, total)


def load(path: Path) -> tuple[list[Row], Counter[str]]:
    """Rows of a file (or of `measured.csv` in a folder) that a workload can state, and why others are not."""
    rows, left_out = [], Counter[str]()
    for raw in read_csv(path / "measured.csv" if path.is_dir() else path):
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
    parser.add_argument("--data", type=Path, required=True, help="measured.csv, or its folder")
    parser.add_argument("--rows", action="store_true", help="print each row")
    parser.add_argument("--left-out", action="store_true", help="predict groups of rows without them")
    chosen = parser.parse_args()
    rows, unused = load(chosen.data)
    reinforced = [row for row in rows if row.training.rollouts is not None]
    tuned = [row for row in rows if row.training.rollouts is None]
    for kind, part in (("fine-tuning", tuned), ("reinforcement learning", reinforced)):
        for title, found in _scored(part, left_out=chosen.left_out):
            print("\n".join(report(found, f"{kind}{title}")), flush=True)
            if chosen.rows:
                print("\n".join(map(_told, found)))
    for reason, count in unused.items():
        print(f"not used: {count} x {reason}")
    return 0


def _scored(rows: list[Row], *, left_out: bool) -> Iterator[tuple[str, list[Prediction]]]:
    """Predictions with the bundled constants, or of each way to leave groups out."""
    if not left_out:
        yield "", [predict(row) for row in rows]
        return
    from benchmarks import post_training_left_out as folds

    done: list[list[str]] = []
    for title, group in folds.SPLITS.items():
        labels = [group(row) for row in rows]
        if labels not in done:
            yield f", each {title} left out ({len(set(labels))} groups)", folds.left_out(rows, group)
        done.append(labels)


def _told(item: Prediction) -> str:
    step, room = item.row.step_s or NAN, item.row.memory_gib or NAN
    time = f"step {item.step_s:8.3f} / {step:8.3f} = {item.step_s / step:5.2f}"
    memory = f"memory {item.memory_gib:6.1f} / {room:6.1f} = {item.memory_gib / room:5.2f}"
    return f"{item.row.key[:60]:60} {time}  {memory} {item.reason}"


if __name__ == "__main__":
    raise SystemExit(main())
