"""How much one measurement says about another point: simple kriging of the log residual of the step time.

The residual log(measured / predicted) of one user's runs on one accelerator generation and software stack is taken as a
Gaussian process of mean zero. Its standard deviation is that of the model's own interval; its correlation is

    1                                        for the same point,
    exp(-sum_k d_k |log2 x_k - log2 y_k|) / (1 + between_points)    otherwise,

over accelerators, units (tokens, samples) per accelerator and step, sequence length and memory bandwidth, less `d` for
another model or precision. Both terms are positive definite (Matern 1/2 and a nugget), so any number of measurements
combine; kriging is best linear unbiased prediction (Krige 1951; Rasmussen and Williams 2006, eq. 2.25, 2.26). No figure
of the parallel layout enters: a calibration never changes which layout is best. The figures stand in
`planner/data/calibration.csv`, fitted by `python -m benchmarks.one_measurement --fit`.

Where the FLOPs of a model are given by hand within a factor, the part of the variance that this factor explains is one
common error: it is the same at every size, precision and accelerator generation (a random effect beside the process).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Bools, Floats
from planner.records import record

DATA_FILE = Path(__file__).resolve().parent.parent / "data" / "calibration.csv"


@record(frozen=True)
class Points:
    """Where something was measured or is predicted: arrays of one length, one entry per point.

    Attributes:
        accelerators: in the whole cluster.
        units: tokens or samples per accelerator and optimizer step.
        sequence: tokens per sample, 1 for models counted per sample.
        memory_rate: of one accelerator, GB/s; 0 where unknown.
        model: text that is equal for equal models (sizes and method of training).
        precision: of the matmuls.
    """

    accelerators: Floats
    units: Floats
    sequence: Floats
    memory_rate: Floats
    model: npt.NDArray[np.object_]
    precision: npt.NDArray[np.object_]


_AXES = {
    "accelerators": "decay.accelerators",
    "units": "decay.units_per_accelerator",
    "sequence": "decay.sequence",
    "memory_rate": "decay.memory_rate",
}


@lru_cache(maxsize=2)
def load_prior(path: Path = DATA_FILE) -> dict[str, float]:
    """Read the figures of the correlation by name."""
    with path.open(encoding="utf-8", newline="") as file:
        return {row["name"]: float(row["value"]) for row in csv.DictReader(file)}


def correlation(first: Points, second: Points, prior: Mapping[str, float]) -> Floats:
    """Correlation of the residuals of two sets of points.

    Args:
        first: shape `(n,)`.
        second: shape `(m,)`.
        prior: figures by name, see `load_prior`.

    Returns:
        Shape `(n, m)`, values in 0..1, 1 where two points are the same.
    """
    distance = np.zeros((len(first.units), len(second.units)))
    same = np.ones(distance.shape, dtype=np.bool_)
    for axis, name in _AXES.items():
        own = np.log2(np.maximum(getattr(first, axis), 1e-9))
        other = np.log2(np.maximum(getattr(second, axis), 1e-9))
        gap = np.abs(own[:, None] - other[None, :])
        distance += prior[name] * gap
        same &= gap < 1e-6
    for axis in ("model", "precision"):
        differs = getattr(first, axis)[:, None] != getattr(second, axis)[None, :]
        distance += prior[f"decay.other_{axis}"] * differs
        same &= ~differs
    return np.where(same, 1.0, np.exp(-distance) / (1.0 + prior["between_points"]))


@record(frozen=True)
class Posterior:
    """What measurements say about targets, arrays of shape `(n_targets,)`.

    Attributes:
        log_ratio: expected log(measured / predicted) of the step time.
        left: share of the variance that is left, 0..1.
        trust: correlation with the measurement that says most, 1 at a measured point.
    """

    log_ratio: Floats
    left: Floats
    trust: Floats


@record(frozen=True)
class Common:
    """The error that all points of one model share, because its FLOPs are given by hand.

    Attributes:
        deviation: standard deviation of that error in the logarithm; 0 where the FLOPs are known.
        measured: `(n,)` whether a measurement is of that model.
        generation: `(n,)` accelerator generations of the measurements; different ones share this error alone.
        target_generation, target_sigma: `(m,)` of the targets; the standard deviation is that of the whole residual.
    """

    deviation: float
    measured: Bools
    generation: npt.NDArray[np.object_]
    target_generation: npt.NDArray[np.object_]
    target_sigma: Floats


def posterior(
    measured: Points,
    log_ratio: Floats,
    error: Floats,
    sigma: Floats,
    targets: Points,
    prior: Mapping[str, float],
    common: Common,
) -> Posterior:
    """Expected residual at `targets` given residuals at `measured`.

    Args:
        measured: points of the measurements, shape `(n,)`, n >= 1.
        log_ratio: log(measured / predicted) of the step time there.
        error: standard deviation of each measurement in the logarithm, above 0.
        sigma: standard deviation of the residual at each of them without measurements.
        targets: points to predict, shape `(m,)`.
        prior: figures by name.
        common: generations, and the error that all points of the model share.
    """
    shared = common.deviation * common.measured
    own, own_there = (
        np.sqrt(np.maximum(whole**2 - part**2, 0.0))
        for whole, part in ((sigma, shared), (common.target_sigma, common.deviation))
    )
    together = common.generation[:, None] == common.generation
    alike = correlation(measured, targets, prior) * (common.generation[:, None] == common.target_generation)
    known = np.outer(own, own) * correlation(measured, measured, prior) * together
    known += np.outer(shared, shared) + np.diag(error**2)
    told = own[:, None] * own_there * alike + shared[:, None] * common.deviation
    weights = np.linalg.solve(known, told)
    left = 1.0 - np.einsum("nm,nm->m", weights, told) / (own_there**2 + common.deviation**2)
    return Posterior(weights.T @ log_ratio, np.clip(left, 0.0, 1.0), alike.max(axis=0))


def spread_ratio(left: Floats, trust: Floats, repeated: Bools, prior: Mapping[str, float]) -> Floats:
    """Standard deviation that is left over the one without measurements, 0..1.

    A repeated run keeps the measurement's own spread. Elsewhere residuals have heavier tails than a Gaussian process:
    the rest is widened by `spread_scale` (fitted to the coverage of the 80 % interval), and a point that was measured
    with another layout has the variance between points too.

    Args:
        left: share of the variance left.
        trust: correlation with the measurement that says most, 1 at a measured point.
        repeated: whether the target is a measured point with the layout measured there.
        prior: figures by name.
    """
    between = prior["between_points"] / (1.0 + prior["between_points"])
    wider = prior["spread_scale"] * np.sqrt(left + np.where(trust >= 1.0, between, 0.0))
    result: Floats = np.minimum(np.where(repeated, np.sqrt(left), wider), 1.0)
    return result
