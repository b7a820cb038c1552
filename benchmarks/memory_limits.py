"""Judge which jobs are named out of memory, on published limits: `python -m benchmarks.memory_limits`.

`data/memory_limits.csv` holds jobs that their publisher says fit or run out of memory. Where only the largest batch,
context or model that ran is published, that one fits and twice it (or the next size) does not (`basis`). No constant
was fitted to these jobs. With `--data FILE` the measured rows that ran are scored for false alarms beside them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measured import usual_dimensions
from benchmarks.memory_score import load_memory_rows, predict_memory
from benchmarks.points import load_rows
from benchmarks.rows import number, read_csv, whole
from planner.asked.job import Job, resolve_job
from planner.inputs.schema import Workload
from planner.performance.constants import Constants, load_constants
from planner.performance.layouts import Layouts
from planner.performance.memory import needed_gib
from planner.performance.memory_risk import oom_probability, usable_gib
from planner.performance.memory_work import build_footprint

LIMITS = Path(__file__).resolve().parent / "data" / "memory_limits.csv"
LEVELS = ("none", "selective", "full")
# What all accelerators of the list have: error codes apart from the stated memory, or none.
BANDWIDTH = 1e12
_ON = date(2026, 11, 1)
_MODEL = {
    "architecture": "architecture", "params": "parameters", "layers": "layers", "hidden": "width", "heads": "heads",
    "ffn": "ffn_width", "vocab": "vocabulary",
}  # fmt: skip
_TRAINING = {
    "precision": "precision",
    "optimizer": "optimizer",
    "stack": "software",
    "attention": "attention",
}


@dataclass(frozen=True)
class Limit:
    """A published limit: whether the job fits, and what is predicted for it."""

    case: str
    source: str
    out_of_memory: bool
    need_gib: float
    available_gib: float
    risk: float


def job_of(row: dict[str, str]) -> Job:
    """The job of a row, by way of the workload that states it."""
    model: dict[str, Any] = {"preset": row["model"]} if row["model"] else _sizes(row)
    if row["predicted_share"]:
        model["predicted_share"] = float(row["predicted_share"])
    training: dict[str, Any] = {name: row[column] for name, column in _TRAINING.items()}
    batch = _count(row, "micro_batch") * _count(row, "micro_batches") * _count(row, "data_parallel")
    training |= {"steps": 1, "global_batch": batch, "sequence_length": _count(row, "sequence")}
    if row["method"]:
        training |= {"method": row["method"], "lora_rank": _count(row, "rank"), "objective": "sft"}
        training["adapter"] = {"targets": "all-linear"}
    if row["loss"]:
        training["memory"] = {"loss": row["loss"]}
    document = {"version": 1, "name": row["case"], "model": model, "training": training}
    return resolve_job(Workload.model_validate(document), _ON)


def _count(row: dict[str, str], column: str) -> int:
    return int(number(row, column) or 1)


def _sizes(row: dict[str, str]) -> dict[str, Any]:
    """Stated sizes of a model; of one of which only the parameters are published, the usual shape."""
    sizes: dict[str, Any] = {"family": "transformer"}
    for name, column in _MODEL.items():
        if row[column]:
            sizes[name] = row[column] if name == "architecture" else whole(number(row, column))
    if not row["width"]:
        layers, hidden = usual_dimensions(float(row["parameters"]))
        sizes |= {"layers": int(layers), "hidden": int(hidden), "heads": int(hidden) // 128}
    return sizes


def layout_of(row: dict[str, str]) -> Layouts:
    """The row's layout; sequences are parallel where tensors are, unless the row says otherwise."""
    tp, stated = _count(row, "tensor_parallel"), number(row, "sequence_parallel")
    values = (
        1.0, tp, _count(row, "pipeline_parallel"), 1.0, 1.0, _count(row, "data_parallel"),
        number(row, "zero_stage") or 0.0, _count(row, "micro_batch"), _count(row, "micro_batches"), 1.0,
        float(tp > 1) if stated is None else stated, float(LEVELS.index(row["recompute"])),
    )  # fmt: skip
    return Layouts(np.zeros(1, dtype=np.int64), *(np.asarray([float(value)]) for value in values))


def predict_limit(row: dict[str, str], c: Constants) -> Limit:
    """Predict one published limit from its inputs alone."""
    job = job_of(row)
    need = needed_gib(build_footprint(job.model, job.training), layout_of(row), c)
    available = usable_gib(np.asarray([float(row["memory_gib"])]), np.asarray([BANDWIDTH]), c)
    risk = oom_probability(need, available, c)
    out = row["outcome"] == "out_of_memory"
    return Limit(row["case"], row["read_from"], out, float(need[0]), float(available[0]), float(risk[0]))


def predict_limits(c: Constants | None = None) -> list[Limit]:
    """Predict all published limits."""
    constants = c or load_constants()
    return [predict_limit(row, constants) for row in read_csv(LIMITS)]


def false_alarms(data: Path | None, c: Constants) -> tuple[int, int]:
    """How many of the measured rows that ran are named out of memory, and how many there are."""
    rows = load_memory_rows(load_rows(data))
    ran = [case for case in rows.cases if case.measured.metric != "oom"]
    need = predict_memory(ran, c)
    whole_need = np.asarray([case.memory.recompute_stated for case in ran])
    risk = oom_probability(np.where(whole_need, need.device, need.full_recompute), need.available, c)
    return int((risk > c["memory.oom_alarm"]).sum()), len(ran)


def lines(limits: Sequence[Limit], alarm: float) -> list[str]:
    """Recall and false alarms, in all and by source."""
    out = []
    for name in ("all", *sorted({limit.source for limit in limits})):
        own = [limit for limit in limits if name in ("all", limit.source)]
        bad, good = [x for x in own if x.out_of_memory], [x for x in own if not x.out_of_memory]
        found, wrong = (sum(x.risk > alarm for x in part) for part in (bad, good))
        out.append(
            f"out of memory: {found} of {len(bad)} found; fits: {wrong} of {len(good)} false alarms   {name}"
        )
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="measured rows that ran; the bundled points by default")
    parser.add_argument("--rows", action="store_true", help="print each job")
    chosen = parser.parse_args(arguments)
    constants = load_constants()
    limits = predict_limits(constants)
    print("\n".join(lines(limits, constants["memory.oom_alarm"])))
    wrong, ran = false_alarms(chosen.data, constants)
    print(f"measured rows that ran: {wrong} of {ran} false alarms ({wrong / ran:.1%})")
    if chosen.rows:
        for limit in limits:
            word = "out of memory" if limit.out_of_memory else "fits"
            room = f"needs {limit.need_gib:8.1f} of {limit.available_gib:5.1f} GiB"
            print(f"{limit.case:40} {word:14} {room}, risk {limit.risk:5.1%}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
