"""Recommenders with embedding tables against measured runs: nothing of the look-ups and exchanges was fitted to them.

`python -m benchmarks.recommenders [--stack tuned|compiled|eager]` prints each row and how far predictions are off. Rows
of a time to train count its evaluations as training. The dense network is MLPerf's DLRM (bottom 13-512-256-128, dot
products of 27 vectors, top 479-1024-1024-512-256-1): 2.4 M parameters, 5 MFLOP and 8,000 kept elements a sample.
"""

from __future__ import annotations

import argparse
import csv
import math
from datetime import date
from pathlib import Path

from benchmarks.accelerators import load_devices
from benchmarks.measured import hardware_of, read_networks
from catalogs.tables.table import Table
from planner.asked.job import resolve_job
from planner.inputs.load import parse_workload
from planner.performance.search import estimate_shapes
from planner.records import record

ROWS = Path(__file__).parent / "data" / "recommenders.csv"
WIDTH, TABLES = 128, 26
TEXT = """
version: 1
name: dlrm
model:
  family: cnn
  params: 2.4e6
  forward_flops_per_sample: 5e6
  activations_per_sample: 8000
  embedding_tables: {{rows: {rows:.0f}, width: {width}, tables: {tables}}}
training: {{samples: 4195197692, global_batch: {batch}, precision: {precision}, optimizer: sgd, stack: {stack}}}
data: {{size: 700GB}}
"""


@record(frozen=True)
class Scored:
    """One measured row: samples per second as measured and predicted, with the 80 % interval."""

    recipe: str
    accelerators: int
    precision: str
    table_gb: float
    measured: float
    predicted: float
    low: float
    high: float

    @property
    def factor(self) -> float:
        """How far the prediction is off, at least 1."""
        return math.exp(abs(math.log(self.predicted / self.measured)))


def score(stack: str) -> list[Scored]:
    """Predict every row with a software class.

    Raises:
        ValueError: a row that ran does not fit.
    """
    devices, networks = load_devices(), read_networks()
    out = []
    with ROWS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            count, batch = int(row["accelerators"]), int(row["global_batch"])
            params, cell = float(row["table_params"]), {"gpu": row["accelerator"], "interconnect": ""}
            text = TEXT.format(
                rows=params / WIDTH, width=WIDTH, tables=TABLES, batch=batch, precision=row["precision"], stack=stack,
            )  # fmt: skip
            job = resolve_job(parse_workload(text, Path("dlrm.yaml")).workload, date(2026, 11, 24))
            hardware, _ = hardware_of(cell, devices[row["accelerator"]], count, count, None, networks)
            machine = Table({name: [value] for name, value in hardware.items()})
            made = estimate_shapes(job.model, job.training, machine, [1]).row(0)
            if not made["fits"]:
                raise ValueError(f"{row['recipe']} on {count} x {row['accelerator']}: {made['reason']}")
            rate, low, high = (batch / made[f"step_time_{name}s"] for name in ("", "high_", "low_"))
            out.append(Scored(
                row["recipe"], count, row["precision"], params * 4 / 1e9, float(row["samples_per_s"]), rate, low, high,
            ))  # fmt: skip
    return out


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stack", default="tuned", choices=("tuned", "compiled", "eager"))
    rows = score(parser.parse_args().stack)
    for one in rows:
        print(
            f"{one.recipe:20} {one.accelerators} x {one.precision:5} {one.table_gb:4.0f} GB"
            f"  measured {one.measured / 1e6:6.2f} predicted {one.predicted / 1e6:6.2f} M/s  factor {one.factor:.2f}"
        )
    factors = sorted(one.factor for one in rows)
    held = sum(one.low <= one.measured <= one.high for one in rows)
    middle = factors[(len(factors) - 1) // 2]
    print(f"median factor {middle:.2f}, largest {factors[-1]:.2f}; interval holds {held} of {len(rows)}")


if __name__ == "__main__":
    main()
