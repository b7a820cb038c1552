"""Fit the three ratios of reinforcement learning's steps; with every model left out in turn.

python -m benchmarks.fit_rollouts --data measured.csv
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from unittest.mock import patch

import numpy as np
from scipy.optimize import minimize

from benchmarks.error_figures import errors
from benchmarks.post_training import load, predict
from benchmarks.post_training_rows import Row
from planner.performance import constants as module

NAMES = ("rollouts.generation_ratio", "rollouts.training_ratio", "rollouts.refit_ratio")
START = np.log([1.3, 1.2, 0.05])
# Soft pull towards the start: a quarter in log costs as much as a row that is 25 % off.
PULL = 0.5


def predicted_s(rows: list[Row], values: np.ndarray) -> np.ndarray:
    """Predicted step times with other ratios."""
    changed = module.load_constants().replace(dict(zip(NAMES, np.exp(values).tolist(), strict=True)))
    with patch("planner.estimation.answer.load_constants", return_value=changed):
        return np.asarray([predict(row).step_s for row in rows])


def fit(rows: list[Row]) -> np.ndarray:
    """The ratios, in log, with the least absolute log error."""
    measured = np.log([row.step_s or math.nan for row in rows])

    def loss(values: np.ndarray) -> float:
        gap = np.abs(np.log(predicted_s(rows, values)) - measured)
        return float(np.nanmean(gap) + PULL * np.mean((values - START) ** 2) / len(rows))

    return np.asarray(minimize(loss, START, method="Nelder-Mead", options={"maxiter": 45, "xatol": 0.02}).x)


def model_of(row: Row) -> str:
    """The model's preset."""
    model = row.loaded.workload.model
    assert model is not None
    return str(model.preset)


def main() -> int:
    """Print the ratios, and the error with each model left out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    rows = [row for row in load(parser.parse_args().data)[0] if row.training.rollouts is not None]
    rows = [row for row in rows if not math.isnan(predict(row).step_s)]
    measured = np.asarray([row.step_s for row in rows])
    left_out = np.full(len(rows), np.nan)
    for name in sorted({model_of(row) for row in rows}):
        own = np.asarray([model_of(row) == name for row in rows])
        values = fit([row for row, mine in zip(rows, own.tolist(), strict=True) if not mine])
        left_out[own] = predicted_s(
            [row for row, mine in zip(rows, own.tolist(), strict=True) if mine], values
        )
        print(name, np.exp(values).round(3), errors(left_out[own], measured[own]), flush=True)
    print("each model left out:", errors(left_out, measured))
    values = fit(rows)
    print(dict(zip(NAMES, np.exp(values).round(4).tolist(), strict=True)))
    print("all rows:", errors(predicted_s(rows, values), measured))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
