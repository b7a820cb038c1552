"""Screen a change of the model of transformers in seconds: `python -m benchmarks.linear_fit`.

Around the bundled constants the log of a prediction is close to linear in the logs of the constants, so one table of
slopes serves all fits without some rows. Errors are those of the expert path and agree with full fits to 0.3 points;
what looks better here is fitted in full (`benchmarks.throughput --group-folds 5`) before it is believed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.accelerators import load_devices
from benchmarks.error_figures import errors
from benchmarks.fit_performance import (
    FAMILIES,
    FOLDS,
    LOSS_SCALE,
    PRIOR_WEIGHT,
    family_of,
    free_constants,
    learned_factors,
    load_priors,
    row_weights,
)
from benchmarks.held_out import fold_labels, source_labels
from benchmarks.measured import Case, load_cases
from benchmarks.points import load_rows
from benchmarks.predict import build_groups, settle, throughput
from catalogs.tables.table import Bools, Floats
from planner.performance.constants import DIRECTORY, Constants, load_constants
from planner.performance.work import PRECISION_GROUP

STEP = 0.02
ROUNDS = 25


@dataclass(frozen=True)
class Slopes:
    """The model as a line in the logs of its fitted constants.

    Attributes:
        at: logs of the bundled constants, shape `(n_constants,)`; `low`, `high` their bounds, `prior` their priors.
        value: log of the prediction there without learned factors, shape `(n_cases,)`.
        slope: change of `value` per change of each log, shape `(n_cases, n_constants)`.
    """

    at: Floats
    low: Floats
    high: Floats
    prior: Floats
    value: Floats
    slope: Floats


def slopes(cases: Sequence[Case], constants: Constants) -> Slopes:
    """Slopes of settled cases at `constants`, by differences of 2 %."""
    free = free_constants(DIRECTORY, True)
    priors = load_priors(constants)
    bare = Constants({k: v for k, v in constants.values.items() if not k.startswith("multiplier.")})
    groups = build_groups(cases)
    low, high = np.log([f.lower for f in free]), np.log([f.upper for f in free])
    at = np.clip(np.log([max(constants[f.name], f.lower) for f in free]), low, high)
    value = np.log(throughput(groups, len(cases), bare))
    slope = np.empty((len(cases), len(free)))
    for n, name in enumerate(f.name for f in free):
        step = STEP if at[n] + STEP <= high[n] else -STEP
        moved = bare.replace({name: math.exp(at[n] + step)})
        slope[:, n] = (np.log(throughput(groups, len(cases), moved)) - value) / step
    prior = np.clip(np.log([max(priors[f.name], f.lower) for f in free]), low, high)
    return Slopes(at, low, high, prior, value, slope)


def fitted(line: Slopes, measured: Floats, weights: Floats) -> Floats:
    """Logs of the constants with the least loss of `benchmarks.fit_performance`, within their bounds."""
    held = (PRIOR_WEIGHT * LOSS_SCALE) ** 2 * len(measured) / 500.0 / ((line.high - line.low) / 4.0) ** 2
    x = line.at.copy()
    for _ in range(ROUNDS):
        gap = line.value + line.slope @ (x - line.at) - measured
        soft = weights / np.sqrt(1.0 + (gap / LOSS_SCALE) ** 2)
        curve = (line.slope * soft[:, None]).T @ line.slope + np.diag(held)
        fall = (line.slope * soft[:, None]).T @ gap + held * (x - line.prior)
        new = _bounded(x, curve, fall, line)
        if np.abs(new - x).max() < 1e-4:
            return new
        x = new
    return x


def _bounded(x: Floats, curve: Floats, fall: Floats, line: Slopes) -> Floats:
    """One Newton step; constants that would leave their bounds stop there and the others step again."""
    new, free = x.copy(), np.ones(len(x), dtype=np.bool_)
    while free.any():
        rest = fall[free] + curve[np.ix_(free, ~free)] @ (new - x)[~free]
        new[free] = x[free] - np.linalg.solve(curve[np.ix_(free, free)], rest)
        out: Bools = free & ((new < line.low) | (new > line.high))
        if not out.any():
            break
        new = np.clip(new, line.low, line.high)
        free &= ~out
    return new


def left_out(cases: Sequence[Case], labels: Sequence[str], line: Slopes) -> Floats:
    """Log of the prediction of each case from constants and learned factors of other labels, shape `(n_cases,)`."""
    measured = np.log([case.measured.value for case in cases])
    keys = np.asarray(labels)
    result = np.full(len(cases), np.nan)
    for label in sorted(set(labels)):
        out, rest = np.flatnonzero(keys == label), np.flatnonzero(keys != label)
        others = [cases[int(p)] for p in rest]
        part = Slopes(line.at, line.low, line.high, line.prior, line.value[rest], line.slope[rest])
        x = fitted(part, measured[rest], row_weights(others))
        value = line.value + line.slope @ (x - line.at)
        factors = learned_factors(others, value[rest] - measured[rest], "transformer")
        result[out] = [value[p] - math.log(_factor(cases[int(p)], factors)) for p in out]
    return result


def _factor(case: Case, factors: dict[str, float]) -> float:
    use = f"{PRECISION_GROUP[case.training.precision]}.{case.training.stack}"
    names = (f"multiplier.transformer.{name}.{use}" for name in (family_of(case), case.generation))
    return next((factors[name] for name in names if name in factors), 1.0)


def main() -> int:
    """Print the errors of transformers with workload groups and with publishers left out."""
    constants = load_constants()
    cases, _ = load_cases(load_rows(None), load_devices())
    cases, _ = settle(
        [case for case in cases if case.kind in FAMILIES["transformer"]], load_priors(constants)
    )
    line = slopes(cases, constants)
    measured = np.asarray([case.measured.value for case in cases])
    ways = {"groups": fold_labels(cases, FOLDS), "publishers": source_labels(cases)}
    for name, labels in ways.items():
        made = errors(np.exp(left_out(cases, labels, line)), measured)
        print(f"{name:12} MAPE {made['mape']:5.1f}  median {made['median']:5.1f}  p90 {made['p90']:5.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
