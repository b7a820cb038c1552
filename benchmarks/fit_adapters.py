"""Fit data/adapters.csv: step time and saved activations of each kind of adapter over LoRA's formula.

A kind that was measured has the geometric mean of its rows; another the median of its class. The spread of a class is
how far its kinds lie apart, with every kind left out in turn.

    python -m benchmarks.fit_adapters --data measured.csv [--write]
"""

from __future__ import annotations

import argparse
import csv
import math
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.error_figures import errors
from benchmarks.post_training import Prediction, load, predict
from benchmarks.post_training_rows import Row
from planner.performance.post_training.adapters import load_adapters

TABLE = Path(__file__).parents[1] / "planner" / "data" / "adapters.csv"
SOURCE = "huggingface/peft@5d602fd method_comparison; python -m benchmarks.fit_adapters"
# 80 % of a normal spread; a kind that was measured keeps the scatter between its own models.
Z80, OWN_SPREAD, WIDEST = 1.28, 0.12, 0.9


def ratios(data: Path) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Measured over predicted step time, and saved bytes per input element, of each kind's rows."""
    steps: dict[str, list[float]] = defaultdict(list)
    saved: dict[str, list[float]] = defaultdict(list)
    for row in load(data)[0]:
        adapter = row.training.adapter
        if adapter is None or not row.source.startswith("huggingface") or not row.step_s:
            continue
        steps[adapter.kind].append(row.step_s / with_cost(row, step_ratio=1.0).step_s)
        least, most = (with_cost(row, saved_bytes=guess).memory_gib for guess in (0.0, 8.0))
        # where everything is recomputed hardly anything is saved, and nothing can be learned of it
        if row.memory_gib and most > 1.1 * least:
            saved[adapter.kind].append(8.0 * max(row.memory_gib - least, 0.0) / (most - least))
    return steps, saved


def with_cost(row: Row, **changes: Any) -> Prediction:
    """Predict a row with other costs of its adapter."""
    adapter, table = row.training.adapter, load_adapters()
    assert adapter is not None
    kept = table[adapter.kind]
    table[adapter.kind] = replace(kept, **changes)
    try:
        return predict(row)
    finally:
        table[adapter.kind] = kept


def table_rows(steps: dict[str, list[float]], saved: dict[str, list[float]]) -> list[list[str]]:
    """Rows of the table, kinds in the order they have."""
    kinds = load_adapters()
    own = {kind: math.exp(float(np.mean(np.log(values)))) for kind, values in steps.items()}
    kept = {kind: float(np.mean(values)) for kind, values in saved.items()}
    classes: dict[str, list[str]] = defaultdict(list)
    for kind in own:
        classes[kinds[kind].family].append(kind)
    everything = list(own)
    out = []
    for kind, cost in kinds.items():
        peers = [name for name in classes.get(cost.family, []) if name != kind] or everything
        typical = median(own[name] for name in peers)
        apart = [abs(math.log(own[name] / typical)) for name in peers]
        wide = min(max(Z80 * float(np.sqrt(np.mean(np.square(apart)))), 0.2), WIDEST)
        holds = [kept[name] for name in peers if name in kept] or [4.0]
        out.append([
            kind, cost.family, f"{own.get(kind, typical):.3g}", f"{kept.get(kind, median(holds)):.3g}",
            f"{OWN_SPREAD if kind in own else wide:.3g}", str(len(steps.get(kind, []))),
            SOURCE if kind in own else f"median of class {cost.family}" if cost.family in classes else "median of all",
        ])  # fmt: skip
    return out


def as_unmeasured(steps: dict[str, list[float]]) -> dict[str, float]:
    """Errors of each kind's rows with the median of the other kinds of its class in place of its own figure."""
    own = {kind: math.exp(float(np.mean(np.log(values)))) for kind, values in steps.items()}
    kinds = load_adapters()
    guessed, measured = [], []
    for kind, values in steps.items():
        peers = [own[k] for k in own if k != kind and kinds[k].family == kinds[kind].family]
        guess = median(peers or [own[k] for k in own if k != kind])
        guessed += [guess] * len(values)
        measured += values
    return errors(np.asarray(guessed), np.asarray(measured))


def main() -> int:
    """Print the table; write it on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    steps, saved = ratios(chosen.data)
    rows = table_rows(steps, saved)
    for row in rows:
        print(*row[:6])
    print("step time, each kind taken as unmeasured:", as_unmeasured(steps))
    if chosen.write:
        with TABLE.open("w", encoding="utf-8", newline="") as file:
            made = csv.writer(file, lineterminator="\n")
            made.writerow(["adapter", "class", "step_ratio", "saved_bytes", "spread", "rows", "source"])
            made.writerows(rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
