"""Whole published runs against what `planner estimate` totals for them: `python -m benchmarks.whole_runs`.

Each run of `data/whole_runs.csv` becomes a workload that states the model, the work, the batch, the precision and the
day; layout, software and kernels are left open, as for a user who plans. Its accelerator-hours are the step time times
the steps with what comes beside them, over what stops and checkpoints leave, as `planner estimate` prints them.

Published runs take longer than their steps, stops and checkpoints tell: what they spend beside the steps and the spread
from run to run (`beside_steps_ratio`, `whole_run_log_sd` of planner/data/assumptions.csv) come from these runs, so each
family is also scored with those of the other families. Stated speeds, and totals that the
publisher multiplied out of a speed, test the steps alone.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accelerators import find_device, load_devices
from benchmarks.error_figures import errors
from benchmarks.measured import hardware_of, read_networks, run_date
from benchmarks.rows import number, read_csv, whole
from catalogs.tables.table import Table
from planner.asked.assumptions import load_assumptions
from planner.asked.job import Job, resolve_job
from planner.estimation.predict import predict_shapes
from planner.estimation.run import run_totals
from planner.estimation.values import RunTotals
from planner.inputs.schema import Workload
from planner.normal import Z80

RUNS = Path(__file__).resolve().parent / "data" / "whole_runs.csv"
# Runs that no constant comes from, to judge by: `--data benchmarks/data/other_runs.csv`.
OTHERS = RUNS.with_name("other_runs.csv")
# The published name of an accelerator where the table of accelerators has another.
NAMES = {
    "A100-40": "A100-SXM-40", "A100-80": "A100-SXM-80", "A800-80": "A800-SXM-80", "GH200": "GH200-96",
    "TPUv4": "TPU-v4", "V100": "V100-SXM-32", "H800": "H100-SXM",
}  # fmt: skip
ELAPSED = frozenset({"wall", "wall_window", "billed_or_wall", "rounded", "author_accounting"})
DERIVED = frozenset({"derived_from_speed"})
COVERAGE = 0.8
# Tokens per step where a run does not say: usual for pre-training.
USUAL_BATCH_TOKENS = 2.0**22


@dataclass(frozen=True)
class Run:
    """A published run with its prediction; hours are accelerator-hours.

    Attributes:
        totals: as `planner estimate` prints them; `bare`: steps, stops and checkpoints alone.
        speed_hours: hours of steps at the speed that the publisher states, None where none is stated.
    """

    name: str
    family: str
    kind: str
    hours: float
    totals: RunTotals
    bare: RunTotals
    speed_hours: float | None

    @property
    def ratio(self) -> float:
        """Published hours over what steps, stops and checkpoints alone give."""
        return self.hours / self.bare.accelerator_hours.value

    @property
    def widths(self) -> tuple[float, float]:
        """Log widths of the interval of steps and goodput alone: downwards, upwards."""
        hours = self.bare.accelerator_hours
        return math.log(hours.value / hours.low), math.log(hours.high / hours.value)


def workload_of(row: dict[str, str], *, stated_software: bool = False) -> dict[str, Any]:
    """The workload of one published run.

    Args:
        row: of the file.
        stated_software: state the software class that follows from the program that the publisher names (column
            `stack`: Megatron-LM of its day `fused`, later and hand-written kernels `tuned`).

    Raises:
        ValueError: what the planner needs is not published.
    """
    tokens, sequence = number(row, "tokens"), number(row, "sequence")
    sizes = {name: whole(number(row, column)) for name, column in _SIZES.items()}
    if not (tokens and sequence and sizes["layers"] and sizes["hidden"] and sizes["heads"]):
        raise ValueError("sizes, tokens or sequence length not published")
    if row["kind"] not in ("pretrain", "protein", "distill"):
        raise ValueError(f"kind: {row['kind']}")
    if row["experts"] and not sizes["experts_per_token"]:
        raise ValueError("experts per token not published")
    batch = _divisible(
        number(row, "batch") or USUAL_BATCH_TOKENS / sequence, number(row, "accelerators") or 1.0
    )
    model: dict[str, Any] = {name: value for name, value in sizes.items() if value}
    model |= {"family": "transformer", "architecture": row["architecture"] or "decoder"}
    model["gated_mlp"] = bool(sizes["ffn"] and sizes["ffn"] != 4 * sizes["hidden"])
    if row["predicted_share"]:
        model["predicted_share"] = float(row["predicted_share"])
    training: dict[str, Any] = {
        "tokens": int(tokens), "global_batch": batch, "sequence_length": int(sequence),
        "precision": row["precision"],
    }  # fmt: skip
    if stated_software and row["stack"]:
        training["stack"] = row["stack"]
    started = run_date(row["date"])
    made: dict[str, Any] = {"version": 1, "name": row["run"], "model": model, "training": training}
    return made | ({"start": started} if started else {})


def _divisible(batch: float, accelerators: float) -> int:
    """The batch meant by a rounded figure ("4M tokens"): the nearest one that the accelerators divide, if any does."""
    whole_batches = round(batch / accelerators)
    return int(whole_batches * accelerators) if whole_batches else 2 ** round(math.log2(batch))


_SIZES = {
    "params": "parameters", "active_params": "active_parameters", "layers": "layers", "hidden": "width",
    "heads": "heads", "kv_heads": "kv_heads", "ffn": "ffn_width", "vocab": "vocabulary", "experts": "experts",
    "attention_window": "attention_window", "windowed_layers": "windowed_layers",
    "experts_per_token": "experts_per_token", "moe_ffn": "expert_width", "shared_experts": "shared_experts",
}  # fmt: skip


def predict_run(
    row: dict[str, str], devices: dict[str, dict[str, Any]], *, stated_software: bool = False
) -> Run:
    """Predict one published run, with its software stated or left open.

    Raises:
        ValueError: it cannot be; the message is the reason.
    """
    hours = number(row, "device_hours")
    if not hours:
        raise ValueError("accelerator-hours not published")
    device = find_device(devices, NAMES.get(row["accelerator"], row["accelerator"]))
    if device is None:
        raise ValueError(f"accelerator: {row['accelerator']}")
    count = int(number(row, "accelerators") or 0)
    if not count:
        raise ValueError("accelerators not published")
    asked = Workload.model_validate(workload_of(row, stated_software=stated_software))
    job: Job = resolve_job(asked, date(2026, 11, 1))
    per_node = 4 if device["generation"].startswith("tpu") or "gh200" in device["accelerator"] else 8
    cell = {"interconnect": row["network"], "gpu": row["accelerator"]}
    hardware, per_node = hardware_of(cell, device, min(per_node, count), count, None, read_networks())
    table = Table({name: [value] for name, value in hardware.items()})
    found = _nearest(job, table, -(-count // per_node))
    accelerators = found["nodes"] * per_node
    bundled = load_assumptions()
    alone = load_assumptions(
        {"evaluation_share_ratio": 0.0, "beside_steps_ratio": 0.0, "whole_run_log_sd": 0.0}
    )
    return Run(
        row["run"], row["family"], row["total"], hours, run_totals(job, found, accelerators, bundled),
        run_totals(job, found, accelerators, alone), _speed_hours(row, hours),
    )  # fmt: skip


def _speed_hours(row: dict[str, str], hours: float) -> float | None:
    if speed := number(row, "stated_tokens_per_s"):
        return (number(row, "tokens") or 0.0) / speed / 3600.0
    return hours if row["total"] in DERIVED else None


def _nearest(job: Job, hardware: Table, nodes: int) -> dict[str, Any]:
    """The prediction at `nodes`, or at the nearest smaller count that divides the batch.

    Raises:
        ValueError: none down to half of it can run the job.
    """
    counts = list(range(nodes, max(nodes // 2, 1) - 1, -1))
    for start in range(0, len(counts), 16):
        shapes = predict_shapes(job.model, job.training, hardware, counts[start : start + 16])
        for row in shapes.rows():
            if not row["reason"]:
                return row
    raise ValueError(f"no layout: {row['reason']}")


def predict_runs(
    rows: Sequence[dict[str, str]], *, stated_software: bool = False
) -> tuple[list[Run], Counter[str]]:
    """Predict all runs that can be; the counter tells why not the others."""
    devices, runs, left_out = load_devices(), [], Counter[str]()
    for row in rows:
        try:
            runs.append(predict_run(row, devices, stated_software=stated_software))
        except ValueError as error:
            left_out[str(error).splitlines()[0][:60]] += 1
    return runs, left_out


def usual_ratio(runs: Sequence[Run]) -> float:
    """Median over families of the median ratio of published hours to those of steps, stops and checkpoints."""
    families = {run.family for run in runs}
    return float(np.median([np.median([r.ratio for r in runs if r.family == name]) for name in families]))


def usual_spread(runs: Sequence[Run], ratio: float) -> float:
    """Log width that, joined with those of steps and goodput, holds 80 % of the runs; a family counts once."""
    sizes = Counter(run.family for run in runs)
    gaps = [math.log(run.ratio / ratio) for run in runs]
    own = [run.widths[int(gap > 0)] for run, gap in zip(runs, gaps, strict=True)]
    needed = np.sqrt([max(gap**2 - width**2, 0.0) for gap, width in zip(gaps, own, strict=True)])
    weight = np.asarray([1.0 / sizes[run.family] for run in runs])
    order = np.argsort(needed)
    reached = np.cumsum(weight[order]) / weight.sum()
    return float(needed[order][np.searchsorted(reached, COVERAGE)])


def assumed_from(runs: Sequence[Run]) -> tuple[float, float]:
    """`beside_steps_ratio` and `whole_run_log_sd` as these runs have them, beside the bundled share of evaluation."""
    ratio = usual_ratio(runs)
    beside = ratio - 1.0 - load_assumptions().evaluation_share_ratio
    return beside, usual_spread(runs, ratio) / Z80


def families_left_out(runs: Sequence[Run]) -> dict[str, float]:
    """Errors of the totals, each family with ratio and spread of the others."""
    predicted, held = [], []
    for run in runs:
        others = [other for other in runs if other.family != run.family]
        ratio = usual_ratio(others)
        spread = usual_spread(others, ratio)
        predicted.append(run.bare.accelerator_hours.value * ratio)
        gap = math.log(run.hours / predicted[-1])
        held.append(abs(gap) <= math.hypot(run.widths[int(gap > 0)], spread))
    hours = np.asarray([run.hours for run in runs])
    return {**errors(np.asarray(predicted), hours), "held": float(np.mean(held))}


def summary(runs: Sequence[Run]) -> dict[str, float]:
    """Errors of the totals with the bundled ratio, and how many the 80 % interval holds."""
    hours = np.asarray([run.hours for run in runs])
    middle, low, high = (
        np.asarray([getattr(run.totals.accelerator_hours, name) for run in runs])
        for name in ("value", "low", "high")
    )
    held = float(((hours >= low) & (hours <= high)).mean())
    return {**errors(middle, hours), "held": held}


def speeds(runs: Sequence[Run]) -> dict[str, float]:
    """Errors of the steps alone against stated speeds; bias over families, as some publish many runs."""
    stated = [(run.bare.step_hours * run.bare.accelerators, run.speed_hours, run.family) for run in runs
              if run.speed_hours]  # fmt: skip
    made, known = (np.asarray([row[k] for row in stated], dtype=np.float64) for k in (0, 1))
    families = np.asarray([row[2] for row in stated])
    by_family = [float(np.median((made / known)[families == name])) for name in sorted(set(families))]
    return {**errors(made, known), "bias": float(np.median(by_family))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=RUNS, help="runs with the columns of data/whole_runs.csv"
    )
    parser.add_argument(
        "--stated-software", action="store_true", help="state the software that publishers name"
    )
    parser.add_argument("--json", type=Path, help="also write the figures here")
    chosen = parser.parse_args(arguments)
    runs, left_out = predict_runs(read_csv(chosen.data), stated_software=chosen.stated_software)
    for run in runs:
        total = run.totals.accelerator_hours
        print(
            f"{run.name:24} {run.kind:20} published {run.hours:11,.0f}  predicted {total.value:11,.0f}"
            f" ({total.low:,.0f} to {total.high:,.0f})  x {total.value / run.hours:.2f}"
        )
    elapsed = [run for run in runs if run.kind in ELAPSED]
    ratio = usual_ratio(elapsed)
    beside, spread = assumed_from(elapsed)
    print(
        f"{ratio:.3f} x the steps: beside_steps_ratio {beside:.3f}, whole_run_log_sd {spread:.3f} from these runs"
    )
    figures = {
        "totals, bundled ratio": summary(elapsed),
        "totals, ratio of the other families": families_left_out(elapsed),
        "steps alone against stated speeds": speeds(runs),
    }
    for name, part in figures.items():
        held = f", 80 % interval holds {part['held']:.0%}" if "held" in part else ""
        print(
            f"{name}: {part['n']:.0f} runs, median error {part['median']:.1f} %, MAPE {part['mape']:.1f} %, bias"
            f" {part['bias']:.2f}{held}"
        )
    print(f"left out: {sum(left_out.values())}")
    print("\n".join(f"  {count:3d}  {reason}" for reason, count in left_out.most_common()))
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
